"""``python -m isoroc.paper``."""

from isoroc.paper.command import main

main()
