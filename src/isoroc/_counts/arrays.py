"""Arithmetic on the arrays of NumPy, or of another library with the same functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from isoroc._writer import Arithmetic


class ArrayArithmetic(Arithmetic[Any]):
    """Columns are arrays of doubles.

    Parameters
    ----------
    library : module
        NumPy or torch.
    **options
        What its arrays are made with, such as a device.

    Examples
    --------
    >>> w = ArrayArithmetic()
    >>> float(w.floor(w.sqrt(w.number(10.0))))
    3.0
    """

    def __init__(self, library: Any = np, **options: Any) -> None:
        self._library = library
        self._options = options

    def number(self, value: float) -> Any:
        library = self._library
        if library is np:
            return np.float64(value)
        return library.asarray(value, dtype=library.float64, **self._options)

    def add(self, a: Any, b: Any) -> Any:
        return a + b

    def subtract(self, a: Any, b: Any) -> Any:
        return a - b

    def multiply(self, a: Any, b: Any) -> Any:
        return a * b

    def divide(self, a: Any, b: Any) -> Any:
        return a / b

    def absolute(self, a: Any) -> Any:
        return self._library.abs(a)

    def sqrt(self, a: Any) -> Any:
        if self._library is not np and a.device.type == "cpu":
            # On x86-64, torch takes roots from a library that does not round them correctly, and
            # cells and folds must be the same everywhere.
            return self._library.from_numpy(np.sqrt(a.numpy()))
        return self._library.sqrt(a)

    def floor(self, a: Any) -> Any:
        return self._library.floor(a)

    def at_most(self, a: Any, b: Any) -> Any:
        return a <= b

    def both(self, a: Any, b: Any) -> Any:
        return a & b

    def where(self, condition: Any, a: Any, b: Any) -> Any:
        return self._library.where(condition, a, b)

    def maximum(self, a: Any, b: Any) -> Any:
        return self._library.maximum(a, b)

    def largest(self, columns: Sequence[Any]) -> tuple[Any, Any]:
        best, place = columns[0], self.number(0.0)
        for k, column in enumerate(columns[1:], start=1):
            place = self.where(column > best, self.number(float(k)), place)
            best = self.maximum(best, column)
        return best, place

    def is_at(self, place: Any, number: int) -> Any:
        return place == number

    def keep(self, columns: Iterable[Any]) -> list[Any]:
        return list(columns)
