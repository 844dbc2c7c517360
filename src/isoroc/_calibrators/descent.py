"""Penalised losses, minimised by L-BFGS in coordinates in which the curvature is the identity."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import copy
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from isoroc._calibrators.base import Calibrator
from isoroc._core.types import Floats, Ints
from isoroc._input import Sample

TOLERANCE = 1e-6  # converged: a Newton step lowers the loss by at most this per unit of weight
FTOL = 1e-6  # relative change of the loss at which L-BFGS ends if rounds follow


class Factor:
    """Cholesky factor C of the curvature ``C C'`` of a loss (H, or its diagonal) plus a penalty."""

    def __init__(self, H: Floats, precision: Floats) -> None:
        dense = H.ndim == 2
        self._root = cholesky(H + np.diag(precision)) if dense else np.sqrt(H + precision)

    def variances(self) -> Floats:
        """Diagonal of the inverse of the curvature."""
        if self._root.ndim == 1:
            return np.asarray(1 / self._root**2)
        inverse = self.gradient(np.eye(len(self._root)))
        return np.asarray(np.einsum("ij,ij->j", inverse, inverse))

    def step(self, steps: Floats) -> Floats:
        """Change of theta for steps in coordinates in which the curvature is the identity."""
        return self._divide(steps, trans=1)

    def gradient(self, gradient: Floats) -> Floats:
        """Gradient in these coordinates."""
        return self._divide(gradient, trans=0)

    def _divide(self, values: Floats, *, trans: int) -> Floats:
        if self._root.ndim == 1:
            return np.asarray(values / self._root)
        return np.asarray(
            solve_triangular(self._root, values, lower=True, trans=trans, check_finite=False)
        )

    def gain(self, gradient: Floats) -> float:
        """What a Newton step promises: half the squared length of the gradient."""
        return float((self.gradient(gradient) ** 2).sum()) / 2


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


def larger_evidence(
    kinds: Ints, theta: Floats, precisions: Floats, variances: Floats, prior: Floats
) -> Floats:
    """Precisions of the kinds of parameters that have a larger evidence, as in MacKay's framework.

    The precision of a kind becomes the inverse of the mean square of its parameters. Each counts as
    far as the data determine it: one minus its posterior variance over its prior variance. One
    parameter of the size that the initial prior expects is added to each kind.
    """
    share = np.maximum(1 - precisions[kinds] * variances, 0.0)  # rounding may make it negative
    determined = np.bincount(kinds, share, len(prior))
    squares = np.bincount(kinds, theta**2, len(prior))
    return np.asarray((determined + 1) / (squares + 1 / prior))


class Solution(NamedTuple):
    """Parameters at which a loss is smallest."""

    theta: Floats
    factor: Any  # `Factor`: curvature at theta, or close to it; None after Newton's method
    converged: bool


class Rows:
    """Rows of a sample: their numbers, weights and outcomes."""

    rows: Ints
    weights: Floats
    codes: Any  # column of each row's label

    def _draw(self, sample: Sample, most_rows: int) -> Sample:
        """Take rows of a sample, with weights that sum to its total."""
        total = float(sample.row_weights().sum())
        self.rows = sample.drawn_rows(most_rows)
        sample = sample.draw(most_rows)
        self.codes, weights = sample.codes.astype(np.intp), sample.row_weights()
        self.weights = weights * (total / weights.sum())
        return sample


class PenalisedLoss(Rows, ABC):
    """Loss of rows plus a penalty, as a function of theta."""

    near_steps: ClassVar[int]  # at most, where the start is close
    rounds: ClassVar[int]  # at most, where it is not
    dense: ClassVar[int]  # largest number of parameters with a full curvature matrix

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

    def descend(self, start: Floats, factor: Factor, *, n_steps: int, ftol: float) -> Floats:
        """Parameters of smaller loss, after `n_steps` or when one step changes it little."""
        total = self.total

        def objective(steps: Floats) -> tuple[float, Floats]:
            if np.isfinite(steps).all():
                with np.errstate(all="ignore"):
                    value, gradient = self.loss(start + factor.step(steps))
                if np.isfinite(value) and np.isfinite(gradient).all():
                    return value / total, factor.gradient(gradient) / total
            return 1e10, np.zeros(len(steps))  # the line search tried too long a step

        flat = 0.5 * np.sqrt(2 * TOLERANCE / total / len(start))
        options = {"maxiter": n_steps, "maxcor": 20, "ftol": ftol, "gtol": flat}
        zero = np.zeros(len(start))
        steps = minimize(objective, zero, jac=True, method="L-BFGS-B", options=options).x
        return np.asarray(start + factor.step(steps)) if np.isfinite(steps).all() else start

    def settle(
        self,
        theta: Floats,
        factor: Factor | None = None,
        *,
        rounds: int,
        n_steps: int,
        ftol: float = 1e-9,
        fixed: bool = False,
    ) -> Solution:
        """The minimum by rounds of L-BFGS; each forms the curvature again, unless it is `fixed`."""
        for count in range(rounds):
            if factor is None or (count and not fixed):
                factor = self.factor(theta)
            if factor.gain(self.loss(theta)[1]) <= TOLERANCE * self.total:
                return Solution(theta, factor, converged=True)
            theta = self.descend(theta, factor, n_steps=n_steps, ftol=ftol)
        return Solution(theta, factor, converged=False)

    def solve_near(self, whole: Solution) -> Floats:
        """The theta of the lowest loss, close to a solution under other weights of the rows."""
        return self.descend(whole.theta, whole.factor, n_steps=self.near_steps, ftol=FTOL)


class Priors:
    """Normal priors of parameters; those of one kind share a precision, which evidence teaches."""

    def __init__(
        self, sizes: Mapping[str, int], prior: Mapping[str, float], fixed: set[str]
    ) -> None:
        self.kinds = np.repeat(np.arange(len(sizes)), list(sizes.values()))
        self._prior = np.array([prior[kind] for kind in sizes])
        self._learned = np.array([kind not in fixed for kind in sizes])
        self._precisions = self._prior.copy()

    def precision(self) -> Floats:
        """Precision of the prior of each parameter."""
        return self._precisions[self.kinds]

    def learn(self, theta: Floats, variances: Floats) -> float:
        """Set the precisions to those of larger evidence; return the largest change of a log."""
        learned = larger_evidence(self.kinds, theta, self._precisions, variances, self._prior)
        learned = np.clip(learned, self._prior / 100, self._prior * 100)
        learned = np.where(self._learned, learned, self._prior)
        change = np.abs(np.log(learned / self._precisions)).max()
        self._precisions = learned
        return float(change)


class EvidenceLoss(PenalisedLoss):
    """A negative log posterior whose priors are learned by evidence."""

    priors: Priors

    @abstractmethod
    def curvature(self, theta: Floats) -> Floats:
        """Curvature of the loss without its prior, or the diagonal."""

    def factor(self, theta: Floats) -> Factor:
        """Curvature of the loss with its prior."""
        return Factor(self.curvature(theta), self.priors.precision())

    def maximise(self, theta: Floats, *, learn: bool, n_learning: int = 8) -> Solution:
        """The largest posterior from a start on; with `learn` the precisions are learned first."""
        factor = None
        for count in range(n_learning + 1 if learn else 0):
            H = self.curvature(theta)
            factor = Factor(H, self.priors.precision())
            if count:
                change = self.priors.learn(theta, factor.variances())
                factor = Factor(H, self.priors.precision())
                if change <= 0.1 or count == n_learning:
                    break
            theta = self.descend(theta, factor, n_steps=15, ftol=1e-5)
        return self.settle(theta, factor, rounds=self.rounds, n_steps=100)


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
        """As in `Calibrator`, but folds share features, and start at the solution for all rows."""
        problem, whole = self._solve_or_warn(sample)
        if not len(problem.rows):  # rows were gathered
            return super()._fit_out_of_fold(sample, fold)
        Q = np.empty((len(fold), sample.n_classes))
        for held_out in range(fold.max() + 1):
            part = copy(problem)
            part.weights = problem.weights * (fold[problem.rows] != held_out)
            fitted = part.map_of(part.solve_near(whole))
            Q[fold == held_out] = fitted.apply(sample.forecasts[fold == held_out])
        return problem.map_of(whole.theta), Q
