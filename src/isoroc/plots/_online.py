"""OnlineDisplay: weights and losses of the members of an online mixture over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes

from isoroc._input import InputError
from isoroc._support.table import Table
from isoroc.plots._display import NEUTRAL, Display, Layer, Size, Where, add_legend, style_of, tidy


@dataclass(repr=False, eq=False)
class OnlineDisplay(Display):
    """Weights of the members of an `OnlineCalibrator` over time, and what each has gained.

    The gain is the total log loss of the uncalibrated forecasts less the loss of the member, since
    the first batch of `history_`. The gain of the forecasts that were served follows the highest
    line.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import OnlineCalibrator
    >>> from isoroc.plots import OnlineDisplay
    >>> rng = np.random.default_rng(0)
    >>> calibrator = OnlineCalibrator(half_lives=[None, 300])
    >>> for day in range(5):
    ...     p = rng.random(100)
    ...     calibrator = calibrator.partial_fit(p, rng.random(100) < p**3)
    >>> OnlineDisplay.from_estimator(calibrator).panels
    ['weight', 'gain in nats']
    """

    _grid = (2, (5.2, 3.4))

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Where = None, figsize: Size = None) -> Self:
        """Draw the history of an `OnlineCalibrator`.

        Parameters
        ----------
        estimator : OnlineCalibrator
            Fitted.
        ax, figsize
            As in `plot`.
        """
        history = getattr(estimator, "history_", None)
        if not isinstance(history, Table) or "served" not in history:
            problem = f"is {type(estimator).__name__}, or not fitted"
            raise InputError("estimator", None, problem, "pass a fitted OnlineCalibrator")
        rows = history["rows"].astype(np.float64)
        sizes = np.diff(rows, prepend=0.0 if len(rows) == estimator.ledger_.n_batches else rows[0])
        names = list(history)[2 : 2 + len(estimator.members_)]
        layers = [
            Layer("weight", name, "curve", Table(rows=rows, value=history[f"weight of {name}"]))
            for name in names
        ]
        for name in ("served", *names):
            gain = np.cumsum(sizes * (history["uncalibrated"] - history[name]))
            layers.append(Layer("gain in nats", name, "curve", Table(rows=rows, value=gain)))
        return cls(layers).plot(ax, figsize=figsize)

    def _draw(self, ax: Axes, layers: list[Layer]) -> list[Any]:
        lines: list[Any] = []
        for layer in layers:
            number = self._series.index(layer.series)
            colour, _, style = style_of(number)
            width = 1.4
            if layer.series == "uncalibrated":
                colour = NEUTRAL
            elif layer.series == "served":
                style = "-"
                width = 2.4
            x, y = layer.data.values()
            lines += ax.plot(x, y, color=colour, ls=style, lw=width, label=layer.series)
        panel = layers[0].panel
        limits = {"ylim": (-0.02, 1.02)} if panel == "weight" else {}
        tidy(ax, xlabel="rows", ylabel=panel, **limits)
        if panel != "weight":
            add_legend(ax)
        return lines

    @property
    def _series(self) -> list[str]:
        return list(dict.fromkeys(layer.series for layer in self.layers))
