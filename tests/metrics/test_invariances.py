"""Metrics do not depend on names and order of classes, order of rows, and scale of weights."""

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoroc import metrics
from truths import distorted


def curve(function):
    """What does not depend on the order of the classes and on points on a straight line."""

    def summary(*args, **options):
        found = function(*args, **options)
        return found.area(), (found.p0 + found.p1).max()

    return summary


def interval(y, P, labels, **options):
    metric = partial(metrics.brier_score_loss, labels=labels)
    result = metrics.bootstrap(metric, y, P, n_resamples=9, random_state=0, **options)
    return result.value


def result_of_test(*args, **options):
    result = metrics.calibration_test(*args, n_resamples=19, random_state=0, **options)
    return result.statistic, result.p_value


NORMS: tuple[Any, ...] = ("l1", "l2", "max")
KINDS: tuple[Any, ...] = ("canonical", "classwise", "top")
BINS: tuple[Any, ...] = (10, "quantile", "exact")
#: Every pair of two of the three options occurs once.
BINNED = {
    f"calibration_error({NORMS[i]}, {KINDS[j]}, {BINS[(i + j) % 3]})": partial(
        metrics.calibration_error, norm=NORMS[i], kind=KINDS[j], bins=BINS[(i + j) % 3]
    )
    for i, j in product(range(3), repeat=2)
}
CROSS_FITTED = {
    f"calibration_error({norm}, {kind}, irp)": partial(
        metrics.calibration_error, norm=norm, kind=kind, bins="irp"
    )
    for norm, kind in product(NORMS[:2], KINDS)
} | {f"decompose({loss}, irp)": partial(metrics.decompose, loss=loss) for loss in ("log", "brier")}
TIED = {
    f"calibration_error({norm}, {kind}, ties)": partial(
        metrics.calibration_error, norm=norm, kind=kind, bins="ties"
    )
    for norm, kind in product(NORMS[:2], KINDS)
} | {
    f"decompose({loss}, ties)": partial(metrics.decompose, loss=loss, bins="ties")
    for loss in ("log", "brier")
}
RANDOM = {
    "calibration_test": result_of_test,
    "calibration_test(top)": partial(result_of_test, kind="top"),
}
OTHERS = {
    "brier_score_loss": metrics.brier_score_loss,
    "log_loss": metrics.log_loss,
    "volume_under_surface(hull)": metrics.volume_under_surface,
    "volume_under_surface(boxes)": partial(metrics.volume_under_surface, volume="boxes"),
    "bootstrap": interval,
}
TWO_CLASSES = {
    "roc_auc": metrics.roc_auc,
    "symmetric_roc_curve": curve(metrics.symmetric_roc_curve),
    "roc_convex_hull": curve(metrics.roc_convex_hull),
}
ECE: dict[str, Any] = {"expected_calibration_error": metrics.expected_calibration_error}
ANY_CLASSES = BINNED | ECE | CROSS_FITTED | TIED | RANDOM | OTHERS
METRICS = [(metric, K) for metric in ANY_CLASSES.values() for K in (2, 3)]
METRICS += [(metric, 6) for metric in (CROSS_FITTED | RANDOM).values()]
METRICS += [(metric, 2) for metric in TWO_CLASSES.values()]
NAMES = [f"{name}-{K}" for name in ANY_CLASSES for K in (2, 3)]
NAMES += [f"{name}-6" for name in CROSS_FITTED | RANDOM]
NAMES += list(TWO_CLASSES)
EXACT_REPETITION = BINNED | ECE | OTHERS | TWO_CLASSES

every_metric = pytest.mark.parametrize(("metric", "n_classes"), METRICS, ids=NAMES)
few_examples = settings(max_examples=settings().max_examples // 20)


def draw(n_classes, seed, n=100):
    rng = np.random.default_rng(seed)
    P, _, y = distorted(n, n_classes, 2.0, rng)
    y[:n_classes] = np.arange(n_classes)
    return P, y, rng


def value(metric, *args, **options):
    return np.asarray(np.asarray(metric(*args, **options), dtype=object).tolist(), dtype=float)


def agree(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_every_public_metric_is_covered():
    results = {"BootstrapResult", "CalibrationTest", "Decomposition", "RocCurve"}
    results |= {"Volume", "ProbabilityScorer", "scorers"}
    results |= {"CalibrationSummary", "calibration_summary"}  # test_clinical.py
    results |= {"ranked_probability_score"}  # test_scores.py: the order of classes counts
    results |= {"RocSurface", "roc_surface"}  # test_surface.py, test_many_classes.py
    results |= {"expected"}  # test_expected.py
    results |= {"RateEstimate", "estimate_rate"}  # test_rate.py
    results |= {"segment_report", "segment_report_from_counts"}  # test_segments.py
    results |= {"CalibrationCurve", "calibration_curve"}  # test_binned.py
    names = {name.split("(")[0] for name in ANY_CLASSES | TWO_CLASSES}
    assert names == set(dir(metrics)) - results


@every_metric
@few_examples
@given(seed=st.integers(0, 10**6))
def test_the_scale_of_weights(metric, n_classes, seed):
    P, y, rng = draw(n_classes, seed)
    weights = rng.integers(1, 9, len(y)) / 4
    options = {"labels": np.arange(n_classes)}
    expected = value(metric, y, P, sample_weight=weights, **options)
    for factor in (3.7e-9, 1e12):
        agree(value(metric, y, P, sample_weight=factor * weights, **options), expected)


@every_metric
@few_examples
@given(seed=st.integers(0, 10**6))
def test_unit_weights(metric, n_classes, seed):
    P, y, _ = draw(n_classes, seed)
    options = {"labels": np.arange(n_classes)}
    expected = value(metric, y, P, **options)
    agree(value(metric, y, P, sample_weight=np.ones(len(y)), **options), expected)


@every_metric
@few_examples
@given(seed=st.integers(0, 10**6))
def test_the_order_of_rows(metric, n_classes, seed):
    P, y, rng = draw(n_classes, seed)
    weights = rng.integers(1, 9, len(y)) / 4
    order = rng.permutation(len(y))
    options = {"labels": np.arange(n_classes)}
    expected = value(metric, y, P, sample_weight=weights, **options)
    agree(value(metric, y[order], P[order], sample_weight=weights[order], **options), expected)


@every_metric
@few_examples
@given(seed=st.integers(0, 10**6))
def test_the_order_of_classes(metric, n_classes, seed):
    P, y, rng = draw(n_classes, seed)
    options = {"sample_weight": rng.integers(1, 9, len(y)) / 4}
    expected = value(metric, y, P, labels=np.arange(n_classes), **options)
    order = rng.permutation(n_classes)
    found = value(metric, y, P[:, order], labels=order, **options)
    agree(found, expected)


@every_metric
@few_examples
@given(seed=st.integers(0, 10**6))
def test_the_names_of_classes(metric, n_classes, seed):
    P, y, _ = draw(n_classes, seed)
    expected = value(metric, y, P, labels=np.arange(n_classes))
    names = np.array(["fox", "elk", "dog", "cat", "bee", "ant"][:n_classes])
    agree(value(metric, names[y], P, labels=names), expected)


@pytest.mark.parametrize("name", EXACT_REPETITION)
@few_examples
@given(seed=st.integers(0, 10**6))
def test_weights_are_repetitions(name, seed):
    metric = EXACT_REPETITION[name]
    n_classes = 2 if name in TWO_CLASSES else 3
    P, y, rng = draw(n_classes, seed)
    times = rng.integers(1, 4, len(y))
    options = {"labels": np.arange(n_classes)}
    expected = value(metric, np.repeat(y, times), np.repeat(P, times, axis=0), **options)
    agree(value(metric, y, P, sample_weight=times, **options), expected)
