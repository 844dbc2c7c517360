"""The monitor: valid evidence, independent of batches, found drifts, safe files."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from isoroc import (
    AutoCalibrator,
    CalibratedClassifier,
    CalibrationMonitor,
    InputError,
    TemperatureCalibrator,
)
from isoroc._counts import hash_rows
from isoroc._evaluation.monitor import Accepted, Alternatives, BatchSums, Promise
from isoroc.decisions import acceptance_rule


def draw(n, n_classes, rng, power=1.0, odds=1.0):
    """Forecasts, and outcomes whose true odds are a power of them, the first class changed."""
    Q = rng.dirichlet(np.ones(n_classes), size=n)
    truth = Q**power
    truth[:, 0] *= odds
    truth /= truth.sum(axis=1, keepdims=True)
    return (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), Q


@settings(max_examples=20)
@given(st.integers(2, 5), st.integers(0, 10**6))
def test_ratios_have_mean_one_under_the_forecasts(n_classes, seed):
    Q = np.random.default_rng(seed).dirichlet(np.full(n_classes, 0.5), size=3)
    mean = sum(
        Q[:, [y]] * np.exp(Alternatives(n_classes).log_ratios(Q, np.full(3, y)))
        for y in range(n_classes)
    )
    np.testing.assert_allclose(mean, 1, rtol=1e-9)


@settings(max_examples=10)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 99), unique=True, max_size=4))
def test_evidence_is_the_average_over_beginnings(seed, cuts):
    y, Q = draw(100, 3, np.random.default_rng(seed), power=0.5)
    monitor = CalibrationMonitor(range(3))
    alternatives = Alternatives(3)
    batches = np.split(np.arange(100), sorted(cuts))
    for rows in batches:
        monitor.update(y[rows], Q[rows])
    ratios = alternatives.log_ratios(Q, y)
    B = len(batches)
    total = np.full(ratios.shape[1], 1 / (B + 1))  # those that have not begun yet
    for b, rows in enumerate(batches):
        total += np.exp(ratios[rows[0] :].sum(axis=0)) / ((b + 1) * (b + 2))
    assert monitor.evidence_ == pytest.approx(np.log(alternatives.weights @ total))


def test_a_long_good_time_does_not_delay_the_alarm_much():
    rng = np.random.default_rng(2)
    delays = []
    for calm in (1, 100):
        monitor = CalibrationMonitor(range(2))
        for _ in range(calm):
            monitor.update(*draw(200, 2, rng))
        assert not monitor.alarm_
        while monitor.alarm_ is None:
            monitor.update(*draw(200, 2, rng, power=0.5))
        delays.append(monitor.alarm_ - 200 * calm)
    assert delays[1] <= delays[0] + 600


def test_false_alarms_are_rare():
    alarms = 0
    for seed in range(60):
        monitor = CalibrationMonitor(range(3))
        rng = np.random.default_rng(seed)
        for _ in range(6):
            monitor.update(*draw(100, 3, rng))
        alarms += monitor.alarm_ is not None
    assert alarms <= 7  # 8 or more have a probability of 0.01 at a rate of 0.05


@pytest.mark.parametrize(
    ("change", "advice"),
    [({"power": 0.6}, "refit"), ({"power": 1.6}, "refit"), ({"odds": 2.0}, "adapt priors")],
)
def test_drifts_are_found_and_named(change, advice):
    monitor = CalibrationMonitor(["a", "b", "c"])
    rng = np.random.default_rng(0)
    labels = np.array(["a", "b", "c"])
    for day in range(40):
        y, Q = draw(100, 3, rng, **(change if day >= 10 else {}))
        monitor.update(labels[y], Q)
        if day == 9:
            assert monitor.alarm_ is None
            assert monitor.advice_ == "nothing"
    assert monitor.alarm_
    assert 1000 < monitor.alarm_ < 4000
    assert monitor.advice_ == advice
    assert monitor.history_["rows"].tolist() == list(range(100, 4001, 100))


def test_a_batch_has_the_log_loss_that_came_and_the_one_that_was_expected():
    found = CalibrationMonitor([0, 1, 2]).update([0, 1], [[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]])
    assert found.promised == pytest.approx(1.5 * np.log(2) / 2)
    assert found.log_loss == pytest.approx((np.log(2) - np.log(2.2e-16)) / 2, abs=0.01)
    calibrated = CalibrationMonitor([0, 1, 2]).update(*draw(5000, 3, np.random.default_rng(0)))
    assert calibrated.promised == pytest.approx(calibrated.log_loss, abs=0.02)


def test_impossible_outcomes_raise_an_alarm():
    monitor = CalibrationMonitor([0, 1])
    monitor.update([0, 1], [0.0, 0.0])
    assert monitor.alarm_ == 2
    assert np.isfinite(monitor.report().log_loss)


def test_tolerance_forgives_small_errors():
    y, Q = draw(20_000, 2, np.random.default_rng(1), power=0.85)
    strict = CalibrationMonitor([0, 1])
    lenient = CalibrationMonitor([0, 1], tolerance=0.01)
    strict.update(y, Q)
    lenient.update(y, Q)
    assert strict.alarm_ is not None
    assert lenient.alarm_ is None


def test_states_are_kept_in_files(tmp_path):
    path = tmp_path / "state.json"
    rng = np.random.default_rng(0)
    monitor = CalibrationMonitor(["no", "yes"], confidence=0.9, tolerance=1e-4)
    whole = CalibrationMonitor(["no", "yes"], confidence=0.9, tolerance=1e-4)
    for _ in range(5):
        y, Q = draw(200, 2, rng, power=0.6)
        for each in (monitor, whole):
            each.update(np.array(["no", "yes"])[y], Q[:, 1])
        monitor.save(path)
        monitor = CalibrationMonitor.load(path)
    assert monitor.evidence_ == whole.evidence_
    assert monitor.alarm_ == whole.alarm_ is not None
    assert monitor.history_["evidence"].tolist() == whole.history_["evidence"].tolist()
    assert monitor.classes_.tolist() == ["no", "yes"]


@given(st.data())
def test_damaged_states_are_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("state") / "state.json"
    monitor = CalibrationMonitor([0, 1])
    monitor.update([0, 1], [0.2, 0.9])
    monitor.save(path)
    state = json.loads(path.read_text())
    key = data.draw(st.sampled_from(["format", "version", "labels", "totals", "history"]))
    state[key] = data.draw(st.sampled_from([None, 7, "x", [1], {"rows": 1}, [[1, 2]]]))
    path.write_text(json.dumps(state))
    with pytest.raises(InputError, match=r"is not the state of a monitor"):
        CalibrationMonitor.load(path)


def test_a_deeply_nested_state_is_refused(tmp_path):
    path = tmp_path / "state.json"
    path.write_text("[" * 100_000)
    with pytest.raises(InputError, match=r"is not the state of a monitor"):
        CalibrationMonitor.load(path)


def test_the_tolerance_is_that_of_the_model():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    calibrator = TemperatureCalibrator().fit(p, rng.random(400) < p)
    monitor = CalibrationMonitor(calibrator)
    assert monitor.tolerance == 2 * 2 / 400
    assert monitor.model == calibrator.checksum
    assert monitor.classes_.tolist() == [False, True]
    assert CalibrationMonitor(calibrator, tolerance=0.0).tolerance == 0
    assert CalibrationMonitor([0, 1]).tolerance == 0
    classifier = CalibratedClassifier(LogisticRegression(), cv=2).fit(p[:, None], p > 0.5)
    assert CalibrationMonitor(classifier).tolerance == 2 * 2 / 400


def test_forecasts_are_calibrated_unless_they_are_already(tmp_path):
    rng = np.random.default_rng(0)
    y, P = draw(600, 3, rng, power=0.4)
    calibrator = TemperatureCalibrator().fit(P, y)
    Q = calibrator.predict_proba(P)
    tolerance = 2 * 3 / 600
    of_classes = CalibrationMonitor(range(3), tolerance=tolerance)
    expected = of_classes.update(y, Q).evidence
    assert CalibrationMonitor(calibrator).update(y, P).evidence == expected
    monitor = CalibrationMonitor(calibrator)
    assert monitor.update(y, Q, calibrated=True).evidence == expected
    monitor.save(tmp_path / "state.json")
    loaded = CalibrationMonitor.load(tmp_path / "state.json", calibrator)
    assert loaded.update(y, P).evidence == expected
    loaded = CalibrationMonitor.load(tmp_path / "state.json")
    with pytest.raises(InputError, match="P: the monitor was loaded without its calibrator; load"):
        loaded.update(y, P)
    assert loaded.update(y, Q, calibrated=True).evidence == expected
    for other in (TemperatureCalibrator().fit(P[:300], y[:300]), range(3)):
        with pytest.raises(InputError, match="calibrator: is not the one that"):
            CalibrationMonitor.load(tmp_path / "state.json", other)
    of_classes.save(tmp_path / "classes.json")
    assert CalibrationMonitor.load(tmp_path / "classes.json").update(y, Q).evidence == expected


@pytest.mark.slow
def test_no_alarm_without_drift_after_a_fit_to_few_rows():
    """With a tolerance of 0, 70 to 78 % of such streams raise an alarm."""
    alarms = {"default": 0, "none": 0}
    for seed in range(8):
        rng = np.random.default_rng(seed)
        y, Q = draw(500, 2, rng, power=0.7)
        calibrator = AutoCalibrator(random_state=0).fit(Q, y)
        monitors = {
            "default": CalibrationMonitor(calibrator),
            "none": CalibrationMonitor(calibrator, tolerance=0.0),
        }
        for _ in range(40):
            y, Q = draw(500, 2, rng, power=0.7)
            for monitor in monitors.values():
                monitor.update(y, Q)
        for name, monitor in monitors.items():
            alarms[name] += monitor.alarm_ is not None
    assert alarms["none"] >= 3
    assert alarms["default"] <= 1


def test_batches_are_counted_once(tmp_path):
    y, Q = draw(50, 2, np.random.default_rng(0))
    one = CalibrationMonitor([0, 1])
    one.update(y, Q, batch="monday")
    evidence = one.evidence_
    with pytest.raises(InputError, match="batch: 'monday' was counted on 20"):
        one.update(y, Q, batch="monday")
    assert (one.totals.rows, one.evidence_) == (50, evidence)
    one.update(y, Q, batch="tuesday")
    one.save(tmp_path / "state.json")
    found = CalibrationMonitor.load(tmp_path / "state.json")
    assert list(found.seen_) == ["monday", "tuesday"]


@given(st.integers(0, 10**6))
def test_names_of_rows_do_not_depend_on_their_order(seed):
    rng = np.random.default_rng(seed)
    y, Q = draw(20, 3, rng)
    order = rng.permutation(20)
    name = hash_rows(Q, y).tolist()
    assert name == hash_rows(Q[order], y[order]).tolist()
    assert name == (hash_rows(Q[:7], y[:7]) + hash_rows(Q[7:], y[7:])).tolist()
    assert name != hash_rows(Q, (y + 1) % 3).tolist()
    assert name != hash_rows(Q, np.roll(y, 1)).tolist() or (y == y[0]).all()
    assert name != hash_rows(Q[1:], y[1:]).tolist()


def test_batches_of_a_stream_add_up():
    rng = np.random.default_rng(0)
    y, Q = draw(150_000, 3, rng)
    whole = CalibrationMonitor(range(3))
    parts = CalibrationMonitor(range(3))
    expected = Alternatives(3).log_ratios(Q, y).sum(axis=0)
    sums = [
        BatchSums.of(Q[rows], y[rows], parts.alternatives)
        for rows in np.split(np.arange(150_000), [7, 9])
    ]
    np.testing.assert_allclose(sum(sums[1:], start=sums[0]).log_ratios, expected, rtol=1e-9)
    report = parts.add(sum(sums[1:], start=sums[0]))
    np.testing.assert_allclose(report.evidence, whole.update(y, Q).evidence, rtol=1e-9)
    assert parts.totals.rows == whole.totals.rows == 150_000


def test_a_state_that_is_too_large_is_not_parsed(tmp_path):
    path = tmp_path / "state.json"
    with path.open("wb") as file:
        file.truncate(2**26)
    with pytest.raises(InputError, match="larger than 33,554,432 bytes"):
        CalibrationMonitor.load(path)


def test_bad_input():
    with pytest.raises(InputError, match="calibrator: is"):
        CalibrationMonitor(["a", "a"])
    with pytest.raises(InputError, match=r"confidence: is 1\.5"):
        CalibrationMonitor([0, 1], confidence=1.5)
    with pytest.raises(InputError, match="tolerance: is -1"):
        CalibrationMonitor([0, 1], tolerance=-1)
    monitor = CalibrationMonitor([0, 1])
    with pytest.raises(InputError, match="y"):
        monitor.update([0, 2], [0.1, 0.2])
    with pytest.raises(InputError, match=r"P: row 1 is 1\.2"):
        monitor.update([0, 1], [0.1, 1.2])


def test_calibration_error_of_batches_and_of_all_rows():
    rng = np.random.default_rng(0)
    monitor = CalibrationMonitor(range(3))
    batches = [draw(400, 3, rng, odds=2.0) for _ in range(4)]
    reports = [monitor.update(y, Q) for y, Q in batches]
    assert all(r.error_low <= r.calibration_error <= r.error_high for r in reports)
    whole = CalibrationMonitor(range(3))
    y, Q = (np.concatenate(part) for part in zip(*batches, strict=True))
    expected = whole.update(y, Q)
    found = monitor.report()
    for name in ("calibration_error", "error_low", "error_high"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name))
    assert found.error_low > 0
    history = monitor.history_
    assert history["rows"].tolist() == [400, 800, 1200, 1600]
    assert history["calibration_error"][0] == reports[0].calibration_error


def sure(n, rng, power=1.0):
    """Forecasts of three classes, most of them sure, and outcomes. See `draw`."""
    Q = rng.dirichlet(np.full(3, 0.2), size=n)
    truth = Q**power
    truth /= truth.sum(axis=1, keepdims=True)
    return (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), Q


@pytest.fixture(scope="module")
def rule():
    return acceptance_rule(*sure(4000, np.random.default_rng(0)), max_error=0.06)


def test_the_promise_of_a_rule_is_watched(rule):
    rng = np.random.default_rng(1)
    monitor = CalibrationMonitor(range(3), rule=rule)
    promise = monitor.promise_
    assert promise is not None
    wrong = accepted = 0
    for day in range(20):
        y, Q = sure(300, rng, power=1.0 if day < 10 else 0.4)
        monitor.update(y, Q)
        chosen = rule.accept(Q)
        accepted += chosen.sum()
        wrong += (Q.argmax(axis=1) != y)[chosen].sum()
        if day == 9:
            assert promise.alarm is None
            assert str(promise).startswith("There is no evidence against the promise of 6 %")
    assert promise.accepted.rows == accepted
    assert promise.accepted.wrong == wrong
    assert promise.alarm is not None
    assert promise.alarm > 3000
    assert str(promise).startswith("The promise of 6 % no longer holds")


def test_ratios_have_mean_one_at_the_limit(rule):
    Q = np.array([[0.99, 0.005, 0.005]])
    right, wrong = (
        np.exp(Accepted.of(rule, Q, np.array([y], np.uint8)).log_ratios) for y in (0, 1)
    )
    np.testing.assert_allclose(0.94 * right + 0.06 * wrong, 1)
    assert (right < 1).all()
    refused = Accepted.of(rule, np.array([[0.4, 0.3, 0.3]]), np.array([2], np.uint8))
    assert not refused.log_ratios.any()


@pytest.mark.slow
def test_false_alarms_about_promises_are_rare(rule):
    """Accepted rows are wrong as often as the limit allows."""
    rng = np.random.default_rng(0)
    Q = np.tile([0.99, 0.005, 0.005], (40, 1))
    alarms = 0
    for _ in range(300):
        promise = Promise(rule)
        for _ in range(15):
            promise.add(Accepted.of(rule, Q, (rng.random(40) < 0.06).view(np.uint8)), 0, np.log(20))
        alarms += promise.alarm is not None
    assert alarms <= 300 * 0.05 + 2 * np.sqrt(300 * 0.05 * 0.95)


def test_promises_are_saved(tmp_path, rule):
    rng = np.random.default_rng(1)
    days = [sure(200, rng, power=0.5) for _ in range(6)]
    whole = CalibrationMonitor(range(3), rule=rule)
    parts = CalibrationMonitor(range(3), rule=rule)
    for y, Q in days:
        whole.update(y, Q)
        parts.save(tmp_path / "state.json")
        parts = CalibrationMonitor.load(tmp_path / "state.json")
        parts.update(y, Q)
    assert str(parts.promise_) == str(whole.promise_)
    assert "alarm after" in str(whole.promise_)
    state = json.loads((tmp_path / "state.json").read_text())
    state["promise"]["rule"]["rule"]["n_rows"] = 5
    (tmp_path / "state.json").write_text(json.dumps(state))
    with pytest.raises(InputError, match="checksum: does not match the content"):
        CalibrationMonitor.load(tmp_path / "state.json")


def test_rules_that_cannot_be_watched(rule):
    y, Q = sure(500, np.random.default_rng(0))
    with pytest.raises(InputError, match=r"rule: has the classes \[0, 1, 2\]"):
        CalibrationMonitor(["a", "b", "c"], rule=rule)
    with pytest.raises(InputError, match="rule: is float"):
        CalibrationMonitor(range(3), rule=0.5)  # type: ignore[arg-type]
    scored = acceptance_rule(y, Q, max_error=0.3, score=Q[:, 0])
    with pytest.raises(InputError, match="which the monitor does not see"):
        CalibrationMonitor(range(3), rule=scored)
