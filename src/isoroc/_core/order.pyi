import numpy as np
from numpy.typing import NDArray

class Wards:
    n_bins: int

    def __init__(self, nodes: NDArray[np.intp], held: NDArray[np.uint8]) -> None: ...
    def replace(self, node: int, children: NDArray[np.intp], held: NDArray[np.uint8]) -> None: ...

def keep_order(
    W: NDArray[np.float64], values: NDArray[np.float64], held: NDArray[np.uint8], slack: float
) -> bool: ...
def smallest_differences(
    values: NDArray[np.float64], wards: list[Wards | None], skipped: int
) -> NDArray[np.float64]: ...
def required_differences(
    W: NDArray[np.float64], held: NDArray[np.uint8], slack: float
) -> NDArray[np.float64]: ...
