"""``isoroc evaluate``: metrics of forecasts before and after calibration."""

from typing import Any

from isoroc._cli.conditions import Condition
from isoroc._cli.errors import ExitCode
from isoroc._cli.io.files import open_source
from isoroc._cli.io.reading import Comparison, warn_of_reversal
from isoroc._cli.models import Model, versions
from isoroc._cli.options import (
    ALL_ROWS,
    Clusters,
    Forecasts,
    Json,
    Resamples,
    Selection,
    UseModel,
)
from isoroc._cli.terminal import print_error, print_json, print_table, print_text
from isoroc._evaluation.before_after import make_pair
from isoroc._evaluation.evaluate import check_options, conclude, evaluate_pairs
from isoroc._evaluation.evaluation import Evaluation
from isoroc._evaluation.measures import Collector


def evaluate(
    forecasts: Forecasts,
    /,
    *,
    model: UseModel = None,
    selection: Selection = ALL_ROWS,
    by: str | None = None,
    clusters: Clusters = None,
    fail_if: list[str] | None = None,
    json: Json = False,
    resamples: Resamples = 200,
    confidence: float = 0.95,
) -> ExitCode:
    """Evaluate forecasts before and after calibration.

    Parameters
    ----------
    by
        Column of groups of rows: show the metrics of each group, and test its calibration.
    fail_if
        Exit with code 1 if this condition holds or a figure in it is not defined: a metric, one of
        > < >= <=, and a number, a metric or arithmetic: "after.log_loss.high > before.log_loss".
    confidence
        Probability that an interval covers the true value.
    """
    conditions = [Condition.parse(text) for text in fail_if or ()]
    options = check_options(confidence, resamples, random_state=0)
    loaded = None if model is None else Model.load(model)
    with open_source(forecasts, selection) as source:
        evaluation = _evaluate(Comparison(source, selection, loaded), by, clusters, **options)
    figures = _figures(evaluation)
    default = "after" if evaluation.is_paired else "before"
    failed = [text for condition in conditions if (text := condition.failure(figures, default))]
    if json:
        origin: dict[str, Any] = {"files": source.names, "models": {}, "versions": versions()}
        if loaded is not None:
            checksum = loaded.calibrator.checksum
            origin["models"]["after"] = {"file": loaded.path, "checksum": checksum}
        print_json("evaluate", origin | evaluation.to_dict() | {"failed": failed})
    else:
        _show(evaluation)
    for text in failed:
        print_error("check failed", text)
    return ExitCode.CHECK_FAILED if failed else ExitCode.OK


def _evaluate(
    comparison: Comparison, by: str | None, clusters: str | None, **options: Any
) -> Evaluation:
    """Evaluation of all rows at once, or in batches if they are many and independent."""
    if by is not None or clusters is not None or not comparison.reader.are_many:
        rows = comparison.read(by, clusters=clusters)
        return evaluate_pairs([make_pair(*rows.values())], **options)
    collector = Collector()
    for batch in comparison.stream():
        collector.add(make_pair(*batch.values()))
    warn_of_reversal(collector.kept.before)
    return conclude(collector, **options)


def _figures(evaluation: Evaluation) -> dict[str, Any]:
    """Figures by column and metric, for conditions."""
    columns: dict[str, dict[str, Any]] = {}
    for measure, figures in evaluation.to_dict()["measures"].items():
        for column, figure in figures.items():
            columns.setdefault(column, {})[measure] = figure
    if evaluation.is_paired:  # shares, such as that of changed decisions, also count as after
        columns["after"] = columns["change"] | columns["after"]
    verdict = evaluation.verdict
    about = {"rows": evaluation.n_rows, "p_value": verdict.p_value}
    return about | columns | {"should_calibrate": verdict.should_calibrate}


def _show(evaluation: Evaluation) -> None:
    print_table(f"{evaluation.n_rows:,} rows", *evaluation.cells(), numeric=True)
    if evaluation.groups:
        print_table("groups", *evaluation.group_cells(), numeric=True)
    for sentence in (*evaluation.sentences(), *evaluation.notes):
        print_text(sentence)
