import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from isoroc import CalibratedClassifier, IRPCalibrator
from isoroc._table import Table
from isoroc.plots import ReliabilityDisplay, RocDisplay
from isoroc.plots._display import Display, Layer, forecasts_of, is_probable

X, Y = make_classification(n_samples=300, n_informative=4, n_classes=3, random_state=0)
NAMES = np.array(["a", "b", "c"])[Y]


def test_frame_stacks_layers():
    display = Display()
    display.layers = [
        Layer("left", "before", "curve", Table(x=np.array([1, 2]), y=np.array([3.0, 4.0]))),
        Layer("right", "after", "points", Table(x=np.array([5.0]))),
    ]
    table = display.frame()
    assert table["panel"].tolist() == ["left", "left", "right"]
    assert table["series"].tolist() == ["before", "before", "after"]
    assert table["layer"].tolist() == ["curve", "curve", "points"]
    assert table["x"].tolist() == [1, 2, 5]
    np.testing.assert_array_equal(table["y"], [3, 4, np.nan])
    assert isinstance(table.frame("pandas"), pd.DataFrame)
    assert display.of_panel("right") == display.layers[1:]


def test_a_calibrator_has_forecasts_before_and_after():
    P = GaussianNB().fit(X, NAMES).predict_proba(X)
    calibrator = IRPCalibrator(random_state=0).fit(P, NAMES)
    before, after, classes = forecasts_of(calibrator, P)
    assert before is P
    np.testing.assert_array_equal(after, calibrator.predict_proba(P))
    assert classes.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("ensemble", [True, False])
def test_so_has_a_calibrated_classifier(ensemble):
    model = CalibratedClassifier(GaussianNB(), cv=3, ensemble=ensemble).fit(X, NAMES)
    before, after, classes = forecasts_of(model, X)
    expected = np.mean([nb.predict_proba(X) for nb in model.estimators_], axis=0)
    np.testing.assert_allclose(before, expected)
    np.testing.assert_array_equal(after, model.predict_proba(X))
    assert classes.tolist() == ["a", "b", "c"]


def test_a_classifier_has_forecasts_or_scores():
    y = Y > 0
    nb, svm = GaussianNB().fit(X, y), LinearSVC().fit(X, y)
    assert forecasts_of(nb, X).after is None
    np.testing.assert_array_equal(forecasts_of(nb, X).before, nb.predict_proba(X))
    np.testing.assert_array_equal(forecasts_of(svm, X).before, svm.decision_function(X))
    assert not is_probable(svm.decision_function(X))


def test_dataframes_go_in(aside):
    frame = pd.DataFrame(X)
    frame.columns = [f"x{i}" for i in range(X.shape[1])]
    model = LogisticRegression().fit(frame, NAMES)
    display = ReliabilityDisplay.from_estimator(model, frame, pd.Series(NAMES), ax=aside())
    assert [ax.get_ylabel() for ax in display.axes_] == [
        f"observed rate of class {name}" for name in "abc"
    ]


@pytest.mark.parametrize("display", [RocDisplay, ReliabilityDisplay])
@pytest.mark.parametrize(
    ("after", "message"),
    [
        ([[0.1, 0.2, 0.7]] * 2, "after: expected forecasts of 2 classes as before, got 3"),
        ([0.1, np.nan], "after: row 1 is NaN"),
        ([0.1], "y_true: 2 rows, but after has 1"),
    ],
)
def test_what_is_wrong_with_forecasts_after(display, after, message):
    with pytest.raises(ValueError, match=message):
        display.from_predictions([0, 1], [0.2, 0.7], after=after)
