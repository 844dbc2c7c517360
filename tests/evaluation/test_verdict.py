"""One verdict: the same rule everywhere, its level and power, and sentences that agree with it."""

import re
from functools import cache

import numpy as np
import pytest
from scipy.special import expit, softmax

from isoroc import AutoCalibrator, Counts, IsotonicCalibrator, Report, evaluate
from isoroc._core.evidence import count_units, score_test
from isoroc._core.intervals import Estimate
from isoroc._core.verdict import is_evidence, judge_gain
from isoroc._input import check_sample
from zoo import KINDS, make


def overconfident(rng, n=400):
    """Forecasts of the log odds z where z / 1.7 - 0.25 is right."""
    z = rng.normal(-0.2, 0.75, n)
    return expit(z), (rng.random(n) < expit(z / 1.7 - 0.25)).astype(int)


def calibrated(rng, n, K, road="plain"):
    """Rows with calibrated forecasts, as a sample."""
    c = np.arange(n)
    if road == "clusters":  # rows of a cluster have similar forecasts, and often the same chance
        c = np.repeat(np.arange(-(-n // 5)), 5)[:n]
    P = softmax(1.5 * rng.normal(size=(n, K)), axis=1)
    P = 0.9 * P[c] + 0.1 * P
    u = np.where(rng.random(n) < 0.6, rng.random(n)[c], rng.random(n))

    def draw(u):
        return (P[:, :-1].cumsum(axis=1) < u[:, None]).sum(axis=1)

    options = {"clusters": c if road == "clusters" else None}
    y = draw(u)
    if road == "weights":
        options["sample_weight"] = rng.gamma(1.0, 1.0, n)
    if road == "soft":
        y = np.mean([np.eye(K)[draw(rng.random(n))] for _ in range(3)], axis=0)
    return P, y, options


@cache
def examples(n_draws=40):
    rng = np.random.default_rng(1)
    found = []
    for _ in range(n_draws):
        p, y = overconfident(rng)
        found.append((evaluate(y, p), AutoCalibrator().fit(p, y)))
    return found


def test_evaluations_and_calibrators_agree_and_see_as_much_as_a_score_test():
    found = examples(10)
    assert np.mean([ev.decision == cal.verdict_.decision for ev, cal in found]) >= 0.9
    # The interval of the calibration loss alone finds 20 %.
    assert np.mean([ev.verdict.should_calibrate for ev, _ in found]) >= 0.4
    for ev, _ in found:
        assert ev.verdict.should_calibrate or ev.verdict.p_value > 0.009


@pytest.mark.slow
def test_the_verdicts_of_forty_samples():
    """Before: evaluate flagged 18 %, AutoCalibrator and the test 60 %."""
    found = examples()
    assert np.mean([ev.verdict.should_calibrate for ev, _ in found]) >= 0.5
    assert np.mean([ev.decision == cal.verdict_.decision for ev, cal in found]) >= 0.95


WRONG = re.compile(r"overconfident|underconfident|too high|too low|came true in")


def test_no_sentence_contradicts_the_verdict():
    rng = np.random.default_rng(3)
    for k in range(6):
        p, y = overconfident(rng, 200 if k % 2 else 400)
        report = Report(y, p).summary["verdict"]
        says = any(WRONG.search(text) for text in report["sentences"])
        assert report["decision"] == "calibrate" or not says
        result = evaluate(y, p, after=p)  # nothing changes, whatever was wrong
        assert result.decision == "leave it"


@pytest.mark.parametrize("road", ["plain", "clusters", "weights", "soft"])
@pytest.mark.parametrize("K", [2, 3, 10])
def test_the_level_of_the_score_test(K, road):
    rng = np.random.default_rng(K)
    n_draws = 150
    found = 0
    for _ in range(n_draws):
        P, y, options = calibrated(rng, 100, K, road)
        sample = check_sample(P, y, labels=range(K), **options).effective()
        found += is_evidence(score_test(sample.forecasts, sample), count_units(sample))
    assert found <= 5  # of 150: at a rate of 1 %, more have a probability of 0.4 %


@pytest.mark.slow
@pytest.mark.parametrize(
    ("K", "road"), [(2, "plain"), (2, "clusters"), (2, "weights"), (2, "soft"), (3, "plain")]
)
def test_calibrated_forecasts_are_left_alone(K, road):
    rng = np.random.default_rng(K)
    flagged = 0
    for i in range(100):
        P, y, options = calibrated(rng, 100 if i % 2 else 400, K, road)
        flagged += evaluate(y, P, labels=range(K), **options).verdict.should_calibrate
    assert flagged <= 6  # at a rate of 2 %, more has a probability of 0.4 %


def test_shifts_of_classes_are_seen_for_three_classes_too():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(1000, 3))
    truth = softmax(z + np.array([0.5, 0, -0.5]), axis=1)
    y = (truth[:, :-1].cumsum(axis=1) < rng.random((1000, 1))).sum(axis=1)
    result = evaluate(y, softmax(z, axis=1))
    assert result.decision == "calibrate"
    assert result.verdict.p_value < 1e-6
    assert "too low for class 0" in result.sentences()[1]


def judged(gain, p_value=0.5, n_units=1000, basis="second forecasts"):
    return judge_gain(
        Estimate(*gain),
        p_value,
        n_units,
        before=0.6,
        after=0.5,
        based_on=basis,
        n_rows=1000,
        impossible=0,
    )


@pytest.mark.parametrize("basis", ["cross-validation", "second forecasts"])
def test_the_rule(basis):
    up, none, down = (0.1, 0.01, 0.2), (0.05, -0.01, 0.1), (-0.1, -0.2, -0.01)
    assert judged(up, basis=basis).decision == "calibrate"
    assert judged(none, basis=basis).decision == "leave it"
    assert judged(none, 0.005, basis=basis).decision == "calibrate"
    assert "with probability 0.005" in str(judged(none, 0.005, basis=basis))
    assert judged(down, 0.005, basis=basis).decision == "leave it"
    # The fewer the rows, the stronger the evidence must be, and without any there is no verdict.
    assert judged(none, 0.005, 50, basis).decision == "too few rows to tell"
    assert judged(none, 0.0005, 50, basis).decision == "calibrate"
    # 1 %, and half of that with 100 rows.
    assert judged(none, 0.0099, 10**6, basis).should_calibrate
    assert not judged(none, 0.0101, 10**6, basis).should_calibrate
    assert judged(none, 0.0049, 100, basis).should_calibrate
    assert not judged(none, 0.0051, 100, basis).should_calibrate
    assert judged(down, 0.5, 50, basis).decision == "leave it"


def test_a_calibration_loss_below_zero_is_no_reason_to_ignore_a_test():
    verdict = judged((-0.001, -0.002, 0.02), 0.001, basis="calibration loss")
    assert str(verdict).startswith("calibrate: it could save up to 0.0200 nats")
    for low in (0.0, 0.01):  # of few rows, an interval proves nothing
        assert str(judged((0.02, low, 0.1), 0.5, 40, "calibration loss")) == (
            "too few rows to tell: 1000 rows show no miscalibration"
        )


def test_thirty_rows_do_not_tell():
    rng = np.random.default_rng(0)
    z = rng.normal(size=30)
    y = (rng.random(30) < expit(z)).astype(int)
    assert evaluate(y, expit(z)).decision == "too few rows to tell"
    verdict = AutoCalibrator().fit(expit(z), y).verdict_
    assert verdict.decision == verdict.to_dict()["decision"] == "too few rows to tell"
    assert not verdict.should_calibrate


@pytest.mark.slow
def test_few_rows_change_calibrated_forecasts_little():
    """With a prior share that a p-value alone removed, 30 rows cost more than .002 nats."""
    rng = np.random.default_rng(0)
    grid = rng.normal(-0.2, 1.2, 2000)
    p = expit(grid)
    costs = []
    for _ in range(80):
        z = rng.normal(-0.2, 1.2, 30)
        y = (rng.random(30) < expit(z)).astype(int)
        if 0 < y.sum() < 30:
            q = AutoCalibrator().fit(expit(z), y).predict_proba(p)[:, 1]
            costs.append(np.mean(p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))))
    assert np.mean(costs) < 0.0015


@pytest.mark.parametrize("name", sorted(KINDS))
def test_every_calibrator_is_recognised_on_its_own_rows(name):
    P, y, _ = calibrated(np.random.default_rng(0), 200, 2)
    calibrator = make(name).fit(P[:100], y[:100])
    for rows, share in ((slice(100), 1), (slice(100, 200), 0)):
        for after in (calibrator, calibrator.predict_proba(P[rows])):
            result = evaluate(y[rows], P[rows], after=after)
            assert result.seen == share
            basis = "calibration loss" if share else "second forecasts"
            assert result.verdict.based_on == basis
            assert ("fitted to these very rows" in repr(result)) == bool(share)


def test_isotonic_regression_on_its_own_rows_proves_nothing():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)
    calibrator = IsotonicCalibrator().fit(p, y)
    Q = calibrator.predict_proba(p)
    seen = evaluate(y, p, after=Q)
    assert seen.measures["log_loss"]["change"].high < 0  # it looks as if it helped
    assert seen.decision == "leave it"
    assert seen.to_dict()["seen"] == 1
    counts = Counts.from_arrays(p, y)
    assert evaluate.from_counts(counts, calibrator=calibrator).seen == 1
    assert Report.from_counts(counts, calibrator=calibrator).summary["verdict"]["tone"] == ""
    batches = ((y[rows], p[rows]) for rows in np.split(np.arange(300), 3))
    assert evaluate.from_batches(batches, labels=[0, 1], calibrator=calibrator).seen == 1
    # Other outcomes of the same forecasts are other rows.
    again = (rng.random(300) < p).astype(int)
    assert evaluate(again, p, after=Q).seen == 0


def test_segments_may_be_wrong_where_all_rows_are_not():
    rng = np.random.default_rng(0)
    z = rng.normal(size=2000)
    north = rng.random(2000) < 0.5
    y = rng.random(2000) < expit(0.8 * z + np.where(north, 0.5, -0.5))
    result = evaluate(y, expit(0.75 * z), segments={"north": north})
    assert result.decision == "leave it"
    assert result.sentences()[-1].endswith("over all rows these errors cancel out.")
