import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.quiver import Quiver

from isoroc import IRPCalibrator
from isoroc.plots import SimplexDisplay
from isoroc.plots._canvas import Tetrahedron, Triangle
from isoroc.plots._geometry import TETRAHEDRON
from isoroc.plots._style import COLOURS, mix


def columns(table, prefix):
    return np.column_stack([v for k, v in table.items() if k.startswith(prefix)])


def of_type(ax, kind):
    return [artist for artist in ax.get_children() if type(artist) is kind]


def test_a_calibrator_of_three_classes(three, aside):
    P, y, model = three
    display = SimplexDisplay.from_estimator(model, P, y, ax=aside())
    assert display.panels == ["forecasts", "bins", "map"]
    forecasts, bins, arrows = display.axes_
    assert {ax.name for ax in display.axes_} == {"ternary"}
    labels = [forecasts.laxis.label, forecasts.raxis.label, forecasts.taxis.label]
    assert [label.get_text() for label in labels] == ["class 0", "class 1", "class 2"]
    assert [label.get_color() for label in labels] == list(COLOURS[:3])

    for k, points in enumerate(forecasts.collections):
        expected = forecasts.transProjection.transform(P[y == k][:, [2, 0, 1]])
        np.testing.assert_allclose(points.get_offsets(), expected)
        assert points.get_label() == f"class {k}"

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


def test_colours_of_the_corners_are_where_the_classes_are():
    drawing = Triangle(Figure().add_subplot(projection="ternary"), ["a", "b", "c"])
    corners = drawing.flat(np.eye(3))
    assert corners[0, 0] < corners[2, 0] < corners[1, 0]
    assert corners[2, 1] > corners[0, 1] == corners[1, 1]


def test_many_rows_are_cells(classes, aside):
    P, y = classes(4000, 3)
    after = (P + 1) / 4
    display = SimplexDisplay.from_predictions(y, P, after=after, ax=aside())
    assert display.panels == ["forecasts", "values", "map"]
    forecasts, values, moved = (layer.data for layer in display.layers)
    assert forecasts["weight"].sum() == 4000
    came_true = forecasts["weight"] @ columns(forecasts, "value_")
    np.testing.assert_allclose(came_true, np.bincount(y))
    mean = values["weight"] @ columns(values, "value_") / 4000
    np.testing.assert_allclose(mean, after.mean(axis=0))
    np.testing.assert_allclose(columns(moved, "value_"), (columns(moved, "p_") + 1) / 4)
    (cells,) = of_type(display.axes_[0], PolyCollection)
    shades, pure = cells.get_facecolor()[:, :3], mix(columns(forecasts, "value_"))
    heaviest, lightest = forecasts["weight"].argmax(), forecasts["weight"].argmin()
    np.testing.assert_allclose(shades[heaviest], pure[heaviest])
    assert (shades[lightest] > pure[lightest]).all()  # fades into the white page


def test_weights_are_rows(classes, aside):
    P, y = classes(120, 3)
    w = np.random.default_rng(0).integers(0, 3, 120)
    model = IRPCalibrator(random_state=0, min_bin_weight=5).fit(P, y)
    options = {"panels": ["map", "values"]}
    weighted = SimplexDisplay.from_estimator(model, P, y, sample_weight=w, ax=aside(), **options)
    repeated = SimplexDisplay.from_estimator(
        model, np.repeat(P, w, axis=0), np.repeat(y, w), ax=aside(), **options
    )
    for name in ("p_0", "value_2", "weight"):
        np.testing.assert_allclose(weighted.layers[0].data[name], repeated.layers[0].data[name])
    assert weighted.layers[1].data.n_rows == np.count_nonzero(w)


def test_many_bins_have_few_arrows(classes, aside):
    P, y = classes(3000, 3)
    loose = {"monotonicity": None, "min_lift": 0, "min_bin_weight": 5, "random_state": 0}
    model = IRPCalibrator(**loose).fit(P, y)
    assert model.n_bins_ > 100
    display = SimplexDisplay.from_estimator(model, P, y, panels=["bins", "map"], ax=aside())
    assert display.layers[-1].data.n_rows <= 144
    (polygons,) = of_type(display.axes_[0], PolyCollection)
    assert polygons.get_linewidth()[0] < 0.5


def test_four_classes_are_a_tetrahedron(classes, aside):
    P, y = classes(300, 4)
    model = IRPCalibrator(random_state=0).fit(P, np.array(list("abcd"))[y])
    display = SimplexDisplay.from_estimator(model, P, np.array(list("abcd"))[y], ax=aside())
    assert display.panels == ["forecasts", "values", "map"]
    ax = display.axes_[0]
    assert ax.name == "3d"
    assert [text.get_text() for text in ax.texts] == [f"class {name}" for name in "abcd"]
    points = np.column_stack(ax.collections[2]._offsets3d)
    np.testing.assert_allclose(points, P[y == 2] @ TETRAHEDRON)
    assert len(display.axes_[2].collections) == model.n_bins_
    many = SimplexDisplay.from_predictions(*classes(4000, 4)[::-1], ax=aside(projection="3d"))
    assert many.layers[0].data["weight"].sum() == 4000


def test_a_reduced_calibrator_shows_no_bins(classes, aside):
    P, y = classes(300, 3)
    model = IRPCalibrator(top=1, random_state=0).fit(P, y)
    display = SimplexDisplay.from_estimator(model, P, y, ax=aside())
    assert display.panels == ["forecasts", "values", "map"]


def test_forecasts_alone_and_named_columns(classes, aside):
    P, y = classes(50, 3)
    display = SimplexDisplay.from_predictions(y, P, ax=aside(projection="ternary"))
    assert display.panels == ["forecasts"]
    frame = pd.DataFrame(P, columns=["x", "y", "z"])
    model = IRPCalibrator(random_state=0).fit(frame, y)
    SimplexDisplay.from_estimator(model, frame, y, panels=["bins"], ax=aside(projection="ternary"))


def test_a_class_without_rows_has_no_points(classes, aside):
    P, y = classes(60, 3)
    display = SimplexDisplay.from_predictions(
        y[y > 0], P[y > 0], labels=[0, 1, 2], ax=aside(projection="ternary")
    )
    assert [layer.data.n_rows for layer in display.layers] == np.bincount(y[y > 0]).tolist()


def test_one_bin_is_the_whole_simplex(classes, aside):
    P, y = classes(60, 3)
    model = IRPCalibrator(max_bins=1).fit(P, y)
    display = SimplexDisplay.from_estimator(model, P, y, ax=aside())
    (polygons,) = of_type(display.axes_[1], PolyCollection)
    assert len(polygons.get_paths()) == 1


def test_bad_input(three, aside):
    P, y, _ = three
    with pytest.raises(ValueError, match="a simplex is drawn for 3 or 4 classes, got 2"):
        SimplexDisplay.from_predictions([0, 1], [0.2, 0.7])
    with pytest.raises(ValueError, match=r"panels: expected some of .*'forecasts'.*, got .*'bins'"):
        SimplexDisplay.from_predictions(y, P, panels=["bins"])
    with pytest.raises(ValueError, match='projection="3d"'):
        SimplexDisplay.from_predictions([0, 1, 2, 3], np.eye(4), ax=aside())
    assert Tetrahedron.projection == "3d"
