"""IdentityCalibrator: forecasts as they are."""

from __future__ import annotations

from isoroc._calibrators.scores import ProbabilityCalibrator
from isoroc._input import Sample
from isoroc._simplex import Floats


class IdentityCalibrator(ProbabilityCalibrator):
    """The map that leaves forecasts alone, for comparison and for pools of calibrators.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, in the order of the columns.
    n_features_in_ : int
        Columns of the forecasts; 1 for scores.
    log_odds_ : bool
        Whether the scores of two classes are log odds: so if one was outside [0, 1] in `fit`.

    Examples
    --------
    >>> from isoroc import IdentityCalibrator
    >>> IdentityCalibrator().fit([0.2, 0.7], [0, 1]).predict_proba([0.25])
    array([[0.75, 0.25]])
    >>> IdentityCalibrator().fit([-1.0, 3.0], [0, 1]).predict_proba([0.0])
    array([[0.5, 0.5]])
    """

    _fitted = ("log_odds_",)

    def _fit(self, sample: Sample) -> None:
        self._tell_scores(sample.forecasts)

    def _calibrate(self, forecasts: Floats) -> Floats:
        return self._probabilities(forecasts)
