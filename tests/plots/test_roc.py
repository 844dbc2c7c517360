import numpy as np
import pytest
from hypothesis import given
from sklearn.metrics import roc_curve as sk_roc_curve

from isoroc import IRPCalibrator
from isoroc.metrics import roc_convex_hull, symmetric_roc_curve
from isoroc.plots import RocDisplay
from isoroc.plots._roc import _sums
from strategies import binary_data


@pytest.fixture
def display(make_axes):
    rng = np.random.default_rng(0)
    p = rng.random(60)
    y = (rng.random(60) < p).astype(int)
    after = IRPCalibrator(pseudocount=0).fit(p, y).predict_proba(p)
    panels = ("forecasts", "diagram", "roc")
    return RocDisplay.from_predictions(
        y, p, after=after, panels=panels, orientation="symmetric", ax=make_axes()
    )


def line(ax, label):
    (found,) = (x for x in ax.lines if str(x.get_label()).startswith(label))
    return found.get_xydata()


def test_curve_after_unsmoothed_calibration_is_the_hull(display):
    assert display.areas["after"] == pytest.approx(display.areas["hull"])
    assert display.areas["before"] < display.areas["hull"]
    roc = display.axes_[2]
    np.testing.assert_allclose(line(roc, "convex hull"), line(roc, "after"), atol=1e-12)
    texts = [text.get_text() for text in roc.get_legend().get_texts()]
    names = ["before", "convex hull", "after"]
    areas = display.areas.values()
    assert texts == [f"{name}, AUC {area:.4f}" for name, area in zip(names, areas, strict=True)]
    assert roc.get_xlabel() == "true negative rate (0)"
    assert roc.get_ylabel() == "true positive rate (1)"


def test_diagram_and_regression(display):
    forecasts, diagram, _ = display.axes_
    minorant = line(diagram, "greatest convex minorant")
    sums = line(diagram, "cumulative sums")
    assert (np.interp(sums[:, 0], *minorant.T) <= sums[:, 1] + 1e-12).all()
    slopes = np.diff(minorant[:, 1]) / np.diff(minorant[:, 0])
    assert (np.diff(slopes) > 0).all()
    (steps,) = (x.data for x in display.of_panel("forecasts") if x.kind == "steps")
    np.testing.assert_allclose(steps["value"], slopes)
    np.testing.assert_allclose(steps["left"], minorant[:-1, 0])
    points = [x.data.n_rows for x in display.of_panel("forecasts") if x.kind == "points"]
    assert sum(points) == 60
    assert forecasts.get_ylabel() == "forecast probability of 1"


@given(binary_data())
def test_sums_are_cumulative(data):
    scores, y, weights = data
    w = np.ones(len(y)) if weights is None else weights
    curve = symmetric_roc_curve(y, scores, sample_weight=weights)
    rows, second = _sums(curve, np.average(y, weights=weights))
    for threshold, row, one in zip(curve.thresholds, rows, second, strict=True):
        below = scores <= threshold
        assert row == pytest.approx(w[below].sum() / w.sum(), abs=1e-12)
        assert one == pytest.approx((w * y)[below].sum() / w.sum(), abs=1e-12)


def test_default_panels_and_any_scores(make_axes):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=200)
    y = scores + rng.normal(size=200) > 0
    calibrator = IRPCalibrator().fit(scores, y)
    display = RocDisplay.from_estimator(calibrator, scores, y, ax=make_axes())
    assert [ax.get_xlabel() for ax in display.axes_] == ["false positive rate"]
    with pytest.raises(ValueError, match='panels: "forecasts" needs probabilities, got -'):
        RocDisplay.from_predictions(y, scores, panels=("forecasts",), ax=make_axes())


def test_many_rows_are_thinned(make_axes):
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    y = rng.random(20_000) < p
    panels = ("roc", "diagram", "forecasts")
    display = RocDisplay.from_predictions(y, p, panels=panels, ax=make_axes())
    assert all(layer.data.n_rows <= 2000 for layer in display.layers)
    drawn = display.of_panel("roc")[0].data
    assert np.trapezoid(drawn["p1"], drawn["p0"]) == pytest.approx(
        display.areas["forecasts"], abs=1e-4
    )
    hull = roc_convex_hull(y, p)
    assert display.areas["hull"] == hull.area()
    assert "line" in {layer.kind for layer in display.of_panel("forecasts")}


@pytest.mark.parametrize("panels", [(), ("curve",), "roc"])
def test_unknown_panels(panels):
    with pytest.raises(ValueError, match=r"panels: got .*; expected one or more of 'roc'"):
        RocDisplay.from_predictions([0, 1], [0.2, 0.7], panels=panels)


def test_one_against_the_rest(draw_forecasts, make_axes):
    P, y = draw_forecasts(300, 4)
    after = np.sqrt(P) / np.sqrt(P).sum(axis=1, keepdims=True)
    display = RocDisplay.from_predictions(y, P, after=after, ax=make_axes())
    assert [ax.get_title() for ax in display.axes_] == [f"{k} against the rest" for k in range(4)]
    for k, ax in enumerate(display.axes_):
        fpr, tpr, _ = sk_roc_curve(y == k, P[:, k], drop_intermediate=False)
        np.testing.assert_allclose(line(ax, "before")[::-1], np.column_stack([fpr, tpr]), atol=1e-9)
        assert np.trapezoid(tpr, fpr) == pytest.approx(display.areas["before", str(k)])
        assert ax.get_xlabel() == "false positive rate"
        assert ax.get_ylabel() == "true positive rate"


def test_usual_orientation_mirrors_the_curve(make_axes):
    rng = np.random.default_rng(0)
    p = rng.random(100)
    y = rng.random(100) < p
    symmetric, usual = (
        line(RocDisplay.from_predictions(y, p, orientation=o, ax=make_axes()).axes_[0], "forecasts")
        for o in ("symmetric", "usual")
    )
    np.testing.assert_allclose(usual[:, 0], 1 - symmetric[:, 0])
    np.testing.assert_array_equal(usual[:, 1], symmetric[:, 1])


def test_heaviest_classes_have_panels(draw_forecasts):
    P, y = draw_forecasts(400, 15)
    display = RocDisplay.from_predictions(y, P, labels=np.arange(15))
    shown = {layer.panel for layer in display.layers}
    assert shown == {str(k) for k in np.argsort(-np.bincount(y, minlength=15), kind="stable")[:12]}
