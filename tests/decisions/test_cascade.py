"""Cascades: who answers, what it costs, and what is promised."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from isoroc import InputError
from isoroc.decisions import acceptance_rule, cascade_rule


def draw(n=4000, seed=0):
    """Labels, and calibrated forecasts of three models that know more and more."""
    rng = np.random.default_rng(seed)
    parts = rng.normal(size=(n, 3)) * [3, 2, 2]
    y = rng.logistic(size=n) < parts.sum(axis=1)
    scales = 1 / np.sqrt(1 + np.array([8, 4, 0]) / 3)
    return y, [1 / (1 + np.exp(-parts[:, : s + 1].sum(axis=1) * scales[s])) for s in range(3)]


def by_hand(y, P, thresholds, costs):
    """Stage, error and cost of each row, row by row."""
    lines = []
    for i in range(len(y)):
        spent = 0.0
        for s, p in enumerate(P):
            spent += costs[s]
            if max(p[i], 1 - p[i]) >= thresholds[s]:
                lines.append((s, (p[i] > 0.5) != y[i], spent))
                break
        else:
            lines.append((len(P), False, spent + (costs[-1] if len(costs) > len(P) else 0)))
    return (np.array(column) for column in zip(*lines, strict=True))


@pytest.mark.parametrize(
    ("n_models", "last"), [(2, "person"), (2, "accept"), (3, "person"), (3, "accept")]
)
def test_figures_are_those_of_a_loop_over_rows(n_models, last):
    y, P = draw()
    models = P[-n_models:]
    costs = [1.0, 10.0, 40.0][-n_models:] + ([200.0] if last == "person" else [])
    rule = cascade_rule(y, models, costs=costs, max_error=0.16, last=last)
    assert rule.certified
    stage, wrong, spent = by_hand(y, models, rule.thresholds, costs)
    answered = stage < n_models
    assert rule.shares == pytest.approx(np.bincount(stage, minlength=n_models + 1) / len(y))
    assert rule.cost.value == pytest.approx(spent.mean())
    assert rule.error.value == pytest.approx(wrong[answered].mean())
    n = int(answered.sum())
    assert binomtest(int(wrong[answered].sum()), n, 0.16, alternative="less").pvalue <= 0.05
    labels, stages = rule.answer(*models)
    assert np.array_equal(stages, stage)
    assert np.array_equal((labels != y)[answered], wrong[answered])
    assert last == "person" or answered.all()


def test_the_path_falls_and_does_not_depend_on_labels():
    y, P = draw()
    rule = cascade_rule(y, P, costs=[1, 5, 20, 100], max_error=0.1)
    path = np.column_stack([rule.candidates[f"threshold_{s}"] for s in (1, 2, 3)])
    with np.errstate(invalid="ignore"):
        assert not (np.diff(path, axis=0) > 0).any()
    assert (np.diff(rule.candidates["cost"]) <= 1e-12).all()
    other = cascade_rule(np.roll(y, 5), P, costs=[1, 5, 20, 100], max_error=0.1)
    assert np.array_equal(other.candidates["threshold_2"], rule.candidates["threshold_2"])
    assert not other.certified
    assert "of rows that were tested" in str(other)
    assert rule.frame().shape[0] == len(path)


def test_a_cascade_is_cheaper_than_its_last_model_alone():
    y, P = draw()
    rule = cascade_rule(y, P[1:], costs=[1, 20, 100], max_error=0.1)
    alone = acceptance_rule(y, P[2], max_error=0.1, action="top")
    assert rule.cost.value < 20 + 100 * (1 - alone.coverage.value)
    assert rule.cost.low < rule.cost.value < rule.cost.high
    assert "would answer; a row costs" in str(rule)


def test_weights_and_clusters():
    y, P = draw(6000)
    options: Any = {"costs": [1, 10, 100], "max_error": 0.12}
    plain = cascade_rule(y, P[1:], **options)
    clustered = cascade_rule(y, P[1:], clusters=np.arange(6000) // 3, **options)
    assert clustered.certified
    assert clustered.cost.value >= plain.cost.value
    weights = np.ones(6000)
    weights[:1000] = 0
    some = cascade_rule(y, P[1:], sample_weight=weights, **options)
    kept = cascade_rule(y[1000:], [p[1000:] for p in P[1:]], **options)
    assert some.thresholds == pytest.approx(kept.thresholds)


def test_bad_arguments():
    y, P = draw(200)
    with pytest.raises(
        InputError, match=r"costs: has shape .* expected the costs of 3 models and a person"
    ):
        cascade_rule(y, P, costs=[1, 2, 3], max_error=0.1)
    with pytest.raises(InputError, match=r"costs: is .* finite and >= 0"):
        cascade_rule(y, P, costs=[1, 2, -3], max_error=0.1, last="accept")
    with pytest.raises(InputError, match="P: is not a list"):
        cascade_rule(y, P[:1], costs=[1, 2], max_error=0.1)
    with pytest.raises(InputError, match="max_error: is 0"):
        cascade_rule(y, P, costs=[1, 2, 3, 4], max_error=0)
    few = cascade_rule(y[:20], [p[:20] for p in P], costs=[1, 2, 3, 4], max_error=0.05)
    assert "20 labelled rows are too few" in str(few)
    with pytest.raises(InputError, match="the cascade has 3 stages"):
        few.answer(P[0])
