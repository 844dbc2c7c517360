"""What the paper's procedures share: a grid, regions that are split, and how they are scored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from isoroc._input import check_forecasts, check_length, encode_labels
from isoroc._simplex import Floats, Ints, lattice
from isoroc._simplex import regions as regions_of
from isoroc._table import Table

#: The grids of the experiments by number of classes: thresholds are multiples of 1 / grid_size.
GRID_SIZES = {2: 1000, 3: 100, 4: 50}


class Region(NamedTuple):
    """A part of the simplex, the calibration points in it and its bin value."""

    grid: Ints  #: indices of its grid points, those on its boundary included
    rows: Ints  #: indices of the calibration points in it
    value: Floats  #: r, of shape (K,)


def cross_entropy(R: Floats, y: NDArray[Any], lam: float = 0.0) -> float:
    """Regularised cross entropy: the mean over rows of - sum_k (y_k + lam) log r_k.

    The rows of `R` are taken as they are, whatever their sum; `y` holds the columns of the labels.

    Examples
    --------
    >>> import numpy as np
    >>> R = np.array([[0.5, 0.5], [0.25, 0.75]])
    >>> round(cross_entropy(R, np.array([0, 1])), 4)
    0.4904
    >>> round(cross_entropy(R, np.array([0, 1]), lam=0.05), 4)
    0.5669
    """
    return float(-xlogy(np.eye(R.shape[1])[y] + lam, R).sum(axis=1).mean())


def brier_score(R: Floats, y: NDArray[Any]) -> float:
    """Mean over rows of the squared distance to the label; rows are taken as they are.

    Examples
    --------
    >>> import numpy as np
    >>> brier_score(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([0, 1]))
    0.3125
    """
    return float(((R - np.eye(R.shape[1])[y]) ** 2).sum(axis=1).mean())


@dataclass
class GridProcedure:
    """What both procedures share: a grid, regions that are split one by one, and prediction."""

    grid_size: int
    lam: float = 0.05
    path: Table = field(init=False, repr=False)
    thresholds: Floats = field(init=False, repr=False)
    stages: list[list[Region]] = field(init=False, repr=False)
    grid: Ints = field(init=False, repr=False)

    def _start(self, P: Any, y: Any) -> tuple[Floats, Floats]:
        """Forecasts and labels as columns; the grid, and one region that holds everything."""
        forecasts = _check_matrix(P)
        n, K = forecasts.shape
        _, codes = encode_labels(y, K)
        check_length(codes, n, name="y")
        Y = np.eye(K)[codes]
        # In whole steps, who lies on a boundary is decided without rounding.
        self.grid = np.rint(lattice(K, self.grid_size) * self.grid_size).astype(np.intp)
        # "r <- y": the experiments start from the mean label everywhere, and do not smooth it.
        self.stages = [[Region(np.arange(len(self.grid)), np.arange(n), Y.mean(axis=0))]]
        return forecasts, Y

    def _divide(self, R: Region, steps: Ints, scale: int, P: Floats, Y: Floats) -> list[Region]:
        """The K children of a region at gamma = steps / scale, in whole steps of the grid."""
        # "R_k <- R_k(gamma)": a grid point on a boundary belongs to every region it touches,
        ahead = scale * self.grid[R.grid] - steps
        touches = ahead == ahead.max(axis=1, keepdims=True)
        side = regions_of(P[R.rows], steps / (scale * self.grid_size))
        children = []
        for k in range(Y.shape[1]):
            # "S_k <- S_k(gamma)": a forecast to one only.
            rows = R.rows[side == k]
            value = self._smoothed_mean(Y[rows].sum(axis=0), len(rows))
            children.append(Region(R.grid[touches[:, k]], rows, value))
        return children

    def _smoothed_mean(self, counts: Floats, n: Any) -> Floats:
        """Value of regions with n points and these counts of labels: zeros where n is 0."""
        return np.where(n == 0, 0.0, (counts / np.maximum(n, 1) + self.lam) / (1 + self.lam))

    def _finish(self, thresholds: list[Floats], Y: Floats) -> None:
        self.thresholds = np.array(thresholds).reshape(-1, Y.shape[1])
        codes = Y.argmax(axis=1)
        self.path = Table(
            n_bins=np.array([_count_bins(regions) for regions in self.stages[1:]], dtype=int),
            cross_entropy=np.array([cross_entropy(r, codes, self.lam) for r in self.fitted()]),
        )

    def fitted(self) -> Iterator[Floats]:
        """Values of the calibration points after each split, one array for each row of `path`."""
        K = self.grid.shape[1]
        r = np.empty((len(self.stages[0][0].rows), K))
        for regions in self.stages[1:]:
            for region in regions[-K:]:  # the children of the last split
                r[region.rows] = region.value
            yield r.copy()

    def predict(self, P: Any) -> Floats:
        """Values of new forecasts, of shape (n, K), after the last split.

        A forecast takes the value of the nearest grid point that has one. A grid point on a
        boundary has the value that was set last: each split sets those of its region anew, class
        by class, and to none where only children without calibration points touch it.
        """
        root = np.tile(self.stages[0][0].value, (len(_check_matrix(P)), 1))
        *_, last = [root, *self.staged_predict(P)]
        return last

    def staged_predict(self, P: Any) -> Iterator[Floats]:
        """Values of new forecasts after each split, one array for each row of `path`."""
        forecasts = _check_matrix(P)
        K = self.grid.shape[1]
        if forecasts.shape[1] != K:
            raise ValueError(
                f"P has {forecasts.shape[1]} columns, the calibration set had {K}; they must agree."
            )
        return self._staged_values(forecasts)

    def _staged_values(self, forecasts: Floats) -> Iterator[Floats]:
        nearest = self._nearest(forecasts)
        values = np.tile(self.stages[0][0].value, (len(self.grid), 1))
        for regions in self.stages[1:]:
            children = regions[-self.grid.shape[1] :]
            for child in children:
                values[child.grid] = 0.0
            for child in children:
                if child.rows.size:
                    values[child.grid] = child.value
            found = values[nearest]
            without = np.flatnonzero(~found.any(axis=1))
            if without.size:
                valued = np.flatnonzero(values.any(axis=1))
                found[without] = values[valued[self._closest(forecasts[without], valued)]]
            yield found

    def _closest(self, forecasts: Floats, among: Ints) -> Ints:
        """Which of some grid points is nearest to each forecast, the first of equals."""
        points = self.grid[among] / self.grid_size
        # |p - g|^2 without |p|^2, which is the same for all g
        distance = (points**2).sum(axis=1) - 2 * forecasts @ points.T
        return np.asarray(distance.argmin(axis=1))

    def _nearest(self, forecasts: Floats) -> Ints:
        """Index of the grid point nearest to each forecast."""
        K = forecasts.shape[1]
        scaled = forecasts * self.grid_size
        # Round down, then give one of the missing steps to each of the largest remainders; of
        # equal ones to the last, which gives the first of equally near grid points.
        whole = np.floor(scaled).astype(np.intp)
        missing = self.grid_size - whole.sum(axis=1, keepdims=True)
        order = np.argsort((whole - scaled)[:, ::-1], axis=1, kind="stable")
        steps = whole + (np.argsort(order, axis=1)[:, ::-1] < missing)
        # The grid ascends, and so do its points when they are read as numbers of K digits.
        digits = (self.grid_size + 1) ** np.arange(K)[::-1]
        return np.asarray(np.searchsorted(self.grid @ digits, steps @ digits))


def _count_bins(regions: list[Region]) -> int:
    return sum(region.rows.size > 0 for region in regions)


def _check_matrix(P: Any) -> Floats:
    forecasts = check_forecasts(P)
    if forecasts.ndim == 1:
        raise ValueError("P: expected a column of probabilities for each class, got one of scores.")
    return forecasts
