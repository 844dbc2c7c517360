"""The pages of the documentation and how each of them is tested."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    path.name: path.read_text()
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
}

#: Lists of names, links and changes, and figures: other tests check what they refer to.
WITHOUT_CODE = {"api.md", "changelog.md", "evidence.md", "installation.md"}
WITHOUT_CODE |= {"what-works-with-what.md"}  # `test_what_works.py` runs its cells


def blocks(page, language):
    """The code blocks of a page in one language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGES[page], re.DOTALL)


#: Pages that run for more than a second.
LONG = {
    "decisions.md",
    "displays.md",
    "how-it-works.md",
    "how-to.md",
    "metrics.md",
    "scale.md",
}
#: Pages about data of others, which are in ../shared where there is one.
WITH_DATA = {"language-models.md"}
IN_PYTHON = [page for page in PAGES if blocks(page, "python")]
IN_SHELL = [page for page in PAGES if blocks(page, "sh")]
