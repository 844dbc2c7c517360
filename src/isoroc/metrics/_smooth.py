"""Smooth calibration error (smECE): no bins, one bandwidth that the data set themselves."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.fft import dct
from scipy.optimize import brentq

from isoroc._input import Sample, check_option
from isoroc._simplex import Floats
from isoroc.metrics._calibration import views
from isoroc.metrics._inputs import check_probabilities

#: Steps of the grid on [0, 1]; bandwidths of a few steps and more are resolved.
N_STEPS = 2**14
NARROWEST = 4 / N_STEPS


def smooth_calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    kind: Literal["classwise", "top"] = "classwise",
    sample_weight: Any = None,
    labels: Any = None,
) -> float:
    """Smooth calibration error of Błasiok and Nakkiran (2023).

    Residuals ``y - p`` are smoothed along p by a Gaussian kernel that is reflected at 0 and 1, and
    the absolute value of what is left is integrated. The bandwidth is the one that equals the
    result, so there is nothing to choose. It is a continuous function of the forecasts, which
    errors with bins are not, and it is within constants of the distance to the nearest calibrated
    forecasts.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes.
    kind : {"classwise", "top"}, default="classwise"
        Each class's probability by itself, and the mean over the classes (for two classes that is
        the usual error of the second one); or the largest probability as that of being right.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row; weight 2 is the same as the row twice.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns; sorted by default.

    Returns
    -------
    float
        Between 0 and 1. Chance alone gives calibrated forecasts some of it, about
        ``n ** (-1/2)`` and a little more. Values below 0.00025 are not resolved.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.metrics import smooth_calibration_error
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(10_000)
    >>> round(smooth_calibration_error(rng.random(10_000) < p**2, p), 2)
    0.18
    """
    check_option("kind", kind, ("classwise", "top"))
    sample = check_probabilities(y_true, y_prob, sample_weight, labels)
    return float(np.mean([_fixed_point(_spectrum(view)) for view in views(sample, kind)]))


def _spectrum(view: Sample) -> Floats:
    """Cosine transform of the residuals' mass along [0, 1], shared out between grid points."""
    scores = view.forecasts
    mass = view.residuals()
    mass *= 1 / len(mass) if view.weights is None else view.weights / view.weights.sum()
    place = scores * N_STEPS
    left = np.minimum(place.astype(np.intp), N_STEPS - 1)
    right_share = mass * (place - left)
    grid = np.bincount(left, mass - right_share, N_STEPS + 1)
    grid = grid + np.bincount(left + 1, right_share, N_STEPS + 1)
    ends = np.zeros(N_STEPS + 1)
    ends[[0, -1]] = grid[[0, -1]] / 2
    return np.asarray(dct(grid / 2 + ends, type=1))  # the transform counts inner points twice


def _fixed_point(spectrum: Floats) -> float:
    """The bandwidth at which the error equals it."""
    # The heat kernel with reflecting ends is diagonal in cosines: that is the reflected Gaussian.
    decay = (np.pi * np.arange(len(spectrum))) ** 2 / 2

    def error(sigma: float) -> float:
        smoothed = np.abs(dct(spectrum * np.exp(-decay * sigma**2), type=1))
        return float(smoothed.mean() + (smoothed.mean() - smoothed[[0, -1]].mean()) / N_STEPS)

    if error(NARROWEST) <= NARROWEST:
        return error(NARROWEST)
    return float(brentq(lambda sigma: error(sigma) - sigma, NARROWEST, 1.0, xtol=1e-9))
