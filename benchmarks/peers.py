"""The calibrators that are compared: those of this package and those of others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from arena import CLIP
from from_papers import BrenierIsotonic, CumulativeIsotonic, FlatIsotonic, TopVersusAll

import isoroc


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
