"""MatrixCalibrator: structured matrix scaling of log forecasts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.linalg import block_diag

from isoroc._backends import NUMPY
from isoroc._calibrators.base import FromMap
from isoroc._calibrators.descent import DescentCalibrator, EvidenceLoss, Solution
from isoroc._calibrators.parts import FINE, FINE_ROWS, draw_part, gather
from isoroc._calibrators.precisions import Priors
from isoroc._calibrators.tempering import fit_tempering
from isoroc._core.smooth import softmax, softmax_loss
from isoroc._core.types import Floats, Ints
from isoroc._input import Sample, check_number, check_option, slices
from isoroc._maps import Forecasts, MatrixMap, TemperatureMap
from isoroc._maps.modelfile import checks
from isoroc._maps.scaling import transform

#: Above this many classes, structure="auto" is "vector", which forecasts better there.
MATRIX_CLASSES = 30


@dataclass(eq=False, repr=False, kw_only=True)
class MatrixCalibrator(DescentCalibrator):
    """Structured matrix scaling: softmax regression on the logarithms of the forecasts.

    After temperature scaling, the log forecast of each class is corrected, with a matrix that lets
    the forecast of one class act on another. Penalties shrink the correction to none. Without
    squares (``quadratic=False``) it is Dirichlet calibration, for two classes beta calibration.

    Parameters
    ----------
    structure : {"auto", "matrix", "vector"}, default="auto"
        Whether A is a full matrix or a diagonal. "auto" is a matrix up to 30 classes.
    quadratic : bool, default=True
        Whether there is a term a.
    penalty : float or "auto", default="auto"
        Strength of the penalties as a multiple of the ones in Berta et al. "auto" starts from 1
        and learns one for each kind of term by evidence, if there are few terms.
    floor, pseudocount
        As in `TemperatureCalibrator`, which is applied first. The pseudocount is 1 by default.

    Attributes
    ----------
    classes_, n_features_in_, unit_, summary_, map_, checksum
        As in `IdentityCalibrator`.
    floor_, temperature_, smoothing_ : float
        As in `TemperatureCalibrator`.
    coef_ : ndarray of shape (K, K) or (K,)
        A, or its diagonal.
    quadratic_ : ndarray of shape (K,)
        a.
    intercept_ : ndarray of shape (K,)
        b.
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

    floor_ = FromMap()
    temperature_ = FromMap()
    smoothing_ = FromMap()
    coef_ = FromMap()
    quadratic_ = FromMap()
    intercept_ = FromMap()

    def _solve(self, sample: Sample) -> tuple[MatrixLoss, Solution]:
        check_option("structure", self.structure, ("auto", "matrix", "vector"))
        check_option("quadratic", self.quadratic, (True, False))
        check_number("penalty", self.penalty, minimum=1e-3, others=("auto",))
        stage = fit_tempering(sample, self.floor, self.pseudocount)
        K = sample.n_classes
        few = self.structure == "auto" and K <= MATRIX_CLASSES
        terms = Terms(K, full=few or self.structure == "matrix", quadratic=self.quadratic)
        learn = self.penalty == "auto"
        # The entries of a group share its penalty. A row of A has K - 1 entries off the diagonal.
        unit = 2.0 * K * np.array([1, 1, 1, K - 1])
        penalty = unit * (1.0 if learn else float(self.penalty))
        priors = Priors(terms.sizes(), dict(zip(terms.sizes(), penalty, strict=True)))
        theta = np.zeros(len(terms))
        some = draw_part(sample)
        for rows in (sample,) if some is sample else (some, sample):
            loss = MatrixLoss(terms, stage, rows, priors)
            whole = loss.maximise(theta, learn=learn and loss.has_few_terms)
            theta = whole.theta
        self.penalty_ = priors.precisions / unit
        return loss, whole


@dataclass(frozen=True)
class Terms:
    """Terms of the regression: four groups, in the order in which they stand in theta."""

    n_classes: int
    full: bool  # whether log forecasts of one class act on the others
    quadratic: bool  # whether squares of log forecasts act on their own class

    def __len__(self) -> int:
        return sum(self.sizes().values())

    def sizes(self) -> dict[str, int]:
        """Number of terms of each group."""
        K = self.n_classes
        sizes = {"bias": K, "diagonal": K, "quadratic": K * self.quadratic}
        return sizes | {"off_diagonal": K * (K - 1) * self.full}

    def pairs(self) -> tuple[Ints, Ints]:
        """Places of the entries of the matrix that are not on its diagonal."""
        target, source = np.nonzero(~np.eye(self.n_classes, dtype=bool))
        return target[: len(target) * self.full], source[: len(source) * self.full]

    def unpack(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Arguments of `transform`, where theta is the distance from the identity."""
        ends = np.cumsum(list(self.sizes().values()))
        bias, diagonal, quadratic, others = np.split(theta, ends[:-1])
        coef = np.diag(1 + diagonal) if self.full else 1 + diagonal
        if self.full:
            coef[self.pairs()] = others
        return coef, quadratic / 4 if self.quadratic else np.zeros(self.n_classes), bias

    def features(self, z: Floats, factors: Floats) -> Floats:
        """Features of the terms of each class, times a factor of each row.

        They are one, log forecasts and squares over 4, in the order of `by_class`, and have the
        shape (K, terms of a class, n).
        """
        source = self.pairs()[1].reshape(self.n_classes, -1)
        n_own = 2 + self.quadratic
        X = np.empty((self.n_classes, n_own + source.shape[1], len(factors)))
        linear = z * factors
        X[:, 0] = factors
        X[:, 1] = linear
        if self.quadratic:
            X[:, 2] = linear * z / 4
        X[:, n_own:] = linear[source]
        return X

    def by_class(self) -> Ints:
        """Places of the terms in theta, first those that act on the first class, and so on."""
        each = np.arange(self.n_classes)
        of_class = [each, each, each][: 2 + self.quadratic]
        return np.argsort(np.concatenate([*of_class, self.pairs()[0]]), kind="stable")

    def correlate(self, residual: Floats, z: Floats, *, power: int = 1) -> Floats:
        """Sum over the rows of a power of each term's feature times the residual of its class."""
        linear = z if power == 1 else z**power
        parts = [residual.sum(axis=1), np.einsum("kn,kn->k", residual, linear)]
        if self.quadratic:
            parts.append(np.einsum("kn,kn->k", residual * linear, linear) / 4**power)
        if self.full:
            parts.append((residual @ linear.T)[self.pairs()])
        return np.concatenate(parts)


class MatrixLoss(EvidenceLoss):
    """Loss of ``softmax(transform(z))`` plus a ridge penalty on each group of terms."""

    near_steps = 5
    near_ftol = 2e-7
    rounds = 20
    by_row = ("z",)
    #: Largest numbers of terms, for a matrix and a vector, with a Hessian and learned penalties:
    #: a Hessian of more takes longer than the descent without it.
    newton_terms: ClassVar[tuple[int, int]] = (400, 90)

    def __init__(self, terms: Terms, stage: TemperatureMap, sample: Sample, priors: Priors) -> None:
        self.terms = terms
        self.stage = stage
        self.priors = priors
        self.has_few_terms = len(terms) <= self.newton_terms[not terms.full]
        self.tolerance = 1e-8 if self.has_few_terms else 3e-7
        z = stage.log_tempered_rows(Forecasts(sample.forecasts, sample.kind))
        codes = sample.codes
        weights = sample.row_weights()
        self.rows = np.arange(len(sample))
        if len(z) == 2:
            places = np.floor((z[1:] - z[:1]) / FINE)
            z, codes, weights = gather(z, codes, weights, places, least_rows=FINE_ROWS)
            self.rows = self.rows[: len(codes) * (len(codes) == len(sample))]
        self.z = z
        self.codes = codes.astype(np.intp)
        self.weights = weights

    def map_of(self, theta: Floats) -> MatrixMap:
        """The map with the parameters theta."""
        coef, quadratic, intercept = self.terms.unpack(theta)
        return MatrixMap(
            kind=self.stage.kind,
            floor=self.stage.floor,
            temperature=self.stage.temperature,
            smoothing=self.stage.smoothing,
            coef=coef,
            quadratic=quadratic,
            intercept=intercept,
        )

    def _scores(self, theta: Floats) -> Floats:
        """Scores whose softmax is the calibrated forecast, shape (K, n)."""
        z = transform(NUMPY, self.z.T, *self.terms.unpack(theta)).T
        return np.ascontiguousarray(z)

    def loss(self, theta: Floats) -> tuple[float, Floats]:
        """Penalised loss and its gradient."""
        residual = self._scores(theta)
        precision = self.priors.precision()
        value = softmax_loss(residual, self.codes, self.weights)  # its derivatives replace scores
        gradient = self.terms.correlate(residual, self.z) + precision * theta
        return value + float(precision @ theta**2) / 2, gradient

    def curvature(self, theta: Floats, chunk: int = 4096) -> Floats:
        """Hessian of the loss without its penalty, or its diagonal if there are many terms."""
        q = softmax(self._scores(theta))
        if not self.has_few_terms:
            return self.terms.correlate(self.weights * q * (1 - q), self.z, power=2)
        size = len(self.terms)
        K = len(q)
        blocks = np.zeros((K, size // K, size // K))  # a class with itself
        cross = np.zeros((size, size))
        for rows in slices(len(self.codes), chunk):
            X = self.terms.features(self.z[:, rows], np.sqrt(self.weights[rows]))
            XQ = X * q[:, None, rows]
            blocks += XQ @ X.transpose(0, 2, 1)
            every = XQ.reshape(size, -1)
            cross += every @ every.T
        H = np.empty_like(cross)
        places = self.terms.by_class()
        H[np.ix_(places, places)] = block_diag(*blocks) - cross
        # The softmax ignores a shift of all classes alike: only the penalty keeps H definite
        # there, and rounding must not undo that.
        H[np.diag_indices_from(H)] += 1e-13 * np.trace(H)
        return H
