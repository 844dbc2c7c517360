"""Counts: all that calibration needs to know about any number of forecasts and outcomes.

`Grid` defines which forecasts share a cell and which rows share a fold. Its formulas over `Ops` run
in NumPy, torch, dataframe engines and SQL. `Cells` have one entry per cell and fold: number of
rows, weight of each class, sums of squared weights and of forecasts. Entries add up, so cells of
parts of the data merge into those of the whole. `Counts`, the public object, are cells with their
grid, classes and number of folds. A calibrator sees them as a `CellSample`: the mean forecast of
each entry, once for each class with weight.

In files and in the result of a warehouse, counts are a table with one row per fold, cell and
label: ``fold``, the coordinates, ``label``, `Grid.added`, and the constant ``isoroc`` with the grid
as JSON. Growth turns a sample into `Points`, unordered points of any number of classes, or into
`BinaryCounts`, sorted scores of two.
"""

from isoroc._counts.cells import by_content as by_content
from isoroc._counts.cells import deal_by_content as deal_by_content
from isoroc._counts.cells import deal_in_cells as deal_in_cells
from isoroc._counts.cells import hash_keys as hash_keys
from isoroc._counts.counts import Builder as Builder
from isoroc._counts.counts import Counts as Counts
from isoroc._counts.grid import Grid as Grid
from isoroc._counts.grid import Resolution as Resolution
from isoroc._counts.points import BinaryCounts as BinaryCounts
from isoroc._counts.points import Points as Points
