"""Tensors are counted as arrays are, and modules calibrate as calibrators do."""

from typing import Any

import numpy as np
import pytest
import torch

from engine_tables import make_columns
from formulas import SHAPES, clean_forecasts, smooth_maps
from isoroc import Counts, InputError, TemperatureCalibrator
from isoroc._backends import NUMPY
from isoroc._backends.torch import TorchOps
from isoroc._counts import Grid, tensors
from isoroc.export import to_torch
from zoo import CASES, fitted, forecasts, on_thresholds


@pytest.mark.parametrize(("kind", "K"), SHAPES, ids=lambda value: getattr(value, "name", value))
def test_gradients_of_smooth_maps(kind, K):
    X = torch.tensor(clean_forecasts(kind, K, 8)[1:], requires_grad=True)
    X = X if kind.scores == "logit" else (0.9 * X + 0.1 / K).detach().requires_grad_()
    ops = TorchOps("cpu")
    for own in smooth_maps(kind, K):
        assert torch.autograd.gradcheck(lambda P, m=own: m.formula(ops, ops.vector(P)).array, X)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_tensors_are_forecasts(dtype):
    """Whatever their type, and with gradients."""
    z = torch.randn(300, 3, generator=torch.Generator().manual_seed(0)).to(dtype)
    y = torch.arange(300) % 3
    calibrator = TemperatureCalibrator().fit(z.requires_grad_(), y, unit="logit")
    expected = TemperatureCalibrator().fit(z.detach().double().numpy(), y.numpy(), unit="logit")
    assert calibrator.temperature_ == expected.temperature_
    with pytest.raises(InputError, match=r"P: .* for a list of tensors pass torch\.stack"):
        calibrator.predict_proba(list(z))


@pytest.mark.parametrize("K", [1, 2, 3, 13])
@pytest.mark.parametrize("resolution", ["auto", "exact", 8])
def test_counts_of_tensors(K, resolution):
    P, columns = make_columns(K)
    P = P[:, 0] if K == 1 else P
    _, y = np.unique(columns["y"], return_inverse=True)
    options = {"sample_weight": columns["w"], "fold_by": columns["key"]}
    for given in ({}, options):
        expected = Counts.from_arrays(P, y, resolution=resolution, **given)
        tensors: Any = {name: torch.tensor(values) for name, values in given.items()}
        found = Counts.from_arrays(
            torch.tensor(P), torch.tensor(y), resolution=resolution, **tensors
        )
        assert found.grid == expected.grid
        np.testing.assert_array_equal(found.cells.keys, expected.cells.keys)
        np.testing.assert_array_equal(found.fold, expected.fold)
        np.testing.assert_array_equal(found.class_weights, expected.class_weights)
        np.testing.assert_allclose(found.forecasts, expected.forecasts, rtol=1e-12)


@pytest.mark.parametrize("dense", [1, 10**9])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_size_of_tables_changes_nothing(dense, weighted, monkeypatch):
    P, columns = make_columns(4)
    y = torch.tensor(np.unique(columns["y"], return_inverse=True)[1])
    options: Any = {"resolution": 16, "sample_weight": columns["w"] if weighted else None}
    expected = Counts.from_arrays(P, y.numpy(), **options)
    monkeypatch.setattr(tensors, "DENSE", dense)
    monkeypatch.setattr(tensors, "TENSOR_SLICE", 1500)
    found = Counts.from_arrays(torch.tensor(P), y, **options)
    np.testing.assert_array_equal(found.cells.keys, expected.cells.keys)
    np.testing.assert_array_equal(found.fold, expected.fold)
    np.testing.assert_array_equal(found.rows, expected.rows)
    np.testing.assert_allclose(found.class_weights, expected.class_weights, rtol=1e-13)
    np.testing.assert_allclose(found.cells.squares, expected.cells.squares, rtol=1e-13)
    np.testing.assert_allclose(found.forecasts, expected.forecasts, rtol=1e-12)


@pytest.mark.parametrize("C", [1, 2, 3, 5, 12])
@pytest.mark.parametrize("n_folds", [1, 5, 1000])
def test_whole_numbers_number_cells_as_the_formula_does(C, n_folds):
    rng = np.random.default_rng(C)
    P = rng.dirichlet(np.full(max(C, 2), 0.05), 5000)[:, -C:]  # many forecasts next to 0 and 1
    P[:C] = np.eye(C)[:, ::-1]
    plan = tensors.plan_for("auto", Grid.choose(C, 2 if C == 12 else 4), n_folds)
    columns = torch.tensor(np.ascontiguousarray(P.T))
    found = tensors.number_clean(plan, columns)
    np.testing.assert_array_equal(found, plan.number(NUMPY, P, None)[:, 0])
    for unclean in (-1e-9, 1.0 + 1e-9, np.nan, np.inf):
        columns[0, 7] = unclean
        assert tensors.number_clean(plan, columns) is None


def test_forecasts_that_are_almost_clean():
    """Single precision and rounding errors: such rows are clipped and normalised."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 500).astype(np.float32)
    y = rng.integers(0, 3, 500)
    P[3] = [-1e-7, 0.25, 0.75]
    for rows in (slice(0, 3), slice(0, 500)):
        found = Counts.from_arrays(torch.tensor(P[rows]), torch.tensor(y[rows]), labels=range(3))
        expected = Counts.from_arrays(P[rows].astype(float), y[rows], labels=range(3))
        np.testing.assert_array_equal(found.cells.keys, expected.cells.keys)
        np.testing.assert_array_equal(found.fold, expected.fold)
        np.testing.assert_allclose(found.forecasts, expected.forecasts, rtol=1e-12)


def test_batches_of_logits():
    torch.manual_seed(0)
    batches = [(torch.randn(100, 3), torch.randint(0, 3, (100,))) for _ in range(5)]
    counts = Counts.from_batches(batches, unit="logit")
    assert counts.n_rows == 500
    assert counts.classes.tolist() == [0, 1, 2]
    z, y = (np.concatenate([batch[i].numpy() for batch in batches]) for i in (0, 1))
    of_rows = Counts.from_arrays(z.astype(float), y, unit="logit")
    np.testing.assert_allclose(counts.class_weights.sum(axis=0), of_rows.class_weights.sum(axis=0))


@pytest.mark.parametrize(
    ("P", "y", "message"),
    [
        ([[0.5, 0.5], [0.9, 0.9]], [0, 1], "P: row 1 is"),
        ([[0.5, 0.5], [0.5, float("nan")]], [0, 1], "P: row 1 is"),
        ([[0.5, 0.5], [0.1, 0.9]], [0, 5], "y: row 1 is 5"),
        ([[0.5, 0.5], [0.1, 0.9]], [0], "y: 1 rows, but P has 2"),
    ],
)
def test_bad_tensors(P, y, message):
    with pytest.raises(InputError, match=message):
        Counts.from_arrays(torch.tensor(P), torch.tensor(y))


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_modules_calibrate_as_calibrators_do(name, shape):
    calibrator = fitted(name, shape)
    P = np.vstack([forecasts(shape, 300), on_thresholds(calibrator)])
    Q = to_torch(calibrator)(torch.tensor(P))
    np.testing.assert_allclose(Q.detach().numpy(), calibrator.predict_proba(P), atol=1e-12)
    bad = torch.full((1, P.shape[1]), float("nan"), dtype=torch.float64)
    assert torch.isnan(to_torch(calibrator)(bad)).all()


#: Each calibrator once, on three classes where it takes them.
ONCE = list({name: (name, shape) for name, shape in CASES if shape in {"p", 3}}.values())


@pytest.mark.parametrize(("name", "shape"), ONCE)
def test_one_graph_serves_batches_of_all_sizes(name, shape):
    module = to_torch(fitted(name, shape))
    batches = [torch.tensor(forecasts(shape, n)) for n in (64, 3, 17, 200)]
    exported = torch.export.export(
        module, (batches[0],), dynamic_shapes=({0: torch.export.Dim("rows", min=0)},)
    ).module()
    graphs = []

    def keep(graph, _):
        graphs.append(graph)
        return graph.forward

    torch.compiler.reset()  # graphs of earlier modules count towards a limit
    compiled = torch.compile(module, backend=keep, dynamic=True)
    for P in batches:
        torch.testing.assert_close(compiled(P), module(P), rtol=0, atol=0)
    assert len(graphs) == 1
    for P in (*batches, batches[0][:1], batches[0][:0]):
        torch.testing.assert_close(exported(P), module(P), rtol=0, atol=1e-15)


@pytest.mark.parametrize(("name", "shape"), ONCE)
def test_the_numbers_of_a_module_are_buffers(name, shape, tmp_path):
    module = to_torch(fitted(name, shape))
    P = torch.tensor(forecasts(shape, 20))
    expected = module(P)
    assert not list(module.parameters())
    assert name in repr(module)
    torch.save(module, tmp_path / "module.pt")
    whole = torch.load(tmp_path / "module.pt", weights_only=False)
    torch.testing.assert_close(whole(P), expected, rtol=0, atol=0)
    torch.save(module.state_dict(), tmp_path / "state.pt")
    state = torch.load(tmp_path / "state.pt")
    for number in whole.buffers():  # without its own numbers, a module depends on those it loads
        number.zero_()
    whole.load_state_dict(state)
    torch.testing.assert_close(whole(P), expected, rtol=0, atol=0)
    torch.testing.assert_close(whole.half()(P), expected, rtol=0, atol=0)
    assert {own.device.type for own in module.to("meta").buffers()} <= {"meta"}


def test_a_module_takes_the_numbers_of_another_of_the_same_operations():
    P = np.random.default_rng(0).dirichlet(np.ones(3), 200)
    y = np.arange(200) % 3
    flat, sharp = (
        TemperatureCalibrator().fit(own, y) for own in (P, P**2 / (P**2).sum(1)[:, None])
    )
    module = to_torch(flat)
    module.load_state_dict(to_torch(sharp).state_dict())
    np.testing.assert_allclose(module(torch.tensor(P)), sharp.predict_proba(P), atol=1e-12)
    with pytest.raises((RuntimeError, InputError)):
        module.load_state_dict(to_torch(fitted("IRPCalibrator", 3)).state_dict())


def test_a_module_leaves_its_calibrator_alone():
    calibrator = fitted("MatrixCalibrator", 3)
    P = forecasts(3, 20)
    expected = calibrator.predict_proba(P)
    for number in to_torch(calibrator).buffers():
        number.zero_()
    np.testing.assert_array_equal(calibrator.predict_proba(P), expected)


@pytest.mark.parametrize("shape", [(4,), (4, 2), (4, 3, 1), ()])
def test_forecasts_of_another_shape(shape):
    with pytest.raises(InputError, match="expected 3 columns"):
        to_torch(fitted("TemperatureCalibrator", 3))(torch.zeros(shape))


def test_gradients():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 200)
    calibrator = TemperatureCalibrator().fit(P, rng.integers(0, 3, 200))
    module = to_torch(calibrator)
    inside = torch.tensor(rng.dirichlet(np.full(3, 9.0), 5), requires_grad=True)
    assert torch.autograd.gradcheck(lambda z: module(torch.softmax(z, 1)), (inside,))
