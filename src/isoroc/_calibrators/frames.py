"""Calibrated forecasts as new columns of a dataframe, on the engine that it belongs to."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.utils.validation import check_is_fitted

from isoroc._input import InputError, check_names, valid_rows


def predict_frame(
    calibrator: Any, df: Any, probs: str | Sequence[str], names: Sequence[str] | None
) -> Any:
    """What `predict_frame` of a calibrator returns."""
    check_is_fitted(calibrator, "map_")
    frame = nw.from_native(df)
    given = frame.collect_schema().names()
    probs = check_names("probs", probs)
    names = check_names("names", names or [f"calibrated_{label}" for label in calibrator.classes_])
    _check_columns(calibrator, given, probs, names)
    add = partial(add_columns, calibrator=calibrator, probs=probs, names=names)
    if isinstance(frame, nw.DataFrame):
        return add(df)
    engine = frame.implementation
    if engine.is_polars():
        new = dict.fromkeys(names, frame.__native_namespace__().Float64)
        return df.map_batches(add, schema=dict(df.collect_schema()) | new, streamable=True)
    if engine.is_dask():
        return df.map_partitions(add)
    if engine.is_pyspark() or engine.is_pyspark_connect():
        return _map_spark(df, add, names, connect=engine.is_pyspark_connect())
    if engine.is_duckdb():
        from isoroc.export._sql import write_query  # noqa: PLC0415  # sqlglot is optional

        outputs = {name: k for k, name in enumerate(names)}
        table = "isoroc_frame"
        query = write_query(calibrator, probs, outputs, dialect="duckdb", table=[table], keep=given)
        return df.query(table, query)
    raise InputError("df", None, f"dataframes of {engine} are not supported")


def _check_columns(calibrator: Any, given: list[str], probs: list[str], names: list[str]) -> None:
    """Check that the dataframe has the columns to read and none of those to add."""
    n_features = calibrator.n_features_in_
    n_classes = len(calibrator.classes_)
    for argument, columns, expected in ("probs", probs, n_features), ("names", names, n_classes):
        if len(columns) != expected or len(set(columns)) < expected:
            problem = f"{', '.join(columns)}, but the calibrator has {expected}"
            raise InputError(argument, None, problem, "pass that many different names")
    segments = calibrator.map_.segments
    for argument, column in [*(("probs", name) for name in probs), *(("df", s) for s in segments)]:
        if column not in given:
            raise InputError(argument, None, f"the dataframe has no column {column!r}")
    if taken := [name for name in names if name in given]:
        raise InputError("names", None, f"the dataframe already has a column {taken[0]!r}")


def add_columns(df: Any, calibrator: Any, probs: list[str], names: list[str]) -> Any:
    """An eager dataframe with calibrated forecasts, NaN where `predict_proba` raises an error."""
    frame = nw.from_native(df, eager_only=True)
    numbers = frame.select(nw.col(*probs).cast(nw.Float64())).to_numpy().astype(np.float64)
    P = numbers[:, 0] if len(probs) == 1 else numbers
    good = valid_rows(P, calibrator.map_.kind)
    segments = list(calibrator.map_.segments)
    Q = np.full((len(P), len(names)), np.nan)
    if good.any():  # partitions may be empty
        further = {}
        if segments:
            further["segments"] = frame.select(segments).filter(good.tolist()).to_native()
        Q[good] = calibrator.predict_proba(P[good], **further)
    columns = dict(zip(names, Q.T, strict=True))
    if frame.implementation.is_pandas_like():  # positions, not the index, match rows
        return df.assign(**columns)
    backend = frame.__native_namespace__()
    series = [nw.new_series(*column, nw.Float64(), backend=backend) for column in columns.items()]
    return frame.with_columns(*series).to_native()


def _map_spark(df: Any, add: Callable[[Any], Any], names: list[str], *, connect: bool) -> Any:
    schema = type(df.schema)(list(df.schema.fields))  # `add` would change the dataframe
    for name in names:
        schema = schema.add(name, "double")

    def each(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415  # on the machines of the cluster

        for batch in batches:
            yield from add(pa.Table.from_batches([batch])).to_batches()

    session = df.sparkSession
    is_set = "PYSPARK_PYTHON" in os.environ or session.conf.get("spark.pyspark.python", None)
    if is_set or connect or not session.sparkContext.master.startswith("local"):
        return df.mapInArrow(each, schema)
    # On this machine Spark would run the first `python3` that it finds, which may lack isoroc.
    context = session.sparkContext
    before = session.sparkContext.pythonExec
    context.pythonExec = sys.executable
    try:
        return df.mapInArrow(each, schema)
    finally:
        context.pythonExec = before
