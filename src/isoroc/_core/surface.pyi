from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

def scan_lines(
    right: Floats,
    left: Floats,
    lines: Floats,
    line: int,
    capacity: int,
    totals: Floats,
    table: Floats,
    concave: bool,
    step: float,
    tolerance: float,
) -> tuple[Floats, int]: ...
def undominated(points: Floats) -> tuple[NDArray[np.bool_], float]: ...
def lower_envelope(planes: Floats, cells: int) -> Floats: ...
def own_shares(
    P: Floats, codes: NDArray[np.intp], weights: Floats, thresholds: Floats
) -> Floats: ...
