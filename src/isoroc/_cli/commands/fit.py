"""``isoroc fit``: fit a calibrator to forecasts and outcomes, and write a model file."""

from __future__ import annotations

import inspect
from dataclasses import fields, replace
from typing import Annotated, Any, NamedTuple, cast

import numpy as np
from cyclopts import Parameter

import isoroc
from isoroc._cli.conditions import Condition
from isoroc._cli.errors import CommandError, ExitCode
from isoroc._cli.expecting import forecast_cells
from isoroc._cli.io.columns import list_labels
from isoroc._cli.io.files import MODEL, check_target, open_source
from isoroc._cli.io.reading import (
    Columns,
    are_countable,
    load_counts,
    read_counts,
    read_groups,
    read_sample,
)
from isoroc._cli.io.source import BATCH
from isoroc._cli.models import DEFAULT, Model, calibrate, make_calibrator, save_model, versions
from isoroc._cli.options import ALL_ROWS, STANDARD, Force, Forecasts, Json, Output, Selection
from isoroc._cli.terminal import print_error, print_json, print_note, print_warning
from isoroc._counts import Counts
from isoroc._evaluation.pair import make_pair
from isoroc._evaluation.totals import Totals
from isoroc._input import Sample
from isoroc._intervals import half_width
from isoroc._persistence import read

#: With fewer rows, a calibrator can only repeat what it was given.
FEW = 10


def fit(
    forecasts: Forecasts,
    /,
    *,
    output: Output,
    selection: Selection = ALL_ROWS,
    force: Force = False,
    counts: bool = False,
    calibrator: Annotated[str, Parameter(alias="-c")] = DEFAULT,
    group: str | None = None,
    min_rows: int | None = None,
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
    calibrator
        The calibrator to fit; isoroc calibrators lists them.
    group
        Column of groups of rows: groups that differ get maps of their own.
    min_rows
        With --group, groups of fewer rows get the map of all rows. Default: 100.
    compare
        Another model file, whose figures are those of old in conditions.
    fail_if
        Write no model and exit with code 1 if this condition holds: "class_rows < 100",
        "gain.low <= 0", "after.log_loss > before.log_loss".
    parameters
        Parameters of the calibrator, such as --max-bins 20 --pseudocount 0.5.
    """
    check_target(output, forecasts, MODEL, force=force)
    if json and output == STANDARD:
        raise CommandError("--json and the model cannot both be standard output; name a file.")
    conditions = [Condition.parse(text) for text in fail_if or ()]
    model = make_calibrator(calibrator, parameters, _own_options())
    if group is not None:
        model = _with_groups(model, min_rows)
    elif min_rows is not None:
        raise CommandError("--min-rows is the least number of rows of a group; name --group too.")
    data = (_read_counted if counts else _read)(forecasts, selection, group)
    sample = data.fit(model)
    found = _figures(model, sample, compare, counted=data.counted is not None)
    failed = [text for condition in conditions if (text := condition.failure(found))]
    loss = {name: found[name]["log_loss"] for name in ("before", "after")}
    columns = data.columns
    summary = {
        "files": data.files[:100],
        "label": columns.label or None,
        "columns": columns.forecasts or None,
        "weight_column": columns.weight,
        "group_column": group,
        "where": selection.where,
        "sample": selection.sample,
        "log_loss": loss,
    } | forecast_cells(model, sample)
    if not failed:
        save_model(model, output, summary)
        print_note(_headline(calibrator, model, output))
    if found["rows"] < FEW:
        print_warning(f"{found['rows']} rows are too few to calibrate; collect more.")
    verdicts = _verdicts(model, counted=data.counted is not None)
    # A verdict names the loss before calibration itself, with bounds on single rows.
    shown = loss | ({"before": None} if "gain" in found else {})
    for line in _details(sample, columns, shown, verdicts):
        print_note(f"  {line}")
    if impossible := found["impossible"].get("before"):
        print_note(f"  outcomes that had been given probability 0: {impossible:,}")
    if json:
        about = {"calibrator": calibrator, "classes": model.classes_, "verdict": verdicts}
        about |= {} if failed else {"checksum": read(output)["checksum"]}
        outcome = {"output": output, "failed": failed, "versions": versions()}
        print_json("fit", about | summary | found | outcome)
    for text in failed:
        print_error("check failed", f"{text}; {output} was not written")
    return ExitCode.CHECK_FAILED if failed else ExitCode.OK


class _Data(NamedTuple):
    """What a calibrator is fitted to: rows, or counts of them."""

    files: list[str]
    columns: Columns
    sample: Sample | None
    counted: Counts | None

    def fit(self, model: Any) -> Sample:
        """Fit a calibrator; returns the rows or cells that it was fitted to."""
        if self.counted is not None:
            model.fit_counts(self.counted)
            return self.counted.sample(per_fold=False)
        sample = cast("Sample", self.sample)
        if (sample.codes == sample.codes[0]).all():
            label = sample.classes[sample.codes[0]]
            problem = f"all rows have the label {label!s}"
            raise CommandError(f"{problem}; at least two classes are needed.")
        from isoroc._calibrators.base import fit_sample  # noqa: PLC0415  # slow to import

        fit_sample(model, sample)
        return sample


def _with_groups(model: Any, min_rows: int | None) -> Any:
    """Unfitted calibrator with maps by group."""
    if not isinstance(model, isoroc.GroupedCalibrator):
        model = isoroc.GroupedCalibrator(model, random_state=0)
    return model if min_rows is None else model.set_params(min_rows=min_rows)


def _read_counted(files: list[str], selection: Selection, group: str | None) -> _Data:
    if group is not None:
        raise CommandError("--group: counts have no groups; fit to the rows themselves.")
    if selection != ALL_ROWS:
        raise CommandError("--counts: rows and columns were chosen when they were counted.")
    counted = load_counts(files)
    return _Data(files, Columns(list(counted.columns or []), "", None), None, counted)


def _read(forecasts: list[str], selection: Selection, group: str | None) -> _Data:
    with open_source(forecasts, selection) as source:
        if group is None and are_countable(source, selection):
            counted, columns = read_counts(source, selection)
            return _Data(source.names, columns, None, counted)
        sample, columns = read_sample(source, selection)
        if group is not None:
            sample = replace(sample, groups=read_groups(source, selection, group, "--group"))
        return _Data(source.names, columns, sample, None)


def _own_options() -> list[str]:
    """Options of the command itself."""
    named = [*inspect.signature(fit).parameters, *(field.name for field in fields(Selection))]
    hidden = ("forecasts", "parameters", "selection")
    return [name.replace("_", "-") for name in named if name not in hidden]


def _verdicts(model: Any, *, counted: bool) -> list[str]:
    """What a calibrator says about its fit, and which groups got maps of their own."""
    grouped = getattr(model, "grouped_", False)
    common = model.common_ if grouped else model
    lines = []
    if hasattr(common, "verdict_"):
        in_cells = counted or model.summary_["rows"] > common.max_cells
        lines = [common.verdict_ + ("; based on all rows, in cells" if in_cells else "")]
    if grouped:
        names = model.groups_.tolist()
        text = f"{len(names)} of {model.group_scores_.n_rows} groups have maps of their own"
        lines.append(f"{text}: {list_labels(names)}" if names else text)
    return lines


def _headline(name: str, model: Any, output: str) -> str:
    target = "standard output" if output == STANDARD else output
    size = f"{model.summary_['rows']:,} rows, {len(model.classes_)} classes"
    if (n_bins := getattr(model, "n_bins_", None)) is not None:
        size += f", {n_bins} bin" + ("s" if n_bins > 1 else "")
    return f"{target}: {name} fitted to {size}"


def _details(
    sample: Sample, columns: Columns, loss: dict[str, float | None], verdicts: list[str]
) -> list[str]:
    """How the columns were read, the verdict of the calibrator, and the log loss."""
    lines = []
    if len(columns.forecasts) == 1:
        lines.append(f"{columns.forecasts[0]} is the score of class {sample.classes[1]!s}")
    elif len(columns.forecasts) <= 12:
        pairs = zip(columns.forecasts, sample.classes, strict=True)
        lines.append("classes: " + ", ".join(f"{name} is {label!s}" for name, label in pairs))
    before = "" if loss["before"] is None else f"{loss['before']:.4f} before, "
    fitted = f"log loss on the rows of the fit: {before}{loss['after']:.4f} after"
    return [*lines, *verdicts, fitted]


def _figures(model: Any, sample: Sample, old: str | None, *, counted: bool) -> dict[str, Any]:
    """Rows, log losses before and after, and what cross-validation says about unseen rows.

    `old` is another model file, which is applied to the same rows; if they are counted, the sample
    holds cells, whose weights are numbers of rows.
    """
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
    common = model.common_ if getattr(model, "grouped_", False) else model
    scores = getattr(common, "member_scores_", None)
    if scores is not None:
        found["unseen"] = {"log_loss": _interval(scores, "log_loss")}
        found["gain"] = _interval(scores, "gain")
    return found


def _total_losses(sample: Sample, model: Any) -> Totals:
    """Losses of rows or cells before and after calibration, added up in batches."""
    totals = Totals()
    for start in range(0, len(sample), BATCH):
        part = sample.take(np.arange(start, min(start + BATCH, len(sample))))
        Q = calibrate(model, part.as_given(), part.groups)
        totals.add(make_pair(part, replace(part, forecasts=Q, scores="probability")))
    return totals


def _load(path: str, sample: Sample) -> Any:
    old = Model.load(path)
    own, found = old.calibrator.classes_.tolist(), sample.classes.tolist()
    n_columns = 1 if sample.forecasts.ndim == 1 else sample.forecasts.shape[1]
    if own != found or old.calibrator.n_features_in_ != n_columns:
        raise CommandError(f"--compare {path}: it was fitted to other classes or columns.")
    if (old.group is None) != (sample.groups is None):
        raise CommandError(f"--compare {path}: one of the two models has groups, the other not.")
    return old.calibrator


def _interval(scores: Any, name: str) -> dict[str, float]:
    """Out-of-fold figure of the mixture, the last row, with its 95 % interval."""
    value, error = (float(scores[column][-1]) for column in (name, f"{name}_se"))
    half = half_width(0.95) * error
    return {"value": value, "low": value - half, "high": value + half}
