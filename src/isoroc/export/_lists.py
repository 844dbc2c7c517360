"""Maps of many classes in SQL: formulas of one kind are one expression of lists.

With a column for each class in every step, planners take more than linear time. Here forecasts are
columns only where they are read and returned.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isoroc._maps.base import CalibrationMap
from isoroc._simplex import Floats
from isoroc._writer import Writer
from isoroc.export._entries import Entries, operations
from isoroc.export._expressions import (
    Node,
    adopt,
    call,
    case,
    column,
    double,
    integer,
    nodes,
)
from isoroc.export._formulas import CONSTANTS, Column, Formulas, runs, used
from isoroc.export._list_functions import ENTRY
from isoroc.export._maps import write_checked
from isoroc.export._routes import ListRoute
from isoroc.export._sql_writer import SqlWriter, bend_by_distances

#: Columns of a kind, or of a bundle, from which on they are a list; fewer if classes are fewer.
_MANY = 16
#: Numbers up to which constants are part of expressions of entries, which copy them.
_FEW_NUMBERS = 8192
#: Cuts up to which expressions of entries compare with all of them.
_FEW_CUTS = 64


def write_lists(
    w: SqlWriter,
    dialect: str,
    calibrator: CalibrationMap,
    names: Sequence[str],
    groups: tuple[Node, Node] | None = None,
) -> list[Node]:
    """Columns of calibrated forecasts, as `write_map` returns them.

    Parameters
    ----------
    w : SqlWriter
    dialect : str
    calibrator : CalibrationMap
        Fitted.
    names : sequence of str
        Columns of the forecasts.
    groups : pair of expressions, default=None
        Place of the group of each row among `groups_`, and whether it has a group.
    """
    formulas, lists = _Formulas(), _Lists(w, dialect, len(names))
    columns = formulas.read("forecasts", len(names))
    lists.read(columns, names)
    known = None
    if groups is not None:
        place, has_group = formulas.read("groups", 2)
        lists.add([place], groups[0])
        lists.add([has_group], groups[1])
        known = (place, has_group)
    calibrated, good = write_checked(formulas, calibrator, columns, known)
    lists.compute([*calibrated, good])
    there = lists.single(good)
    if all(own.operator == "number" for own in calibrated):
        return [case([(adopt(there), lists.single(own))], nodes.Null()) for own in calibrated]
    # A list has no entry at a place that is missing.
    [result, start] = w.keep([lists.listed(calibrated), case([(there, integer(0))], nodes.Null())])
    places = [w.add(integer(k + 1), start) for k in range(len(calibrated))]
    return [w.lists.extract(result, place) for place in places]


class _Formulas(Formulas):
    """Formulas of the operations that databases have, or take less time for."""

    def softmax(self, columns: Sequence[Column]) -> list[Column]:
        return Writer.softmax(self, columns)

    def bend(self, a: Column, knots: Floats, slopes: Floats) -> Column:
        return bend_by_distances(self, a, knots, slopes)

    def lanes(self, columns: Sequence[Column], n_lanes: int) -> list[Column]:
        bundle = self.bundle(columns)
        return [self.column("lane", bundle, data=(i, n_lanes), key=i) for i in range(n_lanes)]


class _Lists(Entries):
    """Columns of `Formulas` as SQL; those of one kind are a list, if they are many.

    What is used once is part of the expression that uses it.
    """

    def __init__(self, w: SqlWriter, dialect: str, n_columns: int) -> None:
        super().__init__(w, dialect)
        self._many = max(2, min(n_columns, _MANY))
        self._dialect = dialect
        self._of_rows = operations(w)
        self._lengths: dict[str, int] = {}
        # Columns of a kind, and the columns that are computed from a column.
        self._groups: dict[int, list[Column]] = {}
        self._readers: dict[Column, list[Column]] = {}

    def add(self, columns: Sequence[Column], node: Node) -> None:
        """Let columns be the entries of a list, or a single one an expression."""
        [kept] = self.w.keep([node])
        if len(columns) == 1:
            self.nodes[columns[0]] = kept
        elif isinstance(kept, nodes.Column):
            self.at |= {own: (kept.name, k) for k, own in enumerate(columns)}
            self._lengths[kept.name] = len(columns)
        else:  # a constant
            for k, own in enumerate(columns):
                self.nodes[own] = self.lists.extract(kept, integer(k + 1))

    def read(self, columns: Sequence[Column], names: Sequence[str]) -> None:
        """Let columns be those of the table."""
        # Functions of lists leave out what is missing.
        missing = self.lists.missing()
        numbers = [call("COALESCE", double(column(name)), missing) for name in names]
        self.add(columns, self.lists.pack(numbers) if len(numbers) > 1 else numbers[0])

    def compute(self, outputs: Sequence[Column]) -> None:
        """Write what outputs are computed from."""
        groups = used(outputs)
        self._groups = {columns[0].kind: columns for columns in groups}
        for own in (own for columns in reversed(groups) for own in columns):
            # What reads a bundle reads its columns.
            readers = self._readers.get(own, []) if own.operator == "bundle" else [own]
            for part in own.inputs:
                self._readers.setdefault(part, []).extend(readers)
        for columns in groups:
            if columns[0].operator not in ("input", "bundle", *CONSTANTS):
                self._compute(columns)

    def _compute(self, columns: list[Column]) -> None:
        first = columns[0]
        if self._are_entries(columns):
            if not self._are_parts(columns):
                self.add(columns, self._each(columns))
        elif (
            len(columns) >= self._many
            and first.operator == "weighted sum"
            and _share_input(columns)
        ):
            self.add(columns, self._product(columns))
        elif first.operator == "lane":
            n_lanes = first.data[1]
            for i in range(0, len(columns), n_lanes):
                self.add(columns[i : i + n_lanes], self._lanes(columns[i], n_lanes))
        elif len(columns) >= self._many and _are_rows(columns):
            place = self.w.add(self.single(first.inputs[0]), integer(1))
            self.add(columns, self.lists.extract(self.lists.rows(first.data[0]), place))
        else:
            for own in columns:
                if not self._is_branch(own):
                    self.add([own], self._row(own))

    def _are_entries(self, columns: Sequence[Column]) -> bool:
        """Whether columns are many, and expressions of few others each."""
        first = columns[0]
        if len(columns) < self._many:
            return False
        if first.operator in ("sum", "weighted sum"):
            return len(first.inputs[0].inputs) < self._many
        if first.operator == "locate":
            n_cuts = max(len(own.data) for own in columns)
            return n_cuts <= _FEW_CUTS and n_cuts * len(columns) <= _FEW_NUMBERS
        if first.operator == "entry":
            tables = {id(own.data[0]): own.data[0].size for own in columns}
            return sum(tables.values()) <= _FEW_NUMBERS and not _are_rows(columns)
        return first.operator in self.operations

    def _are_parts(self, columns: Sequence[Column]) -> bool:
        """Whether entries are not a list of their own, but parts of others."""
        readers = [self._readers.get(own, []) for own in columns]
        if not all(readers):  # some are outputs
            return False
        if self._are_quick(columns[0]):
            return True
        return all(len(own) == 1 and self._can_hold(own[0], len(columns)) for own in readers)

    def _are_quick(self, first: Column) -> bool:
        """Whether columns are computed again in less time than read from a list."""
        if first.operator == "Equal":
            return True
        return first.operator == "Max" and first.inputs[0] in self.at

    def _can_hold(self, reader: Column, n_columns: int) -> bool:
        """Whether an expression of entries can have so many others as its parts."""
        columns = self._groups[reader.kind]
        if not self._are_entries(columns) or reader.operator == "locate":
            return False
        return reader.operator in ("sum", "weighted sum") or len(columns) >= n_columns

    def _is_branch(self, own: Column) -> bool:
        """Whether a choice is needed only by another one, and so for some rows only."""
        readers = [reader.operator for reader in self._readers.get(own, [])]
        return own.operator == "Where" and readers == ["Where"]

    def single(self, own: Column) -> Node:
        """A column as an expression of a row."""
        if own.operator in CONSTANTS:
            return self.w.number(own.data) if own.operator == "number" else integer(own.data)
        if own in self.at:
            name, k = self.at[own]
            return self.lists.extract(column(name), integer(k + 1))
        return self.nodes[own] if own in self.nodes else self._row(own)

    def listed(self, columns: Sequence[Column]) -> Node:
        """Columns as a list."""
        if all(own.operator == "number" for own in columns):
            return self.lists.numbers([own.data for own in columns])
        if self.are_unwritten(columns):
            return self._each(columns)
        parts = []
        for name, first, n in runs([self.at.get(own, ("", k)) for k, own in enumerate(columns)]):
            if not name:
                singles = [self.single(own) for own in columns[first : first + n]]
                parts.append(self.lists.pack(singles))
            elif n == self._lengths[name]:
                parts.append(column(name))
            else:
                parts.append(self.lists.part(column(name), first + 1, n))
        return parts[0] if len(parts) == 1 else self.lists.concat(parts)

    def _row(self, own: Column) -> Node:
        """Expression of a row."""
        operator, w = own.operator, self.w
        if operator in self._of_rows:
            return self._of_rows[operator](*map(self.single, own.inputs))
        if operator == "locate":
            return w.locate(own.data, self.single(own.inputs[0]))
        if operator == "entry":
            table, k = own.data
            return w.look_up(table[:, [k]], self.single(own.inputs[0]))[0]
        bundle = own.inputs[0].inputs
        if len(bundle) < self._many:
            return self._of_few(own, [self.single(part) for part in bundle])
        [vector] = w.keep([self.listed(bundle)])
        return self._of_many(own, vector)

    def _of_few(self, own: Column, parts: list[Node]) -> Node:
        """Expression of a bundle of few columns."""
        w, operator = self.w, own.operator
        if operator == "route":
            return w.route(own.data, parts)
        if operator in ("largest", "first of largest"):
            return w.largest(parts)[operator == "first of largest"]
        if operator == "weighted sum":
            return w.linear(own.data[None], parts)[0]
        of_parts = {"sum": w.sum, "smallest": w.smallest, "every": w.every}
        of_parts["sum of squares"] = w.sum_of_squares
        return of_parts[operator](parts)

    def _of_many(self, own: Column, vector: Node) -> Node:
        """Expression of a bundle that is a list."""
        operator = own.operator
        if operator == "route":
            return ListRoute(self.w, self._dialect, own.data, vector).place()
        if operator == "weighted sum":
            return self.lists.product(vector, self.lists.numbers(own.data.tolist()))
        if operator == "sum of squares":
            return self.lists.product(vector, vector)
        if operator == "first of largest":
            return self.w.subtract(self.lists.first_of_largest(vector), integer(1))
        return self.lists.reduce(operator, vector)

    def _product(self, columns: Sequence[Column]) -> Node:
        """List of weighted sums of one bundle."""
        [vector] = self.w.keep([self.listed(columns[0].inputs[0].inputs)])
        weights = self.lists.rows(np.stack([own.data for own in columns]))
        return self.lists.each(self.lists.product(vector, column(ENTRY)), ENTRY, weights)

    def _lanes(self, first: Column, n_lanes: int) -> Node:
        """List of the sums of every n-th column of a bundle."""
        bundle = first.inputs[0].inputs
        starts = range(0, len(bundle), n_lanes)
        terms = [self.entry(bundle[start : start + n_lanes]) for start in starts]
        return self.over_entries(self.of_entries.run(terms), n_lanes)

    def _each(self, columns: Sequence[Column]) -> Node:
        """List of an expression of entries."""
        first = columns[0]
        if first.operator == "Where" and all(own.inputs[0] is first.inputs[0] for own in columns):
            # A choice between lists: DuckDB and Spark compute only the one that is chosen.
            a, b = (self.listed([own.inputs[i] for own in columns]) for i in (1, 2))
            return self.w.where(self.single(first.inputs[0]), a, b)
        return self.over_entries(self.expression(columns), len(columns))


def _share_input(columns: Sequence[Column]) -> bool:
    return all(own.inputs == columns[0].inputs for own in columns)


def _are_rows(columns: Sequence[Column]) -> bool:
    """Whether columns are all those of a table, at one place."""
    if columns[0].operator != "entry" or not _share_input(columns):
        return False
    table = columns[0].data[0]
    return len(columns) == table.shape[1] and all(
        own.data[0] is table and own.data[1] == k for k, own in enumerate(columns)
    )
