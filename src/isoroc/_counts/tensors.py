"""Counts of tensors of torch, on the device where they are: only cells come to the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoroc._counts.cells import Cells
from isoroc._counts.grid import Grid, cells, fold
from isoroc._input import WEIGHT_FIX, InputError, Scores, check_length, check_option, valid_weights
from isoroc._kinds import kind_of, units_of

try:
    import torch

    from isoroc._backends.torch import TorchOps, TorchVector
except ImportError as error:
    raise ImportError("counts of tensors need torch: pip install torch") from error

#: Rows that are counted at a time, where the memory of the device is not known.
SLICE = 2**24
#: Longest table of all numbers of cells.
DENSE = 2**25
_ODD = (-0x61C8864680B583EB, -0x40A7B892E31B1A47)


class Batch(NamedTuple):
    """Checked tensors of one device."""

    forecasts: Any
    """Probabilities of each class, or of the second of two; columns are contiguous in memory."""
    labels: Any
    weights: Any
    key: Any


def check_batch(P: Any, y: Any, weight: Any, key: Any, scores: Scores) -> Batch:
    """Tensors as probabilities; refuses rows that `predict_proba` would refuse."""
    forecasts = P.detach().to(torch.float64).reshape(len(P), -1)
    device = forecasts.device
    if not len(forecasts):
        raise InputError("P", None, "no rows", "at least one is needed")
    ops, X = TorchOps(device), TorchVector(forecasts.T.contiguous().T)
    check_option("scores", scores, ("auto", *units_of(forecasts.shape[1])))
    kind = kind_of(forecasts.shape[1], "probability" if scores == "auto" else scores)
    X, valid = kind.clean(ops, X)
    fix = "expected finite logits, or probabilities that sum to one"
    _refuse("P", ~valid.tensor[:, 0], P, fix)
    labels = torch.as_tensor(y, device=device)
    check_length(labels, len(forecasts), name="y")
    weights = None
    if weight is not None:
        weights = torch.as_tensor(weight, device=device, dtype=torch.float64)
        good = valid_weights(ops, TorchVector(weights[:, None])).tensor[:, 0]
        _refuse("sample_weight", ~good, weights, WEIGHT_FIX)
    if key is not None:
        key = torch.as_tensor(key, device=device)
        if key.is_floating_point():
            raise InputError("fold_by", None, "has no integers", "expected whole numbers")
        key = key.to(torch.float64)
    return Batch(kind.on_simplex(ops, X).tensor, labels, weights, key)


def _refuse(argument: str, bad: Any, values: Any, fix: str) -> None:
    if bool(bad.any()):
        row = int(bad.to(torch.uint8).argmax())
        raise InputError(argument, row, f"is {values[row].tolist()}", fix)


def encode(labels: Any, classes: NDArray[Any], n_classes: int) -> Any:
    """Column of each label."""
    if len(classes) != n_classes:
        fix = f"expected {n_classes}, one for each column"
        raise InputError("labels", None, f"{len(classes)} entries", fix)
    if classes.dtype.kind not in "biuf":
        fix = "tensors hold numbers; pass labels= as numbers"
        raise InputError("labels", None, "are not numbers", fix)
    known, order = torch.sort(torch.as_tensor(classes, device=labels.device))
    wide = labels.to(known.dtype) if known.dtype != torch.bool else labels.to(torch.uint8)
    if known.dtype == torch.bool:
        known = known.to(torch.uint8)
    place = torch.searchsorted(known, wide.contiguous()).clamp(max=n_classes - 1)
    _refuse("y", known[place] != wide, labels, f"known are {classes.tolist()}; pass labels=")
    return order[place]


def count(batch: Batch, codes: Any, grid: Grid, n_folds: int, n_classes: int) -> Iterator[Cells]:
    """Cells of the rows, some at a time."""
    step = _rows_at_a_time(codes.device)
    for start in range(0, len(codes), step):
        rows = slice(start, start + step)
        part = Batch(*(None if tensor is None else tensor[rows] for tensor in batch))
        yield _count(part, codes[rows], grid, n_folds, n_classes)


def _rows_at_a_time(device: Any) -> int:
    """As many rows as leave memory for about a hundred temporary columns."""
    if device.type != "cuda":
        return SLICE
    total: int = torch.cuda.get_device_properties(device).total_memory
    return max(SLICE // 16, min(total // 1024, 2**27))


def _count(batch: Batch, codes: Any, grid: Grid, n_folds: int, n_classes: int) -> Cells:
    ops, X = TorchOps(codes.device), TorchVector(batch.forecasts)
    key = None if batch.key is None else TorchVector(batch.key[:, None])
    folds = fold(ops, X, n_folds, key).tensor[:, 0].to(torch.int64)
    coordinates = list(cells(ops, X, grid).tensor.T)
    if grid.exact:
        group, keys, folds = _group_exact(coordinates, folds)
    else:
        group, combinations = _group([*(c.to(torch.int64) for c in coordinates), folds])
        keys, folds = combinations[:, :-1].to(torch.int32), combinations[:, -1]
    del coordinates
    m = len(keys)
    columns, weights = list(batch.forecasts.T), batch.weights
    place, squares = group * n_classes + codes, None if weights is None else weights**2
    class_weights = torch.bincount(place, weights, m * n_classes)
    of_squares = class_weights if weights is None else torch.bincount(place, squares, m * n_classes)
    scaled = columns if weights is None else [column * weights for column in columns]
    sums = [torch.bincount(group, column, m) for column in scaled]
    # Rows without weights are counted already.
    rows = (
        class_weights.reshape(m, -1).sum(1) if weights is None else torch.bincount(group, None, m)
    )
    counted = Cells(
        keys.cpu().numpy(),
        folds.cpu().numpy(),
        rows.cpu().numpy(),
        class_weights.reshape(m, n_classes).to(torch.float64).cpu().numpy(),
        torch.stack(sums, dim=1).cpu().numpy(),
        of_squares.reshape(m, n_classes).to(torch.float64).cpu().numpy(),
    )
    if weights is None:
        return counted
    return counted.take(np.flatnonzero(counted.class_weights.sum(axis=1)))


def _group(columns: list[Any]) -> tuple[Any, Any]:
    """Number of the combination of integers in each row, and the combinations, one per row.

    Integers are the digits of a number. As soon as a table of all numbers would be too long, those
    that occur are numbered anew, so nothing is ever sorted unless a single step needs it.
    """
    device = columns[0].device
    found = torch.zeros((1, 0), dtype=torch.int64, device=device)  # combinations numbered so far
    number, space = torch.zeros_like(columns[0]), 1
    digits: list[int] = []  # sizes of the columns that came after them
    sizes = torch.stack([column.max() for column in columns]).add(1).tolist()
    for column, size in zip(columns, sizes, strict=True):
        if space > 1 and space * size > DENSE:
            number, found = _number_anew(number, space, found, digits)
            space, digits = len(found), []
        number = number * size + column
        space *= size
        digits.append(size)
    return _number_anew(number, space, found, digits)


def _number_anew(number: Any, space: int, found: Any, digits: list[int]) -> tuple[Any, Any]:
    """Numbers without gaps, and the combination that each stands for."""
    if space <= DENSE:
        occurs = torch.zeros(space, dtype=torch.bool, device=number.device)
        occurs[number] = True
        distinct = occurs.nonzero()[:, 0]
        anew = (torch.cumsum(occurs, 0, dtype=torch.int32) - 1)[number].to(torch.int64)
    else:
        distinct, anew = torch.unique(number, return_inverse=True)
    columns = []
    for size in reversed(digits):
        columns.append(distinct % size)
        distinct = torch.div(distinct, size, rounding_mode="floor")
    added = [column[:, None] for column in reversed(columns)]
    return anew, torch.cat([found[distinct], *added], dim=1)


def _group_exact(columns: list[Any], fold: Any) -> tuple[Any, Any, Any]:
    """Number of the forecast and fold of each row, and these forecasts and folds."""
    distinct, group = torch.unique(_hash([*columns, fold]), return_inverse=True)
    places = torch.arange(len(fold), device=fold.device)
    first = torch.empty(len(distinct), dtype=torch.int64, device=fold.device)
    first.scatter_reduce_(0, group, places, "amin", include_self=False)
    return group, torch.stack([column[first] for column in columns], dim=1), fold[first]


def _hash(columns: list[Any]) -> Any:
    """A number for each combination, as `hash_keys` of arrays; products wrap around."""
    total = torch.zeros(len(columns[-1]), dtype=torch.int64, device=columns[-1].device)
    for number, column in enumerate(columns, start=1):
        bits = column.to(torch.float64).contiguous().view(torch.int64)
        x = (bits + number * 0x1E3779B97F4A) * _ODD[0]
        x = (x ^ ((x >> 29) & (2**35 - 1))) * _ODD[1]
        total = total + (x ^ ((x >> 32) & (2**32 - 1)))
    return total
