"""Forecasts as probabilities and their logarithms: one rule for scores of two classes.

Logarithms stand in arrays of shape (K, n), one row a class: sums over a few classes are then sums
of long rows, several times faster than many sums of short ones.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from scipy.special import expit, log_expit

from isoroc._calibrators.base import Calibrator
from isoroc._input import Sample
from isoroc._simplex import Codes, Floats


class ProbabilityCalibrator(Calibrator):
    """Base of the calibrators for which a score is more than a place in an order.

    Scores of two classes that all lie in [0, 1] are probabilities of the second class; others are
    log odds. That is decided when the calibrator is fitted and kept as `log_odds_`.
    """

    log_odds_: bool
    #: Whether rows beyond those of the fit are known to hold log odds.
    _known_log_odds = False

    def _for_part_of(self, sample: Sample) -> Self:
        # A single score may tell that all are log odds; a part without it must know.
        part: Self = super()._for_part_of(sample)
        part._known_log_odds = are_log_odds(sample.forecasts)
        return part

    def _tell_scores(self, forecasts: Floats) -> None:
        """Set `log_odds_`."""
        self.log_odds_ = self._known_log_odds or are_log_odds(forecasts)

    def _probabilities(self, forecasts: Floats) -> Floats:
        """Forecasts as probabilities, shape (n, K)."""
        if forecasts.ndim == 2:
            return forecasts
        self._check_scores(forecasts)
        if self.log_odds_:
            return np.column_stack([expit(-forecasts), expit(forecasts)])
        return np.column_stack([1 - forecasts, forecasts])

    def _log_forecasts(self, forecasts: Floats, floor: float) -> Floats:
        """Logarithms of the probabilities, those below a floor raised to it, shape (K, n)."""
        if forecasts.ndim == 1 and self.log_odds_:
            z = np.stack([log_expit(-forecasts), log_expit(forecasts)])
            return np.asarray(np.maximum(z, np.log(floor)))
        p = np.ascontiguousarray(self._probabilities(forecasts).T)
        return np.log(np.maximum(p, floor))

    def _check_scores(self, scores: Floats) -> None:
        if not self.log_odds_ and are_log_odds(scores):
            row = int(np.argmax((scores < 0) | (scores > 1)))
            raise ValueError(
                f"P: row {row} is {scores[row]:.6g}, but the calibrator was fitted to "
                "probabilities; pass scores between 0 and 1, or fit it to log odds."
            )


def are_log_odds(forecasts: Floats) -> bool:
    """Whether a forecast array holds scores that cannot be probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> are_log_odds(np.array([0.2, 1.0])), are_log_odds(np.array([0.2, 1.1]))
    (False, True)
    """
    return forecasts.ndim == 1 and bool(forecasts.min() < 0 or forecasts.max() > 1)


def log_softmax(z: Floats) -> Floats:
    """Logarithms of exp(z) normalised to sum to one over the classes, shape (K, n).

    Examples
    --------
    >>> import numpy as np
    >>> np.exp(log_softmax(np.log([[1.0], [3.0]])))
    array([[0.25],
           [0.75]])
    """
    shifted = z - z.max(axis=0)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=0)))


def exponentials(z: Floats) -> Floats:
    """Forecasts, shape (n, K), from their logarithms, shape (K, n)."""
    return np.exp(np.ascontiguousarray(z.T))


def of_own_class(z: Floats, codes: Codes) -> Floats:
    """Entry of z, shape (K, n), for the class of each row, shape (n,)."""
    return np.asarray(z[codes, np.arange(len(codes))])
