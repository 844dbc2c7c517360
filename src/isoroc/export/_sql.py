"""SQL queries that calibrate the forecasts in a table, or count them, built from expressions.

Importing this module requires sqlglot.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Sequence
from importlib.metadata import version
from textwrap import TextWrapper
from typing import Any, Literal

from isoroc._backends import sql
from isoroc._backends.sql import DIALECTS, RULES, Dialect, SqlOps, nodes, table_node
from isoroc._counts import Grid, Resolution
from isoroc._counts.files import describe
from isoroc._counts.grid import cells, check_folds, default_resolution, fold
from isoroc._input import InputError, check_names, check_option, valid_weights
from isoroc._input.kinds import kind_of
from isoroc.export._exportable import check_exportable, check_rule

#: Advice where SQL cannot be used.
_INSTEAD = "use another dialect, a calibrator of fewer classes, or ONNX"


def to_sql(
    calibrator: Any,
    columns: str | Sequence[str],
    *,
    dialect: Dialect,
    table: str | Sequence[str] = "forecasts",
    keep: str | Sequence[str] | None = None,
    names: str | Sequence[str] | None = None,
    segments: str | Sequence[str] | None = None,
    view: str | Sequence[str] | None = None,
    rule: Any = None,
) -> str:
    """SQL query that calibrates the forecasts in a table as `predict_proba` does.

    Rows with a NULL, and rows that `predict_proba` would refuse, get NULLs. Rows come in any order.

    Parameters
    ----------
    calibrator : calibrator
        Fitted.
    columns : str or sequence of str
        Columns of the forecasts, in the order of the classes, or the one column of scores.
    dialect : str
        SQL dialect: "bigquery", "clickhouse", "datafusion", "duckdb", "mysql" (also for
        MariaDB), "polars", "postgres", "redshift", "snowflake", "spark", "sqlite", "trino" or
        "tsql" (SQL Server).
    table : str or sequence of str, default="forecasts"
        Name of the table, after schema and catalog if needed, separated by dots. Names that
        contain dots need a sequence.
    keep : str or sequence of str, default=None
        Other columns that the query returns, such as a key, by default `columns`. "*" returns all,
        which mysql, sqlite, trino and tsql do not support.
    names : str or sequence of str, default=None
        Names of the calibrated columns, by default ``calibrated_`` and the class. For scores, a
        single name stands for the second class. With ``keep="*"``, a name in `columns` replaces
        that column.
    segments : str or sequence of str, default=None
        Columns of the segments that a `SegmentCalibrator` uses, in the order of its `columns_`. By
        default they have the same names. Categories are compared as text, byte by byte. Whole
        numbers and booleans match in columns of any type.
    view : str or sequence of str, default=None
        Create a view of this name instead of returning rows.
    rule : AcceptanceRule, default=None
        Adds the column ``accepted``: 1 if the row may go out without a person, otherwise 0.

    Returns
    -------
    str
        A statement, after a comment with the version, the calibrator, the checksum and classes.

    Examples
    --------
    >>> import isoroc
    >>> p, y = [0.1, 0.3, 0.7, 0.9], ["no", "no", "yes", "yes"]
    >>> calibrator = isoroc.IRPCalibrator(prior="uniform").fit(p, y)
    >>> options = {"dialect": "duckdb", "table": "loans", "keep": ["id"]}
    >>> query = to_sql(calibrator, "score", names="score_cal", **options)
    >>> print(query[query.rindex("SELECT") :])
    SELECT
      "id",
      CASE
        WHEN "isoroc_1"
        THEN CASE WHEN "isoroc_4" <= 0 THEN 0.16666666666666666e0 ELSE 0.8333333333333334e0 END
      END AS "score_cal"
    FROM "isoroc_stage_3"
    """
    name = check_exportable(calibrator)
    check_rule(rule, calibrator)
    columns = check_names("columns", columns)
    outputs = _name_outputs(calibrator, columns, names)
    new = [*outputs, "accepted"] if rule is not None else list(outputs)
    query = write_query(
        calibrator,
        columns,
        outputs,
        dialect=dialect,
        table=_check_table(table),
        keep=_check_keep(columns if keep is None else keep, new),
        segments=segments,
        view=None if view is None else _check_table(view, "view"),
        rule=rule,
    )
    return f"{_header(calibrator, name)}\n{query}"


def _name_outputs(calibrator: Any, columns: list[str], names: Any) -> dict[str, int]:
    """Names of the calibrated columns, and the class of each."""
    K = len(calibrator.classes_)
    if names is None:
        names = [f"calibrated_{label}" for label in calibrator.classes_]
    names = check_names("names", names)
    single = calibrator.n_features_in_ == 1 and len(names) == 1
    for argument, given, expected in (
        ("columns", columns, calibrator.n_features_in_),
        ("names", names, len(names) if single else K),
    ):
        if len(given) != expected:
            problem = f"{len(given)} given ({', '.join(given)})"
            raise InputError(argument, None, problem, f"the calibrator has {expected}")
    _check_distinct(names)
    return dict(zip(names, [K - 1] if single else range(K), strict=True))


def _check_keep(keep: str | Sequence[str], names: Sequence[str]) -> list[str] | None:
    """Other columns that the query returns, None for all of them."""
    kept = check_names("keep", keep)
    if "*" in kept:
        if len(kept) > 1:
            others = ", ".join(name for name in kept if name != "*")
            raise InputError("keep", None, '"*" stands for all columns', f"leave out {others}")
        return None
    _check_distinct([*kept, *names])
    return kept


def _check_distinct(names: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        if (folded := name.lower()) in seen:
            both = f"the columns {seen[folded]!r} and {name!r} are the same to many databases"
            raise InputError("names", None, both, "pass other names")
        seen[folded] = name


def _header(calibrator: Any, name: str) -> str:
    """Comment about where the query comes from.

    No class name can end the comment or open another one inside it: json escapes quotes,
    backslashes, control and non-ASCII characters, and slashes are kept apart from stars.
    """
    model = [f"Model: {calibrator.checksum}"] if calibrator.checksum else []
    classes = ", ".join(json.dumps(str(label)) for label in calibrator.classes_)
    about = f"{name} of isoroc {version('isoroc')}"
    order = "Rows come in any order: keep a key, or add ORDER BY."
    text = "\n".join([about, *model, order, f"Classes: {classes}"])
    text = re.sub(r"(?<=\*)(?=/)|(?<=/)(?=\*)", " ", text)
    wrapper = TextWrapper(
        96, subsequent_indent="   ", break_long_words=False, break_on_hyphens=False
    )
    lines = [wrapper.fill(line) for line in text.split("\n")]
    return "/* " + "\n   ".join(lines) + " */"


def write_query(
    fitted: Any,
    columns: Sequence[str],
    outputs: dict[str, int],
    *,
    dialect: str,
    table: Sequence[str],
    keep: Sequence[str] | None,
    segments: str | Sequence[str] | None = None,
    view: Sequence[str] | None = None,
    rule: Any = None,
) -> str:
    """Statement that calibrates the forecasts in a table, by a calibrator or a `LoadedMap`.

    `outputs` are the calibrated columns with the class of each. `keep` are other columns to return,
    or None for all. `table` and `view` are parts of names.
    """
    known = list(fitted.map_.segments)
    names = known if segments is None else check_names("segments", segments)
    if len(names) != len(known):
        fix = f"the calibrator uses {len(known)}: {', '.join(known)}".removesuffix(": ")
        raise InputError("segments", None, f"{len(names)} columns given", fix)
    source = table_node(table)
    ops, statement = _build(
        fitted, columns, names, outputs, dialect=dialect, source=source, keep=keep, rule=rule
    )
    if view is not None:
        statement = nodes.Create(this=table_node(view), kind="VIEW", expression=statement)
    return ops.text(statement)


def _build(
    fitted: Any,
    columns: Sequence[str],
    segments: Sequence[str],
    outputs: dict[str, int],
    *,
    dialect: str,
    source: sql.Node,
    keep: Sequence[str] | None,
    rule: Any = None,
) -> tuple[SqlOps, Any]:
    """The operations of a dialect, and a statement that calibrates the forecasts of a source."""
    check_option("dialect", dialect, DIALECTS)
    rules = RULES[dialect]
    if rules.most_classes is not None and len(columns) > rules.most_classes:
        limit = f"queries for {dialect} are limited to {rules.most_classes:,}"
        raise InputError("dialect", None, f"{len(columns):,} classes, and {limit}", _INSTEAD)
    replaced = [name for name in columns if name in outputs] if keep is None else []
    if keep is None and (rules.star is None or (rules.star != "except" and replaced)):
        which = "all but some" if replaced else "all"
        problem = f"{dialect} cannot return {which} columns of a table without their names"
        raise InputError("keep", None, problem, "name them")
    tables = [part.name for part in source.find_all(nodes.Identifier)]
    used = [*columns, *(keep or ()), *outputs, "accepted", *tables, *segments]
    ops = SqlOps(dialect, taken=used)
    X = ops.read(columns)
    Q, good = fitted.map_.calibrate(ops, X, fitted.map_.read_places(ops, segments))
    returned = ops.take(Q, list(outputs.values()))
    names = list(outputs)
    if rule is not None:
        returned = ops.concat([returned, ops.where(rule.formula(ops, Q), 1.0, 0.0)])
        names.append("accepted")
    chosen = dict(zip(names, ops.where(good, returned, math.nan).columns(), strict=True))
    statement = ops.stages.select(source, keep, chosen, replaced)
    _check_width(ops, dialect)
    return ops, statement


def golden_query(
    fitted: Any,
    columns: list[str],
    segments: list[str],
    rows: list[list[Any]],
    expected: list[list[float]],
    *,
    dialect: Dialect,
    tolerance: float,
) -> str:
    """Query that compares the calibrated forecasts of rows, which it contains, with expected ones.

    No entry of the first row is missing, so the first row determines the types of the columns.
    """
    check_option("dialect", dialect, DIALECTS)
    constants = SqlOps(dialect, taken=[]).constant
    given = [*columns, *segments]
    prefix = "golden"
    while any(name.lower().startswith(prefix) for name in given):
        prefix += "_"
    K = len(expected[0])
    wanted = [f"{prefix}_{k}" for k in range(K)]
    found = {f"{prefix}_found_{k}": k for k in range(K)}
    selects = []
    for row, forecasts in zip(rows, expected, strict=True):
        entries = map(constants, [*row, *forecasts])
        named = dict(zip([*given, *wanted], entries, strict=True))
        selects.append(nodes.Select(expressions=sql.named(named)))
    source = nodes.union(*selects, distinct=False, copy=False)
    table = source.subquery(f"{prefix}_rows", copy=False)
    ops, inner = _build(
        fitted, columns, segments, found, dialect=dialect, source=table, keep=wanted
    )
    one = sql.integer(1)
    zero = sql.integer(0)
    accepted = ops.scalars.number(tolerance)
    differences = [
        nodes.Abs(this=sql.pair(nodes.Sub, sql.column(a), sql.column(b)))
        for a, b in zip(found, wanted, strict=True)
    ]
    right = [
        nodes.Paren(
            this=nodes.or_(
                sql.pair(nodes.LTE, difference, accepted),
                nodes.and_(
                    nodes.Is(this=sql.column(a), expression=nodes.Null()),
                    nodes.Is(this=sql.column(b), expression=nodes.Null()),
                ),
            )
        )
        for a, b, difference in zip(found, wanted, differences, strict=True)
    ]
    wrong = sql.case([(nodes.and_(*right), zero)], one)
    results: dict[str, sql.Node] = {
        "rows": nodes.Count(this=nodes.Star()),
        "wrong": nodes.Sum(this=wrong),
        "largest_error": nodes.Max(this=ops.scalars.extreme("maximum", differences)),
    }
    query = nodes.Select(expressions=sql.named(results)).from_(
        inner.subquery(f"{prefix}_calibrated")
    )
    return ops.text(query)


def _check_table(table: str | Sequence[str], argument: str = "table") -> list[str]:
    parts = table.split(".") if isinstance(table, str) else check_names(argument, table)
    if not 1 <= len(parts) <= 3 or not all(parts):
        expected = f"expected [[catalog.]schema.]{argument}"
        raise InputError(argument, None, f"is {table!r}", expected)
    return parts


def _check_width(ops: SqlOps, dialect: str) -> None:
    """Raise an error for a query with more columns at once than the database allows."""
    most = RULES[dialect].most_columns
    if most is not None and ops.stages.widest > most:
        needed = f"the query needs {ops.stages.widest:,} columns at once"
        raise InputError("dialect", None, f"{needed}, and {dialect} allows {most:,}", _INSTEAD)


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

    `Counts.from_parquet` and ``isoroc fit --counts`` read its result from a Parquet file.

    Parameters
    ----------
    table : str or sequence of str
        Name of the table, after schema and catalog if needed, separated by dots.
    probs : str or sequence of str
        Columns of the forecasts, one per class, or the column of the second of two classes.
    label : str
        Column of the outcomes.
    dialect : str
        SQL dialect, as in `to_sql`.
    weight : str, default=None
        Column of weights.
    resolution, folds, fold_by
        As in `Counts.from_frame`, but "auto" is always 65,536 for two classes.
    where : str, default=None
        Condition that rows must satisfy, in the SQL of the dialect: ``"day >= '2026-01-01'"``.
    on_bad : {"fail", "skip"}, default="fail"
        Rows with an invalid forecast, label, weight or key are counted under the label NULL.
        Readers of the counts raise an error, or leave such rows out with a warning.

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
    check_option("dialect", dialect, DIALECTS)
    check_option("on_bad", on_bad, ("fail", "skip"))
    check_folds(folds)
    probs = check_names("probs", probs)
    parts = _check_table(table)
    if resolution == "auto":
        resolution = default_resolution(max(len(probs), 2))
    grid = Grid.choose(len(probs), resolution)
    others = {"label": label, "weight": weight, "fold_by": fold_by}
    used = {name: column for name, column in others.items() if column is not None}
    for name, column in used.items():
        check_names(name, [column])
    ops = SqlOps(dialect, taken=[*probs, *used.values(), *parts])
    X, good = kind_of(len(probs)).clean(ops, ops.read(probs))
    coordinates = cells(ops, X, grid)
    key = None if fold_by is None else ops.read([fold_by])
    folds_of_rows = fold(ops, X, folds, key)
    weighed = ops.vector([ops.scalars.number(1.0)]) if weight is None else ops.read([weight])
    if weight is not None:
        good = good & valid_weights(ops, weighed)
    if key is not None:
        good = good & (key <= sys.float_info.max)
    sums = ["weight", "weight_squared", *(f"sum_{k}" for k in range(len(probs)))]
    names = [*grid.names, "fold", *sums]
    vectors = ops.concat([coordinates, folds_of_rows, weighed, weighed * weighed, X * weighed])
    rows: dict[str, sql.Node] = dict(zip(names, vectors.columns(), strict=True))
    rows["label"] = sql.case([(good.columns()[0], sql.column(label))], nodes.Null())
    kept = list(dict.fromkeys(used.values()))
    try:
        rules = RULES[dialect]
        condition = None if where is None else nodes.condition(where, dialect=rules.sqlglot)
    except sql.SqlglotError as error:
        problem = f"{where!r} is not a condition"
        raise InputError("where", None, problem, f"write it in the SQL of {dialect}") from error
    inner = ops.stages.select(table_node(parts), kept, rows, where=condition)
    _check_width(ops, dialect)
    # Columns that were kept for later stages are not part of the result.
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
