"""The verdict of an evaluation, made from all evidence about its rows."""

from collections.abc import Mapping
from math import nan
from typing import NamedTuple

from isoroc._core.evidence import count_units, score_test
from isoroc._core.intervals import UNKNOWN, Estimate
from isoroc._core.verdict import CONFIDENCE, Verdict, is_evidence, is_loss_shown, judge_gain
from isoroc._evaluation.before_after import Pair
from isoroc._evaluation.catalogue import Estimates
from isoroc._input import Sample


class Miscalibration(NamedTuple):
    """Evidence against the calibration of some forecasts."""

    loss: Estimate  # the calibration loss
    p_value: float = nan  # of `score_test`
    n_units: float = nan  # number of independent rows

    @classmethod
    def of(cls, sample: Sample, loss: Estimate) -> "Miscalibration":
        """Evidence in rows with probabilities."""
        rows = sample.effective()
        return cls(loss, score_test(rows.forecasts, rows), count_units(rows))

    @property
    def is_clear(self) -> bool:
        """Whether forecasts are miscalibrated beyond chance."""
        is_loss = is_loss_shown(self.loss, self.n_units)
        return is_loss or is_evidence(self.p_value, self.n_units)


class Judgement(NamedTuple):
    """A verdict, and what the sentences next to it need so as not to contradict it."""

    verdict: Verdict
    miscalibrated: dict[str, bool]  # by stage, "before" and "after"
    seen: float  # share of the rows that the calibrator was fitted to


def judge_rows(
    pair: Pair, estimates: Estimates, n_rows: int, impossible: Mapping[str, int]
) -> Judgement:
    """Judge forecasts by some or all of `n_rows` rows, and by the estimates from them.

    A calibrator that was fitted to some of the rows proves nothing: then the forecasts before
    calibration are judged alone.
    """
    evidence = {
        stage: Miscalibration.of(sample, _interval(estimates, "calibration_loss", stage))
        for stage, sample in pair.series.items()
    }
    miscalibrated = {stage: each.is_clear for stage, each in evidence.items()}
    before = evidence.get(
        "before", Miscalibration(_interval(estimates, "calibration_loss", "before"))
    )
    fitted = None if pair.after is None else pair.fitted
    seen = 0.0 if fitted is None else fitted.share_of(pair.before)
    is_compared = pair.after is not None and not seen
    gain = before.loss
    if is_compared:
        change = _interval(estimates, "log_loss", "change")
        gain = Estimate(-change.value, -change.high, -change.low)
    verdict = judge_gain(
        gain,
        before.p_value,
        before.n_units,
        before=_interval(estimates, "log_loss", "before").value,
        after=_interval(estimates, "log_loss", "after").value if is_compared else nan,
        based_on="second forecasts" if is_compared else "calibration loss",
        n_rows=n_rows,
        impossible=impossible.get("before", 0),
    )
    return Judgement(verdict, miscalibrated, seen)


def _interval(estimates: Estimates, measure: str, stage: str) -> Estimate:
    known = estimates.get((measure, stage))
    if known is None:
        return UNKNOWN
    return Estimate(known.value, *known.interval(CONFIDENCE))
