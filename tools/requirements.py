"""The requirements of an extra, including the extras inside it, one on each line.

python tools/requirements.py dev > FILE

``pip install -r FILE`` then adds them to an environment without compiling the package again.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]


def requirements_of(extra: str) -> list[str]:
    """Requirements of other packages."""
    lines: list[str] = []
    for line in EXTRAS[extra]:
        inner = re.fullmatch(r"isoroc\[([\w,]+)\]", line)
        if inner is None:
            lines.append(line)
        else:
            lines += [each for name in inner[1].split(",") for each in requirements_of(name)]
    return lines


if __name__ == "__main__":
    print(*dict.fromkeys(requirements_of(sys.argv[1])), sep="\n")
