"""IdentityMap: forecasts as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from isoroc._maps.scores import ProbabilityMap
from isoroc._persistence.states import Check
from isoroc._simplex import Floats
from isoroc._writer import C, Writer


class IdentityMap(ProbabilityMap):
    """What `IdentityCalibrator` applies."""

    fitted_state: ClassVar[dict[str, Check]] = {}

    def is_increasing(self) -> bool:
        """Whether the map of two classes is strictly increasing: always."""
        return True

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
