"""Figures of ``isoroc evaluate --by``: metrics of each group of rows, and a test of calibration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from isoroc._cli.judging import Figures, judge
from isoroc._input import Names, Sample, rows_by_group
from isoroc._simplex import Floats
from isoroc.metrics import group_report

#: Metrics that the table of groups shows.
SHOWN = {"log_loss": "log loss", "calibration_error": "calibration error"}
#: Groups whose test has a smaller p-value are named.
LEVEL = 0.05


@dataclass(frozen=True, eq=False)
class GroupFigures:
    """Figures of one group."""

    name: str
    rows: int
    figures: dict[str, Figures]
    """By name of the forecasts, and of differences, and metric."""
    p_value: float
    """Of the test that the last forecasts are calibrated, corrected for the number of groups."""

    def entries(self, of_metric: Callable[[dict[str, Figures], str], Any]) -> dict[str, Any]:
        """JSON values."""
        metrics = {metric: of_metric(self.figures, metric) for metric in self.figures["before"]}
        named = {"group": self.name, "rows": self.rows, "p_value": self.p_value}
        return named | {"metrics": metrics}


def judge_groups(
    sample: Sample,
    forecasts: Mapping[str, Floats],
    groups: Names,
    *,
    n_resamples: int,
    confidence: float,
) -> list[GroupFigures]:
    """Figures of several forecasts of the same rows in each group; see `judge`."""
    p_values = _test(sample, list(forecasts.values())[-1], groups)
    found = []
    for name, rows in rows_by_group(groups):
        part = {key: Q[rows] for key, Q in forecasts.items()}
        options = {"n_resamples": n_resamples, "confidence": confidence}
        figures, differences = judge(sample.take(rows), part, **options)  # type: ignore[arg-type]
        p_value = p_values.get(name, np.nan)
        found.append(GroupFigures(name, len(rows), figures | differences, p_value))
    return found


def _test(sample: Sample, Q: Floats, groups: Names) -> dict[str, float]:
    """Corrected p-values of the test of calibration, by group; none for scores."""
    if Q.ndim == 1 and ((Q < 0) | (Q > 1)).any():
        return {}
    codes, weights, labels = sample.codes, sample.weights, np.arange(sample.n_classes)
    table = group_report(
        codes, Q, groups, sample_weight=weights, labels=labels, random_state=0
    ).table
    return dict(zip(table["group"].tolist(), table["p_value"].tolist(), strict=True))


def group_cells(column: str, table: list[GroupFigures]) -> tuple[list[str], list[list[str]]]:
    """Head and rows of the table of all groups."""
    series = [name for name in table[0].figures if " - " not in name]
    several = len(series) > 1
    head = [column, "rows"]
    head += [f"{title} {name}" if several else title for title in SHOWN.values() for name in series]
    rows = [
        [group.name, f"{group.rows:,}"]
        + [str(group.figures[name][metric]) for metric in SHOWN for name in series]
        + [f"{group.p_value:.3f}"]
        for group in table
    ]
    return [*head, "p-value"], rows


def group_verdict(column: str, table: list[GroupFigures]) -> str:
    """One line on which groups are not calibrated."""
    wrong = [group.name for group in table if group.p_value <= LEVEL]
    if not wrong:
        return f"No group of {column} shows miscalibration (corrected for {len(table)} tests)."
    shown = ", ".join(wrong[:10]) + (", ..." if len(wrong) > 10 else "")
    return f"Not calibrated in {len(wrong)} of {len(table)} groups of {column}: {shown}."
