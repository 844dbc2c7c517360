"""The structure of the package: import directions, public names, size of functions."""

import ast
import dataclasses
import importlib
import inspect
import re
import subprocess
import sys
import tokenize
from functools import cache
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import isoroc
from isoroc import _growth
from isoroc._support import lazy

pytestmark = pytest.mark.project

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "isoroc"

# The packages in layers: each may import packages of lower layers, none of its own or above.
LAYERS = [
    ["_core", "_support"],
    ["_backends"],
    ["_input"],
    ["_counts"],
    ["_maps"],
    ["_growth", "export"],
    ["_calibrators", "metrics"],
    ["_evaluation"],
    ["_report", "decisions"],
    ["plots"],
    ["isoroc"],  # gives access to all public names
    ["_cli"],
    ["__main__"],
]
LAYER = {part: number for number, parts in enumerate(LAYERS) for part in parts}
# The packages that users import from. All other modules have a private component in their path.
PUBLIC = [
    "isoroc",
    "isoroc.decisions",
    "isoroc.export",
    "isoroc.metrics",
    "isoroc.plots",
]

# Optional dependencies and the parts that may import them.
OPTIONAL = {
    "matplotlib": {"plots"},
    "mpl_toolkits": {"plots"},
    "mpltern": {"plots"},
    "polars": {"_cli"},
    "cyclopts": {"_cli"},
    "docstring_parser": {"_cli"},
    "rich": {"_support", "_cli"},
    "onnx": {"_backends", "export"},
    "google": {"export"},  # protobuf, which comes with onnx
    "sqlglot": {"_backends"},
    "torch": {"_backends", "_counts", "export"},
    "pyarrow": {"_calibrators"},
    "pandas": set(),
    "jinja2": {"_report"},
    "markupsafe": {"_report"},
}


# The modules of the command line in the same sense: open, read, check, do, write.
COMMAND_LINE = [
    ["errors", "options", "process", "texts"],
    ["conditions", "prometheus", "terminal"],
    ["io"],
    ["models"],
    ["batches"],
    ["outcomes"],
    ["reading"],
    ["calibration", "labels"],
    ["commands"],
]


# The modules of maps: values, checks of numbers, maps (all others), maps that use these, and what
# loads any.
MAPS = [
    ["cyclic", "monotonicity", "top"],
    ["modelfile"],
    ["acceptance", "base"],
    [],
    ["bins", "mixture", "segments"],
    ["loading"],
]


def part_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@cache
def tree_of(path):
    return ast.parse(path.read_text("utf-8"))


@cache
def imports_of(path):
    names: list[str] = []
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


FILES = [path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py"]


def test_imports_lead_to_lower_layers():
    found = {(part_of(path), name.split(".")[1]) for path in FILES for name in imports_of(path)
             if name.startswith("isoroc.")}  # fmt: skip
    found = {(part, target if target in LAYER else "isoroc") for part, target in found}
    wrong = [(a, b) for a, b in found if a != b and LAYER[b] >= LAYER[a]]
    assert not wrong, "these packages import others of their own or a higher layer"


def test_the_command_line_goes_one_way():
    layer = {part: number for number, parts in enumerate(COMMAND_LINE) for part in parts}
    folder = SOURCE / "_cli"
    for path in folder.rglob("*.py"):
        here = path.relative_to(folder).parts[0].removesuffix(".py")
        names = [name.split(".") for name in imports_of(path) if name.startswith("isoroc._cli.")]
        targets = {name[2] for name in names} - {here, "app"}  # `demo` runs other commands
        if here not in ("app", "__init__"):
            assert all(layer[target] < layer[here] for target in targets), f"{path}: {targets}"
        commands = {name[3] for name in names if name[2] == "commands"}
        assert not commands, f"{path} imports the command {commands}"


def test_maps_go_one_way():
    layer = {part: number for number, parts in enumerate(MAPS) for part in parts}
    folder = SOURCE / "_maps"
    for path in folder.rglob("*.py"):
        here = path.relative_to(folder).parts[0].removesuffix(".py")
        names = [name.split(".") for name in imports_of(path) if name.startswith("isoroc._maps.")]
        targets = {name[2] for name in names} - {here} if here != "__init__" else set()
        higher = [each for each in targets if layer.get(each, 3) >= layer.get(here, 3)]
        assert not higher, f"{path}: {higher}"
        assert here == "loading" or "isoroc._maps" not in imports_of(path)


def test_other_packages_are_imported_where_they_belong():
    for path in FILES:
        for name in imports_of(path):
            top, *rest = name.split(".")
            if top in OPTIONAL:
                assert part_of(path) in OPTIONAL[top], f"{path}: {name}"
            elif top == "sklearn":
                # In spite of its name, `_safe_indexing` is in the reference of scikit-learn's API.
                private = [p for p in rest if p.startswith("_") and p != "_safe_indexing"]
                assert not private, f"{path}: {name} is private to scikit-learn"


def test_modules_have_no_cycles_not_even_by_late_imports():
    modules = {module_of(path): path for path in FILES}
    left = {
        module: {
            name if name in modules else name.rpartition(".")[0] for name in imports_of(path)
        } & (modules.keys() - {module})
        for module, path in modules.items()
    }  # fmt: skip
    while free := {module for module, targets in left.items() if not targets & left.keys()}:
        left = {module: targets for module, targets in left.items() if module not in free}
    assert not left, "these modules import each other, or import those that do"


def test_growth_has_one_entrance():
    for path in FILES:
        if part_of(path) != "_growth":
            names = [name for name in imports_of(path) if name.startswith("isoroc._growth")]
            assert {name.split(".")[2] for name in names} <= set(_growth.__all__)
            assert all(name.count(".") == 2 for name in names), f"{path} imports inside _growth"


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


@pytest.mark.slow
def test_fit_loads_no_optional_dependency():
    loaded = loaded_after("import isoroc; isoroc.IRPCalibrator().fit([0.1, 0.9], [0, 1])")
    already = loaded_after("import sklearn.utils")  # scikit-learn imports pandas if installed
    assert "isoroc" in loaded
    assert not (loaded - already) & HEAVY


def module_of(path):
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_private(module):
    return any(re.match(r"_(?!_)", part) for part in module.split("."))


def test_modules_are_public_or_private_by_name():
    modules = {module_of(path) for path in SOURCE.rglob("*.py*") if path.suffix in {".py", ".pyx"}}
    assert {module for module in modules if not is_private(module)} == {*PUBLIC, "isoroc.__main__"}


def test_dir_shows_exactly_the_public_names():
    assert dir(isoroc) == sorted(isoroc.__all__)
    for name in isoroc.__all__:
        assert getattr(isoroc, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        isoroc.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_names_of_other_packages_are_answered_with_those_of_isoroc():
    with pytest.raises(AttributeError, match="Did you mean isoroc"):
        isoroc.metrics.ici  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError, match="Did you mean isoroc"):
        from isoroc import (  # type: ignore[attr-defined]  # noqa: PLC0415
            TemperatureScaling,  # noqa: F401
        )
    with pytest.raises(KeyError, match="there is neg_log_loss"):
        isoroc.metrics.scorers["log_loss"]
    assert not hasattr(isoroc.metrics, "ece")
    for name in lazy.MEANT.values():
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


def test_public_packages_are_attributes_after_import_isoroc():
    names = ", ".join(f"{package}.__name__" for package in PUBLIC[1:])
    code = f"import isoroc; print(isoroc.__version__, {names})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [isoroc.__version__, *PUBLIC[1:]]


SOURCES = [path for path in SOURCE.rglob("*.p*") if path.suffix in {".py", ".pyi", ".pyx", ".pxd"}]
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


@cache
def statements(path):
    """Depth of indentation and tokens of each statement. Cython has the tokens of Python."""
    found = []
    depth = 0
    tokens = list[tokenize.TokenInfo]()
    with path.open() as file:
        for token in tokenize.generate_tokens(file.readline):
            depth += (token.type == tokenize.INDENT) - (token.type == tokenize.DEDENT)
            if token.type == tokenize.NEWLINE:
                found.append((depth, tokens))
                tokens = []
            elif token.type not in LAYOUT:
                tokens.append(token)
    return found


def is_function(tokens):
    words = [token.string for token in tokens]
    defines = words[0] in {"def", "async", "cdef", "cpdef"} and words[1] not in {"class", "extern"}
    return defines and "(" in words and words[-1] == ":"


def function_lengths(path):
    """Name and lines of code of each function, without docstrings, comments and blank lines."""
    found = statements(path)
    for i, (depth, header) in enumerate(found):
        if not is_function(header):
            continue
        rows = {token.start[0] for token in header}
        for inner, tokens in found[i + 1 :]:
            if inner <= depth:
                break
            if any(token.type != tokenize.STRING for token in tokens):
                for token in tokens:
                    rows.update(range(token.start[0], token.end[0] + 1))
        words = [token.string for token in header]
        yield words[words.index("(") - 1], len(rows)


def test_function_lengths_leave_out_what_is_not_code(tmp_path):
    path = tmp_path / "example.pyx"
    path.write_text(
        '''cdef class Holder:
    """Not a function."""

    cdef double area(self, double a,
                     double b) noexcept nogil:
        """A docstring
        of two lines."""
        # a comment

        return a * b  # and another

    def text(self):
        return """one
        string"""


cdef int one() except? -1:
    return 1
'''
    )
    assert list(function_lengths(path)) == [("area", 3), ("text", 3), ("one", 2)]


def test_functions_are_short():
    lengths = [(path.name, *found) for path in SOURCES for found in function_lengths(path)]
    assert [found for found in lengths if found[2] > 70] == []


#: Modules of the standard library, and functions of `os`, that Windows does not have.
POSIX_MODULES = {
    "curses",
    "fcntl",
    "grp",
    "posix",
    "pty",
    "pwd",
    "resource",
    "syslog",
    "termios",
    "tty",
}
POSIX_NAMES = {
    "fork",
    "getuid",
    "geteuid",
    "getloadavg",
    "mkfifo",
    "sched_getaffinity",
    "sysconf",
    "uname",
}
POSIX_NAMES |= {"SIGALRM", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGUSR1"}


def is_packed(node):
    """Whether an assignment gives values to several things, constants also to chains of names.

    A swap does not count.
    """
    if not isinstance(node, ast.Assign):
        return False
    if isinstance(node.value, ast.Constant) and not isinstance(node.targets[0], ast.Subscript):
        return len(node.targets) > 1
    if not isinstance(node.value, ast.Tuple):
        return False
    values = sorted(map(ast.unparse, node.value.elts))
    targets = [target for target in node.targets if isinstance(target, ast.Tuple)]
    return any(sorted(map(ast.unparse, target.elts)) != values for target in targets)


def are_packed(tokens):
    """What `is_packed` says, for the tokens of a statement of Cython. Declarations are lists."""
    sides = [[""]]  # of the assignment, each in the parts between its commas
    depth = 0
    for token in tokens:
        depth += (token.string in set("([{")) - (token.string in set(")]}"))
        if depth == 0 and token.string == "=":
            sides.append([""])
        elif depth == 0 and token.string == ",":
            sides[-1].append("")
        else:
            sides[-1][-1] += token.string
    targets = sides[0]
    values = sides[-1]
    several = min(len(targets), len(values)) > 1 and sorted(targets) != sorted(values)
    return several and tokens[0].string != "cdef"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x[0], b = <int> x, f(y, z)", True),
        ("a, b = b, a", False),
        ("a, b = f(x, y)", False),
        ("cdef int a, b = 2, c = 3", False),
        ("f(a, b, c=(1, 2))", False),
    ],
)
def test_packed_assignments_of_cython(tmp_path, line, expected):
    path = tmp_path / "example.pyx"
    path.write_text(f"{line}\n")
    ((_, tokens),) = statements(path)
    assert are_packed(tokens) == expected


def test_a_statement_assigns_one_thing():
    assert is_packed(ast.parse("a, b = x, f(y)").body[0])
    assert is_packed(ast.parse("a = b = 0").body[0])
    assert not is_packed(ast.parse("a = self.a = f(x)").body[0])
    assert not is_packed(ast.parse("a, b = b, a").body[0])
    assert not is_packed(ast.parse("a, b = f(x)").body[0])
    for path in SOURCE.rglob("*.py"):
        nodes = ast.walk(tree_of(path))
        packed = [ast.unparse(node) for node in nodes if is_packed(node)]
        assert not packed, f"{path.name}: one name per line"
    for path in SOURCE.rglob("*.pyx"):
        packed = [tokens[0].line for _, tokens in statements(path) if are_packed(tokens)]
        assert not packed, f"{path.name}: one name per line"


def definitions(tree):
    """Names of the classes and constants of a module, but for variables of types."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name.lstrip("_")
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            if ast.unparse(node.value).startswith("TypeVar("):
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [ast.unparse(target).lstrip("_") for target in targets]
            yield from (name for name in names if name[:1].isupper())


def test_a_name_has_one_meaning():
    """No two modules have classes or constants of one name."""
    found: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        for name in definitions(tree_of(path)):
            found.setdefault(name, set()).add(str(path.relative_to(SOURCE)))
    assert not {name: places for name, places in found.items() if len(places) > 1}


def functions(path):
    """Functions that other modules may import from a module, in Python or in Cython."""
    for depth, tokens in statements(path):
        words = [token.string for token in tokens]
        if depth == 0 and is_function(tokens) and words[0] in {"def", "cpdef"}:
            name = words[words.index("(") - 1]
            if not name.startswith("_"):
                yield name


def test_no_two_modules_have_functions_of_one_name():
    """Nothing imports functions of commands, whose names are those of commands."""
    found: dict[str, set[str]] = {}
    for path in [*SOURCE.rglob("*.py"), *SOURCE.rglob("*.pyx")]:
        if path.parent.name != "commands":
            for name in functions(path):
                found.setdefault(name, set()).add(str(path.relative_to(SOURCE)))
    assert not {name: places for name, places in found.items() if len(places) > 1}


def untyped_keywords(tree):
    """Names of dictionaries of anything that calls take as keywords, without checks of types."""
    nodes = list(ast.walk(tree))
    hidden = {
        ast.unparse(node.target)
        for node in nodes
        if isinstance(node, ast.AnnAssign)
        and re.fullmatch(r"(typing\.)?Any|\w+\[str, Any\]", ast.unparse(node.annotation))
    }
    calls = (node for node in nodes if isinstance(node, ast.Call))
    taken = {ast.unparse(each.value) for call in calls for each in call.keywords if not each.arg}
    return hidden & taken | {each for each in taken if each.startswith("vars(")}


def test_keywords_have_types():
    assert untyped_keywords(ast.parse("x: Any = {'a': 1}; f(**x)")) == {"x"}
    assert untyped_keywords(ast.parse("x: dict[str, Any] = {}; f(**x)")) == {"x"}
    assert not untyped_keywords(ast.parse("x: dict[str, int] = {}; f(**x)"))
    assert untyped_keywords(ast.parse("f(**vars(x))")) == {"vars(x)"}
    for path in SOURCE.rglob("*.py"):
        tree = tree_of(path)
        functions = [node for node in tree.body if not isinstance(node, ast.ClassDef)]
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        for part in [*functions, *(inner for each in classes for inner in each.body)]:
            assert not untyped_keywords(part), f"{path}: pass keywords"


def test_nothing_is_used_that_windows_lacks():
    for path in SOURCE.rglob("*.py"):
        check_runs_on_windows(tree_of(path))


def check_runs_on_windows(tree):
    choices = [n for n in ast.walk(tree) if isinstance(n, ast.If)]
    by_platform = [n for n in choices if ast.unparse(n.test) == "sys.platform == 'win32'"]
    elsewhere = {part for n in by_platform for other in n.orelse for part in ast.walk(other)}
    for node in ast.walk(tree):
        if node in elsewhere:
            continue
        if isinstance(node, ast.Import):
            assert not {name.name for name in node.names} & POSIX_MODULES
        elif isinstance(node, ast.ImportFrom):
            assert node.module not in POSIX_MODULES
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert node.value.id not in ("os", "signal") or node.attr not in POSIX_NAMES
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            assert not node.value.startswith(("/proc/", "/dev/", "/tmp/"))  # noqa: S108


def test_public_objects_with_arrays_are_compared_by_identity():
    """Comparing their fields would ask for the truth of an array. Estimators are never equal."""
    arrays = re.compile("Floats|Ints|Codes|NDArray|ndarray|Table|ArrayLike")
    compared = {}
    for module in PUBLIC:
        for name in importlib.import_module(module).__all__:
            thing = None if name == "to_torch" else getattr(importlib.import_module(module), name)
            if inspect.isclass(thing) and dataclasses.is_dataclass(thing):
                held = " ".join(str(field.type) for field in dataclasses.fields(thing))
                if arrays.search(held) or issubclass(thing, BaseEstimator):
                    compared[name] = thing.__eq__ is object.__eq__
    assert len(compared) > 20
    assert not [name for name, by_identity in compared.items() if not by_identity]
