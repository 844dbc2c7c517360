"""MatrixCalibrator: structured matrix scaling of log forecasts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.linalg import cho_solve

from isoroc._backends import NUMPY
from isoroc._calibrators.base import FromMap
from isoroc._calibrators.descent import (
    DescentCalibrator,
    Factor,
    PenalisedLoss,
    Solution,
    cholesky,
    larger_evidence,
)
from isoroc._calibrators.temperature import draw_part, fit_tempering, softmax_losses
from isoroc._core.types import Floats, Ints
from isoroc._input import Sample, check_number, check_option, slices
from isoroc._maps import Forecasts, MatrixMap, TemperatureMap
from isoroc._maps.modelfile import checks
from isoroc._maps.scaling import transform

#: Above this many classes, structure="auto" is "vector", which forecasts better there.
MATRIX_CLASSES = 30
#: Kinds of terms, in the order of the penalties.
BIAS, DIAGONAL, QUADRATIC, OFF_DIAGONAL = range(4)


@dataclass(eq=False, repr=False, kw_only=True)
class MatrixCalibrator(DescentCalibrator):
    """Structured matrix scaling: softmax regression on the logarithms of the forecasts.

    After temperature scaling, the log forecast of each class is corrected, with a matrix that lets
    the forecast of one class act on another. Penalties shrink the correction to none. Without
    squares (``quadratic=False``) it is Dirichlet calibration, for two classes beta calibration.

    Parameters
    ----------
    structure : {"auto", "matrix", "vector"}, default="auto"
        Whether A is a full matrix or a diagonal; "auto" is a matrix up to 30 classes.
    quadratic : bool, default=True
        Whether there is a term a.
    penalty : float or "auto", default="auto"
        Strength of the penalties as a multiple of those of Berta et al. "auto" starts from 1 and
        learns one for each kind of term by evidence, if there are few terms.
    floor, pseudocount
        As in `TemperatureCalibrator`, which is applied first; the pseudocount is 1 by default.

    Attributes
    ----------
    classes_, n_features_in_, unit_, summary_, map_, checksum
        As in `IdentityCalibrator`.
    floor_, temperature_, smoothing_ : float
        As in `TemperatureCalibrator`.
    coef_ : ndarray of shape (K, K) or (K,)
        A, or its diagonal.
    quadratic_, intercept_ : ndarray of shape (K,)
        a and b.
    penalty_ : ndarray of shape (4,)
        Multiples for b, the diagonal of A, a, and the other entries of A.

    See Also
    --------
    TemperatureCalibrator : One parameter for all classes.
    SplineCalibrator : Adds bends to the map of each class.
    KernelCalibrator : Adds terms that depend on several classes at once.

    Notes
    -----
    With the logarithms z of the tempered forecasts, the calibrated forecast is
    ``softmax(A z + a z**2 + b)``. Ridge penalties shrink A to the identity, a and b to 0 (Berta,
    Holzmüller, Jordan and Bach, AISTATS 2026).

    Examples
    --------
    >>> from isoroc import MatrixCalibrator
    >>> P, y = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]], ["ant", "bee", "cat"]
    >>> MatrixCalibrator().fit(P, y).predict([[0.5, 0.3, 0.2]])
    array(['ant'], dtype='<U3')
    """

    structure: Literal["auto", "matrix", "vector"] = "auto"
    quadratic: bool = True
    penalty: float | Literal["auto"] = "auto"
    floor: float | Literal["auto"] = "auto"
    pseudocount: float = 1.0

    _shares: ClassVar[tuple[float, float]] = (1.0, 4.0)
    _state: ClassVar[dict[str, checks.Check]] = {"penalty_": checks.coefficients(4)}

    floor_, temperature_, smoothing_ = FromMap(), FromMap(), FromMap()
    coef_, quadratic_, intercept_ = FromMap(), FromMap(), FromMap()

    def _solve(self, sample: Sample) -> tuple[Regression, Solution]:
        check_option("structure", self.structure, ("auto", "matrix", "vector"))
        check_option("quadratic", self.quadratic, (True, False))
        check_number("penalty", self.penalty, minimum=1e-3, others=("auto",))
        stage, K = fit_tempering(sample, self.floor, self.pseudocount), sample.n_classes
        few = self.structure == "auto" and K <= MATRIX_CLASSES
        terms = Terms(K, full=few or self.structure == "matrix", quadratic=self.quadratic)
        learn, unit = self.penalty == "auto", 2.0 * K * np.array([1, 1, 1, K - 1])
        theta, penalty = np.zeros(len(terms)), unit * (1.0 if learn else float(self.penalty))
        some = draw_part(sample)
        for rows in (sample,) if some is sample else (some, sample):
            regression = Regression(terms, stage, rows, penalty)
            whole = regression.solve(theta, learn=learn)
            theta, penalty = whole.theta, regression.penalty
        self.penalty_ = penalty / unit
        return regression, whole


@dataclass(frozen=True)
class Terms:
    """Which terms the regression has, and where each stands in the parameter vector."""

    n_classes: int
    full: bool  # whether log forecasts of one class act on the others
    quadratic: bool  # whether squares of log forecasts act on their own class

    def __len__(self) -> int:
        return len(self.places()[0])

    def places(self) -> tuple[Ints, Ints, Ints]:
        """Kind of each term, the class that it acts on, and its row in `features`."""
        K = self.n_classes
        each = np.arange(K)
        target, source = np.indices((K, K)).reshape(2, -1) if self.full else (each, each)
        kinds = [np.where(target == source, DIAGONAL, OFF_DIAGONAL), np.full(K, BIAS)]
        classes = [target, each]
        rows = [source, np.full(K, 2 * K)]
        if self.quadratic:
            kinds.insert(1, np.full(K, QUADRATIC))
            classes.insert(1, each)
            rows.insert(1, K + each)
        return np.concatenate(kinds), np.concatenate(classes), np.concatenate(rows)

    def unpack(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """What `transform` takes: theta is the distance from the identity."""
        K = self.n_classes
        coef = np.eye(K) + theta[: K * K].reshape(K, K) if self.full else 1 + theta[:K]
        quadratic = theta[-2 * K : -K] / 4 if self.quadratic else np.zeros(K)
        return coef, quadratic, theta[-K:]

    def features(self, z: Floats) -> Floats:
        """What the terms multiply, shape (2 K + 1, n): log forecasts, squares over 4, one."""
        return np.concatenate([z, z**2 / 4, np.ones((1, z.shape[1]))])

    def correlate(self, residual: Floats, z: Floats, *, power: int = 1) -> Floats:
        """Sum over the rows of a power of each term's feature times the residual of its class."""
        linear = z if power == 1 else z**power
        coef = residual @ linear.T if self.full else np.einsum("kn,kn->k", residual, linear)
        parts = [coef.ravel(), residual.sum(axis=1)]
        if self.quadratic:
            parts.insert(1, np.einsum("kn,kn->k", residual * linear, linear) / 4**power)
        return np.concatenate(parts)


class Regression(PenalisedLoss):
    """Minimise the loss of ``softmax(transform(z))`` plus a ridge penalty on each kind of term."""

    near_steps, near_ftol, rounds, by_row = 5, 2e-7, 20, ("z",)
    tolerance = 3e-7
    #: Largest numbers of terms, for a matrix and a vector, with a Hessian and learned penalties.
    newton_terms: ClassVar[tuple[int, int]] = (400, 90)
    newton_steps = 100

    def __init__(
        self, terms: Terms, stage: TemperatureMap, sample: Sample, penalty: Floats
    ) -> None:
        self.terms, self.stage, self.penalty = terms, stage, penalty
        self.kind, self.class_of, self.row = terms.places()
        self.z = stage.log_tempered_rows(Forecasts(sample.forecasts, sample.kind))
        self.codes, self.rows = sample.codes, np.arange(len(sample))
        self.weights = sample.row_weights()

    def map_of(self, theta: Floats) -> MatrixMap:
        """The map with the parameters theta."""
        coef, quadratic, intercept = self.terms.unpack(theta)
        return MatrixMap(**vars(self.stage), coef=coef, quadratic=quadratic, intercept=intercept)

    def solve(self, start: Floats, *, learn: bool) -> Solution:
        """The minimum; with `learn`, penalties are learned by evidence if there are few terms."""
        if len(self.kind) <= self.newton_terms[not self.terms.full]:
            return self.newton(start, learn=learn)
        return self.settle(start, rounds=self.rounds, n_steps=25, ftol=self.near_ftol)

    def solve_near(self, whole: Solution) -> Floats:
        if whole.factor is None:  # mostly the first step is enough
            return self.newton(whole.theta, tolerance=1e-3).theta
        return super().solve_near(whole)

    def value(self, theta: Floats) -> tuple[float, Floats]:
        """The loss, and the calibrated forecasts, shape (K, n)."""
        z = transform(NUMPY, self.z.T, *self.terms.unpack(theta)).T
        losses, q = softmax_losses(np.ascontiguousarray(z), self.codes)
        return float(self.penalty[self.kind] @ theta**2 / 2 + self.weights @ losses), q

    def gradient(self, theta: Floats, q: Floats) -> Floats:
        """Gradient of the loss, given the calibrated forecasts."""
        residual = self.weights * q
        residual[self.codes, np.arange(len(self.codes))] -= self.weights
        return self.terms.correlate(residual, self.z) + self.penalty[self.kind] * theta

    def loss(self, theta: Floats) -> tuple[float, Floats]:
        """The loss and its gradient."""
        value, q = self.value(theta)
        return value, self.gradient(theta, q)

    def factor(self, theta: Floats) -> Factor:
        """Diagonal of the curvature."""
        _, q = self.value(theta)
        H = self.terms.correlate(self.weights * q * (1 - q), self.z, power=2)
        return Factor(H, self.penalty[self.kind])

    def hessian(self, q: Floats, chunk: int = 4096) -> Floats:
        """Hessian of the loss: feature times feature, weighted by the covariance of the label."""
        terms_of = [np.flatnonzero(self.class_of == k) for k in range(self.terms.n_classes)]
        H = np.diag(self.penalty[self.kind])
        for rows in slices(len(self.codes), chunk):
            X = self.terms.features(self.z[:, rows]) * np.sqrt(self.weights[rows])
            X = X[self.row]
            XQ = X * q[:, rows][self.class_of]
            H -= XQ @ XQ.T
            for terms in terms_of:
                H[np.ix_(terms, terms)] += XQ[terms] @ X[terms].T
        # The softmax ignores a shift of all classes alike: only the penalty keeps H definite
        # there, and rounding must not undo that.
        H[np.diag_indices_from(H)] += 1e-13 * np.trace(H)
        return np.asarray(H)

    def newton(self, theta: Floats, *, learn: bool = False, tolerance: float = 1e-8) -> Solution:
        """Minimum by Newton's method with step halving; with `learn`, penalties are learned.

        The last step promises to lower the loss by at most `tolerance` per unit of weight.
        """
        given = self.penalty
        value, q = self.value(theta)
        for _ in range(self.newton_steps):
            gradient = self.gradient(theta, q)
            factor = cholesky(self.hessian(q)), True
            step = -cho_solve(factor, gradient)
            decrement = float(-gradient @ step)
            scale = 1.0
            trial, q = self.value(theta + step)
            while not trial <= value - 1e-4 * scale * decrement + 1e-12 * abs(value):  # or NaN
                scale /= 2
                trial, q = self.value(theta + scale * step)
            theta, value = theta + scale * step, trial
            if decrement <= tolerance * self.total and not learn:
                return Solution(theta, None, converged=True)
            if learn and decrement <= 1e-3 * self.total:
                variance = np.diag(cho_solve(factor, np.eye(len(theta))))
                learned = larger_evidence(self.kind, theta, self.penalty, variance, given)
                learn = bool(np.abs(np.log(learned / self.penalty)).max() > 0.05)
                self.penalty = learned
                value, q = self.value(theta)
        return Solution(theta, None, converged=False)
