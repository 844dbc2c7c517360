"""Growth of trees: `grow_tree`, and `grow_pulled` where forecasts are part of the prior."""

from isoroc._growth.best_first import GrowthOptions as GrowthOptions
from isoroc._growth.grow import Pulled as Pulled
from isoroc._growth.grow import grow_pulled as grow_pulled
from isoroc._growth.grow import grow_tree as grow_tree
from isoroc._growth.pav import isotonic_steps as isotonic_steps
from isoroc._growth.pav import venn_abers_steps as venn_abers_steps
from isoroc._growth.search import MIN_GAP as MIN_GAP
from isoroc._growth.tilt import Rows as Rows
from isoroc._growth.tilt import held_out_pseudocount as held_out_pseudocount
from isoroc._growth.tilt import tilt_bins as tilt_bins
