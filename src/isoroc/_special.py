"""Functions of `scipy.special`, which is imported at the first call.

The import takes a quarter of the start-up time of commands such as ``isoroc apply``, and with most
models none of these functions is called.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]


def expit(x: _Floats) -> _Floats:
    """Probabilities from log odds."""
    return np.asarray(_special().expit(x))


def logit(p: _Floats) -> _Floats:
    """Log odds from probabilities."""
    return np.asarray(_special().logit(p))


def gammainc(a: float, x: float) -> float:
    """Distribution function at x of a gamma variable with shape a."""
    return float(_special().gammainc(a, x))


def xlogy(x: _Floats, y: _Floats) -> _Floats:
    """``x * log(y)``, and 0 where x is 0."""
    return np.asarray(_special().xlogy(x, y))


def normal_quantile(p: float) -> float:
    """Quantile of the standard normal distribution."""
    return float(_special().ndtri(p))


def _special() -> Any:
    from scipy import special  # noqa: PLC0415

    return special
