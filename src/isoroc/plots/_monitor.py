"""MonitorDisplay: batches of a monitor over time."""

from dataclasses import dataclass
from typing import Any, Self

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from isoroc._evaluation.monitor import CalibrationMonitor
from isoroc._support.table import Table
from isoroc.plots._display import NEUTRAL, SERIES, Display, Layer, Size, Where, add_legend, tidy


@dataclass(repr=False, eq=False)
class MonitorDisplay(Display):
    """Batches of a `CalibrationMonitor` over time.

    From top to bottom: evidence against calibration of all rows so far and the limit at which the
    alarm is raised; log loss of each batch and what its forecasts promised; calibration error of
    each batch with its interval.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import CalibrationMonitor
    >>> from isoroc.plots import MonitorDisplay
    >>> rng, monitor = np.random.default_rng(0), CalibrationMonitor(["no", "yes"])
    >>> for _ in range(5):
    ...     p = rng.random(100)
    ...     _ = monitor.update(np.where(rng.random(100) < p, "yes", "no"), p)
    >>> MonitorDisplay.from_monitor(monitor).panels
    ['evidence', 'log loss', 'calibration error']
    """

    alarm: int | None
    """Number of rows at which the alarm was raised, or None."""

    _grid = (1, (6.4, 2.0))

    @classmethod
    def from_monitor(
        cls, monitor: CalibrationMonitor, *, ax: Where = None, figsize: Size = None
    ) -> Self:
        """Draw the batches of a monitor.

        Parameters
        ----------
        monitor : CalibrationMonitor
            With one batch or more.
        ax, figsize
            As in `plot`.
        """
        history = monitor.history_
        rows = history["rows"].astype(float)
        drawn = {
            ("evidence", "evidence", "line"): history["evidence"],
            ("evidence", "limit", "limit"): 0 * rows + monitor.limit,
            ("log loss", "observed", "line"): history["log_loss"],
            ("log loss", "promised", "promise"): history["promised"],
            ("calibration error", "calibration error", "band"): history["calibration_error"],
        }
        layers = [Layer(*to, Table(rows=rows, value=value)) for to, value in drawn.items()]
        layers[-1].data.update(low=history["low"], high=history["high"])
        return cls(layers, monitor.alarm_).plot(ax, figsize=figsize)

    def _draw(self, ax: Axes, layers: list[Layer]) -> list[Any]:
        (colour, marker, _), lines = SERIES["after"], []
        for panel, series, kind, data in layers:
            rows, value = data["rows"], data["value"]
            if kind in ("limit", "promise"):
                dashes = "--" if kind == "limit" else "-"
                ax.plot(rows, value, color=NEUTRAL, lw=1.2, ls=dashes, label=series)
                continue
            marks: dict[str, Any] = {"marker": marker, "ms": 4} if len(rows) <= 60 else {}
            label = None if series == panel else series  # the axis says what it is
            lines += ax.plot(rows, value, color=colour, lw=1.4, label=label, **marks)
            if kind == "band":
                ends = data["low"], data["high"]
                ax.fill_between(rows, *ends, color=colour, alpha=0.2, lw=0, label="interval")
        if self.alarm is not None:
            name = "alarm" if panel == "evidence" else None
            ax.axvline(self.alarm, color=SERIES["before"][0], lw=1.2, ls=":", label=name)
        tidy(ax, ylabel=panel if panel == "calibration error" else f"{panel} (nats)")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda n, _: f"{n:,.10g}"))
        add_legend(ax, "upper left", ncols=3)
        low, high = ax.get_ylim()
        ax.set_ylim(0 if panel == "calibration error" else low, high + 0.25 * (high - low))
        if ax is self.axes_[-1]:
            ax.set_xlabel("rows so far")
        return lines
