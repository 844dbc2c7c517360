"""Geometry of the simplex: bins as polygons, cells that group many forecasts."""

from __future__ import annotations

import numpy as np

from isoroc._simplex import Floats, Ints
from isoroc._tree import BinTree

#: Corners of a regular tetrahedron with edges of length 1, one per class.
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

    A bin that meets the simplex in a point or an edge only has an empty array.

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
                # R_k lies where p_k - gamma_k >= p_j - gamma_j
                difference = np.zeros(3)
                difference[[k, j]] = 1, -1
                part = _clip(part, part @ difference - (gamma[k] - gamma[j]))
            polygons[int(children[k])] = part
    return [polygons[int(node)] for node in tree.bins]


def _clip(corners: Floats, side: Floats) -> Floats:
    """Part of a convex polygon on which a linear function, given at its corners, is >= 0."""
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
    """Occupied cells of width 1 / steps, and the cell of each forecast.

    A cell is given by its coordinates in whole steps, rounded down, so they do not sum to `steps`.
    For three classes the sum is 1 less for small triangles that point up and 2 less for those that
    point down.

    Examples
    --------
    >>> import numpy as np
    >>> cells_of(np.array([[0.6, 0.2, 0.2], [0.4, 0.3, 0.3], [1.0, 0.0, 0.0]]), 2)
    (array([[0, 0, 0],
           [1, 0, 0]]), array([1, 0, 1]))
    """
    whole = np.floor(P * steps).astype(np.intp)
    # A lattice point is a corner of several cells; assign it to the one below its largest
    # coordinate.
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
