"""Class shares that a `CalibratedClassifier` is asked to forecast for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoroc._input import InputError
from isoroc._simplex import Floats
from isoroc.decisions._inputs import check_shares


def check_prior(prior: Any, shares: Floats, classes: NDArray[Any]) -> Floats:
    """The parameter `prior` as an array, for rows with the given class shares."""
    check_adjustable(shares, classes)
    return check_shares(prior, classes, name="prior", positive=False)


def check_adjustable(shares: Floats, classes: NDArray[Any]) -> None:
    """Refuse to adjust the share of a class that did not occur."""
    if not shares.all():
        problem = f"class {classes[int(np.argmin(shares))]!s} did not occur in the rows of fit"
        raise InputError("prior", None, problem, "fit to rows of all classes")
