"""IdentityCalibrator: forecasts as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from isoroc._calibrators.scores import ProbabilityCalibrator
from isoroc._input import Sample
from isoroc._persistence.states import Check
from isoroc._simplex import Floats
from isoroc._writer import C, Writer


class IdentityCalibrator(ProbabilityCalibrator):
    """The map that leaves forecasts alone, for comparison and for pools of calibrators.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, in the order of the columns.
    n_features_in_ : int
        Columns of the forecasts; 1 for scores.
    scores_ : {"probability", "logit"}
        What the forecasts are.

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

    fitted_state: ClassVar[dict[str, Check]] = {}
    prior_share: ClassVar[float] = 8.0

    def is_increasing(self) -> bool:
        """Whether the map of two classes is strictly increasing: always."""
        return True

    def _fit(self, sample: Sample) -> None:
        """Learn nothing."""

    def _calibrate(self, forecasts: Floats) -> Floats:
        return self.probabilities(forecasts)

    def _write(self, w: Writer[C], columns: Sequence[C]) -> list[C]:
        if len(columns) > 1:
            logits = self.scores_ == "logit"
            return [w.exp(column) for column in columns] if logits else list(columns)
        [score] = columns
        one = w.number(1.0)
        if self.scores_ == "probability":
            return [w.subtract(one, score), score]
        # exp of what is never positive cannot overflow, which is an error in some databases.
        [small] = w.keep([w.exp(w.negative(w.absolute(score)))])
        of_small, of_large = w.keep([w.divide(part, w.add(one, small)) for part in (small, one)])
        negative = w.at_most(score, w.number(0.0))
        return [w.where(negative, of_large, of_small), w.where(negative, of_small, of_large)]
