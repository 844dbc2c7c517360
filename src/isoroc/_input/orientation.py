"""Forecasts that rank a class worse than chance: probably another column, or another class."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoroc._input.labels import shown
from isoroc._input.sample import Sample
from isoroc._simplex import Floats, binary_scores
from isoroc._special import normal_quantile

#: Chance of a warning where forecasts are pure noise.
LEVEL = 1e-4
#: Rows that are looked at, drawn at random where there are more,
MAX_ROWS = 20_000
#: and classes, the most frequent ones.
MAX_CLASSES = 50


class Reversal(NamedTuple):
    """A class that forecasts rank worse than chance."""

    label: Any
    area: float
    """Area under the ROC curve of the class against the others."""
    other: Any
    """The other class of scores, None if there is one column per class."""

    def __str__(self) -> str:
        cause = (
            "the columns may stand in another order"
            if self.other is None
            else f"they may be the scores of {shown(self.other)}"
        )
        rank = f"rank class {shown(self.label)} worse than chance (AUC {self.area:.3f})"
        return f"the forecasts {rank}; {cause}"


def find_reversal(sample: Sample) -> Reversal | None:
    """The class that forecasts rank below the others beyond noise, the worst of them."""
    some = sample.positive().draw(MAX_ROWS)
    counts = np.bincount(some.codes, minlength=sample.n_classes)
    if sample.n_classes == 2:
        classes, columns = [1], [binary_scores(some.forecasts)]
    else:
        classes = np.argsort(-counts, kind="stable")[:MAX_CLASSES].tolist()
        columns = [some.forecasts[:, k] for k in classes]
    bound = normal_quantile(LEVEL / len(classes))
    found = [
        (area, k)
        for k, column in zip(classes, columns, strict=True)
        if 0 < counts[k] < len(some)
        for area, deviation in [_area(column, some.codes == k)]
        if deviation < bound
    ]
    if not found:
        return None
    area, k = min(found)
    other = sample.classes[0] if sample.kind.single else None
    return Reversal(sample.classes[k], area, other)


def warn_if_reversed(sample: Sample, *, name: str = "P", stacklevel: int = 4) -> None:
    """Warn if the forecasts of some class rank it below the others beyond noise."""
    if (reversal := find_reversal(sample)) is not None:
        order = "the class of each column"
        if reversal.other is not None:
            order = "the two classes with that of larger scores last"
        warnings.warn(f"{name}: {reversal}. labels= takes {order}.", UserWarning, stacklevel)


def _area(scores: Floats, positive: NDArray[np.bool_]) -> tuple[float, float]:
    """Area under the ROC curve, and how many standard deviations of noise it is above 1/2.

    The deviation is that of noise without ties. Ties make it smaller, but then few rows decide, and
    the normal approximation would take a single odd row for a certainty.
    """
    ones, zeros = np.sort(scores[positive]), np.sort(scores[~positive])
    n1, n0 = len(ones), len(zeros)
    below = sum(np.searchsorted(zeros, ones, side).sum() for side in ("left", "right"))
    area = below / (2 * n0 * n1)  # ties count half
    deviation = np.sqrt((n0 + n1 + 1) / (12 * n0 * n1))
    return float(area), float((area - 0.5) / deviation)
