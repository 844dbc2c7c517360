"""Functions of lists, for which every dialect has its own names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import ClassVar

from isoroc._simplex import Floats
from isoroc.export._expressions import (
    Node,
    adopt,
    arithmetic,
    call,
    column,
    decimal,
    integer,
    integers_in_text,
    literal,
    matrix_in_text,
    nodes,
    numbers_in_text,
)

#: Name of an entry, or of its place, in expressions of entries.
ENTRY = "isoroc_entry"
#: Names of entries in functions of one or two of them.
_PAIR = ("isoroc_a", "isoroc_b")


class ListFunctions:
    """Functions of DuckDB; the first entry of a list is at place 1.

    Attributes
    ----------
    names : dict
        Names of functions that take lists and return a list or an entry: those that others have
        as well, and those that compute a column from a bundle, by the names of `Formulas`.
    """

    names: ClassVar[dict[str, str]] = {
        "pack": "LIST_VALUE",
        "extract": "LIST_EXTRACT",
        "concat": "LIST_CONCAT",
        "position": "LIST_POSITION",
        "product": "LIST_INNER_PRODUCT",
        "sum": "LIST_SUM",
        "smallest": "LIST_MIN",
        "largest": "LIST_MAX",
        "every": "LIST_BOOL_AND",
    }

    def numbers(self, values: Sequence[float]) -> Node:
        """A constant list of doubles."""
        return numbers_in_text(values, "[]")

    def integers(self, values: Sequence[int]) -> Node:
        """A constant list of integers."""
        return integers_in_text(values)

    def rows(self, matrix: Floats) -> Node:
        """A constant list of the rows of a matrix, which are lists."""
        return matrix_in_text(matrix)

    def missing(self) -> Node:
        """NaN."""
        return decimal(float("nan"))

    def pack(self, entries: Sequence[Node]) -> Node:
        """A list of expressions."""
        return call(self.names["pack"], *entries)

    def extract(self, values: Node, place: Node) -> Node:
        """Entry of a list.

        Examples
        --------
        >>> ListFunctions().extract(column("x"), integer(1)).sql("duckdb")
        'LIST_EXTRACT("x", 1)'
        """
        return call(self.names["extract"], values, place)

    def read(self, node: Node) -> Node | None:
        """The list of which a node is an entry, if it is a column and the place is one."""
        if not isinstance(node, nodes.Anonymous) or node.name != self.names["extract"]:
            return None
        return node.expressions[0] if _are_columns(node.expressions) else None

    def part(self, values: Node, first: int, length: int) -> Node:
        """Some entries of a list, from a place on."""
        return call("LIST_SLICE", values, integer(first), integer(first + length - 1))

    def concat(self, lists: Sequence[Node]) -> Node:
        """Several lists as one."""
        # Older versions of DuckDB join two at a time.
        return reduce(lambda a, b: call(self.names["concat"], a, b), lists)

    def places(self, length: int) -> Node:
        """The places of a list."""
        return call("RANGE", integer(1), integer(length + 1))

    def each(self, expression: Node, name: str, values: Node) -> Node:
        """List of an expression of each entry of a list, which has a name in the expression.

        Examples
        --------
        >>> print(ListFunctions().each(column("x"), "x", column("values")).sql("duckdb"))
        ["x" FOR "x" IN "values"]
        """
        entry = nodes.to_identifier(name, quoted=True)
        each = nodes.Comprehension(this=expression, expression=entry, iterator=adopt(values))
        return nodes.Array(expressions=[each])

    def reduce(self, operator: str, values: Node) -> Node:
        """Sum, smallest or largest entry of a list, or whether every entry is true."""
        return call(self.names[operator], values)

    def first_of_largest(self, values: Node) -> Node:
        """Place of the first of the largest entries."""
        return call(self.names["position"], values, self.reduce("largest", values))

    def product(self, a: Node, b: Node) -> Node:
        """Inner product of two lists."""
        return call(self.names["product"], a, b)


class ClickHouseLists(ListFunctions):
    """Functions of ClickHouse."""

    names: ClassVar[dict[str, str]] = {
        "extract": "arrayElement",
        "concat": "arrayConcat",
        "position": "indexOf",
        "product": "arrayDotProduct",
        "sum": "arraySum",
        "smallest": "arrayMin",
        "largest": "arrayMax",
        "every": "arrayMin",
    }

    # Types are given as text: in a cast, sqlglot would let entries be missing.
    def numbers(self, values: Sequence[float]) -> Node:
        return _as_type(str(list(values)), "Array(Float64)")

    def integers(self, values: Sequence[int]) -> Node:
        return _as_type(str(list(values)), "Array(Int32)")

    def rows(self, matrix: Floats) -> Node:
        return _as_type(str(matrix.tolist()), "Array(Array(Float64))")

    def missing(self) -> Node:
        return _as_type("nan", "Float64")

    def pack(self, entries: Sequence[Node]) -> Node:
        return nodes.Array(expressions=[adopt(entry) for entry in entries])

    def part(self, values: Node, first: int, length: int) -> Node:
        return call("arraySlice", values, integer(first), integer(length))

    def places(self, length: int) -> Node:
        return call("range", integer(1), integer(length + 1))

    def each(self, expression: Node, name: str, values: Node) -> Node:
        return call("arrayMap", _function(expression, name), values)

    def count_below(self, values: Node, number: Node) -> Node:
        """How many entries of a list lie below a number."""
        below = nodes.LT(this=column(_PAIR[0]), expression=adopt(number))
        return call("arrayCount", _function(below, _PAIR[0]), values)


class _SparkLists(ListFunctions):
    names: ClassVar[dict[str, str]] = {
        "pack": "ARRAY",
        "extract": "ELEMENT_AT",
        "concat": "CONCAT",
        "smallest": "ARRAY_MIN",
        "largest": "ARRAY_MAX",
        "every": "ARRAY_MIN",
    }

    def numbers(self, values: Sequence[float]) -> Node:
        return self.pack([literal(value) for value in values])

    def integers(self, values: Sequence[int]) -> Node:
        return self.pack([integer(value) for value in values])

    def rows(self, matrix: Floats) -> Node:
        return self.pack([self.numbers(row) for row in matrix.tolist()])

    def part(self, values: Node, first: int, length: int) -> Node:
        return call("SLICE", values, integer(first), integer(length))

    def places(self, length: int) -> Node:
        return call("SEQUENCE", integer(1), integer(length))

    def each(self, expression: Node, name: str, values: Node) -> Node:
        # Where a column is used once, Spark puts what it is computed from in its place, also into
        # expressions of entries, and computes it for each entry. So the columns of an expression
        # become fields of the only entry of another list.
        holder = nodes.Paren(this=expression)
        found = [own for own in holder.find_all(nodes.Column) if own.name not in (name, *_PAIR)]
        fields: list[Node] = []
        for used in dict.fromkeys(own.name for own in found):
            fields += [nodes.Literal.string(used), column(used)]
        for own in found:
            field = nodes.to_identifier(own.name, quoted=True)
            own.replace(nodes.Dot(this=column("isoroc_row"), expression=field))
        each = call("TRANSFORM", values, _function(holder.this.pop(), name))
        if not fields:
            return each
        row = self.pack([call("NAMED_STRUCT", *fields)])
        return self.extract(call("TRANSFORM", row, _function(each, "isoroc_row")), integer(1))

    def reduce(self, operator: str, values: Node) -> Node:
        if operator != "sum":
            return super().reduce(operator, values)
        add = _function(arithmetic(nodes.Add, *map(column, _PAIR)), *_PAIR)
        return call("AGGREGATE", values, literal(0.0), add)

    def first_of_largest(self, values: Node) -> Node:
        place = call("ARRAY_POSITION", values, self.reduce("largest", values))
        return nodes.cast(place, "int")

    def product(self, a: Node, b: Node) -> Node:
        multiply = arithmetic(nodes.Mul, *map(column, _PAIR))
        return self.reduce("sum", call("ZIP_WITH", a, b, _function(multiply, *_PAIR)))


def list_functions(dialect: str) -> ListFunctions:
    """Functions of lists of a dialect; those of DuckDB for dialects that have none."""
    return {"clickhouse": ClickHouseLists, "spark": _SparkLists}.get(dialect, ListFunctions)()


def _function(expression: Node, *names: str) -> Node:
    """A function without a name."""
    return nodes.Lambda(
        this=expression, expressions=[nodes.to_identifier(name, quoted=True) for name in names]
    )


def _as_type(text: str, kind: str) -> Node:
    return call("CAST", nodes.Literal.string(text), nodes.Literal.string(kind))


def _are_columns(parts: Sequence[Node]) -> bool:
    return all(isinstance(part, nodes.Column) for part in parts)
