import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.naive_bayes import GaussianNB

from isoroc import CalibratedClassifier, HistogramCalibrator, InputError, IRPCalibrator
from isoroc._evaluation.forecasts import staged
from isoroc._input import check_sample
from isoroc._support.table import Table
from isoroc.metrics import volume_under_surface
from isoroc.plots import PathDisplay


def values(display, panel, series):
    (found,) = (x.data for x in display.of_panel(panel) if x.series == series)
    return found


def test_two_calibrators_of_two_classes(make_axes):
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = rng.random(400) < p**2
    w = rng.integers(1, 4, 400).astype(float)
    cut = slice(200), slice(200, None)
    models = {
        name: model.fit(p[cut[0]], y[cut[0]], sample_weight=w[cut[0]])
        for name, model in (
            ("IRP", IRPCalibrator()),
            ("binning", HistogramCalibrator()),
        )
    }
    display = PathDisplay.from_estimator(
        models,
        p[cut[0]],
        y[cut[0]],
        test=(p[cut[1]], y[cut[1]], w[cut[1]]),
        sample_weight=w[cut[0]],
        ax=make_axes(),
    )
    assert len(display.axes_) == 4
    for name, model in models.items():
        for data, rows in zip(("calibration", "test"), cut, strict=True):
            stages = [Q[:, 1] for Q in model.staged_predict_proba(p[rows])]
            for measure, score in (("log loss", log_loss), ("AUC", roc_auc_score)):
                shown = values(display, f"{data} {measure}", name)
                assert shown["n_bins"].tolist() == model.path_["n_bins"].tolist()
                expected = [score(y[rows], q, sample_weight=w[rows]) for q in stages]
                np.testing.assert_allclose(shown["value"], expected)
    line = values(display, "test log loss", "before calibration")["value"]
    assert line == pytest.approx(log_loss(y[cut[1]], p[cut[1]], sample_weight=w[cut[1]]))
    ax = display.axes_[1]
    assert ax.get_ylabel() == "log loss (nats),\nlower is better"
    assert ax.get_xlabel() == "number of bins"
    assert [x.get_label() for x in ax.lines] == ["IRP", "binning", "before calibration"]
    texts = [text.get_text() for text in display.axes_[0].get_legend().get_texts()]
    assert texts == ["IRP", "binning", "before calibration"]
    assert display.axes_[0].get_ylim() == display.axes_[1].get_ylim()


def test_volume_for_three_classes(three_classes, make_axes):
    P, y, model = three_classes
    display = PathDisplay.from_estimator(model, P, y, ax=make_axes())
    assert display.panels == ["calibration log loss", "calibration VUS"]
    shown = values(display, "calibration VUS", "IRP")["value"]
    *_, last = model.staged_predict_proba(P)
    assert shown[-1] == pytest.approx(float(volume_under_surface(y, last)))
    assert shown[0] == pytest.approx(1 / 6)
    assert display.axes_[1].get_ylabel().startswith("volume under\nROC surface (hull)")


def test_path_of_a_calibrator_with_top(draw_forecasts, make_axes):
    P, y = draw_forecasts(300, 6)
    model = IRPCalibrator(top=1, random_state=0).fit(P, y)
    display = PathDisplay.from_estimator(model, P, y, ax=make_axes())
    shown = values(display, "calibration log loss", "IRP")["value"]
    expected = [log_loss(y, Q, labels=np.arange(6)) for Q in model.staged_predict_proba(P)]
    np.testing.assert_allclose(shown, expected)


def test_named_columns(three_classes, make_axes):
    P, y, _ = three_classes
    frame = pd.DataFrame(P, columns=["p0", "p1", "p2"])
    model = IRPCalibrator(random_state=0).fit(frame, y)
    display = PathDisplay.from_estimator(model, frame, y, ax=make_axes())
    assert len(display.axes_) == 2


def test_scores_have_no_cross_entropy(make_axes):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=200)
    y = scores + rng.normal(size=200) > 0
    display = PathDisplay.from_estimator(IRPCalibrator().fit(scores, y), scores, y, ax=make_axes())
    uncalibrated = [x.panel for x in display.layers if x.series == "before calibration"]
    assert uncalibrated == ["calibration AUC"]


def test_paths_of_given_values(make_axes):
    curves = Table(
        data=np.repeat(["a"], 5),
        measure=np.repeat(["loss"], 5),
        method=np.array(["x", "x", "x", "x", "z"]),
        n_bins=np.array([1, 2, 10, 30, 5]),
        value=np.array([9.0, 2.0, 1.0, 1.5, 1.2]),
    )
    lines = {"data": ["a"], "measure": ["loss"], "value": [7.0]}
    display = PathDisplay(curves, lines).plot(make_axes())
    (ax,) = display.axes_
    assert ax.get_xscale() == "log"
    assert ax.lines[-1].get_label() == "before calibration: 7,\noff the scale"
    assert ax.get_ylim() == pytest.approx((0.92, 2.08))  # the first stage is outside
    ax.figure.draw_without_rendering()
    shown = [t.get_text() for t in ax.get_xticklabels() if 1 <= t.get_position()[0] <= 30]
    assert shown == ["1", "2", "5", "10", "20"]
    without = PathDisplay(Table({k: v[-1:] for k, v in curves.items()})).plot(make_axes())
    assert without.table.n_rows == 1


def test_long_paths_are_thinned():
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    model = HistogramCalibrator(n_bins=100).fit(p, rng.random(3000) < p)
    sample = check_sample(p, rng.random(3000) < p)
    kept = [n for n, _ in staged(model, p, sample, most=4)]
    assert kept[0] == model.path_["n_bins"][0]
    assert kept[-1] == model.path_["n_bins"][-1]
    assert len(kept) <= 4 < len(model.path_["n_bins"])


def test_errors_name_the_argument(three_classes):
    P, y, model = three_classes
    cases = [
        (lambda: PathDisplay.from_estimator(model, P, y[1:]), "y"),
        (lambda: PathDisplay.from_estimator(model, P, y, test=(P, y[1:])), "test[1]"),
    ]
    for draw, argument in cases:
        with pytest.raises(InputError) as raised:
            draw()
        assert raised.value.argument == argument


def test_only_calibration_rows_are_called_so(three_classes, draw_forecasts, make_axes):
    P, y, model = three_classes
    other = draw_forecasts(300, 3, seed=1)
    assert PathDisplay.from_estimator(model, P, y, ax=make_axes()).panels[0].startswith("calib")
    display = PathDisplay.from_estimator(model, *other, ax=make_axes())
    assert display.panels[0] == "given rows log loss"


def test_calibrated_classifier(make_axes):
    X, y = make_classification(300, n_informative=4, random_state=0)
    model = CalibratedClassifier(GaussianNB(), calibrator=IRPCalibrator(), ensemble=False).fit(X, y)
    display = PathDisplay.from_estimator(model, X, y, ax=make_axes())
    shown = values(display, "given rows log loss", "CalibratedClassifier")["value"]
    assert shown[-1] == pytest.approx(log_loss(y, model.predict_proba(X)))


@pytest.mark.parametrize("ensemble", [True, None])
def test_estimators_without_a_path(ensemble):
    X, y = make_classification(200, random_state=0)
    model = GaussianNB()
    if ensemble:
        model = CalibratedClassifier(model, calibrator=IRPCalibrator(), ensemble=True, cv=2)
    with pytest.raises(InputError, match="has no single path of bins; pass a calibrator with bins"):
        PathDisplay.from_estimator(model.fit(X, y), X, y)
