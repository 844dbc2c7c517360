"""What must be calibrated: whole forecasts, the probability of each class, or the largest one."""

from __future__ import annotations

from typing import Literal, NamedTuple

from isoroc._input import Kind, Sample, split_by_kind
from isoroc.metrics._crossfit import CrossFit
from isoroc.metrics._grouping import is_discrete
from isoroc.metrics._ordering import fix_class_order

Bins = int | Literal["quantile", "exact", "irp"]


class Parts(NamedTuple):
    """The parts of a sample that must be calibrated.

    Metrics of the same parts share what is learned by cross-fitting.
    """

    whole: Sample
    """The rows of positive weight; forecasts are a matrix."""
    fits: list[CrossFit]
    """One per part; ``fit.sample`` is the part."""
    bins: list[Bins]
    """How E[Y | forecast] is estimated in each part."""

    @classmethod
    def of(
        cls, sample: Sample, kind: Kind, bins: Bins | None = None, continuous: Bins = "irp"
    ) -> Parts:
        """Parts of a sample, whose forecasts are a matrix.

        With ``bins=None``, the estimate is "exact" if forecasts have few distinct values and
        `continuous` otherwise.
        """
        # Decided by all rows, also those of weight 0: resampling must not change it.
        chosen = [
            (("exact" if is_discrete(part.forecasts) else continuous) if bins is None else bins)
            for part in split_by_kind(sample, kind)
        ]
        whole = sample.positive()
        if kind != "top" and chosen in (["irp"], ["quantile"]):
            # The order of classes breaks ties; scores of two classes are those of the second one.
            whole = fix_class_order(whole)
        return cls(whole, [CrossFit(part) for part in split_by_kind(whole, kind)], chosen)
