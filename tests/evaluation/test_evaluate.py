"""The evaluation against the metrics that it is made of, from arrays, counts and batches."""

import inspect
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from isoroc import Counts, Estimate, Evaluation, InputError, IRPCalibrator, evaluate, metrics
from isoroc._core.intervals import Statistic
from isoroc._evaluation import measures
from isoroc._evaluation.before_after import Pair
from isoroc._evaluation.catalogue import MEASURES, Measure
from isoroc._evaluation.evaluation import tabulate
from isoroc._evaluation.judgement import judge_rows
from isoroc._input import Sample
from truths import distorted

COUNTS = Counts.from_arrays([0.2, 0.7], [0, 1])


@pytest.mark.parametrize("K", [2, 3, 6])
def test_values_are_those_of_the_metrics(K):
    P, Q, y = distorted(400, K, 2.0, seed=0)
    options: dict[str, Any] = {"labels": range(K), "sample_weight": np.arange(400) % 4 + 1}
    result = evaluate(y, P, Q, **options)
    for of, R in (("before", P), ("after", Q)):
        loss = metrics.log_loss(y, R, **options)
        saved = max(metrics.decompose(y, R, **options).calibration, 0.0)  # no loss is negative
        expected = {
            "log_loss": loss,
            "brier_score_loss": metrics.brier_score_loss(y, R, **options),
            "calibration_loss": saved,
            "refinement_loss": loss - saved,
            "calibration_error": metrics.calibration_error(y, R, **options),
            "top_calibration_error": metrics.calibration_error(y, R, kind="top", **options),
        }
        if K > 2:
            error = metrics.calibration_error(y, R, kind="classwise", **options)
            expected["classwise_calibration_error"] = error
        for measure, value in expected.items():
            assert result[measure, of] == pytest.approx(value, abs=1e-12), measure
    for measure, figures in result.measures.items():
        if "before" in figures:
            change = figures["after"].value - figures["before"].value
            assert figures["change"].value == pytest.approx(change, abs=1e-12), measure


def test_intervals_of_means_are_those_of_students_t_up_to_their_skewness():
    P, Q, y = distorted(300, 3, 2.0, seed=0)
    rows = [-np.log(R[np.arange(300), y]) for R in (P, Q)]
    result = evaluate(y, P, Q, confidence=0.9)
    for of, values in zip(("before", "after", "change"), (*rows, rows[1] - rows[0]), strict=True):
        error = values.std(ddof=1) / np.sqrt(300)
        found = result.measures["log_loss"][of]
        skewness = ((values - values.mean()) ** 3).mean() / values.std() ** 3 / np.sqrt(300)
        # The variance is known from the rows outside the largest class.
        width = stats.t(300 - np.bincount(y).max()).ppf(0.95)
        shift = skewness * (2 * width**2 + 1) / 6  # Johnson's corrected t
        assert (found.low + found.high) / 2 - values.mean() == pytest.approx(shift * error)
        assert (found.high - found.low) / 2 == pytest.approx(np.hypot(width, shift) * error)


@pytest.mark.slow
def test_intervals_cover_the_truth():
    P, truth, _ = distorted(200_000, 2, 2.0, seed=99)
    losses = [-(truth * np.log(np.maximum(R, 1e-300))).sum(axis=1).mean() for R in (P, truth)]
    expected = {
        ("log_loss", "change"): losses[1] - losses[0],
        ("calibration_error", "before"): np.abs(P - truth)[:, 1].mean(),
        ("brier_score_loss", "change"): -((P - truth)[:, 1] ** 2).mean(),
    }
    covered = dict.fromkeys(expected, 0)
    for seed in range(30):
        P, truth, y = distorted(500, 2, 2.0, seed)
        result = evaluate(y, P, truth)
        for (measure, of), value in expected.items():
            figure = result.measures[measure][of]
            covered[measure, of] += figure.low <= value <= figure.high
    assert min(covered.values()) >= 25  # of 30: fewer have a chance of 1 % at a rate of 95 %


def test_outcomes_of_probability_0_are_counted():
    y = [1, 0, 1, 1]
    p = [0.0, 0.2, 0.4, 0.9]
    result = evaluate(y, p, after=[0.5] * 4)
    assert result.impossible == {"before": 1, "after": 0}
    assert result["log_loss", "before"] == pytest.approx(metrics.log_loss(y, p))
    assert "In 1 row the outcome was given probability 0 before calibration;" in repr(result)
    assert all(np.isfinite(figure.value) for figure in result.measures["log_loss"].values())


@pytest.mark.parametrize("weighted", [False, True])
def test_losses_of_many_rows_are_means_over_all_of_them(weighted):
    rng = np.random.default_rng(0)
    n = 40_000  # more than one slice
    p = rng.random(n)
    p[::1000] = 0.0
    y = rng.random(n) < np.maximum(p, 0.5)
    weights = rng.random(n) + 0.5 if weighted else None
    result = evaluate(y, p, after=p**2, sample_weight=weights)
    assert result.n_rows == n
    assert result.impossible["before"] == np.count_nonzero(y[p == 0]) > 0
    for stage, q in (("before", p), ("after", p**2)):
        for name in ("log_loss", "brier_score_loss"):
            expected = getattr(metrics, name)(y, q, sample_weight=weights)
            assert result[name, stage] == pytest.approx(expected, rel=1e-12)
        wrong = (q > 0.5) != y
        assert result["accuracy", stage] == pytest.approx(1 - np.average(wrong, weights=weights))
    assert result.directions["before"]["forecast"][-1] == pytest.approx(
        np.average(p, weights=weights)
    )


def figures_with(**changes):
    """Measures of two classes, known only where they are given, by measure and what they are of."""
    found = {
        tuple(name.split("__")): Statistic(value, error**2)
        for name, (value, error) in changes.items()
    }
    paired = any(of != "before" for _, of in found)
    table = tabulate(found, 0.95, paired=paired, n_classes=2)  # type: ignore[arg-type]
    second = Sample(np.full((10, 2), 0.5), np.zeros(10, np.uint8)) if paired else None
    rows = Pair(Sample(np.full(10, 3.0), np.zeros(10, np.uint8), unit="logit"), second)
    verdict = judge_rows(rows, found, 1000, {}).verdict  # type: ignore[arg-type]
    return Evaluation(table, 10, np.arange(2), 0.95, {}, rows, verdict)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"log_loss__before": (1, 0.1), "log_loss__change": (-0.1, 0.02)}, "calibrate: log loss"),
        (
            {"log_loss__before": (1, 0.1), "log_loss__change": (0.1, 0.02)},
            "leave it: calibration raised the log loss",
        ),
        (
            {"log_loss__before": (1, 0.1), "log_loss__change": (0.1, 0.2)},
            "leave it: no clear change",
        ),
        ({"log_loss__after": (1, 0.1)}, "calibrate: the scores before calibration are not"),
        ({"log_loss__before": (1, 0.1), "accuracy__after": (1, 0)}, "leave it: the scores after"),
        (
            {"log_loss__before": (1, 0.1), "calibration_loss__before": (0.1, 0.01)},
            "calibrate: it could save 0.1000 nats",
        ),
        (
            {"log_loss__before": (1, 0.1), "calibration_loss__before": (0.1, 0.2)},
            "leave it: no evidence of miscalibration",
        ),
        ({"accuracy__before": (0.5, 0.1)}, "calibrate: these scores are not probabilities"),
    ],
)
def test_verdicts(changes, words):
    result = figures_with(**changes)
    assert str(result.verdict).startswith(words)
    assert result.decision == words.partition(":")[0]


def test_directions():
    result = figures_with(
        log_loss__change=(-0.1, 0.01), auc__change=(-0.1, 0.01), accuracy__change=(0.1, 0.2)
    )
    directions = {name: result.direction(name) for name in ("log_loss", "auc", "accuracy")}
    assert directions == {"log_loss": "better", "auc": "worse", "accuracy": "no clear change"}
    assert result.direction("pairs_tied") == result.direction("brier_score_loss") == ""


def test_counts_are_the_rows_they_count():
    rng = np.random.default_rng(0)
    p = rng.random(3000).round(2)
    y = rng.random(3000) < p**2
    calibrator = IRPCalibrator().fit(p, y)
    rows = evaluate(y, p, calibrator)
    counted = evaluate.from_counts(Counts.from_arrays(p, y), calibrator=calibrator)
    assert counted.n_rows == rows.n_rows == 3000
    for measure, figures in rows.measures.items():
        for of, figure in figures.items():
            found = counted.measures[measure][of]
            # Of two equal probabilities, rounding decides which one is the largest.
            atol = 1e-3 if measure == "top_calibration_error" else 1e-9
            np.testing.assert_allclose(found, figure, rtol=1e-6, atol=atol, err_msg=measure)
    assert "The rows were counted" in repr(counted)


def test_batches_are_one_table(monkeypatch):
    P, Q, y = distorted(5000, 3, 2.0, seed=0)
    w = np.arange(5000) % 3

    def batches(size):
        for start in range(0, 5000, size):
            rows = slice(start, start + size)
            yield y[rows], P[rows], Q[rows], w[rows]

    whole = evaluate(y, P, Q, sample_weight=w)
    found = evaluate.from_batches(batches(700), labels=range(3))
    for measure, figures in whole.measures.items():
        for of, figure in figures.items():
            np.testing.assert_allclose(found.measures[measure][of], figure, atol=1e-9)
    monkeypatch.setattr(measures.most_rows, "__defaults__", (3000, 1))
    some = evaluate.from_batches(batches(700), labels=range(3))
    assert some.notes[0].startswith("Calibration errors and ranking are based on 1,0")
    for measure in ("log_loss", "accuracy", "decisions_changed"):
        np.testing.assert_allclose(
            some.measures[measure]["change"], whole.measures[measure]["change"], atol=1e-9
        )
    error, kept = (each.measures["top_calibration_error"]["before"] for each in (whole, some))
    assert kept.value != error.value
    assert kept.low < error.value < kept.high


def test_scores_rank_and_have_no_losses():
    odds = np.array([-2.0, 0.3, 1.5, 0.1])
    y = [0, 1, 1, 0]
    result = evaluate(y, odds, 1 / (1 + np.exp(-odds)))
    assert np.isnan(result["log_loss", "before"])
    assert result["auc", "before"] == result["auc", "after"] == 1
    assert result["decisions_changed", "change"] == 0


def test_the_result_prints_and_converts():
    P, Q, y = distorted(200, 3, 2.0, seed=0)
    result = evaluate(y, P, Q)
    text = repr(result)
    assert "95 % interval of the change" in text
    assert str(result.verdict)[1:] in text
    frame = result.frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == ["measure", "of", "value", "low", "high"]
    assert set(frame["measure"]) == set(MEASURES) - {"auc", "macro_log_loss", "macro_auc"}
    assert "<table>" in result._repr_html_()
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert (
        plain["measures"]["log_loss"]["change"] == result.measures["log_loss"]["change"]._asdict()
    )
    assert (plain["rows"], plain["decision"]) == (200, result.decision)
    with pytest.raises(KeyError):
        result["accuracy", "nothing"]
    assert isinstance(result.measures["vus"]["before"], Estimate)
    assert "after" not in evaluate(y, P).measures["log_loss"]


def test_many_classes_have_no_calibration_error_of_single_classes():
    P, Q, y = distorted(300, 60, 2.0, seed=0)
    result = evaluate(y, P, Q, labels=range(60))
    assert "classwise_calibration_error" not in result.measures
    areas = [roc_auc_score(y == k, P[:, k]) for k in np.unique(y)]
    assert result["auc_one_vs_rest", "before"] == pytest.approx(np.mean(areas))
    assert np.isfinite(result["calibration_error", "before"])
    assert "With more than 50 classes" in repr(result)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y_prob": [0.2, -0.7], "unit": "probability"}, "y_prob: row 1"),
        ({"y_true": [0, 1, 1]}, "y_true: 3 rows, but y_prob has 2"),
        ({"after": [[0.1, 0.2, 0.7]] * 2}, "after: 3 classes, but y_prob has 2"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(InputError, match=message):
        evaluate(**{"y_true": [0, 1], "y_prob": [0.2, 0.7]} | arguments)


def test_bad_counts_and_batches():
    with pytest.raises(InputError, match="y_true: no rows"):
        evaluate.from_batches([], labels=[0, 1])
    with pytest.raises(InputError, match="calibrator: is list"):
        evaluate.from_counts(Counts.from_arrays([0.2, 0.7], [0, 1]), calibrator=[0.2])


def test_intervals_allow_for_outcomes_of_probability_0_that_are_not_among_the_rows():
    p = np.tile([0.0, 0.5, 0.5, 1.0], 50)
    y = np.tile([0, 0, 1, 1], 50)
    softer = p.clip(0.01, 0.99)
    found = evaluate(y, p, softer).measures
    unseen = 36 * 3 / 200  # the rule of three: none of 200 rows may be 1.5 % of many
    for measure in ("log_loss", "calibration_loss"):
        assert found[measure]["before"].high - found[measure]["before"].value >= unseen
    change = found["log_loss"]["change"]
    assert change.value - change.low >= unseen  # the softer forecasts might save as much
    assert change.high - change.value < 0.01
    assert found["log_loss"]["after"].high - found["log_loss"]["after"].value < 0.1
    labels = evaluate(np.c_[y, y], np.c_[p, p], np.c_[softer, softer], multilabel=True).measures
    for measure in ("log_loss", "macro_log_loss"):
        assert labels[measure]["before"].high - labels[measure]["before"].value >= unseen


@pytest.mark.parametrize(
    ("n", "heavy", "widest"), [(2000, 500.0, 3.0), (300, 50.0, 3.0), (300, 1e9, 2 * 36.05)]
)
def test_one_large_weight_leaves_intervals_finite(n, heavy, widest):
    rng = np.random.default_rng(0)
    p = rng.random(n)
    y = rng.random(n) < p
    weights = np.ones(n)
    weights[7] = heavy
    for after in (None, p**1.2):
        result = evaluate(y, p, after, sample_weight=weights)
        for measure, figures in result.measures.items():
            for of, (value, low, high) in figures.items():
                assert np.isfinite([low, high]).all(), (measure, of)
                assert low <= value <= high, (measure, of)
                assert of == "change" or low >= 0, (measure, of)
                assert high - low < widest, (measure, of)


def test_estimates_lie_in_their_range():
    """Estimates of a calibration loss may be negative, as they are for calibrated forecasts."""
    below = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        p = rng.random(300).round(1).clip(0.05, 0.95)
        y = rng.random(300) < p
        below += metrics.decompose(y, p).calibration < 0
        found = evaluate(y, p).measures
        value, low, high = found["calibration_loss"]["before"]
        assert 0 <= low <= value <= high
        total = value + found["refinement_loss"]["before"].value
        assert total == pytest.approx(found["log_loss"]["before"].value)
    assert below > 3


def test_signatures_print_aliases():
    """What `help` shows on one line, not the unions behind it."""
    shown = str(inspect.signature(evaluate))
    assert "sample_weight: 'ArrayLike | None'" in shown
    assert len(shown) < 400


def spherical_scores(sample):
    """Probability of the outcome over the Euclidean norm of the forecast (Roby 1965)."""
    P = sample.forecasts
    return P[np.arange(len(P)), sample.codes] / np.linalg.norm(P, axis=1)


SPHERICAL = Measure("spherical score", "", better=1, limits=(0, 1), rows=spherical_scores)
HARD = Measure(
    "confident and right",
    "",
    better=1,
    limits=(0, 1),
    rows=lambda sample: np.where(spherical_scores(sample) > 0.9, 1.0, 0.0),
    statistic="share",
)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("clustered", [False, True])
def test_every_measure_has_a_change_with_an_interval(monkeypatch, K, clustered):
    """Volumes have no interval. A new measure of rows needs an entry and nothing else."""
    monkeypatch.setitem(MEASURES, "spherical_score", SPHERICAL)
    monkeypatch.setitem(MEASURES, "confident", HARD)
    P, Q, y = distorted(400, K, 4.0, seed=K)
    clusters = np.arange(400) // 2 if clustered else None
    result = evaluate(y, P, Q, clusters=clusters)
    shown = {name for name in result.measures if "before" in MEASURES[name].stages}
    assert {"spherical_score", "confident", "log_loss", "accuracy"} <= shown
    for name in shown:
        figures = result.measures[name]
        change = figures["after"].value - figures["before"].value
        assert figures["change"].value == pytest.approx(change)
        for stage in () if name == "vus" else MEASURES[name].stages:
            value, low, high = figures[stage]
            least, most = MEASURES[name].range_of(stage)
            assert least <= low <= value <= high <= most
            assert low < high or (name, stage) == ("auc", "change")  # the order is the same
    rows = {stage: spherical_scores(Sample(X, y)) for stage, X in (("before", P), ("after", Q))}
    rows["change"] = rows["after"] - rows["before"]
    groups = np.arange(400) if clusters is None else clusters
    for of, values in rows.items():
        means = np.bincount(groups, values) / np.bincount(groups)
        found = result.measures["spherical_score"][of]
        assert found.value == pytest.approx(values.mean())
        half = 1.96 * means.std(ddof=1) / np.sqrt(len(means))
        assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.05)
    low, high = result.measures["spherical_score"]["change"][1:]
    assert result.direction("spherical_score") == ("better" if low > 0 else "no clear change")
    assert high > 0
    assert "spherical score" in repr(result)


def test_ranges_are_those_of_a_stage():
    assert SPHERICAL.range_of("before") == (0, 1)
    assert SPHERICAL.range_of("change") == (-1, 1)
    assert MEASURES["log_loss"].range_of("change") == (-np.inf, np.inf)
    assert MEASURES["decisions_changed"].range_of("change") == (0, 1)


@pytest.mark.parametrize(("K", "are_shown"), [(50, True), (51, False)])
def test_single_classes_are_shown_up_to_50(K, are_shown):
    P, _, y = distorted(400, K, 1.0, seed=0)
    result = evaluate(y, P, labels=range(K))
    assert result.directions["before"].n_rows == (1 + K if are_shown else 1)
    assert ("classwise_calibration_error" in result.measures) == are_shown
    assert ("With more than 50 classes" in repr(result)) == (not are_shown)
    if are_shown:
        assert np.isfinite(result["classwise_calibration_error", "before"])
