"""Risk and coverage: areas and curves against direct computations, and their intervals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoroc.decisions import risk_coverage


def draw(n, K=3, seed=0, digits=15):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(K, 0.3), n)
    y = (rng.random((n, 1)) > P.cumsum(axis=1)[:, :-1]).sum(axis=1)
    P = P.round(digits)
    return y, P / P.sum(axis=1, keepdims=True)


def area_by_hand(top, wrong, weights, n=200_000):
    """Mean error of the surest share u of rows over a fine grid of u. Ties are spread evenly."""
    order = np.argsort(-top, kind="stable")
    share = np.cumsum(weights[order]) / weights.sum()
    errors = np.cumsum((weights * wrong)[order]) / weights.sum()
    last = np.append(np.diff(top[order]) != 0, True)
    u = (np.arange(n) + 0.5) / n
    return np.mean(np.interp(u, np.append(0, share[last]), np.append(0, errors[last])) / u)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 15]), st.booleans())
def test_the_area_is_the_mean_error_over_all_shares(seed, digits, weighted):
    y, P = draw(60, seed=seed, digits=digits)
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 4, 60) * 1.0 if weighted else np.ones(60)
    curve = risk_coverage(y, P, sample_weight=weights, labels=range(3))
    wrong = (P.argmax(axis=1) != y) * 1.0
    expected = area_by_hand(P.max(axis=1), wrong, weights)
    assert curve.area["forecasts"].value == pytest.approx(expected, abs=2e-4)
    ideal = area_by_hand(-wrong, wrong, weights)
    excess = curve.excess["forecasts"].value
    assert excess == pytest.approx(expected - ideal, abs=5e-4)
    assert curve.table["coverage"][-1] == 1
    assert curve.table["error"][-1] == pytest.approx(np.average(wrong, weights=weights))


def test_points_of_the_curve():
    y, P = draw(150)
    table = risk_coverage(y, P).table
    top = P.max(axis=1)
    wrong = P.argmax(axis=1) != y
    for threshold, coverage, error, low, high in zip(*list(table.values())[1:], strict=True):
        accepted = top >= threshold
        assert coverage == pytest.approx(accepted.mean())
        assert error == pytest.approx(wrong[accepted].mean())
        assert low <= error <= high


def test_no_errors_and_only_errors():
    P = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]])
    right = risk_coverage([0, 0, 0], P, labels=[0, 1])
    assert list(right.area["forecasts"]) == [0, 0, 0]
    wrong = risk_coverage([1, 1, 1], P, labels=[0, 1])
    assert wrong.area["forecasts"].value == pytest.approx(1)
    assert wrong.excess["forecasts"].value == pytest.approx(0)


def test_clusters_widen_intervals_and_copies_add_nothing():
    y, P = draw(300)
    one = risk_coverage(y, P)
    copies = risk_coverage(
        np.repeat(y, 4), np.repeat(P, 4, axis=0), clusters=np.repeat(np.arange(300), 4)
    )
    assert copies.area["forecasts"] == pytest.approx(one.area["forecasts"], rel=0.02)
    assert copies.table["high"][-1] == pytest.approx(one.table["high"][-1], abs=0.005)


def test_a_change_is_that_of_paired_rows():
    y, P = draw(800)
    rng = np.random.default_rng(1)
    noisy = P * rng.lognormal(0, 0.1, P.shape)
    noisy /= noisy.sum(axis=1, keepdims=True)
    curve = risk_coverage(y, P, after=noisy)
    change = curve.area["change"]
    assert change.value == pytest.approx(curve.area["after"].value - curve.area["before"].value)
    before = curve.area["before"]
    assert change.high - change.low < 0.5 * (before.high - before.low)
    assert curve.error_at(1.0) == pytest.approx(np.mean(noisy.argmax(axis=1) != y))
    assert "change, excess" in repr(curve)
    assert set(curve.frame()["of"]) == {"before", "after"}


@pytest.mark.parametrize("digits", [1, 15])
def test_intervals_of_areas_cover(digits):
    y, P = draw(200_000, digits=digits)
    truth = risk_coverage(y, P)
    covered = {"area": 0, "excess": 0}
    for seed in range(100):
        found = risk_coverage(*draw(400, seed=seed + 1, digits=digits))
        for kind in covered:
            _, low, high = getattr(found, kind)["forecasts"]
            covered[kind] += low <= getattr(truth, kind)["forecasts"].value <= high
    assert min(covered.values()) >= 89
