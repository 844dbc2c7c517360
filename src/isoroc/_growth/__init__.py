"""Growth of trees: `grow_tree`, and `grow_pulled` where forecasts are part of the prior.

`options`
    `GrowthOptions`, how a tree is grown.
`grow`
    From a sample to its tree; what mean forecasts have to do with the values of bins.
`pav`
    Two classes: isotonic regression, the IRP path, Venn-Abers; trees and step functions.
`best_first`
    Any number of classes: the paper's Algorithm 2, the gain, and what ROC monotonicity asks for.
`sweep`, `grid`
    The two searches for a threshold.
`fixed`
    Partitions whose thresholds do not depend on the labels.
"""

from isoroc._growth.fixed import cut_at, split_at_centroids
from isoroc._growth.grow import grow_pulled, grow_tree, pull_tree
from isoroc._growth.options import GrowthOptions
from isoroc._growth.pav import isotonic_steps, venn_abers_steps
from isoroc._growth.sweep import MIN_GAP

__all__ = [
    "MIN_GAP",
    "GrowthOptions",
    "cut_at",
    "grow_pulled",
    "grow_tree",
    "isotonic_steps",
    "pull_tree",
    "split_at_centroids",
    "venn_abers_steps",
]
