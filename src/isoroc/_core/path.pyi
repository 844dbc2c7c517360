from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.intp]

def split_blocks(
    weights: Floats,
    forecasts: Floats,
    pseudocounts: Floats,
    forecast_pseudocount: float,
    gap: float,
    min_weight: float,
    min_lift: float,
    max_bins: int,
) -> tuple[Ints, Ints]: ...
def sum_ranges(weights: Floats, ranges: Ints) -> Floats: ...
