import numpy as np
from numpy.typing import NDArray

from isoroc._core.types import Floats, Ints

def partition_scores(scores: Floats, positive: NDArray[np.uint8]) -> tuple[Floats, int]: ...
def merge_classes(a: Floats, wa: Floats, b: Floats, wb: Floats) -> tuple[Floats, Floats]: ...
def concordance(a: Floats, wa: Floats, b: Floats, wb: Floats) -> float: ...
def pool_adjacent_violators(
    a: Floats, wa: Floats, b: Floats, wb: Floats, size: int = 16
) -> tuple[Floats, Floats, Floats]: ...
def with_one_more(weights: Floats, extra: float) -> Floats: ...
def irp_path(
    sums: Floats,
    pseudocounts: Floats,
    forecast_pseudocount: float,
    gap: float,
    min_weight: float,
    min_lift: float,
    max_bins: int,
) -> tuple[Ints, Ints]: ...
