"""Metrics as scikit-learn scorers: larger is better, labels come from the classifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from isoroc.metrics._calibration import calibration_error, smooth_calibration_error
from isoroc.metrics._scores import brier_score_loss, decompose, log_loss


class ProbabilityScorer:
    """A metric of forecasts as ``scorer(classifier, X, y)``, for ``scoring=`` in scikit-learn.

    It passes the classes of the classifier to the metric, so that folds in which a class is missing
    can be scored, which ``sklearn.metrics.make_scorer`` does not.

    Parameters
    ----------
    metric : callable
        ``metric(y_true, y_prob, *, sample_weight, labels)`` returning a number.
    greater_is_better : bool, default=False
        Whether larger values are better. The sign of a loss is changed.
    **options
        Further arguments of the metric.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from isoroc.metrics import ProbabilityScorer, calibration_error
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> y = np.where(rng.random(600) < 1 / (1 + np.exp(-X[:, 0])), "yes", "no")
    >>> scorer = ProbabilityScorer(calibration_error, norm="l2", bins=10)
    >>> cross_val_score(LogisticRegression(), X, y, scoring=scorer, cv=3).round(2)
    array([-0.1 , -0.09, -0.04])
    """

    def __init__(
        self, metric: Callable[..., Any], *, greater_is_better: bool = False, **options: Any
    ) -> None:
        self.metric = metric
        self.greater_is_better = greater_is_better
        self.options = options

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score a fitted classifier on some rows."""
        P = estimator.predict_proba(X)
        value = self.metric(
            y, P, sample_weight=sample_weight, labels=estimator.classes_, **self.options
        )
        return float(value) if self.greater_is_better else -float(value)

    def __repr__(self) -> str:
        name = getattr(self.metric, "__name__", repr(self.metric))
        options = "".join(f", {key}={value!r}" for key, value in self.options.items())
        sign = ", greater_is_better=True" if self.greater_is_better else ""
        return f"{type(self).__name__}({name}{sign}{options})"


def _refinement(y_true: Any, y_prob: Any, **options: Any) -> float:
    return decompose(y_true, y_prob, **options).refinement


#: Scorers by name, for ``scoring=scorers["neg_calibration_error"]``. "neg_refinement" is the cross
#: entropy that the model would have after calibration.
scorers: dict[str, ProbabilityScorer] = {
    "neg_log_loss": ProbabilityScorer(log_loss),
    "neg_brier_score_loss": ProbabilityScorer(brier_score_loss),
    "neg_calibration_error": ProbabilityScorer(calibration_error),
    "neg_calibration_error_l2": ProbabilityScorer(calibration_error, norm="l2"),
    "neg_classwise_calibration_error": ProbabilityScorer(calibration_error, kind="classwise"),
    "neg_top_calibration_error": ProbabilityScorer(calibration_error, kind="top"),
    "neg_smooth_calibration_error": ProbabilityScorer(smooth_calibration_error),
    "neg_refinement": ProbabilityScorer(_refinement),
}
