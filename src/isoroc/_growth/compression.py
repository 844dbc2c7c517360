"""Step functions with many steps as step functions with fewer.

Values are compared on the scale of the angle arcsin(sqrt(p)), on which an estimate from n rows has
the standard error 1 / (2 sqrt(n)) whatever p is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isoroc._simplex import Floats

#: No resolution is finer than this many intervals of the angle.
_FINEST = 2**30


def compress_steps(cuts: Floats, *values: Floats, most: int) -> tuple[Floats, ...]:
    """Step functions with the same cuts, merged to at most `most` steps.

    The angle is divided into intervals of equal length, and neighbouring steps are merged if all
    of their values lie in the same intervals. There are as many intervals as `most` allows. With m
    functions they are at least ``most // m``, so the angle of a value changes by at most
    ``pi / 4 / (most // m)``.

    Parameters
    ----------
    cuts : ndarray of shape (s - 1,)
        Where the functions step.
    *values : ndarrays of shape (s,)
        Values of each function, ascending numbers between 0 and 1.
    most : int
        Number of steps to keep, at least the number of functions. Functions that have no more are
        returned as they are.

    Returns
    -------
    cuts, *values : ndarrays
        The functions with fewer steps. A value is in the middle of those that it stands for.

    Examples
    --------
    >>> values = np.array([0.1, 0.1001, 0.5, 0.9, 0.9001])
    >>> cuts, merged = compress_steps(np.array([1.0, 2.0, 3.0, 4.0]), values, most=3)
    >>> cuts, merged.round(5)
    (array([2., 3.]), array([0.10005, 0.5    , 0.90005]))
    """
    if len(values[0]) <= most:
        return cuts, *values
    angles = np.arcsin(np.sqrt(np.stack(values)))
    few, many = most // len(values), _FINEST
    while many - few > max(1, few // 100):  # `few` intervals are few enough, `many` too many
        middle = (few + many) // 2
        if len(_starts(angles, middle)) <= most:
            few = middle
        else:
            many = middle
    starts = _starts(angles, few)
    ends = np.append(starts[1:], angles.shape[1]) - 1
    means = np.sin((angles[:, starts] + angles[:, ends]) / 2) ** 2
    merged = [
        np.where(of_all[starts] == of_all[ends], of_all[starts], mean)
        for of_all, mean in zip(values, means, strict=True)
    ]
    return cuts[starts[1:] - 1], *merged


def _starts(angles: Floats, n_intervals: int) -> NDArray[np.intp]:
    """First of each sequence of steps whose angles lie in the same intervals."""
    interval = np.minimum(angles * (n_intervals / (np.pi / 2)), n_intervals - 1).astype(np.int64)
    change = (np.diff(interval, axis=1) > 0).any(axis=0)
    return np.flatnonzero(np.append(True, change))
