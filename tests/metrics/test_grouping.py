from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoroc.metrics._estimation import grouping
from isoroc.metrics._estimation.grouping import (
    group_equal,
    group_numbers,
    group_quantile,
    group_uniform,
    halve_repeatedly,
    is_discrete,
    number_sorted,
    sum_classes,
    sum_rows,
)
from strategies import forecasts

ANY = st.integers(2, 5).flatmap(forecasts)


def as_array(P):
    """Two columns as scores, as in the metrics."""
    return np.ascontiguousarray(P[:, 1]) if P.shape[1] == 2 else P


def partition(group):
    """The sets of rows that share a bin."""
    return {frozenset(np.flatnonzero(group == b).tolist()) for b in np.unique(group)}


def by_key(keys):
    rows: dict[Any, list[int]] = {}
    for i, key in enumerate(keys):
        rows.setdefault(key, []).append(i)
    return {frozenset(r) for r in rows.values()}


@given(ANY)
def test_equal_forecasts_share_a_bin_and_others_do_not(P):
    P = as_array(P)
    expected = by_key(map(tuple, P.reshape(len(P), -1).tolist()))
    assert partition(group_equal(P)) == expected
    free = 1 if P.ndim == 1 else P.shape[1] - 1
    assert is_discrete(P) == (len(expected) == 1 or len(expected) ** 2 * free <= len(P))


@given(st.lists(st.integers(0, 20), min_size=1))
def test_numbers_are_grouped_as_unique_groups_them(numbers):
    keys = np.array(numbers)
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    for found, expected in zip(group_numbers(keys), (first, group), strict=True):
        np.testing.assert_array_equal(found, expected)
    values = np.sqrt(keys)
    np.testing.assert_array_equal(number_sorted(values, np.argsort(values)), group)


def test_a_collision_of_keys_is_noticed(monkeypatch):
    P = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.5, 0.25, 0.25]])
    zeros = np.zeros(len(P), dtype=np.uint64)
    monkeypatch.setattr(grouping, "hash_keys", lambda *_: zeros)
    assert partition(group_equal(P)) == {frozenset({0, 2}), frozenset({1})}


def test_positive_and_negative_zero_are_equal():
    assert len(set(group_equal(np.array([[0.0, 1.0, 0.0], [-0.0, 1.0, 0.0]])))) == 1


def test_many_rows_of_few_values_are_discrete():
    values = np.linspace(0, 1, 11)
    assert is_discrete(np.tile(values, 11))
    assert not is_discrete(np.tile(values, 10))
    late = np.append(np.zeros(700), np.linspace(0, 1, 300))  # the first rows look discrete
    assert not is_discrete(late)


@given(ANY, st.integers(1, 20))
def test_uniform_cells_have_each_coordinate_in_one_interval(P, n_bins):
    P = as_array(P)
    edges = np.linspace(0, 1, n_bins + 1)

    def interval(p):
        return next(b for b in range(n_bins) if p <= edges[b + 1] or b == n_bins - 1)

    keys = [tuple(interval(p) for p in row) for row in P.reshape(len(P), -1)]
    assert partition(group_uniform(P, n_bins)) == by_key(keys)
    if P.ndim == 1:
        assert group_uniform(P, n_bins).tolist() == [key[0] for key in keys]


@given(ANY, st.integers(1, 9), st.booleans())
def test_quantile_bins(P, n_bins, weighted):
    P = as_array(P)
    weights = np.arange(1.0, len(P) + 1) if weighted else None
    group = group_quantile(P, weights, n_bins)
    same = group_equal(P)
    assert len(np.unique(group)) <= n_bins
    for b in np.unique(same):  # equal forecasts stay together
        assert len(np.unique(group[same == b])) == 1


@given(ANY, st.integers(1, 9))
def test_quantile_bins_with_unit_weights_are_those_without_weights(P, n_bins):
    P = as_array(P)
    expected = group_quantile(P, None, n_bins)
    assert group_quantile(P, np.ones(len(P)), n_bins).tolist() == expected.tolist()


@given(ANY, st.integers(1, 9), st.integers(0, 2**32))
def test_quantile_bins_with_integer_weights_are_those_of_repeated_rows(P, n_bins, seed):
    P = as_array(P)
    times = np.random.default_rng(seed).integers(1, 4, len(P))
    repeated = group_quantile(np.repeat(P, times, axis=0), None, n_bins)
    first = np.cumsum(times) - times
    assert partition(group_quantile(P, times.astype(float), n_bins)) == partition(repeated[first])


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_quantile_bins_of_distinct_forecasts_have_equal_weight(n_classes):
    rng = np.random.default_rng(0)
    P = as_array(rng.dirichlet(np.ones(n_classes), 1000))
    sizes = np.bincount(group_quantile(P, None, 8))
    assert sizes.tolist() == [125] * 8
    weights = rng.random(1000)
    weight = np.bincount(group_quantile(P, weights, 8), weights)
    np.testing.assert_allclose(weight, weights.sum() / 8, rtol=0.05)


def test_scores_are_cut_by_weight_in_order():
    scores = np.array([0.4, 0.1, 0.2, 0.3])
    assert group_quantile(scores, np.array([1.0, 3.0, 1.0, 1.0]), 2).tolist() == [1, 0, 1, 1]


@given(ANY, st.integers(0, 4))
def test_halves_are_nested_and_even(P, n_levels):
    P = as_array(P)
    group = halve_repeatedly(P, n_levels)
    assert group.min() >= 0
    assert group.max() < 2**n_levels
    coarser = halve_repeatedly(P, max(n_levels - 1, 0))
    assert (group >> min(n_levels, 1)).tolist() == coarser.tolist()
    same = group_equal(P)
    for b in np.unique(same):
        assert len(np.unique(group[same == b])) == 1


@given(forecasts(2), st.integers(0, 5))
def test_halves_of_scores_are_those_of_a_matrix_with_one_column(P, n_levels):
    scores = as_array(P)
    expected = halve_repeatedly(scores[:, None], n_levels)
    assert halve_repeatedly(scores, n_levels).tolist() == expected.tolist()


def test_halves_of_distinct_forecasts_are_halves():
    P = np.random.default_rng(0).dirichlet(np.ones(3), 64)
    assert np.bincount(halve_repeatedly(P, 3)).tolist() == [8] * 8


def test_if_most_forecasts_equal_the_largest_the_others_are_split_off():
    P = np.array([[0.9, 0.1, 0.0]] * 5 + [[0.2, 0.4, 0.4]])
    assert halve_repeatedly(P, 1).tolist() == [1] * 5 + [0]


def test_sums():
    group = np.array([0, 2, 0])
    codes = np.array([1, 0, 1])
    weights = np.array([1.0, 2.0, 3.0])
    assert sum_classes(group, codes, 2, weights).tolist() == [[0, 4], [0, 0], [2, 0]]
    assert sum_rows(group, np.array([0.5, 1.0, 0.5]), weights).tolist() == [2, 0, 2]
    assert sum_rows(group, np.array([[1.0, 0.0]] * 3), None).tolist() == [[2, 0], [0, 0], [1, 0]]
