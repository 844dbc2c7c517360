"""The examples in the documentation run, and its links work."""

import contextlib
import io
import re
import runpy
from pathlib import Path

import pytest

pytestmark = pytest.mark.project

ROOT = Path(__file__).resolve().parents[1]
BLOCKS = [
    pytest.param(block, id=f"{path.name}-{i}")
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for i, block in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL))
]


@pytest.mark.parametrize("block", BLOCKS)
def test_python_blocks_run(block):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, "block", "exec"), {})  # noqa: S102
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
