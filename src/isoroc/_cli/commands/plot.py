"""``isoroc plot``: reliability diagrams before and after calibration."""

import isoroc
from isoroc._cli.io.files import check_picture, open_source, write_picture
from isoroc._cli.io.reading import Comparison
from isoroc._cli.models import Model
from isoroc._cli.options import ALL_ROWS, Force, Forecasts, Output, Selection, UseModel
from isoroc._cli.terminal import print_note


def plot(
    forecasts: Forecasts,
    /,
    *,
    output: Output,
    model: UseModel = None,
    selection: Selection = ALL_ROWS,
    force: Force = False,
) -> None:
    """Draw reliability diagrams before and after calibration.

    Parameters
    ----------
    output
        Picture to write: a .png, .svg or .pdf file.
    """
    kind = check_picture("--output", output, [model, *forecasts], force=force)
    with open_source(forecasts, selection) as source:
        loaded = None if model is None else Model.load(model)
        compared = Comparison(source, selection, loaded).read()
    sample = compared["before"].on_simplex()
    display = isoroc.plots.CalibrationDisplay.from_predictions(
        sample.classes[sample.codes],
        sample.forecasts,
        after=compared["after"].forecasts if model is not None else None,
        labels=sample.classes,
        sample_weight=sample.weights,
    )
    write_picture(display.figure_, output, kind, [model, *forecasts])
    print_note(f"{output}: reliability of {len(sample):,} rows")
