"""KernelCalibrator: matrix scaling plus a smooth map of all log forecasts together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.linalg import solve_triangular

from isoroc._backends import NUMPY
from isoroc._calibrators.base import FromMap
from isoroc._calibrators.descent import DescentCalibrator, EvidenceLoss, Factor, Solution
from isoroc._calibrators.leave_one_out import (
    LeftOut,
    joint_changes,
    score_changes,
    with_changes,
)
from isoroc._calibrators.matrix import MATRIX_CLASSES
from isoroc._calibrators.precisions import Priors
from isoroc._calibrators.tempering import fit_tempering
from isoroc._core.simplex import LEAST
from isoroc._core.smooth import N_KNOTS, softmax, softmax_loss
from isoroc._core.types import Floats, Ints
from isoroc._counts import by_content
from isoroc._input import Sample, check_number, slices
from isoroc._maps import Forecasts, KernelMap, TemperatureMap
from isoroc._maps.modelfile import checks
from isoroc._maps.scaling import Positions, trust


@dataclass(eq=False, repr=False, kw_only=True)
class KernelCalibrator(DescentCalibrator):
    """Kernel scaling: a smooth correction that depends on the forecasts of all classes together.

    It can learn, for example, that two classes are confused where a third is likely. Decisions
    change more often than with other calibrators.

    Parameters
    ----------
    n_centres : int, default=100
        Largest number of bumps. Their centres are forecasts of the calibration set.
    penalty : float or "auto", default="auto"
        Strength of the quadratic penalty. "auto" learns it by evidence.

    Attributes
    ----------
    classes_, n_features_in_, unit_, summary_, map_, checksum
        As in `IdentityCalibrator`.
    floor_, temperature_, smoothing_ : float
        As in `TemperatureCalibrator`.
    knots_, origin_, stretch_, centres_, weights_, coef_, intercept_, reach_
        The other numbers of `map_`: see Notes.
    penalty_ : float
        The penalty that was used.

    See Also
    --------
    MatrixCalibrator : The same without bumps, with a penalty for each kind of term.
    MonotoneCalibrator : Keeps the order of forecasts.

    Notes
    -----
    With the logarithms z of the tempered forecasts and their position x, which consists of z and of
    the rank of each log forecast, the calibrated forecast is the softmax of::

        z + t * (coef_ @ z + weights_ @ (1 / (1 + |x - centres_|**2 / 2)) + intercept_)

    The factor t is 1 near the centres and falls to 0 far from all of them.

    With more than 100,000 rows, the map is fitted to rows that are drawn with a fixed seed, so it
    depends on their order. `AutoCalibrator` adds rows up in cells first, where order has no effect.

    Examples
    --------
    >>> from isoroc import KernelCalibrator
    >>> P, y = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]], ["ant", "bee", "cat"]
    >>> KernelCalibrator().fit(P, y).predict([[0.5, 0.3, 0.2]])
    array(['ant'], dtype='<U3')
    """

    n_centres: int = 100
    penalty: float | Literal["auto"] = "auto"

    _shares: ClassVar[tuple[float, float]] = (0.5, 2.0)
    # Forecasts of many classes take as long as those of all other members together.
    _least_weights: ClassVar[tuple[float, float]] = (0.01, 0.02)
    _sorted_rows: ClassVar[int] = 100_000
    _state: ClassVar[dict[str, checks.Check]] = {"penalty_": checks.number(most=1e100)}

    floor_ = FromMap()
    temperature_ = FromMap()
    smoothing_ = FromMap()
    knots_ = FromMap()
    origin_ = FromMap()
    stretch_ = FromMap()
    centres_ = FromMap()
    weights_ = FromMap()
    coef_ = FromMap()
    intercept_ = FromMap()
    reach_ = FromMap()

    def _fit(self, sample: Sample) -> Any:
        # Rounding depends on the order of the rows. Sorting many would take longer than the fit.
        return super()._fit(by_content(sample) if len(sample) <= self._sorted_rows else sample)

    def _solve(self, sample: Sample) -> tuple[KernelLoss, Solution]:
        check_number("n_centres", self.n_centres, int, minimum=1)
        check_number("penalty", self.penalty, minimum=1e-3, others=("auto",))
        stage = fit_tempering(sample, "auto", 1.0)
        learn = self.penalty == "auto"
        loss = KernelLoss(sample, stage, self.n_centres, 1.0 if learn else float(self.penalty))
        solution = loss.maximise(np.zeros(loss.n_parameters), learn=learn)
        self.penalty_ = float(loss.priors.precisions[0])
        return loss, solution


def measure(z: Floats, logs: Floats, share: Floats, width: float = 0.5) -> tuple[Positions, Floats]:
    """What positions are, and those of the rows, shape (2 K, n).

    They come from log forecasts of shape (K, n), tempered and plain, and the share of each row.
    `width` is the width of a bump as a multiple of the spread. Gaps and spreads count as at least
    0.01, so that rounding errors are not stretched.
    """
    # A sum of shares may be off by rounding errors.
    levels = np.maximum(np.linspace(0, 1, N_KNOTS) - 1e-9, 0.0)
    knots = np.quantile(logs, levels, axis=1, weights=share, method="inverted_cdf").T
    gaps = 0.01 * np.arange(N_KNOTS)
    knots = np.maximum.accumulate(knots - gaps, axis=1) + gaps
    plain = Positions(knots=knots, origin=np.zeros((2, len(z))), stretch=np.ones(2))
    x = plain.of(NUMPY, z.T, logs.T).T
    origin = x @ share
    x = x - origin[:, None]
    spread = np.sqrt((x**2 @ share).reshape(2, -1).sum(axis=1))
    stretch = 1 / (2**0.5 * width * np.maximum(spread, 0.01))
    x *= stretch.repeat(len(z))[:, None]
    positions = Positions(knots=knots, origin=origin.reshape(2, -1), stretch=stretch)
    return positions, np.ascontiguousarray(x)


class KernelLoss(EvidenceLoss):
    """Penalised likelihood of the outcomes as a function of theta, (K, M) numbers.

    The log forecasts of class k are ``z[k] + theta[k] @ features``, up to a constant of each row.
    Features are principal components of the inputs, so the curvature is nearly diagonal.
    """

    near_steps = 8
    rounds = 20
    tolerance = 3e-5
    n_learning = 4
    least_change = 0.2
    relaxation = 0.1  # a tenth of the penalty of the largest evidence forecasts better
    settle_steps = 60
    settle_ftol = 1e-5
    by_row = ("z", "features")
    most_features = 10_000_000  # with more, some rows are drawn
    centre_rows = 4000  # rows among which centres are chosen
    row_share = 20  # rows per feature from which leverages of features may be separate

    def __init__(
        self, sample: Sample, stage: TemperatureMap, n_centres: int, penalty: float
    ) -> None:
        self.stage = stage
        sample = self._draw(sample, max(self.centre_rows, self.most_features // n_centres))
        weights = sample.row_weights()
        z = stage.log_tempered_rows(Forecasts(sample.forecasts, sample.kind))
        logs = sample.kind.log_rows(sample.forecasts, LEAST)
        self.positions, x = measure(z, logs, weights / weights.sum())
        rows = sample.drawn_rows(self.centre_rows)
        some = x[:, rows]
        self.centres = some[:, choose_centres(some, n_centres)].T
        heights = bumps(self.centres, x)
        self.reach = choose_reach(heights, weights)
        inputs = np.concatenate([heights, x[: len(z)], np.ones((1, x.shape[1]))])
        inputs *= trust(NUMPY, heights.T, self.reach).T
        whiten = whitening(self.centres, n_others=len(z) + 1)
        self.z = z
        white = whiten @ inputs[:, rows]
        q = np.exp(z[:, rows])
        uncertainty = self.weights[rows] * (q * (1 - q)).sum(axis=0)
        _, rotation = np.linalg.eigh((white * uncertainty) @ white.T)
        self.basis = rotation.T @ whiten
        self.features = self.basis @ inputs
        if len(z) > MATRIX_CLASSES:  # products take nearly all the time of the fit
            self.features = self.features.astype(np.float32)
            self.learning_ftol = 1e-3
        self.n_parameters = len(z) * len(self.features)
        sizes = {"all": self.n_parameters}
        self.priors = Priors(sizes, {"all": penalty}, most_change=np.inf)

    def map_of(self, theta: Floats) -> KernelMap:
        """The map with the parameters theta."""
        positions = self.positions
        K = len(self.z)
        joint = theta.reshape(K, -1) @ self.basis
        weights, coef, intercept = np.split(joint, [len(self.centres), -1], axis=1)
        coef = positions.stretch[0] * coef
        return KernelMap(
            kind=self.stage.kind,
            floor=self.stage.floor,
            temperature=self.stage.temperature,
            smoothing=self.stage.smoothing,
            knots=positions.knots,
            origin=positions.origin,
            stretch=positions.stretch,
            centres=self.centres.reshape(len(self.centres), 2, K),
            weights=weights,
            coef=coef - coef.mean(axis=1, keepdims=True),  # z is centred in each row
            intercept=intercept[:, 0] - coef @ positions.origin[0],
            reach=self.reach,
        )

    def loss(self, theta: Floats) -> tuple[float, Floats]:
        """Penalised loss and its gradient."""
        (penalty,) = self.priors.precisions
        value = float(penalty / 2 * (theta**2).sum())
        gradient = penalty * theta
        by_class = gradient.reshape(len(self.z), -1)
        for rows, z in self._scores(theta):
            value += softmax_loss(z, self.codes[rows], self.weights[rows])
            by_class += self._rounded(z) @ self.features[:, rows].T  # derivatives have replaced z
        return value, gradient

    def curvature(self, theta: Floats) -> Floats:
        """Diagonal of the Hessian of the loss without its penalty."""
        H = np.zeros((len(self.z), len(self.features)))
        for rows, z in self._scores(theta):
            q = softmax(z)
            curvature = self._rounded(self.weights[rows] * q * (1 - q))
            H += curvature @ (self.features[:, rows] ** 2).T
        return H.ravel()

    def _scores(self, theta: Floats) -> Iterator[tuple[slice, Floats]]:
        """Log forecasts, up to a constant of each row, for parts of the rows that fit the cache."""
        by_class = self._rounded(theta.reshape(len(self.z), -1))
        for rows in slices(len(self.codes), 1000):
            yield rows, by_class @ self.features[:, rows] + self.z[:, rows]

    def _rounded(self, values: Floats) -> Any:
        """Numbers in the precision of the features."""
        return values.astype(self.features.dtype, copy=False)

    def leave_one_out(self, whole: Solution, left: LeftOut, Q: Floats) -> Floats | None:
        """As in `PenalisedLoss`, for two classes.

        With many rows without clusters, features count as uncorrelated. With more classes, the
        curvature between all parameters would be needed, and folds cost less.
        """
        if len(self.z) > 2:
            return None
        q = np.empty_like(self.z)
        for rows, z in self._scores(whole.theta):
            q[:, rows] = softmax(z)
        many = len(self.codes) >= self.row_share * len(self.features)
        separate = many and left.clusters is None
        changes = self._separate_changes(q, left) if separate else self._joint_changes(q, left)
        return with_changes(Q, changes)

    def _curvatures(self, q: Floats) -> Iterator[tuple[int, int, Floats]]:
        """Each pair of classes, and the curvature of each row between their scores."""
        for k, j in np.ndindex(len(q), len(q)):
            yield k, j, self.weights * q[k] * ((k == j) - q[j])

    def _separate_changes(self, q: Floats, left: LeftOut) -> Floats:
        """Changes of scores, shape (K, n), by single rows if features are uncorrelated."""
        K = len(q)
        squares = self.features**2
        H = np.zeros((len(squares), K, K))
        for k, j, curvature in self._curvatures(q):
            H[:, k, j] = squares @ curvature
        inverse = np.linalg.inv(H + self.priors.precisions[0] * np.eye(K)).reshape(len(squares), -1)
        changes = np.empty_like(q)
        for rows, _ in left.parts(max(2**20 // K**2, 64)):
            leverage = (squares[:, rows].T @ inverse).reshape(-1, K, K)
            removed = left.weights[rows]
            changes[:, rows] = score_changes(q[:, rows], self.codes[rows], removed, leverage)
        return changes

    def _joint_changes(self, q: Floats, left: LeftOut) -> Floats:
        """Changes of scores, shape (K, n)."""
        K = len(q)
        M = len(self.features)
        H = np.empty((K, M, K, M))
        for k, j, curvature in self._curvatures(q):
            H[k, :, j] = (self.features * curvature) @ self.features.T
        inverse = Factor(H.reshape(K * M, -1), self.priors.precision()).inverse()
        changes = np.empty_like(q)
        for rows, size in left.parts(max(2**20 // (K * K * M), 64)):
            features = self.features[:, rows]
            J = np.stack([inverse[:, k * M : (k + 1) * M] @ features for k in range(K)])
            removed = left.weights[rows]
            changes[:, rows] = joint_changes(q[:, rows], self.codes[rows], removed, J, size)
        return changes


def bumps(centres: Floats, x: Floats) -> Floats:
    """Rational quadratic kernel of centres, shape (m, D), and positions x, shape (D, n)."""
    return np.asarray(NUMPY.cauchy_kernel(x.T, centres).T)


def choose_centres(x: Floats, n_centres: int) -> Ints:
    """Rows whose bumps explain the others well: pivots of an incomplete Cholesky factor."""
    n = x.shape[1]
    L = np.empty((n_centres, n))
    left = np.ones(n)
    pivots: list[int] = []
    half_squares = (x**2).sum(axis=0) / 2
    pivot = _first_largest(-half_squares)
    while len(pivots) < n_centres and left[pivot] > 1e-4:
        i = len(pivots)
        distances = half_squares + half_squares[pivot] - x[:, pivot] @ x  # squared, over 2
        L[i] = 1 / (1 + np.maximum(distances, 0.0)) - L[:i, pivot] @ L[:i]
        L[i] /= np.sqrt(left[pivot])
        left -= L[i] ** 2
        pivots.append(pivot)
        left[pivots] = 0.0
        pivot = _first_largest(left)
    return np.array(pivots)


def _first_largest(values: Floats) -> int:
    """Number of the largest value, the first of those that differ by rounding errors only."""
    return int((values >= values.max() - 1e-7).argmax())


def choose_reach(heights: Floats, weights: Floats) -> float:
    """Height that bumps of other rows' centres, shape (m, n), reach at 80 % of the rows.

    At least 0.05: with a lower reach, rows that are far from all centres would still be moved.
    """
    others = np.where(heights < 1 - 1e-12, heights, 0.0).max(axis=0)
    reached = float(np.quantile(others, 0.2, weights=weights, method="inverted_cdf"))
    return max(reached, 0.05)


def whitening(centres: Floats, n_others: int) -> Floats:
    """Matrix that makes bumps uncorrelated under their kernel and leaves other inputs unchanged."""
    m = len(centres)
    # Centres may nearly coincide. The jitter keeps the matrix positive definite.
    L = np.linalg.cholesky(bumps(centres, centres.T) + 1e-10 * np.eye(m))
    whiten = np.eye(m + n_others)
    whiten[:m, :m] = solve_triangular(L, np.eye(m), lower=True)
    return whiten
