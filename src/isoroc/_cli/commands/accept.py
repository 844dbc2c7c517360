"""``isoroc accept``: which rows may go out without a person, with a limit on their error."""

from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from cyclopts import Parameter

from isoroc._cli import options as opt
from isoroc._cli.conditions import Condition
from isoroc._cli.errors import CommandError, ExitCode
from isoroc._cli.io.columns import check_column, split_words
from isoroc._cli.io.opening import open_source
from isoroc._cli.io.writing import check_target, write_bytes
from isoroc._cli.labels import are_several
from isoroc._cli.models import Model
from isoroc._cli.reading import open_rows
from isoroc._cli.terminal import print_error, print_json, print_text, print_warning
from isoroc._input import Names, Sample, check_groups
from isoroc._input.segments import SegmentColumn
from isoroc.decisions._acceptance import labelled, make_rule, notes_on_seen


def accept(
    forecasts: opt.Tables,
    /,
    *,
    max_error: Annotated[list[str], Parameter(consume_multiple=False)],
    output: Annotated[str | None, Parameter(alias="-o")] = None,
    model: opt.UseModel = None,
    selection: opt.Selection = opt.ALL_ROWS,
    action: Literal["top", "both", "positive", "negative"] | None = None,
    by_class: bool = False,
    segments: str | None = None,
    clusters: str | None = None,
    confidence: float = 0.95,
    fail_if: list[str] | None = None,
    json: opt.Json = False,
) -> ExitCode:
    """Find the rows that may go out without a person, with a limit on their error.

    Parameters
    ----------
    max_error
        Largest share of accepted rows that may be wrong, such as 0.02, or one share per class, such
        as no=0.02,yes=0.1.
    output
        File for the rule, which `isoroc apply --rule` and `isoroc export --rule` take.
    action
        Accept rows as the most probable class (top), as either of two classes with a threshold for
        each (both, the default for two classes), or as the second or first class only.
    by_class
        A threshold and a limit for each class.
    segments
        Column of segments: a threshold and a limit for each of them.
    clusters
        Column of clusters. Rows of one cluster, such as a patient, are dependent.
    confidence
        Probability that the limits hold for new rows like these.
    fail_if
        Exit with code 1 if this condition holds: "coverage < 0.6", "not certified".
    """
    conditions = [Condition.parse(text) for text in fail_if or ()]
    if output is not None:
        check_target(output, [model, *forecasts], "a rule")
    loaded = None if model is None else Model.load(model)
    before, sample, names = _read(forecasts, selection, loaded, segments, clusters)
    rule = make_rule(
        labelled(sample, clustered=clusters is not None),
        max_error=_limits(max_error),
        confidence=confidence,
        action=action,
        by_class=by_class,
        names=names,
    )
    if loaded is not None:
        notes = notes_on_seen(loaded.calibrator, before)
        for note in notes:
            print_warning(note)
        rule = replace(rule, notes=(*rule.notes, *notes), model=loaded.calibrator.checksum)
    if output is not None:
        write_bytes(output, rule.document()[1])
    figures = rule.to_dict()
    failed = [text for condition in conditions if (text := condition.failure(figures))]
    if json:
        print_json("accept", figures | {"failed": failed})
    else:
        print_text(str(rule))
    for text in failed:
        print_error("check failed", text)
    return ExitCode.CHECK_FAILED if failed else ExitCode.OK


def _read(
    forecasts: list[str],
    selection: opt.Selection,
    model: Model | None,
    segments: str | None,
    clusters: str | None,
) -> tuple[Sample, Sample, Names | None]:
    """The rows before and after calibration, and the names of their segments."""
    if are_several(selection, model):
        raise CommandError("--labels: a rule is about labels that exclude each other; use --label.")
    with open_source(forecasts, selection) as source:
        described = {}
        if segments is not None:
            described[check_column("--segments", segments, source.schema)] = False
        compared = open_rows(source, selection, model).read(described, clusters)
    before = compared["before"]
    sample = compared.get("after", before)
    if sample.unit != "probability":
        fix = "name a --model that calibrates them"
        raise CommandError(f"--probs: a rule needs probabilities; {fix}.")
    if segments is None or before.segments is None:
        return before, sample, None
    return before, sample, _names(before, before.segments.columns[segments])


def _names(sample: Sample, column: SegmentColumn) -> Names:
    """Name of the segment of each row that the user passed."""
    names = np.array([*(column.levels if column.levels is not None else ()), None])[column.values]
    if sample.parts_of is not None:
        _, first = np.unique(sample.parts_of, return_index=True)
        names = names[first]
    return check_groups(names, len(names), name="segments")


def _limits(words: list[str]) -> Any:
    """A number, or numbers by class."""
    parts = split_words(words) or []
    try:
        if len(parts) == 1 and "=" not in parts[0]:
            return float(parts[0])
        pairs = [word.rpartition("=") for word in parts]
        return {name: float(limit) for name, _, limit in pairs if name} or [float(w) for w in parts]
    except ValueError as error:
        fix = "write a number, or one per class, such as no=0.02,yes=0.1"
        raise CommandError(f"--max-error {','.join(words)}: not a number; {fix}.") from error
