"""``isoroc export``: convert a model file to ONNX or SQL."""

from typing import Annotated, Any, Literal

from cyclopts import Parameter

import isoroc
from isoroc._cli import options as opt
from isoroc._cli.errors import CommandError
from isoroc._cli.io.columns import split_words
from isoroc._cli.io.writing import check_target, write_bytes
from isoroc._cli.models import Model, load_rule
from isoroc._cli.terminal import print_exact, print_note


def export(
    model: opt.ModelFile,
    /,
    *,
    onnx: str | None = None,
    sql: str | None = None,
    table: str = "forecasts",
    probs: Annotated[list[str] | None, Parameter(alias="-p")] = None,
    keep: list[str] | None = None,
    suffix: opt.Suffix = opt.SUFFIX,
    names: opt.CalibratedNames = None,
    replace: bool = False,
    segments: list[str] | None = None,
    view: str | None = None,
    input_type: Literal["double", "float"] = "double",
    label: bool = False,
    rule: opt.UseRule = None,
    golden: str | None = None,
    output: opt.Output = opt.STANDARD,
) -> None:
    """Convert a model file to ONNX or SQL.

    Parameters
    ----------
    onnx
        ONNX file to write.
    sql
        SQL dialect: bigquery, clickhouse, datafusion, duckdb, mysql (also MariaDB), polars,
        postgres, redshift, snowflake, spark, sqlite, trino, tsql (SQL Server).
    table
        Table of forecasts that the query reads.
    probs
        Columns of that table in the order of the model's classes. Default: the columns of the fit.
    keep
        Other columns that the query returns, or * for all. Default: the forecasts.
    replace
        Return the calibrated forecasts under the names of the forecasts.
    segments
        Columns of the segments in that table, in the order of the model. Default: as in the fit.
    view
        Create a view of this name instead of returning rows.
    input_type
        Type of the input of the ONNX model.
    label
        The ONNX model also returns the class of the largest calibrated probability.
    golden
        File for a few rows with their calibrated forecasts, which check an export where it runs:
        JSON, or with --sql a query that compares them if the name ends in .sql.
    output
        File for the SQL query. Default: standard output.
    """
    if (onnx is not None and sql is not None) or (onnx is None and sql is None and golden is None):
        raise CommandError("choose the target: --onnx FILE, --sql DIALECT, or --golden FILE.")
    target, kind = (output, "a query") if onnx is None else (onnx, "an ONNX model")
    check_target(target, [model, rule], kind)
    loaded = Model.load(model)
    accepting = None if rule is None else load_rule(rule, loaded, (), ())
    if golden is not None:
        check_target(golden, [model, target], "golden rows")
        _write_golden(loaded, golden, sql, split_words(probs), split_words(segments))
    if onnx is None and sql is None:
        return
    if onnx is not None:
        graph = isoroc.export.to_onnx(
            loaded.calibrator, input_type=input_type, label=label, rule=accepting
        )
        write_bytes(onnx, graph.SerializeToString())
        ends = (graph.graph.input, graph.graph.output)
        inputs, outputs = (", ".join(tensor.name for tensor in end) for end in ends)
        print_note(f"{onnx}: takes {inputs}; returns {outputs}")
        return
    columns = split_words(probs) or loaded.columns
    if columns is None:
        raise CommandError(f"{model}: does not name its columns; name the table's with --probs.")
    if replace and names:
        raise CommandError("--replace keeps the names of the columns; leave out --names.")
    kept = split_words(keep)
    if replace and kept != ["*"]:
        kept = [name for name in kept or () if name not in columns]
    named = split_words(names) or [name if replace else f"{name}{suffix}" for name in columns]
    query = isoroc.export.to_sql(
        loaded.calibrator,
        columns,
        dialect=sql,  # type: ignore[arg-type]  # to_sql refuses others and names all
        table=table,
        keep=kept,
        names=named,
        segments=split_words(segments),
        view=view,
        rule=accepting,
    )
    if output == opt.STANDARD:
        print_exact(query)
    else:
        write_bytes(output, f"{query}\n".encode())


def _write_golden(
    model: Model,
    path: str,
    dialect: Any,
    columns: list[str] | None,
    segments: list[str] | None,
) -> None:
    """Write rows with their calibrated forecasts, or the query that compares them."""
    rows = isoroc.export.golden_rows(model.calibrator, columns or model.columns, segments=segments)
    is_query = path.endswith(".sql")
    if is_query and dialect is None:
        raise CommandError(f"--golden {path}: a query needs --sql DIALECT; or name a .json file.")
    text = rows.to_sql(dialect) if is_query else rows.to_json()
    write_bytes(path, f"{text}\n".encode())
    about = "a query that counts wrong rows" if is_query else "rows and expected forecasts"
    print_note(f"{path}: {about}")
