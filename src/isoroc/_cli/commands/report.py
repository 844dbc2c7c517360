"""``isoroc report``: one page about forecasts before and after calibration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from isoroc._cli.commands.evaluate import read_compared
from isoroc._cli.errors import CommandError
from isoroc._cli.io.files import file_errors, open_source, output_path
from isoroc._cli.io.reading import Selection
from isoroc._cli.models import Model
from isoroc._cli.terminal import print_note, print_text
from isoroc.report import Report


def report(
    forecasts: Annotated[list[str], Parameter(negative=())],
    /,
    *,
    model: Annotated[str | None, Parameter(alias="-m")] = None,
    output: Annotated[str | None, Parameter(alias="-o")] = None,
    selection: Selection | None = None,
    title: str | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
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
    title
        Title of the page. Default: the name of the file of forecasts.
    json
        Print the summary of the report as JSON.
    resamples
        How often rows are resampled for the intervals; 0 for intervals of mean losses only.
    """
    if output is None and not json:
        raise CommandError("name the page with -o report.html, or print its summary with --json.")
    if resamples < 0 or resamples == 1:
        raise CommandError(f"--resamples {resamples}: expected 0, or at least 2.")
    selection = selection or Selection()
    with open_source(forecasts, selection.format) as source:
        sample, compared = read_compared(source, selection, model)
        name = source.name
    loaded = None if model is None else Model.load(model)
    made = Report(
        sample.classes[sample.codes],
        sample.forecasts if loaded is not None else compared["before"],
        calibrator=None if loaded is None else loaded.calibrator,
        Q=compared.get("after"),
        labels=sample.classes,
        sample_weight=sample.weights,
        title=title or f"Calibration report: {Path(name).name}",
        model_path=model or "model.json",
        columns=None if loaded is None else loaded.columns,
        n_resamples=resamples,
    )
    if output is not None:
        page = made.to_html().encode()
        with file_errors(output), output_path(output) as path:
            path.write_bytes(page)
        print_note(f"{output}: {len(page):,} bytes")
    if json:
        print_text(made.to_json())
    else:
        for sentence in made.summary["verdict"]["sentences"]:
            print_text(sentence)
