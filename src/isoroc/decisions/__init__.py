"""From probabilities to decisions: actions of least expected cost, and other class priors."""

from isoroc._evaluation.benefit import DecisionCurve
from isoroc.decisions._cost import (
    CostCurve,
    CostReport,
    best_threshold,
    cost_curve,
    decide,
    expected_cost,
    mean_cost,
)
from isoroc.decisions._net_benefit import net_benefit
from isoroc.decisions._prior import PriorEstimate, adjust_prior, estimate_prior

__all__ = [
    "CostCurve",
    "CostReport",
    "DecisionCurve",
    "PriorEstimate",
    "adjust_prior",
    "best_threshold",
    "cost_curve",
    "decide",
    "estimate_prior",
    "expected_cost",
    "mean_cost",
    "net_benefit",
]
