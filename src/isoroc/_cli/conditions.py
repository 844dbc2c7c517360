"""Conditions of ``--fail-if``, such as ``calibration_error > 0.02``."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from isoroc._cli.errors import CommandError, did_you_mean

#: Value of each metric, by column of the evaluation.
Values = Mapping[str, Mapping[str, float]]

_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_CONDITION = re.compile(r"\s*([\w.+-]+)\s*(>=|<=|>|<)\s*([\w.+-]+)\s*")


class Condition(NamedTuple):
    """A comparison; each side is a number, or a metric with or without the name of a column."""

    text: str
    left: str
    sign: str
    right: str

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Condition that a text stands for.

        Examples
        --------
        >>> condition = Condition.parse("after.log_loss > before.log_loss")
        >>> condition.holds({"before": {"log_loss": 0.4}, "after": {"log_loss": 0.3}}, "after")
        False
        """
        match = _CONDITION.fullmatch(text)
        if match is None:
            raise CommandError(
                f"--fail-if {text!r}: not a condition; write for example calibration_error>0.02 or "
                "after.log_loss>before.log_loss."
            )
        return cls(text.strip(), *match.groups())

    def holds(self, values: Values, column: str) -> bool:
        """Whether it holds; a metric without the name of a column is that of `column`."""
        sides = [self._value(side, values, column) for side in (self.left, self.right)]
        return _COMPARISONS[self.sign](*sides)

    def _value(self, side: str, values: Values, column: str) -> float:
        try:
            return float(side)
        except ValueError:
            pass
        named, _, metric = side.rpartition(".")
        if named and named not in values:
            raise CommandError(f"--fail-if: no column {named!r}; {did_you_mean(named, values)}")
        known = values[named or column]
        if metric not in known:
            raise CommandError(f"--fail-if: no metric {metric!r}; {did_you_mean(metric, known)}")
        if math.isnan(known[metric]):
            raise CommandError(
                f"--fail-if: {metric} is not defined for {named or column}: the scores are not "
                "probabilities, or a class does not occur."
            )
        return known[metric]
