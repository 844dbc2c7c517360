"""Best-first growth under ROC monotonicity: the paper's Algorithm 2, for any number of classes.

`grow` is the algorithm. `Growth` is the tree under growth: what ROC monotonicity asks of its next
split, and the score by which splits compete. A search (`search.py`) proposes thresholds.

Where this departs from the paper:

- "After a split, we only need to check the label's means in the K new regions" (section 3.3) holds
  for the new split alone. Every earlier split is checked again with the new values in place. On
  the paper's three-class data the literal reading grows four times as many bins and overfits.
- Full feasibility is checked: all cycles of regions, for raw means and for smoothed values.
- Algorithm 2 takes the bin with the largest gain M. M grows with the number of children, so a
  split into all K regions always looks better than one into two, and greedy growth spends its
  freedom early. Here only the first split is chosen so. Afterwards candidates, and bins, compete
  by the lift in log likelihood for each bin that they add.
- A region without calibration points gets no bin.
"""

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isoroc._core.growth import Wards, keep_order, required_differences, smallest_differences
from isoroc._core.rows import lift, sort_into_regions
from isoroc._core.simplex import regions
from isoroc._core.tree import BinTree, bin_values
from isoroc._core.types import Floats, Ints
from isoroc._counts import Points
from isoroc._input import Sample
from isoroc._support.progress import Announce

#: Least slack of a split. In the tree scope ties must not occur. In the global scope a bin that
#: straddles a boundary sits on it, so slack 0 is allowed, up to rounding.
LEAST_SLACK = {"global": -1e-12, "tree": 1e-9, None: -np.inf}

Monotonicity = Literal["global", "tree"] | None


@dataclass(frozen=True, eq=False)
class GrowthOptions:
    """How a tree is grown: parameters with the same names as in `IRPCalibrator`.

    `pseudocounts` (K,) are added to the class weights of a bin for its value. Without a
    `random_state` the seed is fixed. `report` is called with a line of text as growth goes on.
    """

    pseudocounts: Floats
    monotonicity: Monotonicity = "tree"
    search: Literal["sweep", "grid"] = "sweep"
    grid_size: int | None = None
    max_bins: int | None = None
    min_bin_weight: float | Literal["auto"] = "auto"
    min_lift: float | Literal["auto"] = "auto"
    max_cells: int = 10_000
    random_state: np.random.RandomState | None = None
    report: Announce = lambda _: None

    def for_sample(self, sample: Sample) -> Self:
        """The same options with the defaults that depend on the sample."""
        several = sample.n_classes > 2
        weight = self.min_bin_weight
        lift = self.min_lift
        if weight == "auto":
            weight = min(20.0, float(sample.class_weights().sum()) / 30) if several else 0.0
        if lift == "auto":
            lift = float(several)
        return replace(self, min_bin_weight=weight, min_lift=lift)

    def least(self) -> tuple[float, float]:
        """`min_bin_weight` and `min_lift`, where "auto" counts as 0 until a sample is known."""
        weight = self.min_bin_weight
        lift = self.min_lift
        return 0.0 if weight == "auto" else weight, 0.0 if lift == "auto" else lift


class Surroundings(NamedTuple):
    """Constraints of the rest of the tree on the children of one bin.

    A leading axis of 2 holds raw means and smoothed values.
    """

    # (2, K, K): minimum r_i - r_j of each child, from splits that have the whole bin in one region
    bound: Floats
    straddled: Floats  # (2, S, K, K): W without this bin, of splits that have it in several regions
    region: NDArray[np.int32]  # (n, S): region of each of the bin's points under those splits
    outside: Floats  # (2, B, K): values of the other bins that a new split covers
    outside_points: Floats  # (m, K): points of these bins
    outside_bins: NDArray[np.int32]  # (m,): bin of each of these points


class Split(NamedTuple):
    """A threshold for one bin."""

    gamma: Floats
    gain: float  # M(gamma)
    children: Floats  # (c, K) class weights

    @property
    def lift(self) -> float:
        """Increase in the log likelihood of the bin's labels."""
        return lift(self.children)


class _SplitPlan(NamedTuple):
    """A split that has been found possible, with all that it changes."""

    gamma: Floats
    kept: Ints  # the regions that hold points
    parts: list[Ints]  # points of each kept region
    weights: Floats  # (c, K): class weights of each part
    values: Floats  # (2, c, K): raw means and smoothed values of the parts
    held: NDArray[np.uint8]  # (c, S, K): regions that each holds, of all splits that constrain it
    others: list[int]  # other bins that the new split covers
    others_held: NDArray[np.uint8]  # (B, K): regions of the new split that these bins hold


class Growth:
    """A tree under growth: its bins, and what ROC monotonicity asks of the next split.

    A split *covers* the calibration points of all bins in the global scope, and of the bins
    below it in the tree scope: it must sort their calibrated values as it sorts the points.
    """

    def __init__(self, counts: Points, options: GrowthOptions) -> None:
        self.points = counts.forecasts
        self.point_weights = counts.class_weights
        self.n_classes = counts.class_weights.shape[1]
        # For raw means and for smoothed values: both must be in order.
        self.pseudocounts = np.stack([np.zeros(self.n_classes), options.pseudocounts])
        self.monotonicity = options.monotonicity
        self.least_slack = LEAST_SLACK[self.monotonicity]
        self.min_bin_weight, self.min_lift = options.least()
        self.report = options.report
        self.max_bins = math.inf if options.max_bins is None else options.max_bins
        self.members: dict[int, Ints] = {}  # points of each bin
        self.answering: dict[int, Sequence[int]] = {}  # splits that constrain each bin
        self.held: dict[int, NDArray[np.uint8]] = {}  # (S, K): regions of these that each holds
        self.class_weights: list[Floats] = []  # of each node
        self.node_values = np.empty((2, 64, self.n_classes))  # raw means and smoothed values
        self.thresholds: list[Floats] = []
        self.children: list[Ints] = []
        self.split_nodes: list[int] = []
        self.wards: list[Wards] = []  # of each split
        whole = self.point_weights.sum(axis=0)
        K = self.n_classes
        nothing = np.empty((0, K), dtype=np.uint8)
        self._add_node(np.arange(len(self.points)), whole, self._values(whole[None])[:, 0], nothing)
        self._nobody = np.empty((2, 0, K)), np.empty((0, K)), np.empty(0, dtype=np.int32)

    def _add_node(
        self,
        points: Ints,
        class_weights: Floats,
        values: Floats,
        held: NDArray[np.uint8],
        answering: Sequence[int] = (),
    ) -> int:
        node = len(self.class_weights)
        if node == self.node_values.shape[1]:
            self.node_values = np.concatenate([self.node_values, self.node_values], axis=1)
        self.members[node] = points
        self.answering[node] = answering
        self.held[node] = held
        self.class_weights.append(class_weights)
        self.node_values[:, node] = values
        return node

    def _values(self, class_weights: Floats) -> Floats:
        """Raw means and smoothed values for class weights (n, K), shape (2, n, K)."""
        return bin_values(class_weights, self.pseudocounts[:, None, :])

    def tree(self) -> BinTree:
        """The tree so far."""
        return BinTree(
            thresholds=np.array(self.thresholds, dtype=np.float64).reshape(-1, self.n_classes),
            children=np.array(self.children, dtype=np.intp).reshape(-1, self.n_classes),
            split_nodes=np.array(self.split_nodes, dtype=np.intp),
            class_weights=np.array(self.class_weights),
        )

    def score(self, split: Split) -> float:
        """Score by which splits compete: the lift per bin added.

        The first split should give a region to as many classes as possible, so it is scored by its
        number of children, and then by M, which is at most twice the weight.
        """
        if self.thresholds:
            return split.lift / (len(split.children) - 1)
        return len(split.children) + split.gain / (4 * float(split.children.sum()))

    def can_be_split(self, node: int) -> bool:
        """Whether a bin is heavy enough for two and has labels of more than one class."""
        weights = self.class_weights[node].tolist()
        heavy = sum(weights) >= 2 * self.min_bin_weight
        return heavy and sum(map(bool, weights)) > 1 and len(self.members[node]) > 1

    def is_worth_it(self, split: Split) -> bool:
        """Whether a split lifts the log likelihood by more than chance would."""
        added = len(split.children) - 1
        return bool(split.lift >= self.min_lift * 0.5 * (self.n_classes - 1) * added)

    def _others(self, node: int) -> list[int]:
        """Bins besides this one that a split of it would constrain."""
        return [v for v in self.members if v != node] if self.monotonicity == "global" else []

    def surroundings(self, node: int) -> Surroundings:
        """Constraints of the rest of the tree on the children of a bin."""
        K = self.n_classes
        points = self.members[node]
        wards: list[Wards | None] = [self.wards[s] for s in self.answering[node]]
        W = smallest_differences(self.node_values, wards, node)
        bound = required_differences(W, self.held[node], self.least_slack)
        if self.monotonicity != "global":  # then a split has all of a bin below it in one region
            no_region = np.empty((len(points), 0), dtype=np.int32)
            return Surroundings(bound, W[:, :0], no_region, *self._nobody)
        straddled = np.flatnonzero(self.held[node].sum(axis=1) > 1)
        region = np.empty((len(points), len(straddled)), dtype=np.int32)
        for column, at in enumerate(straddled.tolist()):
            gamma = self.thresholds[self.answering[node][at]]
            region[:, column] = regions(self.points[points], gamma)
        others = self._others(node)
        rows = [self.members[v] for v in others]
        return Surroundings(
            bound=bound,
            straddled=np.ascontiguousarray(W[:, straddled]),
            region=region,
            outside=np.ascontiguousarray(self.node_values[:, others]),
            outside_points=self.points[np.concatenate(rows)] if rows else np.empty((0, K)),
            outside_bins=np.repeat(np.arange(len(rows)), [len(r) for r in rows]).astype(np.int32),
        )

    def plan(self, node: int, gamma: Floats) -> _SplitPlan | None:
        """The split of a bin, if it separates its points and keeps the tree ROC monotone."""
        points = self.members[node]
        region, weights = sort_into_regions(self.points, self.point_weights, points, gamma)
        kept = np.flatnonzero(weights.sum(axis=1))
        weights = weights[kept]
        if len(kept) < 2 or weights.sum(axis=1).min() < self.min_bin_weight:
            return None
        if len(self.members) + len(kept) - 1 > self.max_bins:
            return None
        parts = [points[region == k] for k in kept]
        values = self._values(weights)
        held = self._held_by(parts, node, kept)
        others = self._others(node)
        others_held = self._regions_held([self.members[v] for v in others], gamma)
        if self.monotonicity is not None:
            outside = Wards(np.array(others), others_held) if others else None
            wards = [*(self.wards[s] for s in self.answering[node]), outside]
            W = smallest_differences(self.node_values, wards, node)
            if not keep_order(W, values, held, self.least_slack):
                return None
        return _SplitPlan(gamma, kept, parts, weights, values, held, others, others_held)

    def _held_by(self, parts: list[Ints], node: int, kept: Ints) -> NDArray[np.uint8]:
        """Regions of the splits above, and of the new one, that each part of a bin holds."""
        before = self.held[node]
        if self.monotonicity is None:
            return np.empty((len(parts), 0, self.n_classes), dtype=np.uint8)
        held = np.zeros((len(parts), len(before) + 1, self.n_classes), dtype=np.uint8)
        held[:, :-1] = before
        held[np.arange(len(kept)), -1, kept] = 1
        if self.monotonicity == "global":
            for at in np.flatnonzero(before.sum(axis=1) > 1).tolist():
                gamma = self.thresholds[self.answering[node][at]]
                held[:, at] = self._regions_held(parts, gamma)
        return held

    def _regions_held(self, parts: list[Ints], gamma: Floats) -> NDArray[np.uint8]:
        """Whether each part of the points has one in each region of gamma, shape (n, K)."""
        held = np.zeros((len(parts), self.n_classes), dtype=np.uint8)
        for mask, part in zip(held, parts, strict=True):
            mask[regions(self.points[part], gamma)] = 1
        return held

    def attempt(self, node: int, gamma: Floats) -> Ints | None:
        """Split a bin if possible, and return the node of each region, -1 where there is none."""
        plan = self.plan(node, gamma)
        if plan is None:
            return None
        del self.members[node], self.held[node]
        earlier = self.answering.pop(node)
        number = len(self.thresholds)
        answering = [] if self.monotonicity is None else [*earlier, number]
        parts = zip(plan.parts, plan.weights, plan.values.swapaxes(0, 1), plan.held, strict=True)
        new = np.array([self._add_node(*part, answering) for part in parts])
        for at, s in enumerate(earlier):
            self.wards[s].replace(node, new, plan.held[:, at])
        if answering:
            every = np.concatenate([plan.held[:, -1], plan.others_held])
            self.wards.append(Wards(np.array([*new, *plan.others]), every))
            for v, held in zip(plan.others, plan.others_held, strict=True):
                self.answering[v] = [*self.answering[v], number]
                self.held[v] = np.vstack([self.held[v], held])
        row = np.full(self.n_classes, -1)
        row[plan.kept] = new
        self.thresholds.append(gamma)
        self.children.append(row)
        self.split_nodes.append(node)
        return row


Search = Callable[[Growth, int], Split | None]


def grow(growth: Growth, search: Search) -> BinTree:
    """Split the best bin until none has a split that is worth it and keeps the tree ROC monotone.

    A bin is searched again only if it comes to the top and its split is no longer possible.
    """
    queue: list[tuple[float, int, Split]] = []

    def push(node: int, below: float = np.inf) -> None:
        split = search(growth, node)
        if split is not None and (score := growth.score(split)) < below:
            heapq.heappush(queue, (-score, node, split))

    push(0)
    while queue and len(growth.members) < growth.max_bins:
        score, node, split = heapq.heappop(queue)
        children = growth.attempt(node, split.gamma)
        if children is None:
            push(node, below=-score)
        else:
            growth.report(f"{len(growth.members)} bins")
            for child in children[children >= 0]:
                push(int(child))
    return growth.tree()


def regrow(tree: BinTree, growth: Growth) -> BinTree:
    """Repeat the splits of a tree on other points, except those that the points forbid."""
    node_of = {0: 0}
    for s, node in enumerate(tree.split_nodes.tolist()):
        if node in node_of:
            children = growth.attempt(node_of[node], tree.thresholds[s])
            if children is not None:
                both = (tree.children[s] >= 0) & (children >= 0)
                pairs = zip(tree.children[s][both], children[both], strict=True)
                node_of |= {int(old): int(new) for old, new in pairs}
    return growth.tree()
