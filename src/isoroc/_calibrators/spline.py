"""SplineCalibrator: piecewise linear maps of log odds plus structured matrix scaling."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from scipy.special import expit, log_expit

from isoroc._backends import NUMPY
from isoroc._calibrators.base import FromMap
from isoroc._calibrators.descent import (
    Arrow,
    ArrowFactor,
    DescentCalibrator,
    Factor,
    FittedRows,
    PenalisedLoss,
    Solution,
    factor_of,
)
from isoroc._calibrators.floors import smallest_forecast
from isoroc._calibrators.leave_one_out import (
    LeftOut,
    joint_changes,
    odds_changes,
    separate_changes,
    separate_leverages,
    with_changes,
)
from isoroc._calibrators.matrix import MATRIX_CLASSES
from isoroc._calibrators.parts import FINE, gather, part_size
from isoroc._calibrators.tempering import uniform_share
from isoroc._core.newton import logistic_regression
from isoroc._core.smooth import softmax, softmax_loss
from isoroc._core.types import Floats, Ints
from isoroc._input import Sample, check_number, slices
from isoroc._maps import SplineMap


@dataclass(eq=False, repr=False, kw_only=True)
class SplineCalibrator(DescentCalibrator):
    """Spline scaling: a piecewise linear map of each class's log odds plus matrix scaling.

    Most of the map is shared by all classes. Departures of a class from it, the influence of other
    classes and the intercepts are penalised, more strongly for more classes. For two classes, fits
    with 27 choices of normal priors are averaged, weighted by evidence.

    Parameters
    ----------
    n_knots : int, default=8
        Bends of the map, at quantiles of the distinct log odds.
    penalty : float or "auto", default="auto"
        Strength of the quadratic penalty on everything but the shared slope. "auto" is 1 for three
        classes and more, and averages fits with different priors for two.
    pseudocount : float, default=1.0
        Weight of the uniform forecast in every calibrated one, as in `TemperatureCalibrator`.

    Attributes
    ----------
    classes_, n_features_in_, unit_, summary_, map_, checksum
        As in `IdentityCalibrator`.
    floor_, smoothing_ : float
        As in `TemperatureCalibrator`.
    knots_, slopes_ : ndarray of shape (m,) and (K, m)
        Log odds at which the map bends, and change of slope of each class's map at each.
    coef_, intercept_ : ndarray of shape (K, K) and (K,)
        Influence of each log forecast (column) on each class (row), and constants.

    See Also
    --------
    MatrixCalibrator : The same without knots, with a quadratic term.
    IsotonicCalibrator : Step functions of each class.

    Notes
    -----
    With ``odds = log(p) - log(1 - p)``, the calibrated forecast is the softmax of::

        coef_ @ log(p) + sum over knots of slopes_[:, m] * max(odds - knots_[m], 0) + intercept_

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import SplineCalibrator
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> SplineCalibrator().fit(p, rng.random(2000) < p**2).predict_proba([0.5]).round(1)
    array([[0.8, 0.2]])
    """

    n_knots: int = 8
    penalty: float | Literal["auto"] = "auto"
    pseudocount: float = 1.0

    floor_ = FromMap()
    knots_ = FromMap()
    coef_ = FromMap()
    slopes_ = FromMap()
    intercept_ = FromMap()
    smoothing_ = FromMap()

    _shares: ClassVar[tuple[float, float]] = (3.0, 1.0)

    def _solve(self, sample: Sample) -> tuple[Any, Any]:
        check_number("n_knots", self.n_knots, int, minimum=0)
        check_number("penalty", self.penalty, minimum=0, others=("auto",))
        check_number("pseudocount", self.pseudocount, minimum=0)
        if self.penalty == "auto" and sample.n_classes == 2:
            averaged = AveragedSplines(sample, self.n_knots, self.pseudocount)
            return averaged, averaged.solve()
        penalty = 1.0 if self.penalty == "auto" else self.penalty
        loss = SplineLoss(sample, self.n_knots, penalty, self.pseudocount)
        return loss, loss.solve()


class SplineLoss(PenalisedLoss):
    """Penalised likelihood of the outcomes as a function of one vector theta.

    theta holds the shared coefficients (B,), each class's departures (K, B), intercepts (K,) and,
    up to 30 classes, a matrix (K, K) of the influence of others, whose diagonal stays zero. The
    likelihood is concave.
    """

    near_steps = 10
    rounds = 30
    by_row = ("features", "others")
    most_features = 20_000_000  # with more, some rows are drawn
    joint_classes = 6  # up to this number, leverages between classes count
    most_together = 20  # beyond it, number of rows that may be left out together
    chunk_numbers = 2**20  # in the arrays of the rows for which the curvature is formed at a time

    def __init__(self, sample: Sample, n_knots: int, penalty: float, pseudocount: float) -> None:
        K = sample.n_classes
        self.smoothing = uniform_share(sample, pseudocount)
        sample = self._draw(sample, self.most_features // (K * (1 + n_knots)))
        self.kind = sample.kind
        self.floor = smallest_forecast(sample)
        logs = sample.kind.log_rows(sample.forecasts, self.floor)
        odds = NUMPY.log_odds(logs.T).T
        self.knots = place_knots(odds, n_knots)
        B = 1 + len(self.knots)
        # Log forecast and hinges of each class and row, centred and scaled.
        features = self.features = np.empty((K, B, len(sample)))
        features[:, 0] = logs
        for b, knot in enumerate(self.knots, start=1):
            np.maximum(odds - knot, 0.0, out=features[:, b])
        share = self.weights / (K * self.weights.sum())
        self.centre = (features @ share).sum(axis=0)
        features -= self.centre[:, None]
        spread = np.sqrt(sum(of_class**2 @ share for of_class in features))
        self.scale = np.maximum(spread / 2, 1.0)  # so that the penalty means the same
        features /= self.scale[:, None]
        # Centred log forecasts, by which other classes act. Empty with many classes.
        self.others = (logs - logs.mean(axis=0))[: K if K <= MATRIX_CLASSES else 0]
        shared = np.ones(B)
        shared[0] = 0.0
        matrix = np.full(self.others.size and K * K, K * (K - 1))
        # Weight of the square of each entry of theta's distance from the start.
        self.strengths = penalty * np.concatenate([shared, np.full(K * B + K, K), matrix])

    def start(self) -> Floats:
        """The theta of the identity map."""
        theta = np.zeros(len(self.strengths))
        theta[0] = self.scale[0]
        return theta

    def _split(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Coefficients (K, B), intercepts (K,) and matrix (K, K)."""
        K, B, _ = self.features.shape
        coefs = theta[:B] + theta[B : B + K * B].reshape(K, B)
        end = B + K * B + K
        matrix = theta[end:].reshape(K, K) if len(self.others) else np.zeros((K, K))
        return coefs, theta[B + K * B : end], matrix

    def map_of(self, theta: Floats) -> SplineMap:
        """The map with the parameters theta."""
        coefs, intercept, matrix = self._split(theta)
        coefs = coefs / self.scale
        return SplineMap(
            kind=self.kind,
            floor=self.floor,
            knots=self.knots,
            # Others are centred in each row.
            coef=np.diag(coefs[:, 0]) + (matrix - matrix.mean(axis=1, keepdims=True)),
            slopes=coefs[:, 1:],
            intercept=intercept - coefs @ self.centre,
            smoothing=self.smoothing,
        )

    def _scores(self, theta: Floats) -> Floats:
        """Scores whose softmax is the calibrated forecast, shape (K, n)."""
        coefs, intercept, matrix = self._split(theta)
        z = np.matmul(coefs[:, None, :], self.features)[:, 0]
        z += intercept[:, None]
        if len(self.others):
            z += matrix @ self.others
        return np.asarray(z)

    def loss(self, theta: Floats) -> tuple[float, Floats]:
        """Penalised loss and its gradient."""
        residual = self._scores(theta)
        value = softmax_loss(residual, self.codes, self.weights)  # its derivatives replace scores
        away = theta - self.start()
        departures = np.matmul(self.features, residual[:, :, None])[..., 0]
        parts = [departures.sum(axis=0), departures.ravel(), residual.sum(axis=1)]
        if len(self.others):
            matrix = residual @ self.others.T
            np.fill_diagonal(matrix, 0.0)
            parts.append(matrix.ravel())
        gradient = np.concatenate(parts) + 2 * self.strengths * away
        return value + float(self.strengths @ away**2), gradient

    def factor(self, theta: Floats) -> Factor:
        """Curvature of the loss."""
        q = softmax(self._scores(theta))
        H: Any = self._hessian(q) if len(self.others) else self._arrow(q)
        # The shared slope has no penalty, and its curvature vanishes where forecasts are certain.
        size = np.trace(H if len(self.others) else H.shared)
        return factor_of(H, 2 * self.strengths + 1e-12 * (1 + size))

    def _hessian(self, q: Floats) -> Floats:
        """Hessian of the likelihood.

        Let u_k be all features that act on class k: its own, one and the logarithms of all. Then
        its blocks are the sums over the rows of ``weight (1[j = k] q_k - q_j q_k) u_j u_k'``. The
        derivative in the shared coefficients is the sum of those in the departures.
        """
        K, B, n = self.features.shape
        width = B + 1 + K
        blocks = np.zeros((K * width, K * width))
        for rows in slices(n, max(self.chunk_numbers // (K * width), 64)):
            share = q[:, rows]
            root = np.sqrt(self.weights[rows])
            U = np.ones((K, width, len(root)))  # what acts on each class
            U[:, :B] = self.features[..., rows]
            U[:, B + 1 :] = self.others[:, rows]
            U *= root
            V = (U * share[:, None]).reshape(K * width, -1)
            blocks -= V @ V.T
            for k in range(K):
                at = slice(k * width, (k + 1) * width)
                blocks[at, at] += U[k] @ V[at].T
        # In theta the departures of all classes come first, then intercepts, then the matrix.
        groups = np.split(np.arange(K * width).reshape(K, width), [B, B + 1], axis=1)
        order = np.concatenate([group.ravel() for group in groups])
        H = np.empty((B + K * width, B + K * width))
        H[B:, B:] = blocks[np.ix_(order, order)]
        H[:B, B:] = H[B : B + K * B, B:].reshape(K, B, -1).sum(axis=0)
        H[B:, :B] = H[:B, B:].T
        H[:B, :B] = H[:B, B : B + K * B].reshape(B, K, B).sum(axis=1)
        fixed = B + K * B + K + np.arange(K) * (K + 1)
        H[fixed] = H[:, fixed] = 0.0
        return H

    def _arrow(self, q: Floats) -> Arrow:
        """The same without the curvature between classes."""
        K, B, _ = self.features.shape
        index = self._class_index()
        blocks = np.empty((K, index.shape[1], index.shape[1]))
        for k, curvature in enumerate(self.weights * q * (1 - q)):
            U = self._acting(k)
            blocks[k] = (U * curvature) @ U.T
        return Arrow(blocks[:, :B, :B].sum(axis=0), blocks[..., :B], blocks, index)

    def leave_one_out(self, whole: Solution, left: LeftOut, Q: Floats) -> Floats | None:
        """As in `PenalisedLoss`, but beyond six classes without leverages between classes."""
        q = softmax(self._scores(whole.theta))
        if len(q) <= self.joint_classes:
            changes = self._joint_changes(q, whole.factor.inverse(), left)
        elif left.largest <= self.most_together:
            changes = self._separate_changes(q, whole.factor, left)
        else:
            return None
        return with_changes(Q, changes, self.smoothing)

    def _joint_changes(self, q: Floats, inverse: Floats, left: LeftOut) -> Floats:
        K, B, _ = self.features.shape
        index = self._class_index()
        changes = np.empty_like(q)
        for rows, size in left.parts(max(self.chunk_numbers // (K * len(inverse)), 64)):
            codes = self.codes[rows]
            J = np.empty((K, len(inverse), len(codes)))
            for k in range(K):
                of_class = inverse[:, index[k]]
                of_class[:, :B] += inverse[:, :B]  # departures have the features of shared terms
                J[k] = of_class @ self._acting(k, rows)
            changes[:, rows] = joint_changes(q[:, rows], codes, left.weights[rows], J, size)
        return changes

    def _separate_changes(self, q: Floats, factor: Factor, left: LeftOut) -> Floats:
        if not isinstance(factor, ArrowFactor):
            factor = ArrowFactor(self._arrow(q), 2 * self.strengths + 1e-12)
        K = len(q)
        changes = np.empty_like(q)
        for rows, size in left.parts(max(self.chunk_numbers // (K * left.largest), 64)):
            codes = self.codes[rows]
            leverage = np.empty((K, len(codes) // size, size, size))
            for k, features in enumerate(self.features):
                J = factor.of_rows(k, features[:, rows], self._acting(k, rows))
                leverage[k] = separate_leverages(J, size)
            changes[:, rows] = separate_changes(
                q[:, rows], codes, left.weights[rows], leverage, size
            )
        return changes

    def _acting(self, k: int, rows: slice | Ints = slice(None)) -> Floats:
        """Features of the parameters of class k, in the order of `_class_index`."""
        features = self.features[k][:, rows]
        others = self.others[:, rows].copy()
        others[k : k + 1] = 0.0  # the diagonal of the matrix stays zero
        return np.vstack([features, np.ones((1, features.shape[1])), others])

    def _class_index(self) -> Ints:
        """Places in theta of the departures, the intercept and the matrix row of each class."""
        K, B, _ = self.features.shape
        index = [B + np.arange(K * B).reshape(K, B), B + K * B + np.arange(K)[:, None]]
        if len(self.others):
            index.append(B + K * B + K + np.arange(K * K).reshape(K, K))
        return np.hstack(index)

    def solve(self) -> Solution:
        """The theta of the lowest loss. With many rows, a part of them gives the start."""
        n_rows = part_size(len(self.features))
        if len(self.codes) <= n_rows:
            return self.settle(self.start(), rounds=self.rounds, n_steps=10)
        near = self.part(n_rows).settle(self.start(), rounds=self.rounds, n_steps=10)
        ftol = 1e-12 if len(self.others) else 1e-7
        return self.settle_from(near, rounds=self.rounds, n_steps=10, near_ftol=ftol)


class Fits(NamedTuple):
    """The most probable theta for each choice of widths, shape (G, B), and its log evidence."""

    thetas: Floats
    evidence: Floats
    precision: Floats
    hessians: Floats  # shape (G, B, B)
    converged: bool = True

    @property
    def shares(self) -> Floats:
        """Share of each in the average, shape (G,)."""
        shares = np.exp(self.evidence - self.evidence.max())
        return np.asarray(shares / shares.sum())

    @property
    def theta(self) -> Floats:
        """The average, shape (B,)."""
        return np.asarray(self.shares @ self.thetas)


class AveragedSplines(FittedRows):
    """Two classes: posterior of theta under each choice of widths, given weights of the rows.

    A map adds ``features @ theta`` to the log odds z: a constant, z, and hinges that rise from
    their knots outwards, away from the median. The prior of theta is normal around 0, where nothing
    changes, with a width for each of the three kinds of entries. The most probable thetas are
    averaged, weighted by the evidence of their widths in Laplace's approximation (MacKay, 1992).
    """

    by_row = ("z", "outcome", "features")

    def __init__(
        self, sample: Sample, n_knots: int, pseudocount: float, *, most_rows: int = 200_000
    ) -> None:
        self.smoothing = uniform_share(sample, pseudocount)
        sample = self._draw(sample, most_rows)
        self.kind = sample.kind
        self.floor = smallest_forecast(sample)
        logs = sample.kind.log_rows(sample.forecasts, self.floor)
        z = logs[1] - logs[0]
        self.knots = place_knots(z, n_knots)
        self.side = np.where(self.knots >= np.median(distinct(z)), 1.0, -1.0)
        # Hinges are linear in cells that hold no knot.
        places = np.stack([np.floor(z / FINE), np.searchsorted(self.knots, z)])
        (z,), codes, self.weights = gather(z[None], self.codes, self.weights, places)
        if len(z) < len(self.codes):
            self.rows = np.empty(0, np.intp)
        self.z = z
        self.codes = codes
        self.outcome = codes.astype(np.float64)
        hinges = np.maximum(self.side[:, None] * (z - self.knots[:, None]), 0.0)
        self.features = np.vstack([np.ones_like(z), z, hinges])

    def map_of(self, theta: Floats) -> SplineMap:
        """The map with the parameters theta."""
        constant, slope, *hinges = theta
        left = np.array(hinges) * (self.side < 0)  # max(knot - z, 0) = max(z - knot, 0) - z + knot
        slope += 1 - left.sum()
        return SplineMap(
            kind=self.kind,
            floor=self.floor,
            knots=self.knots,
            coef=np.array([[0.0, 0.0], [-slope, slope]]),
            slopes=np.stack([np.zeros(len(hinges)), hinges]),
            intercept=np.array([0.0, constant + left @ self.knots]),
            smoothing=self.smoothing,
        )

    def solve(self) -> Fits:
        """The fits to all rows, for widths of the constant, the slope and the hinges."""
        # From "hardly anything changes" to "no prior to speak of". The evidence weighs all of them,
        # so the grid may be coarse.
        widths = np.array(list(product((0.15, 0.8, 3.0), (0.15, 0.6, 4.0), (0.03, 0.3, 1.0))))
        each = np.concatenate([widths[:, :2], np.repeat(widths[:, 2:], len(self.knots), axis=1)], 1)
        fits = self._fit(np.zeros_like(each), each**-2.0)
        kept = fits.shares >= 1e-3
        return Fits(
            fits.thetas[kept], fits.evidence[kept], fits.precision[kept], fits.hessians[kept]
        )

    def leave_one_out(self, whole: Fits, left: LeftOut, Q: Floats) -> Floats:
        """As in `PenalisedLoss`. Each choice of widths loses its evidence from what is left out."""
        roots = np.linalg.inv(np.linalg.cholesky(whole.hessians))
        changes = np.zeros((2, len(self.z)))
        for rows, size in left.parts(1000):  # so that arrays stay in the cache
            y = self.outcome[rows]
            removed = left.weights[rows]
            features = self.features[:, rows]
            odds = self.z[rows] + whole.thetas @ features
            without = odds + odds_changes(expit(odds), y, removed, roots @ features, size)
            lost = removed * log_expit(np.where(y > 0, without, -without))
            lost = lost.reshape(len(lost), -1, size).sum(axis=-1)
            logs = np.log(whole.shares)[:, None] - lost
            shares = np.repeat(softmax(np.ascontiguousarray(logs)), size, axis=1)
            changes[1, rows] = (shares * without).sum(axis=0) - whole.shares @ odds
        return with_changes(Q, changes, self.smoothing)

    def solve_near(self, whole: Fits) -> Floats:
        """The average of the fits, close to those under other weights of the rows."""
        return self._fit(whole.thetas, whole.precision).theta

    def _fit(self, start: Floats, precision: Floats) -> Fits:
        """Most probable thetas and the evidence of their widths."""
        thetas, losses, H = logistic_regression(
            self.features,
            self.outcome,
            self.weights,
            offset=self.z,
            start=start,
            precision=precision,
            least_gain=1e-3,
        )
        spread = np.log(precision).sum(axis=1) - np.linalg.slogdet(H)[1]
        return Fits(thetas, spread / 2 - losses, precision, H)


def place_knots(odds: Floats, n_knots: int) -> Floats:
    """Quantiles of the distinct log odds."""
    inner = np.linspace(0, 1, n_knots + 2)[1:-1]
    return np.unique(np.quantile(distinct(odds), inner))


def distinct(odds: Floats) -> Floats:
    """Sorted log odds without ties. Those that differ by rounding errors only count as tied."""
    ordered = np.unique(odds)
    apart = np.append(True, np.diff(ordered) > 1e-6)
    return np.asarray(ordered[apart])
