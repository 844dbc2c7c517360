"""``isoroc fit``: fit a calibrator to forecasts and outcomes, and write a model file."""

from __future__ import annotations

import inspect
from dataclasses import fields, replace
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

from isoroc._cli.errors import CommandError
from isoroc._cli.io.counting import are_countable, load_counts, read_counts
from isoroc._cli.io.files import check_target, open_source
from isoroc._cli.io.groups import read_groups
from isoroc._cli.io.reading import Columns, Selection, read_sample
from isoroc._cli.io.source import BATCH
from isoroc._cli.io.streams import STANDARD
from isoroc._cli.models import DEFAULT, calibrate, make_calibrator, make_grouped, save_model
from isoroc._cli.terminal import print_note
from isoroc._input import Sample, first_improbable
from isoroc.metrics._scores import log_losses


def fit(
    forecasts: Annotated[list[str], Parameter(negative=())],
    /,
    *,
    output: Annotated[str, Parameter(alias="-o")],
    selection: Selection | None = None,
    counts: Annotated[bool, Parameter(negative=())] = False,
    calibrator: Annotated[str, Parameter(alias="-c")] = DEFAULT,
    group: str | None = None,
    min_rows: int | None = None,
    **parameters: str,
) -> None:
    """Fit a calibrator to forecasts and outcomes.

    Parameters
    ----------
    forecasts
        Files, globs, folders, or - for standard input.
    output
        Model file to write, or - for standard output.
    counts
        The files hold counts, of isoroc count or of a warehouse, instead of rows.
    calibrator
        The calibrator to fit; isoroc calibrators lists them.
    group
        Column of groups of rows: groups that differ get maps of their own.
    min_rows
        With --group, groups of fewer rows get the map of all rows. Default: 100.
    parameters
        Parameters of the calibrator, such as --max-bins 20 --pseudocount 0.5.
    """
    check_target(output)
    selection = selection or Selection()
    model = make_calibrator(calibrator, parameters, _own_options())
    if group is not None:
        model = make_grouped(model, min_rows)
    elif min_rows is not None:
        raise CommandError("--min-rows is the least number of rows of a group; name --group too.")
    if counts:
        if group is not None:
            raise CommandError("--group: counts have no groups; fit to the rows themselves.")
        if selection != Selection():
            raise CommandError("--counts: rows and columns were chosen when they were counted.")
        counted = load_counts(forecasts)
        names = list(counted.columns or [])
        files, columns = forecasts, Columns(names, "", None)
    else:
        counted = None
        with open_source(forecasts, selection.format, selection.separator) as source:
            files = source.names
            if group is None and are_countable(source, selection):
                counted, columns = read_counts(source, selection)
            else:
                sample, columns = read_sample(source, selection)
            if group is not None:
                groups = read_groups(source, selection, group, "--group")
                sample = replace(sample, groups=groups)
    if counted is not None:
        model.fit_counts(counted)
        sample = counted.sample(per_fold=False)
    else:
        _fit(model, sample)
    loss = {"before": _log_loss(sample), "after": _log_loss(sample, model)}
    summary = {
        "files": files[:100],
        "label": columns.label or None,
        "columns": columns.forecasts or None,
        "weight_column": columns.weight,
        "group_column": group,
        "where": selection.where,
        "sample": selection.sample,
        "log_loss": loss,
    }
    save_model(model, output, summary)
    print_note(_headline(calibrator, model, output))
    for line in _details(model, sample, columns, loss):
        print_note(f"  {line}")


def _own_options() -> list[str]:
    """Options of the command itself."""
    named = [*inspect.signature(fit).parameters, *(field.name for field in fields(Selection))]
    return [name for name in named if name not in ("forecasts", "parameters", "selection")]


def _fit(model: Any, sample: Sample) -> None:
    if (sample.codes == sample.codes[0]).all():
        label = sample.classes[sample.codes[0]]
        raise CommandError(f"all rows have the label {label!s}; at least two classes are needed.")
    model.fit_validated(sample)


def _log_loss(sample: Sample, model: Any = None) -> float | None:
    """Mean log loss, before or after calibration; None if the scores are not probabilities."""
    total = weight = 0.0
    for start in range(0, len(sample), BATCH):
        part = sample.take(np.arange(start, min(start + BATCH, len(sample))))
        raw = part.on_simplex().forecasts
        P = raw if model is None else calibrate(model, part.forecasts, part.groups)
        if P.ndim == 1:
            if first_improbable(P) is not None:
                return None
            P = np.column_stack([1 - P, P])
        weights = part.row_weights()
        total += float(weights @ log_losses(P, part.codes))
        weight += float(weights.sum())
    return total / weight


def _verdicts(model: Any) -> list[str]:
    """What a calibrator says about its fit, and which groups got maps of their own."""
    grouped = getattr(model, "grouped_", False)
    common = model.common_ if grouped else model
    lines = [common.verdict_] if hasattr(common, "verdict_") else []
    if grouped:
        names = model.groups_.tolist()
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        total = model.group_scores_.n_rows
        text = f"{len(names)} of {total} groups have maps of their own"
        lines.append(f"{text}: {shown}" if names else text)
    return lines


def _headline(name: str, model: Any, output: str) -> str:
    target = "standard output" if output == STANDARD else output
    bins = ""
    if hasattr(model, "n_bins_"):
        bins = f", {model.n_bins_} bin" + ("s" if model.n_bins_ > 1 else "")
    n_rows, n_classes = model.summary_["rows"], len(model.classes_)
    return f"{target}: {name} fitted to {n_rows:,} rows, {n_classes} classes{bins}"


def _details(
    model: Any, sample: Sample, columns: Columns, loss: dict[str, float | None]
) -> list[str]:
    """How the columns were read, the verdict of the calibrator, and the log loss."""
    lines = []
    if len(columns.forecasts) == 1:
        lines.append(f"{columns.forecasts[0]} is the score of class {sample.classes[1]!s}")
    elif len(columns.forecasts) <= 12:
        pairs = zip(columns.forecasts, sample.classes, strict=True)
        lines.append("classes: " + ", ".join(f"{name} is {label!s}" for name, label in pairs))
    lines += _verdicts(model)
    before = "" if loss["before"] is None else f"{loss['before']:.4f} before, "
    lines.append(f"log loss on these rows: {before}{loss['after']:.4f} after")
    return lines
