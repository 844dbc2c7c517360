"""AcceptanceRule: which rows may go out without a person, as a value with one formula."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from math import inf
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoroc._backends import NUMPY, Ops, Truth, V
from isoroc._core.intervals import Estimate
from isoroc._core.types import Floats
from isoroc._input import (
    InputError,
    Names,
    check_groups,
    check_length,
    check_numbers,
    check_unlabelled,
)
from isoroc._maps.modelfile import Fault, decode, encode
from isoroc._maps.modelfile.document import (
    entries,
    faults_of,
    open_envelope,
    read_envelope,
    serialise,
)
from isoroc._support.files import replacing
from isoroc._support.table import Table
from isoroc._support.text import listed

RULE_FORMAT = "isoroc-rule"
RULE_VERSION = 1
#: Threshold that no probability reaches.
NEVER = 2.0
Action = Literal["top", "both", "class", "positive", "negative"]
ACTIONS: tuple[Action, ...] = ("top", "both", "class", "positive", "negative")
#: Columns of `AcceptanceRule.zones`, each with the kinds of its array.
ZONES = {
    "action": "U",
    "segment": "U",
    "threshold": "f",
    "max_error": "f",
    "n_rows": "i",
    "n_accepted": "i",
    "coverage": "f",
    "error": "f",
    "bound": "f",
    "certified": "b",
}
CANDIDATES = {
    "zone": "i",
    "threshold": "f",
    "n_accepted": "i",
    "coverage": "f",
    "error": "f",
    "p_value": "f",
    "certified": "b",
}


@dataclass(frozen=True, eq=False, repr=False)
class AcceptanceRule:
    """Which rows are accepted, and what is promised about them. ``print`` shows it in words.

    A zone is a set of rows with its own threshold: all rows, rows decided for one class, or rows in
    one segment.
    """

    action: Action
    """What accepted rows are decided for, as in `isoroc.decisions.acceptance_rule`."""
    classes: NDArray[Any]
    """The classes, in the order of the columns."""
    segments: Names | None
    """Names of the segments, or None without segments."""
    thresholds: Floats
    """Threshold of each segment and decision, shape (S, K), 2 or infinity if no row reaches it."""
    scored: bool
    """Whether thresholds apply to the user's score instead of to probabilities."""
    measure: Literal["error", "loss"]
    """Whether the rule limits errors or the user's loss."""
    units: Literal["rows", "clusters"]
    """What must be independent."""
    confidence: float
    """Probability that all certified zones keep their promise."""
    n_rows: int
    n_accepted: int
    coverage: Estimate
    """Share of the labelled rows that are accepted, with a two-sided interval."""
    error: Estimate
    """Error of the accepted rows. Each end is a bound with probability `confidence`."""
    zones: Table
    """One row per zone. ``bound`` is the upper bound of its error, at most ``max_error`` if the
    zone is certified."""
    candidates: Table
    """All thresholds that were considered, with p-values where they were tested."""
    notes: tuple[str, ...]
    """Why zones are not certified, and what would help."""
    model: str | None = None
    """Checksum of the calibrator that makes the forecasts, if one was given."""

    @property
    def threshold(self) -> Any:
        """The threshold, or one for each of several zones. Infinite if not certified."""
        return _single(self.zones["threshold"])

    @property
    def max_error(self) -> Any:
        """The limit, or one for each of several zones."""
        return _single(self.zones["max_error"])

    @property
    def certified(self) -> bool:
        """Whether any threshold is certified. Otherwise no row is accepted."""
        return bool(self.zones["certified"].any())

    def accept(
        self, P: ArrayLike, *, score: ArrayLike | None = None, segments: ArrayLike | None = None
    ) -> NDArray[np.bool_]:
        """Which rows may go out without a person.

        Parameters
        ----------
        P : array-like of shape (n, K) or (n,)
            Forecasts of the same kind as the rule was made with: calibrated, if these were.
        score : array-like of shape (n,), default=None
            Scores, if the rule was made with scores.
        segments : array-like of shape (n,), default=None
            Segments, if the rule has any. Rows of unknown segments are not accepted.
        """
        forecasts, _ = check_unlabelled(P, self.classes)
        n = len(forecasts)
        if (score is not None) != self.scored:
            fix = "pass score=" if self.scored else "leave score= out"
            raise InputError("score", None, "must be given as when the rule was made", fix)
        if (segments is not None) != (self.segments is not None):
            fix = "leave segments= out" if self.segments is None else "pass segments="
            raise InputError("segments", None, "must be given as when the rule was made", fix)
        values = None if score is None else check_scores(score, n)[:, None]
        if segments is None or self.segments is None:
            return np.asarray(self.formula(NUMPY, forecasts, values)[:, 0], dtype=np.bool_)
        accepted = np.zeros(n, dtype=np.bool_)
        names = check_groups(segments, n, name="segments")
        for s, name in enumerate(self.segments):
            rows = names == name
            own = None if values is None else values[rows]
            accepted[rows] = self.formula(NUMPY, forecasts[rows], own, segment=s)[:, 0]
        return accepted

    def formula(self, ops: Ops[V], Q: V, score: V | None = None, *, segment: int = 0) -> Truth:
        """Whether each row is accepted, a condition of width one."""
        row = self.thresholds[segment]
        if self.action in ("positive", "negative"):
            k = int(self.action == "positive")
            value = ops.take(Q, [k])
            return (value if score is None else score) >= float(row[k])
        value, place = ops.largest(Q)
        if (row == row[0]).all():
            return (value if score is None else score) >= float(row[0])
        return ops.look_up(row[:, None], place) <= (value if score is None else score)

    def decisions(self, Q: Floats) -> NDArray[np.intp]:
        """Class that each row is decided for if it is accepted."""
        return decisions_of(self.action, Q)

    def frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """`candidates` as a dataframe of the named library."""
        return self.candidates.frame(backend)

    def to_dict(self) -> dict[str, Any]:
        """Figures and sentences as JSON can hold them."""
        lines = zip(*self.zones.values(), strict=True)
        zones = [dict(zip(self.zones, line, strict=True)) for line in lines]
        return {
            "certified": self.certified,
            "confidence": self.confidence,
            "rows": self.n_rows,
            "accepted": self.n_accepted,
            "coverage": self.coverage._asdict(),
            self.measure: self.error._asdict(),
            "zones": zones,
            "notes": list(self.notes),
            "text": str(self),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the rule to a JSON file with a checksum, atomically."""
        with replacing(path) as new:
            new.write_bytes(self.document()[1])

    def document(self) -> tuple[str, bytes]:
        """Checksum and content of the file."""
        parts = {f.name: getattr(self, f.name) for f in fields(self)}
        content = encode(parts, "rule", _refuse)["items"]
        return serialise(RULE_FORMAT, RULE_VERSION, {"rule": content})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Rule from a file that `save` wrote. Damaged and altered files are refused."""
        fix = "Pass a file that was written by AcceptanceRule.save or isoroc accept."
        document = read_envelope(path, RULE_FORMAT, RULE_VERSION, ("rule",), fix=fix)
        with faults_of(path):
            return cls._of(document)

    @classmethod
    def read(cls, document: Any) -> Self:
        """Rule from a document inside another file. Raises a `ValueError` if it is damaged."""
        try:
            return cls._of(open_envelope(document, RULE_FORMAT, RULE_VERSION, ("rule",)))
        except Fault as fault:
            raise ValueError(str(fault)) from fault

    @classmethod
    def _of(cls, document: dict[str, Any]) -> Self:
        names = [f.name for f in fields(cls)]
        content = entries(document["rule"], "rule", names)
        values = {name: decode(content[name], f"rule.{name}", _refuse) for name in names}
        return cls(**_checked(values))

    def __str__(self) -> str:
        return "\n".join([*self._sentences(), *self.notes])

    def __repr__(self) -> str:
        return str(self)

    def _sentences(self) -> list[str]:
        promise = f"With {percent(self.confidence)} confidence"
        if not self.certified:
            limit = listed([percent(x) for x in sorted(set(self.zones["max_error"].tolist()))])
            return [f"No row can be accepted: no threshold is certified for at most {limit}."]
        low, high = (percent(x) for x in self.coverage[1:])
        interval = f"{percent(self.confidence)} interval {low} to {high}"
        shown = f"{percent(self.coverage.value)} of the rows ({interval})"
        texts = []
        if len(self.zones["action"]) == 1:
            error = percent(self.error.value)
            is_error = self.measure == "error"
            wrong = f"{error} of them were wrong" if is_error else f"mean loss {error}"
            everything = self.n_accepted == self.n_rows
            accepted = "all rows" if everything else f"{self._condition(0)}: {shown}"
            texts.append(f"Accept {accepted}; {wrong}.")
            limit = percent(self.max_error)
            errors = f"at most {limit} of the accepted new rows are wrong"
            loss = f"the mean loss of the accepted new rows is at most {limit}"
            texts.append(f"{promise} {errors if is_error else loss}")
        else:
            certified = np.flatnonzero(self.zones["certified"])
            parts = [self._zone(i) for i in certified[:6]]
            more = len(certified) - len(parts)
            parts += [f"{more} more zones"] if more else []
            which = "all rows: " if self.n_accepted == self.n_rows else ""
            texts.append(f"Accept {which}{'; '.join(parts)}.")
            rest = percent(1 - self.coverage.value)
            texts.append(f"Together they are {shown}; {rest} are left to a person.")
            texts.append(f"{promise} no zone exceeds its limit on new rows")
        texts[-1] += f", if these are like the {self.n_rows:,} labelled rows"
        texts[-1] += " and clusters are independent." if self.units == "clusters" else "."
        return texts

    def _condition(self, zone: int) -> str:
        """When the rows of a zone are accepted."""
        threshold = float(self.zones["threshold"][zone])
        action = str(self.zones["action"][zone])
        if threshold == (-inf if self.scored else 0.0):
            by_class = self.action in ("both", "class")
            return f"if {action} is the most probable class" if by_class else "whatever the score"
        if self.scored:
            return f"if the score is at least {threshold:.6g}"
        if self.action == "both":
            second = str(self.classes[1])
            if action == second:
                return f"if the probability of {second} is at least {threshold:.4g}"
            return f"if the probability of {second} is at most {1 - threshold:.4g}"
        of = (
            "the largest probability"
            if self.action in ("top", "class")
            else f"the probability of {action}"
        )
        return f"if {of} is at least {threshold:.4g}"

    def _zone(self, i: int) -> str:
        zone = {name: column[i] for name, column in self.zones.items()}
        segment = f"in segment {zone['segment']} " if self.segments is not None else ""
        decision = f"as {zone['action']} " if zone["action"] else ""
        error = f"{percent(zone['error'])} {'wrong' if self.measure == 'error' else 'loss'}"
        share = (
            f"{percent(zone['coverage'])} of the rows, {error}, limit {percent(zone['max_error'])}"
        )
        return f"{segment}{decision}{self._condition(i)} ({share})"


def decisions_of(action: Action, Q: Floats) -> NDArray[np.intp]:
    """Class that each row is decided for: the most probable one, or always the same."""
    if action in ("positive", "negative"):
        return np.full(len(Q), int(action == "positive"), dtype=np.intp)
    return np.asarray(Q.argmax(axis=1))


def check_scores(score: Any, n_rows: int, name: str = "score") -> Floats:
    """One finite number per row."""
    values = check_numbers(score, name)
    if values.ndim != 1:
        raise InputError(name, None, f"has shape {values.shape}", "expected one number per row")
    check_length(values, n_rows, name=name)
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        fix = "scores are finite; leave such rows to a person"
        raise InputError(name, row, f"is {values[row]}", fix)
    return values


def percent(share: float) -> str:
    """A share in percent, with three digits."""
    return f"{100 * share:.3g} %"


def _single(column: NDArray[Any]) -> Any:
    return column[0].item() if len(column) == 1 else column


def _refuse(_: Any, place: str) -> Any:
    raise Fault(place, "has no place in a rule")


def _checked(values: dict[str, Any]) -> dict[str, Any]:
    """Fields of a rule from a file. Raises a `Fault` if one of them is invalid."""

    def need(name: str, condition: Any, expected: str) -> None:
        if not condition:
            raise Fault(f"rule.{name}", f"expected {expected}")

    for name in ("coverage", "error"):
        numbers = values[name]
        good = isinstance(numbers, list) and len(numbers) == 3
        need(name, good and all(isinstance(x, float | int) for x in numbers), "three numbers")
        values[name] = Estimate(*map(float, numbers))
    need("notes", _is_list_of(values["notes"], str), "a list of texts")
    values["notes"] = tuple(values["notes"])
    need("action", values["action"] in ACTIONS, " or ".join(ACTIONS))
    need("measure", values["measure"] in ("error", "loss"), "error or loss")
    need("units", values["units"] in ("rows", "clusters"), "rows or clusters")
    need("scored", isinstance(values["scored"], bool), "true or false")
    need("model", isinstance(values["model"], str | None), "a checksum or null")
    for name in ("n_rows", "n_accepted"):
        need(name, type(values[name]) is int and values[name] >= 0, "a whole number")
    confidence = values["confidence"]
    need("confidence", isinstance(confidence, float) and 0 < confidence < 1, "a probability")
    classes = values["classes"]
    is_array = isinstance(classes, np.ndarray) and classes.ndim == 1
    need("classes", is_array and len(set(classes.tolist())) == len(classes) > 1, "two classes")
    names = values["segments"]
    is_array = isinstance(names, np.ndarray) and names.dtype.kind == "U" and names.ndim == 1
    need("segments", names is None or is_array, "names or null")
    shape = (1 if names is None else len(names), len(classes))
    thresholds = values["thresholds"]
    good = isinstance(thresholds, np.ndarray) and thresholds.dtype == np.float64
    good = good and thresholds.shape == shape and not np.isnan(thresholds).any()
    need("thresholds", good, f"numbers of shape {shape}")
    for name, columns in (("zones", ZONES), ("candidates", CANDIDATES)):
        table = values[name]
        good = isinstance(table, Table) and list(table) == list(columns)
        kinds = good and [column.dtype.kind for column in table.values()]
        need(name, kinds == list(columns.values()), f"a table of {', '.join(columns)}")
    need("zones", values["zones"].n_rows > 0, "one zone or more")
    return values


def _is_list_of(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)
