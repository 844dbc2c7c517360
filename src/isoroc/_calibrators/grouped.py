"""GroupedCalibrator: a common map for all rows, and maps of groups that differ."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from isoroc._calibrators import frames
from isoroc._calibrators.auto import AutoCalibrator
from isoroc._calibrators.base import Calibrator
from isoroc._calibrators.group_map import GroupMap, score_groups
from isoroc._calibrators.thresholds import CarriedThresholds
from isoroc._folds import deal_folds
from isoroc._input import (
    Sample,
    Scores,
    check_groups,
    check_number,
    check_sample,
    rows_by_group,
    warn_if_reversed,
)
from isoroc._maps.grouped import GroupedMap
from isoroc._maps.load import COMMON
from isoroc._random import check_random_state


class GroupedCalibrator(GroupedMap, Calibrator):
    """Maps by group, shrunken towards a common map as far as the rows of the group allow.

    The calibrator is fitted to all rows, which gives the common map, and to the rows of each group
    of at least `min_rows` rows. The forecasts of a group are a mixture of the common map and its
    own. The weights are those under which rows that neither map has seen are likely, with a prior
    that favours the common map. So small groups, groups that do not differ, and groups that `fit`
    has not seen keep the common map.

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
    classes_ : ndarray of shape (K,)
        The labels, in the order of the columns.
    n_features_in_ : int
        Columns of the forecasts; 1 for scores.
    common_ : calibrator
        The common map, fitted.
    grouped_ : bool
        Whether it was fitted with groups.
    groups_ : ndarray of str of shape (G,)
        Groups that have a map of their own,
    members_ : list of calibrators
        these maps,
    weights_ : ndarray of shape (G,)
        and their weights in the mixture with the common map.
    group_scores_ : Table
        One row per group: number of rows, weight of its own map, log loss of unseen rows under the
        common map and under the mixture, the gain, and its standard error. The log loss is bounded
        as in `AutoCalibrator`. `isoroc.evaluate` compares any forecasts by group.

    See Also
    --------
    AutoCalibrator : The default for the common map and for those of the groups.
    evaluate : Calibration by group, before and after.

    Notes
    -----
    Groups are matched by name: in Python, files and databases the number 3 and the text "3" are the
    same group. Whether groups of people may be treated differently is not for a calibrator to
    decide. `CalibratedClassifier` passes no groups on, so there the common map is used.

    With groups, rows are dealt to folds one by one, regardless of their weight. For a given
    `random_state`, weights and the order of the rows therefore change the folds.

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

    def __init__(
        self,
        calibrator: Calibrator | None = None,
        *,
        min_rows: int = 100,
        cv: int = 5,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.calibrator = calibrator
        self.min_rows = min_rows
        self.cv = cv
        self.random_state = random_state

    @property
    def uses_folds(self) -> bool:  # type: ignore[override]
        """Whether the folds of counts are needed."""
        return self._pattern().uses_folds

    def _pattern(self) -> Calibrator:
        """What the maps are made of, not fitted."""
        given: Any = self.calibrator
        if given is None:
            return AutoCalibrator(random_state=0)
        if not isinstance(given, Calibrator) or isinstance(given, GroupedCalibrator):
            raise TypeError(f"calibrator: expected another calibrator of isoroc, got {given!r}.")
        return clone(given)  # type: ignore[no-any-return]

    def fit(
        self,
        P: Any,
        y: Any,
        *,
        groups: Any = None,
        labels: Any = None,
        sample_weight: Any = None,
        scores: Scores = "auto",
    ) -> Self:
        """Learn the common map and those of the groups.

        Parameters
        ----------
        P : array-like, dataframe or series
            Forecasts: one column of probabilities per class, or scores of two classes.
        y : array-like of shape (n,)
            The label that came true for each row.
        groups : array-like of shape (n,), default=None
            Group of each row: strings, whole numbers or booleans. Without groups there is the
            common map only.
        labels : array-like of shape (K,), default=None
            The class of each column. By default columns are matched to labels by name where a
            dataframe has the labels as column names; otherwise columns follow the sorted labels.
        sample_weight : array-like of shape (n,), default=None
            Weight of each row. Weights are counts: weight 2 is the same as the row twice.
        scores : {"auto", "probability", "logit"}, default="auto"
            What the forecasts are, as for every calibrator.

        Returns
        -------
        self
        """
        sample = check_sample(P, y, sample_weight, labels, scores=scores, warn=True)
        warn_if_reversed(sample)
        if groups is not None:
            sample = replace(sample, groups=check_groups(groups, len(sample)))
        return self.fit_validated(sample, P)

    def _fit(self, sample: Sample) -> None:
        check_number("min_rows", self.min_rows, numbers.Integral, minimum=1)
        check_number("cv", self.cv, numbers.Integral, minimum=2)
        common = self._pattern()
        found: list[GroupMap] = []
        if sample.groups is None:
            common.fit_sample(sample)
        else:
            fold = deal_folds(len(sample), int(self.cv), check_random_state(self.random_state))
            Q = common.fit_out_of_fold(sample, fold)
            likelihood = Q[np.arange(len(Q)), sample.codes]
            for name, rows in rows_by_group(sample.groups):
                own = self._pattern() if len(rows) >= self.min_rows else None
                part = sample.take(rows), fold[rows], likelihood[rows]
                found.append(GroupMap.fit(name, *part, own))
        kept = [(group, group.member) for group in found if group.member is not None]
        self.common_ = common
        self.grouped_ = sample.groups is not None
        self.groups_ = np.array([group.name for group, _ in kept], dtype=np.str_)
        self.members_ = [member for _, member in kept]
        self.weights_ = np.array([group.weight for group, _ in kept], dtype=np.float64)
        self.group_scores_ = score_groups(found)

    def fit_validated(self, sample: Sample, P: Any = None) -> Self:
        """Fit to a sample whose parts have been checked; see `Calibrator`."""
        super().fit_validated(sample, P)
        # The maps are calibrators of their own, to look at, to apply and to export.
        for fitted in (self.common_, *self.members_):
            for name in COMMON:
                if hasattr(self, name):
                    setattr(fitted, name, getattr(self, name))
        return self

    def predict(self, P: Any, groups: Any = None) -> NDArray[Any]:
        """Label with the largest calibrated probability, the first of `classes_` on ties."""
        best = self.predict_proba(P, groups).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def carry_over(self, thresholds: Any, P: Any = None) -> CarriedThresholds:
        """Thresholds of the common map, if there were no groups in `fit`; see `Calibrator`."""
        check_is_fitted(self, "classes_")
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
            check_is_fitted(self, "classes_")
            self._refuse_without_groups("name the column of the groups with group=")
        probs = [probs] if isinstance(probs, str) else list(probs)
        return frames.predict_frame(self, df, probs, None if names is None else list(names), group)
