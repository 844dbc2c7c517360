"""``isoroc monitor``: whether calibrated forecasts are still right on new rows."""

from contextlib import nullcontext
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import isoroc
from isoroc._cli import options as opt
from isoroc._cli.calibration import Calibration, find_columns
from isoroc._cli.errors import CommandError, ExitCode
from isoroc._cli.io.opening import open_source
from isoroc._cli.io.source import Source
from isoroc._cli.io.writing import check_target
from isoroc._cli.labels import LabelledTable, are_several, read_labelled_table
from isoroc._cli.models import Model, load_rule
from isoroc._cli.prometheus import write_metrics
from isoroc._cli.reading import Reader, open_rows
from isoroc._cli.terminal import print_json, print_note, print_table, print_text, print_warning
from isoroc._core.types import Floats
from isoroc._counts import hash_rows, name_of
from isoroc._evaluation.monitor import BatchReport, BatchSums, CalibrationMonitor
from isoroc._support.files import locked
from isoroc.metrics._estimation.cell_errors import (
    N_CELLS,
    OUTSIDE,
    TOLERATED,
    share_outside,
)

NEEDS_LABELS = "--label-shares: monitoring needs labels; use --label."
#: Expected metrics are computed from at most this many rows.
MOST_ROWS_DRAWN = 20_000


def monitor(
    model: opt.ModelFile,
    forecasts: opt.Tables,
    /,
    *,
    state: str | None = None,
    unlabelled: bool = False,
    selection: opt.Selection = opt.ALL_ROWS,
    tolerance: float | None = None,
    confidence: float = 0.95,
    name: str | None = None,
    prometheus: str | None = None,
    rule: opt.UseRule = None,
    json: opt.Json = False,
) -> ExitCode:
    """Test whether calibrated forecasts are still right on new rows.

    Parameters
    ----------
    state
        File that keeps the evidence of earlier runs. A missing or empty file, or the state of
        another model, is replaced by a new state.
    unlabelled
        The rows have no labels yet: print the metrics that the forecasts promise.
    tolerance
        Accepted miscalibration in nats per row. Default: twice the number of classes divided by
        the number of calibration rows. An existing state keeps its own.
    confidence
        Probability of never raising a false alarm. An existing state keeps its own.
    name
        Name of the model, for a model that is updated while it is monitored: evidence accumulates
        as long as the name stays the same. Default: the checksum of the model file.
    prometheus
        File for the result in the text format of Prometheus, such as metrics.prom in the folder
        that node exporter collects.
    """
    if state is not None:
        check_target(state, [model, *forecasts], "the state of a monitor")
    if prometheus is not None:
        check_target(prometheus, [model, state, *forecasts], "metrics")
    loaded = Model.load(model)
    if selection.weight is not None:
        raise CommandError("--weight: monitoring counts rows; leave the weights out.")
    if selection.label_shares:
        raise CommandError(NEEDS_LABELS)
    if unlabelled:
        _show_expected(loaded, forecasts, selection, confidence, json=json)
        return ExitCode.OK
    accepting = None if rule is None else load_rule(rule, loaded, (), ())
    begun = CalibrationMonitor(
        loaded.calibrator, confidence=confidence, tolerance=tolerance, model=name, rule=accepting
    )
    with open_source(forecasts, selection) as source:
        seen = _see(source, selection, loaded, begun)
    with nullcontext() if state is None else locked(state):
        monitored = _load(state, begun)
        counted = monitored.seen_.get(seen.key)
        if counted is None:
            batch = monitored.add(seen.rows, seen.key)
        else:
            print_note(f"{source.name}: skipped, counted on {counted} already.")
            again = CalibrationMonitor(
                loaded.calibrator,
                confidence=monitored.confidence,
                tolerance=monitored.tolerance,
                rule=monitored.rule,
            )
            batch = again.add(seen.rows)
        if state is not None:
            monitored.save(state)
    if prometheus is not None:
        write_metrics(prometheus, monitored, batch, seen.unknown)
    expected = {} if seen.some is None else _expect(seen.some, loaded, confidence)
    if json:
        entries: dict[str, Any] = {"alarm": monitored.alarm_, "advice": monitored.advice_}
        entries |= {"batch": vars(batch), "total": vars(monitored.report())}
        entries |= {"counted_before": counted, "tolerance": monitored.tolerance}
        entries |= _promise_entries(monitored) | {"unknown_segments": seen.unknown}
        print_json("monitor", entries | {"confidence": monitored.confidence, "expected": expected})
    else:
        _show(monitored, batch, seen, expected.get("accuracy"))
    broken = monitored.promise_ is not None and monitored.promise_.alarm is not None
    return ExitCode.CHECK_FAILED if broken or monitored.alarm_ is not None else ExitCode.OK


def _promise_entries(monitored: CalibrationMonitor) -> dict[str, Any]:
    """What is known about the promise of a rule, for JSON."""
    promise = monitored.promise_
    if promise is None:
        return {}
    counts = {"accepted": promise.accepted.rows, "wrong": promise.accepted.wrong}
    return {"promise": counts | {"alarm": promise.alarm, "text": str(promise)}}


class Seen(NamedTuple):
    """What the command takes from new rows."""

    rows: BatchSums
    key: str  # names the rows, whatever their order
    accuracy: float
    unknown: dict[str, float]  # share of the rows whose segment is unknown, by column
    some: Floats | None = None  # calibrated forecasts of some rows, None for several labels


def _see(source: Source, selection: opt.Selection, model: Model, begun: CalibrationMonitor) -> Seen:
    """What the command takes from the rows of a table."""
    if are_several(selection, model):
        table = read_labelled_table(source, selection, model, opt.UNDESCRIBED)
        return _sum_up_labels(table, model.calibrator)
    return _sum_up(open_rows(source, selection, model), begun)


def _sum_up(reader: Reader, begun: CalibrationMonitor) -> Seen:
    """Sums over the rows, whose labels exclude each other."""
    if reader.chosen.label is None:  # the model was fitted to shares
        raise CommandError(NEEDS_LABELS)
    share = MOST_ROWS_DRAWN / reader.n_rows
    rng = np.random.default_rng(0)
    sums = list[BatchSums]()
    keys = np.zeros(2, np.uint64)
    some = list[Floats]()
    n_right = 0
    for compared in reader.stream() if reader.are_many else [reader.read()]:
        before = compared["before"]
        Q = compared["after"].forecasts
        sums.append(BatchSums.of(Q, before.codes, begun.alternatives, begun.rule))
        keys += hash_rows(before.forecasts, before.codes)
        n_right += int(np.count_nonzero(Q.argmax(axis=1) == before.codes))
        some.append(Q[rng.random(len(Q)) < share])
    n = reader.n_rows
    unknown = {name: count / n for name, count in reader.unknown.items()}
    return Seen(reduce(add, sums), name_of(keys), n_right / n, unknown, np.concatenate(some))


def _sum_up_labels(table: LabelledTable, calibrator: Any) -> Seen:
    """Sums over the entries of rows with several labels."""
    Q = calibrator.predict_proba(table.P)
    known = ~np.isnan(table.Y)
    right = ((Q > 0.5) == table.Y)[known].mean()
    key = name_of(hash_rows(table.P, np.where(known, table.Y, -1.0)))
    return Seen(BatchSums.of_labels(Q, table.Y), key, float(right), {})


def _show_expected(
    model: Model, forecasts: list[str], selection: opt.Selection, confidence: float, *, json: bool
) -> None:
    """Print the metrics to expect on rows without labels, given their forecasts."""
    if not model.calibrator.map_.kind.exclusive:
        problem = "labels of a row may depend on each other, so no interval is known"
        raise CommandError(f"--unlabelled: {problem}; wait for the labels.")
    with open_source(forecasts, selection) as source:
        columns = find_columns(model, selection, source)
        n, Q = Calibration(source, model, columns, {}, selection.where).draw(MOST_ROWS_DRAWN)
    expected = _expect(Q, model, confidence)
    if json:
        print_json("monitor", {"rows": n, "expected": expected})
        return
    expected.pop("outside", None)
    cells = "{value:.4f}", "{low:.4f} to {high:.4f}"
    lines = [
        [metric.replace("_", " "), *(cell.format(**figure) for cell in cells)]
        for metric, figure in expected.items()
    ]
    head = ["", "expected", f"{100 * confidence:g} % interval"]
    print_table(f"{n:,} rows without labels", head, lines, numeric=True)


def _expect(Q: Floats, model: Model, confidence: float) -> dict[str, Any]:
    """Expected metrics with intervals. Warns if forecasts are unlike the calibration forecasts."""
    summary = model.calibrator.summary_
    weight = summary.get("weight") or None
    expected: dict[str, Any] = {}
    for metric in ("accuracy", "log_loss", "f1", "auc"):
        result = isoroc.metrics.expected(Q, metric, calibration=weight, confidence=confidence)
        expected[metric] = {name: getattr(result, name) for name in ("value", "low", "high")}
    if cells := summary.get("forecast_cells"):
        if len(cells) != N_CELLS:
            problem = f"summary.forecast_cells: expected {N_CELLS} numbers, got {len(cells)}"
            raise CommandError(f"{model.path}: {problem}; fit the model again.")
        expected["outside"] = share_outside(Q, np.asarray(cells, dtype=np.float64))
        if expected["outside"] > TOLERATED:
            print_warning(OUTSIDE.format(expected["outside"]))
    return expected


def _load(state: str | None, begun: CalibrationMonitor) -> CalibrationMonitor:
    """Monitor of a state file that belongs to the same model, otherwise a new one."""
    if state is None or not Path(state).exists() or not Path(state).stat().st_size:
        return begun
    stored = CalibrationMonitor.load(state)
    if stored.model != begun.model:
        print_note(f"{state}: started again, because its evidence is about another model.")
        return begun
    if begun.rule is None and stored.rule is not None:
        raise CommandError(f"{state}: watches the promise of a rule; name it with --rule.")
    stored.watch(begun.rule)
    return stored


def _show(
    monitored: CalibrationMonitor, batch: BatchReport, seen: Seen, accuracy: dict[str, float] | None
) -> None:
    reports = batch, monitored.report()
    figures = {
        "rows": "{0.rows:,}",
        "evidence, nats": "{0.evidence:.2f}",
        "log loss": "{0.log_loss:.4f}",
        "log loss promised": "{0.promised:.4f}",
        "calibration error": "{0.calibration_error:.4f} ({0.error_low:.4f} to {0.error_high:.4f})",
    }
    rows = [[name, *(text.format(each) for each in reports)] for name, text in figures.items()]
    for k, name in enumerate(monitored.classes_):
        ends = ((each.shares["low"][k], each.shares["high"][k]) for each in reports)
        cells = (f"{(low + high) / 2:+.4f} ± {(high - low) / 2:.4f}" for low, high in ends)
        rows.append([f"share of {name!s}, observed - forecast", *cells])
    print_table("calibration on new rows", ["", "these rows", "all rows"], rows, numeric=True)
    if monitored.alarm_ is not None:
        print_text(f"Alarm, first raised after {monitored.alarm_:,} rows.")
    for name, share in seen.unknown.items():
        if share:
            print_text(f"Segments of {name} are missing or unknown to fit in {share:.1%} of rows.")
    shares = "Label" if monitored.multilabel else "Class"
    adapt = "fit again" if monitored.multilabel else "apply with --adapt-prior, or fit again"
    advice = {
        "nothing": "Keep the calibrator: there is no evidence that it is wrong.",
        "adapt priors": f"{shares} shares have changed: {adapt}.",
        "refit": "The forecasts are no longer calibrated: fit again on recent rows.",
    }
    print_text(advice[monitored.advice_])
    if monitored.promise_ is not None:
        print_text(str(monitored.promise_))
    if accuracy is not None:
        line = "Expected accuracy {value:.4f} ({low:.4f} to {high:.4f}), observed {right:.4f}."
        print_text(line.format(**accuracy, right=seen.accuracy))
