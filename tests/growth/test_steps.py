import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from isoroc._counts import BinaryCounts
from isoroc._growth import isotonic_steps, venn_abers_steps
from strategies import binary_data, isotonic_oracle


def counts_of(scores, y, weights):
    return BinaryCounts.from_arrays(scores, y.astype(np.uint8), weights)


def at(cuts, values, scores):
    """A step function by its definition: the value after all cuts below the score."""
    return np.array([values[sum(cut < s for cut in cuts)] for s in scores])


def between(scores):
    """The scores, what lies just beside them, between them and beyond them."""
    distinct = np.unique(scores)
    beside = [np.nextafter(distinct, -np.inf), np.nextafter(distinct, np.inf)]
    middle = distinct[:-1] / 2 + distinct[1:] / 2
    return np.concatenate([distinct, *beside, middle, [-1e305, 1e305]])


@given(binary_data(max_rows=20))
def test_without_smoothing_it_is_isotonic_regression(data):
    scores, y, weights = data
    cuts, values = isotonic_steps(counts_of(*data), np.zeros(2))
    expected = np.array(isotonic_oracle(scores, y, weights), dtype=float)
    np.testing.assert_allclose(at(cuts, values, scores), expected, atol=1e-12)


@given(binary_data(), st.floats(0.01, 10), st.floats(0.01, 10))
def test_smoothed_values_rise_and_are_those_of_their_rows(data, a0, a1):
    scores, y, weights = data
    cuts, values = isotonic_steps(counts_of(*data), np.array([a0, a1]))
    assert len(values) == len(cuts) + 1
    assert (np.diff(values) > 0).all()
    w = np.ones(len(y)) if weights is None else weights
    for i, value in enumerate(values):
        rows = np.searchsorted(cuts, scores) == i
        expected = (w[rows] @ y[rows] + a1) / (w[rows].sum() + a0 + a1)
        np.testing.assert_allclose(value, expected)


@given(binary_data(max_rows=8), st.sampled_from([0.5, 1.0, 3.0]))
def test_venn_abers_is_isotonic_regression_with_one_row_more(data, extra):
    scores, y, weights = data
    weights = np.ones(len(y)) if weights is None else weights
    cuts, lower, upper = venn_abers_steps(counts_of(*data), extra)
    new = between(scores)
    for values, label in ((lower, 0), (upper, 1)):
        expected = [
            isotonic_oracle(np.append(scores, s), np.append(y, label), np.append(weights, extra))[
                -1
            ]
            for s in new
        ]
        np.testing.assert_allclose(at(cuts, values, new), np.array(expected, float), atol=1e-12)


@given(binary_data())
def test_venn_abers_intervals_rise_and_hold_the_isotonic_value(data):
    scores, _, _ = data
    cuts, lower, upper = venn_abers_steps(counts_of(*data))
    assert (np.diff(lower) >= 0).all()
    assert (np.diff(upper) >= 0).all()
    assert (lower < upper).all()
    isotonic = at(*isotonic_steps(counts_of(*data), np.zeros(2)), scores)
    assert (at(cuts, lower, scores) <= isotonic + 1e-12).all()
    assert (at(cuts, upper, scores) >= isotonic - 1e-12).all()
