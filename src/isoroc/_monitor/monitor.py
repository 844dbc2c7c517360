"""CalibrationMonitor: a sequential test of calibration, with estimates of what changed."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from isoroc._cell_errors import error_in_cells
from isoroc._files import replacing
from isoroc._input import InputError, check_confidence, check_sample, to_array
from isoroc._intervals import half_width
from isoroc._monitor.evidence import NEVER, Alternatives, Evidence
from isoroc._monitor.totals import Totals, numbers
from isoroc._table import Table

Advice = Literal["nothing", "adapt priors", "refit"]

#: The state keeps this many of the latest batches; older ones count in the totals only.
KEPT_BATCHES = 1000
FORMAT, VERSION = "isoroc-monitor", 1


@dataclass(frozen=True)
class BatchReport:
    """What one batch, or all batches so far, say about the calibration."""

    rows: int
    evidence: float
    """Logarithm of the likelihood ratio against calibration; see `CalibrationMonitor`."""
    log_loss: float
    """Mean log loss. A forecast of 0 counts as 1e-300."""
    promised: float
    """Mean log loss that the forecasts expect of themselves, their entropy."""
    calibration_error: float
    """Root mean square of the difference between frequencies and forecasts, in ten cells of the
    forecasts of each class, without what chance adds to it."""
    error_low: float
    """Lower end of the interval of the calibration error."""
    error_high: float
    """Upper end."""
    shares: Table
    """For each class its share, the forecast share, and an interval of the difference."""


class CalibrationMonitor:
    """Whether calibrated forecasts are still right, as labels arrive, batch after batch.

    Parameters
    ----------
    labels : array-like of shape (K,)
        The classes in the order of the columns of the forecasts.
    confidence : float, default=0.95
        If forecasts are calibrated, no alarm is ever raised with this probability, however many
        batches are seen.
    tolerance : float, default=0.0
        Miscalibration to put up with, in nats per row. Every model is slightly wrong, so with
        ``tolerance=0`` every model raises an alarm at some time. A calibrator that was fitted to n
        rows is wrong by about K / n.
    model : str, default=""
        Name of what made the forecasts, such as the checksum of a model file. States of different
        models are not merged.

    Attributes
    ----------
    alarm_ : int or None
        Number of rows seen when the evidence first exceeded ``log(1 / (1 - confidence))``.
    advice_ : {"nothing", "adapt priors", "refit"}
        What to do. "adapt priors" if a change of class shares explains the evidence best: see
        `isoroc.decisions.adjust_prior`.
    evidence_ : float
        Logarithm of the likelihood ratio of alternatives to the forecasts, averaged over the
        alternatives. ``exp(-evidence_)`` is a p-value that is valid at any time.
    history_ : Table
        One row per batch: `rows` and `evidence` of all rows so far; `log_loss` of the batch, the
        log loss that was `promised`, the `calibration_error` and its interval, `low` to `high`.
        Rows that were merged are one batch.

    See Also
    --------
    isoroc.metrics.calibration_test : A test of calibration on one set of rows.
    isoroc.decisions.adjust_prior : Forecasts for other class shares.

    Notes
    -----
    The alternatives are fixed: forecasts that are sharper or less sharp, those with other odds of
    one class, and those mixed with the uniform forecast; each beginning with any of the batches.
    If forecasts are calibrated given the past, the likelihood ratio of each is a martingale, so
    their average exceeds ``1 / (1 - confidence)`` at any time with probability ``1 - confidence``
    at most. The state is a few numbers for each alternative, and states of several machines can be
    merged.

    References
    ----------
    Ramdas, Grünwald, Vovk and Shafer, Game-theoretic statistics and safe anytime-valid inference,
    Statistical Science 38, 2023.

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
        self, labels: Any, *, confidence: float = 0.95, tolerance: float = 0.0, model: str = ""
    ) -> None:
        self.classes_: NDArray[Any] = to_array(labels, name="labels")
        K = len(set(self.classes_.tolist()))
        if self.classes_.ndim != 1 or K < 2 or len(self.classes_) != K:
            raise InputError("labels", None, f"is {labels!r}", "expected two or more classes")
        check_confidence(confidence)
        if not 0 <= tolerance < math.inf:
            raise InputError("tolerance", None, f"is {tolerance!r}", "expected 0 or more")
        self.confidence, self.tolerance, self.model = confidence, tolerance, model
        self.alternatives = Alternatives(K)
        self.totals = Totals.empty(K)
        self.evidence = Evidence.none(len(self.alternatives.family))
        self.n_batches = 0
        self.alarm_: int | None = None
        self.entries: list[list[float]] = []

    def update(self, y: Any, Q: Any) -> BatchReport:
        """Add a batch of outcomes and the forecasts that had been made for them.

        Parameters
        ----------
        y : array-like of shape (n,)
            Labels.
        Q : array-like of shape (n, K) or (n,)
            Calibrated forecasts of these rows, or the probability of the second of two classes.

        Returns
        -------
        BatchReport
            Of this batch alone; `report` is that of all batches.
        """
        sample = check_sample(Q, y, labels=self.classes_, scores="probability", name="Q")
        P = sample.forecasts
        P = np.column_stack([1 - P, P]) if P.ndim == 1 else P
        ratios = self.alternatives.log_ratios(P, sample.codes) - self.tolerance
        products = ratios.sum(axis=0)
        batch = Totals.of(P, sample.codes)
        self.totals = self.totals + batch
        self.evidence = self.evidence.add(products, self.n_batches)
        self.n_batches += 1
        self._add_entry(batch)
        return self._report(batch, Evidence(products, NEVER))

    def _add_entry(self, batch: Totals) -> None:
        """Raise the alarm if the evidence suffices, and remember the batch."""
        rows = self.totals.rows
        if self.alarm_ is None and self.evidence_ >= self.limit:
            self.alarm_ = rows
        losses = [batch.loss / batch.rows, batch.promised / batch.rows]
        error = error_in_cells(batch.in_cells, self._width)
        entry = [float(rows), self.evidence_, *losses, *error]
        self.entries = [*self.entries[-KEPT_BATCHES + 1 :], entry]

    @property
    def limit(self) -> float:
        """Evidence that raises the alarm."""
        return -math.log1p(-self.confidence)

    @property
    def _width(self) -> float:
        """Half the width of intervals, in standard errors."""
        return half_width(self.confidence)

    @property
    def evidence_(self) -> float:
        """Evidence against calibration of all rows so far."""
        return self.evidence.value(self.alternatives)

    @property
    def advice_(self) -> Advice:
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

    def _report(self, totals: Totals, evidence: Evidence) -> BatchReport:
        n = max(totals.rows, 1)
        difference = (totals.observed - totals.expected) / n
        half = self._width * np.sqrt(totals.variance) / n
        shares = Table(
            {"class": self.classes_, "observed": totals.observed / n}
            | {"forecast": totals.expected / n, "low": difference - half}
            | {"high": difference + half}
        )
        value = evidence.value(self.alternatives)
        error = (0.0, 0.0, 0.0)
        if totals.rows:
            error = error_in_cells(totals.in_cells, self._width)
        losses = totals.loss / n, totals.promised / n
        return BatchReport(totals.rows, value, *losses, *error, shares)

    def merge(self, other: CalibrationMonitor) -> Self:
        """Add the rows of another monitor of the same forecasts, such as that of another machine.

        The evidence of both is multiplied, for each alternative. `history_` gets one entry.
        """
        if self.classes_.tolist() != other.classes_.tolist():
            problem = f"monitors {other.classes_.tolist()}, this one {self.classes_.tolist()}"
            raise InputError("other", None, problem, "merge monitors of the same classes")
        if (self.confidence, self.tolerance) != (other.confidence, other.tolerance):
            problem = "has another confidence or tolerance"
            raise InputError("other", None, problem, "merge monitors with the same parameters")
        if self.model != other.model:
            problem = "monitors the forecasts of another model"
            raise InputError("other", None, problem, "start a new state for each model")
        alarms = [alarm for alarm in (self.alarm_, other.alarm_) if alarm is not None]
        self.alarm_ = min(alarms, default=None)
        self.totals = self.totals + other.totals
        self.evidence = self.evidence.merge(other.evidence)
        self.n_batches = max(self.n_batches, other.n_batches)
        if other.totals.rows:
            self._add_entry(other.totals)
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a small JSON file, atomically."""
        state = {
            "format": FORMAT,
            "version": VERSION,
            "labels": self.classes_.tolist(),
            "confidence": self.confidence,
            "tolerance": self.tolerance,
            "model": self.model,
            "alarm": self.alarm_,
            "totals": self.totals.to_lists(),
            "evidence": {
                "log_begun": self.evidence.log_begun.tolist(),
                "log_rest": self.evidence.log_rest,
            },
            "batches": self.n_batches,
            "history": self.entries,
        }
        with replacing(Path(path)) as new:
            new.write_text(json.dumps(state, allow_nan=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Monitor from a file that `save` wrote."""
        try:
            return cls._from_state(json.loads(Path(path).read_text(encoding="utf-8")))
        except (KeyError, TypeError, ValueError) as error:
            problem = f"{os.fspath(path)} is not the state of a monitor ({error})"
            raise InputError("path", None, problem, "pass a file that save() wrote") from error

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> Self:
        if state["format"] != FORMAT or state["version"] != VERSION:
            raise ValueError("it has another format or version")
        parameters = {name: state[name] for name in ("confidence", "tolerance", "model")}
        monitor = cls(state["labels"], **parameters)
        monitor.totals = Totals.from_lists(state["totals"], len(monitor.classes_))
        found = state["evidence"]
        size = len(monitor.alternatives.family)
        monitor.evidence = Evidence(numbers(found["log_begun"], size), float(found["log_rest"]))
        monitor.n_batches = int(state["batches"])
        monitor.alarm_ = None if state["alarm"] is None else int(state["alarm"])
        monitor.entries = [numbers(entry, 7).tolist() for entry in state["history"]]
        return monitor
