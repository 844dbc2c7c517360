"""Isotonic regression of each class against the rest: one fit, or two as in Venn-Abers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from isoroc._calibrators.base import Calibrator, FromMap
from isoroc._core.types import Floats
from isoroc._counts import N_BITS, BinaryCounts, rounded
from isoroc._growth import isotonic_steps, venn_abers_steps
from isoroc._input import InputError, Sample, check_number
from isoroc._maps import StepMap, VennAbersMap


@dataclass(eq=False, repr=False, kw_only=True)
class IsotonicCalibrator(Calibrator):
    """Isotonic regression of each class against the rest, smoothed.

    Each column of the forecasts has a map of its own, and rows are divided by their sum. Two
    classes have one map. The order of the rows in each column is kept, up to ties. The order of the
    classes in a row is not.

    Parameters
    ----------
    pseudocount : float, default=1.0
        Weight of the uniform forecast in every block. 0 requires two classes. With more, every
        map may return 0 for the same row.

    Attributes
    ----------
    classes_, n_features_in_, unit_, summary_, map_, checksum
        As in `IdentityCalibrator`.
    cuts_, values_ : list of ndarray
        The maps, one for each class, or one for the second of two: ``values_[k][i]`` for forecasts
        with i of the ascending ``cuts_[k]`` below them.

    See Also
    --------
    IRPCalibrator : Calibrates the classes jointly.
    VennAbersCalibrator : Isotonic regression with an interval for each probability.

    Notes
    -----
    The map of a class is constant on blocks of adjacent forecasts, with value
    ``(weight of the class + pseudocount / K) / (weight + pseudocount)``.

    Examples
    --------
    >>> from isoroc import IsotonicCalibrator
    >>> P, y = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]], ["ant", "bee", "cat"]
    >>> IsotonicCalibrator().fit(P, y).predict([[0.5, 0.3, 0.2]])
    array(['ant'], dtype='<U3')
    """

    pseudocount: float = 1.0

    _shares: ClassVar[tuple[float, float]] = (0.3, 0.3)
    _uses_order_only: ClassVar[bool] = True

    cuts_ = FromMap()
    values_ = FromMap()

    def _fit(self, sample: Sample) -> StepMap:
        check_number("pseudocount", self.pseudocount, minimum=0)
        K = sample.n_classes
        if K > 2 and self.pseudocount == 0:
            problem = "is 0, but rows of three classes or more are divided by their sum, maybe 0"
            raise InputError("pseudocount", None, problem, "expected a number > 0")
        pseudocounts = self.pseudocount * np.array([1 - 1 / K, 1 / K])
        of_classes = counts_of_classes(sample, N_BITS)
        maps = [isotonic_steps(counts, pseudocounts) for counts in of_classes]
        cuts, values = ([steps[i] for steps in maps] for i in range(2))
        return StepMap(kind=sample.kind, cuts=cuts, values=values)


def counts_of_classes(sample: Sample, n_bits: int | None = None) -> Iterator[BinaryCounts]:
    """Counts of each class against the rest, or with two classes only of the second.

    Columns of three classes or more are rounded to `n_bits`: divided by the sum of their row, equal
    forecasts differ in the last digit.
    """
    sample = sample.on_simplex()
    if sample.n_classes == 2:
        yield BinaryCounts.from_sample(sample)
        return
    # Without weights, scores are sorted without an index.
    weights = None if (sample.row_weights() == 1).all() else sample.weights
    for k, scores in enumerate(np.ascontiguousarray(sample.forecasts.T)):
        is_k = (sample.codes == k).view(np.uint8)
        values = scores if n_bits is None else rounded(scores, n_bits)
        yield BinaryCounts.from_arrays(values, is_k, weights)


class VennAbersCalibrator(Calibrator):
    """Inductive Venn-Abers prediction: an interval for each probability, and one value in it.

    Isotonic regression is fitted twice to the calibration rows and the row to be forecast: as if
    its outcome were the class, and as if it were not. With three classes or more, each class is
    calibrated against the rest, and rows are divided by their sum.

    Attributes
    ----------
    classes_, n_features_in_, unit_, summary_, map_, checksum
        As in `IdentityCalibrator`.
    cuts_, lower_, upper_ : list of ndarray
        p0 and p1 of each class, or of the second of two: ``lower_[k][i]`` and ``upper_[k][i]`` for
        forecasts with i of the ascending ``cuts_[k]`` below them.

    See Also
    --------
    IsotonicCalibrator : One isotonic regression, smoothed by a pseudocount.

    Notes
    -----
    With the values p1 and p0 of the two fits, the forecast is ``p1 / (1 - p0 + p1)``. The row to be
    forecast has weight 1 (Vovk, Petej and Fedorova, NeurIPS 2015). There is a step at almost every
    score, so `save` refuses a fit to too many rows.

    Examples
    --------
    >>> from isoroc import VennAbersCalibrator
    >>> cal = VennAbersCalibrator().fit([0.1, 0.3, 0.4, 0.6, 0.7, 0.9], [0, 0, 1, 0, 1, 1])
    >>> cal.predict_proba([0.5, 0.95])[:, 1].round(3)
    array([0.5 , 0.75])
    >>> low, high = cal.predict_interval([0.5, 0.95])
    >>> low[:, 1].round(3), high[:, 1].round(3)
    (array([0.333, 0.667]), array([0.667, 1.   ]))
    """

    _shares: ClassVar[tuple[float, float]] = (0.3, 0.3)
    _uses_order_only: ClassVar[bool] = True

    map_: VennAbersMap
    cuts_ = FromMap()
    lower_ = FromMap()
    upper_ = FromMap()

    def _fit(self, sample: Sample) -> VennAbersMap:
        maps = [venn_abers_steps(counts) for counts in counts_of_classes(sample)]
        cuts, lower, upper = ([steps[i] for steps in maps] for i in range(3))
        return VennAbersMap(kind=sample.kind, cuts=cuts, lower=lower, upper=upper)

    def predict_interval(self, P: Any) -> tuple[Floats, Floats]:
        """Lower and upper probabilities p0 and p1 of each class against the rest, shape (n, K)."""
        values = self._check_new(P)
        return self.map_.intervals(values)
