from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_rel

from isoroc.metrics import log_loss
from isoroc.paper._cache import Cache
from isoroc.paper._repetition import COMPARISONS, compare, measure_split, paired, repeat, summary
from isoroc.paper._runs import PROCEDURES, normalise

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


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("K", [2, 4])
def test_the_measures_are_those_of_the_last_stage(forecasts, K):
    of = forecasts(K)
    found = measure_split(of)
    assert ("before/cal_volume" in found) == (K < 4)
    assert found["before/cross_entropy"] == log_loss(of.y_test, of.P_test, eps=1e-6)
    for name, procedure in PROCEDURES.items():
        run = procedure(of)
        losses = [log_loss(of.y_test, normalise(Q), eps=1e-6) for Q in run.test]
        assert found[f"{name}/bins"] == run.n_bins[-1]
        assert found[f"{name}/cross_entropy"] == pytest.approx(losses[-1])
        assert found[f"{name}/regret"] == pytest.approx(losses[-1] - min(losses))
        assert found[f"{name}/best_bins"] == run.n_bins[np.argmin(losses)]


@pytest.mark.usefixtures("small")
def test_repeat(rows, tmp_path):
    reports: list[str] = []
    options: dict[str, Any] = {"classifiers": ("naive Bayes",), "report": reports.append}
    first = Cache(tmp_path)
    found = repeat(rows, (2, 3), (5, 6, 7), cache=first, **options)
    assert list(found) == [(2, "naive Bayes"), (3, "naive Bayes")]
    assert reports[-1] == "K = 3, naive Bayes: split 3 of 3"
    for (K, classifier), measures in found.items():
        again = measure_split(rows.forecasts(K, 6, classifier))
        assert {name: values[1] for name, values in measures.items()} == pytest.approx(again)
        for title, a, b in COMPARISONS:
            assert compare(measures)[title].mean == pytest.approx(
                (measures[a] - measures[b]).mean()
            )
    second = Cache(tmp_path)
    reused = repeat(rows, (2, 3), (5, 6, 7), cache=second, **options)
    assert (second.n_computed, second.n_reused) == (0, 2)
    assert summary(reused) == summary(found)
    repeat(rows, (2,), (5, 6, 8), cache=second, classifiers=("naive Bayes",))
    assert second.n_computed == 1
