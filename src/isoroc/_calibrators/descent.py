"""Penalised losses, minimised by L-BFGS in coordinates in which the curvature is the identity."""

import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from copy import copy
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dtrtri
from sklearn.exceptions import ConvergenceWarning

from isoroc._calibrators.base import Calibrator
from isoroc._calibrators.leave_one_out import LeftOut, left_out
from isoroc._calibrators.precisions import Priors
from isoroc._core.types import Floats, Ints
from isoroc._input import Sample


class Factor:
    """Cholesky factor C of the curvature ``C C'`` of a loss (H, or its diagonal) plus a penalty."""

    def __init__(self, H: Floats, precision: Floats) -> None:
        dense = H.ndim == 2
        self._root = cholesky(H + np.diag(precision)) if dense else np.sqrt(H + precision)

    @property
    def is_diagonal(self) -> bool:
        """Whether only the diagonal of the curvature is known."""
        return self._root.ndim == 1

    def variances(self) -> Floats:
        """Diagonal of the inverse of the curvature."""
        if self.is_diagonal:
            return np.asarray(1 / self._root**2)
        inverse = self.inverse()
        return np.asarray(np.einsum("ij,ij->j", inverse, inverse))

    def inverse(self) -> Floats:
        """The inverse of C, or its diagonal."""
        if self.is_diagonal:
            return np.asarray(1 / self._root)
        return np.asarray(dtrtri(self._root.T, lower=0)[0].T)

    def step(self, steps: Floats) -> Floats:
        """Change of theta for steps in coordinates in which the curvature is the identity."""
        return self._divide(steps, trans=1)

    def gradient(self, gradient: Floats) -> Floats:
        """Gradient in these coordinates."""
        return self._divide(gradient, trans=0)

    def _divide(self, values: Floats, *, trans: int) -> Floats:
        if self.is_diagonal:
            return np.asarray((values.T / self._root).T)
        return np.asarray(
            solve_triangular(self._root, values, lower=True, trans=trans, check_finite=False)
        )

    def gain(self, gradient: Floats) -> float:
        """Decrease that a Newton step promises: half the squared length of the gradient."""
        return float((self.gradient(gradient) ** 2).sum()) / 2


class Arrow(NamedTuple):
    """A curvature without the entries between parameters of different classes."""

    shared: Floats  # of the parameters that all classes share, which come first, shape (S, S)
    arms: Floats  # between the parameters of each class and the shared ones, shape (K, w, S)
    blocks: Floats  # of the parameters of each class, shape (K, w, w)
    positions: Ints  # places of the parameters of each class in theta, shape (K, w)


class ArrowFactor(Factor):
    """Factor of an `Arrow`: the inverse of C, without the zeros between classes."""

    def __init__(self, H: Arrow, precision: Floats) -> None:
        self._index = H.positions
        self._S = len(H.shared)
        blocks = H.blocks + precision[H.positions][..., None] * np.eye(H.positions.shape[1])
        self._roots = np.linalg.inv(np.linalg.cholesky(blocks))
        arms = self._roots @ H.arms
        # Classes may take more than all of the shared curvature, because the curvature between
        # them is neglected. Then their arms are shortened.
        root = np.linalg.inv(cholesky(H.shared + np.diag(precision[: self._S])))
        taken = root @ np.tensordot(arms, arms, axes=((0, 1), (0, 1))) @ root.T
        kept = min(1.0, 0.99 / max(np.linalg.eigvalsh(taken)[-1], 1e-300))
        self._arms = arms * np.sqrt(kept)
        self._root = np.linalg.inv(cholesky(np.eye(self._S) - kept * taken)) @ root

    def variances(self) -> Floats:
        through = self._roots.transpose(0, 2, 1) @ (self._arms @ self._root.T)
        of_classes = (self._roots**2).sum(axis=1) + (through**2).sum(axis=2)
        return self._join((self._root**2).sum(axis=0), of_classes)

    def step(self, steps: Floats) -> Floats:
        shared = self._root.T @ steps[: self._S]
        rest = steps[self._index] - self._arms @ shared
        return self._join(shared, (rest[:, None] @ self._roots)[:, 0])

    def gradient(self, gradient: Floats) -> Floats:
        columns = gradient.reshape(len(gradient), -1)
        of_classes = self._roots @ columns[self._index]
        shared = columns[: self._S] - np.einsum("kws,kwn->sn", self._arms, of_classes)
        return self._join(self._root @ shared, of_classes).reshape(gradient.shape)

    def of_rows(self, k: int, shared: Floats, of_class: Floats) -> Floats:
        """Derivatives of scores of class k in these coordinates, from features, shape (_, n)."""
        alone = self._roots[k] @ of_class
        together = self._root @ (shared - self._arms[k].T @ alone)
        return np.concatenate([alone, together])

    def _join(self, shared: Floats, of_classes: Floats) -> Floats:
        theta = np.empty((self._S + self._index.size, *shared.shape[1:]))
        theta[: self._S] = shared
        theta[self._index] = of_classes
        return theta


def factor_of(H: Floats | Arrow, precision: Floats) -> Factor:
    """Cholesky factor of a curvature plus a penalty."""
    return ArrowFactor(H, precision) if isinstance(H, Arrow) else Factor(H, precision)


def cholesky(H: Floats) -> Floats:
    """Lower Cholesky factor of a curvature that is positive definite up to rounding.

    Some curvatures may be 0 and others huge. Then each parameter is measured in units of its own
    curvature, and as little is added to all as makes the matrix definite.
    """
    try:
        return np.asarray(np.linalg.cholesky(H), dtype=np.float64)
    except np.linalg.LinAlgError:
        pass
    diagonal = np.diag(H)
    units = np.sqrt(np.maximum(diagonal, 1e-9 * diagonal.max()))  # rounding may make it negative
    scaled = H / units / units[:, None]
    for jitter in 10.0 ** np.arange(-12, 1):
        try:
            root = np.linalg.cholesky(scaled + jitter * np.eye(len(H)))
        except np.linalg.LinAlgError:
            continue
        return np.asarray(root * units[:, None])
    raise np.linalg.LinAlgError("the curvature is not a finite matrix")


class Solution(NamedTuple):
    """Parameters at which a loss is smallest."""

    theta: Floats
    factor: Any  # `Factor`: curvature at theta, or close to it
    converged: bool


class Point(NamedTuple):
    """Parameters, the loss there, and its gradient."""

    theta: Floats
    value: float
    gradient: Floats


def quasi_newton(slope: Floats, pairs: Sequence[tuple[Floats, Floats]]) -> Floats:
    """Step of L-BFGS (Nocedal and Wright, algorithm 7.4).

    Pairs are the last steps and changes of the gradient, scaled so that their products are 1.
    """
    step = -slope
    shares = []
    for past, change in reversed(pairs):
        shares.append(past @ step)
        step -= shares[-1] * change
    if pairs:
        step /= pairs[-1][1] @ pairs[-1][1]
    for (past, change), share in zip(pairs, reversed(shares), strict=True):
        step += (share - change @ step) * past
    return step


class FittedRows:
    """Rows of a sample: their numbers, weights and outcomes."""

    rows: Ints
    weights: Floats
    codes: Any  # column of each row's label
    by_row: ClassVar[tuple[str, ...]]  # other arrays whose last axis runs over the rows

    def of_rows(self, sample: Sample) -> Self | None:  # noqa: ARG002
        """The same for single rows of a sample, if `rows` is empty because rows were merged.

        Returns None if folds are to be fitted anew.
        """
        return None

    def take(self, rows: NDArray[np.bool_]) -> Self:
        """The same for some of the rows."""
        part = copy(self)
        for name in ("rows", "weights", "codes", *self.by_row):
            setattr(part, name, np.compress(rows, getattr(self, name), axis=-1))
        return part

    def part(self, n_rows: int) -> Self:
        """The same for about `n_rows` rows at equal distances, with weights of the same total."""
        n = len(self.weights)
        chosen = np.zeros(n, dtype=bool)
        chosen[:: -(-n // n_rows)] = True
        part = self.take(chosen)
        part.weights = part.weights * (self.weights.sum() / part.weights.sum())
        return part

    def _draw(self, sample: Sample, most_rows: int) -> Sample:
        """Take rows of a sample, with weights that sum to its total."""
        total = float(sample.row_weights().sum())
        self.rows = sample.drawn_rows(most_rows)
        sample = sample.draw(most_rows)
        self.codes = sample.codes.astype(np.intp)
        weights = sample.row_weights()
        self.weights = weights * (total / weights.sum())
        return sample


class PenalisedLoss(FittedRows, ABC):
    """Loss of rows plus a penalty, as a function of theta."""

    near_steps: ClassVar[int]  # maximum number of steps from a close start
    near_ftol: ClassVar[float] = 1e-5  # relative change of the loss at which these steps end
    rounds: ClassVar[int]  # maximum number of rounds from any other start
    tolerance: float = 1e-6  # a last Newton step gains at most this per unit of weight

    @property
    def total(self) -> float:
        """Weight of all rows."""
        return float(self.weights.sum())

    @abstractmethod
    def loss(self, theta: Floats) -> tuple[float, Floats]:
        """The loss and its gradient."""

    @abstractmethod
    def factor(self, theta: Floats) -> Factor:
        """The curvature of the loss, or an approximation."""

    def at(self, theta: Floats) -> Point:
        """The loss at theta, which counts as infinite where numbers overflow."""
        with np.errstate(all="ignore"):
            value, gradient = self.loss(theta)
        finite = np.isfinite(value) and np.isfinite(gradient).all()
        return Point(theta, value if finite else np.inf, gradient)

    def descend(self, point: Point, factor: Factor, *, n_steps: int, ftol: float) -> Point:
        """A point of smaller loss, after `n_steps` or when one lowers it by a share of `ftol`."""
        slope = factor.gradient(point.gradient)
        pairs = deque[tuple[Floats, Floats]](maxlen=8)
        for _ in range(n_steps):
            least_gain = ftol * max(abs(point.value), self.total)
            step = quasi_newton(slope, pairs)
            promised = float(-(slope @ step))  # twice what the step gains on a parabola
            if promised <= (2 * least_gain if pairs else 0.0):
                break
            step *= min(1.0, point.value / promised)  # no loss falls below 0
            for _ in range(40):
                lower = self.at(point.theta + factor.step(step))
                expected = slope @ step
                rise = lower.value - point.value
                if rise <= 1e-4 * expected:
                    break
                step *= np.clip(expected / (expected - rise) / 2, 0.1, 0.5)  # end of a parabola
            else:
                break
            change = factor.gradient(lower.gradient) - slope
            if (curvature := step @ change) > 0:
                pairs.append((step / np.sqrt(curvature), change / np.sqrt(curvature)))
            point = lower
            slope = slope + change
            if -rise <= least_gain:
                break
        return point

    def settle(
        self,
        theta: Floats,
        factor: Factor | None = None,
        *,
        rounds: int,
        n_steps: int,
        ftol: float = 1e-7,
    ) -> Solution:
        """The minimum by rounds of L-BFGS. Each but the first forms the curvature again.

        The rounds end where a Newton step promises less than `tolerance`. Since curvatures may be
        approximations, up to ten times as much will do if a round gains next to nothing.
        """
        point = self.at(theta)
        for count in range(rounds):
            if count or factor is None:
                factor = self.factor(point.theta)
            promised = factor.gain(point.gradient) / (self.tolerance * self.total)
            if promised <= 1:
                return Solution(point.theta, factor, converged=True)
            start = point
            point = self.descend(point, factor, n_steps=n_steps, ftol=ftol)
            if promised <= 10 and start.value - point.value <= ftol * self.total:
                return Solution(point.theta, factor, converged=True)
        return Solution(point.theta, factor, converged=False)

    def settle_from(
        self, near: Solution, *, rounds: int, n_steps: int, near_ftol: float = 1e-12
    ) -> Solution:
        """The minimum, starting from the minimum for a part of the rows.

        The curvature of the part is close enough for fast convergence, so the curvature of all rows
        is formed only if that fails.
        """
        factor = near.factor
        point = self.descend(self.at(near.theta), factor, n_steps=30, ftol=near_ftol)
        if factor.gain(point.gradient) <= 1e-4 * self.tolerance * self.total:
            return Solution(point.theta, factor, converged=True)
        return self.settle(point.theta, rounds=rounds, n_steps=n_steps)

    def solve_near(self, whole: Solution) -> Floats:
        """The theta of the lowest loss, close to a solution under other weights of the rows."""
        start = self.at(whole.theta)
        return self.descend(start, whole.factor, n_steps=self.near_steps, ftol=self.near_ftol).theta

    def leave_one_out(
        self,
        whole: Solution,  # noqa: ARG002
        left: LeftOut,  # noqa: ARG002
        Q: Floats,  # noqa: ARG002
    ) -> Floats | None:
        """Forecasts of each row, shape (n, K), if it is left out, or with `left` its cluster.

        `Q` are the forecasts of the solution. Returns None if folds cost less.
        """
        return None


class EvidenceLoss(PenalisedLoss):
    """A negative log posterior whose priors are learned by evidence."""

    priors: Priors
    n_learning: ClassVar[int] = 8  # largest number of updates of the precisions
    least_change: ClassVar[float] = 0.1  # updates end when no log precision changes by more
    learning_ftol: float = 1e-5  # of the descent between two updates
    relaxation: ClassVar[float] = 1.0  # factor of the learned precisions
    settle_steps: ClassVar[int] = 100  # in a round of the last descent
    settle_ftol: float = 1e-7

    @abstractmethod
    def curvature(self, theta: Floats) -> Floats | Arrow:
        """Curvature of the loss without its prior, or part of it: see `factor_of`."""

    def factor(self, theta: Floats) -> Factor:
        """Curvature of the loss with its prior."""
        return factor_of(self.curvature(theta), self.priors.precision())

    def maximise(self, theta: Floats, *, learn: bool) -> Solution:
        """The largest posterior, from a start. With `learn`, the precisions are learned first."""
        factor = None
        for count in range(self.n_learning + 1 if learn else 0):
            H = self.curvature(theta)
            factor = factor_of(H, self.priors.precision())
            if count:
                change = self.priors.learn(theta, factor.variances())
                is_last = change <= self.least_change or count == self.n_learning
                if is_last:
                    self.priors.precisions *= self.relaxation
                factor = factor_of(H, self.priors.precision())
                if is_last:
                    break
            ftol = self.learning_ftol
            theta = self.descend(self.at(theta), factor, n_steps=15, ftol=ftol).theta
        return self.settle(
            theta, factor, rounds=self.rounds, n_steps=self.settle_steps, ftol=self.settle_ftol
        )


class DescentCalibrator(Calibrator):
    """Base of the calibrators whose map minimises a penalised loss."""

    @abstractmethod
    def _solve(self, sample: Sample) -> tuple[Any, Any]:
        """A loss with `map_of` and `solve_near`, and its solution."""

    def _solve_or_warn(self, sample: Sample) -> tuple[Any, Any]:
        problem, whole = self._solve(sample)
        if not whole.converged:
            warnings.warn(
                f"{type(self).__name__}: the fit did not converge. Its forecasts are valid, but "
                "others may fit the calibration rows better.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return problem, whole

    def _fit(self, sample: Sample) -> Any:
        problem, whole = self._solve_or_warn(sample)
        return problem.map_of(whole.theta)

    def _fit_out_of_fold(self, sample: Sample, fold: Ints) -> tuple[Any, Floats]:
        """As in `Calibrator`, but rows or clusters are left out one by one if the curvature allows.

        Otherwise folds share features, and start at the solution for all rows.
        """
        problem, whole = self._solve_or_warn(sample)
        if not len(problem.rows):
            problem = problem.of_rows(sample)
            if problem is None:
                return super()._fit_out_of_fold(sample, fold)
        rows = problem.rows
        if (left := left_out(sample)) is not None:
            scale = problem.weights / sample.row_weights()[rows]  # if rows were drawn
            fitted = problem.map_of(whole.theta)
            Q = fitted.apply(sample.forecasts)
            unseen = problem.leave_one_out(whole, left.take(rows, scale), Q[rows])
            if unseen is not None:
                Q[rows] = unseen
                return fitted, Q
        Q = np.empty((len(fold), sample.n_classes))
        for held_out in range(fold.max() + 1):
            part = problem.take(fold[problem.rows] != held_out)
            fitted = part.map_of(part.solve_near(whole))
            Q[fold == held_out] = fitted.apply(sample.forecasts[fold == held_out])
        return problem.map_of(whole.theta), Q
