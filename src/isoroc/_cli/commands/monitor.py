"""``isoroc monitor``: whether calibrated forecasts are still right on new rows."""

from contextlib import nullcontext
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

import isoroc
from isoroc._cli.commands.apply import Calibration, find_columns
from isoroc._cli.errors import CommandError, ExitCode
from isoroc._cli.io.files import STATE, check_picture, check_target, open_source, write_picture
from isoroc._cli.io.reading import Comparison
from isoroc._cli.models import Model
from isoroc._cli.options import ALL_ROWS, Force, Forecasts, Json, ModelFile, Selection
from isoroc._cli.terminal import print_json, print_note, print_table, print_text, print_warning
from isoroc._core.types import Floats
from isoroc._evaluation.monitor import (
    Alternatives,
    Batch,
    BatchReport,
    CalibrationMonitor,
    hash_rows,
)
from isoroc._support.files import locked
from isoroc.metrics._estimation.cell_errors import OUTSIDE, TOLERATED, share_outside

#: Metrics that are expected of rows, and the number of rows that they are computed from at most.
EXPECTED, MOST_ROWS = ("accuracy", "log_loss", "f1", "auc"), 20_000


def monitor(
    model: ModelFile,
    forecasts: Forecasts,
    /,
    *,
    state: str | None = None,
    again: bool = False,
    unlabelled: bool = False,
    selection: Selection = ALL_ROWS,
    tolerance: float | None = None,
    confidence: float = 0.95,
    plot: str | None = None,
    force: Force = False,
    json: Json = False,
) -> ExitCode:
    """Test whether calibrated forecasts are still right on new rows.

    Parameters
    ----------
    state
        File that keeps the evidence of earlier runs. It is created if it does not exist or is
        empty, and begun anew with every new model.
    again
        Count rows even if the state has them already. By default such rows are skipped.
    unlabelled
        The rows have no labels yet: print what the forecasts expect, and leave the state alone.
    tolerance
        Miscalibration to put up with, in nats per row. Default: twice the number of classes
        divided by the number of calibration rows. An existing state keeps its own.
    confidence
        Probability of never raising a false alarm. An existing state keeps its own.
    plot
        Picture of all batches over time to write: a .png, .svg or .pdf file.
    """
    if plot is not None:
        kind = check_picture("--plot", plot, [model, state, *forecasts], force=force)
    if state is not None:
        check_target(state, [model, *forecasts], STATE, force=force)
    loaded = Model.load(model)
    if selection.weight is not None:
        raise CommandError("--weight: monitoring counts rows; leave the weights out.")
    if unlabelled:
        _show_expected(loaded, forecasts, selection, confidence, json=json)
        return ExitCode.OK
    begun = CalibrationMonitor(loaded.calibrator, confidence=confidence, tolerance=tolerance)
    with open_source(forecasts, selection) as source:
        comparison, name = Comparison(source, selection, loaded), source.name
        rows, key, right, some = _sum_up(comparison, begun.alternatives)
    with nullcontext() if state is None else locked(state):
        found = _load(state, begun)
        counted = found.seen_.get(key)
        if counted is None or again:
            batch = found.add(rows, key if counted is None else None)
        else:
            print_note(f"{name}: skipped, counted on {counted} already; --again counts it again.")
            options: Any = {"confidence": found.confidence, "tolerance": found.tolerance}
            batch = CalibrationMonitor(found.classes_, **options).add(rows)
        if state is not None:
            found.save(state)
    if plot is not None:
        display = isoroc.plots.MonitorDisplay.from_monitor(found, figsize=(7, 6.6))
        write_picture(display.figure_, plot, kind, [model, *forecasts])
    forecast = _expect(some, loaded.calibrator, confidence)
    if json:
        entries: dict[str, Any] = {"alarm": found.alarm_, "advice": found.advice_}
        entries |= {"batch": vars(batch), "total": vars(found.report())}
        entries |= {"counted_before": None if again else counted, "tolerance": found.tolerance}
        print_json("monitor", entries | {"confidence": found.confidence, "expected": forecast})
    else:
        _show(found, batch, forecast["accuracy"] | {"right": right})
    return ExitCode.OK if found.alarm_ is None else ExitCode.CHECK_FAILED


def _sum_up(comparison: Comparison, alternatives: Alternatives) -> tuple[Batch, str, float, Floats]:
    """Sums over the rows, a name for them, the accuracy, and calibrated forecasts of some rows."""
    reader = comparison.reader
    share, rng = MOST_ROWS / reader.n_rows, np.random.default_rng(0)
    sums, keys, some, n_right = list[Batch](), np.zeros(2, np.uint64), list[Floats](), 0
    for compared in comparison.stream() if reader.are_many else [comparison.read()]:
        before, Q = compared["before"], compared["after"].forecasts
        sums.append(Batch.of(Q, before.codes, alternatives))
        keys += hash_rows(before.forecasts, before.codes)
        n_right += int(np.count_nonzero(Q.argmax(axis=1) == before.codes))
        some.append(Q[rng.random(len(Q)) < share])
    key = "{:016x}{:016x}".format(*keys.tolist())
    return reduce(add, sums), key, n_right / reader.n_rows, np.concatenate(some)


def _show_expected(
    model: Model, forecasts: list[str], selection: Selection, confidence: float, *, json: bool
) -> None:
    """Print what the forecasts of rows without labels expect."""
    with open_source(forecasts, selection) as source:
        columns = find_columns(model, selection, source)
        n, Q = Calibration(source, model, columns, {}, selection.where).draw(MOST_ROWS)
    found = _expect(Q, model.calibrator, confidence)
    if json:
        print_json("monitor", {"rows": n, "expected": found})
        return
    shown = "{value:.4f}", "{low:.4f} to {high:.4f}"
    lines = [
        [metric.replace("_", " "), *(text.format(**found[metric]) for text in shown)]
        for metric in EXPECTED
    ]
    interval = f"{100 * confidence:g} % interval"
    print_table(f"{n:,} rows without labels", ["", "expected", interval], lines, numeric=True)


def _expect(Q: Floats, calibrator: Any, confidence: float) -> dict[str, Any]:
    """Expected metrics with intervals; warns of forecasts unlike those of the calibration."""
    summary = calibrator.summary_
    found: dict[str, Any] = {}
    for metric in EXPECTED:
        rows: Any = {"calibration": summary.get("weight") or None, "confidence": confidence}
        result = isoroc.metrics.expected(Q, metric, **rows)
        found[metric] = {"value": result.value, "low": result.low, "high": result.high}
    if cells := summary.get("forecast_cells"):
        found["outside"] = share_outside(Q, np.asarray(cells, dtype=np.float64))
        if found["outside"] > TOLERATED:
            print_warning(OUTSIDE.format(found["outside"]))
    return found


def _load(state: str | None, begun: CalibrationMonitor) -> CalibrationMonitor:
    """Monitor of a state file that belongs to the same model, otherwise a new one."""
    if state is None or not Path(state).exists() or not Path(state).stat().st_size:
        return begun
    if (found := CalibrationMonitor.load(state)).model == begun.model:
        return found
    print_note(f"{state}: begun anew, as it had evidence about another model.")
    return begun


def _show(found: CalibrationMonitor, batch: BatchReport, accuracy: dict[str, float]) -> None:
    reports = batch, found.report()
    shown = {
        "rows": [f"{each.rows:,}" for each in reports],
        "evidence, nats": [f"{each.evidence:.2f}" for each in reports],
        "log loss": [f"{each.log_loss:.4f}" for each in reports],
        "log loss promised": [f"{each.promised:.4f}" for each in reports],
        "calibration error": [
            f"{each.calibration_error:.4f} ({each.error_low:.4f} to {each.error_high:.4f})"
            for each in reports
        ],
    }
    for k, name in enumerate(found.classes_):
        ends = ((each.shares["low"][k], each.shares["high"][k]) for each in reports)
        shown[f"share of {name!s}, observed - forecast"] = [
            f"{(low + high) / 2:+.4f} ± {(high - low) / 2:.4f}" for low, high in ends
        ]
    rows = [[name, *figures] for name, figures in shown.items()]
    print_table("calibration on new rows", ["", "these rows", "all rows"], rows, numeric=True)
    if found.alarm_ is not None:
        print_text(f"Alarm, first raised after {found.alarm_:,} rows.")
    advice = {
        "nothing": "Keep the calibrator: there is no evidence that it is wrong.",
        "adapt priors": "Class shares have changed: apply with --adapt-prior, or fit again.",
        "refit": "The forecasts are no longer calibrated: fit again on recent rows.",
    }
    print_text(advice[found.advice_])
    line = "Expected accuracy {value:.4f} ({low:.4f} to {high:.4f}), observed {right:.4f}."
    print_text(line.format(**accuracy))
