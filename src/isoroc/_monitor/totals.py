"""Sums over the rows of a batch, or of all batches, and what follows from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from isoroc._cell_errors import cells_shape, sum_in_cells
from isoroc._simplex import LEAST, Floats


def numbers(values: Any, size: int) -> Floats:
    """Array of so many numbers, read from a file."""
    array = np.array(values, dtype=np.float64)
    if array.shape != (size,) or np.isnan(array).any():
        raise ValueError(f"expected {size} numbers")
    return array


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums over rows."""

    rows: int
    loss: float
    promised: float
    observed: Floats
    expected: Floats
    variance: Floats
    """Of the number of rows of each class, if forecasts are calibrated."""
    in_cells: Floats
    """See `isoroc._cell_errors.sum_in_cells`."""

    @classmethod
    def empty(cls, n_classes: int) -> Self:
        """Sums over no rows."""
        zeros = np.zeros(n_classes)
        return cls(0, 0.0, 0.0, zeros, zeros, zeros, np.zeros(cells_shape(n_classes)))

    @classmethod
    def of(cls, P: Floats, codes: NDArray[Any]) -> Self:
        """Sums over the rows of a batch."""
        loss = -np.log(np.maximum(P[np.arange(len(P)), codes], LEAST)).sum()
        entropy = -(P * np.log(np.where(P > 0, P, 1.0))).sum()
        observed = np.bincount(codes, minlength=P.shape[1]).astype(np.float64)
        variance = (P * (1 - P)).sum(axis=0)
        sums = observed, P.sum(axis=0), variance, sum_in_cells(P, codes)
        return cls(len(P), float(loss), float(entropy), *sums)

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.rows + other.rows,
            self.loss + other.loss,
            self.promised + other.promised,
            self.observed + other.observed,
            self.expected + other.expected,
            self.variance + other.variance,
            self.in_cells + other.in_cells,
        )

    def to_lists(self) -> dict[str, Any]:
        """JSON values."""
        return {name: np.asarray(value).tolist() for name, value in vars(self).items()}

    @classmethod
    def from_lists(cls, lists: dict[str, Any], n_classes: int) -> Self:
        """Sums from JSON values."""
        observed, expected, variance = (
            numbers(lists[name], n_classes) for name in ("observed", "expected", "variance")
        )
        shape = cells_shape(n_classes)
        in_cells = numbers(np.ravel(lists["in_cells"]), math.prod(shape)).reshape(shape)
        sums = int(lists["rows"]), float(lists["loss"]), float(lists["promised"])
        return cls(*sums, observed, expected, variance, in_cells)
