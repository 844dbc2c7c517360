"""The example of a service returns what the calibrator does, from any number of threads."""

import json
import runpy
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from zoo import fitted, forecasts

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "serve.py"
#: What a service imports before its first forecast.
SCRIPT = """
import json, sys
import isoroc
served = isoroc.load_map(sys.argv[1])
served.predict_proba([[0.7, 0.2, 0.1]])
print(json.dumps(sorted(sys.modules)))
"""


@pytest.fixture
def auto(tmp_path):
    """A fitted calibrator of three classes and its model file."""
    calibrator = fitted("AutoCalibrator", 3)
    calibrator.save(tmp_path / "model.json")
    return calibrator, tmp_path / "model.json"


def client_of(path):
    pytest.importorskip("httpx", reason="the client for tests needs it")
    client = pytest.importorskip("fastapi.testclient").TestClient
    return client(runpy.run_path(str(EXAMPLE))["create_app"](str(path)))


def test_a_loaded_map_serves_without_scikit_learn_scipy_and_dataframes(auto):
    words = [sys.executable, "-c", SCRIPT, str(auto[1])]
    imported = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    assert "numpy" in imported
    assert not {"sklearn", "scipy", "joblib", "pandas", "pyarrow", "polars"} & set(imported)
    # A quarter of the time of a start
    assert not {"isoroc._counts", "numpy.random", "pathlib"} & set(imported)
    assert not {"concurrent.futures", "difflib", "html", "threadpoolctl"} & set(imported)


@pytest.mark.project
def test_the_service_returns_the_forecasts_of_the_calibrator(auto):
    calibrator, path = auto
    client = client_of(path)
    P = forecasts(3, 50, seed=1)
    answer = client.post("/calibrate", json={"forecasts": P.tolist()})
    assert answer.status_code == 200
    assert np.array_equal(answer.json()["probabilities"], calibrator.predict_proba(P))
    about = client.get("/model").json()
    assert about["classes"] == calibrator.classes_.tolist()
    assert about["checksum"] == json.loads(path.read_text())["checksum"]


@pytest.mark.project
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('{"forecasts": [[0.7, 0.2, 0.1], [0.7, 0.7, 0.1]]}', "row 1"),
        ('{"forecasts": [[0.7, NaN, 0.1]]}', "row 0"),
        ('{"forecasts": [[0.7, 0.3]]}', "3 columns"),
        ('{"forecasts": [[0.7, 0.2, 0.1]], "segments": {"a": ["x"]}}', "segments"),
        ('{"forecasts": "high"}', "list"),
        ('{"forecasts": [' + "[1, 0, 0]," * 10_000 + "[1, 0, 0]]}", "10000"),
    ],
)
def test_the_service_refuses_other_rows_and_says_why(auto, body, problem):
    client = client_of(auto[1])
    answer = client.post("/calibrate", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert problem in str(answer.json()["detail"])


@pytest.mark.project
def test_threads_share_a_map(auto):
    calibrator, path = auto
    client = client_of(path)
    batches = [forecasts(3, 20, seed=seed) for seed in range(40)]

    def ask(P):
        return client.post("/calibrate", json={"forecasts": P.tolist()}).json()["probabilities"]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, batches))
    for P, Q in zip(batches, answers, strict=True):
        assert np.array_equal(Q, calibrator.predict_proba(P))
