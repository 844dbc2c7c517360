"""BinMap: values of the bins of a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from isoroc._maps import written
from isoroc._maps.base import CalibrationMap
from isoroc._monotonicity import Certificate
from isoroc._persistence import Fault, states
from isoroc._simplex import Floats
from isoroc._top import TopReduction
from isoroc._tree import BinTree
from isoroc._writer import C, Writer


class BinMap(CalibrationMap):
    """What calibrators learn that sort forecasts into the bins of a `BinTree`."""

    tree_: BinTree
    prior_: Floats
    pseudocount_: float

    fitted_state: ClassVar[dict[str, states.Check]] = {
        "tree_": states.tree("K"),
        "prior_": states.priors("K"),
        "pseudocount_": states.number(most=states.LARGEST_WEIGHT),
    }

    def _to_bin_space(self, forecasts: Floats) -> Floats:
        """Forecasts as the tree takes them."""
        return forecasts

    def _from_bin_space(self, Q: Floats, forecasts: Floats) -> Floats:  # noqa: ARG002
        """Calibrated forecasts of the K classes from values of the bins."""
        return Q

    def _calibrate(self, forecasts: Floats) -> Floats:
        bin_of = self.tree_.bin_of(self._to_bin_space(forecasts))
        return self._from_bin_space(np.take(self.bin_values_, bin_of, axis=0), forecasts)

    def _write(self, w: Writer[C], columns: Sequence[C]) -> list[C]:
        return written.bin_values(w, self.tree_, self.bin_values_, columns)

    @property
    def bin_values_(self) -> Floats:
        """Calibrated forecast of each bin, shape (n_bins, K)."""
        return self._node_values()[self.tree_.bins]

    def _node_values(self) -> Floats:
        """Value of each node of the tree, shape (N, K)."""
        return self.tree_.values(self.pseudocount_, self.prior_)

    def _check_fitted(self, n_classes: int) -> None:
        """Check the fitted attributes."""
        super()._check_fitted(n_classes)
        if self.prior_.ndim == 2 and len(self.prior_) != len(self.tree_.class_weights):
            raise Fault("prior_", "expected one prior, or one for each node of the tree")


class IRPMap(BinMap):
    """What `IRPCalibrator` learns."""

    reduction_: TopReduction | None
    certificate_: Certificate | None

    fitted_state: ClassVar[dict[str, states.Check]] = {
        "reduction_": states.reduction("R"),
        "tree_": states.tree("R"),
        "prior_": states.priors("R"),
        "pseudocount_": states.number(most=states.LARGEST_WEIGHT),
        "certificate_": states.certificate,
    }

    def _write(self, w: Writer[C], columns: Sequence[C]) -> list[C]:
        if self.reduction_ is None:
            return super()._write(w, columns)
        points, expand = self.reduction_.write(w, columns)
        return expand(super()._write(w, points))

    def _check_fitted(self, n_classes: int) -> None:
        """Check the fitted attributes, and that the certificate is of this tree."""
        super()._check_fitted(n_classes)
        found = self.certificate_
        if found is not None and not np.array_equal(found.thresholds, self.tree_.thresholds):
            raise Fault("certificate_", "expected the certificate of this tree")

    def _to_bin_space(self, forecasts: Floats) -> Floats:
        return forecasts if self.reduction_ is None else self.reduction_.reduce(forecasts)

    def _from_bin_space(self, Q: Floats, forecasts: Floats) -> Floats:
        return Q if self.reduction_ is None else self.reduction_.expand(Q, forecasts)
