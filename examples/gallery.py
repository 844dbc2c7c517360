"""Draw every display, with data that are generated or come with scikit-learn.

``python examples/gallery.py`` writes PNG files to build/gallery. ``--out`` sets another folder,
``--style`` a style of matplotlib such as dark_background. Requires ``isoroc[plots]``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

from isoroc import CalibratedClassifier, IRPCalibrator, RecursiveBinningCalibrator
from isoroc.plots import (
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
    model = CalibratedClassifier(GaussianNB(var_smoothing=1e-3), IRPCalibrator(random_state=0))
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


GALLERY: dict[str, Callable[[], Any]] = {
    "reliability-two-classes": reliability_two_classes,
    "reliability-classwise": reliability_classwise,
    "reliability-top": reliability_top,
    "roc": roc,
    "roc-few-rows": roc_few_rows,
    "path": path,
    "simplex": simplex,
    "simplex-many-rows": simplex_many_rows,
    "tetrahedron": tetrahedron,
    "surface": surface,
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("build/gallery"))
    parser.add_argument("--style", default="default")
    chosen = parser.parse_args(arguments)
    mpl.use("Agg")
    chosen.out.mkdir(parents=True, exist_ok=True)
    for name, draw in GALLERY.items():
        with plt.style.context(chosen.style):
            figure = draw().figure_
            figure.savefig(chosen.out / f"{name}.png", dpi=80, pil_kwargs={"optimize": True})
        plt.close(figure)
        print(chosen.out / f"{name}.png")


if __name__ == "__main__":
    main()
