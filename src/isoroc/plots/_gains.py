"""MembersDisplay, GroupsDisplay and LearningCurveDisplay: what calibration gains, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from isoroc._core.verdict import Verdict
from isoroc._evaluation.evaluate import evaluate
from isoroc._evaluation.evaluation import MEASURES, UNKNOWN, Evaluation
from isoroc._input import InputError, check_option, check_sample
from isoroc._support.table import Table
from isoroc.plots._display import (
    NEUTRAL,
    SERIES,
    Display,
    Layer,
    Size,
    Where,
    add_legend,
    shortened,
    tidy,
    wrapped,
)

#: Largest number of groups, those with the most rows, and the normal quantile of 95 % intervals.
_MAX_GROUPS, _Z = 30, 1.96
#: About how many sizes, the smallest number of rows, and how often rows are drawn for each size.
_SIZES, _FEWEST, _DRAWS = 8, 50, 3
#: Fewest rows, on average, outside the class with the most rows.
_FEWEST_OTHERS = 5
#: A loss before calibration that is further away than this multiple of the range of those after
#: would hide the curve and is not drawn.
_FAR = 10


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
        gain, error = table["gain"], _Z * table["gain_se"]
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
    """All rows, and the groups with the most rows first, with their numbers of rows."""
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
        order = sorted(evaluation.groups.items(), key=lambda item: -item[1].n_rows)[:_MAX_GROUPS]
        rows = {"all rows": evaluation} | dict(order)
        figures = [e.measures.get(measure, {}).get("change", UNKNOWN) for e in rows.values()]
        table = Table.from_rows(figures, "value", "low", "high")
        names = [f"{name} ({e.n_rows:,})" for name, e in rows.items()]
        layers = [Layer("groups", "change", "intervals", table)]
        return cls(layers, names, measure).plot(ax, figsize=figsize)

    def _draw(self, ax: Axes, layers: list[Layer]) -> list[Any]:
        title, better = MEASURES[self.measure]
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
    >>> display.verdict.should_calibrate
    True
    """

    verdict: Verdict
    """Whether calibration with all rows helps."""

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
        labels: Any = None,
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
            Numbers of calibration rows; by default 50, 100, 200, 500 and so on up to all, but
            without those of which fewer than five rows are outside the largest class on average.
            Draws with one class only are left out.
        labels : array-like of shape (K,), default=None
            The classes in the order of the columns; sorted by default.
        random_state : int, default=0
            Seed of the draws.
        ax, figsize
            As in `plot`.
        """
        sample = check_sample(X, y, labels=labels, name="X")
        n = len(sample)
        if sizes is None:
            round_numbers = [a * 10**k for k in range(1, 9) for a in (1, 2, 5)]
            others = n - np.bincount(sample.codes).max()
            fewest = max(_FEWEST, _FEWEST_OTHERS * n / others)
            sizes = [size for size in round_numbers if fewest <= size < 0.7 * n]
            sizes = [*sizes[:: 1 + len(sizes) // _SIZES], n]
        if min(sizes) < 2 or max(sizes) > n:
            raise InputError("sizes", None, f"got {sizes}", f"expected numbers from 2 to {n}")
        rng = np.random.default_rng(random_state)
        outcomes, found = np.asarray(y), []
        for size in sizes:
            losses = []
            for _ in range(_DRAWS if size < n else 1):
                rows = np.sort(rng.permutation(n)[:size])
                if np.ptp(sample.codes[rows]) == 0:
                    continue
                part = _safe_indexing(X, rows), outcomes[rows]
                fitted = clone(estimator).fit(*part, labels=sample.classes)
                result = evaluate(test[1], test[0], fitted, labels=sample.classes, n_resamples=0)
                losses.append(result["log_loss", "after"])
            if losses:
                found.append((float(size), np.mean(losses), min(losses), max(losses)))
        if not found:
            fix = "pass larger numbers of rows"
            raise InputError("sizes", None, f"draws of {sizes} rows have one class only", fix)
        before = Table(value=np.array([result["log_loss", "before"]]))
        after = Table.from_rows(found, "rows", "value", "low", "high")
        layers = [Layer("loss", "after", "line", after), Layer("loss", "before", "limit", before)]
        return cls(layers, result.verdict).plot(ax, figsize=figsize)

    def _draw(self, ax: Axes, layers: list[Layer]) -> list[Any]:
        after, before = (layer.data for layer in layers)
        rows = after["rows"]
        colour, marker, _ = SERIES["after"]
        lines = ax.plot(rows, after["value"], color=colour, marker=marker, lw=1.8, label="after")
        ax.fill_between(rows, after["low"], after["high"], color=colour, alpha=0.2, lw=0)
        level, low, high = before["value"][0], after["low"].min(), after["high"].max()
        near = low - _FAR * (high - low) <= level <= high + _FAR * (high - low)
        if np.isfinite(level):  # scores that are not probabilities have no loss
            label = "before" if near else f"before: {level:.3g}, off the scale"
            ax.axhline(level if near else np.nan, color=NEUTRAL, ls=":", lw=1.6, label=label)
        ax.set_xscale("log")
        following = np.append(rows[1:], np.inf)
        shown = rows[following >= 1.9 * rows]  # others would touch the next
        texts = [f"{n:,.0f}" if n < 10_000 else f"{n / 1000:,g}k" for n in shown]
        ax.set_xticks(shown, texts, minor=False)
        ax.xaxis.set_minor_formatter(FuncFormatter(lambda *_: ""))
        tidy(ax, xlabel="calibration rows", ylabel="log loss of test rows (nats)")
        ax.set_title(wrapped(str(self.verdict).partition(" (")[0], 48), fontsize="small")
        add_legend(ax)
        return lines
