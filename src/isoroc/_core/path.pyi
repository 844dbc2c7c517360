import numpy as np
from numpy.typing import NDArray

def split_blocks(
    weights: NDArray[np.float64],
    forecasts: NDArray[np.float64],
    pseudocounts: NDArray[np.float64],
    forecast_pseudocount: float,
    gap: float,
    min_weight: float,
    min_lift: float,
    max_bins: int,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]: ...
def sum_ranges(weights: NDArray[np.float64], ranges: NDArray[np.intp]) -> NDArray[np.float64]: ...
