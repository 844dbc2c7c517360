"""Expressions of the entries of lists, in SQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from isoroc.export._expressions import (
    Node,
    adopt,
    call,
    choose,
    column,
    integer,
    nodes,
)
from isoroc.export._formulas import CONSTANTS, Column
from isoroc.export._list_functions import ENTRY
from isoroc.export._sql_writer import SqlWriter


class _EntryWriter(SqlWriter):
    """Writes expressions of entries, parts of which cannot be columns."""

    def keep(self, columns: Iterable[Node]) -> list[Node]:
        return list(columns)

    def maximum(self, a: Node, b: Node) -> Node:
        # A choice takes less time, but has its first number twice.
        is_short = isinstance(a, (nodes.Anonymous, nodes.Column))
        return self.where(self.at_most(a, b), b, a) if is_short else call("GREATEST", a, b)

    def minimum(self, a: Node, b: Node) -> Node:
        return call("LEAST", a, b)


class Entries(ABC):
    """Columns of `Formulas` as entries of lists.

    Wherever several columns are given, they are of one list, or a list is computed from them: the
    first entry from the first of them, and so on.
    """

    def __init__(self, w: SqlWriter, dialect: str) -> None:
        self.w = w
        self.lists = w.lists
        self.of_entries = _EntryWriter(dialect, ())
        # Columns that are expressions of a row, and in which list and where others are.
        self.nodes: dict[Column, Node] = {}
        self.at: dict[Column, tuple[str, int]] = {}
        self.operations = operations(self.of_entries)

    @abstractmethod
    def single(self, own: Column) -> Node:
        """A column as an expression of a row."""

    @abstractmethod
    def listed(self, columns: Sequence[Column]) -> Node:
        """Columns as a list."""

    def are_unwritten(self, columns: Sequence[Column]) -> bool:
        """Whether columns are of one kind, which is left to what uses them."""
        first = columns[0]
        is_written = first in self.at or first in self.nodes or first.operator in CONSTANTS
        return not is_written and all(own.kind == first.kind for own in columns)

    def entry(self, columns: Sequence[Column]) -> Node:
        """Expression of an entry that is one of some columns."""
        first = columns[0]
        if all(own is first for own in columns):
            return self.single(first)
        if first.operator in CONSTANTS:
            return self._constant([own.data for own in columns])
        if self.are_unwritten(columns):
            return self.expression(columns)
        lists = {self.at[own][0] if own in self.at else None for own in columns}
        if len(lists) == 1 and None not in lists:
            places = [self.at[own][1] + 1 for own in columns]
            return self.lists.extract(column(self.at[first][0]), self._constant(places))
        [packed] = self.w.keep([self.listed(columns)])
        return self.lists.extract(packed, column(ENTRY))

    def expression(self, columns: Sequence[Column]) -> Node:
        """Expression that computes an entry from others."""
        operator, w = columns[0].operator, self.of_entries
        if operator in self.operations:
            inputs = zip(*(own.inputs for own in columns), strict=True)
            return self.operations[operator](*map(self.entry, inputs))
        if operator == "locate":
            return self._locate(columns)
        if operator == "entry":
            return self._look_up(columns)
        bundles = zip(*(own.inputs[0].inputs for own in columns), strict=True)
        parts = [self.entry(of_bundles) for of_bundles in bundles]
        if operator == "weighted sum":
            weights = np.stack([own.data for own in columns], axis=1).tolist()
            parts = [w.multiply(self._constant(a), x) for a, x in zip(weights, parts, strict=True)]
        return w.sum(parts)

    def _locate(self, columns: Sequence[Column]) -> Node:
        """Places among cuts; all columns get as many."""
        score = self.entry([own.inputs[0] for own in columns])
        n_cuts = max(len(own.data) for own in columns)
        cuts = np.full((n_cuts, len(columns)), np.inf)
        for k, own in enumerate(columns):
            cuts[: len(own.data), k] = own.data
        return choose(
            [integer(place) for place in range(n_cuts + 1)],
            lambda place: self.of_entries.at_most(score, self._constant(cuts[place].tolist())),
        )

    def _look_up(self, columns: Sequence[Column]) -> Node:
        """Entries of tables, which are one after the other in a list."""
        w = self.of_entries
        tables = {id(own.data[0]): own.data[0] for own in columns}
        ends = np.cumsum([table.size for table in tables.values()]).tolist()
        start = dict(zip(tables, [0, *ends], strict=False))
        row = self.entry([own.inputs[0] for own in columns])
        widths = self._constant([own.data[0].shape[1] for own in columns])
        firsts = self._constant([start[id(own.data[0])] + own.data[1] + 1 for own in columns])
        values = np.concatenate([table.ravel() for table in tables.values()]).tolist()
        place = w.add(w.multiply(row, widths), firsts)
        return self.lists.extract(self.lists.numbers(values), place)

    def _constant(self, values: Sequence[float]) -> Node:
        """A number that may differ between entries."""
        first, w = values[0], self.of_entries
        whole = [value for value in values if isinstance(value, int)]
        if all(value == first for value in values):
            return integer(whole[0]) if whole else w.number(first)
        if not whole:
            return self.lists.extract(self.lists.numbers(values), column(ENTRY))
        steps = set(np.diff(whole).tolist())
        if len(steps) > 1:
            return self.lists.extract(self.lists.integers(whole), column(ENTRY))
        [step] = steps
        ahead = column(ENTRY) if step == 1 else w.multiply(column(ENTRY), integer(step))
        more = whole[0] - step
        if more < 0:
            return w.subtract(ahead, integer(-more))
        return w.add(ahead, integer(more)) if more else ahead

    def over_entries(self, expression: Node, length: int) -> Node:
        """List of an expression of entries.

        It is computed along another list, if all that the expression needs is the entry of this
        list at the same place, and otherwise for each place.
        """
        holder = nodes.Paren(this=expression)
        found = [node for node in holder.find_all(nodes.Column) if node.name == ENTRY]
        reads = [node.parent for node in found if node.parent is not None]
        [along, *others] = {self.lists.read(read) for read in reads}
        if along is None or others:
            along = self.lists.places(length)
        else:
            for read in reads:
                read.replace(column(ENTRY))
        return self.lists.each(holder.this.pop(), ENTRY, along)


def operations(w: SqlWriter) -> dict[str, Callable[..., Node]]:
    """What writes the operators of `Formulas` that compute a column from a few others."""
    return {
        "Add": w.add,
        "Sub": w.subtract,
        "Mul": w.multiply,
        "Div": w.divide,
        "Abs": w.absolute,
        "Sqrt": w.sqrt,
        "Floor": w.floor,
        "Log": w.log,
        "Exp": w.exp,
        "LessOrEqual": w.at_most,
        "And": w.both,
        "Where": w.where,
        "Max": w.maximum,
        "Min": w.minimum,
        "Equal": lambda a, b: nodes.EQ(this=adopt(a), expression=adopt(b)),
    }
