"""The figures of the paper, drawn with the displays of `isoroc.plots`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from isoroc import IRPCalibrator
from isoroc._core.simplex import lattice
from isoroc._core.types import Floats, Ints
from isoroc._evaluation.triangle import bin_polygons, mix, occupied_cells, triangles
from isoroc._support.table import Table
from isoroc.metrics import roc_convex_hull, symmetric_roc_curve
from isoroc.plots import RocDisplay, SimplexDisplay
from isoroc.plots._display import NEUTRAL, SERIES, axes_for, figure_of, style_of, tidy
from isoroc.plots._simplex import Triangle
from reproduction.experiments import (
    OURS,
    PUBLISHED,
    Difference,
    Experiment,
    Repetition,
    compare,
    normalise,
)
from reproduction.published import ReferenceIRP

Figure = Any


def all_figures(
    experiments: Sequence[Experiment], repetition: Repetition
) -> dict[str, Callable[[], Figure]]:
    """Function that draws each figure, by the name of its file."""
    found: dict[str, Callable[[], Figure]] = {
        "illustration": illustration,
        "splitting": splitting,
        "synthetic": synthetic,
        "surfaces": surfaces,
    }
    for done in experiments:
        found[f"comparison-{done.n_classes}"] = partial(comparison, done)
        if done.n_classes in (3, 4):
            found[f"simplex-{done.n_classes}"] = partial(calibration_function, done)
    if repetition:
        found["repetition"] = partial(differences, repetition)
    return found


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG and PDF. `path` is without the ending."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for ending in (".png", ".pdf"):
        # Without a date, the same figure gives the same PDF.
        metadata = {"CreationDate": None} if ending == ".pdf" else None
        new = path.with_name(path.name + ending)
        figure.savefig(new, dpi=160, metadata=metadata, bbox_inches="tight")
        figure.set_layout_engine("none")  # the layout is done and takes long
    figure.clear()


#: Rows of the illustration, sorted by forecast.
ILLUSTRATION = Table(
    forecast=np.array([0.08, 0.17, 0.25, 0.33, 0.42, 0.5, 0.58, 0.67, 0.75, 0.83, 0.92]),
    label=np.array([0, 0, 1, 0, 0, 1, 1, 0, 1, 0, 1]),
)


def illustration() -> Figure:
    """Forecasts, cumulative sums and ROC curve, before and (below) after isotonic regression."""
    p = ILLUSTRATION["forecast"]
    y = ILLUSTRATION["label"]
    r = IRPCalibrator(values="constant", pseudocount=0).fit(p, y).predict_proba(p)[:, 1]
    axes = axes_for(None, 6, columns=3, size=(4.2, 3.7))
    for forecasts, row in ((p, axes[:3]), (r, axes[3:])):
        draw_illustration(row, forecasts, y)
    titles = ("isotonic regression", "its cumulative sums: the minorant", "its ROC curve: the hull")
    for ax, title in zip(axes[3:], titles, strict=True):
        ax.set_title(title)
    return figure_of(axes[0])


def draw_illustration(axes: list[Any], p: Floats, y: Ints) -> None:
    """Draw forecasts, their cumulative sums and their ROC curve, each with its hull."""
    share = y.mean()
    colour = SERIES["after"][0]
    sums = {}
    curves = {"forecasts": symmetric_roc_curve(y, p), "convex hull": roc_convex_hull(y, p)}
    for name, curve in curves.items():
        style: dict[str, Any] = {"color": colour, "marker": "o", "ms": 4}
        if name == "convex hull":
            style = {"color": NEUTRAL, "lw": 2.6, "alpha": 0.7, "zorder": 1.5}
        # The affine map of the paper's proof takes cumulative sums to the ROC curve.
        second = share * (1 - curve.p1)
        sums[name] = (1 - share) * curve.p0 + second, second
        axes[1].plot(*sums[name], **style)
        axes[2].plot(curve.p0, curve.p1, label=f"{name}, AUC {curve.area():.4f}", **style)
    for k in (0, 1):
        colour_of_class, marker, _ = style_of(k)
        place = (np.arange(len(y)) + 0.5) / len(y)
        rows = y == k
        label = f"rows of class {k}"
        axes[0].scatter(place[rows], p[rows], color=colour_of_class, marker=marker, label=label)
    ends, height = sums["convex hull"]
    regression: dict[str, Any] = {"color": NEUTRAL, "lw": 1.6, "label": "isotonic regression"}
    axes[0].stairs(np.diff(height) / np.diff(ends), ends, baseline=None, **regression)
    sorted_rows = "share of rows, by ascending forecast"
    tidy(axes[0], xlabel=sorted_rows, ylabel="forecast probability of class 1")
    tidy(axes[1], xlabel=sorted_rows, ylabel="share of rows of class 1")
    tidy(axes[2], xlabel="true negative rate", ylabel="true positive rate")
    for ax in (axes[0], axes[2]):
        ax.legend(fontsize="small")


#: Name of the scores in the paper's own figures.
AS_PUBLISHED = "cross entropy as published"


def comparison_curves(done: Experiment) -> tuple[Table, Table]:
    """Data of `comparison`: one row per stage, measure and procedure, and values before."""
    names = ["AUC of the hull" if done.n_classes == 2 else "VUS of the hull"]
    names += ["cross entropy", AS_PUBLISHED]
    fields = ("{}_volume", "{}_cross_entropy_normalised", "{}_cross_entropy_as_published")
    before, *_ = done.outcomes()
    curves = []
    lines = []
    for measure, field in zip(names, fields, strict=True):
        for part, data in (("cal", "calibration"), ("test", "test")):
            for name in (*PUBLISHED, *([] if measure == AS_PUBLISHED else [OURS])):
                stages = done.stages[name]
                pairs = zip(stages["n_bins"], stages[field.format(part)], strict=True)
                curves += [(measure, data, name, n, value) for n, value in pairs]
            scores = before.as_published if measure == AS_PUBLISHED else before.normalised
            source: Any = before if "volume" in field else scores
            score = "volume" if "volume" in field else "cross_entropy"
            lines.append((measure, data, getattr(source, f"{part}_{score}")))
    return (
        Table.from_rows(curves, "measure", "data", "method", "n_bins", "value"),
        Table.from_rows(lines, "measure", "data", "value"),
    )


def comparison(done: Experiment) -> Figure:
    """Volume and cross entropy of IRP and recursive binning against the number of bins."""
    curves, lines = comparison_curves(done)
    methods = list(dict.fromkeys(curves["method"].tolist()))
    axes = axes_for(None, lines.n_rows, columns=2, size=(4.4, 3.2))
    for ax, measure, data, before in zip(axes, *lines.values(), strict=True):
        shown = (curves["measure"] == measure) & (curves["data"] == data)
        for i, method in enumerate(methods):
            path = shown & (curves["method"] == method)
            if path.any():
                colour, _, dashes = style_of(i)
                style: dict[str, Any] = {"color": colour, "ls": dashes, "label": method}
                ax.plot(curves["n_bins"][path], curves["value"][path], **style)
        ax.axhline(before, color=NEUTRAL, lw=1.2, ls=":", label="before calibration")
        # As published, only the calibration scores are regularised, so the two differ in scale.
        same = shown if measure == AS_PUBLISHED else curves["measure"] == measure
        value = np.append(curves["value"][same & (curves["n_bins"] > 2)], before)
        margin = 0.08 * np.ptp(value)
        limits = value.min() - margin, value.max() + margin
        tidy(ax, xlabel="number of bins", ylabel=measure, title=f"{data} rows", ylim=limits)
        ax.legend(fontsize="small")
    figure_of(axes[0]).suptitle(f"{done.n_classes} classes: {done.forecasts.title}")
    return figure_of(axes[0])


#: Thresholds of the figure on splitting: central, off centre, outside the simplex.
GAMMAS = np.array([[1 / 3, 1 / 3, 1 / 3], [0.2, 0.3, 0.5], [1.1, 0.1, -0.2]])


def splitting() -> Figure:
    """How a threshold divides the simplex of three classes."""
    three = IRPCalibrator(values="constant", max_bins=3, min_bin_weight=0, min_lift=0)
    three.fit(np.eye(3), [0, 1, 2])
    axes = axes_for(None, len(GAMMAS), columns=3, size=(4.6, 4.3), projection="ternary")
    for ax, gamma in zip(axes, GAMMAS, strict=True):
        drawing = Triangle(ax, ["1", "2", "3"])
        polygons = bin_polygons(replace(three.tree_, thresholds=gamma[None]))
        drawing.polygons(polygons, 0.45 * mix(np.eye(3)) + 0.55)
        for k, polygon in enumerate(polygons):
            if len(polygon):
                middle = polygon.mean(axis=0)
                ax.text(*middle[[2, 0, 1]], f"$R_{k + 1}$", ha="center", va="center", fontsize=15)
        drawing.points(gamma[None], color="black", s=30, zorder=4, clip_on=False)
        drawing.title(r"$\gamma$ = (" + ", ".join(f"{g:.2f}" for g in gamma) + ")")
    return figure_of(axes[0])


class Synthetic(NamedTuple):
    """The paper's synthetic data of three classes, and published IRP on it."""

    P: Floats
    y: Ints
    R: Floats  #: calibrated values of the rows, normalised
    cells: Ints  #: cells of the simplex, as wide as the grid, in units of its step
    values: Floats  #: calibrated values at the centres of the cells, normalised
    thresholds: Floats


def synthetic_data(n: int = 1000, noise: float = 0.15, seed: int = 0) -> tuple[Floats, Ints]:
    """Uniform forecasts on the simplex, and labels: the argmax of the forecasts plus noise.

    Examples
    --------
    >>> P, y = synthetic_data(4, noise=0.0)
    >>> (P.argmax(axis=1) == y).all()
    np.True_
    """
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), size=n)
    return P, (P + noise * rng.standard_normal(P.shape)).argmax(axis=1)


@cache
def fit_synthetic(n: int = 1000, grid_size: int = 100) -> Synthetic:
    """Run published IRP on the synthetic data."""
    P, y = synthetic_data(n)
    cells, _ = occupied_cells(lattice(3, 3 * grid_size), grid_size)
    missing = grid_size - cells.sum(axis=1, keepdims=True)
    irp = ReferenceIRP(grid_size).fit(P, y)
    *_, R = irp.fitted()
    values = irp.predict((cells + missing / 3) / grid_size)
    return Synthetic(P, y, normalise(R), cells, normalise(values), irp.thresholds)


def synthetic() -> Figure:
    """Calibration function of three classes: data, values, bins with thresholds, isoroc's bins."""
    data = fit_synthetic()
    ours = IRPCalibrator(values="constant", random_state=0).fit(data.P, 1 + data.y)
    axes = axes_for(None, 4, columns=2, size=(4.6, 4.3), projection="ternary")
    SimplexDisplay.from_predictions(
        1 + data.y, data.P, after=data.R, panels=("forecasts", "values"), ax=axes[:2]
    )
    drawing = Triangle(axes[2], ["1", "2", "3"])
    steps = int(data.cells.sum(axis=1).max()) + 1
    drawing.polygons(list(triangles(data.cells, steps)), mix(data.values))
    drawing.points(data.thresholds, marker="+", color="black", s=30, lw=1.2, zorder=4)
    drawing.title("")
    SimplexDisplay.from_estimator(ours, data.P, 1 + data.y, panels=("bins",), ax=axes[3])
    n_bins = len(np.unique(data.R, axis=0))
    for ax, title in zip(
        axes,
        (
            "forecasts, by label",
            "published IRP: calibrated values",
            f"published IRP: {n_bins} bins, thresholds",
            f"isoroc: {ours.n_bins_} bins, thresholds",
        ),
        strict=True,
    ):
        ax.title.set_text(title)
    return figure_of(axes[0])


def surfaces() -> Figure:
    """ROC surface of the synthetic forecasts before and after published IRP."""
    data = fit_synthetic()
    display = RocDisplay.from_predictions(1 + data.y, data.P, after=data.R, kind="surface")
    return display.figure_


def calibration_function(done: Experiment) -> Figure:
    """Forecasts of three or four classes on the simplex before and after published IRP."""
    forecasts = done.forecasts
    after = normalise(done.runs[PUBLISHED[0]].cal[-1])
    panels = ("forecasts", "values", "map")[: 3 if done.n_classes == 3 else 2]
    labels = 1 + np.arange(done.n_classes)
    figure = SimplexDisplay.from_predictions(
        1 + forecasts.y_cal, forecasts.P_cal, after=after, panels=panels, labels=labels
    ).figure_
    figure.suptitle(f"published IRP: {forecasts.title}", y=1.06)
    return figure


def differences(repetition: Repetition) -> Figure:
    """Paired differences of test cross entropy over random splits, with intervals."""
    found = {key: compare(measures) for key, measures in repetition.items()}
    titles = list(next(iter(found.values())))
    axes = axes_for(None, len(titles), columns=3, size=(3.6, 0.9 + 0.24 * len(found)))
    for ax, title in zip(axes, titles, strict=True):
        ax.axvline(0, color=NEUTRAL, lw=1)
        for place, ((K, _), of) in enumerate(found.items()):
            _interval(ax, of[title], place, style_of(K - 2))
        tidy(ax, xlabel="difference of test cross entropy")
        ax.set_title(title.replace(" - ", "\n- "), fontsize="medium")
        # The differences of naive Bayes are a hundred times larger than the others.
        ax.set_xscale("symlog", linthresh=0.05)
        ax.set_xticks([-1, -0.1, 0, 0.1], ["-1", "-0.1", "0", "0.1"])
        ax.minorticks_off()
        ax.set_yticks(range(len(found)), [f"K = {K}, {name}" for K, name in found])
        ax.invert_yaxis()
        if ax not in axes[::3]:
            ax.tick_params(labelleft=False)
    return figure_of(axes[0])


def _interval(ax: Any, difference: Difference, place: int, style: tuple[str, str, Any]) -> None:
    colour, marker, _ = style
    ax.plot([difference.low, difference.high], [place, place], color=colour, lw=1.6)
    ax.plot([difference.mean], [place], color=colour, marker=marker, ms=6)
