"""SigmoidCalibrator and BetaCalibrator: logistic regression on the forecast of each class."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import lstsq
from scipy.special import expit

from isoroc._backends import NUMPY
from isoroc._calibrators.base import Calibrator, FromMap
from isoroc._calibrators.temperature import likeliest
from isoroc._core.types import Floats
from isoroc._input import Sample
from isoroc._input.kinds import LogOdds
from isoroc._maps import SigmoidMap

#: Smaller forecasts are raised to one of these: a forecast of exactly 0 has no logarithm, and with
#: forests, which forecast 0 for events that happen, such rows would determine the map alone.
FLOORS = (1e-12, 1e-6, 1e-4, 1e-3, 1e-2)
#: Newton steps at most; targets inside (0, 1) keep the minimum finite, and few are needed.
STEPS = 100


class SigmoidCalibrator(Calibrator):
    """Platt scaling: a logistic regression on the log odds of each class.

    With more than two classes, each class is calibrated against the rest, and rows are divided by
    their sum, as in scikit-learn's ``method="sigmoid"``.

    Attributes
    ----------
    classes_, n_features_in_, unit_, summary_, map_, checksum
        As in `TemperatureCalibrator`.
    coef_, intercept_ : ndarray of shape (K,)
        a and b of each class.

    See Also
    --------
    BetaCalibrator : Has one coefficient more.
    MatrixCalibrator : Calibrates all classes together.

    Notes
    -----
    The calibrated forecast of a class is ``sigmoid(a log(p / (1 - p)) + b)``. The outcomes are
    smoothed as Platt proposed: with n rows of a class and m others they are ``(n + 1) / (n + 2)``
    and ``1 / (m + 2)`` instead of 1 and 0. Small
    forecasts are raised to a floor between 1e-12 and 0.01, the one of the largest likelihood.

    References
    ----------
    Platt, Probabilistic outputs for support vector machines, 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import SigmoidCalibrator
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(scale=3, size=2000)
    >>> y = rng.random(2000) < 1 / (1 + np.exp(1 - z / 2))
    >>> cal = SigmoidCalibrator().fit(z, y)
    >>> cal.coef_[1].round(1), cal.intercept_[1].round(1)
    (np.float64(0.5), np.float64(-1.0))
    """

    coef_, intercept_ = FromMap(), FromMap()

    def _fit(self, sample: Sample) -> SigmoidMap:
        return _likeliest_map(sample, _fit_sigmoid)


class BetaCalibrator(Calibrator):
    """Beta calibration: a logistic regression on ``log(p)`` and ``log(1 - p)`` of each class.

    With more than two classes, each class is calibrated against the rest, and rows are divided by
    their sum.

    Attributes
    ----------
    classes_, n_features_in_, unit_, summary_, map_, checksum
        As in `TemperatureCalibrator`.
    coef_, rest_, intercept_ : ndarray of shape (K,)
        a, b and c of each class.

    See Also
    --------
    SigmoidCalibrator : Has one coefficient less.
    DirichletCalibrator : Calibrates all classes together.

    Notes
    -----
    The calibrated forecast of a class is ``sigmoid(a log(p) - b log(1 - p) + c)`` with a and b of
    at least 0, so that the map increases. Outcomes are smoothed as in `SigmoidCalibrator`, and
    so is the floor.

    References
    ----------
    Kull, Silva Filho and Flach, Beta calibration, AISTATS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import BetaCalibrator
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p**2
    >>> BetaCalibrator().fit(p, y).predict_proba([0.5]).round(2)
    array([[0.77, 0.23]])
    """

    coef_, rest_, intercept_ = FromMap(), FromMap(), FromMap()

    def _fit(self, sample: Sample) -> SigmoidMap:
        return _likeliest_map(sample, _fit_beta)


#: Mean loss, and coefficients `coef`, `rest` and `intercept` of one class.
_Fit = tuple[float, float, float, float]


def _likeliest_map(sample: Sample, fit: Callable[..., _Fit]) -> SigmoidMap:
    """The map of each class against the rest, with the floor of the least loss."""
    totals = sample.class_weights()
    low, high = 1 / (totals.sum() - totals + 2), (totals + 1) / (totals + 2)
    found = []
    for floor in FLOORS[:1] if isinstance(sample.kind, LogOdds) else FLOORS:
        logs = sample.kind.log_rows(sample.forecasts, floor)
        log_rest = (logs.T - NUMPY.log_odds(logs.T)).T
        fits = []
        for k in range(sample.n_classes):
            targets = np.where(sample.codes == k, high[k], low[k])
            fits.append(fit(logs[k], log_rest[k], targets, sample.row_weights()))
        found.append((sum(loss for loss, *_ in fits), floor, fits))
    _, floor, fits = likeliest(found)
    _, coef, rest, intercept = np.array(fits).T.copy()
    return SigmoidMap(kind=sample.kind, floor=floor, coef=coef, rest=rest, intercept=intercept)


def _fit_sigmoid(logs: Floats, log_rest: Floats, targets: Floats, weights: Floats) -> _Fit:
    loss, (a, b) = _regress(np.stack([logs - log_rest]), targets, weights)
    return loss, a, a, b


def _fit_beta(logs: Floats, log_rest: Floats, targets: Floats, weights: Floats) -> _Fit:
    X, found = np.stack([logs, -log_rest]), []
    for used in ([0, 1], [0], [1], []):
        loss, (*slopes, c) = _regress(X[used], targets, weights)
        if min(slopes, default=0.0) < 0:
            continue
        both = np.zeros(2)
        both[used] = slopes
        found.append((loss, *both.tolist(), c))
        if len(used) == 2:  # others cannot have a lower loss
            break
    return likeliest(found)


def _regress(X: Floats, targets: Floats, weights: Floats) -> tuple[float, list[float]]:
    """Mean loss of a logistic regression on the rows of X, its coefficients and its intercept."""
    scale = np.abs(X).max(axis=1, initial=1.0)
    X = np.vstack([X / scale[:, None], np.ones(len(targets))])
    theta = np.zeros(len(X))

    def loss(theta: Floats) -> float:
        z = theta @ X
        return float(weights @ (np.logaddexp(0, z) - targets * z))

    value = loss(theta)
    for _ in range(STEPS):
        q = expit(theta @ X)
        gradient = X @ (weights * (q - targets))
        hessian = (X * (weights * q * (1 - q))) @ X.T
        step = -np.asarray(lstsq(hessian, gradient)[0])  # constant forecasts leave it singular
        size = 1.0
        while (there := loss(theta + size * step)) > value and size > 1e-10:
            size /= 2
        if there >= value:
            break
        theta, value = theta + size * step, there
    return value / float(weights.sum()), (theta / np.append(scale, 1.0)).tolist()
