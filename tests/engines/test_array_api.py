"""Under scikit-learn's array API dispatch, arrays stay in their library and on their device."""

from typing import Any

import array_api_strict
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import config_context

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
from isoroc import (
    InputError,
    MultiLabelCalibrator,
    SegmentCalibrator,
    TemperatureCalibrator,
    load_map,
)
from isoroc._backends import ops_for
from isoroc.export import to_torch
from zoo import CASES, KINDS, fitted, make, on_thresholds, probabilities
from zoo import forecasts as forecasts_of

#: Arrays of each library. The last are on a device that NumPy does not read.
LIBRARIES: dict[str, Any] = {
    "torch": torch.asarray,
    "strict": lambda a: array_api_strict.asarray(a, device=array_api_strict.Device("device1")),
}


@pytest.fixture(params=LIBRARIES)
def asarray(request):
    return LIBRARIES[request.param]


@pytest.fixture(autouse=True)
def _dispatch(monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # without it, scikit-learn does not dispatch
    with config_context(array_api_dispatch=True):
        yield


def assert_like(found, given, shape, dtype=None):
    """Same library and device. The type of the numbers is the given one, or another."""
    assert type(found) is type(given)
    assert found.device == given.device
    assert found.dtype == (dtype or given.dtype)
    assert tuple(found.shape) == shape


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(name, asarray):
    X = np.random.default_rng(0).random((200, 4))
    formula, expected = OPERATIONS[name]
    given = asarray(X)
    ops = ops_for(given)
    found = formula(ops, ops.vector(given)).array
    assert type(found) is type(given)
    if name in EXACT and type(found) is torch.Tensor:
        np.testing.assert_array_equal(found, expected(X))
    tolerance = 1e-6 if name == "along close knots" else 1e-12
    np.testing.assert_allclose(np.from_dlpack(found), expected(X), rtol=1e-13, atol=tolerance)


@pytest.mark.parametrize(
    ("kind", "K"), SHAPES + WIDE, ids=lambda value: getattr(value, "name", value)
)
def test_maps(kind, K, asarray):
    X = clean_forecasts(kind, K)
    X = X[:, 0] if kind.single else X
    for own in all_maps(kind, K):
        expected = own.apply(X)
        given = asarray(X)
        found = own.apply(given)
        assert_like(found, given, expected.shape)
        tolerance = 1e-12 if is_rounded(own) else 0
        about: Any = {"err_msg": str(type(own))}
        np.testing.assert_allclose(np.from_dlpack(found), expected, rtol=0, atol=tolerance, **about)
        single = X.astype(np.float32)
        found = own.apply(asarray(single))
        assert_like(found, asarray(single), expected.shape)
        expected = own.apply(single.astype(float))
        np.testing.assert_allclose(np.from_dlpack(found), expected, rtol=0, atol=1e-6, **about)


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_calibrators(name, shape, asarray):
    calibrator = fitted(name, shape)
    rows = np.vstack([forecasts_of(shape, 300), on_thresholds(calibrator)])
    for P, tolerance in ((rows, 1e-12), (rows.astype(np.float32), 1e-6)):
        expected = calibrator.predict_proba(P)
        given = asarray(P)
        found = calibrator.predict_proba(given)
        assert_like(found, given, expected.shape)
        np.testing.assert_allclose(np.from_dlpack(found), expected, rtol=0, atol=tolerance)
        if P.shape[1] == 1:
            vector = calibrator.predict_proba(asarray(P[:, 0]))
            np.testing.assert_array_equal(np.from_dlpack(vector), np.from_dlpack(found))


@pytest.mark.parametrize("name", KINDS)
def test_fit_copies_to_the_host(name, asarray):
    """`fit` gives the same calibrator, and labels are arrays of NumPy, as they may be strings."""
    P = forecasts_of("p", 100)
    y = (np.random.default_rng(0).random(100) < probabilities("p", P)[:, 1]).astype(int)
    expected = make(name).fit(P, y, sample_weight=np.arange(100.0))
    found = make(name).fit(asarray(P), asarray(y), sample_weight=asarray(np.arange(100.0)))
    np.testing.assert_array_equal(found.predict_proba(P), expected.predict_proba(P))
    np.testing.assert_array_equal(found.predict(asarray(P)), expected.predict(P))


def test_segments(asarray, tmp_path):
    rng = np.random.default_rng(0)
    P = rng.random(2000)
    region = np.where(rng.random(2000) < 0.5, "north", "south")
    y = rng.random(2000) < np.where(region == "north", P, P**3)
    table = pd.DataFrame({"region": region, "age": rng.normal(50, 20, 2000)})
    calibrator = SegmentCalibrator(TemperatureCalibrator()).fit(P, y, segments=table)
    assert calibrator.weight_ > 0
    calibrator.save(tmp_path / "model.json")
    table.loc[::50, "region"] = "never seen"
    expected = calibrator.predict_proba(P, table)
    for own in (calibrator, load_map(tmp_path / "model.json")):
        found = own.predict_proba(asarray(P), table)
        assert_like(found, asarray(P), expected.shape)
        np.testing.assert_allclose(np.from_dlpack(found), expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(calibrator.predict(asarray(P), table), expected[:, 1] > 0.5)


@pytest.mark.parametrize("unit", ["probability", "logit"])
def test_labels_that_do_not_exclude_each_other(unit, asarray):
    rng = np.random.default_rng(0)
    P = rng.random((300, 3))
    y = (rng.random((300, 3)) < P**2).astype(int)
    P = P if unit == "probability" else np.log(P / (1 - P))
    calibrator = MultiLabelCalibrator(TemperatureCalibrator()).fit(
        asarray(P), asarray(y), unit=unit
    )
    expected = calibrator.predict_proba(P)
    found = calibrator.predict_proba(asarray(P))
    assert_like(found, asarray(P), expected.shape)
    np.testing.assert_allclose(np.from_dlpack(found), expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(calibrator.predict(asarray(P)), calibrator.predict(P))


def test_whole_numbers_become_doubles(asarray):
    P = np.array([[70, 20, 10], [0, 0, 100]])
    y = np.repeat([0, 2, 1], 2)
    calibrator = TemperatureCalibrator().fit(np.tile(P, (3, 1)), y, unit="percent")
    given = asarray(P)
    found = calibrator.predict_proba(given)
    assert_like(found, given, (2, 3), asarray(np.ones(1)).dtype)
    np.testing.assert_allclose(np.from_dlpack(found), calibrator.predict_proba(P), atol=1e-12)


@pytest.mark.parametrize(("kind", "K"), SHAPES, ids=lambda value: getattr(value, "name", value))
def test_rows_are_checked_by_the_same_rules(kind, K, asarray):
    """Whatever `predict_proba` refuses or warns of in NumPy, and with the same message."""
    P = forecasts(kind, K, 40)
    y = np.arange(40) % K
    order_only = kind.unit == "rank"
    calibrator = make("IsotonicCalibrator" if order_only else "TemperatureCalibrator")
    calibrator.fit(P, y, unit=kind.unit)
    bad = P.copy()
    bad[7, 0] = np.nan
    high = P.copy()
    high[5, -1] = np.inf
    wide = np.column_stack([P, P])
    deep = P[:, :, None]
    for wrong in (bad, high, wide, deep, P[:0], P + 0j):
        with pytest.raises(InputError) as expected:
            calibrator.predict_proba(wrong)
        with pytest.raises(InputError) as found:
            calibrator.predict_proba(asarray(wrong))
        assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("shape", [1, "3 logits"])
def test_probabilities_for_a_calibrator_of_logits(shape, asarray):
    calibrator = fitted("TemperatureCalibrator", shape)
    P = forecasts_of("p" if shape == 1 else 3, 30)
    with pytest.warns(UserWarning, match='unit="logit"'):
        expected = calibrator.predict_proba(P)
    with pytest.warns(UserWarning, match='unit="logit"'):
        found = calibrator.predict_proba(asarray(P))
    assert_like(found, asarray(P), expected.shape)
    np.testing.assert_allclose(np.from_dlpack(found), expected, rtol=0, atol=1e-12)


def test_names_are_compared():
    P = forecasts_of(3, 30)
    y = np.arange(30) % 3
    calibrator = TemperatureCalibrator().fit(pd.DataFrame(P, columns=[*"abc"]), y)
    with pytest.warns(UserWarning, match="valid feature names"):
        found = calibrator.predict_proba(torch.asarray(P))
    frame = pd.DataFrame(P[:, ::-1], columns=[*"cba"])
    np.testing.assert_allclose(found, calibrator.predict_proba(frame), atol=1e-12)


def test_gradients_of_torch():
    calibrator = fitted("MatrixCalibrator", 3)
    P = torch.tensor(forecasts_of(3, 20), dtype=torch.float32, requires_grad=True)
    found = calibrator.predict_proba(P)
    expected = to_torch(calibrator)(P)
    slope, known = (torch.autograd.grad(own[:, 0].sum(), P)[0] for own in (found, expected))
    assert known.abs().max() > 0.1
    np.testing.assert_allclose(slope, known, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "P", [[[0.2, 0.3, 0.5]], np.array([[0.2, 0.3, 0.5]])], ids=["list", "NumPy"]
)
def test_what_numpy_reads_stays_in_numpy(P):
    assert type(fitted("TemperatureCalibrator", 3).predict_proba(P)) is np.ndarray


def test_other_methods_copy_to_the_host(asarray):
    calibrator = fitted("IRPCalibrator", 3)
    P = forecasts_of(3, 50)
    np.testing.assert_array_equal(calibrator.apply(asarray(P)), calibrator.apply(P))


@pytest.mark.parametrize("asarray", [torch.asarray, array_api_strict.asarray])
def test_without_dispatch_the_result_is_an_array_of_numpy(asarray):
    calibrator = fitted("TemperatureCalibrator", 3)
    P = forecasts_of(3, 50)
    with config_context(array_api_dispatch=False):
        found = calibrator.predict_proba(asarray(P))
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, calibrator.predict_proba(P))
