"""The examples in the documentation run, and its links work."""

import contextlib
import io
import re
import runpy
from pathlib import Path

import pytest

pytestmark = pytest.mark.project

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    path.name: re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL)
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
}


@pytest.mark.parametrize("page", [name for name, blocks in PAGES.items() if blocks])
def test_python_blocks_run(page):
    names = {}  # as for a reader who runs one block after the other
    for block in PAGES[page]:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, page, "exec"), names)  # noqa: S102
        assert printed.getvalue().strip()


def test_demo_prints_a_verdict(capsys):
    runpy.run_path(str(ROOT / "examples" / "demo.py"), run_name="__main__")
    assert "Verdict: calibrate" in capsys.readouterr().out


def test_deployed_models_agree(capsys):
    runpy.run_path(str(ROOT / "examples" / "deploy.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "identical" in printed
    assert "NOT IDENTICAL" not in printed


def test_relative_links_exist():
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)", path.read_text()):
            if "://" not in target:
                assert (path.parent / target).exists(), f"{path.name} links to {target}"
