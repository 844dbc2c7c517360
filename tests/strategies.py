"""What the property tests draw from: data that real classifiers, and unkind users, produce."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from isoroc._core.simplex import regions
from isoroc._core.tree import BinTree
from isoroc._input import Sample

#: Marks tests on arbitrary data. Forecasts may rank a class worse than chance there, or leave it in
#: doubt whether they are probabilities, and `fit` warns of both.
arbitrary = pytest.mark.filterwarnings(
    "ignore:P. the forecasts rank class", "ignore:P. row .*, so the scores are read as log odds"
)

#: Weights whose sums are exact in floating point, so that order cannot matter.
WEIGHTS = st.integers(1, 40).map(lambda k: k / 8)


@st.composite
def binary_data(draw, *, weighted=None, max_rows=40):
    """Scores, labels of both classes, and weights or None."""
    n = draw(st.integers(2, max_rows))
    kind = draw(st.sampled_from(["grid", "tied", "real", "tiny", "close"]))
    elements = {
        "grid": st.integers(0, 1000).map(lambda k: k / 1000),
        "tied": st.integers(0, 4).map(float),
        "real": st.floats(-1e300, 1e300),
        "tiny": st.integers(0, 60).map(lambda k: 10.0**-k),
        "close": st.integers(0, 8).map(lambda k: 1 + k * np.finfo(float).eps),
    }[kind]
    scores = draw(hnp.arrays(np.float64, n, elements=elements))
    y = draw(hnp.arrays(np.int64, n, elements=st.integers(0, 1)))
    y[0] = 0
    y[-1] = 1
    if weighted is None:
        weighted = draw(st.booleans())
    weights = draw(hnp.arrays(np.float64, n, elements=WEIGHTS)) if weighted else None
    return scores, y, weights


def truncate(tree, n_splits):
    """Tree of the first splits of another."""
    children = tree.children[:n_splits]
    n_nodes = 1 + np.count_nonzero(children >= 0)
    splits = tree.thresholds[:n_splits], children, tree.split_nodes[:n_splits]
    return BinTree(*splits, tree.class_weights[:n_nodes])


@st.composite
def forecasts(draw, n_classes, *, max_rows=40):
    """Rows on the simplex: lattice points with many ties, vertices, and smooth ones."""
    n = draw(st.integers(1, max_rows))
    if draw(st.booleans()):
        parts = draw(hnp.arrays(np.int64, (n, n_classes), elements=st.integers(0, 4)))
        parts[:, 0] += parts.sum(axis=1) == 0
        return parts / parts.sum(axis=1, keepdims=True)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return rng.dirichlet(np.full(n_classes, draw(st.sampled_from([0.1, 1.0, 5.0]))), size=n)


@st.composite
def labelled_forecasts(draw, n_classes=None, min_classes=2, max_classes=6, max_rows=60):
    """Forecasts, labels that follow them loosely, perhaps weights.

    Labels are numbers of columns. Some classes may be absent, so `fit` needs ``labels=range(K)``.
    """
    K = n_classes or draw(st.integers(min_classes, max_classes))
    P = draw(forecasts(K, max_rows=max_rows))
    if draw(st.booleans()):
        P = np.vstack([P, np.eye(K), P[:3]])
    P = np.vstack([P, P[:1], P[:1]])
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    trust = draw(st.sampled_from([0.0, 0.7, 1.0]))
    chance = trust * P + (1 - trust) / K
    y = np.array([rng.choice(K, p=p / p.sum()) for p in chance]).astype(np.uint8)
    y[-1] = 0
    y[-2] = K - 1
    weights = rng.integers(1, 16, len(P)) / 8 if draw(st.booleans()) else None
    return P, y, weights


@st.composite
def trees(draw, n_classes=None):
    """A random sample, the rows of each node, and a tree grown on it at random."""
    K = n_classes or draw(st.integers(2, 5))
    P = draw(forecasts(K, max_rows=60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    codes = rng.integers(0, K, len(P))
    Y = np.eye(K)[codes]
    members = [np.arange(len(P))]
    thresholds = []
    children = []
    split_nodes = []
    for _ in range(draw(st.integers(0, 6))):
        node = int(rng.integers(len(members)))
        gamma = rng.dirichlet(np.ones(K))
        region = regions(P[members[node]], gamma)
        if node in split_nodes or len(np.unique(region)) < 2:
            continue
        split_nodes.append(node)
        thresholds.append(gamma)
        row = np.full(K, -1)
        for k in np.unique(region):
            row[k] = len(members)
            members.append(members[node][region == k])
        children.append(row)
    return (
        Sample(P, codes.astype(np.uint8)),
        members,
        BinTree(
            thresholds=np.reshape(thresholds, (-1, K)).astype(float),
            children=np.reshape(children, (-1, K)).astype(np.intp),
            split_nodes=np.array(split_nodes, dtype=np.intp),
            class_weights=np.array([Y[m].sum(axis=0) for m in members]),
        ),
    )


def isotonic_oracle(scores, y, weights=None):
    """Isotonic regression by its min-max formula in exact arithmetic, at each row."""
    weights = np.ones(len(y)) if weights is None else weights
    distinct = sorted(set(scores))
    w0 = [
        sum(Fraction(w) for s, c, w in zip(scores, y, weights, strict=True) if s == v and c == 0)
        for v in distinct
    ]
    w1 = [
        sum(Fraction(w) for s, c, w in zip(scores, y, weights, strict=True) if s == v and c == 1)
        for v in distinct
    ]
    m = len(distinct)
    mean = {}
    for a in range(m):
        t0 = t1 = Fraction(0)
        for b in range(a, m):
            t0 = t0 + w0[b]
            t1 = t1 + w1[b]
            mean[a, b] = t1 / (t0 + t1)
    value = {
        v: max(min(mean[a, b] for b in range(i, m)) for a in range(i + 1))
        for i, v in enumerate(distinct)
    }
    return [value[s] for s in scores]


def hull_oracle(points):
    """Upper right convex hull of exact points, from (0, 1) to (1, 0), without collinear ones."""
    hull: list[Any] = []
    for p in sorted(set(points), key=lambda p: (p[0], -p[1])):
        while len(hull) > 1:
            (x1, y1) = hull[-2]
            (x2, y2) = hull[-1]
            if (x2 - x1) * (p[1] - y1) - (y2 - y1) * (p[0] - x1) < 0:
                break
            hull.pop()
        hull.append(p)
    return hull
