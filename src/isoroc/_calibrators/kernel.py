"""KernelCalibrator: matrix scaling plus a smooth map of all log forecasts together."""

from __future__ import annotations

import numbers
from copy import copy
from typing import Literal

import numpy as np

from isoroc._calibrators.descent import warn_unconverged
from isoroc._calibrators.kernel_problem import (
    Problem,
    Solution,
    bumps,
    choose_centres,
    whitening,
)
from isoroc._calibrators.tempered import TemperedCalibrator
from isoroc._core.smooth import N_KNOTS
from isoroc._input import Sample, check_number
from isoroc._maps.kernel import KernelMap
from isoroc._maps.logs import LogForecasts
from isoroc._simplex import LEAST, Floats, Ints

#: Least distance of the places at which ranks bend, so that slopes are small and rounding errors do
#: not show.
LEAST_GAP = 0.01
#: Positions that differ by less than this count as close: rounding errors must not be stretched.
LEAST_SPREAD = 0.01
#: Numbers in the array of features up to which all rows are used; above, rows are drawn at random.
MOST_FEATURES = 10_000_000
#: Rows among which centres are chosen.
CENTRE_ROWS = 4000


class KernelCalibrator(KernelMap, TemperedCalibrator):
    """Kernel scaling: a smooth correction that depends on the forecasts of all classes together.

    Other maps add up what the forecast of each class says. This one also learns what only several
    say together, such as that two classes are confused where a third is likely.

    Decisions change more often than with other calibrators. Where the classifier has learned all
    that its forecasts can say, this one has nothing to add.

    Parameters
    ----------
    n_centres : int, default=100
        Bumps of the map at most. Their centres are forecasts of the calibration set.
    width : float, default=0.5
        Width of a bump as a multiple of the mean distance of positions from their centre.
    penalty : float or "auto", default="auto"
        Strength of the quadratic penalty on weights, as measured by the kernel, coefficients and
        intercepts. "auto" learns it by evidence.
    floor : float or "auto", default="auto"
        As in `TemperatureCalibrator`.
    pseudocount : float, default=1.0
        As in `TemperatureCalibrator`; it acts before the correction.

    Attributes
    ----------
    classes_, n_features_in_, scores_, floor_, temperature_, smoothing_
        As in `TemperatureCalibrator`.
    knots_ : ndarray of shape (K, 9)
        Quantiles of the log forecasts of each class, which define ranks.
    origin_ : ndarray of shape (2, K)
        Means of z and of ranks, which are subtracted,
    stretch_ : ndarray of shape (2,)
        and what they are then multiplied by, to give positions.
    centres_ : ndarray of shape (m, 2, K)
        Positions of the bumps.
    weights_ : ndarray of shape (K, m)
        Influence of each bump on each class.
    coef_ : ndarray of shape (K, K)
        Influence of each class's log forecast (column) on each class (row), on top of z.
    intercept_ : ndarray of shape (K,)
        Constant of each class.
    penalty_ : float
        The penalty that was used.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the fit did not converge.

    See Also
    --------
    MatrixCalibrator : The same without bumps, with a penalty for each kind of term.
    MonotoneCalibrator : Keeps the order of forecasts.

    Notes
    -----
    Forecasts are first scaled by a temperature. With their logarithms z, the calibrated forecast is
    the softmax of::

        z + coef_ @ z + weights_ @ (1 / (1 + |x - centres_|**2 / 2)) + intercept_

    where x is the position of the forecasts: z, and the rank of each class's log forecast. With
    both, neither forecasts far from the others nor crowded ones blur.

    References
    ----------
    Wahba, Soft and hard classification by reproducing kernel Hilbert space methods, PNAS 2002.
    Fine and Scheinberg, Efficient SVM training using low-rank kernel representations, JMLR 2001.
    MacKay, The evidence framework applied to classification networks, Neural Computation 1992.

    Examples
    --------
    A model that confuses two classes where the third is likely:

    >>> import numpy as np
    >>> from isoroc import KernelCalibrator
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet(np.ones(3), size=3000)
    >>> truth = np.where(P[:, 2:] > 0.3, P[:, [1, 0, 2]], P)
    >>> y = [rng.choice(3, p=p) for p in truth]
    >>> cal = KernelCalibrator().fit(P, y)
    >>> cal.predict([[0.7, 0.2, 0.1], [0.5, 0.1, 0.4]])  # swapped: 0.1, 0.5, 0.4
    array([0, 1])
    """

    def __init__(
        self,
        *,
        n_centres: int = 100,
        width: float = 0.5,
        penalty: float | Literal["auto"] = "auto",
        floor: float | Literal["auto"] = "auto",
        pseudocount: float = 1.0,
    ) -> None:
        self.n_centres = n_centres
        self.width = width
        self.penalty = penalty
        self.floor = floor
        self.pseudocount = pseudocount

    def _fit(self, sample: Sample) -> None:
        self._fit_whole(sample)

    def _fit_out_of_fold(self, sample: Sample, fold: Ints) -> Floats:
        # Positions hardly depend on the labels, so all folds share them: a row that is held out
        # has weight zero, and the solution for all rows is close to that for most of them.
        problem, whole = self._fit_whole(sample)
        drawn = fold[sample.drawn_rows(self._most_rows())]
        Q = np.empty((len(fold), sample.n_classes))
        for held_out in range(fold.max() + 1):
            inside = fold == held_out
            part = copy(self)
            weights = problem.weights * (drawn != held_out)
            part.set_theta(problem, problem.solve_near(weights, whole))
            Q[inside] = part.calibrate(sample.forecasts[inside])
        return Q

    def _fit_whole(self, sample: Sample) -> tuple[Problem, Solution]:
        check_number("n_centres", self.n_centres, numbers.Integral, minimum=1)
        check_number("width", self.width, numbers.Real, minimum=0.01)
        if self.penalty != "auto":
            check_number("penalty", self.penalty, numbers.Real, minimum=1e-3)
        self.fit_temperature(sample)
        total = sample.row_weights().sum()
        sample = sample.draw(self._most_rows())
        weights = sample.row_weights()
        z = self.tempered(LogForecasts(sample.forecasts))
        logs = self.log_forecasts(sample.forecasts, LEAST)
        self._measure(z, logs, weights / weights.sum())
        x = self._positions(z, logs)
        some = x[:, sample.drawn_rows(CENTRE_ROWS)]
        centres = some[:, choose_centres(some, self.n_centres)].T
        self.centres_ = centres.reshape(len(centres), 2, -1)
        whiten = whitening(centres, n_others=len(z) + 1)
        weights = weights * (total / weights.sum())
        problem = Problem(self._inputs(x), whiten, z, sample.codes, weights)
        solution = problem.solve(None if self.penalty == "auto" else float(self.penalty))
        if not solution.converged:
            warn_unconverged(self)
        self.penalty_ = solution.penalty
        self.set_theta(problem, solution.theta)
        return problem, solution

    def _most_rows(self) -> int:
        """Rows that are used at most."""
        return max(CENTRE_ROWS, MOST_FEATURES // int(self.n_centres))

    def _measure(self, z: Floats, logs: Floats, share: Floats) -> None:
        """Set what defines positions, from log forecasts and the share of each row."""
        order = np.argsort(logs, axis=1)
        below = np.cumsum(share[order], axis=1)
        levels = np.linspace(0, 1, N_KNOTS) - 1e-9  # a sum of shares may be off by rounding errors
        places = np.stack([np.searchsorted(of_class, levels) for of_class in below])
        knots = np.take_along_axis(logs, np.take_along_axis(order, places, axis=1), axis=1)
        gaps = LEAST_GAP * np.arange(N_KNOTS)
        self.knots_ = np.maximum.accumulate(knots - gaps, axis=1) + gaps
        self.origin_, self.stretch_ = np.zeros((2, len(z))), np.ones(2)
        x = self._positions(z, logs)
        origin = x @ share
        squares = ((x - origin[:, None]) ** 2) @ share
        self.origin_ = origin.reshape(2, -1)
        spread = np.sqrt(squares.reshape(2, -1).sum(axis=1))
        self.stretch_ = 1 / (2**0.5 * self.width * np.maximum(spread, LEAST_SPREAD))

    def _positions(self, z: Floats, logs: Floats) -> Floats:
        """Position of each row, shape (2 K, n), from its tempered and its plain log forecasts."""
        K, n = z.shape
        x = np.empty((2, K, n))
        np.subtract(z, z.mean(axis=0), out=x[0])
        levels = np.linspace(0, 1, N_KNOTS)
        for k in range(K):
            x[1, k] = np.interp(logs[k], self.knots_[k], levels)
        x -= self.origin_[:, :, None]
        x *= self.stretch_[:, None, None]
        return x.reshape(2 * K, n)

    def _inputs(self, x: Floats) -> Floats:
        """What the map adds up: bumps, log forecasts, one."""
        centres = self.centres_.reshape(len(self.centres_), -1)
        return np.concatenate([bumps(centres, x), x[: len(x) // 2], np.ones((1, x.shape[1]))])

    def set_theta(self, problem: Problem, theta: Floats) -> None:
        """Set the fitted attributes that depend on the solution."""
        m = len(self.centres_)
        self.weights_, coef, intercept = np.split(theta @ problem.basis, [m, -1], axis=1)
        coef = self.stretch_[0] * coef
        self.coef_ = coef - coef.mean(axis=1, keepdims=True)  # z is centred in each row
        self.intercept_ = intercept[:, 0] - coef @ self.origin_[0]
