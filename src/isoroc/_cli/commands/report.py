"""``isoroc report``: a page about forecasts before and after calibration."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from isoroc._cli import options as opt
from isoroc._cli.errors import CommandError
from isoroc._cli.io.opening import open_source
from isoroc._cli.io.writing import check_target, dated_by, write_bytes
from isoroc._cli.labels import are_several, read_labelled_table
from isoroc._cli.models import Model
from isoroc._cli.reading import Reader, load_counts, open_rows
from isoroc._cli.terminal import print_exact, print_note, print_text
from isoroc._input import join_parts
from isoroc._report.report import Report


def report(
    forecasts: opt.Tables,
    /,
    *,
    model: opt.UseModel = None,
    output: opt.Output | None = None,
    selection: opt.Selection = opt.ALL_ROWS,
    counts: opt.FromCounts = False,
    description: opt.Description = opt.UNDESCRIBED,
    title: str | None = None,
    clinical: bool = False,
    json: bool = False,
) -> None:
    """Write a report: one self-contained HTML page.

    Parameters
    ----------
    output
        HTML file to write.
    title
        Title of the page. Default: the name of the file of forecasts.
    clinical
        Add the clinical panel: observed/expected ratio, intercept, slope, ICI.
    json
        Print the summary of the report as JSON.
    """
    if output is None and not json:
        raise CommandError("name the page with -o report.html, or print its summary with --json.")
    if output is not None:
        check_target(output, [model, *forecasts], "a page")
        if Path(output).suffix.lower() not in ("", ".html", ".htm"):
            raise CommandError(f"{output}: a report is a page; expected a name that ends in .html.")
    loaded = None if model is None else Model.load(model)
    if counts:
        name = forecasts[0]
        rows = load_counts(forecasts, selection, description)
        make: Callable[..., Report] = partial(Report.from_counts, rows)
    else:
        with open_source(forecasts, selection) as source:
            name = source.name
            if are_several(selection, loaded):
                table = read_labelled_table(source, selection, loaded, description)
                make = partial(Report, table.Y, table.P, multilabel=True, **table.options())
            else:
                make = _read(open_rows(source, selection, loaded), description)
    with dated_by([model, *forecasts]):
        made = make(
            calibrator=loaded and loaded.calibrator,
            title=title or f"Calibration report: {Path(name).name}",
            model_path=model or "model.json",
            clinical=clinical,
        )
    if output is not None:
        page = made.to_html().encode()
        write_bytes(output, page)
        print_note(f"{output}: {len(page):,} bytes")
    if json:
        print_exact(made.to_json())
    else:
        for sentence in made.summary["verdict"]["sentences"]:
            print_text(sentence)


def _read(reader: Reader, description: opt.Description) -> Callable[..., Report]:
    """Function that makes a report from the rows of a table, counted if they are many."""
    model = reader.model
    used = reader.segment_types(description) | (model.segments if model else {})
    clusters = description.clusters
    takes_counts = model is None or model.calibrator.unit_ == "probability"
    if takes_counts and not used and clusters is None and reader.are_countable():
        return partial(Report.from_counts, reader.count())
    compared = reader.read(used, clusters)
    sample = compared["before"]
    y = sample.classes[sample.codes]
    if sample.parts_of is not None:
        joined = {name: join_parts(part.positive()) for name, part in compared.items()}
        sample, y = joined["before"]
        compared = {name: rows for name, (rows, _) in joined.items()}
    return partial(
        Report,
        y,
        sample.as_given() if model is not None else sample.on_simplex().forecasts,
        after=compared["after"].forecasts if "after" in compared else None,
        labels=sample.classes,
        sample_weight=sample.weights,
        clusters=sample.clusters,
        segments=sample.segments,
    )
