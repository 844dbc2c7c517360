"""``isoroc evaluate``: metrics of forecasts before and after calibration."""

from typing import Any

from isoroc._cli import options as opt
from isoroc._cli.batches import ahead
from isoroc._cli.conditions import Condition
from isoroc._cli.errors import ExitCode
from isoroc._cli.io.opening import open_source
from isoroc._cli.labels import are_several, read_labelled_table
from isoroc._cli.models import Model, versions
from isoroc._cli.reading import Reader, open_rows, warn_of_reversal
from isoroc._cli.terminal import print_error, print_json, print_table, print_text
from isoroc._evaluation.before_after import make_pair, rows_of_fit
from isoroc._evaluation.evaluate import conclude, evaluate_pairs, pair_of_labels
from isoroc._evaluation.evaluation import Evaluation
from isoroc._evaluation.measures import Collector
from isoroc._input import check_confidence


def evaluate(
    forecasts: opt.Tables,
    /,
    *,
    model: opt.UseModel = None,
    selection: opt.Selection = opt.ALL_ROWS,
    description: opt.Description = opt.UNDESCRIBED,
    fail_if: list[str] | None = None,
    json: opt.Json = False,
    confidence: float = 0.95,
) -> ExitCode:
    """Evaluate forecasts before and after calibration.

    Parameters
    ----------
    fail_if
        Exit with code 1 if this condition holds or a figure in it is not defined: a metric, one of
        > < >= <=, and a number, a metric or arithmetic: "after.log_loss.high > before.log_loss".
    confidence
        Probability that an interval covers the true value.
    """
    conditions = [Condition.parse(text) for text in fail_if or ()]
    check_confidence(confidence)
    loaded = None if model is None else Model.load(model)
    with open_source(forecasts, selection) as source:
        if are_several(selection, loaded):
            table = read_labelled_table(source, selection, loaded, description)
            pair = pair_of_labels(table.Y, table.P, loaded and loaded.calibrator, **table.options())
            evaluation = evaluate_pairs([pair], confidence)
        else:
            evaluation = _evaluate(open_rows(source, selection, loaded), description, confidence)
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
        print_table(f"{evaluation.n_rows:,} rows", *evaluation.cells(), numeric=True)
        if evaluation.segments and (cells := evaluation.segment_cells())[1]:
            print_table("segments that cost most", *cells, numeric=True)
        for sentence in (*evaluation.sentences(), *evaluation.notes):
            print_text(sentence)
    for text in failed:
        print_error("check failed", text)
    return ExitCode.CHECK_FAILED if failed else ExitCode.OK


def _evaluate(reader: Reader, description: opt.Description, confidence: float) -> Evaluation:
    """Evaluation of all rows at once, or in batches if they are many and independent."""
    fitted = None if reader.model is None else rows_of_fit(reader.model.calibrator)
    if description != opt.UNDESCRIBED or not reader.are_many:
        rows = reader.read(reader.segment_types(description), description.clusters)
        return evaluate_pairs([make_pair(*rows.values(), fitted=fitted)], confidence)
    collector = Collector()
    for batch in ahead(reader.stream()):
        collector.add(make_pair(*batch.values(), fitted=fitted))
    warn_of_reversal(collector.kept.before)
    return conclude(collector, confidence)


def _figures(evaluation: Evaluation) -> dict[str, Any]:
    """Figures by column and metric, for conditions."""
    columns: dict[str, dict[str, Any]] = {}
    for measure, figures in evaluation.to_dict()["measures"].items():
        for column, figure in figures.items():
            columns.setdefault(column, {})[measure] = figure
    if evaluation.is_paired:  # shares, such as of changed decisions, are also in "after"
        columns["after"] = columns["change"] | columns["after"]
    verdict = evaluation.verdict
    about = {"rows": evaluation.n_rows, "p_value": verdict.p_value}
    return about | columns | {"should_calibrate": verdict.should_calibrate}
