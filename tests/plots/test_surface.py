import numpy as np
import pytest

from isoroc.metrics import roc_surface, volume_under_surface
from isoroc.plots import RocSurfaceDisplay


def test_before_and_after(three_classes, make_axes):
    P, y, model = three_classes
    display = RocSurfaceDisplay.from_estimator(model, P, y, ax=make_axes())
    assert display.panels == ["before", "after"]
    for ax, layer, Q in zip(
        display.axes_, display.layers, (P, model.predict_proba(P)), strict=True
    ):
        volume = float(volume_under_surface(y, Q))
        assert display.volumes[layer.series] == volume
        assert ax.get_title() == f"{layer.series}: volume {volume:.4f}"
        assert ax.get_xlabel() == "share of 0 right, at least"
        points = roc_surface(y, Q).points
        table = layer.data
        chosen = np.random.default_rng(0).choice(table.n_rows, 40)
        for x, up, rate in zip(*(table[c][chosen] for c in ("x", "y", "rate")), strict=True):
            reached = points[(points[:, 0] >= x - 1e-9) & (points[:, 1] >= up - 1e-9), 2]
            assert rate == reached.max(initial=0)
        # The mean of the heat map is the dominated volume, up to the width of its cells.
        boxes = float(volume_under_surface(y, Q, volume="boxes"))
        assert table["rate"].mean() == pytest.approx(boxes, abs=0.03)
    assert display.figure_.axes[-1].get_ylabel() == "best share of 2 right"


def test_the_colour_is_that_of_any_class(three_classes, make_axes):
    P, y, _ = three_classes
    display = RocSurfaceDisplay.from_predictions(y, P, pos_label=0, ax=make_axes())
    assert display.names == ["1", "2", "0"]
    with pytest.raises(ValueError, match=r"pos_label: got 7; expected one of \[0, 1, 2\]"):
        RocSurfaceDisplay.from_predictions(y, P, pos_label=7)


def test_other_numbers_of_classes_raise():
    with pytest.raises(ValueError, match=r"y_prob: 2 classes, .* drawn for 3; use RocDisplay"):
        RocSurfaceDisplay.from_predictions([0, 1], [0.1, 0.4])
