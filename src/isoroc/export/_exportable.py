"""What can be exported."""

from typing import Any

from isoroc._input import InputError
from isoroc._maps import Map
from isoroc._maps.acceptance import AcceptanceRule
from isoroc._maps.loading import LoadedMap


def check_exportable(fitted: Any) -> str:
    """Name of the class of a calibrator or a loaded map. Raises an error unless it is fitted."""
    if isinstance(getattr(fitted, "map_", None), Map):
        return fitted.calibrator if isinstance(fitted, LoadedMap) else type(fitted).__name__
    if hasattr(fitted, "fit_counts"):  # one of ours
        from sklearn.utils.validation import check_is_fitted  # noqa: PLC0415  # served maps need none

        check_is_fitted(fitted, "map_")
    fix = "expected a calibrator of isoroc; from a CalibratedClassifier, export calibrators_[0]"
    raise InputError("calibrator", None, f"is of type {type(fitted).__name__}", fix)


def check_rule(rule: Any, fitted: Any) -> None:
    """Raise an error unless a rule can be computed from the forecasts of a calibrator."""
    if rule is None:
        return
    if not isinstance(rule, AcceptanceRule):
        fix = "pass what isoroc.decisions.acceptance_rule returns"
        raise InputError("rule", None, f"is {type(rule).__name__}", fix)
    if rule.scored or rule.segments is not None:
        problem = "uses scores or segments, which the exported calibrator does not return"
        raise InputError("rule", None, problem, "apply it in Python, with AcceptanceRule.accept")
    if rule.classes.tolist() != fitted.classes_.tolist():
        problem = f"has the classes {rule.classes.tolist()}"
        raise InputError("rule", None, problem, f"expected {fitted.classes_.tolist()}")
    if rule.model is not None and rule.model != fitted.checksum:
        problem = "was made with another calibrator"
        raise InputError("rule", None, problem, "pass that one, or make a rule with this one")
