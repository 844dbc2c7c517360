"""Monotone mixtures: what holds for averages of monotone maps.

Let z be the coordinates of a `MonotoneCalibrator`, an increasing function of each forecast. Its map
is the gradient of a convex F(z). The identity is the gradient of a convex function of z too: of the
sum over the classes of G, with ``dG = p dz``. So their average is the gradient of the average. For
two classes, averages of non-decreasing maps are non-decreasing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isoroc._maps.base import CalibrationMap
from isoroc._maps.monotone import MonotoneMap
from isoroc._maps.potential import TRACE
from isoroc._simplex import LEAST
from isoroc._table import Table


@dataclass(frozen=True)
class MixtureCertificate:
    """The guarantee of a monotone mixture, in words.

    Attributes
    ----------
    n_classes : int
        K.
    floor : float
        For three classes or more, the floor of the coordinates z in which the mixture is cyclically
        monotone; see `MonotoneCalibrator`.
    strict : bool
        For two classes, whether the mixture is strictly increasing.
    """

    n_classes: int
    floor: float
    strict: bool

    def table(self) -> Table:
        """One row: the floor and the guarantee in words."""
        return Table(floor=np.array([self.floor]), guarantee=np.array([str(self)]))

    def __str__(self) -> str:
        if self.n_classes > 2:
            return (
                "Cyclically monotone: a mixture of maps that on all rows, new ones included, are "
                f"gradients of convex potentials of z, where z = {1 - TRACE:g} log(p + "
                f"{self.floor:g}) + {TRACE:g} log(p) in each class (forecasts below {LEAST:g} "
                f"count as {LEAST:g}). The most probable class may change."
            )
        if self.strict:
            return (
                "Strictly increasing: on all rows, new ones included, the calibrated probability "
                "of each class is a strictly increasing function of its forecast. The ROC curve is "
                "unchanged and no ties arise, up to rounding."
            )
        return (
            "Non-decreasing: on all rows, new ones included, the calibrated probability of each "
            "class is a non-decreasing function of its forecast. Different forecasts may become "
            "ties."
        )


def certify_mixture(members: Sequence[CalibrationMap], n_classes: int) -> MixtureCertificate:
    """Certificate of a mixture of members of `AutoCalibrator(monotone=True)`."""
    return MixtureCertificate(n_classes, floor_of(members), increases_strictly(members))


def increases_strictly(members: Sequence[CalibrationMap]) -> bool:
    """Whether a mixture of members of `AutoCalibrator(monotone=True)` increases strictly.

    For two classes all of them are non-decreasing, so one that increases strictly is enough. All
    have weight.
    """
    return any(member.is_increasing() for member in members)


def floor_of(members: Sequence[CalibrationMap]) -> float:
    """Floor of the coordinates; without a `MonotoneCalibrator` any will do."""
    return next((m.floor_ for m in members if isinstance(m, MonotoneMap)), LEAST)
