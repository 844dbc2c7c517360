"""RocSurfaceDisplay: the ROC surface of three classes as heat maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes

from isoroc._input import InputError
from isoroc._simplex import Floats
from isoroc._table import Table
from isoroc._views.curves import best_rates
from isoroc._views.forecasts import series_of
from isoroc.metrics import roc_surface, volume_under_surface
from isoroc.plots._display import BeforeAfterDisplay, Layer
from isoroc.plots._style import axes_for, figure_of, wrapped

#: Largest number of rows, drawn at random if there are more: every pair of rows gives a point.
_MAX_ROWS = 3000
#: Number of cells along each side of a heat map.
_STEPS = 50


class RocSurfaceDisplay(BeforeAfterDisplay):
    """ROC surface of three classes: what one class gives up for the other two.

    Each threshold gets a share of each class right. The colour at (x, y) is the largest share of
    the chosen class among the thresholds that get at least a share x of one of the other classes
    and y of the other right, so more colour is better. There is a panel before and one after
    calibration, with the volume under the hull of the surface, the VUS of the paper. With more than
    3,000 rows, all of this is based on 3,000 rows drawn at random.

    Create it with `from_estimator` or `from_predictions`.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from isoroc.plots import RocSurfaceDisplay
    >>> y = [0, 1, 2, 2]
    >>> display = RocSurfaceDisplay.from_predictions(y, np.eye(3)[y], ax=Figure().subplots())
    >>> display.volumes["forecasts"]
    1.0
    """

    def __init__(self, layers: list[Layer], *, volumes: dict[str, float], names: list[str]) -> None:
        self.layers = layers
        #: Volume under the hull of each series.
        self.volumes = volumes
        #: The classes: those of the two axes, and that of the colour.
        self.names = names

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        after: Any = None,
        pos_label: Any = None,
        resolution: int | None = None,
        sample_weight: Any = None,
        labels: Any = None,
        ax: Axes | Sequence[Axes] | None = None,
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
        pos_label : label, default=None
            The class whose share is the colour; the last one by default.
        resolution : int, default=None
            As in `isoroc.metrics.roc_surface`.
        sample_weight : array-like of shape (n,), default=None
            Weight of each row.
        labels : array-like of shape (3,), default=None
            The classes in the order of the columns; sorted by default.
        ax : Axes or sequence of Axes, default=None
            Where to draw: one axes, which is divided if there are two panels, or one per panel.
        """
        series = series_of(y_true, y_prob, after, sample_weight, labels)
        first = next(iter(series.values()))
        if first.n_classes != 3:
            problem = f"{first.n_classes} classes, but the ROC surface is drawn for 3"
            raise InputError("y_prob", None, problem, "use RocDisplay")
        classes = first.classes.tolist()
        if pos_label is not None and pos_label not in classes:
            raise InputError("pos_label", None, f"got {pos_label!r}", f"expected one of {classes}")
        last = 2 if pos_label is None else classes.index(pos_label)
        order = [k for k in range(3) if k != last] + [last]
        grid = np.arange(_STEPS + 1) / _STEPS
        x, y = (axis.ravel() for axis in np.meshgrid(grid, grid, indexing="ij"))
        volumes, layers = {}, []
        for name, sample in series.items():
            rows = sample.draw(_MAX_ROWS)  # the same rows of both
            options: dict[str, Any] = {"resolution": resolution, "sample_weight": rows.weights}
            options["labels"] = range(3)
            points = roc_surface(rows.codes, rows.forecasts, **options).points
            volumes[name] = float(volume_under_surface(rows.codes, rows.forecasts, **options))
            rate = best_rates(points[:, order], _STEPS).ravel()
            layers.append(Layer(name, name, "rates", Table(x=x, y=y, rate=rate)))
        return cls(layers, volumes=volumes, names=[str(classes[k]) for k in order]).plot(ax)

    def plot(self, ax: Axes | Sequence[Axes] | None = None) -> Self:
        """Draw in `ax`; see `from_predictions`."""
        axes = axes_for(ax, len(self.layers), columns=2, size=(4.2, 4.0))
        grid = np.arange(_STEPS + 1) / _STEPS
        first, second, third = (wrapped(name, 22, 2) for name in self.names)
        for axes_, layer in zip(axes, self.layers, strict=True):
            rate: Floats = layer.data["rate"].reshape(_STEPS + 1, -1).T
            image = axes_.pcolormesh(
                grid, grid, rate, cmap="viridis", vmin=0, vmax=1, shading="gouraud"
            )
            lines = axes_.contour(
                grid, grid, rate, [0.2, 0.4, 0.6, 0.8], colors="white", linewidths=1
            )
            axes_.clabel(lines, fmt="%g", fontsize="small")
            axes_.set(xlabel=f"share of {first} right, at least", aspect="equal")
            axes_.set_ylabel(f"share of {second} right, at least")
            axes_.set_title(f"{layer.series}: volume {self.volumes[layer.series]:.4f}")
        bar = figure_of(axes[0]).colorbar(image, ax=axes, shrink=0.75)
        bar.set_label(f"best share of {third} right")
        return self._drawn_in(axes)
