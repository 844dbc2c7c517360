from typing import Final

import numpy as np
from numpy.typing import NDArray

CHECKED: Final[bool]

def check_rows(
    P: NDArray[np.float64], tolerance: float, exact: float, rounding: float
) -> tuple[int, bool]: ...
def locate(cuts: NDArray[np.float64], scores: NDArray[np.float64]) -> NDArray[np.intp]: ...
def route(
    P: NDArray[np.float64],
    thresholds: NDArray[np.float64],
    children: NDArray[np.intp],
    split_of_node: NDArray[np.intp],
) -> NDArray[np.intp]: ...
def count_children(
    P: NDArray[np.float64], Y: NDArray[np.float64], thresholds: NDArray[np.float64]
) -> NDArray[np.float64]: ...
def sort_into_regions(
    P: NDArray[np.float64],
    Y: NDArray[np.float64],
    rows: NDArray[np.intp],
    gamma: NDArray[np.float64],
) -> tuple[NDArray[np.int32], NDArray[np.float64]]: ...
def lift(children: NDArray[np.float64]) -> float: ...
