"""What the fitted attributes of a calibrator must be when they come from a file.

A calibrator names its fitted attributes with a check for each. A check takes the value, its place
in the file for the error message, and the sizes known so far: ``sizes["K"]`` is the number of
classes, and a letter in a shape stands for the same number wherever it is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from isoroc._monotonicity import Certificate
from isoroc._persistence.checks import check_array
from isoroc._persistence.schema import Fault
from isoroc._table import Table
from isoroc._top import TopReduction
from isoroc._tree import BinTree

Sizes = dict[str, int]
Check = Callable[[Any, str, Sizes], None]

#: What probabilities may be off by when they are summed.
ROUNDING = 1e-6
#: No fit comes near; sums and products of numbers within these limits cannot overflow.
LARGEST_WEIGHT, LARGEST_COEFFICIENT = 1e300, 1e100


def boolean(value: Any, place: str, sizes: Sizes) -> None:  # noqa: ARG001
    """Check that a value is true or false."""
    if not isinstance(value, bool):
        raise Fault(place, "expected true or false")


def sentence(value: Any, place: str, sizes: Sizes) -> None:  # noqa: ARG001
    """Check that a value is a string."""
    if not isinstance(value, str):
        raise Fault(place, "expected a sentence")


def table(value: Any, place: str, sizes: Sizes) -> None:  # noqa: ARG001
    """Check that a value is a table."""
    if not isinstance(value, Table):
        raise Fault(place, "expected a table")


def number(*, most: float, above: float = -math.inf) -> Check:
    """Check that a value is a number >= 0 in a range."""

    def check(value: Any, place: str, sizes: Sizes) -> None:  # noqa: ARG001
        real = isinstance(value, int | float) and not isinstance(value, bool)
        if not real or not (0 <= value <= most and above < value):
            raise Fault(place, "expected a number in its range")

    return check


def coefficients(*shape: int | str) -> Check:
    """Check that a value is an array of numbers that cannot overflow.

    Examples
    --------
    >>> import numpy as np
    >>> coefficients("K", "m")(np.ones((3, 2)), "slopes_", {"K": 3, "m": 4})
    Traceback (most recent call last):
    ...
    isoroc._persistence.schema.Fault: slopes_: expected an array of shape (3, 4), got (3, 2)
    """

    def check(value: Any, place: str, sizes: Sizes) -> None:
        known = tuple(sizes.get(n) if isinstance(n, str) else n for n in shape)
        array = check_array(value, place, shape=known)
        if (np.abs(array) > LARGEST_COEFFICIENT).any():
            raise Fault(place, "expected smaller numbers")
        sizes |= {n: have for n, have in zip(shape, array.shape, strict=True) if isinstance(n, str)}

    return check


def probabilities(size: str) -> Check:
    """Check that a value is a vector of probabilities that sum to one."""

    def check(value: Any, place: str, sizes: Sizes) -> None:
        check_array(value, place, shape=(sizes[size],))
        if (value < 0).any() or abs(value.sum() - 1) > ROUNDING:
            raise Fault(place, "expected numbers >= 0 that sum to 1")

    return check


def priors(size: str) -> Check:
    """Check that a value is a vector of probabilities that sum to one, or a matrix of such rows."""
    of_one = probabilities(size)

    def check(value: Any, place: str, sizes: Sizes) -> None:
        if not isinstance(value, np.ndarray) or value.ndim != 2:
            of_one(value, place, sizes)
            return
        check_array(value, place, shape=(None, sizes[size]))
        if (value < 0).any() or (np.abs(value.sum(axis=1) - 1) > ROUNDING).any():
            raise Fault(place, "expected numbers >= 0, each row with the sum 1")

    return check


def ascending(value: Any, place: str, sizes: Sizes) -> None:  # noqa: ARG001
    """Check that a value is a vector of ascending numbers."""
    check_array(value, place, shape=(None,))
    if not (np.diff(value) >= 0).all():
        raise Fault(place, "expected ascending numbers")


def tree(size: str) -> Check:
    """Check that a value is a tree; what is inside was checked when it was read."""

    def check(value: Any, place: str, sizes: Sizes) -> None:
        if not isinstance(value, BinTree) or value.n_classes != sizes[size]:
            raise Fault(place, f"expected a tree of {sizes[size]} classes")

    return check


def reduction(size: str) -> Check:
    """Check that a value is a reduction of K classes or None; sets the number that it leaves."""

    def check(value: Any, place: str, sizes: Sizes) -> None:
        K = sizes["K"]
        if value is None:
            sizes[size] = K
        elif isinstance(value, TopReduction) and value.top <= K - 2:
            sizes[size] = value.top + 1
        else:
            raise Fault(place, f"expected a reduction of {K} classes, or none")

    return check


def certificate(value: Any, place: str, sizes: Sizes) -> None:  # noqa: ARG001
    """Check that a value is a certificate or None."""
    if value is not None and not isinstance(value, Certificate):
        raise Fault(place, "expected the certificate of this tree")


def names(size: str) -> Check:
    """Check that a value is an array of distinct names; sets their number."""

    def check(value: Any, place: str, sizes: Sizes) -> None:
        if not isinstance(value, np.ndarray) or value.dtype.kind != "U" or value.ndim != 1:
            raise Fault(place, "expected an array of names")
        if len(set(value.tolist())) < len(value):
            raise Fault(place, "the names are not distinct")
        sizes[size] = len(value)

    return check


def list_of(check: Check, length: str = "", *, least: int = 1) -> Check:
    """Check every entry of a list, which has at least one of them unless `least` is 0."""

    def check_list(value: Any, place: str, sizes: Sizes) -> None:
        expected = sizes.get(length)
        short = not isinstance(value, list) or len(value) < least
        if short or expected not in (None, len(value)):
            raise Fault(place, f"expected a list of {expected or 'one or more'}")
        if length:
            sizes[length] = len(value)
        for i, entry in enumerate(value):
            check(entry, f"{place}[{i}]", sizes)

    return check_list


def anything(value: Any, place: str, sizes: Sizes) -> None:
    """Check nothing here: the calibrator checks what depends on several attributes."""
