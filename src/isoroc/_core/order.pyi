from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.intp]
Bytes: TypeAlias = NDArray[np.uint8]

class Wards:
    n_bins: int

    def __init__(self, nodes: Ints, held: Bytes) -> None: ...
    def replace(self, node: int, children: Ints, held: Bytes) -> None: ...

def keep_order(W: Floats, values: Floats, held: Bytes, slack: float) -> bool: ...
def smallest_differences(values: Floats, wards: list[Wards | None], skipped: int) -> Floats: ...
def required_differences(W: Floats, held: Bytes, slack: float) -> Floats: ...
