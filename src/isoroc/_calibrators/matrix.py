"""MatrixCalibrator: structured matrix scaling of log forecasts."""

from __future__ import annotations

import numbers
from typing import Literal, Self

import numpy as np

from isoroc._calibrators.descent import warn_unconverged
from isoroc._calibrators.regression import Regression, Terms
from isoroc._calibrators.tempered import TemperedCalibrator, draw_part
from isoroc._input import Sample, check_number, check_option
from isoroc._maps.logs import LogForecasts
from isoroc._maps.matrix import MatrixMap
from isoroc._simplex import Floats

#: structure="auto" is "vector" for more classes than this: a matrix for 100 has 10,000 entries.
MATRIX_CLASSES = 100
#: Up to this many terms the Hessian is formed and penalties are learned.
NEWTON_TERMS = 400
#: A fit to a part of the rows starts from that to all and ends with a Newton step that promises to
#: lower the loss by less than this per unit of weight: mostly the first.
PART_TOLERANCE = 1e-3


class MatrixCalibrator(MatrixMap, TemperedCalibrator):
    """Structured matrix scaling: softmax regression on the logarithms of the forecasts.

    Forecasts first go through temperature scaling, as in `TemperatureCalibrator`. Their logarithms
    are then corrected for each class, with a matrix that lets the forecast of one class act on
    another. Penalties shrink the correction to none, that is to temperature scaling.

    Parameters
    ----------
    structure : {"auto", "matrix", "vector"}, default="auto"
        Whether A is a full matrix or a diagonal; "auto" is a matrix up to 100 classes.
    quadratic : bool, default=True
        Whether there is a term a.
    penalty : float or "auto", default="auto"
        Strength of the penalties as a multiple of those of Berta et al.: precisions 2 K of b, a and
        the diagonal, 2 K (K - 1) off it, when a row has weight 1. "auto" starts from these and
        learns the strength of each kind of term by maximal evidence, where there are at most 400
        terms: up to 19 classes for a matrix.
    floor : float or "auto", default="auto"
        As in `TemperatureCalibrator`.
    pseudocount : float, default=1.0
        As in `TemperatureCalibrator`; it acts before the correction.

    Attributes
    ----------
    classes_, n_features_in_, scores_, floor_, temperature_, smoothing_
        As in `TemperatureCalibrator`.
    coef_ : ndarray of shape (K, K) or (K,)
        A, or its diagonal.
    quadratic_, intercept_ : ndarray of shape (K,)
        a and b.
    penalty_ : ndarray of shape (4,)
        Multiples that were used: of b, the diagonal, a, and the entries off the diagonal.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the fit did not converge.

    See Also
    --------
    TemperatureCalibrator : One parameter for all classes.
    SplineCalibrator : Adds bends to the map of each class.
    KernelCalibrator : Adds terms that depend on several classes at once.

    Notes
    -----
    With the logarithms z of the tempered forecasts, the calibrated forecast is

        ``q = softmax(A z + a z**2 + b)``,

    with a matrix A, vectors a and b, and z**2 entry by entry. Ridge penalties shrink A to the
    identity, a and b to 0. Each of the four kinds of terms, b, the diagonal, a and the rest of A,
    has a penalty of its own. For two classes and a = 0 this is beta calibration of the tempered
    forecasts.

    References
    ----------
    Berta, Holzmüller, Jordan and Bach, Structured matrix scaling for multi-class calibration,
    AISTATS 2026. Kull, Silva Filho and Flach, Beta calibration, AISTATS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import MatrixCalibrator
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.dirichlet([1.0, 1.0, 1.0], size=2000)
    >>> y = [rng.choice(3, p=p) for p in truth]
    >>> P = truth @ [[0.8, 0.2, 0], [0, 1, 0], [0, 0, 1]]     # some of class 0 is taken for 1
    >>> cal = MatrixCalibrator().fit(P, y)
    >>> cal.predict_proba([[0.4, 0.4, 0.2]]).round(2)         # the truth: 0.5, 0.3, 0.2
    array([[0.51, 0.31, 0.18]])
    """

    def __init__(
        self,
        *,
        structure: Literal["auto", "matrix", "vector"] = "auto",
        quadratic: bool = True,
        penalty: float | Literal["auto"] = "auto",
        floor: float | Literal["auto"] = "auto",
        pseudocount: float = 1.0,
    ) -> None:
        self.structure = structure
        self.quadratic = quadratic
        self.penalty = penalty
        self.floor = floor
        self.pseudocount = pseudocount

    def _fit(self, sample: Sample) -> None:
        check_option("structure", self.structure, ("auto", "matrix", "vector"))
        check_option("quadratic", self.quadratic, (True, False))
        if self.penalty != "auto":
            check_number("penalty", self.penalty, numbers.Real, minimum=1e-3)
        self.fit_temperature(sample)
        terms, unit = self._terms(sample.n_classes)
        penalty = unit if self.penalty == "auto" else unit * self.penalty
        theta = np.zeros(len(terms))
        some = draw_part(sample)
        for rows in (sample,) if some is sample else (some, sample):
            regression = Regression(terms, self.tempered(LogForecasts(rows.forecasts)), rows)
            if len(terms) > NEWTON_TERMS:
                theta = regression.descend(theta, penalty)
            else:
                learn = self.penalty == "auto"
                theta, penalty = regression.newton(theta, penalty, learn=learn)
        if not regression.converged:
            warn_unconverged(self)
        self._set(terms, theta, penalty / unit)

    def fit_part(self, sample: Sample, whole: Self) -> None:
        """Learn the map from some of the rows to which `whole` was fitted, with its penalties."""
        self.fit_part_temperature(sample, whole)
        terms, unit = self._terms(sample.n_classes)
        theta = terms.pack(whole.coef_ - terms.identity(), whole.quadratic_, whole.intercept_)
        regression = Regression(terms, self.tempered(LogForecasts(sample.forecasts)), sample)
        penalty = unit * whole.penalty_
        if len(terms) > NEWTON_TERMS:
            theta = regression.descend(theta, penalty)
        else:
            theta, _ = regression.newton(theta, penalty, learn=False, tolerance=PART_TOLERANCE)
        self._set(terms, theta, whole.penalty_)

    def _terms(self, n_classes: int) -> tuple[Terms, Floats]:
        """Terms of the regression, and the unit of their penalties."""
        full = self.structure == "matrix" or (
            self.structure == "auto" and n_classes <= MATRIX_CLASSES
        )
        unit = 2.0 * n_classes * np.array([1, 1, 1, n_classes - 1])
        return Terms(n_classes, full=full, quadratic=self.quadratic), unit

    def _set(self, terms: Terms, theta: Floats, penalty: Floats) -> None:
        """Set the fitted attributes."""
        coef, self.quadratic_, self.intercept_ = terms.unpack(theta)
        self.coef_ = coef + terms.identity()
        self.penalty_ = penalty
