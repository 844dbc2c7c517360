"""From the forecasts of a row to its calibrated forecasts, over the operations of any backend."""

from __future__ import annotations

from typing import Any

from isoroc._backends import Ops, Truth, V
from isoroc._maps.base import IdentityMap
from isoroc._maps.grouped import GroupedMap


def is_grouped(fitted: Any) -> bool:
    """Whether a calibrator was fitted with groups, so that it takes the group of a row."""
    return isinstance(fitted.map_, GroupedMap) and fitted.map_.grouped


def is_exact(fitted: Any) -> bool:
    """Whether no operation may add a rounding error: to steps, and to unchanged forecasts."""
    return bool(fitted.map_.exact) or isinstance(fitted.map_, IdentityMap)


def calibrated(ops: Ops[V], fitted: Any, X: V, groups: V | None = None) -> tuple[V, Truth]:
    """Calibrated forecasts, of width K, and whether `predict_proba` would accept the row.

    `groups` holds the place of each row's group among those of a `GroupedMap`, any other place for
    groups without a map of their own.
    """
    X, good = fitted.map_.kind.clean(ops, X, exact=is_exact(fitted))
    if groups is None:
        return fitted.map_.formula(ops, X), good
    return fitted.map_.formula_of_groups(ops, X, groups), good
