"""Outcomes, forecasts and class shares as metrics, evaluations and displays take them."""

import numbers
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoroc._core.simplex import as_matrix, count_classes
from isoroc._core.types import Codes, Floats
from isoroc._input.arrays import (
    check_length,
    check_numbers,
    column_names,
    in_order,
    match_columns,
    to_array,
)
from isoroc._input.error import InputError, check_number
from isoroc._input.plausible import warn_if_reversed
from isoroc._input.rows import check_classes, label_text
from isoroc._input.sample import (
    Sample,
    check_forecasts,
    check_sample,
    first_improbable,
    resolve_unit,
)

Aspect = Literal["canonical", "classwise", "top"]
"""What must be calibrated: whole forecasts, the probability of each class, or the largest one."""


def check_outcomes(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
) -> Sample:
    """Sample of labels and forecasts. For two classes the forecasts may be any real scores."""
    return check_sample(
        y_prob, y_true, weight, labels, clusters=clusters, name="y_prob", label_name="y_true"
    )


def check_probabilities(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    *,
    keep_zeros: bool = False,
) -> Sample:
    """Sample for metrics of probabilities: a 1-D `y_prob` is the probability of the second class.

    The forecasts of the sample are a matrix. Rows of weight 0 are dropped unless `keep_zeros`.
    """
    sample = check_outcomes(y_true, y_prob, weight, labels, clusters)
    if labels is None:
        warn_if_reversed(sample, name="y_prob")
    return _as_probabilities(sample if keep_zeros else sample.positive(), "y_prob")


def check_after(
    after: ArrayLike, before: Sample, *, probabilities: bool = False, name: str = "after"
) -> Sample:
    """Sample of the second forecasts of the same rows and classes. Rows of weight 0 are kept.

    Columns with the names of the classes may be in any order. With `probabilities`, only
    probabilities are accepted, and they become a matrix.
    """
    if before.classes is not None:
        after = in_order(after, before.classes.astype(str).tolist())
    forecasts = check_forecasts(after, name=name)
    if (n_classes := count_classes(forecasts)) != before.n_classes:
        problem = f"{n_classes} classes, but y_prob has {before.n_classes}"
        raise InputError(name, None, problem, "they must agree")
    check_length(forecasts, before.n_rows, name=name, of="y_prob")
    if before.parts_of is not None:
        forecasts = forecasts[before.parts_of]
    sample = replace(before, forecasts=forecasts, unit=resolve_unit(forecasts, "auto"))
    return _as_probabilities(sample, name) if probabilities else sample


def _as_probabilities(sample: Sample, name: str) -> Sample:
    """The sample with a column of probabilities for each class."""
    if sample.kind.single and (row := first_improbable(sample.forecasts)) is not None:
        fix = "probabilities lie between 0 and 1. Calibrate scores first"
        raise InputError(name, row, f"is {sample.forecasts[row]:.6g}", fix)
    return replace(sample, forecasts=as_matrix(sample.forecasts))


def check_every_class(sample: Sample, fix: str) -> None:
    """Raise an error if some class has no row of positive weight."""
    if not (class_weights := sample.class_weights()).all():
        missing = label_text(sample.classes[class_weights.argmin()])
        raise InputError("y_true", None, f"no row of class {missing} has positive weight", fix)


def split_by_kind(sample: Sample, kind: Aspect) -> list[Sample]:
    """The samples that must be calibrated: one, or one per class for "classwise".

    Samples of two classes, of the top class and of one class against the rest hold scores.
    """
    P, codes, _ = sample.arrays

    def part(forecasts: Floats, codes: Codes) -> Sample:
        return Sample(
            forecasts,
            codes,
            sample.weights,
            squares=sample.squares,
            clusters=sample.clusters,
            parts_of=sample.parts_of,
        )

    def against_rest(scores: Floats, right: NDArray[np.bool_]) -> Sample:
        return part(np.ascontiguousarray(scores), right.view(np.uint8))

    if kind == "top":
        best = P.argmax(axis=1)
        return [against_rest(P[np.arange(len(P)), best], best == codes)]
    if P.shape[1] == 2:
        return [against_rest(P[:, 1], codes == 1)]
    if kind == "canonical":
        return [part(P, codes)]
    return [against_rest(P[:, k], codes == k) for k in range(P.shape[1])]


def check_unlabelled(
    P: ArrayLike, labels: ArrayLike | None, *, name: str = "P"
) -> tuple[Floats, NDArray[Any]]:
    """Forecasts of shape (n, K) without outcomes, and the class of each column."""
    names = column_names(P)
    P = as_matrix(check_forecasts(P, name=name, unit="probability"))
    if labels is None:
        named = names is not None and len(names) == P.shape[1]
        return P, np.array(names) if named else np.arange(P.shape[1])
    classes = check_classes(to_array(labels, name="labels"), P.shape[1])
    return P, match_columns(names, classes, given=True, name=name)


def check_calibration(calibration: Any, P: Floats) -> tuple[Floats, Floats]:
    """Forecasts of calibration rows and their weights.

    `calibration` is a number of rows, a fitted calibrator, or calibrated forecasts. In the first
    two cases the calibration rows are assumed to be distributed as P.
    """
    if hasattr(calibration, "summary_"):
        calibration = calibration.summary_["weight"]
    if np.ndim(calibration) == 0:
        check_number("calibration", calibration, minimum=1)
        return P, np.full(len(P), float(calibration) / len(P))
    forecasts, _ = check_unlabelled(calibration, None, name="calibration")
    if forecasts.shape[1] != P.shape[1]:
        problem = f"has {forecasts.shape[1]} classes, and the new forecasts have {P.shape[1]}"
        raise InputError("calibration", None, problem, "pass the forecasts of the same classes")
    return forecasts, np.ones(len(forecasts))


def numbers_by_class(values: Any, classes: NDArray[Any], *, name: str) -> Floats:
    """One number per class, from a list in the order of the classes or a mapping from labels."""
    if isinstance(values, Mapping):
        by_name = {str(label): value for label, value in values.items()}
        names = [str(label) for label in classes.tolist()]
        if sorted(by_name) != sorted(names):
            problem = f"names {', '.join(by_name)}, but the classes are {', '.join(names)}"
            raise InputError(name, None, problem, "name each class once; labels= sets the classes")
        values = [by_name[label] for label in names]
    given = check_numbers(values, name)
    if given.shape != classes.shape:
        problem = f"has shape {given.shape}, but there are {len(classes)} classes"
        raise InputError(name, None, problem, "expected one number for each class")
    return given


def check_shares(
    values: Any, classes: NDArray[Any], *, name: str, positive: bool, tolerance: float = 1e-6
) -> Floats:
    """Class shares that sum to one. For two classes a number is the share of the second."""
    if isinstance(values, numbers.Real) and len(classes) == 2:
        values = [1 - values, values]
    shares = numbers_by_class(values, classes, name=name)
    if not np.isfinite(shares).all() or (shares < 0).any() or (positive and not shares.all()):
        fix = "class shares are positive" if positive else "class shares are not negative"
        raise InputError(name, None, f"is {', '.join(map(str, shares))}", fix)
    if abs((total := shares.sum()) - 1) > tolerance:
        raise InputError(name, None, f"sums to {total:.6g}, not to 1", "divide it by its sum")
    return np.asarray(shares / total)
