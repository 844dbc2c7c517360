"""Check that a tag, the version of the package, CITATION.cff, CHANGELOG.md and the recipe agree.

    python tools/check_release.py v0.1.0

To release, replace "unreleased" in the changelog by the date, and add the same date as
`date-released` to CITATION.cff. Releases need the address of the repository, which is set in
pyproject.toml and nowhere else.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def problems(tag: str, root: Path = ROOT) -> list[str]:
    """What must change before this tag can be released."""
    found = []
    version = tag.removeprefix("v")
    declared = re.search(
        r'^__version__ = "(.+)"$',
        (root / "src" / "isoroc" / "__init__.py").read_text("utf-8"),
        re.MULTILINE,
    )
    if not tag.startswith("v") or declared is None or declared[1] != version:
        found.append(f"the tag is {tag}, __version__ is {declared and declared[1]}")
    citation = (root / "CITATION.cff").read_text("utf-8")
    if f"\nversion: {version}\n" not in citation:
        found.append(f"CITATION.cff has no line 'version: {version}'")
    changes = (root / "CHANGELOG.md").read_text("utf-8")
    dated = re.search(
        rf"^## \[{re.escape(version)}\] - (\d{{4}}-\d\d-\d\d)$", changes, re.MULTILINE
    )
    if dated is None:
        found.append(f"CHANGELOG.md has no heading '## [{version}] - YYYY-MM-DD'")
    elif f"\ndate-released: {dated[1]}\n" not in citation:
        found.append(f"CITATION.cff has no line 'date-released: {dated[1]}'")
    if f'\n  version: "{version}"\n' not in (root / "recipe" / "recipe.yaml").read_text("utf-8"):
        found.append(f"recipe/recipe.yaml has no line 'version: \"{version}\"'")
    home = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["isoroc"]["home"]
    if not re.fullmatch(r"https://\S+[^\s/]", home):
        found.append(
            "the address of the repository is not set: home in [tool.isoroc] of pyproject.toml is "
            f"{home!r}; give it an address that starts with https:// and ends without a slash"
        )
    return found


def main() -> None:
    """Print the problems, and exit with 1 if there is one."""
    found = problems(sys.argv[1])
    sys.stdout.writelines(f"{problem}\n" for problem in found)
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
