"""What each extra installs: packages, megabytes and licences, as a table.

    python tools/extras.py

Reads the metadata of the packages that are installed. An extra of which some are missing is named.
"""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
#: Extras for users. The others are for development.
EXTRAS = ("plots", "cli", "report", "onnx", "sql", "duckdb", "dask", "spark", "torch")


def closure(lines: list[str], extras: frozenset[str] = frozenset()) -> dict[str, Distribution]:
    """Installed distributions that requirements need, and those that these need, by name."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    open_ = [(line, extras) for line in lines]
    while open_:
        line, asked = open_.pop()
        requirement = Requirement(line)
        marker = requirement.marker
        if marker and not any(marker.evaluate({"extra": extra}) for extra in asked or {""}):
            continue
        name = canonicalize_name(requirement.name)
        inner = frozenset(requirement.extras)
        if (name, inner) in seen:
            continue
        seen.add((name, inner))
        if name == "isoroc":
            optional = PROJECT["optional-dependencies"]
            open_ += [(line, frozenset()) for extra in inner for line in optional[extra]]
            continue
        found[name] = distribution(name)
        open_ += [(line, inner) for line in found[name].requires or []]
    return found


def of_extra(extra: str) -> dict[str, Distribution]:
    """Distributions that an extra adds to the package without extras."""
    everything = closure([f"isoroc[{extra}]"])
    return {name: everything[name] for name in everything.keys() - closure(core()).keys()}


def core() -> list[str]:
    """Requirements without extras."""
    return list(PROJECT["dependencies"])


def megabytes(found: dict[str, Distribution]) -> float:
    """Size on disk, compiled Python files included."""
    paths = (Path(str(file.locate())) for entry in found.values() for file in entry.files or [])
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def licence(entry: Distribution) -> str:
    """The licence that a distribution declares."""
    metadata = entry.metadata
    classifiers = [x for x in metadata.get_all("Classifier") or [] if x.startswith("License ::")]
    declared = metadata.get("License-Expression") or metadata.get("License") or ""
    return " ".join([declared.partition("\n")[0], *classifiers])


def copyleft(found: dict[str, Distribution]) -> list[str]:
    """Names of distributions under the GPL or LGPL."""
    pattern = re.compile(r"\bL?GPL|GNU", re.IGNORECASE)
    return sorted(name for name, entry in found.items() if pattern.search(licence(entry)))


def main() -> None:
    """Print the table."""
    print("| extra | packages | MB | under the LGPL or GPL |\n|---| ---: | ---: |---|")
    rows = {"(none)": closure(core())}
    for extra in (*EXTRAS, "all"):
        try:
            rows[f"`{extra}`"] = of_extra(extra)
        except PackageNotFoundError as error:
            print(f"{extra}: {error.name} is not installed", file=sys.stderr)
    for name, found in rows.items():
        print(f"| {name} | {len(found)} | {megabytes(found):,.0f} | {', '.join(copyleft(found))} |")


if __name__ == "__main__":
    main()
