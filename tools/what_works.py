"""Write docs/what-works-with-what.md from the list that the tests run."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATH = ROOT / "docs" / "what-works-with-what.md"

if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))
    from what_works import page

    PATH.write_text(page(), encoding="utf-8")
