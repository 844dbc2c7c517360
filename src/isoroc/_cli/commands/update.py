"""``isoroc update``: let an online calibrator learn from rows whose labels have arrived."""

import inspect
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import isoroc
from isoroc._cli import options as opt
from isoroc._cli.errors import CommandError
from isoroc._cli.io.columns import check_column
from isoroc._cli.io.opening import open_source
from isoroc._cli.io.writing import check_target
from isoroc._cli.models import Model, make_calibrator, save_model
from isoroc._cli.reading import open_rows
from isoroc._cli.terminal import print_json, print_note, print_table, print_text
from isoroc._counts import hash_rows, name_of
from isoroc._input import Sample, Weighting
from isoroc._input.kinds import columns_of
from isoroc._support.files import locked


def update(
    state: str,
    forecasts: opt.Tables,
    /,
    *,
    create: bool = False,
    selection: opt.Selection = opt.ALL_ROWS,
    weighting: Weighting = "importance",
    time: str | None = None,
    served: str | None = None,
    batch: str | None = None,
    plot: str | None = None,
    json: opt.Json = False,
    **parameters: str,
) -> None:
    """Let an online calibrator learn from rows whose labels have arrived.

    Parameters
    ----------
    state
        State of the calibrator: a model file that this command writes, and other commands read.
    create
        Begin a new state if there is no such file.
    weighting
        Meaning of the weights: `frequency` if a weight is a number of rows, `importance` if only
        the ratios of weights matter.
    time
        Column of dates or numbers, if half-lives are in days or in units of these numbers.
    served
        File with the earlier state that forecast these rows. Default: the present state did.
    batch
        Name of these rows, such as a date. Default: a hash of forecasts, outcomes, weights and
        times. Rows of a name that was counted before are skipped.
    plot
        Picture of weights and losses over time to write, such as history.png.
    parameters
        Parameters of a new state, such as --half-lives "[null, 4000]" --share 0.001.
    """
    if selection.labels:
        raise CommandError("--labels: an online calibrator has classes; use --label.")
    check_target(state, forecasts, "a model")
    if plot is not None:
        check_target(plot, [state, served, *forecasts], "other data")
    with locked(state):
        exists = Path(state).exists()
        if not exists and not create:
            raise CommandError(f"{state}: no such file; --create begins a new state.")
        calibrator, model = _load(state) if exists else (_make(parameters), None)
        if exists and parameters:
            given = ", ".join(f"--{name}" for name in parameters)
            raise CommandError(f"{given}: {state} exists and keeps its parameters; leave them out.")
        before = calibrator.weights_.tolist() if exists else None
        with open_source(forecasts, selection) as source:
            sample, times, origin = _read(source, selection, model, time)
        key = _name(sample, times) if batch is None else batch
        counted = calibrator.seen_.get(key) if exists else None
        if counted is None:
            earlier = None if served is None else Model.load(served).calibrator
            _absorb(calibrator, sample, weighting, time=times, served=earlier, batch=key)
            save_model(calibrator, state, origin)
        else:
            print_note(f"{source.name}: skipped, counted on {counted} already.")
    if plot is not None:
        isoroc.plots.OnlineDisplay.from_estimator(calibrator).figure_.savefig(plot)
    _show(calibrator, before, counted, json=json)


def _load(state: str) -> tuple[Any, Model]:
    """The online calibrator of a state file."""
    model = Model.load(state, isoroc.load)
    if not isinstance(model.calibrator, isoroc.OnlineCalibrator):
        kind = type(model.calibrator).__name__
        raise CommandError(f"{state}: holds {kind}; name the state of an online calibrator.")
    return model.calibrator, model


def _make(parameters: dict[str, str]) -> Any:
    known = [*inspect.signature(update).parameters, *(f.name for f in fields(opt.ALL_ROWS))]
    options = [name for name in known if name not in ("forecasts", "selection", "parameters")]
    return make_calibrator("online", parameters, options)


def _read(
    source: Any, selection: opt.Selection, model: Model | None, time: str | None
) -> tuple[Sample, Any, dict[str, Any]]:
    """Rows, their times, and where they come from."""
    if model is not None and selection.unit == "auto":
        selection = replace(selection, unit=model.calibrator.unit_)
    if time is not None:
        check_column("--time", time, source.schema)
    reader = open_rows(source, selection, model)
    sample, column = reader.read_with(time)
    origin = {"files": source.names[:100], "label": reader.chosen.label, "columns": reader.columns}
    origin |= {"weight_column": reader.chosen.weight}
    return sample, None if column is None else _times(column), origin


def _name(sample: Sample, times: Any) -> str:
    """A name for rows that depends on their content, but not on their order."""
    from isoroc._calibrators.online import read_times  # noqa: PLC0415  # slow to import

    columns = columns_of(sample.forecasts)
    if sample.weights is not None:  # also shares of soft labels
        columns = np.column_stack([columns, sample.weights])
    numbers, _ = read_times(times, sample)
    if numbers is not None:
        columns = np.column_stack([columns, numbers])
    return name_of(hash_rows(columns, sample.codes))


def _times(column: pl.Series) -> Any:
    """Numbers or dates of a column. From text files, numbers are parsed and dates stay text."""
    numbers = column.cast(pl.Float64, strict=False) if column.dtype == pl.String else column
    if column.dtype == pl.String and numbers.null_count():
        return column.to_numpy()
    return numbers.to_numpy()


def _absorb(calibrator: Any, sample: Sample, weighting: Weighting, **options: Any) -> None:
    from isoroc._calibrators.online import absorb_sample  # noqa: PLC0415  # slow to import

    absorb_sample(calibrator, sample, weighting, **options)


def _show(calibrator: Any, before: Any, counted: str | None, *, json: bool) -> None:
    """Print what has changed."""
    bound = calibrator.regret_bound_
    last = {name: column[-1].item() for name, column in calibrator.history_.items()}
    if json:
        entries = {"rows": calibrator.n_rows_seen_, "counted_before": counted, "batch": last}
        entries |= {"weights": calibrator.weights_, "weights_before": before}
        entries |= {"half_lives": calibrator.half_lives_, "regret_bound": vars(bound)}
        entries |= {"change": calibrator.describe(), "checksum": calibrator.checksum}
        print_json("update", entries)
        return
    names = list(last)[2 : 2 + len(calibrator.members_)]
    weights = [[""] * len(names) if before is None else [f"{w:.3f}" for w in before]]
    weights.append([f"{w:.3f}" for w in calibrator.weights_])
    rows = [
        [name, *shown, f"{last[name]:.4f}"] for name, *shown in zip(names, *weights, strict=True)
    ]
    rows.append(["as served", "", "", f"{last['served']:.4f}"])
    title = f"{calibrator.n_rows_seen_:,} rows so far"
    columns = ["member", "weight before", "weight now", "log loss of these rows"]
    print_table(title, columns, rows, numeric=True)
    print_text(calibrator.describe())
    print_text(f"Log loss: {bound}.")
