"""``isoroc report``: one page about forecasts before and after calibration."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

import isoroc
from isoroc._cli.comparing import read_compared
from isoroc._cli.errors import CommandError
from isoroc._cli.io.counting import are_countable, load_counts, read_counts
from isoroc._cli.io.files import check_target, open_source, write_bytes
from isoroc._cli.io.reading import Selection
from isoroc._cli.io.source import Source
from isoroc._cli.models import Model, select_for
from isoroc._cli.terminal import print_exact, print_note, print_text
from isoroc.report import Report


def report(
    forecasts: list[str],
    /,
    *,
    model: Annotated[str | None, Parameter(alias="-m")] = None,
    output: Annotated[str | None, Parameter(alias="-o")] = None,
    selection: Selection | None = None,
    counts: bool = False,
    title: str | None = None,
    json: bool = False,
    resamples: int = 200,
) -> None:
    """Write a report: one self-contained HTML page.

    Parameters
    ----------
    forecasts
        Files, globs, folders, or - for standard input.
    model
        Model file written by isoroc fit; forecasts are shown before and after calibration.
    output
        HTML file to write.
    counts
        The files hold counts, of isoroc count or of a warehouse, instead of rows.
    title
        Title of the page. Default: the name of the file of forecasts.
    json
        Print the summary of the report as JSON.
    resamples
        How often rows are resampled for the intervals of AUC, volume and changes of order; 0 for
        none of these intervals.
    """
    if output is None and not json:
        raise CommandError("name the page with -o report.html, or print its summary with --json.")
    if output is not None:
        check_target(output, [model, *forecasts])
    if resamples < 0 or resamples == 1:
        raise CommandError(f"--resamples {resamples}: expected 0, or at least 2.")
    options: dict[str, Any] = {"model_path": model or "model.json", "n_resamples": resamples}
    if counts and selection is not None:
        raise CommandError("--counts: rows and columns were chosen when they were counted.")
    if counts:
        name = forecasts[0]
        options |= _of_model(None if model is None else Model.load(model, isoroc.load))
        make: Callable[..., Report] = partial(Report.from_counts, load_counts(forecasts))
    else:
        selection = selection or Selection()
        with open_source(forecasts, selection.format, selection.separator) as source:
            name = source.name
            make, more = _read(source, selection, model)
        options |= more
    made = make(title=title or f"Calibration report: {Path(name).name}", **options)
    if output is not None:
        page = made.to_html().encode()
        write_bytes(output, page)
        print_note(f"{output}: {len(page):,} bytes")
    if json:
        print_exact(made.to_json())
    else:
        for sentence in made.summary["verdict"]["sentences"]:
            print_text(sentence)


def _read(
    source: Source, selection: Selection, path: str | None
) -> tuple[Callable[..., Report], dict[str, Any]]:
    """Function that makes a report from the rows of a table, counted if they are many."""
    model = None if path is None else Model.load(path, isoroc.load)
    expected: dict[str, Any] = {}
    if model is not None:
        selection = select_for(model, selection, source)
        expected = {"columns": model.columns, "classes": model.calibrator.classes_}
    is_countable = model is None or model.calibrator.scores_ == "probability"
    if is_countable and are_countable(source, selection, expected.get("columns")):
        counted, columns = read_counts(source, selection, **expected)
        if model is not None:
            model.check_columns(columns.forecasts)
        return partial(Report.from_counts, counted), _of_model(model)
    sample, compared = read_compared(source, selection, path)
    make = partial(
        Report,
        sample.classes[sample.codes],
        sample.as_given() if model is not None else compared["before"].forecasts,
        after=compared["after"].forecasts if "after" in compared else None,
        labels=sample.classes,
        sample_weight=sample.weights,
    )
    return make, _of_model(model)


def _of_model(model: Model | None) -> dict[str, Any]:
    """Options of a report that a model settles."""
    return {} if model is None else {"calibrator": model.calibrator, "columns": model.columns}
