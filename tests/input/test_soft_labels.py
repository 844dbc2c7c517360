"""Soft labels: shares of the classes in place of one label per row."""

import warnings

import numpy as np
import polars as pl
import pytest

import isoroc
from isoroc import Counts, InputError, evaluate, metrics

CALIBRATORS = [
    isoroc.AutoCalibrator,
    isoroc.BetaCalibrator,
    isoroc.IRPCalibrator,
    isoroc.IsotonicCalibrator,
    isoroc.KernelCalibrator,
    isoroc.MatrixCalibrator,
    isoroc.MonotoneCalibrator,
    isoroc.SegmentCalibrator,
    isoroc.SigmoidCalibrator,
    isoroc.SplineCalibrator,
    isoroc.TemperatureCalibrator,
]


def votes(n=300, K=3, n_votes=5, seed=0):
    """Forecasts that are not confident enough, the true probabilities, and shares of votes."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(K), n)
    truth = P**1.5 / (P**1.5).sum(axis=1, keepdims=True)
    return P, truth, np.array([rng.multinomial(n_votes, t) for t in truth]) / n_votes


@pytest.mark.parametrize("kind", CALIBRATORS)
def test_one_hot_rows_are_labels(kind):
    P, _, shares = votes(n_votes=1)
    y = shares.argmax(axis=1)
    expected, Q = (kind().fit(P, outcomes).predict_proba(P) for outcomes in (y, shares))
    np.testing.assert_array_equal(Q, expected)


@pytest.mark.parametrize("kind", CALIBRATORS)
def test_fits_do_not_depend_on_the_order_of_rows(kind):
    P, _, shares = votes(120)
    order = np.random.default_rng(1).permutation(len(P))
    first = kind().fit(P, shares)
    second = kind().fit(P[order], shares[order])
    np.testing.assert_allclose(first.predict_proba(P), second.predict_proba(P), atol=1e-9)


@pytest.mark.parametrize("kind", [isoroc.IsotonicCalibrator, isoroc.TemperatureCalibrator])
def test_a_row_counts_for_each_class_with_its_share(kind):
    P, _, shares = votes()
    row, k = np.nonzero(shares)
    apart = kind().fit(P[row], k, sample_weight=shares[row, k] * 5, weighting="frequency")
    weights = np.full(len(P), 5.0)
    joint = kind().fit(P, shares, sample_weight=weights, weighting="frequency")
    np.testing.assert_allclose(joint.predict_proba(P), apart.predict_proba(P), atol=1e-12)


def test_a_row_is_one_row():
    P, _, shares = votes(K=2)
    calibrator = isoroc.AutoCalibrator().fit(P, shares)
    assert calibrator.summary_["rows"] == calibrator.verdict_.n_rows == len(P)
    assert calibrator.summary_["weight"] == pytest.approx(len(P))
    evaluation = evaluate(shares, P, after=calibrator)
    assert evaluation.n_rows == len(P)
    assert Counts.from_arrays(P, shares).n_rows == len(P)
    assert evaluate.from_counts(Counts.from_arrays(P, shares)).n_rows == len(P)


def test_many_votes_say_more_than_one():
    P, truth, many = votes(500, K=2, n_votes=50)
    errors = []
    widths = []
    for shares in (many, votes(500, K=2, n_votes=1)[2]):
        Q = isoroc.AutoCalibrator().fit(P, shares).predict_proba(P)
        errors.append(float((truth * np.log(truth / Q)).sum(axis=1).mean()))
        loss = evaluate(shares, P).measures["log_loss"]["before"]
        widths.append(loss.high - loss.low)
    assert errors[0] < errors[1]
    assert widths[0] < widths[1]


def test_losses_are_cross_entropies():
    P, _, shares = votes()
    weights = np.random.default_rng(2).random(len(P))
    entropy = -np.where(shares > 0, shares * np.log(np.where(shares > 0, shares, 1)), 0).sum(axis=1)
    cross = -(shares * np.log(P)).sum(axis=1)
    expected = np.average(cross, weights=weights)
    assert metrics.log_loss(shares, P, sample_weight=weights) == pytest.approx(expected)
    excess = metrics.log_loss(shares, P, excess=True, sample_weight=weights)
    assert excess == pytest.approx(np.average(cross - entropy, weights=weights))
    assert metrics.log_loss(shares, shares, excess=True) == pytest.approx(0, abs=1e-12)
    y = shares.argmax(axis=1)
    assert metrics.log_loss(y, P, excess=True) == metrics.log_loss(y, P)
    squares = ((P - shares) ** 2).sum(axis=1) + (1 - (shares**2).sum(axis=1))
    assert metrics.brier_score_loss(shares, P) == pytest.approx(squares.mean())


@pytest.mark.slow
@pytest.mark.parametrize("n_votes", [3, 20])
def test_intervals_cover(n_votes):
    P, truth, _ = votes(200_000, K=2, n_votes=1, seed=9)
    expected = -(truth * np.log(P)).sum(axis=1).mean()
    covered = []
    for seed in range(300):
        P, _, shares = votes(200, K=2, n_votes=n_votes, seed=seed)
        estimate = evaluate(shares, P).measures["log_loss"]["before"]
        covered.append(estimate.low <= expected <= estimate.high)
    assert 0.91 < np.mean(covered) < 0.985


def test_calibrated_soft_labels_are_not_calibrated_again():
    _, truth, shares = votes(1000, n_votes=3)
    assert not isoroc.AutoCalibrator().fit(truth, shares).verdict_.should_calibrate
    assert metrics.calibration_test(shares, truth).p_value > 0.01


def test_columns_are_matched_by_name():
    P, _, shares = votes()
    named = pl.DataFrame(P, schema=["a", "b", "c"])
    given = pl.DataFrame(shares, schema=["a", "b", "c"]).select("c", "a", "b")
    plain = isoroc.TemperatureCalibrator().fit(P, shares)
    matched = isoroc.TemperatureCalibrator().fit(named, given)
    assert matched.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(matched.predict_proba(named), plain.predict_proba(P))
    assert metrics.log_loss(given, P, labels=["a", "b", "c"]) == metrics.log_loss(shares, P)
    assert isoroc.IdentityCalibrator().fit(named, shares).classes_.tolist() == ["a", "b", "c"]


def test_batches_and_segments():
    P, _, shares = votes(400, K=2)
    halves = [(shares[:200], P[:200]), (shares[200:], P[200:])]
    whole = evaluate(shares, P)
    parts = evaluate.from_batches(halves, labels=[0, 1])
    for measure in ("log_loss", "calibration_loss", "accuracy"):
        first, second = (e.measures[measure]["before"] for e in (whole, parts))
        np.testing.assert_allclose(first, second, atol=2e-3)
    region = {"region": np.repeat(["north", "south"], 200)}
    calibrator = isoroc.SegmentCalibrator().fit(P, shares, segments=region)
    evaluation = evaluate(shares, P, after=calibrator, segments=region)
    assert evaluation.segments["before"]["rows"].max() == 200
    report = isoroc.Report(shares, P, calibrator=calibrator, segments=region)
    assert report.summary["data"]["rows"] == 400


@pytest.mark.parametrize(("y", "words"), [
    (np.array([[0, 1, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]]), r"y: row 0 sums to 2; .*MultiLabel"),
    (np.array([[0, 3, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]]), r"y: row 0 sums to 4; .*For counts"),
    (np.array([[0.1, 0.9, 0.3]] * 4), r"y: row 0 sums to 1.3"),
    (np.array([[0.1, 1.2, -0.3]] * 4), r"y: row 0 is \[0.1, 1.2, -0.3\]"),
    (np.array([[0.1, np.nan, 0.3]] * 4), r"y: row 0 is \[0.1, nan, 0.3\]"),
    (np.array([[0.5, 0.5]] * 4), r"y: soft labels of 2 classes, but the forecasts have 3"),
    (np.array([[0.5, 0.5, 0.0]] * 3), r"y: 3 rows, but P has 4"),
    (np.array([["a", "b", "c"]] * 4), r"y: .* labels are one column"),
    (np.array([[1.0, 0.0, 0.0]] * 4), r"y: one class only, 0"),
])  # fmt: skip
def test_refusals(y, words):
    P = np.random.default_rng(0).dirichlet(np.ones(3), 4)
    with pytest.raises(InputError, match=words):
        isoroc.TemperatureCalibrator().fit(P, y)


def test_swapped_arguments_are_refused():
    P, _, shares = votes(n_votes=1)
    with pytest.raises(InputError, match="the two arguments are swapped"):
        metrics.log_loss(P, shares)


def test_what_needs_one_outcome_per_row_says_so():
    P, _, shares = votes(K=2)
    monitor = isoroc.CalibrationMonitor([0, 1])
    with pytest.raises(InputError, match="y: soft labels; expected the class that came true"):
        monitor.update(shares, P)
    with pytest.raises(InputError, match="y: soft labels; expected the class that came true"):
        metrics.estimate_rate(shares, P[:, 1], P[:, 1])
    with pytest.raises(ValueError, match="y should be a 1d array"):
        isoroc.CalibratedClassifier().fit(P, shares)


def test_counts_as_the_message_advises():
    P, _, shares = votes()
    counts = np.rint(5 * shares)
    total = counts.sum(axis=1)
    advised = isoroc.TemperatureCalibrator().fit(P, counts / total[:, None], sample_weight=total)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = isoroc.TemperatureCalibrator().fit(P, shares)
    np.testing.assert_allclose(advised.predict_proba(P), plain.predict_proba(P), atol=1e-12)


def test_impossible_parts_of_a_row_count_once():
    P, _, shares = votes(60)
    P[:2] = [1, 0, 0]
    shares[:2] = [0.2, 0.4, 0.4]
    calibrator = isoroc.AutoCalibrator().fit(P, shares)
    assert calibrator.verdict_.impossible == evaluate(shares, P).impossible["before"] == 2
