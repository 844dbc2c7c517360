"""CalibrationMonitor: a sequential test of calibration, with estimates of what changed."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, xlogy

from isoroc._core.intervals import half_width
from isoroc._core.losses import log_losses
from isoroc._core.simplex import LEAST, as_matrix, two_columns
from isoroc._core.types import Codes, Floats
from isoroc._input import (
    InputError,
    check_confidence,
    check_labels,
    check_number,
    check_sample,
    refuse_soft_labels,
    slices,
    to_array,
)
from isoroc._maps.acceptance import AcceptanceRule, percent
from isoroc._support.files import replacing
from isoroc._support.table import Table
from isoroc._support.text import listed
from isoroc._support.versions import migrate
from isoroc.metrics._estimation.cell_errors import error_in_cells, sum_in_cells

MONITOR_FORMAT = "isoroc-monitor"
MONITOR_VERSION = 3
PARAMETERS = ("confidence", "tolerance", "model")
#: Logarithm of 0. It is finite, as JSON has no infinity.
LOG_ZERO = -1e300


class Alternatives:
    """The alternatives for K classes: the family of each, and its share in the average."""

    powers = np.exp([-0.8, -0.4, -0.2, -0.1, 0.1, 0.2, 0.4, 0.8])
    """Powers of the forecasts, which may be too sharp or not sharp enough ("confidence")."""
    shifts = np.array([-1.6, -0.8, -0.4, -0.2, 0.2, 0.4, 0.8, 1.6])
    """Shifts of the log odds of one class against all others ("class shares")."""
    uniform = np.array([0.003, 0.03, 0.3])
    """Shares of the uniform forecast, for outcomes of probability 0 ("impossible")."""

    def __init__(self, n_classes: int) -> None:
        sizes = (len(self.powers), len(self.shifts) * n_classes, len(self.uniform))
        self.family = np.repeat(["confidence", "class shares", "impossible"], sizes)
        self.weights = np.repeat(np.divide([0.4, 0.4, 0.2], sizes), sizes)

    def log_ratios(self, Q: Floats, codes: Codes) -> Floats:
        """Logarithm of ``r[y] / q[y]`` for each row and alternative, shape (n, M)."""
        rows = np.arange(len(Q))
        n_classes = Q.shape[1]
        logs = np.log(np.maximum(Q, LEAST))
        log_q = logs[rows, codes]
        ratios = [log_softmax(t * logs, axis=1)[rows, codes] - log_q for t in self.powers]
        for k in range(n_classes):
            shifted = np.log1p(np.outer(np.expm1(self.shifts), Q[:, k]))
            ratios += list(np.outer(self.shifts, codes == k) - shifted)
        q = np.exp(log_q)
        ratios += [np.log((1 - share) * q + share / n_classes) - log_q for share in self.uniform]
        return np.column_stack(ratios)


class LabelAlternatives(Alternatives):
    """The alternatives for L labels that do not exclude each other, for each label alone.

    The labels of a row may depend on each other, so ratios of several labels are never multiplied.
    The average of martingales of single labels is a martingale.
    """

    def __init__(self, n_labels: int) -> None:
        super().__init__(2)
        self.family = np.tile(self.family, n_labels)
        self.weights = np.tile(self.weights / n_labels, n_labels)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Products of likelihood ratios, averaged over the batches with which they begin."""

    log_begun: Floats
    """For each alternative, log of the sum over batches so far of the share that begins with the
    batch times the product of ratios since then."""
    log_rest: float  # log of the share that begins with a later batch, with ratio 1 so far

    @classmethod
    def none(cls, n_alternatives: int) -> Self:
        """Evidence before the first batch."""
        return cls(np.full(n_alternatives, LOG_ZERO), 0.0)

    def add(self, log_products: Floats, n_batches: int) -> Self:
        """Evidence with one more batch, after `n_batches` others."""
        share = 1 / (n_batches + 2)  # of the rest: 1/2, 1/6, 1/12, ... of all
        log_begun = np.logaddexp(self.log_begun, self.log_rest + math.log(share)) + log_products
        return type(self)(log_begun, self.log_rest + math.log1p(-share))

    def value(self, alternatives: Alternatives, *families: str) -> float:
        """Logarithm of the average over the alternatives of some families, or over all."""
        kept = np.isin(alternatives.family, families or alternatives.family)
        return self.average(np.where(kept, alternatives.weights, 0.0))

    def average(self, weights: Floats) -> float:
        """Logarithm of the average over alternatives with given weights."""
        kept = weights > 0
        shares = weights[kept] / weights.sum()
        logs = np.logaddexp(self.log_begun, self.log_rest)[kept] + np.log(shares)
        return float(np.logaddexp.reduce(logs))


@dataclass(frozen=True, eq=False)
class Accepted:
    """Sums over the rows that an acceptance rule accepts."""

    rows: int
    wrong: int
    log_ratios: Floats
    """Log of the likelihood ratio of each error rate of `odds` against the limit of the row."""

    odds: ClassVar[Floats] = np.array([1.25, 1.5, 2.0, 4.0, 8.0])
    """Odds of an error, as multiples of the odds at the limit."""

    @classmethod
    def none(cls) -> Self:
        """Sums over no rows."""
        return cls(0, 0, np.zeros(len(cls.odds)))

    @classmethod
    def of(cls, rule: AcceptanceRule | None, Q: Floats, codes: Codes) -> Self:
        """Sums over the rows of a batch that the rule accepts. Without a rule, no rows."""
        if rule is None:
            return cls.none()
        accepted = rule.accept(Q)
        decisions = rule.decisions(Q)
        wrong = (decisions != codes) & accepted
        # A zone has one limit, and each class belongs to one zone.
        limits = np.zeros(Q.shape[1])
        for action, limit in zip(rule.zones["action"], rule.zones["max_error"], strict=True):
            limits[[action in ("", str(label)) for label in rule.classes.tolist()]] = limit
        limit = limits[decisions][accepted][:, None]
        higher = limit * cls.odds / (1 - limit + limit * cls.odds)
        error = wrong[accepted][:, None]
        ratios = np.where(error, np.log(higher / limit), np.log((1 - higher) / (1 - limit)))
        return cls(int(accepted.sum()), int(wrong.sum()), ratios.sum(axis=0))

    def __add__(self, other: Self) -> Self:
        both = self.log_ratios + other.log_ratios
        return type(self)(self.rows + other.rows, self.wrong + other.wrong, both)


@dataclass(frozen=True, eq=False)
class RowSums:
    """Sums over rows."""

    rows: int
    loss: float
    promised: float
    observed: Floats
    expected: Floats
    variance: Floats  # of the number of rows of each class, if forecasts are calibrated
    in_cells: Floats  # see `isoroc.metrics._estimation.cell_errors.sum_in_cells`

    @classmethod
    def of(cls, P: Floats, codes: NDArray[Any]) -> Self:
        """Sums over the rows of a batch."""
        loss = log_losses(P, codes).sum()
        entropy = -xlogy(P, P).sum() + 0.0
        observed = np.bincount(codes, minlength=P.shape[1]).astype(np.float64)
        sums = observed, P.sum(axis=0), (P * (1 - P)).sum(axis=0), sum_in_cells(P, codes)
        return cls(len(P), float(loss), float(entropy), *sums)

    def __add__(self, other: Self) -> Self:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return type(self)(*(mine + theirs for mine, theirs in pairs))


class BatchSums(NamedTuple):
    """What a monitor needs to know about some rows. The batches of a stream add up."""

    totals: RowSums
    log_ratios: Floats  # sum over the rows for each alternative
    n_rows: Floats  # number of rows that each alternative was tested on
    accepted: Accepted

    @classmethod
    def of(
        cls,
        P: Floats,
        codes: NDArray[Any],
        alternatives: Alternatives,
        rule: AcceptanceRule | None = None,
    ) -> Self:
        """Sums over rows, computed in slices."""
        M = len(alternatives.family)
        none = RowSums.of(P[:0], codes[:0])
        size = np.full(M, float(len(P)))
        batch = cls(none, np.zeros(M), size, Accepted.of(rule, P, codes))
        for rows in slices(len(P), max(1, 2**21 // M)):
            ratios = alternatives.log_ratios(P[rows], codes[rows])
            sums = RowSums.of(P[rows], codes[rows])
            batch += cls(sums, ratios.sum(axis=0), np.zeros(M), Accepted.none())
        return batch

    @classmethod
    def of_labels(cls, Q: Floats, Y: Floats) -> Self:
        """Sums over forecasts of labels and outcomes, 0, 1 or NaN if unknown, of shape (n, L).

        Each entry counts as a row, and each label has its own alternatives.
        """
        alternatives = Alternatives(2)
        parts = []
        for q, y in zip(Q.T, Y.T, strict=True):
            known = ~np.isnan(y)
            parts.append(cls.of(two_columns(q[known]), y[known].astype(np.intp), alternatives))
        sums = [part.totals for part in parts]
        totals = RowSums(
            rows=sum(each.rows for each in sums),
            loss=sum(each.loss for each in sums),
            promised=sum(each.promised for each in sums),
            observed=np.array([each.observed[1] for each in sums]),
            expected=np.array([each.expected[1] for each in sums]),
            variance=np.array([each.variance[1] for each in sums]),
            in_cells=np.concatenate([each.in_cells for each in sums]),
        )
        ratios = np.concatenate([part.log_ratios for part in parts])
        n_rows = np.concatenate([part.n_rows for part in parts])
        return cls(totals, ratios, n_rows, Accepted.none())

    def __add__(self, other: Any) -> Self:
        pairs = zip(self, other, strict=True)
        return type(self)(*(mine + theirs for mine, theirs in pairs))


class Promise:
    """The limit of an acceptance rule, and the evidence against it."""

    def __init__(self, rule: AcceptanceRule) -> None:
        self.rule = rule
        self.accepted = Accepted.none()
        self.evidence = Evidence.none(len(Accepted.odds))
        self.n_batches = 0
        self.alarm: int | None = None

    def add(self, accepted: Accepted, n_rows: int, limit: float) -> None:
        """Add a batch that ends with row `n_rows`. Evidence of at least `limit` is an alarm."""
        self.accepted = self.accepted + accepted
        self.evidence = self.evidence.add(accepted.log_ratios, self.n_batches)
        self.n_batches += 1
        if self.alarm is None and self.evidence.average(np.ones(len(Accepted.odds))) >= limit:
            self.alarm = n_rows

    def state(self) -> dict[str, Any]:
        """Everything that `read` needs."""
        state = {"rule": json.loads(self.rule.document()[1]), "accepted": vars(self.accepted)}
        state |= {"evidence": vars(self.evidence), "batches": self.n_batches, "alarm": self.alarm}
        return state

    @classmethod
    def read(cls, state: dict[str, Any]) -> Self:
        """Promise of a state."""
        promise = cls(AcceptanceRule.read(state["rule"]))
        promise.accepted = _read(state["accepted"], promise.accepted)
        promise.evidence = _read(state["evidence"], promise.evidence)
        promise.n_batches = int(state["batches"])
        promise.alarm = None if state["alarm"] is None else int(state["alarm"])
        return promise

    def __str__(self) -> str:
        limit = listed([percent(x) for x in np.unique(self.rule.zones["max_error"]).tolist()])
        n = self.accepted.rows
        error = f"{self.accepted.wrong:,} of {n:,} accepted rows were wrong"
        error += f" ({percent(self.accepted.wrong / n)})" if n else ""
        if self.alarm is not None:
            when = f"alarm after {self.alarm:,} rows"
            return f"The promise of {limit} no longer holds: {error}, {when}."
        return f"There is no evidence against the promise of {limit}: {error}."


def _read(state: dict[str, Any], empty: Any) -> Any:
    """Sums or evidence from a file. `empty` has the types and shapes."""
    return type(empty)(*(_read_numbers(state[name], like) for name, like in vars(empty).items()))


def _read_numbers(values: Any, like: Any) -> Any:
    array = np.array(values, dtype=np.float64)
    shape = np.shape(like)
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"expected numbers of shape {shape}")
    return array if shape else type(like)(array)


@dataclass(frozen=True, eq=False)
class BatchReport:
    """What one batch, or all batches so far, say about the calibration."""

    rows: int
    evidence: float
    """Logarithm of the likelihood ratio against calibration, as in `CalibrationMonitor`."""
    log_loss: float
    """Mean log loss. A forecast of 0 counts as 2.2e-16."""
    promised: float
    """Mean log loss that the forecasts expect of themselves, their entropy."""
    calibration_error: float
    """Root mean square difference of frequencies and forecasts in ten cells of the forecasts of
    each class, without what chance adds to it."""
    error_low: float
    """Lower end of the interval of the calibration error."""
    error_high: float
    """Upper end of the interval of the calibration error."""
    shares: Table
    """For each class its share, the forecast share, and an interval of the difference."""


class CalibrationMonitor:
    """Sequential test of whether forecasts are still calibrated, as labels arrive in batches.

    Parameters
    ----------
    calibrator : calibrator, map, fitted classifier or array-like of shape (K,)
        Model that makes the monitored forecasts. `update` applies it. If only the classes are
        given, in the order of the columns, `update` takes calibrated forecasts.
    confidence : float, default=0.95
        If forecasts are calibrated, the chance of ever raising an alarm is at most 1 - confidence.
    tolerance : float, default=None
        Miscalibration to tolerate, in nats per row. With 0 every model eventually raises an alarm.
        A calibrator fitted to n rows is wrong by about ``K / n``. The default is ``2 K / n``, or 0
        if only the classes are given.
    model : str, default=None
        Name of the model, by default the checksum of the calibrator.
    rule : AcceptanceRule, default=None
        Rule whose promise is also watched, by its own test with the same confidence.

    Attributes
    ----------
    alarm_ : int or None
        Number of rows seen when the evidence first exceeded ``log(1 / (1 - confidence))``.
    advice_ : {"nothing", "adapt priors", "refit"}
        What to do: "adapt priors" if a change of class shares explains the evidence best.
    promise_ : Promise or None
        What is known about the promise of the rule. ``str`` says it in a sentence. Its `alarm` is
        the number of rows seen when the evidence that accepted rows are wrong more often than the
        rule allows first exceeded the same limit.
    evidence_ : float
        Logarithm of the likelihood ratio of alternatives to the forecasts, averaged over the
        alternatives. ``exp(-evidence_)`` is a p-value that is valid at any time.
    history_ : Table
        One row per batch. `rows` and `evidence` are of all rows so far. `log_loss`, the `promised`
        log loss, the `calibration_error` and its interval, `low` to `high`, are of the batch.
    seen_ : dict
        Names of the latest 10,000 batches, with the time (UTC) at which each was counted.

    See Also
    --------
    isoroc.metrics.calibration_test : A test of calibration on one set of rows.
    isoroc.adjust_prior : Forecasts for other class priors.

    Notes
    -----
    Let q be the forecast of a row and r another forecast, a function of q. If q is the probability
    of the outcome y given the past, ``r[y] / q[y]`` has mean 1 given the past. So its product over
    rows is a martingale, and so is the average over alternatives r that are fixed in advance:
    sharper and less sharp forecasts, other odds of one class, and mixtures with the uniform
    forecast, each beginning with any of the batches, so that a change need not make up for all the
    good batches before it. The chance that the average ever exceeds ``1 / (1 - confidence)`` is at
    most ``1 - confidence`` (Ramdas, Grünwald, Vovk and Shafer, Statistical Science 38, 2023).

    For a rule, the ratios compare higher odds of an error with the odds at its limit, among
    accepted rows. As long as the limit holds, their mean is at most 1, so the bound is the same.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import CalibrationMonitor
    >>> rng = np.random.default_rng(0)
    >>> monitor = CalibrationMonitor(["no", "yes"])
    >>> for day in range(20):
    ...     p = rng.random(200)
    ...     truth = p if day < 10 else p**2  # from day 10 on, "yes" is rarer than forecast
    ...     report = monitor.update(np.where(rng.random(200) < truth, "yes", "no"), p)
    >>> monitor.alarm_, monitor.advice_
    (2200, 'adapt priors')
    """

    def __init__(
        self,
        calibrator: Any,
        *,
        confidence: float = 0.95,
        tolerance: float | None = None,
        model: str | None = None,
        rule: AcceptanceRule | None = None,
    ) -> None:
        labels = getattr(calibrator, "classes_", calibrator)
        self.calibrator = None if labels is calibrator else calibrator
        checksum = getattr(calibrator, "checksum", None) or ""
        #: Checksum of the calibrator, "" if it has none, or None if only the classes were given.
        self.source = None if self.calibrator is None else checksum
        self.classes_: NDArray[Any] = to_array(labels, name="calibrator")
        K = len(set(self.classes_.tolist()))
        if self.classes_.ndim != 1 or K < 2 or len(self.classes_) != K:
            raise InputError("calibrator", None, f"is {labels!r}", "expected two or more classes")
        check_confidence(confidence)
        kind = getattr(getattr(calibrator, "map_", None), "kind", None)
        multilabel = kind is not None and not kind.exclusive
        if tolerance is None:
            fitted = getattr(calibrator, "calibrators_", [calibrator])
            n = sum(getattr(each, "summary_", {}).get("weight") or 0.0 for each in fitted)
            n_numbers = 2 * K if multilabel else K  # the weight of labels is one of entries
            tolerance = 2 * n_numbers / n if n > 0 else 0.0
        check_number("tolerance", tolerance, minimum=0)
        self.confidence = confidence
        self.tolerance = tolerance
        self.model = checksum if model is None else model
        self._begin(multilabel=multilabel)
        self.promise_: Promise | None = None
        self.watch(rule)
        self.n_batches = 0
        self.alarm_: int | None = None
        self.entries: list[list[float]] = []
        self.seen_: dict[str, str] = {}

    def _begin(self, *, multilabel: bool) -> None:
        """Start without rows. `multilabel` says whether labels do not exclude each other."""
        K = len(self.classes_)
        none = np.zeros((0, K))
        self.multilabel = multilabel
        self.alternatives = LabelAlternatives(K) if multilabel else Alternatives(K)
        if multilabel:
            self.totals = BatchSums.of_labels(none, none).totals
        else:
            self.totals = RowSums.of(none, np.zeros(0, dtype=np.intp))
        self.evidence = Evidence.none(len(self.alternatives.family))

    def update(
        self, y: ArrayLike, P: ArrayLike, *, batch: str | None = None, calibrated: bool = False
    ) -> BatchReport:
        """Add a batch of outcomes and the forecasts of the same rows.

        Parameters
        ----------
        y : array-like of shape (n,)
            Labels. With a `MultiLabelCalibrator`, 0, 1 or NaN for each label, shape (n, L).
        P : array-like
            What the `predict_proba` of the calibrator takes: forecasts before calibration, or the
            features of a classifier. Without a calibrator, calibrated forecasts.
        batch : str, default=None
            Name of the batch, such as a date. A name that is in `seen_` is an error.
        calibrated : bool, default=False
            Whether `P` already holds calibrated forecasts, for example from a log.

        Returns
        -------
        BatchReport
            Report of this batch alone. `report` covers all batches.
        """
        if self.source is not None and not calibrated:
            if self.calibrator is None:
                problem = "the monitor was loaded without its calibrator"
                fix = "load(path, calibrator), or pass calibrated forecasts and calibrated=True"
                raise InputError("P", None, problem, fix)
            P = self.calibrator.predict_proba(P)
        if self.multilabel:
            given = check_labels(P, y, labels=self.classes_, unit="probability")
            Y = np.full(given.known.shape, np.nan)
            Y[given.known] = given.sample.codes
            return self.add(BatchSums.of_labels(given.forecasts, Y), batch)
        sample = check_sample(P, y, labels=self.classes_, unit="probability")
        refuse_soft_labels(sample)
        Q = as_matrix(sample.forecasts)
        return self.add(BatchSums.of(Q, sample.codes, self.alternatives, self.rule), batch)

    def add(self, rows: BatchSums, batch: str | None = None) -> BatchReport:
        """Add a batch given by its totals, otherwise like `update`."""
        if batch in self.seen_:
            problem = f"{batch!r} was counted on {self.seen_[batch]}"
            raise InputError("batch", None, problem, "count the rows of a batch once")
        products = rows.log_ratios - self.tolerance * rows.n_rows
        self.totals = self.totals + rows.totals
        self.evidence = self.evidence.add(products, self.n_batches)
        self.n_batches += 1
        if batch is not None:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            self.seen_ = dict(list((self.seen_ | {batch: now}).items())[-10_000:])
        total = self.totals.rows
        evidence = self.evidence_
        if self.alarm_ is None and evidence >= self.limit:
            self.alarm_ = total
        if self.promise_ is not None:
            self.promise_.add(rows.accepted, total, self.limit)
        report = self._report(rows.totals, Evidence(products, LOG_ZERO))
        error = [report.calibration_error, report.error_low, report.error_high]
        entry = [float(total), evidence, report.log_loss, report.promised, *error]
        self.entries = [*self.entries[-999:], entry]  # older ones count in the totals only
        return report

    @property
    def limit(self) -> float:
        """Evidence that raises the alarm."""
        return -math.log1p(-self.confidence)

    @property
    def evidence_(self) -> float:
        """Evidence against calibration of all rows so far."""
        return self.evidence.value(self.alternatives)

    @property
    def rule(self) -> AcceptanceRule | None:
        """The rule whose promise is watched."""
        return None if self.promise_ is None else self.promise_.rule

    def watch(self, rule: AcceptanceRule | None) -> None:
        """Watch the promise of a rule from now on. Evidence about another rule is dropped."""
        if rule is None:
            self.promise_ = None
            return
        _check_rule(rule)
        if self.multilabel:
            problem = "the labels of the calibrator do not exclude each other"
            raise InputError("rule", None, problem, "leave it out")
        if rule.classes.tolist() != self.classes_.tolist():
            problem = f"has the classes {rule.classes.tolist()}"
            raise InputError("rule", None, problem, f"expected {self.classes_.tolist()}")
        if self.rule is None or self.rule.document()[0] != rule.document()[0]:
            self.promise_ = Promise(rule)

    @property
    def advice_(self) -> Literal["nothing", "adapt priors", "refit"]:
        """What to do."""
        if self.alarm_ is None:
            return "nothing"
        shifted = self.evidence.value(self.alternatives, "class shares")
        others = self.evidence.value(self.alternatives, "confidence", "impossible")
        return "adapt priors" if shifted >= others else "refit"

    @property
    def history_(self) -> Table:
        """One row per batch."""
        names = ("rows", "evidence", "log_loss", "promised", "calibration_error", "low", "high")
        return Table.from_rows([(int(rows), *entry) for rows, *entry in self.entries], *names)

    def report(self) -> BatchReport:
        """What all batches so far say."""
        return self._report(self.totals, self.evidence)

    def _report(self, totals: RowSums, evidence: Evidence) -> BatchReport:
        n = max(totals.rows, 1)
        width = half_width(self.confidence)
        # Rows of each class, or of each label, whose outcome may be unknown in some.
        n_each = np.maximum(totals.in_cells[:, :, 0].sum(axis=1), 1)
        difference = (totals.observed - totals.expected) / n_each
        half = width * np.sqrt(totals.variance) / n_each
        shares = Table(
            {"class": self.classes_, "observed": totals.observed / n_each},
            forecast=totals.expected / n_each,
            low=difference - half,
            high=difference + half,
        )
        error = error_in_cells(totals.in_cells, width) if totals.rows else (0.0, 0.0, 0.0)
        losses = totals.loss / n, totals.promised / n
        return BatchReport(totals.rows, evidence.value(self.alternatives), *losses, *error, shares)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a small JSON file, atomically."""
        state: dict[str, Any] = {
            "format": MONITOR_FORMAT,
            "version": MONITOR_VERSION,
            "library": version("isoroc"),
        }
        state |= {"labels": self.classes_} | {name: getattr(self, name) for name in PARAMETERS}
        state |= {"totals": vars(self.totals), "evidence": vars(self.evidence)}
        state |= {"alarm": self.alarm_, "batches": self.n_batches, "source": self.source}
        state |= {"history": self.entries, "seen": self.seen_}
        state |= {"multilabel": True} if self.multilabel else {}
        if self.promise_ is not None:
            state["promise"] = self.promise_.state()
        text = json.dumps(state, default=np.ndarray.tolist, allow_nan=False)
        with replacing(Path(path)) as new:
            new.write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str], calibrator: Any = None) -> Self:
        """Monitor from a file that `save` wrote.

        The file does not hold the calibrator. Without one, `update` takes calibrated forecasts.
        """
        try:
            with Path(path).open("rb") as file:
                data = file.read(2**25 + 1)
            if len(data) > 2**25:
                raise ValueError(f"it is larger than {2**25:,} bytes")  # noqa: TRY301
            monitor = cls._from_state(json.loads(data))
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            reason, fix = (
                error.args
                if len(error.args) == 2
                else (error, "pass a file that isoroc monitor or save() wrote")
            )
            problem = f"{os.fspath(path)} is not the state of a monitor ({reason})"
            raise InputError("path", None, problem, fix) from error
        if calibrator is not None:
            given = cls(calibrator)
            same = given.classes_.tolist() == monitor.classes_.tolist()
            if given.source is None or given.source != monitor.source or not same:
                problem = f"is not the one that {os.fspath(path)} monitors"
                raise InputError("calibrator", None, problem, "pass that one, or begin anew")
            monitor.calibrator = calibrator
        return monitor

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> Self:
        if state["format"] != MONITOR_FORMAT:
            raise ValueError("it has another format")
        state = migrate(state, MONITOR_VERSION)
        monitor = cls(state["labels"], **{name: state[name] for name in PARAMETERS})
        if state.get("multilabel"):
            monitor._begin(multilabel=True)
        monitor.totals = _read(state["totals"], monitor.totals)
        monitor.evidence = _read(state["evidence"], monitor.evidence)
        monitor.n_batches = int(state["batches"])
        monitor.source = None if state["source"] is None else str(state["source"])
        monitor.alarm_ = None if state["alarm"] is None else int(state["alarm"])
        monitor.entries = [_read_numbers(entry, np.zeros(7)).tolist() for entry in state["history"]]
        monitor.seen_ = {str(name): str(time) for name, time in state["seen"].items()}
        if (promise := state.get("promise")) is not None:
            monitor.promise_ = Promise.read(promise)
            _check_rule(monitor.promise_.rule)
        return monitor


def _check_rule(rule: Any) -> None:
    """Raise an error unless a rule can be applied to calibrated forecasts and labels alone."""
    if not isinstance(rule, AcceptanceRule):
        fix = "pass what isoroc.decisions.acceptance_rule returns"
        raise InputError("rule", None, f"is {type(rule).__name__}", fix)
    if rule.scored or rule.segments is not None or rule.measure == "loss":
        problem = "uses scores, segments or losses, which the monitor does not see"
        raise InputError("rule", None, problem, "leave it out")
