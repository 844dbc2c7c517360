"""BinMap: values of the bins of a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from isoroc._intervals import wilson
from isoroc._maps import written
from isoroc._maps.base import CalibrationMap
from isoroc._monotonicity import Certificate
from isoroc._persistence import Fault, states
from isoroc._simplex import Floats
from isoroc._special import xlogy
from isoroc._table import Table
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
        self.check_is_fitted("tree_")
        return self.tree_.values(self.pseudocount_, self.prior_)

    def _check_fitted(self, n_classes: int) -> None:
        """Check the fitted attributes."""
        super()._check_fitted(n_classes)
        if self.prior_.ndim == 2 and len(self.prior_) != len(self.tree_.class_weights):
            raise Fault("prior_", "expected one prior, or one for each node of the tree")

    @property
    def n_bins_(self) -> int:
        """Number of bins."""
        self.check_is_fitted("tree_")
        return len(self.tree_.bins)

    @property
    def bins_(self) -> Table:
        """One row per bin: bounds (two classes), weight, observed rates with intervals, values."""
        values = self.bin_values_
        class_weights = self.tree_.class_weights[self.tree_.bins]
        weight = class_weights.sum(axis=1)
        table = Table()
        if self.tree_.n_classes == 2:
            table["lower"] = np.append(-np.inf, self.tree_.cuts)
            table["upper"] = np.append(self.tree_.cuts, np.inf)
        table["weight"] = weight
        for k, suffix in self._columns():
            rate = class_weights[:, k] / weight
            low, high = wilson(rate, weight)
            table |= {
                f"rate{suffix}": rate,
                f"rate_low{suffix}": low,
                f"rate_high{suffix}": high,
                f"value{suffix}": values[:, k],
            }
        return table

    @property
    def path_(self) -> Table:
        """One row per stage, from one bin to `n_bins_`: the split that led to it, and the loss."""
        values = self._node_values()
        tree = self.tree_
        with np.errstate(divide="ignore"):
            loss = -xlogy(tree.class_weights, values).sum(axis=1)
        exists = tree.children >= 0
        change = np.where(exists, loss[tree.children], 0).sum(axis=1) - loss[tree.split_nodes]
        table = Table(
            n_bins=np.append(1, 1 + np.cumsum(exists.sum(axis=1) - 1)),
            gain=np.append(np.nan, tree.gains()),
        )
        for k, suffix in self._columns():
            table[f"threshold{suffix}"] = np.append(np.nan, tree.thresholds[:, k])
        total = tree.class_weights[0].sum()
        table["log_loss"] = np.cumsum(np.append(loss[0], change)) / total
        return table

    def _columns(self) -> list[tuple[int, str]]:
        """Classes to show in tables and the suffix of their columns; the second of two."""
        if self.tree_.n_classes == 2:
            return [(1, "")]
        return [(k, f"_{name}") for k, name in enumerate(self._bin_space_names())]

    def _bin_space_names(self) -> list[str]:
        """What the columns of the bins' values stand for."""
        return [str(label) for label in self.classes_]


class HistogramMap(BinMap):
    """What `HistogramCalibrator` learns."""


class RecursiveBinningMap(BinMap):
    """What `RecursiveBinningCalibrator` learns."""


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

    @property
    def top_(self) -> int | None:
        """How many of the largest probabilities are calibrated; None where all are."""
        self.check_is_fitted("tree_")
        return None if self.reduction_ is None else self.reduction_.top

    def _bin_space_names(self) -> list[str]:
        if self.top_ is None:
            return super()._bin_space_names()
        return [*(f"top{m}" for m in range(1, self.top_ + 1)), "rest"]
