"""Growth of trees: `grow_tree` is the way in."""

from isoroc._growth.fixed import cut_at, split_at_centroids
from isoroc._growth.grid import steps_for
from isoroc._growth.grow import GrowthOptions, grow_tree
from isoroc._growth.steps import isotonic_steps, venn_abers_steps

__all__ = [
    "GrowthOptions",
    "cut_at",
    "grow_tree",
    "isotonic_steps",
    "split_at_centroids",
    "steps_for",
    "venn_abers_steps",
]
