import numpy as np
import pytest
from matplotlib import pyplot as plt
from reproduction.experiments import (
    COMPARISONS,
    PUBLISHED,
    compare,
    experiment,
    repeat,
)
from reproduction.figures import ILLUSTRATION, comparison_curves, fit_synthetic, synthetic_data

from isoroc._core.simplex import regions
from isoroc.metrics import roc_convex_hull, symmetric_roc_curve
from reproduction import figures

pytestmark = pytest.mark.project


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def done(small, forecasts):  # noqa: ARG001
    return [experiment(forecasts(K)) for K in (2, 3, 4)]


@pytest.fixture(scope="module")
def repetition(small, rows):  # noqa: ARG001
    return repeat(rows, (2, 3), (1, 2, 3), classifiers=("naive Bayes",))


def lines_of(ax):
    return {line.get_label(): line.get_xydata() for line in ax.get_lines()}


def test_the_illustration_shows_that_the_hull_is_the_curve_after():
    p = ILLUSTRATION["forecast"]
    y = ILLUSTRATION["label"]
    assert (np.diff(p) > 0).all()
    axes = figures.illustration().axes
    assert len(axes) == 6
    before, after = (
        next(xy for label, xy in lines_of(ax).items() if label.startswith("forecasts"))
        for ax in (axes[2], axes[5])
    )
    curve = symmetric_roc_curve(y, p)
    np.testing.assert_allclose(before, np.column_stack([curve.p0, curve.p1]))
    assert np.trapezoid(after[:, 1], after[:, 0]) == pytest.approx(roc_convex_hull(y, p).area())
    assert roc_convex_hull(y, p).area() > curve.area()


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_comparison_shows_every_stage(done, place):
    each = done[place]
    curves, lines = comparison_curves(each)
    what = np.column_stack([curves[name] for name in ("measure", "data", "method")])
    measures = list(dict.fromkeys(curves["measure"]))
    assert [m.split()[0] for m in measures] == ["AUC" if place == 0 else "VUS", "cross", "cross"]
    for name in (*PUBLISHED, "isoroc, sweep"):
        stages = each.stages[name]
        for measure, field in zip(
            measures,
            ("volume", "cross_entropy_normalised", "cross_entropy_as_published"),
            strict=True,
        ):
            for part, data in (("cal", "calibration"), ("test", "test")):
                found = (what == [measure, data, name]).all(axis=1)
                if measure == measures[2] and name not in PUBLISHED:
                    assert not found.any()
                    continue
                np.testing.assert_array_equal(curves["n_bins"][found], stages["n_bins"])
                np.testing.assert_array_equal(curves["value"][found], stages[f"{part}_{field}"])
    before = each.outcomes()[0]
    expected = [
        before.cal_volume,
        before.test_volume,
        before.normalised.cal_cross_entropy,
        before.normalised.test_cross_entropy,
        before.as_published.cal_cross_entropy,
        before.as_published.test_cross_entropy,
    ]
    np.testing.assert_array_equal(lines["value"], expected)
    axes = figures.comparison(each).axes
    assert len(axes) == 6
    drawn = lines_of(axes[3])["published IRP"]
    stages = each.stages["published IRP"]
    np.testing.assert_array_equal(
        drawn, np.column_stack([stages["n_bins"], stages["test_cross_entropy_normalised"]])
    )


def test_a_threshold_outside_the_simplex_can_leave_a_region_empty():
    np.testing.assert_allclose(figures.GAMMAS.sum(axis=1), 1)
    figure = figures.splitting()
    for ax, gamma in zip(figure.axes, figures.GAMMAS, strict=True):
        corners = regions(np.eye(3), gamma)
        shown = {text.get_text() for text in ax.texts}
        assert {f"$R_{k + 1}$" for k in corners} <= shown
    assert "$R_1$" not in {text.get_text() for text in figure.axes[2].texts}


def test_synthetic_labels_are_noisy_argmaxes():
    P, y = synthetic_data(4000, noise=0.15)
    right = P.argmax(axis=1) == y
    top, second = np.sort(P, axis=1)[:, [2, 1]].T
    clear = top - second > 0.6
    assert right[clear].mean() > 0.99
    assert 0.4 < right[top - second < 0.05].mean() < 0.65


def test_the_synthetic_calibration_function():
    data = fit_synthetic(n=150, grid_size=15)
    np.testing.assert_allclose(data.R.sum(axis=1), 1)
    np.testing.assert_allclose(data.values.sum(axis=1), 1)
    assert len(data.cells) == 15**2  # small triangles of width 1/15
    assert len(np.unique(data.cells, axis=0)) == 15**2
    # Both are values of bins, and every bin has a row.
    bins = {tuple(r) for r in data.R.round(9)}
    assert {tuple(r) for r in data.values.round(9)} <= bins
    assert len(data.thresholds) < len(bins) <= 1 + 2 * len(data.thresholds)


@pytest.mark.slow
def test_all_figures_are_drawn(done, repetition, tmp_path, monkeypatch):
    fitted = fit_synthetic(n=150, grid_size=15)
    monkeypatch.setattr(figures, "fit_synthetic", lambda: fitted)
    drawn = figures.all_figures(done, repetition)
    assert list(drawn) == [
        "illustration",
        "splitting",
        "synthetic",
        "surfaces",
        "comparison-2",
        "comparison-3",
        "simplex-3",
        "comparison-4",
        "simplex-4",
        "repetition",
    ]
    for name in ("synthetic", "surfaces", "simplex-3", "simplex-4"):
        figure = drawn[name]()
        assert figure.axes
        if name == "simplex-4":
            figures.save(figure, tmp_path / name)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["simplex-4.pdf", "simplex-4.png"]
    assert "repetition" not in figures.all_figures(done, {})


def test_the_differences_show_mean_and_interval(repetition):
    figure = figures.differences(repetition)
    assert len(figure.axes) == len(COMPARISONS)
    for ax, (title, _, _) in zip(figure.axes, COMPARISONS, strict=True):
        _, *drawn = (line.get_xdata() for line in ax.get_lines())
        for i, measures in enumerate(repetition.values()):
            difference = compare(measures)[title]
            assert list(drawn[2 * i]) == [difference.low, difference.high]
            assert list(drawn[2 * i + 1]) == [difference.mean]
