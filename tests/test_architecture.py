"""The structure of the package: what may import what, what is public, and what importing costs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import isoroc

pytestmark = pytest.mark.project

SOURCE = Path(__file__).resolve().parents[1] / "src" / "isoroc"

# Each part of the package and the parts that it may import. Data goes one way, so a part is listed
# after those that it rests on.
PARTS = {
    "_core": set(),
    "_progress": set(),
    "_table": set(),
    "_simplex": set(),
    "_files": set(),
    "_folds": {"_simplex"},
    "_input": {"_core", "_simplex"},
    "_intervals": {"_simplex"},
    "_tree": {"_core", "_simplex"},
    "_monotonicity": {"_core", "_simplex", "_table", "_tree"},
    "_counts": {"_core", "_input", "_simplex"},
    "_top": {"_input", "_simplex"},
    "_growth": {"_core", "_counts", "_input", "_monotonicity", "_progress", "_simplex", "_tree"},
    "_persistence": {"_files", "_input", "_monotonicity", "_table", "_top", "_tree"},
    "_calibrators": {
        "_core",
        "_counts",
        "_folds",
        "_growth",
        "_input",
        "_intervals",
        "_monotonicity",
        "_persistence",
        "_progress",
        "_simplex",
        "_table",
        "_top",
        "_tree",
    },
    "_classifier": {"_calibrators", "_input", "_simplex"},
    "metrics": {
        "_core",
        "_counts",
        "_folds",
        "_growth",
        "_input",
        "_simplex",
        "_table",
        "_top",
        "_tree",
    },
    "export": {"_calibrators", "_input", "_simplex", "_top", "_tree"},
    "plots": {
        "_calibrators",
        "_classifier",
        "_counts",
        "_input",
        "_intervals",
        "_simplex",
        "_table",
        "_tree",
        "metrics",
    },
    "paper": {
        "_calibrators",
        "_files",
        "_input",
        "_progress",
        "_simplex",
        "_table",
        "metrics",
        "plots",
    },
    "_cli": {
        "_files",
        "_input",
        "_persistence",
        "_simplex",
        "_table",
        "export",
        "metrics",
        "paper",
    },
    "__main__": {"_cli"},
}
PUBLIC = {"export", "metrics", "paper", "plots"}

# Optional dependencies and the part that may import each; rich draws progress and tables.
OPTIONAL = {
    "matplotlib": {"plots"},
    "mpl_toolkits": {"plots"},
    "mpltern": {"plots"},
    "polars": {"_cli"},
    "cyclopts": {"_cli"},
    "docstring_parser": {"_cli"},
    "rich": {"_progress", "_cli"},
    "onnx": {"export"},
    "sqlglot": {"export"},
    "moocore": {"metrics"},
    "pandas": set(),
    "jinja2": set(),
}


def part_of(path):
    if path.stem == "__main__":  # python -m isoroc, and python -m isoroc.paper
        return "__main__"
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


FILES = [path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py"]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_one_way(path):
    part = part_of(path)
    for name in imports_of(path):
        top, _, rest = name.partition(".")
        if top == "isoroc":
            # `import isoroc` stands for its public names, which are above every part but the last.
            target = rest.split(".")[0]
            public = not target and part in {"_calibrators", "_cli", "paper"}
            allowed = public or target == part or target in PARTS[part]
            assert allowed, f"{part} may not import {target}"
        elif top in OPTIONAL:
            assert part in OPTIONAL[top], f"{top} may only be imported in {OPTIONAL[top]}"
        elif top == "sklearn":
            parts = rest.split(".")
            private = [p for p in parts if p.startswith("_") and p != "_safe_indexing"]
            assert not private, f"{name} is private to scikit-learn"


def test_the_order_of_parts_has_no_cycle():
    seen = set()
    for part, targets in PARTS.items():
        assert targets <= seen
        seen.add(part)


def loaded_after(statement):
    code = f"{statement}; import sys; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in run.stdout.split()}


HEAVY = {
    "pandas",
    "polars",
    "pyarrow",
    "matplotlib",
    "mpltern",
    "onnx",
    "jinja2",
    "rich",
    "sqlglot",
}


def test_import_is_light():
    assert not loaded_after("import isoroc") & (HEAVY | {"sklearn", "scipy", "numpy"})


def test_a_fit_loads_nothing_optional_either():
    loaded = loaded_after("import isoroc; isoroc.IRPCalibrator().fit([0.1, 0.9], [0, 1])")
    already = loaded_after("import sklearn.utils")  # scikit-learn loads pandas where it finds it
    assert "isoroc" in loaded
    assert not (loaded - already) & HEAVY


def test_public_names():
    assert set(isoroc.__all__) <= set(dir(isoroc))
    for name in isoroc.__all__:
        assert getattr(isoroc, name).__doc__
    with pytest.raises(AttributeError, match="attribute nothing"):
        isoroc.nothing  # noqa: B018
