"""Forecasts and scores as users pass them."""

from __future__ import annotations

from typing import Any

import numpy as np

from isoroc._core.rows import check_rows
from isoroc._input.arrays import to_array
from isoroc._input.error import InputError
from isoroc._simplex import Floats

#: Rows whose sum is off by more than this are refused, closer ones are normalised,
SUM_TOLERANCE = 1e-3
#: and rows closer than this are taken as they are: dividing them would only add rounding.
SUM_EXACT = 1e-12


def check_forecasts(P: Any, *, name: str = "P") -> Floats:
    """Forecast array of what the user passed.

    Parameters
    ----------
    P : array-like, dataframe or series
        Probabilities of shape (n, K), K >= 2; or, for two classes, n real scores that increase
        with the probability of the second class, of shape (n,) or (n, 1).
    name : str
        What error messages call it.

    Examples
    --------
    >>> check_forecasts([[0.25, 0.75], [0.5, 0.5]])
    array([[0.25, 0.75],
           [0.5 , 0.5 ]])
    >>> check_forecasts([[0.2, 0.9]])
    Traceback (most recent call last):
    ...
    isoroc._input.error.InputError: P: row 0 sums to 1.1, not to 1; each row must hold the
    probabilities of all classes. For scores or logits of two classes pass one 1-D array.
    """
    raw = to_array(P, name=name)
    if np.iscomplexobj(raw):
        raise InputError(name, None, "Complex data not supported", "forecasts are real numbers")
    try:
        values = np.ascontiguousarray(raw, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(name, None, f"forecasts must be numbers ({error})") from error
    if raw.ndim not in (1, 2):
        raise InputError(
            name,
            None,
            f"{raw.ndim} dimensions",
            "expected a 2-D array of probabilities or a 1-D array of scores",
        )
    if values.shape[0] == 0:
        raise InputError(name, None, f"no rows (shape {values.shape})", "at least one is needed")
    if values.ndim == 2 and values.shape[1] == 0:
        raise InputError(
            name, None, f"0 feature(s) (shape={values.shape}) while a minimum of 1 is required"
        )
    if values.ndim == 1 or values.shape[1] == 1:
        return _check_scores(values.reshape(-1), name)
    return _check_probabilities(values, name)


def first_improbable(scores: Floats) -> int | None:
    """Row of the first score outside [0, 1]; None if all of them may be probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> first_improbable(np.array([0.2, 1.0])), first_improbable(np.array([0.2, 1.1]))
    (None, 1)
    """
    if scores.min() >= 0 and scores.max() <= 1:
        return None
    return int(np.argmax((scores < 0) | (scores > 1)))


def _check_scores(scores: Floats, name: str) -> Floats:
    # The sum is finite unless an entry is not, or unless it overflows: then look closely.
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(scores.sum())
    if suspicious and not (finite := np.isfinite(scores)).all():
        row = int(np.argmin(finite))
        raise InputError(name, row, f"is {name_of(scores[row])}", "scores must be finite")
    return scores


def _check_probabilities(P: Floats, name: str) -> Floats:
    row, loose = check_rows(P, SUM_TOLERANCE, SUM_EXACT)
    if row >= 0:
        raise _improbable_row(P[row], row, name)
    if loose:
        totals = P.sum(axis=1, keepdims=True)
        P = np.where(np.abs(totals - 1) > SUM_EXACT, P / totals, P)
    return P


def _improbable_row(entries: Floats, row: int, name: str) -> InputError:
    """What is wrong with a row that is not a forecast."""
    scores = "For scores or logits of two classes pass one 1-D array"
    if not np.isfinite(entries).all():
        value = entries[~np.isfinite(entries)][0]
        fix = "probabilities must be finite. Drop or impute such rows first"
        return InputError(name, row, f"holds {name_of(value)}", fix)
    if (entries < 0).any():
        fix = f"Negative values in data passed as probabilities. {scores}"
        return InputError(name, row, f"holds {entries.min():.6g}", fix)
    fix = f"each row must hold the probabilities of all classes. {scores}"
    return InputError(name, row, f"sums to {entries.sum():.6g}, not to 1", fix)


def name_of(value: float) -> str:
    return "NaN" if np.isnan(value) else "infinity"
