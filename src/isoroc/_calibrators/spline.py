"""SplineCalibrator: smooth maps of every class's log odds plus structured matrix scaling."""

from __future__ import annotations

import numbers
from copy import copy

import numpy as np

from isoroc._calibrators.base import Calibrator
from isoroc._calibrators.descent import warn_unconverged
from isoroc._calibrators.spline_problem import Problem, Solution
from isoroc._input import Sample, check_number
from isoroc._maps.spline import SplineMap
from isoroc._simplex import Floats, Ints

#: Forecasts below the smallest positive one of the calibration set are raised to it, within these.
FLOOR_RANGE = (1e-30, 1e-3)
#: Numbers in the array of features up to which all rows are used; above, rows are drawn at random.
MOST_FEATURES = 20_000_000


class SplineCalibrator(SplineMap, Calibrator):
    """Spline scaling: a piecewise linear map of each class's log odds plus matrix scaling.

    Without knots this is structured matrix scaling; the knots are to it what a spline is to a line.
    Most of the map is shared by all classes. Departures of a class from it, the influence of other
    classes and the intercepts are penalised, more strongly for more classes.

    Parameters
    ----------
    n_knots : int, default=8
        Bends of the map, at quantiles of the distinct log odds.
    penalty : float, default=1.0
        Strength of the quadratic penalty on everything but the shared slope.
    pseudocount : float, default=1.0
        Rows of the uniform forecast that are mixed in, so that no forecast is ever certain.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, in the order of the columns.
    n_features_in_ : int
        Columns of the forecasts; 1 for scores.
    scores_ : {"probability", "logit"}
        What the forecasts are.
    floor_ : float
        Forecasts below are raised to it.
    knots_ : ndarray of shape (m,)
        Log odds at which the map bends.
    coef_ : ndarray of shape (K, K)
        Influence of each class's log forecast (column) on each class (row).
    slopes_ : ndarray of shape (K, m)
        Change of slope of each class's map at each knot.
    intercept_ : ndarray of shape (K,)
        Constant of each class.
    smoothing_ : float
        Share of the uniform forecast in every calibrated one.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the fit did not converge.

    See Also
    --------
    MatrixCalibrator : The same without knots, with a quadratic term.
    IsotonicCalibrator : Step functions of each class.

    Notes
    -----
    The calibrated forecast is the softmax of::

        coef_ @ log(p) + sum over knots of slopes_[:, m] * max(odds - knots_[m], 0) + intercept_

    where ``odds = log(p) - log(1 - p)``.

    References
    ----------
    Berta, Holzmüller, Jordan and Bach, Structured matrix scaling for multi-class calibration,
    AISTATS 2026.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import SplineCalibrator
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.dirichlet(np.ones(3), size=2000)
    >>> y = [rng.choice(3, p=p) for p in truth]
    >>> P = truth**3 / (truth**3).sum(axis=1, keepdims=True)  # an overconfident model
    >>> cal = SplineCalibrator().fit(P, y)
    >>> cal.predict_proba([[27 / 36, 8 / 36, 1 / 36]]).round(1)  # the truth is 3/6, 2/6, 1/6
    array([[0.5, 0.3, 0.2]])
    """

    def __init__(self, *, n_knots: int = 8, penalty: float = 1.0, pseudocount: float = 1.0) -> None:
        self.n_knots = n_knots
        self.penalty = penalty
        self.pseudocount = pseudocount

    def _fit(self, sample: Sample) -> None:
        problem = self._problem(sample)
        solution = problem.solve(problem.weights, problem.start())
        self.set_solution(problem, solution)
        if not solution.converged:
            warn_unconverged(self)

    def _fit_out_of_fold(self, sample: Sample, fold: Ints) -> Floats:
        # The features do not depend on the labels, so all folds share them: a row that is held
        # out has weight zero, and the solution for all rows is close to that for most of them.
        problem = self._problem(sample)
        whole = problem.solve(problem.weights, problem.start())
        self.set_solution(problem, whole)
        if not whole.converged:
            warn_unconverged(self)
        Q = np.empty((len(fold), sample.n_classes))
        drawn = fold[sample.drawn_rows(self._most_rows(sample))]
        for held_out in range(fold.max() + 1):
            inside = fold == held_out
            weights = problem.weights * (drawn != held_out)
            part = copy(self)
            part.set_solution(problem, problem.solve(weights, whole.theta, whole.factor))
            Q[inside] = part.calibrate(sample.forecasts[inside])
        return Q

    def _most_rows(self, sample: Sample) -> int:
        """Rows that are used at most."""
        return MOST_FEATURES // (sample.n_classes * (1 + self.n_knots))

    def _problem(self, sample: Sample) -> Problem:
        """Features of a sample; sets what does not depend on the labels."""
        check_number("n_knots", self.n_knots, numbers.Integral, minimum=0)
        check_number("penalty", self.penalty, numbers.Real, minimum=0)
        check_number("pseudocount", self.pseudocount, numbers.Real, minimum=0)
        total = float(sample.row_weights().sum())
        sample = sample.draw(self._most_rows(sample))
        self.floor_ = self._choose_floor(sample.forecasts)
        logs = self.log_forecasts(sample.forecasts, self.floor_)
        odds = log_odds(logs, np.exp(logs))
        inner = np.linspace(0, 1, self.n_knots + 2)[1:-1]
        # Rounded, since ties that rounding errors separate would count several times.
        self.knots_ = np.unique(np.quantile(np.unique(odds.round(9)), inner))
        weights = sample.row_weights()
        weights = weights * (total / weights.sum())
        return Problem.of(logs, odds, self.knots_, sample.codes, weights, penalty=self.penalty)

    def _choose_floor(self, forecasts: Floats) -> float:
        if self.scores_ == "logit":
            return FLOOR_RANGE[0]
        P = self.probabilities(forecasts)
        positive = P[P > 0]
        return float(np.clip(positive.min(), *FLOOR_RANGE))

    def set_solution(self, problem: Problem, solution: Solution) -> None:
        """Set the fitted attributes that depend on the labels."""
        self.coef_, self.slopes_, self.intercept_ = problem.map_of(solution.theta)
        total = problem.weights.sum()
        self.smoothing_ = float(self.pseudocount / (total + self.pseudocount))


def log_odds(logs: Floats, P: Floats) -> Floats:
    """Log odds of each class against the others, from forecasts P, shape (K, n), and their logs.

    The odds are taken against the sum of the other classes, those before and those after it: one
    minus the probability would lose everything when that is close to one.
    """
    others = np.zeros_like(P)
    np.cumsum(P[:-1], axis=0, out=others[1:])
    after = np.zeros(P.shape[1])
    for k in range(len(P) - 1, 0, -1):
        after += P[k]
        others[k - 1] += after
    np.log(others, out=others)
    return np.subtract(logs, others, out=others)
