from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from isoroc._core.types import Floats, Ints

Bytes: TypeAlias = NDArray[np.uint8]

class Wards:
    n_bins: int

    def __init__(self, nodes: Ints, held: Bytes) -> None: ...
    def replace(self, node: int, children: Ints, held: Bytes) -> None: ...

def keep_order(W: Floats, values: Floats, held: Bytes, slack: float) -> bool: ...
def smallest_differences(values: Floats, wards: list[Wards | None], skipped: int) -> Floats: ...
def required_differences(W: Floats, held: Bytes, slack: float) -> Floats: ...
def leaves(children: Ints, split_of_node: Ints) -> Ints: ...
def add_up(sums: Floats, children: Ints, split_nodes: Ints) -> None: ...
def hand_down(values: Floats, share: Floats, children: Ints, split_nodes: Ints) -> None: ...
def tilted_sums(
    P: Floats, bin_of: Ints, weights: Floats, tilts: Floats, wanted: Bytes
) -> tuple[Floats, Floats]: ...
def smallest_leads(P: Floats, bin_of: Ints, tilts: Floats, region: Ints | None) -> Floats: ...
def largest_cap(
    regions: Ints,
    bins: Ints,
    constant: Floats,
    varying: Floats,
    shares: Floats,
    slack: float,
    n_caps: int,
) -> float: ...

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
