"""Points: what growth sees of a sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isoroc._counts.cells import Tally
from isoroc._counts.grid import Grid
from isoroc._input import Sample
from isoroc._simplex import Codes, Floats, Ints, two_columns


@dataclass(frozen=True, eq=False)
class Points:
    """Points of the simplex, and the weight of each class at each.

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
    >>> points = Points.from_arrays(P, np.array([2, 0, 1], dtype=np.uint8))
    >>> points.forecasts
    array([[0.2, 0.3, 0.5],
           [0.6, 0.2, 0.2]])
    >>> points.class_weights
    array([[0., 1., 1.],
           [1., 0., 0.]])
    """

    forecasts: Floats
    class_weights: Floats
    exact: bool = True

    @classmethod
    def of_rows(cls, sample: Sample) -> Points:
        """One point for each row, duplicates and all."""
        forecasts, codes, weights = sample.arrays
        forecasts = two_columns(forecasts)
        class_weights = np.zeros(forecasts.shape)
        for k, of_class in enumerate(class_weights.T):  # an index per row would take more memory
            np.copyto(of_class, 1.0 if weights is None else weights, where=codes == k)
        return cls(forecasts, class_weights)

    @classmethod
    def from_arrays(
        cls,
        forecasts: Floats,
        codes: Codes,
        weights: Floats | None = None,
        max_cells: int | None = None,
    ) -> Points:
        """Points of rows with a forecast, the column of its class, and perhaps a weight.

        Up to `max_cells` rows every distinct forecast is a point. With more rows, the points are
        the mean forecasts of cells, as fine as `max_cells` allows.
        """
        forecasts = two_columns(forecasts)
        K = forecasts.shape[1]
        if max_cells is None or len(forecasts) <= max_cells:
            distinct, cell = _distinct_rows(forecasts)
            m = len(distinct)
            place = cell * K + codes
            class_weights = np.bincount(place, weights, m * K).reshape(m, K).astype(np.float64)
            return cls(*_in_canonical_order(distinct, class_weights))
        tally = Tally(Grid.choose(K, 2**9), K, most=max_cells)
        tally.add(forecasts, codes, weights)
        cells = tally.cells()
        means = cells.mean_forecasts(tally.grid)
        return cls(*_in_canonical_order(means, cells.class_weights), exact=False)


def _distinct_rows(forecasts: Floats) -> tuple[Floats, Ints]:
    """Forecasts that occur, and the place of each row among them.

    As `numpy.unique`, which compares rows one by one.
    """
    order = np.lexsort(forecasts.T[::-1])
    ascending = forecasts[order]
    differs = (ascending[1:] != ascending[:-1]).any(axis=1)
    place = np.zeros(len(forecasts), dtype=np.intp)
    place[order[1:]] = np.cumsum(differs)
    return ascending[np.append([True], differs)], place


def _in_canonical_order(forecasts: Floats, class_weights: Floats) -> tuple[Floats, Floats]:
    """Points in an order that does not depend on that of the classes.

    What growth draws at random, and the order in which it adds, are then the same if columns are
    permuted. Rows are compared by their sorted forecasts, then by the class weights in that order.
    """
    if forecasts.shape[1] == 2:
        return forecasts, class_weights
    descending = np.argsort(-forecasts, axis=1, kind="stable")
    keys = [np.take_along_axis(a, descending, axis=1) for a in (forecasts, class_weights)]
    order = np.lexsort(np.hstack(keys).T[::-1])
    return forecasts[order], class_weights[order]
