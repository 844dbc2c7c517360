"""What calibrated forecasts expect of rows, with or without labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoroc._cell_errors import count_forecasts, share_outside
from isoroc._cli.commands.apply import Calibration, find_columns
from isoroc._cli.io.files import open_source
from isoroc._cli.models import Model, calibrate
from isoroc._cli.options import Selection
from isoroc._cli.terminal import print_warning
from isoroc._input import Sample
from isoroc._simplex import Floats

METRICS = ("accuracy", "log_loss", "f1", "auc")
#: Rows on which expectations and cells are based at most, and of which more must be outside.
MOST_ROWS, TOLERATED = 20_000, 0.01
#: Entry of the summary of a model file: rows in cells of the calibrated forecasts.
CELLS = "forecast_cells"


def forecast_cells(model: Any, sample: Sample) -> dict[str, Any]:
    """Entry of a summary with which `expect` compares forecasts."""
    part = sample.draw(MOST_ROWS)
    Q = calibrate(model, part.as_given(), part.groups)
    return {CELLS: count_forecasts(Q, part.weights).tolist()}


def read_unlabelled(model: Model, forecasts: list[str], selection: Selection) -> tuple[int, Floats]:
    """Number of rows without labels, and the calibrated forecasts of some of them."""
    with open_source(forecasts, selection) as source:
        columns = find_columns(model, selection, list(source.schema()))
        return Calibration(source, model, columns, {}, selection.where).draw(MOST_ROWS)


def expect(Q: Floats, calibrator: Any, confidence: float) -> dict[str, Any]:
    """Expected metrics with intervals; warns of forecasts unlike those of the calibration."""
    from isoroc.metrics import expected  # noqa: PLC0415 -- not needed by other commands

    summary = calibrator.summary_
    if len(Q) > MOST_ROWS:
        Q = Q[np.random.default_rng(0).permutation(len(Q))[:MOST_ROWS]]
    rows: Any = {"calibration": summary.get("weight") or None, "confidence": confidence}
    found: dict[str, Any] = {}
    for metric in METRICS:
        result = expected(metric, Q, **rows)
        found[metric] = {"value": result.estimate, "low": result.low, "high": result.high}
    cells = np.asarray(summary.get(CELLS, []), dtype=np.float64)
    if len(cells):
        found["outside"] = share_outside(Q, cells)
        if found["outside"] > TOLERATED:
            print_warning(
                f"{found['outside']:.0%} of the rows have forecasts that hardly any calibration "
                "row had, so what is expected of them is a guess."
            )
    return found


def describe(found: dict[str, Any], codes: NDArray[Any] | None, Q: Floats) -> str:
    """One line about the expected accuracy, and the observed one if there are labels."""
    value = found["accuracy"]
    line = f"Expected accuracy {value['value']:.4f} ({value['low']:.4f} to {value['high']:.4f})"
    if codes is None:
        return f"{line}."
    return f"{line}, observed {np.mean(Q.argmax(axis=1) == codes):.4f}."
