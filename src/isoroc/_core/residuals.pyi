import numpy as np
from numpy.typing import NDArray

def shrink_factor(energy: float, noise: float, n_terms: int, threshold: float) -> float: ...
def fit_slope(
    P: NDArray[np.float64],
    residuals: NDArray[np.float64],
    weights: NDArray[np.float64],
    threshold: float,
) -> NDArray[np.float64]: ...
def fit_confidence(
    P: NDArray[np.float64],
    sharper: NDArray[np.float64],
    residuals: NDArray[np.float64],
    weights: NDArray[np.float64],
    negligible: float,
    threshold: float,
) -> NDArray[np.float64]: ...
def fit_cells(
    cell: NDArray[np.intp],
    n_levels: int,
    residuals: NDArray[np.float64],
    weights: NDArray[np.float64],
    n_free: int,
    threshold: float,
) -> NDArray[np.float64]: ...
def fit_nodes(
    sums: NDArray[np.float64],
    weight: NDArray[np.float64],
    children: NDArray[np.intp],
    split_nodes: NDArray[np.intp],
    shrinkage: float,
) -> NDArray[np.float64]: ...
