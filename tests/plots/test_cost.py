import numpy as np
import pytest
from matplotlib.figure import Figure

from isoroc import InputError, IsotonicCalibrator
from isoroc.decisions import cost_curve
from isoroc.plots import CostCurveDisplay


def data(n=400):
    rng = np.random.default_rng(0)
    p = rng.random(n)
    return p, np.where(rng.random(n) < p**2, "yes", "no")


def test_curves_are_those_of_cost_curve():
    p, y = data()
    weights = np.arange(len(y)) % 3
    display = CostCurveDisplay.from_predictions(
        y, p, after=p**2, sample_weight=weights, n_ratios=51, ax=Figure().subplots()
    )
    frame = display.frame()
    assert display.labels.tolist() == ["no", "yes"]
    for series, q in (("before", p), ("after", p**2)):
        expected = cost_curve(y, q, n_ratios=51, sample_weight=weights)
        np.testing.assert_allclose(frame["cost"][frame["series"] == series], expected.cost)
        assert display.areas[series] == pytest.approx(expected.area())
    expected = cost_curve(y, p, n_ratios=51, sample_weight=weights)
    for series, cost in (
        ("best thresholds", expected.best),
        ("constant decision", expected.constant),
    ):
        np.testing.assert_allclose(frame["cost"][frame["series"] == series], cost)
    (ax,) = display.axes_
    assert len(ax.lines) == 4
    assert "yes" in ax.get_xlabel()


def test_estimators_and_bad_input():
    p, y = data()
    ax = Figure().subplots()
    display = CostCurveDisplay.from_estimator(IsotonicCalibrator().fit(p, y), p, y, ax=ax)
    assert list(display.areas) == ["before", "after"]
    assert display.areas["after"] < display.areas["before"]
    with pytest.raises(InputError, match="3 classes; the curve is defined for two"):
        CostCurveDisplay.from_predictions([0, 1, 2], np.full((3, 3), 1 / 3))
