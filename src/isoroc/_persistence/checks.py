"""What must hold for the parts of a model: nothing that was read is used before it is checked.

The compiled loops trust their arrays, so a tree that came from a file must be beyond doubt.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoroc._monotonicity import Certificate
from isoroc._persistence.schema import Fault
from isoroc._top import TopReduction
from isoroc._tree import BinTree

#: How far the weights of children may be from their parent's, as a share of the total weight.
_ROUNDING = 1e-6
#: Weights of more than this could overflow when they are smoothed.
_LARGEST = 1e300


def check_array(
    array: Any, place: str, *, kind: str = "f", shape: tuple[int | None, ...]
) -> NDArray[Any]:
    """Check that a value is an array of finite numbers of a kind and shape; None is any length.

    Examples
    --------
    >>> check_array(np.ones((2, 3)), "prior_", shape=(3,))
    Traceback (most recent call last):
    ...
    isoroc._persistence.schema.Fault: prior_: expected an array of shape (3), got (2, 3)
    """
    if not isinstance(array, np.ndarray) or array.dtype != {"f": np.float64, "i": np.int64}[kind]:
        raise Fault(place, f"expected an array of {'float64' if kind == 'f' else 'int64'}")
    if len(array.shape) != len(shape) or any(
        want not in (None, have) for want, have in zip(shape, array.shape, strict=True)
    ):
        expected, got = (
            ", ".join("any" if n is None else str(n) for n in s) for s in (shape, array.shape)
        )
        raise Fault(place, f"expected an array of shape ({expected}), got ({got})")
    if kind == "f" and not np.isfinite(array).all():
        raise Fault(place, "expected finite numbers")
    return array


def check_tree(tree: BinTree, place: str) -> None:
    """Refuse a tree that no growth could have left."""
    weights = check_array(tree.class_weights, f"{place}.class_weights", shape=(None, None))
    N, K = weights.shape
    check_array(tree.split_nodes, f"{place}.split_nodes", kind="i", shape=(None,))
    S = len(tree.split_nodes)
    check_array(tree.thresholds, f"{place}.thresholds", shape=(S, K))
    check_array(tree.children, f"{place}.children", kind="i", shape=(S, K))
    if K < 2:
        raise Fault(f"{place}.class_weights", "expected two classes or more")
    exists = tree.children >= 0
    # Splits append nodes, so in the order of splits and regions children count up from 1.
    if not np.array_equal(tree.children[exists], np.arange(1, N)) or (tree.children < -1).any():
        raise Fault(f"{place}.children", f"expected the nodes 1 to {N - 1} in order, or -1")
    if (exists.sum(axis=1) < 2).any():
        raise Fault(f"{place}.children", "a split has fewer than two children")
    older = 1 + np.cumsum(exists.sum(axis=1)) - exists.sum(axis=1)
    if ((tree.split_nodes < 0) | (tree.split_nodes >= older)).any():
        raise Fault(f"{place}.split_nodes", "a split divides a node that does not exist yet")
    if len(np.unique(tree.split_nodes)) != S:
        raise Fault(f"{place}.split_nodes", "a node is split twice")
    _check_weights(tree, f"{place}.class_weights")
    if K == 2:
        _check_cuts(tree, f"{place}.thresholds")


def _check_weights(tree: BinTree, place: str) -> None:
    weights = tree.class_weights
    with np.errstate(over="ignore"):
        total = weights.sum(axis=1)
    if (weights < 0).any() or not ((total > 0) & (total < _LARGEST)).all():
        raise Fault(place, "expected weights >= 0, and of every node one > 0")
    below = np.zeros(tree.thresholds.shape)
    np.add.at(below, np.nonzero(tree.children >= 0)[0], weights[1:])
    if (np.abs(below - weights[tree.split_nodes]) > _ROUNDING * total[0]).any():
        raise Fault(place, "the weights of a split's children do not add up to its own")


def _check_cuts(tree: BinTree, place: str) -> None:
    """Two classes: a split must lie inside the interval of scores that it divides."""
    low, high = np.full(len(tree.class_weights), -np.inf), np.full(len(tree.class_weights), np.inf)
    for node, cut, (left, right) in zip(
        tree.split_nodes, tree.thresholds[:, 1], tree.children, strict=True
    ):
        if not low[node] < cut < high[node]:
            raise Fault(place, "a threshold lies outside the bin that it splits")
        low[left], high[left] = low[node], cut
        low[right], high[right] = cut, high[node]


def check_reduction(reduction: TopReduction, place: str) -> None:
    """Refuse a reduction that cannot share the rest."""
    if not reduction.floor > 0:
        raise Fault(f"{place}.floor", "expected a number > 0")


def check_certificate(certificate: Certificate, place: str) -> None:
    """Refuse a certificate whose parts do not fit together."""
    S, K = check_array(certificate.thresholds, f"{place}.thresholds", shape=(None, None)).shape
    check_array(certificate.calibrated_thresholds, f"{place}.calibrated_thresholds", shape=(S, K))
    check_array(certificate.slack, f"{place}.slack", shape=(S,))
