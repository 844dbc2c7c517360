"""SplineCalibrator: smooth maps of every class's log odds plus structured matrix scaling."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from isoroc._calibrators import written
from isoroc._calibrators.matrix import MATRIX_CLASSES
from isoroc._calibrators.scores import ProbabilityCalibrator, of_own_class
from isoroc._input import Sample, check_number
from isoroc._persistence import states
from isoroc._simplex import Codes, Floats, Ints
from isoroc._writer import C, Writer

#: Forecasts below the smallest positive one of the calibration set are raised to it, within these.
FLOOR_RANGE = (1e-30, 1e-3)
#: Numbers in the array of features up to which all rows are used; above, rows are drawn at random.
MOST_FEATURES = 20_000_000
#: Features of a larger standard deviation are shrunk to it, so that the penalty means the same.
SPREAD = 2.0


class SplineCalibrator(ProbabilityCalibrator):
    """Spline scaling: a piecewise linear map of each class's log odds plus matrix scaling.

    The calibrated forecast is the softmax of::

        coef_ @ log(p) + sum over knots of slopes_[:, m] * max(odds - knots_[m], 0) + intercept_

    where ``odds = log(p) - log(1 - p)``. Without knots this is structured matrix scaling (Berta,
    Holzmueller, Jordan and Bach, 2025); the knots are to it what a spline is to a line. Most of the
    map is shared by all classes: what a class departs from it, the influence of other classes and
    the intercepts are penalised, the more the more classes there are.

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

    floor_: float
    knots_: Floats
    coef_: Floats
    slopes_: Floats
    intercept_: Floats
    smoothing_: float

    fitted_state: ClassVar[dict[str, states.Check]] = {
        "floor_": states.number(above=0.0, most=1.0),
        "knots_": states.coefficients("m"),
        "coef_": states.coefficients("K", "K"),
        "slopes_": states.coefficients("K", "m"),
        "intercept_": states.coefficients("K"),
        "smoothing_": states.number(most=1.0),
    }

    def __init__(self, *, n_knots: int = 8, penalty: float = 1.0, pseudocount: float = 1.0) -> None:
        self.n_knots = n_knots
        self.penalty = penalty
        self.pseudocount = pseudocount

    def _fit(self, sample: Sample) -> None:
        problem = self._problem(sample)
        self._set(problem, problem.solve(problem.weights, problem.start()))

    def _fit_out_of_fold(self, sample: Sample, fold: Ints) -> Floats:
        # The features do not depend on the labels, so all folds share them: a row that is held
        # out has weight zero, and the solution for all rows is close to that for most of them.
        self.scores_ = sample.scores
        problem = self._problem(sample)
        if len(problem.codes) < len(fold):
            return super()._fit_out_of_fold(sample, fold)
        theta = problem.solve(problem.weights, problem.start())
        self._set(problem, theta)
        log_q = np.empty((sample.n_classes, len(fold)))
        for held_out in range(fold.max() + 1):
            inside = fold == held_out
            part = problem.solve(problem.weights * ~inside, theta)
            log_q[:, inside] = problem.log_forecasts(part)[:, inside]
        return self._mixed(log_q)

    def _problem(self, sample: Sample) -> Problem:
        """Features of a sample; sets what does not depend on the labels."""
        check_number("n_knots", self.n_knots, numbers.Integral, minimum=0)
        check_number("penalty", self.penalty, numbers.Real, minimum=0)
        check_number("pseudocount", self.pseudocount, numbers.Real, minimum=0)
        K = sample.n_classes
        total = float(sample.row_weights().sum())
        sample = sample.draw(MOST_FEATURES // (K * (1 + self.n_knots)))
        self.floor_ = self._choose_floor(sample.forecasts)
        logs = self.log_forecasts(sample.forecasts, self.floor_)
        odds = log_odds(logs)
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

    def _set(self, problem: Problem, theta: Floats) -> None:
        self.coef_, self.slopes_, self.intercept_ = problem.map_of(theta)
        total = problem.weights.sum()
        self.smoothing_ = float(self.pseudocount / (total + self.pseudocount))

    def _calibrate(self, forecasts: Floats) -> Floats:
        logs = self.log_forecasts(forecasts, self.floor_)
        odds = log_odds(logs)
        z = self.coef_ @ logs + self.intercept_[:, None]
        hinge = np.empty_like(odds)
        for knot, slopes in zip(self.knots_, self.slopes_.T, strict=True):
            np.subtract(odds, knot, out=hinge)
            np.maximum(hinge, 0.0, out=hinge)
            hinge *= slopes[:, None]
            z += hinge
        return self._mixed(log_softmax(z, axis=0))

    def _write(self, w: Writer[C], columns: Sequence[C]) -> list[C]:
        logs = w.keep(self.write_log_forecasts(w, self.floor_, columns))
        odds = w.keep(written.log_odds(w, logs))
        zero = w.number(0.0)
        logits = []
        for k, own in enumerate(odds):
            linear = written.weighted(w, self.coef_[k], logs)
            above = [w.maximum(w.subtract(own, w.number(knot)), zero) for knot in self.knots_]
            terms = [linear, w.number(self.intercept_[k])]
            if above:
                terms.append(written.weighted(w, self.slopes_[k], above))
            logits.append(w.run(terms))
        q = w.keep(w.exp(z) for z in w.keep(written.log_softmax(w, logits)))
        return written.mixed(w, q, self.smoothing_)

    def _mixed(self, log_q: Floats) -> Floats:
        """Forecasts, shape (n, K), with the uniform one mixed in."""
        q = (1 - self.smoothing_) * np.exp(log_q) + self.smoothing_ / len(log_q)
        return np.ascontiguousarray(q.T)


def log_odds(logs: Floats) -> Floats:
    """Log odds of each class against the others, from logarithms of forecasts, shape (K, n).

    The odds of the likeliest class are taken against the sum of the others: one minus its
    probability would lose everything when that is close to one.
    """
    P = np.exp(logs)
    top = P.argmax(axis=0), np.arange(P.shape[1])
    rest = P.sum(axis=0) - P
    P[top] = 0.0
    rest[top] = P.sum(axis=0)
    return np.asarray(logs - np.log(rest))


class Problem(NamedTuple):
    """Penalised likelihood of the outcomes as a function of one vector theta.

    theta holds the shared coefficients (B,), each class's departures (K, B), intercepts (K,) and,
    up to 100 classes, a matrix (K, K) of the influence of others, whose diagonal stays zero.
    """

    features: Floats
    """Log forecast and hinges of each class and row, centred and scaled, shape (K, n, B)."""
    centre: Floats
    scale: Floats
    others: Floats | None
    """Log forecasts, centred in each row, shape (K, n); None for many classes."""
    knots: Floats
    codes: Codes
    weights: Floats
    strengths: Floats
    """Weight of the square of each entry of theta's distance from the start."""

    @classmethod
    def of(
        cls,
        logs: Floats,
        odds: Floats,
        knots: Floats,
        codes: Codes,
        weights: Floats,
        *,
        penalty: float,
    ) -> Problem:
        """Problem of logarithms of forecasts and log odds, both of shape (K, n)."""
        K, n = logs.shape
        B = 1 + len(knots)
        features = np.empty((K, n, B))
        features[..., 0] = logs
        for b, knot in enumerate(knots, start=1):
            np.maximum(odds - knot, 0.0, out=features[..., b])
        share = weights / (K * weights.sum())
        centre = (share @ features).sum(axis=0)
        features -= centre
        spread = np.sqrt((share @ features**2).sum(axis=0))
        scale = np.maximum(spread / SPREAD, 1.0)
        features /= scale
        others = logs - logs.mean(axis=0) if K <= MATRIX_CLASSES else None
        shared = np.ones(B)
        shared[0] = 0.0
        matrix = [] if others is None else [np.full(K * K, K * (K - 1))]
        strengths = penalty * np.concatenate([shared, np.full(K * B + K, K), *matrix])
        return cls(features, centre, scale, others, knots, codes, weights, strengths)

    def start(self) -> Floats:
        """The theta of the map that changes nothing."""
        theta = np.zeros(len(self.strengths))
        theta[0] = self.scale[0]
        return theta

    def _split(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Coefficients (K, B), intercepts (K,) and matrix (K, K)."""
        K, _, B = self.features.shape
        own = theta[:B] + theta[B : B + K * B].reshape(K, B)
        end = B + K * B + K
        matrix = np.zeros((K, K)) if self.others is None else theta[end:].reshape(K, K)
        return own, theta[B + K * B : end], matrix

    def map_of(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Influence of log forecasts (K, K), of hinges (K, m), and intercepts (K,)."""
        own, intercept, matrix = self._split(theta)
        own = own / self.scale
        coef = np.diag(own[:, 0])
        intercept = intercept - own @ self.centre
        coef += matrix - matrix.mean(axis=1, keepdims=True)  # others are centred in each row
        return coef, own[:, 1:], intercept

    def log_forecasts(self, theta: Floats) -> Floats:
        """Logarithms of the calibrated forecasts, shape (K, n)."""
        own, intercept, matrix = self._split(theta)
        z = np.matmul(self.features, own[:, :, None])[..., 0]
        z += intercept[:, None]
        if self.others is not None:
            z += matrix @ self.others
        return np.asarray(log_softmax(z, axis=0))

    def solve(self, weights: Floats, start: Floats) -> Floats:
        """The theta of the lowest penalised loss under weights of the rows, by L-BFGS."""
        own_class = self.codes, np.arange(len(self.codes))
        origin = self.start()
        total = weights.sum()

        def objective(steps: Floats) -> tuple[float, Floats]:
            theta = start + size * steps
            log_q = self.log_forecasts(theta)
            away = theta - origin
            value = self.strengths @ away**2 - weights @ of_own_class(log_q, self.codes)
            residual = np.exp(log_q)
            residual[own_class] -= 1
            residual *= weights
            departures = np.matmul(residual[:, None, :], self.features)[:, 0, :]
            parts = [departures.sum(axis=0), departures.ravel(), residual.sum(axis=1)]
            if self.others is not None:
                matrix = residual @ self.others.T
                np.fill_diagonal(matrix, 0.0)
                parts.append(matrix.ravel())
            slope = np.concatenate(parts) + 2 * self.strengths * away
            return value / total, size * slope / total

        size = self._step_sizes(start, weights)
        found = minimize(
            objective,
            np.zeros(len(start)),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 300, "maxcor": 20, "ftol": 1e-7, "gtol": 1e-5},
        )
        return np.asarray(start + size * found.x)

    def _step_sizes(self, theta: Floats, weights: Floats) -> Floats:
        """One over the root of the Hessian's diagonal: steps that weigh all coordinates alike."""
        q = np.exp(self.log_forecasts(theta))
        spread = weights * q * (1 - q)
        own = np.matmul(spread[:, None, :], self.features**2)[:, 0, :]
        parts = [own.sum(axis=0), own.ravel(), spread.sum(axis=1)]
        if self.others is not None:
            parts.append((spread @ (self.others**2).T).ravel())
        return np.asarray(1 / np.sqrt(np.concatenate(parts) + 2 * self.strengths + 1e-12))
