import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reproduction.experiments import (
    COMPARISONS,
    LAM,
    PROCEDURES,
    PUBLISHED,
    claims,
    compare,
    experiment,
    grid_size_of,
    measure_split,
    normalise,
    paired,
    repeat,
    score,
    score_as_published,
    split_volume,
    summary,
    volume,
)
from reproduction.published import ReferenceIRP
from scipy.stats import ttest_rel
from sklearn.metrics import brier_score_loss, log_loss

from isoroc import IRPCalibrator
from isoroc.metrics import roc_convex_hull, symmetric_roc_curve

pytestmark = [pytest.mark.project, pytest.mark.usefixtures("small")]


@pytest.mark.parametrize("name", PROCEDURES)
@pytest.mark.parametrize("K", [2, 3, 4])
def test_a_run_goes_from_the_mean_label_to_the_last_stage(forecasts, K, name):
    of = forecasts(K)
    run = PROCEDURES[name](of)
    assert run.cal.shape == (run.n_stages, 60, K)
    assert run.test.shape == (run.n_stages, 60, K)
    assert run.thresholds.shape == (run.n_stages - 1, K)
    assert run.n_bins[0] == 1
    for stage, n_bins in enumerate(run.n_bins):
        assert len(np.unique(run.cal[stage].round(9), axis=0)) <= n_bins
    if name in PUBLISHED:
        np.testing.assert_allclose(run.cal[0], [np.bincount(of.y_cal) / 60] * 60)
        np.testing.assert_allclose(run.cal[1:].sum(axis=2), (1 + 0.05 * K) / 1.05)
        np.testing.assert_allclose(run.test[1:].sum(axis=2), (1 + 0.05 * K) / 1.05)
    else:
        np.testing.assert_allclose(run.cal.sum(axis=2), 1)


def test_the_last_stage_is_what_the_procedure_predicts(forecasts):
    of = forecasts(3)
    irp = ReferenceIRP(12).fit(of.P_cal, of.y_cal)
    np.testing.assert_array_equal(PROCEDURES["published IRP"](of).test[-1], irp.predict(of.P_test))
    ours = IRPCalibrator(values="constant", random_state=0).fit(of.P_cal, of.y_cal)
    run = PROCEDURES["isoroc, sweep"](of)
    np.testing.assert_array_equal(run.test[-1], ours.predict_proba(of.P_test))


def test_published_scores_are_too_low_by_the_log_of_the_sums_of_rows(forecasts):
    of = forecasts(3)
    run = PROCEDURES["published IRP"](of)
    published = score_as_published(run.cal[-1], run.test[-1], of)
    normalised = score(run.cal[-1], run.test[-1], of)
    gap = normalised.test_cross_entropy - published.test_cross_entropy
    assert gap == pytest.approx(np.log(1.15 / 1.05))
    labels = [0, 1, 2]
    expected = log_loss(of.y_test, normalise(run.test[-1]), labels=labels)
    assert normalised.test_cross_entropy == pytest.approx(expected)
    expected = brier_score_loss(of.y_test, normalise(run.test[-1]), labels=labels)
    assert normalised.test_brier == pytest.approx(expected)
    assert published.cal_cross_entropy > normalised.cal_cross_entropy - np.log(1.15 / 1.05)


def test_the_volume_does_not_depend_on_the_scale_of_rows(forecasts):
    of = forecasts(2)
    expected = roc_convex_hull(of.y_cal, of.P_cal).area()
    assert volume(of.P_cal, of.y_cal) == pytest.approx(expected)
    assert volume(1.1 * of.P_cal, of.y_cal) == pytest.approx(expected)


def test_grids_of_more_classes_stay_small():
    assert [grid_size_of(K) for K in (3, 5, 6)] == [12, 20, 8]


@pytest.fixture(scope="module", params=[2, 3, 4])
def done(request, small, forecasts):  # noqa: ARG001
    return experiment(forecasts(request.param))


def test_outcomes_are_the_last_stages(done):
    before, *others = done.outcomes()
    assert before.procedure == "before"
    assert before.n_bins is None
    assert before.normalised == score(done.forecasts.P_cal, done.forecasts.P_test, done.forecasts)
    assert [outcome.procedure for outcome in others] == list(PROCEDURES)
    for outcome in others:
        stages = done.stages[outcome.procedure]
        run = done.runs[outcome.procedure]
        assert stages.n_rows == run.n_stages
        assert outcome.n_bins == run.n_bins[-1]
        assert (outcome.as_published is not None) == (outcome.procedure in PUBLISHED)
        for name, value in outcome.normalised._asdict().items():
            assert stages[f"{name}_normalised"][-1] == value
        assert stages["cal_volume"][-1] == outcome.cal_volume
        again = volume(run.test[-1], done.forecasts.y_test)
        assert outcome.test_volume == pytest.approx(again)


def test_both_ways_of_scoring_isoroc_differ_only_by_the_regularisation(done):
    stages = done.stages["isoroc, sweep"]
    np.testing.assert_allclose(
        stages["test_cross_entropy_as_published"], stages["test_cross_entropy_normalised"]
    )
    assert (stages["cal_cross_entropy_as_published"] > stages["cal_cross_entropy_normalised"]).all()


def test_claims(done):
    K = done.n_classes
    found = claims(done)
    errors = found["calibration_error"]
    assert errors["calibration rows, IRP without smoothing"] == pytest.approx(0, abs=1e-12)
    assert errors["calibration rows, isoroc without smoothing"] == pytest.approx(0, abs=1e-12)
    assert errors["calibration rows, published IRP"] > 0
    for name, stop in found["stop"].items():
        losses = done.stages[name]["test_cross_entropy_normalised"]
        assert stop["normalised"]["at_best"] == losses.min() <= stop["normalised"]["at_the_end"]
        assert stop["normalised"]["at_the_end"] == losses[-1]
        assert ("as_published" in stop) == (name in PUBLISHED)
    volumes = found["volume"]
    assert volumes["published IRP, its splits only"] <= volumes["before"] + 1e-9
    assert ("hull" in found) == (K == 2)
    if K == 2:
        hull = found["hull"]
        assert hull["AUC, isoroc without smoothing"] == pytest.approx(
            hull["AUC of the hull before"], abs=1e-12
        )


# Every bin is off by lam (1 - mean) / (1 + lam) in each class, regardless of its labels.
def test_the_calibration_error_of_published_values_is_constant(done):
    K = done.n_classes
    run = done.runs["published IRP"]
    Y = np.eye(K)[done.forecasts.y_cal]
    for values in run.cal[1:]:
        _, level = np.unique(values, axis=0, return_inverse=True)
        level = level.ravel()  # NumPy 2.0 returns a column
        means = np.array([Y[level == b].mean(axis=0) for b in range(level.max() + 1)])[level]
        error = np.abs(means - values).sum(axis=1)
        np.testing.assert_allclose(error, LAM * (K - 1) / (1 + LAM))


def test_the_points_of_the_splits_lie_on_the_curve_before(forecasts):
    done = experiment(forecasts(2))
    P, y, _, _, _ = done.forecasts
    curve = symmetric_roc_curve(y, P)
    hull = roc_convex_hull(y, P)
    before = set(zip(curve.p0.round(9), curve.p1.round(9), strict=True))
    for gamma in done.runs["published IRP"].thresholds:
        low = P[:, 1] <= gamma[1]
        point = (low[y == 0].mean(), (~low)[y == 1].mean())
        assert tuple(np.round(point, 9)) in before
    assert split_volume(done) <= hull.area() + 1e-12


values = st.lists(st.floats(-1, 1), min_size=3, max_size=20)


@given(values, st.floats(-1, 1))
def test_the_paired_interval_is_the_usual_one_widened_for_the_overlap(differences, shift):
    a = np.array(differences)
    found = paired(a + shift, np.full(len(a), shift))
    assert found.mean == pytest.approx(a.mean(), abs=1e-12)
    assert found.n_splits == len(a)
    if a.std() > 1e-3:
        usual = ttest_rel(a, np.zeros(len(a))).confidence_interval(0.95)
        widened = np.sqrt(1 + len(a) * 1000 / 5000)
        assert found.high - found.mean == pytest.approx((usual.high - a.mean()) * widened)
        assert found.mean - found.low == pytest.approx((a.mean() - usual.low) * widened)


def test_n_below_counts_splits():
    assert paired(np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 4.0])).n_below == 2


def loss(P, y):
    """Log loss with probabilities clipped at 1e-6."""
    return -np.log(np.maximum(P[np.arange(len(y)), y], 1e-6)).mean()


@pytest.mark.parametrize("K", [2, 4])
def test_the_measures_are_those_of_the_last_stage(forecasts, K):
    of = forecasts(K)
    found = measure_split(of)
    assert ("before/cal_volume" in found) == (K < 4)
    assert found["before/cross_entropy"] == pytest.approx(loss(of.P_test, of.y_test))
    for name, procedure in PROCEDURES.items():
        run = procedure(of)
        losses = [loss(normalise(Q), of.y_test) for Q in run.test]
        assert found[f"{name}/bins"] == run.n_bins[-1]
        assert found[f"{name}/cross_entropy"] == pytest.approx(losses[-1])
        assert found[f"{name}/regret"] == pytest.approx(losses[-1] - min(losses))
        assert found[f"{name}/best_bins"] == run.n_bins[np.argmin(losses)]


def test_repeat(rows):
    found = repeat(rows, (2, 3), (5, 6, 7), classifiers=("naive Bayes",))
    assert list(found) == [(2, "naive Bayes"), (3, "naive Bayes")]
    for (K, classifier), measures in found.items():
        again = measure_split(rows.forecasts(K, 6, classifier))
        assert {name: values[1] for name, values in measures.items()} == pytest.approx(again)
        for title, a, b in COMPARISONS:
            assert compare(measures)[title].mean == pytest.approx(
                (measures[a] - measures[b]).mean()
            )
    for entry, measures in zip(summary(found), found.values(), strict=True):
        for name, mean in entry["means"].items():
            assert mean == pytest.approx(measures[name].mean())
