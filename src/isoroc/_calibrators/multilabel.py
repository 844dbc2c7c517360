"""MultiLabelCalibrator: labels that do not exclude each other."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from isoroc._backends import NUMPY
from isoroc._calibrators.base import Calibrator
from isoroc._calibrators.mixing import Caution, likelihoods, mixture_weights
from isoroc._calibrators.sigmoid import BetaCalibrator
from isoroc._calibrators.spline import SplineCalibrator
from isoroc._core.evidence import score_test
from isoroc._core.newton import logistic_regression
from isoroc._core.types import Floats
from isoroc._counts import deal_by_content
from isoroc._input import (
    CellSample,
    InputError,
    Sample,
    UnitOption,
    Weighting,
    check_labels,
    check_units,
    columns_of_labels,
    to_array,
)
from isoroc._input.kinds import LABELS
from isoroc._maps import IdentityMap, Map, MixtureMap, MultiLabelMap, SigmoidMap
from isoroc._maps.modelfile import checks
from isoroc._support.table import Table


@dataclass(eq=False, repr=False)
class MultiLabelCalibrator(Calibrator):
    """One map for each of several labels that do not exclude each other.

    Maps of beta calibration are learned for all labels together. If a label has few rows, its map
    is shrunk towards a common one. Each is mixed with the uncalibrated forecasts and with a map
    learned from the rows of the label alone, as far as that helps. So calibrated forecasts change
    little, and labels that need the same correction share it.

    Parameters
    ----------
    calibrator : calibrator, default=None
        Calibrator for the maps of single labels, by default `SplineCalibrator`.

    Attributes
    ----------
    classes_ : ndarray of shape (L,)
        The labels: names of the columns, or their numbers.
    n_features_in_, unit_, summary_, map_, checksum
        As in `IdentityCalibrator`.
    common_ : ndarray of shape (3,)
        The common map: a, b and c of `BetaCalibrator`.
    labels_ : Table
        For each label: its ``rows`` and ``positives``, a, b and c as ``coef``, ``rest`` and
        ``intercept``, the ``weight`` of its own map, and the weight of the forecasts themselves
        as ``uncalibrated``.

    See Also
    --------
    evaluate : With ``multilabel=True``, the worst labels, and micro and macro averages.
    SegmentCalibrator : Corrects forecasts within segments of rows.

    Notes
    -----
    The probability of a label is ``v * p + (1 - v - w) * expit(a log(p) - b log(1 - p) + c) +
    w * h(p)``, with its own map h. The normal prior of (a, b, c), with the common map as its mean,
    is learned from all labels (empirical Bayes). Neither a nor b is negative, so forecasts of a
    label keep their order if h keeps it. The weights maximise the likelihood of rows held out in
    five folds, with a prior as in `AutoCalibrator`. Score tests of the forecasts, of this label and
    of all labels, decide the prior weight of the uncalibrated forecasts. A test of the shared map
    decides the prior weight of the label's own map. Labels with fewer than five rows of either
    outcome have no map of their own.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import MultiLabelCalibrator
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random((500, 3)) * [1, 0.5, 0.1]
    >>> y = rng.random((500, 3)) < truth
    >>> P = truth**2 / (truth**2 + (1 - truth) ** 2)  # an overconfident model
    >>> calibrator = MultiLabelCalibrator().fit(P, y)
    >>> calibrator.predict_proba([[0.9, 0.1, 0.01]]).round(1)
    array([[0.8, 0.3, 0.1]])
    >>> calibrator.labels_.select("label", "rows", "positives")
      label  rows  positives
          0   500        275
          1   500        132
          2   500         15
    """

    calibrator: Calibrator | None = None

    _has_classes: ClassVar[bool] = False
    _state: ClassVar[dict[str, checks.Check]] = {
        "common_": checks.coefficients(3),
        "labels_": checks.table,
    }

    map_: MultiLabelMap = field(init=False)
    common_: Floats = field(init=False)
    labels_: Table = field(init=False)

    def fit(
        self,
        P: Any,
        y: Any,
        *,
        labels: Any = None,
        sample_weight: Any = None,
        weighting: Weighting = "importance",
        clusters: Any = None,
        unit: UnitOption = "auto",
    ) -> Self:
        """Learn the maps of all labels.

        Parameters
        ----------
        P : array-like or dataframe of shape (n, L), or list of L arrays of shape (n, 2)
            The forecast of each label or, as forests and `MultiOutputClassifier` return them, the
            probabilities of 0 and 1 for each label.
        y : array-like or dataframe of shape (n, L)
            1 for the labels of a row, 0 for others, and NaN for unknown ones, which are left out.
        labels : array-like of shape (L,), default=None
            Names of the labels, by default the names of the columns.
        sample_weight, weighting, clusters
            As in `AutoCalibrator.fit`, with one entry per row.
        unit : {"auto", "probability", "percent", "logit"}, default="auto"
            What the forecasts are. "auto": log odds if one lies outside [0, 1].

        Returns
        -------
        self
        """
        given = check_labels(P, y, sample_weight, labels, clusters=clusters, unit=unit)
        check_units(given.sample, unit)
        self._fit_validated(given.sample, weighting)
        self._remember_columns(P, given.forecasts, reset=True)
        self.classes_ = given.names
        self.summary_ = self.summary_ | {"rows": len(given.known)}
        return self

    def _fit(self, sample: Sample) -> MultiLabelMap:
        single: Any = SplineCalibrator() if self.calibrator is None else self.calibrator
        if not isinstance(single, Calibrator) or hasattr(single, "calibrator"):
            problem = f"is {single!r}"
            raise InputError("calibrator", None, problem, "expected another calibrator of isoroc")
        if sample.segments is None:
            raise InputError("counts", None, "hold one outcome per row", "pass rows to fit")
        dealt = deal_by_content(sample, 5)
        label, names = dealt.segments.columns["label"]  # type: ignore[union-attr]
        dealt = replace(dealt, segments=None)
        parts = [dealt.take(label == k) for k in range(len(names))]  # type: ignore[arg-type]
        shared = SharedBeta(dealt)
        shared.learn([part.draw(10_000) for part in parts])
        p_all = score_test(IdentityMap(kind=dealt.kind).apply(dealt.forecasts), dealt)
        maps = list[Map]()
        lines = []
        for name, part in zip(names, parts, strict=True):  # type: ignore[arg-type]
            members, weights = mix_label(part, shared, clone(single), p_all)
            beta: Any = members[1]
            kept = [each for each, weight in zip(members, weights, strict=True) if weight]
            mixture = MixtureMap(
                kind=part.kind, monotone=False, members=kept, weights=weights[weights > 0]
            )
            maps.append(kept[0] if len(kept) == 1 else mixture)
            counts = np.bincount(part.codes, minlength=2)
            numbers = beta.coef[1], beta.rest[1], beta.intercept[1]
            lines.append((name, len(part), counts[1], *numbers, weights[2], weights[0]))
        head = ("label", "rows", "positives", "coef", "rest", "intercept", "weight", "uncalibrated")
        self.labels_ = Table.from_rows(lines, *head)
        self.common_ = shared.numbers(shared.mean)
        return MultiLabelMap(kind=LABELS[sample.unit], maps=maps)

    def _check_new(self, P: Any, ops: Any = NUMPY) -> Floats:
        return super()._check_new(columns_of_labels(P), ops)

    def predict(self, P: Any) -> NDArray[Any]:
        """1 for each label with a calibrated probability above 0.5, shape (n, L)."""
        return np.asarray(to_array(self.predict_proba(P), name="P") > 0.5, dtype=np.intp)

    def carry_over(self, thresholds: Any, P: Any = None) -> NoReturn:  # noqa: ARG002
        """Not available: thresholds differ by label."""
        raise InputError("thresholds", None, "differ by label", "calibrate a single label")


def mix_label(
    part: CellSample, shared: SharedBeta, own: Calibrator, p_all: float
) -> tuple[list[Map], Floats]:
    """The uncalibrated forecasts, the shared and the own map of a label, and their weights.

    `p_all` is the p-value of the forecasts of all labels. Labels with few rows have no own map.
    """
    unchanged = IdentityMap(kind=part.kind)
    before = unchanged.apply(part.forecasts)
    n_rows = max(float(part.row_weights().sum()), 1.0)
    p = min(1.0, 2 * min(p_all, score_test(before, part)))
    caution = Caution.of(2)
    prior = np.array([caution.share(8.0, n_rows, n_rows, p), 4.0])
    n_rows_of = np.bincount(part.codes, part.row_weights() ** 2 / part.squared_weights(), 2)
    # A map of the label's own is tried from five rows of either outcome. Effective numbers of rows
    # are not whole: 4.5 is where they round to 5.
    if n_rows_of.min() < 4.5 or not np.ptp(part.fold):
        only = prior / prior.sum()
        only = np.append(np.where(only < 0.1, 0.0, only), 0.0)
        return [unchanged, shared._fit(part), unchanged], only / only.sum()
    fold = part.folds()
    beta, by_shared = shared._fit_out_of_fold(part, fold)
    alone, by_own = own._fit_out_of_fold(part, fold)
    # The shared map is to the own one what uncalibrated forecasts are to calibrators.
    prior[1] = caution.share(4.0, n_rows, n_rows, score_test(by_shared, part))
    likelihood = likelihoods([before, by_shared, by_own], part)
    prior = np.append(prior, 1.0)
    # Maps of little weight would make exports many times larger.
    weights = mixture_weights(
        likelihood, part.row_weights(), prior, unchanged=0, dropped=0.1, full=0.3
    )
    return [unchanged, beta, alone], weights


class SharedBeta(Calibrator):
    """Beta calibration with a normal prior of the coefficients, learned from several labels.

    The coefficients theta multiply a constant and the features log(p) and -log(1 - p), less their
    means. The prior is weakly drawn to the map that changes nothing.
    """

    def __init__(self, sample: Sample) -> None:
        few = sample.draw(100_000)
        self.floor = BetaCalibrator()._fit(few).floor
        features = self._features(few)
        weights = few.row_weights()
        self.centre = np.average(features, axis=0, weights=weights)
        spread = np.sqrt(np.average((features - self.centre) ** 2, axis=0, weights=weights))
        self.unchanged = np.array([self.centre.sum(), 1.0, 1.0])
        self.mean = self.unchanged
        # The usual covariance: a standard deviation of 1 for the constant, and of 0.3 for what a
        # feature one standard deviation away adds to the log odds. EM begins at twice these widths.
        self.width = np.diag([1.0, *(0.1 / np.maximum(spread, 0.01) ** 2)])
        self.root = 2 * np.sqrt(self.width)  # root @ root.T is the covariance matrix

    def _features(self, sample: Sample) -> Floats:
        log_rest, log_p = sample.kind.log_rows(sample.forecasts, self.floor)
        return np.column_stack([log_p, -log_rest])

    def _posterior(self, sample: Sample, used: Floats) -> tuple[Floats, Floats]:
        """Most probable coefficients of the columns that are used, and their covariance matrix."""
        X = used * np.column_stack([np.ones(len(sample)), self._features(sample) - self.centre])
        y = sample.codes.astype(np.float64)
        weights = sample.row_weights()
        theta, _, H = logistic_regression(
            (X @ self.root).T,
            y,
            weights,
            offset=X @ self.mean,
            start=np.zeros((1, 3)),
            precision=np.ones((1, 3)),
            least_gain=1e-9,
        )
        return self.mean + self.root @ theta[0], self.root @ np.linalg.inv(H[0]) @ self.root.T

    def learn(self, labels: list[CellSample], n_steps: int = 40) -> None:
        """Learn the mean and the covariance matrix of the coefficients by the EM algorithm."""
        L = len(labels)
        for _ in range(n_steps):
            theta, covariances = self._posteriors(labels)
            # The map that changes nothing counts as a hundredth of a label.
            self.mean = (theta.sum(axis=0) + 0.01 * self.unchanged) / (L + 0.01)
            apart = theta - self.mean
            # The usual width counts as three labels: few labels say little about their spread.
            total = apart.T @ apart + covariances.sum(axis=0) + 3 * self.width
            old = self.root
            self.root = np.linalg.cholesky(total / (L + 3))
            if np.abs(np.linalg.solve(old, self.root) - np.eye(3)).max() < 0.01:
                break
        self._narrow(labels)

    def _posteriors(self, labels: list[CellSample]) -> tuple[Floats, Floats]:
        """Coefficients of all labels and their covariance matrices."""
        posteriors = (self._posterior(label, np.ones(3)) for label in labels)
        theta, covariances = map(np.array, zip(*posteriors, strict=True))
        return theta, covariances

    def _narrow(self, labels: list[CellSample], n_rounds: int = 3, least_gain: float = 3.0) -> None:
        """Scale the prior by the factor that the rows make most probable, if by `least_gain` nats.

        The EM algorithm reaches narrow priors slowly, and the usual width keeps it from them. Given
        the posteriors, likelihoods of the coefficients are about normal, so the probability of the
        rows under other priors, and the best mean, have a closed form.
        """
        widest = self.root
        for _ in range(n_rounds):
            theta, covariances = self._posteriors(labels)
            before = np.linalg.inv(self.root @ self.root.T)
            after = np.linalg.inv(covariances)
            A: Floats = np.asarray(after - before, np.float64)  # precisions of the likelihoods
            b = np.einsum("lij,lj->li", after, theta) - before @ self.mean
            usual, *narrow = (self._evidence(A, b, f * widest) for f in (1.0, 0.5, 0.25, 0.1, 0.03))
            best = max(narrow, key=itemgetter(0))
            is_clear = best[0] > usual[0] + least_gain
            _, self.mean, self.root = best if is_clear else usual

    def _evidence(self, A: Floats, b: Floats, root: Floats) -> tuple[float, Floats, Floats]:
        """Log probability of the rows of all labels under a prior, and the best mean for it."""
        covariance = root @ root.T
        M = np.linalg.inv(A + np.linalg.inv(covariance))
        W = (A - A @ M @ A).sum(axis=0)
        u = (b - np.einsum("lij,ljk,lk->li", A, M, b)).sum(axis=0)
        weak = 0.01 * np.linalg.inv(self.width)
        mean = np.linalg.solve(W + weak, u + weak @ self.unchanged)
        size = np.linalg.slogdet(np.eye(3) + A @ covariance)[1].sum()
        square = np.einsum("li,lij,lj->", b, M, b)
        return float((square - size) / 2 + mean @ u - mean @ W @ mean / 2), mean, root

    def _fit(self, sample: Sample) -> SigmoidMap:
        """The most probable map of a label, with slopes of 0 in place of negative ones."""
        used = np.ones(3)
        theta = np.array([0.0, -1.0, -1.0])
        while (theta[1:] < 0).any():
            theta = used * self._posterior(sample, used)[0]
            used[1:] *= theta[1:] >= 0
        a, b, c = self.numbers(theta)
        return SigmoidMap(
            kind=sample.kind,
            floor=self.floor,
            linear=False,
            coef=np.array([b, a]),
            rest=np.array([a, b]),
            intercept=np.array([-c, c]),
        )

    def numbers(self, theta: Floats) -> Floats:
        """a, b and c of `BetaCalibrator`."""
        return np.append(theta[1:], theta[0] - theta[1:] @ self.centre)
