"""The rules of the house: who may import whom, and what importing the package costs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import isoroc

pytestmark = pytest.mark.project

SOURCE = Path(__file__).resolve().parents[1] / "src" / "isoroc"

# Each room and the rooms it may import. Data goes one way, so a room is listed after those.
ROOMS = {
    "_kernels": set(),
    "parameters": set(),
    "progress": set(),
    "table": set(),
    "simplex": {"_kernels"},
    "intervals": {"simplex"},
    "bins": {"_kernels", "simplex"},
    "monotony": {"_kernels", "bins", "simplex", "table"},
    "counts": {"_kernels", "simplex"},
    "growth": {"_kernels", "bins", "counts", "monotony", "progress", "simplex"},
    "ranks": {"simplex"},
    "store": {"bins", "monotony", "ranks", "simplex", "table"},
    "calibrators": {
        "_kernels",
        "bins",
        "counts",
        "growth",
        "intervals",
        "monotony",
        "parameters",
        "progress",
        "ranks",
        "simplex",
        "store",
        "table",
    },
    "classifier": {"calibrators", "simplex"},
    "metrics": {"_kernels", "bins", "counts", "growth", "parameters", "ranks", "simplex", "table"},
    "export": {"bins", "calibrators", "ranks", "simplex"},
    "plots": {
        "bins",
        "calibrators",
        "classifier",
        "counts",
        "intervals",
        "metrics",
        "parameters",
        "simplex",
        "table",
    },
    "paper": {"calibrators", "metrics", "plots", "progress", "simplex", "table"},
    "cli": {"export", "metrics", "paper", "simplex", "store", "table"},
    "__main__": {"cli"},
}

# Optional dependencies and the room that may import each; rich draws progress and tables.
OPTIONAL = {
    "matplotlib": {"plots"},
    "mpl_toolkits": {"plots"},
    "mpltern": {"plots"},
    "polars": {"cli"},
    "cyclopts": {"cli"},
    "rich": {"progress", "cli"},
    "onnx": {"export"},
    "sqlglot": {"export"},
    "moocore": {"metrics"},
    "pandas": set(),
    "jinja2": set(),
}


def room_of(path):
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
    room = room_of(path)
    for name in imports_of(path):
        top, _, rest = name.partition(".")
        if top == "isoroc":
            # `import isoroc` stands for its public names, which are above every room but the last.
            target = rest.split(".")[0]
            public = not target and room in {"cli", "paper"}
            allowed = public or target == room or target in ROOMS[room]
            assert allowed, f"{room} may not import {target}"
        elif top in OPTIONAL:
            assert room in OPTIONAL[top], f"{top} may only be imported in {OPTIONAL[top]}"
        elif top == "sklearn":
            parts = rest.split(".")
            private = [p for p in parts if p.startswith("_") and p != "_safe_indexing"]
            assert not private, f"{name} is private to scikit-learn"


def test_the_order_of_rooms_has_no_circle():
    seen = set()
    for room, targets in ROOMS.items():
        assert targets <= seen
        seen.add(room)


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
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        isoroc.nothing  # noqa: B018
