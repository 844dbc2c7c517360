"""Counts: what growth sees of the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isoroc._core.pav import merge_classes, partition_scores, pool_adjacent_violators
from isoroc._input import Sample
from isoroc._simplex import Codes, Floats, Ints, binary_scores, second_probabilities, two_columns

_UNIT: Floats = np.empty(0)
#: Rows that are put into cells at a time.
_SLICE = 2**16


@dataclass(frozen=True, eq=False)
class Counts:
    """Counts for any number of classes: forecasts, and the weight of each class at each.

    Attributes
    ----------
    forecasts : ndarray of shape (m, K)
        Distinct forecasts, or mean forecasts of cells.
    class_weights : ndarray of shape (m, K)
        Weight of each class at each of them.
    exact : bool
        Whether every forecast stands for itself.

    Examples
    --------
    >>> import numpy as np
    >>> P = np.array([[0.2, 0.3, 0.5], [0.6, 0.2, 0.2], [0.2, 0.3, 0.5]])
    >>> counts = Counts.from_arrays(P, np.array([2, 0, 1], dtype=np.uint8))
    >>> counts.forecasts
    array([[0.2, 0.3, 0.5],
           [0.6, 0.2, 0.2]])
    >>> counts.class_weights
    array([[0., 1., 1.],
           [1., 0., 0.]])
    """

    forecasts: Floats
    class_weights: Floats
    exact: bool = True

    @classmethod
    def of_rows(cls, sample: Sample) -> Counts:
        """Counts with one entry for each row, duplicates and all."""
        forecasts, codes, weights = sample.arrays
        forecasts = two_columns(forecasts)
        class_weights = np.zeros(forecasts.shape)
        for k, of_class in enumerate(class_weights.T):  # one index a row would take more memory
            np.copyto(of_class, 1.0 if weights is None else weights, where=codes == k)
        return cls(forecasts, class_weights)

    @classmethod
    def from_arrays(
        cls,
        forecasts: Floats,
        codes: Codes,
        weights: Floats | None = None,
        max_cells: int | None = None,
    ) -> Counts:
        """Counts of rows with a forecast, the column of its class, and perhaps a weight.

        Up to `max_cells` rows every distinct forecast is an entry of its own. Above, forecasts
        are gathered in cells ``floor(N * sqrt(p_k))``, N as large as `max_cells` allows: the
        square root maps the simplex to a sphere on which equal cells are equal in Fisher
        information, so resolution is fine near the vertices, where confident models live.
        """
        forecasts = two_columns(forecasts)
        if exact := max_cells is None or len(forecasts) <= max_cells:
            distinct, cell = np.unique(forecasts, axis=0, return_inverse=True)
            m = len(distinct)
        else:
            m, cell = _cells(forecasts, max_cells)
        K = forecasts.shape[1]
        place = cell.ravel() * K + codes
        class_weights = np.bincount(place, weights, m * K).reshape(m, K).astype(np.float64)
        if exact:
            return cls(*_in_canonical_order(distinct, class_weights))
        size = class_weights.sum(axis=1, keepdims=True)
        scaled = forecasts if weights is None else forecasts * weights[:, None]
        sums = np.column_stack([np.bincount(cell, column, m) for column in scaled.T])
        return cls(*_in_canonical_order(sums / size, class_weights), exact=False)


def _in_canonical_order(forecasts: Floats, class_weights: Floats) -> tuple[Floats, Floats]:
    """Counts in an order that does not depend on that of the classes.

    What growth draws at random, and the order in which it adds, are then the same if columns are
    permuted. Rows are compared by their sorted forecasts, then by the class weights in that order.
    """
    if forecasts.shape[1] == 2:
        return forecasts, class_weights
    descending = np.argsort(-forecasts, axis=1, kind="stable")
    keys = [np.take_along_axis(a, descending, axis=1) for a in (forecasts, class_weights)]
    order = np.lexsort(np.hstack(keys).T[::-1])
    return forecasts[order], class_weights[order]


def _cells(forecasts: Floats, max_cells: int) -> tuple[int, Ints]:
    """Number of cells, and the cell of each row, for the finest cells allowed.

    Goes through the rows a slice at a time: nothing but the result is as long as they are.
    """
    n, K = forecasts.shape
    # A sum of coordinates times fixed odd 64-bit numbers, modulo 2**64, tells cells apart.
    drawn = np.random.default_rng(0).integers(2**63, size=K, dtype=np.uint64)
    mix = np.asarray(2 * drawn + 1)
    slices = [slice(start, start + _SLICE) for start in range(0, n, _SLICE)]

    def keys(rows: slice) -> NDArray[np.uint64]:
        place = (resolution * np.sqrt(forecasts[rows])).astype(np.uint64)
        return np.asarray((place * mix).sum(axis=1))

    resolution = 2.0 * max_cells ** (1 / (K - 1))
    while True:
        found: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)
        for rows in slices:
            found = np.union1d(found, keys(rows))
            if len(found) > 8 * max_cells:
                break
        if len(found) <= max_cells:
            cell = np.empty(n, dtype=np.intp)
            for rows in slices:
                cell[rows] = np.searchsorted(found, keys(rows))
            return len(found), cell
        # K - 1 dimensions, so that many cells fewer: a little more, to be done in few rounds
        resolution *= 0.97 * (max_cells / len(found)) ** (1 / (K - 1))


@dataclass(frozen=True, eq=False)
class BinaryCounts:
    """Exact counts for two classes: the scores of each class, sorted, with their weights.

    That is the whole content of the table "distinct score, weight of class 0, weight of class 1"
    in a form that one sort builds and that merges with another by merging sorted arrays. Sorting
    the classes apart leaves any real score exact and moves no index along.

    Attributes
    ----------
    scores : tuple of two ndarrays
        Ascending scores of class 0 and of class 1.
    weights : tuple of two ndarrays
        Weight of each score; empty where every row weighs 1.

    Examples
    --------
    >>> import numpy as np
    >>> counts = BinaryCounts.from_arrays(
    ...     np.array([0.5, 0.2, 0.5, 0.9]), np.array([1, 0, 0, 1], dtype=np.uint8)
    ... )
    >>> counts.distinct()
    (array([0.2, 0.5, 0.9]), array([[1., 0.], [1., 1.], [0., 1.]]))
    """

    scores: tuple[Floats, Floats]
    weights: tuple[Floats, Floats]

    @classmethod
    def from_arrays(
        cls,
        scores: Floats,
        positive: Codes,
        weights: Floats | None = None,
    ) -> BinaryCounts:
        """Counts of rows with a score, the class 0 or 1, and perhaps a weight.

        Rows of weight 0 are left out.
        """
        if weights is None:
            parted, n_negative = partition_scores(scores, positive)
            negatives, positives = parted[:n_negative], parted[n_negative:]
            negatives.sort()
            positives.sort()
            return cls((negatives, positives), (_UNIT, _UNIT))
        parts = []
        for code in (0, 1):
            rows = np.flatnonzero((positive == code) & (weights > 0))
            rows = rows[np.argsort(scores[rows], kind="stable")]
            parts.append((scores[rows], weights[rows]))
        (s0, w0), (s1, w1) = parts
        return cls((s0, s1), (w0, w1))

    @classmethod
    def from_sample(cls, sample: Sample) -> BinaryCounts:
        """Counts of a sample of two classes."""
        return cls.from_arrays(binary_scores(sample.forecasts), sample.codes, sample.weights)

    @property
    def class_weights(self) -> Floats:
        """Total weight of each class, shape (2,)."""
        pairs = zip(self.scores, self.weights, strict=True)
        return np.array([w.sum() if len(w) else float(len(s)) for s, w in pairs])

    def distinct(self) -> tuple[Floats, Floats]:
        """Distinct scores, ascending, and the weight of each class at each, shape (m, 2)."""
        return merge_classes(self.scores[0], self.weights[0], self.scores[1], self.weights[1])

    def isotonic_blocks(self) -> tuple[Floats, Floats, Floats]:
        """Blocks of the isotonic regression: lowest and highest score, class weights (m, 2)."""
        return pool_adjacent_violators(
            self.scores[0], self.weights[0], self.scores[1], self.weights[1]
        )

    def forecasts_in(
        self, low: Floats, high: Floats, kind: Literal["probability", "logit"]
    ) -> Floats:
        """Weighted sum of the second probabilities in each of the blocks that hold all scores.

        Parameters
        ----------
        low, high : ndarrays of shape (m,)
            Lowest and highest score of each block.
        kind : {"probability", "logit"}
            What the scores are.

        Examples
        --------
        >>> import numpy as np
        >>> counts = BinaryCounts.from_arrays(
        ...     np.array([0.5, 0.2, 0.5, 0.9]), np.array([1, 0, 0, 1], dtype=np.uint8)
        ... )
        >>> counts.forecasts_in(np.array([0.2, 0.9]), np.array([0.5, 0.9]), "probability")
        array([1.2, 0.9])
        """
        parts: list[tuple[Floats, Any]] = [(scores, 1.0) for scores in self.scores]
        if any(len(weights) for weights in self.weights):
            distinct, of_classes = self.distinct()  # the order of rows with ties must not matter
            parts = [(distinct, of_classes.sum(axis=1))]
        total = np.zeros(len(low))
        for scores, weights in parts:
            start = np.searchsorted(scores, low, side="left")
            held = start < np.searchsorted(scores, high, side="right")
            p = second_probabilities(scores, kind)
            total[held] += np.add.reduceat(p * weights, start[held])
        return total
