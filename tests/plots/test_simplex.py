from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.quiver import Quiver
from mpl_toolkits.mplot3d import proj3d
from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB

from isoroc import CalibratedClassifier, IRPCalibrator
from isoroc._evaluation.triangle import COLOURS, mix
from isoroc.plots import SimplexDisplay
from isoroc.plots._simplex import Tetrahedron, Triangle


def columns(table, prefix):
    return np.column_stack([v for k, v in table.items() if k.startswith(prefix)])


def of_type(ax, kind):
    return [artist for artist in ax.get_children() if type(artist) is kind]


def test_calibrator_of_three_classes(three_classes, make_axes):
    P, y, model = three_classes
    display = SimplexDisplay.from_estimator(model, P, y, ax=make_axes())
    assert display.panels == ["forecasts", "bins", "map"]
    forecasts, bins, arrows = display.axes_
    assert {ax.name for ax in display.axes_} == {"ternary"}
    labels = [forecasts.laxis.label, forecasts.raxis.label, forecasts.taxis.label]
    assert [label.get_text() for label in labels] == ["● 0", "▲ 1", "■ 2"]
    assert [label.get_color() for label in labels] == list(COLOURS[:3])

    for k, points in enumerate(forecasts.collections):
        expected = forecasts.transProjection.transform(P[y == k][:, [2, 0, 1]])
        np.testing.assert_allclose(points.get_offsets(), expected)
        assert points.get_label() == str(k)

    (polygons,) = of_type(bins, PolyCollection)
    np.testing.assert_allclose(polygons.get_facecolor()[:, :3], mix(model.bin_values_))
    (shown,) = (x.data for x in display.layers if x.kind == "thresholds")
    np.testing.assert_array_equal(columns(shown, "p_"), model.tree_.thresholds)
    inside = (model.tree_.thresholds >= 0).all(axis=1).sum()
    assert len(bins.collections[-1].get_offsets()) == inside

    (quiver,) = of_type(arrows, Quiver)
    assert model.n_bins_ == quiver.N
    (moved,) = (x.data for x in display.layers if x.kind == "arrows")
    np.testing.assert_allclose(columns(moved, "value_"), model.bin_values_)
    bin_of = model.apply(P)
    means = [P[bin_of == b].mean(axis=0) for b in range(model.n_bins_)]
    np.testing.assert_allclose(columns(moved, "p_"), means)


def test_positions_of_the_corners():
    drawing = Triangle(Figure().add_subplot(projection="ternary"), ["a", "b", "c"])
    corners = drawing.flat(np.eye(3))
    assert corners[0, 0] < corners[2, 0] < corners[1, 0]
    assert corners[2, 1] > corners[0, 1] == corners[1, 1]


def test_some_of_many_rows_are_drawn(draw_forecasts, make_axes):
    P, y = draw_forecasts(5000, 3)
    display = SimplexDisplay.from_predictions(y, P, after=(P + 1) / 4, ax=make_axes())
    assert display.panels == ["forecasts", "values", "map"]
    points = [layer.data for layer in display.layers if layer.panel == "forecasts"]
    assert sum(data.n_rows for data in points) == 3000
    rows = {tuple(row) for row in P[y == 1]}
    assert {tuple(row) for row in columns(points[1], "p_")} <= rows


def test_weights_equal_repeated_rows(draw_forecasts, make_axes):
    P, y = draw_forecasts(120, 3)
    w = np.random.default_rng(0).integers(0, 3, 120)
    model = IRPCalibrator(random_state=0, min_bin_weight=5).fit(P, y)
    options: dict[str, Any] = {"panels": ["map", "values"]}
    weighted = SimplexDisplay.from_estimator(
        model, P, y, sample_weight=w, ax=make_axes(), **options
    )
    repeated = SimplexDisplay.from_estimator(
        model, np.repeat(P, w, axis=0), np.repeat(y, w), ax=make_axes(), **options
    )
    for name in ("p_0", "value_2", "weight"):
        np.testing.assert_allclose(weighted.layers[0].data[name], repeated.layers[0].data[name])
    assert weighted.layers[1].data.n_rows == np.count_nonzero(w)


def test_many_bins_share_arrows(draw_forecasts, make_axes):
    P, y = draw_forecasts(3000, 3)
    model = IRPCalibrator(monotonicity=None, min_lift=0, min_bin_weight=5, random_state=0)
    model.fit(P, y)
    assert model.n_bins_ > 100
    display = SimplexDisplay.from_estimator(model, P, y, panels=["bins", "map"], ax=make_axes())
    assert display.layers[-1].data.n_rows <= 144
    (polygons,) = of_type(display.axes_[0], PolyCollection)
    assert polygons.get_linewidth()[0] < 0.5


def test_calibrator_with_top_has_no_bins_panel(draw_forecasts, make_axes):
    P, y = draw_forecasts(300, 3)
    model = IRPCalibrator(top=1, random_state=0).fit(P, y)
    display = SimplexDisplay.from_estimator(model, P, y, ax=make_axes())
    assert display.panels == ["forecasts", "values", "map"]


def test_forecasts_alone_and_named_columns(draw_forecasts, make_axes):
    P, y = draw_forecasts(50, 3)
    display = SimplexDisplay.from_predictions(y, P, ax=make_axes(projection="ternary"))
    assert display.panels == ["forecasts"]
    frame = pd.DataFrame(P, columns=["x", "y", "z"])
    model = IRPCalibrator(random_state=0).fit(frame, y)
    SimplexDisplay.from_estimator(
        model, frame, y, panels=["bins"], ax=make_axes(projection="ternary")
    )


def test_class_without_rows(draw_forecasts, make_axes):
    P, y = draw_forecasts(60, 3)
    display = SimplexDisplay.from_predictions(
        y[y > 0], P[y > 0], labels=[0, 1, 2], ax=make_axes(projection="ternary")
    )
    assert [layer.data.n_rows for layer in display.layers] == np.bincount(y[y > 0]).tolist()


def test_one_bin_covers_the_simplex(draw_forecasts, make_axes):
    P, y = draw_forecasts(60, 3)
    model = IRPCalibrator(max_bins=1).fit(P, y)
    display = SimplexDisplay.from_estimator(model, P, y, ax=make_axes())
    (polygons,) = of_type(display.axes_[1], PolyCollection)
    assert len(polygons.get_paths()) == 1


def test_bad_input(three_classes, make_axes):
    P, y, _ = three_classes
    with pytest.raises(ValueError, match="y_prob: 2 classes; the simplex is drawn for 3"):
        SimplexDisplay.from_predictions([0, 1], [0.2, 0.7])
    with pytest.raises(ValueError, match=r"panels: got .*'bins'.*; expected .*'forecasts'"):
        SimplexDisplay.from_predictions(y, P, panels=["bins"])
    with pytest.raises(ValueError, match='"projection": "ternary"'):
        SimplexDisplay.from_predictions(y, P, ax=make_axes())


def test_calibrated_classifier_has_bins(make_axes):
    X, y = make_classification(300, n_informative=4, n_classes=3, random_state=0)
    single = CalibratedClassifier(
        GaussianNB(), calibrator=IRPCalibrator(random_state=0), ensemble=False
    )
    display = SimplexDisplay.from_estimator(single.fit(X, y), X, y, ax=make_axes())
    assert display.panels == ["forecasts", "bins", "map"]
    several = CalibratedClassifier(
        GaussianNB(), calibrator=IRPCalibrator(random_state=0), ensemble=True
    )
    display = SimplexDisplay.from_estimator(several.fit(X, y), X, y, ax=make_axes())
    assert display.panels == ["forecasts", "values", "map"]


def test_four_classes_are_in_a_tetrahedron(draw_forecasts):
    P, y = draw_forecasts(200, 4)
    model = IRPCalibrator(random_state=0).fit(P, y)
    display = SimplexDisplay.from_estimator(model, P, y)
    assert display.panels == ["forecasts", "values"]
    assert {ax.name for ax in display.axes_} == {"3d"}
    forecasts, values = display.axes_
    assert [text.get_text() for text in forecasts.texts] == ["● 0", "▲ 1", "■ 2", "◆ 3"]
    assert [len(points.get_offsets()) for points in forecasts.collections] == [
        (y == k).sum() for k in range(4)
    ]
    display.figure_.canvas.draw()  # points are drawn in the order of their distance
    (points,) = values.collections
    drawn, expected = (
        np.unique(colours.round(6), axis=0)
        for colours in (points.get_facecolor()[:, :3], mix(model.predict_proba(P)))
    )
    np.testing.assert_allclose(drawn, expected)
    # The corners are at equal distances, so no class is preferred.
    corners = Tetrahedron.corners
    distances = np.linalg.norm(corners[:, None] - corners, axis=2)
    np.testing.assert_allclose(distances, 1 - np.eye(4), atol=1e-12)
    with pytest.raises(ValueError, match=r"panels: got .*'forecasts', 'values'"):
        SimplexDisplay.from_estimator(model, P, y, panels=("bins",))


def test_names_of_four_classes_stay_clear_of_the_corners_and_inside(draw_forecasts):
    P, y = draw_forecasts(200, 4)
    names = np.array(["nimbostratus", "stratus", "cirrus cloud", "an even longer name of a class"])
    display = SimplexDisplay.from_predictions(names[y], P, after=P, labels=names)
    figure = display.figure_
    figure.canvas.draw()
    for ax in display.axes_:
        corners = [line.get_data_3d() for line in ax.lines]
        flat = [proj3d.proj_transform(*line, ax.get_proj())[:2] for line in corners]
        ends = ax.transData.transform(np.hstack(flat).T)
        for text in ax.texts:
            across, up, _ = proj3d.proj_transform(*text.get_position_3d(), ax.get_proj())
            text.set_position((across, up))
            box = text.get_window_extent()
            assert box.xmin > 0
            assert box.xmax < figure.bbox.xmax
            assert box.ymin > 0
            assert box.ymax < ax.title.get_window_extent().ymin
            assert not any(box.contains(*end) for end in ends)
