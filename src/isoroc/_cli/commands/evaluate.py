"""``isoroc evaluate``: metrics of forecasts before and after calibration."""

from collections import defaultdict
from itertools import pairwise
from typing import Any

from isoroc._cli.conditions import Condition
from isoroc._cli.errors import ExitCode
from isoroc._cli.io.columns import split_words
from isoroc._cli.io.files import open_source
from isoroc._cli.io.reading import Compared, Comparison, warn_of_reversal
from isoroc._cli.models import Model, versions
from isoroc._cli.options import (
    ALL_ROWS,
    Clusters,
    Forecasts,
    Json,
    Resamples,
    SegmentColumns,
    Selection,
    UseModel,
)
from isoroc._cli.terminal import print_error, print_json, print_table, print_text
from isoroc._evaluation.before_after import Pair, make_pair
from isoroc._evaluation.evaluate import check_options, conclude, evaluate_pairs
from isoroc._evaluation.evaluation import Evaluation
from isoroc._evaluation.measures import Collector
from isoroc._support.table import markdown_table


def evaluate(
    forecasts: Forecasts,
    /,
    *,
    model: UseModel = None,
    compare: str | None = None,
    selection: Selection = ALL_ROWS,
    segments: SegmentColumns = None,
    clusters: Clusters = None,
    fail_if: list[str] | None = None,
    json: Json = False,
    markdown: bool = False,
    resamples: Resamples = 200,
    confidence: float = 0.95,
) -> ExitCode:
    """Evaluate forecasts before and after calibration.

    Parameters
    ----------
    compare
        Another model file, or other columns of forecasts of the same rows.
    fail_if
        Exit with code 1 if this condition holds or a figure in it is not defined: a metric, one of
        > < >= <=, and a number, a metric or arithmetic: "after.log_loss.high > before.log_loss".
    markdown
        Print a Markdown table.
    confidence
        Probability that an interval covers the true value.
    """
    conditions = [Condition.parse(text) for text in fail_if or ()]
    options = check_options(confidence, resamples, random_state=0)
    with open_source(forecasts, selection) as source:
        loaded = None if model is None else Model.load(model)
        comparison = Comparison(source, selection, loaded, compare)
        found = _evaluate(comparison, split_words(segments) or [], clusters, **options)
    values = _values(found)
    last = "after" if found[0].is_paired else "before"
    failed = [text for condition in conditions if (text := condition.failure(values, last))]
    if json:
        entries = found[0].to_dict() | {"failed": failed}
        if len(found) > 1:
            entries["compared"] = found[1].to_dict()
        models = {
            name: {"file": each.path, "checksum": each.calibrator.checksum}
            for name, each in comparison.models.items()
        }
        origin = {"files": source.names, "models": models, "versions": versions()}
        print_json("evaluate", origin | entries)
    else:
        for evaluation, title in zip(found, ("", "other, compared with after: "), strict=False):
            _show(evaluation, title, markdown=markdown)
    for text in failed:
        print_error("check failed", text)
    return ExitCode.CHECK_FAILED if failed else ExitCode.OK


def _evaluate(
    comparison: Comparison, segments: list[str], clusters: str | None, **options: Any
) -> list[Evaluation]:
    """Evaluation of the first forecasts against the second, and of these against the third."""
    if segments or clusters is not None or not comparison.reader.are_many:
        rows = comparison.read(segments, clusters)
        return [evaluate_pairs([pair], **options) for pair in _pairs(rows)]
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
    verdict = found[0].verdict
    values: dict[str, Any] = {"rows": found[0].n_rows, "p_value": verdict.p_value} | tables[0]
    values["should_calibrate"] = verdict.should_calibrate
    for columns in tables[1:]:
        values |= {"other": columns["after"], "other_change": columns["change"]}
    return values


def _show(evaluation: Evaluation, title: str, *, markdown: bool) -> None:
    tables = {f"{title}{evaluation.n_rows:,} rows": evaluation.cells()}
    if evaluation.segments:
        tables["segments that cost most"] = evaluation.segment_cells()
    for name, (head, rows) in tables.items():
        if markdown:
            print_text(markdown_table(head, rows) + "\n")
        else:
            print_table(name, head, rows, numeric=True)
    if not markdown:
        for sentence in (*evaluation.sentences(), *evaluation.notes):
            print_text(sentence)
