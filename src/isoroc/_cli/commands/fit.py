"""``isoroc fit``: forecasts and outcomes in, a model file out."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

from isoroc._cli.errors import CommandError
from isoroc._cli.io.files import BATCH, check_target, open_source
from isoroc._cli.io.reading import Outcomes, Reading, read_outcomes
from isoroc._cli.io.streams import STANDARD
from isoroc._cli.models import DEFAULT, make_calibrator, save_model
from isoroc._cli.terminal import note
from isoroc.metrics._scores import log_losses


def fit(
    forecasts: Annotated[list[str], Parameter(negative=())],
    /,
    *,
    output: Annotated[str, Parameter(alias="-o")],
    reading: Reading | None = None,
    calibrator: Annotated[str, Parameter(alias="-c")] = DEFAULT,
    **parameters: str,
) -> None:
    """Learn a calibration map from forecasts and outcomes.

    Parameters
    ----------
    forecasts
        Files, globs, folders, or - for standard input.
    output
        The model file to write, or - for standard output.
    calibrator
        What learns the map; isoroc calibrators lists all.
    parameters
        Any parameter of the calibrator with its value, such as --max-bins 20 --pseudocount 0.5.
    """
    check_target(output)
    reading = reading or Reading()
    model = make_calibrator(calibrator, parameters, _own_options())
    with open_source(forecasts, reading.format) as source:
        data = read_outcomes(source, reading)
        files = source.names
    fit_outcomes(model, data)
    loss = {"before": _log_loss(data, None), "after": _log_loss(data, model)}
    summary = {
        "files": files[:100],
        "label": data.label,
        "columns": data.columns,
        "weight_column": reading.weight,
        "where": reading.where,
        "sample": reading.sample,
        "log_loss": loss,
    }
    save_model(model, output, summary)
    _tell(calibrator, model, data, loss, "standard output" if output == STANDARD else output)


def fit_outcomes(model: Any, data: Outcomes) -> None:
    """Fit a calibrator to rows that were read."""
    if len(np.unique(data.codes[:BATCH])) < 2 and len(np.unique(data.codes)) < 2:
        label = data.classes[data.codes[0]]
        raise CommandError(f"every row has the label {label!s}; rows of two classes are needed.")
    # Codes stand for labels: any column of them is found, and millions of names are not compared.
    model.fit(data.forecasts, data.codes, sample_weight=data.weights)
    model.classes_ = data.classes


def _own_options() -> list[str]:
    named = [name for name in inspect.signature(fit).parameters if name != "parameters"]
    return [*named, *(field.name for field in fields(Reading))]


def _log_loss(data: Outcomes, model: Any) -> float | None:
    """Mean log loss of the rows that were read; None where forecasts are scores of any range."""
    total = weight = 0.0
    for start in range(0, len(data.codes), BATCH):
        part = slice(start, start + BATCH)
        P = data.forecasts[part] if model is None else model.predict_proba(data.forecasts[part])
        if P.ndim == 1:
            if P.min() < 0 or P.max() > 1:
                return None
            P = np.column_stack([1 - P, P])
        weights = np.ones(len(P)) if data.weights is None else data.weights[part]
        total += float(weights @ log_losses(P, data.codes[part]))
        weight += float(weights.sum())
    return total / weight


def _tell(name: str, model: Any, data: Outcomes, loss: dict[str, Any], target: str) -> None:
    n_rows, K = len(data.codes), len(data.classes)
    bins = f", {model.n_bins_} bins" if hasattr(model, "n_bins_") else ""
    note(f"{target}: {name} on {n_rows:,} rows, {K} classes{bins}")
    if len(data.columns) == 1:
        note(f"  {data.columns[0]} is taken as the score of {data.classes[1]!s}")
    elif K <= 12:
        pairs = zip(data.columns, data.classes, strict=True)
        note("  columns: " + ", ".join(f"{column} is {label!s}" for column, label in pairs))
    if hasattr(model, "verdict_"):
        note(f"  {model.verdict_}")
    before = "" if loss["before"] is None else f"{loss['before']:.4f} before, "
    note(f"  log loss on these rows: {before}{loss['after']:.4f} after")
