"""Smooth calibration error (smECE): a kernel in place of bins, with a data-driven bandwidth."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.fft import dct
from scipy.optimize import brentq

from isoroc._input import Sample, check_option, check_probabilities, split_by_kind
from isoroc._simplex import Floats

#: Steps of the grid on [0, 1]; the smallest bandwidth is a few steps.
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
    the absolute value of the result is integrated. The bandwidth is the one that equals the
    resulting error, so it need not be chosen. Unlike binned errors, this error is a continuous
    function of the forecasts. It is within constant factors of the distance to the nearest
    calibrated forecasts.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes.
    kind : {"classwise", "top"}, default="classwise"
        "classwise": the probability of each class by itself, averaged over the classes (for two
        classes, the error of the second one). "top": the largest probability, compared with the
        accuracy.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row; weight 2 is the same as the row twice.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns; sorted by default.

    Returns
    -------
    float
        Between 0 and 1. Calibrated forecasts have a positive error by chance, somewhat more than
        ``n ** (-1/2)``. Values below 0.00025 are not resolved.

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
    parts = split_by_kind(sample, kind)
    return float(np.mean([_fixed_point(_spectrum(part)) for part in parts]))


def _spectrum(sample: Sample) -> Floats:
    """Cosine transform of the residuals along [0, 1], distributed to the nearest grid points."""
    scores = sample.forecasts
    weights = sample.row_weights()
    mass = sample.residuals() * (weights / weights.sum())
    place = scores * N_STEPS
    left = np.minimum(place.astype(np.intp), N_STEPS - 1)
    right_share = mass * (place - left)
    grid = np.bincount(left, mass - right_share, N_STEPS + 1)
    grid = grid + np.bincount(left + 1, right_share, N_STEPS + 1)
    ends = np.zeros(N_STEPS + 1)
    ends[[0, -1]] = grid[[0, -1]] / 2
    return np.asarray(dct(grid / 2 + ends, type=1))  # inner points count twice in the transform


def _fixed_point(spectrum: Floats) -> float:
    """The bandwidth that equals the error at this bandwidth."""
    # The reflected Gaussian is the heat kernel with reflecting ends, which is diagonal in cosines.
    decay = (np.pi * np.arange(len(spectrum))) ** 2 / 2

    def error(sigma: float) -> float:
        smoothed = np.abs(dct(spectrum * np.exp(-decay * sigma**2), type=1))
        return float(smoothed.mean() + (smoothed.mean() - smoothed[[0, -1]].mean()) / N_STEPS)

    if error(NARROWEST) <= NARROWEST:
        return error(NARROWEST)
    return float(brentq(lambda sigma: error(sigma) - sigma, NARROWEST, 1.0, xtol=1e-9))
