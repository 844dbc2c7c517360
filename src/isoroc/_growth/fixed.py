"""Partitions whose thresholds do not depend on the labels, for comparison with grown ones."""

from __future__ import annotations

import numpy as np

from isoroc._counts import Points
from isoroc._growth.best_first import Growth, GrowthOptions
from isoroc._growth.grid import steps_for
from isoroc._input import Sample
from isoroc._simplex import Floats, lattice, regions
from isoroc._tree import BinTree


def cut_at(sample: Sample, cuts: Floats) -> BinTree:
    """Two classes: bins between ascending cuts; empty ones are joined."""
    growth = _start(sample)
    last = 0
    for cut in cuts:
        children = growth.attempt(last, np.array([1 - cut, cut]))
        last = last if children is None else int(children[1])
    return growth.tree()


def split_at_centroids(sample: Sample, depth: int, grid_size: int | None = None) -> BinTree:
    """Regions split breadth first, each at the mean of those lattice points that it holds."""
    growth = _start(sample)
    level = {0: lattice(sample.n_classes, steps_for(sample.n_classes, grid_size))}
    for _ in range(depth):
        next_level: dict[int, Floats] = {}
        for node, inside in level.items():
            gamma = inside.mean(axis=0)
            children = growth.attempt(node, gamma)
            if children is not None:
                region = regions(inside, gamma)
                kept = [k for k in np.unique(region) if children[k] >= 0]
                next_level |= {int(children[k]): inside[region == k] for k in kept}
        level = next_level
    return growth.tree()


def _start(sample: Sample) -> Growth:
    """Growth without conditions over all rows of a sample."""
    return Growth(
        Points.of_rows(sample), GrowthOptions(np.zeros(sample.n_classes), monotonicity=None)
    )
