"""Pieces of SQL as trees of sqlglot: columns, exact numbers, arithmetic and choices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from sqlglot import expressions as nodes

#: Any piece of SQL; in quotes, as versions of sqlglot differ in what they call it.
Node: TypeAlias = "nodes.Expr"

_DOUBLE = nodes.DataType.build("double")
#: Choices that a CASE makes one after the other; longer lists are halved first.
_CHOICES = 16


def adopt(node: Node) -> Node:
    """The node itself if it is part of no expression yet, otherwise a copy.

    What is used once is never copied, so that large expressions are written in linear time.
    """
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


def numbers_in_text(values: list[Any], kind: str = "array<double>", brackets: str = "[]") -> Node:
    """A constant array as a text that is cast: one word to a parser, however long it is."""
    text = nodes.Literal.string(f"{brackets[0]}{str(values)[1:-1]}{brackets[1]}")
    return nodes.Cast(this=text, to=nodes.DataType.build(kind))


def fraction(value: float) -> Node:
    """A double as an integer times or over powers of two, exact in any arithmetic.

    SQLite reads some decimals one rounding step off.
    """
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

    `is_within` is the condition that a place or one before it is the one.
    """
    n = len(values)
    if n > _CHOICES:
        low = choose(values[: n // 2], is_within, first)
        high = choose(values[n // 2 :], is_within, first + n // 2)
        return case([(is_within(first + n // 2 - 1), low)], high, flat=False)
    ways = [(is_within(first + i), value) for i, value in enumerate(values[:-1])]
    return case(ways, values[-1], flat=False) if ways else values[0]
