"""Model files: damaged, altered and hostile ones are refused with the place of the fault."""

import json
import pickle
import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import isoroc
from isoroc import ModelFileError, load_map
from isoroc._maps.loading import MAPS
from isoroc._maps.modelfile import document
from zoo import KINDS, fitted


def saved(calibrator, folder):
    path = folder / "model.json"
    calibrator.save(path)
    return path


def signed(content):
    """The text of a document with a checksum that fits it."""
    body = {name: entry for name, entry in content.items() if name != "checksum"}
    return json.dumps(body | {"checksum": document._checksum(body)})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from([0.5, 1e300, -0.0]) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def holders(draw, content):
    """A list or object somewhere in a document, and one of its keys."""
    while True:
        keys = list(content) if isinstance(content, dict) else range(len(content))
        key = draw(st.sampled_from(keys))
        if not isinstance(content[key], dict | list) or not content[key] or draw(st.booleans()):
            return content, key
        content = content[key]


ROOT = Path(__file__).resolve().parents[3]
SCHEMA = json.loads((ROOT / "docs" / "model-file.schema.json").read_text())


@pytest.mark.project
def test_the_schema_is_generated_from_the_checks():
    tool = runpy.run_path(str(ROOT / "tools" / "model_schema.py"))
    assert tool["PATH"].read_text() == tool["text"]()
    pytest.importorskip("jsonschema").Draft202012Validator.check_schema(SCHEMA)


@given(st.data())
def test_what_is_loaded_follows_the_schema(tmp_path_factory, data):
    jsonschema = pytest.importorskip("jsonschema")
    folder = tmp_path_factory.getbasetemp()
    kinds = ["IRPCalibrator", "IsotonicCalibrator", "AutoCalibrator"]
    file = saved(fitted(data.draw(st.sampled_from(kinds)), 5, n=60), folder)
    content = json.loads(file.read_text())
    assert jsonschema.Draft202012Validator(SCHEMA).is_valid(content)
    for _ in range(data.draw(st.integers(1, 2))):
        holder, key = holders(data.draw, content)
        what = data.draw(st.sampled_from(["change", "remove", "add"]))
        if what == "remove":
            del holder[key]
        elif what == "change" or isinstance(holder, list):
            holder[key] = data.draw(JSON)
        else:
            holder[data.draw(st.text())] = data.draw(JSON)
    file.write_text(signed(content))
    try:
        isoroc.load(file)
    except ModelFileError:
        return
    assert jsonschema.Draft202012Validator(SCHEMA).is_valid(json.loads(file.read_text()))


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "data").glob("model-*.json")), ids=str)
def test_a_file_keeps_its_forecasts_with_every_version(path):
    for load in (isoroc.load, load_map):
        loaded = load(path)
        given = loaded.summary_["forecasts"]
        expected = loaded.summary_["calibrated"]
        forecasts = loaded.predict_proba(given)
        # The file was written on another machine, where log and exp may round differently.
        assert forecasts == pytest.approx(np.array(expected), rel=0, abs=1e-15)


def test_files_of_older_versions_are_migrated(tmp_path, monkeypatch):
    file = saved(fitted("TemperatureCalibrator", 3), tmp_path)
    content = json.loads(file.read_text())
    numbers = content["model"]["map"]["numbers"]
    expected = numbers["temperature"]
    numbers["inverse"] = 1 / numbers.pop("temperature")
    file.write_text(signed(content))

    def rename(content):
        numbers = content["model"]["map"]["numbers"]
        numbers["temperature"] = 1 / numbers.pop("inverse")
        return content

    monkeypatch.setattr(document, "MODEL_VERSION", 3)
    monkeypatch.setattr(document, "MIGRATIONS", [rename])
    assert isoroc.load(file).map_.temperature == pytest.approx(expected)
    file.write_text(edited(content, ("version",), 1))
    with pytest.raises(
        ModelFileError, match=r"expected format version 3 or from 2 on, got 1\. Save"
    ):
        isoroc.load(file)


def edited(content, path, value):
    where = content
    *path, last = path
    for key in path:
        where = where[key]
    where[last] = value
    return signed(content)


STATE = ("model", "state")
NUMBERS = ("model", "map", "numbers")
TREE = (*NUMBERS, "tree")


def array(values, dtype="float64"):
    values = np.array(values)
    flat = values.ravel().tolist()
    return {"type": "array", "dtype": dtype, "shape": list(values.shape), "values": flat}


def reduction(**changed):
    return {"type": "reduction", "top": 1, "floor": 0.1, "capped": False} | changed


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("version",), 1, r"version: expected format version 2, got 1\. Save it again"),
        (
            ("version",),
            10**50,
            r"version: format version 10+\.* is newer than 2.* Install isoroc 0",
        ),
        (("version",), "1", "version: expected format version 2, got '1'"),
        (("format",), "other", "format: an isoroc model file says"),
        (("library",), "x" * 200, r"library: expected \^.\{0,100\}"),
        (("library",), 10**50, "library: expected .*, got a huge integer"),
        (("saved",), "now", "saved: expected"),
        (("summary",), [], "summary: expected an object, got a list of 0"),
        (("extra",), 5, "extra: is unknown"),
        (("model", "kind"), "CalibratedClassifier", "kind: 'CalibratedClassifier' is not a"),
        (("model", "kind"), "Calibrator", "kind: 'Calibrator' is not a calibrator"),
        (("model", "kind"), "os.system", "kind: 'os.system' is not a calibrator"),
        (("model", "parameters", "depth"), 3, "parameters.depth: is unknown"),
        ((*NUMBERS, "pseudocount"), -1.0, "pseudocount: expected a number"),
        ((*NUMBERS, "pseudocount"), {"type": "float", "value": "NaN"}, "pseudocount"),
        ((*NUMBERS, "pseudocount"), True, "pseudocount"),
        (("model", "parameters", "prior"), {"type": "call", "value": 1}, "prior: an object of 2"),
        (("model", "state"), {}, "certificate_: is missing"),
        (("model", "map"), {}, "model.map"),
        (("model", "map", "kind"), "os.system", "map.kind: 'os.system' is not a map of"),
        (("model", "map", "kind"), "Map", "map.kind: 'Map' is not a map of"),
        (("model", "map", "forecasts"), "scores", "map.forecasts: expected"),
        (("model", "map", "forecasts"), "log_odds", "n_features_in_: expected the number"),
        (NUMBERS, {}, "numbers.reduction: is missing"),
        ((*NUMBERS, "other"), 1, "numbers.other: is unknown"),
        ((*STATE, "other_"), 1, "other_: is unknown"),
        ((*STATE, "classes_"), [0, 1, 2], "classes_: expected an array"),
        ((*STATE, "classes_"), array([0], "int64"), "classes_: expected 2 to"),
        ((*STATE, "classes_"), array([0, 1, 1], "int64"), "classes_: the classes are not distinct"),
        ((*STATE, "classes_"), array([0, 1, 300], "uint8"), "classes_: a value"),
        ((*STATE, "classes_"), array([0, 1, -3], "uint8"), "classes_: a value"),
        ((*STATE, "classes_"), array([0.1, 1, 2], "float32"), "does not fit into dtype float32"),
        ((*STATE, "classes_"), array([0, 1, 2], "bool"), "classes_: int among the values"),
        ((*STATE, "classes_"), array([0.5, 1, 2], "int8"), "classes_: float among the values"),
        ((*STATE, "classes_"), array(["a", "b", "cc"], "str"), "does not fit into dtype str"),
        (
            (*STATE, "classes_"),
            array([0.0, 1.0, 2.0]) | {"values": ["NaN", 1.0, 2.0]},
            "the classes are not distinct",
        ),
        (
            (*STATE, "classes_"),
            array(["a"] * 400, "str") | {"length": 99999},
            "strings of 99999 characters are too long",
        ),
        ((*STATE, "classes_", "shape"), [10**9], "a list of 3 values do not fill"),
        ((*STATE, "classes_", "shape"), [0, 10**30], "do not fill the shape"),
        ((*STATE, "classes_", "shape"), [], "shape: expected a list of 1 to 4"),
        ((*STATE, "classes_", "dtype"), "datetime64", "classes_.dtype: expected bool or"),
        ((*STATE, "n_features_in_"), 2, "n_features_in_: expected the number of columns of prob"),
        ((*STATE, "n_features_in_"), True, "n_features_in_"),
        ((*STATE, "feature_names_in_"), array(["a"], "object"), "expected 3 names"),
        ((*NUMBERS, "tree"), None, "tree: expected a tree of 3 classes"),
        ((*NUMBERS, "prior"), array([0.5, 0.5]), r"prior: expected an array of shape \(3\)"),
        ((*NUMBERS, "prior"), array([0.5, 0.6, -0.1]), "prior: expected numbers >= 0"),
        ((*NUMBERS, "prior"), array([1, 1, 1], "int64"), "prior: expected an array of float64"),
        ((*NUMBERS, "reduction"), reduction(top=2), "reduction: expected a reduction of 3 classes"),
        ((*NUMBERS, "reduction"), reduction(floor=0), "floor: expected"),
        ((*NUMBERS, "reduction"), reduction(top=0), "top: expected a number"),
        ((*NUMBERS, "reduction"), reduction(capped=1), "capped: expected bool"),
        ((*STATE, "certificate_"), 3, "certificate_: expected the certificate of this tree"),
        ((*STATE, "certificate_", "slack"), array([1.0]), "slack: expected an array of shape"),
        ((*TREE, "thresholds", "values", 0), "Infinity", "thresholds: expected finite numbers"),
        ((*TREE, "thresholds", "values", 0), "one", "thresholds: str among the values"),
        ((*TREE, "split_nodes", "values", 1), 0, "split_nodes: a node is split twice"),
        ((*TREE, "split_nodes", "values", 0), 1, "split_nodes: a split divides a node that"),
        ((*TREE, "split_nodes", "values", 0), -1, "split_nodes: a split divides a node that"),
        ((*TREE, "children", "values", 0), 2, "children: expected the nodes 1 to"),
        ((*TREE, "children", "values", 0), -2, "children: expected the nodes 1 to"),
        ((*TREE, "class_weights", "values", 0), -1.0, "class_weights: expected weights"),
        ((*TREE, "class_weights", "values", 0), 1e308, "class_weights: "),
        ((*TREE, "class_weights", "values", 0), 1e3, "do not add up"),
    ],
)
def test_a_wrong_entry_is_named(path, value, message, tmp_path):
    file = saved(fitted("IRPCalibrator", 3, min_bin_weight=5), tmp_path)
    file.write_text(edited(json.loads(file.read_text()), path, value))
    with pytest.raises(ModelFileError, match=message) as error:
        isoroc.load(file)
    assert str(error.value).startswith(str(file))
    assert "\n" not in str(error.value)
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


def test_wrong_trees_are_named(tmp_path):
    file = saved(fitted("IRPCalibrator", "p"), tmp_path)
    for message, change in {
        "two classes or more": {
            "thresholds": array(np.ones((0, 1))),
            "split_nodes": array([], "int64"),
            "children": array(np.ones((0, 1), int), "int64"),
            "class_weights": array([[1.0]]),
        },
        "fewer than two children": {
            "thresholds": array([[0.5, 0.5]]),
            "split_nodes": array([0], "int64"),
            "children": array([[1, -1]], "int64"),
            "class_weights": array([[1.0, 1], [1, 1]]),
        },
        "outside the bin": {
            "thresholds": array([[0.5, 0.5], [0.4, 0.6]]),
            "split_nodes": array([0, 1], "int64"),
            "children": array([[1, 2], [3, 4]], "int64"),
            "class_weights": array([[4.0, 4], [2, 2], [2, 2], [1, 1], [1, 1]]),
        },
    }.items():
        content = json.loads(file.read_text())
        content["model"]["map"]["numbers"]["tree"] = {"type": "tree"} | change
        broken = tmp_path / "broken.json"
        broken.write_text(signed(content))
        with pytest.raises(ModelFileError, match=message):
            isoroc.load(broken)


STATE_FAULTS = [
    ("AutoCalibrator", "members_", [], "members_: expected a list of one or more"),
    ("AutoCalibrator", "member_scores_", None, "member_scores_: expected a table"),
    ("AutoCalibrator", "verdict_", None, "verdict_: expected a verdict"),
    ("MatrixCalibrator", "penalty_", array([1.0]), "penalty_: expected an array of shape"),
    ("KernelCalibrator", "penalty_", -1, "penalty_: expected a number"),
]


@pytest.mark.parametrize(("name", "attribute", "value", "message"), STATE_FAULTS)
def test_a_wrong_attribute_is_named(name, attribute, value, message, tmp_path):
    file = saved(fitted(name, 3), tmp_path)
    content = json.loads(file.read_text())
    file.write_text(edited(content, (*STATE, attribute), value))
    with pytest.raises(ModelFileError, match=f"model.state.{message}"):
        isoroc.load(file)


MAP_FAULTS = [
    ("AutoCalibrator", "members", [], "members: expected a list of one or more"),
    ("AutoCalibrator", "members", [3], r"weights: expected an array of shape \(1\)"),
    ("AutoCalibrator", "weights", array([1.0]), "weights: expected an array of shape"),
    ("IRPCalibrator", "shares", array([3.0]), "shares: expected an array of shape"),
    ("IRPCalibrator", "pseudocount", -1, "pseudocount: expected a number"),
    ("IsotonicCalibrator", "cuts", [array([1.0])], "cuts: expected a list of 3"),
    ("IsotonicCalibrator", "cuts", 3 * [array([1.0, 0.5])], r"cuts\[0\]: expected ascending"),
    ("IsotonicCalibrator", "values", 3 * [array([0.5])], r"values\[0\]: expected an array"),
    ("VennAbersCalibrator", "upper", None, "upper: expected a list of"),
    ("TemperatureCalibrator", "temperature", 0, "temperature: expected a number"),
    ("TemperatureCalibrator", "floor", 2.0, "floor: expected a number"),
    ("TemperatureCalibrator", "floor", 0.0, "floor: expected a number > 0"),
    ("TemperatureCalibrator", "smoothing", "x", "smoothing: expected a number"),
    ("MatrixCalibrator", "coef", array([[1.0]]), "coef: expected an array of shape"),
    ("MatrixCalibrator", "intercept", array([1.0]), "intercept: expected an array of shape"),
    ("MatrixCalibrator", "intercept", array([1e200, 0, 0]), "intercept: expected numbers between"),
    ("KernelCalibrator", "knots", array([9 * [0.0]] * 3), "knots: expected ascending"),
    ("KernelCalibrator", "weights", array([[1.0]] * 3), "weights: expected an array of shape"),
    ("CumulativeCalibrator", "shifts", array([1.0, 0.5]), "shifts: expected 2 ascending"),
    ("CumulativeCalibrator", "rates", array([1.0, 0.0]), "rates: expected numbers > 0"),
    ("SplineCalibrator", "slopes", array([1.0]), "slopes: expected an array of shape"),
]


@pytest.mark.parametrize(("name", "number", "value", "message"), MAP_FAULTS)
def test_a_wrong_number_of_a_map_is_named(name, number, value, message, tmp_path):
    file = saved(fitted(name, 3), tmp_path)
    content = json.loads(file.read_text())
    file.write_text(edited(content, (*NUMBERS, number), value))
    for load in (isoroc.load, load_map):
        with pytest.raises(ModelFileError, match=f"model.map.numbers.{message}"):
            load(file)


@pytest.mark.parametrize("name", KINDS)
def test_a_loaded_map_is_shown_without_its_arrays(name, tmp_path):
    loaded = load_map(saved(fitted(name, "p"), tmp_path))
    shown = repr(loaded)
    assert shown.startswith(f"LoadedMap({name}, {len(loaded.classes_)} classes, ")
    assert all(number in shown for number in loaded.map_.states())
    assert len(shown) < 500


def test_every_map_is_that_of_a_calibrator():
    found = {type(fitted(name, "p").map_) for name in KINDS}
    found |= {type(fitted("IRPCalibrator", 3).map_)}
    p = np.linspace(0, 1, 20).reshape(-1, 2)
    found |= {
        type(isoroc.MultiLabelCalibrator(isoroc.TemperatureCalibrator()).fit(p, p > 0.5).map_)
    }
    assert found == set(MAPS.values())


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("state", "members_", 0), 3, "model.state: expected calibrators"),
        (("state", "members_", 0, "state", "floor_"), 3, r"members_.*floor_: is unknown"),
        (("state", "members_"), [], "members_: expected a list"),
        (("parameters", "members", 0, "state", "floor_"), "logit", "floor_: is unknown"),
        (("state", "cv_results_", "columns", "more"), array([1.0]), "the columns differ in length"),
        (
            ("state", "cv_results_", "columns", "member", "length"),
            10**6,
            "length: expected a number",
        ),
        (("map", "numbers", "members", 0), 3, r"members\[0\]: expected a map of probabilities"),
        (("map", "numbers", "members", 0, "forecasts"), "logits", r"members\[0\]: expected a map"),
        (("map", "numbers", "members", 0, "kind"), "Other", r"members\[0\].kind: 'Other' is not"),
        (("map", "numbers", "members", 0, "numbers", "x"), 3, r"\[0\].numbers.x: is unknown"),
    ],
)
def test_calibrators_and_maps_inside_are_checked_too(path, value, message, tmp_path):
    file = saved(fitted("AutoCalibrator", 3), tmp_path)
    file.write_text(edited(json.loads(file.read_text()), ("model", *path), value))
    with pytest.raises(ModelFileError, match=message):
        isoroc.load(file)


def test_values_of_step_functions_are_probabilities(tmp_path):
    file = saved(fitted("IsotonicCalibrator", 3), tmp_path)
    content = json.loads(file.read_text())
    content["model"]["map"]["numbers"]["values"][0]["values"][0] = 1.5
    file.write_text(signed(content))
    with pytest.raises(ModelFileError, match=r"values\[0\]: expected numbers between 0 and 1"):
        isoroc.load(file)


def test_numbers_that_make_no_forecasts_are_refused(tmp_path):
    """Each value is a probability, but rows of zeros cannot be divided by their sum."""
    file = saved(fitted("IsotonicCalibrator", 3), tmp_path)
    content = json.loads(file.read_text())
    for values in content["model"]["map"]["numbers"]["values"]:
        values["values"] = [0.0] * len(values["values"])
    file.write_text(signed(content))
    for load in (isoroc.load, load_map):
        with pytest.raises(ModelFileError, match=r"model.map: .* are not valid probabilities"):
            load(file)


DAMAGED = {
    "cut off": lambda text: text[: len(text) // 2],
    "not JSON": lambda text: text[:0],
    "not JSON, or cut off": lambda text: text[:-3] + ", 12" + 5000 * "3" + "}",
    "format: an isoroc": lambda text: f"[{text}]",
    "does not match the content": lambda text: text.replace('"rows": 150', '"rows": 151'),
    "NaN is not a JSON number": lambda text: text.replace('"rows": 150', '"rows": NaN'),
    "two entries of one name": lambda text: text.replace('"rows"', '"weight"'),
    "beyond the range of double": lambda text: text.replace('"rows": 150', '"rows": 1e999'),
    "a number beyond": lambda text: re.sub(r'("values": \[)\d*\.[^,]+', r"\g<1>1e999", text),
    "nested too deep": lambda text: text.replace('"rows": 150', '"rows": ' + 10**5 * "["),
    "nested more than": lambda text: text.replace('"rows": 150', '"rows": ' + "[" * 90 + "]" * 90),
    "more than 2000000 values": lambda text: text.replace('"rows"', '"r": [' + "0," * 2 * 10**6),
    "larger than 32 MiB": lambda text: text + " " * 2**25,
}


@pytest.mark.parametrize("message", DAMAGED)
def test_damage_is_named(message, tmp_path):
    file = saved(fitted("IRPCalibrator", 3), tmp_path)
    file.write_text(DAMAGED[message](file.read_text()))
    with pytest.raises(ModelFileError, match=message):
        isoroc.load(file)


def test_what_is_not_text_and_what_is_not_there(tmp_path):
    file = tmp_path / "model.json"
    file.write_bytes(b"\xff\xfe{}")
    with pytest.raises(ModelFileError, match="not JSON"):
        isoroc.load(file)
    with pytest.raises(FileNotFoundError):
        isoroc.load(tmp_path / "none.json")


@pytest.mark.project
def test_a_share_of_the_fuzzing():
    tally = runpy.run_path(str(ROOT / "benchmarks" / "fuzz.py"))["fuzz"](200, seed=1, classes=(3,))
    assert tally["crashed"] == 0
    assert tally["refused"] > 150
    assert tally["loaded"] > 5  # so the checksums of mutants match


def test_a_reduction_leaves_two_classes_or_more_to_the_rest():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(4), 200)
    own = isoroc.IRPCalibrator(top=2).fit(P, np.arange(200) % 4).map_
    own.check(4)
    with pytest.raises(document.Fault, match="expected a reduction of 3 classes, or none"):
        own.check(3)
