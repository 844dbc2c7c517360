"""GroupsDisplay: what calibration gains in each group of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from isoroc._evaluation.evaluation import MEASURES, UNKNOWN, Evaluation
from isoroc._input import InputError, check_option
from isoroc._support.table import Table
from isoroc.plots._display import NEUTRAL, SERIES, Display, Layer, Size, Where, shortened, tidy


@dataclass(repr=False, eq=False)
class GroupsDisplay(Display):
    """Change of a measure by calibration in each group of rows, with its interval.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import evaluate
    >>> from isoroc.plots import GroupsDisplay
    >>> rng = np.random.default_rng(0)
    >>> p, region = rng.random(600), rng.choice(["north", "south"], 600)
    >>> y = rng.random(600) < p**2
    >>> result = evaluate(y, p, p**2, groups=region, n_resamples=0)
    >>> GroupsDisplay.from_evaluation(result).names
    ['all rows (600)', 'south (302)', 'north (298)']
    """

    names: list[str]
    """All rows, and the 30 groups with the most rows, with their numbers of rows."""
    measure: str
    """What is measured."""

    def __post_init__(self) -> None:
        self._grid = (1, (5.6, 1.2 + 0.28 * len(self.names)))

    @classmethod
    def from_evaluation(
        cls,
        evaluation: Evaluation,
        *,
        measure: str = "log_loss",
        ax: Where = None,
        figsize: Size = None,
    ) -> Self:
        """Draw the groups of an evaluation.

        Parameters
        ----------
        evaluation : Evaluation
            Result of ``isoroc.evaluate(y, P, after, groups=...)``.
        measure : str, default="log_loss"
            A measure of the evaluation that has a change.
        ax, figsize
            As in `plot`.
        """
        if not evaluation.groups or not evaluation.is_paired:
            fix = "pass the result of evaluate(y, P, after, groups=...)"
            raise InputError("evaluation", None, "has no groups before and after", fix)
        known = [name for name, figures in evaluation.measures.items() if "change" in figures]
        check_option("measure", measure, tuple(known))
        order = sorted(evaluation.groups.items(), key=lambda item: -item[1].n_rows)[:30]
        rows = {"all rows": evaluation} | dict(order)
        figures = [e.measures.get(measure, {}).get("change", UNKNOWN) for e in rows.values()]
        table = Table.from_rows(figures, "value", "low", "high")
        names = [f"{name} ({e.n_rows:,})" for name, e in rows.items()]
        layers = [Layer("groups", "change", "intervals", table)]
        return cls(layers, names, measure).plot(ax, figsize=figsize)

    def _draw(self, ax: Axes, layers: list[Layer]) -> list[Any]:
        title, better, _ = MEASURES[self.measure]
        ax.axvline(0, color=NEUTRAL, lw=1)
        for i, (value, low, high) in enumerate(zip(*layers[0].data.values(), strict=True)):
            colour, marker = NEUTRAL, "s"
            if better and low * high > 0:  # the interval lies on one side of 0
                colour, marker, _ = SERIES["after" if better * low > 0 else "before"]
            ax.plot([low, high], [i, i], color=colour, lw=1.8)
            ax.plot([value], [i], color=colour, marker=marker, ms=6)
        names = [shortened(name, 26) for name in self.names]
        ax.set_yticks(range(len(names)), names, size="small")
        ax.set_ylim(len(names) - 0.5, -0.5)
        ax.xaxis.set_major_locator(MaxNLocator(4))
        words = {-1: "\n(below 0 is better)", 1: "\n(above 0 is better)"}
        tidy(ax, xlabel=f"change of the {title}{words.get(better, '')}")
        return []
