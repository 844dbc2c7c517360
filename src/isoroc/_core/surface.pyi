from typing import Final

import numpy as np
from numpy.typing import NDArray

CHECKED: Final[bool]

def scan_lines(
    right: NDArray[np.float64],
    left: NDArray[np.float64],
    lines: NDArray[np.float64],
    line: int,
    capacity: int,
    totals: NDArray[np.float64],
    table: NDArray[np.float64],
    concave: bool,
    step: float,
    tolerance: float,
) -> tuple[NDArray[np.float64], int]: ...
def undominated(points: NDArray[np.float64]) -> tuple[NDArray[np.bool_], float]: ...
def lower_envelope(planes: NDArray[np.float64], cells: int) -> NDArray[np.float64]: ...
def own_shares(
    P: NDArray[np.float64],
    codes: NDArray[np.intp],
    weights: NDArray[np.float64],
    thresholds: NDArray[np.float64],
) -> NDArray[np.float64]: ...
