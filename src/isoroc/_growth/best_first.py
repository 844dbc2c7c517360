"""Best-first growth under ROC monotonicity: the paper's Algorithm 2, for any number of classes.

Where this departs from the paper:

- "After a split, we only need to check the label's means in the K new regions" (section 3.3) holds
  for the new split alone. Every earlier split is checked again with the new values in place; on
  the paper's three-class data the literal reading grows four times as many bins and overfits.
- The check is of full feasibility, all cycles of regions, and of raw means and smoothed values.
- Algorithm 2 takes the bin with the largest gain M. M grows with the number of children, so a
  split into all K regions always looks better than one into two, and greedy growth spends its
  freedom early. Here only the first split is chosen so. Afterwards candidates, and bins, compete
  by the lift in log likelihood for each bin that they add.
- A region without calibration points gets no bin.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np

from isoroc._growth.growth import Growth, Split
from isoroc._progress import Report
from isoroc._tree import BinTree

Search = Callable[[Growth, int], Split | None]


def grow(growth: Growth, search: Search, *, report: Report = lambda _: None) -> BinTree:
    """Split the best bin until none has a split that is worth it and keeps the tree ROC monotone.

    A split tightens what the other bins may do, so a score found earlier is an upper bound now: a
    bin is searched again only when it has come to the top and its split is no longer possible.
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
            report(f"{len(growth.members)} bins")
            for child in children[children >= 0]:
                push(int(child))
    return growth.tree()


def regrow(tree: BinTree, growth: Growth) -> BinTree:
    """The splits of a tree made again on other points, but for those that these forbid."""
    node_of = {0: 0}
    for s, node in enumerate(tree.split_nodes.tolist()):
        if node in node_of:
            children = growth.attempt(node_of[node], tree.thresholds[s])
            if children is not None:
                both = (tree.children[s] >= 0) & (children >= 0)
                pairs = zip(tree.children[s][both], children[both], strict=True)
                node_of |= {int(old): int(new) for old, new in pairs}
    return growth.tree()
