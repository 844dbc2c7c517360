"""SegmentMap: a common map, then log odds shifted and scaled by segment, then another map."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np

from isoroc._backends import NUMPY, Ops, Truth, V, added, ops_for
from isoroc._backends.categories import Levels
from isoroc._core.simplex import LEAST
from isoroc._core.types import Floats, Ints
from isoroc._input import InputError, Names, Segments, check_segments, slices
from isoroc._input.arrays import to_native
from isoroc._input.kinds import LOGITS, columns_of
from isoroc._maps.base import Forecasts, Map, Places, check_nested, state
from isoroc._maps.modelfile import Fault, checks
from isoroc._maps.monotone import with_floor

#: Scales are at least this, so that the order of forecasts within a segment is kept.
LEAST_SCALE = 0.05


class SegmentMap(Map):
    """The mean of the forecasts p, a common map, and another one after shifts of logarithms z.

    With weights v (`uncalibrated`) and w the forecast is
    ``v * p + (1 - v - w) * common(p) + w * shifted((1 + s) * z + c + offset)``, where z is the
    logarithm of ``common(p)`` or, unless the shifts are `behind` the common map, of p, and s and c
    are sums of entries of tables. A table belongs to one column or to a pair of columns. A row of
    it holds the shifts of the K classes and, at the end, a summand of the scale. Where a segment is
    unknown, the entries are 0. Within a combination of segments the argument of `shifted` is a
    positive multiple of z plus a constant, so two classes keep their order if both maps keep it.
    """

    common: Map = state(checks.anything)
    shifted: Map = state(checks.anything)  # of logits, whatever the kind
    weight: float = state(checks.number(most=1.0))
    uncalibrated: float = state(checks.number(most=1.0), default=0.0)
    columns: Names = state(checks.names("J"))
    levels: Sequence[Names] = state(checks.list_of(checks.names("L"), "J", least=0))
    """Levels of each column. Empty if the column is numeric."""
    cuts: Sequence[Floats] = state(checks.list_of(checks.ascending, "J", least=0))
    """Ends of all bins of each column except the last bin. Empty if the column has levels."""
    pairs: Ints = state(checks.anything)
    """The columns of each table, shape (T, 2). The second is -1 if there is only one."""
    tables: Sequence[Floats] = state(checks.list_of(checks.anything, least=0))
    offset: Floats = state(checks.coefficients("K", least=-1e3, most=1e3))
    behind: bool = state(checks.boolean, default=True)

    takes_segments: ClassVar[bool] = True

    @cached_property
    def segments(self) -> dict[str, bool]:
        columns = zip(self.columns, self.levels, strict=True)
        return {str(name): not len(levels) for name, levels in columns}

    @property
    def exact(self) -> bool:  # type: ignore[override]
        return self.common.exact or (self.weight > 0 and self.shifted.exact)

    @cached_property
    def _known(self) -> list[Levels]:
        """Levels of each column, none of a numeric one."""
        return [Levels(levels.tolist()) for levels in self.levels]

    @cached_property
    def _ends(self) -> list[Floats]:
        """Ends of the segments of each column, between places of levels or between numbers."""
        pairs = zip(self.levels, self.cuts, strict=True)
        return [np.arange(0.5, len(levels) - 1) if len(levels) else cuts for levels, cuts in pairs]

    @cached_property
    def _shifts(self) -> tuple[bool, list[Floats]]:
        """Whether log odds are scaled, and the tables, without the summands of the scale if not."""
        K = len(self.offset)
        is_scaled = any(table[:, K].any() for table in self.tables)
        return is_scaled, [table if is_scaled else table[:, :K] for table in self.tables]

    @cached_property
    def sizes(self) -> list[int]:
        """Number of segments of each column."""
        pairs = zip(self.levels, self.cuts, strict=True)
        return [len(levels) or len(cuts) + 1 for levels, cuts in pairs]

    def check(self, n_classes: int) -> None:
        super().check(n_classes)
        check_nested(self.common, "common", self.kind, n_classes)
        check_nested(self.shifted, "shifted", LOGITS, n_classes)
        if self.weight + self.uncalibrated > 1 + checks.ROUNDING:
            raise Fault("uncalibrated", "the weights exceed 1")
        both = zip(self.levels, self.cuts, strict=True)
        if any(len(levels) and len(cuts) for levels, cuts in both):
            raise Fault("cuts", "a column has either levels or cuts")
        T = len(self.tables)
        sizes = self.sizes
        pairs = checks.check_array(self.pairs, "pairs", shape=(T, 2), dtype="int64")
        first, second = pairs.T
        if ((first < 0) | (second < -1) | (pairs.max(axis=1, initial=0) >= len(sizes))).any():
            raise Fault("pairs", f"expected numbers of the {len(sizes)} columns, or -1")
        for t, (table, pair) in enumerate(zip(self.tables, pairs, strict=True)):
            shape = int(np.prod([sizes[j] for j in pair if j >= 0])), n_classes + 1
            checks.coefficients(*shape, least=-1e3, most=1e3)(table, f"tables[{t}]", {})

    def formula(self, ops: Ops[V], X: V, places: Places[V] = ()) -> V:
        common = self.common.formula(ops, X)
        shifted = None
        if places and self.weight:
            shifted = self.shifted.formula(ops, self.shift(ops, X, common, places))
        before = partial(self.kind.probabilities, ops, X)
        return self._mixed(common, before, shifted)  # type: ignore[no-any-return]

    def compiled(self, forecasts: Forecasts) -> Floats:
        return self._mixed(self.common.compiled(forecasts), forecasts.probabilities)  # type: ignore[no-any-return]

    def _mixed(self, common: Any, before: Callable[[], Any], shifted: Any = None) -> Any:
        """Weighted mean of the forecasts. Without shifts, the common map takes their weight."""
        v = self.uncalibrated
        w = 0.0 if shifted is None else self.weight
        parts = [(share, Q) for share, Q in ((1 - v - w, common), (w, shifted)) if share > 0]
        parts += [(v, before())] if v else []
        return added(Q if share == 1 else share * Q for share, Q in parts)

    def coordinates(self, ops: Ops[V], X: V) -> V:
        """Log forecasts, with the floor of a monotone common map of three classes or more."""
        z = self.kind.logs(ops, X, LEAST)
        certificate = self.certificate_of_common
        return z if certificate is None else with_floor(ops, z, certificate.floor)

    @cached_property
    def certificate_of_common(self) -> Any:
        """The guarantee of a monotone common map of three classes or more, if there is one."""
        K = len(self.offset)
        return self.common.certificate(K) if K > 2 else None

    def locate(self, ops: Ops[V], j: int, x: V) -> tuple[V, Truth]:
        """Segment of a number or a place among levels in column j, and whether it is known."""
        known = (x <= 1e300) & (x >= -1e300)  # infinities count as missing
        return ops.locate(self._ends[j], ops.where(known, x, 0.0)), known

    def read_places(self, ops: Any, names: Sequence[str]) -> Places[Any]:
        columns = enumerate(zip(names, self.segments.values(), strict=True))
        return [
            self.locate(ops, j, ops.read([name])) if numeric else ops.find(name, self._known[j])
            for j, (name, numeric) in columns
        ]

    def shift(self, ops: Ops[V], X: V, common: V, places: Places[V]) -> V:
        """Log probabilities for `shifted`. `places` has the segments and whether they are known."""
        z = ops.log(ops.maximum(common, LEAST)) if self.behind else self.coordinates(ops, X)
        K = ops.width(z)
        sizes = self.sizes
        entries = []
        is_scaled, tables = self._shifts
        for (i, j), table in zip(self.pairs.tolist(), tables, strict=True):
            index, known = places[i]
            if j >= 0:
                index = ops.cross(index, places[j][0], sizes[j])
                known = known & places[j][1]
            entries.append(ops.where(known, ops.look_up(table, index), 0.0))
        if is_scaled:
            c, s = ops.split(added(entries), [K, 1])
            z = z * ops.maximum(1.0 + s, LEAST_SCALE)
            entries = [c]
        return ops.log_softmax((z + added(entries) if entries else z) + self.offset)

    def pruned(self) -> Self:
        """The same map without unused columns, and with bins merged that no table tells apart."""
        sizes = self.sizes
        differ = [np.zeros(len(cuts), dtype=bool) for cuts in self.cuts]
        grids = []
        for (i, j), table in zip(self.pairs.tolist(), self.tables, strict=True):
            grids.append(table.reshape(sizes[i], -1, table.shape[1]))
            for axis, column in enumerate([i, j] if j >= 0 else [i]):
                if len(self.cuts[column]):
                    differ[column] |= np.diff(grids[-1], axis=axis).any(axis=(1 - axis, 2))
        kept = [np.append(True, ends) if len(ends) else slice(None) for ends in differ]
        kept.append(slice(None))  # of the column -1
        pairs = zip(self.pairs.tolist(), grids, strict=True)
        tables = [grid[kept[i]][:, kept[j]].reshape(-1, grid.shape[2]) for (i, j), grid in pairs]
        used = np.unique(self.pairs[self.pairs >= 0])
        number = np.append(np.searchsorted(used, np.arange(len(self.columns))), -1)
        return replace(
            self,
            columns=self.columns[used],
            levels=[self.levels[j] for j in used],
            cuts=[self.cuts[j][differ[j]] for j in used],
            tables=tables,
            pairs=number[self.pairs].astype(np.int64),
        )

    def codes(self, segments: Segments) -> Floats:
        """Numbers and places of levels, shape (n, J). NaN where a segment is unknown."""
        codes = np.empty((len(segments), len(self.columns)), order="F")
        for j, (name, levels) in enumerate(zip(self.segments, self._known, strict=True)):
            values, given = segments.columns[name]
            if given is not None:
                places = levels.find(given.tolist())
                numbers = [math.nan if place < 0 else place for place in places]
                values = np.array([*numbers, math.nan])[values]
            codes[:, j] = values
        return codes

    def apply(self, values: Floats, segments: Segments | None = None) -> Floats:
        if segments is None:
            return super().apply(values)
        if (ops := ops_for(values)) is not NUMPY:
            parts = columns_of(values), self.codes(segments)
            X, codes = (ops.vector(ops.constant(part)) for part in parts)
            places = [self.locate(ops, j, ops.take(codes, [j])) for j in range(codes.width)]
            return self.formula(ops, X, places).array  # type: ignore[no-any-return]
        Q = self.common.apply(values)
        for rows in slices(len(values)):
            z = self.shifted_logits(values[rows], Q[rows], segments[rows])
            before = Forecasts(values[rows], self.kind)
            Q[rows] = self._mixed(Q[rows], before.probabilities, self.shifted.apply(z))
        return Q

    def shifted_logits(self, values: Floats, common: Floats, segments: Segments) -> Floats:
        """Log probabilities after the shifts, of forecasts before and after the common map."""
        codes = self.codes(segments)
        places = [self.locate(NUMPY, j, codes[:, j : j + 1]) for j in range(codes.shape[1])]
        return np.ascontiguousarray(self.shift(NUMPY, columns_of(values), common, places))


def encode_segments(fitted: SegmentMap, segments: Any) -> Floats:
    """Segments that a user passes as numbers: see `SegmentMap.codes`."""
    native = to_native(segments, name="segments")
    n_rows = len(native) if not isinstance(native, Mapping) else len(next(iter(native.values())))
    known = fitted.segments
    if not known:
        return np.empty((n_rows, 0))
    return fitted.codes(check_segments(segments, n_rows, known=known, of="segments"))


def apply_map(fitted: Map, values: Floats, segments: Any) -> Floats:
    """Calibrated forecasts of a forecast array whose rows may have segments."""
    known = fitted.segments
    if segments is None and known:
        fix = f"pass a table with the columns {', '.join(known)}; new segments are not shifted"
        raise InputError("segments", None, "were given in fit", fix)
    if segments is not None and not fitted.takes_segments:
        raise InputError("segments", None, "the calibrator uses none", "leave them out")
    if not known:
        return fitted.apply(values)
    return fitted.apply(values, check_segments(segments, values.shape[0], known=known))
