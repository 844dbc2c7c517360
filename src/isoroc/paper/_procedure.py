"""What the paper's procedures share: the grid, the regions, prediction and scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from isoroc._input import InputError, check_forecasts, check_length, encode_labels
from isoroc._simplex import Floats, Ints, lattice
from isoroc._simplex import regions as regions_of
from isoroc._table import Table

#: Grid size of the experiments by number of classes; thresholds are multiples of 1 / grid_size.
GRID_SIZES = {2: 1000, 3: 100, 4: 50}


class Region(NamedTuple):
    """A part of the simplex, the calibration points in it and its bin value."""

    grid: Ints  #: indices of its grid points, including those on its boundary
    rows: Ints  #: indices of the calibration points in it
    value: Floats  #: r, of shape (K,)


def cross_entropy(R: Floats, y: NDArray[Any], lam: float = 0.0) -> float:
    """Regularised cross entropy: the mean over rows of - sum_k (y_k + lam) log r_k.

    The rows of `R` need not sum to one; `y` holds the columns of the labels.

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
    """Mean over rows of the squared distance to the label; rows need not sum to one.

    Examples
    --------
    >>> import numpy as np
    >>> brier_score(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([0, 1]))
    0.3125
    """
    return float(((R - np.eye(R.shape[1])[y]) ** 2).sum(axis=1).mean())


@dataclass
class GridProcedure:
    """Base of both procedures: a grid, regions that are split one by one, and prediction."""

    grid_size: int
    lam: float = 0.05
    path: Table = field(init=False, repr=False)
    thresholds: Floats = field(init=False, repr=False)
    stages: list[list[Region]] = field(init=False, repr=False)
    grid: Ints = field(init=False, repr=False)

    def _start(self, P: Any, y: Any) -> tuple[Floats, Floats]:
        """Validated forecasts and one-hot labels; sets up the grid and the first region."""
        forecasts = _check_matrix(P)
        n, K = forecasts.shape
        _, codes = encode_labels(y, K, labels=np.arange(K))
        check_length(codes, n, name="y")
        Y = np.eye(K)[codes]
        # Integers, so that rounding does not decide which points lie on a boundary.
        self.grid = np.rint(lattice(K, self.grid_size) * self.grid_size).astype(np.intp)
        # "r <- y": the experiments start from the mean label everywhere, without smoothing.
        self.stages = [[Region(np.arange(len(self.grid)), np.arange(n), Y.mean(axis=0))]]
        return forecasts, Y

    def _divide(self, R: Region, steps: Ints, scale: int, P: Floats, Y: Floats) -> list[Region]:
        """The K children of a region at gamma = steps / scale, in units of the grid's step."""
        # "R_k <- R_k(gamma)": a grid point on a boundary belongs to every region that it touches.
        ahead = scale * self.grid[R.grid] - steps
        touches = ahead == ahead.max(axis=1, keepdims=True)
        side = regions_of(P[R.rows], steps / (scale * self.grid_size))
        children = []
        for k in range(Y.shape[1]):
            # "S_k <- S_k(gamma)": a forecast belongs to one region only.
            rows = R.rows[side == k]
            value = self._smoothed_mean(Y[rows].sum(axis=0), len(rows))
            children.append(Region(R.grid[touches[:, k]], rows, value))
        return children

    def _smoothed_mean(self, counts: Floats, n: Any) -> Floats:
        """Values of regions with n points and the given counts of labels; zeros where n is 0."""
        return np.where(n == 0, 0.0, (counts / np.maximum(n, 1) + self.lam) / (1 + self.lam))

    def _finish(self, thresholds: list[Floats], Y: Floats) -> None:
        self.thresholds = np.array(thresholds).reshape(-1, Y.shape[1])
        codes = Y.argmax(axis=1)
        self.path = Table(
            n_bins=np.array([_count_bins(regions) for regions in self.stages[1:]], dtype=int),
            cross_entropy=np.array([cross_entropy(r, codes, self.lam) for r in self.fitted()]),
        )

    def fitted(self) -> Iterator[Floats]:
        """Values of the calibration points after each split, one array per row of `path`."""
        K = self.grid.shape[1]
        r = np.empty((len(self.stages[0][0].rows), K))
        for regions in self.stages[1:]:
            for region in regions[-K:]:  # the children of the last split
                r[region.rows] = region.value
            yield r.copy()

    def predict(self, P: Any) -> Floats:
        """Values of new forecasts, of shape (n, K), after the last split.

        A forecast takes the value of the nearest grid point that has one. A grid point on a
        boundary has the value that was set last: each split sets the values of all grid points of
        its region again, class by class, and removes those of points that are touched only by
        children without calibration points.
        """
        root = np.tile(self.stages[0][0].value, (len(_check_matrix(P)), 1))
        *_, last = [root, *self.staged_predict(P)]
        return last

    def staged_predict(self, P: Any) -> Iterator[Floats]:
        """Values of new forecasts after each split, one array per row of `path`."""
        forecasts = _check_matrix(P)
        K = self.grid.shape[1]
        if forecasts.shape[1] != K:
            raise InputError(
                "P", None, f"{forecasts.shape[1]} columns, but the calibration set had {K}"
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
        """Which of the given grid points is nearest to each forecast; the first one in a tie."""
        points = self.grid[among] / self.grid_size
        # |p - g|^2 without the term |p|^2, which does not depend on g
        distance = (points**2).sum(axis=1) - 2 * forecasts @ points.T
        return np.asarray(distance.argmin(axis=1))

    def _nearest(self, forecasts: Floats) -> Ints:
        """Index of the grid point nearest to each forecast."""
        K = forecasts.shape[1]
        scaled = forecasts * self.grid_size
        # Round down, then add one of the missing steps to each of the largest remainders. In a tie
        # the last remainder counts as larger, which gives the first of equally near grid points.
        whole = np.floor(scaled).astype(np.intp)
        missing = self.grid_size - whole.sum(axis=1, keepdims=True)
        order = np.argsort((whole - scaled)[:, ::-1], axis=1, kind="stable")
        steps = whole + (np.argsort(order, axis=1)[:, ::-1] < missing)
        # The grid is sorted, and so are its points when they are read as numbers of K digits.
        digits = (self.grid_size + 1) ** np.arange(K)[::-1]
        return np.asarray(np.searchsorted(self.grid @ digits, steps @ digits))


def _count_bins(regions: list[Region]) -> int:
    return sum(region.rows.size > 0 for region in regions)


def _check_matrix(P: Any) -> Floats:
    forecasts = check_forecasts(P)
    if forecasts.ndim == 1:
        raise InputError("P", None, "one column of scores", "pass one column for each class")
    return forecasts
