"""Counts of dataframes, by expressions that their own engines run."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw

from isoroc._backends.columns import ColumnOps, Columns, Scalars
from isoroc._backends.ops import OPERATORS, Function
from isoroc._counts.cells import MOST_ENTRIES, check_entries
from isoroc._counts.files import StoredCounts, from_long
from isoroc._counts.grid import MOST_EXACT, Grid, cells, check_folds, fold
from isoroc._input import WEIGHT_FIX, InputError, valid_weights
from isoroc._input.kinds import kind_of


class Column(NamedTuple):
    """An expression, and the stage of the query after which it can be computed."""

    expression: nw.Expr
    stage: int = 0
    is_kept: bool = False
    is_number: bool = False


class _FrameScalars(Scalars[Column]):
    """Columns are narwhals expressions. Those used more than once become columns of a stage.

    Each stage is one `with_columns`.
    """

    def __init__(self) -> None:
        self.stages: list[dict[str, nw.Expr]] = []

    def keep(self, column: Column) -> Column:
        if column.is_kept:
            return column
        while len(self.stages) <= column.stage:
            self.stages.append({})
        name = f"isoroc_{sum(map(len, self.stages))}"
        self.stages[column.stage][name] = column.expression
        return Column(nw.col(name), column.stage + 1, is_kept=True)

    def number(self, value: float) -> Column:
        return Column(nw.lit(value, nw.Float64()), is_kept=True, is_number=True)

    def function(self, name: Function, a: Column) -> Column:
        if name == "floor":
            a = self.keep(a)
            return Column(a.expression.floor().cast(nw.Float64()), a.stage)  # an integer in Spark
        return Column(getattr(a.expression, "abs" if name == "absolute" else name)(), a.stage)

    def binary(self, operator: str, a: Column, b: Column) -> Column:
        second = b.expression
        if operator == "/" and b.is_number:
            # Polars multiplies by the reciprocal of a constant, which rounds twice.
            second = second + 0.0 * a.expression
        return Column(OPERATORS[operator](a.expression, second), max(a.stage, b.stage))

    def where(self, condition: Column, a: Column, b: Column) -> Column:
        chosen = nw.when(condition.expression).then(a.expression).otherwise(b.expression)
        return Column(chosen, max(condition.stage, a.stage, b.stage))

    def extreme(self, name: Function, columns: Sequence[Column]) -> Column:
        # One level of expressions: planners that merge stages would duplicate nested choices.
        expressions, stages, *_ = zip(*map(self.keep, columns), strict=True)
        function = nw.max_horizontal if name == "maximum" else nw.min_horizontal
        return Column(function(*expressions), max(stages))


class FrameOps(ColumnOps[Column]):
    scalars: _FrameScalars

    def __init__(self) -> None:
        super().__init__(_FrameScalars())

    def read(self, names: Sequence[str]) -> Columns[Column]:
        return self.vector([Column(nw.col(name), is_kept=True) for name in names])

    def run_on(self, frame: Any, names: Sequence[str], *vectors: Columns[Column]) -> Any:
        """The dataframe with the columns of some vectors, by their names."""
        columns = self.concat(vectors).columns()
        last = {name: column.expression for name, column in zip(names, columns, strict=True)}
        for stage in (*self.scalars.stages, last):
            frame = frame.with_columns(**stage)
        return frame.drop(*(name for stage in self.scalars.stages for name in stage))


def count_frame(
    df: Any, probs: list[str], names: dict[str, Any], labels: Any, *, resolution: Any, folds: int
) -> StoredCounts:
    """Parts of the counts of a dataframe. `names` has the columns label, weight and fold_by."""
    check_folds(folds)
    grid = Grid.choose(len(probs), resolution)
    frame = _elementwise(_select(nw.from_native(df), probs, names), _normalise)
    _check_rows(frame, len(probs))
    if resolution == "auto" and grid.exact and not _are_few(frame, len(probs)):
        grid = grid.coarser()
    placed = _elementwise(frame, lambda part: _place(part, grid, folds))
    keys = ["fold", *grid.names, "label"]
    table = _add_up(placed.select(*keys, *grid.added), keys, grid.added)
    check_entries(len(table))
    return from_long(table, grid, folds, labels, tuple(probs))


def _add_up(frame: Any, keys: list[str], added: list[str], size: int = 2**20) -> Any:
    """Sums of columns for each combination of keys, collected.

    Dask would shuffle all rows between workers, and start again whenever a worker is lost. So each
    partition is added up first, then the sums, a few at a time. The memory of a lazy group-by of
    polars grows with the rows, so polars adds up batches of `size` rows.
    """
    totals = [nw.col(name).sum() for name in added]
    if frame.implementation.is_polars() and hasattr(frame.to_native(), "collect_batches"):
        parts: list[Any] = []
        for batch in frame.to_native().collect_batches(chunk_size=size):
            parts.append(nw.from_native(batch).group_by(*keys).agg(*totals))
            if sum(map(len, parts[1:])) > max(len(parts[0]), size):
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
    """A dataframe with new columns that depend on their own row only."""
    if not frame.implementation.is_dask():
        return step(frame)

    def of_part(part: Any) -> Any:  # Dask takes seconds to plan hundreds of expressions
        return step(nw.from_native(part)).to_native()

    return nw.from_native(frame.to_native().map_partitions(of_part))


def _normalise(frame: Any) -> Any:
    """Clean forecasts, and whether they and the weights are valid."""
    ops = FrameOps()
    given = frame.collect_schema().names()
    names = [name for name in given if name.startswith("p_")]
    X, good = kind_of(len(names)).clean(ops, ops.read(names))
    weighed = valid_weights(ops, ops.read(["weight"]))
    outputs = [*(f"q_{k}" for k in range(len(names))), "good", "good_weight"]
    return ops.run_on(frame, outputs, X, good, weighed)


def _select(frame: Any, probs: list[str], names: dict[str, str | None]) -> Any:
    """The columns that are needed, under fixed names."""
    schema = frame.collect_schema()
    for argument, name in [*(("probs", name) for name in probs), *names.items()]:
        if name is not None and name not in schema:
            fix = f"there are {', '.join(map(str, schema.names()))}"
            raise InputError(argument, None, f"no column {name!r}", fix)
    chosen = {f"p_{k}": nw.col(name).cast(nw.Float64()) for k, name in enumerate(probs)}
    chosen["label"] = nw.col(str(names["label"]))
    weight = nw.lit(1.0) if names["weight"] is None else nw.col(names["weight"])
    chosen["weight"] = weight.cast(nw.Float64())
    if (key := names["fold_by"]) is not None:
        if not schema[key].is_integer():
            fix = "expected whole numbers; hash other keys to integers first"
            raise InputError("fold_by", None, f"{key} is not a column of integers", fix)
        chosen["key"] = nw.col(key).cast(nw.Float64())
    return frame.select(*(expression.alias(name) for name, expression in chosen.items()))


def _check_rows(frame: Any, n_columns: int) -> None:
    """Raise an error for bad rows: one aggregate query, and one more for an example."""
    probs = [f"p_{k}" for k in range(n_columns)]
    leave_out = "filter such rows out first"
    sums = f"expected probabilities that sum to one; {leave_out}"
    tests = {
        "probs": (probs, nw.col("good"), sums),
        "label": (["label"], ~nw.col("label").is_null(), f"labels must be known; {leave_out}"),
        "weight": (["weight"], nw.col("good_weight"), WEIGHT_FIX),
    }
    if "key" in frame.collect_schema().names():
        tests["fold_by"] = (["key"], ~nw.col("key").is_null(), "row keys must be known")
    one = nw.lit(1, nw.Int64())
    zero = nw.lit(0, nw.Int64())
    bad = {f"bad_{name}": nw.when(t).then(zero).otherwise(one) for name, (_, t, _) in tests.items()}
    flagged = frame.with_columns(**bad, row=one)
    totals = _first(flagged.select(*(nw.col(name).sum() for name in (*bad, "row"))))
    if not totals["row"]:
        raise InputError("df", None, "no rows", "at least one is needed")
    for name, (columns, _, fix) in tests.items():
        if n_bad := int(totals[f"bad_{name}"]):
            some = _first(flagged.filter(nw.col(f"bad_{name}") == 1).select(*columns).head(1))
            values = ", ".join(map(str, some.values()))
            problem = f"{n_bad} of {int(totals['row'])} rows are bad, such as {values}"
            raise InputError(name, None, problem, fix)


def _are_few(frame: Any, n_columns: int) -> bool:
    """Whether the distinct forecasts are few enough for an exact grid."""
    names = [f"q_{k}" for k in range(n_columns)]
    for some in (frame.head(4 * MOST_EXACT), frame):
        distinct = some.select(*names).unique().with_columns(one=nw.lit(1, nw.Int64()))
        if int(_first(distinct.select(nw.col("one").sum()))["one"]) > MOST_EXACT:
            return False
    return True


def _place(frame: Any, grid: Grid, n_folds: int) -> Any:
    ops = FrameOps()
    X = ops.read([f"q_{k}" for k in range(grid.n_columns)])
    key = ops.read(["key"]) if "key" in frame.collect_schema().names() else None
    places = cells(ops, X, grid), fold(ops, X, n_folds, key)
    frame = ops.run_on(frame, [*grid.names, "fold"], *places)
    weight = nw.col("weight")
    added = {f"sum_{k}": nw.col(f"q_{k}") * weight for k in range(grid.n_columns)}
    whole = ["fold"] if grid.exact else ["fold", *grid.names]
    added |= {name: nw.col(name).cast(nw.Int64()) for name in whole}
    added |= {"weight_squared": weight * weight, "rows": nw.lit(1, nw.Int64())}
    return frame.with_columns(**added)


def _first(frame: Any) -> dict[str, Any]:
    return {name: v[0] for name, v in _collect(frame).to_dict(as_series=False).items()}


def _collect(frame: Any) -> Any:
    return frame.collect() if isinstance(frame, nw.LazyFrame) else frame
