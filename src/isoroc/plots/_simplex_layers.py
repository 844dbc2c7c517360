"""Layers of a SimplexDisplay: points or cells, bins, and arrows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoroc._input import Sample
from isoroc._simplex import Floats, Ints
from isoroc._table import Table
from isoroc._tree import BinTree
from isoroc._views.geometry import bin_polygons, cells_of
from isoroc.plots._display import Layer

#: Above this number of rows cells are drawn instead of points.
_MAX_POINTS = 3000
#: Least and largest number of cells along an edge, by the number of classes.
_CELLS = {3: (16, 60), 4: (6, 12)}
#: Number of cells along an edge for arrows that do not start at bins.
_ARROWS = {3: 12, 4: 6}
#: Up to this number of bins there is one arrow per bin.
_MAX_BINS = 60


class Bins(NamedTuple):
    """The bins of a calibrator, and the bin of each row."""

    tree: BinTree
    values: Floats
    bin_of: Ints


def _columns(prefix: str, names: list[str], matrix: Floats) -> dict[str, NDArray[Any]]:
    return {f"{prefix}_{name}": column for name, column in zip(names, matrix.T, strict=True)}


def forecasts(sample: Sample, names: list[str]) -> list[Layer]:
    """Forecasts by label: one layer of points per class, or cells if there are many rows."""
    if len(sample.codes) > _MAX_POINTS:
        outcomes = np.eye(len(names))[sample.codes]
        return [_cells("forecasts", sample, outcomes, names)]
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
    """Forecasts by calibrated value: points, or cells if there are many rows."""
    if len(sample.codes) > _MAX_POINTS:
        return _cells("values", sample, after, names)
    columns = _columns("p", names, sample.forecasts) | _columns("value", names, after)
    return Layer("values", "after", "points", Table(columns))


def _cells(panel: str, sample: Sample, values: Floats, names: list[str]) -> Layer:
    """Cells of forecasts with their weight and mean value."""
    K, n = len(names), len(sample.codes)
    # Evenly spread rows put about sixty into each cell, enough for colours to show no noise.
    steps = int(np.clip((n / 60) ** (1 / (K - 1)), *_CELLS[K]))
    cells, cell = cells_of(sample.forecasts, steps)
    centres = (cells + (steps - cells.sum(axis=1, keepdims=True)) / K) / steps
    columns = _columns("p", names, centres) | _columns("value", names, _means(cell, values, sample))
    others = {"width": np.full(len(cells), 1 / steps), "weight": _weight(cell, sample)}
    return Layer(panel, "all", "cells", Table(columns | others))


def _weight(group: Ints, sample: Sample) -> Floats:
    return np.bincount(group, sample.weights).astype(np.float64)


def _means(group: Ints, values: Floats, sample: Sample) -> Floats:
    """Mean value of each group; no group may be empty."""
    weighted = values if sample.weights is None else values * sample.weights[:, None]
    sums = np.column_stack([np.bincount(group, column) for column in weighted.T])
    return np.asarray(sums / _weight(group, sample)[:, None])


def partition(bins: Bins, names: list[str]) -> list[Layer]:
    """Corners of the bins of three classes, and the thresholds of the splits."""
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
    """Mean forecast and mean calibrated value per bin, or per cell if there are no or many bins."""
    group = bin_of
    if group is None or len(np.unique(group)) > _MAX_BINS:
        group = cells_of(sample.forecasts, _ARROWS[len(names)])[1]
    _, group = np.unique(group, return_inverse=True)
    tails, heads = (_means(group, v, sample) for v in (sample.forecasts, after))
    columns = _columns("p", names, tails) | _columns("value", names, heads)
    return Layer("map", "after", "arrows", Table(columns | {"weight": _weight(group, sample)}))
