"""Values of the bins of trees."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from isoroc._backends import NUMPY, Ops, V
from isoroc._core import smooth
from isoroc._core.intervals import wilson
from isoroc._core.simplex import unscored
from isoroc._core.special import xlogy
from isoroc._core.tree import BinTree
from isoroc._core.types import Floats, Ints
from isoroc._input.kinds import PROBABILITIES, columns_of
from isoroc._maps.base import Forecasts, Map, Places, state
from isoroc._maps.modelfile import Fault, checks
from isoroc._maps.scaling import TemperatureMap
from isoroc._maps.top import TopReduction
from isoroc._support.table import Table


class BinMap(Map):
    """The value of the bin of a `BinTree` in which a forecast lies.

    With a `reduction`, the tree divides the largest probabilities. The `prior`, one for all nodes
    or one for each, shape (R,) or (N, R), has the weight of `pseudocount` rows.
    """

    reduction: TopReduction | None = state(checks.reduction("R"))
    tree: BinTree = state(checks.tree("R"))
    prior: Floats = state(checks.probabilities("R", or_matrix=True))
    pseudocount: float = state(checks.number(most=checks.LARGEST_WEIGHT))
    exact: ClassVar[bool] = True

    def check(self, n_classes: int) -> None:
        super().check(n_classes)
        if self.prior.ndim == 2 and len(self.prior) != len(self.tree.class_weights):
            raise Fault("prior", "expected one prior, or one for each node of the tree")

    @property
    def varies(self) -> bool:
        """Whether forecasts in the same bin may differ."""
        return self.reduction is not None

    @cached_property
    def node_values(self) -> Floats:
        """Calibrated forecast of each node of the tree, shape (N, R)."""
        return self.tree.values(self.pseudocount, self.prior)

    @property
    def bin_values(self) -> Floats:
        """Calibrated forecast of each bin, shape (n_bins, R)."""
        return self.node_values[self.tree.bins]

    def formula(self, ops: Ops[V], X: V, places: Places[V] = ()) -> V:
        points = X
        expand = None
        tree = self.tree
        if self.varies or tree.n_classes > 2:
            points = self.kind.probabilities(ops, X)
        if self.reduction is not None:
            points, expand = self.reduction.of(ops, points)
        if tree.n_classes > 2:
            bin_of = ops.route(tree, points)
        else:  # with a reduction these are one rank and the rest
            score = self.kind.score(ops, X) if expand is None else ops.take(points, [1])
            bin_of = ops.locate(tree.cuts, score)
        Q = self.values_at(ops, points, bin_of)
        return Q if expand is None else expand(Q)

    def compiled(self, forecasts: Forecasts) -> Floats:
        if self.reduction is None:
            return self.in_bins(forecasts.values)

        def calibrate(points: Floats) -> Floats:
            return self.compiled_at(points, self.tree.bin_of(points))

        return self.reduction.through(forecasts.probabilities(), calibrate)

    def bin_of(self, values: Floats) -> Any:
        """Place among the bins of each row of a forecast array, shape (n,)."""
        return self.tree.bin_of(values if self.kind.single else self.points(values))

    def points(self, values: Floats) -> Floats:
        """Forecasts of classes, or of ranks after a reduction, shape (n, R)."""
        P = self.kind.probabilities(NUMPY, columns_of(values))
        return P if self.reduction is None else self.reduction.reduce(P)

    def in_bins(self, values: Floats) -> Floats:
        """Calibrated forecasts of these classes or ranks for a forecast array, shape (n, R)."""
        points = self.points(values) if self.varies or not self.kind.single else values
        return self.compiled_at(points, self.tree.bin_of(values if self.kind.single else points))

    def compiled_at(self, points: Floats, bin_of: Ints) -> Floats:
        """What `values_at` returns for arrays, given places of shape (n,)."""
        return np.asarray(np.take(self.bin_values, bin_of, axis=0))

    def values_at(self, ops: Ops[V], points: V, bin_of: V) -> V:
        """Calibrated forecasts of points, given their places among the bins."""
        return ops.look_up(self.bin_values, bin_of)

    def stages(self, values: Floats) -> Iterator[Floats]:
        """Calibrated forecasts of every stage of the tree, from one bin to all."""
        bin_of = self.bin_of(values)
        at_last = self.in_bins(values)
        P = self.kind.probabilities(NUMPY, columns_of(values))
        for node_of_bin in self.tree.stages():
            is_divided = (node_of_bin != self.tree.bins)[bin_of, None]
            Q = np.where(is_divided, self.node_values[node_of_bin][bin_of], at_last)
            yield Q if self.reduction is None else self.reduction.expand(Q, P)

    def bins(self, names: Sequence[str]) -> Table:
        """One row per bin: bounds (two classes), weight, observed rates with intervals, values."""
        class_weights = self.tree.class_weights[self.tree.bins]
        table = Table()
        if self.tree.n_classes == 2:
            cuts = self._as_given(self.tree.cuts)
            table["lower"] = np.append(-np.inf, cuts)
            table["upper"] = np.append(cuts, np.inf)
        table["weight"] = weight = class_weights.sum(axis=1)
        for k, suffix in self._columns(names):
            table[f"rate{suffix}"] = rate = class_weights[:, k] / weight
            table[f"rate_low{suffix}"], table[f"rate_high{suffix}"] = wilson(rate, weight)
            table[f"value{suffix}"] = self.bin_values[:, k]
        return table

    def path(self, names: Sequence[str]) -> Table:
        """One row per stage, from one bin to all: the split that led to it, and the loss."""
        tree = self.tree
        exists = self.tree.children >= 0
        with np.errstate(divide="ignore"):
            loss = -xlogy(tree.class_weights, self.node_values).sum(axis=1)
        change = np.where(exists, loss[tree.children], 0).sum(axis=1) - loss[tree.split_nodes]
        n_bins = np.append(1, 1 + np.cumsum(exists.sum(axis=1) - 1))
        table = Table(n_bins=n_bins, gain=np.append(np.nan, tree.gains()))
        for k, suffix in self._columns(names):
            table[f"threshold{suffix}"] = np.append(np.nan, self._as_given(tree.thresholds[:, k]))
        table["log_loss"] = np.cumsum(np.append(loss[0], change)) / tree.class_weights[0].sum()
        return table

    def _as_given(self, thresholds: Floats) -> Floats:
        """Thresholds on scores, or on the probability of the second of two classes."""
        is_scored = self.tree.n_classes == 2 and not self.kind.single and self.reduction is None
        return unscored(thresholds) if is_scored else thresholds

    def _columns(self, names: Sequence[str]) -> list[tuple[int, str]]:
        """Columns to show in tables, and their suffixes. With two classes, only the second."""
        if self.tree.n_classes == 2:
            return [(1, "")]
        if self.reduction is not None:
            names = [*(f"top{m}" for m in range(1, self.reduction.top + 1)), "rest"]
        return [(k, f"_{name}") for k, name in enumerate(names)]


class TiltedMap(BinMap):
    """Values that vary in a bin: see Notes of `IRPCalibrator`."""

    floor: float = state(checks.number(above=0.0, most=1.0))
    temperature: float = state(checks.number(above=1e-100, most=1e100))
    smoothing: float = state(checks.number(above=0.0, most=1.0))
    tilts: Floats = state(checks.coefficients("bins", "R", least=0))
    shares: Floats = state(checks.coefficients("bins", least=0, most=1))

    @property
    def varies(self) -> bool:
        return True

    def check(self, n_classes: int) -> None:
        super().check(n_classes)
        if len(self.shares) != len(self.tree.bins):
            raise Fault("shares", "expected one number for each bin")
        if not (self.tilts.max(axis=1) == 1).all():
            raise Fault("tilts", "expected 1 as the largest number of each row")

    @cached_property
    def tempering(self) -> TemperatureMap:
        """Temperature scaling of classes, or of ranks after a reduction."""
        return TemperatureMap(
            kind=PROBABILITIES,
            floor=self.floor,
            temperature=self.temperature,
            smoothing=self.smoothing,
        )

    @cached_property
    def _table(self) -> Floats:
        """Tilts, values times one minus the share, and shares, shape (bins, 2 R + 1)."""
        shares = self.shares[:, None]
        return np.hstack([self.tilts, (1 - shares) * self.bin_values, shares])

    def values_at(self, ops: Ops[V], points: V, bin_of: V) -> V:
        R = self.tree.n_classes
        tilt, constant, share = ops.split(ops.look_up(self._table, bin_of), [R, R, 1])
        q = self.tempering.formula(ops, points) * tilt
        return constant + q * (share / ops.total(q))

    def compiled_at(self, points: Floats, bin_of: Ints) -> Floats:
        tempering = self.floor, self.temperature, self.smoothing
        return smooth.tilted(np.ascontiguousarray(points), bin_of, self._table, *tempering)
