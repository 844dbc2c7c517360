import numpy as np
import pytest
from sklearn.metrics import log_loss

from isoroc import IRPCalibrator
from isoroc.metrics import hull_auc
from isoroc.paper._reference import ReferenceIRP
from isoroc.paper._runs import (
    PROCEDURES,
    PUBLISHED,
    grid_size_of,
    normalise,
    score,
    score_as_published,
    volume,
)

pytestmark = pytest.mark.usefixtures("small")


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
    ours = IRPCalibrator(random_state=0).fit(of.P_cal, of.y_cal)
    run = PROCEDURES["isoroc, sweep"](of)
    np.testing.assert_array_equal(run.test[-1], ours.predict_proba(of.P_test))


def test_published_scores_are_too_low_by_the_log_of_the_sums_of_rows(forecasts):
    of = forecasts(3)
    run = PROCEDURES["published IRP"](of)
    published = score_as_published(run.cal[-1], run.test[-1], of)
    normalised = score(normalise(run.cal[-1]), normalise(run.test[-1]), of)
    gap = normalised.test_cross_entropy - published.test_cross_entropy
    assert gap == pytest.approx(np.log(1.15 / 1.05))
    labels = [0, 1, 2]
    expected = log_loss(of.y_test, normalise(run.test[-1]), labels=labels)
    assert normalised.test_cross_entropy == pytest.approx(expected)
    assert published.cal_cross_entropy > normalised.cal_cross_entropy - np.log(1.15 / 1.05)


def test_the_volume_does_not_depend_on_the_scale_of_rows(forecasts):
    of = forecasts(2)
    expected = hull_auc(of.y_cal, of.P_cal)
    assert volume(of.P_cal, of.y_cal) == pytest.approx(expected)
    assert volume(1.1 * of.P_cal, of.y_cal) == pytest.approx(expected)


def test_grids_of_more_classes_stay_small():
    assert [grid_size_of(K) for K in (3, 5, 6)] == [12, 20, 8]
