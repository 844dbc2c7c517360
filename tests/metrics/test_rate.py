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


def in_clusters(seed, n_clusters=60, size=30):
    """Clusters, scores and outcomes of rows with a rate of one half."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(n_clusters), size)
    z = 1.2 * rng.normal(size=n_clusters)[cluster] + rng.normal(size=len(cluster))
    return cluster, expit(z + 0.5), rng.random(len(cluster)) < expit(z)


def test_clusters_of_unlabelled_rows_widen_the_interval():
    cluster, p, y = in_clusters(0)
    labelled = np.arange(len(p)) % 10 == 0
    rows = y[labelled], p[labelled], p[~labelled]
    plain, half, both = (
        estimate_rate(*rows, clusters=a, clusters_unlabelled=b)
        for a, b in (
            (cluster[labelled], None),
            (None, cluster[~labelled]),
            (cluster[labelled], cluster[~labelled]),
        )
    )
    assert both.high - both.low > 1.05 * (plain.high - plain.low)
    assert both.high - both.low > 1.05 * (half.high - half.low)
    alone = np.arange(np.count_nonzero(~labelled))
    single = estimate_rate(*rows, clusters_unlabelled=alone)
    none = estimate_rate(*rows)
    found = [single.value, single.low, single.high]
    assert found == pytest.approx([none.value, none.low, none.high], abs=1e-3)
    # Names are compared: patients of other names are other patients.
    names = np.array([f"other {c}" for c in cluster[~labelled]])
    apart = estimate_rate(*rows, clusters=cluster[labelled], clusters_unlabelled=names)
    assert apart.value == pytest.approx(both.value)
    assert apart.high - apart.low < both.high - both.low


@pytest.mark.slow
def test_rates_of_clustered_rows_are_covered():
    covered = []
    for seed in range(150):
        cluster, p, y = in_clusters(seed)
        known = np.random.default_rng(seed + 1000).random(len(p)) < 0.1
        rate = estimate_rate(
            y[known],
            p[known],
            p[~known],
            clusters=cluster[known],
            clusters_unlabelled=cluster[~known],
        )
        covered.append(rate.low <= 0.5 <= rate.high)
    assert np.mean(covered) > 0.88  # 85 % without clusters_unlabelled


@pytest.mark.parametrize(
    ("clusters", "message"),
    [([1] * 29, "29"), ([1] * 30, "two clusters"), ([None] * 30, "missing")],
)
def test_clusters_of_unlabelled_rows_are_checked(clusters, message):
    with pytest.raises(InputError, match=f"clusters_unlabelled.*{message}"):
        estimate_rate([0, 1] * 10, [0.2, 0.6] * 10, [0.4] * 30, clusters_unlabelled=clusters)


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
