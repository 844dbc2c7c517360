"""The simplex as a triangle or a tetrahedron: bins as polygons, many forecasts as cells."""

from __future__ import annotations

import numpy as np

from isoroc._simplex import Floats, Ints
from isoroc._tree import BinTree

#: Corners of a regular tetrahedron with edges of length 1, one for each of four classes.
TETRAHEDRON: Floats = np.array(
    [
        [0, 0, 0],
        [1, 0, 0],
        [1 / 2, np.sqrt(3) / 2, 0],
        [1 / 2, np.sqrt(3) / 6, np.sqrt(2 / 3)],
    ]
)


def bin_polygons(tree: BinTree) -> list[Floats]:
    """Corners of the bins of a tree of three classes, as points of the simplex.

    A bin that only touches the simplex has no polygon but an empty array.

    Examples
    --------
    >>> import numpy as np
    >>> tree = BinTree(
    ...     thresholds=np.array([[0.5, 0.25, 0.25]]),
    ...     children=np.array([[1, 2, -1]]),
    ...     split_nodes=np.array([0]),
    ...     class_weights=np.ones((3, 3)),
    ... )
    >>> bin_polygons(tree)[0]
    array([[1.   , 0.   , 0.   ],
           [0.625, 0.375, 0.   ],
           [0.25 , 0.   , 0.75 ]])
    """
    polygons: dict[int, Floats] = {0: np.eye(3)}
    for gamma, children, node in zip(tree.thresholds, tree.children, tree.split_nodes, strict=True):
        whole = polygons.pop(int(node))
        present = np.flatnonzero(children >= 0)
        for k in present:
            part = whole
            for j in present[present != k]:
                # the side of R_k on the boundary with R_j: p_k - gamma_k >= p_j - gamma_j
                ahead = np.zeros(3)
                ahead[[k, j]] = 1, -1
                part = _clip(part, part @ ahead - (gamma[k] - gamma[j]))
            polygons[int(children[k])] = part
    return [polygons[int(node)] for node in tree.bins]


def _clip(corners: Floats, side: Floats) -> Floats:
    """The part of a convex polygon on which a linear function, known at its corners, is >= 0."""
    kept: list[Floats] = []
    for i in range(len(corners)):
        j = (i + 1) % len(corners)
        if side[i] >= 0:
            kept.append(corners[i])
        if side[i] * side[j] < 0:
            t = side[i] / (side[i] - side[j])
            kept.append(corners[i] + t * (corners[j] - corners[i]))
    return np.array(kept) if len(kept) > 2 else np.empty((0, 3))


def cells_of(P: Floats, steps: int) -> tuple[Ints, Ints]:
    """Cells of width 1 / steps that hold forecasts, in whole steps, and the cell of each forecast.

    Coordinates are rounded down, so those of a cell do not add up to `steps`: of the small
    triangles, one step is missing from those that point up, two from those that point down.

    Examples
    --------
    >>> import numpy as np
    >>> cells_of(np.array([[0.6, 0.2, 0.2], [0.4, 0.3, 0.3], [1.0, 0.0, 0.0]]), 2)
    (array([[0, 0, 0],
           [1, 0, 0]]), array([1, 0, 1]))
    """
    whole = np.floor(P * steps).astype(np.intp)
    # A lattice point is a corner of several cells; it goes to the one below its largest coordinate.
    corner = np.flatnonzero(whole.sum(axis=1) == steps)
    whole[corner, whole[corner].argmax(axis=1)] -= 1
    key = whole @ (steps + 1) ** np.arange(P.shape[1])
    _, first, cell = np.unique(key, return_index=True, return_inverse=True)
    return whole[first], cell


def triangles(cells: Ints, steps: int) -> Floats:
    """Corners of small triangles, shape (m, 3, 3), as points of the simplex.

    Examples
    --------
    >>> triangles(np.array([[0, 0, 0]]), 2)[0]
    array([[0. , 0.5, 0.5],
           [0.5, 0. , 0.5],
           [0.5, 0.5, 0. ]])
    """
    missing = steps - cells.sum(axis=1)
    shape = np.where((missing == 1)[:, None, None], np.eye(3), 1 - np.eye(3))
    return np.asarray((cells[:, None, :] + shape) / steps)
