"""``isoroc evaluate``: how good forecasts are, before and after calibration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

from isoroc._cli.commands.apply import check_number_of
from isoroc._cli.conditions import Condition
from isoroc._cli.errors import CommandError
from isoroc._cli.io.files import BATCH, Source, open_source
from isoroc._cli.io.reading import Outcomes, Reading, read_outcomes
from isoroc._cli.judging import TITLES, Figure, judge
from isoroc._cli.models import Model
from isoroc._cli.terminal import complain, markdown_table, say, say_json, say_table
from isoroc._simplex import Floats

#: Exit code where a condition of ``--fail-if`` holds.
CHECK_FAILED = 1


def evaluate(
    forecasts: Annotated[list[str], Parameter(negative=())],
    /,
    *,
    model: Annotated[str | None, Parameter(alias="-m")] = None,
    compare: str | None = None,
    reading: Reading | None = None,
    fail_if: Annotated[list[str] | None, Parameter(negative=())] = None,
    json: Annotated[bool, Parameter(negative=())] = False,
    markdown: Annotated[bool, Parameter(negative=())] = False,
    resamples: int = 200,
    confidence: float = 0.95,
) -> int:
    """Judge forecasts, before and after calibration, and guard a pipeline.

    Parameters
    ----------
    forecasts
        Files, globs, folders, or - for standard input.
    model
        Model file of isoroc fit; then forecasts are sample before and after it.
    compare
        Another model file, or other columns of forecasts in the same rows.
    fail_if
        Exit with code 1 if this holds: a metric, >, <, >= or <=, and a number or a metric.
    json
        Print JSON.
    markdown
        Print a table for a page.
    resamples
        How often rows are resampled for intervals; 0 for none.
    confidence
        Probability that an interval covers the truth.
    """
    reading = reading or Reading()
    if resamples < 0 or resamples == 1:
        raise CommandError(f"--resamples {resamples}: expected 0 for none, or 2 and more.")
    if not 0 < confidence < 1:
        raise CommandError(f"--confidence {confidence:g}: expected a number between 0 and 1.")
    conditions = [Condition.parse(text) for text in fail_if or ()]
    with open_source(forecasts, reading.format) as source:
        data, columns = _read(source, reading, model, compare)
    figures, differences = judge(data, columns, n_resamples=resamples, confidence=confidence)
    values = {
        name: {metric: figure.value for metric, figure in table.items()}
        for name, table in figures.items()
    }
    last = "before" if model is None else "after"
    failed = [condition.text for condition in conditions if condition.holds(values, last)]
    if json:
        shown = figures | differences
        say_json(
            {
                "rows": len(data.codes),
                "classes": data.classes,
                "confidence": confidence,
                "metrics": {metric: _entries(shown, metric) for metric in figures["before"]},
                "failed": failed,
            }
        )
    else:
        _show(figures | differences, len(data.codes), confidence, markdown=markdown)
    for text in failed:
        complain("check failed", text)
    return CHECK_FAILED if failed else 0


def _read(
    source: Source, reading: Reading, model: str | None, compare: str | None
) -> tuple[Outcomes, dict[str, Floats]]:
    """Rows, and the forecasts of them that are sample, by name."""
    models = {"after": model, "other": compare if compare and Path(compare).is_file() else None}
    loaded = {name: Model.load(path) for name, path in models.items() if path is not None}
    first = next(iter(loaded.values()), None)
    if first is None:
        data = read_outcomes(source, reading)
    else:
        classes = first.calibrator.classes_
        if reading.label is None and first.label in source.schema():
            reading = replace(reading, label=first.label)
        data = read_outcomes(source, reading, columns=first.columns, classes=classes)
    columns = {"before": data.forecasts}
    for name, entry in loaded.items():
        check_number_of(data.columns, entry)
        if entry.calibrator.classes_.tolist() != data.classes.tolist():
            raise CommandError(
                f"{models[name]}: its classes ({_listed(entry.calibrator.classes_)}) are not those "
                f"of the forecasts ({_listed(data.classes)})."
            )
        columns[name] = _calibrate(entry.calibrator, data.forecasts)
    if compare is not None and "other" not in loaded:
        same = replace(reading, probs=[compare], classes=None)
        other = read_outcomes(source, same, classes=data.classes)
        columns["other"] = other.forecasts
    return data, columns


def _calibrate(calibrator: Any, forecasts: Floats) -> Floats:
    """Calibrated forecasts, a part at a time."""
    Q = np.empty((len(forecasts), len(calibrator.classes_)))
    for start in range(0, len(Q), BATCH):
        Q[start : start + BATCH] = calibrator.predict_proba(forecasts[start : start + BATCH])
    return Q


def _entries(shown: dict[str, dict[str, Figure]], metric: str) -> dict[str, Any]:
    return {
        name: {
            "value": table[metric].value,
            "low": table[metric].value - table[metric].error,
            "high": table[metric].value + table[metric].error,
        }
        for name, table in shown.items()
    }


def _show(
    shown: dict[str, dict[str, Figure]], n_rows: int, confidence: float, *, markdown: bool
) -> None:
    titles = ["metric", *shown]
    rows = [
        [TITLES[metric], *(str(table[metric]) for table in shown.values())]
        for metric in shown["before"]
    ]
    if markdown:
        say(markdown_table(titles, [[row[0].strip(), *row[1:]] for row in rows]))
        return
    known = any("±" in cell for row in rows for cell in row)
    intervals = f", ± of {confidence:.0%} intervals" if known else ""
    say_table(f"{n_rows:,} rows{intervals}", titles, rows)
    say(verdict(shown))


def verdict(shown: dict[str, dict[str, Figure]]) -> str:
    """One line on whether calibration pays.

    Examples
    --------
    >>> verdict({"before": {}, "after - before": {"log_loss": Figure(-0.02, 0.005)}})
    'Verdict: calibrate; it saves 0.0200 ± 0.0050 nats of log loss a row.'
    """
    change = shown.get("after - before", {}).get("log_loss")
    if change is None:
        return "Verdict: " + _alone(shown["before"]["calibration_loss"])
    if np.isnan(change.value):
        return "Verdict: calibrate; the scores before are no probabilities."
    error = 0.0 if np.isnan(change.error) else change.error
    if change.value < -error:
        saved = Figure(-change.value, change.error)
        return f"Verdict: calibrate; it saves {saved} nats of log loss a row."
    if change.value > error:
        return f"Verdict: leave it; calibration costs {change} nats of log loss a row."
    return f"Verdict: no difference beyond chance ({change} nats of log loss a row)."


def _alone(part: Figure) -> str:
    if np.isnan(part.value):
        return "these scores rank rows; fit a model to make them probabilities."
    if part.value > (0.0 if np.isnan(part.error) else part.error):
        return f"not calibrated; calibrating could save {part} nats of log loss a row."
    return "no sign that these forecasts are not calibrated."


def _listed(classes: Any) -> str:
    return ", ".join(map(str, classes))
