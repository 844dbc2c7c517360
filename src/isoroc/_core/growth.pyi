from typing import Any

import numpy as np
from numpy.typing import NDArray

class Ascent:
    def __init__(
        self,
        points: NDArray[np.float64],
        weights: NDArray[np.float64],
        around: Any,
        *,
        pseudocounts: NDArray[np.float64],
        slack: float,
        min_weight: float,
        min_gap: float,
    ) -> None: ...
    def climb(
        self, gammas: NDArray[np.float64], axes: NDArray[np.int32], max_cycles: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
