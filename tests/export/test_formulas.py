from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exported import run_onnx
from isoroc._counts import ArrayArithmetic
from isoroc._writer import Writer
from isoroc.export._formulas import Formulas, used

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper  # noqa: E402

from isoroc.export._matrices import Matrices  # noqa: E402


class NumpyWriter(ArrayArithmetic, Writer[Any]):
    """What formulas mean, column by column."""

    def log(self, a):
        return np.log(a)

    def exp(self, a):
        return np.exp(a)

    def locate(self, cuts, score):
        return np.searchsorted(cuts, score)

    def look_up(self, table, place):
        return [table[np.asarray(place, dtype=int), k] for k in range(table.shape[1])]

    def route(self, tree, columns):
        raise NotImplementedError


CUTS = [np.arange(float(n)) for n in (0, 1, 2, 5, 40)]
TABLES = [np.arange(41.0 * width).reshape(41, width) % 7 for width in (1, 3)]
#: Each takes a writer, columns and a number, and returns columns; integers throughout, so that
#: results are exact in any order.
STEPS = {
    "add": lambda w, c, _: [w.add(*c[:2])],
    "subtract": lambda w, c, _: [w.subtract(*c[:2])],
    "scale": lambda w, c, n: [w.multiply(c[0], w.number(n - 2))],
    "maximum": lambda w, c, _: [w.maximum(*c[:2])],
    "minimum": lambda w, c, n: [w.minimum(c[0], w.number(n))],
    "absolute": lambda w, c, _: [w.absolute(c[0])],
    "where": lambda w, c, _: [w.where(w.at_most(c[0], c[1]), c[2], c[1])],
    "both": lambda w, c, n: [
        w.where(w.both(w.at_most(c[0], c[1]), w.at_most(c[1], w.number(n))), c[0], c[2])
    ],
    "every": lambda w, c, n: [w.where(w.every([w.at_most(x, w.number(n)) for x in c]), c[0], c[1])],
    "sum": lambda w, c, _: [w.sum(c)],
    "sum of squares": lambda w, c, n: [w.minimum(w.sum_of_squares(c), w.number(n))],
    "total": lambda w, c, _: [w.total(c * 4)],
    "smallest": lambda w, c, _: [w.smallest(c)],
    "largest": lambda w, c, n: [
        w.where(w.is_at(w.largest(c)[1], n % 3), c[0], w.largest(c)[0]),
    ],
    "linear": lambda w, c, n: w.linear(
        np.arange(len(c) * (1 + n % 2)).reshape(-1, len(c)) - 1.0, c
    ),
    "steps": lambda w, c, n: w.look_up(TABLES[n % 2], w.locate(CUTS[n], c[0])),
}
programs = st.lists(
    st.tuples(
        st.sampled_from(sorted(STEPS)),
        st.lists(st.integers(0, 1000), min_size=3, max_size=5),
        st.integers(0, 4),
        st.integers(1, 4),
    ),
    min_size=1,
    max_size=8,
)


def write(w, columns, program):
    """All columns of a program. A step is repeated with the columns next to its first ones."""
    columns = [*columns, w.number(1.0), w.number(-2.0)]
    for name, places, number, times in program:
        n = len(columns)
        for shift in range(times):
            taken = [columns[(place + shift) % n] for place in places]
            columns += STEPS[name](w, taken, (number + shift) % 5)
    return columns[3:]


def to_model(columns, opset=17, *, exact=True):
    nodes = Matrices("c_", opset)
    nodes.input("forecasts", 3)
    nodes.compute(columns, exact=exact)
    nodes.node("Identity", nodes.matrix(columns), output="calibrated")
    tensor = helper.make_tensor_value_info
    graph = nodes.graph(
        "test",
        [tensor("forecasts", TensorProto.DOUBLE, ["N", 3])],
        [tensor("calibrated", TensorProto.DOUBLE, ["N", len(columns)])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@settings(max_examples=30, deadline=None)
@given(program=programs, opset=st.sampled_from([13, 18]), exact=st.booleans())
def test_matrices_mean_what_columns_mean(program, opset, exact):
    P = np.random.default_rng(0).integers(-3, 9, size=(20, 3)).astype(float)
    formulas = Formulas()
    written = write(formulas, formulas.read("forecasts", 3), program)
    written = [formulas.add(column, formulas.read("forecasts", 1)[0]) for column in written]
    found = run_onnx(to_model(written, opset, exact=exact), P)
    expected = [P[:, 0] + column for column in write(NumpyWriter(), list(P.T), program)]
    np.testing.assert_array_equal(found, np.stack(expected, axis=1))


def test_equal_formulas_are_one_column():
    w = Formulas()
    a, b, c = w.read("forecasts", 3)
    assert w.log(w.add(a, b)) is w.log(w.add(a, b))
    assert w.number(0.5) is w.add(w.number(0.25), w.number(0.25))
    assert w.number(0.0) is not w.number(-0.0)
    first, second = w.add(a, w.number(1.0)), w.add(c, w.number(2.0))
    assert first is not second
    assert first.kind == second.kind != w.add(w.number(1.0), a).kind
    unused = w.exp(b)
    assert all(unused not in columns for columns in used([first, second]))


def operators(columns, *, exact):
    return [node.op_type for node in to_model(columns, exact=exact).graph.node]


def test_affine_steps_are_one_product():
    w = Formulas()
    logs = [w.log(column) for column in w.read("forecasts", 3)]
    mean = w.divide(w.sum(logs), w.number(3.0))
    centred = [w.multiply(w.number(4.0), w.subtract(column, mean)) for column in logs]
    moved = [w.add(column, w.number(k)) for k, column in enumerate(centred)]
    found = w.softmax(w.linear(np.arange(9.0).reshape(3, 3) / 9, moved))
    assert operators(found, exact=False) == ["Log", "Gemm", "Softmax", "Identity"]
    assert len(operators(found, exact=True)) > 6


def test_results_that_other_operators_take_are_computed_once():
    w = Formulas()
    columns = w.read("forecasts", 3)
    scores = w.linear(np.eye(3) / 2, [w.add(column, w.number(1.0)) for column in columns])
    largest, _ = w.largest(scores)
    below = [w.exp(w.subtract(score, largest)) for score in scores]
    assert operators(below, exact=False) == ["Gemm", "ReduceMax", "Sub", "Exp", "Identity"]


@pytest.mark.parametrize("gap", [1.0, 1e-3, 1e-9])
def test_shares_between_close_knots_are_exact(gap):
    knots = [-5 + np.arange(4) * gap + k for k in range(3)]
    steps = np.random.default_rng(0).uniform(-0.5, 3.5, size=(50, 3))
    P = np.array([own[0] for own in knots]) + gap * steps

    def write(w, columns):
        ranks = [w.along(column, own) for column, own in zip(columns, knots, strict=True)]
        return [w.add(w.multiply(w.number(3.0), rank), w.number(-1.0)) for rank in ranks]

    formulas = Formulas()
    model = to_model(write(formulas, formulas.read("forecasts", 3)), exact=False)
    expected = np.stack(write(NumpyWriter(), list(P.T)), axis=1)
    np.testing.assert_allclose(run_onnx(model, P), expected, rtol=0, atol=1e-13)


def test_products_of_many_columns_are_not_formed():
    w = Formulas()
    columns = w.linear(np.arange(600.0).reshape(200, 3), w.read("forecasts", 3))
    logs = [w.log(column) for column in columns]
    scaled = [w.multiply(w.number(k), w.add(w.exp(z), w.number(1.0))) for k, z in enumerate(logs)]
    largest = max(t.ByteSize() for t in to_model(scaled, exact=False).graph.initializer)
    assert largest < 8 * 200 * 5
