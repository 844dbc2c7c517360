"""Decision thresholds on forecasts, carried over to calibrated forecasts."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_softmax

from isoroc._core.simplex import midpoint, regions, sum_to_one
from isoroc._core.types import Floats
from isoroc._input import InputError, check_numbers
from isoroc._input.kinds import Kind, Logits
from isoroc._maps import Map
from isoroc._maps.monotonicity import bounds_of, solve


@dataclass(frozen=True, eq=False)
class CarriedThresholds:
    """Thresholds on calibrated forecasts, and how many decisions they change, as ``print`` shows.

    Attributes
    ----------
    thresholds : float or ndarray of shape (K,)
        Two classes: decide for the second class if its calibrated probability is above it. More
        classes: decide for the class with the largest ``q - thresholds``, the first on ties.
    n_changed : int
        Number of changed decisions.
    n_rows : int
        Number of rows compared, 0 if none were given.
    exact : bool
        Whether all possible forecasts get the same decision as before, up to rounding. Otherwise
        `n_changed` is known for the given rows only.
    """

    thresholds: Any
    n_changed: int
    n_rows: int
    exact: bool

    def __str__(self) -> str:
        shown = np.array2string(np.asarray(self.thresholds), 10**6, precision=6)
        if self.exact:
            return f"{shown}: the same decision for every forecast, as the map is increasing."
        share = f"{self.n_changed / self.n_rows:.2%}"
        return f"{shown}: {self.n_changed:,} of {self.n_rows:,} decisions change ({share})."


def carry_over(
    fitted: Map, n_classes: int, thresholds: Any, values: Floats | None
) -> CarriedThresholds:
    """Thresholds on calibrated forecasts that repeat decisions, compared on the rows `values`."""
    given = check_numbers(thresholds, "thresholds")
    if not np.isfinite(given).all():
        raise InputError("thresholds", None, f"is {thresholds!r}", "expected finite numbers")
    shape = () if n_classes == 2 else (n_classes,)
    if given.shape != shape:
        wanted = f"{n_classes} numbers, one per class" if shape else "a number for two classes"
        raise InputError("thresholds", None, f"has shape {given.shape}", f"expected {wanted}")
    if n_classes > 2:
        if values is None:
            fix = "pass rows P, on which decisions are compared"
            raise InputError("P", None, "three classes or more need rows to compare", fix)
        return _carry_vector(fitted, given, values)
    t = float(given)
    if fitted.kind.scores == "probability" and not 0 <= t <= 1:
        problem = f"is {t:.6g}, but the forecasts are probabilities"
        raise InputError("thresholds", None, problem, "expected a number between 0 and 1")
    return _carry_number(fitted, t, values)


def _carry_number(fitted: Map, t: float, forecasts: Floats | None) -> CarriedThresholds:
    # The last digit may depend on the number of rows, and rows at t must not exceed the threshold.
    at = _forecast(fitted.kind, t)
    value = max(float(fitted.apply(at.repeat(n, axis=0))[0, 1]) for n in (1, 2))
    is_exact = fitted.is_increasing() and _rises(fitted, t, value)
    if forecasts is None:
        if is_exact:
            return CarriedThresholds(value, n_changed=0, n_rows=0, exact=True)
        problem = "this map is not known to be strictly increasing"
        if fitted.is_increasing():
            problem = "this map is constant at the threshold, up to rounding"
        fix = "pass rows P; the threshold with the fewest changes on them is found"
        raise InputError("P", None, problem, fix)
    scores = forecasts if forecasts.ndim == 1 else forecasts[:, 1]
    if isinstance(fitted.kind, Logits):
        scores = scores - forecasts[:, 0]
    wanted = scores > t
    q = fitted.apply(forecasts)[:, 1]
    n_changed = int(np.count_nonzero((q > value) != wanted))
    if n_changed:
        value, n_changed = _best_cut(q, wanted, value)
    return CarriedThresholds(value, n_changed, len(q), is_exact and not n_changed)


def _forecast(kind: Kind, t: float) -> Floats:
    """Forecast array of one row with the score t."""
    if kind.single:
        return np.array([t])
    if isinstance(kind, Logits):
        return np.asarray(log_softmax([[0.0, t]], axis=1))
    return np.array([[1 - t, t]])


def _rises(fitted: Map, t: float, value: float, step: float = 1e-6) -> bool:
    """Whether forecasts above t have calibrated forecasts above its value: all but the nearest."""
    is_probability = fitted.kind.scores == "probability"
    above = t + step * (max(t * (1 - t), step) if is_probability else max(1.0, abs(t)))
    if is_probability and above > 1:
        return True  # there are none
    return bool(fitted.apply(_forecast(fitted.kind, above))[0, 1] > value)


def _best_cut(q: Floats, wanted: Any, guess: float) -> tuple[float, int]:
    """Cut of q with the fewest changed decisions, the closest to a guess, and their number."""
    distinct, group = np.unique(q, return_inverse=True)
    ones = np.bincount(group, wanted)
    zeros = np.bincount(group) - ones
    # Cut g lies above the g smallest values.
    changed = zeros.sum() + np.append(0, np.cumsum(ones - zeros))
    best = np.flatnonzero(changed == changed.min())
    low = np.append(np.nextafter(min(0.0, distinct[0]), -1.0), distinct)[best]
    high = np.append(distinct, max(1.0, distinct[-1]))[best]
    inside = (low <= guess) & (guess < high)
    cut = np.where(inside, guess, midpoint(low, high))
    return float(cut[np.abs(cut - guess).argmin()]), int(changed.min())


def _carry_vector(fitted: Map, gamma: Floats, forecasts: Floats) -> CarriedThresholds:
    """The threshold that changes no decision on the rows or, if there is none, q at gamma."""
    if isinstance(fitted.kind, Logits):
        meeting = log_softmax(gamma[None], axis=1)
    else:
        meeting = np.maximum(sum_to_one(gamma), 0.0)[None]
        meeting /= meeting.sum()
    wanted = regions(forecasts, gamma)
    Q = fitted.apply(forecasts)
    is_wanted = np.eye(len(gamma), dtype=bool)[wanted]
    repeating = solve(bounds_of(Q, is_wanted[None]))[0][0]
    # All decisions meet at the forecast gamma, so they nearly meet at its calibrated forecast.
    candidates = [t for t in (repeating, fitted.apply(meeting)[0]) if np.isfinite(t).all()]
    changed = [int(np.count_nonzero(regions(Q, t) != wanted)) for t in candidates]
    best = int(np.argmin(changed))
    return CarriedThresholds(candidates[best], changed[best], len(Q), exact=False)
