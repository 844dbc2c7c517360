"""An order of rows and classes that does not depend on the order in which they were passed.

Metrics that draw or deal rows at random use it, so that they are functions of the set of rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from isoroc._input import Sample
from isoroc._simplex import Floats, Ints


def order_rows(sample: Sample) -> Ints:
    """Rows sorted by their forecasts, whatever the classes are called, and by the own forecast.

    Only rows that are equal up to a permutation of the classes can tie.

    Examples
    --------
    >>> import numpy as np
    >>> P = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.4, 0.3, 0.3]])
    >>> order_rows(Sample(P, np.array([0, 2, 1], dtype=np.uint8)))
    array([2, 0, 1])
    """
    P, codes, weights = sample.arrays
    # What is the same for p and for 1 - p, and for any order of several classes.
    largest = np.abs(P - 0.5) if P.ndim == 1 else P.max(axis=1)
    order = np.argsort(largest)
    if (np.diff(largest[order]) > 0).all():
        return order
    if P.ndim == 1:
        keys: list[Floats] = [np.where(codes == 1, P, 1 - P), largest]
    else:
        keys = [P[np.arange(len(P)), codes], *np.sort(P, axis=1).T]
    return np.lexsort(keys if weights is None else [weights, *keys])


def order_classes(sample: Sample) -> Ints:
    """Columns of a forecast matrix, by their total from the largest to the smallest.

    Examples
    --------
    >>> import numpy as np
    >>> P = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
    >>> order_classes(Sample(P, np.array([0, 1], dtype=np.uint8)))
    array([2, 1, 0])
    """
    return np.argsort(-(sample.row_weights() @ sample.forecasts), kind="stable")


def permute_classes(sample: Sample, order: Ints) -> Sample:
    """The sample with its columns in another order."""
    place = np.argsort(order).astype(sample.codes.dtype)
    return replace(
        sample,
        forecasts=np.ascontiguousarray(sample.forecasts[:, order]),
        codes=place[sample.codes],
        classes=None if sample.classes is None else sample.classes[order],
    )
