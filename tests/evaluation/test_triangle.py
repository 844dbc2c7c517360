import numpy as np
import pytest
from hypothesis import given

from isoroc._evaluation.triangle import bin_polygons, mix, occupied_cells, triangles
from strategies import forecasts, trees

CORNERS = np.array([[0, 0], [1, 0], [0.5, np.sqrt(0.75)]])


def area(polygon):
    """Area as a share of the whole triangle, by the shoelace formula."""
    x, y = (polygon @ CORNERS).T if len(polygon) else np.zeros((2, 1))
    return abs(x @ np.roll(y, 1) - y @ np.roll(x, 1)) / 2 / (np.sqrt(3) / 4)


def contains(polygon, point):
    """Whether a convex polygon, its edges included, contains a point."""
    flat = polygon @ CORNERS
    p = point @ CORNERS
    edge = np.roll(flat, -1, axis=0) - flat
    to = p - flat
    turn = edge[:, 0] * to[:, 1] - edge[:, 1] * to[:, 0]
    return (turn >= -1e-9).all() or (turn <= 1e-9).all()


@given(trees(n_classes=3))
def test_bin_polygons_contain_the_forecasts_of_the_bin(grown):
    sample, _, tree = grown
    P = sample.forecasts
    polygons = bin_polygons(tree)
    assert len(polygons) == len(tree.bins)
    assert sum(map(area, polygons)) == pytest.approx(1)
    for p, found in zip(P, tree.bin_of(P), strict=True):
        if len(polygons[found]):
            assert contains(polygons[found], p)
    inner = np.random.default_rng(0).dirichlet(np.ones(3), 50)
    for p, found in zip(inner, tree.bin_of(inner), strict=True):
        assert contains(polygons[found], p)


@given(forecasts(3))
def test_cells_contain_their_forecasts(P):
    cells, cell = occupied_cells(P, 7)
    assert len(np.unique(cells, axis=0)) == len(cells)
    corners = triangles(cells, 7)
    np.testing.assert_allclose(corners.sum(axis=2), 1)
    assert [area(c) for c in corners] == pytest.approx([1 / 49] * len(corners))
    for p, k in zip(P, cell, strict=True):
        assert contains(corners[k], p)


def test_cells_and_colours_of_points():
    cells, cell = occupied_cells(np.array([[0.6, 0.2, 0.2], [0.4, 0.3, 0.3], [1.0, 0.0, 0.0]]), 2)
    assert cells.tolist() == [[0, 0, 0], [1, 0, 0]]
    assert cell.tolist() == [1, 0, 1]
    colours = mix(np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]))
    np.testing.assert_allclose(colours, [[0, 0.45, 0.7], [0.61, 0.51, 0.33]], atol=0.005)
