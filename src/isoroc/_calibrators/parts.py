"""Parts of a large sample, and rows merged in cells, for fits that need not see every row."""

import numpy as np

from isoroc._core.rows import find_groups
from isoroc._core.types import Codes, Floats
from isoroc._input import Sample

PART_NUMBERS = 100_000  # numbers in a part: rows times classes
PART_ROWS = 1000  # least number of rows in a part
UNGROUPED_ROWS = 50_000  # rows are not merged up to this number
FINE_ROWS = 20_000  # rows are not merged in fine cells up to this number
FINE = 1 / 256  # width of cells of log odds in which forecasts change by less than 1e-6


def draw_part(sample: Sample) -> Sample:
    """The sample, or random rows of it where it is large."""
    return sample.draw(part_size(sample.n_classes))


def part_size(n_classes: int) -> int:
    """Number of rows that `draw_part` draws."""
    return max(PART_ROWS, PART_NUMBERS // n_classes)


def gather(
    z: Floats, codes: Codes, weights: Floats, places: Floats, *, least_rows: int | None = None
) -> tuple[Floats, Codes, Floats]:
    """Merge rows of one class in the same cell into their mean, with their total weight.

    z has shape (D, n), and whole numbers `places` (m, n) identify cells. If cells have the width
    w in z, the loss of a smooth map changes by about its curvature times ``w**2 / 24``: the mean
    keeps what is linear. Rows stay unchanged if they are at most `least_rows`, by default
    `UNGROUPED_ROWS`, or hardly share cells.
    """
    n = len(codes)
    if n <= (UNGROUPED_ROWS if least_rows is None else least_rows):
        return z, codes, weights
    # A sum of whole numbers times fixed odd 64-bit numbers, modulo 2**64, identifies a cell.
    m = len(places)
    mix = 2 * np.random.default_rng(0).integers(2**62, size=m + 1) + 1
    keys = (places.astype(np.int64) * mix[:m, None]).sum(axis=0) + codes * mix[m]
    slots = np.zeros((2 ** (2 * n).bit_length(), 2), np.uint64)
    cell, first = find_groups(keys.view(np.uint64), slots, 0)
    if len(first) > n // 2:
        return z, codes, weights
    order = np.argsort(keys[first])  # the order of the rows must not matter
    first = first[order]
    cell = np.argsort(order)[cell]
    total = np.bincount(cell, weights).astype(np.float64)
    means = np.stack([np.bincount(cell, weights * row) for row in z]) / total
    return means, codes[first], total
