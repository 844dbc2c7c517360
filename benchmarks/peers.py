"""The calibrators that are compared: from this package, from others, and from recent papers.

benchmarks/quality.py imports this file. It runs on its own as well: for CalArena
(arXiv:2605.30188), copy it to CALARENA/custom_calibrators.py, a clone of the benchmark with its
data, and call ``python run_benchmark.py --benchmark tabrepo-binary --calibrator isoroc-Auto``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import logsumexp, softmax
from sklearn.isotonic import IsotonicRegression

import isoroc

#: Forecasts are clipped at this value for the log loss, which would otherwise be infinite at 0.
CLIP = 1e-6


# Peers without a package that can be installed, written from their papers


class FlatIsotonic:
    """Normalisation-aware isotonic regression with one function for all classes (NA-FIR).

    Arad and Rosset, arXiv:2512.09054: forecasts are f(p_k) / sum_j f(p_j) with an increasing f of
    least log loss. The loss is convex in log f. Scores are grouped into quantiles, so that f is a
    step function of at most `n_steps` steps. The paper has a step at every score.
    """

    def __init__(self, n_steps: int = 200) -> None:
        self.n_steps = n_steps

    def fit(self, P: np.ndarray, y: np.ndarray) -> FlatIsotonic:
        """Fit log f as a sum of increments, none of which is negative."""
        quantiles = np.quantile(P, np.linspace(0, 1, self.n_steps + 1)[1:-1])
        self.cuts_ = np.unique(quantiles)
        n_steps = len(self.cuts_) + 1
        steps = self._steps(P)
        own = np.bincount(steps[np.arange(len(y)), y], minlength=n_steps) / len(y)

        def loss(increments: np.ndarray) -> tuple[float, np.ndarray]:
            g = increments.cumsum()
            Z = g[steps]
            totals = logsumexp(Z, axis=1, keepdims=True)
            expected = np.bincount(steps.ravel(), np.exp(Z - totals).ravel(), n_steps) / len(y)
            slope = (expected - own)[::-1].cumsum()[::-1]
            return float(totals.mean() - own @ g), slope

        means = np.bincount(steps.ravel(), np.log(np.maximum(P, CLIP)).ravel(), n_steps)
        start = np.diff(means / np.maximum(np.bincount(steps.ravel(), minlength=n_steps), 1))
        start = np.concatenate([[0.0], np.clip(start, 0, 10)])
        bounds = [(0.0, 0.0), *[(0.0, 10.0)] * (n_steps - 1)]
        found = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B")
        self.log_f_ = found.x.cumsum()
        return self

    def predict_proba(self, P: np.ndarray) -> np.ndarray:
        """Calibrated forecasts."""
        return softmax(self.log_f_[self._steps(P)], axis=1)

    def _steps(self, P: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.cuts_, P, side="right")


class TopVersusAll:
    """The largest forecast, calibrated as the probability of being right (Le Coz et al., 2024).

    arXiv:2411.02988: one problem of two classes, right or wrong, replaces the problem of all
    classes. The others share the rest in proportion to their forecasts. `method` is "isotonic" or
    "temperature". The second fits the temperature to the loss of right or wrong.
    """

    def __init__(self, method: str) -> None:
        self.method = method

    def fit(self, P: np.ndarray, y: np.ndarray) -> TopVersusAll:
        """Fit to the largest forecasts and whether they were right."""
        right = (P.argmax(axis=1) == y).astype(float)
        if self.method == "isotonic":
            self.step_ = IsotonicRegression(out_of_bounds="clip").fit(P.max(axis=1), right)
            return self
        Z = np.log(np.maximum(P, CLIP))

        def loss(log_slope: float) -> float:
            top = softmax(np.exp(log_slope) * Z, axis=1).max(axis=1).clip(CLIP, 1 - CLIP)
            return float(-np.mean(right * np.log(top) + (1 - right) * np.log1p(-top)))

        self.slope_ = np.exp(minimize_scalar(loss, bounds=(-4, 4), method="bounded").x)
        return self

    def predict_proba(self, P: np.ndarray) -> np.ndarray:
        """Calibrated forecasts."""
        if self.method == "temperature":
            return softmax(self.slope_ * np.log(np.maximum(P, CLIP)), axis=1)
        top = P.argmax(axis=1)
        rows = np.arange(len(P))
        confidence = self.step_.predict(P[rows, top])
        Q = np.maximum(P, CLIP)
        Q[rows, top] = 0
        Q *= ((1 - confidence) / Q.sum(axis=1))[:, None]
        Q[rows, top] = confidence
        return Q


class Method(NamedTuple):
    """A calibrator by name."""

    name: str
    make: Callable[[], Any]
    ours: bool = False
    binary_only: bool = False


class Uncalibrated:
    """The uncalibrated forecasts."""

    def fit(self, P: np.ndarray, y: np.ndarray) -> Uncalibrated:  # noqa: ARG002
        """Learn nothing."""
        return self

    def predict_proba(self, P: np.ndarray) -> np.ndarray:
        """The forecasts."""
        return P


class WithoutKernel(isoroc.AutoCalibrator):
    """`AutoCalibrator` without the member that takes longest with many classes."""

    def _default_members(self, n_classes: int) -> list[Any]:
        members = super()._default_members(n_classes)
        return [each for each in members if not isinstance(each, isoroc.KernelCalibrator)]


def own_methods() -> list[Method]:
    """Calibrators of this package."""
    make = {
        "isoroc Auto": lambda: isoroc.AutoCalibrator(random_state=0),
        "isoroc Auto, monotone": lambda: isoroc.AutoCalibrator(monotone=True, random_state=0),
        "isoroc Auto, no kernel": lambda: WithoutKernel(random_state=0),
        "isoroc IRP": lambda: isoroc.IRPCalibrator(random_state=0),
        "isoroc kernel": isoroc.KernelCalibrator,
        "isoroc spline": isoroc.SplineCalibrator,
        "isoroc matrix": isoroc.MatrixCalibrator,
        "isoroc Dirichlet": partial(isoroc.MatrixCalibrator, structure="matrix", quadratic=False),
        "isoroc monotone": isoroc.MonotoneCalibrator,
        "isoroc temperature": isoroc.TemperatureCalibrator,
        "isoroc isotonic": isoroc.IsotonicCalibrator,
        "isoroc Venn-Abers": isoroc.VennAbersCalibrator,
    }
    return [Method(name, factory, ours=True) for name, factory in make.items()]


def peers() -> tuple[list[Method], list[str]]:
    """Calibrators of others, and the names of those whose dependencies are missing."""
    found = []
    missing = []
    for name, make, binary_only in [*_of_scikit_learn(), *FROM_PAPERS, *_of_probmetrics()]:
        try:
            make()
        except ImportError:
            missing.append(name)
        else:
            found.append(Method(name, make, binary_only=binary_only))
    return found, missing


Row = tuple[str, Callable[[], Any], bool]

FROM_PAPERS: list[Row] = [
    ("NA-FIR", FlatIsotonic, False),
    ("TvA isotonic", partial(TopVersusAll, "isotonic"), False),
    ("TvA temperature", partial(TopVersusAll, "temperature"), False),
]


def _of_scikit_learn() -> list[Row]:
    """CalibratedClassifierCV around forecasts that are given."""
    from sklearn.base import BaseEstimator, ClassifierMixin  # noqa: PLC0415
    from sklearn.calibration import CalibratedClassifierCV  # noqa: PLC0415
    from sklearn.frozen import FrozenEstimator  # noqa: PLC0415

    class Given(ClassifierMixin, BaseEstimator):
        """A classifier whose features are its forecasts."""

        def fit(self, P: np.ndarray, y: np.ndarray) -> Given:  # noqa: ARG002
            self.classes_ = np.unique(y)
            return self

        def predict_proba(self, P: np.ndarray) -> np.ndarray:
            return P

        def predict(self, P: np.ndarray) -> np.ndarray:
            return self.classes_[P.argmax(axis=1)]

    class Wrapped:
        def __init__(self, method: str) -> None:
            self.method = method

        def fit(self, P: np.ndarray, y: np.ndarray) -> Wrapped:
            frozen = FrozenEstimator(Given().fit(P, y))
            self.fitted_ = CalibratedClassifierCV(frozen, method=self.method).fit(P, y)
            return self

        def predict_proba(self, P: np.ndarray) -> np.ndarray:
            return self.fitted_.predict_proba(P)

    names = ("sigmoid", "isotonic", "temperature")
    return [(f"sklearn {name}", lambda name=name: Wrapped(name), False) for name in names]


def _of_probmetrics() -> list[Row]:
    """Calibrators of probmetrics 1.3. The first are for two classes and get one for each."""

    def make(name: str, *, one_vs_rest: bool = False, **options: Any) -> Any:
        from probmetrics import calibrators  # noqa: PLC0415

        found = getattr(calibrators, name)(**options)
        return calibrators.MulticlassOneVsRestCalibrator(found) if one_vs_rest else found

    histogram = "BinaryHistogramBinningCalibrator"
    by_class = {"CIR": "CenteredIsotonicRegressionCalibrator", "CDF spline": "CDFSplineCalibrator"}
    by_class |= {"Histogram": histogram, "Venn-Abers": "BinaryVennAbersCalibrator"}
    whole = {"ETS": "ETSCalibrator", "VS": "VectorScalingCalibrator", "SVS": "SVSCalibrator"}
    whole |= {"MS": "MatrixScalingCalibrator", "Kernel": "KernelCalibrator"}
    whole |= {"CatBoost": "CatBoostCalibrator", "LightGBM": "LightGBMCalibrator"}
    named = {"SMS": "sms", "TS": "temp-scaling", "TS with mixture": "ts-mix"}
    binary = {"Quadratic": "quadratic-scaling", "Logistic": "logistic"}  # of more classes it is SMS
    by_name = partial(make, "get_calibrator")
    rows: list[Row] = [("Beta", partial(make, "BetacalCalibrator"), True)]
    rows += [(name, partial(make, own, one_vs_rest=True), False) for name, own in by_class.items()]
    quantile = partial(make, histogram, one_vs_rest=True, strategy="quantile")
    rows.append(("Quantile histogram", quantile, False))
    rows += [(name, partial(make, own), False) for name, own in whole.items()]
    for names, only in ((named, False), (binary, True)):
        rows += [(n, partial(by_name, calibration_method=m), only) for n, m in names.items()]
    return rows


class IsorocCalibrator:
    """A calibrator of isoroc with the methods that the benchmark calls.

    Forecasts of two classes come as the probability of the second one, of shape (n,) or (n, 1),
    forecasts of more classes with a column for each. Labels are the numbers of the columns, and
    some may be absent. Rows are divided by their sums, which differ from one if digits were lost.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make

    def fit(self, p_cal: np.ndarray, y_cal: np.ndarray) -> None:
        """Fit to calibration rows."""
        P = columns(p_cal)
        labels = range(P.shape[1])
        self.fitted_ = self.make().fit(P, np.asarray(y_cal).reshape(-1), labels=labels)

    def predict_proba(self, p_test: np.ndarray) -> np.ndarray:
        """Calibrated forecasts, shape (n, K)."""
        return self.fitted_.predict_proba(columns(p_test))


def columns(p: np.ndarray) -> np.ndarray:
    """Forecasts with a column for each class and rows that sum to one."""
    P = np.asarray(p, dtype=np.float64)
    if P.ndim == 1 or P.shape[1] == 1:
        P = np.column_stack([1 - P.reshape(-1), P.reshape(-1)])
    P = np.maximum(P, 0)
    return P / P.sum(axis=1, keepdims=True)


CUSTOM_CALIBRATORS: dict[str, Callable[[], IsorocCalibrator]] = {
    "isoroc-Auto": lambda: IsorocCalibrator(lambda: isoroc.AutoCalibrator(random_state=0)),
    "isoroc-IRP": lambda: IsorocCalibrator(lambda: isoroc.IRPCalibrator(random_state=0)),
    "isoroc-Monotone": lambda: IsorocCalibrator(isoroc.MonotoneCalibrator),
}
