"""Model files: what is written, and when nothing is."""

import json
import os
import re
import stat
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import isoroc
from isoroc import IRPCalibrator
from isoroc._input import check_sample
from isoroc._input.seen import Fingerprint
from isoroc._maps.modelfile import decode, document, encode
from isoroc._support.files import replacing
from isoroc._support.table import Table
from zoo import assert_same, fitted, forecasts


def saved(calibrator, folder):
    path = folder / "model.json"
    calibrator.save(path)
    return path


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
        with pytest.raises(ValueError, match=r"classes_: .*strings"):
            calibrator.save(tmp_path / "model.json")
    calibrator.classes_ = np.arange(20_000)
    with pytest.raises(ValueError, match="model: 20000 classes; a model file holds at most 10000"):
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
    [([0.25, 0.75], [0.25, 0.75]), ((0.25, 0.75), [0.25, 0.75]), (np.ones(2) / 2, np.ones(2) / 2)],
)
def test_parameters_keep_their_type_but_tuples_become_lists(given_prior, kept, tmp_path):
    calibrator = IRPCalibrator(prior=given_prior, random_state=np.random.RandomState(0))
    loaded = isoroc.load(saved(calibrator.fit([0.1, 0.9, 0.2], [0, 1, 1]), tmp_path))
    assert_same(loaded.prior, kept)
    assert loaded.random_state is None  # a generator only matters before the fit


def test_what_cannot_be_saved_is_refused(tmp_path):
    path = tmp_path / "model.json"
    with pytest.raises(NotFittedError):
        IRPCalibrator().save(path)
    calibrator = IRPCalibrator().fit([0.1, 0.9], [0, 1])
    with pytest.raises(ValueError, match=r"summary.when: datetime cannot be serialised to JSON"):
        calibrator.save(path, summary={"when": pd.Timestamp("2026-01-01").to_datetime64()})
    calibrator.set_params(random_state=len)
    with pytest.raises(ValueError, match=r"model.parameters.random_state: builtin_function"):
        calibrator.save(path)

    class Own(IRPCalibrator):
        pass

    with pytest.raises(ValueError, match="model: Own cannot be stored in a model file"):
        Own().fit([0.1, 0.9], [0, 1]).save(path)
    assert not list(tmp_path.iterdir())


def test_summary(tmp_path):
    path = tmp_path / "model.json"
    weights: Any = {"sample_weight": [1, 0.5, 0], "weighting": "frequency"}
    calibrator = IRPCalibrator().fit([0.1, 0.9, 0.3], [0, 1, 1], **weights)
    added = {"metrics": {"log_loss": np.float64(0.5), "auc": np.nan}, "on": ("a", np.arange(2))}
    calibrator.save(path, summary=added)
    expected = {"rows": 3, "weight": 1.5, "class_weights": [1.0, 0.5]}
    expected |= Fingerprint.of(check_sample([0.1, 0.9], [0, 1])).entry()  # without weight 0
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
    real = tmp_path / "real.json"
    link = tmp_path / "link.json"
    plain = tmp_path / "plain"
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


def test_directories_that_cannot_be_opened_are_not_flushed(tmp_path, monkeypatch):
    """As on Windows."""
    opened = os.open

    def only_files(path, *args):
        if os.path.isdir(path):  # noqa: PTH112
            raise PermissionError(path)
        return opened(path, *args)

    monkeypatch.setattr(os, "open", only_files)
    with replacing(tmp_path / "new.txt") as new:
        new.write_text("all of it")
    monkeypatch.undo()
    assert [path.read_text() for path in tmp_path.iterdir()] == ["all of it"]


def test_a_model_beyond_the_limits_is_not_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(document, "MAX_VALUES", 50)
    with pytest.raises(ValueError, match="too large for a model file: more than 50 values"):
        fitted("IRPCalibrator", 3).save(tmp_path / "model.json")
    assert not list(tmp_path.iterdir())


def test_a_fit_is_not_limited_by_the_size_of_a_file(tmp_path, monkeypatch):
    odds = np.random.default_rng(0).normal(scale=20, size=50_000)
    y = np.random.default_rng(1).random(50_000) < 1 / (1 + np.exp(-odds))
    calibrator = isoroc.VennAbersCalibrator().fit(odds, y)
    assert len(calibrator.cuts_[0]) > 4096
    checksum = calibrator.checksum
    assert checksum is not None
    monkeypatch.setattr(document, "MAX_BYTES", 2**16)
    assert calibrator.checksum is None
    with pytest.raises(ValueError, match="the model is too large for a model file: larger than"):
        calibrator.save(tmp_path / "model.json")
    assert not list(tmp_path.iterdir())


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.builds(np.array, st.lists(st.floats(), max_size=3), st.just("float64"))
    | st.builds(Table, a=st.just(np.arange(2)), b=st.just(np.array(["x", "yy"]))),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


def unknown(value, path):
    raise AssertionError(f"{path} holds a {type(value).__name__}")


@given(VALUES)
def test_values_survive(value):
    assert encode(np.array(0.5), "x", unknown) == 0.5
    text = json.dumps(encode(value, "x", unknown), allow_nan=False)
    back = decode(json.loads(text), "x", unknown)
    assert repr(back) == repr(value)
