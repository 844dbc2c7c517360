"""OnlineCalibrator: the bound on its regret, decay, rows of any age, and its state."""

import datetime as dt
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isoroc
from isoroc import (
    InputError,
    IsotonicCalibrator,
    MonotoneCalibrator,
    OnlineCalibrator,
    SplineCalibrator,
    TemperatureCalibrator,
)
from isoroc._core.ledger import Ledger
from isoroc._counts import DecayedCounts
from isoroc._input import check_sample
from isoroc._maps import IdentityMap
from strategies import labelled_forecasts
from zoo import assert_same

few = settings(max_examples=max(settings().max_examples // 4, 1))


def log_loss(Q, y):
    """Total log loss, with scikit-learn's least probability."""
    return -np.log(np.maximum(Q[np.arange(len(y)), y], np.finfo(float).eps)).sum()


def rows(rng, n, K=2, power=1.0):
    P = rng.dirichlet(np.ones(K), n)
    truth = P**power / (P**power).sum(axis=1, keepdims=True)
    return P, (rng.random((n, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)


# The bound


@st.composite
def losses_in_batches(draw, most=5):
    """Losses of each row (n, M) in batches, from equal ones to impossible outcomes."""
    M = draw(st.integers(2, 4))
    loss = st.sampled_from([0.0, 0.1, 0.7, 3.0, 36.0])
    rows = st.lists(st.lists(loss, min_size=M, max_size=M), min_size=1, max_size=most)
    return [np.array(batch) for batch in draw(st.lists(rows, min_size=1, max_size=8))]


def play(batches, delay, share):
    """Ledger of a mixture that forecasts all rows of a batch with the weights before it."""
    ledger = Ledger.begin(batches[0].shape[1], delay)
    for batch in batches:
        served = -np.log(np.exp(-batch) @ ledger.weights).sum()
        n = len(batch)
        ledger = ledger.add(batch.sum(axis=0), served, n, share, weight=n, late=False)
    return ledger


@given(losses_in_batches(), st.sampled_from([0.0, 0.01, 0.3]))
def test_the_bound_of_forecasts_that_wait_is_known_in_advance(batches, share):
    """Up to D + 1 rows at a time: (D + 1) ln M, and a known term for the fixed share."""
    delay = max(map(len, batches)) - 1
    ledger = play(batches, delay, share)
    M = len(ledger.losses)
    regret = ledger.served - np.concatenate(batches).sum(axis=0).min()
    sharing = -len(batches) * math.log(1 - share + share / M)
    assert regret <= (delay + 1) * (math.log(M) + sharing) + 1e-9
    assert ledger.bound.nats == pytest.approx((delay + 1) * (math.log(M) + sharing), abs=1e-9)
    assert "whatever the data" in str(ledger.bound)
    assert float(ledger.bound) == ledger.bound.nats


@given(losses_in_batches(), st.integers(0, 6), st.sampled_from([0.0, 0.01, 0.3]))
def test_the_bound_holds_for_any_number_of_waiting_forecasts(batches, delay, share):
    ledger = play(batches, delay, share)
    totals = np.concatenate(batches).sum(axis=0)
    np.testing.assert_allclose(ledger.losses, totals)
    assert ledger.served - totals.min() <= float(ledger.bound) + 1e-9


@given(losses_in_batches(), st.sampled_from([0.01, 0.3]))
def test_the_bound_against_the_best_sequence_of_members(batches, share):
    delay = max(map(len, batches)) - 1
    ledger = play(batches, delay, share)
    best = batches[0].sum(axis=0)[None]  # by the number of changes, and the last member
    for batch in batches[1:]:
        switched = np.vstack(
            [np.full(best.shape[1], np.inf), np.repeat(best.min(axis=1)[:, None], best.shape[1], 1)]
        )
        best = np.minimum(np.vstack([best, np.full(best.shape[1], np.inf)]), switched)
        best = best + batch.sum(axis=0)
    for changes, loss in enumerate(best.min(axis=1)):
        assert (
            ledger.served - loss <= float(ledger.bound) + changes * ledger.bound.per_change + 1e-9
        )


def test_an_adversary_needs_the_delay():
    """Two members that are right in turns: without a delay, waiting costs ever more."""
    batches = [np.outer(np.ones(100), [9.0, 0.0][:: 1 - 2 * (b % 2)]) for b in range(20)]
    fast = play(batches, 0, 0.0)
    slow = play(batches, 99, 0.0)
    best = fast.losses.min()
    limit = 100 * math.log(2)
    assert fast.served - best > 5 * limit
    assert fast.served - best <= float(fast.bound)
    assert "waiting for labels has cost" in str(fast.bound)
    assert slow.served - best <= float(slow.bound) == pytest.approx(limit)


@few
@given(
    st.lists(labelled_forecasts(max_classes=3, max_rows=20), min_size=1, max_size=5),
    st.sampled_from([0, 19]),
    st.integers(0, 2),
)
def test_no_stream_exceeds_the_bound(batches, delay, wait):
    """Losses of forecasts as they were served, computed apart from the calibrator."""
    K = batches[0][0].shape[1]
    batches = [(P, y) for P, y, _ in batches if P.shape[1] == K]
    calibrator = OnlineCalibrator(
        calibrator=IsotonicCalibrator(), half_lives=(None, 10), delay=delay, refit_every=1
    )
    served = []
    total = 0.0
    losses = np.zeros(3)
    for b in range(len(batches) + wait):
        if b < len(batches):
            state = getattr(calibrator, "map_", None)
            P, y = batches[b]
            Qs = [P] * 3 if state is None else [m.apply(P) for m in state.members]
            losses += [log_loss(Q, y) for Q in Qs]
            total += log_loss(P if state is None else calibrator.predict_proba(P), y)
            served.append(state)
        if b >= wait:
            P, y = batches[b - wait]
            state = served[b - wait]
            if state is None and hasattr(calibrator, "map_"):
                state = IdentityMap(kind=calibrator.map_.kind)
            state = None if state is getattr(calibrator, "map_", None) else state
            calibrator.partial_fit(P, y, classes=range(K), served=state)
    np.testing.assert_allclose(calibrator.ledger_.losses, losses, rtol=1e-9)
    assert total - losses.min() <= float(calibrator.regret_bound_) + 1e-9


# Decay and cells


def test_members_are_those_of_decayed_rows():
    rng = np.random.default_rng(0)
    batches = [rows(rng, 60, 3, power) for power in (1.0, 0.5, 0.5, 2.0)]
    calibrator = OnlineCalibrator(half_lives=(None, 100), refit_every=1)
    for P, y in batches:
        calibrator.partial_fit(P, y)
    P, y = (np.concatenate(part) for part in zip(*batches, strict=True))
    ages = np.repeat([180, 120, 60, 0], 60)
    for member, half_life in zip(calibrator.members_[1:], (np.inf, 100), strict=True):
        weights = 0.5 ** (ages / half_life)
        alone = MonotoneCalibrator().fit(P, y, sample_weight=weights)
        np.testing.assert_allclose(member.predict_proba(P), alone.predict_proba(P), atol=1e-4)


@pytest.mark.parametrize(("K", "tolerance"), [(2, 0.005), (3, 0.01), (10, 0.05)])
def test_cells_are_bounded_and_forget_little(K, tolerance):
    """Many rows: mean absolute difference from the forecasts of a fit to all rows."""
    rng = np.random.default_rng(K)
    batches = [rows(rng, 2000, K, 0.6) for _ in range(8)]
    calibrator = OnlineCalibrator(
        calibrator=SplineCalibrator(), half_lives=(None, 2000), max_cells=2000, refit_every=16_000
    )
    for P, y in batches:
        calibrator.partial_fit(P, y)
    P, y = (np.concatenate(part) for part in zip(*batches, strict=True))
    ages = np.repeat(2000 * np.arange(8)[::-1], 2000)
    for m, half_life in enumerate((np.inf, 2000)):
        counts = calibrator.counts_[m]
        assert len(counts) < 2200
        weights = 0.5 ** (ages / half_life)
        assert counts.class_weights.sum() == pytest.approx(weights.sum(), rel=0.01)
        alone = SplineCalibrator().fit(P, y, sample_weight=weights).predict_proba(P[:500])
        found = calibrator.members_[m + 1].predict_proba(P[:500])
        assert np.abs(found - alone).mean() < tolerance


def test_drawn_cells_keep_their_weight_on_average():
    rng = np.random.default_rng(0)
    P, y = rows(rng, 300, 6)
    sample = check_sample(P, y, rng.exponential(size=300) ** 2, range(6))
    full = DecayedCounts.none(math.inf, 6, 6).add(sample, np.zeros(300), 0.0, 300, 0)
    drawn = [full.cells.thinned(100, seed) for seed in range(400)]
    sizes = [len(cells) for cells in drawn]
    assert np.mean(sizes) == pytest.approx(100, rel=0.02)
    means = np.mean([cells.class_weights.sum(axis=0) for cells in drawn], axis=0)
    np.testing.assert_allclose(means, full.class_weights.sum(axis=0), rtol=0.05)
    twice = [cells.thinned(50, seed + 1000) for seed, cells in enumerate(drawn)]
    means = np.mean([cells.class_weights.sum(axis=0) for cells in twice], axis=0)
    np.testing.assert_allclose(means, full.class_weights.sum(axis=0), rtol=0.08)


# Rows of any age


def test_rows_with_times_may_come_in_any_order():
    rng = np.random.default_rng(0)
    P, y = rows(rng, 400, 2, 0.5)
    days = rng.integers(0, 50, 400)
    dates = np.datetime64("2026-01-01") + days
    whole, parts = (
        OnlineCalibrator(half_lives=(None, 10), refit_every=400, share=0.0) for _ in range(2)
    )
    whole.partial_fit(P, y, time=days)
    for part in np.array_split(rng.permutation(400), 4):
        parts.partial_fit(P[part], y[part], time=dates[part])
    np.testing.assert_allclose(parts.predict_proba(P), whole.predict_proba(P), atol=1e-6)
    weights = 0.5 ** ((days.max() - days) / 10)
    expected = np.bincount(y, weights)
    np.testing.assert_allclose(whole.counts_[1].class_weights.sum(axis=0), expected)
    np.testing.assert_allclose(parts.counts_[1].class_weights.sum(axis=0), expected)
    with pytest.raises(InputError, match="time: is missing, but the first batch had one"):
        parts.partial_fit(P, y)
    with pytest.raises(InputError, match="time: row 1 is not a finite number or date"):
        parts.partial_fit(P[:2], y[:2], time=np.array(["2026-01-01", "NaT"], "datetime64[D]"))
    with pytest.raises(InputError, match="time: cannot be read"):
        parts.partial_fit(P[:2], y[:2], time=["monday", "tuesday"])
    with pytest.raises(InputError, match="time: 1 rows, but"):
        parts.partial_fit(P[:2], y[:2], time=[3.0])
    without = OnlineCalibrator().partial_fit(P, y)
    with pytest.raises(InputError, match="time: is new; pass it in all calls or in none"):
        without.partial_fit(P, y, time=3)


def test_times_are_numbers_or_dates():
    """Dates count in days, in UTC if they have a time zone. Other types would count as 1970."""
    P, y = rows(np.random.default_rng(0), 4)

    def clock(time):
        calibrator = OnlineCalibrator(half_lives=(None, 1)).partial_fit(P, y, time=time)
        return calibrator.ledger_.clock, calibrator.counts_[1].class_weights.sum()

    naive = [dt.datetime(2026, 1, 1, hour) for hour in range(4)]  # noqa: DTZ001
    zone = dt.timezone(dt.timedelta(hours=2))
    aware = [each.replace(tzinfo=zone) for each in naive]
    day = (dt.date(2026, 1, 1) - dt.date(1970, 1, 1)).days
    weight = sum(0.5 ** (hours / 24) for hours in range(4))
    for times, hour in (
        (naive, 3),
        ([each.isoformat(" ") for each in naive], 3),
        (aware, 1),
        ([each.isoformat() for each in aware], 1),
    ):
        assert clock(times) == pytest.approx((day + hour / 24, weight))
    assert clock(dt.date(2026, 1, 1)) == (day, 4)
    assert clock(np.array([0, 1, 1, 0.5], dtype=object)) == pytest.approx((1, 2 + 0.5 + 0.5**0.5))
    for other in ([True] * 4, np.arange(4).astype("timedelta64[D]")):
        with pytest.raises(InputError, match=r"time: has the type .*; expected numbers or dates"):
            clock(other)
    with pytest.raises(InputError, match="time: row 1 is not a finite number or date"):
        clock([1.0, None, 2.0, 3.0])
    with pytest.raises(InputError, match="time: cannot be read"):
        clock([dt.date(2026, 1, 1), 3, 4, 5])
    dated = OnlineCalibrator().partial_fit(P, y, time=naive)
    with pytest.raises(InputError, match=r"time: is in numbers, but .* in days; pass dates in all"):
        dated.partial_fit(P, y, time=[20454, 20455, 20456, 20457])


def test_rows_older_than_all_others_do_not_change_short_half_lives():
    rng = np.random.default_rng(0)
    calibrator = OnlineCalibrator(half_lives=(None, 5), refit_every=1)
    calibrator.partial_fit(*rows(rng, 50), time=100)
    before = calibrator.members_[2].map_
    calibrator.partial_fit(*rows(rng, 50), time=0)
    assert_same(calibrator.members_[2].map_, before)
    assert [counts.class_weights.sum() for counts in calibrator.counts_] == [100, 50]
    assert calibrator.ledger_.clock == 100


def test_the_order_of_the_rows_of_a_batch_does_not_matter():
    rng = np.random.default_rng(0)
    batches = [rows(rng, 50, 3, 0.5) for _ in range(3)]
    first, second = (OnlineCalibrator(refit_every=50) for _ in range(2))
    for P, y in batches:
        order = rng.permutation(50)
        first.partial_fit(P, y)
        second.partial_fit(P[order], y[order])
    np.testing.assert_allclose(first.weights_, second.weights_, rtol=1e-9)
    np.testing.assert_allclose(first.predict_proba(P), second.predict_proba(P), atol=1e-6)


def test_rows_that_come_twice_count_twice_unless_the_batch_has_a_name():
    P, y = rows(np.random.default_rng(0), 50)
    calibrator = OnlineCalibrator().partial_fit(P, y, batch="monday")
    before = calibrator.map_
    with pytest.raises(InputError, match=r"batch: 'monday' was counted on 20.*; count the rows"):
        calibrator.partial_fit(P, y, batch="monday")
    assert calibrator.map_ is before
    assert calibrator.n_rows_seen_ == 50
    assert calibrator.partial_fit(P, y, batch="tuesday").partial_fit(P, y).n_rows_seen_ == 150
    assert [*calibrator.seen_] == ["monday", "tuesday"]


def test_soft_labels_and_weights_count_as_in_fit():
    rng = np.random.default_rng(0)
    P, y = rows(rng, 200, 3)
    soft = np.eye(3)[y] * 0.8 + 0.2 / 3
    weights = rng.integers(1, 4, 200)
    for target in (y, soft):
        at_once = OnlineCalibrator().fit(
            P, target, labels=range(3), sample_weight=weights, weighting="frequency"
        )
        online = OnlineCalibrator().partial_fit(
            P, target, classes=range(3), sample_weight=weights, weighting="frequency"
        )
        assert_same(at_once.counts_, online.counts_)
        assert_same(at_once.ledger_, online.ledger_)
        assert online.summary_["weight"] == pytest.approx(weights.sum())
        np.testing.assert_array_equal(at_once.predict_proba(P), online.predict_proba(P))
    with pytest.raises(InputError, match="clusters: decayed counts hold no clusters"):
        OnlineCalibrator().fit(P, y, clusters=np.arange(200) // 2)


def test_few_rows_and_single_classes_are_waited_for():
    calibrator = OnlineCalibrator(refit_every=20)
    for row in range(30):
        calibrator.partial_fit([[0.3, 0.7]], [row % 10 == 0], classes=[False, True])
        is_fitted = row >= 19
        assert isinstance(calibrator.map_.members[1], IdentityMap) is not is_fitted
    alone = OnlineCalibrator(refit_every=1).partial_fit([0.3, 0.4], [0, 0], classes=[0, 1])
    np.testing.assert_allclose(alone.predict_proba([0.3]), [[0.7, 0.3]])
    alone.partial_fit([0.3, 0.4], [1, 1])
    assert alone.predict_proba([0.3])[0, 1] > 0.3


def test_the_first_rows_may_lack_classes_if_these_are_given():
    P = np.random.default_rng(0).dirichlet(np.ones(3), 6)
    for y, n in (([0] * 6, 1), ([0, 1] * 3, 2)):
        message = f"y: {n} of the 3 classes .* with classes=, 3 labels in the order of the columns"
        with pytest.raises(InputError, match=message):
            OnlineCalibrator().partial_fit(P, y)
        calibrator = OnlineCalibrator().partial_fit(P, y, classes=[0, 1, 2])
        assert calibrator.partial_fit(P, [2] * 6).n_rows_seen_ == 12
    with pytest.raises(InputError, match="classes: 3 entries; expected a list of 3 distinct"):
        OnlineCalibrator().partial_fit(P, y, classes=[0, 0, 1])
    certain = np.eye(3)[[0] * 6]
    soft = OnlineCalibrator().partial_fit(P, certain).partial_fit(P, certain * 0.7 + 0.1)
    assert soft.partial_fit(P[:1], np.eye(3)[[1]]).n_rows_seen_ == 13
    with pytest.raises(InputError, match="y: one class only, 0"):
        OnlineCalibrator().fit(P, certain, labels=[0, 1, 2])


# What it says


def test_weights_tell_when_the_forecasts_changed():
    rng = np.random.default_rng(0)
    calibrator = OnlineCalibrator(calibrator=TemperatureCalibrator(), half_lives=[None, 300])
    for day in range(20):
        calibrator.partial_fit(*rows(rng, 100, 2, 1.0 if day < 10 else 0.2))
        text = calibrator.describe()
        if day < 10:
            assert "changed" not in text
        elif day > 12:
            ago = 100 * (day - 9)  # the weights follow a batch or two later
            assert any(f"changed about {ago - late:,} rows ago" in text for late in (0, 100, 200))
    history = calibrator.history_
    names = ["uncalibrated", "all rows", "half-life 300"]
    assert list(history) == ["rows", "served", *names, *(f"weight of {name}" for name in names)]
    assert history["rows"].tolist() == list(range(100, 2100, 100))
    weights = np.column_stack([history[f"weight of {name}"] for name in names])
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    np.testing.assert_array_equal(weights[-1], calibrator.weights_)
    assert history["served"].sum() * 100 == pytest.approx(calibrator.ledger_.served)


@pytest.mark.parametrize("half_lives", [(None, 300), (4000, 1000), (1000,)])
def test_a_constant_error_is_no_change(half_lives):
    """Also if no member keeps all rows: the longest half-life then stands for no change."""
    rng = np.random.default_rng(0)
    calibrator = OnlineCalibrator(calibrator=TemperatureCalibrator(), half_lives=half_lives)
    for _ in range(8):
        calibrator.partial_fit(*rows(rng, 100, 2, 0.3))
        assert calibrator.describe() == "There is no clear sign of a change."
    assert calibrator.weights_[0] < 0.03  # its part of the fixed share


def test_the_history_and_the_names_are_bounded(monkeypatch):
    monkeypatch.setattr("isoroc._calibrators.online.MOST_BATCHES", 3)
    monkeypatch.setattr("isoroc._calibrators.online.MOST_NAMES", 2)
    rng = np.random.default_rng(0)
    calibrator = OnlineCalibrator(calibrator=TemperatureCalibrator(), half_lives=[None, 50])
    for b in range(5):
        calibrator.partial_fit(*rows(rng, 20), batch=str(b))
    assert calibrator.history_["rows"].tolist() == [60, 80, 100]
    assert [*calibrator.seen_] == ["3", "4"]
    assert calibrator.ledger_.n_batches == 5


def test_a_member_that_cannot_be_fitted_keeps_its_map():
    class Failing(TemperatureCalibrator):
        def _fit(self, sample):
            if sample.row_weights().sum() > 150:
                raise FloatingPointError("no optimum")
            return super()._fit(sample)

    rng = np.random.default_rng(0)
    calibrator = OnlineCalibrator(calibrator=Failing(), half_lives=[None, 50])
    before = calibrator.partial_fit(*rows(rng, 100)).map_.members
    with pytest.warns(RuntimeWarning, match="the member all rows keeps its map: no optimum"):
        calibrator.partial_fit(*rows(rng, 100))
    after = calibrator.map_.members
    assert after[1] is before[1]
    assert after[2] is not before[2]
    assert calibrator.n_rows_seen_ == 200


# State


def test_a_loaded_state_goes_on_as_if_nothing_had_happened(tmp_path):
    rng = np.random.default_rng(0)
    batches = [rows(rng, 120, 3, 0.5) for _ in range(4)]
    straight = OnlineCalibrator(half_lives=[None, 200], max_cells=150)
    broken = OnlineCalibrator(half_lives=[None, 200], max_cells=150)
    for b, (P, y) in enumerate(batches):
        straight.partial_fit(P, y, batch=str(b))
        broken.partial_fit(P, y, batch=str(b))
        broken.save(tmp_path / "state.json")
        broken = isoroc.load(tmp_path / "state.json")
        straight.seen_ = broken.seen_ = {}  # which have times
        assert_same(straight, broken)
    served = isoroc.load_map(tmp_path / "state.json")
    np.testing.assert_array_equal(served.predict_proba(P), straight.predict_proba(P))


def test_a_damaged_state_is_refused(tmp_path):
    calibrator = OnlineCalibrator().fit(*rows(np.random.default_rng(0), 50))
    for name, value in {
        "counts_": calibrator.counts_[:2],
        "half_lives_": calibrator.half_lives_[::-1],
        "history_": isoroc.Table(),
        "ledger_": Ledger.begin(2, 0),
    }.items():
        broken = isoroc.load(_saved(calibrator, tmp_path))
        setattr(broken, name, value)
        with pytest.raises(isoroc.ModelFileError, match=r"model\.state"):
            isoroc.load(_saved(broken, tmp_path))


def _saved(calibrator, folder):
    calibrator.save(folder / "state.json")
    return folder / "state.json"


# Errors


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"half_lives": ()}, r"half_lives: is \(\); expected different half-lives above 0"),
        ({"half_lives": "100"}, "half_lives: is '100'; expected different half-lives above 0"),
        ({"half_lives": 100}, "half_lives: is 100; expected different half-lives above 0"),
        ({"half_lives": (100, 100)}, "half_lives: is .*; expected different half-lives above 0"),
        ({"half_lives": (0,)}, "half_lives: is .*; expected different half-lives above 0"),
        ({"half_lives": (-1,)}, "half_lives: is -1; expected a finite number >= 0"),
        ({"share": 1.0}, "share: is 1.0; expected 0 <= share < 1"),
        ({"delay": -1}, "delay: is -1; expected an int >= 0"),
        ({"refit_every": 0}, "refit_every: is 0; expected an int >= 1"),
        ({"max_cells": 0}, "max_cells: is 0; expected an int >= 2"),
        ({"calibrator": "spline"}, "calibrator: is 'spline'; expected one that is fitted to cells"),
        ({"calibrator": isoroc.AutoCalibrator()}, "calibrator: AutoCalibrator needs folds"),
        ({"calibrator": OnlineCalibrator()}, "calibrator: is OnlineCalibrator"),
    ],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises(InputError, match=message):
        OnlineCalibrator(**parameters).partial_fit([0.2, 0.7], [0, 1])


def test_later_batches_must_fit_the_first():
    P, y = rows(np.random.default_rng(0), 50, 3)
    calibrator = OnlineCalibrator().partial_fit(P, y)
    for arguments, message in (
        (((P[:, :2] / P[:, :2].sum(axis=1, keepdims=True), y), {}), "P: has 2 columns, but"),
        (((P, y + 1), {}), "y: row . is 3"),
        (((P, y), {"classes": [2, 1, 0]}), "classes: are not the classes of the first batch, 0, 1"),
        (((P, y), {"unit": "logit"}), 'unit: is "logit", but in the first batch it was "prob'),
        (
            ((P, y), {"served": TemperatureCalibrator().fit(P, y)}),
            "served: is not an earlier state",
        ),
        (((P, y), {"served": 3}), "served: is not an earlier state with 6 members"),
    ):
        before = calibrator.map_
        with pytest.raises(InputError, match=message):
            calibrator.partial_fit(*arguments[0], **arguments[1])
        assert calibrator.map_ is before
    assert calibrator.n_rows_seen_ == 50
