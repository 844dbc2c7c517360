"""IdentityCalibrator: the uncalibrated forecasts."""

from __future__ import annotations

from typing import ClassVar

from isoroc._calibrators.base import Calibrator
from isoroc._input import Sample
from isoroc._maps import IdentityMap


class IdentityCalibrator(Calibrator):
    """The map that leaves forecasts alone, for comparison and for pools of calibrators.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, in the order of the columns.
    n_features_in_ : int
        Columns of the forecasts; 1 for scores.
    scores_, summary_, map_, checksum
        Whether forecasts are probabilities or logits; rows and weights of the fit; the fitted map;
        the checksum of its model file.

    See Also
    --------
    AutoCalibrator : Mixes this map with others, so that few rows change little.

    Notes
    -----
    The calibrated forecast is p itself, or ``softmax(z)`` of logits z.

    Examples
    --------
    >>> from isoroc import IdentityCalibrator
    >>> IdentityCalibrator().fit([0.2, 0.7], [0, 1]).predict_proba([0.25])
    array([[0.75, 0.25]])
    >>> IdentityCalibrator().fit([-1.0, 3.0], [0, 1]).predict_proba([0.0])
    array([[0.5, 0.5]])
    """

    _shares: ClassVar[tuple[float, float]] = (8.0, 4.0)

    def _fit(self, sample: Sample) -> IdentityMap:
        return IdentityMap(kind=sample.kind)
