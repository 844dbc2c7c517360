"""Bodies that ROC points span: the union of their boxes, and their convex hull."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from scipy.spatial import ConvexHull

from isoroc._core import surface as kernels
from isoroc._simplex import Floats, Ints


class Body(ABC):
    """A set in the unit cube that ROC points span."""

    concave: ClassVar[bool]
    """Whether the border on the last axis is a concave function of the other axes."""
    kept: Ints
    """Indices of the points that span it."""
    volume: float

    @abstractmethod
    def __init__(self, points: Floats) -> None: ...

    @abstractmethod
    def heights(self, cells: int, order: Ints) -> Floats:
        """How far the body of three classes reaches on the last axis, shape (cells + 2,) * 2.

        Entry [i, j] is for the line over (i / cells, j / cells) on the other two axes, negative
        where the line misses the body; `order` is the order of the axes.
        """


class Boxes(Body):
    """Union of the boxes between the origin and each point: everything that the points dominate.

    In more than three dimensions the volume can take long to compute. `most` limits the number of
    undominated points that are used; they are spread evenly.
    """

    concave = False

    def __init__(self, points: Floats, most: int | None = None) -> None:
        order = np.lexsort(-points.T[::-1])
        points = np.ascontiguousarray(points[order])
        if points.shape[1] == 3:
            undominated, self.volume = kernels.undominated(points)
            kept = np.flatnonzero(undominated)
        else:
            moocore = import_moocore()
            kept = np.flatnonzero(moocore.is_nondominated(points, maximise=True))
            if most is not None and len(kept) > most:
                kept = kept[np.linspace(0, len(kept) - 1, most).astype(np.intp)]
            self.volume = float(moocore.hypervolume(points[kept], ref=0.0, maximise=True))
        self.kept = order[kept]
        self._points = points[kept]

    def heights(self, cells: int, order: Ints) -> Floats:
        """How far the boxes reach on the last axis, see `Body`."""
        table = np.full((cells + 2, cells + 2), -1.0)
        i, j = (cells * self._points[:, order[:2]].T).astype(np.intp)
        np.maximum.at(table, (i, j), self._points[:, order[2]])
        for axis in (0, 1):
            table = np.flip(np.maximum.accumulate(np.flip(table, axis), axis=axis), axis)
        return np.ascontiguousarray(table)


class Hull(Body):
    """Convex hull of the points, the origin and the unit vectors."""

    concave = True

    def __init__(self, points: Floats) -> None:
        K = points.shape[1]
        hull = ConvexHull(np.vstack([points, np.zeros(K), np.eye(K)]))
        self.kept = np.sort(hull.vertices[hull.vertices < len(points)]).astype(np.intp)
        self.volume = float(hull.volume)
        self._faces = np.unique(hull.equations, axis=0)

    def heights(self, cells: int, order: Ints) -> Floats:
        """How far the hull reaches on the last axis, see `Body`."""
        # A face is normal @ point + offset = 0, the hull on the side where that is negative.
        faces = self._faces[:, [*order, 3]]
        above = faces[:, 2] > 1e-9
        planes = faces[above][:, [0, 1, 3]] / -faces[above][:, 2:3]
        sort = np.argsort(-planes[:, 1])
        table = kernels.lower_envelope(np.ascontiguousarray(planes[sort]), cells)
        axis = np.arange(cells + 2) / cells
        for u, v, _, offset in faces[~above]:
            table[u * axis[:, None] + v * axis + offset > 1e-12] = -1e9
        return table


def import_moocore() -> Any:
    """The optional package that computes unions of boxes in four and more dimensions."""
    try:
        import moocore  # noqa: PLC0415
    except ImportError:
        raise ImportError(
            'volume="boxes" with four classes or more needs moocore: pip install moocore.'
        ) from None
    return moocore
