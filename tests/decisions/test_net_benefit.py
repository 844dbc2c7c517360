import numpy as np
import pytest

from isoroc import Counts, InputError, evaluate
from isoroc.decisions import expected_cost, net_benefit

#: Of the 750 patients of `df_binary` of the R package dcurves, 24 with a family history of cancer
#: have cancer and 91 do not. Of the others 81 do and 554 do not (Vickers et al., www.mskcc.org).
FAMILY = [24, 91, 81, 554]


def family_history():
    y = np.repeat([1, 0, 1, 0], FAMILY)
    return y, np.repeat([1.0, 1.0, 0.0, 0.0], FAMILY)


def draw(n=600, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return rng.random(n) < p**2, p, rng


def test_family_history_of_dcurves():
    """The table of net benefits that is among the tests of dcurves."""
    thresholds = [0.01, 0.05, 0.1, 0.13, 0.14, 0.2, 0.35, 0.5, 0.9]
    y, p = family_history()
    curve = net_benefit(y, p, thresholds)
    forecasts, none, everyone, oracle = curve.values
    published = [0.030774410774410774, 0.025614035087719297, 0.018518518518518517]
    published += [0.013869731800766283, 0.012248062015503876, 0.001666666666666667]
    published += [-0.03333333333333334, -0.08933333333333333, -1.0600000000000003]
    np.testing.assert_allclose(forecasts, published, rtol=1e-12, atol=1e-14)
    published = [0.13131313131313133, 0.09473684210526317, 0.04444444444444447]
    published += [0.011494252873563232, 0.0, -0.07499999999999998]
    published += [-0.3230769230769232, -0.72, -7.600000000000002]
    np.testing.assert_allclose(everyone, published, rtol=1e-12, atol=1e-14)
    assert curve.strategies == ("forecasts", "none", "all", "oracle")
    assert not none.any()
    np.testing.assert_allclose(oracle, 105 / 750)


def test_model_of_age_of_dcurves():
    """Patients of `df_binary` by the risk at their age. Patients at a threshold are treated."""
    thresholds = np.arange(1, 8) / 20
    treated = {1: [98, 84, 69, 59, 43, 35, 29], 0: [454, 289, 175, 110, 74, 46, 30]}
    y = []
    p = []
    for label, n in treated.items():
        below = {1: 105, 0: 645}[label] - n[0]
        counts = [below, *-np.diff([*n, 0])]
        y += [label] * sum(counts)
        p += np.repeat([0.0, *thresholds], counts).tolist()
    curve = net_benefit(y, p, thresholds)
    published = [0.09880701754385966, 0.0691851851851852, 0.05082352941176472]
    published += [0.04200000000000001, 0.024444444444444456, 0.02038095238095238]
    published += [0.017128205128205135]
    np.testing.assert_allclose(curve.values[0], published, rtol=1e-12)
    scaled = curve.benefit("forecasts", scaled=True)["value"]
    np.testing.assert_allclose(scaled, np.array(published) / 0.14, rtol=1e-12)


def test_intervals_are_those_of_means_over_rows():
    y, p, _ = draw(5000)
    curve = net_benefit(y, p, [0.3], after=p**2, confidence=0.9)
    odds = 0.3 / 0.7
    rows = {
        name: np.where(q >= 0.3, np.where(y, 1, -odds), 0)
        for name, q in (("before", p), ("after", p**2), ("all", np.ones_like(p)))
    }
    for minus in ("before", "all"):
        found = curve.benefit("after", minus=minus)
        change = rows["after"] - rows[minus]
        assert found["value"][0] == pytest.approx(change.mean())
        half = 1.6448536 * change.std(ddof=1) / np.sqrt(len(y))
        assert found["high"][0] - found["low"][0] == pytest.approx(2 * half, rel=0.02)
    table = curve.table
    assert table["value"][table["strategy"] == "change"][0] == pytest.approx(
        (rows["after"] - rows["before"]).mean()
    )


def test_scaled_intervals_agree_with_the_bootstrap():
    y, p, rng = draw(2000)
    found = net_benefit(y, p, [0.4]).benefit("forecasts", scaled=True)
    values = np.where(p >= 0.4, np.where(y, 1, -0.4 / 0.6), 0)
    drawn = rng.integers(len(y), size=(2000, len(y)))
    error = np.std(values[drawn].mean(axis=1) / y[drawn].mean(axis=1))
    assert (found["high"] - found["low"])[0] / 2 == pytest.approx(1.96 * error, rel=0.06)


def test_weights_and_counts_are_the_same_rows():
    y, p, rng = draw()
    times = rng.integers(1, 4, len(y))
    thresholds = [0.1, 0.25, 0.6]
    expected = net_benefit(np.repeat(y, times), np.repeat(p, times), thresholds)
    weighted = net_benefit(y, p, thresholds, sample_weight=times)
    np.testing.assert_allclose(weighted.values, expected.values)
    counts = Counts.from_arrays(np.repeat(p, times), np.repeat(y, times))
    counted = evaluate.from_counts(counts).net_benefit(thresholds)
    np.testing.assert_allclose(counted.values, expected.values)
    np.testing.assert_allclose(counted.covariance, expected.covariance)


def test_net_benefit_is_what_decisions_save_against_never_acting():
    y, p, _ = draw()
    curve = net_benefit(y, p, [0.2, 0.5])
    for i, t in enumerate((0.2, 0.5)):
        report = expected_cost(y, p, [[0, t / (1 - t)], [1, 0]])
        assert curve.values[0, i] == pytest.approx(np.mean(y) - report["forecasts"])
        assert curve.values[-1, i] == pytest.approx(np.mean(y) - report["oracle"])


def test_evaluations_have_it():
    y, p, _ = draw()
    result = evaluate(y, p, after=p**2)
    expected = net_benefit(y, p, [0.2, 0.3], after=p**2)
    np.testing.assert_allclose(result.net_benefit([0.2, 0.3]).values, expected.values)


def test_nobody_treated_still_has_an_interval():
    y, p, _ = draw(100)
    found = net_benefit(y, p / 10, [0.5]).benefit("forecasts")
    assert found["value"][0] == 0
    assert found["low"][0] < 0 < found["high"][0]


def test_bad_input():
    y, p, _ = draw(50)
    with pytest.raises(InputError, match="thresholds: is"):
        net_benefit(y, p, [0.5, 1.0])
    with pytest.raises(InputError, match="scores that are not probabilities"):
        net_benefit(y, 9 * p - 4, [0.5])
    with pytest.raises(InputError, match=r"y_prob: 3 classes, .*expected_cost"):
        net_benefit([0, 1, 2], np.full((3, 3), 1 / 3))
    with pytest.raises(InputError, match=r"strategy: .*got 'after'"):
        net_benefit(y, p, [0.5]).benefit("after")
