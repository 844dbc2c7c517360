"""Counts of dataframes, by expressions that their own engines run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw

from isoroc._checks import check_row, check_score
from isoroc._counts.builders import Parts, check_folds
from isoroc._counts.cells import MOST_ENTRIES, check_entries
from isoroc._counts.files import from_long
from isoroc._counts.grid import (
    MOST_EXACT,
    Grid,
    Resolution,
    default_resolution,
    write_cells,
    write_fold,
    write_key_fold,
)
from isoroc._input import InputError
from isoroc._writer import Arithmetic

#: Rows in which too many distinct forecasts show that they cannot all be kept.
_GLANCE = 4 * MOST_EXACT
#: Rows of polars that are added up at a time.
_BATCH = 2**20


class Column(NamedTuple):
    """An expression, and after which stage of the query it can be computed."""

    expression: nw.Expr
    stage: int


class FrameArithmetic(Arithmetic[Column]):
    """Columns are expressions of narwhals; what is used again becomes a column of a stage.

    Each stage is one `with_columns`, which every engine runs as it is.
    """

    def __init__(self) -> None:
        self._stages: list[dict[str, nw.Expr]] = []
        self._n_kept = 0

    def read(self, name: str) -> Column:
        """A column of the dataframe."""
        return Column(nw.col(name), 0)

    def number(self, value: float) -> Column:
        return Column(nw.lit(value, nw.Float64()), 0)

    def add(self, a: Column, b: Column) -> Column:
        return Column(a.expression + b.expression, max(a.stage, b.stage))

    def subtract(self, a: Column, b: Column) -> Column:
        return Column(a.expression - b.expression, max(a.stage, b.stage))

    def multiply(self, a: Column, b: Column) -> Column:
        return Column(a.expression * b.expression, max(a.stage, b.stage))

    def divide(self, a: Column, b: Column) -> Column:
        return Column(a.expression / b.expression, max(a.stage, b.stage))

    def absolute(self, a: Column) -> Column:
        return Column(a.expression.abs(), a.stage)

    def sqrt(self, a: Column) -> Column:
        return Column(a.expression.sqrt(), a.stage)

    def floor(self, a: Column) -> Column:
        [a] = self.keep([a])
        return Column(a.expression.floor().cast(nw.Float64()), a.stage)  # an integer in Spark

    def at_most(self, a: Column, b: Column) -> Column:
        return Column(a.expression <= b.expression, max(a.stage, b.stage))

    def both(self, a: Column, b: Column) -> Column:
        return Column(a.expression & b.expression, max(a.stage, b.stage))

    def where(self, condition: Column, a: Column, b: Column) -> Column:
        chosen = nw.when(condition.expression).then(a.expression).otherwise(b.expression)
        return Column(chosen, max(condition.stage, a.stage, b.stage))

    def largest(self, columns: Sequence[Column]) -> tuple[Column, Column]:
        # One level of expressions: planners that merge stages would repeat a chain of choices.
        columns = self.keep(columns)
        stage = max(column.stage for column in columns)
        largest = nw.max_horizontal(*(column.expression for column in columns))
        [best] = self.keep([Column(largest, stage)])
        place = nw.lit(float(len(columns) - 1), nw.Float64())
        for k, column in reversed(list(enumerate(columns[:-1]))):
            found = nw.lit(float(k), nw.Float64())
            is_best = column.expression == best.expression
            place = nw.when(is_best).then(found).otherwise(place)
        return best, Column(place, best.stage)

    def is_at(self, place: Column, number: int) -> Column:
        return Column(place.expression == float(number), place.stage)

    def keep(self, columns: Iterable[Column]) -> list[Column]:
        return [self._keep(column) for column in columns]

    def _keep(self, column: Column) -> Column:
        while len(self._stages) <= column.stage:
            self._stages.append({})
        name = f"isoroc_{self._n_kept}"
        self._n_kept += 1
        self._stages[column.stage][name] = column.expression
        return Column(nw.col(name), column.stage + 1)

    def run_on(self, frame: Any, outputs: dict[str, Column]) -> Any:
        """The dataframe with the outputs as columns, and without those of the stages."""
        for stage in self._stages:
            if stage:
                frame = frame.with_columns(**stage)
        added = frame.with_columns(**{name: c.expression for name, c in outputs.items()})
        return added.drop(*(name for stage in self._stages for name in stage))


def count_frame(
    df: Any,
    probs: list[str],
    label: str,
    *,
    weight: str | None,
    labels: Any,
    resolution: Resolution,
    n_folds: int,
    fold_by: str | None,
) -> Parts:
    """What `Counts` of a dataframe are made of."""
    check_folds(n_folds)
    grid = Grid.choose(len(probs), resolution)
    frame = _elementwise(_select(nw.from_native(df), probs, label, weight, fold_by), _normalise)
    _check_rows(frame, len(probs), weighted=weight is not None, keyed=fold_by is not None)
    if resolution == "auto" and grid.exact and not _are_few(frame, len(probs)):
        grid = Grid.choose(len(probs), default_resolution(2))
    keyed = fold_by is not None
    placed = _elementwise(frame, lambda part: _place(part, grid, n_folds, keyed=keyed))
    keys = ["fold", *grid.names, "label"]
    added = ["rows", "weight", *(f"sum_{k}" for k in range(len(probs)))]
    table = _add_up(placed.select(*keys, *added), keys, added)
    check_entries(len(table))
    return from_long(table, grid, n_folds, labels, tuple(probs))


def _add_up(frame: Any, keys: list[str], added: list[str]) -> Any:
    """Sums of columns for each combination of keys, collected.

    Dask would shuffle all rows between workers, and start again whenever one of them is lost. So
    there each partition is added up by itself, then these sums, a few at a time. The memory of a
    lazy group-by of polars grows with the rows, so there it is batches.
    """
    totals = [nw.col(name).sum() for name in added]
    if frame.implementation.is_polars() and hasattr(frame.to_native(), "collect_batches"):
        parts: list[Any] = []
        for batch in frame.to_native().collect_batches(chunk_size=_BATCH):
            parts.append(nw.from_native(batch).group_by(*keys).agg(*totals))
            if sum(map(len, parts[1:])) > max(len(parts[0]), _BATCH):
                parts = [nw.concat(parts).group_by(*keys).agg(*totals)]
                check_entries(len(parts[0]))
        return nw.concat(parts).group_by(*keys).agg(*totals)
    if not frame.implementation.is_dask():
        return _collect(frame.group_by(*keys).agg(*totals).head(MOST_ENTRIES + 1))

    def of_part(part: Any) -> Any:
        return part.groupby(keys, as_index=False, sort=False, observed=True)[added].sum()

    steps = {"chunk": of_part, "combine": of_part, "aggregate": of_part}
    summed = frame.to_native().reduction(**steps, split_every=8)
    return nw.from_native(summed.compute(), eager_only=True)


def _elementwise(frame: Any, step: Callable[[Any], Any]) -> Any:
    """A dataframe with new columns that depend on their own row only.

    Dask takes seconds to plan hundreds of expressions, so there pandas runs them, partition by
    partition.
    """
    if not frame.implementation.is_dask():
        return step(frame)

    def of_part(part: Any) -> Any:
        return step(nw.from_native(part)).to_native()

    return nw.from_native(frame.to_native().map_partitions(of_part))


def _normalise(frame: Any) -> Any:
    """Forecasts as `predict_proba` sees them, and whether it would take them."""
    w = FrameArithmetic()
    columns = [w.read(name) for name in frame.collect_schema().names() if name.startswith("p_")]
    if len(columns) == 1:
        columns, good = check_score(w, columns[0], unit=True)
    else:
        columns, good = check_row(w, columns)
    named = {f"q_{k}": column for k, column in enumerate(columns)}
    return w.run_on(frame, named | {"good": good})


def _select(frame: Any, probs: list[str], label: str, weight: str | None, key: str | None) -> Any:
    """The columns that are needed, under names of our own."""
    known = frame.collect_schema().names()
    given: dict[str, list[Any]] = {
        "probs": list(probs),
        "label": [label],
        "weight": [weight],
        "fold_by": [key],
    }
    for argument, names in given.items():
        if missing := [name for name in names if name is not None and name not in known]:
            fix = f"there are {', '.join(map(str, known))}"
            raise InputError(argument, None, f"no column {missing[0]!r}", fix)
    chosen = {f"p_{k}": nw.col(name).cast(nw.Float64()) for k, name in enumerate(probs)}
    chosen["label"] = nw.col(label)
    if weight is not None:
        chosen["weight"] = nw.col(weight).cast(nw.Float64())
    if key is not None:
        if not frame.collect_schema()[key].is_integer():
            fix = "expected whole numbers; hash other keys to integers first"
            raise InputError("fold_by", None, f"{key} is not a column of integers", fix)
        chosen["key"] = nw.col(key).cast(nw.Float64())
    return frame.select(*(expression.alias(name) for name, expression in chosen.items()))


def _check_rows(frame: Any, n_columns: int, *, weighted: bool, keyed: bool) -> None:
    """Refuse a dataframe with bad rows: one aggregate query, and one more for an example."""
    one, zero = nw.lit(1, nw.Int64()), nw.lit(0, nw.Int64())
    tests = {"probs": nw.col("good"), "label": ~nw.col("label").is_null()}
    if weighted:
        tests["weight"] = (nw.col("weight") >= 0.0) & (nw.col("weight") <= 1e100)
    if keyed:
        tests["fold_by"] = ~nw.col("key").is_null()
    bad = {f"bad_{name}": nw.when(test).then(zero).otherwise(one) for name, test in tests.items()}
    flagged = frame.with_columns(**bad, row=one)
    sums = [nw.col(name).sum() for name in (*bad, "row")]
    found = _collect(flagged.select(*sums)).to_dict(as_series=False)
    n_rows = found["row"][0]
    if not n_rows:
        raise InputError("df", None, "no rows", "at least one is needed")
    columns = {"probs": [f"p_{k}" for k in range(n_columns)], "label": ["label"]}
    columns |= {"weight": ["weight"], "fold_by": ["key"]}
    for name in tests:
        if n_bad := int(found[f"bad_{name}"][0]):
            shown = _collect(
                flagged.filter(nw.col(f"bad_{name}") == 1).select(*columns[name]).head(1)
            )
            values = ", ".join(str(v[0]) for v in shown.to_dict(as_series=False).values())
            fix = {
                "probs": "expected probabilities that sum to one; filter such rows out first",
                "label": "labels must be known; filter such rows out first",
                "weight": "weights must be 0 or between 1e-100 and 1e+100",
                "fold_by": "row keys must be known",
            }[name]
            problem = f"{n_bad} of {int(n_rows)} rows are bad, such as {values}"
            raise InputError(name, None, problem, fix)


def _are_few(frame: Any, n_columns: int) -> bool:
    """Whether there are so few distinct forecasts that all can be kept."""
    names = [f"q_{k}" for k in range(n_columns)]
    for some in (frame.head(_GLANCE), frame):
        distinct = some.select(*names).unique().with_columns(one=nw.lit(1, nw.Int64()))
        count = _collect(distinct.select(nw.col("one").sum())).to_dict(as_series=False)
        if int(count["one"][0]) > MOST_EXACT:
            return False
    return True


def _place(frame: Any, grid: Grid, n_folds: int, *, keyed: bool) -> Any:
    """Cell and fold of each row, and what is added up."""
    w = FrameArithmetic()
    columns = [w.read(f"q_{k}") for k in range(grid.n_columns)]
    outputs = dict(zip(grid.names, write_cells(w, columns, grid), strict=True))
    if n_folds == 1:
        outputs["fold"] = w.number(0.0)
    elif keyed:
        outputs["fold"] = write_key_fold(w, w.read("key"), n_folds)
    else:
        outputs["fold"] = write_fold(w, columns, n_folds)
    frame = w.run_on(frame, outputs)
    weighted = "weight" in frame.collect_schema().names()
    weight = nw.col("weight") if weighted else nw.lit(1.0, nw.Float64())
    sums = {f"sum_{k}": nw.col(f"q_{k}") * weight for k in range(grid.n_columns)}
    whole = [] if grid.exact else grid.names
    return frame.with_columns(
        **sums,
        **{name: nw.col(name).cast(nw.Int64()) for name in (*whole, "fold")},
        weight=weight,
        rows=nw.lit(1, nw.Int64()),
    )


def _collect(frame: Any) -> Any:
    return frame.collect() if isinstance(frame, nw.LazyFrame) else frame
