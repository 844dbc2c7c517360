"""Validation of the arguments that all metrics share: labels, forecasts and weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from isoroc._input import InputError, Sample, check_sample, first_improbable


def check_outcomes(
    y_true: Any, y_prob: Any, sample_weight: Any = None, labels: Any = None
) -> Sample:
    """Sample of labels and forecasts; for two classes the forecasts may be any real scores.

    Examples
    --------
    >>> check_outcomes(["b", "a"], [0.2, 3.0]).codes
    array([1, 0], dtype=uint8)
    """
    return check_sample(y_prob, y_true, sample_weight, labels, name="y_prob", label_name="y_true")


def check_probabilities(
    y_true: Any,
    y_prob: Any,
    sample_weight: Any = None,
    labels: Any = None,
    *,
    keep_zeros: bool = False,
) -> Sample:
    """Sample for metrics of probabilities: a 1-D `y_prob` is the probability of the second class.

    The forecasts of the sample are a matrix. Rows of weight 0 are dropped unless `keep_zeros`.

    Examples
    --------
    >>> check_probabilities([0, 1], [0.25, 0.5]).forecasts
    array([[0.75, 0.25],
           [0.5 , 0.5 ]])
    >>> check_probabilities([0, 1], [0.25, 1.5])
    Traceback (most recent call last):
    ...
    isoroc._input.error.InputError: y_prob: row 1 is 1.5; probabilities lie between 0 and 1.
    Calibrate scores first.
    """
    sample = check_outcomes(y_true, y_prob, sample_weight, labels)
    if not keep_zeros:
        sample = sample.positive()
    scores = sample.forecasts
    if scores.ndim == 2:
        return sample
    if (row := first_improbable(scores)) is not None:
        fix = "probabilities lie between 0 and 1. Calibrate scores first"
        raise InputError("y_prob", row, f"is {scores[row]:.6g}", fix)
    return to_columns(sample)


def to_columns(sample: Sample) -> Sample:
    """The sample with a column of probabilities for each class.

    Scores must be probabilities of the second class.
    """
    p = sample.forecasts
    return sample if p.ndim == 2 else replace(sample, forecasts=np.column_stack([1 - p, p]))


def check_every_class(sample: Sample, fix: str) -> None:
    """Raise an error if some class has no row of positive weight.

    Examples
    --------
    >>> check_every_class(check_outcomes([0, 0], [0.2, 0.4], labels=[0, 1]), "both are needed")
    Traceback (most recent call last):
    ...
    isoroc._input.error.InputError: y_true: no row of class 1 has positive weight; both are needed.
    """
    class_weights = sample.class_weights()
    if not class_weights.all():
        missing = sample.classes.tolist()[class_weights.argmin()]
        problem = f"no row of class {missing!r} has positive weight"
        raise InputError("y_true", None, problem, fix)
