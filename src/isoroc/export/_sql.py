"""Calibrators as SQL queries."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib.metadata import version
from textwrap import TextWrapper
from typing import Any

from isoroc._backends.sql import Dialect
from isoroc._input import InputError, check_names
from isoroc.export._exportable import check_exportable
from isoroc.export._query import check_table, write_query

_ORDER = "Rows come in any order: keep a key, or add ORDER BY."
#: Between a slash and a star, which together open or end a comment.
_BESIDE = re.compile(r"(?<=\*)(?=/)|(?<=/)(?=\*)")


def to_sql(
    calibrator: Any,
    columns: str | Sequence[str],
    *,
    dialect: Dialect,
    table: str | Sequence[str] = "forecasts",
    keep: str | Sequence[str] | None = None,
    names: str | Sequence[str] | None = None,
    group: str | None = None,
    view: str | Sequence[str] | None = None,
    checksum: str | None = None,
) -> str:
    """SQL query that calibrates the forecasts in a table as `predict_proba` does.

    A row with a NULL, or that `predict_proba` would refuse, gets NULLs. Rows come in any order.

    Parameters
    ----------
    calibrator : calibrator
        Fitted.
    columns : str or sequence of str
        Columns of the forecasts, in the order of the classes, or the one column of scores.
    dialect : str
        Whose SQL to write: "bigquery", "clickhouse", "datafusion", "duckdb", "mysql" (also for
        MariaDB), "polars", "postgres", "redshift", "snowflake", "spark", "sqlite", "trino" or
        "tsql" (SQL Server).
    table : str or sequence of str, default="forecasts"
        The table; dots separate it from schema and catalog. Names with dots need a sequence.
    keep : str or sequence of str, default=None
        Columns of the table that the query hands on, such as a key; `columns` by default. "*"
        stands for all of them, which mysql, sqlite, trino and tsql do not support.
    names : str or sequence of str, default=None
        Names of the calibrated columns; ``calibrated_`` and the class by default. For scores, a
        single name stands for the second class. With ``keep="*"``, a name in `columns` replaces it.
    group : str, default=None
        Column of the groups that a `GroupedCalibrator` was fitted with, compared as text.
    view : str or sequence of str, default=None
        Name of a view: the statement creates it instead of returning rows.
    checksum : str, default=None
        Checksum for the comment at the top; by default of the file that ``save`` would write.

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
    check_exportable(calibrator)
    columns = check_names("columns", columns)
    outputs = _name_outputs(calibrator, columns, names)
    query = write_query(
        calibrator,
        columns,
        outputs,
        dialect=dialect,
        table=check_table(table),
        keep=_check_keep(columns if keep is None else keep, list(outputs)),
        group=group,
        view=None if view is None else check_table(view, "view"),
    )
    return f"{_header(calibrator, checksum)}\n{query}"


def _name_outputs(
    calibrator: Any, columns: list[str], names: str | Sequence[str] | None
) -> dict[str, int]:
    """Names of the calibrated columns, and the class whose probability each of them holds."""
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
    """Columns of the table that the query hands on, None for all of them."""
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
        # To most databases names that differ in case only are the same.
        if (folded := name.lower()) in seen:
            problem = (
                f"the query would have the columns {seen[folded]!r} and {name!r}, which are the "
                "same to many databases"
            )
            raise InputError("names", None, problem, "pass other names")
        seen[folded] = name


def _header(calibrator: Any, checksum: str | None) -> str:
    """Comment about where the query comes from.

    No text of a class can end the comment or open another one inside it: quotes, backslashes,
    control and other than ASCII characters are escaped, and slashes and stars kept apart.
    """
    checksum = calibrator.checksum if checksum is None else checksum
    model = [f"Model: {checksum}"] if checksum else []
    classes = ", ".join(json.dumps(str(label)) for label in calibrator.classes_)
    # The map of a model file has the name of its calibrator.
    kind = getattr(calibrator, "calibrator", None)
    name = kind if isinstance(kind, str) else type(calibrator).__name__
    about = f"{name} of isoroc {version('isoroc')}"
    text = _BESIDE.sub(" ", "\n".join([about, *model, _ORDER, f"Classes: {classes}"]))
    wrapper = TextWrapper(
        96, subsequent_indent="   ", break_long_words=False, break_on_hyphens=False
    )
    lines = [wrapper.fill(line) for line in text.split("\n")]
    return "/* " + "\n   ".join(lines) + " */"
