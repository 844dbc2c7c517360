from typing import Any

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from sklearn.svm import LinearSVC

from isoroc import InputError, IRPCalibrator
from isoroc.metrics import calibration_summary
from isoroc.plots import CalibrationDisplay


def kinds(display, panel=None):
    return [(x.series, x.kind) for x in display.layers if panel in (None, x.panel)]


def test_two_classes_before_and_after(make_axes):
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = np.where(rng.random(300) < p**2, "yes", "no")
    calibrator = IRPCalibrator().fit(p, y)
    display = CalibrationDisplay.from_estimator(calibrator, p, y, ax=make_axes())
    assert display.panels == ["before", "after"]
    shown = {"rates", "curve", "histogram", "band", "ici"}
    forecasts = {"before": p, "after": calibrator.predict_proba(p)}
    for ax, of in zip(display.axes_, display.panels, strict=True):
        assert ax.figure is display.figure_
        assert (ax.get_title(), ax.get_ylabel()) == (of, "observed rate")
        assert set(kinds(display, of)) == {(of, kind) for kind in shown}
        data = {layer.kind: layer.data for layer in display.of_panel(of)}
        ici = calibration_summary(y, forecasts[of])["ici"]
        assert data["ici"]["ici"][0] == pytest.approx(ici)
        (line,) = [line for line in ax.lines if line.get_label() == f"{of}, ICI {ici:.3f}"]
        np.testing.assert_array_equal(line.get_ydata(), data["curve"]["rate"])
        assert len([c for c in ax.collections if isinstance(c, PolyCollection)]) == 1
        (container,) = ax.containers
        np.testing.assert_array_equal(container.lines[0].get_ydata(), data["rates"]["rate"])
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts[1:] == ["95 % interval", "observed rates"]
    strip = display.figure_.axes[-1]
    assert strip.get_xlabel() == "forecast probability of yes"
    assert strip.get_ylabel() == "rows (%)"


def test_forecasts_before_are_in_the_background_where_there_are_several_classes(draw_forecasts):
    P, y = draw_forecasts(400, 5)
    after = P**0.5 / (P**0.5).sum(axis=1, keepdims=True)
    display = CalibrationDisplay.from_predictions(y, P, after=after)
    assert display.panels == list("01234")
    for ax in display.axes_:
        assert len([c for c in ax.collections if isinstance(c, PolyCollection)]) == 1
        assert len(ax.containers) == 1
        before, late = (line for line in ax.lines if "ICI" in str(line.get_label()))
        assert before.get_linewidth() < late.get_linewidth()


def test_scores_are_shown_only_after_they_are_calibrated(make_axes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = X[:, 0] + rng.normal(size=200) > 0
    scores = LinearSVC().fit(X, y).decision_function(X)
    calibrator = IRPCalibrator().fit(scores, y)
    display = CalibrationDisplay.from_estimator(calibrator, scores, y, ax=make_axes())
    assert {layer.series for layer in display.layers} == {"forecasts"}


def test_one_panel_per_class(draw_forecasts):
    P, y = draw_forecasts(200, 5)
    display = CalibrationDisplay.from_predictions(y, P)
    assert len(display.axes_) == 5
    for k, ax in enumerate(display.axes_):
        assert ax.get_title() == str(k)
        rates = next(x for x in display.of_panel(str(k)) if x.kind == "rates").data
        assert rates["weight"] @ rates["rate"] == pytest.approx((y == k).sum())


def test_top_label(draw_forecasts, make_axes):
    P, y = draw_forecasts(200, 4)
    display = CalibrationDisplay.from_predictions(y, P, kind="top", ax=make_axes())
    rates = next(x for x in display.layers if x.kind == "rates").data
    assert rates["weight"] @ rates["rate"] == (P.argmax(axis=1) == y).sum()
    assert display.axes_[0].get_ylabel() == "share that came true"


def test_many_classes_have_one_panel_for_the_top_class(draw_forecasts, make_axes):
    P, y = draw_forecasts(200, 13)
    display = CalibrationDisplay.from_predictions(y, P, labels=np.arange(13), ax=make_axes())
    assert len(display.axes_) == 1


@pytest.mark.parametrize(("n", "groups"), [(10, 2), (1000, 10), (50_000, 15)])
def test_number_of_groups_grows_with_the_number_of_rows(n, groups, make_axes):
    rng = np.random.default_rng(0)
    p = rng.random(n)
    y = np.append([False, True], rng.random(n - 2) < p[2:])
    display = CalibrationDisplay.from_predictions(y, p, ax=make_axes())
    assert next(x for x in display.layers if x.kind == "rates").data.n_rows == groups
    assert sum(x.data.n_rows for x in display.layers) < 2000


def test_weights_equal_repeated_rows(make_axes):
    rng = np.random.default_rng(0)
    p = rng.random(80).round(1)
    w = rng.integers(0, 4, 80)
    y = rng.random(80) < p
    options: dict[str, Any] = {"n_bins": 4, "labels": [False, True]}
    weighted = CalibrationDisplay.from_predictions(y, p, sample_weight=w, ax=make_axes(), **options)
    repeated = CalibrationDisplay.from_predictions(
        np.repeat(y, w), np.repeat(p, w), ax=make_axes(), **options
    )
    for kind in ("rates", "histogram"):  # knots of the curve are quantiles of the rows
        first, second = (
            next(layer.data for layer in display.layers if layer.kind == kind)
            for display in (weighted, repeated)
        )
        for name, column in first.items():
            np.testing.assert_allclose(column, second[name])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "all"}, "kind: expected one of"),
        ({"confidence": 95}, "confidence: is 95; expected 0 < confidence < 1"),
        ({"n_bins": 0}, "n_bins: is 0; expected .* >= 1"),
        ({"smoth": True}, "options: .*smoth.*; expected those that CalibrationDisplay describes"),
        ({"after": [0.1, 1.2]}, "after: row 1 is 1.2; probabilities lie between 0 and 1"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        CalibrationDisplay.from_predictions([0, 1], [0.2, 0.7], **options)


def test_several_models_share_axes_legend_and_histogram(make_axes):
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = rng.random(300) < p
    ax = make_axes()
    for name, power in (("forest", 1), ("bayes", 2), ("boosting", 0.5)):
        display = CalibrationDisplay.from_predictions(y, p**power, name=name, ax=ax)
    (drawn,) = display.axes_
    assert drawn is ax
    assert len(ax.figure.axes) == 2
    handles, labels = ax.get_legend_handles_labels()
    assert labels.pop(1) == "95 % interval"
    assert [label.partition(",")[0] for label in labels] == ["forest", "bayes", "boosting"]
    assert not ax.containers
    colours = [handle.get_color() for handle in [handles[0], *handles[2:]]]
    assert len(set(colours)) == 3
    outlines = ax.figure.axes[1].patches
    drawn = [to_hex(patch.get_edgecolor()) for patch in outlines if not patch.get_fill()]
    assert drawn == [c.lower() for c in colours]
    tallest = max(x.data["percent"].max() for x in display.layers if x.kind == "histogram")
    assert ax.figure.axes[1].get_ylim()[1] > tallest
    assert not ax.texts  # nothing is written over the curves


def test_several_models_of_three_classes_share_panels(draw_forecasts, make_axes):
    P, y = draw_forecasts(200, 3)
    ax = make_axes()
    for name in ("a", "b"):
        display = CalibrationDisplay.from_predictions(y, P, name=name, ax=ax)
    assert len(display.axes_) == 3
    assert len(ax.figure.axes) == 1 + 3 + 3


def test_positive_label(draw_forecasts, make_axes):
    p = np.linspace(0, 1, 50)
    y = np.where(p > 0.3, "yes", "no")
    options: dict[str, Any] = {"n_bins": 5}
    column = CalibrationDisplay.from_predictions(
        y, 1 - p, pos_label="no", ax=make_axes(), **options
    )
    P = np.column_stack([1 - p, p])
    matrix = CalibrationDisplay.from_predictions(y, P, pos_label="no", ax=make_axes(), **options)
    for display in (column, matrix):
        rates = next(x for x in display.layers if x.kind == "rates").data
        assert rates["weight"] @ rates["rate"] == pytest.approx((y == "no").sum())
        assert display.figure_.axes[1].get_xlabel() == "forecast probability of no"
    P, y = draw_forecasts(100, 3)
    one = CalibrationDisplay.from_predictions(y, P, pos_label=2, ax=make_axes())
    assert len(one.axes_) == 1
    with pytest.raises(ValueError, match="pos_label: expected one of None, 0, 1, 2; got 7"):
        CalibrationDisplay.from_predictions(y, P, pos_label=7)
    with pytest.raises(ValueError, match="pos_label: is 'maybe'"):
        CalibrationDisplay.from_predictions(["yes", "no"], [0.2, 0.4], pos_label="maybe")


def test_bins_of_equal_width_and_options_of_lines(make_axes):
    p = np.linspace(0, 1, 200) ** 3
    display = CalibrationDisplay.from_predictions(
        p > 0.5, p, n_bins=4, strategy="uniform", ax=make_axes(), color="red", lw=3
    )
    rates = next(x for x in display.layers if x.kind == "rates").data
    assert np.floor(rates["forecast"] * 4).tolist() == [0, 1, 2, 3]
    curve = display.axes_[0].get_legend_handles_labels()[0][0]
    assert (curve.get_color(), curve.get_linewidth()) == ("red", 3)


def test_long_names_stay_inside_the_figure(draw_forecasts):
    P, y = draw_forecasts(60, 3)
    names = ["a name of many words that goes on and on", "x" * 60, "$a_1$"]
    for labels, K in ((names, 3), (names[:2], 2)):
        display = CalibrationDisplay.from_predictions(
            np.array(labels)[y % K], P[:, :K] / P[:, :K].sum(axis=1, keepdims=True), labels=labels
        )
        figure = display.figure_
        figure.canvas.draw()
        width, height = figure.canvas.get_width_height()
        for ax in figure.axes:
            for text in (ax.title, ax.xaxis.label, ax.yaxis.label):
                if not text.get_text():
                    continue
                box = text.get_window_extent()
                assert box.x0 >= 0
                assert box.x1 <= width
                assert box.y0 >= 0
                assert box.y1 <= height


@pytest.mark.parametrize("scale", ["auto", "logit", "linear"])
def test_rare_events_have_an_axis_of_log_odds(scale, make_axes):
    rng = np.random.default_rng(0)
    p = np.exp(rng.normal(-5, 1, 3000)).clip(0, 1)
    p[:20] = 0.0
    y = rng.random(3000) < p
    display = CalibrationDisplay.from_predictions(y, p, after=p, scale=scale, ax=make_axes())
    ax = display.ax_
    expected = "logit" if scale == "auto" else scale
    assert (ax.get_xscale(), ax.get_yscale()) == (expected, expected)
    strip = display.figure_.axes[-1]
    assert (strip.get_xscale(), strip.get_yscale()) == (expected, "linear")
    display.figure_.draw_without_rendering()
    bars = next(x.data for x in display.layers if x.kind == "histogram")
    assert bars["percent"].sum() == pytest.approx(100)
    if scale != "linear":
        assert (bars["percent"] > 0).sum() > 7


def test_values_and_intervals_are_in_the_frame(make_axes):
    rng = np.random.default_rng(0)
    p = rng.choice([0.1, 0.4, 0.8], 300)
    y = rng.random(300) < p
    frame = CalibrationDisplay.from_predictions(y, p, ax=make_axes()).table
    rates = frame["layer"] == "rates"
    np.testing.assert_allclose(frame["forecast"][rates], [0.1, 0.4, 0.8])
    for level, rate, low, high in zip(
        *(frame[c][rates] for c in ("forecast", "rate", "low", "high")), strict=True
    ):
        assert rate == y[np.isclose(p, level)].mean()
        assert low < rate < high
    bands = frame["layer"] == "band"
    rate = frame["rate"][frame["layer"] == "curve"]
    assert (frame["low"][bands] < rate).all()
    assert (rate < frame["high"][bands]).all()


def test_thresholds_of_ordered_classes(draw_forecasts):
    P, codes = draw_forecasts(400, 4)
    labels = np.array(["poor", "fair", "good", "best"])
    y = labels[codes]
    options: Any = {"labels": labels, "kind": "thresholds"}
    display = CalibrationDisplay.from_predictions(y, P, **options)
    assert display.panels == ["≤ poor", "≤ fair", "≤ good"]
    for k, panel in enumerate(display.panels):
        rates = next(x for x in display.of_panel(panel) if x.kind == "rates").data
        total = rates["weight"].sum()
        assert total == 400
        assert rates["weight"] @ rates["forecast"] / total == pytest.approx(
            P[:, : k + 1].sum() / 400
        )
        assert rates["weight"] @ rates["rate"] / total == pytest.approx((codes <= k).mean())
    assert display.axes_[1].figure.axes[-1].get_xlabel() == "forecast probability of ≤ good"
    one = CalibrationDisplay.from_predictions(y, P, after=P, pos_label="fair", **options)
    assert one.panels == ["before", "after"]
    with pytest.raises(InputError, match=r"pos_label: .*got 'best'"):
        CalibrationDisplay.from_predictions(y, P, pos_label="best", **options)
    with pytest.raises(InputError, match="the order of the classes"):
        CalibrationDisplay.from_predictions(y, P[:, [3, 1, 2, 0]], kind="thresholds")
