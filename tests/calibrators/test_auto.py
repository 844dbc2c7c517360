import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import isoroc
from isoroc import (
    AutoCalibrator,
    CalibratedClassifier,
    IdentityCalibrator,
    IRPCalibrator,
    IsotonicCalibrator,
    KernelCalibrator,
    TemperatureCalibrator,
)
from isoroc._calibrators.auto import default_members
from isoroc._calibrators.mixing import Caution, exponent_of, informative_rows
from isoroc._core.evidence import score_test
from isoroc._counts import deal_by_content, deal_in_cells
from isoroc._input import Sample


def data(n=600, K=3, power=3.0, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(K), size=n)
    y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1).clip(max=K - 1)
    P = truth**power
    return P / P.sum(axis=1, keepdims=True), y


FEW = [IdentityCalibrator(), TemperatureCalibrator(), IsotonicCalibrator()]


@pytest.mark.parametrize("K", [2, 3])
def test_the_mixture_is_a_power_of_the_weighted_mean_of_its_members(K):
    P, y = data(K=K)
    cal = AutoCalibrator(random_state=0).fit(P, y)
    mean = np.average([m.predict_proba(P) for m in cal.members_], axis=0, weights=cal.weights_)
    power = mean**cal.map_.exponent
    expected = power / power.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(cal.predict_proba(P), expected, rtol=1e-12)
    assert (cal.map_.exponent == 1) == (K == 2)
    assert cal.weights_.sum() == pytest.approx(1)
    assert (cal.weights_ > 0).all()


@pytest.mark.parametrize("K", [2, 3])
def test_members_are_calibrators_that_can_be_used(K, tmp_path):
    P, y = data(K=K)
    names = [f"class {k}" for k in range(K)]
    frame = pd.DataFrame(P, columns=names)
    cal = AutoCalibrator(members=FEW, random_state=0).fit(frame, np.array(names)[y])
    cal.save(tmp_path / "mixture.json")
    loaded = isoroc.load(tmp_path / "mixture.json")
    assert len(cal.members_) == len(loaded.members_) == len(cal.weights_)
    for member, again in zip(cal.members_, loaded.members_, strict=True):
        alone = type(member)().fit(frame, np.array(names)[y])
        expected = alone.predict_proba(frame)
        for own in (member, again):
            assert own.classes_.tolist() == names
            np.testing.assert_allclose(own.predict_proba(frame), expected, atol=1e-12)
            np.testing.assert_array_equal(own.predict(frame), alone.predict(frame))
            own.save(tmp_path / "member.json")
            from_file = isoroc.load(tmp_path / "member.json")
            assert type(from_file) is type(member)
            np.testing.assert_array_equal(from_file.predict_proba(frame), own.predict_proba(frame))
            with pytest.raises(ValueError, match="columns"):
                own.predict_proba(P[:, 0])


FOR_ALL = ["Identity", "Spline", "Monotone"]


@pytest.mark.parametrize(
    ("K", "others"),
    [
        (2, ["Sigmoid", "Beta", "Kernel"]),
        (3, ["Temperature", "Kernel"]),
        (30, ["Temperature", "Kernel"]),
        (31, ["Temperature", "Isotonic", "Kernel"]),
        (150, ["Temperature", "Isotonic", "Kernel"]),
        (151, ["Temperature", "Isotonic"]),
        (300, ["Temperature", "Isotonic"]),
    ],
)
def test_the_number_of_classes_chooses_the_members(K, others):
    names = [type(member).__name__ for member in default_members(K)]
    assert names == [f"{name}Calibrator" for name in FOR_ALL + others]


def test_more_than_300_classes_have_members_that_are_quick_to_fit():
    names = [type(member).__name__ for member in default_members(301)]
    assert names == ["IdentityCalibrator", "MatrixCalibrator", "IsotonicCalibrator"]


def test_verdicts():
    P, y = data()
    verdict = AutoCalibrator().fit(P, y).verdict_
    assert str(verdict).startswith("calibrate: log loss ")
    assert verdict.should_calibrate
    assert 0 < verdict.low < verdict.gain < verdict.high
    P, y = data(power=1.0)
    left = AutoCalibrator().fit(P, y)
    assert str(left.verdict_).startswith("leave it: no improvement on the forecasts beyond noise")
    assert left.verdict_.low < 0
    assert not left.verdict_.should_calibrate
    assert np.abs(left.predict_proba(P) - P).mean() < 0.03


def test_the_verdict_says_by_how_much_forecasts_still_change():
    P, y = data(power=1.0)
    applied = AutoCalibrator(random_state=0).fit(P, y)
    change = np.abs(applied.predict_proba(P) - P).max()
    assert f"the mixture still changes probabilities by up to {change:.2g}" in str(applied.verdict_)
    left = AutoCalibrator(random_state=0, caution="verdict").fit(P, y)
    assert "still changes" not in str(left.verdict_)
    same = replace(applied.verdict_, largest_change=0.0, mean_change=0.0)
    assert "still changes" not in str(same)
    np.testing.assert_array_equal(left.predict_proba(P), P)


@pytest.mark.parametrize("max_cells", [20_000, 500])
@pytest.mark.parametrize("K", [2, 3])
def test_the_losses_of_the_verdict_are_plain_ones(K, max_cells):
    """Also with outcomes of probability 0, ties and weights, and if rows are counted in cells."""
    P, y = data(2000, K)
    P = np.round(P, 1)
    P /= P.sum(axis=1, keepdims=True)
    weights = np.random.default_rng(0).integers(1, 4, 2000)
    cal = AutoCalibrator(members=FEW, max_cells=max_cells).fit(P, y, sample_weight=weights)
    verdict = cal.verdict_
    eps = np.finfo(float).eps
    before = -np.log(P[np.arange(2000), y].clip(min=eps))
    assert verdict.before == pytest.approx(np.average(before, weights=weights))
    assert verdict.impossible == (P[np.arange(2000), y] == 0).sum() > 0
    assert verdict.n_rows == 2000
    fitted = cal.predict_proba(P)[np.arange(2000), y]
    loss = np.average(-np.log(fitted), weights=weights)
    assert loss < verdict.after < loss + 0.05
    assert verdict.gain < verdict.before - verdict.after  # no bound on single rows
    assert isinstance(verdict, isoroc.Verdict)


def test_the_loss_after_calibration_is_that_of_rows_and_not_of_cells():
    P, y = data(30_000)
    cal = AutoCalibrator(members=FEW[:2]).fit(P, y)
    loss = isoroc.metrics.log_loss(y, cal.predict_proba(P))
    assert cal.verdict_.after == pytest.approx(loss, abs=0.001)  # cells are off by 0.003


def test_a_verdict_in_a_model_file_is_data(tmp_path):
    P, y = data()
    cal = AutoCalibrator(members=FEW).fit(P, y)
    cal.save(tmp_path / "model.json")
    stored = json.loads((tmp_path / "model.json").read_bytes())["model"]["state"]["verdict_"]
    assert stored["gain"] == cal.verdict_.gain
    assert str(cal.verdict_) not in str(stored)
    assert isoroc.load(tmp_path / "model.json").verdict_.to_dict() == cal.verdict_.to_dict()


def test_an_impossible_outcome_does_not_turn_the_verdict_round():
    P, y = data(3000)
    plain = AutoCalibrator(members=FEW, random_state=0).fit(P, y).verdict_
    P[0] = [0.0, 0.5, 0.5]
    y[0] = 0
    verdict = AutoCalibrator(members=FEW, random_state=0).fit(P, y).verdict_
    assert plain.should_calibrate
    assert "outcomes" not in str(plain)
    assert verdict.should_calibrate
    assert verdict.impossible == 1
    assert str(verdict).endswith("; 1 of 3000 outcomes had been given probability 0")
    P, y = data(3000, power=1.0)
    P[0] = [0.0, 0.5, 0.5]
    y[0] = 0
    verdict = AutoCalibrator(members=FEW, random_state=0).fit(P, y).verdict_
    assert not verdict.should_calibrate


@pytest.mark.slow
@pytest.mark.parametrize("K", [2, 3])
def test_calibrated_forecasts_are_seldom_said_to_need_calibration(K):
    """A fast version of the study `verdicts` of benchmarks/simulations.py."""
    said = 0
    for seed in range(40):
        P, y = data(200, K, power=1.0, seed=seed)
        cal = AutoCalibrator(members=FEW, random_state=seed).fit(P, y)
        said += cal.verdict_.should_calibrate
    # If the rate were 5 %, more than 6 of 40 would have probability 0.3 %.
    assert said <= 6


@pytest.mark.slow
def test_few_rows_of_calibrated_forecasts_change_little():
    """Most of the weight stays with the forecasts where rows cannot tell the members apart."""
    distance = []
    excess = []
    for seed in range(10):
        P, y = data(200, power=1.0, seed=seed)
        cal = AutoCalibrator(random_state=seed).fit(P, y)
        fresh, _ = data(1000, power=1.0, seed=100 + seed)
        Q = cal.predict_proba(fresh)
        distance.append(np.abs(Q - fresh).mean())
        excess.append((fresh * np.log(fresh / Q)).sum(axis=1).mean())
    assert np.mean(distance) < 0.02
    assert np.mean(excess) < 0.005


def test_forecasts_that_are_shifted_get_little_weight_even_with_few_rows():
    """Of log odds that are too high by 1.5, a hundred rows show that they are not calibrated."""
    kept = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        odds = rng.normal(scale=1.5, size=100)
        y = (rng.random(100) < expit(odds - 1.5)).astype(int)
        cal = AutoCalibrator(random_state=0).fit(odds, y, unit="logit")
        members = zip(cal.members_, cal.weights_, strict=True)
        kept.append(sum(w for member, w in members if isinstance(member, IdentityCalibrator)))
    assert np.mean(kept) < 0.05


def test_scores_are_those_of_the_folds():
    P, y = data()
    cal = AutoCalibrator(members=FEW, cv=4, random_state=0).fit(P, y)
    scores = cal.member_scores_
    folds = cal.cv_results_
    assert list(scores["member"]) == [*(type(m).__name__ for m in FEW), "mixture"]
    assert [name for name in folds if name.startswith("fold")] == [
        "fold0",
        "fold1",
        "fold2",
        "fold3",
    ]
    sizes = np.bincount(deal_by_content(Sample(P, y), 4).fold)
    means = np.average([folds[f"fold{f}"] for f in range(4)], axis=0, weights=sizes)
    np.testing.assert_allclose(means, scores["log_loss"][:-1])
    before = -np.log((len(y) * P[np.arange(len(y)), y] + 1 / 3) / (len(y) + 1))
    assert scores["log_loss"][0] == pytest.approx(before.mean())
    assert scores["log_loss_se"][0] == pytest.approx(before.std(ddof=1) / np.sqrt(len(y)))
    assert scores["gain"][0] == 0 == scores["gain_se"][0]
    mean = np.average(scores["log_loss"][:-1], weights=scores["weight"][:-1])
    assert scores["log_loss"][-1] <= mean + 1e-12


def test_two_fits_are_equal_by_default():
    P, y = data()
    one, other = (AutoCalibrator().fit(P, y) for _ in range(2))
    np.testing.assert_array_equal(one.predict_proba(P), other.predict_proba(P))
    assert one.verdict_.to_dict() == other.verdict_.to_dict()


def test_neither_seeds_nor_threads_decide():
    P, y = data()
    one = AutoCalibrator(random_state=3).fit(P, y)
    other = AutoCalibrator(random_state=4, n_jobs=2).fit(P, y)
    np.testing.assert_array_equal(one.predict_proba(P), other.predict_proba(P))


@pytest.mark.parametrize("K", [2, 3])
def test_last_digits_of_forecasts_do_not_decide(K):
    rng = np.random.default_rng(K)
    P = rng.dirichlet(np.ones(K), size=300)
    y = np.array([rng.choice(K, p=p) for p in P**2 / (P**2).sum(axis=1, keepdims=True)])
    noisy = P * (1 + 1e-10 * rng.normal(size=P.shape))
    noisy /= noisy.sum(axis=1, keepdims=True)
    one, other = (AutoCalibrator().fit(given, y).predict_proba(P) for given in (P, noisy))
    assert np.abs(one - other).max() < 1e-4


def test_members_keep_the_seed_that_they_were_given():
    P, y = data(300)
    given = [IRPCalibrator(random_state=5), IRPCalibrator(random_state=None)]
    cal = AutoCalibrator(members=given, random_state=0).fit(P, y)
    seeds = {member.random_state for member in cal.members_}
    assert 5 in seeds
    assert None not in seeds
    assert given[1].random_state is None


def test_weights_of_rows_count():
    P, y = data(power=1.0)
    sharp = P**4 / (P**4).sum(axis=1, keepdims=True)
    both = np.vstack([P, sharp])
    labels = np.append(y, y)
    fine = AutoCalibrator(members=FEW[:2], random_state=0).fit(
        both, labels, sample_weight=np.repeat([1.0, 1e-6], len(y))
    )
    spoilt = AutoCalibrator(members=FEW[:2], random_state=0).fit(
        both, labels, sample_weight=np.repeat([1e-6, 1.0], len(y))
    )
    assert not fine.verdict_.should_calibrate
    assert spoilt.verdict_.should_calibrate


@pytest.mark.parametrize("K", [2, 3, 10])
def test_many_rows_are_fitted_as_cells_without_loss(K):
    P, y = data(30_000, K)
    new, outcome = data(20_000, K, seed=1)
    rows = np.arange(len(outcome))
    losses = []
    for max_cells in (30_000, 6000):
        cal = AutoCalibrator(members=FEW, max_cells=max_cells, random_state=0).fit(P, y)
        losses.append(-np.log(cal.predict_proba(new)[rows, outcome]))
        assert cal.summary_["rows"] == 30_000
    assert losses[0].tolist() != losses[1].tolist()
    assert abs(np.mean(losses[1] - losses[0])) < losses[0].std() / np.sqrt(len(rows))


def test_scores_of_two_classes():
    rng = np.random.default_rng(0)
    scores = rng.normal(scale=4, size=800)
    y = np.where(rng.random(800) < 1 / (1 + np.exp(-scores / 4)), "yes", "no")
    Q = AutoCalibrator(random_state=0).fit(scores, y).predict_proba(scores)
    assert np.abs(Q[:, 1] - 1 / (1 + np.exp(-scores / 4))).mean() < 0.03


def test_one_score_tells_that_all_are_log_odds():
    scores = np.append(np.linspace(0, 1, 30), 7.0)  # without the last they would be probabilities
    y = np.arange(31) % 2
    with pytest.warns(UserWarning, match="read as log odds, although row 30 is 7"):
        cal = AutoCalibrator(random_state=0).fit(scores, y)
    likelihood = 1 / (1 + np.exp(np.where(y == 1, -scores, scores)))
    assert cal.member_scores_["log_loss"][0] == pytest.approx(
        -np.log((31 * likelihood + 1 / 2) / 32).mean()
    )


def test_a_class_of_one_row():
    P, y = data(60)
    y = np.where(y == 2, 1, y)
    y[0] = 2
    Q = AutoCalibrator(random_state=0).fit(P, y).predict_proba(P)
    np.testing.assert_allclose(Q.sum(axis=1), 1)


def test_progress_names_members(capsys):
    P, y = data(100)
    AutoCalibrator(members=FEW, random_state=0, verbose=1).fit(P, y)
    assert "calibrating: TemperatureCalibrator" in capsys.readouterr().err


def test_inside_a_classifier():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X.sum(axis=1) + rng.normal(size=300) > 0).astype(int)
    model = CalibratedClassifier(
        LogisticRegression(), calibrator=AutoCalibrator(members=FEW), cv=3
    ).fit(X, y)
    assert model.predict_proba(X).shape == (300, 2)


@pytest.mark.parametrize(
    ("params", "error", "match"),
    [
        ({"members": "all"}, ValueError, "members: is 'all'; expected .* a list of calibrators"),
        ({"members": []}, ValueError, r"members: is \[\]; expected"),
        ({"members": [LogisticRegression()]}, ValueError, "members: .*calibrators of isoroc"),
        ({"cv": 1}, ValueError, "cv"),
        ({"max_cells": 0}, ValueError, "max_cells"),
    ],
)
def test_bad_parameters(params, error, match):
    with pytest.raises(error, match=match):
        AutoCalibrator(**params).fit([0.1, 0.9], [0, 1])


@pytest.mark.parametrize("name", ["covtype3-knn", "satimage-lgbm", "spambase-nb"])
def test_real_forecasts_get_no_worse(arena, name):
    sets = arena(name)
    cal = AutoCalibrator(random_state=0).fit(sets["probas_cal"], sets["labels_cal"])
    rows = np.arange(len(sets["labels_test"]))
    y = sets["labels_test"]
    before, after = (
        -np.log(Q[rows, y].clip(min=1e-6)).mean()
        for Q in (sets["probas_test"], cal.predict_proba(sets["probas_test"]))
    )
    assert after < before


def test_caution_leaves_forecasts_unchanged_unless_the_verdict_is_to_calibrate():
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(3), size=400)
    y = (truth.cumsum(axis=1) > rng.random((400, 1))).argmax(axis=1)
    cautious = AutoCalibrator(caution="verdict", random_state=0).fit(truth, y)
    assert not cautious.verdict_.should_calibrate
    np.testing.assert_allclose(cautious.predict_proba(truth), truth, atol=1e-12)
    sharp = truth**3 / (truth**3).sum(axis=1, keepdims=True)
    plain = AutoCalibrator(random_state=0).fit(sharp, y)
    assert cautious.fit(sharp, y).verdict_.should_calibrate
    np.testing.assert_array_equal(cautious.predict_proba(sharp), plain.predict_proba(sharp))


@pytest.mark.slow
@pytest.mark.parametrize("K", [2, 3, 20])
def test_a_score_test_sees_what_few_rows_cannot_show_out_of_fold(K):
    """At the level 1 % it is right for calibrated forecasts. Power and shift of others are seen."""
    rng = np.random.default_rng(0)
    found: dict[str, list[float]] = {"calibrated": [], "confident": [], "shifted": []}
    for _ in range(400):
        truth = rng.dirichlet(np.ones(K), 100)
        y = (truth.cumsum(axis=1) > rng.random((100, 1))).argmax(axis=1)
        odds = truth * np.append(np.ones(K - 1), 3.0)
        for name, P in (("calibrated", truth), ("confident", truth**1.7), ("shifted", odds)):
            forecasts = P / P.sum(axis=1, keepdims=True)
            found[name].append(score_test(forecasts, Sample(forecasts, y)))
    rejected = {name: float((np.array(p) < 0.01).mean()) for name, p in found.items()}
    assert rejected["calibrated"] <= 0.025
    assert rejected["confident"] >= 0.4
    if K == 2:
        assert rejected["shifted"] >= 0.4


def test_the_score_test_counts_independent_rows():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 50)
    y = (P.cumsum(axis=1) > rng.random((50, 1)) ** 3).argmax(axis=1)
    twice = np.repeat(np.arange(50), 2)
    once = score_test(P, Sample(P, y))
    repeated = score_test(P[twice], Sample(P[twice], y[twice]))
    assert repeated < once < 0.5
    # One row of weight two tells no more than one of weight one, unless weights count rows.
    weighted = Sample(P, y, np.full(50, 2.0))
    assert score_test(P, weighted.effective()) == pytest.approx(once)
    assert score_test(P, weighted.effective("frequency")) == pytest.approx(repeated)


@pytest.mark.parametrize("K", [2, 5])
def test_the_share_of_the_forecasts_falls_with_evidence_against_them_and_with_rows(K):
    caution = Caution.of(K)
    shares = [caution.share(8.0, 200.0, 200.0, p) for p in (0.0, 0.01, 0.1, 0.5, 1.0)]
    assert shares[:4] == sorted(set(shares[:4]))
    assert shares[4] == shares[3] > caution.share(8.0, 2000.0, 2000.0, 1.0)
    assert caution.share(8.0, 200.0, 20.0, 1.0) > shares[4]  # if few of the rows are informative


def test_certain_forecasts_of_three_classes_hardly_count_as_rows_if_they_come_true():
    y = (np.arange(100) % 2).astype(np.uint8)
    weights = np.full(100, 2.0)
    coins = np.tile([0.5, 0.5, 0.0], (100, 1))
    right = np.eye(3)[y] * 0.997 + 0.001
    assert informative_rows(coins, Sample(coins, y, weights)) == pytest.approx(200)
    expected = 2 * 200 * (1 - 0.998**2 - 2 * 0.001**2)
    assert informative_rows(right, Sample(right, y, weights)) == pytest.approx(expected)
    wrong = right[:, [1, 0, 2]]
    squared_distance = 0.999**2 + 0.998**2 + 0.001**2
    assert informative_rows(wrong, Sample(wrong, y, weights)) == pytest.approx(
        2 * 200 * squared_distance
    )
    assert informative_rows(np.eye(3)[y], Sample(np.eye(3)[y], y, weights)) == 1
    of_two = right[:, :2] / right[:, :2].sum(axis=1, keepdims=True)
    assert informative_rows(of_two, Sample(of_two, y, weights)) == 200


def test_monotone_mixtures_keep_the_exponent_1():
    P, y = data(K=4)
    assert AutoCalibrator(monotone=True).fit(P, y).map_.exponent == 1
    assert AutoCalibrator().fit(P, y).map_.exponent != 1


def test_a_mean_of_calibrated_forecasts_is_sharpened():
    """Two signals each name the right one of four classes with probability 0.6."""
    rng = np.random.default_rng(0)
    n = 4000
    K = 4
    y = rng.integers(K, size=n)

    def calibrated():
        right = rng.random(n) < 0.6
        signal = np.where(right, y, (y + rng.integers(1, K, size=n)) % K)
        return np.where(np.arange(K) == signal[:, None], 0.6, 0.4 / (K - 1))

    one = calibrated()
    other = calibrated()
    sample = Sample(one, y.astype(np.uint8))
    assert exponent_of(one, sample) == pytest.approx(1, abs=0.1)
    assert exponent_of((one + other) / 2, sample) > 1.2


@pytest.mark.parametrize(
    "deal", [deal_by_content, lambda rows, n_folds: deal_in_cells(rows, n_folds, 2000)]
)
def test_tied_forecasts_are_dealt_to_several_folds_in_any_order(deal):
    rng = np.random.default_rng(0)
    distinct = rng.dirichlet(np.ones(3), size=40)
    which = rng.integers(40, size=4000)
    P = distinct[which]
    y = rng.integers(3, size=4000).astype(np.uint8)
    dealt = deal(Sample(P, y), 5)
    assert dealt.row_weights().sum() == pytest.approx(4000)
    found, tied = np.unique(dealt.forecasts.round(12), axis=0, return_inverse=True)
    assert 20 < len(found) <= 40
    for number in range(len(found)):
        assert len(np.unique(dealt.fold[tied.ravel() == number])) == 5
    order = rng.permutation(4000)
    again = deal(Sample(P[order], y[order]), 5)
    np.testing.assert_array_equal(again.fold, dealt.fold)
    np.testing.assert_array_equal(again.codes, dealt.codes)
    np.testing.assert_allclose(again.row_weights(), dealt.row_weights())
    np.testing.assert_allclose(again.forecasts, dealt.forecasts, atol=1e-12)


@pytest.mark.parametrize("max_cells", [5000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_few_distinct_forecasts_of_many_rows_are_corrected_locally(max_cells):
    """Boosted trees tie. Here two of four classes are swapped where a third one is likely."""
    rng = np.random.default_rng(0)
    distinct = rng.dirichlet(np.ones(4), size=200)
    swapped = np.where(distinct[:, 2:3] > 0.3, distinct[:, [1, 0, 2, 3]], distinct)

    def rows(n):
        which = rng.integers(200, size=n)
        y = (swapped[which].cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
        return distinct[which], y

    P, y = rows(20_000)
    cal = AutoCalibrator(max_cells=max_cells).fit(P, y)
    local = [isinstance(member, KernelCalibrator | IsotonicCalibrator) for member in cal.members_]
    assert cal.weights_[local].sum() > 0.5
    P, y = rows(20_000)
    own = np.arange(20_000), y
    losses = [-np.log(Q[own]).mean() for Q in (P, cal.predict_proba(P))]
    best = -np.log(np.where(P[:, 2:3] > 0.3, P[:, [1, 0, 2, 3]], P)[own]).mean()
    assert losses[1] - best < 0.5 * (losses[0] - best)
