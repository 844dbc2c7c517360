import numpy as np
import pytest

from isoroc.metrics import roc_convex_hull, symmetric_roc_curve
from isoroc.paper._cache import Cache
from isoroc.paper._experiment import claims, experiment, split_volume
from isoroc.paper._runs import LAM, PROCEDURES, PUBLISHED, normalise, score, volume

pytestmark = pytest.mark.usefixtures("small")


@pytest.fixture(scope="module", params=[2, 3, 4])
def done(request, small, forecasts):  # noqa: ARG001
    return experiment(forecasts(request.param), Cache(None))


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
    found = claims(done, Cache(None))
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
    K, run = done.n_classes, done.runs["published IRP"]
    Y = np.eye(K)[done.forecasts.y_cal]
    for values in run.cal[1:]:
        _, level = np.unique(values, axis=0, return_inverse=True)
        level = level.ravel()  # NumPy 2.0 returns a column
        means = np.array([Y[level == b].mean(axis=0) for b in range(level.max() + 1)])[level]
        error = np.abs(means - values).sum(axis=1)
        np.testing.assert_allclose(error, LAM * (K - 1) / (1 + LAM))


def test_the_points_of_the_splits_lie_on_the_curve_before(forecasts):
    done = experiment(forecasts(2), Cache(None))
    P, y, _, _, _ = done.forecasts
    curve, hull = symmetric_roc_curve(y, P), roc_convex_hull(y, P)
    before = set(zip(curve.p0.round(9), curve.p1.round(9), strict=True))
    for gamma in done.runs["published IRP"].thresholds:
        low = P[:, 1] <= gamma[1]
        point = (low[y == 0].mean(), (~low)[y == 1].mean())
        assert tuple(np.round(point, 9)) in before
    assert split_volume(done) <= hull.area() + 1e-12


def test_a_second_run_reuses_the_trees(forecasts, tmp_path):
    first = Cache(tmp_path)
    one = experiment(forecasts(3), first)
    claims(one, first)
    assert first.n_reused == 0
    second = Cache(tmp_path)
    two = experiment(forecasts(3), second)
    claims(two, second)
    assert (second.n_computed, second.n_reused) == (0, first.n_computed)
    for a, b in zip(one.outcomes(), two.outcomes(), strict=True):
        assert a == b
    np.testing.assert_array_equal(
        normalise(one.runs["published IRP"].test), normalise(two.runs["published IRP"].test)
    )
