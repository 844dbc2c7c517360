from itertools import product

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, log_loss, roc_auc_score

from isoroc import InputError, TemperatureCalibrator
from isoroc.metrics import expected
from isoroc.metrics._expected import METRICS, MISFIT


def draw(n=400, K=3, seed=0):
    rng = np.random.default_rng(seed)
    Q = rng.dirichlet(np.ones(K), n)
    return Q, (rng.random((n, 1)) > Q.cumsum(axis=1)[:, :-1]).sum(axis=1)


def test_means_over_all_labels_of_few_rows():
    """The exact expectation: a sum over every possible vector of labels."""
    Q, _ = draw(5, 3)
    totals = {"accuracy": 0.0, "log_loss": 0.0, "brier_score_loss": 0.0}
    matrix = np.zeros((3, 3))
    for labels in product(range(3), repeat=5):
        y = np.array(labels)
        chance = Q[np.arange(5), y].prod()
        totals["accuracy"] += chance * accuracy_score(y, Q.argmax(axis=1))
        totals["log_loss"] += chance * log_loss(y, Q, labels=range(3))
        totals["brier_score_loss"] += chance * ((Q - np.eye(3)[y]) ** 2).sum(axis=1).mean()
        matrix += chance * confusion_matrix(y, Q.argmax(axis=1), labels=range(3))
    for metric, value in totals.items():
        assert expected(Q, metric).value == pytest.approx(value)
    np.testing.assert_allclose(expected(Q, "confusion_matrix").value, matrix)
    np.testing.assert_allclose(expected(Q, "class_shares").value, matrix.sum(axis=1) / 5)


@pytest.mark.parametrize("K", [2, 3])
def test_metrics_of_many_rows_are_about_those_of_their_labels(K):
    Q, y = draw(50_000, K)
    decided = Q.argmax(axis=1)
    scores = Q[:, 1] if K == 2 else Q
    found = {
        "accuracy": accuracy_score(y, decided),
        "f1": f1_score(y, decided, average="binary" if K == 2 else "macro"),
        "auc": roc_auc_score(y, scores, multi_class="ovr"),
        "log_loss": log_loss(y, Q),
    }
    for metric, value in found.items():
        result = expected(Q, metric, n_draws=20)
        assert result.value == pytest.approx(value, abs=0.01)


def test_the_auc_compares_a_row_with_others_only():
    """Expected numbers of pairs, right and in total, over every possible vector of labels."""
    Q, _ = draw(6, 2)
    Q[1] = Q[0]  # a tie
    q = Q[:, 1]
    weights = np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0])
    order = (q[:, None] > q) + (q[:, None] == q) / 2
    right = pairs = 0.0
    for labels in product((0, 1), repeat=6):
        y = np.array(labels)
        compared = np.outer(weights * y, weights * (1 - y)) * Q[np.arange(6), y].prod()
        right = right + (order * compared).sum()
        pairs = pairs + compared.sum()
    found = expected(q, "auc", sample_weight=weights).value
    assert found == pytest.approx(right / pairs)


@pytest.mark.parametrize("metric", [metric for metric in METRICS if metric != "auc"])
@pytest.mark.parametrize("K", [2, 3])
def test_weights_are_rows(metric, K):
    Q, _ = draw(60, K)
    Q[:20] = Q[0]  # ties
    times = 1 + np.arange(60) % 3
    weighted = expected(Q, metric, sample_weight=times).value
    np.testing.assert_allclose(weighted, expected(np.repeat(Q, times, axis=0), metric).value)


def test_f1_of_a_class_with_little_weight():
    """The second row has a tenth of the weight of a row, and alone decides for class 1."""
    found = expected([[0.9, 0.1], [0.4, 0.6]], "f1", sample_weight=[4.9, 0.1]).value
    assert found == pytest.approx(0.12 / (0.49 + 0.06 + 0.1))


def test_intervals_are_those_of_sums_of_independent_labels():
    Q, _ = draw(2000, 2)
    q = Q.max(axis=1)
    result = expected(Q, "accuracy", n_draws=4000)
    error = np.sqrt((q * (1 - q)).sum()) / len(q)
    assert result.standard_error == pytest.approx(error, rel=0.05)
    assert result.high - result.low == pytest.approx(2 * 1.959964 * error, rel=0.06)


def test_uncertain_calibration_adds_the_variance_of_its_fits():
    """Slopes and shifts that were fitted to calibrated rows again and again."""
    Q, _ = draw(20_000, 2)
    alone, few, many = (
        expected(Q, "log_loss", calibration=size, n_draws=400).standard_error
        for size in (None, 500, 200_000)
    )
    assert few > 3 * alone
    assert many == pytest.approx(alone, rel=0.25)
    means = []
    for seed in range(60):
        P, y = draw(500, 2, seed=seed)
        fitted = TemperatureCalibrator().fit(P, y).predict_proba(Q)
        means.append(-(fitted * np.log(fitted)).sum(axis=1).mean())
    # A temperature has no shift, so its errors are a part of the errors of an unbiased fit.
    unbiased = few / np.sqrt(MISFIT)
    assert 0.3 * unbiased < np.std(means) < 1.2 * unbiased


def test_what_is_known_about_the_calibration():
    Q, _ = draw()
    P, y = draw(300, seed=1)
    calibrator = TemperatureCalibrator().fit(P, y)
    of_fit = expected(Q, "accuracy", calibration=calibrator)
    np.testing.assert_allclose(
        of_fit.distribution, expected(Q, "accuracy", calibration=300).distribution
    )
    of_rows = expected(Q, "accuracy", calibration=calibrator.predict_proba(P))
    assert of_rows.standard_error == pytest.approx(of_fit.standard_error, rel=0.5)


def test_forecasts_that_left_the_calibration_rows_are_warned_of():
    rng = np.random.default_rng(0)
    with pytest.warns(UserWarning, match="100% of the rows have forecasts that hardly any"):
        expected(rng.uniform(0.9, 1, 100), "accuracy", calibration=rng.uniform(0.2, 0.5, 500))
    expected(rng.uniform(0.3, 0.4, 100), "accuracy", calibration=rng.uniform(0.2, 0.5, 500))


def test_bad_input():
    Q, _ = draw(20)
    with pytest.raises(InputError, match="metric"):
        expected(Q, "precision")
    with pytest.raises(InputError, match="calibration"):
        expected(Q, "accuracy", calibration=0)
    with pytest.raises(InputError, match="hardly ever defined"):
        expected([1e-9, 2e-9], "auc")
    with pytest.raises(InputError, match="hardly ever defined"):
        expected([0.0, 0.0], "auc")
