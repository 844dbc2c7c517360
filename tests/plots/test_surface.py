import numpy as np
import pytest
from matplotlib.colors import to_rgb
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from scipy.spatial import ConvexHull
from scipy.spatial.distance import cdist

from isoroc.metrics._surface.surface import roc_surface, volume_under_surface
from isoroc.plots import RocSurfaceDisplay
from isoroc.plots._style import SERIES


def points(display, series, kind):
    (found,) = (x.data for x in display.layers if (x.series, x.kind) == (series, kind))
    return np.column_stack([found[name] for name in ("p0", "p1", "p2")])


def test_before_and_after(three_classes, make_axes):
    P, y, model = three_classes
    display = RocSurfaceDisplay.from_estimator(model, P, y, ax=make_axes(projection="3d"))
    (ax,) = display.axes_
    assert ax.get_zlabel() == "share of 2 in its region"
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == [f"{name}, VUS {v:.4f}" for name, v in display.volumes.items()]
    for name, Q in (("before", P), ("after", model.predict_proba(P))):
        assert display.volumes[name] == float(volume_under_surface(y, Q))
        shown = points(display, name, "points")
        every = roc_surface(y, Q).points
        assert {tuple(p) for p in shown} <= {tuple(p) for p in every}
        assert len(shown) <= 900
        assert cdist(every, shown, "chebyshev").min(axis=1).max() <= 1 / 18
    (hull,) = (c for c in ax.collections if isinstance(c, Poly3DCollection))
    assert hull.get_alpha() < 0.5
    dots = [c for c in ax.collections if c is not hull]
    colours = [SERIES[name][0] for name in ("before", "after")]
    assert [tuple(c.get_facecolor()[0, :3]) for c in dots] == [to_rgb(c) for c in colours]


def test_volume_of_the_hull_equals_vus_and_contains_all_points(three_classes, make_axes):
    P, y, _ = three_classes
    display = RocSurfaceDisplay.from_predictions(y, P, ax=make_axes(projection="3d"))
    facets = points(display, "forecasts", "hull").reshape(-1, 3, 3)
    corners = np.vstack([facets.reshape(-1, 3), np.zeros(3), np.eye(3)])
    volume = ConvexHull(corners).volume
    assert volume == pytest.approx(display.volumes["forecasts"], abs=1e-9)
    # The facets cover all of the hull that does not touch the origin: the tetrahedra between them
    # and the origin add up to its volume.
    assert np.abs(np.linalg.det(facets)).sum() / 6 == pytest.approx(volume)
    whole = np.vstack([corners, roc_surface(y, P).points])
    assert ConvexHull(whole).volume == pytest.approx(volume)


def test_other_numbers_of_classes_raise():
    with pytest.raises(
        ValueError, match=r"y_prob: 2 classes, .* drawn for 3; for two classes use RocDisplay"
    ):
        RocSurfaceDisplay.from_predictions([0, 1], [0.1, 0.4])
