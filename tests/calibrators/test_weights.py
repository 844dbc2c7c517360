import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, rel_entr

from isoroc import AutoCalibrator, IRPCalibrator, SplineCalibrator
from isoroc._calibrators import mixing
from isoroc._calibrators.mixing import mixture_weights


def objective(w, likelihood, rows, prior):
    """What the weights maximise, written down again."""
    prior = prior / prior.sum()
    entropy = np.where(w > 0, w * np.log(np.maximum(w, 1e-300) / prior), 0.0).sum()
    return (rows * np.log(likelihood @ w)).sum() - mixing.STRENGTH * entropy


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds")  # SciPy before 1.16
@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(1, 300))
def test_no_other_weights_are_better(seed, M, n):
    rng = np.random.default_rng(seed)
    likelihood = rng.uniform(size=(n, M)) ** rng.uniform(0, 5, size=M)
    likelihood[rng.random((n, M)) < 0.02] = 0.0
    likelihood[:, 0] = likelihood[:, 0].clip(min=1e-3)  # or all members may say impossible at once
    rows = rng.uniform(0.5, 2, size=n)
    prior = rng.uniform(0.1, 8, size=M)
    found = mixture_weights(likelihood, rows, prior, dropped=0.0, full=1e-12)
    assert found.sum() == pytest.approx(1)
    value = objective(found, likelihood, rows, prior)
    best = minimize(
        lambda w: -objective(w, likelihood, rows, prior),
        np.full(M, 1 / M),
        bounds=[(1e-9, 1)] * M,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
    )
    assert value >= -best.fun - 1e-3
    for _ in range(20):
        other = rng.dirichlet(np.ones(M))
        mixed = 0.9 * found + 0.1 * other
        assert value >= objective(mixed, likelihood, rows, prior) - 1e-6


def test_members_without_merit_are_dropped():
    good = np.random.default_rng(0).uniform(0.5, 1, size=500)
    likelihood = np.column_stack([good, 0.1 * good])
    assert mixture_weights(likelihood, np.ones(500), np.array([1.0, 8.0])).tolist() == [1.0, 0.0]


def test_a_member_may_need_more_weight_than_others_to_be_kept():
    likelihood = np.random.default_rng(0).uniform(size=(100, 1)) * np.ones((1, 3))
    prior = np.array([0.95, 0.025, 0.025])  # members that do equally well keep these weights
    dropped = np.array([0.01, 0.01, 0.028])
    found = mixture_weights(likelihood, np.ones(100), prior, dropped=dropped)
    np.testing.assert_allclose(found[:2] / found[0], [1.0, 0.025 * 0.75 / 0.95])
    assert found[2] == 0.0


def test_equal_members_share_as_the_prior_does():
    likelihood = np.random.default_rng(0).uniform(size=(100, 1)) * np.ones((1, 3))
    prior = np.array([2.0, 1.0, 1.0])
    np.testing.assert_allclose(mixture_weights(likelihood, np.ones(100), prior), prior / 4)
    many = mixture_weights(likelihood @ np.ones((3, 50)), np.ones(100), np.ones(50))
    np.testing.assert_allclose(many, 1 / 50)


def test_forecasts_stay_unchanged_until_others_have_a_fifth_of_the_weight_and_no_weight_jumps():
    likelihood = np.column_stack([np.full(400, 0.5), np.tile([0.9, 0.3], 200)])
    kept = []
    for share in np.geomspace(1e-4, 1e4, 400):
        prior = np.array([1.0, share])
        plain = mixture_weights(likelihood, np.ones(400), prior)
        weights = mixture_weights(likelihood, np.ones(400), prior, unchanged=0)
        assert weights.sum() == pytest.approx(1)
        assert weights[1] <= plain[1] + 1e-12
        if plain[1] <= 0.2:
            assert weights.tolist() == [1.0, 0.0]
        if plain[1] >= 0.4:
            np.testing.assert_allclose(weights, plain)
        kept.append((plain[1], weights[1]))
    before, after = np.diff(kept, axis=0).T
    assert (after >= -1e-12).all()
    assert (after <= 3.1 * before + 1e-9).all()  # 0.2 to 0.4 becomes 0 to 0.4


def test_the_prior_fades_with_the_rows():
    likelihood = np.tile([[0.5, 0.9], [0.5, 0.4]], (500, 1))  # the second is better on average
    prior = np.array([9.0, 1.0])
    of_first = [
        mixture_weights(likelihood[:n], np.ones(n), prior, dropped=0.0, full=1e-9)[0]
        for n in (2, 20, 200, 1000)
    ]
    assert of_first[0] > 0.8
    assert all(np.diff(of_first) < 0)
    assert of_first[-1] < 0.1


def test_a_row_of_weight_two_is_the_row_twice():
    likelihood = np.random.default_rng(0).uniform(size=(30, 3))
    twice = mixture_weights(np.repeat(likelihood, 2, axis=0), np.ones(60), np.ones(3))
    np.testing.assert_allclose(
        mixture_weights(likelihood, np.full(30, 2.0), np.ones(3)), twice, atol=1e-6
    )


def harm(calibrator, n_rows, n_runs, **options):
    """Mean relative entropy of the truth after a fit to calibrated rows of unequal weight."""
    total = 0.0
    new = expit(np.random.default_rng(1).normal(scale=1.5, size=2000))
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        p = expit(rng.normal(scale=1.5, size=n_rows))
        weights = rng.lognormal(sigma=1.5, size=n_rows)
        weights = {"sample_weight": weights / weights.mean()} | options
        y = (rng.random(n_rows) < p).astype(int)
        q = calibrator.fit(p, y, labels=[0, 1], **weights).predict_proba(new)[:, 1]
        total += rel_entr([new, 1 - new], [q, 1 - q]).sum(axis=0).mean()
    return total / n_runs


@pytest.mark.parametrize("calibrator", [SplineCalibrator(), IRPCalibrator()])
def test_weights_do_not_defeat_shrinkage(calibrator):
    assert harm(calibrator, 200, 20) < 0.6 * harm(calibrator, 200, 20, weighting="frequency")


@pytest.mark.slow
def test_mixtures_of_rows_of_unequal_weight_stay_close_to_calibrated_forecasts():
    auto = AutoCalibrator(random_state=0)
    assert harm(auto, 100, 20) < 0.2 * harm(auto, 100, 20, weighting="frequency")
