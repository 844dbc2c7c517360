import numpy as np
from matplotlib.figure import Figure

from isoroc import IsotonicCalibrator
from isoroc.decisions import net_benefit
from isoroc.plots import DecisionCurveDisplay


def data(n=400):
    rng = np.random.default_rng(0)
    p = rng.random(n)
    return p, np.where(rng.random(n) < p**2, "yes", "no")


def test_curves_and_bands_are_those_of_net_benefit():
    p, y = data()
    weights = 1 + np.arange(len(y)) % 3
    options = {"after": p**2, "sample_weight": weights, "confidence": 0.8}
    display = DecisionCurveDisplay.from_predictions(
        y, p, thresholds=[0.1, 0.4], scaled=True, ax=Figure().subplots(), **options
    )
    curve = net_benefit(y, p, [0.1, 0.4], **options)
    frame = display.table
    for name in ("before", "after", "none", "all"):
        expected = curve.benefit(name, scaled=True)
        rows = frame["series"] == name
        np.testing.assert_allclose(frame["net_benefit"][rows], expected["value"])
        np.testing.assert_allclose(frame["low"][rows], expected["low"])
    (ax,) = display.axes_
    assert len(ax.lines) == 4
    assert len(ax.collections) == 1  # the interval after calibration
    assert ax.get_ylabel() == "standardised net benefit"


def test_estimators_and_costs():
    p, y = data()
    calibrator = IsotonicCalibrator().fit(p, y)
    display = DecisionCurveDisplay.from_estimator(calibrator, p, y, ax=Figure().subplots())
    assert display.curve.strategies[:2] == ("before", "after")
    # What acting on all rows loses at high thresholds is not shown.
    assert -1 < display.axes_[0].get_ylim()[0] < 0


def test_thresholds_lie_in_the_range_of_the_rates():
    rng = np.random.default_rng(0)
    p = 0.2 * rng.random(4000) ** 3
    y = rng.random(4000) < p
    for forecasts in (p, p**0.5):  # those that are too high have the same rates
        display = DecisionCurveDisplay.from_predictions(y, forecasts, ax=Figure().subplots())
        low, high = display.axes_[0].get_xlim()
        assert 0 <= low < 0.01
        assert 0.1 < high < 0.3
        assert (display.curve.thresholds[0], display.curve.thresholds[-1]) == (low, high)
