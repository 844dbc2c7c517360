"""Which way forecasts are wrong: over- or underconfident, too high or too low for a class."""

from __future__ import annotations

from typing import Any

from isoroc._estimation.residuals import Residuals
from isoroc._input import check_confidence, check_probabilities
from isoroc._table import Table


def calibration_direction(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    labels: Any = None,
    confidence: float = 0.95,
) -> Table:
    """Whether forecasts are over- or underconfident, and which classes are forecast too high.

    `calibration_error` says how far forecasts are from frequencies; this is the mean difference
    with its sign. Differences of both signs cancel out.

    Parameters
    ----------
    y_true, y_prob : array-like of shape (n,), and (n, K) or (n,)
        Labels; forecasts, or the probability of the second of two classes.
    sample_weight, labels : array-like of shape (n,) and (K,), default=None
        Weight of each row, and the classes in the order of the columns (sorted by default).
    confidence : float, default=0.95
        Probability that an interval covers the true difference.

    Returns
    -------
    Table
        One row for the most probable class ("top") and one for each class, of at most 50: its mean
        ``forecast``, how often it was ``observed``, their ``difference`` and its interval, ``low``
        to ``high``. The forecasts are overconfident if the difference of "top" is above 0, and
        underconfident if it is below.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.metrics import calibration_direction
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = np.where(rng.random(2000) < (p + 0.5) / 2, "yes", "no")  # p is too extreme
    >>> calibration_direction(y, p)
      event  forecast  observed  difference         low       high
        top   0.75235    0.6125     0.13985     0.11871    0.16099
         no   0.50109     0.489    0.012086  -0.0099194   0.034091
        yes   0.49891     0.511   -0.012086   -0.034091  0.0099194
    """
    check_confidence(confidence)
    sample = check_probabilities(y_true, y_prob, sample_weight, labels)
    sums, weights = Residuals(), sample.row_weights()
    sums.add(sample.forecasts, sample.codes, weights, weights**2, len(sample))
    return sums.table(sample.classes, confidence)
