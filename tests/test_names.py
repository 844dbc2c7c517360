"""Names that new users try first, most of them scikit-learn's, exist and do what they say."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.tree import DecisionTreeClassifier

import isoroc
from isoroc import (
    CalibratedClassifier,
    IRPCalibrator,
    SegmentCalibrator,
    decisions,
    metrics,
    plots,
)

X, y = make_classification(300, random_state=0)
MODEL = LogisticRegression().fit(X, y)
P = MODEL.predict_proba(X)
METHODS = """sigmoid isotonic temperature auto irp monotone spline kernel venn-abers matrix beta
identity"""


@pytest.mark.parametrize("method", METHODS.split())
def test_methods_by_name(method):
    model = CalibratedClassifier(DecisionTreeClassifier(max_depth=3), method, cv=2).fit(X, y)
    assert len(model.calibrated_classifiers_) == 2
    name = type(model.calibrated_classifiers_[0].calibrator).__name__
    assert name.lower() == method.replace("-", "") + "calibrator"
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_parameters_of_a_classifier():
    model = CalibratedClassifier(method="irp", cv=2, n_jobs=1, ensemble=False, random_state=0)
    model.set_params(calibrator__pseudocount=2.0)
    assert model.fit(X, y).calibrated_classifiers_[0].calibrator.pseudocount == 2.0
    assert "calibrate" in str(CalibratedClassifier(cv=2).fit(X, y).verdict_)
    given = CalibratedClassifier(MODEL, calibrator=IRPCalibrator(max_bins=3), cv=2).fit(X, y)
    assert given.calibrated_classifiers_[0].calibrator.max_bins == 3


def test_segments_are_columns_of_the_features():
    model = CalibratedClassifier(MODEL, method="isotonic", segments=[0], ensemble=False)
    assert model.fit(X, y).predict_proba(X).shape == (300, 2)
    assert isinstance(model.calibrators_[0], SegmentCalibrator)


def test_metrics():
    assert metrics.log_loss(y, P) == pytest.approx(log_loss(y, P))
    assert metrics.brier_score_loss(y, P[:, 1]) == pytest.approx(brier_score_loss(y, P[:, 1]))
    errors = [
        metrics.expected_calibration_error(y, P, n_bins=10, strategy=strategy, kind=kind)
        for strategy in ("uniform", "quantile")
        for kind in ("top", "classwise")
    ]
    assert len(set(errors)) == 4
    curve = metrics.calibration_curve(y, P[:, 1], n_bins=5)
    true, mean = curve
    assert np.all((curve.low <= true) & (true <= curve.high))
    assert np.all(np.diff(mean) > 0)
    with pytest.raises(ValueError, match="n_bins"):
        metrics.calibration_error(y, P, n_bins=7)


def test_decisions():
    assert decisions.best_threshold([[0, 1], [9, 0]]) == pytest.approx(0.1)


def test_displays():
    display = plots.CalibrationDisplay.from_estimator(MODEL, X, y, figsize=(4, 3))
    assert tuple(display.figure_.get_size_inches()) == (4, 3)
    assert display.ax_ in display.figure_.axes
    assert display.line_.get_xdata().size


def test_report(tmp_path):
    model = CalibratedClassifier(MODEL, "isotonic", cv=2).fit(X, y)
    isoroc.Report.from_estimator(model, X, y).to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("name", ["SigmoidCalibrator", "BetaCalibrator", "MatrixCalibrator"])
def test_calibrators_of_other_packages(name):
    Q = getattr(isoroc, name)().fit(P, y).predict_proba(P)
    assert metrics.log_loss(y, Q) <= metrics.log_loss(y, P) + 0.01
