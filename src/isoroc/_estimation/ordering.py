"""An order of rows and classes that does not depend on the order in which they were passed.

Metrics that use random numbers or break ties rely on it: they depend on the set of rows only.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from isoroc._input import Sample
from isoroc._simplex import Floats, Ints


def fix_class_order(sample: Sample) -> Sample:
    """The sample with its columns sorted by their totals, the largest first."""
    order = np.argsort(-(sample.row_weights() @ sample.forecasts), kind="stable")
    if (np.diff(order) > 0).all():
        return sample
    place = np.argsort(order).astype(sample.codes.dtype)
    return replace(
        sample,
        forecasts=np.ascontiguousarray(sample.forecasts[:, order]),
        codes=place[sample.codes],
        classes=None if sample.classes is None else sample.classes[order],
    )


def fix_row_order(sample: Sample) -> Sample:
    """The sample with its rows in the order of `order_rows`."""
    return sample.take(order_rows(sample))


def order_rows(sample: Sample) -> Ints:
    """Rows sorted by their forecasts, for any order of several classes.

    Only rows whose forecasts are equal up to a permutation of the classes can tie.
    """
    P, codes, weights = sample.arrays
    largest = P if P.ndim == 1 else P.max(axis=1)
    order = np.argsort(largest)
    if (np.diff(largest[order]) > 0).all():
        return order
    if P.ndim == 1:
        keys: list[Floats] = [codes.astype(np.float64), P]
    else:
        keys = [P[np.arange(len(P)), codes], *np.sort(P, axis=1).T]
    return np.lexsort(keys if weights is None else [weights, *keys])
