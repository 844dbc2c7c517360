"""Growth of trees: `grow_tree` and `grow_pulled` are the ways in."""

from isoroc._growth.compression import compress_steps
from isoroc._growth.fixed import cut_at, split_at_centroids
from isoroc._growth.forecasts import grow_pulled, likeliest_weight, mean_forecasts
from isoroc._growth.grid import steps_for
from isoroc._growth.grow import GrowthOptions, grow_tree
from isoroc._growth.steps import isotonic_steps, venn_abers_steps

__all__ = [
    "GrowthOptions",
    "compress_steps",
    "cut_at",
    "grow_pulled",
    "grow_tree",
    "isotonic_steps",
    "likeliest_weight",
    "mean_forecasts",
    "split_at_centroids",
    "steps_for",
    "venn_abers_steps",
]
