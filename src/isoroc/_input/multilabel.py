"""Labels that do not exclude each other: one column of forecasts and one of 0 and 1 for each."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoroc._core.special import expit
from isoroc._core.types import Floats
from isoroc._input.arrays import check_numbers, column_names, in_order, to_array
from isoroc._input.error import InputError, check_option
from isoroc._input.kinds import LABELS, columns_of
from isoroc._input.rows import SWAPPED, check_classes, check_clusters, check_weights, label_text
from isoroc._input.sample import Sample, UnitOption, clean, first_improbable, read_forecasts
from isoroc._input.segments import SegmentColumn, Segments


class Labelled(NamedTuple):
    """Forecasts and outcomes of several labels."""

    names: NDArray[Any]
    forecasts: Floats  # shape (n, L)
    known: NDArray[np.bool_]  # which entries have an outcome, shape (n, L)
    sample: Sample  # these entries, with the segment "label" and rows as clusters


def columns_of_labels(P: Any, name: str = "P") -> Any:
    """Forecasts with one column for each label, also from a list of arrays of shape (n, 2)."""
    if not isinstance(P, list | tuple) or not P or np.ndim(P[0]) != 2:
        return P
    for k, part in enumerate(P):
        if np.shape(part) != (len(P[0]), 2):
            fix = "expected (n, 2), the probabilities of 0 and 1, even if a label never varied"
            raise InputError(f"{name}[{k}]", None, f"has shape {np.shape(part)}", fix)
    return np.column_stack([to_array(part, name=name)[:, 1] for part in P])


def check_labels(
    P: Any,
    y: Any,
    sample_weight: Any = None,
    labels: Any = None,
    *,
    clusters: Any = None,
    unit: UnitOption = "auto",
    name: str = "P",
    label_name: str = "y",
) -> Labelled:
    """Forecasts of labels and outcomes, 0, 1 or NaN if missing, as users pass them."""
    P = columns_of_labels(P, name)
    P = P if labels is None else in_order(P, [str(label) for label in labels])
    values = read_forecasts(P, name=name)
    names = column_names(P)
    named = column_names(y)
    check_option("unit", unit, ("auto", *LABELS))
    if unit == "auto":
        unit = "probability" if first_improbable(values.ravel()) is None else "logit"
    forecasts = columns_of(clean(values, LABELS[unit], name=name, advice="pass"))
    fix = f"expected 0, 1 or NaN for each entry of {name}{SWAPPED}"
    if names and named and sorted(names) != sorted(named):
        raise InputError(label_name, None, f"has other columns than {name}", "they must agree")
    Y = columns_of(check_numbers(in_order(y, names or ()), label_name, fix))
    if Y.shape != forecasts.shape:
        problem = f"has shape {np.shape(y)}, and {name} {forecasts.shape}"
        raise InputError(label_name, None, problem, fix)
    known = ~np.isnan(Y)
    n, L = Y.shape
    if not known.any():
        raise InputError(label_name, None, "holds no known outcome", fix)
    if (wrong := known & (Y != 0) & (Y != 1)).any():
        row = int(np.argmax(wrong.any(axis=1)))
        raise InputError(label_name, row, f"holds {label_text(Y[wrong][0])}", fix)
    given = to_array(names or named or range(L) if labels is None else labels, name="labels")
    check_classes(given, L)
    cluster = check_clusters(clusters, n, of=name)
    if cluster is None and L > 1:
        # A number for each row that depends on neither the order of rows nor the order of labels.
        p = expit(forecasts) if unit == "logit" else forecasts
        entries = np.where(known, p + 2 * Y, np.inf)
        cluster = np.argsort(np.lexsort([*entries.T, *np.sort(entries, axis=1).T]))
    row_of, label = np.nonzero(known)
    weights = check_weights(sample_weight, n)
    sample = Sample(
        np.ascontiguousarray(forecasts[known]),
        Y[known].astype(np.uint8),
        None if weights is None else weights[row_of],
        np.array([0, 1]),
        unit,
        Segments({"label": SegmentColumn(label, np.array([str(name) for name in given.tolist()]))}),
        clusters=None if cluster is None else cluster[row_of],
    )
    return Labelled(given, forecasts, known, sample)
