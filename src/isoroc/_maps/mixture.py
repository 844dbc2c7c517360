"""Means of maps: mixtures, and maps by group; how a map is applied to rows with groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isoroc._backends import NUMPY, Ops, Truth, V, added
from isoroc._core.simplex import LEAST
from isoroc._core.types import Floats
from isoroc._input import InputError, Names, check_groups, rows_by_group
from isoroc._maps.base import Forecasts, IdentityMap, Map, check_nested, state
from isoroc._maps.modelfile import Fault, checks
from isoroc._maps.monotone import MonotoneMap, MonotonicityCertificate


@dataclass(frozen=True, eq=False, kw_only=True)
class MixtureMap(Map):
    """The weighted mean of the forecasts of other maps; if `monotone`, all of them are.

    A mean of calibrated forecasts is underconfident (Ranjan and Gneiting 2010), so it is raised to
    the power `exponent` and normalised; a monotone mixture has the exponent 1. The identity is, as
    a `MonotoneMap`, the gradient of a convex function of z, so averages of both are gradients too.
    """

    members: Sequence[Map] = state(checks.list_of(checks.anything, "M"))
    weights: Floats = state(checks.probabilities("M"))
    monotone: bool = state(checks.boolean)
    exponent: float = state(checks.number(above=0.0, most=100.0), default=1.0)

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """Whether some member has steps."""
        return any(member.exact for member in self.members)

    def check(self, n_classes: int) -> None:
        super().check(n_classes)
        check_nested(self.members, self.kind, n_classes)
        if self.monotone and self.exponent != 1:
            raise Fault("exponent", "a monotone mixture has exponent 1")

    def formula(self, ops: Ops[V], X: V) -> V:
        parts = zip(self.members, self.weights, strict=True)
        mean = added(member.formula(ops, X) * float(weight) for member, weight in parts)
        return self._sharpen(ops, mean)

    def compiled(self, forecasts: Forecasts) -> Floats:
        """The same by the compiled loops of the members, which share logarithms."""
        parts = zip(self.members, self.weights, strict=True)
        first, *others = (member.compiled(forecasts) * float(weight) for member, weight in parts)
        for part in others:
            first += part
        return np.asarray(self._sharpen(NUMPY, first))

    def _sharpen(self, ops: Ops[V], Q: V) -> V:
        if self.exponent == 1:
            return Q
        return ops.softmax(ops.log(ops.maximum(Q, LEAST)) * self.exponent)

    def is_increasing(self) -> bool:
        """Whether all members are increasing; one is enough in a monotone mixture."""
        increasing = [member.is_increasing() for member in self.members]
        return any(increasing) if self.monotone else all(increasing)

    def certificate(self, n_classes: int) -> MonotonicityCertificate | None:
        """The guarantee of a monotone mixture of K classes in words."""
        if not self.monotone:
            return None
        return MonotonicityCertificate(n_classes, self.floor, self.is_increasing())

    @property
    def floor(self) -> float:
        """Floor of the coordinates; without a `MonotoneMap` any will do."""
        return next((m.floor for m in self.members if isinstance(m, MonotoneMap)), LEAST)


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupedMap(Map):
    """A common map, and for some groups its mean with a map of the group, by `weights`."""

    common: Map = state(checks.anything)
    grouped: bool = state(checks.boolean)
    groups: Names = state(checks.names("G"))
    members: Sequence[Map] = state(checks.list_of(checks.anything, least=0))
    weights: Floats = state(checks.coefficients("G"))

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """Whether the common map or that of a group has steps."""
        return any(member.exact for member in (self.common, *self.members))

    def check(self, n_classes: int) -> None:
        super().check(n_classes)
        if ((self.weights < 0) | (self.weights > 1)).any():
            raise Fault("weights", "expected numbers between 0 and 1")
        if len(self.members) != len(self.groups):
            raise Fault("members", f"expected {len(self.groups)} maps")
        check_nested(self.members, self.kind, n_classes, common=self.common)

    def formula(self, ops: Ops[V], X: V) -> V:
        return self.common.formula(ops, X)

    def compiled(self, forecasts: Forecasts) -> Floats:
        return self.common.compiled(forecasts)

    def formula_of_groups(self, ops: Ops[V], X: V, place: V) -> V:
        """As `formula`, given the place of each row's group among `groups`; others have another."""
        common = result = self.common.formula(ops, X)
        for g, member in reversed(list(enumerate(self.members))):
            weight = float(self.weights[g])
            mixed = (1 - weight) * common + weight * member.formula(ops, X)
            result = ops.where(ops.is_at(place, g), mixed, result)
        return result

    def apply_to_groups(self, values: Floats, names: Names) -> Floats:
        """Calibrated forecasts of a forecast array whose rows belong to groups."""
        Q = self.apply(values)
        number_of = {str(name): g for g, name in enumerate(self.groups)}
        for name, rows in rows_by_group(names):
            if (g := number_of.get(name)) is not None:
                weight, own = self.weights[g], self.members[g].apply(values[rows])
                Q[rows] = (1 - weight) * Q[rows] + weight * own
        return Q


def is_grouped(fitted: Any) -> bool:
    """Whether a calibrator was fitted with groups, so that it takes the group of a row."""
    return isinstance(fitted.map_, GroupedMap) and fitted.map_.grouped


def calibrated(ops: Ops[V], fitted: Any, X: V, groups: V | None = None) -> tuple[V, Truth]:
    """Calibrated forecasts, of width K, and whether `predict_proba` would accept the row.

    `groups` holds the place of each row's group among those of a `GroupedMap`, or another one.
    """
    # No rounding error may be added to what has steps, or to forecasts that stay unchanged.
    exact = fitted.map_.exact or isinstance(fitted.map_, IdentityMap)
    X, good = fitted.map_.kind.clean(ops, X, exact=exact)
    if groups is None:
        return fitted.map_.formula(ops, X), good
    return fitted.map_.formula_of_groups(ops, X, groups), good


def apply_map(fitted: Map, values: Floats, groups: Any) -> Floats:
    """Calibrated forecasts of a forecast array whose rows may have groups."""
    if groups is not None:
        if not isinstance(fitted, GroupedMap):
            raise InputError("groups", None, "were not given in fit", "leave them out")
        return fitted.apply_to_groups(values, check_groups(groups, len(values)))
    if isinstance(fitted, GroupedMap) and fitted.grouped:
        fix = "pass the group of each row; new ones get the common map"
        raise InputError("groups", None, "were given in fit", fix)
    return fitted.apply(values)
