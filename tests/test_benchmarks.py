"""The peers that were written from their papers do what the papers say."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.project

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture
def script(monkeypatch):
    """The names in a script of benchmarks/, by its name."""
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    return lambda name: runpy.run_path(str(FOLDER / f"{name}.py"))


def overconfident(K, n=400, seed=0):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(K, 0.4), n)
    truth = 0.5 * P + 0.5 / K
    return P, (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)


def log_loss(y, Q):
    return -np.log(np.maximum(Q[np.arange(len(y)), y], 1e-9)).mean()


@pytest.mark.parametrize("K", [2, 3, 6])
@pytest.mark.parametrize(
    "name", ["NA-FIR", "SCIR", "TvA isotonic", "TvA temperature", "Brenier isotonic"]
)
def test_peers_from_papers_lower_the_loss_of_an_overconfident_model(script, name, K):
    if name == "Brenier isotonic":
        pytest.importorskip("ot")
    (make,) = [make for found, make, _ in script("peers")["FROM_PAPERS"] if found == name]
    P, y = overconfident(K)
    P_test, y_test = overconfident(K, seed=1)
    Q = make().fit(P, y).predict_proba(P_test)
    assert Q.min() >= 0
    np.testing.assert_allclose(Q.sum(axis=1), 1)
    assert log_loss(y_test, Q) < log_loss(y_test, P_test)


def test_one_function_for_all_classes_keeps_the_order_of_the_classes_in_each_row(script):
    P, y = overconfident(4)
    Q = script("from_papers")["FlatIsotonic"]().fit(P, y).predict_proba(P)
    i, k, j = np.nonzero(P[:, :, None] > P[:, None, :])
    assert (Q[i, k] >= Q[i, j]).all()


def test_cumulative_probabilities_increase_with_rank_and_sum(script):
    P, y = overconfident(4)
    table = script("from_papers")["CumulativeIsotonic"]().fit(P, y).table_
    assert (np.diff(table, axis=0) > -1e-3).all()
    assert (np.diff(table, axis=1) > -1e-3).all()


def test_the_largest_forecast_is_calibrated_as_a_whole(script):
    P, y = overconfident(4)
    Q = script("from_papers")["TopVersusAll"]("isotonic").fit(P, y).predict_proba(P)
    top = P.argmax(axis=1)
    assert Q[np.arange(len(y)), top].mean() == pytest.approx((top == y).mean())


@pytest.mark.parametrize("shape", ["scores", "column", "columns"])
def test_calibrators_for_calarena_take_its_arrays(script, shape):
    K = 5 if shape == "columns" else 2
    P, y = overconfident(K)
    y[y == 4] = 0  # absent from the calibration rows
    passed = {"scores": P[:, 1], "column": P[:, 1:], "columns": P}[shape].astype(np.float32)
    for make in script("calarena")["CUSTOM_CALIBRATORS"].values():
        calibrator = make()
        calibrator.fit(passed, y)
        Q = calibrator.predict_proba(passed)
        assert Q.shape == P.shape
        np.testing.assert_allclose(Q.sum(axis=1), 1)
