"""Map: the numbers of a fitted calibrator, and the formula that makes forecasts from them."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, dataclass_transform

import numpy as np

from isoroc._backends import NUMPY, Ops, Truth, V, ops_for
from isoroc._core import smooth
from isoroc._core.simplex import LEAST, count_classes
from isoroc._core.types import Floats
from isoroc._input import Segments, slices
from isoroc._input.kinds import LOWEST_LOG, Kind, columns_of, count_columns
from isoroc._maps.modelfile import Fault
from isoroc._maps.modelfile.checks import Check, Sizes
from isoroc._support.threads import count_threads, in_threads, one_blas_thread

#: Segment of each row in each column of a map's `segments`, and whether it is known.
Places = Sequence[tuple[V, Truth]]


def state(check: Check, default: Any = MISSING) -> Any:
    """Field of a map that a model file holds, and what must be true of it there."""
    return field(default=default, metadata={"check": check})


class Forecasts:
    """A forecast array of a kind, and arrays of shape (K, n) that maps compute from it, each once.

    A mixture passes one to all of its members.
    """

    def __init__(self, values: Floats, kind: Kind) -> None:
        self.values = values
        self.kind = kind
        self._probabilities: Floats | None = None
        self._logs: dict[float, Floats] = {}
        self._log_tempered: dict[tuple[float, float, float], Floats] = {}

    def probabilities(self) -> Floats:
        """Forecasts as probabilities, shape (n, K)."""
        if self._probabilities is None:
            P = self.kind.probabilities(NUMPY, columns_of(self.values))
            self._probabilities = np.ascontiguousarray(P)
        return self._probabilities

    def logs(self, floor: float) -> Floats:
        """Logarithms of the probabilities, those below a floor raised to it, shape (K, n)."""
        if floor not in self._logs:
            if self.kind.scores == "probability":
                self._logs[floor] = smooth.log_forecasts(self.probabilities(), floor)
            else:
                self._logs[floor] = self.kind.log_rows(self.values, floor)
        return self._logs[floor]

    def plain_logs(self) -> Floats:
        """Logarithms with the lowest floor that the kind needs, shape (K, n)."""
        return self.logs(LEAST if self.kind.scores == "probability" else 0.0)

    def tempered(self, floor: float, temperature: float, share: float) -> Floats:
        """Forecasts after temperature scaling, in a mixture with the uniform one, shape (n, K)."""
        if self.kind.scores == "probability" and not self._logs:  # in one pass
            P = self.probabilities()
            return smooth.powered(P, max(floor, LEAST), 1 / temperature, share)
        return smooth.tempered(self.plain_logs(), log_of(floor), temperature, share)

    def log_tempered(self, floor: float, temperature: float, share: float) -> Floats:
        """Logarithms of forecasts after temperature scaling, in a mixture with the uniform one.

        The shape is (K, n).
        """
        key = floor, temperature, share
        if key not in self._log_tempered:
            scaling = log_of(floor), temperature, share
            self._log_tempered[key] = smooth.log_tempered(self.plain_logs(), *scaling)
        return self._log_tempered[key]


def log_of(floor: float) -> float:
    """The logarithm of a floor, which may be 0."""
    return math.log(floor) if floor else LOWEST_LOG


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(state,))
class Frozen:
    """Base of classes that are frozen dataclasses."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, eq=False, repr=False, kw_only=True)(cls)


class Map(Frozen, ABC):
    """Base of all maps: a subclass adds numbers, each with `state` and a check, and a `formula`."""

    kind: Kind  # of the forecasts
    #: Whether the map has steps, so that a rounding error may change its value.
    exact: ClassVar[bool] = False
    #: Whether `predict_proba` takes segments. Even so, a fit may have found no use for any.
    takes_segments: ClassVar[bool] = False
    #: Least size of the parts of a forecast array that threads share: a thread that has less to do
    #: takes as long to start. Maps that take longer for each number have a lower one.
    least_part: ClassVar[int] = 2**16

    @property
    def segments(self) -> dict[str, bool]:
        """Segment columns that the map uses, and whether each is numeric. Most maps use none."""
        return {}

    @abstractmethod
    def formula(self, ops: Ops[V], X: V, places: Places[V] = ()) -> V:
        """Calibrated forecasts of width K, given valid forecasts of the map's kind.

        Only maps with `segments` use `places`. Without places, all segments are unknown.
        """

    def calibrate(self, ops: Ops[V], X: V, places: Places[V] = ()) -> tuple[V, Truth]:
        """Calibrated forecasts, of width K, and whether `predict_proba` would accept the row."""
        # No rounding error may be added to what has steps, or to forecasts that stay unchanged.
        X, good = self.kind.clean(ops, X, exact=self.exact or isinstance(self, IdentityMap))
        return self.formula(ops, X, places), good

    def read_places(self, ops: Any, names: Sequence[str]) -> Places[Any]:
        """Places in the named columns of segments, which a backend can read."""
        return []

    def compiled(self, forecasts: Forecasts) -> Floats:
        """What the formula returns for arrays, shape (n, K). Overridden where a loop is faster."""
        X = columns_of(forecasts.values)
        # Steps multiply no matrices, and the limit would take longer than small products.
        if self.exact or X.size <= 3000:
            return np.ascontiguousarray(self.formula(NUMPY, X))
        with one_blas_thread():
            return in_parts(self.formula, X)

    def apply(self, values: Floats, segments: Segments | None = None) -> Floats:
        """Calibrated forecasts of a forecast array, shape (n, K). Both may be on a device.

        Maps without `segments` ignore the second argument.
        """
        if (ops := ops_for(values)) is not NUMPY:
            X = ops.vector(ops.constant(columns_of(values)))
            return ops.like(values, self.formula(ops, X).array)  # type: ignore[no-any-return]
        n_threads = count_threads() if values.size >= 2 * self.least_part else 1
        if n_threads == 1:
            return self.compiled(Forecasts(values, self.kind))
        n_parts = min(values.size // self.least_part, 4 * n_threads)
        if n_parts > n_threads:
            n_parts -= n_parts % n_threads  # so that all threads end at about the same time
        Q = np.empty((len(values), count_classes(values)))

        def fill(rows: slice) -> None:
            Q[rows] = self.compiled(Forecasts(values[rows], self.kind))

        in_threads(fill, slices(len(values), -(-len(values) // n_parts)))
        return Q

    def __repr__(self) -> str:
        numbers = (f"{name}={_brief(getattr(self, name))}" for name in self.states())
        return f"{type(self).__name__}({', '.join([self.kind.name, *numbers])})"

    def is_increasing(self) -> bool:
        """Whether the map of two classes is known to be strictly increasing everywhere."""
        return False

    def certificate(self, n_classes: int) -> Any:
        """The guarantee of the map of K classes in words, if it has one."""
        return None

    @classmethod
    def states(cls) -> dict[str, Check]:
        """Names of the fields that a model file holds, and what must be true of each."""
        numbers = fields(cls)
        return {f.name: f.metadata["check"] for f in numbers if "check" in f.metadata}

    def check(self, n_classes: int) -> None:
        """Raise a `Fault` unless a fit to K classes can have these numbers."""
        sizes: Sizes = {"K": n_classes}
        for name, check in self.states().items():
            check(getattr(self, name), name, sizes)


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"array{value.shape}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_brief, value[:8]))}{', ...' if len(value) > 8 else ''}]"
    if isinstance(value, float):
        return f"{value:.6g}"
    return repr(value) if isinstance(value, bool | int | str | None) else type(value).__name__


def in_parts(formula: Callable[[Ops[Any], Any], Any], X: Floats) -> Floats:
    """Apply a formula to chunks of rows that fit the cache."""
    parts = (np.asfortranarray(X[rows]) for rows in slices(len(X), 2**12))
    return np.concatenate([np.ascontiguousarray(formula(NUMPY, part)) for part in parts])


def in_chunks(compute: Callable[[Forecasts], Floats], forecasts: Forecasts) -> Floats:
    """Compute forecasts, shape (n, K), for chunks of rows that fit the cache."""
    values = forecasts.values
    size = max(128, 2**14 // count_columns(values))
    if len(values) < 2 * size:
        return compute(forecasts)
    Q = np.empty((len(values), count_classes(values)))
    for rows in slices(len(values), size):
        Q[rows] = compute(Forecasts(values[rows], forecasts.kind))
    return Q


class IdentityMap(Map):
    """Forecasts as probabilities, otherwise unchanged."""

    least_part: ClassVar[int] = 2**60  # copies gain nothing from threads

    def formula(self, ops: Ops[V], X: V, places: Places[V] = ()) -> V:
        return self.kind.probabilities(ops, X)

    def compiled(self, forecasts: Forecasts) -> Floats:
        return forecasts.probabilities()

    def is_increasing(self) -> bool:
        return True


def check_nested(nested: Any, place: str, kind: Kind, n_classes: int) -> None:
    """Raise a `Fault` unless a value is a sound map of a kind, or a list of such maps."""
    if isinstance(nested, list):
        for i, each in enumerate(nested):
            check_nested(each, f"{place}[{i}]", kind, n_classes)
        return
    if not isinstance(nested, Map) or nested.kind is not kind:
        raise Fault(place, f"expected a map of {kind.name}")
    try:
        nested.check(n_classes)
    except Fault as fault:
        raise Fault(f"{place}.numbers.{fault.place}", fault.problem) from fault
