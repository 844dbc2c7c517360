"""Formulas: a calibrator's map as a graph of columns, in which equal columns are one.

A map of K classes has most of its formulas K times, with other numbers. Columns therefore have a
kind, the shape of their formula without its numbers and without which columns it starts from.
Columns of one kind do not depend on each other, so that they can be computed together, as one
matrix: the size of what is written does not depend on K.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from isoroc._simplex import Floats
from isoroc._tree import BinTree
from isoroc._writer import Writer

#: Operators of columns that are only data.
CONSTANTS = ("number", "place")

_FOLDED = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}


class Column:
    """A formula of one value per row.

    Attributes
    ----------
    operator : str
        What computes it: an operator of ONNX, or one of those that `Formulas` names in lower case.
    inputs : tuple of Column
        What it is computed from,
    data : object
        and the numbers, the table or the tree that it is computed with.
    kind : int
        Equal for columns whose formulas differ only in numbers and in the columns they start from.
        Columns have a larger kind than those they are computed from.
    at : int
        How many columns were recorded before.
    fixed : bool
        Whether it is the same for all rows. Equal for columns of one kind.
    """

    __slots__ = ("at", "data", "fixed", "inputs", "kind", "operator")

    def __init__(
        self, operator: str, inputs: tuple[Column, ...], data: Any, kind: int, at: int
    ) -> None:
        self.operator = operator
        self.inputs = inputs
        self.data = data
        self.kind = kind
        self.at = at
        self.fixed: bool = operator in CONSTANTS or (bool(inputs) and all(c.fixed for c in inputs))


class Formulas(Writer[Column]):
    """Records what is written, each column once."""

    def __init__(self) -> None:
        self._columns: dict[Hashable, Column] = {}
        self._kinds: dict[Hashable, int] = {}

    def column(
        self,
        operator: str,
        *inputs: Column,
        data: Any = None,
        key: Hashable = None,
        form: Hashable = None,
    ) -> Column:
        """The column of a formula.

        Parameters
        ----------
        operator : str
        *inputs : Column
        data : object, default=None
            What else it is computed with.
        key : hashable, default=None
            Equal for equal data.
        form : hashable, default=None
            Equal for data with which columns may be computed together.
        """
        name = (operator, tuple(map(id, inputs)), key)
        if name not in self._columns:
            shape = (operator, tuple(column.kind for column in inputs), form)
            kind = self._kinds.setdefault(shape, len(self._kinds))
            self._columns[name] = Column(operator, inputs, data, kind, len(self._columns))
        return self._columns[name]

    def read(self, tensor: str, n_columns: int) -> list[Column]:
        """Columns of an input."""
        return [self.column("input", data=(tensor, k), key=(tensor, k)) for k in range(n_columns)]

    def number(self, value: float) -> Column:
        value = float(value)
        return self.column("number", data=value, key=value.hex())

    def place(self, number: int) -> Column:
        """A column of one place."""
        return self.column("place", data=number, key=number)

    def add(self, a: Column, b: Column) -> Column:
        return self._arithmetic("Add", a, b)

    def subtract(self, a: Column, b: Column) -> Column:
        return self._arithmetic("Sub", a, b)

    def multiply(self, a: Column, b: Column) -> Column:
        return self._arithmetic("Mul", a, b)

    def divide(self, a: Column, b: Column) -> Column:
        return self._arithmetic("Div", a, b)

    def _arithmetic(self, operator: str, a: Column, b: Column) -> Column:
        if a.operator == b.operator == "number":
            return self.number(_FOLDED[operator](a.data, b.data))
        return self.column(operator, a, b)

    def absolute(self, a: Column) -> Column:
        return self.column("Abs", a)

    def sqrt(self, a: Column) -> Column:
        return self.column("Sqrt", a)

    def floor(self, a: Column) -> Column:
        return self.column("Floor", a)

    def log(self, a: Column) -> Column:
        return self.column("Log", a)

    def exp(self, a: Column) -> Column:
        return self.column("Exp", a)

    def at_most(self, a: Column, b: Column) -> Column:
        return self.column("LessOrEqual", a, b)

    def both(self, a: Column, b: Column) -> Column:
        return self.column("And", a, b)

    def every(self, conditions: Sequence[Column]) -> Column:
        return self.column("every", self.bundle(conditions))

    def where(self, condition: Column, a: Column, b: Column) -> Column:
        return self.column("Where", condition, a, b)

    def maximum(self, a: Column, b: Column) -> Column:
        return self.column("Max", a, b)

    def minimum(self, a: Column, b: Column) -> Column:
        return self.column("Min", a, b)

    def sum(self, columns: Sequence[Column]) -> Column:
        return self.column("sum", self.bundle(columns))

    def sum_of_squares(self, columns: Sequence[Column]) -> Column:
        return self.column("sum of squares", self.bundle(columns))

    def bundle(self, columns: Sequence[Column]) -> Column:
        """Several columns as one input."""
        return self.column("bundle", *columns)

    def largest(self, columns: Sequence[Column]) -> tuple[Column, Column]:
        if all(column.operator == "number" for column in columns):
            place = int(np.argmax([column.data for column in columns]))
            return columns[place], self.place(place)
        bundle = self.bundle(columns)
        return self.column("largest", bundle), self.column("first of largest", bundle)

    def smallest(self, columns: Sequence[Column]) -> Column:
        return self.column("smallest", self.bundle(columns))

    def is_at(self, place: Column, number: int) -> Column:
        return self.column("Equal", place, self.place(number))

    def linear(self, matrix: Floats, columns: Sequence[Column]) -> list[Column]:
        bundle = self.bundle(columns)
        return [self.column("weighted sum", bundle, data=row, key=row.tobytes()) for row in matrix]

    def softmax(self, columns: Sequence[Column]) -> list[Column]:
        bundle = self.bundle(columns)
        return [self.column("softmax", bundle, data=k, key=k) for k in range(len(columns))]

    def locate(self, cuts: Floats, score: Column) -> Column:
        return self.column("locate", score, data=cuts, key=cuts.tobytes())

    def look_up(self, table: Floats, place: Column) -> list[Column]:
        if place.operator == "place":
            return [self.number(value) for value in table[place.data]]
        # The table is part of the column, so that its identity is not used again.
        return [
            self.column("entry", place, data=(table, k), key=(id(table), k))
            for k in range(table.shape[1])
        ]

    def route(self, tree: BinTree, columns: Sequence[Column]) -> Column:
        if not tree.n_splits:
            return self.place(0)
        # Trees one by one: together they would need the memory of all of them at once.
        key = id(tree)
        return self.column("route", self.bundle(columns), data=tree, key=key, form=key)

    def keep(self, columns: Iterable[Column]) -> list[Column]:
        return list(columns)

    def find(self, tensor: str, names: list[str]) -> Column:
        """Place of each string of an input among some names, -1 for others."""
        if not names:
            return self.place(-1)
        return self.column("find", data=(tensor, names), key=tensor)


def used(
    outputs: Iterable[Column], inputs: Mapping[Column, Iterable[Column]] | None = None
) -> list[list[Column]]:
    """Columns that outputs are computed from, together those of one kind, inputs first.

    Parameters
    ----------
    outputs : iterable of Column
    inputs : mapping, default=None
        Columns that are computed from others than their inputs, and from which. These may be
        inputs of inputs.
    """
    inputs = inputs or {}
    found: set[Column] = set()
    waiting = list(outputs)
    while waiting:
        column = waiting.pop()
        if column not in found:
            found.add(column)
            waiting.extend(inputs.get(column, column.inputs))
    ordered = sorted(found, key=lambda column: (column.kind, column.at))
    return [list(of_kind) for _, of_kind in groupby(ordered, key=lambda column: column.kind)]


def runs(places: Sequence[tuple[str, int]]) -> list[tuple[str, int, int]]:
    """Columns that follow each other in a matrix: its name, the first and how many."""
    runs: list[tuple[str, int, int]] = []
    for matrix, k in places:
        if runs and runs[-1][0] == matrix and sum(runs[-1][1:]) == k:
            runs[-1] = (matrix, runs[-1][1], runs[-1][2] + 1)
        else:
            runs.append((matrix, k, 1))
    return runs
