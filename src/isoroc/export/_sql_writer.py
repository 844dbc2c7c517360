"""The operations of calibrators as expressions of SQL."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from isoroc._simplex import Floats
from isoroc._tree import BinTree
from isoroc._writer import C, Writer
from isoroc.export._dialects import WITH_LISTS, rules_of
from isoroc.export._expressions import (
    Node,
    adopt,
    arithmetic,
    call,
    case,
    choose,
    column,
    decimal,
    double,
    fraction,
    integer,
    literal,
    nodes,
    numbers_in_text,
)
from isoroc.export._list_functions import ClickHouseLists, list_functions
from isoroc.export._routes import FEW_PLACES, Route
from isoroc.export._stages import Stages

_NUMBERS = {"literal": literal, "cast": decimal, "fraction": fraction}
#: Below this the exponential is written as 0, where databases raise an error if it underflows,
_TINY_EXPONENT = -690.0
#: and a factor of a product below this counts as 0.
_TINY_FACTOR = 1e-150
#: Arguments of a function, and conditions of a conjunction, at most.
_MANY = 64
#: Squared length of centres up to which rounding errors of distances to them are far below 1.
_FAR = 1e9
#: Sizes from which on a matrix is multiplied by inner products of lists.
_WIDE, _LARGE = 6, 36


class SqlWriter(Writer[Node]):
    """Columns are expressions; those that are used again are named in stages of the query."""

    def __init__(self, dialect: str, taken: Sequence[str]) -> None:
        self._dialect = dialect
        self._rules = rules_of(dialect)
        self.lists = list_functions(dialect)
        self.stages = Stages(dialect, self._rules, taken)

    def read(self, columns: Sequence[str]) -> list[Node]:
        """Columns of the table as doubles."""
        return self.keep(double(column(name)) for name in columns)

    def find(self, name: str, values: list[str]) -> tuple[Node, Node]:
        """Place of each entry of a column among texts, -1 for others, and whether there is one."""
        text = nodes.cast(column(name), "text")
        equal = [nodes.EQ(this=text.copy(), expression=nodes.Literal.string(v)) for v in values]
        ways = [(condition, integer(place)) for place, condition in enumerate(equal)]
        places = case(ways, integer(-1)) if ways else integer(-1)
        known = nodes.Not(this=nodes.Is(this=column(name), expression=nodes.Null()))
        place, there = self.keep([places, known])
        return place, there

    def text(self, statement: Any) -> str:
        """A statement as text."""
        return str(statement.sql(dialect=self._rules.sqlglot, pretty=True, copy=False))

    def keep(self, columns: Iterable[Node]) -> list[Node]:
        return [self.stages.keep(expression) for expression in columns]

    def number(self, value: float) -> Node:
        return nodes.Null() if math.isnan(value) else _NUMBERS[self._rules.numbers](value)

    def add(self, a: Node, b: Node) -> Node:
        return arithmetic(nodes.Add, adopt(a), adopt(b))

    def subtract(self, a: Node, b: Node) -> Node:
        return arithmetic(nodes.Sub, adopt(a), adopt(b))

    def multiply(self, a: Node, b: Node) -> Node:
        if self._rules.underflow:
            a, b = self._factor(a), self._factor(b)
        return arithmetic(nodes.Mul, adopt(a), adopt(b))

    def _factor(self, a: Node) -> Node:
        """A number whose product with another one like it does not underflow."""
        if a.find(nodes.Column) is None:
            return a
        [a] = self.keep([a])
        tiny = self.at_most(self.absolute(a), self.number(_TINY_FACTOR))
        [a] = self.keep([self.where(tiny, self.number(0.0), a)])
        return a

    def divide(self, a: Node, b: Node) -> Node:
        return arithmetic(nodes.Div, adopt(a), adopt(b))

    def absolute(self, a: Node) -> Node:
        return nodes.Abs(this=adopt(a))

    def sqrt(self, a: Node) -> Node:
        return nodes.Sqrt(this=adopt(a))

    def floor(self, a: Node) -> Node:
        return double(nodes.Floor(this=adopt(a)))  # an integer in Spark

    def log(self, a: Node) -> Node:
        return nodes.Ln(this=adopt(a))

    def exp(self, a: Node) -> Node:
        if not (self._rules.careful_exp or self._rules.underflow):
            return nodes.Exp(this=adopt(a))
        [a] = self.keep([a])
        tiny = self.at_most(a, self.number(_TINY_EXPONENT))
        return self.where(tiny, self.number(0.0), nodes.Exp(this=adopt(a)))

    def at_most(self, a: Node, b: Node) -> Node:
        return nodes.LTE(this=adopt(a), expression=adopt(b))

    def both(self, a: Node, b: Node) -> Node:
        return nodes.And(this=adopt(a), expression=adopt(b))

    def every(self, conditions: Sequence[Node]) -> Node:
        while len(conditions) > _MANY:
            conditions = self.keep(super(SqlWriter, self).every(p) for p in _parts(conditions))
        return super().every(conditions)

    def where(self, condition: Node, a: Node, b: Node) -> Node:
        if self._rules.lazy and a.find(nodes.Column):
            # What only branches need would be computed again wherever it is used.
            if isinstance(b, nodes.Null):
                return self.add(a, self.where(condition, self.number(0.0), self.number(math.nan)))
            place = self.add(integer(1), call("COALESCE", condition, integer(0)))
            return self.lists.extract(self.lists.pack([b, a]), place)
        return case([(adopt(condition), adopt(a))], adopt(b))

    def sum(self, columns: Sequence[Node]) -> Node:
        return self.total(columns)  # less deep than from left to right

    def linear(self, matrix: Floats, columns: Sequence[Node]) -> list[Node]:
        columns = self.keep(columns)
        if self._rules.lists and len(columns) >= _WIDE and matrix.size >= _LARGE:
            [vector] = self.keep([self.lists.pack(columns)])
            rows = [self.lists.numbers(row) for row in matrix.tolist()]
            return [self.lists.product(vector, row) for row in rows]
        return [
            self.sum(
                [
                    x if a == 1 else self.multiply(self.number(a), x)
                    for a, x in zip(row, columns, strict=True)
                    if a
                ]
                or [self.number(0.0)]
            )
            for row in matrix.tolist()
        ]

    def bend(self, a: Node, knots: Floats, slopes: Floats) -> Node:
        return bend_by_distances(self, a, knots, slopes)

    def bumps(self, centres: Floats, weights: Floats, columns: Sequence[Node]) -> list[Node]:
        far = (centres**2).sum(axis=1).max(initial=0.0) > _FAR
        if not self._rules.lists or far or not len(centres):
            return super().bumps(centres, weights, columns)
        # All bumps by one expression of a list, however many there are.
        rows, offsets, point = self._to_centres(centres, columns)
        lists = self.lists
        [vector] = self.keep([lists.pack([*point, self.number(1.0)])])
        away = lists.product(vector, column("isoroc_row"))
        height = self.divide(self.number(1.0), away)
        with_offsets = lists.rows(np.column_stack([rows, offsets]))
        [heights] = self.keep([lists.each(height, "isoroc_row", with_offsets)])
        return [lists.product(heights, lists.numbers(row)) for row in weights.tolist()]

    def maximum(self, a: Node, b: Node) -> Node:
        if self._rules.lists:  # CASE is faster than GREATEST
            [a] = self.keep([a])
            return self.where(self.at_most(a, b), b, a)
        return self._extreme("GREATEST", [a, b])

    def minimum(self, a: Node, b: Node) -> Node:
        if self._rules.lists:
            [a] = self.keep([a])
            return self.where(self.at_most(a, b), a, b)
        return self._extreme("LEAST", [a, b])

    def along(self, a: Node, knots: Floats) -> Node:
        # Databases compute only the branch that a row takes.
        share, n = self.number(1.0), len(knots) - 1
        for i, (low, high) in reversed(list(enumerate(pairwise(knots.tolist())))):
            rise = self.multiply(
                self.subtract(a, self.number(low)), self.number(1 / (n * (high - low)))
            )
            here = self.add(rise, self.number(i / n))
            share = self.where(self.at_most(a, self.number(high)), here, share)
        return self.where(self.at_most(a, self.number(knots[0])), self.number(0.0), share)

    def smallest(self, columns: Sequence[Node]) -> Node:
        return self._extreme("LEAST", columns)

    def largest(self, columns: Sequence[Node]) -> tuple[Node, Node]:
        columns = self.keep(columns)
        [largest] = self.keep([self._extreme("GREATEST", columns)])
        ways = [
            (nodes.EQ(this=adopt(own), expression=adopt(largest)), integer(k))
            for k, own in enumerate(columns[:-1])
        ]
        return largest, case(ways, integer(len(ways)))

    def _extreme(self, name: str, columns: Sequence[Node]) -> Node:
        while len(columns) > _MANY:
            columns = [self._extreme(name, part) for part in _parts(columns)]
        if len(columns) == 1:
            return columns[0]
        short = "MAX" if name == "GREATEST" else "MIN"
        if not self._rules.extremes:
            return self._extreme_of_rows(short, columns)
        # By name: sqlglot would guard its own GREATEST against NULLs, which do not come here.
        return call(short if self._dialect == "sqlite" else name, *columns)

    @staticmethod
    def _extreme_of_rows(name: str, columns: Sequence[Node]) -> Node:
        """The same by an aggregate over a table of one column."""
        table = nodes.Values(
            expressions=[nodes.Tuple(expressions=[adopt(entry)]) for entry in columns],
            alias=nodes.TableAlias(
                this=nodes.to_identifier("isoroc_values", quoted=True),
                columns=[nodes.to_identifier("isoroc_value", quoted=True)],
            ),
        )
        query = nodes.Select(expressions=[call(name, column("isoroc_value"))])
        return nodes.Subquery(this=query.from_(table, copy=False))

    def is_at(self, place: Node, number: int) -> Node:
        return nodes.EQ(this=adopt(place), expression=integer(number))

    def locate(self, cuts: Floats, score: Node) -> Node:
        [score] = self.keep([score])
        if self._rules.lists and len(cuts) > FEW_PLACES and isinstance(score, nodes.Column):
            return self.stages.join_last(score, self.lists.numbers(cuts.tolist()), len(cuts))
        if isinstance(self.lists, ClickHouseLists) and len(cuts) > FEW_PLACES:
            return self.lists.count_below(self.lists.numbers(cuts.tolist()), score)
        return choose(
            [integer(place) for place in range(len(cuts) + 1)],
            lambda place: self.at_most(score, self.number(cuts[place])),
        )

    def look_up(self, table: Floats, place: Node) -> list[Node]:
        [at] = self.keep([place])
        if self._rules.arrays and len(table) > FEW_PLACES:
            return [self._entry(values.tolist(), at) for values in table.T]
        return [
            choose(
                [self.number(value) for value in values],
                lambda place: self.at_most(at, integer(place)),
            )
            for values in table.T
        ]

    def _entry(self, values: list[float], place: Node) -> Node:
        """Entry of a constant array."""
        first = nodes.Add(this=adopt(place), expression=integer(1))
        if self._dialect in WITH_LISTS:
            return self.lists.extract(self.lists.numbers(values), first)
        if self._dialect == "postgres":
            array = nodes.Paren(this=numbers_in_text(values, "{}"))
            return nodes.Bracket(this=array, expressions=[first])
        entries = [self.number(value) for value in values]
        return call("ELEMENT_AT", nodes.Array(expressions=entries), first)

    def route(self, tree: BinTree, columns: Sequence[Node]) -> Node:
        return Route(self, self._dialect, tree, columns).place()


def bend_by_distances(w: Writer[C], a: C, knots: Floats, slopes: Floats) -> C:
    """What `Writer.bend` returns: the larger of two is half of their sum and distance.

    Databases take less time for it than for a choice.
    """
    [a] = w.keep([a])
    distances = [w.absolute(w.subtract(a, w.number(knot))) for knot in knots.tolist()]
    [bent] = w.linear(np.append(slopes, slopes.sum())[None] / 2, [*distances, a])
    return w.add(bent, w.number(float(slopes @ knots) / 2))


def _parts(nodes_: Sequence[Node]) -> list[Sequence[Node]]:
    return [nodes_[i : i + _MANY] for i in range(0, len(nodes_), _MANY)]
