"""What must hold for the parts of a model: nothing that was read is used before it is checked.

A calibrator or map names its numbers with a check for each. A check takes the value, its place in
the file for the error message, and the sizes known so far: ``sizes["K"]`` is the number of classes,
and a letter in a shape stands for the same number wherever it is used. The compiled loops trust
their arrays, so a tree that came from a file must be beyond doubt.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Concatenate, ParamSpec

import numpy as np
from numpy.typing import NDArray

from isoroc._core.tree import BinTree
from isoroc._core.verdict import Verdict
from isoroc._maps.modelfile.document import Fault
from isoroc._maps.monotonicity import Certificate
from isoroc._maps.top import TopReduction
from isoroc._support.table import Table

Sizes = dict[str, int]
Check = Callable[[Any, str, Sizes], None]
Options = ParamSpec("Options")

#: What probabilities may be off by when they are summed, and the weights of children from their
#: parent's as a share of the total weight.
ROUNDING = 1e-6
#: No fit comes near; sums and products of numbers within these limits cannot overflow.
LARGEST_WEIGHT, LARGEST_COEFFICIENT = 1e300, 1e100


def _with_options(
    check: Callable[Concatenate[Any, str, Sizes, Options], None],
) -> Callable[Options, Check]:
    """Function of the options of a check that returns the check."""

    def make(*args: Options.args, **options: Options.kwargs) -> Check:
        return lambda value, place, sizes: check(value, place, sizes, *args, **options)

    return make


@_with_options
def _instance_of(value: Any, place: str, _: Sizes, kind: Any, expected: str) -> None:
    if not isinstance(value, kind):
        raise Fault(place, f"expected {expected}")


boolean = _instance_of(bool, "true or false")
verdict = _instance_of(Verdict, "a verdict")
table = _instance_of(Table, "a table")
certificate = _instance_of(Certificate | None, "the certificate of this tree")


@_with_options
def number(value: Any, place: str, _: Sizes, *, most: float, above: float = -math.inf) -> None:
    """Check that a value is a number >= 0 in a range."""
    real = isinstance(value, int | float) and not isinstance(value, bool)
    if not real or not (0 <= value <= most and above < value):
        raise Fault(place, "expected a number in its range")


@_with_options
def coefficients(value: Any, place: str, sizes: Sizes, *shape: int | str) -> None:
    """Check that a value is an array of numbers that cannot overflow."""
    known = tuple(sizes.get(n) if isinstance(n, str) else n for n in shape)
    array = check_array(value, place, shape=known)
    if (np.abs(array) > LARGEST_COEFFICIENT).any():
        raise Fault(place, "expected smaller numbers")
    sizes |= {n: have for n, have in zip(shape, array.shape, strict=True) if isinstance(n, str)}


@_with_options
def probabilities(
    value: Any, place: str, sizes: Sizes, size: str, *, or_matrix: bool = False
) -> None:
    """Check that a value is a vector of probabilities that sum to one, or a matrix of such rows."""
    rows = [None] if or_matrix and isinstance(value, np.ndarray) and value.ndim == 2 else []
    shares = check_array(value, place, shape=(*rows, sizes[size]))
    if (shares < 0).any() or (np.abs(shares.sum(axis=-1) - 1) > ROUNDING).any():
        raise Fault(place, "expected numbers >= 0 that sum to 1")


priors = partial(probabilities, or_matrix=True)


def ascending(value: Any, place: str, sizes: Sizes) -> None:  # noqa: ARG001
    """Check that a value is a vector of ascending numbers."""
    check_array(value, place, shape=(None,))
    if not (np.diff(value) >= 0).all():
        raise Fault(place, "expected ascending numbers")


@_with_options
def tree(value: Any, place: str, sizes: Sizes, size: str) -> None:
    """Check that a value is a tree; what is inside was checked when it was read."""
    if not isinstance(value, BinTree) or value.n_classes != sizes[size]:
        raise Fault(place, f"expected a tree of {sizes[size]} classes")


@_with_options
def reduction(value: Any, place: str, sizes: Sizes, size: str) -> None:
    """Check that a value is a reduction of K classes or None; sets the number that it leaves."""
    if value is not None and not (isinstance(value, TopReduction) and value.top <= sizes["K"] - 2):
        raise Fault(place, f"expected a reduction of {sizes['K']} classes, or none")
    sizes[size] = sizes["K"] if value is None else value.top + 1


@_with_options
def names(value: Any, place: str, sizes: Sizes, size: str) -> None:
    """Check that a value is an array of distinct names; sets their number."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "U" or value.ndim != 1:
        raise Fault(place, "expected an array of names")
    if len(set(value.tolist())) < len(value):
        raise Fault(place, "the names are not distinct")
    sizes[size] = len(value)


@_with_options
def list_of(
    value: Any, place: str, sizes: Sizes, check: Check, length: str = "", *, least: int = 1
) -> None:
    """Check every entry of a list, which has at least one of them unless `least` is 0."""
    expected = sizes.get(length)
    if not isinstance(value, list) or len(value) < least or expected not in (None, len(value)):
        raise Fault(place, f"expected a list of {expected or 'one or more'}")
    if length:
        sizes[length] = len(value)
    for i, entry in enumerate(value):
        check(entry, f"{place}[{i}]", sizes)


def anything(value: Any, place: str, sizes: Sizes) -> None:
    """Check nothing here: the calibrator checks what depends on several attributes."""


def check_array(
    array: Any, place: str, *, kind: str = "f", shape: tuple[int | None, ...]
) -> NDArray[Any]:
    """Check that a value is an array of finite numbers of a kind and shape; None is any length."""
    if not isinstance(array, np.ndarray) or array.dtype != {"f": np.float64, "i": np.int64}[kind]:
        raise Fault(place, f"expected an array of {'float64' if kind == 'f' else 'int64'}")
    known = [have if want is None else want for want, have in zip(shape, array.shape, strict=False)]
    if len(array.shape) != len(shape) or known != list(array.shape):
        expected = ", ".join("any" if n is None else str(n) for n in shape)
        got = ", ".join(map(str, array.shape))
        raise Fault(place, f"expected an array of shape ({expected}), got ({got})")
    if kind == "f" and not np.isfinite(array).all():
        raise Fault(place, "expected finite numbers")
    return array


def check_tree(tree: BinTree, place: str) -> None:
    """Refuse a tree that no growth could have left."""
    N, K = check_array(tree.class_weights, f"{place}.class_weights", shape=(None, None)).shape
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
    if (weights < 0).any() or not ((total > 0) & (total < LARGEST_WEIGHT)).all():
        raise Fault(place, "expected weights >= 0, and of every node one > 0")
    below = np.zeros(tree.thresholds.shape)
    np.add.at(below, np.nonzero(tree.children >= 0)[0], weights[1:])
    if (np.abs(below - weights[tree.split_nodes]) > ROUNDING * total[0]).any():
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
