"""Calibrators as SQL queries, built from expressions and never from pieces of text."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib.metadata import version
from textwrap import TextWrapper
from typing import Any, Literal

from isoroc._calibrators.document import checksum_of
from isoroc.export._dialects import DIALECTS, WITH_LISTS, Dialect, rules_of
from isoroc.export._expressions import nodes, table_node
from isoroc.export._lists import write_lists
from isoroc.export._maps import check_exportable, is_grouped, write_map
from isoroc.export._sql_writer import SqlWriter

__all__ = ["DIALECTS", "check_table", "to_sql"]

#: Between a slash and a star, which together open or end a comment.
_BESIDE = re.compile(r"(?<=\*)(?=/)|(?<=/)(?=\*)")
#: What stands for all columns of the table.
ALL = "*"


def to_sql(
    calibrator: Any,
    columns: str | Sequence[str],
    *,
    dialect: Dialect,
    table: str | Sequence[str] = "forecasts",
    keep: str | Sequence[str] | None = None,
    names: str | Sequence[str] | None = None,
    group: str | None = None,
    form: Literal["columns", "lists"] | None = None,
    view: str | Sequence[str] | None = None,
    checksum: str | None = None,
) -> str:
    """SQL query that calibrates the forecasts in a table as `predict_proba` does.

    A row with a NULL, or that `predict_proba` would refuse, gets NULLs.

    Parameters
    ----------
    calibrator : calibrator
        Fitted.
    columns : str or sequence of str
        Columns of the forecasts, in the order of the classes; the one column of scores where the
        calibrator was fitted to scores.
    dialect : str
        Whose SQL to write: "bigquery", "clickhouse", "datafusion", "duckdb", "mysql" (also for
        MariaDB), "polars", "postgres", "redshift", "snowflake", "spark", "sqlite", "trino" or
        "tsql" (SQL Server).
    table : str or sequence of str, default="forecasts"
        The table; dots separate it from schema and catalog. Names that hold dots go into a
        sequence.
    keep : str or sequence of str, default=None
        Columns of the table that the query hands on, such as a key; `columns` by default. "*"
        stands for all of them, except in the dialects mysql, sqlite, trino and tsql, which have no
        way to leave out the columns of intermediate results.
    names : str or sequence of str, default=None
        Names of the calibrated columns; ``calibrated_`` and the class by default. For a calibrator
        of scores, a single name stands for the probability of the second class. With ``keep="*"``,
        a name that is also in `columns` replaces that column.
    group : str, default=None
        Column of the groups of a `GroupedCalibrator`, required if it was fitted with groups. Its
        values are compared as text, and a NULL gets NULLs.
    form : {"columns", "lists"}, default=None
        Whether the steps of the map have a column for each class, or one list of all classes.
        Statements with lists are much shorter and planned much faster; in DuckDB they take more
        time for each row. By default lists for more than 16 classes in ClickHouse, 50 in Spark and
        200 in DuckDB; other dialects have columns only.
    view : str or sequence of str, default=None
        Name of a view: the statement creates it instead of returning rows.
    checksum : str, default=None
        Checksum of the model file, for the comment at the top. By default it is that of the file
        that ``calibrator.save`` would write.

    Returns
    -------
    str
        A SELECT or CREATE VIEW statement, after a comment that names the version of isoroc, the
        calibrator, the checksum of its model file and the classes.

    Examples
    --------
    >>> import isoroc
    >>> p, y = [0.1, 0.3, 0.7, 0.9], ["no", "no", "yes", "yes"]
    >>> calibrator = isoroc.IRPCalibrator(prior="uniform").fit(p, y)
    >>> options = {"dialect": "duckdb", "table": "loans", "keep": ["id"]}
    >>> query = to_sql(calibrator, "score", names="score_cal", view="calibrated", **options)
    >>> print(query[query.index("CREATE") : query.index("(")])
    CREATE VIEW "calibrated" AS
    WITH "isoroc_stage_0" AS
    >>> print(query[query.rindex("SELECT") :])
    SELECT
      "id",
      CASE
        WHEN "isoroc_1"
        THEN CASE WHEN "isoroc_3" <= 0 THEN 0.16666666666666666e0 ELSE 0.8333333333333334e0 END
      END AS "score_cal"
    FROM "isoroc_stage_3"
    """
    check_exportable(calibrator)
    rules_of(dialect)
    columns = [columns] if isinstance(columns, str) else list(columns)
    outputs = _name_outputs(calibrator, columns, names)
    parts = check_table(table)
    kept = _check_keep(columns if keep is None else keep, list(outputs))
    if is_grouped(calibrator) != (group is not None):
        fix = "has groups: name their column" if group is None else "was fitted without groups"
        raise ValueError(f"group: the calibrator {fix}.")
    used = [*columns, *(kept or ()), *outputs, *parts, *([group] if group else [])]
    writer = SqlWriter(dialect, taken=used)
    found = None if group is None else writer.find(group, calibrator.groups_.tolist())
    if _by_lists(dialect, form, len(columns)):
        calibrated = write_lists(writer, dialect, calibrator, columns, found)
    else:
        calibrated = write_map(writer, calibrator, writer.read(columns), found)
    chosen = {name: calibrated[k] for name, k in outputs.items()}
    replaced = [name for name in columns if name in outputs] if kept is None else []
    statement = writer.stages.select(parts, kept, chosen, replaced)
    if view is not None:
        target = table_node(check_table(view, "view"))
        statement = nodes.Create(this=target, kind="VIEW", expression=statement)
    return f"{_header(calibrator, checksum)}\n{writer.text(statement)}"


def _by_lists(dialect: str, form: str | None, n_columns: int) -> bool:
    """Whether a map is written by lists."""
    if form not in ("columns", "lists", None):
        raise ValueError(f'form: expected "columns" or "lists", got {form!r}.')
    most = rules_of(dialect).most_classes
    if form == "lists" and most is None:
        raise ValueError(
            f'form: {dialect} has no functions of lists; leave out form="lists", or choose a '
            f"dialect that has them: {', '.join(WITH_LISTS)}."
        )
    return form == "lists" or (form is None and most is not None and n_columns > most)


def check_table(table: str | Sequence[str], argument: str = "table") -> list[str]:
    """Parts of the name of a table; raises an error if it is none."""
    parts = table.split(".") if isinstance(table, str) else list(table)
    if not 1 <= len(parts) <= 3 or not all(parts):
        raise ValueError(f"{argument}: expected [[catalog.]schema.]{argument}, got {table!r}.")
    return parts


def _name_outputs(
    calibrator: Any, columns: list[str], names: str | Sequence[str] | None
) -> dict[str, int]:
    """Names of the calibrated columns, and the class whose probability each of them holds."""
    K = len(calibrator.classes_)
    if names is None:
        names = [f"calibrated_{label}" for label in calibrator.classes_]
    names = [names] if isinstance(names, str) else list(names)
    single = calibrator.n_features_in_ == 1 and len(names) == 1
    for argument, given, expected in (
        ("columns", columns, calibrator.n_features_in_),
        ("names", names, len(names) if single else K),
    ):
        if len(given) != expected:
            raise ValueError(
                f"{argument}: the calibrator has {expected}, got {len(given)}: {', '.join(given)}."
            )
    _check_distinct(names)
    return dict(zip(names, [K - 1] if single else range(K), strict=True))


def _check_keep(keep: str | Sequence[str], names: Sequence[str]) -> list[str] | None:
    """Columns of the table that the query hands on, None for all of them."""
    kept = [keep] if isinstance(keep, str) else list(keep)
    if ALL in kept:
        if len(kept) > 1:
            raise ValueError(f'keep: "*" stands for all columns; leave out {", ".join(kept)}.')
        return None
    _check_distinct([*kept, *names])
    return kept


def _check_distinct(names: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        # To most databases names that differ in case only are the same.
        if (folded := name.lower()) in seen:
            raise ValueError(
                f"names: the query would have the columns {seen[folded]!r} and {name!r}, which "
                "are the same to many databases; pass other names."
            )
        seen[folded] = name


def _header(calibrator: Any, checksum: str | None) -> str:
    """Comment about where the query comes from.

    No text of a class can end the comment or open another one inside it: quotes, backslashes,
    control and other than ASCII characters are escaped, and slashes and stars kept apart.
    """
    checksum = checksum_of(calibrator) if checksum is None else checksum
    model = [f"Model: {checksum}"] if checksum else []
    classes = ", ".join(json.dumps(str(label)) for label in calibrator.classes_)
    about = f"{calibrator.kind()} of isoroc {version('isoroc')}"
    text = _BESIDE.sub(" ", "\n".join([about, *model, f"Classes: {classes}"]))
    wrapper = TextWrapper(
        96, subsequent_indent="   ", break_long_words=False, break_on_hyphens=False
    )
    lines = [wrapper.fill(line) for line in text.split("\n")]
    return "/* " + "\n   ".join(lines) + " */"
