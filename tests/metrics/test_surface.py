from functools import partial
from math import factorial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from isoroc import InputError
from isoroc._core.simplex import regions
from isoroc.metrics import roc_auc, roc_convex_hull, roc_surface
from isoroc.metrics import volume_under_surface as vus
from isoroc.metrics._surface import surface
from isoroc.metrics._surface.three_classes import scan_all
from strategies import WEIGHTS, binary_data

VOLUMES: list[Any] = ["hull", "boxes"]


@st.composite
def three_classes(draw, max_rows=9):
    """A few forecasts of three classes, on lattices with many ties or smooth, and labels."""
    n = draw(st.integers(3, max_rows))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    steps = draw(st.sampled_from([2, 4, 10, None]))
    P = (
        rng.dirichlet(np.ones(3), n)
        if steps is None
        else rng.multinomial(steps, [1 / 3] * 3, n) / steps
    )
    y = np.append(rng.integers(0, 3, n - 3), [0, 1, 2])
    weights = (
        np.array(draw(st.lists(WEIGHTS, min_size=n, max_size=n))) if draw(st.booleans()) else None
    )
    return P, y, weights


def data(n, K, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(K, 0.5), n)
    y = np.array([rng.choice(K, p=p) for p in truth])
    y[:K] = np.arange(K)
    P = truth**1.5
    return P / P.sum(axis=1, keepdims=True), y


def shares(P, y, weights, gamma):
    """A ROC point from its definition."""
    w = np.ones(len(y)) if weights is None else weights
    right = regions(P, gamma) == y
    return [w[right & (y == k)].sum() / w[y == k].sum() for k in range(P.shape[1])]


def every_point(P, y, weights):
    """ROC points of all cells of the plane of thresholds (a, b).

    Cells are cut out by lines a = p_0 - p_1, b = p_0 - p_2 and b - a = p_1 - p_2. Each cell has a
    corner where two of them meet: look a little into all six sectors around all such corners.
    """
    xs = P[:, 0] - P[:, 1]
    zs = P[:, 0] - P[:, 2]
    ws = P[:, 1] - P[:, 2]
    meet = [(x, z) for x in xs for z in zs]
    meet += [(x, x + w) for x in xs for w in ws]
    meet += [(z - w, z) for z in zs for w in ws]
    around = 1e-9 * np.array([[2, 1], [1, 2], [-1, 1], [-2, -1], [-1, -2], [1, -1]])
    found = set()
    for a, b in np.unique(np.round(meet, 13), axis=0):
        for da, db in around:
            gamma = (1 + a + da + b + db) / 3 - np.array([0, a + da, b + db])
            found.add(tuple(shares(P, y, weights, gamma)))
    return np.array(sorted(found))


def union_of_boxes(points):
    """Volume of a union of boxes, cell by cell of the grid of all coordinates."""
    cuts = [np.unique(np.append(0, column)) for column in points.T]
    upper = np.stack(np.meshgrid(*(c[1:] for c in cuts), indexing="ij"), axis=-1)
    sizes = np.prod(np.meshgrid(*(np.diff(c) for c in cuts), indexing="ij"), axis=0)
    covered = (points[:, None, None, None, :] >= upper).all(axis=-1).any(axis=0)
    return (sizes * covered).sum()


def hull_volume(points):
    K = points.shape[1]
    return ConvexHull(np.vstack([points, np.zeros(K), np.eye(K)])).volume


@given(three_classes())
def test_three_classes_are_exact(case):
    P, y, weights = case
    points = every_point(P, y, weights)
    hull = vus(y, P, sample_weight=weights)
    boxes = vus(y, P, volume="boxes", sample_weight=weights)
    assert hull.exact
    assert boxes.exact
    assert float(hull) == pytest.approx(hull_volume(points), abs=1e-9)
    assert float(boxes) == pytest.approx(union_of_boxes(points), abs=1e-9)
    assert float(boxes) <= float(hull) + 1e-9


@given(three_classes())
def test_the_surface_of_three_classes_has_all_corners(case):
    P, y, weights = case
    surface = roc_surface(y, P, sample_weight=weights)
    for gamma, point in zip(surface.thresholds, surface.shares, strict=True):
        assert gamma.sum() == pytest.approx(1)
        assert shares(P, y, weights, gamma) == pytest.approx(point.tolist())
    for point in every_point(P, y, weights):
        assert (surface.shares >= point - 1e-9).all(axis=1).any()
    exact = vus(y, P, sample_weight=weights)
    assert surface.volume().exact
    assert float(surface.volume()) == pytest.approx(float(exact), abs=1e-9)
    spanned = hull_volume(surface.shares[surface.spans])
    assert spanned == pytest.approx(float(exact), abs=1e-9)


@given(binary_data())
def test_the_surface_of_two_classes_is_the_curve(data):
    scores, y, weights = data
    surface = roc_surface(y, scores, sample_weight=weights)
    for gamma, point in zip(surface.thresholds, surface.shares, strict=True):
        w = np.ones(len(y)) if weights is None else weights
        for k, right in enumerate((scores <= gamma[1], scores > gamma[1])):
            expected = w[right & (y == k)].sum() / w[y == k].sum()
            assert point[k] == pytest.approx(expected)
    corners = surface.shares[surface.spans]
    hull = roc_convex_hull(y, scores, sample_weight=weights)
    np.testing.assert_allclose(corners, np.column_stack([hull.p0, hull.p1]))
    assert float(surface.volume()) == hull.area()


def test_a_surface_becomes_a_dataframe():
    P, y = data(50, 3)
    surface = roc_surface(np.array(["a", "b", "c"])[y], P)
    frame = surface.frame()
    names = [f"{what}_{c}" for what in ("gamma", "share") for c in "abc"]
    assert list(frame.columns) == [*names, "spans"]
    np.testing.assert_array_equal(frame[names[3:]], surface.shares)
    how = f"{len(surface.spans)} points, {surface.spans.sum()} of the hull, 3 classes, exact"
    assert repr(surface) == f"RocSurface({how})"


@given(binary_data())
def test_two_classes_have_areas(data):
    scores, y, weights = data
    assert (
        float(vus(y, scores, sample_weight=weights))
        == roc_convex_hull(y, scores, sample_weight=weights).area()
    )
    boxes = vus(y, scores, volume="boxes", sample_weight=weights)
    w = np.ones(len(y)) if weights is None else weights
    above = scores[y == 1][:, None] > scores[y == 0]
    pairs = w[y == 1][:, None] * w[y == 0]
    assert float(boxes) == pytest.approx((above * pairs).sum() / pairs.sum())
    assert boxes.exact
    if len(np.unique(scores)) == len(scores):
        assert float(boxes) == pytest.approx(roc_auc(y, scores, sample_weight=weights))


@given(binary_data())
def test_monotone_maps_of_two_class_scores_change_nothing(data):
    scores, y, _ = data
    ranks = np.unique(scores, return_inverse=True)[1]
    for volume in VOLUMES:
        assert vus(y, scores, volume=volume) == vus(y, np.exp(ranks / 8.0), volume=volume)


@pytest.mark.parametrize("K", range(2, 9))
def test_constant_and_perfect_forecasts(K):
    y = np.tile(np.arange(K), 4)
    constant = np.full((4 * K, K), 1 / K)
    perfect = np.eye(K)[y]
    assert float(vus(y, constant)) == pytest.approx(1 / factorial(K), rel=1e-9)
    assert float(vus(y, perfect)) == pytest.approx(1, rel=1e-9)
    if K <= 3:
        assert float(vus(y, constant, volume="boxes")) == 0
        assert float(vus(y, perfect, volume="boxes")) == pytest.approx(1)
    # Differences too small for a threshold do not matter.
    nearly = 0.9 * perfect + 0.1 / K + 1e-15 * np.random.default_rng(0).random((4 * K, K))
    assert float(vus(y, nearly)) == pytest.approx(1, rel=1e-9)


@given(three_classes(max_rows=20), st.permutations(range(3)), st.sampled_from(VOLUMES))
def test_the_order_of_classes_does_not_matter(case, order, volume):
    P, y, weights = case
    expected = vus(y, P, volume=volume, sample_weight=weights)
    swapped = vus(y, P[:, order], volume=volume, sample_weight=weights, labels=order)
    assert float(swapped) == pytest.approx(float(expected), abs=1e-9)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("volume", VOLUMES)
def test_weights_are_repetitions(K, volume):
    P, y = data(60, K)
    weights = np.random.default_rng(1).integers(0, 4, 60)
    weights[:K] = 1
    repeated = np.repeat(np.arange(60), weights)
    expected = vus(y[repeated], P[repeated], volume=volume, resolution=50)
    found = vus(y, P, volume=volume, sample_weight=weights, resolution=50)
    assert float(found) == pytest.approx(float(expected), abs=1e-9)


@pytest.mark.parametrize("volume", VOLUMES)
def test_fewer_lines_come_close_from_below(volume):
    P, y = data(600, 3)
    exact = vus(y, P, volume=volume)
    assert exact.exact
    assert exact.resolution is None
    assert vus(y, P, volume=volume, resolution=10**6) == exact
    values = []
    for lines in (3, 10, 30, 100):
        found = vus(y, P, volume=volume, resolution=lines)
        assert not found.exact
        assert found.resolution == lines
        values.append(float(found))
    assert values == sorted(values)
    assert values[-1] <= float(exact) + 1e-12
    assert values[-1] == pytest.approx(float(exact), abs=2e-3)


@pytest.mark.parametrize("volume", VOLUMES)
def test_more_rows_than_can_be_scanned(volume, monkeypatch):
    P, y = data(600, 3)
    exact = vus(y, P, volume=volume)
    few = partial(scan_all, most_steps=10**4)
    monkeypatch.setattr(surface, "scan_all", few)
    found = vus(y, P, volume=volume)
    assert (found.exact, found.resolution) == (False, 50)
    assert float(exact) - 1e-2 < float(found) < float(exact)


def test_the_papers_forecasts(cover2, cover3):
    for part, two, hull, boxes in (
        ("cal", 0.8733, 0.7631, 0.7410),
        ("test", 0.8223, 0.7340, 0.7193),
    ):
        found = vus(cover2[f"labels_{part}"], cover2[f"probas_{part}"])
        assert float(found) == pytest.approx(two, abs=2e-4)
        for volume, expected in zip(VOLUMES, (hull, boxes), strict=True):
            found = vus(cover3[f"labels_{part}"], cover3[f"probas_{part}"], volume=volume)
            assert found.exact
            assert float(found) == pytest.approx(expected, abs=2e-4)


def test_results_say_what_they_are():
    P, y = data(100, 3)
    volume = vus(y, P, resolution=20)
    how = "lower bound, resolution 20"
    assert repr(volume) == f"Volume({volume.value:.6g}, hull, {how}, {volume.n_points} points)"


@pytest.mark.parametrize(
    ("error", "arguments", "message"),
    [
        (InputError, {"volume": "ball"}, "volume: expected one of 'hull', 'boxes'; got 'ball'"),
        (ValueError, {"resolution": 0}, "resolution: is 0; expected .* >= 1"),
        (ValueError, {"resolution": 2.5}, "resolution: is .*; expected an int"),
        (InputError, {"y_true": [0, 0, 1], "labels": range(3)}, "y_true: no row of class 2"),
        (InputError, {"sample_weight": [1, 1, 0]}, "y_true: no row of class 2"),
        (
            InputError,
            {"y_prob": np.eye(3, 13), "labels": range(13)},
            "13 classes: .*8,192 subsets of classes and 715 hulls.*; merge classes to at most 12",
        ),
        (
            InputError,
            {"y_true": range(4), "y_prob": np.eye(4), "volume": "boxes"},
            'volume: "boxes" needs all undominated thresholds, .*use volume="hull"',
        ),
        (InputError, {"y_true": [0, 0, 0]}, "y_true: .*"),
        (InputError, {"y_prob": [[0, 1, np.nan]] * 3}, "y_prob: row 0 .*"),
    ],
)
def test_bad_input(error, arguments, message):
    good = {"y_true": [0, 1, 2], "y_prob": np.eye(3)}
    with pytest.raises(error, match=message):
        vus(**good | arguments)
    arguments.pop("volume", None)
    if arguments and len(arguments.get("y_true", ())) != 4:
        with pytest.raises(error, match=message):
            roc_surface(**good | arguments)
