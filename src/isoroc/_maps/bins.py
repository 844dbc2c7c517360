"""Values of the bins of trees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle
from typing import Any, ClassVar

import numpy as np

from isoroc._backends import NUMPY, Ops, V, added
from isoroc._core.rows import locate
from isoroc._intervals import wilson
from isoroc._maps.base import Forecasts, Map, state
from isoroc._persistence import Fault, states
from isoroc._simplex import Floats
from isoroc._special import xlogy
from isoroc._table import Table
from isoroc._top import TopReduction
from isoroc._tree import BinTree


@dataclass(frozen=True, eq=False, kw_only=True)
class BinMap(Map):
    """The value of the bin of a `BinTree` in which a forecast lies.

    With a `reduction`, bins are of the largest probabilities. Values are shrunk to the `prior`, one
    for all nodes or one for each, shape (R,) or (N, R), which has the weight of `pseudocount` rows.
    """

    reduction: TopReduction | None = state(states.reduction("R"))
    tree: BinTree = state(states.tree("R"))
    prior: Floats = state(states.priors("R"))
    pseudocount: float = state(states.number(most=states.LARGEST_WEIGHT))
    exact: ClassVar[bool] = True

    def check(self, n_classes: int) -> None:
        """Check the numbers; there is one prior, or one for each node."""
        super().check(n_classes)
        if self.prior.ndim == 2 and len(self.prior) != len(self.tree.class_weights):
            raise Fault("prior", "expected one prior, or one for each node of the tree")

    @cached_property
    def node_values(self) -> Floats:
        """Calibrated forecast of each node of the tree, shape (N, R)."""
        return self.tree.values(self.pseudocount, self.prior)

    @property
    def bin_values(self) -> Floats:
        """Calibrated forecast of each bin, shape (n_bins, R)."""
        return self.node_values[self.tree.bins]

    def formula(self, ops: Ops[V], X: V) -> V:
        """The value of the bin."""
        if self.tree.n_classes == 2 and self.reduction is None:
            place = ops.locate(self.tree.cuts, self.kind.score(ops, X))
            return ops.look_up(self.bin_values, place)
        return _of_trees(ops, self.kind.probabilities(ops, X), self.reduction, [self])

    def compiled(self, forecasts: Forecasts) -> Floats:
        """The same without copies."""
        if self.reduction is not None:
            return super().compiled(forecasts)
        return np.asarray(np.take(self.bin_values, self.bin_of(forecasts.values), axis=0))

    def bin_of(self, values: Floats) -> Any:
        """Place among the bins of each row of a forecast array, shape (n,)."""
        return self.tree.bin_of(self.points(values))

    def points(self, values: Floats) -> Floats:
        """A forecast array as the tree takes it."""
        if self.kind.single:
            return values
        P = self.kind.probabilities(NUMPY, values)
        return P if self.reduction is None else self.reduction.reduce(P)

    def stages(self, values: Floats) -> Iterator[Floats]:
        """Calibrated forecasts of every stage of the tree, from one bin to all."""
        bin_of = self.bin_of(values)
        for node_of_bin in self.tree.stages():
            Q = np.take(self.node_values[node_of_bin], bin_of, axis=0)
            if self.reduction is None:
                yield Q
            else:
                yield self.reduction.expand(Q, self.kind.probabilities(NUMPY, values))

    def bins(self, names: Sequence[str]) -> Table:
        """One row per bin: bounds (two classes), weight, observed rates with intervals, values."""
        values = self.bin_values
        class_weights = self.tree.class_weights[self.tree.bins]
        weight = class_weights.sum(axis=1)
        table = Table()
        if self.tree.n_classes == 2:
            table["lower"] = np.append(-np.inf, self.tree.cuts)
            table["upper"] = np.append(self.tree.cuts, np.inf)
        table["weight"] = weight
        for k, suffix in self._columns(names):
            rate = class_weights[:, k] / weight
            low, high = wilson(rate, weight)
            table |= {
                f"rate{suffix}": rate,
                f"rate_low{suffix}": low,
                f"rate_high{suffix}": high,
                f"value{suffix}": values[:, k],
            }
        return table

    def path(self, names: Sequence[str]) -> Table:
        """One row per stage, from one bin to all: the split that led to it, and the loss."""
        values, tree = self.node_values, self.tree
        with np.errstate(divide="ignore"):
            loss = -xlogy(tree.class_weights, values).sum(axis=1)
        exists = tree.children >= 0
        change = np.where(exists, loss[tree.children], 0).sum(axis=1) - loss[tree.split_nodes]
        table = Table(
            n_bins=np.append(1, 1 + np.cumsum(exists.sum(axis=1) - 1)),
            gain=np.append(np.nan, tree.gains()),
        )
        for k, suffix in self._columns(names):
            table[f"threshold{suffix}"] = np.append(np.nan, tree.thresholds[:, k])
        total = tree.class_weights[0].sum()
        table["log_loss"] = np.cumsum(np.append(loss[0], change)) / total
        return table

    def _columns(self, names: Sequence[str]) -> list[tuple[int, str]]:
        """Columns of the values to show in tables, and their suffixes; of two the second."""
        if self.tree.n_classes == 2:
            return [(1, "")]
        if self.reduction is not None:
            names = [*(f"top{m}" for m in range(1, self.reduction.top + 1)), "rest"]
        return [(k, f"_{name}") for k, name in enumerate(names)]


@dataclass(frozen=True, eq=False, kw_only=True)
class BaggedMap(Map):
    """The mean of trees; tree t has the reduction and the prior of turn ``t % turns``."""

    pseudocount: float = state(states.number(most=states.LARGEST_WEIGHT))
    reductions: Sequence[TopReduction | None] = state(states.list_of(states.anything, "turns"))
    priors: Sequence[Floats] = state(states.list_of(states.anything, "turns"))
    trees: Sequence[BinTree] = state(states.list_of(states.anything))
    exact: ClassVar[bool] = True

    def check(self, n_classes: int) -> None:
        """Check the numbers, each tree against its turn."""
        super().check(n_classes)
        of_turns = []
        for turn, (reduction, prior) in enumerate(zip(self.reductions, self.priors, strict=True)):
            sizes = {"K": n_classes}
            states.reduction("R")(reduction, f"reductions[{turn}]", sizes)
            states.probabilities("R")(prior, f"priors[{turn}]", sizes)
            of_turns.append(sizes)
        for t, tree in enumerate(self.trees):
            states.tree("R")(tree, f"trees[{t}]", of_turns[t % len(of_turns)])

    def members(self) -> list[BinMap]:
        """The map of each tree."""
        turns = list(zip(self.reductions, self.priors, strict=True))
        return [
            BinMap(kind=self.kind, pseudocount=self.pseudocount, tree=t, reduction=r, prior=p)
            for t, (r, p) in zip(self.trees, cycle(turns), strict=False)
        ]

    def steps(self) -> tuple[Floats, Floats]:
        """For two classes the mean of all trees as one step function: cuts, and values (m, 2)."""
        cuts = np.unique(np.concatenate([tree.cuts for tree in self.trees]))
        ends = np.append(cuts, np.inf)  # the largest score of each step
        values = [own.bin_values[locate(own.tree.cuts, ends)] for own in self.members()]
        return cuts, np.asarray(sum(values) / len(values))

    def formula(self, ops: Ops[V], X: V) -> V:
        """The mean of the values of the bins."""
        if self.trees[0].n_classes == 2 and self.reductions[0] is None:
            cuts, values = self.steps()
            return ops.look_up(values, ops.locate(cuts, self.kind.score(ops, X)))
        P, members, n_turns = self.kind.probabilities(ops, X), self.members(), len(self.reductions)
        turns = (
            _of_trees(ops, P, reduction, members[turn::n_turns])
            for turn, reduction in enumerate(self.reductions)
        )
        return added(turns) / float(len(members))


def _of_trees(ops: Ops[V], P: V, reduction: TopReduction | None, maps: Sequence[BinMap]) -> V:
    """Sum of the values of the bins of trees with one reduction.

    Forecasts of all classes depend linearly on those of the ranks, so they are expanded once.
    """
    reduced = None if reduction is None else reduction.of(ops, P)
    points = P if reduced is None else reduced.points
    places = [_place(ops, own.tree, points) for own in maps]
    Q = added(ops.look_up(own.bin_values, place) for own, place in zip(maps, places, strict=True))
    return Q if reduced is None else reduced.expand(Q)


def _place(ops: Ops[V], tree: BinTree, points: V) -> V:
    """Place among the bins of a tree. A reduction to one rank leaves a tree of two classes."""
    if tree.n_classes == 2:
        return ops.locate(tree.cuts, ops.take(points, [1]))
    return ops.route(tree, points)
