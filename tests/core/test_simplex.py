import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from isoroc._core import simplex
from strategies import forecasts


@given(st.data(), st.integers(3, 6))
def test_regions_partition_and_ties_go_to_the_lowest_index(data, n_classes):
    P = data.draw(forecasts(n_classes))
    gamma = data.draw(forecasts(n_classes, max_rows=1))[0]
    for p, k in zip(P, simplex.regions(P, gamma), strict=True):
        margin = p - gamma
        assert (margin[k] >= margin).all()
        assert (margin[:k] < margin[k]).all()


@given(hnp.arrays(np.float64, 10, elements=st.integers(0, 8).map(lambda k: k / 8)))
def test_two_class_regions_are_the_argmax_where_it_is_exact(scores):
    gamma = np.array([0.625, 0.375])
    P = np.column_stack([1 - scores, scores])
    assert simplex.regions(P, gamma).tolist() == np.argmax(P - gamma, axis=1).tolist()
    assert simplex.regions(scores, gamma).tolist() == simplex.regions(P, gamma).tolist()


def test_two_class_regions_separate_scores_that_the_argmax_cannot():
    assert simplex.regions(np.array([1e-30, 3e-30]), np.array([1.0, 2e-30])).tolist() == [0, 1]


@pytest.mark.parametrize(("n_classes", "steps"), [(2, 5), (3, 6), (4, 4), (5, 1)])
def test_lattice_is_every_point_once(n_classes, steps):
    points = simplex.lattice(n_classes, steps)
    expected = [c for c in product(range(steps + 1), repeat=n_classes) if sum(c) == steps]
    assert np.rint(points * steps).astype(int).tolist() == [list(c) for c in expected]
    np.testing.assert_allclose(points.sum(axis=1), 1)


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(1, 2**60))
def test_midpoint_separates_any_two_floats(low, gap):
    wide = low + abs(low) * gap / 2**60 + gap * 5e-324
    high = math.nextafter(low, math.inf) if gap == 1 else wide
    if not low < high < np.inf:
        return
    middle = simplex.midpoint(np.array([low]), np.array([high]))[0]
    assert low <= middle < high


def test_midpoint_of_the_widest_gap():
    assert simplex.midpoint(np.array([-1.7e308]), np.array([1.7e308]))[0] == 0
