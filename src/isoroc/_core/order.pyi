import numpy as np
from numpy.typing import NDArray

def keep_order(W: NDArray[np.float64], slack: float) -> bool: ...
def smallest_differences(
    values: NDArray[np.float64],
    nodes: NDArray[np.intp],
    held: NDArray[np.uint8],
    ends: NDArray[np.intp],
    skipped: int,
) -> NDArray[np.float64]: ...
def required_differences(
    W: NDArray[np.float64], region: NDArray[np.intp], slack: float
) -> NDArray[np.float64]: ...
