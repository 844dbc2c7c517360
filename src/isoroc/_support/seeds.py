"""Random numbers from what users pass as `random_state`."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np


def check_random_state(seed: Any) -> np.random.RandomState:
    """What scikit-learn's function returns, without its import, a second, for whole numbers."""
    if isinstance(seed, numbers.Integral):
        return np.random.RandomState(int(seed))
    from sklearn import utils  # noqa: PLC0415

    found: np.random.RandomState = utils.check_random_state(seed)
    return found
