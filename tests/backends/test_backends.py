"""Every backend computes what NumPy computes, and NumPy what formulas mean."""

import numpy as np
import pytest

from formulas import (
    EXACT,
    OPERATIONS,
    SHAPES,
    WIDE,
    all_maps,
    clean_forecasts,
    forecasts,
    is_rounded,
)
from isoroc._backends import NUMPY, Ops
from isoroc._input import check_segments
from isoroc._input.kinds import PROBABILITIES
from isoroc._maps import SegmentMap

ROWS = np.random.default_rng(0).random((200, 4))


def in_numpy(formula, X, *, exact):
    return formula(NUMPY, X if exact else np.asfortranarray(X))


def in_onnx(formula, X, *, exact, opset=17):  # noqa: ARG001
    onnx = pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    from isoroc._backends.onnx import Graph, OnnxOps  # noqa: PLC0415

    graph = Graph(opset, "own_")
    tensor = onnx.helper.make_tensor_value_info
    ops = OnnxOps(graph)
    Q = formula(ops, ops.read(["X"], X.shape[1]))
    graph.node("Identity", Q.name, output="Q")
    double = onnx.TensorProto.DOUBLE
    proto = graph.proto(
        "test", [tensor("X", double, ["N", X.shape[1]])], [tensor("Q", double, ["N", Q.width])]
    )
    opsets = [onnx.helper.make_opsetid("", opset)]
    model = onnx.helper.make_model(proto, opset_imports=opsets, ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return onnxruntime.InferenceSession(model.SerializeToString()).run(["Q"], {"X": X})[0]


def in_newer_onnx(formula, X, *, exact):
    return in_onnx(formula, X, exact=exact, opset=19)


BACKENDS = {"NumPy": in_numpy, "ONNX": in_onnx, "ONNX 19": in_newer_onnx}
backends = pytest.mark.parametrize("run", BACKENDS.values(), ids=BACKENDS)


@backends
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(run, exact, name):
    formula, expected = OPERATIONS[name]
    found = run(formula, ROWS, exact=exact)
    if exact and name in EXACT:
        np.testing.assert_array_equal(found, expected(ROWS))
    else:
        tolerance = 1e-6 if name == "along close knots" else 1e-12
        np.testing.assert_allclose(found, expected(ROWS), rtol=1e-13, atol=tolerance)


@pytest.mark.parametrize("n_columns", [1, 2, 7, 8, 9, 29, 128, 129, 300])
def test_columns_are_added_in_the_order_of_numpy(n_columns):
    """Backends without an order of their own, such as torch, add up to the same last bit."""
    a = np.random.default_rng(0).random((50, n_columns))
    np.testing.assert_array_equal(Ops.total(NUMPY, a)[:, 0], a.sum(axis=1))


@pytest.mark.parametrize("run", [in_numpy, in_onnx])
@pytest.mark.parametrize(
    ("kind", "K"), SHAPES + WIDE, ids=lambda value: getattr(value, "name", value)
)
def test_maps(run, kind, K):
    """Maps are made of operations, and only these depend on the version of ONNX."""
    X = clean_forecasts(kind, K)
    for own in all_maps(kind, K):
        found = run(own.formula, X, exact=own.exact)
        expected = own.apply(X[:, 0] if kind.single else X)
        if is_rounded(own):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12, err_msg=str(type(own)))
        else:
            np.testing.assert_array_equal(found, expected, err_msg=str(type(own)))


@backends
@pytest.mark.parametrize("kind", [kind for kind, K in SHAPES if K == 2], ids=lambda k: k.name)
def test_invalid_rows(run, kind):
    """What `clean` says of valid rows and of numbers that are not forecasts."""
    valid = forecasts(kind, 2, 5)
    bad = np.full((2, valid.shape[1]), [[np.nan], [np.inf]])
    X = np.vstack([valid, bad])

    def formula(ops, X):
        P, good = kind.clean(ops, X)
        return ops.where(good, kind.probabilities(ops, P), -1.0)

    with np.errstate(all="ignore"):
        Q = run(formula, X, exact=True)
    np.testing.assert_allclose(Q[:5].sum(axis=1), 1)
    np.testing.assert_array_equal(Q[5:], -1)


@backends
def test_maps_of_segments(run):
    kind = PROBABILITIES
    K = 3
    X = forecasts(kind, K)
    [own] = [own for own in all_maps(kind, K) if isinstance(own, SegmentMap)]
    n = len(X)
    rows = {"region": np.resize(["it's", "north", "unknown"], n)}
    rows["age"] = np.resize([20.0, 30.0, 40.0, 50.5, 60.0, np.nan, 1e9], n)
    segments = check_segments(rows, n)
    codes = own.codes(segments)
    assert np.isnan(codes).any(axis=0).all()

    def formula(ops, both):
        X, *columns = ops.split(both, [K, 1, 1])
        found = [own.locate(ops, j, column) for j, column in enumerate(columns)]
        return own.formula(ops, X, found)

    both = np.hstack([X, np.where(np.isnan(codes), 1e305, codes)])  # tables of SQL hold no NaN
    found = run(formula, both, exact=False)
    expected = own.apply(X, segments)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(expected, by_hand(own, X, rows), rtol=0, atol=1e-12)


def by_hand(own, X, rows):
    """The formula of the documentation, row by row."""
    found = []
    for p, region, age in zip(X, rows["region"], rows["age"], strict=True):
        by_age = None if np.isnan(age) else int(age > 30) + int(age > 50.5)
        place = {"it's": 0, "north": 1}.get(region), by_age
        entries = np.zeros(own.tables[0].shape[1])
        for j in range(2):
            if place[j] is not None:
                entries += own.tables[j][place[j]]
        if place[0] is not None and place[1] is not None:
            entries += own.tables[2][3 * place[0] + place[1]]
        z = np.log(own.common.apply(p[None])[0])
        z = z * max(1 + entries[-1], 0.05) + entries[:-1] + own.offset
        z -= np.log(np.exp(z - z.max()).sum()) + z.max()
        shifted = own.shifted.apply(z[None])[0]
        found.append((1 - own.weight) * own.common.apply(p[None])[0] + own.weight * shifted)
    return np.array(found)
