"""The result of an evaluation: its table, its verdict, and how both are written."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isoroc._core.intervals import UNKNOWN, Estimate, Statistic, half_width
from isoroc._core.losses import EPSILON
from isoroc._core.verdict import Decision, Verdict
from isoroc._evaluation.before_after import Pair
from isoroc._evaluation.catalogue import MEASURES, Estimates
from isoroc._evaluation.decision_curve import DecisionCurve, decision_curve
from isoroc._input import InputError
from isoroc._maps.modelfile.document import plain
from isoroc._support.table import Table
from isoroc.metrics import CalibrationSummary, calibration_summary
from isoroc.metrics._segments import MIN_ROWS, none_tested


def _text(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Forecasts before and after calibration, measured on the same rows.

    ``evaluation["log_loss", "change"]`` is a single value, and ``print`` shows the table and the
    verdict. Intervals of changes compare both forecasts row by row. The page on metrics says how
    they are computed.
    """

    measures: Mapping[str, Mapping[str, Estimate]]
    """Estimates of each measure, "before" and, with second forecasts, "after" and "change". Shares
    of changed decisions and pairs only have a "change"."""
    n_rows: int
    """Number of rows with positive weight."""
    classes: NDArray[Any]
    confidence: float
    """Probability that an interval covers the true value."""
    impossible: Mapping[str, int]
    """Number of rows whose outcome was given probability 0, "before" and "after"."""
    rows: Pair
    """The rows, or a sample if there are many, for `net_benefit` and `calibration_summary`."""
    verdict: Verdict
    """Whether calibration lowers the log loss. Without second forecasts, or if their calibrator was
    fitted to these rows, whether it could."""
    notes: tuple[str, ...] = ()
    """Which figures are based on some of the rows only."""
    segments: Mapping[str, Table] = field(default_factory=dict)
    """Where forecasts are wrong, "before" and "after": the tables of
    `isoroc.metrics.segment_report`."""
    directions: Mapping[str, Table] = field(default_factory=dict)
    """Which way the forecasts are wrong, "before" and "after". Tables with a row for the most
    probable class ("top"), overconfident if its difference is above 0, and one per class, of at
    most 50: mean ``forecast``, rate ``observed``, their ``difference`` and its interval."""
    miscalibrated: Mapping[str, bool] = field(default_factory=dict)
    """Whether forecasts are miscalibrated beyond chance, "before" and "after"."""
    seen: float = 0.0
    """Share of the rows that the calibrator was fitted to, as far as that is known."""

    def __getitem__(self, key: tuple[str, str]) -> float:
        measure, stage = key
        return self.measures[measure][stage].value

    @property
    def table(self) -> Table:
        """All figures: columns ``measure``, ``of``, ``value``, ``low`` and ``high``."""
        rows = [
            (m, stage, *f) for m, figures in self.measures.items() for stage, f in figures.items()
        ]
        return Table.from_rows(rows, "measure", "of", "value", "low", "high")

    @property
    def is_paired(self) -> bool:
        """Whether there are second forecasts."""
        return self.rows.after is not None

    def direction(self, measure: str) -> Literal["better", "worse", "no clear change", ""]:
        """Whether a measure changed beyond its interval, or empty if unknown."""
        change = self.measures[measure].get("change", UNKNOWN)
        better = MEASURES[measure].better
        if not better or math.isnan(change.low):
            return ""
        if change.low <= 0 <= change.high:
            return "no clear change"
        return "better" if (change.low > 0) == (better > 0) else "worse"

    @property
    def decision(self) -> Decision:
        """The verdict in a few words: "calibrate", "leave it" or "too few rows to tell"."""
        return self.verdict.decision

    def sentences(self) -> list[str]:
        """The verdict, direction, rows of probability 0, order and decisions, and segments."""
        texts = [_sentence(str(self.verdict)), *self._seen(), *self._direction()]
        for stage, n in self.impossible.items():
            if n:
                rows = "1 row" if n == 1 else f"{n:,} rows"
                when = f" {stage} calibration" if self.is_paired else ""
                bound = f"each counts as {-math.log(EPSILON):.0f} nats in the log loss"
                texts.append(f"In {rows} the outcome was given probability 0{when}; {bound}.")
        if self.is_paired:
            texts.append(self._order())
        if self.segments:
            texts.append(self._segments())
        return texts

    def _seen(self) -> list[str]:
        """What the figures after calibration mean on rows that the calibrator was fitted to."""
        if not self.seen:
            return []
        text = "The calibrator was fitted to these very rows"
        if self.seen < 0.95:
            text = f"The calibrator was fitted to about {rounded_percent(self.seen)} of these rows"
        effect = "so the figures after calibration are too good"
        return [f"{text}, {effect}, and the verdict does without them. Use other rows to judge it."]

    def _direction(self) -> list[str]:
        """Which way forecasts that are miscalibrated are wrong, if that is clear for any."""
        texts = []
        is_clear = False
        for stage, table in self.directions.items():
            if stage == "after" and self.seen:
                continue
            text = "no direction is clear"
            phrases = _clear_directions(table, self.confidence, self._named)
            if phrases and self.miscalibrated.get(stage):
                verb = "were" if self.is_paired else "are"
                text = f"the forecasts {verb} {' and '.join(phrases)}"
                is_clear = True
            texts.append(f"{stage} calibration {text}" if self.is_paired else text)
        level = f"{100 * self.confidence:g} % intervals"
        return [_sentence(f"{'; '.join(texts)} ({level})")] if is_clear else []

    def _named(self, label: Any) -> str:
        return "the labels" if self.rows.multilabel else class_name(label)

    def _order(self) -> str:
        names = ("decisions_changed", "pairs_reversed", "pairs_tied")
        changed, turned, tied = (self[name, "change"] for name in names)
        did = [
            f"changed {rounded_percent(changed)} of the decisions"
            if changed
            else "changed no decision"
        ]
        if turned:
            did.append(f"reversed the order of {rounded_percent(turned)} of the pairs of rows")
        if tied:
            rows = "" if turned else " of the pairs of rows"
            did.append(f"turned {rounded_percent(tied)}{rows} into ties")
        if not turned and not tied:
            did.append("kept the order of all pairs of rows")
        return f"Calibration {', '.join(did[:-1])} and {did[-1]}."

    def wrong_segments(self, level: float = 0.05) -> list[str]:
        """Segments in which the last forecasts are wrong, at most a share `level` by chance."""
        if not self.segments:
            return []
        table = list(self.segments.values())[-1]
        names = _segment_names(table)
        return [names[i] for i in np.flatnonzero(table["adjusted"] <= level)]

    def _segments(self) -> str:
        wrong = self.wrong_segments()
        n = list(self.segments.values())[-1].n_rows
        noun = "label" if self.rows.multilabel else "segment"
        if not n:
            return none_tested(MIN_ROWS, noun)
        if not wrong:
            return f"No {noun} shows miscalibration (adjusted for {n} tests)."
        shown = "; ".join(wrong[:6]) + ("; ..." if len(wrong) > 6 else "")
        text = f"Wrong in {len(wrong)} of {n} {noun}s (false discovery rate 5 %): {shown}"
        is_wrong = self.miscalibrated.get(list(self.segments)[-1], True)
        return f"{text}{'' if is_wrong else '; over all rows these errors cancel out'}."

    def worst_segments(self, most: int = 12) -> Table:
        """The costliest segments before calibration, with figures of all forecasts.

        Columns are ``name`` and ``rows`` and, for "before" and "after", ``ratio``, ``low``,
        ``high`` and ``adjusted``, such as ``before_ratio``.
        """
        first = next(iter(self.segments.values()))
        names = _segment_names(first)[:most]
        table = Table(name=np.array(names), rows=first["rows"][:most])
        for stage, report in self.segments.items():
            row_of = {name: i for i, name in enumerate(_segment_names(report))}
            rows = np.array([row_of[name] for name in names], dtype=np.intp)
            for column in ("forecast", "observed", "ratio", "low", "high", "adjusted"):
                table[f"{stage}_{column}"] = report[column][rows]
        return table

    def net_benefit(self, thresholds: Any = None) -> DecisionCurve:
        """`isoroc.decisions.net_benefit` of the forecasts of two classes."""
        return decision_curve(self.rows, thresholds, self.confidence)

    def calibration_summary(self, stage: str | None = None) -> CalibrationSummary:
        """`isoroc.metrics.calibration_summary` of a stage, "before" or "after" (the default)."""
        samples = self.rows.draw(100_000).series
        name = stage or list(self.rows.samples)[-1]
        if name not in samples:
            problem = f"are {name!r}, which are missing or not probabilities"
            raise InputError("stage", None, problem, "choose other forecasts")
        sample = samples[name]
        return calibration_summary(
            self.classes[sample.codes],
            sample.forecasts,
            sample_weight=sample.weights,
            labels=self.classes,
            clusters=sample.clusters,
            confidence=self.confidence,
        )

    @property
    def series(self) -> list[str]:
        """Which forecasts are probabilities: of "before" and "after"."""
        return list(self.rows.series)

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Head and rows of the table as text."""
        interval = f"{100 * self.confidence:g} % interval"
        stages = ["before"]
        head = ["value", interval]
        rows = []
        if self.is_paired:
            stages = ["before", "after", "change"]
            head = [*stages, f"{interval} of the change"]
        for measure, figures in self.measures.items():
            values = [_text(figures[stage].value) if stage in figures else "" for stage in stages]
            _, low, high = figures.get(stages[-1], UNKNOWN)
            ends = "" if math.isnan(low) else f"{_text(low)} to {_text(high)}"
            rows.append([MEASURES[measure].title, *values, ends])
        return ["measure", *head], rows

    def segment_cells(self) -> tuple[list[str], list[list[str]]]:
        """Head and rows of the table of the worst segments as text."""
        table = self.worst_segments()
        stages = list(self.segments)
        shown = [(stage, "forecast") for stage in stages] + [(stages[0], "observed")]
        shown += [(stage, column) for column in ("ratio", "adjusted") for stage in stages]
        titles = {"adjusted": "p-value", "ratio": "observed / forecast"}
        columns = {"segment": table["name"].tolist(), "rows": [f"{n:,}" for n in table["rows"]]}
        for stage, column in shown:
            when = f" {stage}" if self.is_paired and column != "observed" else ""
            write = p_value_text if column == "adjusted" else "{:.3f}".format
            cells = [write(value) for value in table[f"{stage}_{column}"]]
            columns[titles.get(column, column) + when] = cells
        return list(columns), [list(row) for row in zip(*columns.values(), strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values that JSON can hold. NaN becomes None."""
        measures = {
            measure: {stage: estimate._asdict() for stage, estimate in figures.items()}
            for measure, figures in self.measures.items()
        }
        values = {
            "rows": self.n_rows,
            "classes": self.classes.tolist(),
            "confidence": self.confidence,
            "decision": self.decision,
            "verdict": self.verdict.to_dict(),
            "miscalibrated": dict(self.miscalibrated),
            "seen": self.seen,
            "measures": plain(measures, "measures"),
            "impossible": dict(self.impossible),
            "notes": list(self.notes),
            "directions": plain(self.directions, "directions"),
        }
        return values | ({"segments": plain(self.segments, "segments")} if self.segments else {})

    def frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """`table` as a dataframe of the named library."""
        return self.table.frame(backend)

    def __repr__(self) -> str:
        tables = [self.cells()] + ([self.segment_cells()] if self.segments else [])
        shown = [repr(Table.from_rows(rows, *head)) for head, rows in tables if rows]
        return "\n".join([*shown, *(f"  {text}" for text in (*self.sentences(), *self.notes))])

    def _repr_html_(self) -> str:
        head, rows = self.cells()
        return Table.from_rows(rows, *head)._repr_html_() + f"<p>{_sentence(str(self.verdict))}</p>"


def _segment_names(table: Table) -> list[str]:
    """The segments, and with three classes or more their classes, in words."""
    pairs = zip(table["column"], table["segment"], strict=True)
    names = [f"{column}: {segment}" for column, segment in pairs]
    if "class" not in table:
        return names
    return [f"{name} ({label})" for name, label in zip(names, table["class"], strict=True)]


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def class_name(label: Any) -> str:
    """A class in a sentence: "class 1", since a label alone may be a number."""
    return str(label) if str(label).lower().startswith("class") else f"class {label}"


def _clear_directions(table: Table, confidence: float, named: Callable[[Any], str]) -> list[str]:
    """How the most probable class and the class that is farthest off are wrong, beyond chance."""
    gap = table["difference"]
    n_classes = len(table["difference"]) - 1
    reach = (table["high"] - table["low"]) / 2
    if n_classes > 2:  # Bonferroni
        reach[1:] *= half_width(1 - (1 - confidence) / n_classes) / half_width(confidence)
    clear = np.abs(gap) > reach

    def size(i: int) -> str:
        low, high = sorted(np.sign(gap[i]) * table[end][i] for end in ("low", "high"))
        return f"by {_text(abs(gap[i]))} ({_text(low)} to {_text(high)})"

    phrases = []
    if clear[0]:
        phrases.append(f"{'over' if gap[0] > 0 else 'under'}confident {size(0)}")
    if clear[1:].any():
        k = 2 if n_classes == 2 else 1 + int(np.argmax(np.abs(gap[1:]) * clear[1:]))
        side = "high" if gap[k] > 0 else "low"
        phrases.append(f"too {side} for {named(table['event'][k])} {size(k)}")
    return phrases


def p_value_text(value: float) -> str:
    """P-value as text, never 0.000."""
    return "< 0.001" if value < 0.0005 else f"{value:.3f}"


def rounded_percent(value: float) -> str:
    """Share as text in percent. Shares close to 0 and 1 are not rounded to them."""
    if 0 < value < 0.0005 or 0.9995 < value < 1:
        return "less than 0.1 %" if value < 0.5 else "more than 99.9 %"
    return f"{100 * value:.1f} %" if 0 < value < 0.1 or 0.9 < value < 1 else f"{100 * value:.0f} %"


def tabulate(
    estimates: Estimates, confidence: float, *, paired: bool, n_classes: int
) -> dict[str, dict[str, Estimate]]:
    """Estimates of all measures that exist for this number of classes, NaN where unknown."""
    table: dict[str, dict[str, Estimate]] = {}
    for name, measure in MEASURES.items():
        is_known = any((name, stage) in estimates for stage in measure.stages)
        stages = [stage for stage in measure.stages if paired or stage == "before"]
        if not stages or not measure.exists(n_classes) or (measure.if_estimated and not is_known):
            continue
        table[name] = {}
        for stage in stages:
            estimate = estimates.get((name, stage), Statistic(math.nan, math.nan))
            ends = np.clip(estimate.interval(confidence), *measure.range_of(stage)).tolist()
            table[name][stage] = Estimate(estimate.value, *ends)
    return table
