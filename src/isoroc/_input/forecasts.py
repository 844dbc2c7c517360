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
from isoroc._kinds import RANGE_TOLERANCE, SUM_EXACT, SUM_TOLERANCE, Kind, columns_of
from isoroc._simplex import Floats
from isoroc._special import log_softmax

Scores = Literal["auto", "probability", "logit"]

#: Scores read as log odds of which at least this share lies in [0, 1] are in doubt,
DOUBTFUL_SHARE = 0.9
#: if there are at least this many.
DOUBTFUL_ROWS = 20


def check_forecasts(
    P: Any,
    *,
    name: str = "P",
    scores: Scores = "auto",
    unit: bool = False,
    n_columns: int | None = None,
) -> Floats:
    """Forecast array of what the user passed.

    Parameters
    ----------
    P : array-like, dataframe or series
        Probabilities or logits of shape (n, K), K >= 2; or, for two classes, n real scores that
        increase with the probability of the second class, of shape (n,) or (n, 1).
    name : str
        What error messages call it.
    scores : {"auto", "probability", "logit"}, default="auto"
        What the numbers are. Logits of shape (n, K) are returned as logarithms of probabilities.
    unit : bool, default=False
        Whether scores are refused that are outside [0, 1] by more than rounding, and clipped
        otherwise. Columns of probabilities always are.
    n_columns : int, default=None
        Number of columns that the calibrator was fitted to.

    Examples
    --------
    >>> check_forecasts([[0.25, 0.75], [0.5, 0.5]])
    array([[0.25, 0.75],
           [0.5 , 0.5 ]])
    >>> check_forecasts([[0.0, 0.0, 1000.0]], scores="logit")
    array([[-1000., -1000.,     0.]])
    >>> check_forecasts([[0.2, 0.9]])
    Traceback (most recent call last):
    ...
    isoroc._input.error.InputError: P: row 0 sums to 1.1, not to 1; each row must hold the
    probabilities of all classes. For logits pass scores="logit", for scores of two classes one
    1-D array.
    """
    values = _numbers(P, name)
    _check_shape(values, name, n_columns)
    if values.ndim == 1 or values.shape[1] == 1:
        return _check_scores(values.reshape(-1), name, unit=unit or scores == "probability")
    if scores == "logit":
        finite = np.isfinite(values).all(axis=1)
        if not finite.all():
            row = int(np.argmin(finite))
            wrong = values[row][~np.isfinite(values[row])][0]
            raise InputError(name, row, f"holds {name_of(wrong)}", "logits are finite")
        return log_softmax(values)
    return _check_probabilities(values, name)


def valid_rows(values: Floats, kind: Kind) -> NDArray[np.bool_]:
    """Which rows are forecasts of a kind: those that `check_forecasts` accepts.

    Parameters
    ----------
    values : ndarray of shape (n, K) or (n,)
        Numbers, NaN where one is missing.
    kind : Kind
        What they are.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc._kinds import PROBABILITIES
    >>> valid_rows(np.array([[0.25, 0.75], [np.nan, 0.5], [0.5, 0.6]]), PROBABILITIES)
    array([ True, False, False])
    """
    with np.errstate(all="ignore"):
        _, good = kind.clean(NUMPY, columns_of(values))
    return np.asarray(good[:, 0])


def _numbers(P: Any, name: str) -> Floats:
    raw = to_array(P, name=name)
    if np.iscomplexobj(raw):
        raise InputError(name, None, "Complex data not supported", "forecasts are real numbers")
    try:
        values = np.ascontiguousarray(raw, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(name, None, f"forecasts must be numbers ({error})") from error
    # ascontiguousarray makes a vector of a single number
    return values if raw.ndim else values.reshape(())


def _check_shape(values: Floats, name: str, n_columns: int | None) -> None:
    if values.ndim not in (1, 2):
        fix = "expected a 2-D array of probabilities or a 1-D array of scores"
        raise InputError(name, None, f"{values.ndim} dimensions", fix)
    if values.shape[0] == 0:
        raise InputError(name, None, f"no rows (shape {values.shape})", "at least one is needed")
    found = 1 if values.ndim == 1 else values.shape[1]
    if found == 0:
        raise InputError(
            name, None, f"0 feature(s) (shape={values.shape}) while a minimum of 1 is required"
        )
    if n_columns is not None and found != n_columns:
        have = "one column of scores" if found == 1 else f"{found} columns"
        fitted = "one column of scores" if n_columns == 1 else f"{n_columns} columns"
        problem = f"has {have}, but the calibrator was fitted to {fitted}"
        raise InputError(name, None, problem, "pass forecasts of the same kind as in fit")


def resolve_scores(
    forecasts: Floats, scores: Scores, *, name: str = "P", warn: bool = False
) -> Any:
    """What a forecast array holds, "probability" or "logit", where the user left it open.

    Parameters
    ----------
    forecasts : forecast array
    scores : {"auto", "probability", "logit"}
        What the user said.
    name : str
        What messages call the forecasts.
    warn : bool, default=False
        Whether to warn where the answer is in doubt.

    Examples
    --------
    >>> import numpy as np
    >>> resolve_scores(np.array([0.2, 1.0]), "auto"), resolve_scores(np.array([0.2, 1.1]), "auto")
    ('probability', 'logit')
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
    """Row of the first score outside [0, 1] by more than rounding; None if there is none.

    Examples
    --------
    >>> import numpy as np
    >>> first_improbable(np.array([0.2, 1.0 + 1e-9])), first_improbable(np.array([0.2, 1.1]))
    (None, 1)
    """
    low, high = -RANGE_TOLERANCE, 1 + RANGE_TOLERANCE
    if scores.min() >= low and scores.max() <= high:
        return None
    return int(np.argmax((scores < low) | (scores > high)))


def _check_scores(scores: Floats, name: str, *, unit: bool) -> Floats:
    # The sum is finite unless an entry is not, or unless it overflows: then look closely.
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(scores.sum())
    if suspicious and not (finite := np.isfinite(scores)).all():
        row = int(np.argmin(finite))
        raise InputError(name, row, f"is {name_of(scores[row])}", "scores must be finite")
    if not unit:
        return scores
    if (row_outside := first_improbable(scores)) is not None:
        problem = f"is {scores[row_outside]:.6g}, but scores are probabilities here"
        fix = 'pass scores between 0 and 1, or fit to log odds with scores="logit"'
        raise InputError(name, row_outside, problem, fix)
    return np.asarray(scores.clip(0.0, 1.0)) if scores.min() < 0 or scores.max() > 1 else scores


def _check_probabilities(P: Floats, name: str) -> Floats:
    row, loose = check_rows(P, SUM_TOLERANCE, SUM_EXACT, RANGE_TOLERANCE)
    if row >= 0:
        raise _improbable_row(P[row], row, name)
    if loose:
        P = P.clip(min=0.0)
        totals = P.sum(axis=1, keepdims=True)
        P = np.where(np.abs(totals - 1) > SUM_EXACT, P / totals, P)
    return P


def _improbable_row(entries: Floats, row: int, name: str) -> InputError:
    """What is wrong with a row that is not a forecast."""
    # Functions that call their forecasts P take the argument `scores`.
    logits = 'pass scores="logit"' if name == "P" else "pass scipy.special.softmax(logits, axis=1)"
    scores = f"For logits {logits}, for scores of two classes one 1-D array"
    if not np.isfinite(entries).all():
        value = entries[~np.isfinite(entries)][0]
        fix = "probabilities must be finite. Drop or impute such rows first"
        return InputError(name, row, f"holds {name_of(value)}", fix)
    if (entries < 0).any():
        fix = f"Negative values in data passed as probabilities. {scores}"
        return InputError(name, row, f"holds {entries.min():.6g}", fix)
    fix = f"each row must hold the probabilities of all classes. {scores}"
    with np.errstate(over="ignore"):
        total = entries.sum()
    return InputError(name, row, f"sums to {total:.6g}, not to 1", fix)


def name_of(value: float) -> str:
    """What messages call a number that is not finite."""
    return "NaN" if np.isnan(value) else "infinity"
