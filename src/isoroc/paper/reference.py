"""Multi-class IRP as the paper's experiments run it: Algorithm 2 on a grid, with a pairwise check.

This is a yardstick, not a calibrator: it follows the experiments, warts included. Its values do
not sum to one, and a region without calibration points predicts zeros. A comment that begins with
a quotation says what becomes of that line of Algorithm 2.

The text of the paper leaves some rules open. Three were chosen because, of those tried, they alone
give the known figures of the three-class experiment: the first grid point wins among equal gains,
all regions are searched again after every split, and none is dropped. The figures cannot tell
which region a new forecast on a boundary belongs to, nor whether gains are smoothed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from isoroc.simplex import Floats, Ints, check_forecasts, check_length, encode_labels, lattice
from isoroc.simplex import regions as regions_of
from isoroc.table import Table

#: Gains and differences of values closer than this are equal. Unequal ones are further apart for
#: any n that a grid search can bear: gains by about 1 / (21 n), differences by about 1 / n^2.
TIE = 1e-9
#: Number of thresholds that are weighed at once. It bounds memory and decides nothing.
BLOCK = 4096


class Region(NamedTuple):
    """A part of the simplex, the calibration points in it and its bin value."""

    grid: Ints  #: indices of its grid points, those on its boundary included
    rows: Ints  #: indices of the calibration points in it
    value: Floats  #: r, of shape (K,)


class Split(NamedTuple):
    """A gain, the place of the region to split, and the grid index of the threshold."""

    gain: float
    place: int
    gamma: int


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


@dataclass
class ReferenceIRP:
    """The published procedure on the grid of step 1 / grid_size.

    Parameters
    ----------
    grid_size : int
        Coordinates of thresholds are multiples of 1 / grid_size: 1000 in the experiment with two
        classes, 100 in the one with three.
    lam : float, default=0.05
        Strength of the smoothing (mean + lam) / (1 + lam).

    Attributes
    ----------
    path : Table
        One row for each split: `n_bins`, the number of regions that hold calibration points;
        `cross_entropy`, regularised, on the calibration set; and `gain`.
    thresholds : ndarray of shape (n_splits, K)
        The threshold of each split.
    stages : list of lists of Region
        The regions before the first split and after each one.
    grid : ndarray of shape (n_points, K)
        The grid in whole steps, in ascending order.

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

    grid_size: int
    lam: float = 0.05
    path: Table = field(init=False, repr=False)
    thresholds: Floats = field(init=False, repr=False)
    stages: list[list[Region]] = field(init=False, repr=False)
    grid: Ints = field(init=False, repr=False)

    def fit(self, P: Any, y: Any) -> Self:
        """Split the simplex until no split leaves the function ROC monotone.

        Parameters
        ----------
        P : array-like of shape (n, K)
            Forecasts of the calibration set.
        y : array-like of shape (n,)
            Their labels, in the order of the columns of P.
        """
        forecasts = _check_matrix(P)
        n, K = forecasts.shape
        _, codes = encode_labels(y, K)
        check_length(codes, n, name="y")
        Y = np.eye(K)[codes]
        # In whole steps, who lies on a boundary is decided without rounding.
        self.grid = np.rint(lattice(K, self.grid_size) * self.grid_size).astype(np.intp)
        # side[g, i] = k: forecast i is in R_k of grid point g, the lowest k on a tie
        side = np.array(
            [regions_of(forecasts, g / self.grid_size) for g in self.grid], dtype=np.int8
        )

        # "r <- y": the experiments start from the mean label everywhere, and do not smooth it.
        regions = [Region(np.arange(len(self.grid)), np.arange(n), Y.mean(axis=0))]
        r = np.tile(regions[0].value, (n, 1))
        self.stages = [list(regions)]
        gammas: list[int] = []
        path: list[tuple[int, float, float]] = []
        # "while #regions > 0": as printed, a region without a feasible split is dropped for good.
        # But it may have one later, when the values of other regions have changed. So none is
        # dropped, and all are searched again after every split.
        while best := self._best_split(regions, side, gammas, Y):
            R = regions.pop(best.place)
            # "R_k <- R_k(gamma)": a grid point on a boundary belongs to every region it touches,
            ahead = self.grid[R.grid] - self.grid[best.gamma]
            touches = ahead == ahead.max(axis=1, keepdims=True)
            for k in range(K):
                # "S_k <- S_k(gamma)": a forecast to one only. Regions without any are kept.
                rows = R.rows[side[best.gamma, R.rows] == k]
                value = self._smoothed_mean(Y[rows].sum(axis=0), len(rows))
                regions.append(Region(R.grid[touches[:, k]], rows, value))
                r[rows] = value
            self.stages.append(list(regions))
            gammas.append(best.gamma)
            n_bins = sum(region.rows.size > 0 for region in regions)
            path.append((n_bins, cross_entropy(r, codes, self.lam), best.gain))
        self.thresholds = self.grid[gammas] / self.grid_size
        columns = np.array(path).reshape(-1, 3).T
        self.path = Table(n_bins=columns[0].astype(int), cross_entropy=columns[1], gain=columns[2])
        return self

    def _best_split(
        self, regions: list[Region], side: NDArray[np.int8], gammas: list[int], Y: Floats
    ) -> Split | None:
        """Split of largest gain, in any region, that leaves the function ROC monotone."""
        best = None
        for place, R in enumerate(regions):
            others = [other for other in regions if other is not R and other.rows.size]
            # "for gamma in R": the grid points of R, so never a threshold outside the simplex.
            for start in range(0, len(R.grid), BLOCK):
                candidates = R.grid[start : start + BLOCK]
                # inside[c, k, i]: candidate c puts the i-th point of R into child k
                inside = side[candidates][:, None, R.rows] == np.arange(Y.shape[1])[:, None]
                n = inside.sum(axis=2)
                # "r_i = mean of y in S_k": smoothed, and not normalised.
                r = self._smoothed_mean(inside @ Y[R.rows], n[:, :, None])
                # "M(gamma)": between smoothed values, with the 1-norm for |.|.
                gain = (n * np.abs(R.value - r).sum(axis=2)).sum(axis=1)
                # "M(gamma) > M": on equal gains the first region wins, and in it the first grid
                # point. Taken first, as it is cheap and spares most candidates the next check.
                more = gain > (best.gain if best else 0) + TIE
                left = np.flatnonzero(more & ((n > 0).sum(axis=1) >= 2))
                # "r ROC monotone": at all thresholds so far, with the new values in place, and at
                # the candidate itself; in each case over all calibration points.
                for gamma in gammas:
                    feasible = _pairwise(side[[gamma]], others, R, inside[left], r[left])
                    left = left[feasible]
                left = left[_pairwise(side[candidates[left]], others, R, inside[left], r[left])]
                if left.size:
                    c = left[np.argmax(gain[left] > gain[left].max() - TIE)]
                    best = Split(float(gain[c]), place, int(candidates[c]))
        return best

    def _smoothed_mean(self, counts: Floats, n: Any) -> Floats:
        """Value of regions with n points and these counts of labels: zeros where n is 0."""
        return np.where(n == 0, 0.0, (counts / np.maximum(n, 1) + self.lam) / (1 + self.lam))

    def predict(self, P: Any) -> Floats:
        """Values of new forecasts, of shape (n, K), after the last split.

        A forecast takes the value of the nearest grid point. Of the regions that this point
        belongs to, the one that was made first counts, and among the children of one split the
        one of the lowest class.
        """
        return self._value_of(self.stages[-1])[self._nearest(P)]

    def staged_predict(self, P: Any) -> Iterator[Floats]:
        """Values of new forecasts after each split, one array for each row of `path`."""
        nearest = self._nearest(P)
        return (self._value_of(regions)[nearest] for regions in self.stages[1:])

    def _value_of(self, regions: list[Region]) -> Floats:
        """Value of each grid point: that of the first region in the list that holds it."""
        values = np.empty(self.grid.shape)
        for region in reversed(regions):
            values[region.grid] = region.value
        return values

    def _nearest(self, P: Any) -> Ints:
        """Index of the grid point nearest to each forecast."""
        forecasts, K = _check_matrix(P), self.grid.shape[1]
        if forecasts.shape[1] != K:
            raise ValueError(
                f"P has {forecasts.shape[1]} columns, the calibration set had {K}; they must agree."
            )
        scaled = forecasts * self.grid_size
        # Round down, then give one of the missing steps to each of the largest remainders.
        whole = np.floor(scaled).astype(np.intp)
        missing = self.grid_size - whole.sum(axis=1, keepdims=True)
        order = np.argsort(whole - scaled, axis=1, kind="stable")
        steps = whole + (np.argsort(order, axis=1) < missing)
        # The grid ascends, and so do its points when they are read as numbers of K digits.
        digits = (self.grid_size + 1) ** np.arange(K)[::-1]
        return np.asarray(np.searchsorted(self.grid @ digits, steps @ digits))


def _pairwise(
    side: NDArray[np.int8], others: list[Region], R: Region, inside: NDArray[np.bool], r: Floats
) -> NDArray[np.bool]:
    """Whether each candidate split of R is ROC monotone at a threshold, as far as pairs show.

    Parameters
    ----------
    side : ndarray of shape (1 or c, n)
        Region of each calibration point at the threshold: one for all candidates or one for each.
    others : list of Region
        The other regions that hold calibration points.
    R : Region
        The region to split.
    inside : ndarray of shape (c, K, n_R)
        Whether a candidate puts a point of R into its child k.
    r : ndarray of shape (c, K, K)
        Values of the children.
    """
    c, K = r.shape[:2]
    W = np.full((c, K, K), np.inf)
    for i in range(K):
        there = side == i
        for other in others:
            holds = there[:, other.rows].any(axis=1)[:, None]
            slope = other.value[i] - other.value
            W[:, i] = np.minimum(W[:, i], np.where(holds, slope, np.inf))
        for k in range(K):
            holds = (there[:, R.rows] & inside[:, k]).any(axis=1)[:, None]
            slope = r[:, k, [i]] - r[:, k]
            W[:, i] = np.minimum(W[:, i], np.where(holds, slope, np.inf))
    # A threshold on the values needs W without negative cycles. The experiments look at cycles of
    # two classes only, which is enough for K = 2.
    return np.asarray((W + W.swapaxes(1, 2) >= -TIE).all(axis=(1, 2)))


def _check_matrix(P: Any) -> Floats:
    forecasts = check_forecasts(P)
    if forecasts.ndim == 1:
        raise ValueError("P: expected a column of probabilities for each class, got one of scores.")
    return forecasts
