"""SQL: vectors are lists of expressions, and queries compute what is used again in stages.

Importing this module requires sqlglot. Dialect differences are in `dialects.py`. Pieces of SQL
come first here, then the stages that they are put together in, then the vector operations.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from sqlglot import expressions as nodes
from sqlglot.errors import SqlglotError

from isoroc._backends.columns import ColumnOps, Columns, Scalars
from isoroc._backends.dialects import DIALECTS, RULES, Dialect, Rules
from isoroc._backends.ops import Function
from isoroc._core.tree import BinTree
from isoroc._core.types import Floats

__all__ = ["DIALECTS", "RULES", "Dialect", "SqlOps", "SqlglotError", "nodes", "table_node"]

#: Any piece of SQL; in quotes, as versions of sqlglot differ in what they call it.
Node: TypeAlias = "nodes.Expr"

_DOUBLE = nodes.DataType.build("double")
#: What sqlglot calls the columns that a star leaves out; versions differ.
_EXCEPT = "except_" if "except_" in nodes.Star.arg_types else "except"
#: Expressions that are conditions.
_CONDITIONS = (nodes.LTE, nodes.GTE, nodes.EQ, nodes.And, nodes.Not)
_ARITHMETIC = {"+": nodes.Add, "-": nodes.Sub, "*": nodes.Mul, "/": nodes.Div}
_FUNCTIONS = {"log": nodes.Ln, "exp": nodes.Exp, "sqrt": nodes.Sqrt, "absolute": nodes.Abs}
_EXTREMES = {"maximum": ("GREATEST", "MAX"), "minimum": ("LEAST", "MIN")}
#: Arguments of a function, and conditions of a conjunction, at most.
_MANY = 64
#: Places beyond which looking up entries of arrays is as fast as CASE.
FEW_PLACES = 16


def adopt(node: Node) -> Node:
    """The node itself if it is part of no expression yet, otherwise a copy: in linear time."""
    return node if node.parent is None else node.copy()


def column(name: str, table: str | None = None) -> Node:
    """A column by its name, quoted."""
    return nodes.column(name, table, quoted=True)


def call(name: str, *arguments: Node) -> Node:
    """A function by the name that a dialect has for it: sqlglot leaves it as it is."""
    return nodes.Anonymous(this=name, expressions=[adopt(a) for a in arguments])


def table_node(parts: Sequence[str]) -> Node:
    """A table by its name, after schema and catalog if there are any."""
    return nodes.table_(*reversed(parts), quoted=True)  # type: ignore[misc,arg-type]


def integer(value: int) -> Node:
    """A literal integer."""
    literal = nodes.Literal.number(abs(value))
    return nodes.Neg(this=literal) if value < 0 else literal


def double(value: Node) -> Node:
    """Something as a double."""
    return nodes.Cast(this=value, to=_DOUBLE.copy())


def decimal(value: float) -> Node:
    """A double as a text that is cast: a literal like 0.1 is a decimal number in some dialects."""
    text = f"{'-' * (value < 0)}Infinity" if math.isinf(value) else str(float(value))
    return double(nodes.Literal.string(text))


def literal(value: float) -> Node:
    """A double in scientific notation, which makes it one in many dialects: 0.1e0, -3e+20."""
    if math.isinf(value):
        return decimal(value)
    text = repr(abs(float(value)))
    number = nodes.Literal.number(text if "e" in text else f"{text.removesuffix('.0')}e0")
    return nodes.Neg(this=number) if math.copysign(1.0, value) < 0 else number


def numbers_in_text(values: list[float], brackets: str = "[]") -> Node:
    """A constant array as a text that is cast: one word to a parser, however long it is."""
    text = nodes.Literal.string(f"{brackets[0]}{str(values)[1:-1]}{brackets[1]}")
    return nodes.Cast(this=text, to=nodes.DataType.build("array<double>"))


def fraction(value: float) -> Node:
    """A double as an integer and powers of two, as SQLite reads some decimals inexactly."""
    mantissa, exponent = math.frexp(value)
    whole, exponent = int(mantissa * 2**53), exponent - 53
    while whole % 2 == 0 and exponent < 0:
        whole, exponent = whole // 2, exponent + 1
    result = double(integer(whole))
    while exponent:
        step = max(-62, min(exponent, 62))
        power = integer(2 ** abs(step))
        result = arithmetic(nodes.Mul if step > 0 else nodes.Div, result, power)
        exponent -= step
    return result


def arithmetic(operator: type[Any], a: Node, b: Node) -> Node:
    """An operation on two doubles, with parentheses where the order of operations needs them."""
    sums, products = (nodes.Add, nodes.Sub), (nodes.Mul, nodes.Div)
    is_product = operator in products
    left = nodes.Paren(this=a) if is_product and isinstance(a, sums) else a
    right = nodes.Paren(this=b) if isinstance(b, (*sums, *(products if is_product else ()))) else b
    options = {"typed": True} if operator is nodes.Div else {}  # no casts of sqlglot's own
    result: Node = operator(this=left, expression=right, **options)
    return result


def case(ways: Sequence[tuple[Node, Node]], otherwise: Node, *, flat: bool = True) -> Node:
    """CASE; one in its ELSE becomes part of it if it is to be flat."""
    ifs = [nodes.If(this=condition, true=value) for condition, value in ways]
    last = otherwise
    if flat and isinstance(otherwise, nodes.Case):
        ifs += otherwise.args["ifs"]
        last = otherwise.args.get("default") or nodes.Null()
    result = nodes.Case(ifs=ifs, default=None if isinstance(last, nodes.Null) else last)
    if last is not otherwise:
        otherwise.parent = result  # its parts belong to the result now
    return result


def choose(values: list[Node], is_within: Callable[[int], Node], first: int = 0) -> Node:
    """The value of the first place, from `first` on, that passes; the last where none does.

    `is_within` is the condition that a place or one before it is the one. A CASE makes at most 16
    choices one after the other; longer lists are halved first.
    """
    n = len(values)
    if n > 16:
        low = choose(values[: n // 2], is_within, first)
        high = choose(values[n // 2 :], is_within, first + n // 2)
        return case([(is_within(first + n // 2 - 1), low)], high, flat=False)
    ways = [(is_within(first + i), value) for i, value in enumerate(values[:-1])]
    return case(ways, values[-1], flat=False) if ways else values[0]


class Stages:
    """Columns by name, each in the first stage that has all that it is computed from.

    Equal expressions are one column; one that is used only once becomes part of what uses it.
    """

    def __init__(self, rules: Rules, taken: Sequence[str]) -> None:
        self._rules = rules
        #: Most columns that a stage of the statement has, once it was written.
        self.widest = 0
        self._columns: dict[str, Node] = {}
        self._name_of: dict[Node, str] = {}
        self._prefix = "isoroc_"
        while any(name.lower().startswith(self._prefix) for name in taken):
            self._prefix += "_"

    def keep(self, expression: Node) -> Node:
        """The expression as a column, to be used more than once."""
        if isinstance(expression, nodes.Column):
            return expression
        if isinstance(expression, nodes.EQ) and isinstance(expression.expression, nodes.Literal):
            return expression  # whether a place is a number, which is found as fast as a column
        name = self._name_of.get(expression)
        as_number = isinstance(expression, _CONDITIONS) and not self._rules.conditions
        if name is None:
            if expression.find(nodes.Column) is None:
                return expression
            stored = adopt(expression)
            if as_number:
                stored = case([(stored, integer(1))], integer(0))
            name = self._name_of[expression] = f"{self._prefix}{len(self._columns)}"
            self._columns[name] = stored
        kept = column(name)
        return nodes.EQ(this=kept, expression=integer(1)) if as_number else kept

    def select(
        self,
        table: Sequence[str],
        keep: Sequence[str] | None,
        outputs: dict[str, Node],
        replaced: Sequence[str] = (),
        where: Node | None = None,
    ) -> Any:
        """The whole statement: some columns of a table, and outputs by their names.

        If `keep` is None, all columns are handed on but the replaced ones, whose names are among
        the outputs; the `star` of the dialect's rules must allow it. Rows must satisfy `where`.
        """
        outputs = self._merge(outputs)
        of_stages = self._stages()
        source, first, last = self._hand_on(table_node(table), keep, replaced)
        live = None if keep is None else self._live(of_stages, len(keep), outputs)
        before, queries, names = first, [], []
        for number, own in enumerate(of_stages):
            columns = own
            if live is not None:
                earlier = [column(name) for name in live[number] if name not in own]
                before = [*([node.copy() for node in last] if number else first), *earlier]
                columns = {name: own[name] for name in live[number] if name in own}
            query = nodes.Select(expressions=[*before, *named(columns)]).from_(source, copy=False)
            if self._rules.limit is not None:
                query = query.limit(integer(self._rules.limit), copy=False)
            if self._rules.offset:
                query = query.offset(integer(0), copy=False)
            queries.append(query)
            names.append(nodes.to_identifier(f"{self._prefix}stage_{number}", quoted=True))
            source, before = nodes.Table(this=names[-1].copy()), [nodes.Star()]
        statement = nodes.Select(expressions=[*last, *named(outputs)]).from_(source, copy=False)
        if where is not None:
            [*queries, statement][0].where(where, copy=False)
        for name, query in zip(names, queries, strict=True):
            statement = statement.with_(name, as_=query, copy=False)
        return statement

    def _merge(self, outputs: dict[str, Node], most_levels: int = 40) -> dict[str, Node]:
        """Outputs after columns that are used only once, which planners dislike, became parts.

        Expressions get no more levels than `most_levels`.
        """
        outputs, expressions = dict(outputs), self._columns | outputs
        surveyed = {name: _survey(node) for name, node in expressions.items()}
        uses = Counter(found.name for used, _ in surveyed.values() for found in used)
        height: dict[str, int] = {}
        for name, (used, own) in surveyed.items():
            node, levels = expressions[name], own
            for found in used:
                below = height.get(found.name, most_levels)
                if uses[found.name] > 1 or own + below > most_levels:
                    continue
                levels = max(levels, own + below)
                part = self._columns.pop(found.name)
                if found is node:  # an output that is a column
                    outputs[name] = part
                elif isinstance(part, nodes.Binary):
                    found.replace(nodes.Paren(this=part))
                else:
                    found.replace(part)
            # A choice stays by itself: engines limit how deep choices may be nested. And columns of
            # the table are those of the first stage only.
            own_only = all(found.name.startswith(self._prefix) for found in used)
            is_choice = node.find(nodes.Case, nodes.Subquery) is not None
            if own_only and not is_choice:
                height[name] = levels
        return outputs

    def _stages(self) -> list[dict[str, Node]]:
        """Stages of the columns, each with the columns that need no later one."""
        stages: list[dict[str, Node]] = []
        stage_of: dict[str, int] = {}
        for name, node in self._columns.items():
            at = stage_of[name] = 1 + max(stage_of.get(other, -1) for other in _used([node]))
            if at == len(stages):
                stages.append({})
            stages[at][name] = node
        return stages

    def _hand_on(
        self, source: Any, keep: Sequence[str] | None, replaced: Sequence[str]
    ) -> tuple[Any, list[Node], list[Node]]:
        """Where the first stage reads from, and what it and the last one hand on."""
        if keep is not None:
            return source, [column(name) for name in keep], [column(name) for name in keep]
        if self._rules.star == "except":
            left_out = [*self._columns, *replaced]
            added = [nodes.to_identifier(name, quoted=True) for name in left_out]
            return source, [nodes.Star()], [nodes.Star(**{_EXCEPT: added})]
        row = f"{self._prefix}row"
        if self._rules.star == "row":
            own = f"{self._prefix}source"
            source = nodes.alias_(source, own, table=True, quoted=True)
            whole: Node = nodes.Dot(this=nodes.Paren(this=column(row)), expression=nodes.Star())
            return source, named({row: column(own)}), [whole]
        whole = nodes.Column(this=nodes.Star(), table=nodes.to_identifier(row, quoted=True))
        return source, named({row: call("STRUCT", nodes.Star())}), [whole]

    def _live(
        self, stages: Sequence[dict[str, Node]], n_kept: int, outputs: dict[str, Node]
    ) -> list[list[str]] | None:
        """Columns of each stage, and of those before, that later ones use; None for all, if few."""
        if len(self._columns) <= 64:  # a star is short, but planners bind each column
            return None
        known, needed, live = list(self._columns), _used(outputs.values()), []
        for stage in reversed(stages):
            live.append([name for name in known if name in needed])
            needed |= _used(stage.values())
            known = [name for name in known if name not in stage]
        self.widest = n_kept + max(len(outputs), *map(len, live))
        return live[::-1]


def _survey(node: Node) -> tuple[list[Node], int]:
    """Columns that an expression uses, twice if a function of entries does, and its levels."""
    if isinstance(node, nodes.Column):
        return [node], 1
    parts = [_survey(part) for part in node.iter_expressions()]
    used = [found for of_part, _ in parts for found in of_part]
    levels = 1 + max((below for _, below in parts), default=0)
    return used * (2 if isinstance(node, nodes.Lambda) else 1), levels


def _used(expressions: Iterable[Node]) -> set[str]:
    return {found.name for node in expressions for found in node.find_all(nodes.Column)}


def named(columns: dict[str, Node]) -> list[Node]:
    """Expressions with their names."""
    return [
        nodes.Alias(this=adopt(expression), alias=nodes.to_identifier(name, quoted=True))
        for name, expression in columns.items()
    ]


_NUMBERS = {"literal": literal, "cast": decimal, "fraction": fraction}


class SqlScalars(Scalars[Node]):
    """Columns are expressions; those that are used again are named in stages of the query."""

    def __init__(self, rules: Rules, taken: Sequence[str]) -> None:
        self._rules = rules
        self.stages = Stages(rules, taken)

    def keep(self, column: Node) -> Node:
        return self.stages.keep(column)

    def number(self, value: float) -> Node:
        return nodes.Null() if math.isnan(value) else _NUMBERS[self._rules.numbers](value)

    def function(self, name: Function, a: Node) -> Node:
        if name == "floor":
            return double(nodes.Floor(this=adopt(a)))  # an integer in Spark
        if name == "exp" and (self._rules.careful_exp or self._rules.underflow):
            a = self.keep(a)
            tiny = self.binary("<=", a, self.number(-690.0))
            return self.where(tiny, self.number(0.0), nodes.Exp(this=adopt(a)))
        return _FUNCTIONS[name](this=adopt(a))

    def binary(self, operator: str, a: Node, b: Node) -> Node:
        if operator == "*" and self._rules.underflow:
            a, b = self._factor(a), self._factor(b)
        if operator == "/" and self._rules.reciprocals and b.find(nodes.Column) is None:
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
        tiny = self.binary("<=", self.function("absolute", a), self.number(1e-150))
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

    def extreme_of_two(self, name: Function, a: Node, b: Node) -> Node:
        if self._rules.lists:  # CASE is faster than GREATEST in DuckDB
            return super().extreme_of_two(name, a, b)
        return self.extreme(name, [a, b])

    def extreme(self, name: Function, columns: Sequence[Node]) -> Node:
        while len(columns) > _MANY:
            columns = [self.extreme(name, part) for part in _parts(columns)]
        if len(columns) == 1:
            return columns[0]
        function, aggregate = _EXTREMES[name]
        if self._rules.extremes == "rows":
            return _extreme_of_rows(aggregate, columns)
        # By name: sqlglot would guard its own GREATEST against NULLs, which do not come here.
        return call(aggregate if self._rules.extremes == "MAX" else function, *columns)

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
        if self._rules.lists and len(cuts) > _MANY:
            return self._search(cuts, score)
        if self._rules.arrays == "arrayElement" and len(cuts) > FEW_PLACES:
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
        arrays = self._rules.arrays
        if arrays is None or len(values) <= FEW_PLACES:
            return choose(
                [self.number(value) for value in values],
                lambda at: self.binary("<=", place, integer(at)),
            )
        first = nodes.Add(this=adopt(place), expression=integer(1))
        if arrays == "brackets":
            array = nodes.Paren(this=numbers_in_text(values, brackets="{}"))
            return nodes.Bracket(this=array, expressions=[first])
        if arrays == "LIST_EXTRACT":
            entries = numbers_in_text(values)
        elif arrays == "arrayElement":
            entries = _clickhouse_numbers(values)
        else:
            entries = nodes.Array(expressions=[self.number(value) for value in values])
        return call(arrays, entries, first)

    def bin_of(self, tree: BinTree, columns: Sequence[Node]) -> Node:
        """Place among the bins of a tree: splits are nested CASE, some levels in each stage."""
        columns = [self.keep(own) for own in columns]
        unfinished: list[int] = []  # nodes at which the walk has to go on, numbered -1, -2, ...

        def walk(node: int, depth: int) -> Node:
            if (place := tree.bin_of_node[node]) >= 0:
                return integer(int(place))
            if not depth:
                unfinished.append(node)
                return integer(-len(unfinished))
            split = tree.split_of_node[node]
            gamma, children = tree.thresholds[split], tree.children[split]
            kept = np.flatnonzero(children >= 0).tolist()
            margins = [self.binary("-", columns[k], self.number(gamma[k])) for k in kept]
            *below, last = [walk(int(children[k]), depth - 1) for k in kept]
            # The first region whose margin no later one exceeds: no earlier one does either, as
            # each of them was exceeded by a later one.
            return case([(_leads(margins[i:]), way) for i, way in enumerate(below)], last)

        place = walk(0, self._rules.depth)
        while waiting := unfinished.copy():
            unfinished.clear()
            at = self.keep(place)
            numbered = enumerate(waiting, start=1)
            ways = [(self.is_at(at, -i), walk(node, self._rules.depth)) for i, node in numbered]
            place = case(ways, adopt(at), flat=False)
        return place


def _leads(margins: list[Node]) -> Node:
    """Whether the first margin is at least as large as the others."""
    first, *others = margins
    leads: list[Node] = [nodes.GTE(this=adopt(first), expression=adopt(other)) for other in others]
    return reduce(lambda a, b: nodes.And(this=a, expression=b), leads)


class SqlOps(ColumnOps[Node]):
    """Vector operations in a dialect of SQL; no column of a stage has one of the taken names."""

    scalars: SqlScalars

    def __init__(self, dialect: str, taken: Sequence[str]) -> None:
        self._rules = RULES[dialect]
        super().__init__(SqlScalars(self._rules, taken))
        self.stages = self.scalars.stages

    def read(self, names: Sequence[str]) -> Columns[Node]:
        """Columns of the table as doubles."""
        return self.vector([self.scalars.keep(double(column(name))) for name in names])

    def find(self, name: str, values: list[str]) -> tuple[Columns[Node], Columns[Node]]:
        """Place of each entry of a column among texts, and whether it is one of them."""
        text = nodes.cast(column(name), "text")
        equal = [nodes.EQ(this=text.copy(), expression=nodes.Literal.string(v)) for v in values]
        ways = [(condition, integer(place)) for place, condition in enumerate(equal)]
        found = self.scalars.keep(case(ways, integer(-1)))
        known = self.scalars.keep(nodes.GTE(this=adopt(found), expression=integer(0)))
        # The place of an unknown text is one that every table has.
        place = self.scalars.keep(case([(adopt(known), adopt(found))], integer(0)))
        return self.vector([place]), self.vector([known])

    def cross(self, first: Columns[Node], second: Columns[Node], n_second: int) -> Columns[Node]:
        def write(a: list[Node], b: list[Node]) -> Node:
            row = nodes.Mul(this=nodes.Paren(this=adopt(a[0])), expression=integer(n_second))
            return nodes.Add(this=row, expression=nodes.Paren(this=adopt(b[0])))

        return self._reduced(write, first, second)

    def text(self, statement: Any) -> str:
        """A statement as text."""
        return str(statement.sql(dialect=self._rules.sqlglot, pretty=True, copy=False))

    def linear(
        self, a: Columns[Node], matrix: Floats, offset: Floats | None = None
    ) -> Columns[Node]:
        if not self._rules.lists or a.width < 6 or matrix.size < 36:
            return super().linear(a, matrix, offset)
        rows = [numbers_in_text(row) for row in matrix.tolist()]
        packed = self._reduced(lambda own: call("LIST_VALUE", *own), a)

        def make(own: list[Node]) -> list[Node]:
            return [call("LIST_INNER_PRODUCT", own[0], row) for row in rows]

        product = Columns(self, len(rows), [packed], make)
        return product if offset is None else product + offset

    def hinges(self, a: Columns[Node], knots: Floats, slopes: Floats) -> Columns[Node]:
        # The larger of two is half of their sum and distance, which takes less time than a choice.
        bent: Columns[Node] = a * (slopes.sum(axis=1) / 2) - slopes @ knots / 2
        distances = self.concat([self.absolute(a - knot) for knot in knots.tolist()])
        by_class = np.arange(len(knots) * a.width).reshape(len(knots), -1).T
        return bent + self.segment_sums(self.take(distances, by_class.ravel()), slopes / 2)

    def locate(self, cuts: Floats, score: Columns[Node]) -> Columns[Node]:
        return self._reduced(lambda own: self.scalars.locate(cuts, own[0]), score)

    def look_up(self, table: Floats, place: Columns[Node]) -> Columns[Node]:
        def make(own: list[Node]) -> list[Node]:
            at = self.scalars.keep(own[0])
            return [self.scalars.entry(values, at) for values in table.T.tolist()]

        return Columns(self, table.shape[1], [place], make)

    def route(self, tree: BinTree, a: Columns[Node]) -> Columns[Node]:
        return self._reduced(lambda own: self.scalars.bin_of(tree, own), a)


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
