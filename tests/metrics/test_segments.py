"""The report of segments: its figures, its test, and its order."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import expit
from scipy.stats import binom, false_discovery_control, ttest_1samp

from isoroc import Counts, InputError, Report, evaluate
from isoroc.metrics import segment_report, segment_report_from_counts
from isoroc.metrics._segments import adjusted, two_sided
from isoroc.plots import SegmentsDisplay


def data(n=2000, seed=0):
    """Probabilities that are right except for the young in the south."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    age = rng.integers(18, 80, n).astype(float)
    region = rng.choice(["north", "south", "west"], n)
    wrong = (region == "south") & (age < 40)
    y = rng.random(n) < np.where(wrong, p**3, p)
    return p, y, {"region": region, "age": age}


def test_figures_are_those_of_the_rows():
    p, y, segments = data()
    table = segment_report(y, p, segments)
    assert set(table["column"]) == {"region", "age", "region \u00d7 age"}
    assert (np.diff(table["cost"]) <= 0).all()
    for name in ("north", "south", "west"):
        [i] = np.flatnonzero(table["segment"] == name)
        rows = segments["region"] == name
        assert table["rows"][i] == rows.sum()
        assert table["forecast"][i] == pytest.approx(p[rows].mean())
        assert table["observed"][i] == pytest.approx(y[rows].mean())
        assert table["low"][i] < table["ratio"][i] < table["high"][i]
    ages = table["column"] == "age"
    assert table["rows"][ages].sum() == 2000
    assert ages.sum() == 5
    best = table["column"][0], table["segment"][0].split(",")[0]
    assert best == ("region \u00d7 age", "south")
    np.testing.assert_allclose(table["adjusted"], false_discovery_control(table["p_value"]))
    alone = segment_report(y, p, segments, pairs=False)
    assert set(alone["column"]) == {"region", "age"}


def test_the_cost_is_what_a_shift_of_the_log_odds_would_save():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.8, 20000)
    south = rng.random(20000) < 0.4
    odds = p / (1 - p) * np.where(south, 0.8, 1.0)
    truth = odds / (1 + odds)
    y = rng.random(20000) < truth
    table = segment_report(y, p, np.where(south, "south", "north"))
    divergence = np.where(south, truth * np.log(truth / p)
                          + (1 - truth) * np.log((1 - truth) / (1 - p)), 0.0)  # fmt: skip
    assert table["segment"][0] == "south"
    assert table["cost"][0] == pytest.approx(divergence.mean(), rel=0.3)


def test_weights_missing_values_and_small_segments():
    p, y, segments = data(600)
    segments["region"] = np.where(np.arange(600) < 60, None, segments["region"])
    segments["age"][:70] = np.nan
    table = segment_report(y, p, segments, min_rows=30)
    missing = table["segment"] == "missing"
    assert sorted(table["rows"][missing]) == [60, 70]
    weights = np.arange(600) % 3 + 1
    weighted = segment_report(y, p, segments, sample_weight=weights, min_rows=30)
    rows = segments["region"] == "north"
    [i] = np.flatnonzero(weighted["segment"] == "north")
    assert weighted["observed"][i] == pytest.approx(np.average(y[rows], weights=weights[rows]))
    scaled = segment_report(y, p, segments, sample_weight=np.full(600, 5.0), min_rows=30)
    np.testing.assert_allclose(scaled["p_value"], table["p_value"])


@pytest.mark.parametrize("shares", [[0.5, 0.5], [0.97, 0.03]])
def test_p_values_are_close_to_those_of_a_binomial_distribution(shares):
    n = 300
    rate = shares[1]
    k = np.arange(n + 1)
    exact = 2 * np.minimum(binom.cdf(k, n, rate), binom.sf(k - 1, n, rate)).clip(max=0.5)
    spread = n * rate * (1 - rate)
    S = (k - n * rate).astype(float)
    ones = np.ones(n + 1)
    found = two_sided(S, spread * ones, spread * (1 - 2 * rate) * ones, 0.5 * ones)
    likely = exact > 0.01
    np.testing.assert_allclose(np.log(found[likely]), np.log(exact[likely]), atol=0.2)
    assert (found >= 0.9 * exact).all()
    assert binom.pmf(k, n, rate)[found <= 0.05].sum() < 0.055


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.3, 0.01])
def test_the_level_is_kept(rate):
    """If forecasts are right, no segment is named with a probability of at least 95 %."""
    alarms = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        p = np.clip(rate * rng.gamma(2, 0.5, 1500), 0, 1)
        y = rng.random(1500) < p
        y[0] = True
        segments = {"a": rng.integers(8, size=1500).astype(str), "b": rng.normal(size=1500)}
        alarms.append((segment_report(y, p, segments)["adjusted"] <= 0.05).any())
    assert np.mean(alarms) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


def overconfident(kind, rng, n=2000, shift=0.0):
    """Forecasts that are too extreme, but right on average in each segment of a column."""
    z = rng.normal(size=n)
    segment = rng.integers(6, size=n)
    p = expit({"temperature": 3 * z, "noise": 3 * z + 3 * rng.normal(size=n)}[kind])
    truth = expit(z + np.where(segment == 2, shift, 0.0))
    return rng.random(n) < truth, p, segment.astype(str), truth


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["temperature", "noise"])
def test_overconfidence_alone_is_in_no_segment(kind):
    """Outcomes vary more than such forecasts imply. If ignored, 60 and 100 % had an alarm."""
    alarms = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        y, p, segment, _ = overconfident(kind, rng)
        table = segment_report(y, p, {"a": segment, "b": rng.normal(size=2000)})
        alarms.append((table["adjusted"] <= 0.05).any())
    assert np.mean(alarms) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)


def test_ratios_of_overconfident_forecasts_are_covered_and_found():
    covered = []
    found = []
    for seed in range(60):
        y, p, segment, truth = overconfident("temperature", np.random.default_rng(seed), shift=0.6)
        table = segment_report(y, p, segment)
        for name, low, high in zip(table["segment"], table["low"], table["high"], strict=True):
            rows = segment == name
            covered.append(low <= truth[rows].sum() / p[rows].sum() <= high)
        found.append(table["adjusted"][table["segment"] == "2"][0] <= 0.05)
    assert np.mean(covered) > 0.92
    assert np.mean(found) > 0.7


@pytest.mark.parametrize("confidence", [0.8, 0.95])
@pytest.mark.parametrize("kind", ["plain", "weights", "clusters", "rare", "classes"])
def test_intervals_agree_with_p_values(kind, confidence):
    outside = []
    for seed in range(8):
        rng = np.random.default_rng(100 + seed)
        p, y, segments = data(1500, seed)
        options: dict[str, Any] = {}
        if kind == "weights":
            options["sample_weight"] = rng.exponential(size=1500)
        elif kind == "clusters":
            options["clusters"] = rng.integers(60, size=1500)
        elif kind == "rare":
            y = rng.random(1500) < np.where(segments["region"] == "south", 0.2, 0.05) * p
            p = 0.05 * p
        P = p
        if kind == "classes":
            P = np.column_stack([p / 2, p / 2, 1 - p])
            y = np.where(y, rng.integers(2, size=1500), 2)
        table = segment_report(y, P, segments, confidence=confidence, **options)
        assert (table["low"] <= table["ratio"]).all()
        assert (table["ratio"] <= table["high"]).all()
        misses_one = (table["low"] > 1) | (table["high"] < 1)
        assert (misses_one == (table["p_value"] <= 1 - confidence)).all()
        outside.append(misses_one.mean())
    assert 0 < np.mean(outside) < 1


def clustered(n_clusters, wrong, seed, size=20, n_segments=8):
    """Each segment has few clusters, whose log odds differ. One segment is wrong."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(n_clusters * n_segments), size)
    segment = cluster // n_clusters
    z = rng.normal(size=len(cluster))
    own = 0.5 * rng.normal(size=n_clusters * n_segments)[cluster]
    truth = expit(z + own + np.where(segment == 2, wrong, 0.0))
    p = expit(z / np.sqrt(1 + 0.25 * 0.346))  # the mean over clusters, nearly
    return rng.random(len(cluster)) < truth, p, segment.astype(str), cluster


def test_the_test_of_few_clusters_is_a_t_test():
    y, p, segment, cluster = clustered(5, 1.5, 0)
    table = segment_report(y, p, segment, clusters=cluster)
    for name, p_value in zip(table["segment"], table["p_value"], strict=True):
        rows = segment == name
        sums = np.bincount(cluster[rows] - cluster[rows].min(), (y - p)[rows])
        alone = segment_report(y, p, segment)
        independent = alone["p_value"][alone["segment"] == name][0]
        assert p_value == pytest.approx(max(ttest_1samp(sums, 0.0).pvalue, independent))


@pytest.mark.slow
def test_segments_of_few_clusters_can_be_found():
    reports = [
        [segment_report(y, p, segment, clusters=cluster) for y, p, segment, cluster in samples]
        for samples in ([clustered(6, wrong, seed) for seed in range(40)] for wrong in (0.0, 1.5))
    ]
    right, wrong = reports
    level = np.mean([(table["adjusted"] <= 0.05).any() for table in right])
    assert level <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 40)
    found = [table["adjusted"][table["segment"] == "2"][0] <= 0.05 for table in wrong]
    assert np.mean(found) > 0.5


def test_clusters_that_agree_by_chance_are_no_evidence():
    rows = 120
    p = np.full(rows, 0.01)  # 1.2 outcomes are expected, and there is none
    y = np.zeros(rows, dtype=bool)
    y[-1] = True
    segment = np.where(np.arange(rows) < 119, "a", "b")
    table = segment_report(y, p, segment, clusters=np.arange(rows) // 4)
    assert table["p_value"][table["segment"] == "a"][0] > 0.2
    assert table["high"][table["segment"] == "a"][0] > 1


def test_a_segment_of_one_cluster_is_not_tested():
    p, y, _ = data(300)
    segment = np.where(np.arange(300) < 100, "one", "many")
    cluster = np.where(np.arange(300) < 100, 0, np.arange(300) // 5)
    table = segment_report(y, p, segment, clusters=cluster)
    one = table["segment"] == "one"
    assert table["p_value"][one][0] == 1
    assert table["low"][one][0] == 0
    assert table["high"][one][0] == pytest.approx(1 / p[:100].mean())


def test_segments_that_are_all_small_are_named_in_a_sentence():
    p, y, _ = data(120)
    segment = np.arange(120) // 6
    sentence = "No segment has 50 rows, so none was tested."
    with pytest.warns(UserWarning, match=sentence):
        assert segment_report(y, p, segment.astype(str)).n_rows == 0
    counts = {str(k): Counts.from_arrays(p[k::4], y[k::4]) for k in range(4)}
    with pytest.warns(UserWarning, match=sentence):
        assert segment_report_from_counts(counts).n_rows == 0
    for after in (None, np.sqrt(p)):
        result = evaluate(y, p, after, segments=segment.astype(str))
        assert result.sentences()[-1] == sentence
        assert sentence in repr(result)
        page = Report(y, p, after=after, segments=segment.astype(str)).to_html()
        assert "Every segment has too few rows to be tested." in page
    with pytest.raises(InputError, match="segments of too few rows"):
        SegmentsDisplay.from_evaluation(result)


def test_several_classes_and_dataframes():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 900)
    y = np.array(["a", "b", "c"])[(P.cumsum(axis=1) > rng.random((900, 1))).argmax(axis=1)]
    frame = pd.DataFrame(
        {"x": rng.integers(3, size=900).astype(str), "flag": rng.random(900) > 0.5}
    )
    table = segment_report(y, P, frame)
    assert table.n_rows == 3 * (3 + 2 + 6)
    assert set(table["class"]) == {"a", "b", "c"}
    other = segment_report(y, P, pl.from_pandas(frame))
    np.testing.assert_array_equal(other["segment"], table["segment"])
    assert {"true", "false"} <= set(table["segment"])


def test_clusters_widen_intervals():
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(200), 10)
    p = np.full(2000, 0.5)
    y = (rng.random(200) < 0.5)[cluster]  # rows of a cluster are copies
    segments = (cluster % 2).astype(str)
    plain, own = (segment_report(y, p, segments, clusters=c) for c in (None, cluster))
    for of in (0, 1):
        name = plain["segment"][of]
        [i] = np.flatnonzero(own["segment"] == name)
        ratio = (own["high"] - own["low"])[i] / (plain["high"] - plain["low"])[of]
        assert ratio == pytest.approx(np.sqrt(10), rel=0.2)
        assert own["p_value"][i] > plain["p_value"][of]


def test_counts_give_the_same():
    rng = np.random.default_rng(0)
    p = rng.choice([0.1, 0.3, 0.6], 2000)
    region = rng.choice(["north", "south"], 2000)
    old = rng.random(2000) < 0.5
    y = rng.random(2000) < p
    expected = segment_report(y, p, {"region": region, "old": old.astype(str)})
    counts = {
        (r, o): Counts.from_arrays(p[rows], y[rows], labels=[False, True])
        for r in ("north", "south")
        for o in ("True", "False")
        for rows in [(region == r) & (old.astype(str) == o)]
    }
    found = segment_report_from_counts(counts, columns=["region", "old"])
    for name in ("rows", "forecast", "observed", "p_value", "cost"):
        np.testing.assert_allclose(np.sort(found[name]), np.sort(expected[name]), atol=1e-12)
    with pytest.raises(InputError, match="counts: 'north' has 1 names, and there are 2 columns"):
        segment_report_from_counts({"north": counts["north", "True"]}, columns=["a", "b"])
    with pytest.raises(InputError, match="counts: holds int; expected Counts"):
        segment_report_from_counts({"north": 3})  # type: ignore[dict-item]


def test_adjusted_p_values():
    for p_values in ([], [0.5], [0.01, 0.02, 0.9], [0.2, 0.2, 0.0]):
        expected = false_discovery_control(p_values) if p_values else []
        np.testing.assert_allclose(adjusted(np.array(p_values, dtype=float)), expected)


def test_bad_input():
    p, y, segments = data(100)
    for name, value in (("bins", 1), ("min_rows", 0), ("confidence", 2)):
        options: Any = {name: value}
        with pytest.raises(InputError, match=name):
            segment_report(y, p, segments, **options)
    with pytest.raises(InputError, match=r"segments\['a'\]: 1 rows, but y_prob has 100"):
        segment_report(y, p, {"a": ["x"]})
    with pytest.raises(InputError, match="segments: has no columns"):
        segment_report(y, p, {})


def test_evaluations_have_the_tables():
    p, y, segments = data()
    q = np.where((segments["region"] == "south") & (segments["age"] < 40), p**3, p)
    result = evaluate(y, p, q, segments=segments)
    for of, forecasts in (("before", p), ("after", q)):
        expected = segment_report(y, forecasts, segments)
        for name, column in expected.items():
            np.testing.assert_array_equal(result.segments[of][name], column)
    assert result.wrong_segments() == []
    assert "No segment shows miscalibration (adjusted for 23 tests)." in repr(result)
    worst = result.worst_segments(3)
    assert worst.n_rows == 3
    assert (worst["before_adjusted"] < 0.01).all()
    before = evaluate(y, p, segments=segments)
    assert before.wrong_segments()[0].startswith("region \u00d7 age: south, up to")
    assert "Wrong in" in repr(before)
    found = before.to_dict()["segments"]["before"]
    assert found["ratio"] == before.segments["before"]["ratio"].tolist()
    scores = evaluate(y, 10 * p - 5, segments=segments)  # no probabilities
    assert scores.segments == {}
    weights = np.arange(2000) % 2
    half = evaluate(y, p, segments=segments, sample_weight=weights)
    assert half.segments["before"]["rows"].max() < 1000
