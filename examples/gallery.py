"""Draw every display, with data that are generated or come with scikit-learn.

``python examples/gallery.py`` writes PNG files to build/gallery. ``--out`` sets another folder,
``--style`` a style of matplotlib such as dark_background. ``--cases`` draws every display for few
and many classes, rows and letters instead, to be looked at. Requires matplotlib and mpltern.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

from isoroc import (
    CalibratedClassifier,
    CalibrationMonitor,
    IRPCalibrator,
    RecursiveBinningCalibrator,
)
from isoroc.plots import (
    CostCurveDisplay,
    MonitorDisplay,
    PathDisplay,
    ReliabilityDisplay,
    RocDisplay,
    RocSurfaceDisplay,
    SimplexDisplay,
)


class Task(NamedTuple):
    """Forecasts of a model and labels, for calibration rows and new rows."""

    P_cal: np.ndarray
    y_cal: np.ndarray
    P_new: np.ndarray
    y_new: np.ndarray


def generated(n_classes: int, model: object, n_cal: int = 1500) -> Task:
    """Forecasts of a model that is trained on 1,500 generated rows; 3,000 rows are new."""
    X, y = make_classification(
        n_samples=4500 + n_cal,
        n_features=12,
        n_informative=5,
        n_classes=n_classes,
        n_clusters_per_class=2,
        flip_y=0.1,
        class_sep=0.9,
        random_state=4,
    )
    P = model.fit(X[:1500], y[:1500]).predict_proba(X)
    cal, new = slice(1500, 1500 + n_cal), slice(1500 + n_cal, None)
    return Task(P[cal], y[cal], P[new], y[new])


def reliability_two_classes() -> ReliabilityDisplay:
    P, y, P_new, y_new = generated(2, GaussianNB())
    return ReliabilityDisplay.from_estimator(IRPCalibrator().fit(P, y), P_new, y_new)


def reliability_classwise() -> ReliabilityDisplay:
    P, y, P_new, y_new = generated(3, RandomForestClassifier(random_state=0))
    return ReliabilityDisplay.from_estimator(IRPCalibrator(random_state=0).fit(P, y), P_new, y_new)


def reliability_top() -> ReliabilityDisplay:
    """Ten digits: whether the most probable one is right."""
    X, y = load_digits(return_X_y=True)
    before = cross_val_predict(GaussianNB(var_smoothing=1e-3), X, y, method="predict_proba")
    model = CalibratedClassifier(
        GaussianNB(var_smoothing=1e-3), calibrator=IRPCalibrator(random_state=0)
    )
    after = cross_val_predict(model, X, y, method="predict_proba")
    return ReliabilityDisplay.from_predictions(y, before, after=after, kind="top")


def roc() -> RocDisplay:
    P, y, *_ = generated(2, GaussianNB(), n_cal=300)
    return RocDisplay.from_estimator(IRPCalibrator(pseudocount=0).fit(P, y), P, y)


def roc_few_rows() -> RocDisplay:
    """Three views of isotonic regression, as in Figure 1 of the paper."""
    p = np.arange(1, 13) / 13
    y = np.array([0, 0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 1])
    after = IRPCalibrator(pseudocount=0).fit(p, y).predict_proba(p)
    panels = ("forecasts", "diagram", "roc")
    return RocDisplay.from_predictions(y, p, after=after, panels=panels)


def path() -> PathDisplay:
    P, y, P_new, y_new = generated(3, GaussianNB(), n_cal=500)
    models = {
        "IRP": IRPCalibrator(random_state=0).fit(P, y),
        "recursive binning": RecursiveBinningCalibrator().fit(P, y),
    }
    return PathDisplay.from_estimator(models, P, y, test=(P_new, y_new))


def simplex() -> SimplexDisplay:
    P, y, *_ = generated(3, GaussianNB())
    return SimplexDisplay.from_estimator(IRPCalibrator(random_state=0).fit(P, y), P, y)


def simplex_many_rows() -> SimplexDisplay:
    """A hundred thousand overconfident forecasts."""
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.full(3, 1.2), 100_000)
    y = (truth.cumsum(axis=1) > rng.random((len(truth), 1))).argmax(axis=1)
    P = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    return SimplexDisplay.from_estimator(IRPCalibrator(random_state=0).fit(P, y), P, y)


def tetrahedron() -> SimplexDisplay:
    P, y, *_ = generated(4, GaussianNB())
    return SimplexDisplay.from_estimator(IRPCalibrator(random_state=0).fit(P, y), P, y)


def surface() -> RocSurfaceDisplay:
    P, y, *_ = generated(3, GaussianNB(), n_cal=500)
    return RocSurfaceDisplay.from_estimator(IRPCalibrator(random_state=0).fit(P, y), P, y)


def models() -> ReliabilityDisplay:
    """Three models in the same axes."""
    X, y = make_classification(6000, n_informative=5, flip_y=0.1, random_state=4)
    train, new = slice(1500), slice(1500, None)
    _, ax = plt.subplots(figsize=(4.4, 5), layout="constrained")
    for name, model in {
        "naive Bayes": GaussianNB(),
        "forest": RandomForestClassifier(random_state=0),
        "logistic regression": LogisticRegression(),
    }.items():
        model.fit(X[train], y[train])
        display = ReliabilityDisplay.from_estimator(model, X[new], y[new], name=name, ax=ax)
    return display


def roc_one_vs_rest() -> RocDisplay:
    P, y, P_new, y_new = generated(3, GaussianNB())
    calibrator = IRPCalibrator(random_state=0).fit(P, y)
    return RocDisplay.from_estimator(calibrator, P_new, y_new, orientation="usual")


def cost_curve() -> CostCurveDisplay:
    P, y, P_new, y_new = generated(2, GaussianNB())
    return CostCurveDisplay.from_estimator(IRPCalibrator().fit(P, y), P_new, y_new)


def monitor() -> MonitorDisplay:
    """Forty days with 300 rows each; from day 25 on, forecasts are too extreme."""
    rng = np.random.default_rng(0)
    watching = CalibrationMonitor(["no", "yes"])
    for day in range(40):
        scores = rng.normal(scale=2, size=300)
        chance = 1 / (1 + np.exp(-scores * (1 if day < 25 else 0.7)))
        watching.update(np.where(rng.random(300) < chance, "yes", "no"), 1 / (1 + np.exp(-scores)))
    return MonitorDisplay.from_monitor(watching)


LONG = (
    "a class with a name that goes on and on",
    "Donaudampfschifffahrtsgesellschaftskapitänspatent",
    "$x_1$ & <b>",
    "d",
)


def overconfident(n: int, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Overconfident forecasts of n rows, and labels."""
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.full(len(names), 1.0), n)
    codes = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    codes[: len(names)] = np.arange(len(names))  # every class has a row
    P = truth**2
    return P / P.sum(axis=1, keepdims=True), np.array(names, dtype=object)[codes]


def cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every display for few and many classes, rows and letters."""
    sets = {f"k{K}": (2000, [f"c{k}" for k in range(K)]) for K in (2, 3, 4, 10)}
    sets |= {f"k{K}-long-names": (2000, LONG[:K]) for K in (2, 3, 4)}
    sets |= {f"k{K}-few-rows": (10, [f"c{k}" for k in range(K)]) for K in (2, 3, 4, 10)}
    sets |= {f"k{K}-many-rows": (10**6, [f"c{k}" for k in range(K)]) for K in (2, 3, 4, 10)}
    for case, (n, names) in sets.items():
        P, y = overconfident(n, names)
        calibrator = IRPCalibrator(random_state=0).fit(P, y, labels=names)
        kinds: list[Any] = [ReliabilityDisplay, RocDisplay, PathDisplay]
        kinds += [CostCurveDisplay] * (len(names) == 2)
        kinds += [SimplexDisplay] * (len(names) in (3, 4)) + [RocSurfaceDisplay] * (len(names) == 3)
        for kind in kinds:
            name = kind.__name__.removesuffix("Display").lower()
            yield f"{name}-{case}", partial(kind.from_estimator, calibrator, P, y)


GALLERY: dict[str, Callable[[], Any]] = {
    "reliability-two-classes": reliability_two_classes,
    "reliability-classwise": reliability_classwise,
    "reliability-top": reliability_top,
    "reliability-models": models,
    "roc": roc,
    "roc-few-rows": roc_few_rows,
    "roc-one-vs-rest": roc_one_vs_rest,
    "path": path,
    "simplex": simplex,
    "simplex-many-rows": simplex_many_rows,
    "tetrahedron": tetrahedron,
    "surface": surface,
    "cost-curve": cost_curve,
    "monitor": monitor,
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("build/gallery"))
    parser.add_argument("--style", default="default")
    parser.add_argument("--cases", action="store_true")
    chosen = parser.parse_args(arguments)
    mpl.use("Agg")
    chosen.out.mkdir(parents=True, exist_ok=True)
    for name, draw in cases() if chosen.cases else GALLERY.items():
        with plt.style.context(chosen.style):
            figure = draw().figure_
            figure.savefig(chosen.out / f"{name}.png", dpi=80, pil_kwargs={"optimize": True})
        plt.close(figure)
        print(chosen.out / f"{name}.png")


if __name__ == "__main__":
    main()
