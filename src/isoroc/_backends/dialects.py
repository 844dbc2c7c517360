"""Differences between SQL dialects that matter for calibrators."""

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
    """Features and limits of a dialect."""

    #: Name of the dialect in sqlglot.
    sqlglot: str
    #: How doubles are written: ``1.5e0`` if that is a double and read without rounding errors, a
    #: text that is cast if it may be a decimal number, or an exact fraction of integers.
    numbers: Literal["literal", "cast", "fraction"] = "literal"
    #: How all columns of the table are returned: as all columns except the added ones, as one
    #: column with the row or a struct of it, or not at all.
    star: Literal["except", "row", "struct"] | None = None
    #: LIMIT of each stage, which keeps planners from merging a stage into the next one. Merging
    #: would repeat its expressions wherever they are used.
    limit: int | None = None
    #: Whether each stage has OFFSET 0, for the same reason.
    offset: bool = False
    #: Whether products and exponentials that round to 0 raise an error.
    underflow: bool = False
    #: Whether exponentials that round to 0 must be avoided.
    careful_exp: bool = False
    #: Whether a condition can be a column.
    conditions: bool = True
    #: Function for the largest of several columns, or an aggregate over rows.
    extremes: Literal["GREATEST", "MAX", "rows"] = "GREATEST"
    #: Whether division by a constant is computed by its reciprocal, which rounds twice.
    reciprocals: bool = False
    #: Whether columns used only in a branch of a CASE are computed again in each branch.
    lazy: bool = False
    #: How entries of a constant array are looked up. The lists of DuckDB also serve for inner
    #: products and binary search.
    arrays: Literal["LIST_EXTRACT", "arrayElement", "brackets", "ELEMENT_AT"] | None = None
    #: Largest number of classes: the time of planners grows faster than the number of columns.
    most_classes: int | None = None
    #: Largest number of columns of a query.
    most_columns: int | None = None
    #: Largest number of nested CASE expressions.
    depth: int = 12
    #: How texts are compared byte by byte: as they are, by a collation, or as bytes where the
    #: default collations ignore case, accents or trailing spaces.
    texts: Literal["plain", "collated", "binary", "national"] = "plain"
    #: How a text becomes a number, or NULL if it is not a number: by a cast that may fail, by a
    #: function, or by a cast of the texts that a regular expression or a SQLite pattern matches.
    parse: Literal["try", "toFloat64OrNull", "regex", "REGEXP_INSTR", "glob"] = "try"

    @property
    def lists(self) -> bool:
        """Whether constant arrays are lists of DuckDB."""
        return self.arrays == "LIST_EXTRACT"


#: The rules of each dialect. MariaDB is run as MySQL.
RULES: dict[str, Rules] = {
    "bigquery": Rules("bigquery", star="except", careful_exp=True, most_columns=10_000),
    "clickhouse": Rules(
        "clickhouse",
        star="except",
        lazy=True,
        arrays="arrayElement",
        most_classes=100,
        parse="toFloat64OrNull",
    ),
    "datafusion": Rules("duckdb", star="except"),
    "duckdb": Rules("duckdb", star="except", arrays="LIST_EXTRACT", most_classes=1000),
    "mysql": Rules(
        "mysql", limit=2**64 - 1, most_columns=4096, texts="binary", parse="REGEXP_INSTR"
    ),
    "polars": Rules("duckdb", star="except", reciprocals=True),
    "postgres": Rules(
        "postgres",
        numbers="cast",
        star="row",
        offset=True,
        underflow=True,
        arrays="brackets",
        most_columns=1664,
        parse="regex",
    ),
    "redshift": Rules(
        "redshift",
        numbers="cast",
        star="except",
        underflow=True,
        most_columns=1600,
        parse="regex",
    ),
    "snowflake": Rules("snowflake", numbers="cast", star="except", careful_exp=True),
    "spark": Rules("spark", star="struct", arrays="ELEMENT_AT", most_classes=300, parse="regex"),
    "sqlite": Rules(
        "sqlite",
        numbers="fraction",
        limit=-1,
        offset=True,
        extremes="MAX",
        most_columns=2000,
        texts="collated",
        parse="glob",
    ),
    "trino": Rules("trino", arrays="ELEMENT_AT"),
    # CASE may be nested to level 10.
    "tsql": Rules(
        "tsql",
        careful_exp=True,
        conditions=False,
        extremes="rows",
        most_columns=4096,
        depth=8,
        texts="national",
    ),
}

DIALECTS = tuple(RULES)
