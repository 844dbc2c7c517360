"""Operations and maps of every type, to hold backends against NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np

from isoroc import _maps as m
from isoroc._backends import NUMPY
from isoroc._core import smooth
from isoroc._core.tree import BinTree
from isoroc._input.kinds import KINDS, LOGITS, PROBABILITIES
from isoroc._maps.top import TopReduction


def random_tree(K, n_splits, seed=0):
    """A tree with random splits. Some regions are empty."""
    rng = np.random.default_rng(seed)
    nodes = []
    children = []
    open_nodes = [0]
    n_nodes = 1
    for _ in range(n_splits):
        nodes.append(open_nodes.pop(rng.integers(len(open_nodes))))
        exists = (rng.random(K) < 0.8) | (np.arange(K) < 2)
        children.append(np.where(exists, n_nodes + np.cumsum(exists) - 1, -1))
        open_nodes += range(n_nodes, n_nodes + exists.sum())
        n_nodes += exists.sum()
    return BinTree(
        thresholds=rng.dirichlet(np.ones(K), n_splits),
        children=np.array(children, dtype=np.intp).reshape(n_splits, K),
        split_nodes=np.array(nodes, dtype=np.intp),
        class_weights=rng.integers(1, 9, size=(n_nodes, K)).astype(float),
    )


def forecasts(kind, K, n=60, seed=0):
    """Valid forecasts of a kind, as columns. The first is certain."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(K, 0.3), n)
    P[0] = np.eye(K)[0]
    if kind.unit in {"probability", "percent", "proportion"}:
        X = {"probability": 1, "percent": 100, "proportion": 7}[kind.unit] * P
        return np.ascontiguousarray(X[:, 1:]) if kind.single else X
    with np.errstate(divide="ignore"):
        z = np.log(P if kind.name == "log_probabilities" else np.maximum(P, 1e-12))
    z -= np.log(np.exp(z).sum(axis=1, keepdims=True))
    if kind.unit == "log_probability" and kind.single:
        return z[:, 1:].copy()
    return rng.normal(scale=5, size=(n, 1)) if kind.single else z


def clean_forecasts(kind, K, n=60):
    """The same as maps take them."""
    with np.errstate(over="ignore"):
        return kind.clean(NUMPY, forecasts(kind, K, n))[0]


def smooth_maps(kind, K):
    rng = np.random.default_rng(0)
    tempered = {"kind": kind, "floor": 1e-6, "temperature": 1.7, "smoothing": 0.01}
    near_one = np.eye(K) + 0.1 * rng.normal(size=(K, K))
    of_classes = rng.normal(size=K)
    yield m.IdentityMap(kind=kind)
    yield m.TemperatureMap(**tempered)
    yield m.TemperatureMap(**tempered | {"smoothing": 0.0})
    yield m.MatrixMap(**tempered, coef=near_one, quadratic=0.1 * of_classes, intercept=of_classes)
    yield m.MatrixMap(**tempered, coef=near_one[0], quadratic=0 * of_classes, intercept=of_classes)
    for knots in (np.array([-2.0, 0, 1.5]), np.empty(0)):
        yield m.SplineMap(
            kind=kind,
            floor=1e-8,
            knots=knots,
            coef=near_one,
            slopes=0.2 * rng.normal(size=(K, len(knots))),
            intercept=of_classes,
            smoothing=0.01,
        )
    yield m.KernelMap(
        **tempered,
        knots=np.sort(3 * rng.normal(size=(K, smooth.N_KNOTS)), axis=1) - 4,
        origin=rng.normal(size=(2, K)),
        stretch=np.array([0.4, 0.9]),
        centres=rng.normal(size=(7, 2, K)),
        weights=rng.normal(size=(K, 7)),
        coef=0.1 * rng.normal(size=(K, K)),
        intercept=of_classes,
        reach=0.6,
    )
    yield m.CumulativeMap(
        **tempered,
        tilt=0.3 * of_classes,
        rates=np.array([0.7, 1.2]),
        location=0.2 * rng.normal(size=K),
        shifts=np.sort(rng.normal(size=K - 1)),
    )
    J = 0.2 * rng.normal(size=(K, K)) * (1 - np.eye(K))
    directions = rng.random((K, K)) * (1 - np.eye(K))
    directions /= directions.sum(axis=1, keepdims=True)
    for towards, interactions in ((None, None), (directions, J + J.T)):
        yield m.MonotoneMap(
            kind=kind,
            floor=1e-4,
            scale=2.0,
            softness=rng.random((K, 2)) / 2,
            directions=towards,
            biases=rng.normal(size=(K, 2)),
            interactions=interactions,
        )


def step_maps(kind, K):
    rng = np.random.default_rng(1)
    shrunk = {"kind": kind, "pseudocount": 1.0}
    whole: dict[str, Any] = {"reduction": None, "prior": np.full(K, 1 / K)}
    for n_splits in (0, 1, 12):
        yield m.BinMap(**shrunk, **whole, tree=random_tree(K, n_splits))
        yield tilted_map(**shrunk, **whole, tree=random_tree(K, n_splits))
    for top in range(1, min(K - 1, 3)):
        for capped in (False, True):
            reduction = TopReduction(top, 0.01, capped)
            prior = np.full(top + 1, 1 / (top + 1))
            own: dict[str, Any] = {"reduction": reduction, "prior": prior}
            for make in (m.BinMap, tilted_map):
                yield make(**shrunk, **own, tree=random_tree(top + 1, 6, top))
    lengths = [5] if K == 2 else [0, 1, *rng.integers(2, 20, K - 2)]
    cuts = [np.sort(rng.random(n)) for n in lengths]
    values, upper = ([rng.random(n + 1) / 2 + 0.1 * i for n in lengths] for i in (1, 4))
    yield m.StepMap(kind=kind, cuts=cuts, values=values)
    yield m.VennAbersMap(kind=kind, cuts=cuts, lower=values, upper=upper)


def tilted_map(tree, **numbers):
    """A map whose values vary in the bins of a tree. In the first bin one class is impossible."""
    rng = np.random.default_rng(len(tree.bins))
    tilts = rng.random((len(tree.bins), tree.n_classes))
    tilts[0, 0] = 0.0
    tilts /= tilts.max(axis=1, keepdims=True)
    shares = np.append(rng.random(len(tilts) - 1), 1.0)
    numbers |= {"floor": 1e-4, "temperature": 1.4, "smoothing": 0.01}
    return m.TiltedMap(tree=tree, tilts=tilts, shares=shares, **numbers)


def all_maps(kind, K):
    """Maps of every type, with and without their optional parts."""
    smooth = list(smooth_maps(kind, K))
    steps = list(step_maps(kind, K))
    yield from (*smooth, *steps)
    for members in (smooth, [smooth[1], steps[2], smooth[0]]):
        weights = np.full(len(members), 1 / len(members))
        yield m.MixtureMap(kind=kind, members=members, weights=weights, monotone=False)
    yield segment_map(kind, K, smooth[1], smooth_maps(LOGITS, K))


def segment_map(kind, K, common, of_logits):
    """A map with levels, bins, a pair of both and scales."""
    rng = np.random.default_rng(2)
    tables = [0.5 * rng.normal(size=(n, K + 1)) for n in (2, 3, 6)]
    return m.SegmentMap(
        kind=kind,
        common=common,
        shifted=list(of_logits)[3],
        weight=0.7,
        columns=np.array(["region", "age"]),
        levels=[np.array(["it's", "north"]), np.array([], dtype=str)],
        cuts=[np.empty(0), np.array([30.0, 50.5])],
        pairs=np.array([[0, -1], [1, -1], [0, 1]]),
        tables=tables,
        offset=rng.normal(size=K),
    )


#: Kinds of forecasts and numbers of classes.
SHAPES = [(kind, 2) for kind in KINDS.values() if kind.exclusive]
SHAPES += [(kind, K) for kind in (PROBABILITIES, LOGITS) for K in (3, 5)]
#: Shapes of more columns than sums are taken of at once.
WIDE = [(PROBABILITIES, 12), (LOGITS, 70)]


def is_rounded(own):
    """Whether last digits may differ: libraries compute logarithms and exponentials differently."""
    if isinstance(own, m.SegmentMap):
        return True
    if isinstance(own, m.IdentityMap):
        return own.kind.scores == "logit"
    if isinstance(own, m.TiltedMap):
        return True
    logits = own.kind.scores == "logit" and not own.kind.single
    return logits or not isinstance(own, m.BinMap | m.StepMap)


_TREE = random_tree(4, 8)
_CUTS = [np.array([0.3]), np.empty(0), np.array([0.1, 0.2, 0.4]), np.linspace(0, 1, 40)]
_VALUES = [np.cos(np.arange(len(cuts) + 1)) for cuts in _CUTS]
_MATRIX = np.random.default_rng(3).normal(size=(3, 4))
_KNOTS = np.sort(np.random.default_rng(4).random((4, 5)), axis=1)

#: Numbers of columns that NumPy adds up in all of its ways.
TOTALS = (1, 3, 8, 11, 128, 129, 257, 300, 1000)

#: Each operation on rows X of width four in (0, 1), and what it means in plain NumPy.
OPERATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "arithmetic": (
        lambda _, X: (1.0 - X) * X / (2.0 + X) - 3 * X + np.arange(4.0),
        lambda X: (1 - X) * X / (2 + X) - 3 * X + np.arange(4),
    ),
    "with a column": (
        lambda o, X: X - o.take(X, [1]) / 2.0 + np.arange(4.0) * o.sum(X),
        lambda X: X - X[:, [1]] / 2 + np.arange(4) * X.sum(axis=1, keepdims=True),
    ),
    "negative": (lambda _, X: -X, lambda X: -X),
    "log": (lambda o, X: o.log(X), np.log),
    "exp": (lambda o, X: o.exp(X), np.exp),
    "sqrt": (lambda o, X: o.sqrt(X), np.sqrt),
    "floor": (lambda o, X: o.floor(X * 8.0), lambda X: np.floor(8 * X)),
    "absolute": (lambda o, X: o.absolute(X - 0.5), lambda X: np.abs(X - 0.5)),
    "maximum": (lambda o, X: o.maximum(X, 0.5), lambda X: np.maximum(X, 0.5)),
    "minimum": (
        lambda o, X: o.minimum(X, np.arange(4) / 4),
        lambda X: np.minimum(X, np.arange(4) / 4),
    ),
    "where": (
        lambda o, X: o.where((X <= 0.5) & (X >= 0.1), X, -1.0),
        lambda X: np.where((X >= 0.1) & (X <= 0.5), X, -1),
    ),
    "sum": (lambda o, X: o.sum(X * X), lambda X: (X**2).sum(axis=1)[:, None]),
    **{
        f"total of {n}": (
            lambda o, X, n=n: o.total(o.take(X, np.arange(n) % 4)),
            lambda X, n=n: np.ascontiguousarray(X[:, np.arange(n) % 4]).sum(axis=1)[:, None],
        )
        for n in TOTALS
    },
    "largest": (lambda o, X: o.largest(X)[0], lambda X: X.max(axis=1)[:, None]),
    "place of the largest, the first on ties": (
        lambda o, X: o.where(o.is_at(o.largest(o.floor(X * 3.0))[1], np.arange(4)), 1.0, 0.0 * X),
        lambda X: np.eye(4)[np.floor(3 * X).argmax(axis=1)],
    ),
    "smallest": (lambda o, X: o.smallest(X), lambda X: X.min(axis=1)[:, None]),
    "every": (
        lambda o, X: o.where(o.every(X <= 0.8), X, 0.0),
        lambda X: np.where((X <= 0.8).all(axis=1)[:, None], X, 0),
    ),
    "take and concat": (
        lambda o, X: o.concat([o.take(X, [3, 0, 0]), 1.0 - X, o.take(X, [2, 3])]),
        lambda X: np.hstack([X[:, [3, 0, 0]], 1 - X, X[:, 2:]]),
    ),
    "linear": (
        lambda o, X: o.linear(X, _MATRIX, np.arange(3.0)) + o.linear(X * X, _MATRIX),
        lambda X: (X + X**2) @ _MATRIX.T + np.arange(3),
    ),
    "linear twice": (
        lambda o, X: o.linear(o.linear(2.0 * X + 1.0, _MATRIX), np.ones((2, 3)), np.ones(2)),
        lambda X: np.ones((1, 2)) * ((2 * X + 1) @ _MATRIX.T).sum(axis=1)[:, None] + 1,
    ),
    "run sums": (
        lambda o, X: o.segment_sums(X, np.array([[1.0, 2], [3, 4]])),
        lambda X: np.stack([X[:, 0] + 2 * X[:, 1], 3 * X[:, 2] + 4 * X[:, 3]], axis=1),
    ),
    "steps": (
        lambda o, X: o.steps(_CUTS, _VALUES, X),
        lambda X: (
            np.stack(
                [
                    v[(x[:, None] > c).sum(axis=1)]
                    for c, v, x in zip(_CUTS, _VALUES, X.T, strict=True)
                ]
            ).T
        ),
    ),
    "locate": (
        lambda o, X: o.look_up(np.arange(82.0).reshape(41, 2), o.locate(_CUTS[3], o.take(X, [3]))),
        lambda X: (np.searchsorted(_CUTS[3], X[:, 3])[:, None] * 2 + [0, 1]).astype(float),
    ),
    "route": (
        lambda o, X: o.look_up(np.arange(float(len(_TREE.bins)))[:, None], o.route(_TREE, X)),
        lambda X: np.array([[walk(_TREE, x)] for x in X], dtype=float),
    ),
    "softmax": (
        lambda o, X: o.softmax(9.0 * X),
        lambda X: np.exp(9 * X) / np.exp(9 * X).sum(axis=1)[:, None],
    ),
    "log softmax": (
        lambda o, X: o.log_softmax(900.0 * X),
        lambda X: 900 * X - np.logaddexp.reduce(900 * X, axis=1)[:, None],
    ),
    "log sigmoid": (
        lambda o, X: o.log_sigmoid(9.0 * X - 4.0),
        lambda X: -np.log1p(np.exp(4 - 9 * X)),
    ),
    "log odds": (
        lambda o, X: o.log_odds(o.log_softmax(9.0 * X)),
        lambda X: (
            np.stack(
                [
                    9 * X[:, k] - np.logaddexp.reduce(np.delete(9 * X, k, 1), axis=1)
                    for k in range(4)
                ]
            ).T
        ),
    ),
    "mix uniform": (lambda o, X: o.mix_uniform(X, 0.1), lambda X: 0.9 * X + 0.025),
    "bend": (
        lambda o, X: o.hinges(X, _KNOTS[0], _KNOTS),
        lambda X: (np.maximum(X[:, :, None] - _KNOTS[0], 0) * _KNOTS).sum(axis=2),
    ),
    "along": (
        lambda o, X: o.fraction_between(X, _KNOTS),
        lambda X: np.stack([np.interp(X[:, k], _KNOTS[k], np.arange(5) / 4) for k in range(4)]).T,
    ),
    "along close knots": (
        lambda o, X: o.fraction_between(X * 4e-9 - 5.0, _KNOTS * 4e-9 - 5) * 3.0 - 1.0,
        lambda X: (
            np.stack(
                [
                    3 * np.interp(X[:, k] * 4e-9 - 5, _KNOTS[k] * 4e-9 - 5, np.arange(5) / 4) - 1
                    for k in range(4)
                ]
            ).T
        ),
    ),
    "bumps": (
        lambda o, X: o.cauchy_kernel(X, 2 * _MATRIX),
        lambda X: 1 / (1 + ((X[:, None] - 2 * _MATRIX) ** 2).sum(axis=2) / 2),
    ),
}
#: Those that are the same to the last bit wherever they are computed.
EXACT = {
    *(f"total of {n}" for n in TOTALS),
    *("negative", "sqrt", "floor", "absolute", "maximum", "minimum", "where"),
    *("largest", "place of the largest, the first on ties", "smallest"),
    *("every", "take and concat", "steps", "locate", "route"),
}


def walk(tree, x):
    """Place among the bins in which a point ends, one split after the other."""
    node = 0
    while (split := tree.split_of_node[node]) >= 0:
        regions = [k for k in range(len(x)) if tree.children[split, k] >= 0]
        node = tree.children[split, max(regions, key=lambda k: x[k] - tree.thresholds[split, k])]
    return tree.bins.tolist().index(node)
