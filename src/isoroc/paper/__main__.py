"""``python -m isoroc.paper`` is the command ``isoroc reproduce``."""

import sys

from isoroc._cli import main

if __name__ == "__main__":
    sys.exit(main(["reproduce", *sys.argv[1:]]))
