from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.intp]

def shrink_factor(energy: float, noise: float, n_terms: int, threshold: float) -> float: ...
def fit_slope(P: Floats, residuals: Floats, weights: Floats, threshold: float) -> Floats: ...
def fit_confidence(
    P: Floats,
    sharper: Floats,
    residuals: Floats,
    weights: Floats,
    negligible: float,
    threshold: float,
) -> Floats: ...
def fit_cells(
    cell: Ints, n_levels: int, residuals: Floats, weights: Floats, n_free: int, threshold: float
) -> Floats: ...
def fit_nodes(
    sums: Floats, weight: Floats, children: Ints, split_nodes: Ints, shrinkage: float
) -> Floats: ...
