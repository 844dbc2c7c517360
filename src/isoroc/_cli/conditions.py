"""Conditions of ``--fail-if``, such as ``after.log_loss > before.log_loss`` or ``not x``."""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, Self

from isoroc._cli.errors import CommandError, did_you_mean

_COMPARISONS: dict[type[ast.cmpop], tuple[str, Callable[[float, float], bool]]] = {
    ast.GtE: (">=", operator.ge), ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt), ast.Lt: ("<", operator.lt),
}  # fmt: skip
_OPERATIONS: dict[type[ast.operator | ast.unaryop], Callable[..., float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.USub: operator.neg, ast.UAdd: operator.pos,
}  # fmt: skip


class Condition(NamedTuple):
    """A comparison of two expressions, or a figure that is true or false."""

    text: str
    left: ast.expr
    sign: ast.cmpop
    right: ast.expr | None  # None for a figure: `sign` is NotEq if it must be true, Eq if false

    @classmethod
    def parse(cls, text: str) -> Self:
        text = text.strip()
        try:
            match ast.parse(text, mode="eval").body:
                case ast.Compare(left, [sign], [right]) if type(sign) in _COMPARISONS:
                    for side in (left, right):
                        _evaluate(side, lambda _names: 1.0)  # raises if it is not an expression
                    return cls(text, left, sign, right)
                case ast.UnaryOp(ast.Not(), ast.Name() | ast.Attribute() as figure):
                    return cls(text, figure, ast.Eq(), None)
                case ast.Name() | ast.Attribute() as figure:
                    return cls(text, figure, ast.NotEq(), None)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass
        examples = "calibration_error>0.02 or after.log_loss > before.log_loss * 1.01"
        raise CommandError(f"--fail-if {text!r}: not a condition; write for example {examples}.")

    def failure(self, figures: Mapping[str, Any], column: str = "") -> str | None:
        """The condition with its values, if it holds or a value is NaN.

        `figures` are nested: column (by default `column`), metric, then "value", "low" and "high".
        """
        look_up = partial(_look_up, figures=figures, column=column)
        if self.right is None:
            figure = look_up(ast.unparse(self.left).split("."), truth=True)
            return self.text if bool(figure) == isinstance(self.sign, ast.NotEq) else None
        left, right = (_evaluate(side, look_up) for side in (self.left, self.right))
        sign, compare = _COMPARISONS[type(self.sign)]
        unknown = ": not defined" if math.isnan(left) or math.isnan(right) else ""
        shown = f"{self.text} ({left:.6g} {sign} {right:.6g}{unknown})"
        return shown if unknown or compare(left, right) else None


def _evaluate(node: ast.expr, look_up: Callable[[list[str]], float]) -> float:
    """Value of numbers, dotted names, arithmetic and ``abs``. Others raise a ValueError."""
    names = ast.unparse(node).split(".")
    match node:
        case ast.Constant(int() | float() as number) if type(number) is not bool:
            if math.isfinite(number):
                return float(number)
            raise ValueError(number)
        case ast.Name() | ast.Attribute() if all(map(str.isidentifier, names)):
            return look_up(names)
        case ast.BinOp(left, sign, right) if type(sign) in _OPERATIONS:
            operation = _OPERATIONS[type(sign)]
            operands = [left, right]
        case ast.UnaryOp(sign, operand) if type(sign) in _OPERATIONS:
            operation = _OPERATIONS[type(sign)]
            operands = [operand]
        case ast.Call(ast.Name("abs"), [argument], []):
            operation = abs
            operands = [argument]
        case _:
            raise ValueError(ast.dump(node))
    numbers = [_evaluate(each, look_up) for each in operands]
    try:
        result = operation(*numbers)
    except (ZeroDivisionError, OverflowError):
        return math.nan
    return math.nan if math.isinf(result) and not any(map(math.isinf, numbers)) else result


def _look_up(names: list[str], figures: Any, column: str, *, truth: bool = False) -> float:
    first = names[0]
    shown = ".".join(names)
    value: Any = figures
    if first not in figures and column in figures:
        value = figures[column]
        if len(names) > 1 and first not in value:
            raise CommandError(f"--fail-if: no column {first!r}; {did_you_mean(first, figures)}")
    for name in names:
        inner = value if isinstance(value, Mapping) else {}
        if name not in inner:
            raise CommandError(f"--fail-if: no metric {name!r}; {did_you_mean(name, inner)}")
        value = inner[name]
    if isinstance(value, Mapping):
        if "value" not in value:
            raise CommandError(f"--fail-if: {shown} has several figures: {', '.join(value)}.")
        value = value["value"]
    if truth and not isinstance(value, bool):
        raise CommandError(f"--fail-if {shown}: it is a number; compare it, as {shown} > 0.")
    return math.nan if value is None else float(value)
