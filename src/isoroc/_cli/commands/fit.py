"""``isoroc fit``: fit a calibrator to forecasts and outcomes, and write a model file."""

import inspect
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

import isoroc
from isoroc._cli import options as opt
from isoroc._cli.conditions import Condition
from isoroc._cli.errors import CommandError, ExitCode
from isoroc._cli.io.columns import abridged, split_words
from isoroc._cli.io.opening import open_source
from isoroc._cli.io.source import BATCH
from isoroc._cli.io.writing import check_target
from isoroc._cli.labels import LabelledTable, are_several, read_labelled_table
from isoroc._cli.models import DEFAULT, Model, calibrate, make_calibrator, save_model, versions
from isoroc._cli.reading import load_counts, open_rows
from isoroc._cli.terminal import print_error, print_json, print_note, print_warning
from isoroc._core.losses import are_impossible, log_losses
from isoroc._counts import Counts
from isoroc._evaluation.before_after import make_pair
from isoroc._input import Sample, Weighting, slices
from isoroc._maps.modelfile import read
from isoroc.metrics._estimation.cell_errors import count_forecasts

#: What a calibrator is fitted to.
FitRows = Sample | Counts | LabelledTable


def fit(
    forecasts: opt.Tables,
    /,
    *,
    output: opt.Output,
    selection: opt.Selection = opt.ALL_ROWS,
    counts: opt.FromCounts = False,
    weighting: Weighting = "importance",
    calibrator: Annotated[str | None, Parameter(alias="-c")] = None,
    description: opt.Description = opt.UNDESCRIBED,
    compare: str | None = None,
    fail_if: list[str] | None = None,
    json: opt.Json = False,
    **parameters: str,
) -> ExitCode:
    """Fit a calibrator to forecasts and outcomes.

    Parameters
    ----------
    output
        Model file to write, or - for standard output.
    weighting
        Meaning of the weights: `frequency` if a weight is a number of rows, `importance` if only
        the ratios of weights matter.
    calibrator
        The calibrator to fit. `isoroc calibrators` lists them. Default: auto. With `--labels`, the
        calibrator of single labels, by default spline.
    compare
        Another model file. Conditions refer to its figures as `old`, such as `old.log_loss`.
    fail_if
        Write no model and exit with code 1 if this condition holds: "class_rows < 100",
        "gain.low <= 0", "after.log_loss > before.log_loss", "not should_calibrate".
    parameters
        Parameters of the calibrator, such as --max-bins 20 --pseudocount 0.5.
    """
    check_target(output, forecasts, "a model")
    if json and output == opt.STANDARD:
        raise CommandError("--json and the model cannot both be standard output; name a file.")
    conditions = [Condition.parse(text) for text in fail_if or ()]
    several = are_several(selection, None)
    name = calibrator or ("multilabel" if several else DEFAULT)
    model = _make(calibrator, parameters, description, several=several)
    rows, origin = _read(forecasts, selection, description, counts=counts)
    counted = isinstance(rows, Counts)
    sample = _fit(model, rows, weighting)
    common = model.common_ if isinstance(model, isoroc.SegmentCalibrator) else model
    figures = _figures(model, rows, sample, compare)
    verdict = _verdict(model, sample, weighting)
    if verdict is not None:
        figures["unseen"] = {"log_loss": verdict.after}
        figures["gain"] = {"value": verdict.gain, "low": verdict.low, "high": verdict.high}
        figures |= {"p_value": verdict.p_value, "should_calibrate": verdict.should_calibrate}
    failed = [text for condition in conditions if (text := condition.failure(figures))]
    losses = {name: figures[name]["log_loss"] for name in ("before", "after")}
    summary = origin | {"where": selection.where, "log_loss": losses}
    if not several:
        some = sample.draw(20_000)  # `isoroc monitor` compares new forecasts with these
        Q = calibrate(model, some.as_given(), some.segments)
        summary["forecast_cells"] = count_forecasts(Q, some.weights).tolist()
    if not failed:
        save_model(model, output, summary)
        print_note(_headline(name, model, output))
    if figures["rows"] < 10:
        print_warning(f"{figures['rows']} rows are too few to calibrate; collect more.")
    notes = _notes(model, common, verdict, counted=counted)
    for line in _lines(model, origin["columns"] or [], notes, figures):
        print_note(f"  {line}")
    if json:
        about = {"calibrator": name, "classes": model.classes_, "notes": notes}
        about["verdict"] = verdict and verdict.to_dict()
        about |= {} if failed else {"checksum": read(output)["checksum"]}
        outcome = {"output": output, "failed": failed, "versions": versions()}
        print_json("fit", about | summary | figures | outcome)
    for text in failed:
        print_error("check failed", f"{text}; {output} was not written")
    return ExitCode.CHECK_FAILED if failed else ExitCode.OK


def _make(
    name: str | None, parameters: dict[str, str], description: opt.Description, *, several: bool
) -> Any:
    """Unfitted calibrator: within segments, or of several labels, if there are any."""
    if several and name is None and not parameters:
        return isoroc.MultiLabelCalibrator()
    model = make_calibrator(name or ("spline" if several else DEFAULT), parameters, _options())
    if several:
        return isoroc.MultiLabelCalibrator(model)
    if description.segments and not isinstance(model, isoroc.SegmentCalibrator):
        model = isoroc.SegmentCalibrator(model)
    if description.categorical and isinstance(model, isoroc.SegmentCalibrator):
        model.set_params(categorical=split_words(description.categorical))
    return model


def _options() -> list[str]:
    """Names of the options of fit itself."""
    known = [*inspect.signature(fit).parameters]
    known += [each.name for each in (*fields(opt.Selection), *fields(opt.Description))]
    grouped = ("forecasts", "selection", "description", "parameters")
    return [name for name in known if name not in grouped]


def _read(
    files: list[str], selection: opt.Selection, description: opt.Description, *, counts: bool
) -> tuple[FitRows, dict[str, Any]]:
    """Rows or counts to fit to, and where they come from."""
    if are_several(selection, None) and not counts:
        with open_source(files, selection) as source:
            table = read_labelled_table(source, selection, None, description)
        about: dict[str, Any] = {"files": source.names[:100], "label_columns": table.outcomes}
        return table, about | {"columns": table.columns, "weight_column": table.weight}
    if counts:
        rows: Any = load_counts(files, selection, description)
        names = files
        label = None
        shares = None
        weight = None
        columns = list(rows.columns or []) or None
    else:
        with open_source(files, selection) as source:
            reader = open_rows(source, selection)
            counted = description == opt.UNDESCRIBED and reader.are_countable()
            segments = reader.segment_types(description)
            rows = (
                reader.count() if counted else reader.read(segments, description.clusters)["before"]
            )
        names = source.names
        label = reader.chosen.label
        shares = list(reader.chosen.shares.values()) or None
        weight = reader.chosen.weight
        columns = reader.columns
    origin = {"files": names[:100], "label": label, "label_shares": shares, "columns": columns}
    return rows, origin | {"weight_column": weight}


def _fit(model: Any, rows: FitRows, weighting: Weighting) -> Sample:
    """Fit a calibrator and return the rows, cells or entries of labels that it was fitted to."""
    from joblib import parallel_config  # noqa: PLC0415  # imported with scikit-learn

    with parallel_config("threading", n_jobs=-1):  # unless the calibrator has `n_jobs`
        return _fit_to(model, rows, weighting)


def _fit_to(model: Any, rows: FitRows, weighting: Weighting) -> Sample:
    if isinstance(rows, LabelledTable):
        model.fit(rows.P, rows.Y, weighting=weighting, **rows.options())
        sample: Sample = _pair(rows).before
        return sample
    if isinstance(rows, Counts):
        model.fit_counts(rows, weighting=weighting)
        return rows.sample(per_fold=False)
    if (rows.codes == rows.codes[0]).all():
        problem = f"all rows have the label {rows.classes[rows.codes[0]]!s}"
        raise CommandError(f"{problem}; at least two classes are needed.")
    from isoroc._calibrators.base import fit_sample  # noqa: PLC0415  # slow to import

    fit_sample(model, rows, weighting)
    return rows


def _kind(model: Any) -> str:
    return "classes" if model.map_.kind.exclusive else "labels"


def _verdict(model: Any, sample: Sample, weighting: Weighting) -> Any:
    """The verdict on the whole model, or None if the calibrator has none."""
    if not isinstance(model, isoroc.SegmentCalibrator):
        return getattr(model, "verdict_", None)
    if sample.segments is None:
        return getattr(model.common_, "verdict_", None)
    from isoroc._calibrators.segment import judge_unseen  # noqa: PLC0415  # slow to import

    return judge_unseen(model, sample, weighting)


def _headline(name: str, model: Any, output: str) -> str:
    target = "standard output" if output == opt.STANDARD else output
    size = f"{model.summary_['rows']:,} rows, {len(model.classes_)} {_kind(model)}"
    if (n_bins := getattr(model, "n_bins_", None)) is not None:
        size += f", {n_bins} bin" + ("s" if n_bins > 1 else "")
    return f"{target}: {name} fitted to {size}"


def _notes(model: Any, common: Any, verdict: Any, *, counted: bool) -> list[str]:
    """The verdict in words, and which columns shift the forecasts."""
    lines = [] if verdict is None else [str(verdict)]
    if verdict is not None and common is model:
        in_cells = counted or model.summary_["rows"] > common.max_cells
        lines = [f"{verdict}" + ("; based on all rows, in cells" if in_cells else "")]
    if common is not model:
        names = list(dict.fromkeys(model.shifts_["column"].tolist()))
        text = f"the map with shifts by segment has weight {model.weight_:.2f}"
        lines.append(f"{text}: {abridged(names)}" if names else "no column shifts the forecasts")
    return lines


def _lines(
    model: Any, columns: list[str], notes: list[str], figures: dict[str, Any]
) -> Iterator[str]:
    """Lines about a fit: the class of each column, notes and losses."""
    classes = model.classes_
    pairs = [f"{name} is {label!s}" for name, label in zip(columns, classes, strict=False)]
    if len(columns) == 1:
        yield f"{columns[0]} is the score of class {classes[1]!s}"
    elif len(columns) <= 12:
        yield f"{_kind(model)}: " + ", ".join(pairs)
    yield from notes
    before, after = (figures[name]["log_loss"] for name in ("before", "after"))
    shown = "" if before is None else f"{before:.4f} before, "
    yield f"log loss on the rows of the fit: {shown}{after:.4f} after"
    if impossible := figures["impossible"].get("before"):
        yield f"outcomes that had been given probability 0: {impossible:,}"


def _figures(model: Any, rows: FitRows, sample: Sample, compare: str | None) -> dict[str, Any]:
    """Figures for conditions: rows, and log losses on these rows."""
    figures: dict[str, Any] = {"rows": int(model.summary_["rows"])}
    figures["class_rows"] = _rarest(rows, sample)
    losses, figures["impossible"] = _losses(_pairs(rows, sample, model))
    figures |= {name: {"log_loss": losses.get(name)} for name in ("before", "after")}
    if compare is not None:
        old = _load(compare, model, sample)
        figures["old"] = {"log_loss": _losses(_pairs(rows, sample, old))[0]["after"]}
    return figures


def _rarest(rows: FitRows, sample: Sample) -> float:
    """Rows of the rarest class, or of the rarer outcome of a label."""
    if isinstance(rows, LabelledTable):
        return float(np.minimum((rows.Y == 0).sum(axis=0), (rows.Y == 1).sum(axis=0)).min())
    in_parts = isinstance(rows, Counts) or sample.parts_of is not None
    return float((sample if in_parts else replace(sample, weights=None)).class_weights().min())


def _pair(table: LabelledTable, model: Any = None) -> Any:
    """`Pair` of the entries of labels, before and after calibration."""
    from isoroc._evaluation.evaluate import pair_of_labels  # noqa: PLC0415  # slow to import

    return pair_of_labels(table.Y, table.P, model, **table.options())


def _pairs(table: FitRows, sample: Sample, model: Any) -> Iterator[Any]:
    """`Pair` of all rows, cells or entries of labels before and after calibration, in batches."""
    if isinstance(table, LabelledTable):
        yield _pair(table, model)
        return
    for rows in slices(len(sample), BATCH):
        part = sample.take(rows)
        Q = calibrate(model, part.as_given(), part.segments)
        yield make_pair(part, replace(part, forecasts=Q, unit="probability"))


def _losses(pairs: Iterator[Any]) -> tuple[dict[str, float], Counter[str]]:
    """Mean log losses, and numbers of outcomes of probability 0, before and after calibration."""
    sums: Counter[str] = Counter()
    weights: Counter[str] = Counter()
    impossible: Counter[str] = Counter()
    for pair in pairs:
        for stage, part in pair.series.items():
            of_rows = part.row_weights()
            sums[stage] += of_rows @ log_losses(part.forecasts, part.codes)
            weights[stage] += of_rows.sum()
            impossible[stage] += round(part.count_rows(are_impossible(part.forecasts, part.codes)))
    return {stage: float(sums[stage] / weights[stage]) for stage in sums}, impossible


def _load(path: str, model: Any, sample: Sample) -> Any:
    """Calibrator of another model, which must have been fitted to the same classes and columns."""
    old = Model.load(path)
    exclusive = model.map_.kind.exclusive
    if old.calibrator.map_.kind.exclusive != exclusive:
        several = "classes that exclude each other" if exclusive else "several labels"
        raise CommandError(f"--compare {path}: expected a model of {several}, as these rows have.")
    same_classes = old.calibrator.classes_.tolist() == model.classes_.tolist()
    if not same_classes or old.calibrator.n_features_in_ != model.n_features_in_:
        raise CommandError(f"--compare {path}: it was fitted to other classes or columns.")
    given = [] if sample.segments is None else sample.segments.names
    if missing := [name for name in old.segments if name not in given]:
        raise CommandError(f"--compare {path}: it has the segments {abridged(missing)}; name them.")
    return old.calibrator
