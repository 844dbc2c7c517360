"""``isoroc apply``: add calibrated forecasts to a table, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from cyclopts import Parameter

from isoroc._cli.calibrating import CalibrationStep, ModelRows, OnBad, Predict
from isoroc._cli.errors import CommandError
from isoroc._cli.io.classes import arrange_for_model
from isoroc._cli.io.columns import SUFFIX, check_column, find_model_forecasts, split_words
from isoroc._cli.io.files import check_target, open_source, write_frame
from isoroc._cli.io.formats import output_format as choose_format
from isoroc._cli.io.types import parse_types
from isoroc._cli.models import Model, calibrate
from isoroc._cli.terminal import print_warning, progress_bar


def apply(
    model: str,
    forecasts: list[str],
    /,
    *,
    output: Annotated[str, Parameter(alias="-o")],
    probs: Annotated[list[str] | None, Parameter(alias="-p")] = None,
    classes: list[str] | None = None,
    suffix: str = SUFFIX,
    names: list[str] | None = None,
    replace: bool = False,
    type: list[str] | None = None,  # noqa: A002
    where: str | None = None,
    on_bad: OnBad = "fail",
    prior: list[str] | None = None,
    adapt_prior: bool = False,
    format: str | None = None,  # noqa: A002
    separator: str | None = None,
    output_format: str | None = None,
) -> None:
    """Add calibrated forecasts to a table.

    Parameters
    ----------
    model
        Model file written by isoroc fit.
    forecasts
        Files, globs, folders, or - for standard input.
    output
        File to write, or - for standard output.
    probs
        Columns of the forecasts. Default: those that the model was fitted on, or columns with
        usual names.
    classes
        Class of each column of --probs, if it does not follow from the names of the columns.
    suffix
        Ending of the names of the calibrated columns.
    names
        Names of the calibrated columns in the order of the model's classes, instead of --suffix.
    replace
        Replace the forecasts by the calibrated forecasts. The output may then be the input.
    type
        Types of other columns of CSV and TSV files, which are text by default, such as
        id=int,day=date: int, float, bool, date, datetime, timestamp.
    where
        Write only rows that satisfy this SQL condition: "day >= '2025-01-01'".
    on_bad
        What happens to rows without a valid forecast: `fail` ends the command and writes nothing,
        `null` leaves the calibrated columns of such rows empty, `skip` leaves the rows out.
    prior
        Adjust the forecasts to these class shares, such as cat=0.3,dog=0.7: those of a population
        that differs from the calibration rows in nothing else.
    adapt_prior
        Estimate the class shares of the rows, and adjust the forecasts to them.
    format
        Format of the input, if it follows from neither name nor content.
    separator
        Separator of the fields of CSV files, or tab. Default: it is recognised in the header.
    output_format
        Format of the output, if it does not follow from its name. Default: that of the input.
    """
    check_target(output, [model, *([] if replace else forecasts)])
    if replace and names:
        raise CommandError("--replace keeps the names of the columns; leave out --names.")
    loaded = Model.load(model)
    with open_source(forecasts, format, separator) as source:
        form = choose_format(output, output_format, source.format)
        schema = source.schema()
        given = list(schema)
        columns = _find_columns(loaded, probs, classes, given)
        added = _name_columns(
            columns, loaded.calibrator, given, suffix, split_words(names), replace=replace
        )
        if loaded.group is not None:
            check_column("the model's column of groups", loaded.group, given)
        types = parse_types(type, schema, columns)
        rows = ModelRows(source, loaded.calibrator, columns, loaded.group, where, on_bad, types)
        predict: Predict = partial(calibrate, loaded.calibrator)
        if prior is not None or adapt_prior:
            from isoroc._cli.priors import predict_for  # noqa: PLC0415

            predict = predict_for(loaded, prior, rows, adapt=adapt_prior)
        with progress_bar("calibrating", None if where else source.count()) as advance:
            step = CalibrationStep(rows, predict, added, advance)
            write_frame(step.run(typed=form.separator is None), output, form)
    if step.bad.n_rows:
        print_warning(step.bad.describe(on_bad))


def _find_columns(
    model: Model, probs: Sequence[str] | None, classes: Sequence[str] | None, given: list[str]
) -> list[str]:
    """Columns that a model is applied to, in the order in which it takes them."""
    found = find_model_forecasts(probs, given, model.columns)
    model.check_columns(found)
    return arrange_for_model(found, model.calibrator.classes_, model.columns, split_words(classes))


def _name_columns(
    columns: list[str],
    calibrator: Any,
    given: list[str],
    suffix: str,
    names: list[str] | None,
    *,
    replace: bool,
) -> dict[str, int]:
    """Names of the calibrated columns, and the class whose probability each of them holds."""
    K = len(calibrator.classes_)
    held = range(K) if len(columns) > 1 else [K - 1]  # one score in, one probability out
    if replace:
        return dict(zip(columns, held, strict=True))
    if names is None:
        names = [f"{column}{suffix}" for column in columns]
    elif len(names) == K:
        held = range(K)
    elif len(names) != len(columns):
        raise CommandError(f"--names: expected {K} names, one for each class, got {len(names)}.")
    taken = [name for name in names if name in given]
    if taken:
        raise CommandError(
            f"column {taken[0]!r} exists already; choose another --suffix or --names, or use "
            "--replace."
        )
    if len(set(names)) < len(names):
        raise CommandError(f"--names: {', '.join(names)} are not all different.")
    return dict(zip(names, held, strict=True))
