"""Kinds of forecasts: what the numbers of a row are, and which rows are valid.

Each kind is one object. It computes, over `Ops`, which rows are valid, and their probabilities,
logarithms and, for two classes, scores. `Kind.clean` is the only rule for a valid forecast.
`is_clean` is a quick sufficient condition, and `explain` words the message.
"""

import math
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from isoroc._backends import NUMPY, Ops, Truth, V
from isoroc._core import smooth
from isoroc._core.rows import are_within, find_largest
from isoroc._core.simplex import LEAST, PRECISE, score_next_to_one
from isoroc._core.special import logit
from isoroc._core.types import Floats, Ints
from isoroc._input.arrays import slices

#: Rows with a sum further from 1 are refused. Other rows are normalised.
SUM_TOLERANCE = 1e-3
#: Rows with a sum this close to 1 stay unchanged: dividing them would only add rounding errors.
SUM_EXACT = 1e-12
#: Probabilities outside [0, 1] by less than this are rounding errors, and are clipped.
RANGE_TOLERANCE = 1e-6
#: Lower bound for logarithms of forecasts, so that their squares do not overflow.
LOWEST_LOG = -1e100
_LARGEST = sys.float_info.max

Unit = Literal["probability", "percent", "proportion", "logit", "log_probability", "rank"]
Bounds = tuple[float, float, float] | None
#: What is wrong with a row, what to do, and the unit that its numbers may be in.
Problem = tuple[str, str, Unit | None]


@dataclass(frozen=True, eq=False)
class Kind(ABC):
    """What the numbers of a row are."""

    name: str  # in model files
    unit: Unit  # as in the parameter `unit` of `fit`
    certain: float = 1.0  # the number that means certainty: 100 for percentages
    #: What the numbers are once they are clean.
    scores: ClassVar[Literal["probability", "logit"]]
    #: Whether one number stands for two classes.
    single: ClassVar[bool]
    #: Whether the probabilities of a row sum to one. Several labels of a row need not.
    exclusive: ClassVar[bool] = True
    #: `clean` leaves rows unchanged if all numbers lie between the first two of these and the row
    #: sums to 1 up to the third. None if it may change any row.
    unchanged: ClassVar[Bounds] = None

    @abstractmethod
    def clean(self, ops: Ops[V], X: V, *, exact: bool = True) -> tuple[V, Truth]:
        """Numbers that formulas accept, and whether the row is a valid forecast.

        With `exact`, forecasts equal those in `predict_proba` to the last bit. Otherwise they may
        differ by rounding errors, and need fewer operations.
        """

    def is_clean(self, values: Floats) -> bool:
        """Quick sufficient check that `clean` would leave a forecast array unchanged."""
        if self.unchanged is None or self.certain != 1:
            return False
        if not self.single:
            return are_within(columns_of(values), *self.unchanged)
        low, high, _ = self.unchanged
        parts = (values[rows] for rows in slices(len(values)))
        return all(low <= part.min() and part.max() <= high for part in parts)  # false for NaN

    @abstractmethod
    def probabilities(self, ops: Ops[V], X: V) -> V:
        """Probabilities of all classes."""

    @abstractmethod
    def logs(self, ops: Ops[V], X: V, floor: float) -> V:
        """Logarithms of the probabilities, which are raised to the floor."""

    @abstractmethod
    def score(self, ops: Ops[V], X: V) -> V:
        """For two classes, a score that increases with the probability of the second."""

    @abstractmethod
    def explain(self, entries: Floats) -> Problem:
        """What is wrong with an invalid row, and what to do."""

    def log_rows(self, values: Floats, floor: float) -> Floats:
        """Result of `logs` for a forecast array, with shape (K, n)."""
        return np.ascontiguousarray(self.logs(NUMPY, columns_of(values), floor).T)

    def on_simplex(self, ops: Ops[V], X: V) -> V:
        """Probabilities in as many columns as the forecasts have."""
        P = self.probabilities(ops, X)
        return ops.take(P, [1]) if self.single else P

    def from_simplex(self, P: Floats) -> Floats:
        """A forecast array of probabilities, converted to this kind."""
        return P

    def restore(self, values: Floats) -> Floats:
        """Clean numbers, converted back to the unit of the user."""
        return values if self.certain == 1 else self.certain * values

    def decisions(self, values: Floats) -> Ints:
        """Column with the largest probability in each row, the first on ties."""
        return find_largest(values)[1]


class Probabilities(Kind):
    """Probabilities or percentages of all classes. Cleaned, they are probabilities."""

    scores = "probability"
    single = False
    # Half of the tolerance, because sums in another order differ slightly.
    unchanged: ClassVar[Bounds] = (0.0, math.inf, SUM_EXACT / 2)

    def clean(self, ops: Ops[V], X: V, *, exact: bool = True) -> tuple[V, Truth]:
        """Probabilities, clipped and normalised where they are slightly off."""
        X = X if self.certain == 1 else X / self.certain
        add = ops.total if exact else ops.sum
        smallest = ops.smallest(X)
        off = ops.absolute(add(X) - 1.0)
        # A sum with NaN is never near one, so NaN in `smallest` does not matter.
        good = (off <= SUM_TOLERANCE) & (smallest >= -RANGE_TOLERANCE)
        filler = 1 / ops.width(X)
        if not exact:
            clipped = ops.maximum(X, 0.0)
            total = ops.guarded(good, add(clipped), 1.0)
            return ops.guarded(good, clipped / total, filler), good
        unchanged = (off <= SUM_EXACT) & (smallest >= 0.0)
        # Most rows stay unchanged, and databases evaluate the other branch for other rows only. So
        # the clipped vector is written twice instead of being shared.
        total = ops.where(unchanged, 1.0, ops.where(good, add(ops.maximum(X, 0.0)), 1.0))
        divisor = ops.where(ops.absolute(total - 1.0) <= SUM_EXACT, 1.0, total)
        scaled = ops.maximum(X, 0.0) / divisor
        return ops.where(unchanged, X, ops.guarded(good, scaled, filler)), good

    def probabilities(self, ops: Ops[V], X: V) -> V:  # noqa: ARG002
        return X

    def logs(self, ops: Ops[V], X: V, floor: float) -> V:
        """Logarithms, first with the floor `LEAST`, so that maps with other floors share them."""
        z = ops.log(ops.maximum(self.probabilities(ops, X), LEAST))
        return z if floor <= LEAST else ops.maximum(z, math.log(floor))

    def score(self, ops: Ops[V], X: V) -> V:
        """The same as `isoroc._core.simplex.binary_scores`."""
        first = ops.take(X, [0])
        second = ops.take(X, [1])
        return ops.where(first >= PRECISE, second, score_next_to_one(ops, first))

    def explain(self, entries: Floats) -> Problem:
        if not np.isfinite(entries).all():
            fix = f"{self.name} must be finite. Drop or impute such rows first"
            return _entries(entries), fix, _unit_of_infinite(entries)
        if (entries < 0).any():
            fix = f"Negative values in data passed as {self.name}"
            logs = (entries <= 0).all() and abs(np.exp(entries).sum() - 1) < 1e-3
            return f"holds {entries.min():.6g}", fix, "log_probability" if logs else "logit"
        with np.errstate(over="ignore"):
            total = float(entries.sum())
        problem = f"sums to {total:.6g}, not to {self.certain:g}"
        if 0.95 <= total / self.certain <= 1.05:
            return problem, "divide each row by its sum", "proportion"
        if 95 <= total <= 105:
            return problem, "these look like percentages: divide them by 100", "percent"
        fix = f"each row must hold the {self.name} of all classes"
        if (entries <= self.certain).all():
            fix += ". Divide one-vs-rest scores by their sum; labels that do not exclude each other"
            return problem, f"{fix} need MultiLabelCalibrator", "proportion"
        return problem, f"{fix}; scores are one 1-D array", "logit"

    def log_rows(self, values: Floats, floor: float) -> Floats:
        """The same as `logs`, by a compiled loop."""
        P = self.probabilities(NUMPY, columns_of(values))
        return smooth.log_forecasts(np.ascontiguousarray(P), floor)


class SecondProbability(Probabilities):
    """The probability, or percentage, of the second of two classes."""

    single = True
    unchanged: ClassVar[Bounds] = (0.0, 1.0, math.inf)

    def clean(self, ops: Ops[V], X: V, *, exact: bool = True) -> tuple[V, Truth]:  # noqa: ARG002
        """Probabilities, clipped where they are slightly off."""
        X = X if self.certain == 1 else X / self.certain
        good = (-RANGE_TOLERANCE <= X) & (X <= 1 + RANGE_TOLERANCE)
        return ops.guarded(good, ops.maximum(ops.minimum(X, 1.0), 0.0), 0.5), good

    def probabilities(self, ops: Ops[V], X: V) -> V:
        return ops.concat([1.0 - X, X])

    def score(self, ops: Ops[V], X: V) -> V:  # noqa: ARG002
        return X

    def explain(self, entries: Floats) -> Problem:
        if not np.isfinite(entries).all():
            return LOG_ODDS.explain(entries)
        units = "probabilities" if self.certain == 1 else "percentages"
        problem = f"is {entries[0]:.6g}, but scores are {units} here"
        return problem, f"pass scores between 0 and {self.certain:g}", "logit"

    def on_simplex(self, ops: Ops[V], X: V) -> V:  # noqa: ARG002
        return X

    def decisions(self, values: Floats) -> Ints:
        return np.asarray(values > 0.5, dtype=np.intp)


class Logits(Kind):
    """Logits of all classes. Cleaned, they are log probabilities."""

    scores = "logit"
    single = False

    def clean(self, ops: Ops[V], X: V, *, exact: bool = True) -> tuple[V, Truth]:  # noqa: ARG002
        good = ops.every(ops.absolute(X) <= _LARGEST)
        return ops.log_softmax(ops.guarded(good, X, 0.0)), good

    def probabilities(self, ops: Ops[V], X: V) -> V:
        return ops.exp(X)

    def logs(self, ops: Ops[V], X: V, floor: float) -> V:
        return ops.maximum(X, math.log(floor) if floor else LOWEST_LOG)

    def score(self, ops: Ops[V], X: V) -> V:
        return PROBABILITIES.score(ops, ops.exp(X))

    def explain(self, entries: Floats) -> Problem:
        return _entries(entries), "logits are finite", _unit_of_infinite(entries)

    def from_simplex(self, P: Floats) -> Floats:
        return np.asarray(np.log(P.clip(min=LEAST)))


class LogOdds(Kind):
    """Log odds of the second of two classes, or any score where only the order counts."""

    scores = "logit"
    single = True
    unchanged: ClassVar[Bounds] = (-_LARGEST, _LARGEST, math.inf)

    def clean(self, ops: Ops[V], X: V, *, exact: bool = True) -> tuple[V, Truth]:  # noqa: ARG002
        good = ops.absolute(X) <= _LARGEST
        return ops.guarded(good, X, 0.5), good

    def probabilities(self, ops: Ops[V], X: V) -> V:
        """The logistic function, by exponentials that cannot overflow: some databases need this."""
        small = ops.exp(-ops.absolute(X))
        less = small / (1.0 + small)
        more = 1.0 / (1.0 + small)
        negative = X <= 0.0
        return ops.concat([ops.where(negative, more, less), ops.where(negative, less, more)])

    def logs(self, ops: Ops[V], X: V, floor: float) -> V:
        """``log(1 / (1 + exp(-x))) = min(x, 0) - log(1 + exp(-|x|))``, and the same of -x."""
        spread = ops.log(1.0 + ops.exp(-ops.absolute(X)))
        z = ops.concat([-ops.maximum(X, 0.0) - spread, ops.minimum(X, 0.0) - spread])
        return ops.maximum(z, math.log(floor) if floor else LOWEST_LOG)

    def score(self, ops: Ops[V], X: V) -> V:  # noqa: ARG002
        return X

    def explain(self, entries: Floats) -> Problem:
        return f"is {_shown(entries[0])}", "scores must be finite", None

    def from_simplex(self, P: Floats) -> Floats:
        return logit(P.clip(LEAST, 1 - 2.0**-53))

    def decisions(self, values: Floats) -> Ints:
        return np.asarray(values > 0, dtype=np.intp)


class Proportions(Probabilities):
    """Numbers proportional to the probabilities, such as votes."""

    unchanged = None

    def clean(self, ops: Ops[V], X: V, *, exact: bool = True) -> tuple[V, Truth]:
        total = ops.total(X) if exact else ops.sum(X)
        good = (ops.smallest(X) >= 0.0) & (total >= sys.float_info.min) & (total <= _LARGEST)
        return ops.guarded(good, X / ops.guarded(good, total, 1.0), 1 / ops.width(X)), good

    def explain(self, entries: Floats) -> Problem:
        fix = "proportions are at least 0, and some are above 0"
        return _entries(entries) or "sums to 0", fix, None


class LogProbabilities(Probabilities):
    """Logarithms of the probabilities of all classes. Minus infinity is a probability of 0."""

    unchanged = None

    def clean(self, ops: Ops[V], X: V, *, exact: bool = True) -> tuple[V, Truth]:  # noqa: ARG002
        good = ops.every(X <= _LARGEST) & (ops.largest_value(X) >= -_LARGEST)
        return ops.softmax(ops.guarded(good, ops.maximum(X, LOWEST_LOG), 0.0)), good

    def restore(self, values: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(values))

    def explain(self, entries: Floats) -> Problem:
        if np.isneginf(entries).all():
            return "holds -infinity only", "some class must have a positive probability", None
        fix = "log probabilities are numbers, and -infinity stands for a probability of 0"
        return _entries(entries[~np.isneginf(entries)]), fix, None


class SecondLogProbability(LogOdds):
    """Logarithm of the probability of the second of two classes. Cleaned, it is the log odds.

    Sums of many logarithms keep their order, although their exponentials would be 0.
    """

    unchanged = None

    def clean(self, ops: Ops[V], X: V, *, exact: bool = True) -> tuple[V, Truth]:  # noqa: ARG002
        good = (-_LARGEST <= X) & (X <= RANGE_TOLERANCE)
        x = ops.guarded(good, ops.minimum(X, 0.0), -1.0)
        return x - ops.log(ops.maximum(1.0 - ops.exp(x), 2.0**-53)), good

    def restore(self, values: Floats) -> Floats:
        return np.asarray(-np.logaddexp(0.0, -values))

    def explain(self, entries: Floats) -> Problem:
        fix = "logarithms of probabilities are finite and at most 0"
        if np.isneginf(entries[0]):
            fix += ". Replace -infinity by a bound, such as the lowest finite one"
        return f"is {_shown(entries[0])}", fix, None


class _OfLabels(Kind):
    """One number for each label. Labels do not exclude each other."""

    single = False
    exclusive = False

    def clean(self, ops: Ops[V], X: V, *, exact: bool = True) -> tuple[V, Truth]:
        X, good = super().clean(ops, X, exact=exact)  # type: ignore[safe-super]
        return X, ops.every(good)

    def explain(self, entries: Floats) -> Problem:
        _, good = super().clean(NUMPY, entries)  # type: ignore[safe-super]
        return super().explain(entries[~good])  # type: ignore[safe-super]


class LabelProbabilities(_OfLabels, SecondProbability):
    """The probability, or percentage, of each label."""


class LabelLogOdds(_OfLabels, LogOdds):
    """The log odds of each label."""


PROBABILITIES = Probabilities("probabilities", "probability")
SECOND_PROBABILITY = SecondProbability("probability", "probability")
LOGITS = Logits("logits", "logit")
LOG_ODDS = LogOdds("log_odds", "logit")
_ALL: list[Kind] = [
    PROBABILITIES,
    SECOND_PROBABILITY,
    LOGITS,
    LOG_ODDS,
    Probabilities("percentages", "percent", 100.0),
    SecondProbability("percentage", "percent", 100.0),
    Proportions("proportions", "proportion"),
    LogProbabilities("log_probabilities", "log_probability"),
    SecondLogProbability("log_probability", "log_probability"),
    LogOdds("ranks", "rank"),
]
#: Kinds of forecasts of labels, by their units.
LABELS: dict[Unit, Kind] = {
    "probability": LabelProbabilities("label_probabilities", "probability"),
    "percent": LabelProbabilities("label_percentages", "percent", 100.0),
    "logit": LabelLogOdds("label_log_odds", "logit"),
}
#: All kinds, by their names in model files.
KINDS = {kind.name: kind for kind in [*_ALL, *LABELS.values()]}
_BY_UNIT = {(kind.unit, kind.single): kind for kind in _ALL}


def units_of(n_columns: int) -> list[Unit]:
    return [unit for unit, single in _BY_UNIT if single == (n_columns == 1)]


def kind_of(n_columns: int, unit: Unit = "probability") -> Kind:
    return _BY_UNIT[unit, n_columns == 1]


def columns_of(values: Floats) -> Floats:
    """A forecast array as a matrix: scores are one column."""
    return values[:, None] if values.ndim == 1 else values


def count_columns(values: Floats) -> int:
    return int(columns_of(values).shape[1])


def _shown(value: float) -> str:
    if math.isfinite(value):
        return f"{value:.6g}"
    return "NaN" if math.isnan(value) else "infinity" if value > 0 else "-infinity"


def _unit_of_infinite(entries: Floats) -> Unit | None:
    return "log_probability" if (entries <= 0).all() else None


def _entries(entries: Floats) -> str:
    """The first number of a row that is infinite, NaN or negative, in words, or an empty text."""
    wrong = [*entries[~np.isfinite(entries)], *entries[entries < 0]]
    return f"holds {_shown(wrong[0])}" if wrong else ""
