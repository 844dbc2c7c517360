"""Monotone mixtures: their members, and the check of what holds for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isoroc._calibrators.base import Calibrator
from isoroc._calibrators.identity import IdentityCalibrator
from isoroc._calibrators.isotonic import IsotonicCalibrator
from isoroc._calibrators.monotone import MonotoneCalibrator
from isoroc._calibrators.temperature import TemperatureCalibrator
from isoroc._cyclic import CyclicCheck, check_cyclic
from isoroc._maps.monotone_mixture import floor_of
from isoroc._maps.potential import TRACE
from isoroc._simplex import Floats, binary_scores


def monotone_members(n_classes: int) -> list[Calibrator]:
    """What members="auto" mixes with monotone=True."""
    members: list[Calibrator] = [IdentityCalibrator(), MonotoneCalibrator()]
    if n_classes == 2:
        members += [TemperatureCalibrator(), IsotonicCalibrator()]
    # For more classes, temperature scaling is a gradient in other coordinates: its floor differs.
    return members


def verify_mixture(
    members: Sequence[Calibrator], weights: Floats, forecasts: Floats, Q: Floats
) -> CyclicCheck:
    """Check that forecasts Q of a mixture are monotone on the rows of a forecast array."""
    if Q.shape[1] == 2:
        logs = forecasts.ndim == 2 and members[0].scores_ == "logit"
        scores = binary_scores(np.exp(forecasts) if logs else forecasts)
        return check_cyclic(np.column_stack([np.zeros(len(Q)), scores]), Q)
    coordinates = MonotoneCalibrator()
    coordinates.scores_, coordinates.floor_ = members[0].scores_, floor_of(members)
    z = np.ascontiguousarray(coordinates.floored(forecasts).T)
    potential = np.zeros(len(z))
    for weight, member in zip(weights, members, strict=True):
        if isinstance(member, MonotoneCalibrator):
            potential += weight * member.certificate_.potential(z)
        else:
            P, f = member.calibrate(forecasts), coordinates.floor_
            potential += weight * (P - (1 - TRACE) * f * np.log(P + f)).sum(axis=1)
    return check_cyclic(z, Q, potential)
