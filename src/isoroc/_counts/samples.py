"""From cells to weighted rows and to tables, and from many rows to cells."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoroc._counts.builders import probabilities
from isoroc._counts.cells import Cells, Tally
from isoroc._counts.grid import Grid
from isoroc._input import CellSample, Sample
from isoroc._simplex import LEAST, Floats, Ints
from isoroc._special import logit
from isoroc._table import Table


def sample_of(classes: NDArray[Any], grid: Grid, cells: Cells) -> CellSample:
    """Weighted rows: the mean forecast of each entry, once for each class with weight."""
    entry, codes = np.nonzero(cells.class_weights)
    means = cells.mean_forecasts(grid)[entry]
    return CellSample(
        forecasts=means[:, 0] if grid.n_columns == 1 else np.ascontiguousarray(means),
        codes=codes.astype(np.min_scalar_type(len(classes) - 1)),
        weights=cells.class_weights[entry, codes],
        classes=classes,
        fold=cells.fold[entry].astype(np.intp),
    )


def table_of(classes: NDArray[Any], grid: Grid, cells: Cells) -> Table:
    """One row per entry: fold, cell, rows, mean forecast, class weights."""
    means = cells.mean_forecasts(grid)
    columns = {"fold": cells.fold} | dict(zip(grid.names, cells.keys.T, strict=True))
    columns["rows"] = cells.rows
    names = classes[-means.shape[1] :]
    columns |= {f"forecast_{label}": means[:, k] for k, label in enumerate(names)}
    weights = cells.class_weights
    columns |= {f"weight_{label}": weights[:, k] for k, label in enumerate(classes)}
    return Table(columns)


#: Cells are made no larger than at these resolutions, by the number of classes: members that read
#: logarithms of forecasts would see too much of the difference between a cell and its mean.
LEAST_RESOLUTION = {2: 1024, 3: 32, 4: 32}


def in_cells(sample: Sample, fold: Ints, most: int) -> CellSample:
    """A sample of many rows as cells, at most `most` in total over all folds.

    Where cells of the least resolution are more, twice as many weighted rows are drawn from them at
    random: with many classes hardly two rows share a cell.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sample = Sample(rng.random(10_000), rng.integers(0, 2, 10_000).astype(np.uint8))
    >>> cells = in_cells(sample, rng.integers(0, 5, 10_000), 1000)
    >>> len(cells), float(cells.weights.sum())
    (1690, 10000.0)
    """
    P = probabilities(sample)
    columns = P.reshape(len(P), -1)
    K = sample.n_classes
    start = Grid.choose(columns.shape[1], "auto")
    least = LEAST_RESOLUTION.get(K, start.resolution)
    tally = Tally(start, K, most=most, least=int(least))
    tally.add(columns, sample.codes, sample.weights, fold)
    cells = tally.cells()
    rows = sample_of(np.arange(K), tally.grid, cells).draw(2 * most)
    return replace(  # type: ignore[return-value]
        rows,
        forecasts=_as_scores(rows.forecasts, sample),
        classes=sample.classes,
        scores=sample.scores,
    )


def _as_scores(P: Floats, sample: Sample) -> Floats:
    """Probabilities as what the forecasts of a sample are."""
    if sample.scores == "probability":
        return P
    if P.ndim == 1:
        return logit(P.clip(LEAST, 1 - 2.0**-53))
    return np.asarray(np.log(P.clip(min=LEAST)))
