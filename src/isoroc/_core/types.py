"""Arrays as the package passes them around."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Codes = NDArray[np.unsignedinteger]
"""Column of each row's label."""
UNIT_WEIGHTS: Floats = np.empty(0)
"""What compiled loops take for the weights of rows that all weigh 1."""
