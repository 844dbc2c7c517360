from typing import Final

import numpy as np
from numpy.typing import NDArray

CHECKED: Final[bool]

def check_rows(P: NDArray[np.float64], tolerance: float, exact: float) -> tuple[int, bool]: ...
def partition_scores(
    scores: NDArray[np.float64], positive: NDArray[np.uint8]
) -> tuple[NDArray[np.float64], int]: ...
def merge_classes(
    a: NDArray[np.float64],
    wa: NDArray[np.float64],
    b: NDArray[np.float64],
    wb: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def pool_adjacent_violators(
    a: NDArray[np.float64],
    wa: NDArray[np.float64],
    b: NDArray[np.float64],
    wb: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]: ...
def best_cut(
    cumulative: NDArray[np.float64],
    before: int,
    start: int,
    stop: int,
    after: int,
    smoothing: NDArray[np.float64],
    min_weight: float,
) -> tuple[int, float]: ...
def locate(cuts: NDArray[np.float64], scores: NDArray[np.float64]) -> NDArray[np.intp]: ...
def route(
    P: NDArray[np.float64],
    thresholds: NDArray[np.float64],
    children: NDArray[np.intp],
    split_of_node: NDArray[np.intp],
) -> NDArray[np.intp]: ...
def climb(
    P: NDArray[np.float64],
    Y: NDArray[np.float64],
    gamma: NDArray[np.float64],
    smoothing: NDArray[np.float64],
    bound: NDArray[np.float64],
    slack: float,
    min_weight: float,
    min_gap: float,
    straddled: NDArray[np.float64],
    region: NDArray[np.int32],
    outside: NDArray[np.float64],
    P_out: NDArray[np.float64],
    bin_out: NDArray[np.int32],
    axes: NDArray[np.int32],
    max_cycles: int,
    children: NDArray[np.float64],
) -> float: ...
def count_children(
    P: NDArray[np.float64], Y: NDArray[np.float64], thresholds: NDArray[np.float64]
) -> NDArray[np.float64]: ...
def smallest_differences(
    values: NDArray[np.float64],
    nodes: NDArray[np.intp],
    held: NDArray[np.uint8],
    ends: NDArray[np.intp],
    skipped: int,
) -> NDArray[np.float64]: ...
def sort_into_regions(
    P: NDArray[np.float64],
    Y: NDArray[np.float64],
    rows: NDArray[np.intp],
    gamma: NDArray[np.float64],
) -> tuple[NDArray[np.int32], NDArray[np.float64]]: ...
def keep_order(W: NDArray[np.float64], slack: float) -> bool: ...
def lift(children: NDArray[np.float64]) -> float: ...
def required_differences(
    W: NDArray[np.float64], region: NDArray[np.intp], slack: float
) -> NDArray[np.float64]: ...
def with_one_more(weights: NDArray[np.float64], extra: float) -> NDArray[np.float64]: ...
