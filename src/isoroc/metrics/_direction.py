"""Which way forecasts are wrong: over- or underconfident, too high or too low for a class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoroc._input import check_confidence, check_probabilities, slices
from isoroc._intervals import half_width
from isoroc._simplex import Floats
from isoroc._table import Table

#: With more classes, only the direction of the most probable one is known.
MOST_CLASSES = 50
#: Name of the event that the most probable class occurs.
TOP = "top"


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
    y_true : array-like of shape (n,)
        Labels.
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns; sorted by default.
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


class Residuals:
    """Sums of forecasts less outcomes, to which batches of rows are added."""

    def __init__(self) -> None:
        self._n_rows = 0
        self._weight = np.zeros(2)  # sums of the weights and of their squares
        self._sums = np.zeros((0, 5))

    def add(
        self, P: Floats, codes: NDArray[Any], weights: Floats, squares: Floats, n_rows: int
    ) -> None:
        """Add rows with their weights, and the squares of the weights."""
        events = [None, *(range(P.shape[1]) if P.shape[1] <= MOST_CLASSES else ())]
        if not self._n_rows:
            self._sums = np.zeros((len(events), 5))
        self._n_rows += n_rows
        for rows in slices(len(P)):
            w, s, part = weights[rows], squares[rows], P[rows]
            self._weight += [w.sum(), s.sum()]
            for i, k in enumerate(events):
                best = part.argmax(axis=1) if k is None else np.full(len(part), k)
                p = part[np.arange(len(part)), best]
                residual = p - (best == codes[rows])
                self._sums[i, :2] += [w @ p, w @ residual]
                # The last one is the variance if the forecasts are calibrated.
                self._sums[i, 2:] += [s @ residual, s @ residual**2, s @ (p * (1 - p))]

    def table(self, classes: NDArray[Any], confidence: float) -> Table:
        """Mean forecasts, frequencies and differences with intervals."""
        (total, squares), n = self._weight, self._n_rows
        forecast, difference = self._sums[:, :2].T / total
        first, second, least = self._sums[:, 2:].T
        spread = second - 2 * difference * first + difference**2 * squares
        # Without an event among the rows there is hardly a spread.
        variance = np.maximum(spread * n / max(n - 1, 1), least) / total**2
        half = half_width(confidence) * np.sqrt(variance)
        events = [TOP, *map(str, classes.tolist())][: len(forecast)]
        return Table(
            {"event": np.array(events), "forecast": forecast, "observed": forecast - difference}
            | {"difference": difference, "low": difference - half, "high": difference + half}
        )
