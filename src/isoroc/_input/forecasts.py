"""Forecasts and scores as users pass them."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isoroc._backends import NUMPY
from isoroc._input.arrays import to_array
from isoroc._input.error import InputError, check_option
from isoroc._kinds import (
    PROBABILITIES,
    SECOND_PROBABILITY,
    Kind,
    Unit,
    columns_of,
    count_columns,
    kind_of,
    units_of,
)
from isoroc._simplex import Floats

Scores = Literal["auto"] | Unit

#: New scores in [0, 1] contradict those of `fit` if there are at least this many,
MANY_SCORES = 20
#: and the range of those of `fit` was at least this wide.
WIDE = 4.0


def check_forecasts(
    P: Any, *, name: str = "P", scores: Scores = "auto", advice: str = ""
) -> Floats:
    """Forecast array of probabilities, logits or scores.

    Logits become logarithms of probabilities. By default scores of two classes may be any numbers.
    """
    values = read_forecasts(P, name=name)
    any_number = values.ndim == 1 and scores == "auto"
    unit: Unit = "logit" if any_number else resolve_scores(values, scores)
    return clean(values, kind_of(count_columns(values), unit), name=name, advice=advice)


def clean(values: Floats, kind: Kind, *, name: str, advice: str = "") -> Floats:
    """A forecast array as formulas take it; raises at the first row that is not of the kind.

    `advice` is what to do with ``scores=``, such as "pass", for users of functions that have it.
    """
    if kind.is_clean(values):
        return values
    with np.errstate(all="ignore"):
        X, good = kind.clean(NUMPY, columns_of(values))
    if not good.all():
        row = int(np.argmin(good))
        problem, fix, unit = kind.fault(columns_of(values)[row])
        if unit == "logit" and kind is PROBABILITIES and (at := _odd_column(values)) is not None:
            fix = f"leave out column {at}, without which the rows sum to 1, if it is not a forecast"
        elif unit is not None and advice:
            fix += f'. For {unit}s {advice} scores="{unit}"'
        elif unit == "logit" and not kind.single:
            fix += ". For logits pass scipy.special.softmax(logits, axis=1)"
        raise InputError(name, row, problem, fix)
    return np.ascontiguousarray(X).reshape(values.shape)


def _odd_column(values: Floats) -> int | None:
    """The only column without which all rows are probabilities."""
    columns = np.arange(values.shape[1])
    found = [k for k in columns if valid_rows(values[:, columns != k], PROBABILITIES).all()]
    return int(found[0]) if len(found) == 1 and len(columns) > 2 else None


def valid_rows(values: Floats, kind: Kind) -> NDArray[np.bool_]:
    """Which rows of a forecast array, NaN where a number is missing, are of a kind."""
    with np.errstate(all="ignore"):
        _, good = kind.clean(NUMPY, columns_of(values))
    return np.asarray(good[:, 0])


def first_improbable(scores: Floats) -> int | None:
    """Row of the first score outside [0, 1] by more than rounding; None if there is none."""
    if SECOND_PROBABILITY.is_clean(scores):
        return None
    good = valid_rows(scores, SECOND_PROBABILITY)
    return None if good.all() else int(np.argmin(good))


def read_forecasts(P: Any, *, name: str, n_columns: int | None = None) -> Floats:
    """Numbers of shape (n, K), or of shape (n,) if there is one column; not yet clean."""
    raw = to_array(P, name=name)
    if np.iscomplexobj(raw):
        raise InputError(name, None, "Complex data not supported", "forecasts are real numbers")
    try:
        values = np.ascontiguousarray(raw, dtype=np.float64)
    except (TypeError, ValueError) as error:
        fix = "if they are the labels, the two arguments are swapped"
        raise InputError(name, None, f"forecasts must be numbers ({error})", fix) from error
    values = values.reshape(raw.shape)  # ascontiguousarray makes a vector of a single number
    if values.ndim not in (1, 2):
        fix = "expected a 2-D array of probabilities or a 1-D array of scores"
        raise InputError(name, None, f"{values.ndim} dimensions", fix)
    if len(values) == 0:
        raise InputError(name, None, f"no rows (shape {values.shape})", "at least one is needed")
    if (found := count_columns(values)) == 0:
        problem = f"0 feature(s) (shape={values.shape}) while a minimum of 1 is required"
        raise InputError(name, None, problem)
    if n_columns not in (None, found):
        counts = (f"{n} columns" if n != 1 else "one column of scores" for n in (found, n_columns))
        problem = "has {}, but the calibrator was fitted to {}".format(*counts)
        raise InputError(name, None, problem, "pass forecasts of the same kind as in fit")
    return values.reshape(-1) if found == 1 else values


def check_new(P: Any, kind: Kind, n_columns: int, summary: dict[str, Any]) -> Floats:
    """Forecast array of new rows for a map that was fitted to others, which are summarised."""
    values = read_forecasts(P, name="P", n_columns=n_columns)
    match summary.get("range"):
        case [int() | float() as low, int() | float() as high]:
            warn_if_probabilities(values, kind, (low, high))
        case _:
            warn_if_probabilities(values, kind)
    return clean(values, kind, name="P", advice="fit with")


def warn_if_probabilities(
    values: Floats, kind: Kind, fitted: tuple[float, float] = (0.0, 1.0), *, name: str = "P"
) -> None:
    """Warn if forecasts of another unit look like probabilities.

    Columns do if all rows are on the simplex, scores if many lie in [0, 1] where those of `fit`,
    between the ends `fitted`, did not.
    """
    if kind.unit in ("probability", "proportion"):
        return
    if kind.single:
        low, high = fitted
        is_odd = len(values) >= MANY_SCORES and high - low >= WIDE
        is_odd = is_odd and values.min() >= 0 and values.max() <= 1
        why = f"lie between 0 and 1, but those of fit between {low:.6g} and {high:.6g}"
    else:
        parts = values[:1], values  # the first row settles it for most logits
        is_odd = all(valid_rows(part, PROBABILITIES).all() for part in parts)
        why = "are probabilities that sum to one in each row"
    if is_odd:
        message = f'{name}: forecasts are read as scores="{kind.unit}", but these {why}; new '
        message += "forecasts must be in the unit of those of fit."
        warnings.warn(message, UserWarning, stacklevel=4)


def resolve_scores(forecasts: Floats, scores: Scores) -> Unit:
    """What forecasts are, where the user left it open."""
    check_option("scores", scores, ("auto", *units_of(count_columns(forecasts))))
    if scores != "auto":
        return scores
    is_unit = forecasts.ndim == 2 or first_improbable(forecasts) is None
    return "probability" if is_unit else "logit"
