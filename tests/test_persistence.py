import dataclasses
import json
import os
import pickle
import re
import runpy
import stat
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest
import skops.io
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from isoroc._calibrators.state import check_state
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

import isoroc
from isoroc import IRPCalibrator
from isoroc._calibrators.document import COMMON, to_document
from isoroc._files import replacing
from isoroc._persistence import ModelFileError, decode, document, encode, schema
from isoroc._persistence.schema import Fault, check
from isoroc._table import Table
from zoo import CASES, KINDS, fitted, fitted_calibrators, forecasts

#: Learned, but of the calibration rows rather than of the map: documented not to be kept.
NOT_KEPT = {"oob_forecasts_", "summary_", "_known_log_odds"}

IN_TMP = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def saved(calibrator, folder):
    path = folder / "model.json"
    calibrator.save(path)
    return path


def signed(content):
    """The text of a document with a checksum that fits it."""
    body = {name: entry for name, entry in content.items() if name != "checksum"}
    return json.dumps(body | {"checksum": document._checksum(body)})


def assert_same(a, b):
    """Equal to the last bit and of the same type, all the way down."""
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    elif dataclasses.is_dataclass(a):
        for field in dataclasses.fields(a):
            assert_same(getattr(a, field.name), getattr(b, field.name))
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for name in a:
            assert_same(a[name], b[name])
    elif isinstance(a, BaseEstimator):
        kept = {k: v for k, v in vars(a).items() if k not in NOT_KEPT}
        assert_same(kept, {k: v for k, v in vars(b).items() if k not in NOT_KEPT})
    else:
        assert a == b


def assert_restored(calibrator, loaded, P):
    assert_same(calibrator, loaded)
    assert_same(calibrator.get_params(deep=False), loaded.get_params(deep=False))
    assert_same(calibrator.predict_proba(P), loaded.predict_proba(P))
    for table in ("bins_", "path_", "certificate_"):
        assert_same(getattr(calibrator, table, None), getattr(loaded, table, None))


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_a_loaded_calibrator_is_the_saved_one(name, shape, tmp_path):
    calibrator = fitted(name, shape)
    file = saved(calibrator, tmp_path)
    loaded = isoroc.load(file)
    assert_restored(calibrator, loaded, forecasts(shape, 1000))
    assert loaded.summary_ == calibrator.summary_
    jsonschema.validate(json.loads(file.read_text()), schema())


@pytest.mark.parametrize("name", KINDS)
@settings(IN_TMP, max_examples=5)
@given(data=st.data())
def test_so_it_is_for_any_data(name, data, tmp_path):
    calibrator, P = data.draw(fitted_calibrators(name))
    loaded = isoroc.load(saved(calibrator, tmp_path))
    assert_restored(calibrator, loaded, P)


@pytest.mark.parametrize(
    "classes",
    [
        [False, True],
        np.array([-3, 7], dtype=np.int8),
        np.array([2**63, 2**64 - 1], dtype=np.uint64),
        np.array([1, 2], dtype=np.float32),
        np.array([1.0, 2.0]),
        np.array(["no", "yes, \u00e4\u4e2d\U0001f600"], dtype="<U40"),
        np.array(["a", "b"], dtype=object),
        pd.Series(["a", "b"], dtype="string").to_numpy(),
    ],
)
def test_classes_keep_their_type(classes, tmp_path):
    y = np.asarray(classes)[[0, 1, 0, 1, 1]]
    calibrator = IRPCalibrator().fit([0.1, 0.2, 0.3, 0.4, 0.5], y)
    loaded = isoroc.load(saved(calibrator, tmp_path))
    assert_same(calibrator.classes_, loaded.classes_)
    assert_same(calibrator.predict([0.1, 0.5]), loaded.predict([0.1, 0.5]))


def test_classes_that_json_has_no_word_for_are_refused(tmp_path):
    y = np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]")
    calibrator = IRPCalibrator().fit([0.1, 0.9], [0, 1])
    for classes in (y, np.array([b"a", b"b"]), np.array([None, 1], dtype=object)):
        calibrator.classes_ = classes
        with pytest.raises(TypeError, match=r"classes_: .*strings"):
            calibrator.save(tmp_path / "model.json")
    calibrator.classes_ = np.arange(20_000)
    with pytest.raises(ValueError, match="10000 classes"):
        calibrator.save(tmp_path / "model.json")
    assert not list(tmp_path.iterdir())


def test_column_names_come_along(tmp_path):
    frame = pd.DataFrame(forecasts(3, 60), columns=["a", "b b", 'c"'])
    calibrator = IRPCalibrator().fit(frame, np.arange(60) % 3)
    loaded = isoroc.load(saved(calibrator, tmp_path))
    assert_same(calibrator.feature_names_in_, loaded.feature_names_in_)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict_proba(frame.rename(columns={"a": "z"}))


@pytest.mark.parametrize(
    ("given_prior", "kept"),
    [([0.25, 0.75], [0.25, 0.75]), ((0.25, 0.75), (0.25, 0.75)), (np.ones(2) / 2, np.ones(2) / 2)],
)
def test_parameters_keep_their_type(given_prior, kept, tmp_path):
    calibrator = IRPCalibrator(prior=given_prior, random_state=np.random.RandomState(0))
    loaded = isoroc.load(saved(calibrator.fit([0.1, 0.9, 0.2], [0, 1, 1]), tmp_path))
    assert_same(loaded.prior, kept)
    assert loaded.random_state is None  # a generator only matters before the fit


def test_all_that_is_learned_is_listed_to_be_kept():
    for name, shape in CASES:
        calibrator = fitted(name, shape)
        learned = {attribute for attribute in vars(calibrator) if attribute.endswith("_")}
        assert learned - NOT_KEPT <= {*COMMON, *calibrator._fitted}, name


def test_what_cannot_be_saved_is_refused(tmp_path):
    path = tmp_path / "model.json"
    with pytest.raises(NotFittedError):
        IRPCalibrator().save(path)
    calibrator = IRPCalibrator().fit([0.1, 0.9], [0, 1])
    with pytest.raises(TypeError, match=r"summary.when: datetime is nothing that JSON"):
        calibrator.save(path, summary={"when": pd.Timestamp("2026-01-01").to_datetime64()})
    calibrator.set_params(random_state=len)
    with pytest.raises(TypeError, match=r"model.parameters.random_state: builtin_function"):
        calibrator.save(path)

    class Own(IRPCalibrator):
        pass

    with pytest.raises(TypeError, match="model: Own does not go into a model file"):
        Own().fit([0.1, 0.9], [0, 1]).save(path)
    assert not list(tmp_path.iterdir())


def test_summary(tmp_path):
    path = tmp_path / "model.json"
    calibrator = IRPCalibrator().fit([0.1, 0.9, 0.3], [0, 1, 1], sample_weight=[1, 0.5, 0])
    added = {"metrics": {"log_loss": np.float64(0.5), "auc": np.nan}, "on": ("a", np.arange(2))}
    calibrator.save(path, summary=added)
    expected = {"rows": 3, "weight": 1.5, "class_weights": [1.0, 0.5]}
    assert calibrator.summary_ == expected
    expected |= {"metrics": {"log_loss": 0.5, "auc": None}, "on": ["a", [0, 1]]}
    loaded = isoroc.load(path)
    assert loaded.summary_ == expected
    loaded.save(path, summary={"rows": 4})
    assert isoroc.load(path).summary_ == expected | {"rows": 4}
    content = json.loads(path.read_text())
    assert content["library"] == isoroc.__version__
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", content["saved"])


def test_files_are_private_to_no_one_and_links_stay_links(tmp_path):
    calibrator = IRPCalibrator().fit([0.1, 0.9], [0, 1])
    real, link, plain = tmp_path / "real.json", tmp_path / "link.json", tmp_path / "plain"
    link.symlink_to(real)
    calibrator.save(link)
    plain.touch()
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    assert {p.name for p in tmp_path.iterdir()} == {"real.json", "link.json", "plain"}


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    target = tmp_path / "model.json"
    target.write_text("old")
    calibrator = IRPCalibrator().fit([0.1, 0.9], [0, 1])

    def fail(*_):
        raise OSError("disk full")

    for broken in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, broken, fail)
            with pytest.raises(OSError, match="disk full"):
                calibrator.save(target)
        assert target.read_text() == "old"
        assert list(tmp_path.iterdir()) == [target]
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "no" / "such"):
        pass


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


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(schema())


@settings(max_examples=120)
@given(st.data())
def test_the_loader_and_the_schema_agree(data):
    kinds = ["IRPCalibrator", "IsotonicCalibrator", "AutoCalibrator"]
    calibrator = fitted(data.draw(st.sampled_from(kinds)), 5, n=60)
    content = HEAD | {"model": to_document(calibrator, "model")}
    content = json.loads(json.dumps(content))
    for _ in range(data.draw(st.integers(1, 2))):
        holder, key = holders(data.draw, content)
        what = data.draw(st.sampled_from(["change", "remove", "add"]))
        if what == "remove":
            del holder[key]
        elif what == "change" or isinstance(holder, list):
            holder[key] = data.draw(JSON)
        else:
            holder[data.draw(st.text())] = data.draw(JSON)
    expected = jsonschema.Draft202012Validator(schema()).is_valid(content)
    try:
        check(content, schema())
    except Fault:
        assert not expected
    else:
        assert expected


HEAD = {
    "format": "isoroc-model",
    "version": 1,
    "library": "0",
    "saved": "2026-01-01T00:00:00Z",
    "summary": {},
    "checksum": f"sha256:{64 * '0'}",
}


def edited(content, path, value):
    where = content
    *path, last = path
    for key in path:
        where = where[key]
    where[last] = value
    return signed(content)


TREE = ("model", "state", "tree_")
STATE = ("model", "state")


def array(values, dtype="float64"):
    values = np.array(values)
    flat = values.ravel().tolist()
    return {"type": "array", "dtype": dtype, "shape": list(values.shape), "values": flat}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("version",), 2, r"version: format version 1 is known, this one is 2\. Update isoroc"),
        (("version",), 10**50, "unheard of"),
        (("version",), "1", "version: expected 1, got '1'"),
        (("format",), "other", "format: an isoroc model file says"),
        (("library",), "x" * 200, "library: expected at most 100 characters"),
        (("library",), 10**50, "library: expected string, got a huge integer"),
        (("saved",), "now", "saved: expected"),
        (("extra",), 5, "'extra': is unknown"),
        (("model", "kind"), "CalibratedClassifier", "kind: 'CalibratedClassifier' is no calib"),
        (("model", "kind"), "Calibrator", "kind: 'Calibrator' is no calibrator"),
        (("model", "kind"), "os.system", "kind: 'os.system' is no calibrator"),
        (("model", "parameters", "depth"), 3, "parameters.depth: is unknown"),
        (("model", "parameters", "pseudocount"), -1.0, "pseudocount: expected a number"),
        (("model", "parameters", "pseudocount"), {"type": "float", "value": "NaN"}, "pseudocount"),
        (("model", "parameters", "pseudocount"), True, "pseudocount"),
        (("model", "parameters", "prior"), {"type": "call", "value": 1}, "prior: an object of 2"),
        (("model", "state"), {}, "tree_: is missing"),
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
        ((*STATE, "classes_", "shape"), [10**9], "3 values do not fill the shape"),
        ((*STATE, "classes_", "shape"), [0, 10**30], "do not fill the shape"),
        ((*STATE, "classes_", "shape"), [], "0 entries are too few or too many"),
        ((*STATE, "classes_", "dtype"), "datetime64", "classes_.dtype: expected bool or"),
        ((*STATE, "n_features_in_"), 2, "n_features_in_: expected a column for each of 3"),
        ((*STATE, "n_features_in_"), True, "n_features_in_"),
        ((*STATE, "feature_names_in_"), array(["a"], "object"), "expected 3 names"),
        ((*STATE, "tree_"), None, "tree_: expected a tree of 3 classes"),
        ((*STATE, "prior_"), array([0.5, 0.5]), r"prior_: expected an array of shape \(3\)"),
        ((*STATE, "prior_"), array([0.5, 0.6, -0.1]), "prior_: expected numbers >= 0"),
        ((*STATE, "prior_"), array([1, 1, 1], "int64"), "prior_: expected an array of float64"),
        ((*STATE, "reduction_"), {"type": "reduction", "top": 2, "floor": 0.1}, "reduction_: exp"),
        ((*STATE, "reduction_"), {"type": "reduction", "top": 1, "floor": 0}, "floor: expected"),
        ((*STATE, "reduction_"), {"type": "reduction", "top": 0, "floor": 1}, "top: expected a n"),
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
        content["model"]["state"]["tree_"] = {"type": "tree"} | change
        broken = tmp_path / "broken.json"
        broken.write_text(signed(content))
        with pytest.raises(ModelFileError, match=message):
            isoroc.load(broken)


STATE_FAULTS = [
    ("AutoCalibrator", "members_", [], "members_: expected a list of one or more"),
    ("AutoCalibrator", "members_", [3], "weights_: expected an array of shape"),
    ("AutoCalibrator", "weights_", array([1.0]), "weights_: expected an array of shape"),
    ("AutoCalibrator", "member_scores_", None, "member_scores_: expected a table"),
    ("AutoCalibrator", "verdict_", None, "verdict_: expected a sentence"),
    ("BaggedIRPCalibrator", "trees_", [None], r"trees_\[0\]: expected a tree of 3 classes"),
    ("BaggedIRPCalibrator", "priors_", [], "priors_: expected a list of 1"),
    ("BaggedIRPCalibrator", "reductions_", [1], r"reductions_\[0\]: expected a reduction"),
    ("BaggedIRPCalibrator", "pseudocount_", -1, "pseudocount_: expected a number"),
    ("IsotonicCalibrator", "cuts_", [array([1.0])], "cuts_: expected a list of 3"),
    ("IsotonicCalibrator", "cuts_", 3 * [array([1.0, 0.5])], r"cuts_\[0\]: expected ascending"),
    ("IsotonicCalibrator", "values_", 3 * [array([0.5])], r"values_\[0\]: expected an array"),
    ("VennAbersCalibrator", "upper_", None, "upper_: expected a list of 3"),
    ("IdentityCalibrator", "log_odds_", 0, "log_odds_: expected true or false"),
    ("TemperatureCalibrator", "temperature_", 0, "temperature_: expected a number"),
    ("TemperatureCalibrator", "floor_", 2.0, "floor_: expected a number"),
    ("TemperatureCalibrator", "smoothing_", "x", "smoothing_: expected a number"),
    ("MatrixCalibrator", "coef_", array([[1.0]]), "coef_: expected an array of shape"),
    ("MatrixCalibrator", "intercept_", array([1.0]), "intercept_: expected an array of shape"),
    ("MatrixCalibrator", "intercept_", array([1e200, 0, 0]), "intercept_: expected smaller"),
    ("SplineCalibrator", "slopes_", array([1.0]), "slopes_: expected an array of shape"),
]


@pytest.mark.parametrize(("name", "attribute", "value", "message"), STATE_FAULTS)
def test_a_wrong_attribute_is_named(name, attribute, value, message, tmp_path):
    file = saved(fitted(name, 3), tmp_path)
    content = json.loads(file.read_text())
    file.write_text(edited(content, ("model", "state", attribute), value))
    with pytest.raises(ModelFileError, match=f"model.state.{message}"):
        isoroc.load(file)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("state", "members_", 0), 3, r"members_\[0\]: expected a calibrator"),
        (("state", "members_", 0, "state", "log_odds_"), 3, r"members_\[0\].log_odds_: expected"),
        (("parameters", "members", 0, "state", "log_odds_"), True, "log_odds_: is unknown"),
        (("state", "cv_results_", "columns", "more"), array([1.0]), "the columns differ in length"),
        (("state", "cv_results_", "columns", "member", "length"), 10**6, "length: expected a numb"),
    ],
)
def test_calibrators_inside_are_checked_too(path, value, message, tmp_path):
    file = saved(fitted("AutoCalibrator", 3), tmp_path)
    file.write_text(edited(json.loads(file.read_text()), ("model", *path), value))
    with pytest.raises(ModelFileError, match=message):
        isoroc.load(file)


def test_values_of_step_functions_are_probabilities(tmp_path):
    file = saved(fitted("IsotonicCalibrator", 3), tmp_path)
    content = json.loads(file.read_text())
    content["model"]["state"]["values_"][0]["values"][0] = 1.5
    file.write_text(signed(content))
    with pytest.raises(ModelFileError, match=r"values_\[0\]: expected numbers between 0 and 1"):
        isoroc.load(file)


def test_what_cannot_forecast_is_refused(tmp_path, monkeypatch):
    file = saved(fitted("IRPCalibrator", 3), tmp_path)
    monkeypatch.setattr(IRPCalibrator, "calibrate", lambda *_: 1 / 0)
    with pytest.raises(ModelFileError, match=r"model.state: no forecasts .*division by zero"):
        isoroc.load(file)
    monkeypatch.setattr(IRPCalibrator, "calibrate", lambda _, P: 2 * P)
    with pytest.raises(ModelFileError, match="are no probabilities"):
        isoroc.load(file)


def test_a_kind_that_nobody_checks_is_refused():
    with pytest.raises(Fault, match="int for 3 classes cannot be checked"):
        check_state(1, 3)


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
    "expected object": lambda text: text.replace('"summary": {', '"summary": [], "summarx": {'),
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


def test_a_model_beyond_the_limits_is_not_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(document, "MAX_VALUES", 50)
    with pytest.raises(ValueError, match="cannot be saved: more than 50 values"):
        fitted("IRPCalibrator", 3).save(tmp_path / "model.json")
    assert not list(tmp_path.iterdir())


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.builds(np.array, st.lists(st.floats(), max_size=3), st.just("float64"))
    | st.builds(Table, a=st.just(np.arange(2)), b=st.just(np.array(["x", "yy"]))),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=3)
    ),
)


@given(VALUES)
def test_values_survive(value):
    assert encode(np.array(0.5), "x", None) == 0.5
    text = json.dumps(encode(value, "x", None), allow_nan=False)
    check(json.loads(text), schema()["$defs"]["value"])
    back = decode(json.loads(text), "x", None)
    assert repr(back) == repr(value)


@pytest.mark.project
def test_a_share_of_the_fuzzing():
    path = Path(__file__).resolve().parents[1] / "benchmarks" / "fuzz.py"
    tally = runpy.run_path(str(path))["fuzz"](400, seed=1, classes=(3,))
    assert tally["crashed"] == 0
    assert tally["refused"] > 300


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_pickle_and_skops(name, shape):
    calibrator = fitted(name, shape)
    P = forecasts(shape, 100)
    expected = calibrator.predict_proba(P)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(calibrator)).predict_proba(P), expected)
    data = skops.io.dumps(calibrator)
    unknown = skops.io.get_untrusted_types(data=data)
    assert all(kind.startswith("isoroc.") for kind in unknown)
    np.testing.assert_array_equal(skops.io.loads(data, trusted=unknown).predict_proba(P), expected)
