import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.spatial import ConvexHull

from isoroc._core import surface as kernels
from isoroc.metrics._surface.bodies import Boxes, Hull

POINTS = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 40), st.just(3)), elements=st.integers(0, 8)
).map(lambda points: points / 8)


def cells_of_the_unit_cube(points):
    """Which of the 8 ** K cells of the unit cube some point dominates."""
    upper = np.stack(np.meshgrid(*[np.arange(1, 9) / 8] * points.shape[1], indexing="ij"), axis=-1)
    covered = np.zeros(upper.shape[:-1], dtype=bool)
    for point in points:
        covered |= (point >= upper).all(axis=-1)
    return covered


@given(POINTS)
def test_boxes_are_their_union(points):
    boxes = Boxes(points)
    covered = cells_of_the_unit_cube(points)
    assert boxes.volume == pytest.approx(covered.mean())
    kept = points[boxes.kept]
    assert len(np.unique(kept, axis=0)) == len(kept)
    for point in kept:
        assert not ((points >= point).all(axis=1) & (points > point).any(axis=1)).any()
    np.testing.assert_array_equal(cells_of_the_unit_cube(kept), covered)


@given(POINTS, st.permutations(range(3)), st.sampled_from([Boxes, Hull]))
def test_heights_are_where_the_body_ends(points, order, body):
    """Each height is the largest one that is in the body."""
    if body is Hull:  # heights are of hulls that hold what their points dominate
        points = np.vstack([points * corner for corner in np.ndindex(2, 2, 2)])
    table = body(points).heights(8, np.array(order))
    assert table.shape == (10, 10)
    swapped = points[:, order]
    hull = ConvexHull(np.vstack([points[:, order], np.zeros(3), np.eye(3)]))
    for i, j in np.ndindex(10, 10):
        if body is Boxes:
            over = (swapped[:, :2] >= np.array([i, j]) / 8).all(axis=1)
            assert table[i, j] == (swapped[over, 2].max() if over.any() else -1)
        else:
            tip = [i / 8, j / 8, table[i, j]]
            beyond = (hull.equations @ [*tip, 1]).max()
            assert beyond == pytest.approx(0, abs=1e-9) or table[i, j] < 0
            if beyond > 1e-9:
                assert (hull.equations @ [i / 8, j / 8, 0, 1]).max() > 0


def test_the_lower_envelope_is_the_minimum():
    rng = np.random.default_rng(0)
    for n_planes in (1, 2, 30):
        planes = rng.integers(-3, 4, (n_planes, 3)) / 2
        planes = planes[np.argsort(-planes[:, 1])]
        x = np.arange(18) / 16
        values = planes[:, 0, None, None] * x[:, None] + planes[:, 1, None, None] * x
        expected = (values + planes[:, 2, None, None]).min(axis=0)
        np.testing.assert_allclose(kernels.lower_envelope(planes, 16), expected, atol=1e-12)
