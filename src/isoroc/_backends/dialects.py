"""Dialects of SQL: the differences that matter for calibrators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Dialect = Literal[
    "bigquery",
    "clickhouse",
    "datafusion",
    "duckdb",
    "mysql",
    "polars",
    "postgres",
    "redshift",
    "snowflake",
    "spark",
    "sqlite",
    "trino",
    "tsql",
]


@dataclass(frozen=True)
class Rules:
    """What a dialect has and what it lacks."""

    #: Name of the dialect in sqlglot.
    sqlglot: str
    #: How doubles are written: ``1.5e0``, where that is a double and read without rounding errors;
    #: a text that is cast, where it may be a decimal number; or an exact fraction of integers.
    numbers: Literal["literal", "cast", "fraction"] = "literal"
    #: How all columns of the table are handed on: as all columns except those that were added, as
    #: one column that holds the row or a struct of it, or not at all.
    star: Literal["except", "row", "struct"] | None = None
    #: LIMIT of each stage, and whether it has an OFFSET of 0. Merging a stage into the next one
    #: would repeat its expressions wherever they are used; either of these keeps planners from it.
    limit: int | None = None
    offset: bool = False
    #: Whether products and exponentials that round to 0 raise an error.
    underflow: bool = False
    #: Whether exponentials that round to 0 are not computed.
    careful_exp: bool = False
    #: Whether the value of a condition can be a column.
    conditions: bool = True
    #: How the largest of several columns is found: by a function, or by an aggregate over rows.
    extremes: Literal["GREATEST", "MAX", "rows"] = "GREATEST"
    #: Whether division by a constant is a product with its reciprocal, which rounds twice.
    reciprocals: bool = False
    #: Whether all that a branch of a CASE needs is computed for its rows only, at any distance.
    lazy: bool = False
    #: How entries of a constant array are found by their place, at no cost per entry. Lists also
    #: multiply matrices by inner products and search among many cuts.
    arrays: Literal["LIST_EXTRACT", "arrayElement", "brackets", "ELEMENT_AT"] | None = None
    #: Classes that a map may have: planners take more than linear time for columns.
    most_classes: int | None = None
    #: Columns that a query may have.
    most_columns: int | None = None
    #: Levels of CASE in an expression.
    depth: int = 12

    @property
    def lists(self) -> bool:
        """Whether constant arrays are lists of DuckDB."""
        return self.arrays == "LIST_EXTRACT"


#: The rules of each dialect. MariaDB is run as MySQL.
RULES: dict[str, Rules] = {
    "bigquery": Rules("bigquery", star="except", careful_exp=True, most_columns=10_000),
    "clickhouse": Rules(
        "clickhouse", star="except", lazy=True, arrays="arrayElement", most_classes=100
    ),
    "datafusion": Rules("duckdb", star="except"),
    "duckdb": Rules("duckdb", star="except", arrays="LIST_EXTRACT", most_classes=1000),
    "mysql": Rules("mysql", limit=2**64 - 1, most_columns=4096),
    "polars": Rules("duckdb", star="except", reciprocals=True),
    "postgres": Rules(
        "postgres",
        numbers="cast",
        star="row",
        offset=True,
        underflow=True,
        arrays="brackets",
        most_columns=1664,
    ),
    "redshift": Rules("redshift", numbers="cast", star="except", underflow=True, most_columns=1600),
    "snowflake": Rules("snowflake", numbers="cast", star="except", careful_exp=True),
    "spark": Rules("spark", star="struct", arrays="ELEMENT_AT", most_classes=300),
    "sqlite": Rules(
        "sqlite", numbers="fraction", limit=-1, offset=True, extremes="MAX", most_columns=2000
    ),
    "trino": Rules("trino", arrays="ELEMENT_AT"),
    # CASE may be nested to level 10.
    "tsql": Rules(
        "tsql", careful_exp=True, conditions=False, extremes="rows", most_columns=4096, depth=8
    ),
}

DIALECTS = tuple(RULES)
