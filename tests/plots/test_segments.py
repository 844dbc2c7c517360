import numpy as np
import pytest

from isoroc import InputError, SegmentCalibrator, TemperatureCalibrator, evaluate
from isoroc.plots import CalibrationDisplay, SegmentsDisplay


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    p = rng.random(1200)
    region = np.where(np.arange(1200) % 3, "south", "north")
    return p, rng.random(1200) < np.where(region == "north", p, p**3), {"region": region}


def test_segments_are_those_of_the_evaluation(rows, make_axes):
    p, y, segments = rows
    result = evaluate(y, p, p**2, segments=segments)
    display = SegmentsDisplay.from_evaluation(result, ax=make_axes())
    assert display.names == ["region: south (800)", "region: north (400)"]
    for layer, of in zip(display.layers, ("before", "after"), strict=True):
        table = result.segments[of]
        order = [table["segment"].tolist().index(name) for name in ("south", "north")]
        np.testing.assert_array_equal(layer.data["value"], table["ratio"][order])
        np.testing.assert_array_equal(layer.data["low"], table["low"][order])
    assert display.axes_[0].get_xlabel() == "observed rate / mean forecast"
    one = SegmentsDisplay.from_evaluation(result, most=1, ax=make_axes())
    assert one.names == display.names[:1]
    with pytest.raises(InputError, match="evaluation: has no segments"):
        SegmentsDisplay.from_evaluation(evaluate(y, p))


def test_shifts_are_those_of_the_calibrator(rows, make_axes):
    p, y, segments = rows
    calibrator = SegmentCalibrator(TemperatureCalibrator()).fit(p, y, segments=segments)
    display = SegmentsDisplay.from_calibrator(calibrator, ax=make_axes())
    table = calibrator.shifts_
    assert len(display.names) == table.n_rows
    data = display.layers[0].data
    np.testing.assert_array_equal(data["value"], table["shift"])
    np.testing.assert_allclose(data["high"] - data["low"], 2 * 1.959964 * table["error"], rtol=1e-6)
    assert "region: south, True (800)" in display.names or "region: south (800)" in display.names
    with pytest.raises(InputError, match="calibrator: is TemperatureCalibrator"):
        SegmentsDisplay.from_calibrator(TemperatureCalibrator())


def test_displays_of_a_calibrator_with_segments(make_axes):
    rng = np.random.default_rng(0)
    p = rng.random(1200)
    region = rng.choice(["north", "south"], 1200)
    y = rng.random(1200) < np.where(region == "north", p, p**3)
    calibrator = SegmentCalibrator(TemperatureCalibrator()).fit(p, y, segments=region)
    after = calibrator.predict_proba(p, region)
    found = CalibrationDisplay.from_estimator(calibrator, p, y, segments=region, ax=make_axes())
    expected = CalibrationDisplay.from_predictions(y, p, after=after, ax=make_axes())
    np.testing.assert_array_equal(found.frame()["low"], expected.frame()["low"])
