import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from isoroc import Counts, InputError, evaluate
from isoroc._input import Sample
from isoroc.metrics import brier_score_loss, calibration_summary, roc_auc
from isoroc.metrics._clinical import smooth_curve
from r_data import pmcalibration_example


def draw(n, slope=1.0, shift=0.0, mean=0.0, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(mean, 1.5, n)
    return (rng.random(n) < expit(slope * z + shift)).astype(int), expit(z)


def ends(summary, measure):
    table = summary.table
    row = np.flatnonzero(table["measure"] == measure)[0]
    return table["value"][row], table["low"][row], table["high"][row]


def plain_fit(X, y):
    return LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000).fit(X, y)


def test_the_example_is_that_of_r():
    y, p, (x1, x2) = pmcalibration_example()
    np.testing.assert_allclose(x1[:3], [-1.19142464, 0.54930055, -0.06240514], atol=6e-9)
    np.testing.assert_allclose(x2[:3], [-0.9245914, -1.0019698, 1.5438665], atol=6e-8)
    # "C (ROC)" and "Brier" of rms::val.prob
    assert roc_auc(y, p) == pytest.approx(0.862783323, abs=5e-10)
    assert brier_score_loss(y, p) == pytest.approx(0.057594793, abs=5e-10)


def test_intercept_and_slope_that_r_prints():
    """Slope of rms::val.prob, intercept and profile intervals of pmcalibration::logistic_cal."""
    y, p, _ = pmcalibration_example()
    summary = calibration_summary(y, p)
    assert summary["slope"] == pytest.approx(1.336388397, abs=5e-9)
    assert summary["intercept"] == pytest.approx(-0.044, abs=5e-4)
    np.testing.assert_allclose(ends(summary, "intercept")[1:], (-0.29, 0.19), atol=0.01)
    np.testing.assert_allclose(ends(summary, "slope")[1:], (1.10, 1.60), atol=0.03)


def test_distances_are_about_those_of_other_smoothers():
    """Those of a generalised additive model, which pmcalibration prints with intervals."""
    y, p, _ = pmcalibration_example()
    summary = calibration_summary(y, p)
    published = {"ici": (0.0092, 0.031), "e50": (0.003, 0.022), "e90": (0.0107, 0.063)}
    for measure, (low, high) in (published | {"emax": (0.0701, 0.305)}).items():
        assert low < summary[measure] < high
    assert summary["ici"] == pytest.approx(0.020, abs=0.002)
    assert summary["emax"] == pytest.approx(0.211, abs=0.03)


def test_intercept_and_slope_of_a_plain_fit():
    y, p = draw(1000, slope=0.7, shift=0.4)
    summary = calibration_summary(y, p)
    fit = plain_fit(logit(p)[:, None], y)
    assert summary["slope"] == pytest.approx(fit.coef_[0, 0], rel=1e-5)
    assert summary["observed_expected"] == pytest.approx(y.sum() / p.sum())
    # The shift makes the sum of the forecasts equal to the sum of the outcomes.
    assert expit(logit(p) + summary["intercept"]).sum() == pytest.approx(y.sum())
    q = fit.predict_proba(logit(p)[:, None])[:, 1]
    X = np.column_stack([np.ones_like(p), logit(p)])
    error = np.sqrt(np.linalg.inv((X.T * (q * (1 - q))) @ X)[1, 1])
    _, low, high = ends(summary, "slope")
    assert high - low == pytest.approx(2 * 1.959964 * error, rel=0.1)


def test_distances_of_an_independent_spline():
    """A natural cubic spline by truncated powers, fitted by scikit-learn."""
    y, p = draw(3000, slope=0.6, shift=0.3)
    z = logit(p)
    k = np.quantile(z, [0.05, 0.275, 0.5, 0.725, 0.95])

    def d(i):
        cubes = np.maximum(z - k[i], 0) ** 3 - np.maximum(z - k[-1], 0) ** 3
        return cubes / (k[-1] - k[i])

    X = np.column_stack([z, d(0) - d(3), d(1) - d(3), d(2) - d(3)])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    distance = np.abs(plain_fit(X, y).predict_proba(X)[:, 1] - p)
    summary = calibration_summary(y, p)
    assert summary["ici"] == pytest.approx(distance.mean(), abs=1e-4)
    assert summary["e50"] == pytest.approx(np.median(distance), abs=5e-4)
    assert summary["e90"] == pytest.approx(np.quantile(distance, 0.9), abs=5e-4)
    assert summary["emax"] == pytest.approx(distance.max(), abs=1e-3)


def test_intervals_of_calibrated_and_of_wrong_forecasts():
    right, wrong = (calibration_summary(*draw(2000, slope)) for slope in (1.0, 0.5))
    for measure, ideal in (("observed_expected", 1), ("intercept", 0), ("slope", 1)):
        value, low, high = ends(right, measure)
        assert low < ideal < high
        assert low < value < high
    for measure in ("ici", "e50", "e90", "emax"):
        assert ends(right, measure)[1] < 1e-9
        assert ends(wrong, measure)[1] > 0.02
    assert ends(wrong, "slope")[2] < 1


def test_wrong_forecasts_of_rare_events_have_distances_above_0():
    """Lower ends for events of 2 %: 0 if the forecasts are right, and not if they are too large."""
    right, wrong = (calibration_summary(*draw(10_000, shift=s, mean=-5.0)) for s in (0, -1))
    for measure in ("ici", "e50", "e90"):
        assert ends(right, measure)[1] == 0
        assert ends(wrong, measure)[1] > 0


def test_outcomes_that_vary_more_than_forecasts_say_widen_the_ratio():
    y, p = draw(4000, 0.3)
    summary = calibration_summary(y, p)
    q = expit(logit(p) + summary["intercept"])
    half = 1.959964 * np.sqrt(np.sum((y - q) ** 2)) / p.sum()
    value, low, high = ends(summary, "observed_expected")
    assert (high - low) / 2 == pytest.approx(half, rel=0.05)
    assert half > 1.2 * 1.959964 * np.sqrt(np.sum(q * (1 - q))) / p.sum()
    assert low < value < high


def test_several_classes_are_each_against_the_rest():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 500)
    y = np.array(["a", "b", "c"])[[rng.choice(3, p=q) for q in P]]
    summary = calibration_summary(y, P)
    for k, label in enumerate("abc"):
        single = calibration_summary(y == label, P[:, k])
        for measure in ("observed_expected", "slope", "e90"):
            assert summary[measure, label] == pytest.approx(single[measure])
    with pytest.raises(KeyError):
        summary["slope", "d"]


def test_integer_weights_are_repetitions():
    y, p = draw(400, slope=0.8)
    times = 1 + np.arange(len(y)) % 3
    weighted = calibration_summary(y, p, sample_weight=times)
    repeated = calibration_summary(np.repeat(y, times), np.repeat(p, times))
    for measure in ("observed_expected", "intercept", "slope"):
        assert weighted[measure] == pytest.approx(repeated[measure])
    _, low, high = ends(weighted, "intercept")
    assert high - low > np.diff(ends(repeated, "intercept")[1:])[0]  # copies are no evidence


def test_certain_forecasts_count_in_the_ratio_only():
    y, p = draw(500)
    expected = calibration_summary(y, p)
    summary = calibration_summary(np.r_[y, 1, 0, 1], np.r_[p, 1.0, 0.0, 0.0])
    assert summary.excluded == 3
    assert "exactly 0 or 1: 3" in repr(summary)
    assert "intervals of e50, e90 and emax are rough" in repr(summary)
    assert summary["slope"] == pytest.approx(expected["slope"])
    assert summary["observed_expected"] == pytest.approx((y.sum() + 2) / (p.sum() + 1))


@pytest.mark.parametrize(
    ("y", "p"),
    [
        ([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9]),  # separable
        ([0, 1, 1, 0], [0.3] * 4),  # constant
        ([0, 0, 0, 0], [0.1, 0.2, 0.3, 0.4]),  # no events
        ([0, 1, 1, 0], [0.0, 1.0, 1.0, 0.0]),  # certain
    ],
)
def test_degenerate_rows(y, p):
    summary = calibration_summary(y, p, labels=[0, 1])
    ratio, low, high = ends(summary, "observed_expected")
    assert low <= ratio <= high
    value, low, high = ends(summary, "slope")
    assert np.isnan(value) == np.isnan(low) == np.isnan(high)


def test_a_few_forecasts_close_to_each_other():
    """Knots that are close make columns of the spline nearly the same."""
    rng = np.random.default_rng(0)
    p = rng.choice(
        [0.1453, 0.1498, 0.1516, 0.39, 0.47, 0.68], 1500, p=[0.2, 0.3, 0.2, 0.1, 0.1, 0.1]
    )
    summary = calibration_summary(rng.random(1500) < p, p)
    for measure in ("ici", "e50", "e90", "emax"):
        value, low, high = ends(summary, measure)
        assert low == 0 <= value <= high <= 0.4


def test_evaluations_have_it():
    y, p = draw(800, slope=0.6)
    result = evaluate(y, p, after=expit(0.6 * logit(p)))
    assert result.calibration_summary("before")["slope"] == pytest.approx(
        calibration_summary(y, p)["slope"]
    )
    assert result.calibration_summary()["slope"] == pytest.approx(
        calibration_summary(y, p)["slope"] / 0.6
    )
    counted = evaluate.from_counts(Counts.from_arrays(p, y))
    assert counted.calibration_summary()["slope"] == pytest.approx(
        result.calibration_summary("before")["slope"]
    )
    with pytest.raises(InputError, match="missing or not probabilities"):
        counted.calibration_summary("after")


def test_the_smooth_curve_is_that_of_the_ici():
    rng = np.random.default_rng(0)
    p = rng.random(150)
    y = (rng.random(150) < p**2).astype(float)
    weights = rng.random(150) + 0.5
    curve, ici = smooth_curve(Sample(p, y.astype(np.uint8), weights))
    assert ici == pytest.approx(calibration_summary(y, p, sample_weight=weights)["ici"])
    at_rows = np.interp(p, curve["forecast"], curve["rate"])
    assert np.average(np.abs(at_rows - p), weights=weights) == pytest.approx(ici, abs=2e-3)


def test_intervals_of_the_smooth_curve_cover():
    """A truth that the spline contains: shifted and stretched log odds."""
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(150):
        z = rng.normal(scale=1.5, size=400)
        truth = expit(0.3 + 0.6 * z)
        outcomes = (rng.random(400) < truth).astype(np.uint8)
        curve, _ = smooth_curve(Sample(expit(z), outcomes), 0.9)
        expected = expit(0.3 + 0.6 * logit(curve["forecast"]))
        inside.append(np.mean((curve["low"] <= expected) & (expected <= curve["high"])))
    assert 0.86 < np.mean(inside) < 0.95


def test_the_smooth_curve_ends_where_few_rows_are():
    rng = np.random.default_rng(0)
    p = np.append(rng.uniform(0.3, 0.7, 500), np.geomspace(1e-6, 0.01, 8))
    curve, _ = smooth_curve(Sample(p, (rng.random(508) < p).astype(np.uint8)))
    assert curve["forecast"].min() > 0.2
    none, _ = smooth_curve(Sample(p, (p > 0.5).astype(np.uint8)))
    assert none.n_rows == 0


@pytest.mark.parametrize(("n_rows", "first"), [(200, 0), (201, 9)])
def test_the_smooth_curve_of_more_than_200_rows_starts_at_the_tenth(n_rows, first):
    p = np.linspace(0.3, 0.7, n_rows)
    curve, _ = smooth_curve(Sample(p, (np.arange(n_rows) % 2).astype(np.uint8)))
    assert curve["forecast"][[0, -1]] == pytest.approx([p[first], p[-1 - first]])


def test_columns_and_measures_by_name():
    y, p = draw(300, slope=0.7, shift=0.4)
    summary = calibration_summary(y, p)
    assert summary["measure"].tolist()[:3] == ["observed_expected", "intercept", "slope"]
    assert summary["value"][2] == summary["slope"] == summary["slope", 1]
    with pytest.raises(
        KeyError, match=r"'slop': measures are observed_expected, .*, columns class"
    ):
        summary["slop"]
