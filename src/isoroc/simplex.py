"""Forecasts, thresholds and regions, and the one place where input is validated.

Inside the package a *forecast array* is either a C-contiguous float64 matrix of shape (n, K) whose
rows lie on the simplex or, for K = 2, a float64 vector of n scores: the second column of such a
matrix or any other real score that orders the rows. Everything here that reads forecasts returns
or takes that form.
"""

from __future__ import annotations

import numbers
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from isoroc import _kernels

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

#: Rows whose sum is off by more than this are refused, closer ones are normalised,
SUM_TOLERANCE = 1e-3
#: and rows closer than this are taken as they are: dividing them would only add rounding.
SUM_EXACT = 1e-12
#: Weights in this range can be summed and multiplied without over- or underflow.
WEIGHT_RANGE = (1e-100, 1e100)


def regions(forecasts: Floats, gamma: Floats) -> Ints:
    """Region of each forecast under the threshold gamma: the k with the largest p_k - gamma_k.

    The lowest k wins a tie. For K = 2 the rule reads ``p_1 > gamma_1``, the same thing in exact
    arithmetic, and no rounding of ``1 - p_1`` can blur it however small the scores are.

    Examples
    --------
    >>> import numpy as np
    >>> P = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.2, 0.2, 0.6]])
    >>> regions(P, np.array([0.5, 0.25, 0.25]))
    array([0, 1, 2])
    >>> regions(np.array([0.2, 0.7, 0.71]), np.array([0.3, 0.7]))
    array([0, 0, 1])
    """
    if len(gamma) == 2:
        return np.asarray(binary_scores(forecasts) > gamma[1], dtype=np.intp)
    return np.asarray(np.argmax(forecasts - gamma, axis=1))


def lattice(n_classes: int, steps: int) -> Floats:
    """All points of the simplex whose coordinates are multiples of 1/steps, in ascending order.

    Examples
    --------
    >>> lattice(2, 4)[:, 1]
    array([1.  , 0.75, 0.5 , 0.25, 0.  ])
    >>> lattice(3, 100).shape
    (5151, 3)
    """
    # Compositions of `steps` into K parts, built one coordinate at a time: each row so far is
    # repeated once for every value that its remainder still allows.
    parts = np.zeros((1, 0), dtype=np.intp)
    remainder = np.array([steps])
    for _ in range(n_classes - 1):
        repeats = remainder + 1
        first = np.repeat(np.cumsum(repeats) - repeats, repeats)
        value = np.arange(repeats.sum()) - first
        parts = np.column_stack([np.repeat(parts, repeats, axis=0), value])
        remainder = np.repeat(remainder, repeats) - value
    return np.column_stack([parts, remainder]) / steps


def midpoint(low: Floats, high: Floats) -> Floats:
    """Middle of each gap, rounded so that ``low <= middle < high`` wherever ``low < high``.

    Examples
    --------
    >>> import numpy as np
    >>> midpoint(np.array([0.25, 1.0]), np.array([0.75, np.nextafter(1.0, 2.0)]))
    array([0.5, 1. ])
    """
    with np.errstate(over="ignore"):
        middle = low + (high - low) / 2
    middle = np.where(np.isfinite(middle), middle, low / 2 + high / 2)
    return np.where(middle < high, middle, low)


def count_classes(forecasts: Floats) -> int:
    """K, the number of classes that a forecast array speaks of."""
    return 2 if forecasts.ndim == 1 else forecasts.shape[1]


def binary_scores(forecasts: Floats) -> Floats:
    """Scores of a forecast array with K = 2."""
    return forecasts if forecasts.ndim == 1 else np.ascontiguousarray(forecasts[:, 1])


def to_array(values: Any, *, name: str) -> NDArray[Any]:
    """NumPy array of anything array-like, or of any dataframe or series that narwhals reads."""
    if issparse(values):
        raise TypeError(
            f"{name}: sparse input is not supported; forecasts are dense, pass {name}.toarray()."
        )
    native = nw.from_native(values, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(native, nw.DataFrame | nw.Series):
        return np.asarray(native.to_numpy())
    return np.asarray(values)


def check_forecasts(P: Any, *, name: str = "P") -> Floats:
    """Forecast array of what the user passed, or a ValueError that names row and mend.

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
    ValueError: P: row 0 sums to 1.1, not to 1; each row must hold the probabilities of all
    classes. For scores or logits of two classes pass one 1-D array.
    """
    raw = to_array(P, name=name)
    if np.iscomplexobj(raw):
        raise ValueError(f"{name}: Complex data not supported; forecasts are real numbers.")
    try:
        values = np.ascontiguousarray(raw, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: forecasts must be numbers ({error}).") from error
    if raw.ndim not in (1, 2):
        raise ValueError(
            f"{name}: expected a 2-D array of probabilities or a 1-D array of scores, "
            f"got {raw.ndim} dimensions."
        )
    if values.shape[0] == 0:
        raise ValueError(f"{name}: no rows (shape {values.shape}); at least one row is needed.")
    if values.ndim == 2 and values.shape[1] == 0:
        raise ValueError(
            f"{name}: 0 feature(s) (shape={values.shape}) while a minimum of 1 is required."
        )
    if values.ndim == 1 or values.shape[1] == 1:
        return _check_scores(values.reshape(-1), name)
    return _check_probabilities(values, name)


def _check_scores(scores: Floats, name: str) -> Floats:
    # The sum is finite unless an entry is not, or unless it overflows: then look closely.
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(scores.sum())
    if suspicious and not (finite := np.isfinite(scores)).all():
        row = int(np.argmin(finite))
        raise ValueError(f"{name}: row {row} is {_name_of(scores[row])}; scores must be finite.")
    return scores


def _check_probabilities(P: Floats, name: str) -> Floats:
    row, loose = _kernels.check_rows(P, SUM_TOLERANCE, SUM_EXACT)
    if row >= 0:
        entries = P[row]
        if not np.isfinite(entries).all():
            value = entries[~np.isfinite(entries)][0]
            raise ValueError(
                f"{name}: row {row} holds {_name_of(value)}; probabilities must be finite. "
                "Drop or impute such rows first."
            )
        if (entries < 0).any():
            raise ValueError(
                f"{name}: row {row} holds {entries.min():.6g}; Negative values in data passed as "
                "probabilities. For scores or logits of two classes pass one 1-D array."
            )
        raise ValueError(
            f"{name}: row {row} sums to {entries.sum():.6g}, not to 1; each row must hold the "
            "probabilities of all classes. For scores or logits of two classes pass one 1-D array."
        )
    if loose:
        totals = P.sum(axis=1, keepdims=True)
        P = np.where(np.abs(totals - 1) > SUM_EXACT, P / totals, P)
    return P


def _name_of(value: float) -> str:
    return "NaN" if np.isnan(value) else "infinity"


def check_length(values: NDArray[Any], n_rows: int, *, name: str, of: str = "P") -> None:
    """Refuse values that do not have one entry for each of the n_rows rows of `of`."""
    if len(values) != n_rows:
        raise ValueError(f"{name} has {len(values)} rows, {of} has {n_rows}; they must agree.")


def encode_labels(
    y: Any, n_classes: int, *, labels: Any = None, name: str = "y"
) -> tuple[NDArray[Any], NDArray[np.unsignedinteger[Any]]]:
    """Classes in the order of the forecasts' columns, and the column of each label.

    Parameters
    ----------
    y : array-like or series
        Labels of any type that scikit-learn accepts.
    n_classes : int
        Number of columns of the forecasts.
    labels : array-like, default=None
        The class of each column. By default the sorted distinct labels; where `y` misses some
        class and holds integers below `n_classes`, those integers are the columns.
    name : str
        What error messages call it.

    Examples
    --------
    >>> encode_labels(["no", "yes", "no"], 2)
    (array(['no', 'yes'], dtype='<U3'), array([0, 1, 0], dtype=uint8))
    >>> encode_labels([0, 2, 2], 3)
    (array([0, 1, 2]), array([0, 2, 2], dtype=uint8))
    """
    values = column_or_1d(to_array(y, name=name), warn=True)
    _check_labels_are_classes(values, name)
    if labels is not None:
        return _encode_given(values, to_array(labels, name="labels"), n_classes, name)
    found, codes = _distinct(values)
    if len(found) == n_classes:
        return found, codes
    if len(found) > n_classes:
        raise ValueError(
            f"{name} has {len(found)} classes, the forecasts have {n_classes}; pass one column of "
            "probabilities for each class."
        )
    if values.dtype.kind in "iu" and found[0] >= 0 and found[-1] < n_classes:
        return np.arange(n_classes), values.astype(codes.dtype)
    if len(found) == 1:
        raise ValueError(f"{name} has one class only, {found[0]!r}; two or more are needed.")
    raise ValueError(
        f"{name} has {len(found)} of the {n_classes} classes of the forecasts, so which column is "
        f"which class cannot be told; pass integer labels 0 to {n_classes - 1}."
    )


def _check_labels_are_classes(values: NDArray[Any], name: str) -> None:
    if len(values) == 0:
        raise ValueError(f"{name}: no rows; at least one label is needed.")
    if values.dtype.kind == "f" and (bad := ~np.isfinite(values)).any():
        row = int(np.argmax(bad))
        raise ValueError(f"{name}: row {row} is {_name_of(values[row])}; labels must be known.")
    if values.dtype.kind == "O":
        missing = [row for row, label in enumerate(values) if label is None or label != label]  # noqa: PLR0124
        if missing:
            raise ValueError(
                f"{name}: row {missing[0]} is {values[missing[0]]}; labels must be known."
            )
    if values.dtype.kind not in "biuUS":
        check_classification_targets(values)


def _distinct(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.unsignedinteger[Any]]]:
    """Sorted distinct labels and the place of each label among them."""
    if values.dtype.kind in "biuf":
        # Two classes are the case that comes with many millions of rows: no sort.
        low, high = values.min(), values.max()
        is_high = values == high
        adjacent = values.dtype.kind in "biu" and int(high) - int(low) == 1
        if adjacent or (low < high and (is_high | (values == low)).all()):
            return np.array([low, high]), is_high.view(np.uint8)
    found, codes = np.unique(values, return_inverse=True)
    return found, codes.astype(np.min_scalar_type(len(found) - 1))


def _encode_given(
    values: NDArray[Any], classes: NDArray[Any], n_classes: int, name: str
) -> tuple[NDArray[Any], NDArray[np.unsignedinteger[Any]]]:
    if len(classes) != n_classes or len(np.unique(classes)) != n_classes:
        raise ValueError(
            f"labels: expected {n_classes} distinct classes, one for each column, "
            f"got {len(classes)}."
        )
    order = np.argsort(classes)
    place = np.searchsorted(classes, values, sorter=order).clip(max=n_classes - 1)
    codes = order[place]
    if (unseen := classes[codes] != values).any():
        row = int(np.argmax(unseen))
        raise ValueError(f"{name}: row {row} is {values[row]!r}, which is not among the labels.")
    return classes, codes.astype(np.min_scalar_type(n_classes - 1))


def check_two_classes(class_weights: Floats, classes: NDArray[Any], *, name: str = "y") -> None:
    """Refuse data in which fewer than two classes have weight."""
    if np.count_nonzero(class_weights) < 2:
        raise ValueError(
            f"{name} has one class only, {classes[class_weights.argmax()]!r} (rows of weight 0 do "
            "not count); two or more are needed."
        )


def check_weights(sample_weight: Any, n_rows: int, *, name: str = "sample_weight") -> Floats | None:
    """Weights as a float64 vector, or None where every row weighs the same.

    Examples
    --------
    >>> check_weights([1, 2, 0], 3)
    array([1., 2., 0.])
    >>> check_weights([1, -2, 0], 3)
    Traceback (most recent call last):
    ...
    ValueError: sample_weight: row 1 is -2; weights must be 0 or between 1e-100 and 1e+100.
    """
    if sample_weight is None:
        return None
    if isinstance(sample_weight, numbers.Real):
        return check_weights(np.full(n_rows, sample_weight), n_rows, name=name)
    weights = np.ascontiguousarray(to_array(sample_weight, name=name), dtype=np.float64)
    if weights.ndim != 1:
        raise ValueError(f"{name}: Sample weights must be 1D array or scalar, got {weights.shape}.")
    check_length(weights, n_rows, name=name)
    smallest, largest = WEIGHT_RANGE
    good = (weights == 0) | ((weights >= smallest) & (weights <= largest))
    if not good.all():
        row = int(np.argmin(good))
        raise ValueError(
            f"{name}: row {row} is {weights[row]:.6g}; weights must be 0 or between "
            f"{smallest:g} and {largest:g}."
        )
    if not weights.any():
        raise ValueError(f"{name}: all weights are zero, so there is nothing to learn from.")
    return weights
