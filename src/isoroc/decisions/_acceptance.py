"""Acceptance rules: thresholds above which answers may go out, with a guarantee on their error."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, inf, isfinite, log
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoroc._core.bounds import Losses, RowMask, Walk, certify_in_order, rows_needed
from isoroc._core.intervals import Estimate
from isoroc._core.simplex import as_matrix
from isoroc._core.types import Floats, Ints
from isoroc._input import (
    InputError,
    Names,
    Sample,
    check_clusters,
    check_confidence,
    check_groups,
    check_option,
    check_sample,
    check_unlabelled,
    check_weights,
    join_parts,
    numbers_by_class,
    share_seen,
    warn_if_reversed,
)
from isoroc._maps.acceptance import (
    CANDIDATES,
    NEVER,
    ZONES,
    AcceptanceRule,
    Action,
    check_scores,
    decisions_of,
    percent,
)
from isoroc._support.table import Table

__all__ = ["AcceptanceRule", "acceptance_rule"]


def acceptance_rule(
    y: ArrayLike | None,
    P: ArrayLike,
    *,
    max_error: Any,
    confidence: float = 0.95,
    score: ArrayLike | None = None,
    loss: ArrayLike | None = None,
    action: Literal["top", "both", "positive", "negative"] | None = None,
    by_class: bool = False,
    segments: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    calibrator: Any = None,
) -> AcceptanceRule:
    """The lowest threshold above which at most a share `max_error` of new rows is wrong.

    The promise holds with probability `confidence` over the labelled rows, if new rows are like
    these. It holds however good the forecasts are. Better forecasts only let it accept more rows.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, K), or None
        Labels, or soft labels. None if `loss` is given.
    P : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes, calibrated on other rows.
    max_error : float, sequence or mapping
        Largest error of accepted rows, between 0 and 1. With ``action="both"`` or `by_class` it may
        be one number per class: of the rows that are accepted as this class.
    confidence : float, default=0.95
        Probability that the promise is kept, in all zones at once.
    score : array-like of shape (n,), default=None
        Score to put the threshold on. Rows with large scores are accepted. By default the
        probability of the class that the row is decided for.
    loss : array-like of shape (n,), default=None
        Losses between 0 and 1 to limit instead of errors, such as relative costs.
    action : {"top", "both", "positive", "negative"}, default=None
        "top" accepts the most probable class. "both", the default for two classes, does so with a
        threshold for each of them: three zones. "positive" and "negative" accept rows as the second
        or the first of two classes only.
    by_class : bool, default=False
        Whether each class has its own threshold and promise, with any number of classes.
    segments : array-like of shape (n,), default=None
        Segment of each row. Each segment has its own thresholds and promise.
    clusters : array-like of shape (n,), default=None
        Cluster of each row, such as a patient. Rows of one cluster may depend on each other.
    sample_weight : array-like of shape (n,), default=None
        Weights. The promise is about the weighted share of accepted rows.
    labels : array-like of shape (K,), default=None
        Classes in the order of the columns, by default the classes of the calibrator.
    calibrator : calibrator, default=None
        Calibrator to apply to `P`, fitted to other rows. If it was fitted to any of these rows, a
        warning and a note of the rule say so.

    Returns
    -------
    AcceptanceRule

    See Also
    --------
    cascade_rule : The same for several models, cheap ones first.
    risk_coverage : Error of the accepted rows for every share of accepted rows.

    Notes
    -----
    Candidates are about 100 ranks of the scores, chosen without labels, and tested from the
    strictest to the loosest until one fails. Such a fixed sequence needs no correction for their
    number. It has 90 % of the risk ``1 - confidence``. The rest is kept to test whether all rows
    may be accepted, even if the sequence ends early. Errors of independent rows are tested by the
    exact binomial test, and rows with weights, clusters or losses by betting (Waudby-Smith and
    Ramdas, JRSS B 86, 2024). The confidence is divided among zones that have enough rows to certify
    anything.

    The test of a threshold is exact for rows above a fixed rank. The first wrong candidate has no
    better chance of passing if, in addition, errors do not become rarer as scores fall. With
    weights or clusters of different sizes, no new row or cluster may weigh much more than the
    heaviest labelled one: rare heavy rows that are wrong cannot be seen in rows without them.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.decisions import acceptance_rule
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet([0.2, 0.2, 0.2], 3000)
    >>> y = [rng.choice(3, p=p) for p in P]
    >>> rule = acceptance_rule(y, P, max_error=0.05)
    >>> print(rule)
    Accept if the largest probability is at least 0.864: 50 % of the rows (95 % interval 48.2 % to
    51.8 %); 4 % of them were wrong.
    With 95 % confidence at most 5 % of the accepted new rows are wrong, if these are like the 3,000
    labelled rows.
    >>> rule.accept([[0.98, 0.01, 0.01], [0.5, 0.4, 0.1]])
    array([ True, False])
    """
    notes: list[str] = []
    if calibrator is not None:
        P, labels, notes = _apply(calibrator, y, P, labels, sample_weight)
    rows = check_labelled(
        y, P, loss=loss, sample_weight=sample_weight, labels=labels, clusters=clusters
    )
    rule = make_rule(
        rows,
        max_error=max_error,
        confidence=confidence,
        score=None if score is None else check_scores(score, rows.n_given),
        action=action,
        by_class=by_class,
        names=None if segments is None else check_groups(segments, rows.n_given, name="segments"),
    )
    for note in notes:
        warnings.warn(note, UserWarning, stacklevel=2)
    return replace(rule, notes=(*rule.notes, *notes), model=getattr(calibrator, "checksum", None))


def make_rule(
    rows: LabelledRows,
    *,
    max_error: Any,
    confidence: float,
    score: Floats | None = None,
    action: Any = None,
    by_class: bool = False,
    names: Names | None = None,
) -> AcceptanceRule:
    """Rule for rows that were checked. `names` are the segments of all given rows."""
    check_confidence(confidence)
    chosen = _check_action(action, len(rows.classes), by_class=by_class)
    decisions = decisions_of(chosen, rows.forecasts)
    values = rows.forecasts[np.arange(len(decisions)), decisions]
    if score is not None:
        values = score[rows.kept]
    losses = rows.losses(decisions)
    places = np.zeros(len(values), dtype=np.intp)
    if names is not None:
        names, places = np.unique(names[rows.kept], return_inverse=True)
    limits = _check_limits(max_error, rows.classes, chosen)
    zones = list(
        _zones(chosen, decisions, places, classes=rows.classes, names=names, limits=limits)
    )
    level = 1 - _share_of_risk(zones, 1 - confidence)
    lowest = 0.0 if score is None else -inf
    found = [_certify(zone, values, losses, level, lowest) for zone in zones]
    thresholds = np.full((1 if names is None else len(names), len(rows.classes)), inf)
    accepted = np.zeros(len(values), dtype=np.bool_)
    for zone, own in zip(zones, found, strict=True):
        thresholds[zone.segment, zone.decisions] = own.threshold
        accepted[zone.rows] = values[zone.rows] >= own.threshold
    if score is None:
        thresholds = np.minimum(thresholds, NEVER)
    candidates = [
        (z, *line) for z, own in enumerate(found) for line in zip(*own.candidates, strict=True)
    ]
    return AcceptanceRule(
        action=chosen,
        classes=rows.classes,
        segments=names,
        thresholds=thresholds,
        scored=score is not None,
        measure="loss" if rows.has_losses else "error",
        units="rows" if rows.clusters is None else "clusters",
        confidence=float(confidence),
        n_rows=len(values),
        n_accepted=int(accepted.sum()),
        coverage=losses.share(accepted, confidence),
        error=losses.interval(accepted, confidence),
        zones=_table([_line(*both) for both in zip(zones, found, strict=True)], ZONES),
        candidates=_table(candidates, CANDIDATES),
        notes=tuple(own.note for own in found if own.note),
    )


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows of positive weight with their forecasts and outcomes."""

    forecasts: Floats  # shape (n, K)
    classes: NDArray[Any]
    outcomes: NDArray[Any]  # column of the label, soft labels of shape (n, K), or losses
    weights: Floats | None
    clusters: Ints | None
    kept: Ints  # indices of these rows among all given rows
    n_given: int

    @property
    def has_losses(self) -> bool:
        """Whether the outcomes are losses instead of labels."""
        return self.outcomes.ndim == 1 and self.outcomes.dtype.kind == "f"

    def losses(self, decisions: Ints) -> Losses:
        """What each decision loses: 1 if it is wrong, the share of other labels, or a loss."""
        if self.outcomes.ndim == 2:
            values = 1 - np.take_along_axis(self.outcomes, decisions[:, None], axis=1)[:, 0]
        elif self.has_losses:
            values = self.outcomes
        else:
            values = (self.outcomes != decisions) * 1.0
        return Losses(np.clip(values, 0.0, 1.0), self.weights, self.clusters)


def check_labelled(
    y: Any,
    P: Any,
    *,
    loss: Any = None,
    sample_weight: Any = None,
    labels: Any = None,
    clusters: Any = None,
    name: str = "P",
) -> LabelledRows:
    """Check what users pass."""
    if y is None and loss is None:
        raise InputError("y", None, "is None", "pass labels, or losses of the rows as loss=")
    if y is not None:
        sample = check_sample(
            P, y, sample_weight, labels, clusters=clusters, unit="probability", name=name
        )
        if labels is None:
            warn_if_reversed(sample, name=name)
        rows = labelled(sample, clustered=clusters is not None)
    else:
        forecasts, classes = check_unlabelled(P, labels, name=name)
        n = len(forecasts)
        weights = check_weights(sample_weight, n)
        groups = check_clusters(clusters, n, of=name)
        rows = _keep(forecasts, classes, np.zeros(n), weights, groups)
    if loss is None:
        return rows
    losses = check_scores(loss, rows.n_given, "loss")
    if not (good := (losses >= 0) & (losses <= 1)).all():
        row = int(np.argmin(good))
        fix = "losses lie between 0 and 1; divide them by the largest possible one"
        raise InputError("loss", row, f"is {losses[row]:.6g}", fix)
    return replace(rows, outcomes=losses[rows.kept])


def labelled(sample: Sample, *, clustered: bool) -> LabelledRows:
    """Rows of a sample of probabilities."""
    outcomes: NDArray[Any] = np.asarray(sample.codes, dtype=np.intp)
    if sample.parts_of is not None:
        sample, outcomes = join_parts(sample)
    groups = sample.clusters if clustered else None
    forecasts = as_matrix(sample.forecasts)
    return _keep(forecasts, sample.classes, outcomes, sample.weights, groups)


def _keep(
    forecasts: Floats,
    classes: NDArray[Any],
    outcomes: NDArray[Any],
    weights: Floats | None,
    clusters: Ints | None,
) -> LabelledRows:
    """Rows of positive weight. Equal weights do not matter."""
    n = len(forecasts)
    kept = np.arange(n)
    if weights is not None:
        kept = np.flatnonzero(weights)
        weights = None if np.ptp(weights[kept]) == 0 else weights[kept]
    clusters = None if clusters is None else clusters[kept]
    return LabelledRows(forecasts[kept], classes, outcomes[kept], weights, clusters, kept, n)


def _apply(
    calibrator: Any, y: Any, P: Any, labels: Any, weights: Any
) -> tuple[Floats, Any, list[str]]:
    """Calibrated forecasts, the classes, and a note if the calibrator was fitted to these rows."""
    if not hasattr(calibrator, "predict_proba") or not hasattr(calibrator, "unit_"):
        problem = f"is {type(calibrator).__name__}"
        fix = "expected a fitted calibrator of isoroc; or pass calibrated forecasts as P"
        raise InputError("calibrator", None, problem, fix)
    if calibrator.map_.segments:
        fix = "pass calibrated forecasts as P"
        raise InputError("calibrator", None, "uses segments of its own", fix)
    classes = calibrator.classes_ if labels is None else labels
    Q = calibrator.predict_proba(P)
    if y is None:
        return Q, classes, []
    sample = check_sample(P, y, weights, classes, unit=calibrator.unit_)
    return Q, classes, notes_on_seen(calibrator, sample)


def notes_on_seen(calibrator: Any, sample: Sample) -> list[str]:
    """A note if the calibrator was fitted to some of these rows, as passed to it."""
    share = share_seen(calibrator.summary_, sample)
    if not share:
        return []
    seen = f"The calibrator was fitted to {percent(share)} of these rows"
    return [f"{seen}: the promise does not hold. Make the rule from other rows."]


class Zone(NamedTuple):
    """Rows that share a threshold."""

    rows: Ints
    segment: int
    decisions: slice  # the classes that it decides for
    limit: float
    action: str  # name of the class, empty if the zone decides for any class
    name: str  # name of the segment, empty without segments

    @property
    def title(self) -> str:
        """Which rows these are."""
        segment = f" in segment {self.name}" if self.name else ""
        return f"rows{segment}{f' decided for {self.action}' if self.action else ''}"


class Found(NamedTuple):
    """What is certified about a zone."""

    threshold: float
    n_accepted: int
    coverage: float
    error: Estimate
    candidates: tuple[Any, ...]  # columns of `CANDIDATES` without the first
    note: str


def _check_action(action: Any, n_classes: int, *, by_class: bool) -> Action:
    check_option("action", action, (None, "top", "both", "positive", "negative"))
    if by_class:
        if action not in (None, "top", "both"):
            problem = f"is True with action={action!r}, which decides for one class"
            raise InputError("by_class", None, problem, "leave one of them out")
        return "both" if n_classes == 2 else "class"
    if n_classes > 2 and action not in (None, "top"):
        problem = f"is {action!r}, which is for two classes"
        fix = 'pass action="top", or by_class=True for a threshold per class'
        raise InputError("action", None, problem, fix)
    if action is not None:
        return action  # type: ignore[no-any-return]
    return "both" if n_classes == 2 else "top"


def _check_limits(max_error: Any, classes: NDArray[Any], action: Action) -> Floats:
    """Largest error of the rows that are decided for each class."""
    if np.ndim(max_error) == 0 and not isinstance(max_error, dict):
        max_error = np.full(len(classes), max_error)
    elif action not in ("both", "class"):
        fix = 'pass one number, or action="both" or by_class=True'
        raise InputError("max_error", None, f"has several numbers with action={action!r}", fix)
    limits = numbers_by_class(max_error, classes, name="max_error")
    for limit in limits.tolist():
        check_limit(limit)
    return limits


def check_limit(max_error: Any) -> None:
    """Raise an error unless a limit can be certified and needs to be."""
    if not isinstance(max_error, numbers.Real) or not 0 <= float(max_error) < 1:
        raise InputError("max_error", None, f"is {max_error!r}", "expected 0 < max_error < 1")
    if max_error == 0:
        fix = "no number of rows certifies that there are no errors; pass a small number"
        raise InputError("max_error", None, "is 0", fix)


def _zones(
    action: Action,
    decisions: Ints,
    places: Ints,
    *,
    classes: NDArray[Any],
    names: Names | None,
    limits: Floats,
) -> Iterator[Zone]:
    """Zones of an action in each segment. `places` has the segment number of each row."""
    K = len(classes)
    for s, name in enumerate([""] if names is None else names.tolist()):
        inside = places == s
        if action == "top":
            yield Zone(np.flatnonzero(inside), s, slice(K), float(limits[0]), "", name)
            continue
        only = {"positive": [1], "negative": [0]}.get(action, list(range(K)))
        for k in only:
            rows = np.flatnonzero(inside & (decisions == k))
            yield Zone(rows, s, slice(k, k + 1), float(limits[k]), str(classes[k]), name)


def _share_of_risk(zones: list[Zone], risk: float) -> float:
    """Risk of each zone: the total is divided among zones with enough rows for their share."""
    ratio = np.sort([log(1 - zone.limit) * len(zone.rows) for zone in zones])
    able = ratio <= np.log(risk / np.arange(1, len(ratio) + 1))
    return risk / max(int(np.flatnonzero(able).max(initial=0)) + 1, 1)


def _certify(zone: Zone, values: Floats, losses: Losses, confidence: float, lowest: float) -> Found:
    """Threshold of a zone, infinite if none is certified."""
    rows = zone.rows
    own = losses.take(rows)
    inside = values[rows]
    needed = ceil(log(1 - confidence) / log(1 - zone.limit) - 1e-9)
    cuts = cut_points(inside, needed, lowest)
    tested = certify_in_order(lambda i: (own, inside >= cuts[i]), len(cuts), zone.limit, confidence)
    threshold = float(cuts[tested.last]) if tested.last >= 0 else inf
    accepted = inside >= threshold
    figures = np.zeros((len(cuts), 3))
    for i, cut in enumerate(cuts):
        above = inside >= cut
        figures[i] = above.sum(), own.weight_of(above) / losses.weight, own.mean(above)
    columns = (cuts, *figures.T, tested.p_values, tested.certified)
    note = ""
    if tested.last < 0:
        strictest = cuts[tested.first] if tested.first < len(cuts) else inf
        note = _why(zone, own, tested, inside >= strictest, confidence)
    share = own.weight_of(accepted) / losses.weight
    error = own.interval(accepted, confidence)
    return Found(threshold, int(accepted.sum()), share, error, columns, note)


def cut_points(values: Floats, needed: int, lowest: float, most: int = 50) -> Floats:
    """Thresholds from the strictest to one that accepts all rows, between values that differ."""
    n = len(values)
    if n < needed:
        return np.zeros(0)
    distinct, counts = np.unique(values, return_counts=True)
    apart = np.diff(distinct) > 1e-9 * max(np.abs(distinct).max(), 1e-300)
    above = n - counts.cumsum()[:-1][apart]  # rows above each gap
    gaps = distinct[:-1][apart] / 2 + distinct[1:][apart] / 2
    ranks = np.append(np.geomspace(needed, n, most), np.linspace(needed, n, most))
    places = len(above) - 1 - np.searchsorted(above[::-1], np.unique(ranks))
    chosen = np.unique(places[places >= 0])[::-1]
    return np.append(gaps[chosen], lowest)


def _why(zone: Zone, losses: Losses, tested: Walk, rows: RowMask, level: float) -> str:
    """Why nothing is certified, and what would help. `rows` are the rows of the first test."""
    limit = percent(zone.limit)
    n = len(zone.rows)
    if not rows.any():
        needed = ceil(rows_needed(0.0, zone.limit, level))
        enough = f"takes {needed:,} rows without an error or more"
        return f"A limit of {limit} {enough}, and there are {n:,} {zone.title}."
    first = int(rows.sum())
    error = losses.mean(rows)
    text = f"Of the {first:,} surest {zone.title} {percent(error)} were wrong"
    if error < zone.limit:
        text += f", too many to certify {limit}"
        factor = rows_needed(error, zone.limit, level) / first
        if not losses.are_errors:  # the logarithm of a capital grows as the number of rows
            evidence = -log(tested.p_values[tested.first])
            factor = -log(1 - level) / evidence if evidence > 0 else inf
        if factor < 1000:
            text += f"; about {max(ceil((factor - 1) * n), 1):,} more labels would do"
    total = losses.mean(np.ones(n, dtype=np.bool_))
    if total > zone.limit:
        refused = percent((total - zone.limit) / (1 - zone.limit))
        everything = "all rows" if zone.title == "rows" else f"all {zone.title}"
        text += f"; at least {refused} of {everything} must be refused, whatever the score"
    return f"{text}."


def _line(zone: Zone, found: Found) -> tuple[Any, ...]:
    names = (zone.action, zone.name, found.threshold, zone.limit, len(zone.rows))
    error = found.error
    shares = (found.n_accepted, found.coverage, error.value, error.high)
    return (*names, *shares, isfinite(found.threshold) or found.threshold == -inf)


def _table(lines: list[Any], columns: dict[str, str]) -> Table:
    """Table with columns of the given kinds."""
    types = {"U": np.str_, "f": np.float64, "i": np.int64, "b": np.bool_}
    table = Table.from_rows(lines, *columns)
    return Table({name: table[name].astype(types[kind]) for name, kind in columns.items()})
