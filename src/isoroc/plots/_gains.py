"""MembersDisplay and GroupsDisplay: what calibration gains, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from isoroc._core.intervals import half_width
from isoroc._core.verdict import Verdict
from isoroc._evaluation.evaluation import MEASURES, UNKNOWN, Evaluation
from isoroc._input import InputError, check_option
from isoroc._support.table import Table
from isoroc.plots._display import (
    NEUTRAL,
    SERIES,
    Display,
    Layer,
    Size,
    Where,
    shortened,
    tidy,
)


@dataclass(repr=False, eq=False)
class MembersDisplay(Display):
    """Members of an `AutoCalibrator`: their weights, and what each of them gains.

    The gain is the log loss that a member saves on unseen rows, with a 95 % interval.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import AutoCalibrator
    >>> from isoroc.plots import MembersDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> calibrator = AutoCalibrator(random_state=0).fit(p, rng.random(500) < p**2)
    >>> MembersDisplay.from_estimator(calibrator).panels
    ['weight', 'gain']
    """

    names: list[str]
    """The members, and "mixture"."""
    verdict: Verdict
    """Whether calibration helps."""

    def __post_init__(self) -> None:
        self._grid = (2, (4.2, 1.2 + 0.3 * len(self.names)))

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Where = None, figsize: Size = None) -> Self:
        """Draw the members of a calibrator.

        Parameters
        ----------
        estimator : AutoCalibrator
            Fitted.
        ax, figsize
            As in `plot`.
        """
        table = getattr(estimator, "member_scores_", None)
        if table is None:
            problem = f"{type(estimator).__name__} has no members"
            raise InputError("estimator", None, problem, "pass a fitted AutoCalibrator")
        gain, error = table["gain"], half_width(0.95) * table["gain_se"]
        gains = Table(value=gain, low=gain - error, high=gain + error)
        layers = [Layer("weight", "members", "bars", Table(value=table["weight"][:-1]))]
        layers.append(Layer("gain", "members", "intervals", gains))
        names = [str(name).removesuffix("Calibrator") for name in table["member"]]
        return cls(layers, names, estimator.verdict_).plot(ax, figsize=figsize)

    def _draw(self, ax: Axes, layers: list[Layer]) -> list[Any]:
        data = layers[0].data
        if layers[0].panel == "gain":
            _forest(ax, self.names, data, 1)
            ax.tick_params(labelleft=False)  # those on the left are the same
            ax.set_xlabel("log loss saved\non unseen rows")
            return []
        weight = data["value"]
        ax.barh(range(len(weight)), weight, color=SERIES["after"][0], height=0.6)
        for i, share in enumerate(weight):
            ax.annotate(f" {100 * share:.0f} %", (share, i), va="center", size="small")
        tidy(ax, xlabel="weight in\nthe mixture")
        _name_rows(ax, self.names)
        ax.set(xticks=[0, 0.25, 0.5, 0.75, 1], xlim=(0, max(1.3 * weight.max(), 0.1)))
        ax.set_title(f"verdict: {self.verdict.decision}", fontsize="medium")
        return []


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
        _forest(ax, self.names, layers[0].data, better)
        words = {-1: "\n(below 0 is better)", 1: "\n(above 0 is better)"}
        ax.set_xlabel(f"change of the {title}{words.get(better, '')}")
        return []


def _forest(ax: Axes, names: list[str], data: Table, better: int) -> None:
    """Values with intervals, one below the other; colours say on which side of 0 they lie."""
    ax.axvline(0, color=NEUTRAL, lw=1)
    for i, (value, low, high) in enumerate(zip(*data.values(), strict=True)):
        colour, marker = NEUTRAL, "s"
        if better and low * high > 0:
            colour, marker, _ = SERIES["after" if better * low > 0 else "before"]
        ax.plot([low, high], [i, i], color=colour, lw=1.8)
        ax.plot([value], [i], color=colour, marker=marker, ms=6)
    _name_rows(ax, names)
    tidy(ax)


def _name_rows(ax: Axes, names: list[str]) -> None:
    """Names from top to bottom, and few ticks on the other axis."""
    ax.set_yticks(range(len(names)), [shortened(name, 26) for name in names], size="small")
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.xaxis.set_major_locator(MaxNLocator(4))
