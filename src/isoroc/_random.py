"""Random numbers from what users pass as `random_state`."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np


def check_random_state(seed: Any) -> np.random.RandomState:
    """What `sklearn.utils.check_random_state` returns, without its import for whole numbers.

    The import takes a second, and the command line passes nothing else.
    """
    if isinstance(seed, numbers.Integral):
        return np.random.RandomState(int(seed))
    from sklearn import utils  # noqa: PLC0415

    found: np.random.RandomState = utils.check_random_state(seed)
    return found
