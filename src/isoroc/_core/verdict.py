"""Verdict: whether calibration helps, judged in one place, as figures and in a sentence."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import isnan, nan
from typing import Any, Literal

from isoroc._core.intervals import Estimate

Decision = Literal["calibrate", "leave it", "too few rows to tell"]
#: What a gain was estimated from.
Basis = Literal["cross-validation", "second forecasts", "calibration loss"]
#: With fewer independent rows, lack of evidence is no reason to leave forecasts uncalibrated.
FEW_ROWS = 100
#: Probability that the intervals of verdicts cover the gain.
CONFIDENCE = 0.95


def allow_for_few_rows(p_value: float, n_units: float) -> float:
    """P-value of `score_test`, larger if rows are few: calibrators then learn mostly noise."""
    return min(1.0, p_value * (1 + (FEW_ROWS / n_units) ** 2))


def is_evidence(p_value: float, n_units: float, level: float = 0.01) -> bool:
    """Whether a score test shows that forecasts are not calibrated."""
    return bool(allow_for_few_rows(p_value, n_units) < level)


def is_loss_shown(loss: Estimate, n_units: float) -> bool:
    """Whether the interval of a calibration loss lies above 0. With few rows it is too narrow."""
    return bool(loss.low > 0 and not n_units < FEW_ROWS)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether calibration helps, and the figures behind it.

    ``str(verdict)`` is a sentence. Figures that are not known are NaN.

    Attributes
    ----------
    should_calibrate : bool
        Whether there is evidence that calibration helps.
    few_rows : bool
        Whether there is none either way, with fewer than 100 independent rows.
    before : float
        Log loss of the uncalibrated forecasts.
    after : float
        Log loss of the calibrated forecasts.
    gain, low, high : float
        Reduction of the log loss by calibration, and its 95 % interval. In cross-validation each
        loss is bounded, so the gain may differ from ``before - after``.
    p_value : float
        P-value of a score test that the uncalibrated forecasts are neither too confident nor too
        timid, nor shifted towards a class.
    confidence : float
        Probability that the interval covers the gain, 0.95.
    based_on : "cross-validation", "second forecasts" or "calibration loss"
        Where `after` and `gain` come from: rows that were held out, rows with forecasts before and
        after calibration, or an estimate of what calibration could gain.
    n_rows : int
        Number of rows.
    impossible : int
        Number of outcomes that had probability 0 before calibration.
    largest_change : float
        Largest change of a probability of any calibration row, if calibration is applied against
        the verdict.
    mean_change : float
        Mean over the rows of the largest change in each.
    n_folds : int
        Number of calibrators of a `CalibratedClassifier`.
    n_agreeing : int
        Number of these calibrators that agree with the verdict.

    Notes
    -----
    The verdict is to calibrate if the interval of the gain lies above 0, or if the gain is above 0
    and the score test rejects calibration at the level 1 %. The p-value is multiplied by
    ``1 + (100 / n)**2`` for n independent rows or clusters. The same rule holds for calibrators,
    `evaluate`, reports and commands. Calibrated forecasts get this verdict in at most 2 % of cases.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import AutoCalibrator
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> AutoCalibrator().fit(p, rng.random(2000) < p**2).verdict_.should_calibrate
    True
    """

    should_calibrate: bool
    before: float
    after: float
    gain: float
    low: float
    high: float
    p_value: float
    confidence: float
    based_on: Basis
    n_rows: int
    impossible: int
    few_rows: bool = False
    largest_change: float = nan
    mean_change: float = nan
    n_folds: int = 1
    n_agreeing: int = 1

    @property
    def decision(self) -> Decision:
        """The decision in a few words."""
        if self.should_calibrate:
            return "calibrate"
        return "too few rows to tell" if self.few_rows else "leave it"

    def to_dict(self) -> dict[str, Any]:
        """All figures, the decision and the sentence ("text") as JSON values, with None for NaN."""
        figures = {name: None if value != value else value for name, value in asdict(self).items()}  # noqa: PLR0124
        return figures | {"decision": self.decision, "text": str(self)}

    def __str__(self) -> str:
        if self.n_folds > 1:
            return f"{self.decision}: the verdict in {self.n_agreeing} of {self.n_folds} folds"
        sentence = {
            "cross-validation": self._cross_validated,
            "second forecasts": self._compared,
            "calibration loss": self._estimated,
        }
        return f"{self.decision}: {sentence[self.based_on]()}"

    def _losses(self) -> str:
        return f"log loss {self.before:.4f} before, {self.after:.4f} after"

    def _interval(self, low: float, high: float, subject: str = "") -> str:
        """The interval in brackets, empty if it is not known."""
        ends = f"{low:.4f} to {high:.4f}"
        return "" if isnan(low) else f" ({100 * self.confidence:g} % interval {subject}{ends})"

    def _departure(self) -> str:
        """The p-value in words, where the interval of the gain does not decide."""
        if self.low > 0 or isnan(self.p_value):
            return ""
        words = "calibrated forecasts would depart as far from the outcomes with probability"
        return f"; {words} {self.p_value:.2g}"

    def _cross_validated(self) -> str:
        text = f"log loss {self.after:.4f} on unseen rows, lower by {self.gain:.4f}"
        text += self._interval(self.low, self.high)
        if abs(self.before - self.after - self.gain) > 0.001:
            text += " with bounded losses of single rows"
        text += self._departure()
        if self.few_rows:
            text = f"{self.n_rows} rows ({self._losses()} on unseen rows)"
        elif not self.should_calibrate:
            text = f"no improvement on the forecasts beyond noise ({self._losses()} on unseen rows)"
        if self.impossible:
            text += f"; {self.impossible} of {self.n_rows} outcomes had been given probability 0"
        if self.largest_change > 1e-6:  # also False for NaN
            text += "; the mixture still changes probabilities by up to "
            text += f"{self.largest_change:.2g}, on average {self.mean_change:.2g}"
        return text

    def _compared(self) -> str:
        if isnan(self.gain):
            which = "before" if isnan(self.before) else "after"
            return f"the scores {which} calibration are not probabilities"
        figures = self._losses() + self._interval(-self.high, -self.low, "of the change ")
        if self.should_calibrate:
            return figures + self._departure()
        if self.high < 0:
            return f"calibration raised the log loss, {figures}"
        return f"{self.n_rows} rows, {figures}" if self.few_rows else f"no clear change, {figures}"

    def _estimated(self) -> str:
        if isnan(self.before):
            return "these scores are not probabilities"
        if self.few_rows:
            return f"{self.n_rows} rows show no miscalibration"
        if not self.should_calibrate:
            return "no evidence of miscalibration"
        if self.gain <= 0:
            saving = f"up to {self.high:.4f} nats of log loss per row"
            return f"it could save {saving}{self._departure()}"
        saving = f"{self.gain:.4f} nats of log loss per row"
        interval = self._interval(max(self.low, 0.0), self.high)
        return f"it could save {saving}{interval}{self._departure()}"


def judge_gain(
    gain: Estimate,
    p_value: float,
    n_units: float,
    *,
    before: float,
    after: float,
    based_on: Basis,
    n_rows: int,
    impossible: int,
) -> Verdict:
    """The verdict of calibrators, reports and commands, given the 95 % interval of the gain.

    `p_value` comes from `score_test`, and `n_units` is the number of independent rows. The notes of
    `Verdict` state the rule. Scores that are not probabilities have no loss and need calibration.
    """
    is_shown = gain.low > 0
    helps = gain.value > 0
    if based_on == "calibration loss":
        is_shown = is_loss_shown(gain, n_units)
        helps = True  # a calibration loss is not below 0, whatever its estimate is
    should = is_shown or (helps and is_evidence(p_value, n_units)) or isnan(before)
    few = not should and not gain.high < 0 and not isnan(gain.value) and n_units < FEW_ROWS
    return Verdict(
        should_calibrate=bool(should),
        few_rows=bool(few),
        before=before,
        after=after,
        gain=gain.value,
        low=gain.low,
        high=gain.high,
        p_value=p_value,
        confidence=CONFIDENCE,
        based_on=based_on,
        n_rows=n_rows,
        impossible=impossible,
    )
