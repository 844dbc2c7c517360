"""RocDisplay: ROC curves of two classes, or of each class against the rest."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes

from isoroc._evaluation.curves import one_vs_rest, thin
from isoroc._input import InputError, Sample
from isoroc._support.table import Table
from isoroc.metrics import roc_convex_hull
from isoroc.plots._display import (
    MAX_PANELS,
    NEUTRAL,
    BeforeAfterDisplay,
    Layer,
    add_legend,
    shortened,
    styles_in,
    tidy,
    wrapped,
)


@dataclass(repr=False, eq=False)
class RocDisplay(BeforeAfterDisplay):
    """ROC curves before and after calibration: of two classes, or of each class against the rest.

    For two classes the convex hull of the curve is drawn as well. Its area is the AUC after
    isotonic calibration of the same rows without smoothing. For three classes or more there is one
    panel per class, for the twelve heaviest classes. The last panel says how many are drawn.

    Examples
    --------
    >>> from isoroc.plots import RocDisplay
    >>> RocDisplay.from_predictions([0, 1, 0, 1], [0.1, 0.3, 0.4, 0.8]).areas
    {'forecasts': 0.75, 'hull': 0.875}
    """

    areas: dict[Any, float]
    """Area under each curve, by series, and for three classes or more by series and class."""
    labels: Any
    """The classes."""

    @classmethod
    def _of(cls, series: dict[str, Sample]) -> Self:
        first = next(iter(series.values()))
        heaviest = np.argsort(-first.class_weights(), kind="stable")[:MAX_PANELS]
        chosen = [1] if first.n_classes == 2 else np.sort(heaviest).tolist()
        layers: list[Layer] = []
        areas: dict[Any, float] = {}
        for k, curves in one_vs_rest(series, chosen).items():
            panel = str(first.classes[k])
            if first.n_classes == 2:
                before, *others = curves.items()
                curves = dict([before, ("hull", first.measure(roc_convex_hull)), *others])  # noqa: PLW2901
            for name, curve in curves.items():
                p0, p1, threshold = (column[thin(curve.p0, curve.p1)] for column in curve)
                data = Table(false_positive_rate=1 - p0, true_positive_rate=p1, threshold=threshold)
                layers.append(Layer(panel, name, "curve", data))
                areas[name if first.n_classes == 2 else (name, panel)] = curve.area()
        if not layers:
            raise InputError("y_true", None, "one class only", "a ROC curve needs two classes")
        return cls(layers, areas, first.classes)

    def __post_init__(self) -> None:
        self._grid = (4, (3.1, 3.1)) if len(self.labels) > 2 else (1, (4.3, 4.0))

    def _draw(self, ax: Axes, layers: list[Layer]) -> list[Any]:
        panel = layers[0].panel
        several = len(self.labels) > 2
        ax.plot([0, 1], [0, 1], color=NEUTRAL, lw=1, ls=":")
        styles = styles_in(ax, [x.series for x in layers if x.series != "hull"])
        lines: list[Any] = []
        for layer in layers:
            series = layer.series
            (across, up, _) = layer.data.values()
            area = self.areas[(series, panel) if several else series]
            label = f"{'convex hull' if series == 'hull' else series}, AUC {area:.4f}"
            if series == "hull":
                ax.fill_between(across, up, alpha=0.06, color=NEUTRAL, lw=0)
                ax.plot(across, up, color=NEUTRAL, lw=2.6, alpha=0.7, label=label, zorder=1.5)
                continue
            colour, marker, dashes = styles[series]
            marks: dict[str, Any] = {"marker": marker, "ms": 4} if len(across) <= 30 else {}
            lines += ax.plot(across, up, color=colour, ls=dashes, lw=1.8, label=label, **marks)
        across_label = "false positive rate"
        if several and panel == self.panels[-1] and len(self.panels) < len(self.labels):
            across_label += f"\n({len(self.panels)} of {len(self.labels)} classes, the heaviest)"
        tidy(ax, xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel=across_label)
        ax.set_ylabel("true positive rate" + ("" if several else f" ({shortened(panel)})"))
        if several:
            ax.set_title(f"{wrapped(panel, 28)} against the rest", fontsize="medium")
        add_legend(ax, "lower right")
        return lines
