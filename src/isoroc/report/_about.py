"""What a report says about its data, its calibrator and how it was computed."""

from __future__ import annotations

import json
import platform
import re
import tempfile
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from isoroc._estimation.grouping import distinct_rows
from isoroc._evaluation.evaluation import MANY_CLASSES, percent
from isoroc._input import Sample, find_reversal
from isoroc.report._evidence import Evidence
from isoroc.report._numbers import listed, short

#: A class with fewer rows is named in the notes. The largest size of a model or query on the page.
_FEW_ROWS, _MOST_TEXT = 30, 120_000
#: Distinct forecasts up to which they are called few, and rows that are looked at for it at most.
_FEW_DISTINCT, _DRAWN = 20, 20_000
#: Share of certain forecasts from which on they are mentioned.
_MANY_CERTAIN = 0.01
#: Largest number of classes that are listed.
_MOST_CLASSES = 20


def data_part(evidence: Evidence) -> dict[str, Any]:
    """Numbers of rows and classes, and notes on the quality of the data."""
    before, counted = evidence.before, evidence.counted
    weights = before.class_weights()
    shown = evidence.heaviest(_MOST_CLASSES)
    shares = weights / weights.sum()
    return {
        "rows": evidence.n_rows,
        "weight": float(weights.sum()),
        "weighted": before.weights is not None and before.weights.sum() != counted,
        "counted": counted is not None,
        "n_classes": evidence.n_classes,
        "classes": [
            {"name": evidence.names[k], "weight": float(weights[k]), "share": float(shares[k])}
            for k in shown
        ],
        "other_classes": evidence.n_classes - len(shown),
        "notes": _notes(evidence) or ["Nothing unusual was found."],
    }


def _notes(evidence: Evidence) -> list[str]:
    notes = []
    before, n = evidence.before, evidence.n_rows
    counts = np.bincount(before.codes, minlength=evidence.n_classes)
    if evidence.counted is not None:
        counts = before.class_weights() * (n / before.row_weights().sum())
    for few, words in (
        (counts == 0, "no rows. Nothing can be said about them"),
        (
            (counts > 0) & (counts < _FEW_ROWS),
            f"fewer than {_FEW_ROWS} rows. Figures of single classes are uncertain",
        ),
    ):
        names = [evidence.names[k] for k in np.flatnonzero(few).tolist()]
        if names:
            which = listed(names) if len(names) <= 8 else f"{len(names)} of {len(few)} classes"
            notes.append(f"{which} {'have' if names[1:] else 'has'} {words}.")
    if n < 200:
        notes.append(f"There are only {n} rows: intervals are wide and approximate.")
    if before.forecasts.ndim == 1:
        notes.append(
            "The forecasts before calibration are scores and not probabilities: they have an order "
            "but no reliability."
        )
    rows = evidence.draw(_DRAWN).before
    if (reversal := find_reversal(rows)) is not None:
        notes.append(f"Warning: {reversal}.")
    return notes + _certain(rows)


def _certain(sample: Sample) -> list[str]:
    """Notes on forecasts that are certain, and on forecasts with few distinct values."""
    P, n, notes = sample.forecasts, len(sample), []
    certain = np.count_nonzero(P.max(axis=1) == 1) / n if P.ndim == 2 else 0.0
    if certain >= _MANY_CERTAIN:
        notes.append(f"{percent(certain)} of the forecasts before calibration are certain: 0 or 1.")
    n_distinct = len(distinct_rows(P.reshape(n, -1)))
    if n_distinct <= min(_FEW_DISTINCT, n // 2):
        notes.append(f"The forecasts before calibration have only {n_distinct} distinct values.")
    return notes


def model_part(evidence: Evidence, path: str, columns: list[str] | None) -> dict[str, Any] | None:
    """The calibrator, its parameters, its certificate in words, and code that applies it."""
    calibrator = evidence.calibrator
    if calibrator is None:
        return None
    certificate = getattr(calibrator, "certificate_", None)
    parameters = {
        name: value if isinstance(value, str | int | float | None) else str(value)
        for name, value in calibrator.get_params(deep=False).items()
    }
    names = columns or [f"p_{name}" for name in evidence.names]
    if calibrator.n_features_in_ == 1 and columns is None:
        names = ["score"]
    quoted = json.dumps(path, ensure_ascii=False)
    word = path if re.fullmatch(r"[A-Za-z0-9._/-]*", path) else quoted
    return {
        "calibrator": type(calibrator).__name__,
        "parameters": parameters,
        "n_bins": None if evidence.binned is None else evidence.binned.n_bins_,
        "certificate": None if certificate is None else str(certificate),
        "members": _members(calibrator),
        "path": path,
        "python": _python(quoted, calibrator),
        "command": f"isoroc apply {word} new.parquet -o calibrated.parquet",
        "sql": _sql(calibrator, names),
        "file": _file(calibrator),
    }


def _members(calibrator: Any) -> dict[str, list[Any]] | None:
    table = getattr(calibrator, "member_scores_", None)
    if table is None:
        return None
    return {
        name: short(column) if column.dtype.kind == "f" else [str(entry) for entry in column]
        for name, column in table.items()
    }


def _python(path: str, calibrator: Any) -> str:
    grouped = getattr(calibrator, "grouped_", False)
    given, what = ("P, groups", "; the group of each") if grouped else ("P", "")
    return f"""import isoroc

calibrator = isoroc.load({path})
Q = calibrator.predict_proba({given})  # P: new forecasts, one column per class{what}
"""


def _sql(calibrator: Any, columns: list[str]) -> str | None:
    """Query for DuckDB; None if it is long, cannot be written, or sqlglot is missing."""
    n_values = len(columns) * getattr(calibrator, "n_bins_", 1)
    if len(columns) > MANY_CLASSES or n_values > _MOST_TEXT // 130:  # long, and slow to write
        return None
    try:
        from isoroc.export import to_sql  # noqa: PLC0415 -- sqlglot may be missing

        group = calibrator.summary_.get("group_column")
        query = to_sql(calibrator, columns, dialect="duckdb", table="forecasts", group=group)
    except (ImportError, ValueError):
        return None
    return query if len(query) <= _MOST_TEXT else None


def _file(calibrator: Any) -> str | None:
    """The model file; None if it is long."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "model.json")
        calibrator.save(target)
        text = target.read_text(encoding="utf-8")
    return text if len(text) <= _MOST_TEXT else None


def about_part(*, n_resamples: int, seconds: float) -> dict[str, Any]:
    """When, with which versions and how the report was computed."""
    versions = {"isoroc": version("isoroc"), "Python": platform.python_version()}
    versions |= {package: version(package) for package in ("numpy", "scipy", "scikit-learn")}
    return {
        "created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "versions": versions,
        "n_resamples": n_resamples,
        "seconds": round(seconds, 1),
    }
