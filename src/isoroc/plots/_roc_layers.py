"""Layers of a RocDisplay: the ROC curve, its hull, the cumulative sum diagram and forecasts."""

from __future__ import annotations

import numpy as np

from isoroc._input import InputError, Sample, first_improbable
from isoroc._simplex import Floats
from isoroc._table import Table
from isoroc._views.thinning import thin
from isoroc.metrics import RocCurve, symmetric_roc_curve
from isoroc.plots._display import Layer

#: Above this number of distinct forecasts a line replaces the points.
_MAX_POINTS = 400


def one_vs_rest(
    series: dict[str, Sample], most: int
) -> tuple[list[Layer], dict[tuple[str, str], float]]:
    """Curves of the heaviest classes against the rest, and the areas by series and class."""
    layers, areas = [], {}
    first = next(iter(series.values()))
    heaviest = np.sort(np.argsort(-first.class_weights(), kind="stable")[:most])
    for k in heaviest:
        panel = str(first.classes[k])
        is_class = first.codes == k
        if (
            is_class.all() or not is_class.any()
        ):  # no rows of the class, or no others: there is no curve
            continue
        for name, sample in series.items():
            scores = np.ascontiguousarray(sample.forecasts[:, k])
            curve = symmetric_roc_curve(is_class, scores, sample_weight=sample.weights)
            layers.append(curve_layer(panel, name, curve))
            areas[name, panel] = curve.area()
    return layers, areas


def curve_layer(panel: str, series: str, curve: RocCurve) -> Layer:
    """Curve with few vertices."""
    p0, p1, thresholds = curve
    kept = thin(p0, p1)
    data = Table(p0=p0[kept], p1=p1[kept], threshold=thresholds[kept])
    return Layer(panel, series, "curve", data)


def roc(curves: dict[str, RocCurve], _: float) -> list[Layer]:
    """Curves of two classes."""
    return [curve_layer("roc", name, curve) for name, curve in curves.items()]


def sums(curve: RocCurve, share: float) -> tuple[Floats, Floats]:
    """Cumulative sums of an ROC curve, by the inverse of the affine map in the paper's proof."""
    second = share * (1 - curve.p1)
    return (1 - share) * curve.p0 + second, second


def diagram(curves: dict[str, RocCurve], share: float) -> list[Layer]:
    """Cumulative sums and their greatest convex minorant."""
    layers = []
    for name, curve in curves.items():
        if name != "after":
            rows, second = sums(curve, share)
            kept = thin(rows, second)
            data = Table(rows=rows[kept], second=second[kept])
            layers.append(Layer("diagram", name, "curve", data))
    return layers


def forecasts(curves: dict[str, RocCurve], share: float) -> list[Layer]:
    """Forecasts in ascending order, and their isotonic regression."""
    first = next(iter(curves.values()))
    scores = first.thresholds[1:]
    if first_improbable(scores) is not None:
        problem = f'"forecasts" needs probabilities, got {scores[0]:.6g} to {scores[-1]:.6g}'
        raise InputError("panels", None, problem, "leave it out or calibrate the scores first")
    rows, second = sums(first, share)
    middle = (rows[1:] + rows[:-1]) / 2
    if len(scores) > _MAX_POINTS:
        kept = thin(middle, scores)
        line = Table(rows=middle[kept], forecast=scores[kept])
        layers = [Layer("forecasts", "forecasts", "line", line)]
    else:
        # Whether rows of each class have this forecast, up to rounding.
        present = np.column_stack([np.diff(rows - second), np.diff(second)]) > 1e-12
        layers = [
            Layer(
                "forecasts",
                str(k),
                "points",
                Table(rows=middle[present[:, k]], forecast=scores[present[:, k]]),
            )
            for k in (0, 1)
        ]
    ends, height = sums(curves["hull"], share)
    steps = Table(left=ends[:-1], right=ends[1:], value=np.diff(height) / np.diff(ends))
    return [*layers, Layer("forecasts", "isotonic regression", "steps", steps)]
