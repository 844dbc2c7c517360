"""``python -m isoroc`` is the command ``isoroc``."""

import sys

from isoroc._cli import main

if __name__ == "__main__":
    sys.exit(main())
