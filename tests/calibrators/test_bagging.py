import numpy as np
import pytest
from hypothesis import given
from joblib import parallel_config
from sklearn.metrics import log_loss

from isoroc import BaggedIRPCalibrator, IRPCalibrator, IsotonicCalibrator
from strategies import arbitrary, binary_data


def noisy(n, K, seed=0):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(K, 0.5), size=n)
    y = np.array([rng.choice(K, p=0.7 * p + 0.3 / K) for p in P])
    return P, y


def test_the_mean_of_trees_on_resampled_rows():
    P, y = noisy(200, 3)
    bag = BaggedIRPCalibrator(n_trees=4, random_state=3).fit(P, y)
    seeds = np.random.RandomState(3).randint(2**31 - 1, size=4)
    Q = []
    for tree, seed in zip(bag.trees_, seeds, strict=True):
        times = np.bincount(np.random.default_rng(seed).integers(200, size=200), minlength=200)
        alone = IRPCalibrator(random_state=seed)
        alone.fit(P, y, sample_weight=times, weighting="frequency")
        np.testing.assert_array_equal(tree.thresholds, alone.tree_.thresholds)
        Q.append(alone.predict_proba(P))
    np.testing.assert_allclose(bag.predict_proba(P), np.mean(Q, axis=0))
    np.testing.assert_allclose(bag.predict_std(P), np.std(Q, axis=0), atol=1e-12)


@arbitrary
@given(binary_data())
def test_two_classes_in_one_step_function(data):
    scores, y, weights = data
    bag = BaggedIRPCalibrator(n_trees=3, random_state=0)
    bag.fit(scores, y, sample_weight=weights, unit="logit")
    grid = np.concatenate([scores, scores * 0.99, [-1e308, 0, 1e308]])
    one_by_one = np.mean([tree.apply(grid) for tree in bag.map_.members], axis=0)
    np.testing.assert_allclose(bag.predict_proba(grid), one_by_one, rtol=1e-12)
    assert (np.diff(bag.predict_proba(np.sort(grid))[:, 1]) >= -1e-12).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_smoother_and_better_than_one_tree(n_classes):
    P, y = noisy(600, n_classes)
    new, outcomes = noisy(3000, n_classes, seed=1)
    bag = BaggedIRPCalibrator(random_state=0).fit(P, y)
    one = IRPCalibrator(random_state=0).fit(P, y)
    assert log_loss(outcomes, bag.predict_proba(new)) < log_loss(outcomes, one.predict_proba(new))
    if n_classes == 2:  # of more, the values of one tree vary
        assert len(np.unique(bag.predict_proba(new)[:, 0])) > 3 * one.n_bins_


def test_unseen_rows_tell_what_forecasts_of_new_rows_are_worth():
    P, y = noisy(600, 3)
    new, outcomes = noisy(3000, 3, seed=1)
    bag = BaggedIRPCalibrator(IRPCalibrator(values="constant"), random_state=0).fit(P, y)
    np.testing.assert_allclose(bag.oob_forecasts_.sum(axis=1), 1)
    seen = log_loss(y, bag.predict_proba(P))
    unseen = log_loss(y, bag.oob_forecasts_)
    honest = log_loss(outcomes, bag.predict_proba(new))
    assert seen < honest
    assert abs(unseen - honest) < 0.05
    assert unseen > seen + 0.02


def test_rows_that_every_tree_has_seen():
    P, y = noisy(40, 3)
    bag = BaggedIRPCalibrator(n_trees=1, random_state=0).fit(P, y)
    np.testing.assert_allclose(bag.oob_forecasts_, bag.predict_proba(P))


@pytest.mark.parametrize(
    ("n_classes", "top", "turns"),
    [
        (4, "auto", [None, None, None]),
        (5, "auto", [1, None, 1]),
        (13, "auto", [1, 2, 3]),
        (5, 2, [2, 2, 2]),
    ],
)
@pytest.mark.parametrize("values", ["tilted", "constant"])
def test_trees_take_turns(n_classes, top, turns, values):
    P, y = noisy(300, n_classes)
    irp = IRPCalibrator(top=top, values=values)
    bag = BaggedIRPCalibrator(irp, n_trees=3, random_state=0).fit(P, y)
    if values == "tilted" and n_classes == 5 and top == "auto":
        turns = [None, None, None]
    assert [None if r is None else r.top for r in bag.reductions_] == turns
    sizes = [n_classes if top is None else top + 1 for top in turns]
    assert [tree.n_classes for tree in bag.trees_] == sizes
    Q = bag.predict_proba(P)
    np.testing.assert_allclose(Q.sum(axis=1), 1)
    np.testing.assert_allclose(Q, np.mean([tree.apply(P) for tree in bag.map_.members], axis=0))


def test_the_spread_shrinks_as_rows_add_up():
    new, _ = noisy(200, 3, seed=1)
    spread = []
    for n in (200, 5000):
        bag = BaggedIRPCalibrator(IRPCalibrator(values="constant"), random_state=0)
        bag.fit(*noisy(n, 3))
        assert bag.predict_std(new).shape == (200, 3)
        spread.append(bag.predict_std(new).mean())
    assert spread[0] > 1.5 * spread[1]


def test_fewer_draws_than_rows():
    P, y = noisy(500, 3)
    bag = BaggedIRPCalibrator(max_samples=50, n_trees=3, random_state=0).fit(P, y)
    assert [tree.class_weights[0].sum() for tree in bag.trees_] == [50, 50, 50]


def test_trees_at_a_time_are_the_same_trees():
    P, y = noisy(200, 3)
    with parallel_config(backend="threading"):
        two = BaggedIRPCalibrator(n_trees=3, random_state=0, n_jobs=2).fit(P, y)
    one = BaggedIRPCalibrator(n_trees=3, random_state=0).fit(P, y)
    np.testing.assert_array_equal(two.predict_proba(P), one.predict_proba(P))
    other = BaggedIRPCalibrator(n_trees=3, random_state=1).fit(P, y)
    assert (other.predict_proba(P) != one.predict_proba(P)).any()


def test_weights_count():
    P, y = noisy(300, 3)
    heavy = np.where(y == 0, 5.0, 1.0)
    plain, weighted = (
        BaggedIRPCalibrator(random_state=0).fit(P, y, sample_weight=w).predict_proba(P)
        for w in (None, heavy)
    )
    assert weighted[:, 0].mean() > plain[:, 0].mean() + 0.1


@pytest.mark.parametrize(
    ("calibrator", "error", "message"),
    [
        (BaggedIRPCalibrator(n_trees=0), ValueError, "n_trees: is .*; expected .* >= 1"),
        (BaggedIRPCalibrator(max_samples=1), ValueError, "max_samples: is .*; expected .* >= 2"),
        (BaggedIRPCalibrator(IsotonicCalibrator()), ValueError, "calibrator: is .*expected an IRP"),
        (BaggedIRPCalibrator(IRPCalibrator(pseudocount=-1)), ValueError, "pseudocount"),
        (BaggedIRPCalibrator(IRPCalibrator(top=9)), ValueError, "top"),
    ],
)
def test_bad_parameters(calibrator, error, message):
    with pytest.raises(error, match=message):
        calibrator.fit(*noisy(50, 4))
