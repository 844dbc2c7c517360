"""Bounds of a mean loss: exact for errors, valid by betting, and consistent with their tests."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from isoroc._core.bounds import Losses, betting_p_value, certify_in_order, rows_needed


@given(st.integers(1, 60), st.data())
def test_errors_of_independent_rows_have_the_bounds_of_clopper_and_pearson(n, data):
    wrong = data.draw(st.integers(0, n))
    losses = Losses(np.r_[np.ones(wrong), np.zeros(n - wrong)])
    rows = np.ones(n, dtype=bool)
    value, low, high = losses.interval(rows, 0.9)
    expected = binomtest(wrong, n).proportion_ci(0.8, method="exact")  # 10 % on either side
    assert (value, low, high) == pytest.approx((wrong / n, expected.low, expected.high), abs=1e-9)
    limit = data.draw(st.floats(0.01, 0.99))
    exact = binomtest(wrong, n, limit, alternative="less").pvalue
    assert losses.p_value(rows, limit) == pytest.approx(exact, abs=1e-12)


def test_a_capital_grows_as_a_fair_game_allows():
    """The capital of all sequences of four losses, weighted by their chance, is 1 on average."""
    limit = 0.3
    total = 0.0
    for code in range(16):
        losses = np.array([code >> i & 1 for i in range(4)], dtype=float)
        chance = np.prod(np.where(losses > 0, limit, 1 - limit))
        shares = (np.arange(10) + 0.5) / 10
        final = np.prod(1 - np.outer(shares, (losses - limit) / (1 - limit)), axis=1).mean()
        total += chance * final
        assert betting_p_value(losses, np.ones(4), limit) <= min(1.0, 1 / final) + 1e-12
    assert total == pytest.approx(1)


@pytest.mark.parametrize("kind", ["losses", "weights", "clusters"])
def test_bets_are_lost_as_often_as_promised(kind):
    rng = np.random.default_rng(0)
    limit = 0.1
    rejected = 0
    for _ in range(1000):
        n = 150
        units = np.arange(n)
        weights = None
        if kind == "clusters":
            units = np.repeat(np.arange(50), 3)
        wrong: Any = (rng.random(n) < limit)[units] * 1.0
        if kind == "losses":
            wrong = rng.beta(0.2, 0.2 * (1 - limit) / limit, n)
        if kind == "weights":
            weights = rng.random(n)
        losses = Losses(wrong, weights, units)
        rejected += losses.p_value(np.ones(n, dtype=bool), limit) <= 0.1
    assert rejected / 1000 <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 1000)
    assert rejected > 0


@given(st.integers(0, 2**32 - 1))
def test_a_bound_is_the_lowest_limit_that_passes(seed):
    rng = np.random.default_rng(seed)
    n = 40
    losses = Losses(rng.random(n) ** 4, rng.random(n) + 0.1, rng.integers(0, 15, n))
    rows = rng.random(n) < 0.8
    value, low, high = losses.interval(rows, 0.95)
    assert low <= value <= high
    assert losses.p_value(rows, high + 1e-6) <= 0.05
    assert losses.p_value(rows, high - 1e-6) > 0.05 or high == 1


def test_weights_in_proportion_to_one_cluster_count_as_one_unit():
    losses = Losses(np.zeros(100), None, np.zeros(100, dtype=np.intp))
    rows = np.ones(100, dtype=bool)
    assert losses.p_value(rows, 0.05) > 0.5
    assert Losses(np.zeros(100)).p_value(rows, 0.05) < 0.01


def test_a_sequence_stops_at_the_first_candidate_that_fails():
    wrong = np.zeros(400)
    wrong[150:170] = 1
    losses = Losses(wrong)
    sizes = [10, 60, 100, 140, 165, 390, 400]

    def rows_of(i):
        return np.arange(400) < sizes[i]

    tested = certify_in_order(lambda i: (losses, rows_of(i)), len(sizes), 0.1, 0.9)
    # With one error 38 rows pass, so the first test is of 60 rows. At 165 rows it fails. That
    # 390 rows would pass alone does not count.
    assert tested.first == 1
    assert tested.certified[:6].tolist() == [False, True, True, True, False, False]
    assert np.isnan(tested.p_values).tolist() == [True, False, False, False, False, True, False]
    assert losses.p_value(rows_of(5), 0.1) <= 0.1 < losses.p_value(rows_of(4), 0.1)


@pytest.mark.parametrize(("n_wrong", "last"), [(26, 2), (27, 0)])
def test_a_tenth_of_the_risk_is_kept_for_all_rows(n_wrong, last):
    """The sequence ends at the second candidate. All rows pass at a tenth of the risk, or not."""
    wrong = np.zeros(400)
    wrong[50:70] = 1
    wrong[70 : 50 + n_wrong] = 1
    losses = Losses(wrong)
    sizes = [50, 80, 400]

    def case(i):
        return losses, np.arange(400) < sizes[i]

    p_value = losses.p_value(case(2)[1], 0.1)
    assert p_value <= 0.1
    assert (p_value <= 0.01) == (last == 2)
    tested = certify_in_order(case, 3, 0.1, 0.9)
    assert tested.first == 0
    assert tested.last == last
    assert not tested.certified[1]
    # After an unbroken sequence all rows have all of the risk.
    assert certify_in_order(lambda i: case(2 * i), 2, 0.1, 0.9).last == 1


def test_few_rows_leave_no_room_for_an_error():
    losses = Losses(np.zeros(80))
    sizes = [10, 30, 50, 80]

    def case(i):
        return losses, np.arange(80) < sizes[i]

    tested = certify_in_order(case, 4, 0.05, 0.9)
    assert (tested.first, tested.last) == (2, 3)  # 47 rows pass without errors, 78 with one
    assert certify_in_order(case, 2, 0.05, 0.9).last == -1


@pytest.mark.parametrize(("n", "last"), [(28, -1), (29, 1)])
def test_all_rows_have_all_of_the_risk_if_no_part_of_them_can_pass(n, last):
    """Rows without errors: .9**29 is .047, .9**28 is .052. A sequence alone needs .9**30 = .042."""
    losses = Losses(np.zeros(n))
    tested = certify_in_order(lambda i: (losses, np.arange(n) < n - 1 + i), 2, 0.1, 0.95)
    assert tested.last == last


@pytest.mark.parametrize(("error", "limit", "confidence"), [(0, 0.05, 0.95), (0.02, 0.05, 0.9)])
def test_rows_needed_are_enough(error, limit, confidence):
    n = int(rows_needed(error, limit, confidence))
    wrong = int(np.ceil(error * n))
    assert binomtest(wrong, n, limit, alternative="less").pvalue <= 1 - confidence
    fewer = int(0.8 * n)
    wrong = int(np.ceil(error * fewer))
    assert binomtest(wrong, fewer, limit, alternative="less").pvalue > 1 - confidence
    assert rows_needed(0.06, 0.05, 0.9) == np.inf
