"""Conditions of ``--fail-if``, such as ``after.log_loss > before.log_loss`` or ``not x``."""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, Self

from isoroc._cli.errors import CommandError, did_you_mean

#: Figures by name. A figure is a number, or a dictionary with its value and the bounds of its
#: interval; dictionaries may be nested: column, metric, bound.
Values = Mapping[str, Any]

_COMPARISONS: dict[type[ast.cmpop], tuple[str, Callable[[float, float], bool]]] = {
    ast.GtE: (">=", operator.ge), ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt), ast.Lt: ("<", operator.lt),
}  # fmt: skip
_OPERATIONS: dict[type[ast.operator | ast.unaryop], Callable[..., float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.USub: operator.neg, ast.UAdd: operator.pos,
}  # fmt: skip


class Condition(NamedTuple):
    """A comparison of two expressions of numbers and figures, or a figure that is true or false."""

    text: str
    left: ast.expr
    sign: ast.cmpop
    right: ast.expr | None  # None for a figure, whose sign says whether it must be true or false

    @classmethod
    def parse(cls, text: str) -> Self:
        """Condition that a text stands for."""
        try:
            match ast.parse(text.strip(), mode="eval").body:
                case ast.Compare(left, [sign], [right]) if type(sign) in _COMPARISONS:
                    for side in (left, right):
                        _evaluate(side, lambda _names: 1.0)  # a ValueError if it is no expression
                    return cls(text.strip(), left, sign, right)
                case ast.UnaryOp(ast.Not(), ast.Name() | ast.Attribute() as figure):
                    return cls(text.strip(), figure, ast.Eq(), None)
                case ast.Name() | ast.Attribute() as figure:
                    return cls(text.strip(), figure, ast.NotEq(), None)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass
        examples = "calibration_error>0.02 or after.log_loss > before.log_loss * 1.01"
        raise CommandError(f"--fail-if {text!r}: not a condition; write for example {examples}.")

    def failure(self, values: Values, column: str = "") -> str | None:
        """The condition and its values if it holds or one is NaN; figures are those of `column`."""
        look_up = partial(_look_up, values=values, column=column)
        if self.right is None:
            names = ast.unparse(self.left).split(".")
            found = look_up(names, truth=True)
            return self.text if bool(found) == isinstance(self.sign, ast.NotEq) else None
        left, right = (_evaluate(side, look_up) for side in (self.left, self.right))
        sign, compare = _COMPARISONS[type(self.sign)]
        unknown = ": not defined" if math.isnan(left) or math.isnan(right) else ""
        shown = f"{self.text} ({left:.6g} {sign} {right:.6g}{unknown})"
        return shown if unknown or compare(left, right) else None


def _evaluate(node: ast.expr, look_up: Callable[[list[str]], float]) -> float:
    """Value of numbers, names that dots join, arithmetic and ``abs``; else a ValueError."""
    names = ast.unparse(node).split(".")
    match node:
        case ast.Constant(int() | float() as number) if not isinstance(number, bool):
            if math.isinf(number):
                raise ValueError(number)
            return float(number)
        case ast.BinOp(left, sign, right) if type(sign) in _OPERATIONS:
            operation, operands = _OPERATIONS[type(sign)], [left, right]
        case ast.UnaryOp(sign, operand) if type(sign) in _OPERATIONS:
            operation, operands = _OPERATIONS[type(sign)], [operand]
        case ast.Call(ast.Name("abs"), [argument], []):
            operation, operands = abs, [argument]
        case ast.Name() | ast.Attribute() if all(map(str.isidentifier, names)):
            return look_up(names)
        case _:
            raise ValueError(ast.dump(node))
    numbers = [_evaluate(each, look_up) for each in operands]
    try:
        found = operation(*numbers)
    except (ZeroDivisionError, OverflowError):
        return math.nan
    return math.nan if math.isinf(found) and not any(map(math.isinf, numbers)) else found


def _look_up(names: list[str], values: Values, column: str, *, truth: bool = False) -> float:
    found: Any = values
    first = names[0]
    if first not in values and isinstance(values.get(column), Mapping):
        if len(names) > 1 and first not in values[column]:
            raise CommandError(f"--fail-if: no column {first!r}; {did_you_mean(first, values)}")
        found = values[column]
    for name in names:
        inner = found if isinstance(found, Mapping) else {}
        if name not in inner:
            raise CommandError(f"--fail-if: no metric {name!r}; {did_you_mean(name, inner)}")
        found = inner[name]
    if isinstance(found, Mapping):
        if "value" not in found:
            shown = ".".join(names)
            raise CommandError(f"--fail-if: {shown} has several figures: {', '.join(found)}.")
        found = found["value"]
    if truth and not isinstance(found, bool):
        shown = ".".join(names)
        raise CommandError(f"--fail-if {shown}: it is a number; compare it, as {shown} > 0.")
    return math.nan if found is None else float(found)
