import numpy as np
import pytest
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection
from scipy.spatial import ConvexHull
from sklearn.metrics import roc_curve as sk_roc_curve

from isoroc import InputError, IRPCalibrator
from isoroc._evaluation.surface import edges_of
from isoroc.metrics import roc_convex_hull, roc_surface
from isoroc.plots import RocDisplay


@pytest.fixture
def display(make_axes):
    rng = np.random.default_rng(0)
    p = rng.random(60)
    y = (rng.random(60) < p).astype(int)
    after = IRPCalibrator(pseudocount=0).fit(p, y).predict_proba(p)
    return RocDisplay.from_predictions(y, p, after=after, ax=make_axes())


def line(ax, label):
    (found,) = (x for x in ax.lines if str(x.get_label()).startswith(label))
    return found.get_xydata()


def test_curve_after_unsmoothed_calibration_is_the_hull(display):
    assert display.areas["after"] == pytest.approx(display.areas["hull"])
    assert display.areas["before"] < display.areas["hull"]
    roc = display.ax_
    np.testing.assert_allclose(line(roc, "convex hull"), line(roc, "after"), atol=1e-12)
    texts = [text.get_text() for text in roc.get_legend().get_texts()]
    names = ["before", "convex hull", "after"]
    areas = display.areas.values()
    assert texts == [f"{name}, AUC {area:.4f}" for name, area in zip(names, areas, strict=True)]
    assert roc.get_xlabel() == "false positive rate"
    assert roc.get_ylabel() == "true positive rate (1)"


def test_any_scores(make_axes):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=200)
    y = scores + rng.normal(size=200) > 0
    calibrator = IRPCalibrator().fit(scores, y)
    display = RocDisplay.from_estimator(calibrator, scores, y, ax=make_axes())
    assert [ax.get_xlabel() for ax in display.axes_] == ["false positive rate"]


def test_many_rows_are_thinned(make_axes):
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    y = rng.random(20_000) < p
    display = RocDisplay.from_predictions(y, p, ax=make_axes())
    assert all(layer.data.n_rows <= 2000 for layer in display.layers)
    drawn = display.layers[0].data
    area = -np.trapezoid(drawn["true_positive_rate"], drawn["false_positive_rate"])
    assert area == pytest.approx(display.areas["forecasts"], abs=1e-4)
    hull = roc_convex_hull(y, p)
    assert display.areas["hull"] == hull.area()


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


def test_heaviest_classes_have_panels(draw_forecasts):
    P, y = draw_forecasts(400, 15)
    display = RocDisplay.from_predictions(y, P, labels=np.arange(15))
    shown = {layer.panel for layer in display.layers}
    assert shown == {str(k) for k in np.argsort(-np.bincount(y, minlength=15), kind="stable")[:12]}


def test_the_surface_of_three_classes(three_classes, make_axes):
    P, y, _ = three_classes
    paper = IRPCalibrator.paper().fit(P, y)
    ax = make_axes(projection="3d")
    display = RocDisplay.from_estimator(paper, P, y, kind="surface", ax=ax)
    Q = paper.predict_proba(P)
    for name, forecasts in (("before", P), ("after", Q)):
        surface = roc_surface(y, forecasts)
        assert display.areas[name] == pytest.approx(float(surface.volume()))
        data = {layer.kind: layer.data for layer in display.layers if layer.series == name}
        corners = np.column_stack(list(data["corners"].values()))
        np.testing.assert_array_equal(corners, surface.shares[surface.spans])
        # The pyramids over the faces, with the origin as apex, fill the hull.
        faces = np.column_stack(list(data["faces"].values())).reshape(-1, 3, 3)
        volume = np.abs(np.linalg.det(faces)).sum() / 6
        assert volume == pytest.approx(display.areas[name])
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == [f"{name}, volume {value:.4f}" for name, value in display.areas.items()]
    assert ax.get_zlabel() == "share of 2 right"
    # A body before, and the edges of another one around it after.
    (body,) = (each for each in ax.collections if isinstance(each, Poly3DCollection))
    (edges,) = (each for each in ax.collections if isinstance(each, Line3DCollection))
    n_faces = {(x.series, x.kind): x.data.n_rows // 3 for x in display.layers}
    assert len(body.get_facecolor()) == n_faces["before", "faces"]
    assert len(edges.get_segments()) < 3 * n_faces["after", "faces"]


def test_edges_inside_a_plane_are_not_drawn():
    square = np.array([[0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1], [1, 0, 0]], dtype=float)
    faces = square[[[0, 1, 2], [0, 2, 3], [1, 2, 4]]]
    edges = {tuple(sorted(map(tuple, edge))) for edge in edges_of(faces).tolist()}
    assert len(edges) == 6
    assert ((0, 0, 1), (1, 1, 1)) not in edges
    assert ((1, 0, 1), (1, 1, 1)) in edges


@pytest.mark.parametrize(
    ("K", "kind", "message"),
    [(2, "surface", "kind: .* three classes, got 2"), (3, "map", "kind: expected one of")],
)
def test_kinds_that_do_not_exist(draw_forecasts, K, kind, message):
    P, y = draw_forecasts(50, K)
    with pytest.raises(InputError, match=message):
        RocDisplay.from_predictions(y, P, kind=kind)


def test_the_last_panel_says_how_many_classes_are_drawn():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(15), 400)
    y = P.argmax(axis=1)
    several = RocDisplay.from_predictions(y, P, labels=np.arange(15))
    assert several.axes_[-1].get_xlabel().endswith("(12 of 15 classes, the heaviest)")
    assert several.axes_[0].get_xlabel() == "false positive rate"
    few = P[:, :3] / P[:, :3].sum(axis=1, keepdims=True)
    all_drawn = RocDisplay.from_predictions(few.argmax(axis=1), few)
    assert all_drawn.axes_[-1].get_xlabel() == "false positive rate"


def test_edges_do_not_depend_on_the_size_of_a_body():
    corners = np.stack(np.meshgrid([0, 1], [0, 1], [0, 1]), axis=-1).reshape(-1, 3).astype(float)
    hull = ConvexHull(corners)
    for size in (1.0, 0.01):
        assert edges_of(size * corners[hull.simplices]).shape == (12, 2, 3)
