import numpy as np
from numpy.typing import NDArray

from isoroc._core.types import Floats, Ints

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
def own_shares(P: Floats, codes: Ints, shares: Floats, thresholds: Floats) -> Floats: ...
def ascend(
    P: Floats,
    codes: Ints,
    shares: Floats,
    directions: Floats,
    thresholds: Floats,
    max_cycles: int,
    tolerance: float,
) -> Floats: ...
