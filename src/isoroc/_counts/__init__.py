"""Counts: all that calibration needs to know about any number of forecasts and outcomes.

`Grid` defines which forecasts share a cell and which rows share a fold, by formulas over `Ops`.
`Cells` have one entry per cell and fold, and entries add up. `Counts`, the public object, are cells
with their grid, classes and number of folds. A calibrator sees them as a `CellSample`, growth as
`Points` of any number of classes or as `BinaryCounts`, sorted scores of two.

`DecayedCounts` are cells whose weights halve with the age of their rows.

In files and in the result of a warehouse, counts are a table with one row per fold, cell and
label: ``fold``, the coordinates, ``label``, `Grid.added`, and the constant ``isoroc`` with the grid
as JSON.
"""

from isoroc._counts.cells import by_content as by_content
from isoroc._counts.cells import deal_by_content as deal_by_content
from isoroc._counts.cells import deal_in_cells as deal_in_cells
from isoroc._counts.cells import hash_keys as hash_keys
from isoroc._counts.cells import hash_rows as hash_rows
from isoroc._counts.cells import limit_cells as limit_cells
from isoroc._counts.cells import name_of as name_of
from isoroc._counts.cells import rounded as rounded
from isoroc._counts.counts import Builder as Builder
from isoroc._counts.counts import Counts as Counts
from isoroc._counts.decayed import DecayedCounts as DecayedCounts
from isoroc._counts.grid import Grid as Grid
from isoroc._counts.grid import Resolution as Resolution
from isoroc._counts.points import N_BITS as N_BITS
from isoroc._counts.points import BinaryCounts as BinaryCounts
from isoroc._counts.points import Points as Points
