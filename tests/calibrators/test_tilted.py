"""IRPCalibrator(values="tilted"): forecasts that vary in a bin, and what is certified of them."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import log_loss, roc_auc_score

import isoroc
from isoroc import IRPCalibrator
from isoroc._core.simplex import regions
from isoroc._maps import BinMap, TiltedMap
from strategies import arbitrary, binary_data, labelled_forecasts


def drawn(n, K, seed=0, temperature=2.0):
    """Forecasts that are too confident, and of which the first class is too low."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(K), n)
    y = (truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=K - 1)
    P = truth**temperature
    P[:, 0] *= 0.4
    return P / P.sum(axis=1, keepdims=True), y


def smallest_slack(cal, P, Q, scope):
    """The smallest mean of a cycle of a split, by its definition, from rows alone."""
    tree = cal.tree_
    K = Q.shape[1]
    below = {0: np.ones(len(P), dtype=bool)}
    slacks = []
    for s, gamma in enumerate(tree.thresholds):
        region = regions(P, gamma)
        own = below[tree.split_nodes[s]]
        below |= {c: own & (region == k) for k, c in enumerate(tree.children[s]) if c >= 0}
        rows = own if scope == "tree" else np.ones(len(P), dtype=bool)
        W = np.full((K, K), np.inf)
        for i in np.unique(region[rows]):
            here = rows & (region == i)
            W[i] = (Q[here][:, [i]] - Q[here]).min(axis=0)
        cycles = (c for length in range(2, K + 1) for c in permutations(range(K), length))
        means = [sum(W[c[m - 1], c[m]] for m in range(len(c))) / len(c) for c in cycles]
        slacks.append(min(means))
    return min(slacks, default=np.inf)


def test_values_vary_for_three_classes_and_more_by_default():
    assert type(IRPCalibrator().fit(*drawn(300, 3)).map_) is TiltedMap
    assert type(IRPCalibrator().fit(*drawn(300, 2)).map_) is BinMap
    constant = IRPCalibrator(values="constant").fit(*drawn(300, 3))
    assert type(constant.map_) is BinMap
    P, _ = drawn(100, 3)
    np.testing.assert_array_equal(
        constant.predict_proba(P), constant.bin_values_[constant.apply(P)]
    )


@arbitrary
@given(
    labelled_forecasts(min_classes=3, max_classes=4),
    st.sampled_from(["tree", "global"]),
    st.sampled_from(["auto", 0.0, 1.0]),
)
def test_the_certificate_holds_for_rows(data, scope, pseudocount):
    P, y, weights = data
    cal = IRPCalibrator(
        values="tilted", monotonicity=scope, pseudocount=pseudocount, min_bin_weight=0, min_lift=0
    ).fit(P, y, labels=range(P.shape[1]), sample_weight=weights)
    assert cal.verify(P, y, sample_weight=weights)
    kept = slice(None) if weights is None else weights > 0
    P = P[kept]
    y = y[kept]
    assert smallest_slack(cal, P, cal.predict_proba(P), scope) >= -1e-9
    assert isinstance(cal.map_, TiltedMap)
    shares = cal.map_.shares
    assert ((shares >= 0) & (shares <= 1)).all()
    # Shares are lowered only where a split would lose its certificate.
    everything = replace(cal.map_, shares=np.ones_like(shares))
    if smallest_slack(cal, P, everything.apply(P), scope) > 1e-8:
        np.testing.assert_array_equal(shares, 1)


@pytest.mark.parametrize("top", [None, 1, 2])
@pytest.mark.parametrize("pseudocount", ["auto", 0.0])
def test_the_mean_of_a_bin_is_its_value(top, pseudocount):
    P, y = drawn(800, 4)
    weights = np.random.default_rng(0).integers(0, 3, 800)
    cal = IRPCalibrator(values="tilted", top=top, pseudocount=pseudocount)
    cal.fit(P, y, sample_weight=weights)
    Q = cal.map_.in_bins(P)
    bin_of = cal.apply(P)
    assert cal.n_bins_ > 3
    for b, value in enumerate(cal.bin_values_):
        here = bin_of == b
        mean = np.average(Q[here], axis=0, weights=weights[here])
        np.testing.assert_allclose(mean, value, atol=1e-9)


def test_inside_a_bin_it_is_a_bias_on_tempered_log_forecasts():
    P, y = drawn(800, 3)
    cal = IRPCalibrator(monotonicity=None).fit(P, y)
    assert isinstance(cal.map_, TiltedMap)
    assert (cal.map_.shares == 1).all()
    odds = np.log(cal.predict_proba(P) / cal.map_.tempering.apply(P))
    odds -= odds[:, [0]]
    for b in range(cal.n_bins_):
        here = odds[cal.apply(P) == b]
        np.testing.assert_allclose(here, np.broadcast_to(here[0], here.shape), atol=1e-9)


@arbitrary
@given(binary_data(), st.sampled_from(["auto", 0.0, 1.0]))
def test_two_classes_never_decrease(data, pseudocount):
    scores, y, weights = data
    cal = IRPCalibrator(values="tilted", pseudocount=pseudocount)
    cal.fit(scores, y, sample_weight=weights, unit="logit")
    assert cal.verify(scores, y, sample_weight=weights)
    between = (scores[:-1] + np.diff(scores) * 0.7) if len(scores) > 1 else scores
    borders = np.concatenate([cal.tree_.cuts, np.nextafter(cal.tree_.cuts, np.inf)])
    grid = np.sort(np.concatenate([scores, between, borders, np.linspace(-40, 40, 50)]))
    rise = np.diff(cal.predict_proba(grid)[:, 1])
    assert (rise >= -1e-15).all()


def test_two_classes_keep_the_order_that_constant_values_tie():
    P, y = drawn(600, 2)
    new, outcomes = drawn(4000, 2, seed=1)
    auc = {"before": roc_auc_score(outcomes, new[:, 1])}
    for values in ("tilted", "constant"):
        Q = IRPCalibrator(values=values).fit(P, y).predict_proba(new)
        auc[values] = roc_auc_score(outcomes, Q[:, 1])
    assert auc["constant"] < auc["tilted"] <= auc["before"] + 1e-12
    assert auc["tilted"] > auc["before"] - 1e-3


@pytest.mark.parametrize("n_classes", [3, 6])
def test_better_than_constant_values(n_classes):
    P, y = drawn(1000, n_classes)
    new, outcomes = drawn(4000, n_classes, seed=1)
    loss = {
        name: log_loss(outcomes, cal.fit(P, y).predict_proba(new))
        for name, cal in {
            "tilted": IRPCalibrator(random_state=0),
            "constant": IRPCalibrator(random_state=0, values="constant", top=None),
        }.items()
    }
    assert loss["tilted"] < loss["constant"] - 0.02


def test_noise_is_not_taken_for_information():
    """The evidence of bins that were chosen for their labels would trust them too much."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(6), 1000)
    y = (P.cumsum(axis=1) < rng.random((1000, 1))).sum(axis=1).clip(max=5)
    assert IRPCalibrator(random_state=0).fit(P, y).pseudocount_ > 150


def test_rows_in_excess_of_cells_are_all_certified():
    P, y = drawn(3000, 3)
    cal = IRPCalibrator(max_cells=200, random_state=0).fit(P, y)
    assert cal.verify(P, y)
    assert smallest_slack(cal, P, cal.predict_proba(P), "tree") > 0


def test_rounding_errors_do_not_limit_how_far_a_bin_varies():
    """All rows of a bin may have one forecast: then its values vary, but none of its rows."""
    first, second = np.array([[0.49, 0.48, 0.18], [0.43, 0.22, 0.37]])
    distinct = np.column_stack([first, second, 1 - first - second])
    distinct /= distinct.sum(axis=1, keepdims=True)
    P = distinct[[0, 1, 2, 2, 2, 1, 0, 0, 2, 1, 1, 2, 1]]
    y = np.array([0, 1, 2, 2, 1, 0, 1, 1, 2, 2, 0, 0, 2])
    weights = np.array([1, 2, 2, 2, 1, 2, 1, 1, 3, 3, 3, 1, 1])
    weighted = IRPCalibrator(random_state=0)
    weighted.fit(P, y, sample_weight=weights, weighting="frequency")
    repeated = IRPCalibrator(random_state=0).fit(
        np.repeat(P, weights, axis=0), np.repeat(y, weights)
    )
    new = np.random.default_rng(0).dirichlet([1, 1, 1], 50)
    np.testing.assert_allclose(weighted.predict_proba(new), repeated.predict_proba(new))


def test_other_rows_do_not_verify():
    P, y = drawn(600, 3)
    cal = IRPCalibrator(random_state=0).fit(P, y)
    assert not cal.verify(P[:-1], y[:-1])
    assert isinstance(cal.map_, TiltedMap)
    cal.map_ = replace(cal.map_, shares=np.ones(cal.n_bins_))
    assert not cal.verify(P, y)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("shares", lambda shares: shares[:-1]),
        ("shares", lambda shares: shares + 2),
        ("tilts", lambda tilts: -tilts),
        ("tilts", lambda tilts: 0 * tilts),
        ("smoothing", lambda _: 0.0),
    ],
)
def test_damaged_model_files_are_refused(tmp_path, name, damage):
    cal = IRPCalibrator(random_state=0).fit(*drawn(300, 3))
    cal.map_ = replace(cal.map_, **{name: damage(getattr(cal.map_, name))})
    cal.save(tmp_path / "model.json")
    with pytest.raises(isoroc.ModelFileError, match=name):
        isoroc.load(tmp_path / "model.json")


def test_bad_parameter():
    with pytest.raises(ValueError, match="values: "):
        IRPCalibrator(values="bent").fit(*drawn(30, 3))  # type: ignore[arg-type]
