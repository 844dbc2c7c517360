"""Outcomes: labels of any type, told apart and numbered as they are met."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from isoroc._cli.errors import CommandError
from isoroc._cli.io.files import ROW, Source

#: Types besides numbers that labels may have.
TEXT_TYPES = (pl.Boolean, pl.String, pl.Categorical, pl.Enum)
_CLASSES = "labels are classes, not measurements. Check --label."


class Labels:
    """Labels in the order in which they are met, numbered."""

    def __init__(self, source: Source, column: str, *, most: int) -> None:
        self._source, self._column, self._most = source, column, most
        self.found: dict[Any, int] = {}

    def encode(self, batch: pl.DataFrame) -> NDArray[np.uint16]:
        """Number of each row's label."""
        values = batch[self._column]
        if not (values.dtype.is_numeric() or values.dtype in TEXT_TYPES):
            raise CommandError(
                f"{self._source.name}: column {self._column!r} holds {values.dtype}; labels are "
                "text, whole numbers or true and false."
            )
        if values.dtype in (pl.Categorical, pl.Enum):
            values = values.cast(pl.String)
        missing = values.is_null()
        if values.dtype.is_float():
            missing = missing | values.is_nan().fill_null(value=True)
        if missing.any():
            row = batch[ROW][int(missing.arg_max() or 0)]
            raise CommandError(
                f"{self._source.place(row)}, column {self._column!r} is empty; labels must be "
                f'known. Leave such rows out with --where "{self._column} IS NOT NULL".'
            )
        for label in values.unique(maintain_order=True).to_list():
            if label not in self.found:
                self._add(label, batch, values)
        numbers = values.replace_strict(
            list(self.found), list(self.found.values()), return_dtype=pl.UInt16, default=None
        )
        return numbers.to_numpy()

    def _add(self, label: Any, batch: pl.DataFrame, values: pl.Series) -> None:
        if isinstance(label, float) and not label.is_integer():
            problem = f"; {_CLASSES}"
        elif len(self.found) >= self._most:
            problem = (
                f", one class more than the forecasts have ({self._most}); name one column for "
                "each class with --probs, or another column of labels with --label."
            )
        else:
            self.found[label] = len(self.found)
            return
        row = batch[ROW][int((values == label).arg_max() or 0)]
        place = self._source.place(row)
        raise CommandError(f"{place}, column {self._column!r} is {label!r}{problem}")

    def met(self) -> list[Any]:
        """The labels; where all is text, numbers and true or false are what they look like."""
        found = list(self.found)
        if self._source.typeless and all(isinstance(label, str) for label in found):
            for kind in (_integer, _whole, _boolean):
                with suppress(ValueError):
                    return [kind(label) for label in found]
            measured = [label for label in found if re.fullmatch(r"-?\d*\.\d+", label)]
            if len(measured) == len(found):
                what = f"column {self._column!r} holds {measured[0]}"
                raise CommandError(f"{self._source.name}: {what}; {_CLASSES}")
        return found


def _integer(text: str) -> int:
    if not re.fullmatch(r"0|-?[1-9]\d*", text):  # 01 is a name
        raise ValueError(text)
    return int(text)


def _whole(text: str) -> float:
    return float(_integer(text.rstrip("0").removesuffix(".") if "." in text else text))


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"
