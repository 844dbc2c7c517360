from fractions import Fraction
from itertools import combinations, product
from math import log
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reproduction.published import (
    GRID_SIZES,
    ReferenceBinning,
    ReferenceIRP,
    brier_score,
    cross_entropy,
)

from reproduction import published
from strategies import isotonic_oracle

pytestmark = pytest.mark.project

# Figures of the experiments: bins and regularised calibration cross entropy after each split.
PUBLISHED = {
    "cover2": "2 .5454, 3 .5238, 4 .5066, 5 .5001, 6 .4953, 7 .4941, 8 .4925, 9 .4912, 10 .4906, "
    "11 .4903, 12 .4900, 13 .4898, 14 .4898, 15 .4897, 16 .4897",
    "cover3": "3 .7805, 5 .7511, 7 .7369, 9 .7239, 10 .7173, 11 .7163, 12 .7147, 13 .7128, "
    "14 .7124, 15 .7118, 16 .7116",
}


@pytest.mark.parametrize("name", ["cover2", "cover3"])
def test_published_path(request, name):
    data = request.getfixturevalue(name)
    grid_size = GRID_SIZES[data["probas_cal"].shape[1]]
    path = ReferenceIRP(grid_size).fit(data["probas_cal"], data["labels_cal"]).path
    steps = zip(path["n_bins"], path["cross_entropy"], strict=True)
    assert ", ".join(f"{n} {h:.4f}".replace(" 0.", " .") for n, h in steps) == PUBLISHED[name]


@pytest.mark.parametrize(
    ("name", "cal", "test"), [("cover2", 0.5650, 0.5221), ("cover3", 1.0069, 0.5946)]
)
def test_published_cross_entropy_before(request, name, cal, test):
    data = request.getfixturevalue(name)
    assert round(cross_entropy(data["probas_cal"], data["labels_cal"], lam=0.05), 4) == cal
    assert round(cross_entropy(data["probas_test"], data["labels_test"]), 4) == test


# If a grid point on a boundary had the value that was set first and not the one that was set last,
# these would be 0.539 and 0.637. This concerns about one test row in a hundred.
@pytest.mark.parametrize(("name", "expected"), [("cover2", 0.5397), ("cover3", 0.6383)])
def test_cross_entropy_of_rows_that_sum_to_one(request, name, expected):
    data = request.getfixturevalue(name)
    K = data["probas_cal"].shape[1]
    irp = ReferenceIRP(GRID_SIZES[K]).fit(data["probas_cal"], data["labels_cal"])
    R = irp.predict(data["probas_test"])
    np.testing.assert_allclose(R.sum(axis=1), (1 + 0.05 * K) / 1.05)
    normalised = R / R.sum(axis=1, keepdims=True)
    assert round(cross_entropy(normalised, data["labels_test"]), 4) == expected


class Naive:
    """Algorithm 2 taken literally, in exact arithmetic, one point and one pair at a time."""

    def __init__(self, P, y, grid_size):
        self.start(P, y, grid_size)
        while self.split():
            pass

    def start(self, P, y, grid_size):
        self.P = [[Fraction(p) for p in row] for row in P.tolist()]
        self.y = y.tolist()
        self.K = P.shape[1]
        self.grid_size = grid_size
        grid = [g for g in product(range(grid_size + 1), repeat=self.K) if sum(g) == grid_size]
        self.side: dict[Any, list[int]] = {g: [self.region(p, g) for p in self.P] for g in grid}
        rows = list(range(len(self.y)))
        self.regions = [(grid, rows, self.mean(rows, Fraction(0)))]
        self.value_of = dict.fromkeys(grid, self.regions[0][2])
        self.gammas = []
        self.path = []

    def region(self, p, g):
        ahead = [self.grid_size * p[k] - g[k] for k in range(self.K)]
        return ahead.index(max(ahead))

    def mean(self, rows, lam=Fraction(1, 20)):
        if not rows:
            return [Fraction(0)] * self.K
        labels = [self.y[i] for i in rows]
        return [(Fraction(labels.count(k), len(rows)) + lam) / (1 + lam) for k in range(self.K)]

    def children(self, rows, gamma):
        parts = [[i for i in rows if self.side[gamma][i] == k] for k in range(self.K)]
        return parts, [self.mean(part) for part in parts]

    def is_monotone(self, r, gammas):
        for gamma in gammas:
            for a, b in combinations(range(self.K), 2):
                in_a = [r[i][a] - r[i][b] for i in range(len(r)) if self.side[gamma][i] == a]
                in_b = [r[i][b] - r[i][a] for i in range(len(r)) if self.side[gamma][i] == b]
                if in_a and in_b and min(in_a) + min(in_b) < 0:
                    return False
        return True

    def split(self):
        best = 0
        found = None
        for place, (grid, rows, value) in enumerate(self.regions):
            for gamma in grid:
                parts, values = self.children(rows, gamma)
                gain = sum(
                    len(part) * abs(value[k] - v[k])
                    for part, v in zip(parts, values, strict=True)
                    for k in range(self.K)
                )
                if sum(map(bool, parts)) < 2 or gain <= best:
                    continue
                r = self.fitted()
                for part, v in zip(parts, values, strict=True):
                    for i in part:
                        r[i] = v
                if self.is_monotone(r, [*self.gammas, gamma]):
                    best = gain
                    found = (place, gamma)
        if found is None:
            return False
        self.apply(*found)
        self.path[-1] += (float(best),)
        return True

    def apply(self, place, gamma):
        grid, rows, _ = self.regions.pop(place)
        self.value_of |= dict.fromkeys(grid)
        for k, (part, v) in enumerate(zip(*self.children(rows, gamma), strict=True)):
            touching = [
                g for g in grid if all(g[k] - gamma[k] >= g[j] - gamma[j] for j in range(self.K))
            ]
            self.regions.append((touching, part, v))
            if part:
                self.value_of |= dict.fromkeys(touching, v)
        self.gammas.append(gamma)
        entropy = -sum(
            ((self.y[i] == k) + 0.05) * log(v)
            for i, r in enumerate(self.fitted())
            for k, v in enumerate(r)
        ) / len(self.y)
        self.path.append((sum(bool(rows) for _, rows, _ in self.regions), entropy))

    def fitted(self):
        r = [None] * len(self.y)
        for _, rows, value in self.regions:
            for i in rows:
                r[i] = value
        return r

    def predict(self, p):
        def distance(g):
            return sum((self.grid_size * Fraction(x) - s) ** 2 for x, s in zip(p, g, strict=True))

        valued = [g for g in self.value_of if self.value_of[g] is not None]
        return [float(v) for v in self.value_of[min(valued, key=distance)]]


class NaiveBinning(Naive):
    """Recursive binning in exact arithmetic."""

    def __init__(self, P, y, grid_size, n_splits):
        self.start(P, y, grid_size)
        for _ in range(n_splits):
            place = next(i for i, (_, rows, _) in enumerate(self.regions) if rows)
            grid = self.regions[place][0]
            gamma = tuple(Fraction(sum(g[k] for g in grid), len(grid)) for k in range(self.K))
            self.side[gamma] = [self.region(p, gamma) for p in self.P]
            self.apply(place, gamma)


def draw(seed, K, kind, n):
    """Forecasts, labels that depend on them weakly, and new forecasts.

    Smooth forecasts have no ties. The others are multiples of 1/16, for which floating point is
    exact. Many of them lie on boundaries of the grid of step 1/8 or halfway between its points.
    """
    rng = np.random.default_rng([seed, K])
    P = rng.dirichlet(np.full(K, 0.8), size=2 * n)
    y = np.array([rng.choice(K, p=p) for p in 0.6 * P[:n] + 0.4 / K])
    if kind == "tied":
        P = np.array([rng.multinomial(16, p) for p in P]) / 16
    return P[:n], y, P[n:]


CASES = [
    (2, "smooth", 10, 30),
    (2, "tied", 8, 30),
    (3, "smooth", 10, 30),
    (3, "tied", 8, 30),
    (4, "smooth", 6, 20),
    (4, "tied", 8, 20),
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("K", "kind", "grid_size", "n"), CASES)
def test_agrees_with_the_naive_procedure(K, kind, grid_size, n, seed):
    P, y, new = draw(seed, K, kind, n)
    irp = ReferenceIRP(grid_size).fit(P, y)
    naive = Naive(P, y, grid_size)
    assert_same(irp, naive, new)
    np.testing.assert_allclose(irp.path["gain"], [step[2] for step in naive.path])


# Means of grid points are not multiples of 1/16, so there are no ties that rounding could break.
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("K", "grid_size", "n"), [(K, size, n) for K, kind, size, n in CASES if kind == "smooth"]
)
def test_binning_agrees_with_the_naive_procedure(K, grid_size, n, seed):
    P, y, new = draw(seed, K, "smooth", n)
    binning = ReferenceBinning(grid_size, n_splits=6).fit(P, y)
    assert_same(binning, NaiveBinning(P, y, grid_size, n_splits=6), new)


def assert_same(procedure, naive, new):
    expected = np.array(naive.gammas, dtype=float).reshape(-1, naive.K) / naive.grid_size
    np.testing.assert_allclose(procedure.thresholds, expected, atol=1e-12)
    assert procedure.path["n_bins"].tolist() == [step[0] for step in naive.path]
    np.testing.assert_allclose(procedure.path["cross_entropy"], [step[1] for step in naive.path])
    for region, (grid, rows, value) in zip(procedure.stages[-1], naive.regions, strict=True):
        assert procedure.grid[region.grid].tolist() == list(map(list, grid))
        assert region.rows.tolist() == rows
        np.testing.assert_allclose(region.value, list(map(float, value)))
    np.testing.assert_allclose(procedure.predict(new), [naive.predict(p) for p in new.tolist()])


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1)), min_size=1, max_size=30))
def test_two_classes_without_smoothing_are_isotonic_regression(rows):
    # Scores halfway between grid points: some threshold separates any two of them.
    scores = np.array([(2 * a + 1) / 20 for a, _ in rows])
    y = np.array([label for _, label in rows])
    irp = ReferenceIRP(grid_size=10, lam=0).fit(np.column_stack([1 - scores, scores]), y)
    fitted = np.empty(len(y))
    for region in irp.stages[-1]:
        fitted[region.rows] = region.value[1]
    np.testing.assert_allclose(fitted, [float(v) for v in isotonic_oracle(scores, y)], atol=1e-12)


def test_stages_follow_the_path():
    P, y, new = draw(0, 3, "smooth", 60)
    irp = ReferenceIRP(grid_size=12).fit(P, y)
    staged = list(irp.staged_predict(new))
    assert len(irp.stages) == len(staged) + 1 == len(irp.thresholds) + 1 > 2
    np.testing.assert_array_equal(staged[-1], irp.predict(new))
    for n_bins, regions in zip(irp.path["n_bins"], irp.stages[1:], strict=True):
        rows = [region.rows for region in regions if region.rows.size]
        assert len(rows) == n_bins
        assert sorted(np.concatenate(rows)) == list(range(len(y)))


def test_a_region_without_calibration_points_takes_the_nearest_value():
    irp = ReferenceIRP(grid_size=8).fit([[1 / 8, 5 / 8, 2 / 8], [1 / 8, 2 / 8, 5 / 8]], [1, 2])
    assert irp.path["n_bins"].tolist() == [2]
    assert [region.rows.tolist() for region in irp.stages[-1]] == [[1], [0], []]
    assert irp.stages[-1][2].value.tolist() == [0.0, 0.0, 0.0]
    assert irp.thresholds.tolist() == [[0.0, 1 / 8, 7 / 8]]
    # The corner of class 2 has no value. The nearest grid points that have one are (1/8, 0, 7/8)
    # and the threshold, which comes first and has the value that was set last, by class 1.
    np.testing.assert_allclose(irp.predict([[0.0, 0.0, 1.0]]), [irp.stages[-1][1].value])
    np.testing.assert_allclose(irp.predict([[0.2, 0.0, 0.8]]), [irp.stages[-1][0].value])


def test_the_brier_score_does_not_normalise_rows():
    assert brier_score(np.array([[1.0, 0.5]]), np.array([0])) == pytest.approx(0.25)


def test_the_size_of_blocks_has_no_effect(monkeypatch):
    P, y, new = draw(0, 3, "tied", 40)
    whole = ReferenceIRP(grid_size=16).fit(P, y)
    monkeypatch.setattr(published, "BLOCK", 7)
    blocks = ReferenceIRP(grid_size=16).fit(P, y)
    np.testing.assert_array_equal(blocks.thresholds, whole.thresholds)
    np.testing.assert_array_equal(blocks.predict(new), whole.predict(new))


def test_without_a_split_the_value_is_the_mean_label():
    irp = ReferenceIRP(grid_size=10).fit([[0.5, 0.5]] * 4, [0, 1, 1, 1])
    assert irp.path.n_rows == 0
    assert irp.predict([[0.1, 0.9]]).tolist() == [[0.25, 0.75]]
