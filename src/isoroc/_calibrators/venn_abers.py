"""VennAbersCalibrator: isotonic regression that counts the outcome in, both ways."""

from __future__ import annotations

from typing import Any, ClassVar

from isoroc._calibrators.base import Calibrator, FromMap
from isoroc._calibrators.isotonic import counts_of_classes
from isoroc._growth import venn_abers_steps
from isoroc._input import Sample
from isoroc._maps import VennAbersMap
from isoroc._simplex import Floats


class VennAbersCalibrator(Calibrator):
    """Inductive Venn-Abers prediction: an interval for each probability, and one value in it.

    To forecast at a score, isotonic regression is fitted to the calibration rows and the row to be
    forecast twice: as if its outcome were the second class, and as if it were not. One of the two
    was fitted with the truth: hence the method's guarantee. For three classes or more each class is
    set against the rest and rows are divided by their sum.

    The functions have a step at almost every score, so `save` refuses a fit to too many rows.

    Attributes
    ----------
    classes_, n_features_in_, scores_, summary_, map_, checksum
        As in `IRPCalibrator`.
    cuts_, lower_, upper_ : list of ndarray
        p0 and p1 of each class, or of the second of two: ``lower_[k][i]`` and ``upper_[k][i]`` for
        forecasts with i of the ascending ``cuts_[k]`` below them.

    See Also
    --------
    IsotonicCalibrator : One isotonic regression, smoothed by a pseudocount.

    Notes
    -----
    With the values p1 and p0 of the two fits at the score, the forecast is
    ``p1 / (1 - p0 + p1)``, never 0 or 1, and p1 - p0 shows how much a single row matters. The fits
    at all scores together are two step functions, found in one pass over the sorted scores. The row
    to be forecast has weight 1, whatever the others have.

    References
    ----------
    Vovk, Petej and Fedorova, Large-scale probabilistic predictors with and without guarantees of
    validity, NeurIPS 2015.

    Examples
    --------
    >>> from isoroc import VennAbersCalibrator
    >>> cal = VennAbersCalibrator().fit([0.1, 0.3, 0.4, 0.6, 0.7, 0.9], [0, 0, 1, 0, 1, 1])
    >>> cal.predict_proba([0.5, 0.95]).round(3)
    array([[0.5 , 0.5 ],
           [0.25, 0.75]])
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
        cuts, lower, upper = ([own[i] for own in maps] for i in range(3))
        return VennAbersMap(kind=sample.kind, cuts=cuts, lower=lower, upper=upper)

    def predict_interval(self, P: Any) -> tuple[Floats, Floats]:
        """Lower and upper probabilities p0 and p1 of each class against the rest, shape (n, K).

        Of three classes or more they are those before rows are divided by their sum.
        """
        values = self._check_new(P)
        return self.map_.intervals(values)
