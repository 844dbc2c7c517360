"""BinCalibrator, the base of calibrators with bins, and HistogramCalibrator, with fixed ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from isoroc._calibrators.base import Calibrator, FromMap
from isoroc._core.simplex import binary_scores
from isoroc._core.types import Floats, Ints
from isoroc._growth import cut_at
from isoroc._input import InputError, Sample, check_number, check_option
from isoroc._maps import BinMap
from isoroc._support.table import Table


class BinCalibrator(Calibrator):
    """Base of the calibrators that sort forecasts into the bins of a `BinTree`."""

    _shares: ClassVar[tuple[float, float]] = (0.3, 0.3)
    _uses_order_only: ClassVar[bool] = True

    map_: BinMap
    tree_, prior_, pseudocount_, bin_values_ = FromMap(), FromMap(), FromMap(), FromMap()
    n_bins_ = FromMap(lambda fitted: len(fitted.tree.bins))

    @property
    def bins_(self) -> Table:
        """One row per bin: bounds (two classes), weight, observed rates with intervals, values."""
        check_is_fitted(self, "map_")
        return self.map_.bins([str(label) for label in self.classes_])

    @property
    def path_(self) -> Table:
        """One row per stage, from one bin to `n_bins_`: the split that led to it, and the loss."""
        check_is_fitted(self, "map_")
        return self.map_.path([str(label) for label in self.classes_])

    def apply(self, P: Any) -> Ints:
        """Row of `bins_` in which each forecast lies, shape (n,)."""
        values = self._check_new(P)
        return np.asarray(self.map_.bin_of(values))

    def staged_predict_proba(self, P: Any) -> Iterator[Floats]:
        """Iterate over the calibrated forecasts, shape (n, K), of every stage of `path_`."""
        values = self._check_new(P)
        return self.map_.stages(values)


@dataclass(eq=False, repr=False, kw_only=True)
class HistogramCalibrator(BinCalibrator):
    """Regular binning for two classes: fixed bins, each with its observed rate.

    Parameters
    ----------
    n_bins : int, default=10
        Number of bins; those without calibration points are joined to a neighbour.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, over [0, 1] or the range of scores beyond it, or of equal weight.
    pseudocount : float, default=1.0
        Weight of the uniform forecast in the value of every bin.

    Attributes
    ----------
    classes_, n_features_in_, unit_, summary_, map_, checksum
        As in `IdentityCalibrator`.
    tree_, prior_, pseudocount_, n_bins_, bin_values_, bins_, path_
        As in `IRPCalibrator`.

    See Also
    --------
    IRPCalibrator : Bins that depend on the outcomes.

    Notes
    -----
    A score on the border of two bins belongs to the lower one.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import HistogramCalibrator
    >>> p = np.linspace(0, 1, 101)
    >>> HistogramCalibrator(n_bins=4, pseudocount=0).fit(p, p > 0.5).bins_["rate"].round(2)
    array([0., 0., 1., 1.])
    """

    n_bins: int = 10
    strategy: Literal["uniform", "quantile"] = "uniform"
    pseudocount: float = 1.0

    def _fit(self, sample: Sample) -> BinMap:
        check_number("n_bins", self.n_bins, int, minimum=1)
        check_option("strategy", self.strategy, ("uniform", "quantile"))
        check_number("pseudocount", self.pseudocount, minimum=0)
        if sample.n_classes != 2:
            problem = (
                "Only binary classification is supported. The type of the target is multiclass"
            )
            fix = "IRPCalibrator takes any number of classes"
            raise InputError("P", None, f"{sample.n_classes} columns. {problem}", fix)
        kind, sample = sample.kind, sample.on_simplex()
        return BinMap(
            kind=kind,
            reduction=None,
            tree=cut_at(sample, self._cuts(sample)),
            prior=np.full(2, 0.5),
            pseudocount=float(self.pseudocount),
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _cuts(self, sample: Sample) -> Floats:
        scores, weight = binary_scores(sample.forecasts), sample.row_weights()
        inner = np.arange(1, self.n_bins) / self.n_bins
        if self.strategy == "uniform":
            low, high = min(scores.min(), 0.0), max(scores.max(), 1.0)
            return np.asarray(low + inner * (high - low))
        order = np.argsort(scores)
        position = np.searchsorted(np.cumsum(weight[order]), inner * weight.sum())
        return np.unique(scores[order[position]])
