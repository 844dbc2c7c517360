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


class Condition(NamedTuple):
    """A comparison of two expressions of numbers and figures."""

    text: str
    left: ast.expr
    sign: type[ast.cmpop]
    right: ast.expr

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
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            tree = ast.Constant(value=None)
        if (
            not isinstance(tree, ast.Compare)
            or len(tree.ops) != 1
            or type(tree.ops[0]) not in _COMPARISONS
            or not all(map(_is_expression, (tree.left, tree.comparators[0])))
        ):
            raise CommandError(
                f"--fail-if {text!r}: not a condition; write for example calibration_error>0.02 or "
                "after.log_loss > before.log_loss * 1.01."
            )
        return cls(text.strip(), tree.left, type(tree.ops[0]), tree.comparators[0])

    def holds(self, values: Values, column: str = "") -> bool:
        """Whether it holds, or cannot be decided because a figure is not defined."""
        return self.failure(values, column) is not None

    def failure(self, values: Values, column: str = "") -> str | None:
        """The condition and the actual values if it holds or a value is NaN, otherwise None.

        A figure that does not start with the name of a column is that of `column`.
        """
        left, right = (_evaluate(side, values, column) for side in (self.left, self.right))
        sign, compare = _COMPARISONS[self.sign]
        if math.isnan(left) or math.isnan(right):
            return f"{self.text} ({left:.6g} {sign} {right:.6g}: not defined)"
        return f"{self.text} ({left:.6g} {sign} {right:.6g})" if compare(left, right) else None


def _is_expression(node: ast.expr) -> bool:
    """Whether a tree has nothing but numbers, names, arithmetic and ``abs``."""
    if isinstance(node, ast.BinOp):
        known = type(node.op) in _OPERATIONS
        return known and _is_expression(node.left) and _is_expression(node.right)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub | ast.UAdd) and _is_expression(node.operand)
    if isinstance(node, ast.Call):
        named = isinstance(node.func, ast.Name) and node.func.id == "abs"
        return named and not node.keywords and len(node.args) == 1 and _is_expression(node.args[0])
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float)
    return bool(_names(node))


def _names(node: ast.expr) -> list[str]:
    """Names that dots join; none if the tree is something else."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute) and (before := _names(node.value)):
        return [*before, node.attr]
    return []


def _evaluate(node: ast.expr, values: Values, column: str) -> float:
    if isinstance(node, ast.BinOp):
        left, right = (_evaluate(side, values, column) for side in (node.left, node.right))
        try:
            return _OPERATIONS[type(node.op)](left, right)
        except (ZeroDivisionError, OverflowError):
            return math.nan
    if isinstance(node, ast.UnaryOp):
        value = _evaluate(node.operand, values, column)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.Call):
        return abs(_evaluate(node.args[0], values, column))
    if isinstance(node, ast.Constant):
        return float(node.value)  # type: ignore[arg-type]
    return _look_up(_names(node), values, column)


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
