"""Arrays as the package passes them around."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Codes = NDArray[np.unsignedinteger]
"""Column of each row's label."""
