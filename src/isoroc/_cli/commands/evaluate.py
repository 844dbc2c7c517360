"""``isoroc evaluate``: metrics of forecasts before and after calibration."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

from isoroc._cli.conditions import Condition
from isoroc._cli.errors import CommandError, ExitCode
from isoroc._cli.group_figures import group_cells, group_verdict, judge_groups
from isoroc._cli.io.counting import are_many
from isoroc._cli.io.files import open_source
from isoroc._cli.io.groups import read_groups
from isoroc._cli.io.reading import Selection, read_sample
from isoroc._cli.io.source import BATCH, Source
from isoroc._cli.judging import TITLES, Figure, Figures, Whole, judge
from isoroc._cli.models import Model, calibrate, load_models, versions
from isoroc._cli.streaming import model_files, stream_compared
from isoroc._cli.terminal import print_error, print_json, print_table, print_text
from isoroc._input import Names, Sample
from isoroc._persistence import read
from isoroc._simplex import Floats
from isoroc._table import markdown_table


def evaluate(
    forecasts: Annotated[list[str], Parameter(negative=())],
    /,
    *,
    model: Annotated[str | None, Parameter(alias="-m")] = None,
    compare: str | None = None,
    selection: Selection | None = None,
    by: str | None = None,
    fail_if: Annotated[list[str] | None, Parameter(negative=())] = None,
    json: Annotated[bool, Parameter(negative=())] = False,
    markdown: Annotated[bool, Parameter(negative=())] = False,
    resamples: int = 200,
    confidence: float = 0.95,
) -> ExitCode:
    """Evaluate forecasts before and after calibration.

    Parameters
    ----------
    forecasts
        Files, globs, folders, or - for standard input.
    model
        Model file written by isoroc fit; forecasts are evaluated before and after calibration.
    compare
        Another model file, or other columns of forecasts of the same rows.
    by
        Column of groups of rows: metrics of each group, and a test of calibration.
    fail_if
        Exit with code 1 if this condition holds or a figure in it is not defined: a metric, one of
        > < >= <=, and a number, a metric or arithmetic: "after.log_loss.high > before.log_loss".
    json
        Print JSON.
    markdown
        Print a Markdown table.
    resamples
        How often rows are resampled for the intervals; 0 for no intervals.
    confidence
        Probability that an interval covers the true value.
    """
    selection = selection or Selection()
    if resamples < 0 or resamples == 1:
        raise CommandError(f"--resamples {resamples}: expected 0, or at least 2.")
    if not 0 < confidence < 1:
        raise CommandError(f"--confidence {confidence:g}: expected a number between 0 and 1.")
    conditions = [Condition.parse(text) for text in fail_if or ()]
    with open_source(forecasts, selection.format, selection.separator) as source:
        names = source.names
        sample, compared, whole = _read(source, selection, model, compare, by_group=by is not None)
        groups = None if by is None else read_groups(source, selection, by, "--by")
    n_rows = len(sample) if whole is None else whole.n_rows
    figures, differences = judge(
        sample, compared, n_resamples=resamples, confidence=confidence, whole=whole
    )
    shown = figures | differences
    values = {key_of(name): _intervals(figures_of) for name, figures_of in shown.items()}
    last = "before" if model is None else "after"
    failed = [text for condition in conditions if (text := condition.failure(values, last))]
    table = None
    if groups is not None:
        table = judge_groups(sample, compared, groups, n_resamples=resamples, confidence=confidence)
    if json:
        print_json(
            {
                **_origin(names, model, compare),
                "rows": n_rows,
                "classes": sample.classes,
                "confidence": confidence,
                "verdict": verdict(shown).removeprefix("Verdict: "),
                "metrics": {metric: _entries(shown, metric) for metric in figures["before"]},
                "failed": failed,
            }
            | ({} if table is None else {"by": by, "groups": [g.entries(_entries) for g in table]})
        )
    elif markdown:
        print_text(markdown_table(["metric", *shown], _rows(shown)))
        if table is not None:
            print_text("\n" + markdown_table(*group_cells(str(by), table)))
    else:
        _show(shown, n_rows, confidence)
        if table is not None:
            print_table(f"by {by}", *group_cells(str(by), table), numeric=True)
            print_text(group_verdict(str(by), table))
    for text in failed:
        print_error("check failed", text)
    return ExitCode.CHECK_FAILED if failed else ExitCode.OK


def read_compared(
    source: Source, selection: Selection, model: str | None, compare: str | None = None
) -> tuple[Sample, dict[str, Floats]]:
    """Sample, and the forecasts of its rows that are compared, by name."""
    files = model_files(model, compare)
    selection, models = load_models(source, selection, files)
    first = next(iter(models.values()), None)
    if first is None:
        sample, columns = read_sample(source, selection)
    else:
        classes = first.calibrator.classes_
        sample, columns = read_sample(source, selection, columns=first.columns, classes=classes)
    compared = {"before": sample.on_simplex().forecasts}
    for name, entry in models.items():
        entry.check(files[name], columns.forecasts, sample.classes)
        groups = None
        if entry.group is not None:
            groups = read_groups(source, selection, entry.group, f"{files[name]}: its groups")
        compared[name] = _calibrate(entry.calibrator, sample.forecasts, groups)
    if compare is not None and "other" not in models:
        same = replace(selection, probs=[compare], classes=None)
        other, _ = read_sample(source, same, classes=sample.classes)
        compared["other"] = other.forecasts
    return sample, compared


def _read(
    source: Source, selection: Selection, model: str | None, compare: str | None, *, by_group: bool
) -> tuple[Sample, dict[str, Floats], Whole | None]:
    """Rows and their forecasts by name; of many rows some, and metrics of all."""
    files = model_files(model, compare).values()
    # Groups are columns of text, which are not read batch by batch.
    by_group = by_group or any(Model.load(path).group for path in files if path is not None)
    if not by_group and are_many(source, selection):
        return stream_compared(source, selection, model, compare)
    return *read_compared(source, selection, model, compare), None


def _calibrate(calibrator: Any, forecasts: Floats, groups: Names | None) -> Floats:
    """Calibrated forecasts, computed batch by batch to save memory."""
    Q = np.empty((len(forecasts), len(calibrator.classes_)))
    for start in range(0, len(Q), BATCH):
        part = slice(start, start + BATCH)
        Q[part] = calibrate(calibrator, forecasts[part], None if groups is None else groups[part])
    return Q


def _entries(shown: dict[str, Figures], metric: str) -> dict[str, Any]:
    """Values and intervals of a metric, by column."""
    return {key_of(name): _interval(table[metric]) for name, table in shown.items()}


def key_of(name: str) -> str:
    """Name of a column as a key of JSON and in conditions.

    Examples
    --------
    >>> key_of("after - before")
    'after_minus_before'
    """
    return name.replace(" - ", "_minus_")


def _intervals(figures: Figures) -> dict[str, dict[str, float]]:
    return {metric: _interval(figure) for metric, figure in figures.items()}


def _interval(figure: Figure) -> dict[str, float]:
    value, error = figure.value, figure.error
    return {"value": value, "low": value - error, "high": value + error}


def _origin(files: list[str], model: str | None, compare: str | None) -> dict[str, Any]:
    """Where the figures come from: files, models with their checksums, versions."""
    models = {
        name: {"file": path, "checksum": read(path)["checksum"]}
        for name, path in model_files(model, compare).items()
        if path is not None
    }
    return {"files": files, "models": models, "versions": versions()}


def _rows(shown: dict[str, Figures]) -> list[list[str]]:
    """Cells of the table, one row per metric."""
    return [
        [TITLES[metric], *(str(table[metric]) for table in shown.values())]
        for metric in shown["before"]
    ]


def _show(shown: dict[str, Figures], n_rows: int, confidence: float) -> None:
    known = any(figure.has_interval for table in shown.values() for figure in table.values())
    title = f"{n_rows:,} rows"
    if known:
        title += f"; ± is half the width of a {confidence:.0%} interval"
    print_table(title, ["metric", *shown], _rows(shown), numeric=True)
    print_text(verdict(shown))


def verdict(shown: dict[str, Figures]) -> str:
    """One line on whether calibration lowers the log loss.

    Examples
    --------
    >>> verdict({"before": {}, "after - before": {"log_loss": Figure(-0.02, 0.005)}})
    'Verdict: calibrate; it saves 0.0200 ± 0.0050 nats of log loss per row.'
    """
    change = shown.get("after - before", {}).get("log_loss")
    if change is None:
        return "Verdict: " + _verdict_before(shown["before"]["calibration_loss"])
    if np.isnan(change.value):
        return "Verdict: calibrate; the scores before calibration are not probabilities."
    error = change.error if change.has_interval else 0.0
    if change.value < -error:
        saved = Figure(-change.value, change.error)
        return f"Verdict: calibrate; it saves {saved} nats of log loss per row."
    if change.value > error:
        return f"Verdict: do not calibrate; it costs {change} nats of log loss per row."
    return f"Verdict: no significant difference ({change} nats of log loss per row)."


def _verdict_before(loss: Figure) -> str:
    """Verdict on forecasts alone, from their calibration loss."""
    if np.isnan(loss.value):
        return "these scores are not probabilities; calibrate them with isoroc fit."
    if loss.value > (loss.error if loss.has_interval else 0.0):
        return f"not calibrated; calibration could save {loss} nats of log loss per row."
    return "no evidence of miscalibration."
