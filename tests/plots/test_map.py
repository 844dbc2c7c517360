import numpy as np
import pytest

from isoroc import InputError, SegmentCalibrator, TemperatureCalibrator
from isoroc.plots import CalibrationDisplay, MapDisplay


def columns(display, panel, kind):
    (found,) = (layer.data for layer in display.of_panel(panel) if layer.kind == kind)
    return found


@pytest.mark.parametrize("K", [2, 3, 13])
def test_cells_hold_all_rows_and_the_line_is_their_mean(K, draw_forecasts, make_axes):
    P, y = draw_forecasts(800, K)
    Q = np.sqrt(P) / np.sqrt(P).sum(axis=1, keepdims=True)
    display = MapDisplay.from_predictions(
        y, P, after=Q, labels=np.arange(K), scale="linear", ax=make_axes()
    )
    expected = {2: ["1"], 3: ["0", "1", "2"], 13: ["the top class"]}[K]
    assert display.panels == expected
    k = P.argmax(axis=1) if K == 13 else 1
    before, after = P[np.arange(800), k], Q[np.arange(800), k]
    panel = expected[0] if K == 13 else "1"
    cells, line = columns(display, panel, "density"), columns(display, panel, "map")
    assert cells["weight"].sum() == 800
    for name, p in (("before", before), ("after", after)):
        assert cells["weight"] @ cells[name] / 800 == pytest.approx(p.mean(), abs=1 / 80)
    for x, value in zip(line["before"], line["after"], strict=True):
        rows = np.floor(20 * before) == np.floor(20 * x)
        assert value == pytest.approx(after[rows].mean())


def test_displays_of_a_calibrator_with_segments(make_axes):
    rng = np.random.default_rng(0)
    p, region = rng.random(1200), rng.choice(["north", "south"], 1200)
    y = rng.random(1200) < np.where(region == "north", p, p**3)
    calibrator = SegmentCalibrator(TemperatureCalibrator()).fit(p, y, segments=region)
    after = calibrator.predict_proba(p, region)
    for display in (CalibrationDisplay, MapDisplay):
        found = display.from_estimator(calibrator, p, y, segments=region, ax=make_axes())
        expected = display.from_predictions(y, p, after=after, ax=make_axes())
        np.testing.assert_array_equal(
            found.frame()["after" if display is MapDisplay else "low"],
            expected.frame()["after" if display is MapDisplay else "low"],
        )


def test_a_few_forecasts_are_drawn_where_they_are(make_axes):
    p = np.repeat([0.05, 0.3, 0.9], [3, 2, 5])
    display = MapDisplay.from_predictions(np.arange(10) % 2, p, after=p**2, ax=make_axes())
    cells = columns(display, "1", "density")
    np.testing.assert_allclose(cells["before"], [0.05, 0.3, 0.9])
    np.testing.assert_allclose(cells["after"], [0.0025, 0.09, 0.81])
    assert cells["weight"].tolist() == [3, 2, 5]


def test_bad_input():
    with pytest.raises(InputError, match="after: there are no second forecasts"):
        MapDisplay.from_predictions([0, 1], [0.2, 0.7])
    with pytest.raises(InputError, match="pos_label: is 7"):
        MapDisplay.from_predictions([0, 1], [0.2, 0.7], after=[0.1, 0.8], pos_label=7)
