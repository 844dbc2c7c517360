"""MatrixCalibrator: structured matrix scaling of log forecasts."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve
from scipy.optimize import minimize

from isoroc._backends import NUMPY
from isoroc._calibrators.base import Calibrator, FromMap
from isoroc._calibrators.descent import cholesky, warn_unconverged
from isoroc._calibrators.temperature import (
    draw_part,
    fit_tempering,
    log_softmax,
    of_own_class,
    temper_part,
)
from isoroc._input import Sample, check_number, check_option
from isoroc._maps import Forecasts, MatrixMap, TemperatureMap
from isoroc._maps.matrix import transform
from isoroc._persistence import states
from isoroc._simplex import Floats, Ints

#: structure="auto" is "vector" for more classes than this: a matrix for 100 has 10,000 entries.
MATRIX_CLASSES = 100
#: Up to this many terms the Hessian is formed and penalties are learned.
NEWTON_TERMS = 400
#: A fit to a part of the rows starts from that to all and ends with a Newton step that promises to
#: lower the loss by less than this per unit of weight: mostly the first.
PART_TOLERANCE = 1e-3
#: Kinds of terms; the penalties stand in this order.
BIAS, DIAGONAL, QUADRATIC, OFF_DIAGONAL = range(4)
#: Rows for which the Hessian is formed at a time.
CHUNK = 4096
#: Steps at most: of Newton's method, and of L-BFGS.
STEPS, DESCENT_STEPS = 100, 1000


class MatrixCalibrator(Calibrator):
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
    classes_, n_features_in_, scores_, summary_, map_, checksum
        As in `IdentityCalibrator`.
    floor_, temperature_, smoothing_ : float
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

    _state: ClassVar[dict[str, states.Check]] = {"penalty_": states.coefficients(4)}

    floor_, temperature_, smoothing_ = FromMap(), FromMap(), FromMap()
    coef_, quadratic_, intercept_ = FromMap(), FromMap(), FromMap()

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

    def _fit(self, sample: Sample) -> MatrixMap:
        check_option("structure", self.structure, ("auto", "matrix", "vector"))
        check_option("quadratic", self.quadratic, (True, False))
        if self.penalty != "auto":
            check_number("penalty", self.penalty, numbers.Real, minimum=1e-3)
        stage = fit_tempering(sample, self.floor, self.pseudocount)
        terms, unit = self._terms(sample.n_classes)
        penalty = unit if self.penalty == "auto" else unit * self.penalty
        theta = np.zeros(len(terms))
        some = draw_part(sample)
        for rows in (sample,) if some is sample else (some, sample):
            z = stage.log_tempered_rows(Forecasts(rows.forecasts, rows.kind))
            regression = Regression(terms, z, rows)
            if len(terms) > NEWTON_TERMS:
                theta = regression.descend(theta, penalty)
            else:
                learn = self.penalty == "auto"
                theta, penalty = regression.newton(theta, penalty, learn=learn)
        if not regression.converged:
            warn_unconverged(self)
        self.penalty_ = penalty / unit
        return _map_of(terms, theta, stage)

    def _fit_part(self, sample: Sample, whole: MatrixMap) -> MatrixMap:
        stage = temper_part(sample, whole, self.pseudocount)
        terms, unit = self._terms(sample.n_classes)
        theta = terms.pack(whole.coef - terms.identity(), whole.quadratic, whole.intercept)
        z = stage.log_tempered_rows(Forecasts(sample.forecasts, sample.kind))
        regression = Regression(terms, z, sample)
        penalty = unit * self.penalty_
        if len(terms) > NEWTON_TERMS:
            theta = regression.descend(theta, penalty)
        else:
            theta, _ = regression.newton(theta, penalty, learn=False, tolerance=PART_TOLERANCE)
        return _map_of(terms, theta, stage)

    def _terms(self, n_classes: int) -> tuple[Terms, Floats]:
        """Terms of the regression, and the unit of their penalties."""
        full = self.structure == "matrix" or (
            self.structure == "auto" and n_classes <= MATRIX_CLASSES
        )
        unit = 2.0 * n_classes * np.array([1, 1, 1, n_classes - 1])
        return Terms(n_classes, full=full, quadratic=self.quadratic), unit


def _map_of(terms: Terms, theta: Floats, stage: TemperatureMap) -> MatrixMap:
    coef, quadratic, intercept = terms.unpack(theta)
    coef = coef + terms.identity()
    return MatrixMap(**vars(stage), coef=coef, quadratic=quadratic, intercept=intercept)


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
        to, of = np.indices((K, K)).reshape(2, -1) if self.full else (each, each)
        kinds = [np.where(to == of, DIAGONAL, OFF_DIAGONAL), np.full(K, BIAS)]
        classes = [to, each]
        rows = [of, np.full(K, 2 * K)]
        if self.quadratic:
            kinds.insert(1, np.full(K, QUADRATIC))
            classes.insert(1, each)
            rows.insert(1, K + each)
        return np.concatenate(kinds), np.concatenate(classes), np.concatenate(rows)

    def unpack(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """What `transform` takes."""
        K = self.n_classes
        coef = theta[: K * K].reshape(K, K) if self.full else theta[:K]
        quadratic = theta[-2 * K : -K] / 4 if self.quadratic else np.zeros(K)
        return coef, quadratic, theta[-K:]

    def identity(self) -> Floats:
        """The `coef` that leaves log forecasts unchanged."""
        K = self.n_classes
        return np.eye(K) if self.full else np.ones(K)

    def pack(self, coef: Floats, quadratic: Floats, intercept: Floats) -> Floats:
        """The parameter vector that `unpack` takes apart."""
        squares = [4 * quadratic] if self.quadratic else []
        return np.concatenate([coef.ravel(), *squares, intercept])

    def features(self, z: Floats) -> Floats:
        """What the terms multiply, shape (2 K + 1, n): log forecasts, squares, one.

        Squares are divided by 4, so that they are of the size of log forecasts where it counts
        and one penalty suits both.
        """
        return np.concatenate([z, z**2 / 4, np.ones((1, z.shape[1]))])

    def correlate(self, residual: Floats, z: Floats) -> Floats:
        """Sum over the rows of each term's feature times the residual of its class."""
        coef = residual @ z.T if self.full else (residual * z).sum(axis=1)
        parts = [coef.ravel(), residual.sum(axis=1)]
        if self.quadratic:
            parts.insert(1, (residual * z**2).sum(axis=1) / 4)
        return np.concatenate(parts)


class Regression:
    """Minimise the loss of ``softmax(z + transform(z))`` plus a ridge penalty on each kind of term.

    The loss is ``-sum of weight * log likelihood + sum of penalty / 2 * theta**2``, and z are the
    tempered log forecasts, shape (K, n). `converged` says whether the last call of `newton` or
    `descend` reached the minimum.
    """

    def __init__(self, terms: Terms, z: Floats, sample: Sample) -> None:
        self.terms = terms
        self.kind, self.class_of, self.row = terms.places()
        self.z = z
        self.codes = sample.codes
        self.weights = sample.row_weights()
        self.total = float(self.weights.sum())
        self.converged = False

    def loss(self, theta: Floats, penalty: Floats) -> tuple[float, Floats]:
        """The loss, and the calibrated log forecasts, shape (K, n)."""
        log_q = log_softmax(self.z + transform(NUMPY, self.z.T, *self.terms.unpack(theta)).T)
        fit = self.weights @ of_own_class(log_q, self.codes)
        return float(penalty[self.kind] @ theta**2 / 2 - fit), log_q

    def gradient(self, theta: Floats, penalty: Floats, log_q: Floats) -> Floats:
        """Gradient of the loss."""
        residual = np.exp(log_q)
        residual[self.codes, np.arange(len(self.codes))] -= 1
        residual *= self.weights
        return np.asarray(self.terms.correlate(residual, self.z) + penalty[self.kind] * theta)

    def hessian(self, penalty: Floats, log_q: Floats) -> NDArray[np.float64]:
        """Hessian of the loss: feature times feature, weighted by the covariance of the label."""
        terms_of = [np.flatnonzero(self.class_of == k) for k in range(self.terms.n_classes)]
        H = np.diag(penalty[self.kind])
        for start in range(0, len(self.codes), CHUNK):
            rows = slice(start, start + CHUNK)
            X = self.terms.features(self.z[:, rows]) * np.sqrt(self.weights[rows])
            X = X[self.row]
            XQ = X * np.exp(log_q[:, rows])[self.class_of]
            H -= XQ @ XQ.T
            for own in terms_of:
                H[np.ix_(own, own)] += XQ[own] @ X[own].T
        # The softmax ignores a shift of all classes alike: only the penalty keeps H definite
        # there, and rounding must not undo that.
        H[np.diag_indices_from(H)] += 1e-13 * np.trace(H)
        return np.asarray(H)

    def newton(
        self, theta: Floats, penalty: Floats, *, learn: bool, tolerance: float = 1e-8
    ) -> tuple[Floats, Floats]:
        """Minimum by Newton's method with step halving, and the penalties.

        With `learn` these are learned on the way, as in MacKay's evidence framework: the penalty
        of a kind of terms becomes the inverse of their mean square, where a term counts by how far
        the data and not the penalty determine it. One term of the size that the given penalty
        expects is added, so that few terms do not run off.
        """
        given = penalty
        value, log_q = self.loss(theta, penalty)
        self.converged = False
        for _ in range(STEPS):
            gradient = self.gradient(theta, penalty, log_q)
            factor = cholesky(self.hessian(penalty, log_q)), True
            step = -cho_solve(factor, gradient)
            decrement = float(-gradient @ step)
            scale = 1.0
            there, log_q = self.loss(theta + step, penalty)
            while not there <= value - 1e-4 * scale * decrement + 1e-12 * abs(value):  # or NaN
                scale /= 2
                there, log_q = self.loss(theta + scale * step, penalty)
            theta, value = theta + scale * step, there
            if decrement <= tolerance * self.total and not learn:
                self.converged = True
                break
            if learn and decrement <= 1e-3 * self.total:
                learned = self._evidence(theta, penalty, given, factor)
                learn = bool(np.abs(np.log(learned / penalty)).max() > 0.05)
                penalty = learned
                value, log_q = self.loss(theta, penalty)
        return theta, penalty

    def _evidence(self, theta: Floats, penalty: Floats, given: Floats, factor: object) -> Floats:
        variance = np.diag(cho_solve(factor, np.eye(len(theta))))
        share = np.maximum(1 - penalty[self.kind] * variance, 0.0)  # but for rounding errors
        determined = np.bincount(self.kind, share, len(given))
        square = np.bincount(self.kind, theta**2, len(given))
        return np.asarray((determined + 1) / (square + 1 / given))

    def descend(self, theta: Floats, penalty: Floats) -> Floats:
        """Minimum by L-BFGS, for many terms."""

        def objective(theta: Floats) -> tuple[float, Floats]:
            value, log_q = self.loss(theta, penalty)
            gradient = self.gradient(theta, penalty, log_q)
            return value / self.total, gradient / self.total

        options = {"maxiter": DESCENT_STEPS}
        found = minimize(objective, theta, jac=True, method="L-BFGS-B", options=options)
        self.converged = bool(found.success)
        return np.asarray(found.x)
