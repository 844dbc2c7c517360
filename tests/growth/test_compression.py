"""Step functions with many steps as step functions with fewer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoroc import IsotonicCalibrator, RecursiveBinningCalibrator, VennAbersCalibrator, load
from isoroc._calibrators import one_vs_rest
from isoroc._growth import best_first, compress_steps
from truths import distorted

FUNCTIONS = st.integers(1, 2).flatmap(
    lambda m: st.lists(st.tuples(*[st.floats(0, 1)] * m), min_size=2, max_size=200)
)


def labelled(n, n_classes):
    P, _, y = distorted(n, n_classes, 1.5, seed=n_classes)
    return P, y


def angle(p):
    return np.arcsin(np.sqrt(p))


@settings(max_examples=200)
@given(FUNCTIONS, st.integers(2, 40))
def test_values_change_by_less_than_the_resolution(rows, most):
    values = np.sort(np.array(rows), axis=0).T
    cuts = np.arange(1.0, values.shape[1])
    new_cuts, *new = compress_steps(cuts, *values, most=most)
    assert len(new[0]) == len(new_cuts) + 1 <= most
    assert np.isin(new_cuts, cuts).all()
    assert (np.diff(new_cuts) > 0).all()
    at = np.searchsorted(new_cuts, np.arange(0.5, values.shape[1]))  # a score on every step
    bound = np.pi / 4 / (most // len(values))
    for before, after in zip(values, new, strict=True):
        assert (np.diff(after) >= 0).all()
        assert ((after >= 0) & (after <= 1)).all()
        assert np.abs(angle(after[at]) - angle(before)).max() <= bound + 1e-7  # rounding near 1
    if values.shape[1] <= most:
        np.testing.assert_array_equal(new_cuts, cuts)
        np.testing.assert_array_equal(new, values)


def test_as_many_steps_as_allowed_are_kept():
    values = np.random.default_rng(0).beta(0.3, 30, 10_000)
    values.sort()
    _, new = compress_steps(np.arange(9999.0), values, most=500)
    assert len(new) > 450  # although all values lie in a small part of the unit interval


@pytest.mark.parametrize("kind", [VennAbersCalibrator, IsotonicCalibrator])
@pytest.mark.parametrize("K", [2, 3, 5])
def test_compressed_maps_predict_almost_the_same(kind, K, monkeypatch):
    P, y = labelled(3000, K)
    exact = kind().fit(P, y)
    monkeypatch.setattr(one_vs_rest, "MOST_STEPS_OF_ALL", most := 12 * (K if K > 2 else 1))
    few = kind().fit(P, y)
    m = len(exact.fitted_state) - 1
    n_maps = len(few.cuts_)
    assert sum(len(cuts) + 1 for cuts in few.cuts_) <= most
    bound = np.pi / 4 / (most // n_maps // m)
    names = [name for name in exact.fitted_state if name != "cuts_"]
    grid = np.sort(P.ravel())
    for name in names:
        for k in range(n_maps):
            before, after = (
                getattr(cal, name)[k][np.searchsorted(cal.cuts_[k], grid)] for cal in (exact, few)
            )
            assert 0 < np.abs(angle(after) - angle(before)).max() <= bound + 1e-7
    if kind is VennAbersCalibrator:
        low, high = few.predict_interval(P)
        assert (low <= high).all()


def test_large_fits_can_be_saved(tmp_path):
    P, y = labelled(45_000, 40)  # without compression about 18,000 steps for each class
    cal = VennAbersCalibrator().fit(P, y)
    cal.save(tmp_path / "model.json")
    new = load(tmp_path / "model.json")
    np.testing.assert_array_equal(new.predict_proba(P[:1000]), cal.predict_proba(P[:1000]))


def test_trees_are_small_enough_for_a_model_file(monkeypatch):
    P, y = labelled(4000, 5)
    all_bins = RecursiveBinningCalibrator().fit(P, y).n_bins_
    monkeypatch.setattr(best_first, "MOST_NUMBERS", 2000)
    cal = RecursiveBinningCalibrator().fit(P, y)
    assert 5 < cal.n_bins_ <= 100 < all_bins
    tree = cal.tree_
    assert tree.thresholds.size + tree.children.size + tree.class_weights.size <= 2000
