"""Forecasts that rank a class worse than chance: probably another column, or another class."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from isoroc._input.labels import shown
from isoroc._input.sample import Sample
from isoroc._simplex import Floats, binary_scores

#: Chance of a warning where forecasts are pure noise.
LEVEL = 1e-4
#: Rows that are looked at, drawn at random where there are more,
MAX_ROWS = 20_000
#: and classes, the most frequent ones.
MAX_CLASSES = 50


def warn_if_reversed(sample: Sample, *, name: str = "P") -> None:
    """Warn if the forecasts of some class rank it below the others beyond noise."""
    some = sample.positive().draw(MAX_ROWS)
    counts = np.bincount(some.codes, minlength=sample.n_classes)
    if sample.n_classes == 2:
        classes, columns = [1], [binary_scores(some.forecasts)]
    else:
        classes = np.argsort(-counts, kind="stable")[:MAX_CLASSES].tolist()
        columns = [some.forecasts[:, k] for k in classes]
    bound = ndtri(LEVEL / len(classes))
    found = [
        (k, area)
        for k, column in zip(classes, columns, strict=True)
        if 0 < counts[k] < len(some)
        for area, deviation in [_area(column, some.codes == k)]
        if deviation < bound
    ]
    if not found:
        return
    k, area = min(found, key=lambda entry: entry[1])
    if sample.forecasts.ndim == 1:
        cause = f"the scores may be those of {shown(sample.classes[0])}"
        fix = "labels= takes the two classes with that of larger scores last"
    else:
        cause = "the columns may stand in another order"
        fix = "labels= takes the class of each column"
    warnings.warn(
        f"{name}: the forecasts rank class {shown(sample.classes[k])} worse than chance (AUC "
        f"{area:.3f}); {cause}: {fix}.",
        UserWarning,
        stacklevel=3,
    )


def _area(scores: Floats, positive: np.ndarray) -> tuple[float, float]:
    """Area under the ROC curve, and how many standard deviations of noise it is above 1/2.

    The deviation is that of noise without ties. Ties make it smaller, but then few rows decide, and
    the normal approximation would take a single odd row for a certainty.
    """
    n1 = np.count_nonzero(positive)
    n0 = len(scores) - n1
    area = (rankdata(scores)[positive].sum() / n1 - (n1 + 1) / 2) / n0
    deviation = np.sqrt((n0 + n1 + 1) / (12 * n0 * n1))
    return float(area), float((area - 0.5) / deviation)
