from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB

from isoroc import CalibratedClassifier, InputError, IRPCalibrator, TemperatureCalibrator
from isoroc.metrics import log_loss, roc_auc, volume_under_surface
from isoroc.plots import PathDisplay

VOLUMES: Any = {2: roc_auc, 3: volume_under_surface}


def value_of(layers, panel, series, kind):
    (data,) = (x.data for x in layers if (x.panel, x.series, x.kind) == (panel, series, kind))
    return data


@pytest.mark.parametrize("K", [2, 3])
def test_every_stage_is_measured_on_both_sets(draw_forecasts, make_axes, K):
    P, y = draw_forecasts(300, K)
    P_new, y_new = draw_forecasts(200, K, seed=1)
    irp = IRPCalibrator(values="constant", random_state=0, max_bins=9).fit(P, y)
    display = PathDisplay.from_estimator(irp, P, y, test=(P_new, y_new), ax=make_axes())
    volume = "AUC" if K == 2 else "VUS"
    assert display.panels == ["log loss", volume]
    for series, Q, labels in (("calibration", P, y), ("test", P_new, y_new)):
        stages = list(irp.staged_predict_proba(Q))
        metrics: Any = {"log loss": log_loss, volume: VOLUMES[K]}
        for panel, metric in metrics.items():
            path = value_of(display.layers, panel, series, "path")
            np.testing.assert_array_equal(path["n_bins"], irp.path_["n_bins"])
            expected = [float(metric(labels, R)) for R in stages]
            np.testing.assert_allclose(path["value"], expected, atol=1e-9)
            before = value_of(display.layers, panel, series, "uncalibrated")
            assert before["value"][0] == pytest.approx(float(metric(labels, Q)))
    calibration = value_of(display.layers, "log loss", "calibration", "path")
    np.testing.assert_allclose(calibration["value"], irp.path_["log_loss"])
    loss, separation = display.axes_
    assert loss.get_xlabel() == "number of bins"
    texts = [text.get_text() for text in separation.get_legend().get_texts()]
    assert texts[-1] == "end of growth"
    for line in (line for line in display.line_ if line.get_label() == "test rows"):
        assert line.get_markevery() == [-1]
        assert line.get_xdata()[-1] == irp.n_bins_


def test_rows_that_were_not_fitted_are_test_rows(draw_forecasts, make_axes):
    P, y = draw_forecasts(300, 3)
    irp = IRPCalibrator(random_state=0, max_bins=5).fit(P, y)
    new = draw_forecasts(100, 3, seed=2)
    display = PathDisplay.from_estimator(irp, *new, ax=make_axes())
    assert {layer.series for layer in display.layers} == {"test"}


def test_many_stages_are_thinned_and_scores_have_no_loss_before(make_axes):
    rng = np.random.default_rng(0)
    scores = 3 * rng.normal(size=30_000)
    y = rng.random(30_000) < 1 / (1 + np.exp(-scores))
    irp = IRPCalibrator.paper().fit(scores, y)
    assert irp.n_bins_ > 60
    display = PathDisplay.from_estimator(irp, scores, y, ax=make_axes())
    path = value_of(display.layers, "AUC", "calibration", "path")
    assert path.n_rows <= 40
    assert path["n_bins"][[0, -1]].tolist() == [1, irp.n_bins_]
    kinds = {(layer.panel, layer.kind) for layer in display.layers}
    assert ("log loss", "uncalibrated") not in kinds
    assert ("AUC", "uncalibrated") in kinds
    assert display.ax_.get_xscale() == "log"


@pytest.mark.parametrize(("K", "panels"), [(5, ["log loss", "VUS"]), (8, ["log loss"])])
def test_more_classes(draw_forecasts, make_axes, K, panels):
    P, y = draw_forecasts(250, K)
    irp = IRPCalibrator(random_state=0, max_bins=8, values="constant", top=None).fit(P, y)
    assert PathDisplay.from_estimator(irp, P, y, ax=make_axes()).panels == panels


def test_a_classifier_with_one_calibrator(make_axes):
    X, y = make_classification(400, n_informative=4, n_classes=3, random_state=0)
    model = CalibratedClassifier(GaussianNB(), calibrator=IRPCalibrator(max_bins=4), ensemble=False)
    display = PathDisplay.from_estimator(model.fit(X, y), X, y, ax=make_axes())
    assert display.panels == ["log loss", "VUS"]


def test_weights_equal_repeated_rows(draw_forecasts, make_axes):
    P, y = draw_forecasts(200, 3)
    weights = np.random.default_rng(0).integers(0, 3, 200)
    irp = IRPCalibrator(random_state=0, max_bins=4).fit(P, y)
    rows = np.repeat(np.arange(200), weights)
    weighted = PathDisplay.from_estimator(irp, P, y, sample_weight=weights, ax=make_axes())
    repeated = PathDisplay.from_estimator(irp, P[rows], y[rows], ax=make_axes())
    for one, other in zip(weighted.layers, repeated.layers, strict=True):
        np.testing.assert_allclose(one.data["value"], other.data["value"], atol=1e-9)


def test_bad_input(draw_forecasts):
    P, y = draw_forecasts(100, 3)
    irp = IRPCalibrator(max_bins=3).fit(P, y)
    with pytest.raises(InputError, match="estimator: TemperatureCalibrator has no single path"):
        PathDisplay.from_estimator(TemperatureCalibrator().fit(P, y), P, y)
    with pytest.raises(InputError, match="test: has 1 entries; expected forecasts, labels"):
        PathDisplay.from_estimator(irp, P, y, test=(P,))
    with pytest.raises(InputError, match=r"test\[0\]: row 0"):
        PathDisplay.from_estimator(irp, P, y, test=(np.full((2, 3), np.nan), y[:2]))
