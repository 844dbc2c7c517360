"""The measures of an evaluation, one entry each: what they are, and how they are estimated."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Literal

import numpy as np

from isoroc._core.intervals import Difference, Share, Statistic
from isoroc._core.losses import brier_losses, log_losses
from isoroc._core.types import Floats
from isoroc._evaluation.order import EFFORTS
from isoroc._input import Sample

Stage = Literal["before", "after", "change"]
#: Estimates by measure and stage.
Estimates = dict[tuple[str, str], Statistic | Difference | Share]
#: With more classes, calibration errors of single classes are omitted, since they take too long.
MANY_CLASSES = 50


@dataclass(frozen=True)
class Measure:
    """A measure: how it is shown, estimated and judged.

    The mean of something over the rows needs no more than its entry here: `rows` and, for zeros and
    ones, ``statistic="share"``. The module `measures` estimates all others.
    """

    title: str
    meaning: str
    better: Literal[-1, 0, 1]
    """-1 if lower values are better, 1 if higher ones are, 0 if neither."""
    limits: tuple[float, float] = (0.0, inf)
    """Values at which the interval of a stage is cut off. Changes are cut off accordingly."""
    stages: tuple[Stage, ...] = ("before", "after", "change")
    """The last two need second forecasts."""
    rows: Callable[[Sample], Floats] | None = None
    """Value of each row, shape (n,), if the measure is their mean."""
    changes: Callable[[Sample, Sample], Floats] | None = None
    """Value of each row, shape (n,), from both forecasts, if the measure only has a change."""
    statistic: Literal["mean", "share"] = "mean"
    """How the mean of the rows gets its interval: "share" if they are zeros and ones."""
    of_scores: bool = False
    """Whether `rows` can be computed from log odds, which are not probabilities."""
    charges_zeros: bool = False
    """Whether outcomes of probability 0 cost so much that absent ones widen the interval."""
    n_classes: tuple[float, float] = (2, inf)
    """Fewest and most classes for which the measure exists."""
    if_estimated: bool = False
    """Whether a measure without an estimate is left out. Otherwise its values are NaN."""
    is_merit: bool = True
    """Whether a report calls a change better or worse, and not just higher or lower."""

    def exists(self, n_classes: int) -> bool:
        """Whether forecasts of K classes have the measure."""
        least, most = self.n_classes
        return least <= n_classes <= most

    def is_difference(self, stage: str) -> bool:
        """Whether a stage is the difference of two others."""
        return stage == "change" and "before" in self.stages

    def range_of(self, stage: str) -> tuple[float, float]:
        """Smallest and largest value that an interval of a stage may reach."""
        low, high = self.limits
        return (low - high, high - low) if self.is_difference(stage) else (low, high)


def _right_decisions(sample: Sample) -> Floats:
    return np.asarray(sample.decisions() == sample.codes, dtype=np.float64)


def _changed_decisions(before: Sample, after: Sample) -> Floats:
    return np.asarray(before.decisions() != after.decisions(), dtype=np.float64)


#: Values between 0 and 1.
ZERO_TO_ONE = (0.0, 1.0)
#: All measures, in the order in which they are shown.
MEASURES = {
    "log_loss": Measure(
        "log loss",
        "mean negative log probability of what came true (nats)",
        better=-1,
        rows=lambda sample: log_losses(sample.forecasts, sample.codes),
        charges_zeros=True,
    ),
    "calibration_loss": Measure(
        "calibration loss", "log loss that calibration would remove", better=-1
    ),
    "refinement_loss": Measure(
        "refinement loss", "log loss that only a better model lowers", better=-1
    ),
    "brier_score_loss": Measure(
        "Brier score",
        "mean squared distance from outcomes",
        better=-1,
        rows=lambda sample: brier_losses(sample.forecasts, sample.codes),
    ),
    "calibration_error": Measure(
        "calibration error",
        "mean distance from observed shares; too low if errors often change their sign",
        better=-1,
        limits=ZERO_TO_ONE,
    ),
    "classwise_calibration_error": Measure(
        "classwise calibration error",
        "of single classes",
        better=-1,
        limits=ZERO_TO_ONE,
        n_classes=(3, MANY_CLASSES),
    ),
    "top_calibration_error": Measure(
        "top-label calibration error", "of the most likely class", better=-1, limits=ZERO_TO_ONE
    ),
    "accuracy": Measure(
        "accuracy",
        "share of rows whose most probable class came true",
        better=1,
        limits=ZERO_TO_ONE,
        rows=_right_decisions,
        statistic="share",
        of_scores=True,
        is_merit=False,  # a constant decision may have the highest accuracy
    ),
    "auc": Measure(
        "AUC",
        "how often a row of the second class ranks above one of the first",
        better=1,
        limits=ZERO_TO_ONE,
        n_classes=(2, 2),
    ),
    "auc_one_vs_rest": Measure(
        "AUC, one class against the rest",
        "mean over the classes",
        better=1,
        limits=ZERO_TO_ONE,
        n_classes=(3, inf),
    ),
    "auc_one_vs_one": Measure(
        "AUC, pairs of classes",
        "mean over the pairs of classes",
        better=1,
        limits=ZERO_TO_ONE,
        n_classes=(3, inf),
    ),
    "macro_log_loss": Measure(
        "log loss, mean over labels",
        "each label counts the same",
        better=-1,
        charges_zeros=True,
        if_estimated=True,
    ),
    "macro_auc": Measure(
        "AUC, mean over labels",
        "how often a row with the label ranks above",
        better=1,
        limits=ZERO_TO_ONE,
        if_estimated=True,
    ),
    "vus": Measure(
        "volume under the ROC surface",
        "how well thresholds separate all classes",
        better=1,
        limits=ZERO_TO_ONE,
        n_classes=(min(EFFORTS), max(EFFORTS)),
    ),
    "decisions_changed": Measure(
        "decisions changed",
        "rows whose most probable class changed",
        better=0,
        limits=ZERO_TO_ONE,
        stages=("change",),
        changes=_changed_decisions,
        statistic="share",
    ),
    "pairs_reversed": Measure(
        "pairs of rows reversed",
        "pairs whose order was reversed",
        better=0,
        limits=ZERO_TO_ONE,
        stages=("change",),
    ),
    "pairs_tied": Measure(
        "pairs of rows that became ties",
        "pairs that were not ties before",
        better=0,
        limits=ZERO_TO_ONE,
        stages=("change",),
    ),
}
