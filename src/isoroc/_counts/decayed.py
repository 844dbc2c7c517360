"""DecayedCounts: cells of forecasts whose weights halve with the age of their rows."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from isoroc._core.types import Floats
from isoroc._counts.cells import Cells, Tally, probability_columns
from isoroc._counts.grid import Grid, least_resolution
from isoroc._input import CellSample, Sample

#: Lighter entries are dropped. A row of weight 1 gets there after 16 half-lives.
LIGHT = 2.0**-16


@dataclass(frozen=True, eq=False)
class DecayedCounts:
    """Cells of rows whose weights halve with their age. Memory is bounded for any number of rows.

    Every distinct forecast is its own cell as long as there are few. With more, cells become larger
    and, at the lowest resolution, are drawn at random. All fields but the first two are as in
    `Cells`.
    """

    half_life: float  # age at which a row has half of its weight, infinity for no decay
    resolution: int  # of the grid, 0 if every distinct forecast is its own cell
    keys: NDArray[Any]
    rows: NDArray[np.int64]
    class_weights: Floats
    sums: Floats
    squares: Floats

    @classmethod
    def none(cls, half_life: float, n_columns: int, n_classes: int) -> Self:
        """Counts of no rows."""
        n_rows = np.zeros(0, dtype=np.int64)
        of_classes = np.zeros((0, n_classes))
        of_columns = np.zeros((0, n_columns))
        return cls(half_life, 0, of_columns, n_rows, of_classes, of_columns, of_classes)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def grid(self) -> Grid:
        return Grid.choose(self.sums.shape[1], self.resolution or "exact")

    @property
    def cells(self) -> Cells:
        fold = np.zeros(len(self), dtype=np.int64)
        return Cells(self.keys, fold, self.rows, self.class_weights, self.sums, self.squares)

    def factor(self, age: Any) -> Any:
        """Share of its weight that a row of this age retains."""
        return np.exp2(-np.asarray(age) / self.half_life)

    def add(self, sample: Sample, ages: Floats, elapsed: float, most: int, seed: int) -> Self:
        """The counts with more rows, of these ages.

        Earlier rows have aged by `elapsed`. There are at most about `most` entries. If entries must
        be drawn, the draw depends on `seed`.
        """
        K = sample.n_classes
        tally = Tally(self.grid, K, most=most, least=least_resolution(K))
        tally.add_cells(_heavy(self.cells.scaled(self.factor(elapsed))))
        factor = self.factor(ages)
        weights = sample.row_weights() * factor
        squares = sample.squared_weights() * factor**2
        new = replace(sample, weights=weights, squares=squares).take(weights >= LIGHT)
        tally.add(probability_columns(new), new)
        cells = tally.cells().thinned(most, seed)
        return type(self)(
            self.half_life,
            0 if tally.grid.exact else int(tally.grid.resolution),
            keys=cells.keys,
            rows=cells.rows,
            class_weights=cells.class_weights,
            sums=cells.sums,
            squares=cells.squares,
        )

    def sample(self, like: Sample) -> CellSample:
        """The cells as weighted rows, with forecasts of the kind and classes of another sample."""
        sample = self.cells.sample(self.grid, like.classes)
        forecasts = like.kind.from_simplex(sample.forecasts)
        return replace(sample, forecasts=forecasts, unit=like.unit)


def _heavy(cells: Cells) -> Cells:
    return cells.take(cells.class_weights.sum(axis=1) >= LIGHT)
