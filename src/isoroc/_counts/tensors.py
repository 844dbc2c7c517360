"""Counts of tensors of torch, on the device where they are: only cells come to the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoroc._checks import check_row, check_score
from isoroc._counts.arrays import ArrayArithmetic
from isoroc._counts.cells import Cells
from isoroc._counts.grid import Grid, write_cells, write_fold, write_key_fold
from isoroc._input import InputError, Scores

try:
    import torch
except ImportError as error:
    raise ImportError("counts of tensors need torch: pip install 'isoroc[torch]'") from error

#: Rows that are counted at a time.
SLICE = 2**24
_ODD = (-0x61C8864680B583EB, -0x40A7B892E31B1A47)


class Batch(NamedTuple):
    """Checked tensors of one device."""

    forecasts: Any
    """(n, C) probabilities, or C = 1 column of scores."""
    labels: Any
    weights: Any
    key: Any


def check_batch(P: Any, y: Any, weight: Any, key: Any, scores: Scores) -> Batch:
    """Tensors as probabilities; refuses rows that `predict_proba` would refuse."""
    forecasts = P.detach().to(torch.float64)
    forecasts = forecasts.reshape(len(P), -1)
    device = forecasts.device
    if not len(forecasts):
        raise InputError("P", None, "no rows", "at least one is needed")
    n_columns = forecasts.shape[1]
    w = ArrayArithmetic(torch, device=device)
    if scores == "logit":
        good = torch.isfinite(forecasts).all(dim=1)
        forecasts = torch.sigmoid(forecasts) if n_columns == 1 else torch.softmax(forecasts, 1)
    elif n_columns == 1:
        [column], good = check_score(w, forecasts[:, 0], unit=True)
        forecasts = column[:, None]
    else:
        columns, good = check_row(w, list(forecasts.T))
        forecasts = torch.stack(columns, dim=1)
    _refuse("P", ~good, P, "expected finite logits, or probabilities that sum to one")
    labels = torch.as_tensor(y, device=device)
    if len(labels) != len(forecasts):
        problem = f"{len(labels)} rows, but P has {len(forecasts)}"
        raise InputError("y", None, problem, "they must agree")
    weights = None
    if weight is not None:
        weights = torch.as_tensor(weight, device=device, dtype=torch.float64)
        bad = ~((weights == 0) | ((weights >= 1e-100) & (weights <= 1e100)))
        _refuse("sample_weight", bad, weights, "weights must be 0 or between 1e-100 and 1e+100")
    if key is not None:
        key = torch.as_tensor(key, device=device)
        if key.is_floating_point():
            raise InputError("fold_by", None, "has no integers", "expected whole numbers")
        key = key.to(torch.float64)
    return Batch(forecasts, labels, weights, key)


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
    for start in range(0, len(codes), SLICE):
        rows = slice(start, start + SLICE)
        part = Batch(*(None if tensor is None else tensor[rows] for tensor in batch))
        yield _count(part, codes[rows], grid, n_folds, n_classes)


def _count(batch: Batch, codes: Any, grid: Grid, n_folds: int, n_classes: int) -> Cells:
    P = batch.forecasts
    w = ArrayArithmetic(torch, device=P.device)
    columns = list(P.T)
    keys = write_cells(w, columns, grid)
    if n_folds == 1:
        fold = torch.zeros_like(codes)
    elif batch.key is not None:
        fold = write_key_fold(w, batch.key, n_folds).to(torch.int64)
    else:
        fold = write_fold(w, columns, n_folds).to(torch.int64)
    distinct, group = torch.unique(_hash([*keys, fold]), return_inverse=True)
    m = len(distinct)
    places = torch.arange(len(codes), device=P.device)
    first = torch.empty(m, dtype=torch.int64, device=P.device)
    first.scatter_reduce_(0, group, places, "amin", include_self=False)
    weights = batch.weights
    class_weights = torch.bincount(group * n_classes + codes, weights, m * n_classes)
    scaled = columns if weights is None else [column * weights for column in columns]
    sums = [torch.bincount(group, column, m) for column in scaled]
    cells = torch.stack([key[first] for key in keys], dim=1).cpu().numpy()
    found = Cells(
        cells if grid.exact else cells.astype(np.int32),
        fold[first].cpu().numpy(),
        torch.bincount(group, minlength=m).cpu().numpy(),
        class_weights.reshape(m, n_classes).to(torch.float64).cpu().numpy(),
        torch.stack(sums, dim=1).cpu().numpy(),
    )
    if weights is None:
        return found
    return found.take(np.flatnonzero(found.class_weights.sum(axis=1)))


def _hash(columns: list[Any]) -> Any:
    """A number for each combination, as `hash_keys` of arrays; products wrap around."""
    total = torch.zeros(len(columns[-1]), dtype=torch.int64, device=columns[-1].device)
    for number, column in enumerate(columns, start=1):
        bits = column.to(torch.float64).contiguous().view(torch.int64)
        x = (bits + number * 0x1E3779B97F4A) * _ODD[0]
        x = (x ^ ((x >> 29) & (2**35 - 1))) * _ODD[1]
        total = total + (x ^ ((x >> 32) & (2**32 - 1)))
    return total
