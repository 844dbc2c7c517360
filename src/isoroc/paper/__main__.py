"""``python -m isoroc.paper``."""

from isoroc.paper._command import main

main()
