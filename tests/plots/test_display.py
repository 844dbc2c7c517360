from functools import cache

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from isoroc import (
    CalibratedClassifier,
    InputError,
    IRPCalibrator,
    TemperatureCalibrator,
    plots,
)
from isoroc._evaluation.forecasts import are_probabilities, forecasts_of
from isoroc._support.table import Table
from isoroc.plots import CalibrationDisplay, RocDisplay
from isoroc.plots._display import Display, Layer

X, Y = make_classification(n_samples=300, n_informative=4, n_classes=3, random_state=0)
NAMES = np.array(["a", "b", "c"])[Y]


def test_frame_stacks_layers():
    layers = [
        Layer("left", "before", "curve", Table(x=np.array([1, 2]), y=np.array([3.0, 4.0]))),
        Layer("right", "after", "points", Table(x=np.array([5.0]))),
    ]
    display = Display(layers)
    table = display.table
    assert table["panel"].tolist() == ["left", "left", "right"]
    assert table["series"].tolist() == ["before", "before", "after"]
    assert table["layer"].tolist() == ["curve", "curve", "points"]
    assert table["x"].tolist() == [1, 2, 5]
    np.testing.assert_array_equal(table["y"], [3, 4, np.nan])
    assert isinstance(table.frame("pandas"), pd.DataFrame)
    assert display.of_panel("right") == layers[1:]


def test_forecasts_of_a_calibrator():
    P = GaussianNB().fit(X, NAMES).predict_proba(X)
    calibrator = IRPCalibrator(random_state=0).fit(P, NAMES)
    before, after, classes = forecasts_of(calibrator, P)
    assert before is P
    np.testing.assert_array_equal(after, calibrator.predict_proba(P))
    assert classes.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("ensemble", [True, False])
def test_forecasts_of_a_calibrated_classifier(ensemble):
    model = CalibratedClassifier(GaussianNB(), cv=3, ensemble=ensemble).fit(X, NAMES)
    before, after, classes = forecasts_of(model, X)
    expected = np.mean([nb.predict_proba(X) for nb in model.estimators_], axis=0)
    np.testing.assert_allclose(before, expected)
    np.testing.assert_array_equal(after, model.predict_proba(X))
    assert classes.tolist() == ["a", "b", "c"]


def test_forecasts_or_scores_of_other_classifiers():
    y = Y > 0
    nb = GaussianNB().fit(X, y)
    svm = LinearSVC().fit(X, y)
    assert forecasts_of(nb, X)[1] is None
    np.testing.assert_array_equal(forecasts_of(nb, X)[0], nb.predict_proba(X))
    np.testing.assert_array_equal(forecasts_of(svm, X)[0], svm.decision_function(X))
    assert not are_probabilities(svm.decision_function(X))


def test_dataframes_are_accepted(make_axes):
    frame = pd.DataFrame(X)
    frame.columns = [f"x{i}" for i in range(X.shape[1])]
    model = LogisticRegression().fit(frame, NAMES)
    display = CalibrationDisplay.from_estimator(model, frame, pd.Series(NAMES), ax=make_axes())
    assert [ax.get_title() for ax in display.axes_] == ["a", "b", "c"]


@pytest.mark.parametrize("display", [RocDisplay, CalibrationDisplay])
@pytest.mark.parametrize(
    ("after", "row", "problem"),
    [
        ([[0.1, 0.2, 0.7]] * 2, None, "3 classes, but y_prob has 2"),
        ([0.1, np.nan], 1, "is NaN"),
        ([0.1], None, "1 rows, but y_prob has 2"),
    ],
)
def test_errors_in_forecasts_after_calibration(display, after, row, problem):
    with pytest.raises(InputError) as raised:
        display.from_predictions([0, 1], [0.2, 0.7], after=after)
    error = raised.value
    assert (error.argument, error.row, error.problem) == ("after", row, problem)


@pytest.mark.parametrize("display", [RocDisplay, CalibrationDisplay])
def test_errors_name_the_arguments_of_from_estimator(display):
    calibrator = IRPCalibrator().fit([0.2, 0.7], [0, 1])
    with pytest.raises(InputError, match="y: 2 rows, but X has 3") as raised:
        display.from_estimator(calibrator, [0.1, 0.3, 0.9], [0, 1])
    assert raised.value.argument == "y"
    with pytest.raises(InputError) as raised:
        display.from_estimator(calibrator, [0.1, 0.9], [0, 7])
    assert (raised.value.argument, raised.value.row) == ("y", 1)


@pytest.fixture(scope="module")
def of_logits(draw_forecasts):
    """Function that draws forecasts, labels and logits, and fits a calibrator of these."""

    @cache
    def draw(make, K, single):
        P, y = draw_forecasts(200, K)
        logits = np.log(P + 1e-9) + 0.7  # logits may be off by a constant
        X = logits[:, 1] - logits[:, 0] if single and K == 2 else logits
        if single and K == 3:
            X = pd.DataFrame(logits, columns=["0", "1", "2"])
        return P, y, X, make().fit(X, y, unit="logit")

    return draw


@pytest.mark.parametrize(("K", "single"), [(2, True), (2, False), (3, True)])
@pytest.mark.parametrize(
    "name",
    [
        "DecisionCurveDisplay",
        "CalibrationDisplay",
        "RocDisplay",
        "SimplexDisplay",
    ],
)
def test_displays_accept_what_calibrators_accept(name, K, single, of_logits):
    make = TemperatureCalibrator if single else IRPCalibrator
    P, y, X, calibrator = of_logits(make, K, single)
    kind = getattr(plots, name)
    suits = {"DecisionCurveDisplay": K == 2, "SimplexDisplay": K == 3}
    if not suits.get(name, True):
        with pytest.raises(InputError):
            kind.from_estimator(calibrator, X, y)
        return
    display = kind.from_estimator(calibrator, X, y)
    display.figure_.draw_without_rendering()
    if name == "CalibrationDisplay" and not (single and K == 2):
        expected = CalibrationDisplay.from_predictions(y, P, after=calibrator.predict_proba(X))
        found, wanted = (x.table for x in (display, expected))
        rates = found["layer"] == "rates"
        np.testing.assert_allclose(found["forecast"][rates], wanted["forecast"][rates], atol=1e-6)


@pytest.mark.parametrize("name", ["CalibrationDisplay", "RocDisplay", "SimplexDisplay"])
def test_messages_recommend_what_exists(name):
    with pytest.raises(InputError) as raised:
        getattr(plots, name).from_predictions([0, 1, 2], 3 * np.eye(3))
    assert "unit=" not in str(raised.value)
    assert "softmax(logits, axis=1)" in str(raised.value)


@pytest.mark.parametrize("name", ["CalibrationDisplay", "DecisionCurveDisplay", "RocDisplay"])
def test_attributes_and_sizes_are_those_of_scikit_learn(name, draw_forecasts):
    P, y = draw_forecasts(100, 2)
    kind = getattr(plots, name)
    display = kind.from_predictions(y, P, figsize=(3, 2))
    assert display.figure_.get_size_inches().tolist() == [3, 2]
    assert display.figure_ is plt.gcf()
    assert display.ax_ is display.axes_[0]
    assert display.line_ in display.ax_.lines
    assert "forecasts" in display.line_.get_label()
    ax = Figure().subplots()
    again = display.plot(ax)
    assert (again.ax_, again.figure_) == (ax, ax.figure)
    both = kind.from_predictions(y, P, after=P**0.5 / (P**0.5).sum(axis=1, keepdims=True))
    assert [line.get_label().partition(",")[0] for line in both.line_] == ["before", "after"]
    with pytest.raises(InputError, match="figsize: is only for new figures, but ax is given"):
        display.plot(ax, figsize=(3, 2))
