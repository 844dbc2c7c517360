"""Counts of tensors of torch on their device. Only the cells are copied to the host.

If a table of all cells of the grid fits in memory, cells are numbered and rows are added to the
table, without sorting. Otherwise rows are grouped by a hash of their cell.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoroc._backends import Ops, V
from isoroc._backends.standard import ArrayVector
from isoroc._core.rows import FACTOR, LIMB, PRIME
from isoroc._counts.cells import Cells
from isoroc._counts.grid import Grid, cells, fold, mixing_weights
from isoroc._input import (
    WEIGHT_FIX,
    InputError,
    UnitOption,
    check_length,
    check_option,
    valid_weights,
)
from isoroc._input.kinds import SUM_EXACT, Kind, kind_of, units_of
from isoroc._input.rows import check_classes

try:
    import torch

    from isoroc._backends.torch import TorchOps, root
except ImportError as error:
    raise ImportError("counts of tensors need torch: pip install torch") from error

#: Rows that are counted at a time if the memory of the device is unknown.
TENSOR_SLICE = 2**24
#: Largest table of all cells, in bytes, if the memory of the device is unknown.
DENSE = 2**28


class TensorBatch(NamedTuple):
    """Tensors on one device. The forecasts are not checked yet."""

    forecasts: Any
    labels: Any
    weights: Any
    key: Any


class CountingPlan(NamedTuple):
    """How forecasts of a kind become cells and folds."""

    kind: Kind
    grid: Grid
    n_folds: int

    @property
    def sizes(self) -> list[int]:
        """Number of values of the fold and of each coordinate, unless the grid is exact."""
        K = self.grid.n_columns
        N = int(self.grid.resolution)
        return [self.n_folds, *(K if name[:5] == "class" else N + 1 for name in self.grid.names)]

    def place(self, ops: Ops[V], X: V, key: V | None) -> tuple[V, V, V]:
        """Whether rows are valid, their forecasts on the simplex, their fold and coordinates."""
        X, good = self.kind.clean(ops, X)
        P = self.kind.on_simplex(ops, X)
        return good, P, ops.concat([fold(ops, P, self.n_folds, key), cells(ops, P, self.grid)])

    def number(self, ops: Ops[V], X: V, key: V | None) -> V:
        """Number of the cell and fold, -1 for invalid rows, and forecasts on the simplex."""
        good, P, coordinates = self.place(ops, X, key)
        number = ops.take(coordinates, [0])
        for k, size in enumerate(self.sizes[1:], start=1):
            number = number * float(size) + ops.take(coordinates, [k])
        return ops.concat([ops.where(good, number, -1.0), P])


class CellSums:
    """Sums over the rows of numbered cells and folds, on a device."""

    def __init__(self, size: int, n_classes: int, batch: TensorBatch) -> None:
        zeros = partial(torch.zeros, dtype=torch.float64, device=batch.forecasts.device)
        self.class_weights = zeros((size, n_classes))
        self.sums = [zeros(size) for _ in range(batch.forecasts.shape[1])]
        # Without weights, rows and squared weights follow from the weights of the classes.
        self.squares: Any = None if batch.weights is None else zeros((size, n_classes))
        self.rows: Any = None if batch.weights is None else zeros(size)

    def add(self, number: Any, codes: Any, forecasts: Iterable[Any], weights: Any) -> None:
        """Add rows of these cells."""
        entry = number * self.class_weights.shape[1] + codes.to(number.dtype)
        one = torch.ones(1, dtype=torch.float64, device=number.device).expand(len(number))
        self.class_weights.view(-1).index_add_(0, entry, one if weights is None else weights)
        for total, column in zip(self.sums, forecasts, strict=True):
            total.index_add_(0, number, column if weights is None else column * weights)
        if self.squares is not None:
            self.squares.view(-1).index_add_(0, entry, weights**2)
            self.rows.index_add_(0, number, (weights > 0).to(torch.float64))

    def cells(self, plan: CountingPlan, coordinates: NDArray[Any] | None = None) -> Cells:
        """The cells with weight. By default the `coordinates` of all cells follow from numbers."""
        weight = self.class_weights.sum(1)
        heavy = weight.nonzero()[:, 0]
        squares = self.class_weights if self.squares is None else self.squares
        rows = (weight if self.rows is None else self.rows)[heavy].long()
        sums = torch.stack([total[heavy] for total in self.sums], 1)
        tensors = rows, self.class_weights[heavy], sums, squares[heavy]
        number = heavy.cpu().numpy()
        if coordinates is None:
            coordinates = np.column_stack(np.unravel_index(number, plan.sizes))
        else:
            coordinates = coordinates[number]
        fold_of_cell = coordinates[:, 0].astype(np.int64)
        keys = coordinates[:, 1:]
        keys = keys if plan.grid.exact else keys.astype(np.int32)
        return Cells(keys, fold_of_cell, *(tensor.cpu().numpy() for tensor in tensors))


def check_batch(P: Any, y: Any, weight: Any, key: Any) -> TensorBatch:
    forecasts = P.detach().to(torch.float64).reshape(len(P), -1)
    device = forecasts.device
    if not len(forecasts):
        raise InputError("P", None, "no rows", "at least one is needed")
    labels: Any = torch.as_tensor(y, device=device)
    check_length(labels, len(forecasts), name="y")
    if weight is not None:
        weight = torch.as_tensor(weight, device=device, dtype=torch.float64)
        ops = TorchOps(device)
        good = valid_weights(ops, ops.vector(weight[:, None])).array[:, 0]
        _refuse("sample_weight", ~good, weight, WEIGHT_FIX)
    if key is not None:
        key = torch.as_tensor(key, device=device)
        if key.is_floating_point():
            raise InputError("fold_by", None, "has no integers", "expected whole numbers")
        key = key.to(torch.float64)
    return TensorBatch(forecasts, labels, weight, key)


def plan_for(unit: UnitOption, grid: Grid, n_folds: int) -> CountingPlan:
    """How forecasts become cells. "auto" means probabilities."""
    check_option("unit", unit, ("auto", *units_of(grid.n_columns)))
    unit = "probability" if unit == "auto" else unit
    return CountingPlan(kind_of(grid.n_columns, unit), grid, n_folds)


def _refuse(argument: str, bad: Any, values: Any, fix: str, start: int = 0) -> None:
    if bool(bad.any()):
        row = int(bad.to(torch.uint8).argmax())
        raise InputError(argument, start + row, f"is {values[row].tolist()}", fix)


def _encode(labels: Any, classes: NDArray[Any], n_classes: int) -> Any:
    check_classes(classes, n_classes)
    if classes.dtype.kind not in "biuf":
        fix = "tensors hold numbers; pass labels= as numbers"
        raise InputError("labels", None, "are not numbers", fix)
    if np.array_equal(classes, np.arange(n_classes)) and not labels.is_floating_point():
        low, high = labels.aminmax()
        if low >= 0 and high < n_classes:
            return labels
    whole = torch.uint8 if classes.dtype.kind == "b" else None
    known, order = torch.sort(torch.as_tensor(classes, device=labels.device, dtype=whole))
    wide = labels.to(known.dtype)
    nearest = torch.searchsorted(known, wide.contiguous()).clamp(max=n_classes - 1)
    _refuse("y", known[nearest] != wide, labels, f"known are {classes.tolist()}; pass labels=")
    return order[nearest]


def count(
    batch: TensorBatch, classes: NDArray[Any], plan: CountingPlan, tables: dict[Any, CellSums]
) -> Iterator[Cells]:
    """Add rows to one of the tables, or yield their cells if a table would be too large."""
    K = max(plan.grid.n_columns, 2)
    device = batch.forecasts.device
    codes = _encode(batch.labels, classes, K)
    step = TENSOR_SLICE
    most = DENSE
    name = (plan, device, batch.weights is None)
    if device.type == "cuda":
        memory = torch.cuda.get_device_properties(device).total_memory
        # Room for about a hundred temporary columns, and for tables in an eighth of the memory.
        step = max(TENSOR_SLICE // 16, min(memory // 1024, 2**28 // K))
        most = memory // 8
    space = 0 if plan.grid.exact else prod(plan.sizes)
    fits = 0 < space * K < 2**31 and 8 * (3 * K + 1) * space <= most
    if fits and name not in tables:
        tables[name] = CellSums(space, K, batch)
    fix = "expected finite logits, or probabilities that sum to one"
    for start in range(0, len(codes), step):
        rows = slice(start, start + step)
        part = TensorBatch(*(None if tensor is None else tensor[rows] for tensor in batch))
        refuse = partial(_refuse, "P", values=part.forecasts, fix=fix, start=start)
        if fits:
            number, *P = _number(plan, part)
            if number.is_floating_point():
                refuse(number < 0)
            tables[name].add(number.to(torch.int32), codes[rows], P, part.weights)
            continue
        good, X, placed = plan.place(*_vectors(part))
        refuse(~good.array[:, 0])
        group, first = _group(list(placed.array.T))
        table = CellSums(len(first), K, part)
        table.add(group, codes[rows], X.array.T, part.weights)
        yield table.cells(plan, placed.array[first].cpu().numpy())


def _number(plan: CountingPlan, batch: TensorBatch) -> list[Any]:
    """Columns of `CountingPlan.number`, in integers if all rows are clean probabilities."""
    if batch.key is None and plan.grid.top is None and plan.kind.unit == "probability":
        P = batch.forecasts.T.contiguous()
        if (number := number_clean(plan, P)) is not None:
            return [number, *P]
    return list(plan.number(*_vectors(batch)).array.T)


def number_clean(plan: CountingPlan, P: Any) -> Any:
    """First column of `CountingPlan.number` for probabilities, or None if some are not clean.

    It takes fewer passes over the memory: hashes are 64-bit integers, so that all limbs need one
    remainder, and factors that are powers of two are applied where they are free.
    """
    N = int(plan.grid.resolution)
    n_folds = plan.n_folds
    roots = root(P)
    weights = (mixing_weights(len(P)) * float(LIMB)).tolist()
    scaled = roots[0] * weights[0]
    for column, weight in zip(roots[1:], weights[1:], strict=True):
        scaled += column * weight
    low, high = (float(bound) for bound in P.sum(0).aminmax())
    slack = 0.9 * SUM_EXACT  # the order of the terms of a sum changes its last digits
    sums_fit = high <= 1 if len(P) == 1 else 1 - slack <= low and high <= 1 + slack
    if not (sums_fit and float(scaled.amin()) >= 0):  # the root of a negative number is NaN
        return None
    # (((FACTOR + l0) FACTOR + l1) FACTOR + l2) FACTOR, with the limb l0 of the whole part and the
    # limbs l1 and l2 of the fraction.
    one, two, three, four = (pow(FACTOR, power, PRIME) for power in (1, 2, 3, 4))
    state = scaled.long().mul_(three).add_(four)
    fraction = scaled.frac_().mul_(float(LIMB**2)).long()
    state.add_(fraction >> LIMB.bit_length() - 1, alpha=two)
    state.add_(fraction.bitwise_and_(LIMB - 1), alpha=one)
    number = state.remainder_(PRIME).int().remainder_(n_folds)
    if len(P) == 1:
        roots = torch.stack([root(1 - P[0]), roots[0]])
    for column in roots:
        number = column.mul_(N).int().add_(number, alpha=N + 1)
    if len(roots) > 2:
        rest = torch.clamp(1 - P.amax(0), min=0.0)
        number = root(root(rest)).mul_(N).int().add_(number, alpha=N + 1)
    return number


def _vectors(batch: TensorBatch) -> tuple[TorchOps, ArrayVector, ArrayVector | None]:
    """Operations, forecasts whose columns are contiguous in memory, and keys."""
    ops = TorchOps(batch.forecasts.device)
    key = None if batch.key is None else ops.vector(batch.key[:, None])
    return ops, ops.vector(batch.forecasts.T.contiguous().T), key


def _group(columns: list[Any]) -> tuple[Any, Any]:
    """Number of the combination in each row, and the first row of each combination."""
    distinct, group = torch.unique(_hash(columns), return_inverse=True)
    first = torch.empty(len(distinct), dtype=torch.int64, device=group.device)
    places = torch.arange(len(group), device=group.device)
    return group, first.scatter_reduce_(0, group, places, "amin", include_self=False)


def _hash(columns: list[Any]) -> Any:
    """A number for each combination, as `hash_keys` for arrays. Products wrap around."""
    total = torch.zeros(len(columns[-1]), dtype=torch.int64, device=columns[-1].device)
    for number, column in enumerate(columns, start=1):
        bits = column.to(torch.float64).contiguous().view(torch.int64)
        x = (bits + number * 0x1E3779B97F4A) * -0x61C8864680B583EB
        x = (x ^ ((x >> 29) & (2**35 - 1))) * -0x40A7B892E31B1A47
        total = total + (x ^ ((x >> 32) & (2**32 - 1)))
    return total
