"""GroupedCalibrator: a common map for all rows, and maps of groups that differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from isoroc._calibrators import frames
from isoroc._calibrators.auto import AutoCalibrator
from isoroc._calibrators.base import Calibrator, FromMap, adopt
from isoroc._calibrators.mixing import bounded_losses, mean_and_error, mixture_weights
from isoroc._calibrators.thresholds import CarriedThresholds
from isoroc._core.types import Floats
from isoroc._counts import deal_by_content
from isoroc._input import (
    CellSample,
    InputError,
    Sample,
    UnitOption,
    Weighting,
    check_groups,
    check_number,
    check_sample,
    check_units,
    warn_if_reversed,
)
from isoroc._maps import GroupedMap, Map
from isoroc._maps.mixture import apply_map
from isoroc._maps.modelfile import checks
from isoroc._support.seeds import check_random_state
from isoroc._support.table import Table

#: Weight of the common map relative to that of a group's own, before any row is seen. The own map
#: then has less than `LEAST_WEIGHT`, so that a group keeps the common map exactly unless its rows
#: speak against it (`benchmarks/coverage.py groups` measures it).
COMMON_SHARE = 16.0
#: Columns of `group_scores_`.
SCORES = ("group", "rows", "weight", "common_log_loss", "log_loss", "gain", "gain_se")


@dataclass(eq=False, repr=False)
class GroupedCalibrator(Calibrator):
    """Maps by group, shrunken towards a common map as far as the rows of the group allow.

    The calibrator is fitted to all rows, which gives the common map, and to each group of at least
    `min_rows` rows. The forecasts of a group are a mixture of both, with weights under which unseen
    rows are likely and a prior that favours the common map. So small groups, groups that do not
    differ, and groups that `fit` has not seen keep the common map.

    Parameters
    ----------
    calibrator : calibrator, default=None
        A calibrator of isoroc; ``AutoCalibrator(random_state=0)`` by default.
    min_rows : int, default=100
        Groups of fewer rows get the common map.
    cv : int, default=5
        Number of folds, in which rows are held out for the weights.
    random_state : int, RandomState or None, default=None
        Draws the folds.

    Attributes
    ----------
    classes_, n_features_in_, unit_, summary_, map_, checksum
        As in `IdentityCalibrator`.
    common_, grouped_ : calibrator and bool
        The common map, fitted, and whether there were groups in `fit`.
    groups_, members_, weights_ : ndarray of str, list of calibrators, ndarray of shape (G,)
        Groups that have a map of their own, their fitted calibrators, and the weight of each
        group's map in its mixture with the common map.
    group_scores_ : Table
        For each group: rows, weight of its own map, log loss of unseen rows, bounded as in
        `AutoCalibrator`, under the common map and under the mixture, gain and its standard error.

    See Also
    --------
    AutoCalibrator : The default for the common map and for those of the groups.
    evaluate : Calibration by group, before and after.

    Notes
    -----
    Groups are matched by name: everywhere the number 3 and the text "3" are the same group. Whether
    groups of people may be treated differently is not for a calibrator to decide.
    `CalibratedClassifier` passes the groups of `fit` and `predict_proba` on.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import GroupedCalibrator
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(3000)
    >>> region = rng.choice(["north", "south"], 3000)
    >>> y = rng.random(3000) < np.where(region == "north", p, p**3)  # rarer in the south
    >>> calibrator = GroupedCalibrator(random_state=0).fit(p, y, groups=region)
    >>> calibrator.predict_proba([0.5, 0.5, 0.5], groups=["north", "south", "west"])[:, 1].round(1)
    array([0.5, 0.1, 0.3])
    >>> calibrator.group_scores_.select("group", "rows", "weight")
      group  rows  weight
      north  1505       1
      south  1495       1
    """

    calibrator: Calibrator | None = None
    _: KW_ONLY
    min_rows: int = 100
    cv: int = 5
    random_state: int | np.random.RandomState | None = None

    _deals_rows: ClassVar[bool] = True
    _state: ClassVar[dict[str, checks.Check]] = {
        "common_": checks.anything,
        "members_": checks.list_of(checks.anything, least=0),
        "group_scores_": checks.table,
    }

    map_: GroupedMap = field(init=False)
    common_: Calibrator = field(init=False)
    members_: list[Calibrator] = field(init=False)
    grouped_, groups_, weights_ = FromMap(), FromMap(), FromMap()

    @property
    def _uses_folds(self) -> bool:  # type: ignore[override]
        return self._pattern()._uses_folds

    def _pattern(self) -> Calibrator:
        """What the maps are made of, not fitted."""
        given: Any = self.calibrator
        if given is None:
            return AutoCalibrator(random_state=0)
        if not isinstance(given, Calibrator) or isinstance(given, GroupedCalibrator):
            fix = "expected another calibrator of isoroc"
            raise InputError("calibrator", None, f"is {given!r}", fix)
        return clone(given)  # type: ignore[no-any-return]

    def fit(
        self,
        P: Any,
        y: Any,
        *,
        groups: Any = None,
        labels: Any = None,
        sample_weight: Any = None,
        weighting: Weighting = "importance",
        clusters: Any = None,
        unit: UnitOption = "auto",
    ) -> Self:
        """Learn the common map and those of the groups.

        Parameters
        ----------
        P, y
            As for every calibrator.
        groups : array-like of shape (n,), default=None
            Group of each row: strings, whole numbers or booleans. Without groups there is the
            common map only.
        labels, sample_weight, weighting, clusters, scores
            As for every calibrator.

        Returns
        -------
        self
        """
        options: Any = {"clusters": clusters, "unit": unit, "clip": True, "advice": "pass"}
        sample = check_sample(P, y, sample_weight, labels, **options)
        check_units(sample, unit)
        warn_if_reversed(sample)
        if groups is not None:
            sample = replace(sample, groups=check_groups(groups, len(sample)))
        return self._fit_validated(sample, weighting, P)

    def _fit(self, sample: Sample) -> GroupedMap:
        check_number("min_rows", self.min_rows, int, minimum=1)
        check_number("cv", self.cv, int, minimum=2)
        self.common_ = self._pattern()
        found: list[tuple[Any, Map, tuple[Any, ...]]] = []
        scores: list[tuple[Any, ...]] = []
        if sample.groups is None:
            common = self.common_._fit(sample)
        else:
            random_state = check_random_state(self.random_state)
            dealt = deal_by_content(sample, int(self.cv), random_state)
            common, Q = self.common_._fit_out_of_fold(dealt, dealt.folds())
            likelihood = Q[np.arange(len(Q)), dealt.codes]
            names, sizes = np.unique(sample.groups, return_counts=True)
            for name, n in zip(names.tolist(), sizes, strict=True):
                rows = np.flatnonzero(dealt.groups == name)
                own = self._pattern() if n >= self.min_rows else None
                fitted, scored = _fit_group(dealt.take(rows), likelihood[rows], own)
                row = (name, int(n), *scored)
                scores.append(row)
                if fitted is not None:
                    found.append((own, fitted, row))
        self.members_ = [own for own, _, _ in found]
        self.group_scores_ = Table.from_rows(scores, *SCORES)
        return GroupedMap(
            kind=sample.kind,
            common=common,
            grouped=sample.groups is not None,
            groups=np.array([row[0] for _, _, row in found], dtype=np.str_),
            members=[fitted for _, fitted, _ in found],
            weights=np.array([row[2] for _, _, row in found], dtype=np.float64),
        )

    def _finish(self) -> None:
        # The maps are calibrators of their own, to look at, to apply and to export.
        adopt(self, [self.common_, *self.members_], [self.map_.common, *self.map_.members])

    def predict_proba(self, P: Any, groups: Any = None) -> Floats:
        """Calibrated forecasts, shape (n, K), one column for each of `classes_`; rows sum to one.

        Parameters
        ----------
        P : array-like, dataframe or series
            Forecasts as in `fit`.
        groups : array-like of shape (n,), default=None
            Group of each row, required if `fit` had groups. Those it has not seen get the common
            map.
        """
        values = self._check_new(P)
        return apply_map(self.map_, values, groups)

    def predict(self, P: Any, groups: Any = None) -> NDArray[Any]:
        """Label with the largest calibrated probability, the first of `classes_` on ties."""
        best = self.predict_proba(P, groups).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def carry_over(self, thresholds: Any, P: Any = None) -> CarriedThresholds:
        """Thresholds of the common map, if there were no groups in `fit`; see `Calibrator`."""
        self._refuse_without_groups("thresholds differ by group; common_ is the common map")
        return super().carry_over(thresholds, P)

    def predict_frame(
        self,
        df: Any,
        probs: str | Sequence[str],
        *,
        names: Sequence[str] | None = None,
        group: str | None = None,
    ) -> Any:
        """As for every calibrator; `group` is the column of the groups."""
        if group is None:
            self._refuse_without_groups("name the column of the groups with group=")
        return frames.predict_frame(self, df, probs, names, group)

    def _refuse_without_groups(self, fix: str) -> None:
        check_is_fitted(self, "map_")
        if self.map_.grouped:
            raise InputError("groups", None, "were given in fit", fix)


def _fit_group(
    sample: CellSample, common: Floats, own: Calibrator | None
) -> tuple[Map | None, tuple[float, ...]]:
    """Fit `own` to a group; its map, if it has weight, and the scores of the group.

    `common` is the probability that the common map, fitted to other folds, gave to each label.
    """
    sample = sample.effective()  # of the group alone
    row_weights = sample.row_weights()
    likelihood, weights = np.column_stack([common, common]), np.array([1.0, 0.0])
    folds, fold = np.unique(sample.fold, return_inverse=True)
    fitted: Map | None = None
    if own is not None and len(folds) > 1 and np.count_nonzero(sample.class_weights()) > 1:
        fitted, Q = own._fit_out_of_fold(sample, fold)
        likelihood[:, 1] = Q[np.arange(len(Q)), sample.codes]
        weights = mixture_weights(likelihood, row_weights, np.array([COMMON_SHARE, 1.0]))
    columns = np.column_stack([common, likelihood @ weights])
    losses = bounded_losses(columns, row_weights, sample.n_classes)
    values = np.column_stack([losses, losses[:, 0] - losses[:, 1]])
    means, errors = mean_and_error(values, sample)
    weight = float(weights[1])
    return fitted if weight else None, (weight, *means, errors[-1])
