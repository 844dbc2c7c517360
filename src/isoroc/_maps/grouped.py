"""GroupedMap: a common map, and maps of groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from isoroc._input import InputError, Names, check_groups, rows_by_group
from isoroc._maps.base import CalibrationMap
from isoroc._maps.nested import by_place, check_nested
from isoroc._persistence import Fault, states
from isoroc._simplex import Floats
from isoroc._writer import C, Writer


class GroupedMap(CalibrationMap):
    """What `GroupedCalibrator` learns."""

    common_: CalibrationMap
    grouped_: bool
    groups_: Names
    members_: Sequence[CalibrationMap]
    weights_: Floats

    fitted_state: ClassVar[dict[str, states.Check]] = {
        "common_": states.anything,
        "grouped_": states.boolean,
        "groups_": states.names("G"),
        "members_": states.list_of(states.anything, least=0),
        "weights_": states.coefficients("G"),
        "group_scores_": states.table,
    }
    reads_logs: ClassVar[bool] = True

    def takes_probabilities(self) -> bool:
        """Whether scores of two classes outside [0, 1] are refused."""
        return self.common_.takes_probabilities()

    def has_steps(self) -> bool:
        """Whether the common map or that of a group is not continuous."""
        return any(member.has_steps() for member in (self.common_, *self.members_))

    def _calibrate(self, forecasts: Floats) -> Floats:
        return self.common_.calibrate(forecasts)

    def calibrate_groups(self, forecasts: Floats, groups: Names) -> Floats:
        """Calibrated forecasts of a forecast array whose rows belong to groups."""
        Q = self.calibrate(forecasts)
        place = {str(name): g for g, name in enumerate(self.groups_)}
        for name, rows in rows_by_group(groups):
            if (g := place.get(name)) is not None:
                weight, own = self.weights_[g], self.members_[g].calibrate(forecasts[rows])
                Q[rows] = (1 - weight) * Q[rows] + weight * own
        return Q

    def predict_proba(self, P: Any, groups: Any = None) -> Floats:
        """Calibrated forecasts, shape (n, K), one column for each of `classes_`; rows sum to one.

        Parameters
        ----------
        P : array-like, dataframe or series
            Forecasts as in `fit`.
        groups : array-like of shape (n,), default=None
            Group of each row; required if there were groups in `fit`. Groups that `fit` has not
            seen get the common map.
        """
        forecasts = self._check_new(P)
        if groups is None:
            self._refuse_without_groups("pass the group of each row; new ones get the common map")
            return self.calibrate(forecasts)
        return self.calibrate_groups(forecasts, check_groups(groups, len(forecasts)))

    def _refuse_without_groups(self, fix: str) -> None:
        if self.grouped_:
            raise InputError("groups", None, "were given in fit", fix)

    def _write(self, w: Writer[C], columns: Sequence[C]) -> list[C]:
        return self.common_.write(w, columns)

    def write_groups(self, w: Writer[C], columns: Sequence[C], place: C) -> list[C]:
        """As `write`, for rows whose place among `groups_` is known; others have another place."""
        common = w.keep(self.common_.write(w, columns))
        result: list[C] = list(common)
        for g, member in reversed(list(enumerate(self.members_))):
            weight = float(self.weights_[g])
            here = w.is_at(place, g)
            for k, own in enumerate(w.keep(member.write(w, columns))):
                parts = (1 - weight, common[k]), (weight, own)
                mixed = [w.multiply(w.number(share), part) for share, part in parts]
                result[k] = w.where(here, w.run(mixed), result[k])
        return result

    def _check_fitted(self, n_classes: int) -> None:
        """Check the fitted attributes, and those of the maps."""
        super()._check_fitted(n_classes)
        if ((self.weights_ < 0) | (self.weights_ > 1)).any():
            raise Fault("weights_", "expected numbers between 0 and 1")
        if len(self.members_) != len(self.groups_):
            raise Fault("members_", f"expected {len(self.groups_)} calibrators")
        check_nested({"common_": self.common_} | by_place("members_", self.members_), n_classes)
