"""Scores of two classes that are read as log odds, but may be something else.

Scores outside [0, 1] are log odds unless the user says otherwise. `docs/input.md` lists the scores
that are refused, and why these are not log odds.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from isoroc._input.error import InputError
from isoroc._input.forecasts import Scores, first_improbable
from isoroc._input.sample import Sample
from isoroc._kinds import LOG_ODDS
from isoroc._simplex import Floats
from isoroc._special import expit

#: Rows below which nothing is concluded, and the most rows that are looked at.
LEAST_ROWS, MOST_ROWS = 20, 20_000
#: Share of scores in [0, 1] from which on it is in doubt whether the others are wrong.
DOUBTFUL_SHARE = 0.9
#: Log odds beyond this stand for certainty: their probabilities are within 1e-13 of 0 or 1.
CERTAIN = 30.0
#: Nats per row by which outcomes are likelier in another unit, and standard errors of this mean.
LEAST_GAIN, LEAST_ERRORS = 0.05, 4.0
_RANK = 'scores="rank" with a calibrator that uses only the order, such as IsotonicCalibrator'


def check_units(sample: Sample, scores: Scores, *, name: str = "P") -> None:
    """Refuse scores that the user has not called log odds and that can hardly be; warn in doubt."""
    if scores != "auto" or sample.kind is not LOG_ODDS or len(sample) < LEAST_ROWS:
        return
    z = sample.forecasts
    low, high = float(z.min()), float(z.max())
    some = sample.positive().draw(MOST_ROWS)
    x, second = some.forecasts, some.codes == 1
    between = f"all scores lie between {low:.6g} and {high:.6g}"
    if low >= 0 and np.array_equal(2 * x, np.rint(2 * x)):
        percent = 'scores="percent", ' if high <= 100 else ""
        problem = f"{between} and have steps of 1 or 1/2, as ratings and points have"
        raise _refusal(name, problem, percent + _RANK)
    if low > CERTAIN or high < -CERTAIN:
        problem = f"{between}, so as log odds they would all stand for the same certainty"
        raise _refusal(name, problem, _RANK)
    readings = {"percent": x / 100} if low >= 0 and high <= 100 else {}
    readings |= {"log_probability": np.exp(x)} if -0.1 < high <= 0 else {}
    rate = np.full(len(x), second.mean())
    for unit, p in readings.items():
        fits = _gain(rate, p, second).mean() < LEAST_GAIN
        if fits and _is_likelier(p, expit(x), second):
            problem = f"{between} and fit the outcomes better in another unit than as log odds"
            raise _refusal(name, problem, f'scores="{unit}"')
    share = np.mean((z >= 0) & (z <= 1))
    doubt = ""
    if share >= DOUBTFUL_SHARE:
        row: Any = first_improbable(z)
        doubt = f"row {row} is {z[row]:.6g} and {share:.1%} of all lie between 0 and 1"
    elif (low >= 0 or high <= 0) and _is_likelier(rate, expit(x), second):
        side = "at least" if low >= 0 else "at most"
        doubt = f"every forecast is then {side} 0.5, but the rate of the second class {rate[0]:.3g}"
    if doubt:
        warnings.warn(
            f"{name}: the scores are read as log odds, although {doubt}; say what they are with "
            'scores="logit", "probability", "percent" or "log_probability".',
            UserWarning,
            stacklevel=3,
        )


def range_of(sample: Sample) -> dict[str, Any]:
    """Entry of a summary with which `check_new` compares scores that are not probabilities."""
    if not sample.kind.single or sample.scores == "probability":
        return {}
    given = sample.as_given()
    return {"range": [float(given.min()), float(given.max())]}


def _refusal(name: str, problem: str, others: str) -> InputError:
    return InputError(name, None, problem, f'say what they are: scores="logit", {others}')


def _is_likelier(p: Floats, q: Floats, second: Any) -> bool:
    """Whether outcomes are clearly likelier under probabilities p of the second class than q."""
    gain = _gain(p, q, second)
    return bool(gain.mean() >= max(LEAST_GAIN, LEAST_ERRORS * gain.std() / np.sqrt(len(gain))))


def _gain(p: Floats, q: Floats, second: Any) -> Floats:
    """Log likelihood of each outcome under p less that under q, both away from certainty."""
    own = [np.log(np.where(second, r, 1 - r).clip(1e-3, 1 - 1e-3)) for r in (p, q)]
    return np.asarray(own[0] - own[1])
