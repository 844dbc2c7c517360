"""Conditions of ``--fail-if``, such as ``after.log_loss.high > before.log_loss * 1.01``."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from isoroc._cli.errors import CommandError, did_you_mean

#: Figures by name. A figure is a number, or a dictionary with its value and the bounds of its
#: interval; dictionaries may be nested: column, metric, bound.
Values = Mapping[str, Any]

#: Value of an expression, from the figures and the column of those that name none.
Expression = Callable[[Values, str], float]

_COMPARISONS: dict[type[ast.cmpop], tuple[str, Callable[[float, float], bool]]] = {
    ast.GtE: (">=", operator.ge),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.Lt: ("<", operator.lt),
}
_OPERATIONS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_SIGNS: dict[type[ast.unaryop], Callable[[float], float]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


class Condition(NamedTuple):
    """A comparison of two expressions of numbers and figures."""

    text: str
    left: Expression
    sign: str
    compare: Callable[[float, float], bool]
    right: Expression

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Condition that a text stands for.

        Examples
        --------
        >>> condition = Condition.parse("after.log_loss > before.log_loss * 1.01")
        >>> values = {"before": {"log_loss": 0.4}, "after": {"log_loss": 0.5}}
        >>> condition.failure(values, "after")
        'after.log_loss > before.log_loss * 1.01 (0.5 > 0.404)'
        """
        try:
            match ast.parse(text.strip(), mode="eval").body:
                case ast.Compare(left, [sign], [right]) if type(sign) in _COMPARISONS:
                    compared = _COMPARISONS[type(sign)]
                    return cls(text.strip(), _compile(left), *compared, _compile(right))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass
        raise CommandError(
            f"--fail-if {text!r}: not a condition; write for example calibration_error>0.02 or "
            "after.log_loss > before.log_loss * 1.01."
        )

    def failure(self, values: Values, column: str = "") -> str | None:
        """The condition and the actual values if it holds or a value is NaN, otherwise None.

        A figure that does not start with the name of a column is that of `column`.
        """
        left, right = self.left(values, column), self.right(values, column)
        shown = f"{left:.6g} {self.sign} {right:.6g}"
        if math.isnan(left) or math.isnan(right):
            return f"{self.text} ({shown}: not defined)"
        return f"{self.text} ({shown})" if self.compare(left, right) else None


def _compile(node: ast.expr) -> Expression:
    """Expression of numbers, names that dots join, arithmetic and ``abs``; else a ValueError."""
    match node:
        case ast.Constant(int() | float() as number) if not isinstance(number, bool):
            return lambda _values, _column: float(number)
        case ast.BinOp(left, sign, right) if type(sign) in _OPERATIONS:
            return _apply(_OPERATIONS[type(sign)], _compile(left), _compile(right))
        case ast.UnaryOp(sign, operand) if type(sign) in _SIGNS:
            return _apply(_SIGNS[type(sign)], _compile(operand))
        case ast.Call(ast.Name("abs"), [argument], []):
            return _apply(abs, _compile(argument))
        case ast.Name() | ast.Attribute():
            names = _names(node)
            return lambda values, column: _look_up(names, values, column)
    raise ValueError(ast.dump(node))


def _apply(operation: Callable[..., float], *operands: Expression) -> Expression:
    def value(values: Values, column: str) -> float:
        try:
            return operation(*(operand(values, column) for operand in operands))
        except (ZeroDivisionError, OverflowError):
            return math.nan

    return value


def _names(node: ast.expr) -> list[str]:
    """Names that dots join."""
    match node:
        case ast.Name(name):
            return [name]
        case ast.Attribute(value, name):
            return [*_names(value), name]
    raise ValueError(ast.dump(node))


def _look_up(names: list[str], values: Values, column: str) -> float:
    found: Any = values
    if names[0] not in values and isinstance(values.get(column), Mapping):
        if len(names) > 1 and names[0] not in values[column]:
            raise CommandError(
                f"--fail-if: no column {names[0]!r}; {did_you_mean(names[0], values)}"
            )
        found = values[column]
    for name in names:
        if not isinstance(found, Mapping) or name not in found:
            known = list(found) if isinstance(found, Mapping) else []
            raise CommandError(f"--fail-if: no metric {name!r}; {did_you_mean(name, known)}")
        found = found[name]
    if isinstance(found, Mapping):
        if "value" not in found:
            shown = ".".join(names)
            raise CommandError(f"--fail-if: {shown} has several figures: {', '.join(found)}.")
        found = found["value"]
    return math.nan if found is None else float(found)
