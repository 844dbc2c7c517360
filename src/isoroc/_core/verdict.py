"""Verdict: whether calibration helps, as figures and in a sentence."""

from dataclasses import asdict, dataclass
from math import isnan, nan
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether calibration helps, and the figures behind it; ``str(verdict)`` is a sentence.

    Figures that are not known are NaN.

    Attributes
    ----------
    should_calibrate : bool
        The decision.
    before, after : float
        Log losses of the uncalibrated and of the calibrated forecasts.
    gain, low, high : float
        Reduction of the log loss by calibration, and its interval. In cross-validation each loss is
        bounded, so the gain may differ from ``before - after``.
    p_value : float
        P-value of a score test of the uncalibrated forecasts (cross-validation), or of the test
        that the loss is the same (second forecasts).
    confidence : float
        Probability that the interval covers the gain.
    based_on : "cross-validation", "second forecasts" or "calibration loss"
        Where `after` and `gain` come from: rows that were held out, rows with forecasts before and
        after calibration, or an estimate of what calibration could gain.
    n_rows, impossible : int
        Number of rows, and number of outcomes that had probability 0 before calibration.
    largest_change, mean_change : float
        Change of the probabilities of the calibration rows, if applied against the verdict.
    n_folds, n_agreeing : int
        Number of calibrators of a `CalibratedClassifier`, and of those that agree.

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
    based_on: Literal["cross-validation", "second forecasts", "calibration loss"]
    n_rows: int
    impossible: int
    largest_change: float = nan
    mean_change: float = nan
    n_folds: int = 1
    n_agreeing: int = 1

    @property
    def decision(self) -> Literal["calibrate", "leave it"]:
        """The decision in a word or two."""
        return "calibrate" if self.should_calibrate else "leave it"

    def to_dict(self) -> dict[str, Any]:
        """All figures and the sentence, "text", as JSON can hold them; NaN becomes None."""
        figures = {name: None if value != value else value for name, value in asdict(self).items()}  # noqa: PLR0124
        return figures | {"text": str(self)}

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

    def _cross_validated(self) -> str:
        text = f"{self._losses()} on unseen rows; with bounded losses better by {self.gain:.4f}"
        text += self._interval(self.low, self.high)
        if not self.should_calibrate:
            text = f"no improvement on the forecasts beyond noise ({self._losses()} on unseen rows)"
        elif self.low <= 0:
            text += "; calibrated forecasts would depart as far from the outcomes with probability "
            text += f"{self.p_value:.2g}"
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
        text = "calibration raised the log loss, " if self.high < 0 else "no clear change, "
        interval = self._interval(-self.high, -self.low, "of the change ")
        return f"{'' if self.should_calibrate else text}{self._losses()}{interval}"

    def _estimated(self) -> str:
        if isnan(self.before):
            return "these scores are not probabilities"
        if not self.should_calibrate:
            return "no evidence of miscalibration"
        saving = f"{self.gain:.4f} nats of log loss per row"
        return f"it could save {saving}{self._interval(self.low, self.high)}"
