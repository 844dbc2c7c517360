"""IRPCalibrator for three classes and more."""

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoroc import IRPCalibrator
from isoroc._counts import Points
from isoroc._growth import GrowthOptions
from isoroc._growth.best_first import Growth, regrow
from isoroc._input import Sample
from strategies import arbitrary, labelled_forecasts, truncate


def log_loss(y, Q):
    return -np.log(Q[np.arange(len(y)), y].clip(1e-6)).mean()


def overconfident(n, n_classes, seed=0, sharpness=2.0):
    """Forecasts that are sharper than the truth, and labels."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(n_classes, 0.6), n)
    y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    P = truth**sharpness
    return P / P.sum(axis=1, keepdims=True), y


@arbitrary
@given(
    labelled_forecasts(min_classes=3),
    st.sampled_from(["tree", "global"]),
    st.sampled_from([0.0, 1.0]),
    st.sampled_from(["auto", None, 1]),
    st.sampled_from(["tilted", "constant"]),
)
def test_calibrated_forecasts_are_probabilities_and_certificates_verify(
    data, scope, pseudocount, top, values
):
    P, y, weights = data
    cal = IRPCalibrator(
        monotonicity=scope, pseudocount=pseudocount, top=top, min_bin_weight=0, min_lift=0,
        random_state=0, values=values,
    ).fit(P, y, labels=range(P.shape[1]), sample_weight=weights)  # fmt: skip
    K = P.shape[1]
    everywhere = np.vstack([P, np.eye(K), np.full((1, K), 1 / K)])
    Q = cal.predict_proba(everywhere)
    np.testing.assert_allclose(Q.sum(axis=1), 1)
    assert (Q >= 0).all()
    if pseudocount:
        assert (Q > 0).all()
    assert cal.verify(P, y, sample_weight=weights)
    assert cal.certificate_
    assert len(cal.certificate_.slack) == cal.tree_.n_splits
    stages = list(cal.staged_predict_proba(P))
    np.testing.assert_allclose(stages[-1], cal.predict_proba(P), rtol=1e-12)
    assert len(stages) == cal.path_.n_rows
    assert cal.path_["n_bins"][-1] == cal.n_bins_ == cal.bins_.n_rows


@arbitrary
@given(labelled_forecasts(min_classes=3))
def test_full_calibration_has_zero_calibration_error_on_its_own_data(data):
    P, y, weights = data
    cal = IRPCalibrator(
        pseudocount=0, top=None, min_bin_weight=0, min_lift=0, random_state=0, values="constant"
    ).fit(P, y, labels=range(P.shape[1]), sample_weight=weights)  # fmt: skip
    Q = cal.predict_proba(P)
    bin_of = cal.apply(P)
    for b in range(cal.n_bins_):
        rows = bin_of == b
        w = None if weights is None else weights[rows]
        observed = np.average(np.eye(P.shape[1])[y[rows]], axis=0, weights=w)
        np.testing.assert_allclose(Q[rows], np.tile(observed, (rows.sum(), 1)), atol=1e-12)


def test_tables_name_the_classes():
    P, codes = overconfident(1500, 3)
    cal = IRPCalibrator(random_state=0, values="constant")
    cal.fit(P, np.array(["a", "b", "c"])[codes])
    bins = cal.bins_
    assert list(bins)[:5] == ["weight", "rate_a", "rate_low_a", "rate_high_a", "value_a"]
    np.testing.assert_allclose(sum(bins[f"value_{c}"] for c in "abc"), 1)
    path = cal.path_
    assert {"threshold_a", "threshold_b", "threshold_c"} <= set(path)
    np.testing.assert_allclose(sum(path[f"threshold_{c}"][1:] for c in "abc"), 1)
    Q = cal.predict_proba(P)
    loss = -np.log(Q[np.arange(1500), codes]).mean()
    assert path["log_loss"][-1] == pytest.approx(loss)
    assert "splits" in str(cal.certificate_)
    assert cal.predict(P[:5]).tolist() == cal.classes_[Q[:5].argmax(axis=1)].tolist()


@pytest.mark.parametrize("n_classes", [3, 4])
def test_it_mends_overconfident_forecasts(n_classes):
    P, y = overconfident(4000, n_classes)
    P_new, y_new = overconfident(4000, n_classes, seed=1)
    variants: list[dict[str, Any]] = [{}, {"search": "grid", "grid_size": 12}]
    if n_classes == 3:  # the global condition leaves too little freedom for four
        variants.append({"monotonicity": "global"})
    for params in variants:
        cal = IRPCalibrator(random_state=0, **params).fit(P, y)
        assert log_loss(y_new, cal.predict_proba(P_new)) < log_loss(y_new, P_new) - 0.02


def test_without_monotonicity_growth_is_free_and_uncertified():
    P, y = overconfident(600, 3)
    free = IRPCalibrator(monotonicity=None, min_bin_weight=5, min_lift=0, random_state=0).fit(P, y)
    kept = IRPCalibrator(min_bin_weight=5, min_lift=0, random_state=0).fit(P, y)
    assert free.n_bins_ > 2 * kept.n_bins_
    assert free.certificate_ is None
    with pytest.raises(ValueError, match="nothing to verify"):
        free.verify(P, y)
    scores = P[:, 0]
    labels = (y == 0).astype(int)
    assert IRPCalibrator(monotonicity=None).fit(scores, labels).n_bins_ > 1


def test_seeds():
    P, y = overconfident(1500, 4)
    one = IRPCalibrator(random_state=3).fit(P, y)
    same = IRPCalibrator(random_state=3).fit(P, y)
    np.testing.assert_array_equal(one.tree_.thresholds, same.tree_.thresholds)
    np.testing.assert_array_equal(one.predict_proba(P), same.predict_proba(P))


def test_parameters_that_bound_growth():
    P, y = overconfident(2000, 3)
    few = IRPCalibrator(max_bins=6, random_state=0).fit(P, y)
    assert few.n_bins_ <= 6
    heavy = IRPCalibrator(min_bin_weight=200, random_state=0).fit(P, y)
    assert heavy.bins_["weight"].min() >= 200
    strict = IRPCalibrator(min_lift=20, random_state=0).fit(P, y)
    assert strict.n_bins_ < IRPCalibrator(random_state=0).fit(P, y).n_bins_
    binary = IRPCalibrator(min_lift=20).fit(P[:, 0], y == 0)
    assert 1 < binary.n_bins_ < IRPCalibrator().fit(P[:, 0], y == 0).n_bins_


@pytest.mark.parametrize("scope", ["tree", "global"])
def test_cells_keep_weights_and_guarantee_of_all_rows(scope):
    P, y = overconfident(5000, 3)
    cal = IRPCalibrator(monotonicity=scope, max_cells=300, random_state=0).fit(P, y)
    exact = IRPCalibrator(monotonicity=scope, random_state=0).fit(P, y)
    bin_of = cal.apply(P)
    for b, node in enumerate(cal.tree_.bins):
        expected = np.bincount(y[bin_of == b], minlength=3)
        np.testing.assert_array_equal(cal.tree_.class_weights[node], expected)
    assert cal.verify(P, y)
    P_new, y_new = overconfident(5000, 3, seed=1)
    losses = [log_loss(y_new, c.predict_proba(P_new)) for c in (cal, exact)]
    # All rows are harder to please than cells: in the global scope splits are lost to single rows.
    assert losses[0] < losses[1] + (0.02 if scope == "tree" else 0.1)


def test_cells_count_frequencies_as_rows_and_respect_max_bins():
    P, y = overconfident(900, 3)
    repeats = np.random.default_rng(0).integers(1, 4, 900)
    weighted = IRPCalibrator(max_cells=200, random_state=0)
    weighted.fit(P, y, sample_weight=repeats, weighting="frequency")
    repeated = IRPCalibrator(max_cells=200, random_state=0)
    repeated.fit(np.repeat(P, repeats, axis=0), np.repeat(y, repeats))
    np.testing.assert_allclose(weighted.predict_proba(P), repeated.predict_proba(P))
    for max_bins in range(1, 9):
        assert IRPCalibrator(max_cells=100, max_bins=max_bins).fit(P, y).n_bins_ <= max_bins


def test_free_growth_on_many_scores_of_any_size():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=400) * 50
    y = rng.random(400) < 1 / (1 + np.exp(-scores / 50))
    cal = IRPCalibrator(monotonicity=None, max_cells=100, min_bin_weight=40).fit(scores, y)
    assert cal.n_bins_ > 1
    assert cal.bins_["weight"].min() >= 40


def test_many_classes_are_reduced_to_the_top():
    P, y = overconfident(1500, 13)
    P_new, y_new = overconfident(1500, 13, seed=1)
    auto = IRPCalibrator(random_state=0).fit(P, y)
    assert auto.top_ in (1, 2, 3)
    Q = auto.predict_proba(P_new)
    assert log_loss(y_new, Q) < log_loss(y_new, P_new)
    assert [name for name in auto.bins_ if name.startswith("value")][-1] in ("value", "value_rest")
    fixed = IRPCalibrator(top=2, random_state=0).fit(P, y)
    assert fixed.top_ == 2
    assert [c for c in fixed.bins_ if c.startswith("value")] == [
        "value_top1", "value_top2", "value_rest",
    ]  # fmt: skip
    assert IRPCalibrator(top=1, random_state=0).fit(P, y).tree_.n_classes == 2
    assert fixed.verify(P, y)


def test_auto_top_on_many_rows_uses_fewer_folds():
    P, y = overconfident(3000, 6)
    cal = IRPCalibrator(max_cells=500, random_state=0, values="constant").fit(P, y)
    assert cal.top_ in (1, 2, 3)
    assert cal.verify(P, y)


def test_classes_never_seen_keep_a_positive_probability():
    P, y = overconfident(800, 7)
    keep = y < 5
    cal = IRPCalibrator(random_state=0).fit(P[keep], y[keep], labels=range(7))
    assert cal.classes_.tolist() == list(range(7))
    assert (cal.predict_proba(P) > 0).all()
    full = IRPCalibrator(random_state=0, top=None).fit(P[keep], y[keep], labels=range(7))
    assert (full.predict_proba(P) > 0).all()


def test_dataframes_weights_and_pickles():
    P, y = overconfident(900, 3)
    frame = pd.DataFrame(P, columns=["p_a", "p_b", "p_c"])
    weights = np.random.default_rng(0).integers(0, 4, 900)
    cal = IRPCalibrator(random_state=0)
    cal.fit(frame, y, sample_weight=weights, weighting="frequency")
    repeated = IRPCalibrator(random_state=0).fit(np.repeat(P, weights, 0), np.repeat(y, weights))
    np.testing.assert_allclose(cal.predict_proba(frame), repeated.predict_proba(P), rtol=1e-13)
    again = pickle.loads(pickle.dumps(cal))
    np.testing.assert_array_equal(again.predict_proba(frame), cal.predict_proba(frame))
    assert cal.feature_names_in_.tolist() == ["p_a", "p_b", "p_c"]


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"monotonicity": "loose"}, ValueError, "monotonicity: expected one of .*loose"),
        ({"search": "random"}, ValueError, "search: expected one of"),
        ({"grid_size": 0}, ValueError, "grid_size"),
        ({"max_cells": 1}, ValueError, "max_cells"),
        ({"min_lift": -1}, ValueError, "min_lift"),
        ({"top": 3}, ValueError, "top: is 3 for 4 classes; at most 2 are possible"),
        ({"top": 0}, ValueError, "top"),
        ({"top": "best"}, ValueError, "top: is .*; expected an int"),
        (
            {"top": 1, "prior": [0.25] * 4},
            ValueError,
            "prior: .*, but bins are of ranks",
        ),
        ({"prior": [0.5, 0.5]}, ValueError, "prior: 2 probabilities; expected 4"),
    ],
)
def test_bad_parameters(params, error, message):
    P, y = overconfident(60, 4)
    with pytest.raises(error, match=message):
        IRPCalibrator(**params).fit(P, y)


def test_a_prior_of_classes_does_not_fit_ranks():
    P, y = overconfident(60, 6)
    with pytest.raises(ValueError, match=r"prior: .* pass top=None"):
        IRPCalibrator(prior=np.full(6, 1 / 6), values="constant").fit(P, y)
    with pytest.raises(ValueError, match=r"prior: .* pass top=None"):
        IRPCalibrator(prior=np.full(6, 1 / 6), top=1).fit(P, y)


def test_progress_goes_to_standard_error(capsys):
    P, y = overconfident(400, 3)
    IRPCalibrator(random_state=0, verbose=1).fit(P, y)
    seen = capsys.readouterr()
    assert "bins" in seen.err
    assert seen.out == ""


def test_the_papers_three_class_forecasts(cover3):
    losses = []
    n_bins = []
    for seed in range(10):
        cal = IRPCalibrator(random_state=seed).fit(cover3["probas_cal"], cover3["labels_cal"])
        losses.append(log_loss(cover3["labels_test"], cal.predict_proba(cover3["probas_test"])))
        n_bins.append(cal.n_bins_)
    assert max(losses) <= 0.630
    assert max(losses) - min(losses) <= 0.015
    assert 12 <= min(n_bins) <= max(n_bins) <= 30


def test_arena_of_three_and_four_classes(arena):
    """No worse on average than isotonic regression of each class against the rest."""
    ours = []
    theirs = []
    for name in ("covtype3-et", "covtype3-nb", "covtype4-hgb", "covtype4-nb", "covtype4-mlp"):
        data = arena(name)
        P, y, P_new, y_new = (
            data[k] for k in ("probas_cal", "labels_cal", "probas_test", "labels_test")
        )
        cal = IRPCalibrator(random_state=0).fit(P, y)
        assert cal.verify(P, y)
        ours.append(log_loss(y_new, cal.predict_proba(P_new)))
        theirs.append(log_loss(y_new, one_vs_rest_isotonic(P, y, P_new)))
    assert np.mean(ours) < np.mean(theirs)


def one_vs_rest_isotonic(P, y, P_new):
    columns = [
        IRPCalibrator(pseudocount=0).fit(P[:, k], y == k).predict_proba(P_new[:, k])[:, 1]
        for k in range(P.shape[1])
    ]
    Q = np.column_stack(columns)
    return Q / Q.sum(axis=1, keepdims=True)


def test_samples_know_their_class_weights():
    sample = Sample(np.array([0.1, 0.2, 0.3]), np.array([0, 1, 1], dtype=np.uint8), None)
    assert sample.class_weights().tolist() == [1, 2]
    assert replace(sample, weights=np.array([0.5, 1, 2])).class_weights().tolist() == [0.5, 3]
    assert sample.take(np.array([1, 2])).class_weights().tolist() == [0, 2]


def regrown(tree, P, codes):
    """The splits of a tree made again for other labels."""
    counts = Points.of_rows(Sample(P, codes.astype(np.uint8)))
    return regrow(tree, Growth(counts, GrowthOptions(np.full(3, 1 / 3))))


def test_splits_that_the_rows_forbid_are_dropped_with_all_that_was_built_on_them():
    P, y = overconfident(900, 3)
    tree = IRPCalibrator(random_state=0).fit(P, y).tree_
    assert regrown(tree, P, y).n_splits == tree.n_splits > 2
    # Each class comes true where the next is likely: no threshold sorts such values as the root.
    turned = regrown(tree, P, (y + 1) % 3)
    assert turned.n_splits == 0
    assert turned.class_weights.tolist() == [np.bincount((y + 1) % 3).tolist()]
    # Below one child of the root labels are shuffled: its split goes, and the root's split stays.
    s = next(s for s in range(1, tree.n_splits) if tree.split_nodes[s] in tree.children[0])
    child = tree.split_nodes[s]
    first = truncate(tree, 1)
    below = first.bin_of(P) == first.bins.tolist().index(child)
    mixed = regrown(tree, P, np.where(below, np.random.default_rng(0).permutation(y), y))
    assert 0 < mixed.n_splits < tree.n_splits
    made = {gamma.tobytes() for gamma in mixed.thresholds}
    kept = [gamma.tobytes() in made for gamma in tree.thresholds]
    assert kept[0]
    assert not kept[s]
    for t in range(1, tree.n_splits):
        parent = int(np.flatnonzero((tree.children == tree.split_nodes[t]).any(axis=1))[0])
        assert kept[parent] or not kept[t]


@pytest.mark.parametrize("K", [2, 3, 5])
def test_the_calibrator_of_the_paper_has_no_calibration_error(K):
    rng = np.random.default_rng(K)
    P = rng.dirichlet(np.ones(K), size=300)
    y = (P.cumsum(axis=1) > rng.random((300, 1)) ** 1.5).argmax(axis=1)
    calibrator = IRPCalibrator.paper(random_state=0).fit(P, y)
    Q = calibrator.predict_proba(P)
    bin_of = calibrator.apply(P)
    for b in range(calibrator.n_bins_):
        rates = np.bincount(y[bin_of == b], minlength=K) / (bin_of == b).sum()
        np.testing.assert_allclose(Q[bin_of == b], np.tile(rates, ((bin_of == b).sum(), 1)))
    assert calibrator.n_bins_ > 1
    assert calibrator.certificate_ is not None
    assert calibrator.certificate_.scope == "global"
    assert calibrator.verify(P, y)
