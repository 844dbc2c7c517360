"""The calibrators that are compared: those of this package, of others, and of recent papers.

benchmarks/quality.py imports this file; it runs on its own as well: for CalArena
(arXiv:2605.30188), copy it to CALARENA/custom_calibrators.py, a clone of the benchmark with its
data, and call ``python run_benchmark.py --benchmark tabrepo-binary --calibrator isoroc-Auto``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.spatial.distance import cdist
from scipy.special import logsumexp, softmax
from sklearn.isotonic import IsotonicRegression, isotonic_regression

import isoroc

#: Forecasts are clipped at this value for the log loss, which would otherwise be infinite at 0.
CLIP = 1e-6


# Peers without a package that can be installed, written from their papers


class FlatIsotonic:
    """Normalisation-aware isotonic regression with one function for all classes (NA-FIR).

    Arad and Rosset, arXiv:2512.09054: forecasts are f(p_k) / sum_j f(p_j) with an increasing f of
    least log loss. The loss is convex in log f. Scores are grouped into quantiles, so that f is a
    step function of at most `n_steps` steps; the paper has a step at every score.
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


class CumulativeIsotonic:
    """Normalisation-aware isotonic regression of sorted cumulative forecasts (SCIR).

    Arad and Rosset, arXiv:2512.09054: the probability that the outcome is among the r most probable
    classes increases with r and with the sum of their forecasts. It is fitted by least squares
    under both orders, here on quantiles of the sums, by Dykstra's alternating projections; the
    differences of successive r are the forecasts.
    """

    def __init__(self, n_quantiles: int = 50, n_rounds: int = 50) -> None:
        self.n_quantiles = n_quantiles
        self.n_rounds = n_rounds

    def fit(self, P: np.ndarray, y: np.ndarray) -> CumulativeIsotonic:
        """Fit the table of probabilities by rank and quantile."""
        order, sums = self._sorted(P)
        ranks = (order == y[:, None]).argmax(axis=1)
        among = ranks[:, None] <= np.arange(sums.shape[1])
        levels = np.linspace(0, 1, self.n_quantiles + 1)[1:-1]
        self.cuts_ = np.unique(np.quantile(sums, levels))
        cells = np.searchsorted(self.cuts_, sums, side="right")
        shape = sums.shape[1], len(self.cuts_) + 1
        flat = cells + np.arange(shape[0]) * shape[1]
        weight = np.bincount(flat.ravel(), minlength=shape[0] * shape[1]).reshape(shape)
        total = np.bincount(flat.ravel(), among.ravel(), shape[0] * shape[1]).reshape(shape)
        overall = among.mean(axis=0, keepdims=True).T
        mean = (total + 1e-3 * overall) / (weight + 1e-3)  # cells without rows
        self.table_ = self._isotonic(mean, weight + 1e-3)
        return self

    def predict_proba(self, P: np.ndarray) -> np.ndarray:
        """Calibrated forecasts."""
        order, sums = self._sorted(P)
        cells = np.searchsorted(self.cuts_, sums, side="right")
        cumulative = self.table_[np.arange(sums.shape[1]), cells].clip(0, 1)
        cumulative = np.maximum.accumulate(cumulative, axis=1)
        ends = np.zeros((len(P), 1)), cumulative, np.ones((len(P), 1))
        Q = np.empty_like(P)
        np.put_along_axis(Q, order, np.diff(np.concatenate(ends, axis=1), axis=1), axis=1)
        return Q

    def _sorted(self, P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Classes of each row from the most probable one, and sums of the first forecasts."""
        order = np.argsort(-P, axis=1, kind="stable")
        return order, np.take_along_axis(P, order, axis=1).cumsum(axis=1)[:, :-1]

    def _isotonic(self, mean: np.ndarray, weight: np.ndarray) -> np.ndarray:
        fitted, by_row, by_column = mean, np.zeros_like(mean), np.zeros_like(mean)
        for _ in range(self.n_rounds):
            moved = fitted + by_row
            fitted = np.stack(
                [
                    isotonic_regression(row, sample_weight=w)
                    for row, w in zip(moved, weight, strict=True)
                ]
            )
            by_row = moved - fitted
            moved = fitted + by_column
            columns = zip(moved.T, weight.T, strict=True)
            fitted = np.stack([isotonic_regression(c, sample_weight=w) for c, w in columns], axis=1)
            by_column = moved - fitted
        return fitted


class TopVersusAll:
    """The largest forecast, calibrated as the probability of being right (Le Coz et al., 2024).

    arXiv:2411.02988: one problem of two classes, right or wrong, replaces that of all classes. The
    others share the rest in proportion to their forecasts. `method` is "isotonic" or "temperature";
    the second fits the temperature to the loss of right or wrong.
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
        top, rows = P.argmax(axis=1), np.arange(len(P))
        confidence = self.step_.predict(P[rows, top])
        Q = np.maximum(P, CLIP)
        Q[rows, top] = 0
        Q *= ((1 - confidence) / Q.sum(axis=1))[:, None]
        Q[rows, top] = confidence
        return Q


class BrenierIsotonic:
    """Brenier isotonic regression (Bao, Eshraghi and Wang, arXiv:2603.10452).

    Optimal transport takes the rows, with equal weights, to values of equal weight in the simplex,
    15 or twice the number of classes, and the values minimise the Brier score of what the rows
    receive. The map is cyclically monotone: a new forecast gets the value of its Laguerre cell. The
    authors differentiate by finite differences, each of which takes a transport; here the gradient
    is that of a fixed plan, which is exact wherever the plan does not change. Needs POT.
    """

    def __init__(self) -> None:
        import ot  # noqa: PLC0415

        self.transport = ot.emd

    def fit(self, P: np.ndarray, y: np.ndarray) -> BrenierIsotonic:
        """Fit the values, which are softmax functions of free numbers, from random forecasts."""
        n, K = P.shape
        outcomes = np.eye(K)[y]
        rows = np.random.default_rng(0).integers(n, size=max(15, 2 * K))

        def loss(numbers: np.ndarray) -> tuple[float, np.ndarray]:
            values = softmax(numbers.reshape(-1, K), axis=1)
            plan, _ = self._plan(P, values)
            residuals = plan @ values - outcomes
            slope = 2 / n * plan.T @ residuals
            slope = values * (slope - (slope * values).sum(axis=1, keepdims=True))
            return float((residuals**2).sum() / n), slope.ravel()

        start = np.log(0.9 * P[rows] + 0.1 / K).ravel()
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 100})
        self.values_ = softmax(found.x.reshape(-1, K), axis=1)
        self.potential_ = self._plan(P, self.values_)[1]
        return self

    def predict_proba(self, P: np.ndarray) -> np.ndarray:
        """Calibrated forecasts."""
        cells = (cdist(P, self.values_, "sqeuclidean") - self.potential_).argmin(axis=1)
        return self.values_[cells]

    def _plan(self, P: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Shares of each row that go to the values, and the potentials of these."""
        cost = cdist(P, values, "sqeuclidean")
        plan, about = self.transport([], [], cost, log=True)
        return len(P) * plan, about["v"]


class Method(NamedTuple):
    """A calibrator by name."""

    name: str
    make: Callable[[], Any]
    ours: bool = False
    binary_only: bool = False


class Uncalibrated:
    """The forecasts as they are."""

    def fit(self, P: np.ndarray, y: np.ndarray) -> Uncalibrated:  # noqa: ARG002
        """Learn nothing."""
        return self

    def predict_proba(self, P: np.ndarray) -> np.ndarray:
        """The forecasts."""
        return P


def own_methods() -> list[Method]:
    """Calibrators of this package."""
    make = {
        "isoroc Auto": lambda: isoroc.AutoCalibrator(random_state=0),
        "isoroc Auto, monotone": lambda: isoroc.AutoCalibrator(monotone=True, random_state=0),
        "isoroc IRP": lambda: isoroc.IRPCalibrator(random_state=0),
        "isoroc bagged IRP": lambda: isoroc.BaggedIRPCalibrator(random_state=0),
        "isoroc kernel": isoroc.KernelCalibrator,
        "isoroc spline": isoroc.SplineCalibrator,
        "isoroc matrix": isoroc.MatrixCalibrator,
        "isoroc monotone": isoroc.MonotoneCalibrator,
        "isoroc temperature": isoroc.TemperatureCalibrator,
        "isoroc isotonic": isoroc.IsotonicCalibrator,
        "isoroc Venn-Abers": isoroc.VennAbersCalibrator,
    }
    return [Method(name, factory, ours=True) for name, factory in make.items()]


def peers() -> tuple[list[Method], list[str]]:
    """Calibrators of others, and the names of those whose dependencies are missing."""
    found, missing = [], []
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
    ("SCIR", CumulativeIsotonic, False),
    ("TvA isotonic", partial(TopVersusAll, "isotonic"), False),
    ("TvA temperature", partial(TopVersusAll, "temperature"), False),
    ("Brenier isotonic", BrenierIsotonic, False),
]


class Dirichlet:
    """Dirichlet calibration (Kull et al., 2019) with a ridge penalty chosen in cross-validation.

    Its linear form is multinomial regression on log forecasts. The package of its authors does not
    install with current versions of setuptools.
    """

    def fit(self, P: np.ndarray, y: np.ndarray) -> Dirichlet:
        """Fit the regression."""
        from sklearn.linear_model import LogisticRegressionCV  # noqa: PLC0415

        folds = min(5, int(np.bincount(y)[np.unique(y)].min()))
        if folds < 2:
            raise ValueError("a class has one row only")
        strengths = 10.0 ** np.arange(-3, 3)
        model = LogisticRegressionCV(Cs=strengths, cv=folds, scoring="neg_log_loss", max_iter=1000)
        self.fitted_ = model.fit(self._logs(P), y)
        return self

    def predict_proba(self, P: np.ndarray) -> np.ndarray:
        """Calibrated forecasts."""
        return self.fitted_.predict_proba(self._logs(P))

    def _logs(self, P: np.ndarray) -> np.ndarray:
        return np.log(np.maximum(P, CLIP))


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
    rows = [(f"sklearn {name}", lambda name=name: Wrapped(name), False) for name in names]
    return [*rows, ("Dirichlet", Dirichlet, False)]


def _of_probmetrics() -> list[Row]:
    """All of probmetrics 1.3, by one name where variants differ only in how they are computed."""
    one_vs_rest = {
        "CIR": "CenteredIsotonicRegressionCalibrator",
        "Venn-Abers": "BinaryVennAbersCalibrator",
        "ENIR": "NetcalENIRCalibrator",
        "Histogram": "BinaryHistogramBinningCalibrator",
        "BBQ": "NetcalBBQCalibrator",
        "Scaling-binning": "BinaryPlattBinnerCalibrator",
        "Spline": "MLISplineCalibrator",
        "CDF spline": "CDFSplineCalibrator",
    }
    any_classes = {
        "ETS": "ETSCalibrator",
        "VS": "VectorScalingCalibrator",
        "SVS": "SVSCalibrator",
        "MS": "MatrixScalingCalibrator",
        "Kernel": "KernelCalibrator",
        "CatBoost": "CatBoostCalibrator",
        "LightGBM": "LightGBMCalibrator",
        "XGBoost": "XGBoostCalibrator",
    }
    binary = {
        "Beta": "BetacalCalibrator",
        "Regularised affine": "RegularizedAffineScalingCalibrator",
        "Regularised quadratic": "RegularizedQuadraticScalingCalibrator",
        "Monotone CatBoost": "BinaryCatBoostCalibrator",
    }
    by_name = {"SMS": "sms", "TS": "temp-scaling", "TS with mixture": "ts-mix"}
    by_name |= {"Logistic": "logistic", "Venn-Abers pairs": "ivap-ovo"}
    binary_by_name = {"Quadratic": "quadratic-scaling"}

    def calibrator(name: str, **options: Any) -> Callable[[], Any]:
        def make() -> Any:
            from probmetrics import calibrators  # noqa: PLC0415

            return getattr(calibrators, name)(**options)

        return make

    def wrapped(make: Callable[[], Any]) -> Callable[[], Any]:
        def outer() -> Any:
            from probmetrics import calibrators  # noqa: PLC0415

            return calibrators.MulticlassOneVsRestCalibrator(make())

        return outer

    quantile = calibrator("BinaryHistogramBinningCalibrator", strategy="quantile")
    rows: list[Row] = [("Quantile histogram", wrapped(quantile), False)]
    rows += [(name, wrapped(calibrator(kind)), False) for name, kind in one_vs_rest.items()]
    rows += [(name, calibrator(kind), False) for name, kind in any_classes.items()]
    options = {"Monotone CatBoost": {"tiny": True, "monotone": True}}
    rows += [
        (name, calibrator(kind, **options.get(name, {})), True) for name, kind in binary.items()
    ]
    for binary_only, names in ((False, by_name), (True, binary_by_name)):
        for name, method in names.items():
            make = calibrator("get_calibrator", calibration_method=method)
            rows.append((name, make, binary_only))
    return rows


class IsorocCalibrator:
    """A calibrator of isoroc with the methods that the benchmark calls.

    Forecasts of two classes come as the probability of the second one, of shape (n,) or (n, 1),
    those of more classes with a column for each. Labels are the numbers of the columns, and some
    may be absent. Rows are divided by their sums, which differ from one if digits were lost.
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
