"""BinTree, the fitted model as plain arrays, with the value of a bin and the gain of a split."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from isoroc._core.growth import add_up, leaves
from isoroc._core.rows import locate, route
from isoroc._core.simplex import binary_scores
from isoroc._core.types import Floats, Ints


def bin_values(class_weights: Floats, pseudocounts: Floats | float) -> Floats:
    """Calibrated forecasts of bins: ``(class weights + pseudocounts) / their sum``.

    Compiled loops that need the value of a bin are tested against this definition.
    """
    counts = class_weights + pseudocounts
    return np.asarray(counts / counts.sum(axis=-1, keepdims=True))


def split_gains(children: Floats) -> Floats:
    """M(gamma), the paper's gain, of children with class weights of shape (..., c, K).

    It sums the L1 distances of the children's mean labels to the overall mean, times their weights.
    `_core/growth.pyx` finds it in its loops and is tested against this.
    """
    whole = children.sum(axis=-2, keepdims=True)
    mean = whole / whole.sum(axis=-1, keepdims=True)
    expected = children.sum(axis=-1, keepdims=True) * mean
    return np.asarray(np.abs(children - expected).sum(axis=(-2, -1)))


@dataclass(frozen=True, eq=False)
class BinTree:
    """Recursive partition of the simplex, in the order in which its splits were made.

    Node 0 is the whole simplex. Each split appends one node for each region that holds a
    calibration point, in the order of the regions. So the first m splits are a tree of their own: a
    prefix of every array.

    Attributes
    ----------
    thresholds : ndarray of shape (S, K)
        gamma of each split.
    children : ndarray of shape (S, K)
        Node of each region of each split, -1 where it holds no calibration point.
    split_nodes : ndarray of shape (S,)
        The node that each split divides.
    class_weights : ndarray of shape (N, K)
        Weight of each class among the calibration points of each node.
    """

    thresholds: Floats
    children: Ints
    split_nodes: Ints
    class_weights: Floats

    @property
    def n_classes(self) -> int:
        """K."""
        return int(self.class_weights.shape[1])

    @property
    def n_splits(self) -> int:
        """S."""
        return len(self.split_nodes)

    @cached_property
    def split_of_node(self) -> Ints:
        """The split that divides each node, -1 for bins."""
        split = np.full(len(self.class_weights), -1, dtype=np.intp)
        split[self.split_nodes] = np.arange(self.n_splits)
        return split

    @cached_property
    def bins(self) -> Ints:
        """Nodes that are not divided, depth first and by region: for K = 2 by ascending score."""
        return leaves(self.children, self.split_of_node)

    @cached_property
    def splits(self) -> list[tuple[int, Ints]]:
        """Each split: the node that it divides, and the nodes of the regions that hold points."""
        rows = zip(self.split_nodes.tolist(), self.children, strict=True)
        return [(node, children[children >= 0]) for node, children in rows]

    @cached_property
    def depths(self) -> Ints:
        """Number of splits above each node."""
        depth = np.zeros(len(self.class_weights), dtype=np.intp)
        for node, below in self.splits:
            depth[below] = depth[node] + 1
        return depth

    @cached_property
    def bin_of_node(self) -> Ints:
        """Place of each node in `bins`, -1 where it is divided."""
        number = np.full(len(self.class_weights), -1, dtype=np.intp)
        number[self.bins] = np.arange(len(self.bins))
        return number

    def descent(self) -> tuple[Floats, Ints]:
        """Threshold and children of every node, shape (N, K), for backends that walk in steps.

        The threshold of a child that does not exist is +inf, and a bin leads to itself.
        """
        N, K = self.class_weights.shape
        thresholds = np.zeros((N, K))
        children = np.repeat(np.arange(N)[:, None], K, axis=1)
        thresholds[self.split_nodes] = np.where(self.children >= 0, self.thresholds, np.inf)
        children[self.split_nodes] = self.children
        return thresholds, children

    @cached_property
    def cuts(self) -> Floats:
        """For K = 2, the scores that separate the bins, ascending: bin b is (cut b-1, cut b]."""
        return np.sort(self.thresholds[:, 1])

    def bin_of(self, forecasts: Floats) -> Ints:
        """Place in `bins` of the bin of each forecast of a forecast array."""
        if self.n_classes == 2:
            return locate(self.cuts, binary_scores(forecasts))
        leaves = route(forecasts, self.thresholds, self.children, self.split_of_node)
        return self.bin_of_node[leaves]

    def stages(self) -> Iterator[Ints]:
        """For 0, 1, ..., S splits: the node that stands for each of the final `bins`."""
        node_of_bin = np.zeros(len(self.bins), dtype=np.intp)
        yield node_of_bin.copy()
        # Bins are numbered depth first, so the bins below a node are one range.
        start = np.zeros_like(self.split_of_node)
        size = np.ones_like(self.split_of_node)
        for node, below in reversed(self.splits):
            size[node] = size[below].sum()
        for node, below in self.splits:
            at = start[node]
            for child in below:
                start[child] = at
                node_of_bin[at : at + size[child]] = child
                at += size[child]
            yield node_of_bin.copy()

    def add_up(self, of_bins: Floats) -> Floats:
        """Sums over the bins in each node, shape (N, C), of numbers of each bin, shape (B, C)."""
        sums = np.zeros((len(self.class_weights), of_bins.shape[1]))
        sums[self.bins] = of_bins
        add_up(sums, self.children, self.split_nodes)
        return sums

    def values(self, pseudocount: float = 0.0, prior: Floats | None = None) -> Floats:
        """`bin_values` of nodes, shape (N, K). The prior, (K,) or (N, K), defaults to uniform."""
        prior = np.full(self.n_classes, 1 / self.n_classes) if prior is None else prior
        return bin_values(self.class_weights, pseudocount * prior)

    def gains(self) -> Floats:
        """M(gamma) of each split: see `split_gains`."""
        exists = (self.children >= 0)[:, :, None]
        return split_gains(np.where(exists, self.class_weights[self.children], 0.0))
