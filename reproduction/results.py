"""Results as a Markdown page and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log
from typing import Any, NamedTuple

import numpy as np

import isoroc
from isoroc._core.types import Floats
from isoroc._support.table import markdown_table
from reproduction.experiments import (
    CLIP,
    COMPARISONS,
    LAM,
    PROCEDURES,
    PUBLISHED,
    Experiment,
    Outcome,
    Repetition,
    Scores,
    compare,
    grid_size_of,
    summary,
)

NOTE = """\
**Why the published cross entropies are too low.** The experiments smooth the mean label of a bin as
(mean + {lam}) / (1 + {lam}). These values sum to (1 + {lam} K) / (1 + {lam}) instead of one, so
every cross entropy is too low by the logarithm of that sum: {amounts}. The published calibration
cross entropy is also regularised: {lam} is added to every label. "Normalised" means that rows are
divided by their sums and cross entropies are not regularised. Before calibration, and for isoroc,
rows sum to one."""


class Heading(NamedTuple):
    """Heading of the results."""

    title: str
    #: What readers have to know about the data.
    note: str = ""


def surplus(K: int) -> float:
    """By how much the published cross entropies are too low.

    Examples
    --------
    >>> [round(surplus(K), 3) for K in (2, 3, 4)]
    [0.047, 0.091, 0.134]
    """
    return log((1 + LAM * K) / (1 + LAM))


def to_json(
    heading: Heading,
    experiments: Sequence[Experiment],
    measured: Sequence[dict[str, Any]],
    repetition: Repetition,
) -> dict[str, Any]:
    """All results as a JSON value."""
    return {
        "isoroc": isoroc.__version__,
        "data": heading.title,
        "note": heading.note,
        "lam": LAM,
        "clip": CLIP,
        "experiments": [
            {
                "classes": done.n_classes,
                "forecasts": done.forecasts.title,
                "rows": {"cal": len(done.forecasts.y_cal), "test": len(done.forecasts.y_test)},
                "grid_size": grid_size_of(done.n_classes),
                "too_low_by": surplus(done.n_classes),
                "results": [_outcome(outcome) for outcome in done.outcomes()],
                "stages": {
                    name: {column: values.tolist() for column, values in stages.items()}
                    for name, stages in done.stages.items()
                },
                "claims": found,
            }
            for done, found in zip(experiments, measured, strict=True)
        ],
        "repetition": summary(repetition),
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return outcome._asdict() | {
        way: None if scores is None else scores._asdict()
        for way, scores in (
            ("as_published", outcome.as_published),
            ("normalised", outcome.normalised),
        )
    }


def to_markdown(
    heading: Heading,
    experiments: Sequence[Experiment],
    measured: Sequence[dict[str, Any]],
    repetition: Repetition,
) -> str:
    """All results as a Markdown page."""
    amounts = ", ".join(
        f"{surplus(done.n_classes):.3f} for {done.n_classes} classes" for done in experiments
    )
    parts = [f"# The paper's experiments on {heading.title}"]
    parts += [heading.note] if heading.note else []
    for done, found in zip(experiments, measured, strict=True):
        parts += [f"## {done.n_classes} classes", _rows_used(done), _results(done), _claims(found)]
    parts.append(NOTE.format(lam=LAM, amounts=amounts))
    if repetition:
        parts += ["## Repetition", *_repetition(repetition)]
    return "\n\n".join(parts) + "\n"


def _rows_used(done: Experiment) -> str:
    _, y_cal, _, y_test, title = done.forecasts
    return (
        f"{title}: {len(y_cal):,} calibration and {len(y_test):,} test rows, "
        f"grid of step 1/{grid_size_of(done.n_classes)}."
    )


_HEAD = (
    "",
    "bins",
    "scored",
    "calibration cross entropy",
    "test cross entropy",
    "calibration Brier",
    "test Brier",
    "calibration volume",
    "test volume",
)


def _results(done: Experiment) -> str:
    lines = []
    for outcome in done.outcomes():
        bins = "" if outcome.n_bins is None else str(outcome.n_bins)
        volumes = [f"{outcome.cal_volume:.4f}", f"{outcome.test_volume:.4f}"]
        if outcome.as_published is not None:
            scores = _cells(outcome.as_published)
            lines.append([outcome.procedure, bins, "as published", *scores, *volumes])
        lines.append([outcome.procedure, bins, "normalised", *_cells(outcome.normalised), *volumes])
    return markdown_table(_HEAD, lines)


def _cells(scores: Scores) -> list[str]:
    return [f"{value:.4f}" for value in scores]


def _claims(found: dict[str, Any]) -> str:
    lines = [
        f"- calibration error, {name}: {value:.4f}"
        for name, value in found["calibration_error"].items()
    ]
    lines += [f"- {name}: {value:.6f}" for name, value in found.get("hull", {}).items()]
    for name, stop in found["stop"].items():
        for way in ("as_published", "normalised"):
            if way in stop:
                end, best, bins = stop[way].values()
                lines.append(
                    f"- {name}, {way.replace('_', ' ')}: test cross entropy {end:.4f} at the end, "
                    f"with {stop['n_bins']} bins, and {best:.4f} at best, with {bins}"
                )
    lines += [
        f"- calibration volume, {name}: {value:.4f}" for name, value in found["volume"].items()
    ]
    return "\n".join(lines)


def _repetition(repetition: Repetition) -> list[str]:
    n_splits = len(next(iter(repetition.values()))["before/cross_entropy"])
    differences = (compare(measures) for measures in repetition.values())
    intro = (
        f"Means over {n_splits} random splits for each number of classes and classifier. Rows are "
        f"normalised unless stated otherwise, and cross entropies are clipped at {CLIP:g}."
    )
    parts = [
        intro,
        "Test cross entropy:",
        _of_each(repetition, _LOSSES, map(_loss_cells, repetition.values())),
        "Test Brier score:",
        _of_each(
            repetition,
            ("before", *PROCEDURES),
            (
                [_mean(m, f"{name}/brier") for name in ("before", *PROCEDURES)]
                for m in repetition.values()
            ),
        ),
        "Paired differences of test cross entropy, with 95 % intervals that allow for overlap:",
        _of_each(
            repetition,
            (title for title, _, _ in COMPARISONS),
            ([str(difference) for difference in each.values()] for each in differences),
        ),
        _STOPS_TEXT,
        _of_each(
            repetition,
            (f"{name}, {what}" for name in ("IRP", "binning") for what in _STOPS),
            ([c for name in PUBLISHED for c in _stop_cells(m, name)] for m in repetition.values()),
        ),
    ]
    exact = {key: m for key, m in repetition.items() if "before/cal_volume" in m}
    if exact:
        parts += [
            "Hull volume of the calibration rows, all thresholds, before and after published IRP:",
            _of_each(exact, ("before", "after", "larger"), map(_volume_cells, exact.values())),
        ]
    return parts


def _of_each(keys: Iterable[tuple[int, str]], head: Iterable[str], rows: Iterable[Any]) -> str:
    first = ([str(K), classifier] for K, classifier in keys)
    lines = ([*names, *cells] for names, cells in zip(first, rows, strict=True))
    return markdown_table(("classes", "classifier", *head), lines)


def _mean(measures: dict[str, Floats], name: str, digits: int = 4) -> str:
    return f"{measures[name].mean():.{digits}f}"


_LOSSES = ("before", "IRP as published", "binning as published", *PROCEDURES)


def _loss_cells(measures: dict[str, Floats]) -> list[str]:
    names = ["before/cross_entropy", *(f"{name}/as_published" for name in PUBLISHED)]
    return [_mean(measures, n) for n in (*names, *(f"{p}/cross_entropy" for p in PROCEDURES))]


_STOPS_TEXT = """\
Where growth stops and where it should have stopped: number of bins at the last and at the best
stage, by how much the test cross entropy of the best stage is lower, and in how many splits the
last stage is the best:"""
_STOPS = ("bins", "bins at best", "lower by", "last is best")


def _stop_cells(measures: dict[str, Floats], name: str) -> list[str]:
    return [
        _mean(measures, f"{name}/bins", 1),
        _mean(measures, f"{name}/best_bins", 1),
        _mean(measures, f"{name}/regret"),
        str(np.count_nonzero(measures[f"{name}/regret"] == 0)),
    ]


def _volume_cells(measures: dict[str, Floats]) -> list[str]:
    before = measures["before/cal_volume"]
    after = measures[f"{PUBLISHED[0]}/cal_volume"]
    larger = np.count_nonzero(after > before + 1e-9)
    return [f"{before.mean():.4f}", f"{after.mean():.4f}", f"{larger} of {len(before)}"]
