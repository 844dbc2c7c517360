"""What a SimplexDisplay shows: points or cells, bins, and arrows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoroc._input import Sample
from isoroc._simplex import Floats, Ints
from isoroc._table import Table
from isoroc._tree import BinTree
from isoroc.plots._display import Layer
from isoroc.plots._geometry import bin_polygons, cells_of

#: More points than this are drawn as cells: density, not ink.
_MANY = 3000
#: Cells along an edge by the number of classes, fewest and most; and of the map's arrows.
_CELLS, _ARROWS = {3: (16, 60), 4: (6, 12)}, {3: 12, 4: 6}
#: Up to so many bins have an arrow each.
_FEW_BINS = 60


class Bins(NamedTuple):
    """The bins of a calibrator, and the bin of each row."""

    tree: BinTree
    values: Floats
    bin_of: Ints


def _columns(prefix: str, names: list[str], matrix: Floats) -> dict[str, NDArray[Any]]:
    return {f"{prefix}_{name}": column for name, column in zip(names, matrix.T, strict=True)}


def forecasts(sample: Sample, names: list[str]) -> list[Layer]:
    """Forecasts by what came true: the points of each class, or cells of many rows."""
    if len(sample.codes) > _MANY:
        came_true = np.eye(len(names))[sample.codes]
        return [_gathered("forecasts", sample, came_true, names)]
    return [
        Layer(
            "forecasts",
            name,
            "points",
            Table(_columns("p", names, sample.forecasts[sample.codes == k])),
        )
        for k, name in enumerate(names)
    ]


def values(sample: Sample, after: Floats, names: list[str]) -> Layer:
    """Forecasts by their calibrated value: points, or cells of many rows."""
    if len(sample.codes) > _MANY:
        return _gathered("values", sample, after, names)
    columns = _columns("p", names, sample.forecasts) | _columns("value", names, after)
    return Layer("values", "after", "points", Table(columns))


def _gathered(panel: str, sample: Sample, values: Floats, names: list[str]) -> Layer:
    """Cells of forecasts with their weight and mean value."""
    K, n = len(names), len(sample.codes)
    # so large that a cell of evenly spread rows holds about sixty, and chance does not speckle it
    steps = int(np.clip((n / 60) ** (1 / (K - 1)), *_CELLS[K]))
    cells, cell = cells_of(sample.forecasts, steps)
    middle = (cells + (steps - cells.sum(axis=1, keepdims=True)) / K) / steps
    columns = _columns("p", names, middle) | _columns("value", names, _means(cell, values, sample))
    further = {"width": np.full(len(cells), 1 / steps), "weight": _weight(cell, sample)}
    return Layer(panel, "all", "cells", Table(columns | further))


def _weight(group: Ints, sample: Sample) -> Floats:
    return np.bincount(group, sample.weights).astype(np.float64)


def _means(group: Ints, values: Floats, sample: Sample) -> Floats:
    """Mean of the values of each group, of which none is empty."""
    weighted = values if sample.weights is None else values * sample.weights[:, None]
    sums = np.column_stack([np.bincount(group, column) for column in weighted.T])
    return np.asarray(sums / _weight(group, sample)[:, None])


def partition(bins: Bins, names: list[str]) -> list[Layer]:
    """Corners of the bins of three classes, and the thresholds."""
    polygons = bin_polygons(bins.tree)
    sizes = [len(polygon) for polygon in polygons]
    corners = np.vstack(polygons)
    values = np.repeat(bins.values, sizes, axis=0)
    columns = _columns("p", names, corners) | _columns("value", names, values)
    number = np.repeat(np.arange(len(sizes), dtype=np.float64), sizes)
    gammas = bins.tree.thresholds
    order = {"split": np.arange(1.0, len(gammas) + 1)}
    return [
        Layer("bins", "bins", "polygons", Table(columns | {"bin": number})),
        Layer("bins", "splits", "thresholds", Table(_columns("p", names, gammas) | order)),
    ]


def arrows(sample: Sample, after: Floats, bin_of: Ints | None, names: list[str]) -> Layer:
    """Mean forecast and mean calibrated value of bins, or of cells if bins are none or many."""
    group = bin_of
    if group is None or len(np.unique(group)) > _FEW_BINS:
        group = cells_of(sample.forecasts, _ARROWS[len(names)])[1]
    _, group = np.unique(group, return_inverse=True)
    tails, heads = (_means(group, v, sample) for v in (sample.forecasts, after))
    columns = _columns("p", names, tails) | _columns("value", names, heads)
    return Layer("map", "after", "arrows", Table(columns | {"weight": _weight(group, sample)}))
