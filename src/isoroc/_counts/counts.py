"""Counts: the mergeable statistic that every calibrator can be fitted to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoroc._core.types import Floats
from isoroc._counts import files
from isoroc._counts.cells import Cells, Tally, deal_rows, probability_columns, sum_cells
from isoroc._counts.grid import (
    MOST_EXACT,
    Grid,
    Resolution,
    check_folds,
    check_resolution,
    folds_of,
)
from isoroc._input import (
    CellSample,
    InputError,
    Sample,
    UnitOption,
    check_length,
    check_names,
    check_number,
    check_sample,
    check_units,
    to_array,
)


@dataclass
class Builder:
    """Counts batches of arrays, or of tensors on their device: see `Counts.from_arrays`.

    With `numbered`, labels are by default the numbers of the columns, as in `Counts.from_batches`.
    """

    labels: Any
    unit: UnitOption
    resolution: Resolution
    folds: int
    numbered: bool = False
    classes: NDArray[Any] | None = None
    tally: Tally | None = None
    tables: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_folds(self.folds)

    def add(self, P: Any, y: Any, weight: Any = None, *, fold_by: Any = None) -> None:
        """Add forecasts and labels, and optionally weights and row keys."""
        if type(P).__module__.partition(".")[0] == "torch":
            self._add_tensors(P, y, weight, fold_by)
            return
        if self.numbered and self.labels is None:
            shape = np.shape(to_array(P, name="P"))
            self.labels = np.arange(2 if len(shape) < 2 else max(shape[1], 2))
        sample = check_sample(P, y, weight, self.labels, unit=self.unit, clip=True, advice="pass")
        self.add_sample(sample, fold_by)

    def add_sample(self, sample: Sample, fold_by: Any = None) -> None:
        """Add checked rows, and optionally row keys."""
        check_units(sample, self.unit)
        key = None if fold_by is None else to_array(fold_by, name="fold_by")
        if key is not None:
            if key.dtype.kind not in "biu":
                fix = "expected whole numbers; hash other keys to integers first"
                raise InputError("fold_by", None, f"has the type {key.dtype}", fix)
            check_length(key, sample.n_rows, name="fold_by")
            key = key.astype(np.float64) if sample.parts_of is None else key[sample.parts_of]
        if sample.weights is not None and not sample.weights.all():
            heavy = np.flatnonzero(sample.weights)
            sample = sample.take(heavy)
            key = None if key is None else key[heavy]
        columns = probability_columns(sample)
        folds = folds_of(columns, int(self.folds), key)
        self._tally_for(columns.shape[1], sample.classes).add(columns, sample, folds)

    def _add_tensors(self, P: Any, y: Any, weight: Any, fold_by: Any) -> None:
        from isoroc._counts import tensors  # noqa: PLC0415  # only for users of torch

        batch = tensors.check_batch(P, y, weight, fold_by)
        n_columns = batch.forecasts.shape[1]
        labels = np.arange(max(n_columns, 2)) if self.labels is None else np.asarray(self.labels)
        tally = self._tally_for(n_columns, labels)
        plan = tensors.plan_for(self.unit, tally.grid, int(self.folds))
        for cells in tensors.count(batch, labels, plan, self.tables):
            tally.add_cells(cells)

    def _tally_for(self, n_columns: int, classes: NDArray[Any]) -> Tally:
        if self.tally is None:
            grid = Grid.choose(n_columns, self.resolution)
            most_exact = MOST_EXACT if self.resolution == "auto" else None
            self.tally = Tally(grid, len(classes), most_exact=most_exact)
            self.classes = classes
        elif n_columns != self.tally.grid.n_columns:
            problem = f"{n_columns} columns, but {self.tally.grid.n_columns} in the first batch"
            raise InputError("P", None, problem, "all batches must have the same columns")
        return self.tally

    def result(self) -> files.StoredCounts:
        """Parts of the counts of all that was added."""
        if self.tally is None or self.classes is None:
            raise InputError("batches", None, "there are none", "at least one is needed")
        for (plan, *_), table in self.tables.items():
            self.tally.add_cells(table.cells(plan))
        cells = self.tally.cells()  # which may make the grid coarser
        return self.classes, self.tally.grid, int(self.folds), cells


@dataclass(frozen=True, eq=False, repr=False)
class Counts:
    """Counts of forecasts and outcomes: cells of forecasts with the weight of each class.

    Counts are small, whatever the number of rows, and add up: the counts of two days are the sum of
    the counts of each day. Every calibrator can be fitted to counts with `fit_counts`.

    Forecasts are probabilities. With up to 12 classes and the resolution N, two forecasts share a
    cell if ``floor(N sqrt(p_k))`` is the same for each class k, and ``floor(N (1 - max p)^(1/4))``
    too. With more classes, a cell is given by the two largest probabilities, their classes and the
    sum of the others.

    Attributes
    ----------
    classes : ndarray of shape (K,)
        The labels, in the order of the columns of the forecasts.
    forecasts : ndarray of shape (m, K) or (m,)
        Mean forecast of each entry. There is one entry per cell and fold.
    class_weights : ndarray of shape (m, K)
        Weight of each class in each entry.
    fold : ndarray of shape (m,)
        Fold of each entry, from 0.
    rows : ndarray of shape (m,)
        Number of rows of each entry.
    n_rows : int
        Total number of rows.
    weight : float
        Total weight.
    n_folds : int
        Number of folds.
    resolution : int or "exact"
        N, or "exact" if every distinct forecast is its own cell.

    See Also
    --------
    isoroc.export.counts_sql : SQL query that counts rows in a warehouse.

    Notes
    -----
    Folds serve cross-validation in `AutoCalibrator`. By default a row's fold is a hash of its
    forecast. Where 20 or more rows have the same forecast, `fit_counts` deals them to the folds at
    random.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import Counts, IRPCalibrator
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet(np.ones(3), size=20_000)
    >>> y = [rng.choice(["a", "b", "c"], p=p) for p in P]
    >>> day1 = Counts.from_arrays(P[:10_000], y[:10_000], resolution=32)
    >>> both = day1 + Counts.from_arrays(P[10_000:], y[10_000:], resolution=32)
    >>> both
    Counts(20,000 rows, 3 classes, 8,173 entries, cells of resolution 32 of 3 columns, 5 folds)
    >>> IRPCalibrator(random_state=0).fit_counts(both).n_bins_ > 3
    True
    """

    classes: NDArray[Any]
    grid: Grid
    n_folds: int
    cells: Cells
    columns: tuple[str, ...] | None = None

    @classmethod
    def from_arrays(
        cls,
        P: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        unit: UnitOption = "auto",
        resolution: Resolution = "auto",
        folds: int = 5,
        fold_by: ArrayLike | None = None,
    ) -> Self:
        """Counts of forecasts and outcomes in memory.

        Parameters
        ----------
        P, y, sample_weight, labels, unit
            As in `fit` of a calibrator. Forecasts are converted to probabilities. Tensors of torch
            are counted on their device.
        resolution : int, "exact" or "auto", default="auto"
            N, a power of two, or "exact" for one cell per distinct forecast. With "auto", counts of
            two classes are exact up to 65,536 distinct forecasts. Otherwise N is 65,536 for two
            classes, 256, 64 and 32 for 3, 4 and 5, and 16 for more.
        folds : int, default=5
            Number of folds.
        fold_by : array-like of shape (n,), default=None
            Whole numbers. Rows with the same number share a fold. By default rows with the same
            forecast do.
        """
        builder = Builder(labels, unit, resolution, folds)
        builder.add(P, y, sample_weight, fold_by=fold_by)
        return cls(*builder.result())

    @classmethod
    def from_batches(
        cls,
        batches: Iterable[Sequence[Any]],
        *,
        labels: ArrayLike | None = None,
        unit: UnitOption = "auto",
        resolution: Resolution = "auto",
        folds: int = 5,
    ) -> Self:
        """Counts of batches, for example from a data loader.

        Parameters
        ----------
        batches : iterable
            Pairs of forecasts and labels, or triples with weights: arrays, or tensors of torch,
            which are counted on their device.
        labels : array-like of shape (K,), default=None
            The class of each column. By default 0, 1, and so on.
        unit, resolution, folds
            As in `from_arrays`.

        Examples
        --------
        >>> from isoroc import Counts
        >>> batches = [([[0.5, 2.0], [1.0, 0.0]], [1, 0]), ([[0.0, 3.0]], [1])]
        >>> Counts.from_batches(batches, unit="logit").n_rows
        3
        """
        builder = Builder(labels, unit, resolution, folds, numbered=True)
        for batch in batches:
            builder.add(*batch)
        return cls(*builder.result())

    @classmethod
    def from_frame(
        cls,
        df: Any,
        probs: str | Sequence[str],
        label: str,
        *,
        weight: str | None = None,
        labels: ArrayLike | None = None,
        resolution: Resolution = "auto",
        folds: int = 5,
        fold_by: str | None = None,
    ) -> Self:
        """Counts of a dataframe of any engine. Only the cells are collected.

        Parameters
        ----------
        df : dataframe
            A dataframe of pandas, polars (eager or lazy), pyarrow, Dask or PySpark, or a relation
            of DuckDB.
        probs : str or sequence of str
            Columns of the forecasts, one per class, or the column of the second of two classes.
        label, weight : str
            Columns of the outcomes and of the weights, if there are any.
        labels : array-like of shape (K,), default=None
            The class of each column of `probs`. By default columns are matched to labels by name,
            as in `fit`, and otherwise follow the sorted labels.
        resolution, folds
            As in `from_arrays`.
        fold_by : str, default=None
            Column of whole numbers, such as a user id. Rows with the same number share a fold.

        Examples
        --------
        >>> import polars as pl
        >>> from isoroc import Counts
        >>> df = pl.LazyFrame({"p": [0.2, 0.7, 0.2], "bought": [False, True, True]})
        >>> Counts.from_frame(df, probs="p", label="bought").class_weights
        array([[0., 1.],
               [1., 1.]])
        """
        from isoroc._counts.frames import count_frame  # noqa: PLC0415  # narwhals' lazy engines

        probs = check_names("probs", probs)
        names = {"label": label, "weight": weight, "fold_by": fold_by}
        counted = count_frame(df, probs, names, labels, resolution=resolution, folds=folds)
        return cls(*counted, tuple(probs))

    @property
    def forecasts(self) -> Floats:
        means = self.cells.mean_forecasts(self.grid)
        return means[:, 0] if self.grid.n_columns == 1 else means

    @property
    def class_weights(self) -> Floats:
        return self.cells.class_weights

    @property
    def fold(self) -> NDArray[np.int64]:
        return self.cells.fold

    @property
    def rows(self) -> NDArray[np.int64]:
        return self.cells.rows

    @property
    def n_rows(self) -> int:
        return int(self.cells.rows.sum())

    @property
    def weight(self) -> float:
        return float(self.cells.class_weights.sum())

    @property
    def resolution(self) -> int | Literal["exact"]:
        return self.grid.resolution

    def __len__(self) -> int:
        return len(self.cells)

    def __repr__(self) -> str:
        sizes = f"{self.n_rows:,} rows, {len(self.classes)} classes, {len(self):,} entries"
        return f"Counts({sizes}, {self.grid}, {self.n_folds} folds)"

    def __add__(self, other: Self) -> Self:
        return self.merge(other)

    def merge(self, *others: Self) -> Self:
        """Sum of several counts with equal classes, grids and folds.

        `coarsen` brings counts to the same resolution.
        """
        for other in others:
            for what, mine, theirs in (
                ("classes", self.classes.tolist(), other.classes.tolist()),
                ("grids", self.grid, other.grid),
                ("folds", self.n_folds, other.n_folds),
            ):
                if mine != theirs:
                    fix = "coarsen one of them" if what == "grids" else "count them alike"
                    raise InputError("counts", None, f"{what} differ: {mine} and {theirs}", fix)
        return replace(self, cells=sum_cells([self.cells, *(other.cells for other in others)]))

    def coarsen(self, resolution: int) -> Self:
        """The same rows in larger cells, exactly as if they had been counted at this resolution.

        Parameters
        ----------
        resolution : int
            A power of two, not above the present resolution.
        """
        coarser = Grid.choose(self.grid.n_columns, check_resolution(resolution))
        if not self.grid.exact:
            coarser = replace(self.grid, resolution=coarser.resolution)
            if coarser.exact or int(coarser.resolution) > int(self.grid.resolution):
                problem = f"is {resolution}, but the counts have {self.resolution}"
                raise InputError("resolution", None, problem, "cells cannot be divided")
        return replace(self, grid=coarser, cells=self.cells.coarsen(self.grid, coarser))

    def decay(self, factor: float) -> Self:
        """The same counts with all weights multiplied by a factor, so that old rows count less.

        Parameters
        ----------
        factor : float
            Above 0 and at most 1. With ``counts = counts.decay(0.9) + today`` a row of n days ago
            has weight ``0.9**n``.
        """
        check_number("factor", factor, minimum=0)
        if not 0 < factor <= 1:
            raise InputError("factor", None, f"is {factor}", "expected 0 < factor <= 1")
        return replace(self, cells=self.cells.scaled(factor))

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the counts to a file atomically. This requires pyarrow or polars."""
        files.write_counts(path, (self.classes, self.grid, self.n_folds, self.cells), self.columns)

    @classmethod
    def from_parquet(
        cls,
        path: str | os.PathLike[str],
        *paths: str | os.PathLike[str],
        labels: ArrayLike | None = None,
    ) -> Self:
        """Counts from files that `to_parquet` or a warehouse with `counts_sql` wrote, merged.

        Parameters
        ----------
        path, *paths : path-like
            The files. The result of a warehouse may be in several.
        labels : array-like of shape (K,), default=None
            The class of each column of the forecasts, if a warehouse counted. By default columns
            are matched to labels by name, or follow the sorted labels.
        """
        first, *others = [cls(*parts) for parts in files.read_counts((path, *paths), labels)]
        return first.merge(*others) if others else first

    def sample(self, *, per_fold: bool) -> CellSample:
        """The counts as weighted rows.

        If folds are hashes of forecasts, all rows with the same forecast share a fold. These rows
        are dealt to folds anew. New rows will repeat the forecast, so a calibrator should be judged
        on forecasts that it has seen.
        """
        cells = self.cells
        if not per_fold:
            cells = sum_cells([replace(cells, fold=np.zeros_like(cells.fold))])
        sample = cells.sample(self.grid, self.classes)
        tied = cells.are_ties() & per_fold
        if not tied.any():
            return sample
        entry, _ = np.nonzero(cells.class_weights)
        shares = np.where(tied[entry, None], 1 / self.n_folds, np.eye(self.n_folds)[sample.fold])
        return deal_rows(sample, shares)
