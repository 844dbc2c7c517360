"""Points of the simplex: colours, bins as polygons, cells that group many forecasts."""

import numpy as np

from isoroc._core.tree import BinTree
from isoroc._core.types import Floats, Ints

#: The palette of Okabe and Ito, safe for colour-blind readers, with medium lightness first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def mix(values: Floats) -> Floats:
    """Colours of points of the simplex, shape (m, 3): weighted means of the classes' colours."""
    names = [COLOURS[k % len(COLOURS)] for k in range(values.shape[1])]
    # In linear light: gamma-encoded RGB would make mixtures too dark.
    light = (np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in names]) / 255) ** 2.2
    return np.asarray((values @ light).clip(0, 1) ** (1 / 2.2))


def bin_polygons(tree: BinTree) -> list[Floats]:
    """Corners of the bins of a tree of three classes, none if a bin only touches the simplex."""
    polygons: dict[int, Floats] = {0: np.eye(3)}
    for gamma, children, node in zip(tree.thresholds, tree.children, tree.split_nodes, strict=True):
        whole = polygons.pop(int(node))
        present = np.flatnonzero(children >= 0)
        for k in present:
            part = whole
            for j in present[present != k]:
                # R_k lies where p_k - gamma_k >= p_j - gamma_j
                part = _clip(part, part[:, k] - part[:, j] - (gamma[k] - gamma[j]))
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


def occupied_cells(P: Floats, steps: int) -> tuple[Ints, Ints]:
    """Occupied cells of width 1 / steps, and the cell of each forecast.

    A cell is given by its coordinates in whole steps, rounded down. They sum to ``steps - 1`` for
    small triangles that point up, and to ``steps - 2`` for those that point down.
    """
    whole = np.floor(P * steps).astype(np.intp)
    # A lattice point is a corner of several cells. Assign it to the one below its largest
    # coordinate.
    corner = np.flatnonzero(whole.sum(axis=1) == steps)
    whole[corner, whole[corner].argmax(axis=1)] -= 1
    key = whole @ (steps + 1) ** np.arange(P.shape[1])
    _, first, cell = np.unique(key, return_index=True, return_inverse=True)
    return whole[first], cell


def triangles(cells: Ints, steps: int) -> Floats:
    """Corners of small triangles, shape (m, 3, 3), as points of the simplex."""
    missing = steps - cells.sum(axis=1)
    shape = np.where((missing == 1)[:, None, None], np.eye(3), 1 - np.eye(3))
    return np.asarray((cells[:, None, :] + shape) / steps)
