"""MonotoneCalibrator: the gradient of a convex potential of log forecasts.

Parameters are departures from 0, where forecasts stay unchanged. This is exact for two classes,
except for the floor. For more it holds up to prototypes of a second level, of weight exp(-4). Each
parameter has a normal prior around 0. All parameters of one kind share its precision, which is
learned by maximal evidence (MacKay, 1992). Only the prior of the scale is fixed: it is narrower the
closer the temperature of the start is to 1.

The forecast q = sum of w_kl r_kl is a mixture of prototypes. With e_kl = exp(s_kl), x and y as in
`isoroc._maps.monotone`, and ``v_k = sum over l of e_kl r_kl[outcome]``,

    loss = log(x' exp(J) x) - log(v' exp(J) x).

Derivatives follow the chain theta -> scores s_kl and prototypes r_kl -> loss. Compiled code
(`smooth.slopes`) gives the derivatives of the second part, for single rows or summed over them.
With ``rise_k = <z, t_k - e_k>`` a score is ``s_kl = a (z_k + softness_kl rise_k) + bias_kl``, so

    d s_kl / d log a      = a (z_k + softness_kl rise_k),
    d s_kl / d softness_kl = a rise_k,    d r_kl / d softness_kl = t_k - e_k,

and the softness is the logistic function of its parameters. `chained` holds these rules once.
"""

from __future__ import annotations

from copy import copy
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import comb, expit, logit, softmax
from sklearn.utils.validation import check_is_fitted

from isoroc._backends import NUMPY
from isoroc._calibrators.base import FromMap
from isoroc._calibrators.descent import (
    Arrow,
    DescentCalibrator,
    EvidenceLoss,
    Solution,
)
from isoroc._calibrators.floors import FLOORS, distinct_floors, likeliest_floor
from isoroc._calibrators.leave_one_out import LeftOut, likelihood_changes, with_losses
from isoroc._calibrators.parts import draw_part, gather
from isoroc._calibrators.precisions import Priors
from isoroc._calibrators.tempering import LogRows
from isoroc._core import smooth
from isoroc._core.simplex import LEAST
from isoroc._core.types import Floats, Ints
from isoroc._input import Sample, slices
from isoroc._input.kinds import Kind, columns_of
from isoroc._maps import MonotoneMap
from isoroc._maps.cyclic import MonotonicityCheck, check_cyclic
from isoroc._maps.monotone import TRACE, MonotonicityCertificate

LEAST_SCALE_PRECISION = 2.0  # of the prior of the log scale
WIDTH = 1 / 16  # of cells of log forecasts: rows of a cell differ by up to 6 %


class MonotoneCalibrator(DescentCalibrator):
    """Smooth isotonic calibration for any number of classes: the gradient of a convex potential.

    A map is the gradient of a convex function iff it is cyclically monotone, which for two classes
    means increasing. For two classes it is strictly increasing, so the ROC curve is unchanged. All
    parameters are shrunk to the map that changes nothing, with strengths learned by evidence, so
    there is nothing to tune.

    Attributes
    ----------
    classes_, n_features_in_, unit_, summary_, map_, checksum
        As in `IdentityCalibrator`.
    floor_ : float
        The floor, one of twelve values between 1e-300 and 0.1.
    scale_ : float
        The scale a.
    softness_ : ndarray of shape (K, L)
        Softness of each prototype.
    biases_ : ndarray of shape (K, L)
        Bias of each prototype.
    prototypes_ : ndarray of shape (K, L, K)
        The points r_kl.
    directions_ : ndarray of shape (K, K) or None
        The points t_k in rows. None if they are uniform.
    interactions_ : ndarray of shape (K, K) or None
        J. None if it is 0.
    certificate_ : MonotonicityCertificate
        The guarantee in words: ``print(calibrator.certificate_)``.

    See Also
    --------
    IRPCalibrator : Step functions, with a guarantee about their splits on the calibration rows.

    Notes
    -----
    Forecasts p enter as ``z = (1 - 1e-4) log(p + floor) + 1e-4 log(p)``, class by class. Each class
    k has prototypes ``r_kl = (1 - softness_kl) e_k + softness_kl t_k`` between its vertex e_k and a
    point t_k of the opposite face. The calibrated forecast is the gradient at z of

        ``F(z) = log(sum over j, k of x_j exp(J_jk) x_k) / (2 a)``,
        ``x_k = sum over l of exp(a <z, r_kl> + biases_kl)``,

    with a scale a > 0 and interactions J between classes (Bao, Eshraghi and Wang, AISTATS 2026).

    Examples
    --------
    >>> from isoroc import MonotoneCalibrator
    >>> P, y = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]], ["ant", "bee", "cat"]
    >>> cal = MonotoneCalibrator().fit(P, y)
    >>> cal.predict([[0.5, 0.3, 0.2]])
    array(['ant'], dtype='<U3')
    >>> cal.verify(P)
    MonotonicityCheck(monotone=True, rows=3, exact=True)
    """

    _shares: ClassVar[tuple[float, float]] = (3.0, 4.0)
    #: Largest size of an array of the fit. With more rows, some are drawn.
    _most_numbers: ClassVar[int] = 10_000_000

    map_: MonotoneMap
    floor_ = FromMap()
    scale_ = FromMap()
    softness_ = FromMap()
    directions_ = FromMap()
    biases_ = FromMap()
    interactions_ = FromMap()
    prototypes_ = FromMap()

    @property
    def certificate_(self) -> MonotonicityCertificate:
        """The guarantee in words."""
        check_is_fitted(self, "map_")
        return self.map_.certificate(len(self.classes_))

    def _solve(self, sample: Sample) -> tuple[Posterior, Solution]:
        """The posterior, and where it is largest."""
        some = draw_part(sample)
        departures, floor, theta = _tempered(some, float(sample.row_weights().sum()))
        most_rows = self._most_numbers // (sample.n_classes * departures.n_levels)
        whole = Posterior(departures, sample.draw(most_rows), floor, sample.drawn_rows(most_rows))
        stages = [whole]
        if len(whole.codes) > len(some):  # all that is learned from a part holds for the whole
            stages.insert(0, Posterior(departures, some, floor))
        for count, posterior in enumerate(stages):
            solution = posterior.maximise(theta, learn=not count)
            theta = solution.theta
        return whole, solution

    def coordinates(self, P: Any) -> Floats:
        """The points z, shape (n, K), in which the map is the gradient of a convex function."""
        values = columns_of(self._check_new(P))
        return np.ascontiguousarray(self.map_.coordinates(NUMPY, values))

    def verify(self, P: Any) -> MonotonicityCheck:
        """Check on any rows that the map is cyclically monotone in its `coordinates`.

        With two classes, the forecasts must have the same order before and after. With more, no
        cycle of rows may violate the definition. From more than 2,000 rows, 2,000 are drawn at
        random.
        """
        return check_cyclic(self.coordinates(P), self.predict_proba(P))


def _floored(sample: Sample, floor: float) -> Floats:
    """The points z of a sample, shape (K, n)."""
    return smooth.softened(sample.kind.log_rows(sample.forecasts, LEAST), floor, TRACE)


def _tempered(sample: Sample, total: float) -> tuple[Departures, float, Floats]:
    """The prior, the floor, and the parameters of temperature scaling.

    Prototypes start as close to the vertices as rows of this total weight support, or closer if
    tempered forecasts are closer on average. Without the 500 added rows, few rows would overshrink
    confident forecasts.
    """
    floor, inverse = _choose_floor(sample, total)
    q = softmax(inverse * _floored(sample, floor), axis=0)
    doubt = float(np.average(1 - q.max(axis=0), weights=sample.weights))
    softness = float(np.clip(doubt, 1e-5, 1 / (total + 500)))
    departures = Departures(sample.n_classes, softness, float(np.log(inverse)))
    theta = np.zeros(departures.n_parameters)
    theta[departures.places["scale"]] = np.log(inverse)
    return departures, floor, theta


def _choose_floor(sample: Sample, total: float) -> tuple[float, float]:
    """The floor under which temperature scaling makes the outcomes likeliest, and 1 / T at it.

    The scale is bounded by what rows of this total weight can support. Otherwise forecasts of 0
    that never came true would drive it to infinity. A change of the scale costs what its prior
    says, and each factor of ten by which a floor exceeds 1e-4 costs 1 nat.
    """
    bound = np.log(sample.n_classes * (total + 1)) + 3
    logs = sample.kind.log_rows(sample.forecasts, LEAST)
    weights = sample.row_weights()
    inverse = 1.0

    def fit(floor: float) -> tuple[float, float]:
        nonlocal inverse  # the best one changes little between floors
        rows = LogRows(smooth.softened(logs, floor, TRACE), sample.codes, weights)
        inverse = rows.inverse_temperature(start=inverse, tolerance=1e-6)
        spread = float(np.ptp(rows.z, axis=0).max())
        inverse = min(inverse, max(1.0, bound / spread)) if spread else inverse
        cost = LEAST_SCALE_PRECISION * np.log(inverse) ** 2 / 2 + max(np.log10(floor / 1e-4), 0.0)
        return cost / total + rows.mean_loss(inverse), inverse

    # A thousandth of the smallest forecast changes nothing when it is added.
    floors = distinct_floors(FLOORS[::-1], float(logs.min()) + np.log(1e-3))
    return likeliest_floor(floors, fit)


class Departures:
    """Parameters theta of a potential of K classes with L levels of prototypes.

    `places` maps each group of parameters to its slice of theta. From 3 to 30 classes there is an
    interaction for each of `pairs`, and a log direction for the entries `others` of a matrix.
    Prototypes have at least the given softness at theta = 0.

    The prior of the log scale x is Cauchy of scale s = 1/8. Its negative logarithm has the gradient
    ``2 x / (s**2 + x**2)``, so the normal prior of precision ``2 / (s**2 + x**2)``, at the x where
    the fit starts, stands in for it: it holds temperatures near 1 and releases others.
    """

    #: With more classes than this, they do not interact and their directions are uniform.
    pair_classes: ClassVar[int] = 30

    def __init__(self, n_classes: int, least_softness: float, log_scale: float = 0.0) -> None:
        K = self.n_classes = n_classes
        # Precisions that learning starts from. Groups of one or two parameters keep theirs.
        if K == 2:
            # With binomial weights on the points i / 9 the mean is the logistic function.
            levels = np.arange(5)
            softness = levels / 9
            self.log_weights = np.log(comb(9, levels))
            self.scale = 9.0
            prior = {"softness": 32.0, "level": 32.0, "bias": 4.0}
            prior |= {"prototype_bias": 32.0, "prototype_softness": 32.0}
            fixed = {"scale"}
        else:
            # The scale makes up for the second level of prototypes.
            softness = np.array([0.0, 0.5])
            self.log_weights = np.array([0.0, -4.0])
            self.scale = 1.05
            prior = {"softness": 1.0, "level": 0.3, "prototype_softness": 4.0, "bias": 2.0 * K}
            prior |= {"prototype_bias": 2.0 * K, "interaction": 1.2 * K, "direction": 0.2 * K}
            fixed = {"scale", "softness", "level"}
        prior["scale"] = max(LEAST_SCALE_PRECISION, 2 / ((1 / 8) ** 2 + log_scale**2))
        self.odds = logit(np.maximum(softness, least_softness))
        L = self.n_levels = len(softness)
        self.pairs = np.triu_indices(K, 1)
        self.others = np.nonzero(~np.eye(K, dtype=bool))
        self.paired = 2 < K <= self.pair_classes
        sizes = {"scale": 1, "softness": L, "level": L, "bias": K}
        sizes |= {"prototype_bias": K * L, "prototype_softness": K * L}
        if self.paired:
            sizes |= {"interaction": len(self.pairs[0]), "direction": len(self.others[0])}
        ends = np.cumsum(list(sizes.values())).tolist()
        self.places = {
            group: slice(end - size, end)
            for (group, size), end in zip(sizes.items(), ends, strict=True)
        }
        self.n_parameters = ends[-1]
        # Places of the parameters of each class where they act on each other only through others.
        parts = np.split(np.arange(ends[2], ends[5]), [K, K * (L + 1)])
        alone = K > 2 and not self.paired
        self.class_index = np.hstack([part.reshape(K, -1) for part in parts])[: K * alone]
        self.priors = Priors(sizes, prior, fixed)

    def map_of(self, theta: Floats, kind: Kind, floor: float) -> MonotoneMap:
        """The map with these parameters."""
        K = self.n_classes
        L = self.n_levels
        part = {group: theta[entries] for group, entries in self.places.items()}
        odds = self.odds + part["softness"] + part["prototype_softness"].reshape(K, L)
        biases = self.log_weights + part["level"] + part["prototype_bias"].reshape(K, L)
        directions = None
        interactions = None
        if self.paired:
            interactions = np.zeros((K, K))
            interactions[self.pairs] = part["interaction"]
            interactions += interactions.T
            logs = np.full((K, K), -np.inf)
            logs[self.others] = part["direction"]
            directions = softmax(logs, axis=1)
        elif K == 2:
            directions = np.array([[0.0, 1.0], [1.0, 0.0]])
        return MonotoneMap(
            kind=kind,
            floor=floor,
            scale=self.scale * float(np.exp(part["scale"][0])),
            softness=expit(odds),
            biases=biases + part["bias"][:, None],
            directions=directions,
            interactions=interactions,
        )


class Slopes(NamedTuple):
    """Loss of some rows, and its derivatives."""

    loss: float
    sums: Floats  # first arguments of `chained`, shape (4, K, L)
    entries: Floats  # minus the derivatives in r_kl, if classes interact, shape (K, L, K)
    mixed: Floats  # of each row, if classes interact: see `smooth.slopes`, shape (3, K, n)
    rows: Floats  # of each row: in s_kl, and minus in r_kl[outcome], shape (2, K, L, n)


class Posterior(EvidenceLoss):
    """Negative log posterior of the departures theta for a sample with a floor."""

    near_steps = 10
    rounds = 40
    by_row = ("z",)
    dense = 800  # largest number of parameters with a full curvature matrix
    gradient_numbers = 2**17  # in an array of gradients of single rows

    def __init__(
        self, departures: Departures, sample: Sample, floor: float, rows: Ints | None = None
    ) -> None:
        self.departures = departures
        self.priors = departures.priors
        if len(departures.class_index):  # many classes
            self.tolerance = 1e-5
            self.settle_ftol = 1e-6
        self.kind = sample.kind
        self.floor = floor
        self._hold(sample, rows, merge=True)

    def of_rows(self, sample: Sample) -> Self:
        """The same for single rows of a sample."""
        single = copy(self)
        single._hold(sample, np.arange(len(sample)), merge=False)
        return single

    def _hold(self, sample: Sample, rows: Ints | None, *, merge: bool) -> None:
        """Set the arrays of the rows, or of cells of them."""
        z = _floored(sample, self.floor)
        z -= z.mean(axis=0)
        codes = sample.codes
        weights = sample.row_weights()
        if merge and len(z) <= 3:  # rows of more classes would hardly share cells
            z, codes, weights = gather(z, codes, weights, np.floor(z / WIDTH))
        self.rows = np.empty(0, np.intp) if rows is None or len(z.T) < len(rows) else rows
        self.z = np.ascontiguousarray(z)
        self.weights = weights
        self.codes = codes.astype(np.intp)

    def map_of(self, theta: Floats) -> MonotoneMap:
        """The map with the parameters theta."""
        return self.departures.map_of(theta, self.kind, self.floor)

    def loss(self, theta: Floats) -> tuple[float, Floats]:
        """Negative log posterior and its gradient."""
        F = self.map_of(theta)
        slopes = _slopes(F, self.z, self.codes, self.weights)
        parts = chained(F, *slopes.sums)
        if F.interactions is not None:
            t = F.full_directions()
            x, dy, pulled = slopes.mixed
            dJ = (dy @ x.T) * np.exp(F.interactions)
            dt = F.scale * (pulled @ self.z.T)
            dt -= np.einsum("klj,kl->kj", slopes.entries, F.softness)
            dt = t * (dt - (t * dt).sum(axis=1, keepdims=True))
            parts += [(dJ + dJ.T)[self.departures.pairs], dt[self.departures.others]]
        precision = self.priors.precision()
        gradient = np.concatenate(parts) + precision * theta
        return slopes.loss + float(precision @ theta**2) / 2, gradient

    def curvature(self, theta: Floats) -> Floats | Arrow:
        """Sum of the outer products of the gradients of each row's loss, or part of it.

        It equals the Hessian in expectation under the forecasts, and is positive semidefinite.
        """
        n_parameters = self.departures.n_parameters
        F = self.map_of(theta)
        index = self.departures.class_index
        n_shared = n_parameters - index.size
        H = np.zeros((n_shared, n_shared) if self.dense >= n_shared else n_parameters)
        arms = np.zeros((*index.shape, n_shared))
        blocks = np.zeros((*index.shape, index.shape[1]))
        for rows in slices(len(self.codes), max(self.gradient_numbers // n_parameters, 64)):
            G = self._gradients(F, rows)
            shared = G[:n_shared]
            of_classes = G[index]
            H += shared @ shared.T if H.ndim == 2 else np.einsum("pn,pn->p", G, G)
            arms += of_classes @ shared.T
            blocks += of_classes @ of_classes.transpose(0, 2, 1)
        return Arrow(H, arms, blocks, index) if index.size else H

    def leave_one_out(self, whole: Solution, left: LeftOut, Q: Floats) -> Floats | None:
        """As in `PenalisedLoss`, from the gradient of each row's loss.

        None if the curvature is known on its diagonal only.
        """
        if whole.factor.is_diagonal:
            return None
        F = self.map_of(whole.theta)
        changes = np.empty_like(self.weights)
        for rows, size in left.parts(max(self.gradient_numbers // len(whole.theta), 64)):
            J = whole.factor.gradient(self._gradients(F, rows)) / np.sqrt(self.weights[rows])
            changes[rows] = likelihood_changes(left.weights[rows], J, size)
        return with_losses(Q, self.codes, changes)

    def _gradients(self, F: MonotoneMap, rows: slice | Ints) -> Floats:
        """Gradient of each row's loss, times the root of its weight, shape (n_parameters, n)."""
        z = np.ascontiguousarray(self.z[:, rows])
        codes = self.codes[rows]
        a = F.scale
        soft = F.softness
        t = F.full_directions()
        K = len(soft)
        n = len(codes)
        slopes = _slopes(F, z, codes, np.sqrt(self.weights[rows]), of_rows=True)
        rises = F.rises(z)
        in_scores, in_entries = slopes.rows
        is_outcome = np.eye(K)[:, codes]
        towards = t[:, codes]
        parts = chained(
            F,
            in_scores,
            in_scores * rises[:, None],
            in_scores * z[:, None],
            in_entries * (towards - is_outcome)[:, None],
        )
        G = np.empty((self.departures.n_parameters, n))
        places = self.departures.places
        np.concatenate(parts, out=G[: places["prototype_softness"].stop])
        if F.interactions is not None:
            i, j = self.departures.pairs
            x, dy, pulled = slopes.mixed
            G[places["interaction"]] = dy[i] * x[j] + dy[j] * x[i]
            G[places["interaction"]] *= np.exp(F.interactions[i, j])[:, None]
            k, j = self.departures.others
            scores = a * pulled
            entries = np.einsum("kln,kl->kn", in_entries, soft)
            G[places["direction"]] = scores[k] * (z[j] - (rises + z)[k])
            G[places["direction"]] -= entries[k] * (is_outcome[j] - towards[k])
            G[places["direction"]] *= t[k, j][:, None]
        return G


def chained(
    F: MonotoneMap, in_scores: Floats, risen: Floats, along: Floats, towards: Floats
) -> list[Floats]:
    """Derivatives of a loss in the first six groups of `Departures`, from those in the scores.

    `risen` and `along` are the derivatives in the scores times the rises and times z. `towards` are
    minus the derivatives in r_kl along ``t_k - e_k``. All have the shape (K, L), or (K, L, n) for n
    losses.
    """
    each = (..., *([None] * (in_scores.ndim - 2)))  # numbers of the map, for each of n losses
    soft = F.softness[each]
    in_softness = (F.scale * risen - towards) * (soft * (1 - soft))
    in_scale = F.scale * (along + soft * risen).sum(axis=(0, 1))
    flat = (-1, *in_scores.shape[2:])
    return [
        np.asarray(in_scale)[None],
        in_softness.sum(axis=0),
        in_scores.sum(axis=0),
        in_scores.sum(axis=1),
        in_scores.reshape(flat),
        in_softness.reshape(flat),
    ]


def _slopes(
    F: MonotoneMap, z: Floats, codes: Ints, weights: Floats, *, of_rows: bool = False
) -> Slopes:
    """Loss of rows, and its derivatives, multiplied by the weights."""
    factors = None if F.interactions is None else np.exp(F.interactions)
    numbers = F.scale, F.softness, F.biases, F.directions, factors
    return Slopes(*smooth.slopes(z, codes, weights, *numbers, of_rows))
