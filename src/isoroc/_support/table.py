"""A table of named columns that converts to any dataframe library and depends on none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray


class Table(dict[str, NDArray[Any]]):
    """Columns of equal length by name, shown as text or, in notebooks, as HTML.

    A table is a ``dict`` of arrays, so ``pandas.DataFrame`` and ``polars.DataFrame`` accept it.
    `frame` converts it to a dataframe of the named library.

    Examples
    --------
    >>> import numpy as np
    >>> Table(bin=np.arange(2), weight=np.array([310.0, 190.5]))
      bin  weight
        0     310
        1   190.5
    """

    @classmethod
    def from_rows(cls, rows: Iterable[Sequence[Any]], *names: str) -> Self:
        """Table of rows that have one entry per name."""
        columns = list(zip(*rows, strict=True)) or [()] * len(names)
        return cls({name: np.array(column) for name, column in zip(names, columns, strict=True)})

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.values()), ()))

    def select(self, *names: str) -> Self:
        """Table of the named columns, in that order."""
        return type(self)({name: self[name] for name in names})

    def frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Dataframe of the named library."""
        import narwhals.stable.v2 as nw  # noqa: PLC0415  # services do without

        columns: dict[str, Any] = dict(self)
        return nw.from_dict(columns, backend=backend).to_native()

    def _cells(self, most: int = 60) -> list[list[str]]:
        return [[name, *(_text(v) for v in column[:most])] for name, column in self.items()]

    def __repr__(self) -> str:
        padded = [[cell.rjust(max(map(len, cells))) for cell in cells] for cells in self._cells()]
        head, *lines = ["  " + "  ".join(row) for row in zip(*padded, strict=True)] or [""]
        if (hidden := self.n_rows - len(lines)) > 0:
            lines.append(f"  ... {hidden} more rows")
        return "\n".join([head, *lines])

    def _repr_html_(self) -> str:
        from html import escape  # noqa: PLC0415  # slow to import

        head, *rows = zip(*self._cells(), strict=True)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
        )
        titles = "".join(f"<th>{escape(name)}</th>" for name in head)
        return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _text(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float | np.floating) else str(value)


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Table in Markdown, for the programs of benchmarks/ and reproduction/."""
    first, *rest = ["| " + " | ".join(cells) + " |" for cells in (head, *rows)]
    return "\n".join([first, "|" + "---|" * len(head), *rest])
