import numpy as np
from numpy.typing import NDArray

N_KNOTS: int

def log_forecasts(P: NDArray[np.float64], floor: float) -> NDArray[np.float64]: ...
def logs_of(q: NDArray[np.float64]) -> NDArray[np.float64]: ...
def softmax(z: NDArray[np.float64]) -> None: ...
def tempered(
    logs: NDArray[np.float64], lowest: float, temperature: float, share: float
) -> NDArray[np.float64]: ...
def by_row(q: NDArray[np.float64]) -> NDArray[np.float64]: ...
def add_weighted(total: NDArray[np.float64], weight: float, part: NDArray[np.float64]) -> None: ...
def spline(
    P: NDArray[np.float64],
    logs: NDArray[np.float64],
    floor: float,
    coef: NDArray[np.float64],
    knots: NDArray[np.float64],
    slopes: NDArray[np.float64],
    intercept: NDArray[np.float64],
    share: float,
) -> NDArray[np.float64]: ...
def kernel(
    z: NDArray[np.float64],
    logs: NDArray[np.float64],
    knots: NDArray[np.float64],
    origin: NDArray[np.float64],
    stretch: NDArray[np.float64],
    centres: NDArray[np.float64],
    weights: NDArray[np.float64],
    coef: NDArray[np.float64],
    intercept: NDArray[np.float64],
    reach: float,
) -> NDArray[np.float64]: ...
