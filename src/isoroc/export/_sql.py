"""Calibrators as SQL queries, built from expressions and never from pieces of text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np

from isoroc._simplex import Floats
from isoroc._tree import BinTree
from isoroc._writer import Writer
from isoroc.export._expressions import (
    Node,
    arithmetic,
    case,
    choose,
    column,
    decimal,
    double,
    fraction,
    integer,
    nodes,
)
from isoroc.export._maps import check_exportable, is_grouped, write_map

Dialect = Literal["bigquery", "duckdb", "postgres", "snowflake", "spark", "sqlite"]
DIALECTS = ("bigquery", "duckdb", "postgres", "snowflake", "spark", "sqlite")

#: Splits that one expression walks down: parsers have limits to how deep an expression may be.
_DEPTH = 12
#: Below this the exponential is written as 0: where it underflows some databases raise an error.
_TINY = -690.0


def to_sql(
    calibrator: Any,
    columns: str | Sequence[str],
    *,
    dialect: Dialect,
    table: str | Sequence[str] = "forecasts",
    keep: str | Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    group: str | None = None,
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
    dialect : {"bigquery", "duckdb", "postgres", "snowflake", "spark", "sqlite"}
        Whose SQL to write.
    table : str or sequence of str, default="forecasts"
        The table; dots separate it from schema and catalog. Names that hold dots go into a
        sequence.
    keep : str or sequence of str, default=None
        Columns of the table that the query hands on, such as a key; `columns` by default.
    names : sequence of str, default=None
        Names of the calibrated columns; ``calibrated_`` and the class by default.
    group : str, default=None
        Column of the groups of a `GroupedCalibrator`, required if it was fitted with groups. Its
        values are compared as text, and a NULL gets NULLs.

    Returns
    -------
    str
        A SELECT statement, to be run or to be made a view.

    Examples
    --------
    >>> import isoroc
    >>> p, y = [0.1, 0.3, 0.7, 0.9], ["no", "no", "yes", "yes"]
    >>> calibrator = isoroc.IRPCalibrator(prior="uniform").fit(p, y)
    >>> query = to_sql(calibrator, "score", dialect="duckdb", table="loans", keep=["id"])
    >>> print(query[query.rindex("SELECT") : query.rindex(",")])
    SELECT
      "id",
      CASE
        WHEN "isoroc_1"
        THEN CASE
          WHEN "isoroc_3" <= 0
          THEN CAST('0.8333333333333334' AS DOUBLE)
          ELSE CAST('0.16666666666666666' AS DOUBLE)
        END
      END AS "calibrated_no"
    """
    check_exportable(calibrator)
    columns = [columns] if isinstance(columns, str) else list(columns)
    keep = [keep] if isinstance(keep, str) else columns if keep is None else list(keep)
    if names is None:
        names = [f"calibrated_{label}" for label in calibrator.classes_]
    parts = check_table(table, dialect)
    for argument, given, expected in (
        ("columns", columns, calibrator.n_features_in_),
        ("names", names, len(calibrator.classes_)),
    ):
        if len(given) != expected:
            raise ValueError(
                f"{argument}: the calibrator has {expected}, got {len(given)}: {', '.join(given)}."
            )
    _check_distinct([*keep, *names])
    if is_grouped(calibrator) != (group is not None):
        fix = "has groups: name their column" if group is None else "was fitted without groups"
        raise ValueError(f"group: the calibrator {fix}.")
    writer = SqlWriter(dialect, taken=[*keep, *names, *parts, *([group] if group else [])])
    found = None if group is None else writer.find(group, calibrator.groups_.tolist())
    calibrated = write_map(writer, calibrator, writer.read(columns), found)
    return writer.query(parts, keep, dict(zip(names, calibrated, strict=True)))


def check_table(table: str | Sequence[str], dialect: str) -> list[str]:
    """Parts of the name of a table; refuses what is none, and unknown dialects."""
    parts = table.split(".") if isinstance(table, str) else list(table)
    if dialect not in DIALECTS:
        raise ValueError(f"dialect: expected one of {', '.join(DIALECTS)}, got {dialect!r}.")
    if not 1 <= len(parts) <= 3 or not all(parts):
        raise ValueError(f"table: expected [[catalog.]schema.]table, got {table!r}.")
    return parts


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


class SqlWriter(Writer[Node]):
    """Columns are expressions; those that are used again are named in stages of the query.

    Each stage is a common table expression that adds named columns to those of the stage before.
    """

    def __init__(self, dialect: Dialect, taken: Sequence[str]) -> None:
        self._dialect = dialect
        self._stages: list[dict[str, Node]] = []
        self._stage_of: dict[str, int] = {}
        self._prefix = "isoroc_"
        while any(name.lower().startswith(self._prefix) for name in taken):
            self._prefix += "_"

    def read(self, columns: Sequence[str]) -> list[Node]:
        """Columns of the table as doubles."""
        return self.keep(double(column(name)) for name in columns)

    def find(self, name: str, values: list[str]) -> tuple[Node, Node]:
        """Place of each entry of a column among texts, -1 for others, and whether there is one."""
        text = nodes.cast(column(name), "text")
        equal = [nodes.EQ(this=text.copy(), expression=nodes.Literal.string(v)) for v in values]
        ways = [(condition, integer(place)) for place, condition in enumerate(equal)]
        places = case(ways, integer(-1)) if ways else integer(-1)
        known = nodes.Not(this=nodes.Is(this=column(name), expression=nodes.Null()))
        place, there = self.keep([places, known])
        return place, there

    def query(self, table: list[str], keep: list[str], outputs: dict[str, Node]) -> str:
        """The whole statement as text."""
        return str(self.select(table, keep, outputs).sql(dialect=self._dialect, pretty=True))

    def select(self, table: list[str], keep: list[str], outputs: dict[str, Node]) -> Any:
        """The whole statement."""
        source = nodes.table_(*reversed(table), quoted=True)  # type: ignore[misc,arg-type]
        handed_on = [column(name) for name in keep]
        before: list[Node] = handed_on
        stages = []
        for number, columns in enumerate(self._stages):
            stage = nodes.select(*before, *_named(columns)).from_(source)
            # Merging a stage into the next one would repeat its expressions wherever they are
            # used. An offset, be it of nothing, keeps the two planners that do so from it.
            if self._dialect == "sqlite":
                stage = stage.limit(integer(-1))
            if self._dialect in ("postgres", "sqlite"):
                stage = stage.offset(integer(0))
            name = nodes.to_identifier(f"{self._prefix}stage_{number}", quoted=True)
            stages.append((name, stage))
            source, before = nodes.Table(this=name.copy()), [nodes.Star()]
        query = nodes.select(*handed_on, *_named(outputs)).from_(source)
        for name, stage in stages:
            query = query.with_(name, as_=stage, copy=False)
        return query

    def keep(self, columns: Iterable[Node]) -> list[Node]:
        return [self._keep(expression) for expression in columns]

    def _keep(self, expression: Node) -> Node:
        used = {found.name for found in expression.find_all(nodes.Column)}
        if isinstance(expression, nodes.Column) or not used:
            return expression
        stage = 1 + max(self._stage_of.get(name, -1) for name in used)
        name = f"{self._prefix}{len(self._stage_of)}"
        self._stage_of[name] = stage
        if stage == len(self._stages):
            self._stages.append({})
        self._stages[stage][name] = expression
        return column(name)

    def number(self, value: float) -> Node:
        if math.isnan(value):
            return nodes.Null()
        return fraction(value) if self._dialect == "sqlite" else decimal(value)

    def add(self, a: Node, b: Node) -> Node:
        return arithmetic(nodes.Add, a.copy(), b.copy())

    def subtract(self, a: Node, b: Node) -> Node:
        return arithmetic(nodes.Sub, a.copy(), b.copy())

    def multiply(self, a: Node, b: Node) -> Node:
        return arithmetic(nodes.Mul, a.copy(), b.copy())

    def divide(self, a: Node, b: Node) -> Node:
        return arithmetic(nodes.Div, a.copy(), b.copy())

    def absolute(self, a: Node) -> Node:
        return nodes.Abs(this=a.copy())

    def sqrt(self, a: Node) -> Node:
        return nodes.Sqrt(this=a.copy())

    def floor(self, a: Node) -> Node:
        return double(nodes.Floor(this=a.copy()))  # an integer in Spark

    def log(self, a: Node) -> Node:
        return nodes.Ln(this=a.copy())

    def exp(self, a: Node) -> Node:
        [a] = self.keep([a])
        tiny = self.at_most(a, self.number(_TINY))
        return self.where(tiny, self.number(0.0), nodes.Exp(this=a.copy()))

    def at_most(self, a: Node, b: Node) -> Node:
        return nodes.LTE(this=a.copy(), expression=b.copy())

    def both(self, a: Node, b: Node) -> Node:
        return nodes.And(this=a.copy(), expression=b.copy())

    def where(self, condition: Node, a: Node, b: Node) -> Node:
        return case([(condition.copy(), a.copy())], b.copy())

    def maximum(self, a: Node, b: Node) -> Node:
        return self._greatest([a, b])

    def largest(self, columns: Sequence[Node]) -> tuple[Node, Node]:
        columns = self.keep(columns)
        [largest] = self.keep([self._greatest(columns)])
        ways = [
            (nodes.EQ(this=own.copy(), expression=largest.copy()), integer(k))
            for k, own in enumerate(columns[:-1])
        ]
        return largest, case(ways, integer(len(ways)))

    def _greatest(self, columns: Sequence[Node]) -> Node:
        # By name: sqlglot would guard its own GREATEST against NULLs, which do not come here.
        name = "MAX" if self._dialect == "sqlite" else "GREATEST"
        return nodes.Anonymous(this=name, expressions=[a.copy() for a in columns])

    def is_at(self, place: Node, number: int) -> Node:
        return nodes.EQ(this=place.copy(), expression=integer(number))

    def locate(self, cuts: Floats, score: Node) -> Node:
        [score] = self.keep([score])
        return choose(
            [integer(place) for place in range(len(cuts) + 1)],
            lambda place: self.at_most(score, self.number(cuts[place])),
        )

    def look_up(self, table: Floats, place: Node) -> list[Node]:
        [at] = self.keep([place])
        return [
            choose(
                [self.number(value) for value in values],
                lambda place: self.at_most(at, integer(place)),
            )
            for values in table.T
        ]

    def route(self, tree: BinTree, columns: Sequence[Node]) -> Node:
        columns = self.keep(columns)
        # Bins are written as their places, nodes at which the walk has to go on as -node.
        place_of = {int(node): place for place, node in enumerate(tree.bins)}
        unfinished: list[int] = []

        def walk(node: int, depth: int = 0) -> Node:
            if node in place_of:
                return integer(place_of[node])
            if depth == _DEPTH:
                unfinished.append(node)
                return integer(-node)
            split = tree.split_of_node[node]
            kept = np.flatnonzero(tree.children[split] >= 0)
            margins = [
                self.subtract(columns[k], self.number(tree.thresholds[split, k])) for k in kept
            ]
            *below, last = [walk(int(child), depth + 1) for child in tree.children[split, kept]]
            # The first region whose margin no later one exceeds: no earlier one does either, as
            # each of them was exceeded by a later one.
            return case([(_none_exceeds(margins[i:]), way) for i, way in enumerate(below)], last)

        place = walk(0)
        while unfinished:
            waiting = unfinished.copy()
            unfinished.clear()
            [at] = self.keep([place])
            ways = [(self.is_at(at, -node), walk(node)) for node in waiting]
            place = case(ways, at.copy(), flat=False)
        return place


def _named(columns: dict[str, Node]) -> list[Node]:
    return [nodes.alias_(expression, name, quoted=True) for name, expression in columns.items()]


def _none_exceeds(margins: list[Node]) -> Node:
    """Whether the first margin is at least as large as the others."""
    first, *others = margins
    return nodes.and_(*(nodes.GTE(this=first.copy(), expression=o.copy()) for o in others))
