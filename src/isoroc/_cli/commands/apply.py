"""``isoroc apply``: add calibrated forecasts to a table, batch by batch."""

from collections.abc import Collection
from functools import partial
from pathlib import Path

from isoroc._cli import options as opt
from isoroc._cli.calibration import Calibration, OnBad, find_columns
from isoroc._cli.conditions import Condition
from isoroc._cli.errors import CommandError, ExitCode
from isoroc._cli.io.columns import split_words
from isoroc._cli.io.formats import choose_format
from isoroc._cli.io.opening import open_source
from isoroc._cli.io.writing import check_target, write_frame
from isoroc._cli.models import Model, load_rule
from isoroc._cli.terminal import print_error, progress_bar


def apply(
    model: opt.ModelFile,
    forecasts: opt.Tables,
    /,
    *,
    output: opt.Output,
    selection: opt.InputOptions = opt.EVERYTHING,
    suffix: opt.Suffix = opt.SUFFIX,
    names: opt.CalibratedNames = None,
    replace: bool = False,
    on_bad: OnBad = "fail",
    prior: list[str] | None = None,
    adapt_prior: bool = False,
    output_format: str | None = None,
    rule: opt.UseRule = None,
    fail_if: list[str] | None = None,
) -> ExitCode:
    """Add calibrated forecasts to a table.

    Parameters
    ----------
    output
        File to write, or - for standard output.
    replace
        Replace the forecasts by the calibrated forecasts. The output may then be the input file, if
        there is only one and all of its rows are written.
    on_bad
        Treatment of rows without a valid forecast: `fail` writes nothing, `null` leaves their
        calibrated columns empty, `skip` leaves the rows out.
    prior
        Adjust the forecasts to a population with these class shares, such as cat=0.3,dog=0.7.
    adapt_prior
        Estimate the class shares of these rows, and adjust the forecasts to them.
    output_format
        Format of the output, if its name does not show it. Default: the format of the input.
    fail_if
        Write no file and exit with code 1 if this condition holds: "unknown > 0.5" (share of rows
        with a missing or unknown segment), "unknown.region > 0.1", "bad > 0", "rows < 1000".
    """
    conditions = [Condition.parse(text) for text in fail_if or ()]
    # The input may be replaced if no row is lost.
    whole = len(forecasts) == 1 and Path(forecasts[0]).is_file() and selection.where is None
    inputs = [] if replace and whole and on_bad != "skip" else forecasts
    check_target(output, [model, rule, *inputs], "a table")
    if replace and names:
        raise CommandError("--replace keeps the names of the columns; leave out --names.")
    if prior is not None and adapt_prior:
        raise CommandError("--prior sets class shares and --adapt-prior estimates them; use one.")
    loaded = Model.load(model)
    where = selection.where
    with open_source(forecasts, selection) as source:
        form = choose_format(output, output_format, source.format)
        columns = find_columns(loaded, selection, source)
        named = columns if replace else split_words(names)
        n_classes = len(loaded.calibrator.classes_)
        added = _name_columns(columns, n_classes, () if replace else source.schema, suffix, named)
        calibration = Calibration(source, loaded, columns, added, where, on_bad)
        if rule is not None:
            calibration.rule = load_rule(rule, loaded, named or list(added), source.schema)
        if prior is not None or adapt_prior:
            calibration.adjust(prior, adapt=adapt_prior)
        with progress_bar("calibrating", None if where else source.count()) as calibration.advance:
            failed = write_frame(
                calibration.run(form), output, form, partial(calibration.failures, conditions)
            )
    calibration.describe()
    for text in failed:
        print_error("check failed", text)
    return ExitCode.CHECK_FAILED if failed else ExitCode.OK


def _name_columns(
    columns: list[str], K: int, given: Collection[str], suffix: str, names: list[str] | None
) -> dict[str, int]:
    """Calibrated columns by name, each with the class that it belongs to."""
    if names is None:
        names = [f"{column}{suffix}" for column in columns]
    elif len(names) not in (K, len(columns)):
        raise CommandError(f"--names: expected {K} names, one for each class, got {len(names)}.")
    if taken := [name for name in names if name in given]:
        fix = "choose another --suffix or --names, or use --replace"
        raise CommandError(f"column {taken[0]!r} exists already; {fix}.")
    if len(set(names)) < len(names):
        raise CommandError(f"--names: {', '.join(names)} are not all different.")
    # One score in, one probability out.
    return dict(zip(names, range(K) if len(names) == K else [K - 1], strict=True))
