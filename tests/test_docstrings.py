"""The docstrings of the public names have the sections of numpydoc, in its order."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

pytestmark = pytest.mark.project

SOURCE = Path(__file__).resolve().parents[1] / "src" / "isoroc"
MODULES = ["isoroc"] + [
    f"isoroc.{path.parent.name}"
    for path in sorted(SOURCE.glob("*/__init__.py"))
    if not path.parent.name.startswith("_")
]
ORDER = [
    "Parameters",
    "Attributes",
    "Returns",
    "Yields",
    "Raises",
    "Warns",
    "See Also",
    "Notes",
    "References",
    "Examples",
]
#: Errors and what functions return: the functions have the examples.
WITHOUT_EXAMPLE = {
    "AcceptanceRule",
    "BatchReport",
    "BootstrapResult",
    "CalibrationCurve",
    "CalibrationSummary",
    "CalibrationTest",
    "CascadeRule",
    "CostReport",
    "GoldenRows",
    "DecisionCurve",
    "Decomposition",
    "Evaluation",
    "LoadedMap",
    "ModelFileError",
    "PriorEstimate",
    "RiskCoverage",
    "RocCurve",
    "RocSurface",
    "ThresholdReport",
    "Volume",
}


def public_names():
    """All but a mapping, and a function that needs torch."""
    for module in MODULES:
        for name in importlib.import_module(module).__all__:
            if name not in {"scorers", "to_torch"} and f"{module}.{name}" not in MODULES:
                yield name, getattr(importlib.import_module(module), name)


PUBLIC = dict(public_names())
CLASSES = {name: thing for name, thing in PUBLIC.items() if inspect.isclass(thing)}
ESTIMATORS = [name for name, thing in CLASSES.items() if issubclass(thing, BaseEstimator)]
FUNCTIONS = [name for name, thing in PUBLIC.items() if not inspect.isclass(thing)]


def is_ours(value):
    """Whether a value is a function or method that isoroc defines, not scikit-learn."""
    is_function = inspect.isfunction(value) or inspect.ismethod(value)
    return is_function and value.__module__.startswith("isoroc")


def public_callables():
    """Functions, classes and methods by their names.

    Tables and errors are missing: Python defines their constructors.
    """
    for name, thing in PUBLIC.items():
        if name in FUNCTIONS or not issubclass(thing, dict | Exception):
            yield name, thing
        for method, value in inspect.getmembers(thing, is_ours):
            if not method.startswith("_"):
                yield f"{name}.{method}", value


CALLABLES = dict(public_callables())


def sections(thing):
    """Text of each section of a docstring by its title."""
    parts = re.split(r"(?m)^(\w[\w ]*)\n-{3,}$", inspect.getdoc(thing) or "")
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def documented(text):
    """Names before the colons of a section."""
    names = re.findall(r"(?m)^(\w[\w, *]*?)(?: : .*)?$", text)
    return [name.strip("* ") for line in names for name in line.split(",")]


@pytest.mark.parametrize("name", PUBLIC)
def test_sections_are_known_and_in_order(name):
    found = list(sections(PUBLIC[name]))
    assert found == [title for title in ORDER if title in found]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_have_all_sections(name):
    found = sections(CLASSES[name])
    assert {"Attributes", "See Also", "Notes", "Examples"} <= set(found)
    assert ("Parameters" in found) == bool(inspect.signature(CLASSES[name]).parameters)
    assert not re.search(r"(?m)^\w+ : [a-z]", found["See Also"])


@pytest.mark.parametrize("name", ESTIMATORS + FUNCTIONS)
def test_parameters_are_those_of_the_signature(name):
    taken = [x for x in inspect.signature(PUBLIC[name]).parameters if x != "self"]
    assert documented(sections(PUBLIC[name]).get("Parameters", "")) == taken


@pytest.mark.parametrize("name", ESTIMATORS)
def test_only_what_an_estimator_wraps_is_passed_by_position(name):
    parameters = inspect.signature(CLASSES[name]).parameters.values()
    by_position = [each.name for each in parameters if each.kind is not each.KEYWORD_ONLY]
    wrapping = {
        "CalibratedClassifier": ["estimator", "method"],  # as in CalibratedClassifierCV
        "MultiLabelCalibrator": ["calibrator"],
        "SegmentCalibrator": ["calibrator"],
    }
    assert by_position == wrapping.get(name, [])


def test_defaults_are_those_of_the_signature():
    lines = re.compile(r"(?m)^(\w[\w, ]*) : .*, default=(.+)$")
    found = {}
    expected = {}
    for name, thing in CALLABLES.items():
        parameters = inspect.signature(thing).parameters
        for names, value in lines.findall(sections(thing).get("Parameters", "")):
            default = ast.literal_eval(value)
            if isinstance(default, float):
                default = pytest.approx(default, rel=0.01)  # a rounded number
            for each in names.split(", "):
                expected[name, each] = default
                found[name, each] = parameters[each].default
    assert len(found) > 300
    assert found == expected


@pytest.mark.parametrize("name", CALLABLES)
def test_signatures_print_the_short_names_of_types(name):
    """`ArrayLike`, not the union of six types that it stands for."""
    printed = str(inspect.signature(CALLABLES[name]))
    assert not re.search(r"Union\[|Optional\[|numpy\.|collections\.abc|isoroc\._", printed), printed


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_say_what_they_return(name):
    returns = inspect.signature(PUBLIC[name]).return_annotation
    assert ("Returns" in sections(PUBLIC[name])) == (returns not in (None, "None"))


@pytest.mark.parametrize("name", PUBLIC)
def test_everything_public_has_an_example(name):
    found = ">>>" in sections(PUBLIC[name]).get("Examples", "")
    assert found == (name not in WITHOUT_EXAMPLE)


@pytest.mark.parametrize("name", CLASSES)
def test_names_in_see_also_exist(name):
    for other in re.findall(r"(?m)^(\S+) : ", sections(CLASSES[name]).get("See Also", "")):
        module, _, last = other.rpartition(".")
        assert hasattr(importlib.import_module(module or "isoroc"), last), other
