"""RocSurfaceDisplay: the ROC surface of three classes before and after calibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from scipy.spatial import ConvexHull

from isoroc._input import InputError, check_after, check_outcomes
from isoroc._simplex import Floats
from isoroc._table import Table
from isoroc.metrics import roc_surface, volume_under_surface
from isoroc.plots._display import BeforeAfterDisplay, Layer
from isoroc.plots._style import SERIES, axes_for, wrapped

_AXES = ("p0", "p1", "p2")
#: Largest number of rows, drawn at random if there are more: every pair of rows gives a point.
_MAX_ROWS = 3000
#: Points are thinned to one per box, of the smallest of these widths that leaves few enough.
_WIDTHS, _MAX_POINTS = (1 / 60, 1 / 40, 1 / 30, 1 / 24, 1 / 18), 900


class RocSurfaceDisplay(BeforeAfterDisplay):
    """ROC surface of three classes: for each threshold, the share of each class in its region.

    Each point is a threshold. The shaded surface is the convex hull of the points before
    calibration, the origin and the unit vectors; its volume is the VUS of the paper. The points are
    thinned to one per small box. With more than 3,000 rows, points and volumes are those of
    3,000 rows drawn at random.

    Create it with `from_estimator` or `from_predictions`.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from isoroc.plots import RocSurfaceDisplay
    >>> y, ax = [0, 1, 2, 2], Figure().add_subplot(projection="3d")
    >>> display = RocSurfaceDisplay.from_predictions(y, np.eye(3)[y], ax=ax)
    >>> display.volumes["forecasts"]
    1.0
    """

    def __init__(self, layers: list[Layer], *, volumes: dict[str, float], names: list[str]) -> None:
        self.layers = layers
        #: Volume under the hull of each series.
        self.volumes = volumes
        #: The classes.
        self.names = names

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        after: Any = None,
        resolution: int | None = None,
        sample_weight: Any = None,
        labels: Any = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the surface of forecasts.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        y_prob : array-like of shape (n, 3)
            Forecasts.
        after : array-like, default=None
            Forecasts of the same rows after calibration.
        resolution : int, default=None
            As in `isoroc.metrics.roc_surface`.
        sample_weight : array-like of shape (n,), default=None
            Weight of each row.
        labels : array-like of shape (3,), default=None
            The classes in the order of the columns; sorted by default.
        ax : Axes, default=None
            Where to draw; must have been created with ``projection="3d"``.
        """
        sample = check_outcomes(y_true, y_prob, sample_weight, labels)
        if sample.n_classes != 3:
            problem = f"{sample.n_classes} classes, but the ROC surface is drawn for 3"
            raise InputError("y_prob", None, problem, "for two classes use RocDisplay")
        series = {"forecasts": sample.positive()}
        if after is not None:
            changed = check_after(after, sample)
            series = {"before": sample.positive(), "after": changed.positive()}
        volumes, layers = {}, []
        for name, rows in series.items():
            drawn = rows.draw(_MAX_ROWS)  # the same rows of both
            options: dict[str, Any] = {"resolution": resolution, "sample_weight": drawn.weights}
            options["labels"] = range(3)
            points = roc_surface(drawn.codes, drawn.forecasts, **options).points
            volumes[name] = float(volume_under_surface(drawn.codes, drawn.forecasts, **options))
            layers.append(Layer("roc surface", name, "points", _table(_spread(points))))
            if name != "after":
                layers.append(Layer("roc surface", name, "hull", _table(_facets(points))))
        names = [str(label) for label in sample.classes]
        return cls(layers, volumes=volumes, names=names).plot(ax)

    def plot(self, ax: Axes | Sequence[Axes] | None = None) -> Self:
        """Draw in `ax`; see `from_predictions`."""
        axes = axes_for(ax, 1, columns=1, size=(5.6, 5.2), projection="3d")
        for layer in self.layers:
            points = np.column_stack([layer.data[name] for name in _AXES])
            if layer.kind == "hull":
                facets = list(points.reshape(-1, 3, 3))
                hull = Poly3DCollection(facets, facecolors="0.7", shade=True, alpha=0.35, lw=0)
                axes[0].add_collection3d(hull)
                continue
            colour, marker, _ = SERIES[layer.series]
            axes[0].scatter(
                *points.T,
                color=colour,
                marker=marker,
                s=np.clip(3000 / len(points), 6, 22),
                alpha=0.9 if layer.series == "after" else 0.6,
                depthshade=False,
                label=f"{layer.series}, VUS {self.volumes[layer.series]:.4f}",
            )
        _set_labels(axes[0], self.names)
        self._set_axes(axes)
        return self


def _set_labels(ax: Any, names: list[str]) -> None:
    ax.set(xlim=(0, 1), ylim=(0, 1), zlim=(0, 1))
    for axis, name in zip((ax.xaxis, ax.yaxis, ax.zaxis), names, strict=True):
        label = wrapped(f"share of {name} in its region", 26, 4)
        axis.set_label_text(label)
        axis.labelpad = 2 + 5 * (1 + label.count("\n"))
        axis.set_pane_color((0.5, 0.5, 0.5, 0.06))
        # No tick at the ends: those of two axes would be at the same corner.
        axis.set_ticks([0.2, 0.4, 0.6, 0.8])
    ax.grid(visible=False)
    ax.view_init(elev=26, azim=40)
    ax.set_box_aspect((1, 1, 1), zoom=0.8)
    ax.legend(loc="upper left", frameon=False, fontsize="small")


def _table(points: Floats) -> Table:
    return Table(zip(_AXES, points.T, strict=True))


def _spread(points: Floats) -> Floats:
    """The first point in each box, the boxes being as small as the number of points allows."""
    for width in _WIDTHS:
        _, first = np.unique(np.rint(points / width), axis=0, return_index=True)
        if len(first) <= _MAX_POINTS:
            break
    return points[np.sort(first)]


def _facets(points: Floats) -> Floats:
    """Corners of the outer triangles of the hull, three rows per triangle."""
    corners = np.vstack([points, np.zeros(3), np.eye(3)])
    hull = ConvexHull(corners)
    outer = (hull.equations[:, :3] > 1e-9).any(axis=1)
    return np.asarray(corners[hull.simplices[outer].ravel()])
