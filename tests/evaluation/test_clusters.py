"""Rows of one cluster may depend on each other: intervals, tests and folds allow for that."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from isoroc import AutoCalibrator, CalibratedClassifier, InputError, IRPCalibrator, Report, evaluate
from isoroc._counts import deal_by_content
from isoroc._input import check_sample, deal_folds
from isoroc.decisions import expected_cost, net_benefit, threshold_for
from isoroc.metrics import (
    bootstrap,
    brier_score_loss,
    calibration_curve,
    calibration_summary,
    calibration_test,
    decompose,
    segment_report,
)


def visits(n_clusters=60, size=5, seed=0, power=1.0):
    """Forecasts, outcomes and clusters: marginally, an event has a power of its forecast."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(n_clusters), size)
    own = rng.normal(size=(2, n_clusters * size))
    common = rng.normal(size=(2, n_clusters))
    p = ndtr(np.sqrt(0.5) * (own[0] + common[0][cluster]))
    z = np.sqrt(0.3) * common[1][cluster] + np.sqrt(0.7) * own[1]
    return p, z < ndtri(p**power), cluster


ENDS = ("low", "high")


def width(estimate):
    return estimate[-1] - estimate[-2]


def test_copies_of_rows_change_no_interval():
    p, y, _ = visits(100, 1)
    once = evaluate(y, p, np.sqrt(p))
    again = np.repeat(np.arange(100), 3)
    twice = evaluate(y[again], p[again], np.sqrt(p)[again], clusters=again)
    for measure in ("log_loss", "brier_score_loss", "accuracy", "decisions_changed"):
        for of, estimate in once.measures[measure].items():
            np.testing.assert_allclose(twice.measures[measure][of], estimate, rtol=1e-9)


@pytest.mark.parametrize(
    ("measure", "of"),
    [
        ("log_loss", "before"),
        ("log_loss", "change"),
        ("brier_score_loss", "before"),
        ("accuracy", "before"),
        ("auc", "before"),
        ("auc", "change"),
        ("calibration_error", "before"),
    ],
)
def test_copies_do_not_make_intervals_narrow(measure, of):
    p, y, _ = visits(60, 1)
    rng = np.random.default_rng(1)
    q = ndtr(ndtri(p) + rng.normal(scale=0.3, size=60))
    again = np.repeat(np.arange(60), 10)
    copies = y[again], p[again], q[again]
    plain, clustered, once = (
        width(evaluate(*rows, clusters=clusters).measures[measure][of])
        for rows, clusters in ((copies, None), (copies, again), ((y, p, q), None))
    )
    assert clustered > (1.1 if measure == "calibration_error" else 1.4) * plain
    assert clustered == pytest.approx(once, rel=0.7)


def test_copies_of_separable_rows_are_no_evidence():
    y = np.arange(20) >= 10
    p = np.linspace(0.1, 0.9, 20)
    again = np.repeat(np.arange(20), 10)
    once = evaluate(y, p).measures["auc"]["before"]
    copied = evaluate(y[again], p[again], clusters=again).measures["auc"]["before"]
    assert once.value == once.high == 1
    assert 0.5 < once.low < 0.9
    np.testing.assert_allclose(copied, once, rtol=1e-9)


def test_every_interval_takes_clusters():
    p, y, cluster = visits(50, 8, power=2.0)
    names = np.array([f"patient {c}" for c in cluster])
    functions = {
        "direction": lambda **c: width(
            [evaluate(y, p, **c).directions["before"][end] for end in ENDS]
        )[2],
        "slope": lambda **c: width(summary(y, p, "slope", **c)),
        "ratio": lambda **c: width(summary(y, p, "observed_expected", **c)),
        "curve": lambda **c: np.subtract(*curve(y, p, **c)).mean(),
        "parts": lambda **c: decompose(y, p, **c).standard_errors[0],
        "cost": lambda **c: width([expected_cost(y, p, [[0, 1], [2, 0]], **c).table[e][0]
                                   for e in ("low", "high")]),
        "benefit": lambda **c: width(list(net_benefit(y, p, [0.4], **c).table.values())[-2:])[0],
        "threshold": lambda **c: width(list(
            threshold_for(y, p, **c, metric="alerts", target=0.5).table.values())[-2:])[3],
        "bootstrap": lambda **c: bootstrap(
            brier_score_loss, y, p, n_resamples=99, random_state=0, **c).standard_error,
        "segments": lambda **c: np.ptp([
            segment_report(y, p, cluster < 0, **c)[end][0] for end in ("low", "high")]),
    }  # fmt: skip
    for name, function in functions.items():
        assert function(clusters=names) > 1.03 * function(), name


def summary(y, p, measure, **options):
    table = calibration_summary(y, p, **options).table
    return [table[end][table["measure"] == measure][0] for end in ("low", "high")]


def curve(y, p, **options):
    found = calibration_curve(y, p, **options)
    return found.high, found.low


def test_clusters_of_independent_rows_hardly_widen_the_change_of_accuracy():
    rng = np.random.default_rng(0)
    p = rng.random(600)
    y = rng.random(600) < p
    q = np.clip(p + rng.normal(scale=0.1, size=600), 0.01, 0.99)
    plain, clustered = (
        evaluate(y, p, q, clusters=c).measures["accuracy"]["change"]
        for c in (None, rng.permutation(600) // 10)
    )
    assert width(clustered) == pytest.approx(width(plain), rel=0.2)


def unequal(sizes, seed):
    """Clusters of given sizes: forecasts, outcomes and clusters."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    common = rng.normal(size=(2, len(sizes)))[:, cluster]
    own = rng.normal(size=(2, len(cluster)))
    shared = np.array([[0.5], [0.3]])
    x, z = np.sqrt(shared) * common + np.sqrt(1 - shared) * own
    return ndtr(x), z < x, cluster


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("sizes", [[150] + [5] * 19, [1000, 1, 1]])
def test_one_large_cluster_leaves_intervals_finite(sizes, after):
    p, y, cluster = unequal(sizes, 0)
    result = evaluate(y, p, p**1.2 if after else None, clusters=cluster)
    for measure, figures in result.measures.items():
        for of, (value, low, high) in figures.items():
            assert low <= value <= high, (measure, of)
            assert high - low < 10, (measure, of)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [[60] * 2 + [20] * 4 + [5] * 14, [150] + [5] * 19])
def test_areas_of_unequal_clusters_are_covered(sizes):
    p = np.sort(ndtr(np.random.default_rng(0).normal(size=200_000)))
    truth = p @ (np.cumsum(1 - p) - (1 - p) / 2) / (p.sum() * (1 - p).sum())
    covered = []
    for seed in range(150):
        p, y, cluster = unequal(sizes, seed)
        _, low, high = evaluate(y, p, clusters=cluster).measures["auc"]["before"]
        covered.append(low <= truth <= high)
    assert np.mean(covered) > 0.93


def test_names_of_clusters_do_not_matter():
    p, y, cluster = visits(20, 4)
    named = np.array(["b", "a"])[cluster % 2].astype(object) + cluster.astype(str).astype(object)
    first = evaluate(y, p, clusters=cluster)
    order = np.random.default_rng(0).permutation(len(y))
    second = evaluate(y[order], p[order], clusters=named[order])
    for measure in ("log_loss", "auc", "accuracy"):
        np.testing.assert_allclose(
            second.measures[measure]["before"], first.measures[measure]["before"], rtol=1e-9
        )


def test_the_test_of_calibration_draws_signs_of_clusters():
    rejected = [
        calibration_test(y, p, clusters=c, n_resamples=99, random_state=0).p_value <= 0.05
        for p, y, c in (visits(60, 5, seed) for seed in range(40))
    ]
    assert sum(rejected) <= 6  # more has a probability of .3 % at the level 5 %
    p, y, cluster = visits(60, 5, power=2.0)
    assert calibration_test(y, p, clusters=cluster, random_state=0).p_value <= 0.01


def test_whole_clusters_are_drawn():
    p, y, cluster = visits(10, 3)

    def share_of_whole(_, __, sample_weight):
        times = np.ones((10, 3)) if sample_weight is None else sample_weight.reshape(10, 3)
        return float((times == times[:, :1]).all())

    found = bootstrap(share_of_whole, y, p, clusters=cluster, n_resamples=20, random_state=0)
    assert found.distribution.all()


def test_rows_of_a_cluster_share_a_fold():
    p, y, cluster = visits(30, 7)
    sample = check_sample(p, y, clusters=cluster)
    dealt = deal_by_content(sample, 5)
    fold = deal_folds(len(y), 5, np.random.default_rng(0), cluster)
    for clusters, folds in ((dealt.clusters, dealt.fold), (cluster, fold)):
        assert len(np.unique(folds)) == 5
        assert all(len(np.unique(folds[clusters == c])) == 1 for c in range(30))
    # The same forecast in several clusters stays in each of them.
    tied = check_sample(np.round(p, 1), y, clusters=cluster)
    assert len(deal_by_content(tied, 5)) > len(np.unique(np.round(p, 1)))


def test_calibrators_hold_out_clusters():
    p, y, cluster = visits(40, 5)
    plain = AutoCalibrator(random_state=0).fit(p, y).member_scores_["gain_se"]
    clustered = AutoCalibrator(random_state=0).fit(p, y, clusters=cluster).member_scores_["gain_se"]
    assert not np.allclose(plain, clustered)


class Recorder(LogisticRegression):
    """Remembers the rows that it was trained on."""

    def fit(self, X, y, sample_weight=None):
        self.clusters_ = np.unique(X[:, 1])
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("ensemble", [True, False])
def test_classifiers_are_calibrated_on_clusters_they_have_not_seen(ensemble):
    p, y, cluster = visits(40, 5)
    X = np.column_stack([ndtri(p), cluster])
    options = {"method": "temperature", "ensemble": ensemble}
    fitted = CalibratedClassifier(Recorder(), cv=4, **options).fit(X, y, clusters=cluster)
    if ensemble:
        held_out = [np.setdiff1d(cluster, c.clusters_) for c in fitted.estimators_]
        assert sorted(np.concatenate(held_out)) == list(range(40))
    with pytest.raises(InputError, match="also trains on"):
        CalibratedClassifier(Recorder(), cv=KFold(4, shuffle=True), **options).fit(
            X, y, clusters=cluster
        )


def test_reports_take_clusters():
    p, y, cluster = visits(40, 5)
    calibrator = IRPCalibrator().fit(p, y)
    plain, clustered = (
        Report.from_estimator(calibrator, p, y, **options).summary
        for options in ({}, {"clusters": cluster})
    )
    assert plain["headline"] != clustered["headline"]


@pytest.mark.parametrize(
    ("clusters", "problem"),
    [
        ([0] * 20, "all 20 rows are in cluster 0"),
        ([0, 1], "2"),
        ([None, *range(19)], "is missing"),
    ],
)
def test_bad_clusters_are_refused(clusters, problem):
    p, y, _ = visits(10, 2)
    with pytest.raises(InputError, match=problem) as raised:
        evaluate(y, p, clusters=np.array(clusters, dtype=object))
    assert "clusters" in str(raised.value)


@pytest.mark.slow
def test_intervals_of_clustered_rows_cover():
    truth, _, _ = visits(100_000, 2)
    losses = -(truth * np.log(truth) + (1 - truth) * np.log1p(-truth)).mean()
    expected = {
        "log_loss": losses,
        "brier_score_loss": (truth * (1 - truth)).mean(),
        "accuracy": np.maximum(truth, 1 - truth).mean(),
        "calibration_error": 0.0,
    }
    covered = dict.fromkeys(expected, 0)
    for seed in range(150):
        p, y, cluster = visits(60, 5, seed)
        found = evaluate(y, p, clusters=cluster).measures
        for measure, value in expected.items():
            _, low, high = found[measure]["before"]
            covered[measure] += low <= value <= high
    assert all(count >= 132 for count in covered.values())  # 88 %, where 95 % would be 142
