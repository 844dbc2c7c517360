"""MultiLabelCalibrator: labels that do not exclude each other."""

from dataclasses import KW_ONLY, dataclass, field, replace
from types import SimpleNamespace
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from isoroc._backends import NUMPY
from isoroc._calibrators.auto import AutoCalibrator
from isoroc._calibrators.base import Calibrator, attach_fitted
from isoroc._calibrators.mixing import mixture_weights
from isoroc._calibrators.shifts import Columns, Regression, held_out, make_term
from isoroc._calibrators.spline import SplineCalibrator
from isoroc._core.simplex import LEAST
from isoroc._core.types import Floats, Ints
from isoroc._counts import deal_by_content
from isoroc._counts.cells import in_cells
from isoroc._input import (
    CellSample,
    InputError,
    Sample,
    UnitOption,
    Weighting,
    check_labels,
    check_number,
    check_units,
    columns_of_labels,
    to_array,
)
from isoroc._input.kinds import LABELS
from isoroc._maps import Map, MultiLabelMap
from isoroc._maps.modelfile import checks
from isoroc._maps.segments import LEAST_SCALE
from isoroc._support.seeds import check_random_state
from isoroc._support.table import Table


@dataclass(eq=False, repr=False)
class MultiLabelCalibrator(Calibrator):
    """One map for each of several labels that do not exclude each other.

    A common map is learned from all labels. Each label scales and shifts its log odds as far as its
    rows show that it differs from the others, and the result is mixed with a map learned from these
    rows alone. So a label with five positives is calibrated almost like the others.

    Parameters
    ----------
    calibrator : calibrator, default=None
        What makes the common map and those of single labels; by default
        ``AutoCalibrator(random_state=0)`` and `SplineCalibrator`.
    cv : int, default=5
        Number of folds, in which rows are held out for the weights of the labels' own maps.
    random_state : int, RandomState or None, default=0
        Draws the folds.

    Attributes
    ----------
    classes_ : ndarray of shape (L,)
        The labels: names of the columns, or their numbers.
    n_features_in_, unit_, summary_, map_, checksum
        As in `IdentityCalibrator`.
    common_ : calibrator
        The map of all labels.
    labels_ : Table
        For each label: its ``rows`` and ``positives``, ``scale`` and ``shift`` of the common log
        odds, and the ``weight`` of its own map.

    See Also
    --------
    evaluate : With ``multilabel=True``, the worst labels, and micro and macro averages.
    SegmentCalibrator : Corrects forecasts within segments of rows.

    Notes
    -----
    The probability of a label is ``(1 - w) * expit(a * logit(g(p)) + b) + w * h(p)``, with the
    common map g and its own map h. Scales a and shifts b have normal priors around common values,
    with precisions that maximise the evidence (MacKay 1992). The weight w maximises the likelihood
    of rows held out, all labels of a row at once. Labels with fewer than five rows of either
    outcome have no map of their own. Forecasts of a label keep their order if both maps keep it.

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
    _: KW_ONLY
    cv: int = 5
    random_state: int | np.random.RandomState | None = 0

    _deals_rows: ClassVar[bool] = True
    _has_classes: ClassVar[bool] = False
    _state: ClassVar[dict[str, checks.Check]] = {
        "common_": checks.anything,
        "labels_": checks.table,
    }

    map_: MultiLabelMap = field(init=False)
    common_: Calibrator = field(init=False)
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
            Names of the labels; by default those of the columns.
        sample_weight, weighting, clusters
            As for every calibrator, by row.
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

    def _pattern(self, default: Calibrator) -> Calibrator:
        """What makes a map, not fitted."""
        given: Any = default if self.calibrator is None else self.calibrator
        if not isinstance(given, Calibrator) or hasattr(given, "calibrator"):
            fix = "expected another calibrator of isoroc"
            raise InputError("calibrator", None, f"is {given!r}", fix)
        return clone(given)  # type: ignore[no-any-return]

    def _fit(self, sample: Sample) -> MultiLabelMap:
        check_number("cv", self.cv, int, minimum=2)
        if sample.segments is None:
            raise InputError("counts", None, "hold one outcome per row", "pass rows to fit")
        self.common_ = self._pattern(AutoCalibrator(random_state=0))
        dealt = deal_by_content(sample, int(self.cv), check_random_state(self.random_state))
        label, names = dealt.segments.columns["label"]  # type: ignore[union-attr]
        dealt, L = replace(dealt, segments=None), len(names)  # type: ignore[arg-type]
        # Calibrators count many rows in cells only if there are no clusters.
        many = sample.clusters is not None and len(sample) > 20_000
        common = self.common_._fit(
            in_cells(dealt, 20_000) if many else replace(sample, segments=None)
        )
        scales, (shifts, weights), own = np.ones(L), np.zeros((2, L)), []
        counts = np.bincount(2 * label + dealt.codes, minlength=2 * L).reshape(L, 2)
        if L > 1:
            scales, shifts, likelihood = _scale_and_shift(dealt, common, label, L)
            for k in np.flatnonzero(counts.min(axis=1) >= 5):
                rows = np.flatnonzero(label == k)
                weights[k], found = self._weigh(dealt.take(rows), likelihood[rows])
                own += [found] if weights[k] else []
        about = {"label": names, "rows": counts.sum(axis=1), "positives": counts[:, 1]}
        self.labels_ = Table(about | {"scale": scales, "shift": shifts, "weight": weights})
        numbers: Any = {"scales": scales, "shifts": shifts, "weights": weights}
        return MultiLabelMap(kind=LABELS[sample.unit], common=common, own=own, **numbers)

    def _weigh(self, sample: CellSample, likelihood: Floats) -> tuple[float, Map]:
        """Weight of a label's own map, next to one of this likelihood, and the map."""
        found, Q = self._pattern(SplineCalibrator())._fit_out_of_fold(sample, sample.folds())
        both = np.column_stack([likelihood, Q[np.arange(len(Q)), sample.codes]])
        return float(mixture_weights(both, sample.row_weights(), np.array([2.0, 1.0]))[1]), found

    def _finish(self) -> None:
        summary = {name: own for name, own in self.summary_.items() if name != "range"}
        of_two: Any = SimpleNamespace(classes_=np.arange(2), n_features_in_=1, summary_=summary)
        attach_fitted(of_two, [self.common_], [self.map_.common])

    def _check_new(self, P: Any, ops: Any = NUMPY) -> Floats:
        return super()._check_new(columns_of_labels(P), ops)

    def predict(self, P: Any) -> NDArray[Any]:
        """1 for each label with a calibrated probability above 0.5, shape (n, L)."""
        return np.asarray(to_array(self.predict_proba(P), name="P") > 0.5, dtype=np.intp)

    def carry_over(self, thresholds: Any, P: Any = None) -> NoReturn:  # noqa: ARG002
        """Not available: thresholds differ by label."""
        raise InputError("thresholds", None, "differ by label", "calibrate a single label")


def _scale_and_shift(
    dealt: CellSample, common: Map, label: Ints, size: int
) -> tuple[Floats, Floats, Floats]:
    """Scale and shift of the common log odds of each label, and the likelihood of rows held out."""
    z = np.log(np.maximum(common.apply(dealt.forecasts), LEAST))
    columns = Columns([label], [size], [False])
    rows = dealt.codes.astype(np.intp), dealt.row_weights(), columns
    model = Regression(z[:, 1:] - z[:, :1], *rows)
    model.add(make_term(columns, (0,), 1, scales=scales) for scales in (False, True))
    model.improve(30)
    scales, shifts = np.ones(size), np.zeros(size)
    if model.terms:  # otherwise labels do not differ
        scales, shifts = scales + model.slope, shifts + model.intercept
    for term in model.terms:
        total = scales if term.scales else shifts
        total += term.values[:, 0]
    likelihood, fold = np.empty(len(dealt)), dealt.folds()
    for f, part in enumerate(held_out(model, fold, 0, few_rows=0)):
        likelihood[fold == f] = part.likelihood()
    return np.maximum(scales, LEAST_SCALE), shifts, likelihood
