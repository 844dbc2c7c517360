"""OnlineCalibrator: a mixture of half-lives that keeps up with a stream of outcomes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from isoroc._calibrators.base import Calibrator, FromMap, IdentityCalibrator, attach_fitted
from isoroc._calibrators.monotone import MonotoneCalibrator
from isoroc._calibrators.spline import SplineCalibrator
from isoroc._core.ledger import ClockUnit, Ledger, RegretBound
from isoroc._core.losses import log_losses
from isoroc._core.types import Floats
from isoroc._counts import DecayedCounts
from isoroc._input import (
    InputError,
    Sample,
    UnitOption,
    Weighting,
    check_length,
    check_number,
    check_order,
    check_sample,
    check_units,
    in_order,
    range_of,
    to_array,
    warn_if_reversed,
)
from isoroc._maps import IdentityMap, Map, MixtureMap
from isoroc._maps.modelfile import Fault, checks
from isoroc._support.files import creation_time
from isoroc._support.table import Table
from isoroc._support.threads import one_blas_thread

#: Number of latest batches in `history_`.
MOST_BATCHES = 1_000
#: Number of latest batches in `seen_`.
MOST_NAMES = 10_000


class Batch(NamedTuple):
    """Labelled rows, with weights that count rows."""

    sample: Sample
    times: Floats | None = None  # of each row
    served: MixtureMap | None = None  # the earlier mixture that forecast them

    @property
    def n_rows(self) -> int:
        """Number of rows, or of rows in cells."""
        every = np.ones(len(self.sample), dtype=np.bool_)
        return round(self.sample.count_rows(every))


class State(NamedTuple):
    """Everything learned from a stream so far."""

    ledger: Ledger
    counts: list[DecayedCounts]  # one for each half-life
    members: list[Calibrator]  # the uncalibrated forecasts, then one for each half-life
    maps: list[Map]  # of the members
    history: list[tuple[float, ...]]  # rows of `history_`

    @property
    def map(self) -> MixtureMap:
        """The present mixture."""
        weights = self.ledger.weights
        return MixtureMap(
            kind=self.maps[0].kind, members=self.maps, weights=weights, monotone=False
        )


@dataclass(eq=False, repr=False, kw_only=True)
class OnlineCalibrator(Calibrator):
    """Keeps up with a stream: calibrators that forget at different rates, mixed by their losses.

    `partial_fit` takes labels as they arrive, and `predict_proba` forecasts at any time. Members
    are the uncalibrated forecasts and one calibrator for each half-life, fitted to all rows so far
    with weights that halve with their age. Their weights follow Bayes' rule, so the mixture loses
    hardly more than the best of them, however the data come: see `regret_bound_`.

    Parameters
    ----------
    calibrator : calibrator or None, default=None
        Calibrator of the members. None is `SplineCalibrator` for two classes and
        `MonotoneCalibrator` for more.
    half_lives : sequence of float or None, default=(None, 4000, 1000, 300, 100)
        Half-life of each member, in rows, or in units of `time`. None forgets nothing.
    share : float, default=0.0005
        Share of the weight that is divided equally among the members after each row, and for at
        most `refit_every` rows of a batch. It lets the mixture follow a change of the best member.
    delay : int, default=0
        Number of forecasts that may wait for their labels at no further cost in the worst case.
        Weights follow likelihoods to the power ``1 / (delay + 1)``, so they change more slowly.
    refit_every : int, default=100
        Members are fitted again once this many rows have arrived since the last time.
    max_cells : int, default=5000
        Distinct forecasts, or cells, that are kept for each half-life.

    Attributes
    ----------
    classes_, n_features_in_, unit_, summary_, map_, checksum
        As in `IdentityCalibrator`. The map is the present mixture.
    members_ : list of calibrators
        Members, the uncalibrated forecasts first.
    weights_ : ndarray of shape (M,)
        Present weights of the members. They sum to 1.
    half_lives_ : ndarray of shape (M,)
        Half-life of each member, infinite if it forgets nothing, and NaN for the uncalibrated
        forecasts.
    n_rows_seen_ : int
        Number of labelled rows so far.
    regret_bound_ : RegretBound
        What the forecasts may have lost against the best member: ``float(bound)`` in nats, and
        ``print(bound)`` in words.
    history_ : Table
        One row for each of the latest 1,000 batches: `rows` so far, mean log losses in the batch,
        `served` and of each member, and weights after it.
    seen_ : dict
        Names of the latest 10,000 batches, with the time (UTC) at which each was counted.
    counts_ : list of DecayedCounts
        Cells of forecasts with the decayed weight of each class, one for each half-life.
    ledger_ : Ledger
        Weights and total losses of the members.

    See Also
    --------
    AutoCalibrator : Mixes calibrators of a fixed set of rows.
    CalibrationMonitor : Tests whether the forecasts that were served are calibrated.
    isoroc.plots.OnlineDisplay : Weights and losses over time.

    Notes
    -----
    Let M members have total losses L_m. Without a fixed share, the mixture of row-by-row forecasts
    has the loss ``-log(mean(exp(-L_m)))``, at most log(M) above the smallest L_m. A fixed share a
    after a batch adds ``-log(1 - a + a / M)``, and each change of the best member ``log(M / a)``
    (Herbster and Warmuth, 1998).

    Rows of one call of `partial_fit` were forecast before any of their labels. With D + 1 rows in a
    batch and ``delay=D``, the bound is D + 1 times as large: by Hölder's inequality, the loss of
    D + 1 forecasts with weights w is at most ``-(D + 1) log(sum_m w_m exp(-L_m / (D + 1)))``. With
    a smaller delay no bound holds in advance, and weights that change faster are usually better.
    `regret_bound_` then includes what waiting has cost, as measured.

    Rows of a batch have the same age unless `time` is given. Up to `max_cells` distinct forecasts
    count exactly, but for rows older than 16 half-lives. With more, they are gathered in cells as
    in `Counts`, and above 4 classes cells are drawn at random.

    A state cannot know rows that come twice in different batches: they count twice. A batch with a
    name counts once. Without `time`, rows that come late count as new ones.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import OnlineCalibrator
    >>> rng = np.random.default_rng(0)
    >>> calibrator = OnlineCalibrator(half_lives=[None, 300])
    >>> for day in range(15):
    ...     p = rng.random(100)
    ...     truth = p if day < 8 else p**3  # from day 8 on, the event is rarer than forecast
    ...     calibrator = calibrator.partial_fit(p, rng.random(100) < truth)
    >>> calibrator.predict_proba([0.5]).round(1)
    array([[0.8, 0.2]])
    >>> calibrator.n_rows_seen_, calibrator.weights_.round(1).tolist()
    (1500, [0.0, 0.0, 1.0])
    """

    calibrator: Calibrator | None = None
    half_lives: Sequence[float | None] = (None, 4000, 1000, 300, 100)
    share: float = 5e-4
    delay: int = 0
    refit_every: int = 100
    max_cells: int = 5000

    _state: ClassVar[dict[str, checks.Check]] = {
        "members_": checks.list_of(checks.anything),
        "half_lives_": checks.anything,
        "counts_": checks.list_of(checks.decayed),
        "ledger_": checks.ledger,
        "history_": checks.table,
        "seen_": checks.texts,
    }

    map_: MixtureMap = field(init=False)
    members_: list[Calibrator] = field(init=False)
    half_lives_: Floats = field(init=False)
    counts_: list[DecayedCounts] = field(init=False)
    ledger_: Ledger = field(init=False)
    history_: Table = field(init=False)
    seen_: dict[str, str] = field(init=False)
    weights_ = FromMap()

    @property
    def n_rows_seen_(self) -> int:
        """Number of labelled rows so far."""
        check_is_fitted(self, "map_")
        return self.ledger_.n_rows

    @property
    def regret_bound_(self) -> RegretBound:
        """What the forecasts may have lost against the best member."""
        check_is_fitted(self, "map_")
        return self.ledger_.bound

    def partial_fit(
        self,
        P: Any,
        y: Any,
        *,
        classes: Any = None,
        sample_weight: Any = None,
        weighting: Weighting = "importance",
        unit: UnitOption = "auto",
        time: Any = None,
        served: Any = None,
        batch: str | None = None,
    ) -> Self:
        """Learn from rows whose labels have arrived.

        The losses of these rows change the weights before any member is fitted to them.

        Parameters
        ----------
        P, y, sample_weight, weighting
            As in `fit`. Pass the forecasts before calibration. Importance weights are scaled in
            each call, so only their ratios within the call count.
        classes : array-like of shape (K,), default=None
            The class of each column, like `labels` in `fit`. Required in the first call if some
            class is absent from `y`.
        unit : str, default="auto"
            Unit of the forecasts, as in `fit`. Later calls use the unit of the first.
        time : array-like of shape (n,) or scalar, default=None
            When each row was forecast: numbers, or dates, which count in days. Half-lives are then
            in these units, and rows may come in any order. The latest time is the present. It is
            given in all calls or in none.
        served : calibrator, LoadedMap or map, default=None
            The earlier state that forecast these rows, such as `map_` at that time or a file that
            was kept, or an `IdentityCalibrator`. Losses are then computed for its members and its
            forecasts. By default these rows count as forecast by the present state.
        batch : str, default=None
            Name of the batch, such as a date. A name that is in `seen_` is an error.

        Returns
        -------
        self
        """
        if hasattr(self, "map_"):
            sample = self._check_next(P, y, sample_weight, classes, unit)
        else:
            sample = check_sample(
                P, y, sample_weight, classes, unit=unit, clip=True, advice="pass", partial=True
            )
            check_units(sample, unit)
            warn_if_reversed(sample)
        return self._absorb(sample, weighting, P, time=time, served=served, batch=batch)

    def _absorb(
        self,
        sample: Sample,
        weighting: Weighting,
        P: Any = None,
        *,
        time: Any = None,
        served: Any = None,
        batch: str | None = None,
    ) -> Self:
        """Learn from a checked sample. The first one may have the column names of `P`."""
        is_first = not hasattr(self, "map_")
        seen = {} if is_first else self.seen_
        if batch in seen:
            problem = f"{batch!r} was counted on {seen[batch]}"
            raise InputError("batch", None, problem, "count the rows of a batch once")
        times, clock_unit = read_times(time, sample)
        state = self._begin(sample, clock_unit) if is_first else self._present()
        check_clock(clock_unit, state.ledger.unit)
        source = None if served is None else check_served(served, state.map, sample.n_classes)
        heavy = np.flatnonzero(sample.row_weights())
        counted = sample.take(heavy).effective(weighting)
        rows = Batch(counted, None if times is None else times[heavy], source)
        with one_blas_thread():
            state = self._advance(state, rows)
            if state.ledger.n_unfitted >= self.refit_every:
                state = self._refit(state, counted)
        if is_first:
            self._remember_columns(P, sample.forecasts, reset=True)
            self.classes_ = sample.classes
            self.summary_ = {}
        if batch is not None:
            now = creation_time().isoformat(timespec="seconds")
            seen = dict([*seen.items(), (batch, now)][-MOST_NAMES:])
        self.map_ = self._adopt(state, seen)
        self.summary_ = summed(self.summary_, sample, counted, state.ledger.n_rows)
        self._finish()
        return self

    def describe(self) -> str:
        """What the weights say about the stream, in a sentence.

        The forecasts have changed if half-lives below the longest have at least 96 % of the weight
        that the fixed share allows. They are said to have changed when these took over, which is
        mostly one or two batches after the change.

        Examples
        --------
        >>> from isoroc import OnlineCalibrator
        >>> OnlineCalibrator().fit([0.1, 0.3, 0.7, 0.9], [0, 1, 0, 1]).describe()
        'There is no clear sign of a change.'
        """
        check_is_fitted(self, "map_")
        weights = self.weights_
        if weights[0] > 0.5:
            return f"The uncalibrated forecasts do best, with weight {weights[0]:.2f}."
        recent = self.half_lives_ < np.nanmax(self.half_lives_)
        most = 1 - self._shared(self.refit_every) * float(np.mean(~recent))
        if weights[recent].sum() <= 0.96 * most:
            return "There is no clear sign of a change."
        shares = [self.history_[name] for name in weight_columns(self.half_lives_)]
        before = np.flatnonzero(np.sum(shares, axis=0, where=recent[:, None]) <= 0.5)
        rows = self.history_["rows"]
        since = f"about {rows[-1] - rows[before[-1]]:,}" if len(before) else f"{rows[-1]:,} or more"
        lead = int(np.argmax(np.where(recent, weights, 0.0)))
        text = f"{member_names(self.half_lives_)[lead]} has weight {weights[lead]:.2f}"
        return f"The forecasts changed {since} rows ago, at once or gradually: {text}."

    def _fit(self, sample: Sample) -> MixtureMap:
        if sample.n_units < sample.n_rows:
            fix = "leave them out, or use another calibrator"
            raise InputError("clusters", None, "decayed counts hold no clusters", fix)
        begun = self._begin(sample)
        return self._adopt(self._refit(self._advance(begun, Batch(sample)), sample), {})

    def _begin(self, sample: Sample, clock_unit: ClockUnit = "rows") -> State:
        """Check the parameters, and return the state before the first row."""
        check_number("delay", self.delay, int, minimum=0)
        check_number("refit_every", self.refit_every, int, minimum=1)
        check_number("max_cells", self.max_cells, int, minimum=2)
        check_number("share", self.share, minimum=0)
        if self.share >= 1:
            raise InputError("share", None, f"is {self.share}", "expected 0 <= share < 1")
        check_member(self.calibrator, sample.classes)
        half_lives = read_half_lives(self.half_lives)
        K = sample.n_classes
        n_columns = 1 if sample.kind.single else K
        members: list[Calibrator] = [IdentityCalibrator() for _ in range(len(half_lives) + 1)]
        return State(
            ledger=Ledger.begin(len(members), int(self.delay), clock_unit),
            counts=[DecayedCounts.none(half_life, n_columns, K) for half_life in half_lives],
            members=members,
            maps=[IdentityMap(kind=sample.kind) for _ in members],
            history=[],
        )

    def _present(self) -> State:
        """The state that the attributes hold."""
        history = list(zip(*self.history_.values(), strict=True))
        return State(self.ledger_, self.counts_, self.members_, [*self.map_.members], history)

    def _shared(self, n_rows: int) -> float:
        """Share of the weight that is divided equally after a batch."""
        return -math.expm1(min(n_rows, self.refit_every) * math.log1p(-self.share))

    def _advance(self, state: State, batch: Batch) -> State:
        """The state with the losses and the counts of a batch."""
        sample = batch.sample
        served = state.map if batch.served is None else batch.served
        forecasts = [member.apply(sample.forecasts) for member in served.members]
        mixed = np.tensordot(served.weights, forecasts, axes=1)
        weights = sample.row_weights()
        losses = np.array([weights @ log_losses(Q, sample.codes) for Q in forecasts])
        loss = float(weights @ log_losses(mixed, sample.codes))
        share = self._shared(batch.n_rows)
        total = float(weights.sum())
        ledger = state.ledger.add(
            losses, loss, batch.n_rows, share, weight=total, late=batch.served is not None
        )
        clock, elapsed, ages = read_clock(state.ledger, batch)
        counts = [
            each.add(sample, ages, elapsed, self.max_cells, ledger.n_batches)
            for each in state.counts
        ]
        entry = (ledger.n_rows, loss / total, *(losses / total), *ledger.weights)
        history = [*state.history, entry][-MOST_BATCHES:]
        ledger = replace(ledger, clock=clock)
        return State(ledger, counts, state.members, state.maps, history)

    def _refit(self, state: State, like: Sample) -> State:
        """The state with members fitted to the decayed counts, or unchanged if that fails."""
        members = [*state.members]
        maps = [*state.maps]
        half_lives = np.array([math.nan, *(each.half_life for each in state.counts)])
        for m, counts in enumerate(state.counts, start=1):
            before = state.counts[m - 2]
            if m > 1 and np.array_equal(before.class_weights, counts.class_weights):
                members[m] = members[m - 1]  # nothing has decayed yet
                maps[m] = maps[m - 1]
                continue
            sample = counts.sample(like)
            if np.count_nonzero(sample.class_weights()) < 2:
                continue
            member = default_member(like) if self.calibrator is None else clone(self.calibrator)
            try:
                maps[m] = member._fit(sample.effective("importance"))
            except (ArithmeticError, ValueError) as error:
                name = member_names(half_lives)[m]
                message = f"the member {name} keeps its map: {error}"
                warnings.warn(message, RuntimeWarning, stacklevel=4)
            else:
                members[m] = member
        ledger = replace(state.ledger, n_unfitted=0)
        return state._replace(ledger=ledger, members=members, maps=maps)

    def _adopt(self, state: State, seen: dict[str, str]) -> MixtureMap:
        """Set the attributes, and return the mixture."""
        self.half_lives_ = np.array([math.nan, *(each.half_life for each in state.counts)])
        self.members_ = state.members
        self.counts_ = state.counts
        self.ledger_ = state.ledger
        self.history_ = Table.from_rows(state.history, *history_columns(self.half_lives_))
        self.seen_ = seen
        return state.map

    def _finish(self) -> None:
        half_lives = [math.nan, *(each.half_life for each in self.counts_)]
        M = len(half_lives)
        if not np.array_equal(self.half_lives_, half_lives, equal_nan=True):
            raise Fault("model.state.half_lives_", "expected the half-lives of the counts")
        if len(self.ledger_.losses) != M or not isinstance(self.map_, MixtureMap):
            raise Fault("model.state.ledger_", f"expected a mixture of {M} members")
        if list(self.history_) != history_columns(self.half_lives_):
            raise Fault("model.state.history_", f"expected columns for {M} members")
        attach_fitted(self, self.members_, self.map_.members)

    def _check_next(
        self, P: Any, y: Any, sample_weight: Any, classes: Any, unit: UnitOption
    ) -> Sample:
        """Sample of rows after the first batch, which settles classes, columns and unit."""
        self._check_new(P)
        if classes is not None and np.asarray(classes).tolist() != self.classes_.tolist():
            problem = (
                f"are not the classes of the first batch, {', '.join(map(str, self.classes_))}"
            )
            raise InputError("classes", None, problem, "leave them out")
        if unit not in ("auto", self.unit_):
            problem = f'is "{unit}", but in the first batch it was "{self.unit_}"'
            raise InputError("unit", None, problem, "leave it out")
        if hasattr(self, "feature_names_in_"):
            P = in_order(P, self.feature_names_in_.tolist())
        return check_sample(P, y, sample_weight, self.classes_, unit=self.unit_, clip=True)


def absorb_sample(
    calibrator: OnlineCalibrator, sample: Sample, weighting: Weighting, **options: Any
) -> None:
    """Let a calibrator learn from a checked sample, with the options of `partial_fit`."""
    calibrator._absorb(sample, weighting, **options)


def default_member(sample: Sample) -> Calibrator:
    """The member that calibrator=None stands for."""
    return SplineCalibrator() if sample.n_classes == 2 else MonotoneCalibrator()


def member_names(half_lives: Floats) -> list[str]:
    """Names of the members for tables and pictures."""
    names = {math.inf: "all rows"}
    others = half_lives[1:].tolist()
    return ["uncalibrated", *(names.get(h, f"half-life {h:g}") for h in others)]


def history_columns(half_lives: Floats) -> list[str]:
    """Names of the columns of `history_`."""
    return ["rows", "served", *member_names(half_lives), *weight_columns(half_lives)]


def weight_columns(half_lives: Floats) -> list[str]:
    """Names of the columns of `history_` that hold weights."""
    return [f"weight of {name}" for name in member_names(half_lives)]


def read_half_lives(given: Any) -> list[float]:
    """Half-lives as numbers, None as infinity."""
    fix = "expected different half-lives above 0, or None, such as (None, 1000)"
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise InputError("half_lives", None, f"is {given!r}", fix)
    for each in given:
        if each is not None:
            check_number("half_lives", each, minimum=0)
    half_lives = [math.inf if each is None else float(each) for each in given]
    if min(half_lives) <= 0 or len(set(half_lives)) < len(half_lives):
        raise InputError("half_lives", None, f"is {given!r}", fix)
    return half_lives


def check_member(calibrator: Any, classes: Any) -> None:
    """Check that a calibrator can be fitted to decayed counts."""
    if calibrator is None:
        return
    fix = "expected one that is fitted to cells, such as SplineCalibrator()"
    if not isinstance(calibrator, Calibrator):
        raise InputError("calibrator", None, f"is {calibrator!r}", fix)
    name = type(calibrator).__name__
    if calibrator._uses_folds:
        raise InputError(
            "calibrator", None, f"{name} needs folds, which decayed counts have not", fix
        )
    if not calibrator._has_classes or isinstance(calibrator, OnlineCalibrator):
        raise InputError("calibrator", None, f"is {name}", fix)
    if calibrator._orders_classes:
        check_order(classes)


def check_served(served: Any, present: MixtureMap, n_classes: int) -> MixtureMap:
    """The mixture of an earlier state of the same stream, or of uncalibrated forecasts."""
    M = len(present.members)
    fitted = getattr(served, "map_", served)
    if isinstance(fitted, IdentityMap):
        fitted = replace(present, members=[fitted] * M)
    if isinstance(fitted, MixtureMap) and len(fitted.members) == M and fitted.kind is present.kind:
        with suppress(Fault):
            fitted.check(n_classes)
            return fitted
    fix = "pass map_ of the calibrator that forecast the rows"
    raise InputError("served", None, f"is not an earlier state with {M} members", fix)


def read_times(time: Any, sample: Sample) -> tuple[Floats | None, ClockUnit]:
    """Time of each row of a sample, dates in days, and their unit. Rows may have none."""
    if time is None:
        return None, "rows"
    values = to_array(time, name="time")
    kind = values.dtype.kind
    fix = "expected numbers or dates, one for each row or one for all"
    if kind in "bcm":
        raise InputError("time", None, f"has the type {values.dtype}", fix)
    known = date | np.datetime64 | str | None
    are_dates = kind in "MU"
    if kind == "O":
        are_dates = all(isinstance(each, known) for each in values.flat)
    try:
        times = in_days(values) if are_dates else values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("time", None, f"cannot be read ({error})", fix) from error
    if times.ndim == 0:
        times = np.broadcast_to(times, sample.n_rows)
    check_length(times, sample.n_rows, name="time")
    if times.ndim != 1 or not np.isfinite(times).all():
        row = int(np.argmin(np.isfinite(times))) if times.ndim == 1 else None
        raise InputError("time", row, "is not a finite number or date", fix)
    of_parts = times if sample.parts_of is None else times[sample.parts_of]
    return of_parts, "days" if are_dates else "numbers"


def in_days(values: NDArray[Any]) -> Floats:
    """Dates as days since 1970, in UTC if they have a time zone. Missing ones are NaN."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy converts to UTC, and warns
        dates = values.astype("datetime64[us]")
    return np.where(np.isnat(dates), np.nan, dates.astype(np.int64) / 86_400e6)


def check_clock(given: ClockUnit, first: ClockUnit) -> None:
    """Check that a batch has times of the same kind as the first one, or none like that one."""
    if given == first:
        return
    fix = "pass it in all calls or in none"
    if "rows" in (given, first):
        problem = "is missing, but the first batch had one" if given == "rows" else "is new"
    else:
        problem = f"is in {given}, but in the first batch it was in {first}"
        fix = "pass dates in all calls, or numbers in all calls"
    raise InputError("time", None, problem, fix)


def read_clock(ledger: Ledger, batch: Batch) -> tuple[float, float, Floats]:
    """The clock after a batch, what has elapsed for earlier rows, and the ages of the new ones."""
    if batch.times is None:
        n_rows = float(batch.n_rows)
        return ledger.clock + n_rows, n_rows, np.zeros(len(batch.sample))
    clock = max(ledger.clock, float(batch.times.max()))
    elapsed = clock - ledger.clock if ledger.n_batches else 0.0
    return clock, elapsed, clock - batch.times


def summed(summary: dict[str, Any], sample: Sample, counted: Sample, n_rows: int) -> dict[str, Any]:
    """The summary of all rows, including a new batch."""
    totals: NDArray[Any] = counted.class_weights() + summary.get("class_weights", 0.0)
    entries = {"rows": n_rows, "weight": float(totals.sum()), "class_weights": totals.tolist()}
    for name, ends in range_of(sample).items():
        both = [*ends, *summary.get(name, ends)]
        entries[name] = [min(both), max(both)]
    return summary | entries
