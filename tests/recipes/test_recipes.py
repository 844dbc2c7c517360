"""The recipes of the documentation for MLflow and SHAP. `make test-recipes` installs both."""

import itertools
import re
from pathlib import Path
from textwrap import dedent

import mlflow
import numpy as np
import pandas as pd
import pytest
import shap
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.frozen import FrozenEstimator

from isoroc import CalibratedClassifier, IsotonicCalibrator, evaluate

DOCS = Path(__file__).resolve().parents[2] / "docs"
N_FEATURES = 5


def recipe(page, heading):
    """The code blocks of a section. They are marked ``py``, so that other tests leave them out."""
    text = (DOCS / page).read_text()
    [section] = re.findall(rf"\n## {heading}\n(.*?)(?=\n## |\Z)", text, re.DOTALL)
    return [dedent(code) for code in re.findall(r"```py\n(.*?)```", section, re.DOTALL)]


def run(code, names):
    exec(compile(code, "recipe", "exec"), names)  # noqa: S102


@pytest.fixture(scope="module")
def boosted():
    """A classifier, rows to calibrate it on, and others."""
    X, y = make_classification(
        3000, n_features=N_FEATURES, n_informative=4, n_redundant=1, flip_y=0.1, random_state=0
    )
    model = GradientBoostingClassifier(n_estimators=20, random_state=0)
    return FrozenEstimator(model.fit(X[:1000], y[:1000])), X[1000:], y[1000:]


def test_a_logged_calibrator_is_loaded_as_a_model(boosted, tmp_path, monkeypatch):
    model, X, y = boosted
    P = model.predict_proba(X)
    calibrator = IsotonicCalibrator().fit(P[:1000], y[:1000])
    names = {"calibrator": calibrator, "P_test": P[1000:], "y_test": y[1000:]}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    [code] = recipe("deploy.md", "MLflow")
    run(code, names)
    expected = calibrator.predict_proba(P[1000:])
    assert np.array_equal(names["Q"], expected)
    frame = pd.DataFrame(P[1000:])
    assert np.array_equal(names["served"].predict(frame), expected)
    logged = mlflow.get_run(names["logged"].run_id)
    loss = evaluate(y[1000:], P[1000:], after=calibrator)["log_loss", "after"]
    assert logged.data.metrics["log_loss_after"] == loss
    report = mlflow.artifacts.load_text(f"{logged.info.artifact_uri}/report.html")
    assert report.startswith("<!doctype html>")


def test_a_logged_classifier_returns_calibrated_probabilities(boosted, tmp_path, monkeypatch):
    model, X, y = boosted
    calibrated = CalibratedClassifier(model).fit(X[:1000], y[:1000])
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    [call] = re.findall(
        r"`mlflow\.sklearn\.log_model\(model, (.*?)\)`", (DOCS / "deploy.md").read_text()
    )
    options = eval(f"dict({call})")  # noqa: S307
    logged = mlflow.sklearn.log_model(calibrated, pip_requirements=["isoroc"], **options)
    served = mlflow.pyfunc.load_model(logged.model_uri)
    assert np.array_equal(served.predict(X[1000:]), calibrated.predict_proba(X[1000:]))


def log_odds(model):
    return lambda X: np.log(model.predict_proba(X)[:, 1] / model.predict_proba(X)[:, 0])


def test_values_add_up_to_calibrated_forecasts(boosted):
    model, X, y = boosted
    calibrated = CalibratedClassifier(model).fit(X[:1000], y[:1000])
    names = {"model": calibrated, "background": X[:20], "rows": X[1000:1010]}
    run(recipe("how-to.md", "Explain calibrated forecasts with SHAP")[0], names)
    explained = names["values"]
    after = calibrated.predict_proba(X[1000:1010])[:, 1]
    np.testing.assert_allclose(explained.base_values + explained.values.sum(axis=1), after)  # noqa: PD011
    base = calibrated.predict_proba(X[:20])[:, 1].mean()
    np.testing.assert_allclose(explained.base_values, base)
    classes = shap.Explainer(calibrated.predict_proba, X[:20])(X[1000:1010])
    np.testing.assert_allclose(classes.values.sum(axis=2), 0, atol=1e-12)  # noqa: PD011


def test_values_of_platt_scaling_are_those_of_the_model_times_its_slope(boosted):
    model, X, y = boosted
    platt = CalibratedClassifier(model, method="sigmoid").fit(X[:1000], y[:1000])
    values = {x: shap.explainers.Exact(log_odds(x), X[:20])(X[1000:1010]) for x in (model, platt)}
    names = {"platt": platt, "uncalibrated": values[model]}
    run(recipe("how-to.md", "Explain calibrated forecasts with SHAP")[1], names)
    np.testing.assert_allclose(names["scaled"], values[platt].values, atol=1e-9)
    np.testing.assert_allclose(names["base"], values[platt].base_values, atol=1e-9)
    assert abs(names["a"] - 1) > 0.1  # the values do differ
    trees = shap.TreeExplainer(model.estimator, X[:20])(X[1000:1010])
    np.testing.assert_allclose(trees.values, values[model].values, atol=1e-6)


def marginal_contributions(forecast, row, base):
    """What each feature adds to each set of the others, shape (features, sets)."""
    sets = np.array(list(itertools.product([False, True], repeat=N_FEATURES)))
    value = dict(zip(map(tuple, sets), forecast(np.where(sets, row, base)), strict=True))
    return np.array(
        [
            [value[(*s[:i], True, *s[i + 1 :])] - value[tuple(s)] for s in sets if not s[i]]
            for i in range(N_FEATURES)
        ]
    )


def test_increasing_maps_keep_the_signs_of_features_that_push_one_way(boosted):
    model, X, y = boosted
    isotonic = CalibratedClassifier(model, method="isotonic").fit(X[:1000], y[:1000])
    explain = shap.explainers.Exact(lambda X: isotonic.predict_proba(X)[:, 1], X[:1])
    n_kept = 0
    for row, values in zip(X[1000:1010], explain(X[1000:1010]).values, strict=True):
        added = marginal_contributions(log_odds(model), row, X[0])
        for sign in (-1, 1):
            one_way = (sign * added >= 0).all(axis=1)
            assert (sign * values[one_way] >= -1e-12).all()
            n_kept += one_way.sum()
    assert n_kept > 5
