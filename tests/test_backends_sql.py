"""Operations on columns, in SQL and in dataframes, against those on arrays."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exported import DATABASES
from isoroc._backends import NUMPY
from isoroc._core.smooth import N_KNOTS
from isoroc._counts.frames import FrameOps
from isoroc._counts.grid import Grid, cells, fold, key_fold
from isoroc._kinds import KINDS, LOGITS, PROBABILITIES, SECOND_PROBABILITY, columns_of
from isoroc._maps import (
    BaggedMap,
    BinMap,
    GroupedMap,
    IdentityMap,
    KernelMap,
    MatrixMap,
    MixtureMap,
    MonotoneMap,
    SplineMap,
    StepMap,
    TemperatureMap,
)
from isoroc._top import TopReduction
from isoroc._tree import BinTree

pytest.importorskip("sqlglot")
pytest.importorskip("duckdb")
nw = pytest.importorskip("narwhals.stable.v2")
pl = pytest.importorskip("polars")

from isoroc._backends.sql import SqlOps, operations, routes  # noqa: E402
from isoroc._maps.query import write_query  # noqa: E402


def names_of(X):
    return [f"p{k}" for k in range(X.shape[1])]


def by_sql(dialect, formula, X):
    ops = SqlOps(dialect, taken=["id", *names_of(X)])
    found = formula(ops, ops.read(names_of(X))).columns()
    outputs = {f"q{k}": own for k, own in enumerate(found)}
    query = ops.text(ops.stages.select(["t"], ["id"], outputs))
    rows = sorted(DATABASES[dialect](query, "t", names_of(X), X))
    return np.array(rows, dtype=float)[:, 1:]


def by_frame(formula, X):
    ops = FrameOps()
    vector = formula(ops, ops.read(names_of(X)))
    names = [f"q{k}" for k in range(vector.width)]
    frame = nw.from_native(pl.DataFrame(dict(zip(names_of(X), X.T, strict=True))))
    return ops.run_on(frame, ops.named(names, vector)).select(names).to_numpy().astype(float)


def random_tree(K, n_splits, seed=0):
    """A tree whose splits have two to K regions."""
    rng = np.random.default_rng(seed)
    thresholds = rng.dirichlet(np.ones(K), n_splits)
    children, split_nodes, leaves, n_nodes = [], [], [0], 1
    for _ in range(n_splits):
        split_nodes.append(leaves.pop(rng.integers(len(leaves))))
        regions = np.full(K, -1)
        kept = np.sort(rng.permutation(K)[: rng.integers(2, K + 1)])
        regions[kept] = np.arange(n_nodes, n_nodes + len(kept))
        leaves += regions[kept].tolist()
        n_nodes += len(kept)
        children.append(regions)
    weights = rng.integers(1, 9, size=(n_nodes, K)).astype(float)
    if K == 2:  # bins of two classes are intervals
        thresholds = np.column_stack([1 - np.linspace(0.05, 0.95, n_splits)] * 2)
        thresholds[:, 1] = 1 - thresholds[:, 0]
        children = [[2 * s + 1, 2 * s + 2] for s in range(n_splits)]
        split_nodes = [0, *range(2, 2 * n_splits, 2)]
        weights = rng.integers(1, 9, size=(2 * n_splits + 1, 2)).astype(float)
    return BinTree(thresholds, np.array(children), np.array(split_nodes), weights)


def probabilities(K, n=60, seed=0):
    """Forecasts, some of them on thresholds of `random_tree`, at vertices or next to them."""
    P = np.random.default_rng(seed).dirichlet(np.full(K, 0.4), n)
    P[:K] = np.eye(K)
    P[K] = [1 - 1e-16, 1e-16, *[0] * (K - 2)]
    return np.vstack([P, random_tree(K, 5).thresholds])


KNOTS = np.array([0.1, 0.3, 0.35, 0.8])
TREE = random_tree(4, 40)
MATRIX = np.random.default_rng(0).normal(size=(9, 4))
#: Formulas whose operations are correctly rounded, and done in the same order everywhere.
EXACT = {
    "arithmetic": lambda ops, X: (X + 0.5) * X / (2.0 - X) - np.arange(4.0),
    "negative": lambda ops, X: -X,
    "broadcast": lambda ops, X: X * ops.take(X, [2]) + 1.0,
    "sqrt": lambda ops, X: ops.sqrt(X),
    "floor": lambda ops, X: ops.floor(10.0 * X - 5.0),
    "absolute": lambda ops, X: ops.absolute(X - 0.5),
    "maximum": lambda ops, X: ops.maximum(X, ops.take(X, [1])),
    "minimum": lambda ops, X: ops.minimum(X - 0.1, 0.25),
    "where": lambda ops, X: ops.where((X <= 0.5) & (0.1 <= X), X, -1.0),
    "total": lambda ops, X: ops.total(ops.take(X, np.arange(300) % 4)),
    "largest": lambda ops, X: ops.largest(X)[0],
    "place": lambda ops, X: ops.largest(ops.take(X, [3, 0, 0, 3]))[1] + 0.0,
    "smallest": lambda ops, X: ops.smallest(X),
    "every": lambda ops, X: ops.where(ops.every(X <= 0.5), 1.0, 0.0),
    "every of many": lambda ops, X: ops.where(
        ops.every(ops.take(X, np.arange(200) % 4) <= 0.5), 1.0, 0.0
    ),
    "largest of many": lambda ops, X: ops.largest(ops.take(X, np.arange(200) % 4))[0],
    "is_at": lambda ops, X: ops.where(ops.is_at(ops.largest(X)[1], np.arange(4)), X, 0.0),
    "concat": lambda ops, X: ops.concat([X, ops.take(X, [1, 1]), X + 1.0]),
    "locate": lambda ops, X: ops.locate(KNOTS, ops.take(X, [0])) + 0.0,
    "locate among many": lambda ops, X: (
        ops.locate(np.linspace(0, 1, 101), ops.take(X, [0])) + 0.0
    ),
    "look_up": lambda ops, X: ops.look_up(MATRIX[:5], ops.locate(KNOTS, ops.take(X, [0]))),
    "steps": lambda ops, X: ops.steps([KNOTS] * 2, [MATRIX[:5, 0], MATRIX[:5, 1]], X),
    "route": lambda ops, X: ops.route(TREE, X) + 0.0,
}
SMOOTH = {
    "log": lambda ops, X: ops.log(X + 1e-9),
    "exp": lambda ops, X: ops.exp(5.0 * X),
    "sum": lambda ops, X: ops.sum(ops.take(X, np.arange(50) % 4)),
    "linear": lambda ops, X: ops.linear(X, MATRIX, MATRIX[:, 0]),
    "linear of many": lambda ops, X: ops.linear(ops.take(X, np.arange(8) % 4), MATRIX[:8].T @ TALL),
    "run_sums": lambda ops, X: ops.run_sums(ops.take(X, np.arange(8) % 4), MATRIX[:4, :2]),
    "softmax": lambda ops, X: ops.softmax(9.0 * X),
    "log_softmax": lambda ops, X: ops.log_softmax(900.0 * X),
    "log_odds": lambda ops, X: ops.log_odds(ops.log_softmax(9.0 * X)),
    "mix_uniform": lambda ops, X: ops.mix_uniform(X, 0.1),
    "bend": lambda ops, X: ops.bend(X, KNOTS, MATRIX[:4]),
    "along": lambda ops, X: ops.along(X, np.stack([KNOTS, KNOTS + 0.1, 2 * KNOTS, 3 * KNOTS])),
    "bumps": lambda ops, X: ops.linear(ops.bumps(X, MATRIX), MATRIX.T),
    "bumps by themselves": lambda ops, X: ops.bumps(X, MATRIX) * 2.0,
}
TALL = np.random.default_rng(1).normal(size=(8, 8))


@pytest.mark.parametrize("name", [*EXACT, *SMOOTH])
@pytest.mark.parametrize("backend", [*DATABASES, "frame"])
def test_operations_are_those_of_numpy(name, backend):
    formula, X = (EXACT | SMOOTH)[name], probabilities(4)
    expected = np.asarray(formula(NUMPY, X), dtype=float)
    found = by_frame(formula, X) if backend == "frame" else by_sql(backend, formula, X)
    if name in EXACT:
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dialect", DATABASES)
def test_what_is_used_again_is_computed_once(dialect):
    ops = SqlOps(dialect, taken=["a", "b"])
    e = ops.exp(ops.read(["a", "b"]))
    halves = ops.concat([e / ops.sum(e), e * e])
    outputs = dict(zip("pqrs", halves.columns(), strict=True))
    query = ops.text(ops.stages.select(["t"], [], outputs))
    assert query.count("EXP(") == 2


def test_deep_formulas_stay_flat():
    X = probabilities(3)

    def formula(ops, X):
        total = X
        for _ in range(200):
            total = total * 0.5 + X
        return total

    for backend in (*DATABASES, "frame"):
        found = by_frame(formula, X) if backend == "frame" else by_sql(backend, formula, X)
        np.testing.assert_array_equal(found, formula(NUMPY, X))


def bin_map(kind, tree, reduction=None, seed=0):
    prior = np.full(tree.n_classes, 1 / tree.n_classes)
    return BinMap(kind=kind, tree=tree, prior=prior, pseudocount=1.0, reduction=reduction)


def smooth_maps(kind, K):
    rng = np.random.default_rng(0)
    tempered = {"kind": kind, "floor": 1e-6, "temperature": 1.7, "smoothing": 0.01}
    coef, intercept = np.eye(K) + 0.1 * rng.normal(size=(K, K)), rng.normal(size=K)
    yield TemperatureMap(**tempered)
    yield TemperatureMap(**tempered | {"smoothing": 0.0})
    yield MatrixMap(**tempered, coef=coef, quadratic=0.1 * intercept, intercept=intercept)
    yield SplineMap(
        kind=kind,
        floor=1e-8,
        knots=np.array([-2.0, 0.0, 1.5]),
        coef=coef,
        slopes=0.2 * rng.normal(size=(K, 3)),
        intercept=intercept,
        smoothing=0.01,
    )
    yield KernelMap(
        **tempered,
        knots=np.sort(rng.normal(size=(K, N_KNOTS)), axis=1) * 3 - 4,
        origin=rng.normal(size=(2, K)),
        stretch=np.array([0.4, 0.9]),
        centres=rng.normal(size=(7, 2, K)),
        weights=rng.normal(size=(K, 7)),
        coef=0.1 * rng.normal(size=(K, K)),
        intercept=intercept,
    )
    bent = {"kind": kind, "floor": 1e-4, "scale": 2.0, "softness": 0.5 * rng.random((K, 2))}
    bent["biases"] = rng.normal(size=(K, 2))
    yield MonotoneMap(**bent, directions=None, interactions=None)
    directions = rng.random((K, K)) * (1 - np.eye(K))
    interactions = 0.2 * (1 - np.eye(K))
    directions /= directions.sum(axis=1, keepdims=True)
    yield MonotoneMap(**bent, directions=directions, interactions=interactions)


def step_maps(kind, K):
    rng = np.random.default_rng(0)
    n_maps = 1 if K == 2 else K
    values = [np.sort(rng.random(len(KNOTS) + 1)) for _ in range(n_maps)]
    yield IdentityMap(kind=kind)
    yield StepMap(kind=kind, cuts=[KNOTS] * n_maps, values=values)
    trees = [random_tree(K, 10, seed) for seed in range(2)]
    yield bin_map(kind, trees[0])
    prior = np.full(K, 1 / K)
    yield BaggedMap(kind=kind, pseudocount=1.0, reductions=[None], priors=[prior], trees=trees)
    for top in range(1, K - 1):
        for capped in (False, True):
            reduction = TopReduction(top, 0.01, capped)
            yield bin_map(kind, random_tree(top + 1, 6), reduction)


def all_maps(kind, K):
    smooth, steps = list(smooth_maps(kind, K)), list(step_maps(kind, K))
    weights = np.array([0.2, 0.3, 0.5])
    mixture = MixtureMap(
        kind=kind, members=[steps[0], smooth[0], steps[2]], weights=weights, monotone=False
    )
    return [*smooth, *steps, mixture]


def forecasts_of(kind, K):
    P = probabilities(K)
    if kind is PROBABILITIES:
        return P
    if kind is SECOND_PROBABILITY:
        return P[:, 1].copy()
    rng = np.random.default_rng(0)
    if kind is LOGITS:
        logits = np.log(np.maximum(P, 1e-12)) + rng.normal(size=(len(P), 1))
        return kind.clean(NUMPY, logits)[0]
    return np.linspace(-30, 30, 61)


CASES = [(kind, K) for kind in KINDS for K in ([2] if KINDS[kind].single else [2, 4])]


@pytest.mark.parametrize(("kind", "K"), CASES)
@pytest.mark.parametrize("dialect", DATABASES)
def test_maps_are_those_of_numpy(kind, K, dialect):
    values = forecasts_of(KINDS[kind], K)
    X = columns_of(values)
    outputs = {f"q{k}": k for k in range(K)}
    options = {"dialect": dialect, "table": ["t"], "keep": ["id"]}
    for fitted in all_maps(KINDS[kind], K):
        query = write_query(SimpleNamespace(map_=fitted), names_of(X), outputs, **options)
        rows = sorted(DATABASES[dialect](query, "t", names_of(X), X))
        found, expected = np.array(rows, dtype=float)[:, 1:], fitted.apply(values)
        if isinstance(fitted, BaggedMap | BinMap | StepMap) and kind != "logits":
            np.testing.assert_array_equal(found, expected)
        else:
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_dataframes_can_run_any_map():
    P = probabilities(4)
    for fitted in all_maps(PROBABILITIES, 4):
        found = by_frame(fitted.formula, P)
        np.testing.assert_allclose(found, fitted.apply(P), rtol=0, atol=1e-12)


def test_groups():
    members = [TemperatureMap(kind=PROBABILITIES, floor=1e-6, temperature=t, smoothing=0.0)
               for t in (0.5, 1.0, 2.0)]  # fmt: skip
    fitted = GroupedMap(
        kind=PROBABILITIES,
        common=members[0],
        grouped=True,
        groups=np.array(["1.0", "2.0"], dtype=object),
        members=members[1:],
        weights=np.array([0.5, 1.0]),
    )
    P = probabilities(3)
    groups = np.resize([1.0, 2.0, 3.0, np.nan], len(P))
    options = {"dialect": "duckdb", "table": ["t"], "keep": ["id"], "group": "g"}
    outputs = {"x": 0, "y": 1, "z": 2}
    query = write_query(SimpleNamespace(map_=fitted), names_of(P), outputs, **options)
    query = query.replace('"g" IS NULL', 'ISNAN("g")')  # DuckDB reads arrays without NULLs
    rows = DATABASES["duckdb"](query, "t", [*names_of(P), "g"], np.column_stack([P, groups]))
    found = np.array(sorted(rows), dtype=float)[:, 1:]
    expected = fitted.apply_to_groups(P, groups.astype(str).astype(object))
    expected[np.isnan(groups)] = np.nan
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dialect", DATABASES)
@pytest.mark.parametrize("K", [1, 2, 3, 13])
def test_cells_and_folds_are_those_of_numpy(dialect, K):
    P = probabilities(max(K, 2))[:, :K] if K > 1 else probabilities(2)[:, 1:]
    for resolution in ("exact", 16):
        grid = Grid.choose(K, resolution)
        for formula in (
            lambda ops, X, grid=grid: cells(ops, X, grid) + 0.0,
            lambda ops, X: fold(ops, X, 5),
            lambda ops, X: key_fold(ops, ops.floor(1e9 * ops.take(X, [0])), 5),
        ):
            expected = formula(NUMPY, P)
            np.testing.assert_array_equal(by_sql(dialect, formula, P), expected)
            np.testing.assert_array_equal(by_frame(formula, P), expected)


@pytest.mark.parametrize("few", [1, 4])
def test_levels_of_many_splits_are_looked_up(few, monkeypatch):
    monkeypatch.setattr(routes, "FEW_PLACES", few)
    for K in (3, 5):
        tree = random_tree(K, 30)
        P = np.vstack([probabilities(K), tree.thresholds])
        found = by_sql("duckdb", lambda ops, X, tree=tree: ops.route(tree, X), P)
        np.testing.assert_array_equal(found[:, 0], tree.bin_of(P))


@pytest.mark.parametrize("far", [0.0, np.inf])
def test_bumps_of_far_centres_are_written_one_by_one(far, monkeypatch):
    monkeypatch.setattr(operations, "_FAR", far)
    ops = SqlOps("duckdb", taken=[])
    heights = ops.bumps(ops.read(list("abcd")), MATRIX)
    query = ops.text(ops.stages.select(["t"], [], dict(enumerate_names(heights))))
    assert (' FOR "isoroc_row" IN ' in query) == (far > 0)
    np.testing.assert_allclose(
        by_sql("duckdb", SMOOTH["bumps"], probabilities(4)),
        SMOOTH["bumps"](NUMPY, probabilities(4)),
        rtol=0,
        atol=1e-12,
    )


def enumerate_names(vector):
    return ((f"q{k}", own) for k, own in enumerate(vector.columns()))


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=400))
def test_totals_are_those_of_numpy(row):
    ops = FrameOps()
    ops.scalars.binary = lambda _, a, b: a + b  # type: ignore[assignment,method-assign]
    with np.errstate(all="ignore"):
        expected = np.array([row]).sum(axis=1)[0]
        np.testing.assert_equal(ops.scalars.total([np.float64(x) for x in row]), expected)
