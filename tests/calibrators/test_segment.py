"""Calibration within segments of several columns."""

import sqlite3
import warnings
from copy import copy
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.special import expit, logit, softmax
from scipy.stats import chi2
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

import isoroc
from exported import run_onnx
from isoroc import (
    AutoCalibrator,
    IdentityCalibrator,
    InputError,
    IsotonicCalibrator,
    MonotoneCalibrator,
    SegmentCalibrator,
    SplineCalibrator,
    TemperatureCalibrator,
)
from isoroc._input.kinds import LOGITS
from isoroc._maps import IdentityMap
from isoroc._maps.loading import load_map
from isoroc._maps.modelfile import ModelFileError
from zoo import assert_same

REGIONS = np.array(["it's", 'a "name"', "plain", "rare"])


def data(n=3000, n_classes=2, seed=0, effect=1.0):
    """Forecasts that are wrong by region and by age, alike in all of a third column."""
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(n, n_classes))
    region = rng.choice(4, n, p=[0.3, 0.3, 0.399, 0.001])
    age = rng.uniform(18, 80, n)
    shift = np.zeros((n, n_classes))
    shift[:, 1] = effect * (np.array([0.8, -0.8, 0.0, 0.0])[region] + 0.02 * (age - 49))
    truth = softmax(z + shift, axis=1)
    y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    noise = rng.choice(["a", "b", "c"], n)
    segments = pd.DataFrame({"region": REGIONS[region], "age": age, "noise": noise})
    return softmax(z, axis=1), y, segments, truth


@pytest.fixture(scope="module")
def fitted():
    P, y, segments, _ = data()
    return SegmentCalibrator(TemperatureCalibrator()).fit(P, y, segments=segments)


def test_forecasts_come_close_to_the_truth(fitted):
    P, _, segments, truth = data(seed=1)
    Q = fitted.predict_proba(P, segments)
    assert np.abs(Q - truth).mean() < 0.35 * np.abs(fitted.common_.predict_proba(P) - truth).mean()
    assert fitted.weight_ > 0.9
    np.testing.assert_array_equal(fitted.predict(P, segments), Q.argmax(axis=1))


def test_shifts_are_those_of_the_truth(fitted):
    table = fitted.shifts_
    assert set(table["column"]) == {"region", "age"}  # the third column says nothing
    for name, truth in zip(REGIONS[:3], (0.8, -0.8, 0.0), strict=True):
        [row] = np.flatnonzero(table["segment"] == name)
        assert abs(table["shift"][row] - truth) < 4 * table["error"][row]
        assert 0.03 < table["error"][row] < 0.2
    ages = table["column"] == "age"
    assert np.corrcoef(table["shift"][ages], np.arange(ages.sum()))[0, 1] > 0.9
    assert table["rows"][ages].sum() == 3000
    assert "too low" in table["odds"][np.argmax(table["shift"])]
    for shift, text in zip(table["shift"], table["odds"], strict=True):
        percent, direction = text.split(" % too ")
        factor = 1 - int(percent) / 100 if direction == "low" else 1 + int(percent) / 100
        assert factor == pytest.approx(np.exp(-shift), abs=0.006)  # of the odds that are right


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_any_number_of_classes(n_classes):
    P, y, segments, truth = data(4000, n_classes)
    calibrator = SegmentCalibrator(TemperatureCalibrator()).fit(P, y, segments=segments)
    common = calibrator.common_.predict_proba(P)
    Q = calibrator.predict_proba(P, segments)
    assert np.abs(Q - truth).mean() < 0.5 * np.abs(common - truth).mean()
    assert set(calibrator.shifts_["column"]) >= {"region", "age"}


@pytest.mark.slow
def test_segments_at_random_change_little():
    losses = []
    for seed in range(8):
        P, y, segments, truth = data(500, seed=seed, effect=0.0)
        calibrator = SegmentCalibrator(TemperatureCalibrator()).fit(P, y, segments=segments)
        Q = calibrator.predict_proba(P, segments)
        common = calibrator.common_.predict_proba(P)
        losses.append((truth * np.log(common / Q)).sum(axis=1).mean())
    assert np.mean(losses) < 0.003  # nats that shifts cost
    assert np.median(losses) <= 0


def test_scales_by_segment():
    """A model that is overconfident in one segment only, as maps by group corrected it."""
    rng = np.random.default_rng(0)
    truth = 2 * rng.normal(size=6000)
    segment = rng.choice(["right", "extreme"], 6000)
    y = rng.random(6000) < expit(truth)
    p = expit(truth * np.where(segment == "extreme", 3, 1))
    calibrator = SegmentCalibrator(TemperatureCalibrator()).fit(p, y, segments=segment)
    Q = calibrator.predict_proba(p, segment)[:, 1]
    ideal = log_loss(y, expit(truth))
    assert "scale" in calibrator.shifts_["class"]
    assert log_loss(y, Q) < ideal + 0.005 < log_loss(y, calibrator.common_.predict_proba(p)) - 0.01


@pytest.mark.parametrize(
    ("seed", "p_value"), [(9, 0.0040), (33, 0.0114), (20, 0.0154), (23, 0.0238)]
)
def test_slopes_that_differ_are_found_as_by_a_likelihood_ratio_test(seed, p_value):
    """The level is 1 %."""
    rng = np.random.default_rng(seed)
    z = 2 * rng.normal(size=2000)
    segment = rng.choice(["a", "b"], 2000)
    y = rng.random(2000) < expit(z * np.where(segment == "a", 0.875, 1.125))
    losses = []
    for columns in ([segment == "a", z], [segment == "a", z, z * (segment == "a")]):
        X = np.column_stack(columns)
        model = LogisticRegression(C=np.inf, tol=1e-8).fit(X, y)
        losses.append(log_loss(y, model.predict_proba(X)[:, 1], normalize=False))
    assert chi2.sf(2 * (losses[0] - losses[1]), 1) == pytest.approx(p_value, abs=1e-4)
    calibrator = SegmentCalibrator(IdentityCalibrator()).fit(z, y, segments=segment, unit="logit")
    assert ("scale" in calibrator.shifts_["class"]) == (p_value < 0.01)


def test_pairs_of_columns():
    rng = np.random.default_rng(0)
    z = rng.normal(size=6000)
    a = rng.choice(["x", "y"], 6000)
    b = rng.uniform(0, 1, 6000)
    shift = np.where((a == "x") == (b > 0.5), 1.0, -1.0)  # neither column tells it alone
    y = rng.random(6000) < expit(z + shift)
    segments = {"a": a, "b": b}
    calibrator = SegmentCalibrator(TemperatureCalibrator()).fit(expit(z), y, segments=segments)
    assert "a \u00d7 b" in calibrator.shifts_["column"]
    Q = calibrator.predict_proba(expit(z), segments)
    assert log_loss(y, Q) < log_loss(y, expit(z + shift)) + 0.01
    alone = SegmentCalibrator(TemperatureCalibrator(), max_terms=0)
    alone.fit(expit(z), y, segments=segments)
    assert log_loss(y, alone.predict_proba(expit(z), segments)) > log_loss(y, Q) + 0.08


def test_pairs_of_the_most_informative_of_many_columns_are_tried():
    rng = np.random.default_rng(0)
    z = rng.normal(size=800)
    signs = rng.choice([-1, 1], (800, 22))
    effects = np.append(np.full(20, 0.35), [1.0, 1.0])  # at most 20 columns make pairs
    y = rng.random(800) < expit(z + signs @ effects + signs[:, 20] * signs[:, 21])
    segments = {f"c{j}": np.where(signs[:, j] > 0, "x", "y") for j in range(22)}
    calibrator = SegmentCalibrator(IdentityCalibrator(), max_terms=1)
    calibrator.fit(z, y, segments=segments, unit="logit")
    assert "c20 \u00d7 c21" in calibrator.shifts_["column"]


def test_forecasts_that_are_far_too_sure_have_little_weight():
    P, y, segments, _ = data(1000, effect=0.5)
    sure = P**3 / (P**3).sum(axis=1, keepdims=True)
    calibrator = SegmentCalibrator(TemperatureCalibrator()).fit(sure, y, segments=segments)
    assert calibrator.uncalibrated_ < 0.1
    assert 0.2 < calibrator.weight_ < 0.8  # the common map has most of the rest


def test_what_is_unknown_is_not_shifted(fitted):
    P, _, segments, _ = data(50, seed=2)
    odd = segments.assign(region="never seen", age=np.nan)
    Q = fitted.predict_proba(P, odd)
    v = fitted.uncalibrated_
    w = fitted.weight_
    common = fitted.common_.predict_proba(P)
    plain = fitted.shifted_.predict_proba(np.log(common) + fitted.map_.offset)
    np.testing.assert_allclose(Q, v * P + (1 - v - w) * common + w * plain, atol=1e-12)
    found = fitted.count_unknown(odd.assign(age=np.where(np.arange(50) < 3, 30.0, np.inf)))
    assert dict(zip(found["column"], found["rows"], strict=True)) == {
        "region": 50,
        "age": 47,
    }
    assert "rare" not in fitted.map_.levels[0]  # fewer than 10 rows


def test_one_column_and_numbers_as_categories():
    P, y, segments, _ = data()
    code = pd.Series(segments["region"]).map(dict(zip(REGIONS, (7, 3, 90, 2), strict=True)))
    calibrator = SegmentCalibrator(TemperatureCalibrator(), categorical=["segment"])
    expected = calibrator.fit(P, y, segments=code.to_numpy()).predict_proba(P, code.to_numpy())
    assert calibrator.columns_.tolist() == ["segment"]
    assert calibrator.map_.levels[0].tolist() == ["3", "7", "90"]
    for same in (code.astype(str), code.tolist(), code.astype(float), pl.Series("x", code),
                 {"segment": code}, code.to_numpy().astype(object)):  # fmt: skip
        np.testing.assert_array_equal(calibrator.predict_proba(P, same), expected)
    as_numbers = SegmentCalibrator(TemperatureCalibrator()).fit(P, y, segments=code)
    assert not len(as_numbers.map_.levels[0])
    np.testing.assert_array_equal(as_numbers.map_.cuts[0], [2.5, 5, 48.5][-3:])


def test_any_dataframe(fitted):
    P, _, segments, _ = data(60, seed=3)
    expected = fitted.predict_proba(P, segments)
    polars = pl.from_pandas(segments)
    more = polars.with_columns(other=1).select("other", "noise", "age", "region")
    typed = polars.with_columns(pl.col("region").cast(pl.Categorical))
    for same in (polars, more, typed, polars.to_arrow(), dict(segments), polars.to_dict(),
                 segments.astype({"region": "category"})):  # fmt: skip
        np.testing.assert_array_equal(fitted.predict_proba(P, same), expected)
    assert isinstance(polars.to_arrow(), pa.Table)


def test_the_order_of_rows_and_weights_do_not_matter():
    P, y, segments, _ = data(800)
    make: Any = SegmentCalibrator(TemperatureCalibrator()).fit
    expected = make(P, y, segments=segments).predict_proba(P, segments)
    order = np.random.default_rng(0).permutation(800)
    mixed = make(P[order], y[order], segments=segments.iloc[order])
    np.testing.assert_allclose(mixed.predict_proba(P, segments), expected, atol=1e-9)
    weighted = make(P, y, segments=segments, sample_weight=np.full(800, 3.0))
    np.testing.assert_allclose(weighted.predict_proba(P, segments), expected, atol=1e-9)
    left_out = segments["region"] == REGIONS[1]
    without = make(P, y, segments=segments, sample_weight=(~left_out).astype(float))
    assert REGIONS[1] not in without.map_.levels[0]


def test_units_of_forecasts():
    P, y, segments, _ = data(1500)
    z = logit(P[:, 1])
    make: Any = SegmentCalibrator(TemperatureCalibrator()).fit
    expected = make(P, y, segments=segments).predict_proba(P, segments)
    for forecasts, unit in ((P[:, 1], "probability"), (z, "logit"), (100 * P, "percent"),
                            (np.log(P), "log_probability"), (np.log(P) + 3, "logit")):  # fmt: skip
        own = make(forecasts, y, segments=segments, unit=unit)
        np.testing.assert_allclose(own.predict_proba(forecasts, segments), expected, atol=1e-6)


def test_order_within_segments(fitted):
    P, _, segments, _ = data(500, seed=4)
    assert fitted.verify(P, segments)
    assert fitted.verify(P, segments).rows == 500
    fitted = SegmentCalibrator(SplineCalibrator()).fit(*data(500, 3)[:2])
    with pytest.raises(InputError, match="calibrator: gives no guarantee to verify; pass"):
        fitted.verify(data(500, 3)[0])


@pytest.mark.slow
def test_many_classes_stay_cyclically_monotone():
    P, y, segments, _ = data(1500, 3)
    # an overconfident model that errs in a bent way, and forecasts of 0
    P = softmax(np.where(P > 0.5, 4, 2) * np.log(P), axis=1)
    P[:40, 0] = 0
    P /= P.sum(axis=1, keepdims=True)
    region = segments["region"]
    for own in (MonotoneCalibrator(), AutoCalibrator(monotone=True)):
        calibrator = SegmentCalibrator(own).fit(P, y, segments=region)
        assert calibrator.weight_ > 0.5
        found = calibrator.verify(P, region)
        assert found
        assert found.rows == 1500
        damaged = copy(calibrator)
        change: Any = {"shifted": _Reversed(kind=LOGITS), "weight": 1.0, "uncalibrated": 0.0}
        damaged.map_ = replace(calibrator.map_, **change)
        assert not damaged.verify(P, region)


class _Reversed(IdentityMap):
    """Forecasts of logits with the opposite sign."""

    def compiled(self, forecasts):
        return softmax(-forecasts.logs(0.0).T, axis=1)


def test_more_bins_where_rows_show_them():
    rng = np.random.default_rng(0)
    z = rng.normal(size=8000)
    x = rng.uniform(0, 1, 8000)
    smooth = rng.uniform(0, 1, 8000)
    shift = 1.2 * np.sign(np.sin(40 * np.pi * x))  # changes its sign within each of 20 bins
    y = rng.random(8000) < expit(z + shift + smooth - 0.5)
    segments = {"x": x, "smooth": smooth}
    calibrator = SegmentCalibrator(TemperatureCalibrator()).fit(expit(z), y, segments=segments)
    bins = dict(zip(calibrator.columns_.tolist(), map(len, calibrator.map_.cuts), strict=True))
    assert bins["x"] > 60
    assert bins["smooth"] < 20  # no table has more
    assert len(set(calibrator.shifts_["column"])) == len(calibrator.map_.tables) == 2
    alone = SegmentCalibrator(TemperatureCalibrator(), max_terms=0)
    alone.fit(expit(z), y, segments=segments)
    losses = [log_loss(y, own.predict_proba(expit(z), segments)) for own in (calibrator, alone)]
    assert losses[0] < losses[1] - 0.05
    assert calibrator.shifts_["rows"][calibrator.shifts_["column"] == "x"].sum() == 8000


def test_many_rows_are_polished_in_batches(monkeypatch):
    P, y, segments, _ = data(4000)
    region = segments["region"]
    make: Any = SegmentCalibrator(TemperatureCalibrator(), max_terms=0).fit
    expected = make(P, y, segments=region).shifts_
    monkeypatch.setattr("isoroc._calibrators.segment.MANY_ROWS", 3000)
    sizes: list[int] = []
    slices = isoroc._input.slices
    monkeypatch.setattr("isoroc._calibrators.segment.slices", lambda n: slices(n, 700))
    learn = isoroc._calibrators.segment._regression

    def learn_from(sample, *others):
        sizes.append(len(sample))
        return learn(sample, *others)

    monkeypatch.setattr("isoroc._calibrators.segment._regression", learn_from)
    found = make(P, y, segments=region).shifts_
    assert max(sizes) == 3000  # never all rows at once
    np.testing.assert_array_equal(found["rows"], expected["rows"])
    np.testing.assert_allclose(found["shift"], expected["shift"], atol=0.05)
    np.testing.assert_allclose(found["error"], expected["error"], rtol=0.1)


def test_errors_allow_for_clusters():
    """Four copies of each row are no more evidence than one."""
    P, y, segments, _ = data(600)
    copies = np.tile(np.arange(600), 4)
    make = SegmentCalibrator(TemperatureCalibrator(), max_terms=0)
    options: Any = {"segments": {"region": segments["region"].iloc[copies].to_numpy()}}
    naive = make.fit(P[copies], y[copies], **options).shifts_
    own = make.fit(P[copies], y[copies], **options, clusters=copies).shifts_
    np.testing.assert_allclose(own["error"], 2 * naive["error"], rtol=0.1)
    independent = make.fit(P[copies], y[copies], **options, clusters=np.arange(2400)).shifts_
    np.testing.assert_allclose(independent["error"], naive["error"], rtol=0.1)


def test_empty_frames(fitted):
    P, _, segments, _ = data(4)
    frame = segments.assign(a=P[:, 0], b=P[:, 1])
    for engine in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        found = fitted.predict_frame(engine[:0], ["a", "b"])
        assert found.shape == (0, 7)


def test_numbers_of_any_type():
    P, y, segments, _ = data(600)
    make = SegmentCalibrator(TemperatureCalibrator())
    ages = segments["age"].round().tolist()
    expected = make.fit(P, y, segments={"age": ages}).predict_proba(P, {"age": ages})
    for same in ([Decimal(age) for age in ages], np.array(ages, dtype=object)):
        found = make.fit(P, y, segments={"age": same}).predict_proba(P, {"age": same})
        np.testing.assert_array_equal(found, expected)
    some = make.predict_proba(P[:3], {"age": [20.5, None, -np.inf]})
    np.testing.assert_array_equal(some, make.predict_proba(P[:3], {"age": [20.5, np.nan, np.nan]}))


def test_without_segments():
    P, y, segments, _ = data(600)
    alone = IsotonicCalibrator().fit(P, y)
    without = SegmentCalibrator(IsotonicCalibrator()).fit(P, y)
    np.testing.assert_array_equal(without.predict_proba(P), alone.predict_proba(P))
    assert without.carry_over(0.5, P).n_changed == alone.carry_over(0.5, P).n_changed
    assert without.shifts_.n_rows == 0
    np.testing.assert_array_equal(without.predict_proba(P, segments), without.predict_proba(P))


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        ({"region": ["a"] * 3}, "lacks the column 'age'; fit had region, age; there are region"),
        ({"region": ["a"] * 2}, r"segments\['region'\]: 2 rows, but P has 3"),
        ({"region": ["a"] * 3, "age": ["1", "x", "2"], "noise": ["a"] * 3},
         r"segments\['age'\]: row 1 is 'x'; fit had numbers"),
        ({"region": pd.to_datetime(["2026-01-01"] * 3), "age": [1, 2, 3]},
         r"segments\['region'\]: row 0 is datetime.*; segments are numbers, strings or booleans"),
        (np.zeros((3, 2, 2)), r"segments: has shape \(3, 2, 2\)"),
        (None, "segments: were given in fit; pass a table with the columns region, age"),
    ],
)  # fmt: skip
def test_bad_segments(fitted, segments, message):
    with pytest.raises(InputError, match=message):
        fitted.predict_proba([[0.2, 0.8], [0.5, 0.5], [0.7, 0.3]], segments)


def test_columns_that_cannot_be_segments():
    P, y, segments, _ = data(500)
    make = SegmentCalibrator(IdentityCalibrator())
    for name, column in (("id", [f"row {i}" for i in range(500)]), ("number", np.arange(500))):
        message = rf"segments\['{name}'\]: has another value in almost every row"
        with pytest.raises(InputError, match=message):
            make.fit(P, y, segments=segments.assign(**{name: column}))
    with pytest.raises(InputError, match=r"segments\['lists'\]: cannot be compared"):
        make.fit(P, y, segments=segments.assign(lists=[[1]] * 500))
    with pytest.raises(InputError, match="segments: is a lazy table; collect it first"):
        make.fit(P, y, segments=pl.from_pandas(segments).lazy())
    rare = {"rare": np.arange(500) // 5 * 1.0, "missing": np.full(500, np.nan)}
    without = SegmentCalibrator(IdentityCalibrator(), categorical=["rare"])
    with pytest.warns(UserWarning, match="no category of the column 'rare' has 10 rows; group"):
        without.fit(P, y, segments=rare)
    assert without.columns_.tolist() == []
    assert without.count_unknown(rare).n_rows == 0
    with pytest.raises(InputError, match="categorical: names 'sex', which is not a column"):
        SegmentCalibrator(categorical=["sex"]).fit(P, y, segments=segments)
    P, y, segments, _ = data(2000)
    with pytest.warns(UserWarning, match="the column 'leak' shifts log odds by up to"):
        make.fit(P, y, segments=segments.assign(leak=np.where(y, "yes", "no")))


def test_bad_parameters(fitted):
    P, y, segments, _ = data(100)
    with pytest.raises(InputError, match=r"calibrator: is .*expected another calibrator"):
        SegmentCalibrator(SegmentCalibrator()).fit(P, y)
    for name in ("bins", "cv", "max_terms", "min_rows"):
        with pytest.raises(InputError, match=name):
            SegmentCalibrator().set_params(**{name: -1}).fit(P, y, segments=segments)
    with pytest.raises(InputError, match="thresholds differ by segment"):
        fitted.carry_over(0.5, P)


def test_model_files(fitted, tmp_path):
    P, _, segments, _ = data(100, seed=5)
    expected = fitted.predict_proba(P, segments)
    fitted.save(tmp_path / "model.json")
    loaded = isoroc.load(tmp_path / "model.json")
    assert_same(fitted, loaded)
    np.testing.assert_array_equal(loaded.predict_proba(P, segments), expected)
    served = load_map(tmp_path / "model.json")
    np.testing.assert_array_equal(served.predict_proba(P, segments), expected)
    own = fitted.map_
    other = IsotonicCalibrator().fit([0.1, 0.9], [0, 1]).map_
    for change, fault in (
        ({"weight": 1.5}, "weight: expected a number"),
        ({"uncalibrated": 1.0}, "uncalibrated: the weights exceed 1"),
        ({"columns": np.repeat("a", 2)}, "columns: the names are not distinct"),
        ({"levels": own.levels[:1]}, "levels: expected a list of 2"),
        ({"cuts": [own.cuts[1]] * 2}, "cuts: a column has either levels or cuts"),
        ({"pairs": own.pairs + 7}, "pairs: expected numbers of the 2 columns"),
        ({"tables": own.tables[:1]}, "pairs: expected an array of shape"),
        ({"tables": [table[1:] for table in own.tables]}, r"tables\[0\]: expected an array"),
        (
            {"tables": [table + 1e4 for table in own.tables]},
            r"tables\[0\]: expected numbers between",
        ),
        ({"common": other}, "common: expected a map of probabilities"),
        ({"shifted": other}, "shifted: expected a map of logits"),
    ):
        damaged = isoroc.load(tmp_path / "model.json")
        damaged.map_ = replace(own, **change)
        damaged.save(tmp_path / "damaged.json")
        for load in (isoroc.load, load_map):
            with pytest.raises(ModelFileError, match=f"model.map.numbers.{fault}"):
                load(tmp_path / "damaged.json")


@pytest.mark.parametrize("shape", ["p", "logit", 3])
def test_exports(shape):
    P, y, segments, _ = data(1200, 3 if shape == 3 else 2)
    forecasts = {"p": P[:, 1:], "logit": logit(P[:, 1:]), 3: P}[shape]
    unit: Any = "logit" if shape == "logit" else "probability"
    calibrator = SegmentCalibrator(AutoCalibrator() if shape == "p" else TemperatureCalibrator())
    calibrator.fit(forecasts, y, segments=segments[["region", "age"]], unit=unit)
    segments.loc[::50, "region"] = "never seen"
    segments.loc[::70, "age"] = np.nan
    expected = calibrator.predict_proba(forecasts, segments)
    columns = {name: segments[name].to_numpy() for name in ("region", "age")}
    model = isoroc.export.to_onnx(calibrator)
    np.testing.assert_allclose(run_onnx(model, forecasts, columns), expected, atol=1e-12)
    np.testing.assert_allclose(run_sqlite(calibrator, forecasts, segments), expected, atol=1e-12)
    torch = pytest.importorskip("torch")
    module = isoroc.export.to_torch(calibrator)
    codes = torch.tensor(calibrator.encode_segments(segments))
    found = module(torch.tensor(forecasts), codes).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-12)
    with pytest.raises(InputError, match="segments: are missing"):
        module(torch.tensor(forecasts))


def run_sqlite(calibrator, P, segments):
    columns = [f"p{k}" for k in range(P.shape[1])]
    query = isoroc.export.to_sql(
        calibrator, columns, dialect="sqlite", keep="id", segments=["a region", "age"]
    )
    with sqlite3.connect(":memory:") as connection:
        connection.execute(f'CREATE TABLE forecasts (id, {", ".join(columns)}, "a region", age)')
        marks = ", ".join("?" * (len(columns) + 3))
        parts = zip(P.tolist(), segments["region"], segments["age"].tolist(), strict=True)
        rows = [(i, *p, region, None if np.isnan(age) else age)
                for i, (p, region, age) in enumerate(parts)]  # fmt: skip
        connection.executemany(f"INSERT INTO forecasts VALUES ({marks})", rows)  # noqa: S608
        found = sorted(connection.execute(query).fetchall())
    connection.close()
    return np.array([row[1:] for row in found], dtype=float)


def test_exports_check_the_columns(fitted):
    with pytest.raises(InputError, match="segments: 1 columns given; the calibrator uses "):
        isoroc.export.to_sql(fitted, ["a", "b"], dialect="duckdb", segments="region")
    with pytest.raises(InputError, match="segments: 1 columns given; the calibrator uses "):
        isoroc.export.to_sql(fitted.common_, ["a", "b"], dialect="duckdb", segments="g")


@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy", "duckdb"])
def test_dataframes_with_forecasts(fitted, kind):
    P, _, segments, _ = data(40, seed=6)
    frame = pl.from_pandas(segments.assign(a=P[:, 0], b=P[:, 1]))
    frame = frame.with_columns(region=pl.when(pl.int_range(pl.len()) > 2).then("region"))
    expected = fitted.predict_proba(P, frame)
    if kind == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        found = fitted.predict_frame(duckdb.from_arrow(frame.to_arrow()), ["a", "b"]).pl()
    elif kind == "pandas":
        found = pl.from_pandas(fitted.predict_frame(frame.to_pandas(), ["a", "b"]))
    else:
        given = frame.lazy() if kind == "lazy" else frame
        found = fitted.predict_frame(given, ["a", "b"]).lazy().collect()
    Q = found.select("^calibrated_.*$").to_numpy()
    np.testing.assert_allclose(Q, expected, rtol=1e-9)
    with pytest.raises(InputError, match="df: the dataframe has no column 'age'"):
        fitted.predict_frame(frame.drop("age"), ["a", "b"])


def test_many_rows_learn_the_same_as_some(monkeypatch):
    """Steps on all rows lead to where a fit to all rows ends."""
    P, y, segments, _ = data(8000)
    make = SegmentCalibrator(TemperatureCalibrator(), max_terms=0).fit
    expected = make(P, y, segments=segments)
    monkeypatch.setattr("isoroc._calibrators.segment.MANY_ROWS", 4000)
    found = make(P, y, segments=segments)
    assert found.shifts_.n_rows == expected.shifts_.n_rows
    np.testing.assert_allclose(found.shifts_["shift"], expected.shifts_["shift"], atol=0.05)


def test_no_warning_without_cause():
    P, y, segments, _ = data(400)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SegmentCalibrator(TemperatureCalibrator()).fit(P, y, segments=segments)
