"""Data for growth: sorted scores of two classes, or points of any number of classes."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from isoroc._core.pav import concordance, merge_classes, partition_scores, pool_adjacent_violators
from isoroc._core.simplex import binary_scores, second_probabilities, two_columns
from isoroc._core.types import UNIT_WEIGHTS, Codes, Floats
from isoroc._counts.cells import Cells, Tally, hash_keys, rounded
from isoroc._counts.grid import Grid
from isoroc._input import Sample

#: Significant bits in which forecasts are compared: fewer than 53, since the last digits of equal
#: rows may differ.
N_BITS = 40


@dataclass(frozen=True, eq=False)
class BinaryCounts:
    """Exact counts for two classes: the scores of each class, sorted, with their weights.

    They hold the same information as the weight of each class per distinct score, and need only one
    sort of each class, without indices.
    """

    scores: tuple[Floats, Floats]  # ascending, of class 0 and of class 1
    weights: tuple[Floats, Floats]  # of each score, empty where every row weighs 1

    @classmethod
    def from_arrays(cls, scores: Floats, positive: Codes, weights: Any = None) -> Self:
        """Counts of scores, classes 0 or 1, and optional weights, without rows of weight 0."""
        if weights is None:
            parted, n_negative = partition_scores(scores, positive)
            negatives = parted[:n_negative]
            positives = parted[n_negative:]
            negatives.sort()
            positives.sort()
            return cls((negatives, positives), (UNIT_WEIGHTS, UNIT_WEIGHTS))
        both = (np.flatnonzero((positive == code) & (weights > 0)) for code in (0, 1))
        first, second = (rows[np.argsort(scores[rows], kind="stable")] for rows in both)
        return cls((scores[first], scores[second]), (weights[first], weights[second]))

    @classmethod
    def from_sample(cls, sample: Sample) -> Self:
        return cls.from_arrays(binary_scores(sample.forecasts), sample.codes, sample.weights)

    @property
    def class_weights(self) -> Floats:
        """Total weight of each class, shape (2,)."""
        pairs = zip(self.scores, self.weights, strict=True)
        return np.array([w.sum() if len(w) else float(len(s)) for s, w in pairs])

    def distinct(self) -> tuple[Floats, Floats]:
        """Distinct scores, ascending, and the weight of each class at each, shape (m, 2)."""
        return merge_classes(*self._by_class)

    def area(self) -> float:
        """Area under the ROC curve. Both classes must have positive weight."""
        return float(concordance(*self._by_class) / self.class_weights.prod())

    def isotonic_blocks(self) -> tuple[Floats, Floats, Floats]:
        """Blocks of the isotonic regression: lowest and highest score, class weights (m, 2)."""
        return pool_adjacent_violators(*self._by_class)

    @property
    def _by_class(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Scores and weights of class 0, then of class 1."""
        return self.scores[0], self.weights[0], self.scores[1], self.weights[1]

    def forecasts_in(self, low: Floats, high: Floats, unit: Any) -> Floats:
        """Weighted sum of the second probabilities in each block. The blocks hold all scores."""
        parts: list[tuple[Floats, Any]] = [(scores, None) for scores in self.scores]
        if any(len(weights) for weights in self.weights):
            distinct, of_classes = self.distinct()  # the order of rows with ties must not matter
            parts = [(distinct, of_classes.sum(axis=1))]
        total = np.zeros(len(low))
        for scores, weights in parts:
            start = np.searchsorted(scores, low, side="left")
            held = start < np.searchsorted(scores, high, side="right")
            p = second_probabilities(scores, unit)
            total[held] += np.add.reduceat(p if weights is None else p * weights, start[held])
        return total


@dataclass(frozen=True, eq=False)
class Points:
    """Points of the simplex, and the weight of each class at each."""

    forecasts: Floats  # distinct forecasts, or mean forecasts of cells, (m, K)
    class_weights: Floats  # (m, K)
    exact: bool = True  # whether every forecast stands for itself

    @classmethod
    def of_rows(cls, sample: Sample) -> Self:
        """One point per row, including duplicates."""
        forecasts, codes, weights = sample.arrays
        forecasts = two_columns(forecasts)
        class_weights = np.zeros(forecasts.shape)
        for k, of_class in enumerate(class_weights.T):  # an index per row would take more memory
            np.copyto(of_class, 1.0 if weights is None else weights, where=codes == k)
        return cls(forecasts, class_weights)

    @classmethod
    def from_arrays(
        cls, forecasts: Floats, codes: Codes, weights: Any = None, max_cells: int | None = None
    ) -> Self:
        """Points of forecasts, codes of classes and optional weights.

        Up to `max_cells` rows every distinct forecast is a point. Forecasts that differ by rounding
        errors are one. With more rows, the points are the mean forecasts of cells, as fine as
        `max_cells` allows.
        """
        forecasts = two_columns(forecasts)
        K = forecasts.shape[1]
        if max_cells is None or len(forecasts) <= max_cells:
            grid = Grid(K, "exact")
            rows = forecasts + 0.0  # no -0.0
            cells = Cells.count(
                rows, None, codes, n_classes=K, sums=rows[:, :1], weights=weights
            ).in_order()
        else:
            tally = Tally(Grid.choose(K, 2**9), K, most=max_cells)
            tally.add(forecasts, Sample(forecasts, codes, weights))
            cells = tally.cells()
            grid = tally.grid
        means = cells.mean_forecasts(grid)
        class_weights = cells.class_weights
        if grid.exact:
            means, class_weights = _without_near_ties(means, class_weights)
        if K > 2:
            # Sort by the sorted forecasts, then by the class weights in the same order. A
            # permutation of the classes then changes neither this order nor the random draws and
            # sums of growth.
            descending = np.argsort(-means, axis=1, kind="stable")
            values = (rounded(means, N_BITS), class_weights)
            keys = [np.take_along_axis(a, descending, axis=1) for a in values]
            order = np.lexsort(np.hstack(keys).T[::-1])
            means = means[order]
            class_weights = class_weights[order]
        return cls(means, class_weights, exact=grid.exact)


def _without_near_ties(forecasts: Floats, class_weights: Floats) -> tuple[Floats, Floats]:
    """Forecasts and class weights with one entry where forecasts differ by rounding errors."""
    hashes = hash_keys(rounded(forecasts, N_BITS), None)
    _, first, entry = np.unique(hashes, return_index=True, return_inverse=True)
    if len(first) == len(forecasts):
        return forecasts, class_weights
    together = np.zeros((len(first), class_weights.shape[1]))
    np.add.at(together, entry, class_weights)
    order = np.argsort(first)
    return forecasts[first[order]], together[order]
