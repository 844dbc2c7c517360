"""Forecasts that are valid, but probably not what the user means.

Scores of two classes outside [0, 1] are log odds unless the user says otherwise. `docs/input.md`
lists the scores that are refused, and why. Forecasts that rank a class worse than chance probably
belong to another column or class.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoroc._core.pav import concordance
from isoroc._core.rows import least_concordance
from isoroc._core.simplex import binary_scores
from isoroc._core.special import expit, normal_quantile
from isoroc._core.types import UNIT_WEIGHTS, Floats
from isoroc._input.error import InputError
from isoroc._input.kinds import LOG_ODDS, columns_of
from isoroc._input.rows import label_text
from isoroc._input.sample import Sample, UnitOption, first_improbable


def check_units(sample: Sample, unit: UnitOption, *, name: str = "P", min_rows: int = 20) -> None:
    """Raise an error for scores that can hardly be log odds, unless `unit` says so.

    Warn if this is in doubt. Fewer than `min_rows` rows are not checked.
    """
    if unit != "auto" or sample.kind is not LOG_ODDS or len(sample) < min_rows:
        return
    low = float(sample.forecasts.min())
    high = float(sample.forecasts.max())
    some = sample.positive().draw(20_000)
    scores = some.forecasts
    second = some.codes == 1
    if (refusal := _refusal(scores, second, low, high)) is not None:
        why, units = refusal
        problem = f"all scores lie between {low:.6g} and {high:.6g}{why}"
        raise InputError(name, None, problem, f'say what they are: unit="logit", {units}')
    if (low >= 0 or high <= 0) and (reversal := find_reversal(sample)) is not None:
        problem = f"read as log odds, all scores lie between {low:.6g} and {high:.6g}, and "
        problem += f"{reversal}"
        fix = 'say what they are with unit="percent", "log_probability", "rank" or "logit", and'
        raise InputError(name, None, problem, f"{fix} which class has larger scores with labels=")
    if doubt := _doubt(sample.forecasts, scores, second):
        fix = 'say what they are with unit="logit", "probability", "percent" or "log_probability"'
        message = f"{name}: the scores are read as log odds, although {doubt}; {fix}."
        warnings.warn(message, UserWarning, stacklevel=3)


def _refusal(
    scores: Floats, second: NDArray[np.bool_], low: float, high: float
) -> tuple[str, str] | None:
    """Why scores between low and high are not log odds, and what they may be instead, or None.

    `second` says which rows belong to the second class.
    """
    rank = 'unit="rank" with a calibrator that uses only the order, such as IsotonicCalibrator'
    if low >= 0 and np.array_equal(2 * scores, np.rint(2 * scores)):
        percent = 'unit="percent", ' if high <= 100 else ""
        return " and have steps of 1 or 1/2, as ratings and points have", percent + rank
    if low > 30 or high < -30:  # probabilities within 1e-13 of 0 or 1
        return ", so as log odds they would all stand for the same certainty", rank
    rate = np.full(len(scores), second.mean())
    readings = dict[str, Floats]()
    if low >= 0 and high <= 100:
        readings["percent"] = scores / 100
    if -0.1 < high <= 0:  # a probability above 0.9 occurs, and none above 1
        readings["log_probability"] = np.exp(scores)
    for unit, p in readings.items():
        # The other unit must be clearly better than log odds, and not clearly worse than the rate,
        # which is likelier by less than .05 nats per row.
        is_good = _gain(rate, p, second).mean() < 0.05
        if is_good and _is_likelier(p, expit(scores), second):
            why = " and fit the outcomes better in another unit than as log odds"
            return why, f'unit="{unit}"'
    return None


def _doubt(all_scores: Floats, scores: Floats, second: NDArray[np.bool_]) -> str:
    """Why scores may not be log odds. `second` marks the rows of `scores` in the second class."""
    share = np.mean((all_scores >= 0) & (all_scores <= 1))
    if share >= 0.9:
        row: Any = first_improbable(all_scores)
        return f"row {row} is {all_scores[row]:.6g} and {share:.1%} of all lie between 0 and 1"
    rate = second.mean()
    low = all_scores.min()
    high = all_scores.max()
    is_one_sided = low >= 0 or high <= 0
    if is_one_sided and _is_likelier(np.full(len(scores), rate), expit(scores), second):
        side = "at least" if low >= 0 else "at most"
        return f"every forecast is then {side} 0.5, but the rate of the second class {rate:.3g}"
    return ""


def range_of(sample: Sample) -> dict[str, Any]:
    """Entry of a summary that `check_new` compares new scores with. Empty for probabilities."""
    if not sample.kind.single or sample.unit == "probability":
        return {}
    given = sample.as_given()
    return {"range": [float(given.min()), float(given.max())]}


def _is_likelier(p: Floats, q: Floats, second: Any) -> bool:
    """Whether outcomes are likelier under p than q by .05 nats per row and 4 standard errors."""
    gain = _gain(p, q, second)
    return bool(gain.mean() >= max(0.05, 4 * gain.std() / np.sqrt(len(gain))))


def _gain(p: Floats, q: Floats, second: Any) -> Floats:
    """Log likelihood ratio of p to q for each outcome, with both kept away from certainty."""
    log_p, log_q = (np.log(np.where(second, r, 1 - r).clip(1e-3, 1 - 1e-3)) for r in (p, q))
    return np.asarray(log_p - log_q)


class Reversal(NamedTuple):
    """A class that forecasts rank worse than chance, and the area under its ROC curve."""

    label: Any
    area: float
    other: Any  # the other class of scores, or None if there is one column per class

    def __str__(self) -> str:
        cause = "the columns may stand in another order"
        if self.other is not None:
            cause = f"they may be the scores of {label_text(self.other)}"
        rank = f"rank class {label_text(self.label)} worse than chance (AUC {self.area:.3f})"
        return f"the forecasts {rank}; {cause}"


def find_reversal(sample: Sample, *, level: float = 1e-4, max_classes: int = 50) -> Reversal | None:
    """The class that forecasts rank worst, if they rank it below the others beyond noise.

    `level` is the chance of finding one if forecasts are pure noise. Only the `max_classes` most
    frequent classes are considered.
    """
    some = sample.positive().draw(20_000)
    if sample.n_classes == 2:
        classes = np.array([1])
        columns = np.array([0])
        scores = columns_of(binary_scores(some.forecasts))
    else:
        counts = np.bincount(some.codes, minlength=sample.n_classes)
        classes = columns = np.argsort(-counts, kind="stable")[:max_classes]
        scores = some.forecasts
    codes = some.codes.astype(np.intp)
    n_pairs, in_order = least_concordance(scores, columns, codes, classes)
    # The standard deviation ignores ties. With many ties, few rows decide, and the normal
    # approximation would treat a single odd row as conclusive.
    deviations = np.sqrt((len(some) + 1) / (12 * np.maximum(n_pairs, 1)))
    least = 0.5 + normal_quantile(level / len(classes)) * deviations
    reversals = []
    for j in np.flatnonzero(in_order < least * n_pairs):  # the others need no sort
        is_class = codes == classes[j]
        column = scores[:, columns[j]]
        zeros, ones = (np.sort(column[is_class == of_class]) for of_class in (False, True))
        area = concordance(zeros, UNIT_WEIGHTS, ones, UNIT_WEIGHTS) / n_pairs[j]
        if area < least[j]:
            reversals.append((area, int(classes[j])))
    if not reversals:
        return None
    area, k = min(reversals)
    return Reversal(sample.classes[k], area, sample.classes[0] if sample.kind.single else None)


def warn_if_reversed(sample: Sample, *, name: str = "P") -> None:
    """Warn if the forecasts of some class rank it below the others beyond noise."""
    if (reversal := find_reversal(sample)) is not None:
        order = "the class of each column"
        if reversal.other is not None:
            order = "the two classes, the one with larger scores last"
        warnings.warn(f"{name}: {reversal}. labels= takes {order}.", UserWarning, stacklevel=4)
