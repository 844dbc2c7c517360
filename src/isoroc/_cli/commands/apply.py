"""``isoroc apply``: add calibrated forecasts to a table, batch by batch."""

from __future__ import annotations

from functools import partial

from isoroc._cli.calibrating import (
    CalibrationStep,
    ModelRows,
    OnBad,
    Predict,
    predict_for_shares,
)
from isoroc._cli.errors import CommandError
from isoroc._cli.io.columns import (
    SUFFIX,
    arrange_for_model,
    check_column,
    find_forecasts,
    split_words,
)
from isoroc._cli.io.files import TABLE, check_target, open_source, write_frame
from isoroc._cli.io.formats import output_format as choose_format
from isoroc._cli.io.types import parse_types
from isoroc._cli.models import Model, calibrate
from isoroc._cli.options import EVERYTHING, Force, Forecasts, InputOptions, ModelFile, Output
from isoroc._cli.terminal import log_note, print_warning, progress_bar


def apply(
    model: ModelFile,
    forecasts: Forecasts,
    /,
    *,
    output: Output,
    selection: InputOptions = EVERYTHING,
    force: Force = False,
    suffix: str = SUFFIX,
    names: list[str] | None = None,
    replace: bool = False,
    type: list[str] | None = None,  # noqa: A002
    on_bad: OnBad = "fail",
    prior: list[str] | None = None,
    adapt_prior: bool = False,
    output_format: str | None = None,
) -> None:
    """Add calibrated forecasts to a table.

    Parameters
    ----------
    output
        File to write, or - for standard output.
    suffix
        Ending of the names of the calibrated columns.
    names
        Names of the calibrated columns in the order of the model's classes, instead of --suffix.
    replace
        Replace the forecasts by the calibrated forecasts. The output may then be the input.
    type
        Types of other columns of text, such as id=int,day=date: int, float, bool, date, datetime,
        timestamp.
    on_bad
        What happens to rows without a valid forecast: `fail` ends the command and writes nothing,
        `null` leaves the calibrated columns of such rows empty, `skip` leaves the rows out.
    prior
        Adjust the forecasts to a population with these class shares, such as cat=0.3,dog=0.7.
    adapt_prior
        Estimate the class shares of the rows, and adjust the forecasts to them.
    output_format
        Format of the output, if it does not follow from its name. Default: that of the input.
    """
    inputs = [model, *([] if replace else forecasts)]
    check_target(output, inputs, TABLE, force=force)
    if replace and names:
        raise CommandError("--replace keeps the names of the columns; leave out --names.")
    loaded = Model.load(model)
    with open_source(forecasts, selection) as source:
        form = choose_format(output, output_format, source.format)
        schema = source.schema()
        given = list(schema)
        columns = find_columns(loaded, selection, given)
        added = _name_columns(columns, loaded, given, suffix, split_words(names), replace=replace)
        if loaded.group is not None:
            check_column("the model's column of groups", loaded.group, given)
        types, where = parse_types(type, schema, columns), selection.where
        rows = ModelRows(source, loaded.calibrator, columns, loaded.group, where, on_bad, types)
        predict: Predict = partial(calibrate, loaded.calibrator)
        if prior is not None or adapt_prior:
            predict = predict_for_shares(rows, prior, adapt=adapt_prior)
        with progress_bar("calibrating", None if where else source.count()) as advance:
            step = CalibrationStep(rows, predict, added, advance)
            write_frame(step.run(form), output, form)
    log_note(f"{output}: {sum(step.bad.n_all):,} rows calibrated by {model}")
    if step.bad.found:
        print_warning(step.bad.describe(on_bad))


def find_columns(model: Model, selection: InputOptions, given: list[str]) -> list[str]:
    """Columns that a model is applied to, in the order in which it takes them."""
    found = find_forecasts(selection.probs, given, of_model=model.columns)
    model.check_columns(found)
    classes = model.calibrator.classes_.tolist()
    named = split_words(selection.classes)
    return arrange_for_model(found, classes, model.columns, named, selection)


def _name_columns(
    columns: list[str],
    model: Model,
    given: list[str],
    suffix: str,
    names: list[str] | None,
    *,
    replace: bool,
) -> dict[str, int]:
    """Names of the calibrated columns, and the class whose probability each of them holds."""
    K = len(model.calibrator.classes_)
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
