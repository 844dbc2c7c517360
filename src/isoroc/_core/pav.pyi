import numpy as np
from numpy.typing import NDArray

def partition_scores(
    scores: NDArray[np.float64], positive: NDArray[np.uint8]
) -> tuple[NDArray[np.float64], int]: ...
def merge_classes(
    a: NDArray[np.float64],
    wa: NDArray[np.float64],
    b: NDArray[np.float64],
    wb: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def concordance(
    a: NDArray[np.float64],
    wa: NDArray[np.float64],
    b: NDArray[np.float64],
    wb: NDArray[np.float64],
) -> float: ...
def pool_adjacent_violators(
    a: NDArray[np.float64],
    wa: NDArray[np.float64],
    b: NDArray[np.float64],
    wb: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]: ...
def with_one_more(weights: NDArray[np.float64], extra: float) -> NDArray[np.float64]: ...
