import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, PredefinedSplit, cross_val_score, cross_validate

from isoroc import metrics
from isoroc.metrics import ProbabilityScorer, brier_score_loss, calibration_error, roc_auc, scorers


def data(n_classes):
    X, codes = make_classification(
        300, 5, n_informative=3, n_redundant=0, n_classes=n_classes, random_state=0
    )
    return X, np.array(["ant", "bee", "cat"])[codes]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_scorer_cross_validates(n_classes):
    X, y = data(n_classes)
    results = cross_validate(LogisticRegression(), X, y, scoring=scorers, cv=3)
    for name in scorers:
        scores = results[f"test_{name}"]
        assert np.isfinite(scores).all()
        assert name.startswith("neg_")
        assert (scores <= 0).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_scorer_is_its_metric_with_the_sign_changed(n_classes):
    X, y = data(n_classes)
    model = LogisticRegression().fit(X, y)
    P = model.predict_proba(X)
    weights = np.linspace(0, 1, 300)
    scorer = ProbabilityScorer(calibration_error, norm="l2", bins=5)
    expected = calibration_error(y, P, norm="l2", bins=5, sample_weight=weights)
    assert scorer(model, X, y, sample_weight=weights) == -expected
    assert scorers["neg_brier_score_loss"](model, X, y) == -brier_score_loss(y, P)
    parts = metrics.decompose(y, P)
    assert scorers["neg_refinement"](model, X, y) == -parts.refinement


def test_the_metrics_are_ready_for_make_scorer():
    X, y = data(2)
    plain = make_scorer(brier_score_loss, response_method="predict_proba", greater_is_better=False)
    np.testing.assert_allclose(
        cross_val_score(LogisticRegression(), X, y, scoring=plain, cv=3),
        cross_val_score(LogisticRegression(), X, y, scoring=scorers["neg_brier_score_loss"], cv=3),
    )


def test_a_fold_that_misses_a_class_is_scored():
    X, y = data(3)
    order = np.argsort(y == "bee", kind="stable")
    X = X[order]
    y = y[order]
    fold = np.where(np.arange(300) < 100, 0, -1)
    assert set(y[:100]) == {"ant", "cat"}
    for scorer in scorers.values():
        (score,) = cross_val_score(
            LogisticRegression(), X, y, scoring=scorer, cv=PredefinedSplit(fold)
        )
        assert np.isfinite(score)


def test_scores_stay_as_they_are_and_choose_models():
    X, y = data(2)
    scorer = ProbabilityScorer(roc_auc, greater_is_better=True)
    search = GridSearchCV(LogisticRegression(), {"C": [1e-6, 1.0]}, scoring=scorer, cv=3)
    model = search.fit(X, y)
    assert scorer(model, X, y) == roc_auc(y, model.predict_proba(X)) > 0.75
