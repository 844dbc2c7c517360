"""Growth of trees: `grow_tree`, and `grow_pulled` where forecasts are part of the prior."""

from isoroc._growth.best_first import GrowthOptions
from isoroc._growth.grow import Pulled, grow_pulled, grow_tree
from isoroc._growth.pav import isotonic_steps, venn_abers_steps
from isoroc._growth.search import MIN_GAP
from isoroc._growth.tilt import BinnedRows, held_out_pseudocount, tilt_bins

__all__ = [
    "MIN_GAP",
    "BinnedRows",
    "GrowthOptions",
    "Pulled",
    "grow_pulled",
    "grow_tree",
    "held_out_pseudocount",
    "isotonic_steps",
    "tilt_bins",
    "venn_abers_steps",
]
