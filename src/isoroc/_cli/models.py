"""Calibrators by name, their parameters from words, and model files."""

import inspect
import json
import sys
from collections.abc import Callable, Collection
from dataclasses import replace
from importlib.metadata import version as version_of
from typing import Any, NamedTuple, Self

from isoroc._cli.errors import CommandError, did_you_mean
from isoroc._cli.io.columns import order_columns, split_words
from isoroc._cli.io.writing import write_bytes
from isoroc._cli.options import STANDARD, InputOptions, Selection
from isoroc._core.types import Floats
from isoroc._input import Segments
from isoroc._maps.loading import load_map
from isoroc._support.files import temporary_folder

#: Column of the rows that a rule accepts.
ACCEPTED = "accepted"
#: The calibrator that ``fit`` uses by default.
DEFAULT = "auto"


def make_calibrator(name: str, words: dict[str, str], options: list[str]) -> Any:
    """Unfitted calibrator with parameters. `options` are the other options of the command."""
    from isoroc._calibrators.registry import methods  # noqa: PLC0415  # slow to import

    known = methods()
    if name not in known:
        raise CommandError(f"--calibrator {name}: unknown; {did_you_mean(name, known)}")
    parameters = inspect.signature(known[name]).parameters
    given = {word.replace("-", "_"): parse_value(text) for word, text in words.items()}
    for key in given.keys() & {"members", "calibrator"}:
        named = _named_calibrators(given[key], known)
        is_one = key == "calibrator" and isinstance(named, list) and len(named) == 1
        given[key] = named[0] if is_one else named
    for word, key in zip(words, given, strict=True):
        if key not in parameters:
            spelled = [known.replace("_", "-") for known in (*options, *parameters)]
            problem = f"neither an option of fit nor a parameter of {name}"
            raise CommandError(f"--{word}: {problem}; {did_you_mean(word, spelled)}")
    # The same file always gives the same model, and progress is shown on terminals.
    defaults = {"random_state": 0, "verbose": int(sys.stderr.isatty())}
    return known[name](**{k: v for k, v in defaults.items() if k in parameters} | given)


def _named_calibrators(value: Any, known: dict[str, type[Any]]) -> Any:
    """Calibrators for names separated by commas. Other values stay unchanged."""
    names = split_words([value]) if isinstance(value, str) and value != "auto" else None
    if not names:
        return value
    for name in names:
        if name not in known:
            raise CommandError(f"{name}: not a calibrator; {did_you_mean(name, known)}")
    return [known[name]() for name in names]


def calibrate(calibrator: Any, forecasts: Floats, segments: Segments | None) -> Floats:
    """Calibrated forecasts. A calibrator that uses segments needs the segments of the rows."""
    further = (segments,) if calibrator.map_.segments else ()
    return calibrator.predict_proba(forecasts, *further)  # type: ignore[no-any-return]


def parse_value(text: str) -> Any:
    """Value of a word: JSON, None, a list separated by commas, or the word itself."""
    if text.lower() in ("none", "true", "false"):
        return {"none": None, "true": True, "false": False}[text.lower()]
    for attempt in (text, f"[{text}]"):
        try:
            return json.loads(attempt)
        except json.JSONDecodeError:
            continue
    return text


class Model(NamedTuple):
    """A calibrator, or its map, from a file, and the columns of the fit if the file names them."""

    path: str
    calibrator: Any
    columns: list[str] | None
    label: str | None
    label_shares: list[str] | None  # columns of soft labels
    labels: list[str] | None  # columns of several labels
    weight: str | None  # column of the weights
    segments: dict[str, bool]  # columns of segments, and whether each is numeric

    @classmethod
    def load(cls, path: str, load: Callable[[str], Any] = load_map) -> Self:
        """Load a model, by default only its map, which imports quickly. `isoroc.load` loads all."""
        if path == STANDARD:
            raise CommandError("a model cannot be read from standard input; name a file.")
        calibrator = load(path)
        summary = calibrator.summary_
        names = getattr(calibrator, "names", None)
        if hasattr(calibrator, "feature_names_in_"):
            names = calibrator.feature_names_in_.tolist()
            # The command passes arrays, and scikit-learn warns about arrays without names.
            del calibrator.feature_names_in_
        columns: Any = summary.get("columns") or names
        valid = isinstance(columns, list) and len(columns) == calibrator.n_features_in_
        columns = [str(name) for name in columns] if valid else None
        stored = (summary.get(key) for key in ("label", "weight_column"))
        label, weight = (name if isinstance(name, str) else None for name in stored)
        shares, labels = (_names(summary.get(key)) for key in ("label_shares", "label_columns"))
        segments = calibrator.map_.segments
        return cls(path, calibrator, columns, label, shares, labels, weight, segments)

    def order_columns(self, columns: list[str], selection: InputOptions) -> list[str]:
        """Columns of forecasts in the order that the calibrator expects."""
        n_columns = self.calibrator.n_features_in_
        classes = self.calibrator.classes_.tolist()
        if len(columns) != n_columns:
            given = f"found {len(columns)} ({', '.join(columns)}); name them with --probs"
            raise CommandError(f"the model takes {n_columns} column(s) of forecasts, {given}.")
        return order_columns(columns, classes, self.columns, selection)

    def complete(self, selection: Selection, schema: Collection[str]) -> Selection:
        """The selection, with outcomes, weight and unit of the fit where the user gave none."""
        given = selection.label or selection.label_shares or selection.labels
        if not given and self.label in schema:
            selection = replace(selection, label=self.label)
        if not given and self.label_shares and set(self.label_shares) <= set(schema):
            selection = replace(selection, label_shares=self.label_shares)
        if not given and self.labels and set(self.labels) <= set(schema):
            selection = replace(selection, labels=self.labels)
        if selection.weight is None and self.weight in schema:
            selection = replace(selection, weight=self.weight)
        unit = self.calibrator.unit_
        # The range of one column of scores is checked in `predict_proba`.
        is_known = len(self.calibrator.classes_) == 2 and unit in ("probability", "logit")
        is_known = is_known and self.calibrator.map_.kind.exclusive
        if selection.unit == "auto" and not is_known:
            selection = replace(selection, unit=unit)
        return selection


def load_rule(path: str, model: Model, added: Collection[str], schema: Collection[str]) -> Any:
    """Rule of a file, for the forecasts of a model. Its column must be new."""
    from isoroc._maps.acceptance import AcceptanceRule  # noqa: PLC0415  # slow to import
    from isoroc.export._exportable import check_rule  # noqa: PLC0415

    if path == STANDARD:
        raise CommandError("a rule cannot be read from standard input; name a file.")
    rule = AcceptanceRule.load(path)
    try:
        check_rule(rule, model.calibrator)
    except ValueError as error:
        raise CommandError(f"{path}: {error}") from error
    if ACCEPTED in {*added, *schema}:
        raise CommandError(f"column {ACCEPTED!r} exists already; rename it.")
    return rule


def _names(entry: Any) -> list[str] | None:
    """A list of names in the summary of a model file, or None if it is anything else."""
    valid = isinstance(entry, list) and all(isinstance(name, str) for name in entry)
    return entry if valid else None


def save_model(calibrator: Any, target: str, summary: dict[str, Any]) -> None:
    """Write a model file, atomically to a file or directly to standard output."""
    with temporary_folder() as folder:
        path = folder / "model.json"
        try:
            calibrator.save(path, summary=summary)
        except ValueError as error:  # it is too large
            raise CommandError(str(error).replace(str(path), target)) from error
        write_bytes(target, path.read_bytes())


def versions() -> dict[str, str]:
    names = ("isoroc", "numpy", "scipy", "scikit-learn", "polars")
    return {name.replace("-", "_"): version_of(name) for name in names}
