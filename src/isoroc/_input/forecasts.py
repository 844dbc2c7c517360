"""Forecasts and scores as users pass them."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isoroc._backends import NUMPY
from isoroc._core.rows import check_rows
from isoroc._input.arrays import to_array
from isoroc._input.error import InputError
from isoroc._kinds import (
    PROBABILITIES,
    RANGE_TOLERANCE,
    SUM_EXACT,
    SUM_TOLERANCE,
    Kind,
    columns_of,
    count_columns,
    kind_of,
)
from isoroc._simplex import Floats

Scores = Literal["auto", "probability", "logit"]

#: Scores read as log odds of which at least this share lies in [0, 1] are in doubt,
DOUBTFUL_SHARE = 0.9
#: if there are at least this many.
DOUBTFUL_ROWS = 20


def check_forecasts(
    P: Any, *, name: str = "P", scores: Scores = "auto", n_columns: int | None = None
) -> Floats:
    """Forecast array of probabilities, logits or scores, perhaps with as many columns as in `fit`.

    Logits become logarithms of probabilities. By default scores of two classes may be any numbers.
    """
    values = read_forecasts(P, name=name, n_columns=n_columns)
    if scores == "auto":
        scores = "logit" if values.ndim == 1 else "probability"
    return clean(values, kind_of(count_columns(values), scores), name=name)


def clean(values: Floats, kind: Kind, *, name: str) -> Floats:
    """A forecast array as formulas take it; raises at the first row that is not of the kind."""
    if kind.single:
        low, high = kind.span
        if values.min() >= low and values.max() <= high:
            return values
    if kind is PROBABILITIES:
        row, loose = check_rows(values, SUM_TOLERANCE, SUM_EXACT, RANGE_TOLERANCE)
        if row < 0 and not loose:
            return values
    with np.errstate(all="ignore"):
        X, good = kind.clean(NUMPY, columns_of(values))
    if not good.all():
        row = int(np.argmin(good))
        problem, fix = kind.fault(columns_of(values)[row])
        if name != "P":  # only functions that call their forecasts P have the argument `scores`
            fix = fix.replace('scores="logit"', "scipy.special.softmax(logits, axis=1)")
        raise InputError(name, row, problem, fix)
    return np.ascontiguousarray(X).reshape(values.shape)


def valid_rows(values: Floats, kind: Kind) -> NDArray[np.bool_]:
    """Which rows of a forecast array, NaN where a number is missing, are of a kind."""
    with np.errstate(all="ignore"):
        _, good = kind.clean(NUMPY, columns_of(values))
    return np.asarray(good[:, 0])


def read_forecasts(P: Any, *, name: str, n_columns: int | None = None) -> Floats:
    """Numbers of shape (n, K), or of shape (n,) if there is one column; not yet clean."""
    raw = to_array(P, name=name)
    if np.iscomplexobj(raw):
        raise InputError(name, None, "Complex data not supported", "forecasts are real numbers")
    try:
        values = np.ascontiguousarray(raw, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(name, None, f"forecasts must be numbers ({error})") from error
    values = values.reshape(raw.shape)  # ascontiguousarray makes a vector of a single number
    _check_shape(values, name, n_columns)
    return values.reshape(-1) if values.size == len(values) else values


def _check_shape(values: Floats, name: str, n_columns: int | None) -> None:
    if values.ndim not in (1, 2):
        fix = "expected a 2-D array of probabilities or a 1-D array of scores"
        raise InputError(name, None, f"{values.ndim} dimensions", fix)
    if values.shape[0] == 0:
        raise InputError(name, None, f"no rows (shape {values.shape})", "at least one is needed")
    found = count_columns(values)
    if found == 0:
        problem = f"0 feature(s) (shape={values.shape}) while a minimum of 1 is required"
        raise InputError(name, None, problem)
    if n_columns is not None and found != n_columns:
        have, fitted = (
            "one column of scores" if number == 1 else f"{number} columns"
            for number in (found, n_columns)
        )
        problem = f"has {have}, but the calibrator was fitted to {fitted}"
        raise InputError(name, None, problem, "pass forecasts of the same kind as in fit")


def resolve_scores(
    forecasts: Floats, scores: Scores, *, name: str = "P", warn: bool = False
) -> Any:
    """What a forecast array holds, "probability" or "logit", where the user left it open.

    With `warn` there is a warning where the answer is in doubt.
    """
    if scores != "auto":
        return scores
    if forecasts.ndim == 2 or (row := first_improbable(forecasts)) is None:
        return "probability"
    share = np.mean((forecasts >= 0) & (forecasts <= 1))
    if warn and len(forecasts) >= DOUBTFUL_ROWS and share >= DOUBTFUL_SHARE:
        warnings.warn(
            f"{name}: row {row} is {forecasts[row]:.6g}, so the scores are read as log odds, "
            f"although {share:.1%} of them lie between 0 and 1; say what they are with "
            'scores="logit" or scores="probability".',
            UserWarning,
            stacklevel=4,
        )
    return "logit"


def first_improbable(scores: Floats) -> int | None:
    """Row of the first score outside [0, 1] by more than rounding; None if there is none."""
    low, high = -RANGE_TOLERANCE, 1 + RANGE_TOLERANCE
    if scores.min() >= low and scores.max() <= high:
        return None
    return int(np.argmax((scores < low) | (scores > high)))
