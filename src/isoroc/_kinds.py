"""Kinds of forecasts: what the numbers of a row are, and which rows are valid.

Each kind is a class with one object. It says, over `Ops`, when a row is a forecast, and what its
probabilities, their logarithms and, for two classes, its score are. That is all that maps, counts
and the checks of input have to know, so nothing else asks what the numbers mean.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np

from isoroc._backends import NUMPY, Ops, Truth, V
from isoroc._core import smooth
from isoroc._simplex import LEAST, PRECISE, STEP, Floats

#: Rows whose sum is off by more than this are refused, closer ones are normalised,
SUM_TOLERANCE = 1e-3
#: and rows closer than this stay unchanged: dividing them would only add rounding errors.
SUM_EXACT = 1e-12
#: Probabilities outside [0, 1] by less than this are rounding errors, and are clipped.
RANGE_TOLERANCE = 1e-6
#: Logarithms of forecasts below this count as this: their squares must not overflow.
LOWEST_LOG = -1e100


class Kind(ABC):
    """What the numbers of a row are."""

    #: Name in model files.
    name: ClassVar[str]
    #: The unit of the numbers, as the parameter `scores` of `fit` names it.
    scores: ClassVar[Literal["probability", "logit"]]
    #: Whether two classes are given by one number.
    single: ClassVar[bool]

    @abstractmethod
    def clean(self, ops: Ops[V], X: V, *, exact: bool = True) -> tuple[V, Truth]:
        """The numbers as formulas take them, and whether they are a forecast.

        With `exact`, forecasts are those of `predict_proba` to the last bit; otherwise up to
        rounding errors, which takes fewer operations.
        """

    @abstractmethod
    def probabilities(self, ops: Ops[V], X: V) -> V:
        """Probabilities of all classes."""

    @abstractmethod
    def logs(self, ops: Ops[V], X: V, floor: float) -> V:
        """Logarithms of the probabilities, those below a floor raised to it."""

    @abstractmethod
    def score(self, ops: Ops[V], X: V) -> V:
        """For two classes, a score that increases with the probability of the second."""

    def log_rows(self, values: Floats, floor: float) -> Floats:
        """What `logs` returns for a forecast array, one row per class: shape (K, n)."""
        return np.ascontiguousarray(self.logs(NUMPY, columns_of(values), floor).T)


class Probabilities(Kind):
    """Probabilities of all classes."""

    name = "probabilities"
    scores = "probability"
    single = False

    def clean(self, ops: Ops[V], X: V, *, exact: bool = True) -> tuple[V, Truth]:
        """Probabilities, clipped and normalised where they are slightly off."""
        add = ops.total if exact else ops.sum
        smallest, off = ops.smallest(X), ops.absolute(add(X) - 1.0)
        # A sum with NaN is not near one, whatever the smallest is.
        good = (off <= SUM_TOLERANCE) & (smallest >= -RANGE_TOLERANCE)
        filler = 1 / ops.width(X)
        if not exact:
            clipped = ops.maximum(X, 0.0)
            total = ops.guarded(good, add(clipped), 1.0)
            return ops.guarded(good, clipped / total, filler), good
        unchanged = (off <= SUM_EXACT) & (smallest >= 0.0)
        # Most rows stay unchanged, and databases compute the rest of a choice for others only, so
        # what is clipped is not a vector that both choices share.
        total = ops.where(unchanged, 1.0, ops.where(good, add(ops.maximum(X, 0.0)), 1.0))
        divisor = ops.where(ops.absolute(total - 1.0) <= SUM_EXACT, 1.0, total)
        scaled = ops.maximum(X, 0.0) / divisor
        return ops.where(unchanged, X, ops.guarded(good, scaled, filler)), good

    def probabilities(self, ops: Ops[V], X: V) -> V:  # noqa: ARG002
        """The numbers themselves."""
        return X

    def logs(self, ops: Ops[V], X: V, floor: float) -> V:
        """Logarithms; first of what is at least `LEAST`, which maps with other floors share."""
        z = ops.log(ops.maximum(X, LEAST))
        return z if floor <= LEAST else ops.maximum(z, math.log(floor))

    def score(self, ops: Ops[V], X: V) -> V:
        """What `isoroc._simplex.binary_scores` returns."""
        first, second = ops.take(X, [0]), ops.take(X, [1])
        fall = STEP * (ops.log(ops.maximum(first, LEAST)) - math.log(LEAST))
        return ops.where(first >= PRECISE, second, 1.0 - fall)

    def log_rows(self, values: Floats, floor: float) -> Floats:
        """The same by the compiled loop."""
        P = self.probabilities(NUMPY, columns_of(values))
        return smooth.log_forecasts(np.ascontiguousarray(P), floor)


class SecondProbability(Probabilities):
    """The probability of the second of two classes."""

    name = "probability"
    single = True

    def clean(self, ops: Ops[V], X: V, *, exact: bool = True) -> tuple[V, Truth]:  # noqa: ARG002
        """Probabilities, clipped where they are slightly off."""
        good = (-RANGE_TOLERANCE <= X) & (X <= 1 + RANGE_TOLERANCE)
        return ops.guarded(good, ops.maximum(ops.minimum(X, 1.0), 0.0), 0.5), good

    def probabilities(self, ops: Ops[V], X: V) -> V:
        """Those of both classes."""
        return ops.concat([1.0 - X, X])

    def logs(self, ops: Ops[V], X: V, floor: float) -> V:
        """Logarithms of both."""
        return super().logs(ops, self.probabilities(ops, X), floor)

    def score(self, ops: Ops[V], X: V) -> V:  # noqa: ARG002
        """The number itself."""
        return X


class Logits(Kind):
    """Logits of all classes; cleaned, they are logarithms of probabilities."""

    name = "logits"
    scores = "logit"
    single = False

    def clean(self, ops: Ops[V], X: V, *, exact: bool = True) -> tuple[V, Truth]:  # noqa: ARG002
        """Logarithms of the probabilities of finite logits."""
        good = ops.every(ops.absolute(X) <= sys.float_info.max)
        return ops.log_softmax(ops.guarded(good, X, 0.0)), good

    def probabilities(self, ops: Ops[V], X: V) -> V:
        """Exponentials."""
        return ops.exp(X)

    def logs(self, ops: Ops[V], X: V, floor: float) -> V:
        """The numbers themselves, where they are not too low."""
        return ops.maximum(X, math.log(floor) if floor else LOWEST_LOG)

    def score(self, ops: Ops[V], X: V) -> V:
        """That of the probabilities."""
        return PROBABILITIES.score(ops, ops.exp(X))


class LogOdds(Kind):
    """Log odds of the second of two classes, or any other score of which only the order counts."""

    name = "log_odds"
    scores = "logit"
    single = True

    def clean(self, ops: Ops[V], X: V, *, exact: bool = True) -> tuple[V, Truth]:  # noqa: ARG002
        """Finite numbers."""
        good = ops.absolute(X) <= sys.float_info.max
        return ops.guarded(good, X, 0.5), good

    def probabilities(self, ops: Ops[V], X: V) -> V:
        """The logistic function, by exponentials that cannot overflow: some databases fail then."""
        small = ops.exp(-ops.absolute(X))
        less, more = small / (1.0 + small), 1.0 / (1.0 + small)
        negative = X <= 0.0
        return ops.concat([ops.where(negative, more, less), ops.where(negative, less, more)])

    def logs(self, ops: Ops[V], X: V, floor: float) -> V:
        """``log(1 / (1 + exp(-x))) = min(x, 0) - log(1 + exp(-|x|))``, and the same of -x."""
        spread = ops.log(1.0 + ops.exp(-ops.absolute(X)))
        z = ops.concat([-ops.maximum(X, 0.0) - spread, ops.minimum(X, 0.0) - spread])
        return ops.maximum(z, math.log(floor) if floor else LOWEST_LOG)

    def score(self, ops: Ops[V], X: V) -> V:  # noqa: ARG002
        """The number itself."""
        return X


PROBABILITIES, SECOND_PROBABILITY = Probabilities(), SecondProbability()
LOGITS, LOG_ODDS = Logits(), LogOdds()
#: All kinds, by their names in model files.
KINDS: dict[str, Kind] = {
    kind.name: kind for kind in (PROBABILITIES, SECOND_PROBABILITY, LOGITS, LOG_ODDS)
}


def kind_of(values: Any, scores: Literal["probability", "logit"]) -> Kind:
    """The kind of a forecast array of probabilities or logits.

    Examples
    --------
    >>> import numpy as np
    >>> kind_of(np.array([0.2, 0.7]), "probability").name
    'probability'
    """
    if values.ndim == 1:
        return SECOND_PROBABILITY if scores == "probability" else LOG_ODDS
    return PROBABILITIES if scores == "probability" else LOGITS


def columns_of(values: Floats) -> Floats:
    """A forecast array as a matrix: scores are one column."""
    return values[:, None] if values.ndim == 1 else values
