from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import roc_auc_score

import isoroc
from isoroc import (
    AutoCalibrator,
    IdentityCalibrator,
    IsotonicCalibrator,
    MonotoneCalibrator,
    TemperatureCalibrator,
)
from isoroc._calibrators.auto import default_members
from isoroc._calibrators.mixing import agreed
from isoroc._maps import MixtureMap, StepMap
from strategies import arbitrary, binary_data, labelled_forecasts

few = settings(max_examples=settings().max_examples // 2)


def fitted_mixture(P, y, K, weights, **options):
    """Monotone members with weights that none of them would get by merit."""
    cal = AutoCalibrator(monotone=True, cv=2, random_state=0)
    cal.fit(P, y, labels=range(K), **options)
    cal.members_ = [
        m.fit(P, y, labels=range(K), **options) for m in default_members(K, monotone=True)
    ]
    members = [member.map_ for member in cal.members_]
    cal.map_ = replace(cal.map_, members=members, weights=np.asarray(weights))
    return cal


@arbitrary
@few
@given(data=st.data(), K=st.integers(2, 6), seed=st.integers(0, 100))
def test_every_mixture_of_monotone_members_is_monotone(data, K, seed):
    P, y, _ = data.draw(labelled_forecasts(n_classes=K, max_rows=30))
    rng = np.random.default_rng(seed)
    cal = fitted_mixture(P, y, K, rng.dirichlet(np.ones(len(default_members(K, monotone=True)))))
    new = np.vstack([P, rng.dirichlet(np.full(K, 0.3), 20)])
    assert cal.verify(new)
    if K > 2:
        z = next(m for m in cal.members_ if isinstance(m, MonotoneCalibrator)).coordinates(new)
        inner = (z - z.mean(axis=1, keepdims=True)) @ cal.predict_proba(new).T
        rows, columns = linear_sum_assignment(inner, maximize=True)
        assert inner[rows, columns].sum() <= np.trace(inner) + 1e-9


@arbitrary
@few
@given(data=binary_data(max_rows=25), seed=st.integers(0, 100))
def test_mixtures_for_scores_of_two_classes(data, seed):
    scores, y, _ = data
    weights = np.random.default_rng(seed).dirichlet(np.ones(4))
    cal = fitted_mixture(scores, y, 2, weights, unit="logit")
    assert cal.verify(scores)
    if np.ptp(scores) > 1e-9:  # closer ones become ties
        falling = StepMap(
            kind=cal.map_.kind, cuts=[np.array([scores.min()])], values=[np.array([0.6, 0.4])]
        )
        cal.map_ = replace(cal.map_, members=[falling], weights=np.ones(1))
        assert not cal.verify(scores)


def test_the_automatic_mixture_keeps_its_guarantee_through_a_file(tmp_path):
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(3), size=600)
    y = np.array([rng.choice(3, p=p) for p in truth])
    P = truth**3 / (truth**3).sum(axis=1, keepdims=True)
    cal = AutoCalibrator(monotone=True, random_state=0).fit(P, y)
    assert {type(m) for m in cal.members_} <= {IdentityCalibrator, MonotoneCalibrator}
    assert "Cyclically monotone" in str(cal.certificate_)
    assert cal.certificate_
    assert cal.certificate_.table()["guarantee"][0] == str(cal.certificate_)
    assert cal.verify(P)
    cal.save(tmp_path / "model.json")
    loaded = isoroc.load(tmp_path / "model.json")
    assert str(loaded.certificate_) == str(cal.certificate_)
    assert loaded.verify(P)
    by_logits = AutoCalibrator(monotone=True, random_state=0).fit(np.log(P), y, unit="logit")
    assert by_logits.verify(np.log(P))


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("scores", ["probability", "logit"])
def test_two_classes_keep_the_roc_curve(columns, scores):
    rng = np.random.default_rng(0)
    odds = rng.normal(scale=4, size=1000)
    y = rng.random(1000) < 1 / (1 + np.exp(-odds / 2))
    p = 1 / (1 + np.exp(-odds))
    P = {("probability", 1): p, ("logit", 1): odds}.get((scores, columns))
    if P is None:
        P = np.column_stack([1 - p, p]) if scores == "probability" else np.outer(odds, [-0.5, 0.5])
    cal = AutoCalibrator(monotone=True, random_state=0).fit(P, y, unit=scores)
    assert cal.verify(P)
    assert cal.certificate_
    if cal.certificate_.strict:
        assert roc_auc_score(y, cal.predict_proba(P)[:, 1]) == roc_auc_score(y, odds)


def test_certificates_say_what_holds():
    P = np.random.default_rng(0).dirichlet(np.ones(2), 50)
    y = P[:, 1] > 0.4
    steps = IsotonicCalibrator().fit(P, y).map_

    def certificate(other):
        members = [steps, other.fit(P, y).map_]
        mixture = MixtureMap(
            kind=steps.kind, members=members, weights=np.ones(2) / 2, monotone=True
        )
        return str(mixture.certificate(2))

    assert "Non-decreasing" in certificate(TemperatureCalibrator(floor=0.6))
    for strict in (IdentityCalibrator(), TemperatureCalibrator(), MonotoneCalibrator()):
        assert "Strictly" in certificate(strict)


def test_without_the_option_there_is_no_certificate():
    P = np.random.default_rng(0).dirichlet(np.ones(3), 60)
    y = P.argmax(axis=1)
    cal = AutoCalibrator(members=[IdentityCalibrator()], cv=2).fit(P, y)
    assert cal.certificate_ is None
    with pytest.raises(ValueError, match="no guarantee to verify"):
        cal.verify(P)


@pytest.mark.parametrize(
    "params", [{"monotone": "yes"}, {"monotone": True, "members": [IdentityCalibrator()]}], ids=str
)
def test_bad_parameters(params):
    with pytest.raises(ValueError, match="monotone"):
        AutoCalibrator(**params).fit([0.1, 0.9, 0.4, 0.6], [0, 1, 0, 1])


def test_thresholds_carry_over_exactly():
    rng = np.random.default_rng(0)
    p = rng.random(600)
    y = (rng.random(600) < p**2).astype(int)
    cal = fitted_mixture(p, y, 2, np.array([0.1, 0.2, 0.3, 0.4]))  # with isotonic steps
    assert cal.map_.is_increasing()
    for threshold in (0.1, 0.5, 0.83):
        carried = cal.carry_over(threshold)
        assert carried.exact
        after = cal.predict_proba(p)[:, 1] > carried.thresholds
        np.testing.assert_array_equal(after, p > threshold)


def test_the_majority_of_verdicts_is_counted():
    P = np.random.default_rng(0).random(200)
    for_it = AutoCalibrator().fit(P, P > 0.5).verdict_
    assert for_it.should_calibrate
    against = replace(for_it, should_calibrate=False)
    verdict = agreed([for_it, against, for_it, for_it])
    assert verdict.should_calibrate
    assert (verdict.n_folds, verdict.n_agreeing) == (4, 3)
    verdict = agreed([against, for_it, against])
    assert not verdict.should_calibrate
    assert (verdict.n_folds, verdict.n_agreeing) == (3, 2)
