"""``isoroc fit``: fit a calibrator to forecasts and outcomes, and write a model file."""

import inspect
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from cyclopts import Parameter

import isoroc
from isoroc._cli.conditions import Condition
from isoroc._cli.errors import CommandError, ExitCode
from isoroc._cli.io.columns import listed, split_words
from isoroc._cli.io.files import MODEL, check_target, open_source
from isoroc._cli.io.reading import Comparison, load_counts
from isoroc._cli.io.source import BATCH
from isoroc._cli.models import DEFAULT, Model, calibrate, make_calibrator, save_model, versions
from isoroc._cli.options import (
    ALL_ROWS,
    STANDARD,
    Clusters,
    Force,
    Forecasts,
    Json,
    Output,
    Selection,
)
from isoroc._cli.terminal import print_error, print_json, print_note, print_warning
from isoroc._counts import Counts
from isoroc._evaluation.before_after import make_pair
from isoroc._input import Sample, Weighting, slices
from isoroc._maps.modelfile import read
from isoroc.metrics._estimation.cell_errors import count_forecasts

if TYPE_CHECKING:
    from isoroc._evaluation.measures import Totals


def fit(
    forecasts: Forecasts,
    /,
    *,
    output: Output,
    selection: Selection = ALL_ROWS,
    force: Force = False,
    counts: bool = False,
    weighting: Weighting = "importance",
    calibrator: Annotated[str, Parameter(alias="-c")] = DEFAULT,
    segments: list[str] | None = None,
    clusters: Clusters = None,
    compare: str | None = None,
    fail_if: list[str] | None = None,
    json: Json = False,
    **parameters: str,
) -> ExitCode:
    """Fit a calibrator to forecasts and outcomes.

    Parameters
    ----------
    output
        Model file to write, or - for standard output.
    counts
        The files hold counts, of isoroc count or of a warehouse, instead of rows.
    weighting
        What weights are: importance, of which only ratios matter, or frequency, numbers of rows.
    calibrator
        The calibrator to fit; isoroc calibrators lists them.
    segments
        Columns of segments, separated by commas: forecasts are corrected within segments.
    compare
        Another model file, whose figures are those of old in conditions.
    fail_if
        Write no model and exit with code 1 if this condition holds: "class_rows < 100",
        "gain.low <= 0", "after.log_loss > before.log_loss", "not should_calibrate".
    parameters
        Parameters of the calibrator, such as --max-bins 20 --pseudocount 0.5.
    """
    check_target(output, forecasts, MODEL, force=force)
    if json and output == STANDARD:
        raise CommandError("--json and the model cannot both be standard output; name a file.")
    conditions = [Condition.parse(text) for text in fail_if or ()]
    own = [*inspect.signature(fit).parameters, *(field.name for field in fields(Selection))]
    named = [name.replace("_", "-") for name in own if name not in ("forecasts", "parameters")]
    model = make_calibrator(calibrator, parameters, named)
    columns = split_words(segments) or []
    if columns and not isinstance(model, isoroc.SegmentCalibrator):
        model = isoroc.SegmentCalibrator(model)
    rows, origin = _read(forecasts, selection, columns, clusters, counts=counts)
    sample, counted = _fit(model, rows, weighting), isinstance(rows, Counts)
    found = _figures(model, sample, compare, counted=counted)
    failed = [text for condition in conditions if (text := condition.failure(found))]
    loss = {name: found[name]["log_loss"] for name in ("before", "after")}
    chosen = {"where": selection.where, "sample": selection.sample}
    part = sample.draw(20_000)  # where the calibrated forecasts lie, for `isoroc monitor`
    cells = count_forecasts(calibrate(model, part.as_given(), part.segments), part.weights)
    summary = origin | chosen | {"log_loss": loss, "forecast_cells": cells.tolist()}
    if not failed:
        save_model(model, output, summary)
        print_note(_headline(calibrator, model, output))
    if found["rows"] < 10:
        print_warning(f"{found['rows']} rows are too few to calibrate; collect more.")
    verdict, notes = getattr(_common(model), "verdict_", None), _notes(model, counted=counted)
    for line in (*_classes(sample, origin["columns"] or []), *notes, *_losses(found)):
        print_note(f"  {line}")
    if json:
        about = {"calibrator": calibrator, "classes": model.classes_, "notes": notes}
        about["verdict"] = verdict and verdict.to_dict()
        about |= {} if failed else {"checksum": read(output)["checksum"]}
        outcome = {"output": output, "failed": failed, "versions": versions()}
        print_json("fit", about | summary | found | outcome)
    for text in failed:
        print_error("check failed", f"{text}; {output} was not written")
    return ExitCode.CHECK_FAILED if failed else ExitCode.OK


def _read(
    files: list[str],
    selection: Selection,
    segments: list[str],
    clusters: str | None,
    *,
    counts: bool,
) -> tuple[Sample | Counts, dict[str, Any]]:
    """What a calibrator is fitted to, and where it comes from."""
    if counts:
        for option, column in (("--segments", segments), ("--clusters", clusters)):
            if column:
                raise CommandError(f"{option}: counts have none; fit to the rows themselves.")
        loaded = load_counts(files, selection)
        columns = list(loaded.columns or []) or None
        origin: dict[str, Any] = {"files": files[:100], "label": None, "columns": columns}
        return loaded, origin | {"weight_column": None}
    with open_source(files, selection) as source:
        comparison = Comparison(source, selection, None)
        reader = comparison.reader
        counted = not segments and clusters is None and reader.are_countable()
        rows = reader.count() if counted else comparison.read(segments, clusters)["before"]
        origin = {"files": source.names[:100], "label": reader.label, "columns": reader.columns}
        return rows, origin | {"weight_column": reader.weight}


def _fit(model: Any, rows: Sample | Counts, weighting: Weighting) -> Sample:
    """Fit a calibrator; returns the rows or cells that it was fitted to."""
    if isinstance(rows, Counts):
        model.fit_counts(rows, weighting=weighting)
        return rows.sample(per_fold=False)
    if (rows.codes == rows.codes[0]).all():
        problem = f"all rows have the label {rows.classes[rows.codes[0]]!s}"
        raise CommandError(f"{problem}; at least two classes are needed.")
    from isoroc._calibrators.base import fit_sample  # noqa: PLC0415  # slow to import

    fit_sample(model, rows, weighting)
    return rows


def _notes(model: Any, *, counted: bool) -> list[str]:
    """The verdict in words, and which columns shift the forecasts."""
    common, lines = _common(model), []
    if hasattr(common, "verdict_"):
        in_cells = counted or model.summary_["rows"] > common.max_cells
        lines = [f"{common.verdict_}" + ("; based on all rows, in cells" if in_cells else "")]
    if common is not model:
        names = list(dict.fromkeys(model.shifts_["column"].tolist()))
        text = f"the map with shifts by segment has weight {model.weight_:.2f}"
        lines.append(f"{text}: {listed(names)}" if names else "no column shifts the forecasts")
    return lines


def _common(model: Any) -> Any:
    """The calibrator of all rows."""
    return model.common_ if isinstance(model, isoroc.SegmentCalibrator) else model


def _headline(name: str, model: Any, output: str) -> str:
    target = "standard output" if output == STANDARD else output
    size = f"{model.summary_['rows']:,} rows, {len(model.classes_)} classes"
    if (n_bins := getattr(model, "n_bins_", None)) is not None:
        size += f", {n_bins} bin" + ("s" if n_bins > 1 else "")
    return f"{target}: {name} fitted to {size}"


def _classes(sample: Sample, columns: list[str]) -> list[str]:
    """How the columns were read."""
    if len(columns) == 1:
        return [f"{columns[0]} is the score of class {sample.classes[1]!s}"]
    pairs = [f"{name} is {label!s}" for name, label in zip(columns, sample.classes, strict=False)]
    return ["classes: " + ", ".join(pairs)] if len(columns) <= 12 else []


def _losses(found: dict[str, Any]) -> list[str]:
    before, after = (found[of]["log_loss"] for of in ("before", "after"))
    # A verdict names the loss before calibration itself.
    shown = "" if before is None or "gain" in found else f"{before:.4f} before, "
    lines = [f"log loss on the rows of the fit: {shown}{after:.4f} after"]
    if impossible := found["impossible"].get("before"):
        lines.append(f"outcomes that had been given probability 0: {impossible:,}")
    return lines


def _figures(model: Any, sample: Sample, old: str | None, *, counted: bool) -> dict[str, Any]:
    """Rows, log losses before, after and of the model `old`, and what is known of unseen rows."""
    K = sample.n_classes
    per_class = sample.class_weights() if counted else np.bincount(sample.codes, minlength=K)
    found: dict[str, Any] = {"rows": int(model.summary_["rows"])}
    found["class_rows"] = float(per_class.min())
    losses = _total_losses(sample, model)
    for of in ("before", "after"):
        loss = losses.means.get(("log_loss", of))
        found[of] = {"log_loss": None if loss is None else loss.value}
    found["impossible"] = losses.impossible
    if old is not None:
        losses = _total_losses(sample, _load(old, sample))
        found["old"] = {"log_loss": losses.means["log_loss", "after"].value}
    if (verdict := getattr(_common(model), "verdict_", None)) is not None:
        found["unseen"] = {"log_loss": verdict.after}
        found["gain"] = {"value": verdict.gain, "low": verdict.low, "high": verdict.high}
        found |= {"p_value": verdict.p_value, "should_calibrate": verdict.should_calibrate}
    return found


def _total_losses(sample: Sample, model: Any) -> "Totals":
    """Losses of rows or cells before and after calibration, added up in batches."""
    from isoroc._evaluation.measures import Totals  # noqa: PLC0415  # slow to import

    totals = Totals()
    for rows in slices(len(sample), BATCH):
        part = sample.take(rows)
        Q = calibrate(model, part.as_given(), part.segments)
        totals.add(make_pair(part, replace(part, forecasts=Q, unit="probability")))
    return totals


def _load(path: str, sample: Sample) -> Any:
    old = Model.load(path)
    own, found = old.calibrator.classes_.tolist(), sample.classes.tolist()
    n_columns = 1 if sample.kind.single else sample.n_classes
    if own != found or old.calibrator.n_features_in_ != n_columns:
        raise CommandError(f"--compare {path}: it was fitted to other classes or columns.")
    have = [] if sample.segments is None else sample.segments.names
    if missing := [name for name in old.segments if name not in have]:
        raise CommandError(f"--compare {path}: it has the segments {listed(missing)}; name them.")
    return old.calibrator
