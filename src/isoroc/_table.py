"""A table of named columns that needs no dataframe library and turns into any of them."""

from __future__ import annotations

from html import escape
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

_ROWS_SHOWN = 60


class Table(dict[str, NDArray[Any]]):
    """Columns of equal length by name; prints as text, shows as HTML in notebooks.

    Being a plain ``dict`` of arrays it goes into ``pandas.DataFrame`` or ``polars.DataFrame`` as
    it is; `frame` does that for the library at hand.

    Examples
    --------
    >>> import numpy as np
    >>> Table(bin=np.arange(2), weight=np.array([310.0, 190.5]))
      bin  weight
        0     310
        1   190.5
    """

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.values()), ()))

    def frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Dataframe of the named library."""
        columns: dict[str, Any] = dict(self)
        return nw.from_dict(columns, backend=backend).to_native()

    def _cells(self) -> list[list[str]]:
        shown = min(self.n_rows, _ROWS_SHOWN)
        return [[name, *(_text(v) for v in column[:shown])] for name, column in self.items()]

    def __repr__(self) -> str:
        padded = []
        for cells in self._cells():
            width = max(map(len, cells))
            padded.append([cell.rjust(width) for cell in cells])
        lines = ["  " + "  ".join(row) for row in zip(*padded, strict=True)]
        if self.n_rows > _ROWS_SHOWN:
            lines.append(f"  ... {self.n_rows - _ROWS_SHOWN} more rows")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head, *rows = zip(*self._cells(), strict=True)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
        )
        titles = "".join(f"<th>{escape(name)}</th>" for name in head)
        return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _text(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float | np.floating) else str(value)
