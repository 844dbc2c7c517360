"""The examples in the documentation run, and its links work."""

import ast
import contextlib
import importlib
import io
import re
import runpy
import sys
import tomllib
from importlib.metadata import packages_distributions, requires

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from packaging.requirements import Requirement

from pages import IN_PYTHON, LONG, PAGES, ROOT, WITH_DATA, WITHOUT_CODE, blocks

pytestmark = pytest.mark.project


def write_real_forecasts(folder):
    """The files that `language-models.md` loads. Without ../shared, the test is skipped."""
    networks = ROOT.parent / "shared" / "networks"
    if not networks.exists():
        pytest.skip("needs the forecasts in ../shared/networks")
    sets = np.load(networks / "networks.npz")
    answers = {}
    for exam, name in (("science", "sciq_test"), ("logic", "lsat_ar_test")):
        for array in "Py":
            answers[f"{exam} {array}"] = sets[f"llm-gpt-4o-{name}|{array}"]
    np.savez(folder / "answers.npz", **answers)
    images = {array: sets[f"wideresnet-16-4-cifar-10|{array}"] for array in "Py"}
    np.savez(folder / "images.npz", **images, **np.load(networks / "annotators.npz"))


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] * (page in LONG | WITH_DATA))
        for page in IN_PYTHON
    ],
)
def test_python_blocks_print_what_the_page_shows_below_them(page, tmp_path, monkeypatch):
    if page in WITH_DATA:
        write_real_forecasts(tmp_path)
        monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}  # as for a reader who runs one block after the other
    example = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", re.DOTALL)
    for block, shown in example.findall(PAGES[page]):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, page, "exec"), names)  # noqa: S102
        assert not shown or printed.getvalue() == shown


def test_no_page_lacks_a_test():
    """Python is run here, commands by tests/cli/test_pages.py, tutorials by `make docs`."""
    without = {page for page, text in PAGES.items() if not re.search(r"```(python|sh)\n", text)}
    assert without == WITHOUT_CODE


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md"])
def test_files_and_targets_that_a_page_names_exist(page):
    text = PAGES.get(page) or (ROOT / page).read_text()
    folders = "benchmarks|docs|examples|reproduction|tests|tools"
    for script in re.findall(rf"\b(?:{folders})/[\w/]+\.py\b", text):
        assert (ROOT / script).exists(), script
    for module in re.findall(r"`(_\w+/[\w/]+\.\w+)`", text):
        assert (ROOT / "src" / "isoroc" / module).exists(), module
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"`make ([\w-]+)", text):
        assert f"\n{target}:" in makefile, target


def requirements_of(extra):
    """Packages that an extra installs, without what they install themselves."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = set()
    extras = [extra]
    lines = list(project["dependencies"])
    while extras:
        lines += project["optional-dependencies"][extras.pop()]
        for line in lines:
            [(name, inner)] = re.findall(r"^([\w-]+)(?:\[([\w,-]+)\])?", line)
            if name == "isoroc":
                extras += inner.split(",")
            else:
                found.add(name.lower().replace("_", "-"))
        lines = []
    return found


def imports_of(code):
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def test_the_extra_all_brings_what_the_examples_import():
    scripts = [*(ROOT / "examples").glob("*.py"), *(ROOT / "docs" / "tutorials").glob("*.py")]
    codes = [code for page in IN_PYTHON for code in blocks(page, "python")]
    used = {name for code in codes for name in imports_of(code)}
    used |= {name for path in scripts for name in imports_of(path.read_text("utf-8"))}
    assert {"skops", "onnxruntime", "matplotlib", "duckdb"} <= used
    drawing = {Requirement(line).name for line in requires("matplotlib") or []}  # such as pillow
    installs = requirements_of("all") | {"isoroc"} | drawing
    known = packages_distributions()
    for name in used - sys.stdlib_module_names - {"fastapi", "pydantic"}:  # serve.py names them
        provided_by = {found.lower().replace("_", "-") for found in known.get(name, [name])}
        assert provided_by & installs, f"{name} is not in the extra all"


def test_the_tutorial_on_the_paper_shows_what_the_paper_proves(capsys):
    script = ROOT / "docs" / "tutorials" / "tutorial_7_paper.py"
    mpl.use("Agg")
    names = runpy.run_path(str(script))
    hull = names["hull"]
    after = names["after"]
    np.testing.assert_allclose(after.p0, hull.p0)
    np.testing.assert_allclose(after.p1, hull.p1)
    assert (names["before"] == names["repeated"]).all()
    assert len(names["irp"].path_["n_bins"]) > 5
    printed = capsys.readouterr().out
    assert "MonotonicityCheck(monotone=True, rows=500, exact=True)" in printed
    assert "lower bound, 300 directions" in printed
    plt.close("all")


@pytest.mark.slow
def test_demo_prints_a_verdict(capsys):
    runpy.run_path(str(ROOT / "examples" / "demo.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "Verdict: calibrate" in printed
    assert printed.endswith("isoroc apply model.json new.csv -o calibrated.csv\n")


@pytest.mark.slow
def test_deployed_models_agree(capsys):
    runpy.run_path(str(ROOT / "examples" / "deploy.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "identical" in printed
    assert "NOT IDENTICAL" not in printed


def test_relative_links_exist():
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r'(?:\]\(|<img src=")([^)#"]+)', path.read_text()):
            if "://" not in target:
                assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_reference_lists_exactly_the_public_names():
    """The site has a page for each of them: warnings are errors in `make docs`."""
    page = (ROOT / "docs" / "api.md").read_text()
    listed = {}
    for module, names in re.findall(
        r"currentmodule:: (\S+)\n\n.*?nosignatures:\n\n((?: +\w+\n)+)", page, re.DOTALL
    ):
        listed[module] = names.split()
    subpackages = set()
    for path in (ROOT / "src" / "isoroc").glob("*/__init__.py"):
        if not path.parent.name.startswith("_"):
            subpackages.add(path.parent.name)
    assert set(listed) == {"isoroc", *(f"isoroc.{name}" for name in subpackages)}
    for module, names in listed.items():
        public = importlib.import_module(module).__all__
        assert sorted(names) == sorted(set(public) - subpackages)


def test_every_page_of_the_site_is_in_its_navigation():
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    listed = {line.strip() for line in (ROOT / "docs" / "index.md").read_text().splitlines()}
    assert pages <= listed
