"""ROC monotonicity as a system of difference constraints, and the certificates that it holds.

A split with threshold gamma sorts the calibration points into regions. The calibrated forecasts r
keep that order iff some threshold gamma' sorts them the same way: for every point in region i and
every j, ``r_i - gamma'_i >= r_j - gamma'_j``. With ``W[i, j]`` the smallest ``r_i - r_j`` among the
points of region i that reads

    gamma'_i - gamma'_j <= W[i, j]    for all i != j,

a system of differences: it has a solution iff the complete digraph with these weights has no
negative cycle, and the largest slack that all constraints can have at once is the smallest mean
weight of a cycle. For K = 2 the condition is isotony. The paper's experiments look at cycles of two
regions only.

The scope "global" takes all calibration points into W, and "tree" only points that reach the split.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isoroc._core import growth as kernels
from isoroc._core.simplex import as_matrix, midpoint, regions, sum_to_one, two_columns
from isoroc._core.tree import BinTree
from isoroc._core.types import Floats, Ints
from isoroc._input import Sample
from isoroc._support.table import Table

Scope = Literal["global", "tree"]

#: Slack down to minus this counts as feasible: rounding error of differences of probabilities.
SLACK_TOLERANCE = 1e-12


def regions_held(tree: BinTree, forecasts: Floats | None = None) -> NDArray[np.bool_]:
    """Whether each bin has a calibration point in each region of each split, shape (S, B, K)."""
    # With `forecasts`, a split divides all points, otherwise only the points that reach it.
    held = np.zeros((tree.n_splits, len(tree.bins), tree.n_classes), dtype=bool)
    if forecasts is not None:
        bin_of = tree.bin_of(forecasts)
        points = two_columns(forecasts)
        for of_split, gamma in zip(held, tree.thresholds, strict=True):
            of_split[bin_of, regions(points, gamma)] = True
        return held
    # Bins below each node. The last row stands for missing children.
    below = np.zeros((len(tree.class_weights) + 1, len(tree.bins)), dtype=bool)
    below[tree.bins, np.arange(len(tree.bins))] = True
    for s in reversed(range(tree.n_splits)):
        held[s] = below[tree.children[s]].T
        below[tree.split_nodes[s]] = held[s].any(axis=1)
    return held


def bounds_of(values: Floats, held: NDArray[np.bool_]) -> Floats:
    """W of splits, shape (S, K, K): the smallest r_i - r_j among the bins with points in region i.

    `values` has shape (B, K). `held` says whether each bin has points in each region, (S, B, K).
    """
    bins = np.arange(len(values))
    r = np.ascontiguousarray(values)[None]
    wards: list[Any] = [kernels.Wards(bins, of_split) for of_split in held.view(np.uint8)]
    return np.asarray(kernels.smallest_differences(r, wards, -1)[0])


def largest_slack(W: Floats) -> Floats:
    """Smallest mean weight of a cycle of each digraph, shape (S,): feasible iff not negative."""
    K = W.shape[-1]
    # Karp's theorem: with D[k, v] the lightest walk of k edges that ends in v, the smallest mean
    # is min over v of max over k < K of (D[K, v] - D[k, v]) / (K - k).
    D = np.zeros((K + 1, len(W), K))
    for k in range(K):
        D[k + 1] = (D[k][:, None, :] + W).min(axis=2)
    length = np.arange(K, 0, -1)[:, None, None]
    with np.errstate(invalid="ignore"):
        means = (D[K] - D[:K]) / length
    means[np.isnan(means)] = -np.inf  # both infinite: no walk of k edges, so no bound from it
    ends = np.where(np.isfinite(D[K]), means.max(axis=0), np.inf)
    return np.asarray(ends.min(axis=1))


def solve(W: Floats) -> tuple[Floats, Floats]:
    """Thresholds gamma' of largest slack, (S, K), NaN if infeasible, and the slack, (S,)."""
    slack = largest_slack(W)
    tight = W - np.where(np.isfinite(slack), slack, 0.0)[:, None, None]
    gamma = np.zeros(W.shape[:2])
    for _ in range(W.shape[-1]):  # Bellman-Ford from a source at distance 0 to every region
        gamma = np.minimum(gamma, (gamma[:, None, :] + tight).min(axis=2))
    gamma = sum_to_one(gamma)
    gamma[slack < -SLACK_TOLERANCE] = np.nan
    return gamma, slack


@dataclass(frozen=True, eq=False)
class Certificate:
    """Evidence that each split can be repeated on calibrated forecasts of the calibration rows."""

    scope: Scope
    """Whether a split covers all calibration points or those that reach it."""
    thresholds: Floats
    """gamma of each split, on the forecasts, shape (S, K)."""
    calibrated_thresholds: Floats
    """gamma' of each split, on the calibrated forecasts, shape (S, K)."""
    slack: Floats
    """Amount by which every constraint of the split can be tightened at once, shape (S,)."""
    top: int | None = None
    """Thresholds are on the `top` largest probabilities and the rest, or on classes if None."""

    def verify(self, tree: BinTree, calibrated: Floats, sample: Sample) -> bool:
        """Whether the claim holds for a tree and the calibration rows, calibrated, shape (n, K).

        Rows are routed and counted again, with plain comparisons. In the tree scope the calibrated
        forecasts go through the tree with the calibrated thresholds, and each must end in the bin
        that it came from. In the global scope every split must sort all rows alike on both sides. A
        row on a boundary counts as either.
        """
        if not np.array_equal(self.thresholds, tree.thresholds):
            return False
        forecasts = two_columns(sample.forecasts)
        bin_of = _route(tree, forecasts)
        of_bins = np.zeros((len(tree.bins), tree.n_classes))
        np.add.at(of_bins, (bin_of, sample.codes), sample.row_weights())
        of_bins *= tree.class_weights[0].sum() / of_bins.sum()
        if not np.allclose(tree.add_up(of_bins), tree.class_weights, rtol=1e-9, atol=0.0):
            return False
        if self.scope == "tree":
            again = _route(replace(tree, thresholds=self.calibrated_thresholds), calibrated)
            return bool((again == bin_of).all())
        for gamma, after in zip(self.thresholds, self.calibrated_thresholds, strict=True):
            margin = calibrated - after
            chosen = margin[np.arange(len(margin)), regions(forecasts, gamma)]
            if not (chosen >= margin.max(axis=1) - SLACK_TOLERANCE).all():
                return False
        return True

    def table(self) -> Table:
        """One row per split: gamma, gamma' and the slack. For K = 2, only second coordinates."""
        K = self.thresholds.shape[1]
        columns = Table(split=np.arange(len(self.slack)))
        for k, suffix in [(k, f"_{k}") for k in range(K)] if K > 2 else [(1, "")]:
            columns[f"threshold{suffix}"] = self.thresholds[:, k]
            columns[f"calibrated{suffix}"] = self.calibrated_thresholds[:, k]
        columns["slack"] = self.slack
        return columns

    def __str__(self) -> str:
        if not len(self.slack):
            return "ROC monotone: one bin, no split to keep."
        kept = (
            "under which each calibration row lies in the region that the split puts it into, or, "
            "if its bin lies on several sides of the split, on the boundary"
            if self.scope == "global"
            else "that sends the calibrated forecast of each calibration row that reaches it the "
            "same way"
        )
        top = "" if self.top is None else f" of the {self.top} largest probabilities and the rest"
        return (
            f"ROC monotone ({self.scope} scope): for each of {len(self.slack)} splits{top} there "
            f"is a threshold on the calibrated side {kept}; smallest slack {self.slack.min():.3g}. "
            "This is a statement about the calibration rows."
        )


def _route(tree: BinTree, forecasts: Floats) -> Ints:
    """Bin of each row of a matrix, by nothing but comparisons, split by split."""
    node = np.zeros(len(forecasts), dtype=np.intp)
    thresholds = np.where(tree.children >= 0, tree.thresholds, np.inf)
    for at, gamma, children in zip(tree.split_nodes, thresholds, tree.children, strict=True):
        here = np.flatnonzero(node == at)
        node[here] = children[regions(forecasts[here], gamma)]
    return tree.bin_of_node[node]


def certify(tree: BinTree, values: Floats, forecasts: Floats | None = None) -> Certificate:
    """Certificate of a ROC monotone map, given the calibrated forecasts of its bins, (B, K)."""
    # The global scope needs the calibration points, but the tree scope does not.
    if tree.n_classes == 2:
        # The bins next to a threshold decide, and both lie below its split: the scopes agree.
        # Taking the middle of their values directly keeps gaps of one rounding step open.
        at = np.searchsorted(tree.cuts, tree.thresholds[:, 1])
        low = values[at, 1]
        high = values[at + 1, 1]
        return Certificate("global", tree.thresholds, as_matrix(midpoint(low, high)), high - low)
    W = bounds_of(values, regions_held(tree, forecasts))
    return Certificate("tree" if forecasts is None else "global", tree.thresholds, *solve(W))
