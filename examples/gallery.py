"""Draw every display, with data that are generated or come with scikit-learn.

``python examples/gallery.py`` writes PNG files to build/gallery. ``--out`` sets another folder,
``--style`` a style of matplotlib such as dark_background. ``--cases`` draws every display for few
and many classes, rows and letters instead, to be looked at. Requires matplotlib and mpltern.
"""

from __future__ import annotations

import argparse
import io
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from PIL import Image
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

from isoroc import (
    AutoCalibrator,
    CalibratedClassifier,
    IRPCalibrator,
    OnlineCalibrator,
    SegmentCalibrator,
    evaluate,
)
from isoroc.decisions import acceptance_rule
from isoroc.plots import (
    CalibrationDisplay,
    DecisionCurveDisplay,
    OnlineDisplay,
    PathDisplay,
    RiskCoverageDisplay,
    RocDisplay,
    SegmentsDisplay,
    SimplexDisplay,
)


class Task(NamedTuple):
    """Forecasts of a model and labels, for calibration rows and new rows."""

    P_cal: np.ndarray
    y_cal: np.ndarray
    P_new: np.ndarray
    y_new: np.ndarray


def generated(n_classes: int, model: object, n_cal: int = 1500) -> Task:
    """Forecasts of a model that is trained on 1,500 generated rows. 3,000 rows are new."""
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
    cal = slice(1500, 1500 + n_cal)
    new = slice(1500 + n_cal, None)
    return Task(P[cal], y[cal], P[new], y[new])


def reliability_two_classes() -> CalibrationDisplay:
    P, y, P_new, y_new = generated(2, GaussianNB())
    calibrator = AutoCalibrator(random_state=0).fit(P, y)
    return CalibrationDisplay.from_estimator(calibrator, P_new, y_new)


def reliability_classwise() -> CalibrationDisplay:
    P, y, P_new, y_new = generated(3, RandomForestClassifier(random_state=0))
    return CalibrationDisplay.from_estimator(IRPCalibrator(random_state=0).fit(P, y), P_new, y_new)


def reliability_top() -> CalibrationDisplay:
    """Ten digits: whether the most probable one is right."""
    X, y = load_digits(return_X_y=True)
    before = cross_val_predict(GaussianNB(var_smoothing=1e-3), X, y, method="predict_proba")
    model = CalibratedClassifier(
        GaussianNB(var_smoothing=1e-3), calibrator=IRPCalibrator(random_state=0)
    )
    after = cross_val_predict(model, X, y, method="predict_proba")
    return CalibrationDisplay.from_predictions(y, before, after=after, kind="top")


def roc() -> RocDisplay:
    P, y, *_ = generated(2, GaussianNB(), n_cal=300)
    return RocDisplay.from_estimator(IRPCalibrator(pseudocount=0).fit(P, y), P, y)


def simplex() -> SimplexDisplay:
    P, y, *_ = generated(3, GaussianNB())
    return SimplexDisplay.from_estimator(IRPCalibrator(random_state=0).fit(P, y), P, y)


def reliability_rare() -> CalibrationDisplay:
    """A class with about 1 % of the rows."""
    P, y = overconfident(20_000, ["no", "yes"], [1.0, 0.003], power=1.4)
    calibrator = AutoCalibrator(random_state=0).fit(P[:10_000], y[:10_000])
    return CalibrationDisplay.from_estimator(calibrator, P[10_000:], y[10_000:])


def models() -> CalibrationDisplay:
    """Three models in the same axes."""
    X, y = make_classification(6000, n_informative=5, flip_y=0.1, random_state=4)
    train = slice(1500)
    new = slice(1500, None)
    _, ax = plt.subplots(figsize=(4.4, 5), layout="constrained")
    for name, model in {
        "naive Bayes": GaussianNB(),
        "forest": RandomForestClassifier(random_state=0),
        "logistic regression": LogisticRegression(),
    }.items():
        model.fit(X[train], y[train])
        display = CalibrationDisplay.from_estimator(model, X[new], y[new], name=name, ax=ax)
    return display


def roc_one_vs_rest() -> RocDisplay:
    P, y, P_new, y_new = generated(3, GaussianNB())
    calibrator = IRPCalibrator(random_state=0).fit(P, y)
    return RocDisplay.from_estimator(calibrator, P_new, y_new)


def roc_surface() -> RocDisplay:
    """The paper's bins of three classes, on the rows that they were found on."""
    P, y, *_ = generated(3, GaussianNB(), n_cal=500)
    return RocDisplay.from_estimator(IRPCalibrator.paper().fit(P, y), P, y, kind="surface")


def path() -> PathDisplay:
    P, y, P_new, y_new = generated(3, GaussianNB(), n_cal=500)
    calibrator = IRPCalibrator(values="constant", random_state=0).fit(P, y)
    return PathDisplay.from_estimator(calibrator, P, y, test=(P_new, y_new))


def tetrahedron() -> SimplexDisplay:
    P, y, *_ = generated(4, RandomForestClassifier(random_state=0), n_cal=800)
    return SimplexDisplay.from_estimator(IRPCalibrator(random_state=0).fit(P, y), P, y)


def decision_curve() -> DecisionCurveDisplay:
    P, y, P_new, y_new = generated(2, GaussianNB())
    return DecisionCurveDisplay.from_estimator(IRPCalibrator().fit(P, y), P_new, y_new)


def risk_coverage() -> RiskCoverageDisplay:
    """Half of the new rows make a rule, the others show what it does."""
    P, y, P_new, y_new = generated(4, GaussianNB())
    calibrator = AutoCalibrator(random_state=0).fit(P, y)
    Q = calibrator.predict_proba(P_new)
    rule = acceptance_rule(y_new[:1500], Q[:1500], max_error=0.3)
    return RiskCoverageDisplay.from_predictions(
        y_new[1500:], P_new[1500:], after=Q[1500:], rule=rule
    )


def three_zones() -> RiskCoverageDisplay:
    """Rows that are accepted as either of two classes, and those between them."""
    P, y, P_new, y_new = generated(2, RandomForestClassifier(random_state=0))
    Q = AutoCalibrator(random_state=0).fit(P, y).predict_proba(P_new)
    rule = acceptance_rule(y_new[:1500], Q[:1500], max_error=(0.1, 0.15))
    return RiskCoverageDisplay.from_predictions(y_new[1500:], Q[1500:], rule=rule)


def by_region() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Forecasts that are right in the north, too low in the east and too high in the south."""
    rng = np.random.default_rng(0)
    p = rng.random(6000)
    region = rng.choice(["east", "north", "south"], 6000)
    power = np.select([region == "north", region == "south"], [1.0, 3.0], 0.5)
    return p, rng.random(6000) < p**power, region


def segments() -> SegmentsDisplay:
    p, y, region = by_region()
    calibrator = SegmentCalibrator().fit(p[:3000], y[:3000], segments={"region": region[:3000]})
    new = {"region": region[3000:]}
    after = calibrator.predict_proba(p[3000:], new)
    result = evaluate(y[3000:], p[3000:], after, segments=new)
    return SegmentsDisplay.from_evaluation(result)


def online() -> OnlineDisplay:
    """Forecasts that are right for 20 batches, and overconfident from then on."""
    rng = np.random.default_rng(0)
    calibrator = OnlineCalibrator()
    for day in range(40):
        z = rng.normal(scale=1.5, size=100)
        power = 1.0 if day < 20 else 0.4
        outcomes = rng.random(100) < 1 / (1 + np.exp(-power * z))
        calibrator.partial_fit(1 / (1 + np.exp(-z)), outcomes)
    return OnlineDisplay.from_estimator(calibrator)


LONG = (
    "a class with a name that goes on and on",
    "Donaudampfschifffahrtsgesellschaftskapitänspatent",
    "$x_1$ & <b>",
    "d",
)


def overconfident(
    n: int, names: Sequence[str], shares: Sequence[float] | None = None, power: float = 2
) -> tuple[np.ndarray, np.ndarray]:
    """Overconfident forecasts of n rows, and labels. Classes have given shares."""
    rng = np.random.default_rng(0)
    K = len(names)
    truth = rng.dirichlet(np.full(K, min(1.0, 10 / K)), n)
    if shares is not None:
        truth *= shares
        truth /= truth.sum(axis=1, keepdims=True)
    codes = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    codes[:K] = np.arange(K)  # every class has a row
    P = truth**power
    return P / P.sum(axis=1, keepdims=True), np.array(names, dtype=object)[codes]


def rounded(P: np.ndarray, levels: Sequence[float]) -> np.ndarray:
    """Forecasts of two classes on the nearest of some levels."""
    p = np.asarray(levels)[np.abs(P[:, 1:] - np.asarray(levels)).argmin(axis=1)]
    return np.column_stack([1 - p, p])


def data_sets() -> Iterator[tuple[str, np.ndarray, np.ndarray, list[str]]]:
    """Forecasts, labels and classes: balanced, rare, tied, many classes and rows, certain."""
    names = [f"c{k}" for k in range(200)]
    for K, n in ((2, 2000), (3, 2000), (10, 3000), (200, 3000), (2, 10**6), (3, 10**6), (3, 12)):
        size = {10**6: "-million", 12: "-few-rows"}.get(n, "")
        yield f"k{K}{size}", *overconfident(n, names[:K]), names[:K]
    for K in (2, 3):
        yield f"k{K}-long-names", *overconfident(2000, LONG[:K]), list(LONG[:K])
        shares = [1.0, 0.005] if K == 2 else [1.0, 0.8, 0.01]
        yield f"k{K}-rare", *overconfident(20_000, names[:K], shares, power=1.3), names[:K]
        P, y = overconfident(2000, names[:K], power=9)
        P = np.where(P > 0.99, 1.0, np.where(P < 0.01, 0.0, P))
        yield f"k{K}-certain", P / P.sum(axis=1, keepdims=True), y, names[:K]
    P, y = overconfident(1500, names[:2])
    yield "k2-ties", rounded(P, [0.05, 0.3, 0.5, 0.7, 0.8, 0.9]), y, names[:2]


def cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every display for all data sets."""
    for case, P, y, names in data_sets():
        calibrator = IRPCalibrator(random_state=0).fit(P, y, labels=names)
        kinds: list[Any] = [CalibrationDisplay, RocDisplay, RiskCoverageDisplay]
        kinds += [DecisionCurveDisplay] * (len(names) == 2)
        kinds += [SimplexDisplay] * (len(names) == 3)
        kinds += [PathDisplay] * (len(names) <= 3)
        for kind in kinds:
            name = kind.__name__.removesuffix("Display").lower()
            yield f"{name}-{case}", partial(kind.from_estimator, calibrator, P, y)


GALLERY: dict[str, Callable[[], Any]] = {
    "reliability-two-classes": reliability_two_classes,
    "reliability-classwise": reliability_classwise,
    "reliability-top": reliability_top,
    "reliability-models": models,
    "reliability-rare": reliability_rare,
    "roc": roc,
    "roc-one-vs-rest": roc_one_vs_rest,
    "roc-surface": roc_surface,
    "path": path,
    "simplex": simplex,
    "simplex-four-classes": tetrahedron,
    "decision-curve": decision_curve,
    "segments": segments,
    "online": online,
    "risk-coverage": risk_coverage,
    "three-zones": three_zones,
}


def questions() -> Iterator[tuple[str, Callable[[], Any]]]:
    """The pictures of docs/displays.md that answer questions, drawn by its own code."""
    page = Path(__file__).resolve().parents[1] / "docs" / "displays.md"
    section = re.split(r"\n## ", page.read_text(encoding="utf-8"))[1]
    names: dict[str, Any] = {}
    parts = re.split(r"```python\n(.*?)```", section, flags=re.DOTALL)
    for code, text in zip(parts[1::2], parts[2::2], strict=True):

        def draw(code: str = code) -> Any:
            exec(code, names)  # noqa: S102 -- our own page
            return names.get("display")

        if picture := re.search(r"gallery/([\w-]+)\.png", text):
            yield picture[1], draw
        else:
            draw()


def save(figure: Any, path: Path) -> None:
    """Write a picture with 200 dots per inch and a palette of 256 colours, which keeps it small."""
    with io.BytesIO() as buffer:
        figure.savefig(buffer, format="png", dpi=200)
        with Image.open(buffer) as picture:
            picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("build/gallery"))
    parser.add_argument("--style", default="default")
    parser.add_argument("--cases", action="store_true")
    chosen = parser.parse_args(arguments)
    mpl.use("Agg")
    chosen.out.mkdir(parents=True, exist_ok=True)
    for name, draw in cases() if chosen.cases else [*GALLERY.items(), *questions()]:
        with plt.style.context(chosen.style):
            figure = draw().figure_
            save(figure, chosen.out / f"{name}.png")
        plt.close(figure)
        print(chosen.out / f"{name}.png")


if __name__ == "__main__":
    main()
