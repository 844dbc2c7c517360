"""A test of calibration: whether the labels are compatible with draws from the forecasts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoroc._core.intervals import effective_weights
from isoroc._core.simplex import as_matrix, residuals
from isoroc._core.types import Floats
from isoroc._input import Sample, check_number, check_option, check_probabilities, split_by_kind
from isoroc._support.seeds import check_random_state
from isoroc.metrics._estimation.grouping import (
    count_halvings,
    fix_class_order,
    halve_repeatedly,
    order_rows,
    sum_classes,
    sum_rows,
)


@dataclass(frozen=True, repr=False)
class CalibrationTest:
    """Result of a test of calibration."""

    statistic: float
    """Largest deviation from calibration over all scales, in standard deviations."""
    p_value: float
    """Probability of a statistic at least as large if the forecasts are calibrated."""
    n_cells: int
    """Number of cells at the scale where the deviation is largest."""
    n_resamples: int
    """Number of times labels were drawn."""

    def __repr__(self) -> str:
        size = f"{self.statistic:.1f} standard deviations from calibration"
        seen = f"seen in {self.n_cells} cells ({self.n_resamples} resamples)"
        return f"p = {self.p_value:.3g}: {size}, {seen}"


def calibration_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    kind: Literal["canonical", "top"] = "canonical",
    n_resamples: int = 999,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    random_state: Any = 0,
) -> CalibrationTest:
    """Test whether forecasts are calibrated, for any number of classes.

    If they are, labels drawn from the forecasts have the same distribution as the observed ones. So
    the statistic is compared with its values for drawn labels, which controls the chance of
    rejecting calibrated forecasts (Bröcker and Smith 2007, Vaicenavicius et al. 2019). It is the
    largest deviation over nested cells of the forecasts, as in T-Cal (Lee et al. 2023).

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, K)
        Labels, or the shares of the classes in each row (soft labels).
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes.
    kind : {"canonical", "top"}, default="canonical"
        "canonical" tests the whole forecast, "top" the largest probability against the accuracy.
    n_resamples : int, default=999
        How often labels are drawn. The smallest possible p-value is ``1 / (n_resamples + 1)``.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row. A row is one outcome whatever its weight.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns, sorted by default.
    clusters : array-like of shape (n,), default=None
        Cluster of each row, if rows of a cluster depend on each other. The signs of the residuals
        of whole clusters are then drawn instead of labels (wild bootstrap), and the level of the
        test is approximate.
    random_state : int, RandomState or None, default=0
        Seed of the draws.

    Returns
    -------
    CalibrationTest

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.metrics import calibration_test
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> calibration_test(rng.random(1000) < p, p, random_state=0).p_value > 0.05
    True
    >>> calibration_test(rng.random(1000) < p**1.5, p, random_state=0).p_value
    0.001
    """
    check_option("kind", kind, ("canonical", "top"))
    check_number("n_resamples", n_resamples, int, minimum=1)
    sample = check_probabilities(y_true, y_prob, sample_weight, labels, clusters)
    if kind != "top":  # of equal probabilities, the first is the largest one
        sample = fix_class_order(sample)
    (sample,) = split_by_kind(sample, kind)
    sample = sample.take(order_rows(sample))
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    scales = _Scales(sample)
    drawn = (scales.draw(rng) for _ in range(n_resamples))
    sizes = np.array([scales.measure(sums) for sums in (scales.observed, *drawn)])
    deviation = _standardise(sizes)
    statistic, *others = deviation.max(axis=1).tolist()
    # Rounding must not decide whether two sets of labels deviate by as much.
    as_large = sum(other >= statistic - 1e-9 * (1 + abs(statistic)) for other in others)
    n_cells = len(scales.variances[deviation[0].argmax()])
    return CalibrationTest(statistic, (1 + as_large) / (1 + n_resamples), n_cells, n_resamples)


class _Scales:
    """Nested cells of the forecasts, and the deviation of labels from them at each scale."""

    def __init__(self, sample: Sample) -> None:
        P = as_matrix(sample.forecasts)
        self.clusters = sample.clusters
        self.residuals = residuals(P, sample.codes)
        self.cell = halve_repeatedly(sample.forecasts, count_halvings(len(P)))
        self.weights = effective_weights(sample.row_weights())
        self.cumulative = np.cumsum(P[:, :-1], axis=1)
        self.expected = sum_rows(self.cell, P, self.weights)
        self.observed = self._sums(sample.codes)
        variance = sum_rows(self.cell, P * (1 - P), self.weights**2)
        self.variances = list(self._levels(variance))

    def _levels(self, sums: Floats) -> Iterator[Floats]:
        """Sums in the cells of each scale, from the finest to the coarsest."""
        yield sums
        while len(sums) > 1:  # the last cell may have no partner, as empty cells are not counted
            sums = np.add.reduceat(sums, np.arange(0, len(sums), 2))
            yield sums

    def _sums(self, codes: NDArray[np.integer[Any]]) -> Floats:
        """Sums of residuals in the finest cells."""
        hits = sum_classes(self.cell, codes, self.expected.shape[1], self.weights)
        return np.asarray(hits - self.expected)

    def measure(self, sums: Floats) -> list[float]:
        """Squared sums of residuals over their variances, summed over the cells of each scale."""
        # Adding 1 limits the influence of cells with certain forecasts, whose variance is near 0.
        levels = zip(self._levels(sums), self.variances, strict=True)
        return [float((s**2 / (v + 1)).sum()) for s, v in levels]

    def draw(self, rng: np.random.Generator) -> Floats:
        """Sums for labels drawn from the forecasts, or for random signs of clusters."""
        if self.clusters is not None:
            signs = rng.choice([-1.0, 1.0], int(self.clusters.max()) + 1)
            return sum_rows(self.cell, self.residuals, self.weights * signs[self.clusters])
        chance = rng.random((len(self.cell), 1))
        return self._sums(np.asarray((chance > self.cumulative).sum(axis=1)))


def _standardise(sizes: Floats) -> Floats:
    """Each entry minus the mean of the others in its column, over their standard deviation."""
    # The observed labels, in the first row, and the drawn ones are treated alike: an exact test.
    centred = sizes - sizes.mean(axis=0)
    n_others = len(sizes) - 1
    mean = -centred / n_others
    square = ((centred**2).sum(axis=0) - centred**2) / n_others
    spread = np.sqrt(np.maximum(square - mean**2, 0))
    # If the others are all equal, any difference counts as very large.
    difference = centred - mean
    tiny = 1e-9 * np.abs(sizes).max(axis=0)
    return np.where(np.abs(difference) <= tiny, 0.0, difference / np.maximum(spread, tiny + 1e-300))
