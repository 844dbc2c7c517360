"""The paper's procedures as its experiments run them: IRP on a grid, and recursive binning.

These are references for comparison, not calibrators, and follow the experiments exactly: values do
not sum to one, and a region without calibration points has no value. A comment that begins with a
quotation says how that line of Algorithm 2 is implemented.

Where the text leaves a rule open, the rule comes from the authors' program
(github.com/eugeneberta/Calibration-ROC-IR): the grids, the value of a new forecast, the first grid
point in a tie of gains, and another search of all regions after every split, where none is dropped.
Only decisions that depend on rounding errors there are exact here: which grid points lie on a
boundary, and which gains and differences of values are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from isoroc._core.simplex import lattice
from isoroc._core.simplex import regions as regions_of
from isoroc._core.types import Floats, Ints
from isoroc._support.table import Table

#: Grid size of the experiments by number of classes. Thresholds are multiples of 1 / grid_size.
GRID_SIZES = {2: 1000, 3: 100, 4: 50}
#: Gains and differences of values that are closer than this are equal. Unequal gains differ by
#: about 1 / (21 n) and unequal differences by about 1 / n^2, which is more for n up to 30,000.
TIE = 1e-9
#: Number of thresholds that are evaluated at once. It bounds memory and has no effect on results.
BLOCK = 4096

Bools = NDArray[np.bool]


class Region(NamedTuple):
    """A part of the simplex, the calibration points in it and its bin value."""

    grid: Ints  #: indices of its grid points, including those on its boundary
    rows: Ints  #: indices of the calibration points in it
    value: Floats  #: r, of shape (K,)


def cross_entropy(R: Floats, y: NDArray[Any], lam: float = 0.0) -> float:
    """Regularised cross entropy: the mean over rows of - sum_k (y_k + lam) log r_k.

    The rows of `R` need not sum to one. `y` holds the columns of the labels.

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
    """Mean over rows of the squared distance to the label. Rows need not sum to one.

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
        """Forecasts and one-hot labels as arrays. Sets up the grid and the first region."""
        forecasts = np.asarray(P, dtype=float)
        n, K = forecasts.shape
        Y = np.eye(K)[y]
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
        """Values of regions with n points and the given counts of labels, zeros where n is 0."""
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
        its region again, class by class, and removes values of points that are touched only by
        children without calibration points.
        """
        root = np.tile(self.stages[0][0].value, (len(P), 1))
        *_, last = [root, *self.staged_predict(P)]
        return last

    def staged_predict(self, P: Any) -> Iterator[Floats]:
        """Values of new forecasts after each split, one array per row of `path`."""
        forecasts = np.asarray(P, dtype=float)
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
        """Which of the given grid points is nearest to each forecast, the first one in a tie."""
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


class Split(NamedTuple):
    """A gain, the index of the region to split, and the grid index of the threshold."""

    gain: float
    place: int
    gamma: int


@dataclass
class ReferenceIRP(GridProcedure):
    """Algorithm 2 as published, on the grid of step 1 / grid_size and with a pairwise check.

    Parameters
    ----------
    grid_size : int
        Coordinates of thresholds are multiples of 1 / grid_size, see `GRID_SIZES`.
    lam : float, default=0.05
        Strength of the smoothing (mean + lam) / (1 + lam).

    Attributes
    ----------
    path : Table
        One row per split: `n_bins`, the number of regions that hold calibration points,
        `cross_entropy`, regularised, on the calibration set, and `gain`.
    thresholds : ndarray of shape (n_splits, K)
        The threshold of each split.
    stages : list of lists of Region
        The regions before the first split and after each one.
    grid : ndarray of shape (n_points, K)
        The grid in units of its step, sorted.

    Examples
    --------
    >>> import numpy as np
    >>> P = np.array([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.4, 0.6], [0.1, 0.9]])
    >>> irp = ReferenceIRP(grid_size=20).fit(P, [0, 0, 1, 0, 1])
    >>> irp.path
      n_bins  cross_entropy    gain
           2        0.45688  3.0571
           3        0.37585  1.2698
    >>> irp.predict(np.array([[0.7, 0.3], [0.49, 0.51]])).round(3)
    array([[1.   , 0.048],
           [0.524, 0.524]])
    """

    def fit(self, P: Any, y: Any) -> Self:
        """Split the simplex until no split leaves the function ROC monotone.

        Parameters
        ----------
        P : array-like of shape (n, K)
            Forecasts of the calibration set.
        y : array-like of shape (n,)
            Their labels, in the order of the columns of P.
        """
        forecasts, Y = self._start(P, y)
        # side[i, g] = k: forecast i is in R_k of grid point g, the lowest k on a tie
        by_grid = np.empty((len(self.grid), len(Y)), dtype=np.int8)
        for of_rows, steps in zip(by_grid, self.grid, strict=True):
            of_rows[:] = regions_of(forecasts, steps / self.grid_size)
        side = np.ascontiguousarray(by_grid.T)
        regions = list(self.stages[0])
        choices = [self._candidates(regions[0], side, Y)]
        gammas: list[int] = []
        gains: list[float] = []
        # "while #regions > 0": in the text, a region without a feasible split is dropped. But it
        # may have one later, when the values of other regions have changed. So no region is
        # dropped, and all are searched again after every split.
        while best := _best_split(regions, choices, side, gammas):
            R = regions.pop(best.place)
            choices.pop(best.place)
            children = self._divide(R, self.grid[best.gamma], 1, forecasts, Y)
            regions += children
            choices += [self._candidates(child, side, Y) for child in children]
            self.stages.append(list(regions))
            gammas.append(best.gamma)
            gains.append(best.gain)
        self._finish(list(self.grid[gammas] / self.grid_size), Y)
        self.path["gain"] = np.array(gains)
        return self

    def _candidates(self, R: Region, side: NDArray[np.int8], Y: Floats) -> _Candidates:
        """Splits of a region that leave at least two children with calibration points."""
        of_rows = side[R.rows]
        found = []
        # "for gamma in R": the grid points of R, so no threshold lies outside the simplex.
        for start in range(0, len(R.grid), BLOCK):
            grid = R.grid[start : start + BLOCK]
            child = of_rows[:, grid].T
            counts = _joint_counts(child, Y[R.rows])
            n = counts.sum(axis=2)
            # "r_i = mean of y in S_k": smoothed, and not normalised.
            r = self._smoothed_mean(counts, n[:, :, None])
            # "M(gamma)": between smoothed values, with the 1-norm for |.|.
            gain = (n * np.abs(R.value - r).sum(axis=2)).sum(axis=1)
            some = (n > 0).sum(axis=1) >= 2
            found.append((grid[some], child[some], n[some] > 0, r[some], gain[some]))
        sides = [(of_rows == k).any(axis=0) for k in range(Y.shape[1])]
        grid, child, holds, r, gain = map(np.concatenate, zip(*found, strict=True))
        return _Candidates(grid, child, holds, r, gain, np.column_stack(sides))


class _Candidates(NamedTuple):
    """Candidate splits of a region, and where the region lies, with c candidates and n_R points.

    All of it is constant for a region. Only which candidates are ROC monotone changes.
    """

    grid: Ints  #: grid index of gamma, (c,)
    child: NDArray[np.int8]  #: child of each point of the region, (c, n_R)
    holds: Bools  #: whether a child holds points, (c, K)
    r: Floats  #: values of the children, (c, K, K)
    gain: Floats  #: M, (c,)
    sides: Bools  #: whether the region holds points in R_k of each grid point, (n_points, K)


def _best_split(
    regions: list[Region], choices: list[_Candidates], side: NDArray[np.int8], gammas: list[int]
) -> Split | None:
    """Split with the largest gain of those that leave the function ROC monotone."""
    best = None
    K = len(regions[0].value)
    for place, (R, choice) in enumerate(zip(regions, choices, strict=True)):
        # "M(gamma) > M": in a tie the first region wins, and in it the first grid point.
        left = np.flatnonzero(choice.gain > (best.gain if best else 0) + TIE)
        if not left.size:
            continue
        # "r ROC monotone": with the new values, at the candidate itself and at all thresholds so
        # far, in each case over all calibration points.
        W = _slopes_around(regions, choices, place, choice.grid[left])
        own = np.eye(K, dtype=np.bool) & choice.holds[left][:, :, None]
        left = left[_is_pairwise_monotone(W, own, choice.r[left])]
        around = _slopes_around(regions, choices, place, np.array(gammas, dtype=np.intp))
        for gamma, W in zip(gammas, around, strict=True):
            there = np.eye(K)[side[R.rows, gamma]]
            holds = _joint_counts(choice.child[left], there) > 0
            left = left[_is_pairwise_monotone(W, holds, choice.r[left])]
        if left.size:
            gain = choice.gain[left]
            c = left[np.argmax(gain > gain.max() - TIE)]
            best = Split(float(choice.gain[c]), place, int(choice.grid[c]))
    return best


def _slopes_around(
    regions: list[Region], choices: list[_Candidates], place: int, gammas: Ints
) -> Floats:
    """W of each threshold over all regions but one, of shape (len(gammas), K, K)."""
    K = len(regions[0].value)
    W = np.full((len(gammas), K, K), np.inf)
    for other, region in enumerate(regions):
        if other != place and region.rows.size:
            slopes = region.value[:, None] - region.value
            holds = choices[other].sides[gammas][:, :, None]
            np.minimum(W, np.where(holds, slopes, np.inf), out=W)
    return W


def _is_pairwise_monotone(W: Floats, holds: Bools, r: Floats) -> Bools:
    """Whether candidate splits are ROC monotone at a threshold for all pairs of classes.

    Parameters
    ----------
    W : ndarray of shape (K, K) or (c, K, K)
        Slopes of the other regions, for all candidates or for each.
    holds : ndarray of shape (c, K, K)
        Whether child k holds points in R_i of the threshold.
    r : ndarray of shape (c, K, K)
        Values of the children.
    """
    slopes = r[:, :, :, None] - r[:, :, None, :]
    W = np.minimum(W, np.where(holds[:, :, :, None], slopes, np.inf).min(axis=1))
    # A threshold on the values exists if W has no negative cycle. The experiments check cycles of
    # two classes only, which is sufficient for K = 2.
    return np.asarray((W + W.swapaxes(1, 2) >= -TIE).all(axis=(1, 2)))


@dataclass
class ReferenceBinning(GridProcedure):
    """Recursive binning as published: regions are split in the order in which they were made.

    Every region is split at the mean of its grid points, regardless of the labels.

    Parameters
    ----------
    grid_size : int
        As in `ReferenceIRP`, like `lam` and the attributes. `path` has no gain.
    lam : float, default=0.05
        Strength of the smoothing.
    n_splits : int, default=40
        The experiments make 1 + 3 + 9 + 27 splits, also for two and four classes.

    Examples
    --------
    >>> import numpy as np
    >>> P = np.array([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.4, 0.6], [0.1, 0.9]])
    >>> ReferenceBinning(grid_size=20, n_splits=3).fit(P, [0, 0, 1, 0, 1]).path
      n_bins  cross_entropy
           2        0.68051
           3        0.37585
           4        0.15223
    """

    n_splits: int = 40

    def fit(self, P: Any, y: Any) -> Self:
        """Split the simplex `n_splits` times. The parameters are described in `ReferenceIRP`."""
        forecasts, Y = self._start(P, y)
        regions = list(self.stages[0])
        thresholds = []
        for _ in range(self.n_splits):
            place = next(i for i, region in enumerate(regions) if region.rows.size)
            R = regions.pop(place)
            total = self.grid[R.grid].sum(axis=0)
            count = len(R.grid)
            regions += self._divide(R, total, count, forecasts, Y)
            self.stages.append(list(regions))
            thresholds.append(total / (count * self.grid_size))
        self._finish(thresholds, Y)
        return self


def _joint_counts(child: NDArray[np.int8], columns: Floats) -> Floats:
    """Number of points in child k and column j for each row of `child`, of shape (c, K, K).

    `child` has shape (c, n_R). `columns` has shape (n_R, K) and a single 1 in each row.
    """
    c, n = child.shape
    K = columns.shape[1]
    inside = child[:, None, :] == np.arange(K, dtype=np.int8)[:, None]
    # Single precision is faster, and exact for integers below 2^24.
    counts = inside.reshape(c * K, n).astype(np.float32) @ columns.astype(np.float32)
    return np.asarray(counts.reshape(c, K, K), dtype=np.float64)
