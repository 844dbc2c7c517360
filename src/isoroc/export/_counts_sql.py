"""Counts by the group-by of a warehouse."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Literal

from isoroc._backends import sql
from isoroc._backends.sql import Dialect, nodes
from isoroc._counts import Grid, Resolution
from isoroc._counts.files import describe
from isoroc._counts.grid import cells, check_folds, default_resolution, fold
from isoroc._input import InputError, check_names, check_option, valid_weights
from isoroc._input.kinds import kind_of
from isoroc.export._query import check_dialect, check_table, check_width


def counts_sql(
    table: str | Sequence[str],
    probs: str | Sequence[str],
    label: str,
    dialect: Dialect,
    *,
    weight: str | None = None,
    resolution: Resolution = "auto",
    folds: int = 5,
    fold_by: str | None = None,
    where: str | None = None,
    on_bad: Literal["fail", "skip"] = "fail",
) -> str:
    """SQL query that counts forecasts and outcomes in a table as `Counts.from_frame` does.

    `Counts.from_parquet` and ``isoroc fit --counts`` read a Parquet file with its answer.

    Parameters
    ----------
    table : str or sequence of str
        The table; dots separate it from schema and catalog.
    probs : str or sequence of str
        Columns of the forecasts, one per class, or that of the second of two classes.
    label : str
        Column of the outcomes.
    dialect : str
        Whose SQL to write, as in `to_sql`.
    weight : str, default=None
        Column of weights.
    resolution, folds, fold_by
        As in `Counts.from_frame`, but "auto" is 65,536 for two classes in any case.
    where : str, default=None
        Condition that rows must satisfy, in the SQL of the dialect: ``"day >= '2026-01-01'"``.
    on_bad : {"fail", "skip"}, default="fail"
        What readers of the counts do with rows whose forecast, label, weight or key is not valid,
        which are counted under the label NULL: raise an error, or leave them out with a warning.

    Returns
    -------
    str
        A SELECT statement.

    Examples
    --------
    >>> query = counts_sql("logs.clicks", "p_click", "clicked", "postgres")
    >>> print(query[query.rindex("GROUP BY") :])
    GROUP BY
      "fold",
      "cell_0",
      "cell_1",
      "label"
    """
    check_dialect(dialect)
    check_option("on_bad", on_bad, ("fail", "skip"))
    check_folds(folds)
    probs, parts = check_names("probs", probs), check_table(table)
    if resolution == "auto":
        resolution = default_resolution(max(len(probs), 2))
    grid = Grid.choose(len(probs), resolution)
    others = {"label": label, "weight": weight, "fold_by": fold_by}
    used = [n for name, own in others.items() if own is not None for n in check_names(name, [own])]
    ops = sql.SqlOps(dialect, taken=[*probs, *used, *parts])
    X, good = kind_of(len(probs)).clean(ops, ops.read(probs))
    found = cells(ops, X, grid)
    key = None if fold_by is None else ops.read([fold_by])
    own_fold = fold(ops, X, folds, key)
    weighed = ops.vector([ops.scalars.number(1.0)]) if weight is None else ops.read([weight])
    if weight is not None:
        good = good & valid_weights(ops, weighed)
    if key is not None:
        good = good & (key <= sys.float_info.max)
    sums = ["weight", "weight_squared", *(f"sum_{k}" for k in range(len(probs)))]
    names = [*grid.names, "fold", *sums]
    vectors = ops.concat([found, own_fold, weighed, weighed * weighed, X * weighed])
    rows: dict[str, sql.Node] = dict(zip(names, vectors.columns(), strict=True))
    rows["label"] = sql.case([(good.columns()[0], sql.column(label))], nodes.Null())
    kept = [name for name in dict.fromkeys((label, weight, fold_by)) if name is not None]
    inner = ops.stages.select(parts, kept, rows, where=_condition(where, dialect))
    check_width(ops, dialect)
    # The columns that were handed on to be used are not part of the answer.
    inner.set("expressions", inner.expressions[len(kept) :])
    keys = ["fold", *grid.names, "label"]
    about = nodes.Literal.string(describe(grid, folds, tuple(probs), on_bad=on_bad))
    query = nodes.select(
        *(sql.column(name) for name in keys),
        nodes.alias_(nodes.Count(this=nodes.Star()), "rows", quoted=True),
        *(nodes.alias_(nodes.Sum(this=sql.column(name)), name, quoted=True) for name in sums),
        nodes.alias_(about, "isoroc", quoted=True),
    )
    query = query.from_(inner.subquery("isoroc_cells"))
    query = query.group_by(*(sql.column(name) for name in keys))
    return ops.text(query)


def _condition(where: str | None, dialect: str) -> Any:
    """A condition of the user as a node."""
    if where is None:
        return None
    try:
        return nodes.condition(where, dialect=sql.RULES[dialect].sqlglot)
    except sql.SqlglotError as error:
        problem = f"{where!r} is not a condition"
        raise InputError("where", None, problem, f"write it in the SQL of {dialect}") from error
