"""What must hold for the parts of a model: nothing that was read is used before it is checked.

A check takes the value, its place in the file for the error message, and the sizes known so far:
``sizes["K"]`` is the number of classes, and a letter in a shape stands for the same number
wherever it is used. Its `schema` describes the value in the file to other tools.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoroc._core.ledger import Ledger
from isoroc._core.tree import BinTree
from isoroc._core.verdict import Verdict
from isoroc._maps.modelfile.document import Fault
from isoroc._maps.monotonicity import Certificate
from isoroc._maps.top import TopReduction
from isoroc._support.table import Table

Sizes = dict[str, int]

ROUNDING = 1e-6  # tolerance for sums of probabilities, and for weights relative to their total
LARGEST_WEIGHT = 1e300  # no fit comes near it


@dataclass(frozen=True)
class Check:
    """A condition that raises a `Fault`, and the JSON Schema of values that may satisfy it."""

    condition: Callable[[Any, str, Sizes], None]
    schema: dict[str, Any] = field(default_factory=dict)

    def __call__(self, value: Any, place: str, sizes: Sizes) -> None:
        """Raise a `Fault` unless the value is sound. Add the sizes that it sets."""
        self.condition(value, place, sizes)


def _reference(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def decayed_counts() -> Any:
    """The class `DecayedCounts`, which only models of `OnlineCalibrator` have."""
    from isoroc._counts import DecayedCounts  # noqa: PLC0415 -- slow to import

    return DecayedCounts


def _is_decayed(value: Any, place: str, _: Sizes) -> None:
    if not isinstance(value, decayed_counts()):
        raise Fault(place, "expected decayed counts")


def _instance_of(of_type: Any, expected: str, **schema: Any) -> Check:
    def condition(value: Any, place: str, _: Sizes) -> None:
        if not isinstance(value, of_type):
            raise Fault(place, f"expected {expected}")

    return Check(condition, schema)


boolean = _instance_of(bool, "true or false", type="boolean")
verdict = _instance_of(Verdict, "a verdict", **_reference("verdict"))
table = _instance_of(Table, "a table", **_reference("table"))
ledger = _instance_of(Ledger, "a ledger", **_reference("ledger"))
decayed = Check(_is_decayed, _reference("decayed"))
texts = _instance_of(dict, "an object of texts", **_reference("dict"))
certificate = _instance_of(
    Certificate | None,
    "the certificate of this tree",
    anyOf=[_reference("certificate"), {"type": "null"}],
)
#: The calibrator or map checks what depends on several of its attributes.
anything = Check(lambda *_: None, _reference("value"))


def number(*, most: float, above: float = -math.inf) -> Check:
    """Check that a value is a number >= 0 in a range."""

    def condition(value: Any, place: str, _: Sizes) -> None:
        real = isinstance(value, int | float) and not isinstance(value, bool)
        if not real or not (0 <= value <= most and above < value):
            raise Fault(place, "expected a number in its range")

    least = {"minimum": 0} if above == -math.inf else {"exclusiveMinimum": above}
    return Check(condition, {"type": "number", **least, "maximum": most})


def coefficients(*shape: int | str, least: float = -1e100, most: float = 1e100) -> Check:
    """Check that a value is an array of numbers in a range, by default one without overflow."""

    def condition(value: Any, place: str, sizes: Sizes) -> None:
        known = tuple(sizes.get(n) if isinstance(n, str) else n for n in shape)
        array = check_array(value, place, shape=known)
        if not ((array >= least) & (array <= most)).all():
            raise Fault(place, f"expected numbers between {least:g} and {most:g}")
        sizes |= {n: have for n, have in zip(shape, array.shape, strict=True) if isinstance(n, str)}

    return Check(condition, _reference("array") | {"description": f"Shape {shape}"})


def probabilities(size: str, *, or_matrix: bool = False) -> Check:
    """Check that a value is a vector of probabilities that sum to one, or a matrix of such rows."""

    def condition(value: Any, place: str, sizes: Sizes) -> None:
        rows = [None] if or_matrix and isinstance(value, np.ndarray) and value.ndim == 2 else []
        shares = check_array(value, place, shape=(*rows, sizes[size]))
        if (shares < 0).any() or (np.abs(shares.sum(axis=-1) - 1) > ROUNDING).any():
            raise Fault(place, "expected numbers >= 0 that sum to 1")

    return Check(condition, _reference("array"))


def _check_ascending(value: Any, place: str, _: Sizes) -> None:
    if not (np.diff(check_array(value, place, shape=(None,))) >= 0).all():
        raise Fault(place, "expected ascending numbers")


ascending = Check(_check_ascending, _reference("array"))


def tree(size: str) -> Check:
    """Check that a value is a tree, whose parts were checked when it was read."""

    def condition(value: Any, place: str, sizes: Sizes) -> None:
        if not isinstance(value, BinTree) or value.n_classes != sizes[size]:
            raise Fault(place, f"expected a tree of {sizes[size]} classes")

    return Check(condition, _reference("tree"))


def reduction(size: str) -> Check:
    """Check that a value is a reduction of K classes or None, and set the number it leaves."""

    def condition(value: Any, place: str, sizes: Sizes) -> None:
        K = sizes["K"]
        if value is not None and not (isinstance(value, TopReduction) and value.top <= K - 2):
            raise Fault(place, f"expected a reduction of {K} classes, or none")
        sizes[size] = K if value is None else value.top + 1

    return Check(condition, {"anyOf": [_reference("reduction"), {"type": "null"}]})


def names(size: str) -> Check:
    """Check that a value is an array of distinct names, and set their number."""

    def condition(value: Any, place: str, sizes: Sizes) -> None:
        if not isinstance(value, np.ndarray) or value.dtype.kind != "U" or value.ndim != 1:
            raise Fault(place, "expected an array of names")
        if len(set(value.tolist())) < len(value):
            raise Fault(place, "the names are not distinct")
        sizes[size] = len(value)

    return Check(condition, _reference("array"))


def list_of(check: Check, length: str = "", *, least: int = 1) -> Check:
    """Check every entry of a list of at least `least` entries."""

    def condition(value: Any, place: str, sizes: Sizes) -> None:
        expected = sizes.get(length)
        if not isinstance(value, list) or len(value) < least or expected not in (None, len(value)):
            raise Fault(place, f"expected a list of {expected or 'one or more'}")
        if length:
            sizes[length] = len(value)
        for i, entry in enumerate(value):
            check(entry, f"{place}[{i}]", sizes)

    return Check(condition, {"type": "array", "items": check.schema, "minItems": least})


def check_array(
    array: Any, place: str, *, shape: tuple[int | None, ...], dtype: str = "float64"
) -> NDArray[Any]:
    """Check that a value is an array of finite numbers with a shape, where None is any length."""
    if not isinstance(array, np.ndarray) or array.dtype != dtype:
        raise Fault(place, f"expected an array of {dtype}")
    sizes = zip(shape, array.shape, strict=False)
    if array.ndim != len(shape) or any(want not in (None, have) for want, have in sizes):
        expected = ", ".join("any" if n is None else str(n) for n in shape)
        got = ", ".join(map(str, array.shape))
        raise Fault(place, f"expected an array of shape ({expected}), got ({got})")
    if not np.isfinite(array).all():
        raise Fault(place, "expected finite numbers")
    return array


def check_tree(tree: BinTree, place: str) -> None:
    """Raise a `Fault` for a tree that growth cannot produce."""
    N, K = check_array(tree.class_weights, f"{place}.class_weights", shape=(None, None)).shape
    S = len(check_array(tree.split_nodes, f"{place}.split_nodes", shape=(None,), dtype="int64"))
    check_array(tree.thresholds, f"{place}.thresholds", shape=(S, K))
    check_array(tree.children, f"{place}.children", shape=(S, K), dtype="int64")
    if K < 2:
        raise Fault(f"{place}.class_weights", "expected two classes or more")
    exists = tree.children >= 0
    n_children = exists.sum(axis=1)
    # Splits append nodes, so in the order of splits and regions children count up from 1.
    if not np.array_equal(tree.children[exists], np.arange(1, N)) or (tree.children < -1).any():
        raise Fault(f"{place}.children", f"expected the nodes 1 to {N - 1} in order, or -1")
    if (n_children < 2).any():
        raise Fault(f"{place}.children", "a split has fewer than two children")
    older = 1 + np.cumsum(n_children) - n_children
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
    limits = {0: (-math.inf, math.inf)}
    for (node, (left, right)), cut in zip(tree.splits, tree.thresholds[:, 1], strict=True):
        low, high = limits[node]
        if not low < cut < high:
            raise Fault(place, "a threshold lies outside the bin that it splits")
        limits[left] = (low, cut)
        limits[right] = (cut, high)


def check_reduction(reduction: TopReduction, place: str) -> None:
    """Raise a `Fault` for a reduction that keeps no class or cannot share the rest."""
    if reduction.top < 1:
        raise Fault(f"{place}.top", "expected a number >= 1")
    if not reduction.floor > 0:
        raise Fault(f"{place}.floor", "expected a number > 0")


def check_certificate(certificate: Certificate, place: str) -> None:
    """Raise a `Fault` for an inconsistent certificate."""
    S, K = check_array(certificate.thresholds, f"{place}.thresholds", shape=(None, None)).shape
    check_array(certificate.calibrated_thresholds, f"{place}.calibrated_thresholds", shape=(S, K))
    check_array(certificate.slack, f"{place}.slack", shape=(S,))


def check_ledger(ledger: Ledger, place: str) -> None:
    """Raise a `Fault` for a ledger that no stream of rows has."""
    (M,) = check_array(ledger.log_weights, f"{place}.log_weights", shape=(None,)).shape
    check_array(ledger.losses, f"{place}.losses", shape=(M,))
    if not M or abs(np.exp(ledger.log_weights).sum() - 1) > ROUNDING:
        raise Fault(f"{place}.log_weights", "expected logarithms of weights that sum to 1")
    figures = (ledger.served, ledger.mixed, ledger.sharing)
    if not all(map(math.isfinite, figures)) or (ledger.losses < 0).any() or ledger.served < 0:
        raise Fault(place, "expected losses >= 0")
    numbers = (ledger.n_rows, ledger.n_batches, ledger.n_unfitted, ledger.waited, ledger.late)
    if min(*numbers, ledger.delay) < 0:
        raise Fault(place, "expected numbers of rows and batches >= 0")


def check_decayed(counts: Any, place: str) -> None:
    """Raise a `Fault` for cells that decayed counts cannot have."""
    m, K = check_array(counts.class_weights, f"{place}.class_weights", shape=(None, None)).shape
    _, C = check_array(counts.sums, f"{place}.sums", shape=(m, None)).shape
    check_array(counts.squares, f"{place}.squares", shape=(m, K))
    check_array(counts.rows, f"{place}.rows", shape=(m,), dtype="int64")
    resolution = counts.resolution
    power_of_two = not resolution & (resolution - 1)
    if not (counts.half_life > 0 and 0 <= resolution <= 2**24 and power_of_two):
        raise Fault(place, "expected a half-life > 0, and 0 or a power of two as resolution")
    if K < 2 or C not in (1, K) or (C == 1 and K > 2):
        raise Fault(f"{place}.sums", "expected a column for each class, or one of scores")
    dtype = "int32" if resolution else "float64"
    check_array(counts.keys, f"{place}.keys", shape=(m, len(counts.grid.names)), dtype=dtype)
    if min(part.min(initial=0) for part in (counts.class_weights, counts.squares)) < 0:
        raise Fault(place, "expected weights >= 0")
    if not counts.class_weights.sum(axis=1).all():
        raise Fault(f"{place}.class_weights", "an entry has no weight")
