"""Parameters that cannot be used are refused with an `InputError`, whatever their type."""

import inspect

import numpy as np
import pandas as pd
import pytest

import isoroc
from isoroc import Counts, InputError, export, metrics
from truths import distorted
from zoo import KINDS

P, _, Y = distorted(40, 3, 2.0, seed=0)
SCORES = P[:, 1]
OUTCOMES = Y == 1
VALUES = ["nonsense", -1.5, [1, 2], {}, object(), np.nan]
#: What joblib and scikit-learn check, and what any value is right for.
OTHERS = {"n_jobs", "random_state", "verbose"}


def assert_refused(call, names):
    """Refused, or accepted: nothing but an `InputError` is raised."""
    for name in set(names) - OTHERS:
        for value in VALUES:
            try:
                call(**{name: value})
            except InputError as error:
                assert str(error)  # noqa: PT017


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", KINDS)
def test_parameters_of_calibrators(name):
    kind = KINDS[name]
    assert_refused(lambda **given: kind(**given).fit(P, Y), kind().get_params(deep=False))


def options_of(function):
    parameters = inspect.signature(function).parameters.values()
    return [own.name for own in parameters if own.kind is own.KEYWORD_ONLY]


METRICS = [name for name in dir(metrics) if inspect.isfunction(getattr(metrics, name))]
LEFT_OUT = {"bootstrap", "estimate_rate", "expected"}
METRICS = sorted({*METRICS} - LEFT_OUT - {"segment_report", "segment_report_from_counts"})


@pytest.mark.parametrize("name", METRICS)
def test_options_of_metrics(name):
    metric = getattr(metrics, name)
    assert_refused(lambda **given: metric(OUTCOMES, SCORES, **given), options_of(metric))


def test_options_of_evaluations_counts_and_resamples():
    arrays = OUTCOMES, SCORES
    rate = metrics.estimate_rate
    assert_refused(lambda **given: rate(*arrays, SCORES, **given), options_of(rate))
    assert_refused(lambda **given: isoroc.evaluate(*arrays, **given), options_of(isoroc.evaluate))
    made = Counts.from_arrays
    assert_refused(lambda **given: made(SCORES, OUTCOMES, **given), options_of(made))
    resampled = metrics.bootstrap
    assert_refused(
        lambda **given: resampled(metrics.log_loss, *arrays, **{"n_resamples": 2} | given),
        options_of(resampled),
    )
    assert_refused(
        lambda **given: isoroc.CalibrationMonitor([0, 1], **given), ["confidence", "tolerance"]
    )


def test_options_of_exports():
    pytest.importorskip("onnx")
    pytest.importorskip("sqlglot")
    calibrator = isoroc.IsotonicCalibrator().fit(SCORES, OUTCOMES)
    exports = {
        export.to_onnx: (calibrator,),
        export.to_sql: (calibrator, "p"),
        export.counts_sql: ("table", "p", "y", "duckdb"),
    }
    for function, words in exports.items():
        needed = {"dialect": "duckdb"} if function is export.to_sql else {}
        options = options_of(function)
        assert_refused(lambda f=function, w=words, n=needed, **own: f(*w, **n | own), options)


@pytest.mark.parametrize("kind", ["M8[D]", "M8[ns]", "m8[s]"])
def test_dates_are_not_forecasts(kind):
    y = np.arange(20) % 2
    dates = np.arange(20).astype(kind)
    for forecasts in (dates, pd.Series(dates), np.stack([dates, dates], axis=1)):
        for metric in (metrics.roc_convex_hull, metrics.volume_under_surface, metrics.log_loss):
            with pytest.raises(InputError, match="not dates"):
                metric(y, forecasts)
