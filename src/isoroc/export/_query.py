"""The SQL query of a map, built from expressions and never from pieces of text.

Importing this module requires sqlglot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from isoroc._backends.sql import DIALECTS, RULES, SqlOps, nodes, table_node
from isoroc._input import InputError, check_names
from isoroc._maps.mixture import calibrated, is_grouped

#: What can be used where SQL cannot.
_INSTEAD = "use another dialect, a calibrator of fewer classes, or ONNX"


def write_query(
    fitted: Any,
    columns: Sequence[str],
    outputs: dict[str, int],
    *,
    dialect: str,
    table: Sequence[str],
    keep: Sequence[str] | None,
    group: str | None = None,
    view: Sequence[str] | None = None,
) -> str:
    """Statement that calibrates the forecasts in a table, by a calibrator or a `LoadedMap`.

    `outputs` holds the names of the calibrated columns with the class of each. Columns `keep` of
    the table, None for all, are handed on. `table` and `view` are parts of names.
    """
    rules = RULES[check_dialect(dialect)]
    if rules.most_classes is not None and len(columns) > rules.most_classes:
        limit = f"queries for {dialect} are limited to {rules.most_classes:,}"
        raise InputError("dialect", None, f"{len(columns):,} classes, and {limit}", _INSTEAD)
    if (grouped := is_grouped(fitted)) != (group is not None):
        which = "has groups" if grouped else "was fitted without groups"
        fix = "name their column" if grouped else "leave it out"
        raise InputError("group", None, f"the calibrator {which}", fix)
    replaced = [name for name in columns if name in outputs] if keep is None else []
    if keep is None and (rules.star is None or (rules.star != "except" and replaced)):
        which = "all but some" if replaced else "all"
        problem = f"{dialect} cannot hand on {which} columns of a table without their names"
        raise InputError("keep", None, problem, "name them")
    used = [*columns, *(keep or ()), *outputs, *table, *([group] if group else [])]
    ops = SqlOps(dialect, taken=used)
    X = ops.read(columns)
    if group is None:
        Q, good = calibrated(ops, fitted, X)
    else:
        place, known = ops.find(group, fitted.map_.groups.tolist())
        Q, good = calibrated(ops, fitted, X, place)
        good = good & known
    Q = ops.where(good, ops.take(Q, list(outputs.values())), math.nan)
    chosen = dict(zip(outputs, Q.columns(), strict=True))
    statement = ops.stages.select(table, keep, chosen, replaced)
    check_width(ops, dialect)
    if view is not None:
        statement = nodes.Create(this=table_node(view), kind="VIEW", expression=statement)
    return ops.text(statement)


def check_dialect(dialect: Any) -> str:
    """Refuse what is not a dialect."""
    if dialect not in DIALECTS:
        expected = f"expected one of {', '.join(DIALECTS)}"
        raise InputError("dialect", None, f"is {dialect!r}", expected)
    return str(dialect)


def check_table(table: str | Sequence[str], argument: str = "table") -> list[str]:
    """Parts of the name of a table."""
    parts = table.split(".") if isinstance(table, str) else check_names(argument, table)
    if not 1 <= len(parts) <= 3 or not all(parts):
        expected = f"expected [[catalog.]schema.]{argument}"
        raise InputError(argument, None, f"is {table!r}", expected)
    return parts


def check_width(ops: SqlOps, dialect: str) -> None:
    """Refuse a query with more columns at once than a database allows."""
    most = RULES[dialect].most_columns
    if most is not None and ops.stages.widest > most:
        needed = f"the query needs {ops.stages.widest:,} columns at once"
        raise InputError("dialect", None, f"{needed}, and {dialect} allows {most:,}", _INSTEAD)
