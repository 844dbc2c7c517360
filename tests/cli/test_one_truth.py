"""One truth, many ways: the library and the command find the same calibration error.

Forecasts are simulated, so E[Y | forecast] is known. Rounding ties forecasts. It must not change
what is found beyond what it does to the truth.
"""

import json
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest

from isoroc import AutoCalibrator, Counts, Report, evaluate
from isoroc.metrics import calibration_error
from truths import draw_labels


class Setting(NamedTuple):
    n_classes: int
    power: (
        float  # forecasts are this power of the truth, 0 for rare events, forecast twice as often
    )
    digits: int | None = None
    weighted: bool = False


class Rows(NamedTuple):
    y: np.ndarray
    P: np.ndarray
    weights: np.ndarray | None
    truth: np.ndarray


def simulate(setting, n, seed):
    """Rows with the probabilities from which their labels were drawn."""
    rng = np.random.default_rng(seed)
    if setting.power == 0:
        event = np.minimum(0.005 * np.exp(0.8 * rng.normal(size=n) - 0.32), 0.4)
        truth = np.column_stack([1 - event, event])
        P = np.column_stack([1 - 2 * event, 2 * event])
    elif setting.n_classes == 2:
        event = rng.beta(1, 3, n)
        truth = np.column_stack([1 - event, event])
        P = np.column_stack([1 - event**setting.power, event**setting.power])
    else:
        truth = rng.dirichlet(np.ones(setting.n_classes), n)
        P = truth**setting.power
        P /= P.sum(axis=1, keepdims=True)
    weights = rng.gamma(2, size=n) * (0.5 + truth[:, 1]) if setting.weighted else None
    return Rows(draw_labels(truth, rng), rounded(P, setting.digits), weights, truth)


def rounded(P, digits):
    if digits is None:
        return P
    if P.shape[1] == 2:
        second = P[:, 1].round(digits)
        return np.column_stack([1 - second, second])
    P = P.round(digits)
    return P / P.sum(axis=1, keepdims=True)


@cache
def true_error(setting):
    """E |E[Y | forecast] - forecast|, half the sum over the classes, from 2 million rows."""
    _, P, weights, truth = simulate(setting, 2_000_000, seed=2**31)
    w = np.ones(len(P)) if weights is None else weights
    if setting.digits is None:
        return float(np.average(np.abs(truth - P).sum(axis=1) / 2, weights=w))
    key = (P * np.sqrt([2, 3, 5])[: P.shape[1]]).sum(axis=1)  # other forecasts have another
    _, group = np.unique(key, return_inverse=True)
    total = np.bincount(group, w)
    means = np.column_stack([np.bincount(group, w * column) / total for column in truth.T])
    return float(np.average(np.abs(means[group] - P).sum(axis=1) / 2, weights=w))


def figure_of(found):
    figure = found["measures"]["calibration_error"]["before"]
    return figure["value"], figure["low"], figure["high"]


def headline_of(summary):
    rows = {row["measure"]: row for row in summary["headline"]["rows"]}
    figure = rows["calibration_error"]["before"]
    return figure["value"], figure["low"], figure["high"]


def batches_of(rows, size):
    y, P, weights, _ = rows
    for start in range(0, len(y), size):
        part = slice(start, start + size)
        yield y[part], P[part], None, None if weights is None else weights[part]


def ways(rows, run_cli, batch=700):
    """The calibration error and its interval, by the way in which it was found."""
    y, P, weights, _ = rows
    K = P.shape[1]
    options: Any = {"labels": range(K)}
    found: Any = {"evaluate": evaluate(y, P, sample_weight=weights, **options)}
    counts = Counts.from_arrays(P, y, sample_weight=weights, labels=range(K))
    found["counts"] = evaluate.from_counts(counts)
    found["batches"] = evaluate.from_batches(batches_of(rows, batch), **options)
    found = {way: figure_of(each.to_dict()) for way, each in found.items()}
    report = Report(y, P, sample_weight=weights, **options)
    found["Report"] = headline_of(report.summary)
    table = pl.DataFrame({f"p_{k}": P[:, k] for k in range(K)}).with_columns(y=pl.Series(y))
    words = ["rows.parquet", "--json"]
    if weights is not None:
        table = table.with_columns(w=pl.Series(weights))
        words += ["-w", "w"]
    table.write_parquet("rows.parquet")
    for command, read in (("evaluate", figure_of), ("report", headline_of)):
        ran = run_cli(command, *words)
        assert ran.code == 0, ran.err
        found[f"isoroc {command}"] = read(json.loads(ran.text))
    return found


def should_calibrate(calibrator):
    verdict = calibrator.verdict_
    return getattr(verdict, "should_calibrate", str(verdict).startswith("calibrate"))


@pytest.mark.parametrize(
    ("setting", "many"),
    [
        (Setting(2, 2.0, 1), False),
        pytest.param(Setting(2, 2.0, 3, weighted=True), False, marks=pytest.mark.slow),
        (Setting(2, 2.0, 3, weighted=True), True),
        pytest.param(Setting(2, 0.0, 4), True, marks=pytest.mark.slow),
        pytest.param(Setting(3, 2.0, 2), True, marks=pytest.mark.slow),
    ],
)
def test_all_ways_find_the_same(setting, many, run_cli, monkeypatch):
    if many:  # the command counts rows for a report, and evaluates them in batches
        monkeypatch.setattr("isoroc._cli.reading.MANY", 100)
    rows = simulate(setting, 1000, seed=0)
    found = ways(rows, run_cli)
    value, low, high = found["evaluate"]
    direct = calibration_error(rows.y, rows.P, sample_weight=rows.weights)
    assert direct == pytest.approx(value, abs=1e-9)
    assert low <= true_error(setting) <= high
    for way, figures in found.items():
        counted = way == "counts" or (many and way == "isoroc report")
        # Cells of counts have the mean forecast and the mean weight of their rows.
        exact = not counted or (setting.n_classes == 2 and not setting.weighted)
        tolerance = 1e-6 if exact else 0.25 * (high - low)
        np.testing.assert_allclose(figures, found["evaluate"], atol=tolerance, err_msg=way)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rounding_changes_no_estimate(n_classes):
    raw = simulate(Setting(n_classes, 2.0), 2000, seed=1)
    result = evaluate(raw.y, raw.P).measures["calibration_error"]["before"]
    for digits in (6, 4, 3, 2):
        error = calibration_error(raw.y, rounded(raw.P, digits))
        assert abs(error - result.value) < 0.25 * (result.high - result.low), digits


@pytest.mark.parametrize("digits", [None, 3])
@pytest.mark.parametrize(("power", "wrong"), [(2.0, True), (1.0, False)])
def test_the_learned_verdict_agrees(digits, power, wrong):
    y, P, _, _ = simulate(Setting(2, power, digits), 2000, seed=2)
    assert should_calibrate(AutoCalibrator(random_state=0).fit(P, y)) == wrong
    assert (evaluate(y, P).decision == "calibrate") == wrong


def test_an_error_of_any_shape_is_found_in_few_values():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(5):
        value = rng.integers(0, 10, 4000)
        p = (value + 0.5) / 10
        truth = np.clip(p + 0.1 * (-1.0) ** value, 0.01, 0.99)
        found.append(calibration_error(rng.random(4000) < truth, p))
    assert np.mean(found) == pytest.approx(0.099, abs=0.01)


def test_counts_of_weighted_rows_are_no_copies():
    rejected = 0
    for seed in range(20):
        y, P, weights, _ = simulate(Setting(2, 1.0, 4, weighted=True), 2000, seed)
        counts = Counts.from_arrays(P[:, 1], y, sample_weight=weights)
        rejected += evaluate.from_counts(counts).decision == "calibrate"
    assert rejected <= 2  # more has 1 % at a rate of 2.5 %


@pytest.mark.slow
@pytest.mark.parametrize(("digits", "weighted"), [(None, False), (4, False), (4, True), (1, True)])
@pytest.mark.parametrize(("n_classes", "power"), [(2, 2.0), (2, 1.0), (2, 0.0), (3, 2.0)])
def test_intervals_cover_and_estimates_have_little_bias(n_classes, power, digits, weighted):
    setting = Setting(n_classes, power, digits, weighted)
    times = 40
    n = 2000 if n_classes == 2 else 1000  # volumes of three classes take half of the time
    truth = true_error(setting)
    found = []
    for seed in range(times):
        y, P, weights, _ = simulate(setting, n, seed)
        result = evaluate(y, P, sample_weight=weights, labels=range(n_classes))
        found.append(result.measures["calibration_error"]["before"])
    value, low, high = np.array(found).T
    assert np.sum((low <= truth) & (truth <= high)) >= 34  # fewer has 0.3 % at a rate of 95 %
    bias = abs(value.mean() - truth) - 3 * value.std() / np.sqrt(times)
    assert bias <= 0.1 * max(truth, float(np.mean(high - low)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "n"),
    [
        (Setting(2, 2.0, 4), 300_000),
        (Setting(2, 0.0, 4), 300_000),
        (Setting(2, 2.0, 3, weighted=True), 300_000),
        (Setting(3, 2.0, 3), 300_000),
        (Setting(2, 2.0), 600_000),
    ],
)
def test_many_rows(setting, n, run_cli, monkeypatch):
    monkeypatch.setattr("isoroc._cli.reading.MANY", 500_000)  # the command counts more rows
    rows = simulate(setting, n, seed=0)
    truth = true_error(setting)
    found = ways(rows, run_cli, batch=400_000)
    value, low, high = found["evaluate"]
    for way, (error, least, most) in found.items():
        assert least - 0.1 * (most - least) <= truth <= most + 0.1 * (most - least), way
        assert abs(error - value) <= high - low, way


@pytest.mark.slow
def test_a_map_that_keeps_the_order_keeps_refinement():
    y, P, _, truth = simulate(Setting(2, 2.0), 1_000_000, seed=0)
    result = evaluate(y, P, truth)
    change = result.measures["refinement_loss"]["change"]
    assert change.low <= 0 <= change.high
    for of in ("before", "after"):
        parts = result["calibration_loss", of] + result["refinement_loss", of]
        assert parts == pytest.approx(result["log_loss", of])
