"""What a fitted classifier returns for some rows, with one column per class or as scores."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from isoroc._core.types import Floats
from isoroc._input import InputError

Response = Literal["auto", "predict_proba", "decision_function"]

#: How far the logit of a class that a classifier has not seen lies below its smallest logit.
ABSENT = 1e3


def method_of(estimator: Any, response: Response) -> str:
    """The method that returns what is to be calibrated: that asked for, if there is one."""
    if response == "auto":
        if hasattr(estimator, "predict_proba"):
            return "predict_proba"
        response = "decision_function"
    if not hasattr(estimator, response):
        problem = f"{type(estimator).__name__} has no {response}"
        fix = "calibrating needs predict_proba or decision_function"
        raise InputError("response", None, problem, fix)
    return response


def respond(estimator: Any, X: Any, classes: NDArray[Any], method: str) -> Floats:
    """Probabilities or logits of a fitted classifier, one column for each of classes.

    The decision function of two classes is one column of log odds.
    """
    output = np.asarray(getattr(estimator, method)(X), dtype=np.float64)
    have = estimator.classes_
    if output.ndim == 1:
        if len(classes) == 2:
            return (output if list(have) == list(classes) else -output).reshape(-1, 1)
        # A fold may have left two of several classes to train on.
        output = np.column_stack([np.zeros(len(output)), output])
    if method == "predict_proba":
        return in_columns(output, have, classes, 0.0)
    return in_columns(output, have, classes, output.min(axis=1) - ABSENT)


def to_forecasts(response: Floats, method: str) -> Floats:
    """Probabilities with one column per class, or scores of two classes, from any response."""
    if method == "predict_proba" or response.shape[1] == 1:
        return response
    return np.asarray(softmax(response, axis=1))


def in_columns(
    output: NDArray[Any], have: NDArray[Any], want: NDArray[Any], missing: float | Floats = 0.0
) -> Floats:
    """Columns of the classes `have` in the places of `want`; others get what is missing."""
    place = {label: k for k, label in enumerate(want.tolist())}
    full = np.empty((len(output), len(want)))
    full[:] = np.reshape(missing, (-1, 1))
    full[:, [place[label] for label in have.tolist()]] = output
    return full
