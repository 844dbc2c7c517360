"""The operations on columns as expressions of SQL."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from sqlglot import expressions as nodes

from isoroc._backends.columns import ColumnOps, Columns, Scalars
from isoroc._backends.ops import Function
from isoroc._backends.sql.dialects import RULES, Rules
from isoroc._backends.sql.expressions import (
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
    numbers_in_text,
)
from isoroc._backends.sql.stages import Stages
from isoroc._simplex import Floats, Ints
from isoroc._tree import BinTree

_NUMBERS = {"literal": literal, "cast": decimal, "fraction": fraction}
_ARITHMETIC = {"+": nodes.Add, "-": nodes.Sub, "*": nodes.Mul, "/": nodes.Div}
_FUNCTIONS = {"log": nodes.Ln, "exp": nodes.Exp, "sqrt": nodes.Sqrt, "absolute": nodes.Abs}
#: Below this the exponential is written as 0, where databases raise an error if it underflows,
_TINY_EXPONENT = -690.0
#: and a factor of a product below this counts as 0.
_TINY_FACTOR = 1e-150
#: Arguments of a function, and conditions of a conjunction, at most.
_MANY = 64
#: Squared length of centres up to which rounding errors of distances to them are far below 1.
_FAR = 1e9
#: Places, or splits of a level of a tree, beyond which joins and lists are as fast as CASE.
FEW_PLACES = 16
#: Sizes from which on a matrix is multiplied by inner products of lists.
_WIDE, _LARGE = 6, 36


class SqlScalars(Scalars[Node]):
    """Columns are expressions; those that are used again are named in stages of the query."""

    def __init__(self, dialect: str, taken: Sequence[str]) -> None:
        self._dialect = dialect
        self._rules = RULES[dialect]
        self.stages = Stages(dialect, taken)

    def keep(self, column: Node) -> Node:
        return self.stages.keep(column)

    def number(self, value: float) -> Node:
        return nodes.Null() if math.isnan(value) else _NUMBERS[self._rules.numbers](value)

    def function(self, name: Function, a: Node) -> Node:
        if name == "floor":
            return double(nodes.Floor(this=adopt(a)))  # an integer in Spark
        if name == "exp" and (self._rules.careful_exp or self._rules.underflow):
            a = self.keep(a)
            tiny = self.binary("<=", a, self.number(_TINY_EXPONENT))
            return self.where(tiny, self.number(0.0), nodes.Exp(this=adopt(a)))
        return _FUNCTIONS[name](this=adopt(a))

    def binary(self, operator: str, a: Node, b: Node) -> Node:
        if operator == "*" and self._rules.underflow:
            a, b = self._factor(a), self._factor(b)
        if operator == "/" and self._dialect == "polars" and b.find(nodes.Column) is None:
            # Polars multiplies by the reciprocal of a constant, which rounds twice.
            a = self.keep(a)
            b = self.binary("+", b, self.binary("*", self.number(0.0), a))
        if operator in _ARITHMETIC:
            return arithmetic(_ARITHMETIC[operator], adopt(a), adopt(b))
        of_truth = nodes.LTE if operator == "<=" else nodes.And
        return of_truth(this=adopt(a), expression=adopt(b))

    def _factor(self, a: Node) -> Node:
        """A number whose product with another one like it does not underflow."""
        if a.find(nodes.Column) is None:
            return a
        a = self.keep(a)
        tiny = self.binary("<=", self.function("absolute", a), self.number(_TINY_FACTOR))
        return self.keep(self.where(tiny, self.number(0.0), a))

    def where(self, condition: Node, a: Node, b: Node) -> Node:
        if self._rules.lazy and a.find(nodes.Column):
            # What only branches need would be computed again wherever it is used.
            if isinstance(b, nodes.Null):
                start = self.where(condition, self.number(0.0), self.number(math.nan))
                return self.binary("+", a, start)
            place = self.binary("+", integer(1), call("COALESCE", condition, integer(0)))
            return call("arrayElement", nodes.Array(expressions=[adopt(b), adopt(a)]), place)
        return case([(adopt(condition), adopt(a))], adopt(b))

    def maximum(self, a: Node, b: Node) -> Node:
        # CASE is faster than GREATEST in DuckDB.
        return super().maximum(a, b) if self._rules.lists else self.largest([a, b])

    def minimum(self, a: Node, b: Node) -> Node:
        return super().minimum(a, b) if self._rules.lists else self.smallest([a, b])

    def largest(self, columns: Sequence[Node]) -> Node:
        return self._extreme("GREATEST", "MAX", columns)

    def smallest(self, columns: Sequence[Node]) -> Node:
        return self._extreme("LEAST", "MIN", columns)

    def _extreme(self, name: str, short: str, columns: Sequence[Node]) -> Node:
        while len(columns) > _MANY:
            columns = [self._extreme(name, short, part) for part in _parts(columns)]
        if len(columns) == 1:
            return columns[0]
        if not self._rules.extremes:
            return _extreme_of_rows(short, columns)
        # By name: sqlglot would guard its own GREATEST against NULLs, which do not come here.
        return call(short if self._dialect == "sqlite" else name, *columns)

    def every(self, conditions: Sequence[Node]) -> Node:
        while len(conditions) > _MANY:
            every = super().every
            conditions = [self.keep(every(part)) for part in _parts(conditions)]
        return super().every(conditions)

    def place_of(self, value: Node, columns: Sequence[Node]) -> Node:
        value = self.keep(value)
        ways = [
            (nodes.EQ(this=adopt(self.keep(own)), expression=adopt(value)), integer(k))
            for k, own in enumerate(columns[:-1])
        ]
        return case(ways, integer(len(ways)))

    def is_at(self, place: Node, number: int) -> Node:
        return nodes.EQ(this=adopt(place), expression=integer(number))

    def locate(self, cuts: Floats, score: Node) -> Node:
        """Place among ascending cuts."""
        score = self.keep(score)
        if self._rules.lists and len(cuts) > FEW_PLACES:
            return self._search(cuts, score)
        if self._dialect == "clickhouse" and len(cuts) > FEW_PLACES:
            name = "isoroc_cut"
            below = nodes.LT(this=column(name), expression=adopt(score))
            entry = nodes.to_identifier(name, quoted=True)
            is_below = nodes.Lambda(this=below, expressions=[entry])
            return call("arrayCount", is_below, _clickhouse_numbers(cuts.tolist()))
        return choose(
            [integer(place) for place in range(len(cuts) + 1)],
            lambda place: self.binary("<=", score, self.number(cuts[place])),
        )

    def _search(self, cuts: Floats, score: Node) -> Node:
        """Place among many cuts by binary search: each step compares with an entry of a list."""
        n_steps = len(cuts).bit_length()
        ends = np.pad(cuts, (0, 2**n_steps - 1 - len(cuts)), constant_values=np.inf)
        place = integer(0)
        for step in reversed(range(n_steps)):
            # The range of places is halved at the cut in its middle.
            cut = self.entry(ends[2**step - 1 :: 2 ** (step + 1)].tolist(), place)
            right = nodes.GT(this=adopt(score), expression=cut)
            doubled = self.binary("*", integer(2), place)
            place = self.keep(self.binary("+", doubled, case([(right, integer(1))], integer(0))))
        return place

    def entry(self, values: list[float], place: Node) -> Node:
        """Entry of a constant list at a place that was kept."""
        if not self._rules.arrays or len(values) <= FEW_PLACES:
            return choose(
                [self.number(value) for value in values],
                lambda at: self.binary("<=", place, integer(at)),
            )
        first = nodes.Add(this=adopt(place), expression=integer(1))
        if self._rules.lists:
            return call("LIST_EXTRACT", numbers_in_text(values), first)
        if self._dialect == "clickhouse":
            return call("arrayElement", _clickhouse_numbers(values), first)
        if self._dialect == "postgres":
            array = nodes.Paren(this=numbers_in_text(values, brackets="{}"))
            return nodes.Bracket(this=array, expressions=[first])
        entries = [self.number(value) for value in values]
        return call("ELEMENT_AT", nodes.Array(expressions=entries), first)


class Route:
    """The walk of forecasts down a tree to their bins.

    Splits are written as nested CASE. Where there are lists, a level of many splits is one look-up
    of thresholds and children: planning and running a CASE takes time for each split.
    """

    def __init__(
        self, scalars: SqlScalars, rules: Rules, tree: BinTree, columns: Sequence[Node]
    ) -> None:
        self._scalars = scalars
        self._rules = rules
        self._tree = tree
        self._columns = [scalars.keep(own) for own in columns]
        self._place_of = {int(node): place for place, node in enumerate(tree.bins)}
        self._unfinished: list[int] = []

    def place(self) -> Node:
        """Place among the bins."""
        scalars, depth = self._scalars, self._rules.depth
        place = self._walk(0, self._levels_by_case())
        while waiting := self._unfinished:
            self._unfinished = []
            at = scalars.keep(place)
            if self._rules.lists and len(waiting) > FEW_PLACES:
                place = self._step(at, np.array(waiting))
            else:
                numbered = enumerate(waiting, start=1)
                ways = [(scalars.is_at(at, -i), self._walk(n, depth)) for i, n in numbered]
                place = case(ways, adopt(at), flat=False)
        return place

    def _levels_by_case(self) -> int:
        """Levels of the tree, from the first on, that are written as one CASE."""
        tree, depth = self._tree, self._rules.depth
        if not self._rules.lists:
            return depth
        level = np.zeros(len(tree.class_weights), dtype=np.intp)
        for node, below in zip(tree.split_nodes, tree.children, strict=True):
            level[below[below >= 0]] = level[node] + 1
        many = np.flatnonzero(np.bincount(level[tree.split_nodes]) > FEW_PLACES)
        return min(depth, *many[:1].tolist()) if len(many) else depth

    def _number(self, node: int) -> int:
        """Place of a bin; -1, -2, ... for nodes at which the walk has to go on."""
        if node in self._place_of:
            return self._place_of[node]
        self._unfinished.append(node)
        return -len(self._unfinished)

    def _walk(self, node: int, depth: int) -> Node:
        """Numbers of nodes some levels below a node, by CASE."""
        if not depth or node in self._place_of:
            return integer(self._number(node))
        tree = self._tree
        split = tree.split_of_node[node]
        kept = np.flatnonzero(tree.children[split] >= 0)
        scalars = self._scalars
        margins = [
            scalars.binary("-", self._columns[k], scalars.number(tree.thresholds[split, k]))
            for k in kept
        ]
        *below, last = [self._walk(int(c), depth - 1) for c in tree.children[split, kept]]
        return case(_first_of_largest(margins, below), last)

    def _step(self, at: Node, waiting: Ints) -> Node:
        """Numbers of nodes one level down, by lists of thresholds and children.

        Rows that are at -i are in the i-th of the waiting nodes; those at 0 or above have arrived.
        """
        tree, K, binary = self._tree, self._tree.n_classes, self._scalars.binary
        splits = tree.split_of_node[waiting]
        children = tree.children[splits]
        # No margin below an infinite threshold is the largest.
        thresholds = np.where(children >= 0, tree.thresholds[splits], np.inf)
        before = binary("*", integer(-K), binary("+", adopt(at), integer(1)))
        numbers = [self._number(c) if c >= 0 else 0 for c in children.ravel().tolist()]
        place = binary("+", before, self._region(at, thresholds))
        entry = call("LIST_EXTRACT", numbers_in_text(numbers, "array<int>"), place)
        arrived = nodes.GTE(this=adopt(at), expression=integer(0))
        return case([(arrived, adopt(at))], entry, flat=False)

    def _region(self, at: Node, thresholds: Floats) -> Node:
        """Regions in which rows that are at -1, -2, ... lie, the first of which is 1."""
        scalars, own = self._scalars, nodes.Neg(this=adopt(at))
        lists = [numbers_in_text(values) for values in thresholds.T.tolist()]
        margins = [
            scalars.keep(scalars.binary("-", x, call("LIST_EXTRACT", values, own)))
            for x, values in zip(self._columns, lists, strict=True)
        ]
        K = len(margins)
        return case(_first_of_largest(margins, map(integer, range(1, K))), integer(K))


def _first_of_largest(margins: list[Node], ways: Iterable[Node]) -> list[tuple[Node, Node]]:
    """Conditions of the regions of a split but the last, and what is returned for each of them.

    The first region whose margin no later one exceeds: no earlier one does either, as each of them
    was exceeded by a later one.
    """
    return [(_none_exceeds(margins[i:]), way) for i, way in enumerate(ways)]


def _none_exceeds(margins: list[Node]) -> Node:
    """Whether the first margin is at least as large as the others."""
    first, *others = margins
    result: Node = nodes.GTE(this=adopt(first), expression=adopt(others[0]))
    for other in others[1:]:
        more = nodes.GTE(this=adopt(first), expression=adopt(other))
        result = nodes.And(this=result, expression=more)
    return result


class SqlOps(ColumnOps[Node]):
    """Vector operations in a dialect of SQL; no column of a stage has one of the taken names."""

    scalars: SqlScalars

    def __init__(self, dialect: str, taken: Sequence[str]) -> None:
        super().__init__(SqlScalars(dialect, taken))
        self._rules = RULES[dialect]

    @property
    def stages(self) -> Stages:
        """Stages of the query."""
        return self.scalars.stages

    def read(self, names: Sequence[str]) -> Columns[Node]:
        """Columns of the table as doubles."""
        return self.vector([self.scalars.keep(double(column(name))) for name in names])

    def find(self, name: str, values: list[str]) -> tuple[Columns[Node], Columns[Node]]:
        """Place of each entry of a column among texts, -1 for others, and whether there is one."""
        text = nodes.cast(column(name), "text")
        equal = [nodes.EQ(this=text.copy(), expression=nodes.Literal.string(v)) for v in values]
        ways = [(condition, integer(place)) for place, condition in enumerate(equal)]
        place = case(ways, integer(-1)) if ways else integer(-1)
        known = nodes.Not(this=nodes.Is(this=column(name), expression=nodes.Null()))
        return self.vector([self.scalars.keep(place)]), self.vector([self.scalars.keep(known)])

    def text(self, statement: Any) -> str:
        """A statement as text."""
        return str(statement.sql(dialect=self._rules.sqlglot, pretty=True, copy=False))

    def linear(
        self, a: Columns[Node], matrix: Floats, offset: Floats | None = None
    ) -> Columns[Node]:
        is_large = a.width >= _WIDE and matrix.size >= _LARGE
        if not (self._rules.lists and (is_large or isinstance(a, _Listed))):
            return super().linear(a, matrix, offset)
        rows = [numbers_in_text(row) for row in matrix.tolist()]
        listed = a if isinstance(a, _Listed) else _Listed(self, a.width, a, _pack)
        product = Columns(
            self,
            len(rows),
            [listed.whole],
            lambda own: [call("LIST_INNER_PRODUCT", own[0], row) for row in rows],
        )
        return product if offset is None else product + offset

    def bend(self, a: Columns[Node], knots: Floats, slopes: Floats) -> Columns[Node]:
        # The larger of two is half of their sum and distance, which takes less time than a choice.
        bent: Columns[Node] = a * (slopes.sum(axis=1) / 2) - slopes @ knots / 2
        distances = self.concat([self.absolute(a - knot) for knot in knots.tolist()])
        by_class = np.arange(len(knots) * a.width).reshape(len(knots), -1).T
        return bent + self.run_sums(self.take(distances, by_class.ravel()), slopes / 2)

    def along(self, a: Columns[Node], knots: Floats) -> Columns[Node]:
        def make(own: list[Node]) -> list[Node]:
            return [self._along(x, at) for x, at in zip(own, knots.tolist(), strict=True)]

        return Columns(self, a.width, [a], make, times=knots.shape[1])

    def _along(self, a: Node, knots: list[float]) -> Node:
        """How far a column lies along its knots: databases compute only the branch of a row."""
        binary, number, where = self.scalars.binary, self.scalars.number, self.scalars.where
        share, n = number(1.0), len(knots) - 1
        for i, (low, high) in reversed(list(enumerate(pairwise(knots)))):
            rise = binary("*", binary("-", a, number(low)), number(1 / (n * (high - low))))
            here = binary("+", rise, number(i / n))
            share = where(binary("<=", a, number(high)), here, share)
        return where(binary("<=", a, number(knots[0])), number(0.0), share)

    def bumps(self, a: Columns[Node], centres: Floats) -> Columns[Node]:
        squares = (centres**2).sum(axis=1)
        if not self._rules.lists or squares.max(initial=0.0) > _FAR or not len(centres):
            return super().bumps(a, centres)
        # All bumps by one expression of a list, however many there are.
        half_square = 0.5 * self.sum(a * a)
        rows = np.column_stack([-centres, np.ones(len(centres)), 1 + squares / 2])
        point = self.concat([a, half_square, self._lift(1.0)])
        return _Listed(self, len(centres), point, partial(_heights, self.scalars, rows))

    def locate(self, cuts: Floats, score: Columns[Node]) -> Columns[Node]:
        return self._reduced(lambda own: self.scalars.locate(cuts, own[0]), score)

    def look_up(self, table: Floats, place: Columns[Node]) -> Columns[Node]:
        def make(own: list[Node]) -> list[Node]:
            at = self.scalars.keep(own[0])
            return [self.scalars.entry(values, at) for values in table.T.tolist()]

        return Columns(self, table.shape[1], [place], make)

    def route(self, tree: BinTree, a: Columns[Node]) -> Columns[Node]:
        return self._reduced(lambda own: Route(self.scalars, self._rules, tree, own).place(), a)


class _Listed(Columns[Node]):
    """A vector whose columns are the entries of a list, which is one expression."""

    def __init__(self, ops: SqlOps, width: int, source: Columns[Node], write: Any) -> None:
        self.whole = Columns(ops, 1, [source], lambda own: [write(own)], times=1)
        super().__init__(ops, width, [self.whole], self._entries)

    def _entries(self, whole: list[Node]) -> list[Node]:
        return [call("LIST_EXTRACT", whole[0], integer(k + 1)) for k in range(self.width)]


def _pack(columns: Sequence[Node]) -> Node:
    return call("LIST_VALUE", *columns)


def _heights(scalars: SqlScalars, rows: Floats, point: Sequence[Node]) -> Node:
    """List of the bumps: one over the inner product of a point with each row."""
    name = "isoroc_row"
    vector = scalars.keep(_pack(point))
    away = call("LIST_INNER_PRODUCT", vector, column(name))
    height = scalars.binary("/", scalars.number(1.0), away)
    entry = nodes.to_identifier(name, quoted=True)
    matrix = numbers_in_text(rows.tolist(), "array<array<double>>")
    each = nodes.Comprehension(this=height, expression=entry, iterator=matrix)
    return nodes.Array(expressions=[each])


def _clickhouse_numbers(values: list[float]) -> Node:
    # The type is given as text: in a cast, sqlglot would let entries be missing.
    return call("CAST", nodes.Literal.string(str(values)), nodes.Literal.string("Array(Float64)"))


def _extreme_of_rows(name: str, columns: Sequence[Node]) -> Node:
    """The largest or smallest column by an aggregate over a table of one column."""
    table = nodes.Values(
        expressions=[nodes.Tuple(expressions=[adopt(entry)]) for entry in columns],
        alias=nodes.TableAlias(
            this=nodes.to_identifier("isoroc_values", quoted=True),
            columns=[nodes.to_identifier("isoroc_value", quoted=True)],
        ),
    )
    query = nodes.Select(expressions=[call(name, column("isoroc_value"))])
    return nodes.Subquery(this=query.from_(table, copy=False))


def _parts(columns: Sequence[Node]) -> list[Sequence[Node]]:
    return [columns[i : i + _MANY] for i in range(0, len(columns), _MANY)]
