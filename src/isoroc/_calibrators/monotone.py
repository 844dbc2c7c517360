"""MonotoneCalibrator: the gradient of a convex potential of log forecasts."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from isoroc._backends import NUMPY
from isoroc._calibrators.base import Calibrator, FromMap
from isoroc._calibrators.descent import warn_unconverged
from isoroc._calibrators.potential_fit import Departures, Posterior, gather
from isoroc._calibrators.tempering import (
    FLOORS,
    draw_part,
    inverse_temperature,
    likeliest,
    log_softmax,
    of_own_class,
)
from isoroc._cyclic import MonotonicityCheck, check_cyclic
from isoroc._input import Sample
from isoroc._kinds import columns_of
from isoroc._maps import MonotoneMap
from isoroc._maps.monotone import with_floor
from isoroc._simplex import LEAST, Floats

#: A floor this far below the smallest forecast, as a factor, changes nothing.
NEGLIGIBLE = 1e-3
#: By how much tempered log odds may exceed log(K (n + 1)).
SLACK = 3.0
#: Numbers in an array of the fit up to which all rows are used; above, rows are drawn at random.
MOST_NUMBERS = 10_000_000


class MonotoneCalibrator(Calibrator):
    """Smooth isotonic calibration for any number of classes: the gradient of a convex potential.

    A map is the gradient of a convex function iff it is cyclically monotone, which for two classes
    means increasing. So this is a smooth form of isotonic regression, and of Brenier isotonic
    regression for more classes. For two classes it is strictly increasing, so the ROC curve is
    unchanged.

    All parameters are shrunk to temperature scaling. The strength is learned by maximal evidence,
    separately for each kind of parameter, so there is nothing to tune.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, in the order of the columns.
    n_features_in_ : int
        Columns of the forecasts; 1 for scores.
    scores_, summary_, map_, checksum
        Whether forecasts are probabilities or logits; rows and weights of the fit; the fitted map;
        the checksum of its model file.
    floor_ : float
        The floor, one of twelve values between 1e-300 and 0.1.
    scale_ : float
        a.
    softness_ : ndarray of shape (K, L)
        Mass of each prototype that is not on its own class. L is 5 for two classes, otherwise 2.
    directions_ : ndarray of shape (K, K) or None
        The points t_k in rows; None above 100 classes, where they are uniform.
    biases_ : ndarray of shape (K, L)
        Bias of each prototype.
    interactions_ : ndarray of shape (K, K) or None
        J, symmetric with a diagonal of 0; None for two classes and above 100, where it is 0.
    prototypes_ : ndarray of shape (K, L, K)
        The points r_kl.
    certificate_ : GradientCertificate
        The guarantee in words (``print(calibrator.certificate_)``), and the potential.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the fit did not converge. The guarantee holds all the same.

    See Also
    --------
    IRPCalibrator : Step functions, with a guarantee about their splits on the calibration rows.

    Notes
    -----
    Forecasts p enter as logarithms with a floor,

        ``z = (1 - 1e-4) log(p + floor) + 1e-4 log(p)``,

    class by class. Each class k has L prototypes, points of the simplex between its vertex e_k and
    a point t_k of the opposite face, ``r_kl = (1 - softness_kl) e_k + softness_kl t_k``. The
    calibrated forecast is the gradient at z of the convex potential

        ``F(z) = log(sum over j, k of x_j exp(J_jk) x_k) / (2 a)``,
        ``x_k = sum over l of exp(a <z, r_kl> + biases_kl)``,

    with a scale a > 0 and interactions J between classes. It is a weighted mean of the prototypes.
    With prototypes at the vertices it is temperature scaling with a bias for each class.

    References
    ----------
    Bao, Eshraghi and Wang, Brenier isotonic regression, AISTATS 2026, arXiv:2603.10452. Guo,
    Pleiss, Sun and Weinberger, On calibration of modern neural networks, ICML 2017. MacKay,
    Bayesian interpolation, Neural Computation 4, 1992.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import MonotoneCalibrator
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.dirichlet(np.ones(3), size=2000)
    >>> y = [rng.choice(3, p=p) for p in truth]
    >>> P = truth**3 / (truth**3).sum(axis=1, keepdims=True)     # an overconfident model
    >>> cal = MonotoneCalibrator().fit(P, y)
    >>> cal.predict_proba([[27 / 36, 8 / 36, 1 / 36]]).round(2)  # the truth is 3/6, 2/6, 1/6
    array([[0.5 , 0.35, 0.15]])
    >>> cal.verify(P)
    MonotonicityCheck(monotone=True, rows=2000, exact=True)
    """

    floor_ = FromMap()
    scale_ = FromMap()
    softness_ = FromMap()
    directions_ = FromMap()
    biases_ = FromMap()
    interactions_ = FromMap()
    certificate_ = FromMap()

    @property
    def prototypes_(self) -> Floats:
        """The points r_kl, shape (K, L, K)."""
        check_is_fitted(self, "map_")
        return self.map_.potential.prototypes()

    map_: MonotoneMap

    def _fit(self, sample: Sample) -> MonotoneMap:
        K, kind = sample.n_classes, sample.kind
        total = float(sample.row_weights().sum())
        some = draw_part(sample)
        floor, inverse = _choose_floor(some, total)
        departures = Departures(K, total, inverse)
        sample = sample.draw(MOST_NUMBERS // (K * departures.n_levels))
        whole = gather(_floored(sample, floor), sample.codes, sample.row_weights())
        stages = [whole]
        if len(whole[1]) > len(some):  # all that is learned from a part holds for the whole
            stages.insert(0, (_floored(some, floor), some.codes, some.row_weights()))
        theta, converged = np.zeros(departures.n_parameters), False
        for count, rows in enumerate(stages):
            theta, converged = Posterior(departures, *rows).maximise(theta, learn=not count)
        if not converged:
            warn_unconverged(self)
        return MonotoneMap(kind=kind, floor=floor, **vars(departures.potential(theta)))

    def coordinates(self, P: Any) -> Floats:
        """The points z, shape (n, K), in which the map is the gradient of a convex function.

        Parameters
        ----------
        P : array-like, dataframe or series
            Forecasts as in `fit`.
        """
        values = columns_of(self._check_new(P))
        return np.ascontiguousarray(self.map_.coordinates(NUMPY, values))

    def verify(self, P: Any) -> MonotonicityCheck:
        """Check on any rows that the map is cyclically monotone in its `coordinates`.

        Only coordinates and calibrated forecasts are compared. Two classes: the forecasts must have
        the same order, on all rows. More classes: no cycle of rows may violate the definition. Up
        to 2,000 rows all cycles are checked; of more rows, 2,000 are drawn at random.

        Parameters
        ----------
        P : array-like, dataframe or series
            Forecasts as in `fit`, of any rows.

        Returns
        -------
        MonotonicityCheck
            True or false as a condition; `rows` that were compared, and whether these are all of
            them: `exact`.
        """
        z = self.coordinates(P)
        return check_cyclic(z, self.predict_proba(P), self.certificate_.potential(z))


def _floored(sample: Sample, floor: float) -> Floats:
    """The points z of a sample, shape (K, n)."""
    return np.asarray(with_floor(NUMPY, sample.kind.log_rows(sample.forecasts, LEAST), floor))


def _choose_floor(sample: Sample, total: float) -> tuple[float, float]:
    """The floor under which temperature scaling makes the outcomes likeliest, and 1 / T at it.

    Floors are tried from the highest down, until tempered log odds exceed what rows of this
    total weight can support: forecasts of 0 that never came true on the calibration rows would
    otherwise ask for certainty.
    """
    bound = np.log(sample.n_classes * (total + 1)) + SLACK
    logs = sample.kind.log_rows(sample.forecasts, LEAST)
    found: list[tuple[float, float, float]] = []
    inverse = 1.0
    for floor in FLOORS[::-1]:
        z = with_floor(NUMPY, logs, floor)
        inverse = inverse_temperature(z, sample, start=inverse, tolerance=1e-6)
        spread = float(np.ptp(z, axis=0).max())
        if found and inverse * spread > bound:
            break
        inverse = min(inverse, bound / spread) if spread else inverse
        likelihood = of_own_class(log_softmax(inverse * z), sample.codes)
        loss = -float(np.average(likelihood, weights=sample.weights))
        found.append((loss, float(floor), inverse))
        if floor < NEGLIGIBLE * np.exp(logs.min()):  # lower ones would change nothing
            break
    return likeliest(found)
