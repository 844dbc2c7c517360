"""``isoroc evaluate``: metrics of forecasts before and after calibration."""

import re
from collections import defaultdict
from itertools import pairwise
from typing import Any

from isoroc._cli.conditions import Condition
from isoroc._cli.errors import CommandError, ExitCode
from isoroc._cli.io.files import open_source
from isoroc._cli.io.reading import Compared, Comparison, warn_of_reversal
from isoroc._cli.models import Model, versions
from isoroc._cli.options import ALL_ROWS, Forecasts, Json, Resamples, Selection, UseModel
from isoroc._cli.terminal import print_error, print_json, print_table, print_text
from isoroc._evaluation.before_after import Pair, make_pair
from isoroc._evaluation.evaluate import check_options, conclude, evaluate_pairs
from isoroc._evaluation.evaluation import Evaluation
from isoroc._evaluation.measures import Collector
from isoroc._support.table import Table, markdown_table
from isoroc.decisions import ThresholdReport, threshold_for

#: Thresholds at which --clinical shows the net benefit.
THRESHOLDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)


def evaluate(
    forecasts: Forecasts,
    /,
    *,
    model: UseModel = None,
    compare: str | None = None,
    selection: Selection = ALL_ROWS,
    by: str | None = None,
    fail_if: list[str] | None = None,
    json: Json = False,
    markdown: bool = False,
    clinical: bool = False,
    threshold: list[str] | None = None,
    resamples: Resamples = 200,
    confidence: float = 0.95,
) -> ExitCode:
    """Evaluate forecasts before and after calibration.

    Parameters
    ----------
    compare
        Another model file, or other columns of forecasts of the same rows.
    by
        Column of groups of rows: metrics of each group, and a test of calibration.
    fail_if
        Exit with code 1 if this condition holds or a figure in it is not defined: a metric, one of
        > < >= <=, and a number, a metric or arithmetic: "after.log_loss.high > before.log_loss".
    markdown
        Print a Markdown table.
    clinical
        Also print the clinical panel (observed/expected ratio, intercept, slope, ICI, E50, E90,
        Emax) and, for two classes, the net benefit at some thresholds.
    threshold
        Also find the threshold that reaches a target: "precision >= 0.9", "recall >= 0.8",
        "false_positive_rate <= 0.01", "alerts <= 0.05" of the rows or "alerts <= 100 of 5000". Can
        be repeated. It acts on the last class.
    confidence
        Probability that an interval covers the true value.
    """
    conditions = [Condition.parse(text) for text in fail_if or ()]
    targets = [_target(text) for text in threshold or ()]
    options = check_options(confidence, resamples, random_state=0)
    with open_source(forecasts, selection) as source:
        loaded = None if model is None else Model.load(model)
        comparison = Comparison(source, selection, loaded, compare)
        found = _evaluate(comparison, by, **options)
    values = _values(found)
    last = "after" if found[0].is_paired else "before"
    failed = [text for condition in conditions if (text := condition.failure(values, last))]
    if json:
        entries = found[0].to_dict() | {"failed": failed}
        if len(found) > 1:
            entries["compared"] = found[1].to_dict()
        if clinical:
            entries["clinical"] = _clinical(found[0])
        if targets:
            entries["thresholds"] = [
                {"threshold": float(report), "target": report.target} | report.table
                for report in (_threshold(found[0], *target) for target in targets)
            ]
        models = {
            name: {"file": each.path, "checksum": each.calibrator.checksum}
            for name, each in comparison.models.items()
        }
        origin = {"files": source.names, "models": models, "versions": versions()}
        print_json("evaluate", origin | entries)
    else:
        for evaluation, title in zip(found, ("", "other, compared with after: "), strict=False):
            _show(evaluation, title, markdown=markdown, clinical=clinical)
        for target in targets:
            print_text(repr(_threshold(found[0], *target)))
    for text in failed:
        print_error("check failed", text)
    return ExitCode.CHECK_FAILED if failed else ExitCode.OK


def _evaluate(comparison: Comparison, by: str | None, **options: Any) -> list[Evaluation]:
    """Evaluation of the first forecasts against the second, and of these against the third."""
    if by is not None or not comparison.reader.are_many():
        return [evaluate_pairs([pair], **options) for pair in _pairs(comparison.read(by))]
    collectors = defaultdict[int, Collector](Collector)
    for compared in comparison.stream():
        for k, pair in enumerate(_pairs(compared)):
            collectors[k].add(pair)
    warn_of_reversal(collectors[0].kept.before)
    return [conclude(collector, **options) for collector in collectors.values()]


def _pairs(compared: Compared) -> list[Pair]:
    samples = list(compared.values())
    return [make_pair(a, b) for a, b in pairwise(samples)] or [make_pair(samples[0])]


def _values(found: list[Evaluation]) -> dict[str, Any]:
    """Figures by column and metric, for conditions."""
    tables: list[dict[str, dict[str, Any]]] = [{} for _ in found]
    for columns, evaluation in zip(tables, found, strict=True):
        for measure, figures in evaluation.to_dict()["measures"].items():
            for of, figure in figures.items():
                columns.setdefault(of, {})[measure] = figure
        if evaluation.is_paired:  # shares, such as that of changed decisions, also count as after
            columns["after"] = columns["change"] | columns["after"]
    values: dict[str, Any] = {"rows": found[0].n_rows} | tables[0]
    for columns in tables[1:]:
        values |= {"other": columns["after"], "other_change": columns["change"]}
    return values


def _target(text: str) -> tuple[Any, float, float | None]:
    """Metric, target and number of rows of a period."""
    found = re.fullmatch(r"\s*(\w+)\s*(>=|<=)\s*([\d.e-]+)(?:\s+of\s+(\d+))?\s*", text)
    if found is None or (found[2] == ">=") != (found[1] in ("precision", "recall")):
        raise CommandError(f'--threshold {text}: expected such as "precision >= 0.9".')
    return found[1], float(found[3]), float(found[4]) if found[4] else None


def _threshold(evaluation: Evaluation, metric: Any, target: float, n_rows: Any) -> ThresholdReport:
    """The threshold on the last forecasts."""
    *_, last = evaluation.rows.samples.values()
    P, codes, weights = last.arrays
    options = {"sample_weight": weights, "n_rows": n_rows, "labels": evaluation.classes}
    return threshold_for(evaluation.classes[codes], P, **options, metric=metric, target=target)


def _clinical(evaluation: Evaluation) -> dict[str, Table]:
    """The clinical panel of each forecasts, and net benefit if there are two classes."""
    series = evaluation.series
    tables = {f"calibration {of}": evaluation.calibration_summary(of).table for of in series}
    if len(evaluation.classes) == 2 and len(series) == 1 + evaluation.is_paired:
        tables["net benefit"] = evaluation.net_benefit(THRESHOLDS).table
    return tables


def _show(evaluation: Evaluation, title: str, *, markdown: bool, clinical: bool) -> None:
    tables = {f"{title}{evaluation.n_rows:,} rows": evaluation.cells()}
    if evaluation.groups:
        tables["groups"] = evaluation.group_cells()
    for name, table in _clinical(evaluation).items() if clinical else ():
        lines = zip(*table.values(), strict=True)
        cells = [[f"{v:.4g}" if isinstance(v, float) else str(v) for v in row] for row in lines]
        tables[f"{title}{name}"] = list(table), cells
    for name, (head, rows) in tables.items():
        if markdown:
            print_text(markdown_table(head, rows) + "\n")
        else:
            print_table(name, head, rows, numeric=True)
    if not markdown:
        for sentence in (*evaluation.sentences(), *evaluation.notes):
            print_text(sentence)
