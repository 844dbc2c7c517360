from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

class Ascent:
    def __init__(
        self,
        points: Floats,
        weights: Floats,
        around: Any,
        *,
        pseudocounts: Floats,
        slack: float,
        min_weight: float,
        min_gap: float,
    ) -> None: ...
    def climb(
        self, gammas: Floats, axes: NDArray[np.int32], max_cycles: int
    ) -> tuple[Floats, Floats]: ...
