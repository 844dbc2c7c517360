"""Classifiers trained on the rows of a fold, and what their fit is given."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn import get_config
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import has_fit_parameter

from isoroc._simplex import Floats, Ints


def train(estimator: Any, X: Any, y: Any, rows: Ints, params: dict[str, Any]) -> Any:
    """Classifier fitted to some rows; parameters with one entry per row are cut to them."""
    n_rows = len(indexable(y)[0])
    cut = {
        name: _safe_indexing(value, rows) if _has_length(value, n_rows) else value
        for name, value in params.items()
    }
    return estimator.fit(_safe_indexing(X, rows), _safe_indexing(y, rows), **cut)


def _has_length(value: Any, n_rows: int) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str) and len(value) == n_rows


def knows_labels(calibrator: Any) -> bool:
    """Whether a calibrator is fitted to the labels themselves, otherwise to their numbers."""
    return bool(has_fit_parameter(calibrator, "labels"))


def route(
    classifier: Any, weights: Floats | None, groups: Any, fit_params: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters of the fit of a meta-estimator's classifier and of its splitter's split."""
    if get_config()["enable_metadata_routing"]:
        given = {} if groups is None else {"groups": groups}
        routed = process_routing(classifier, "fit", sample_weight=weights, **given, **fit_params)
        return dict(routed.estimator.fit), dict(routed.splitter.split)
    training = dict(fit_params)
    if weights is not None:
        if has_fit_parameter(classifier.estimator, "sample_weight"):
            training["sample_weight"] = weights
        else:
            warnings.warn(
                f"sample_weight: {type(classifier.estimator).__name__} takes no weights, so only "
                "the calibrator uses them.",
                UserWarning,
                stacklevel=4,
            )
    return training, {} if groups is None else {"groups": groups}
