"""Rates from few labels and a judge: they cover the truth, and use what the judge knows."""

import numpy as np
import pytest
from scipy.special import expit

from isoroc import InputError
from isoroc.metrics import estimate_rate


def judged(kind, n, rng):
    """Scores of a judge, and outcomes."""
    z = rng.normal(size=n)
    if kind == "noise":
        return z, rng.random(n) < 0.4
    if kind == "verdicts":
        y = rng.random(n) < 0.6
        return np.where(rng.random(n) < 0.85, y, ~y).astype(float), y
    shift = {"probabilities": -0.5, "overconfident": -0.5, "rare": -4.2}[kind]
    odds = 1.5 * z + shift
    return expit(odds if kind != "overconfident" else 3 * odds + 2), rng.random(n) < expit(odds)


KINDS = ["probabilities", "overconfident", "verdicts", "noise", "rare"]


def estimates(kind, n, repetitions, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(repetitions):
        p, y = judged(kind, n + 10_000, rng)
        yield estimate_rate(y[:n], p[:n], p[n:])


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 200])
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_cover_and_are_not_wider_than_those_of_labels_alone(kind, n):
    truth = judged(kind, 4_000_000, np.random.default_rng(1))[1].mean()
    rates = list(estimates(kind, n, 400))
    covered = np.mean([rate.low <= truth <= rate.high for rate in rates])
    # 400 repetitions: the standard error is .011.
    assert 0.92 <= covered <= 0.985
    alone = np.mean([rate.labels_alone.high - rate.labels_alone.low for rate in rates])
    assert np.mean([rate.high - rate.low for rate in rates]) < 1.05 * alone


def test_a_good_judge_makes_the_interval_narrower_and_a_poor_one_does_not_widen_it():
    for kind, least, most in (("verdicts", 0.6, 0.85), ("noise", 0.9, 1.05)):
        ratios = [
            (rate.high - rate.low) / (rate.labels_alone.high - rate.labels_alone.low)
            for rate in estimates(kind, 100, 20)
        ]
        assert least < np.mean(ratios) < most


def test_the_bias_of_the_judge_does_not_matter():
    values = [rate.value for rate in estimates("overconfident", 200, 60)]
    p, y = judged("overconfident", 400_000, np.random.default_rng(1))
    assert abs(p.mean() - y.mean()) > 0.1
    assert np.mean(values) == pytest.approx(y.mean(), abs=4 * np.std(values) / np.sqrt(60))


def test_neither_order_nor_scale_matters():
    rng = np.random.default_rng(0)
    z, y = judged("noise", 2000, rng)
    y = rng.random(2000) < expit(z)
    rate = estimate_rate(y[:100], 3 * z[:100] + 5, 3 * z[100:] + 5)
    rows = rng.permutation(100)
    again = estimate_rate(y[rows], z[rows], z[100:][::-1])
    assert [again.value, again.low, again.high] == pytest.approx(
        [rate.value, rate.low, rate.high], abs=1e-9
    )


def test_scores_are_read_alike_in_both_parts():
    """Logits of the other rows may all lie in [0, 1], where they look like probabilities."""
    rng = np.random.default_rng(0)
    z = np.append(rng.normal(size=100), rng.uniform(0.05, 0.95, 3000))
    y = rng.random(100) < expit(2 * z[:100])
    rate, shifted = (estimate_rate(y, z[:100] + c, z[100:] + c) for c in (0, 10))
    assert rate.value == pytest.approx(shifted.value, abs=1e-9)
    assert rate.value > expit(0.1)
    with pytest.raises(InputError, match="p_unlabelled"):
        estimate_rate(y, expit(z[:100]), z[:50])


def test_clusters_widen_the_interval():
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(40), 5)
    z = rng.normal(size=40)[patient]
    y = rng.random(40)[patient] < 0.5
    one, many = (estimate_rate(y, z, rng.normal(size=3000), clusters=c) for c in (None, patient))
    assert many.high - many.low > 1.5 * (one.high - one.low)


def test_differences_combine_both_intervals():
    first, second = estimates("verdicts", 100, 2)
    difference = first.minus(second)
    assert difference.value == pytest.approx(first.value - second.value)
    width = difference.high - difference.low
    widths = [rate.high - rate.low for rate in (first, second)]
    assert max(widths) < width < sum(widths)
    assert second.minus(first).low == pytest.approx(-difference.high)


def test_labels_without_any_outcome_have_an_interval():
    rate = estimate_rate(np.zeros(50), np.full(50, 0.01), np.full(9000, 0.01))
    assert 0 <= rate.low < 0.02 < rate.high < 0.1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 0, 1], [0.2, 0.1, 0.9], [0.4]), "expected at least 10"),
        (([0, 1, 2, 0] * 5, [0.2] * 20, [0.4]), "y"),
        (([0, 1] * 10, [0.2] * 19, [0.4]), "y"),
        (([0, 1] * 10, [0.2] * 20, [[0.4, 0.6]]), "p_unlabelled"),
        (([0, 1] * 10, [0.2] * 20, [np.nan]), "p_unlabelled"),
    ],
)
def test_errors_name_the_argument(arguments, message):
    with pytest.raises(InputError, match=message):
        estimate_rate(*arguments)
