"""``isoroc export``: a model file as ONNX or SQL."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import Parameter

from isoroc import export as room
from isoroc._cli.errors import CommandError
from isoroc._cli.io.columns import split_words
from isoroc._cli.io.files import naming, output_path
from isoroc._cli.io.streams import STANDARD
from isoroc._cli.models import Model
from isoroc._cli.terminal import note, say


def export(
    model: str,
    /,
    *,
    onnx: str | None = None,
    sql: str | None = None,
    table: str = "forecasts",
    probs: Annotated[list[str] | None, Parameter(alias="-p", negative=())] = None,
    keep: Annotated[list[str] | None, Parameter(negative=())] = None,
    names: Annotated[list[str] | None, Parameter(negative=())] = None,
    input_type: Literal["double", "float"] = "double",
    output: Annotated[str, Parameter(alias="-o")] = STANDARD,
) -> None:
    """Turn a model file into ONNX or SQL.

    Parameters
    ----------
    model
        Model file of isoroc fit.
    onnx
        ONNX file to write.
    sql
        Dialect of SQL: bigquery, duckdb, postgres, snowflake, spark, sqlite.
    table
        Table of forecasts that the SQL query reads.
    probs
        Its columns of forecasts, in the order of the classes; by default those of the fit.
    keep
        Its columns that the query hands on; by default the forecasts.
    names
        Names of the calibrated columns in the query.
    input_type
        Type of the ONNX model's input.
    output
        File for the SQL query; by default standard output.
    """
    if (onnx is None) == (sql is None):
        raise CommandError("name what to export to: --onnx FILE, or --sql DIALECT.")
    loaded = Model.load(model)
    if onnx is not None:
        _write(onnx, room.to_onnx(loaded.calibrator, input_type=input_type).SerializeToString())
        note(f"{onnx}: input forecasts (N, {loaded.calibrator.n_features_in_}), output calibrated")
        return
    columns = split_words(probs) or loaded.columns
    if columns is None:
        raise CommandError(f"{model}: does not name its columns; name the table's with --probs.")
    options: dict[str, Any] = {"dialect": sql, "table": table}
    options |= {"keep": split_words(keep), "names": split_words(names)}
    query = room.to_sql(loaded.calibrator, columns, **options)
    if output == STANDARD:
        say(query.rstrip())
    else:
        _write(output, f"{query.rstrip()}\n".encode())


def _write(target: str, data: bytes) -> None:
    with naming(target), output_path(target) as path:
        path.write_bytes(data)
