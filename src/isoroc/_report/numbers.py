"""Numbers as JSON, and as text with sensible digits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def short(values: Any, digits: int = 5) -> list[Any]:
    """Numbers with a number of significant digits, for drawing."""
    array: NDArray[Any] = np.asarray(values, dtype=np.float64)
    if array.ndim > 1:
        return [short(row, digits) for row in array]
    return [float(f"{value:.{digits}g}") for value in array.tolist()]


def text_of(value: Any, digits: int = 4) -> str:
    """Number with a number of decimal places, and with a minus sign instead of a hyphen."""
    if value is None:
        return "unknown"
    text = value.replace("inf", "∞") if isinstance(value, str) else f"{value:.{digits}f}"
    text = text.removeprefix("-") if not text.strip("-0.") else text
    return text.replace("-", "\N{MINUS SIGN}")


def weight_of(value: float) -> str:
    """Weight as text: whole numbers with separators."""
    return f"{value:,.0f}" if float(value).is_integer() or value >= 1000 else f"{value:.4g}"


def listed(names: list[str], most: int = 8) -> str:
    """Names in a sentence, some of them if there are many."""
    shown = names if len(names) <= most else [*names[:most], f"{len(names) - most} more"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if shown[1:] else shown)
