"""SQL: vectors are lists of expressions, and queries compute reused columns in stages.

The formula of a map is run once with `SqlOps`. Each operation returns expressions of sqlglot, one
per column of the vector, and nothing is computed. Written into each other, they would grow
exponentially: a softmax uses every exponential K + 1 times. SQL has no variables, so a value that
is used again becomes a named column of a subquery (a stage), and later stages select from it:

    WITH stage_0 AS (SELECT *, LN(p0) AS c0, LN(p1) AS c1 FROM forecasts),
         stage_1 AS (SELECT *, EXP(c0 / 2) AS c2, EXP(c1 / 2) AS c3 FROM stage_0)
    SELECT *, c2 / (c2 + c3) AS q0, c3 / (c2 + c3) AS q1 FROM stage_1

`Stages.keep` names a value and `Stages.select` writes the statement. A column stands in the first
stage after all of its inputs, so the number of stages is the length of the longest chain of reused
values, not the number of columns. Planners of databases take time for each column and fail at deep
nesting. So values used once are merged into their use (`_merge`), up to a limit of levels, and with
many columns each stage passes on only the ones needed later (`_live`).

Importing this module requires sqlglot. Dialect differences are in `dialects.py`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from typing import Any, TypeAlias

import numpy as np
from sqlglot import expressions as nodes
from sqlglot.errors import SqlglotError

from isoroc._backends.categories import BOOLEANS, Levels
from isoroc._backends.columns import ColumnOps, Columns, Scalars
from isoroc._backends.dialects import DIALECTS, RULES, Dialect, Rules
from isoroc._backends.ops import Function
from isoroc._core.tree import BinTree
from isoroc._core.types import Floats

__all__ = ["DIALECTS", "RULES", "Dialect", "SqlOps", "SqlglotError", "nodes", "table_node"]

#: Any piece of SQL. It is in quotes because its name differs between versions of sqlglot.
Node: TypeAlias = "nodes.Expr"
Vector: TypeAlias = "Columns[Node]"
Named: TypeAlias = "dict[str, Node]"

#: Largest number of arguments of a function, and of conditions of a conjunction.
_MANY_TERMS = 64
#: Up to this number of entries, CASE is as fast as an array.
FEW_PLACES = 16


def adopt(node: Node) -> Node:
    """The node, or a copy if it is in an expression already. Always copying would be quadratic."""
    return node if node.parent is None else node.copy()


def column(name: str) -> Node:
    return nodes.column(name, quoted=True)


def quoted(name: str) -> Any:
    return nodes.to_identifier(name, quoted=True)


def pair(operator: type[Any], a: Node, b: Node) -> Node:
    """``a operator b`` without parentheses."""
    result: Node = operator(this=adopt(a), expression=adopt(b))
    return result


def call(name: str, *arguments: Node) -> Node:
    """A function by its name in the dialect, which sqlglot does not translate."""
    return nodes.Anonymous(this=name, expressions=[adopt(a) for a in arguments])


def table_node(parts: Sequence[str]) -> Node:
    """A table by the parts of its name: catalog, schema and table, or fewer."""
    return nodes.table_(*reversed(parts), quoted=True)  # type: ignore[misc,arg-type]


def integer(value: int) -> Node:
    literal = nodes.Literal.number(abs(value))
    return nodes.Neg(this=literal) if value < 0 else literal


def double(value: Node) -> Node:
    return nodes.Cast(this=value, to=nodes.DataType.build("double"))


def decimal(value: float) -> Node:
    """A double as a cast text, since a literal such as 0.1 is a decimal in some dialects."""
    text = f"{'-' * (value < 0)}Infinity" if math.isinf(value) else str(float(value))
    return double(nodes.Literal.string(text))


def literal(value: float) -> Node:
    """A double in scientific notation, such as 0.1e0 or -3e+20."""
    if math.isinf(value):
        return decimal(value)
    text = repr(abs(float(value)))
    number = nodes.Literal.number(text if "e" in text else f"{text.removesuffix('.0')}e0")
    return nodes.Neg(this=number) if math.copysign(1.0, value) < 0 else number


def fraction(value: float) -> Node:
    """A double as an integer and powers of two, because SQLite reads some decimals inexactly."""
    mantissa, exponent = math.frexp(value)
    whole = int(mantissa * 2**53)
    exponent = exponent - 53
    while whole % 2 == 0 and exponent < 0:
        whole = whole // 2
        exponent = exponent + 1
    result = double(integer(whole))
    while exponent:
        step = max(-62, min(exponent, 62))
        power = integer(2 ** abs(step))
        result = arithmetic(nodes.Mul if step > 0 else nodes.Div, result, power)
        exponent -= step
    return result


def arithmetic(operator: type[Any], a: Node, b: Node) -> Node:
    """An operation on two doubles, with parentheses where they are needed."""
    sums = (nodes.Add, nodes.Sub)
    products = (nodes.Mul, nodes.Div)
    is_product = operator in products
    left = nodes.Paren(this=a) if is_product and isinstance(a, sums) else a
    right = nodes.Paren(this=b) if isinstance(b, (*sums, *(products if is_product else ()))) else b
    result = pair(operator, left, right)
    result.set("typed", operator is nodes.Div or None)  # no casts of sqlglot's own
    return result


def case(ways: Sequence[tuple[Node, Node]], otherwise: Node, *, flat: bool = True) -> Node:
    """A CASE expression. If it is flat, a CASE in its ELSE becomes part of it."""
    ifs = [nodes.If(this=condition, true=value) for condition, value in ways]
    if flat and isinstance(otherwise, nodes.Case):
        parts = otherwise.args
        result = nodes.Case(ifs=ifs + parts["ifs"], default=parts.get("default"))
        otherwise.parent = result  # its parts belong to the result
        return result
    return nodes.Case(ifs=ifs, default=None if isinstance(otherwise, nodes.Null) else otherwise)


def choose(values: list[Node], is_within: Callable[[int], Node], first: int = 0) -> Node:
    """The value at a place, where ``is_within(k)`` is the condition that the place is at most k.

    A CASE makes at most 16 choices one after the other. Longer lists are halved first. The first
    value belongs to the place `first`.
    """
    n = len(values)
    if n > 16:
        low = choose(values[: n // 2], is_within, first)
        high = choose(values[n // 2 :], is_within, first + n // 2)
        return case([(is_within(first + n // 2 - 1), low)], high, flat=False)
    ways = [(is_within(first + i), value) for i, value in enumerate(values[:-1])]
    return case(ways, values[-1], flat=False) if ways else values[0]


class Stages:
    """Named columns, each in the first stage that has all of its inputs.

    Equal expressions are one column, because sqlglot's expressions hash by their content. A column
    that is used only once is merged into its use.
    """

    def __init__(self, rules: Rules, taken: Sequence[str]) -> None:
        self._rules = rules
        self.widest = 0  # largest number of columns of a stage, set by `select`
        self._columns: Named = {}
        self._name_of: dict[Node, str] = {}
        self._prefix = "isoroc_"
        while any(name.lower().startswith(self._prefix) for name in taken):
            self._prefix += "_"

    def keep(self, expression: Node) -> Node:
        """The expression as a column that may be used more than once."""
        if isinstance(expression, nodes.Column):
            return expression
        if isinstance(expression, nodes.EQ) and isinstance(expression.expression, nodes.Literal):
            return expression  # comparing a place with a number is as fast as a column
        conditions = (nodes.LTE, nodes.GTE, nodes.EQ, nodes.And, nodes.Not)
        as_number = isinstance(expression, conditions) and not self._rules.conditions
        if expression not in self._name_of:
            if expression.find(nodes.Column) is None:
                return expression
            node = adopt(expression)
            name = self._name_of[expression] = f"{self._prefix}{len(self._columns)}"
            self._columns[name] = case([(node, integer(1))], integer(0)) if as_number else node
        kept = column(self._name_of[expression])
        return pair(nodes.EQ, kept, integer(1)) if as_number else kept

    def select(
        self,
        source: Node,
        keep: Sequence[str] | None,
        outputs: Named,
        replaced: Sequence[str] = (),
        where: Node | None = None,
    ) -> Any:
        """The whole statement: columns `keep` of a table, and outputs by name.

        If `keep` is None, all columns are returned except the `replaced` ones, which are among the
        outputs. The dialect must support it. Rows must satisfy `where`.
        """
        outputs = self._merge(outputs)
        stages = self._stages()
        source, first, last = self._hand_on(source, keep, replaced)
        live = None if keep is None else self._live(stages, len(keep), outputs)
        before = first
        queries = {}
        for number, stage in enumerate(stages):
            columns = stage
            if live is not None:
                earlier = [column(name) for name in live[number] if name not in stage]
                before = [*([node.copy() for node in last] if number else first), *earlier]
                columns = {name: stage[name] for name in live[number] if name in stage}
            query = nodes.Select(expressions=[*before, *named(columns)]).from_(source, copy=False)
            if self._rules.limit is not None:
                query = query.limit(integer(self._rules.limit), copy=False)
            if self._rules.offset:
                query = query.offset(integer(0), copy=False)
            queries[name := f"{self._prefix}stage_{number}"] = query
            source = nodes.Table(this=quoted(name))
            before = [nodes.Star()]
        statement = nodes.Select(expressions=[*last, *named(outputs)]).from_(source, copy=False)
        if where is not None:
            [*queries.values(), statement][0].where(where, copy=False)
        for name, query in queries.items():
            statement = statement.with_(quoted(name), as_=query, copy=False)
        return statement

    def _merge(self, outputs: Named, most_levels: int = 40) -> Named:
        """Outputs after merging columns that are used only once, which slow planners down.

        Expressions get at most `most_levels` levels.
        """
        expressions = self._columns | outputs
        outputs = dict(outputs)
        surveyed = {name: _survey(node) for name, node in expressions.items()}
        uses = Counter(each.name for used, _ in surveyed.values() for each in used)
        mergeable: dict[str, int] = {}  # columns that may be merged, and their levels
        for name, (used, n_levels) in surveyed.items():
            node = expressions[name]
            levels = n_levels
            for each in used:
                below = mergeable.get(each.name, most_levels)
                if uses[each.name] > 1 or n_levels + below > most_levels:
                    continue
                levels = max(levels, n_levels + below)
                part = self._columns.pop(each.name)
                if each is node:  # an output that is a column
                    outputs[name] = part
                else:
                    each.replace(nodes.Paren(this=part) if isinstance(part, nodes.Binary) else part)
            # Engines limit how deep choices may be nested, and only the first stage has the columns
            # of the table.
            is_choice = node.find(nodes.Case, nodes.Subquery) is not None
            if not is_choice and all(each.name.startswith(self._prefix) for each in used):
                mergeable[name] = levels
        return outputs

    def _stages(self) -> list[Named]:
        """The columns by stage: one more than the latest stage of their inputs."""
        stages: list[Named] = []
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
        """Source of the first stage, and the columns that it and the last one pass on."""
        if keep is not None:
            return source, [column(name) for name in keep], [column(name) for name in keep]
        if self._rules.star == "except":
            # Versions of sqlglot differ in the name of this argument.
            argument = "except_" if "except_" in nodes.Star.arg_types else "except"
            left_out = [quoted(name) for name in (*self._columns, *replaced)]
            return source, [nodes.Star()], [nodes.Star(**{argument: left_out})]
        row = f"{self._prefix}row"
        if self._rules.star == "row":
            alias = f"{self._prefix}source"
            source = nodes.alias_(source, alias, table=True, quoted=True)
            whole = pair(nodes.Dot, nodes.Paren(this=column(row)), nodes.Star())
            return source, named({row: column(alias)}), [whole]
        whole = nodes.Column(this=nodes.Star(), table=quoted(row))
        return source, named({row: call("STRUCT", nodes.Star())}), [whole]

    def _live(self, stages: list[Named], n_kept: int, outputs: Named) -> list[list[str]] | None:
        """Columns that each stage must pass on. None passes on all, if they are few."""
        if len(self._columns) <= 64:  # a star is short, but planners bind each column
            return None
        known = list(self._columns)
        needed = _used(outputs.values())
        live = []
        for stage in reversed(stages):
            live.append([name for name in known if name in needed])
            needed |= _used(stage.values())
            known = [name for name in known if name not in stage]
        self.widest = n_kept + max(len(outputs), *map(len, live))
        return live[::-1]


def _survey(node: Node) -> tuple[list[Node], int]:
    """Columns that an expression uses, those in lambdas twice, and its levels."""
    if isinstance(node, nodes.Column):
        return [node], 1
    parts = [_survey(part) for part in node.iter_expressions()]
    used = [each for used_in_part, _ in parts for each in used_in_part]
    levels = 1 + max((below for _, below in parts), default=0)
    return used * (2 if isinstance(node, nodes.Lambda) else 1), levels


def _used(expressions: Iterable[Node]) -> set[str]:
    return {each.name for node in expressions for each in node.find_all(nodes.Column)}


def named(columns: Named) -> list[Node]:
    return [nodes.Alias(this=adopt(node), alias=quoted(name)) for name, node in columns.items()]


class SqlScalars(Scalars[Node]):
    """Columns are expressions. Reused columns are named in stages of the query."""

    def __init__(self, rules: Rules, taken: Sequence[str]) -> None:
        self._rules = rules
        self.stages = Stages(rules, taken)

    def keep(self, column: Node) -> Node:
        return self.stages.keep(column)

    def number(self, value: float) -> Node:
        write = {"literal": literal, "cast": decimal, "fraction": fraction}[self._rules.numbers]
        return nodes.Null() if math.isnan(value) else write(value)

    def function(self, name: Function, a: Node) -> Node:
        if name == "floor":
            return double(nodes.Floor(this=adopt(a)))  # an integer in Spark
        if name == "exp" and (self._rules.careful_exp or self._rules.underflow):
            a = self.keep(a)
            tiny = self.binary("<=", a, self.number(-690.0))  # exp(-708) is the least normal double
            return self.where(tiny, self.number(0.0), nodes.Exp(this=adopt(a)))
        functions = {"log": nodes.Ln, "exp": nodes.Exp, "sqrt": nodes.Sqrt, "absolute": nodes.Abs}
        return functions[name](this=adopt(a))

    def binary(self, operator: str, a: Node, b: Node) -> Node:
        if operator == "*" and self._rules.underflow:
            a = self._factor(a)
            b = self._factor(b)
        if operator == "/" and self._rules.reciprocals and b.find(nodes.Column) is None:
            # The engine would multiply by the rounded reciprocal of a constant.
            a = self.keep(a)
            b = self.binary("+", b, self.binary("*", self.number(0.0), a))
        operators = {"+": nodes.Add, "-": nodes.Sub, "*": nodes.Mul, "/": nodes.Div}
        if operator in operators:
            return arithmetic(operators[operator], adopt(a), adopt(b))
        return pair(nodes.LTE if operator == "<=" else nodes.And, a, b)

    def _factor(self, a: Node) -> Node:
        """The number, or 0 if it is so small that products might underflow.

        The least normal double is 2e-308, so the product of two factors above 1e-150 does not.
        """
        if a.find(nodes.Column) is None:
            return a
        a = self.keep(a)
        tiny = self.binary("<=", self.function("absolute", a), self.number(1e-150))
        return self.keep(self.where(tiny, self.number(0.0), a))

    def where(self, condition: Node, a: Node, b: Node) -> Node:
        if self._rules.lazy and a.find(nodes.Column):
            # Columns that only branches use would be computed again in each of them.
            if isinstance(b, nodes.Null):
                start = self.where(condition, self.number(0.0), self.number(math.nan))
                return self.binary("+", a, start)
            number = self.binary("+", integer(1), call("COALESCE", condition, integer(0)))
            return call("arrayElement", nodes.Array(expressions=[adopt(b), adopt(a)]), number)
        return case([(adopt(condition), adopt(a))], adopt(b))

    def extreme_of_two(self, name: Function, a: Node, b: Node) -> Node:
        if self._rules.lists:  # CASE is faster than GREATEST in DuckDB
            return super().extreme_of_two(name, a, b)
        return self.extreme(name, [a, b])

    def extreme(self, name: Function, columns: Sequence[Node]) -> Node:
        while len(columns) > _MANY_TERMS:
            columns = [self.extreme(name, part) for part in _parts(columns)]
        if len(columns) == 1:
            return columns[0]
        function, aggregate = ("GREATEST", "MAX") if name == "maximum" else ("LEAST", "MIN")
        if self._rules.extremes == "rows":
            return _extreme_of_rows(aggregate, columns)
        # By name, because sqlglot guards its own GREATEST against NULLs, which do not occur here.
        return call(aggregate if self._rules.extremes == "MAX" else function, *columns)

    def every(self, conditions: Sequence[Node]) -> Node:
        while len(conditions) > _MANY_TERMS:
            every = super().every
            conditions = [self.keep(every(part)) for part in _parts(conditions)]
        return super().every(conditions)

    def place_of(self, value: Node, columns: Sequence[Node]) -> Node:
        value = self.keep(value)
        others = enumerate(columns[:-1])
        ways = [(pair(nodes.EQ, self.keep(each), value), integer(k)) for k, each in others]
        return case(ways, integer(len(ways)))

    def is_at(self, place: Node, number: int) -> Node:
        return pair(nodes.EQ, place, integer(number))

    def locate(self, cuts: Floats, score: Node) -> Node:
        score = self.keep(score)
        if self._rules.lists and len(cuts) > _MANY_TERMS:
            return self._search(cuts, score)
        if self._rules.arrays == "arrayElement" and len(cuts) > FEW_PLACES:
            below = pair(nodes.LT, column("isoroc_cut"), score)
            cut = quoted("isoroc_cut")
            is_below = nodes.Lambda(this=below, expressions=[cut])
            return call("arrayCount", is_below, self.array(cuts.tolist()))
        return choose(
            [integer(place) for place in range(len(cuts) + 1)],
            lambda place: self.binary("<=", score, self.number(cuts[place])),
        )

    def _search(self, cuts: Floats, score: Node) -> Node:
        """Place among many cuts, by binary search in constant lists."""
        n_steps = len(cuts).bit_length()
        ends = np.pad(cuts, (0, 2**n_steps - 1 - len(cuts)), constant_values=np.inf)
        index = integer(0)
        for step in reversed(range(n_steps)):
            # The range of places is halved at the cut in its middle.
            cut = self.entry(ends[2**step - 1 :: 2 ** (step + 1)].tolist(), index)
            right = case([(pair(nodes.GT, score, cut), integer(1))], integer(0))
            index = self.keep(self.binary("+", self.binary("*", integer(2), index), right))
        return index

    def entry(self, values: list[float], place: Node) -> Node:
        arrays = self._rules.arrays
        if arrays is None or len(values) <= FEW_PLACES:
            return choose(
                [self.number(value) for value in values],
                lambda at: self.binary("<=", place, integer(at)),
            )
        first = pair(nodes.Add, place, integer(1))
        if arrays == "brackets":
            return nodes.Bracket(this=nodes.Paren(this=self.array(values)), expressions=[first])
        return call(arrays, self.array(values), first)

    def array(self, values: list[float]) -> Node:
        """A constant array as a cast text, which is a single token to a parser."""
        if self._rules.arrays == "ELEMENT_AT":
            return nodes.Array(expressions=[self.number(value) for value in values])
        brackets = "{}" if self._rules.arrays == "brackets" else "[]"
        text = nodes.Literal.string(f"{brackets[0]}{str(values)[1:-1]}{brackets[1]}")
        if self._rules.arrays == "arrayElement":  # in a cast, sqlglot would let entries be missing
            return call("CAST", text, nodes.Literal.string("Array(Float64)"))
        return nodes.Cast(this=text, to=nodes.DataType.build("array<double>"))

    def bin_of(self, tree: BinTree, columns: Sequence[Node]) -> Node:
        """Place among the bins of a tree, by nested CASE, some levels in each stage."""
        columns = [self.keep(each) for each in columns]
        unfinished: list[int] = []  # nodes at which the walk continues, numbered -1, -2, ...

        def walk(node: int, depth: int) -> Node:
            if (reached := tree.bin_of_node[node]) >= 0:
                return integer(int(reached))
            if not depth:
                unfinished.append(node)
                return integer(-len(unfinished))
            split = tree.split_of_node[node]
            gamma = tree.thresholds[split]
            children = tree.children[split]
            kept = np.flatnonzero(children >= 0).tolist()
            margins = [self.binary("-", columns[k], self.number(gamma[k])) for k in kept]
            *below, last = [walk(int(children[k]), depth - 1) for k in kept]
            ways = []
            for i, way in enumerate(below):
                # No later margin exceeds this one, and a later one exceeds each earlier margin.
                leads = [pair(nodes.GTE, margins[i], other) for other in margins[i + 1 :]]
                ways.append((reduce(partial(pair, nodes.And), leads), way))
            return case(ways, last)

        reached = walk(0, self._rules.depth)
        while waiting := unfinished.copy():
            unfinished.clear()
            at = self.keep(reached)
            numbered = enumerate(waiting, start=1)
            ways = [(self.is_at(at, -i), walk(node, self._rules.depth)) for i, node in numbered]
            reached = case(ways, adopt(at), flat=False)
        return reached


class SqlOps(ColumnOps[Node]):
    """Vector operations in a dialect of SQL. Columns of stages avoid the taken names."""

    scalars: SqlScalars

    def __init__(self, dialect: str, taken: Sequence[str]) -> None:
        self._rules = RULES[dialect]
        super().__init__(SqlScalars(self._rules, taken))
        self.stages = self.scalars.stages

    def read(self, names: Sequence[str]) -> Vector:
        return self.vector([self.scalars.keep(double(column(name))) for name in names])

    def constant(self, value: Any) -> Node:
        """A number, text, boolean or NULL (also for NaN) of the type that a column would have."""
        if isinstance(value, bool):
            return nodes.Boolean(this=value)
        if isinstance(value, str):
            is_national = self._rules.texts == "national"
            return nodes.National(this=value) if is_national else nodes.Literal.string(value)
        if isinstance(value, int):
            return integer(value)
        missing = value is None or math.isnan(value)
        return nodes.Null() if missing else double(self.scalars.number(value))

    def find(self, name: str, levels: Levels) -> tuple[Vector, Vector]:
        """Place of each entry of a column among levels, and whether it is one of them."""
        keep = self.scalars.keep
        texts = Texts(self._rules, name)
        equal = [(texts.equals(text), integer(k)) for k, text in enumerate(levels.texts)]
        numbers = levels.numbers
        for number, spellings in BOOLEANS.items():
            if number in numbers:
                place = integer(numbers[number])
                equal += [(texts.equals(text), place.copy()) for text in spellings]
        encoded = keep(case(equal, integer(-1)))
        if numbers:
            parsed = keep(texts.number())
            found = [(self.scalars.is_at(parsed, n), integer(k)) for n, k in numbers.items()]
            by_text = pair(nodes.GTE, encoded, integer(0))
            encoded = keep(case([(by_text, adopt(encoded)), *found], integer(-1)))
        known = keep(pair(nodes.GTE, encoded, integer(0)))
        # An unknown text gets a place that every table has.
        index = keep(case([(adopt(known), adopt(encoded))], integer(0)))
        return self.vector([index]), self.vector([known])

    def cross(self, first: Vector, second: Vector, n_second: int) -> Vector:
        def write(a: list[Node], b: list[Node]) -> Node:
            row, at = (nodes.Paren(this=adopt(node)) for node in (a[0], b[0]))
            return pair(nodes.Add, pair(nodes.Mul, row, integer(n_second)), at)

        return self._reduced(write, first, second)

    def text(self, statement: Any) -> str:
        return str(statement.sql(dialect=self._rules.sqlglot, pretty=True, copy=False))

    def linear(self, a: Vector, matrix: Floats, offset: Floats | None = None) -> Vector:
        if not self._rules.lists or a.width < 6 or matrix.size < 36:
            return super().linear(a, matrix, offset)
        rows = [self.scalars.array(row) for row in matrix.tolist()]
        packed = self._reduced(lambda columns: call("LIST_VALUE", *columns), a)

        def make(packed: list[Node]) -> list[Node]:
            return [call("LIST_INNER_PRODUCT", packed[0], row) for row in rows]

        product = Columns(self, len(rows), [packed], make)
        return product if offset is None else product + offset

    def hinges(self, a: Vector, knots: Floats, slopes: Floats) -> Vector:
        # The larger of two is half of their sum plus distance, which is quicker than a choice.
        bent: Vector = a * (slopes.sum(axis=1) / 2) - slopes @ knots / 2
        distances = self.concat([self.absolute(a - knot) for knot in knots.tolist()])
        by_class = np.arange(len(knots) * a.width).reshape(len(knots), -1).T
        return bent + self.segment_sums(self.take(distances, by_class.ravel()), slopes / 2)

    def locate(self, cuts: Floats, score: Vector) -> Vector:
        return self._reduced(lambda columns: self.scalars.locate(cuts, columns[0]), score)

    def look_up(self, table: Floats, place: Vector) -> Vector:
        def make(places: list[Node]) -> list[Node]:
            at = self.scalars.keep(places[0])
            return [self.scalars.entry(values, at) for values in table.T.tolist()]

        return Columns(self, table.shape[1], [place], make)

    def route(self, tree: BinTree, a: Vector) -> Vector:
        return self._reduced(lambda columns: self.scalars.bin_of(tree, columns), a)


class Texts:
    """Entries of a column as texts, which are compared byte by byte, and as numbers."""

    def __init__(self, rules: Rules, name: str) -> None:
        self._rules = rules
        self._column = column(name)

    def _text(self) -> Node:
        kind = "nvarchar(max)" if self._rules.texts == "national" else "text"
        return nodes.cast(self._column.copy(), kind)

    def equals(self, text: str) -> Node:
        """Whether an entry is a text."""
        entry = self._text()
        constant: Node = nodes.Literal.string(text)
        if self._rules.texts == "collated":
            entry = nodes.Collate(this=entry, expression=nodes.Var(this="BINARY"))
        elif self._rules.texts == "binary":  # both in the character set of the connection
            entry = nodes.cast(entry, "binary")
        elif self._rules.texts == "national":
            entry = nodes.cast(entry, "varbinary(max)")
            constant = nodes.cast(nodes.National(this=text), "varbinary(max)")
        return pair(nodes.EQ, entry, constant)

    def number(self) -> Node:
        """The number that an entry spells, or NULL if it is not a number."""
        text = self._text()
        match self._rules.parse:
            case "regex" | "REGEXP_INSTR":
                pattern = nodes.Literal.string(
                    "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"
                )
                matches: Node = nodes.RegexpLike(this=text.copy(), expression=pattern)
                if self._rules.parse == "REGEXP_INSTR":
                    matches = pair(nodes.EQ, call("REGEXP_INSTR", text, pattern), integer(1))
                return case([(matches, double(text.copy()))], nodes.Null())
            case "glob":
                # One dot at most, a sign at the start only, and a digit.
                wrong = [self._glob(text, each) for each in ("*[^-0-9.]*", "?*-*", "*.*.*")]
                digits = self._glob(text, "*[0-9]*")
                excluded = [nodes.Not(this=each) for each in wrong]
                is_number = reduce(partial(pair, nodes.And), [digits, *excluded])
                return case([(is_number, double(text))], nodes.Null())
            case "toFloat64OrNull":
                return call("toFloat64OrNull", text)
        # SQL Server rounds doubles when it writes texts.
        entry = self._column.copy() if self._rules.texts == "national" else text
        return nodes.TryCast(this=entry, to=nodes.DataType.build("double"))

    @staticmethod
    def _glob(text: Node, pattern: str) -> Node:
        return nodes.Glob(this=text.copy(), expression=nodes.Literal.string(pattern))


def _extreme_of_rows(name: str, columns: Sequence[Node]) -> Node:
    """The largest or smallest column by an aggregate over a table of one column."""
    alias = nodes.TableAlias(this=quoted("isoroc_values"), columns=[quoted("isoroc_value")])
    rows = [nodes.Tuple(expressions=[adopt(entry)]) for entry in columns]
    query = nodes.Select(expressions=[call(name, column("isoroc_value"))])
    query = query.from_(nodes.Values(expressions=rows, alias=alias), copy=False)
    return nodes.Subquery(this=query)


def _parts(columns: Sequence[Node]) -> list[Sequence[Node]]:
    return [columns[i : i + _MANY_TERMS] for i in range(0, len(columns), _MANY_TERMS)]
