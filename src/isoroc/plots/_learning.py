"""LearningCurveDisplay: the log loss of new rows against the number of calibration rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.ticker import FuncFormatter
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from isoroc._evaluation.evaluate import evaluate
from isoroc._input import InputError, check_sample
from isoroc._table import Table
from isoroc.plots._display import Display, Layer
from isoroc.plots._style import NEUTRAL, SERIES, Size, Where, add_legend, tidy, wrapped

#: About how many sizes, the smallest number of rows, and how often rows are drawn for each size.
_SIZES, _FEWEST, _DRAWS = 8, 50, 3


@dataclass(repr=False, eq=False)
class LearningCurveDisplay(Display):
    """Log loss of test rows against the number of rows that a calibrator was fitted to.

    The line is the mean over three draws of calibration rows, the shaded area their range. Where it
    is below the dotted line, calibration helps. The title is the verdict with all rows. Create it
    with `from_estimator`.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import IsotonicCalibrator
    >>> from isoroc.plots import LearningCurveDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p**2
    >>> display = LearningCurveDisplay.from_estimator(
    ...     IsotonicCalibrator(), p[:1000], y[:1000], test=(p[1000:], y[1000:]),
    ...     sizes=[50, 1000]
    ... )
    >>> display.verdict.partition(":")[0]
    'calibrate'
    """

    verdict: str
    """Whether calibration with all rows helps, in a sentence."""

    _grid = (1, (5.2, 3.8))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        test: tuple[Any, Any],
        sizes: Sequence[int] | None = None,
        random_state: int = 0,
        ax: Where = None,
        figsize: Size = None,
    ) -> Self:
        """Fit copies of a calibrator to more and more rows, and draw their loss.

        Parameters
        ----------
        estimator : calibrator
            It is not changed.
        X, y : array-like
            Forecasts and labels for calibration.
        test : tuple
            Forecasts and labels of other rows.
        sizes : sequence of int, default=None
            Numbers of calibration rows; by default 50, 100, 200, 500 and so on up to all.
        random_state : int, default=0
            Seed of the draws.
        ax, figsize
            As in `plot`.
        """
        sample = check_sample(X, y, name="X")
        n = len(sample)
        if sizes is None:
            round_numbers = [a * 10**k for k in range(1, 9) for a in (1, 2, 5)]
            sizes = [size for size in round_numbers if _FEWEST <= size < 0.7 * n]
            sizes = [*sizes[:: 1 + len(sizes) // _SIZES], n]
        if min(sizes) < 2 or max(sizes) > n:
            raise InputError("sizes", None, f"got {sizes}", f"expected numbers from 2 to {n}")
        rng = np.random.default_rng(random_state)
        labels = np.asarray(y)
        losses = np.empty((len(sizes), _DRAWS))
        for i, size in enumerate(sizes):
            for j in range(_DRAWS if size < n else 1):
                rows = np.sort(rng.permutation(n)[:size])
                part = _safe_indexing(X, rows), labels[rows]
                fitted = clone(estimator).fit(*part, labels=sample.classes)
                result = evaluate(test[1], test[0], fitted, labels=sample.classes, n_resamples=0)
                losses[i, j:] = result["log_loss", "after"]
        found = Table(rows=np.asarray(sizes, dtype=np.float64), value=losses.mean(axis=1))
        found.update(low=losses.min(axis=1), high=losses.max(axis=1))
        before = Table(value=np.array([result["log_loss", "before"]]))
        layers = [Layer("loss", "after", "line", found), Layer("loss", "before", "limit", before)]
        return cls(layers, result.verdict).plot(ax, figsize=figsize)

    def _draw(self) -> list[Any]:
        after, before = (layer.data for layer in self.layers)
        ax, rows = self.ax_, after["rows"]
        colour, marker, _ = SERIES["after"]
        lines = ax.plot(rows, after["value"], color=colour, marker=marker, lw=1.8, label="after")
        ax.fill_between(rows, after["low"], after["high"], color=colour, alpha=0.2, lw=0)
        level = before["value"][0]
        if np.isfinite(level):  # scores that are not probabilities have no loss
            ax.axhline(level, color=NEUTRAL, ls=":", lw=1.6, label="before")
        ax.set_xscale("log")
        ax.set_xticks(rows, [f"{n:,.0f}" for n in rows], minor=False)
        ax.xaxis.set_minor_formatter(FuncFormatter(lambda *_: ""))
        tidy(ax, xlabel="calibration rows", ylabel="log loss of test rows (nats)")
        ax.set_title(wrapped(self.verdict, 60), fontsize="small")
        add_legend(ax)
        return list(lines)
