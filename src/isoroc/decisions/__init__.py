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
from isoroc.decisions._threshold import ThresholdReport, threshold_for

__all__ = [
    "CostCurve",
    "CostReport",
    "DecisionCurve",
    "PriorEstimate",
    "ThresholdReport",
    "adjust_prior",
    "best_threshold",
    "cost_curve",
    "decide",
    "estimate_prior",
    "expected_cost",
    "mean_cost",
    "net_benefit",
    "threshold_for",
]
