"""``isoroc report``: one page about forecasts before and after calibration."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import isoroc
from isoroc._cli.comparing import read_compared
from isoroc._cli.errors import CommandError
from isoroc._cli.io.files import PAGE, check_target, open_source, write_bytes
from isoroc._cli.io.reading import are_countable, load_counts, read_counts
from isoroc._cli.io.source import Source
from isoroc._cli.models import Model, select_for
from isoroc._cli.options import (
    ALL_ROWS,
    Force,
    Forecasts,
    OptionalModel,
    Output,
    Resamples,
    Selection,
)
from isoroc._cli.terminal import print_exact, print_note, print_text
from isoroc._evaluation.evaluate import check_options
from isoroc._report.report import Report


def report(
    forecasts: Forecasts,
    /,
    *,
    model: OptionalModel = None,
    output: Output | None = None,
    selection: Selection = ALL_ROWS,
    force: Force = False,
    counts: bool = False,
    title: str | None = None,
    json: bool = False,
    resamples: Resamples = 200,
) -> None:
    """Write a report: one self-contained HTML page.

    Parameters
    ----------
    output
        HTML file to write.
    counts
        The files hold counts, of isoroc count or of a warehouse, instead of rows.
    title
        Title of the page. Default: the name of the file of forecasts.
    json
        Print the summary of the report as JSON.
    """
    if output is None and not json:
        raise CommandError("name the page with -o report.html, or print its summary with --json.")
    if output is not None:
        check_target(output, [model, *forecasts], PAGE, force=force)
        if Path(output).suffix.lower() not in ("", ".html", ".htm"):
            raise CommandError(f"{output}: a report is a page; expected a name that ends in .html.")
    check_options(0.95, resamples, 0)
    options: dict[str, Any] = {"model_path": model or "model.json", "n_resamples": resamples}
    if counts and selection != ALL_ROWS:
        raise CommandError("--counts: rows and columns were chosen when they were counted.")
    if counts:
        name = forecasts[0]
        options |= _of_model(None if model is None else Model.load(model, isoroc.load))
        make: Callable[..., Report] = partial(Report.from_counts, load_counts(forecasts))
    else:
        with open_source(forecasts, selection) as source:
            name = source.name
            make, of_model = _read(source, selection, model)
        options |= of_model
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
        expected = model.of_fit()
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
