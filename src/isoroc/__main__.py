"""``python -m isoroc`` is the command ``isoroc``."""

import sys

from isoroc._cli import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
