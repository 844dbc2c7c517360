"""Acceptance rules: what they promise, where they stop, and what they say."""

import json
import re
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from isoroc import InputError, ModelFileError, SegmentCalibrator, TemperatureCalibrator
from isoroc._maps.modelfile import document
from isoroc.decisions import AcceptanceRule, acceptance_rule


def draw(n=2000, K=3, seed=0):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(K, 0.2), n)
    return (rng.random((n, 1)) > P.cumsum(axis=1)[:, :-1]).sum(axis=1), P


def binary(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.2, 0.2, n)
    return rng.random(n) < p, p


def test_a_threshold_passes_the_exact_test_and_the_next_candidate_does_not():
    y, P = draw()
    rule = acceptance_rule(y, P, max_error=0.05)
    accepted = P.max(axis=1) >= rule.threshold
    wrong = P.argmax(axis=1) != y
    assert rule.certified
    assert rule.n_accepted == accepted.sum() == rule.accept(P).sum()
    assert rule.coverage.value == accepted.mean()
    assert rule.error.value == pytest.approx(wrong[accepted].mean())

    def p_value(rows):
        n = int(rows.sum())
        return binomtest(int(wrong[rows].sum()), n, 0.05, alternative="less").pvalue

    # A tenth of the risk is kept for all rows.
    assert p_value(accepted) <= 0.045
    table = rule.candidates
    last = int(np.flatnonzero(table["certified"]).max())
    assert table["threshold"][last] == rule.threshold
    assert table["p_value"][last + 1] > 0.045
    assert p_value(P.max(axis=1) >= table["threshold"][last + 1]) > 0.045
    assert (np.diff(table["threshold"]) < 0).all()
    assert rule.error.high <= 0.05
    assert rule.frame().shape == (table.n_rows, len(table))


def test_reversed_columns_warn_unless_their_order_is_given():
    y, P = draw()
    with pytest.warns(UserWarning, match="P: the forecasts rank class"):
        acceptance_rule(y, P[:, ::-1], max_error=0.05)
    acceptance_rule(y, P[:, ::-1], max_error=0.05, labels=range(P.shape[1]))


def test_candidates_do_not_depend_on_labels():
    y, P = draw()
    first = acceptance_rule(y, P, max_error=0.05)
    second = acceptance_rule(np.roll(y, 7), P, max_error=0.05)
    assert np.array_equal(first.candidates["threshold"], second.candidates["threshold"])
    assert not second.certified


@pytest.mark.parametrize("digits", [1, 2])
def test_ties_are_accepted_together(digits):
    y, p = binary()
    p = p.round(digits)
    rule = acceptance_rule(y, p, max_error=0.1, action="positive")
    assert rule.threshold not in p
    thresholds = rule.candidates["threshold"]
    assert len(thresholds) <= 10**digits + 1
    assert len(set(np.searchsorted(np.unique(p), thresholds))) == len(thresholds)


def test_both_ends_have_limits_of_their_own():
    y, p = binary()
    rule = acceptance_rule(y, p, max_error={False: 0.02, True: 0.1})
    low, high = 1 - rule.threshold[0], rule.threshold[1]
    accepted = rule.accept(p)
    assert np.array_equal(accepted, (p <= low) | (p >= high))
    assert rule.max_error.tolist() == [0.02, 0.1]
    assert np.mean(y[p <= low]) < 0.02 < np.mean(~y[p >= high]) < 0.1
    text = str(rule)
    assert f"the probability of True is at most {low:.4g}" in text
    assert "are left to a person" in text
    pair = acceptance_rule(y, p, max_error=(0.02, 0.1))
    assert np.array_equal(pair.threshold, rule.threshold)
    # Each end has half of the risk.
    one = acceptance_rule(y, p, max_error=0.1, action="positive", confidence=0.975)
    assert one.threshold <= high


def test_one_end_alone():
    y, p = binary()
    positive = acceptance_rule(y, p, max_error=0.05, action="positive")
    negative = acceptance_rule(~y, 1 - p, max_error=0.05, action="negative")
    assert positive.threshold == pytest.approx(negative.threshold)
    assert np.array_equal(positive.accept(p), p >= positive.threshold)
    assert np.array_equal(negative.accept(1 - p), positive.accept(p))


def test_classes_and_segments_have_thresholds_of_their_own():
    y, P = draw(6000)
    rule = acceptance_rule(y, P, max_error=0.05, by_class=True)
    assert rule.zones["action"].tolist() == ["0", "1", "2"]
    top = P.argmax(axis=1)
    expected = P.max(axis=1) >= np.asarray(rule.threshold)[top]
    assert np.array_equal(rule.accept(P), expected)
    # Zone 0 alone, with a third of the risk.
    rows = top == 0
    alone = acceptance_rule(y[rows], P[rows], max_error=0.05, confidence=1 - 0.05 / 3, action="top")
    assert alone.threshold == rule.threshold[0]

    segment = np.where(np.arange(6000) % 3, "web", "shop")
    segment[:20] = "new"
    rule = acceptance_rule(y, P, max_error=0.05, segments=segment)
    assert rule.zones["segment"].tolist() == ["new", "shop", "web"]
    assert rule.zones["certified"].tolist() == [False, True, True]
    assert "there are 20 rows in segment new" in str(rule)
    accepted = rule.accept(P, segments=segment)
    assert not accepted[:20].any()
    assert accepted.sum() == rule.n_accepted
    assert not rule.accept(P, segments=["unknown"] * 6000).any()
    # The risk is divided among the two segments that can be certified at all.
    web = segment == "web"
    alone = acceptance_rule(y[web], P[web], max_error=0.05, confidence=0.975)
    assert alone.threshold == rule.threshold[2]


def test_scores_of_the_user():
    y, P = draw()
    scores = 10 * P.max(axis=1) - 100
    rule = acceptance_rule(y, P, max_error=0.05, score=scores)
    plain = acceptance_rule(y, P, max_error=0.05)
    assert rule.threshold == pytest.approx(10 * plain.threshold - 100)
    assert np.array_equal(rule.accept(P, score=scores), plain.accept(P))
    everything = acceptance_rule(y, P, max_error=0.5, score=scores)
    assert everything.accept(P[:1], score=[-1e300]).all()
    with pytest.raises(InputError, match="pass score="):
        rule.accept(P)
    with pytest.raises(InputError, match="leave score= out"):
        plain.accept(P, score=scores)
    scores[5] = np.nan
    with pytest.raises(InputError, match="score: row 5 is nan; scores are finite"):
        acceptance_rule(y, P, max_error=0.05, score=scores)


def test_losses_weights_clusters_and_soft_labels_use_bets():
    y, P = draw(4000)
    wrong = (P.argmax(axis=1) != y) * 1.0
    plain = acceptance_rule(y, P, max_error=0.08)
    half = acceptance_rule(None, P, max_error=0.08, loss=wrong / 2)
    assert half.measure == "loss"
    assert half.n_accepted > plain.n_accepted
    assert "the mean loss of the accepted new rows is at most 8 %" in str(half)
    soft = acceptance_rule(0.9 * np.eye(3)[y] + 0.1 / 3, P, max_error=0.15)
    accepted = soft.accept(P)
    assert soft.error.value == pytest.approx((0.9 * wrong + 0.1 * 2 / 3)[accepted].mean())
    clusters = np.repeat(np.arange(2000), 2)
    rule = acceptance_rule(y, P, max_error=0.08, clusters=clusters)
    assert rule.certified
    assert rule.n_accepted < plain.n_accepted
    assert "clusters are independent" in str(rule)
    # Copies of rows in one cluster are no evidence.
    copies = acceptance_rule(
        np.repeat(y, 5),
        np.repeat(P, 5, axis=0),
        max_error=0.08,
        clusters=np.repeat(np.arange(4000), 5),
    )
    assert copies.coverage.value <= plain.coverage.value
    # Weights: equal ones do not matter, and rows of weight 0 do not count.
    assert acceptance_rule(y, P, max_error=0.08, sample_weight=3).threshold == plain.threshold
    weights = np.where(np.arange(4000) < 3000, 1.0, 0.0)
    some = acceptance_rule(y, P, max_error=0.08, sample_weight=weights)
    assert some.threshold == acceptance_rule(y[:3000], P[:3000], max_error=0.08).threshold
    assert acceptance_rule(y, P, max_error=0.08, sample_weight=1 + weights).certified


def test_all_rows_are_accepted_if_they_may_be():
    y, P = draw()
    rule = acceptance_rule(y, P, max_error=0.4)
    assert rule.threshold == 0
    assert str(rule).startswith("Accept all rows;")
    assert rule.accept([[1 / 3, 1 / 3, 1 / 3]]).all()
    # The zones of two classes and of segments say so, too.
    y, p = binary()
    both = acceptance_rule(y, p, max_error=0.8)
    assert both.accept([0.0, 0.4, 0.6, 1.0]).all()
    assert str(both).startswith("Accept all rows: as False if False is the most probable class (")
    scored = acceptance_rule(
        y, p, max_error=0.8, action="positive", score=p, segments=np.arange(len(p)) % 2
    )
    assert str(scored).startswith("Accept all rows: in segment 0 as True whatever the score (")


def test_a_score_that_tells_nothing_does_not_keep_rows_from_being_accepted():
    """Of 600 rows 6 % are wrong, also of the surest ones. All of them pass a limit of 10 %."""
    accepted = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        wrong = rng.permutation(np.arange(600) < 36) * 1.0
        rule = acceptance_rule(
            None, [0.4] * 600, loss=wrong, score=rng.random(600), max_error=0.1, action="top"
        )
        accepted.append(rule.n_accepted)
    assert accepted == [600] * 20


def test_why_nothing_is_certified():
    y, P = draw()
    few = acceptance_rule(y[:100], P[:100], max_error=0.02)
    assert not few.certified
    assert few.n_accepted == 0
    assert few.threshold == np.inf
    assert "takes 149 rows without an error or more, and there are 100 rows" in str(few)
    rng = np.random.default_rng(0)
    useless = acceptance_rule(y, P, max_error=0.02, score=rng.random(2000))
    error = np.mean(P.argmax(axis=1) != y)
    share = 100 * (error - 0.02) / 0.98
    assert f"at least {share:.3g} % of all rows must be refused, whatever the score" in str(useless)
    close = acceptance_rule(
        np.arange(300) % 60 > 0, np.full(300, 0.9), max_error=0.03, action="positive"
    )
    assert "more labels would do" in str(close)
    assert not close.accept([0.9, 1.0]).any()
    # Nothing is said about labels if even a thousand times as many might not do.
    hopeless = acceptance_rule(
        None, [0.9] * 300, max_error=0.03, loss=[0.02999] * 300, action="top"
    )
    assert str(hopeless).endswith("too many to certify 3 %.")
    # With so many more labels of the same kind, the limit is certified by bets, too.
    wrong = np.arange(300) % 60 == 0
    bets = acceptance_rule(None, np.full(300, 0.9), max_error=0.03, loss=wrong * 0.99, action="top")
    (more,) = re.findall(r"about ([\d,]+) more labels", str(bets))
    n = 300 + 2 * int(more.replace(",", ""))
    loss = np.random.default_rng(0).permutation(np.resize(wrong * 0.99, n))
    assert acceptance_rule(None, np.full(n, 0.9), max_error=0.03, loss=loss, action="top").certified


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_error": 0}, "max_error: is 0; no number of rows"),
        ({"max_error": 1.0}, r"max_error: is 1\.0; expected 0 < max_error < 1"),
        ({"max_error": [0.1, 0.1, 0.1]}, r"several numbers with action='top'"),
        ({"max_error": 0.1, "action": "both"}, "which is for two classes"),
        ({"max_error": 0.1, "action": "all"}, "expected one of None, 'top'"),
        ({"max_error": 0.1, "confidence": 1}, "expected 0 < confidence < 1"),
        ({"max_error": 0.1, "by_class": True, "action": "positive"}, "decides for one class"),
        ({"max_error": 0.1, "loss": [2.0] * 2000}, "loss: row 0 is 2; losses lie between 0 and 1"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(InputError, match=message):
        acceptance_rule(*draw(), **options)


def test_labels_or_losses_are_needed():
    with pytest.raises(InputError, match="pass labels, or losses"):
        acceptance_rule(None, [0.5], max_error=0.1)


@pytest.mark.parametrize("options", [{}, {"segments": ["a", "b"] * 1000}, {"by_class": True}])
def test_a_rule_is_the_same_after_saving(tmp_path, options):
    y, P = draw()
    rule = acceptance_rule(y, P, max_error=0.05, **options)
    path = tmp_path / "rule.json"
    rule.save(path)
    loaded = AcceptanceRule.load(path)
    assert str(loaded) == str(rule)
    segments = options.get("segments")
    assert np.array_equal(loaded.accept(P, segments=segments), rule.accept(P, segments=segments))
    assert np.array_equal(loaded.candidates["p_value"], rule.candidates["p_value"], equal_nan=True)
    assert json.loads(json.dumps(rule.to_dict(), default=lambda v: v.item()))["certified"]


def test_damaged_rules_are_refused(tmp_path):
    y, P = draw()
    path = tmp_path / "rule.json"
    acceptance_rule(y, P, max_error=0.05).save(path)
    content = json.loads(path.read_text())
    path.write_text(path.read_text().replace('"top"', '"both"'))
    with pytest.raises(ModelFileError, match="checksum: does not match"):
        AcceptanceRule.load(path)
    wrong = {
        "action": "all",
        "confidence": 2.0,
        "n_rows": -1,
        "thresholds": content["rule"]["classes"],
        "zones": content["rule"]["candidates"],
        "notes": [1],
        "error": [0.1],
        "classes": 3,
        "units": "days",
        "measure": "risk",
        "scored": 1,
        "model": 1,
        "segments": 5,
    }
    for name, value in wrong.items():
        body = content | {"rule": content["rule"] | {name: value}}
        body.pop("checksum", None)
        path.write_text(json.dumps(body | {"checksum": document._checksum(body)}))
        with pytest.raises(ModelFileError, match=rf"rule\.{name}"):
            AcceptanceRule.load(path)
    path.write_text(json.dumps({"format": "isoroc-model"}))
    with pytest.raises(ModelFileError, match=r"written by AcceptanceRule\.save"):
        AcceptanceRule.load(path)


def true_errors(rule, n=20_000):
    """Errors of the accepted rows of each end, if forecasts are the true probabilities."""
    p = np.random.default_rng(1).beta(0.2, 0.2, n)
    accepted = rule.accept(p)
    ends = (
        [accepted] if rule.action == "positive" else [accepted & (p > 0.5), accepted & (p <= 0.5)]
    )
    wrong = np.where(p > 0.5, 1 - p, p) if rule.action == "both" else 1 - p
    return [wrong[end].mean() for end in ends if end.any()]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rows", "clusters", "both"])
def test_promises_are_kept(kind):
    """In at most a tenth of the draws the error of the accepted rows exceeds the limit."""
    broken = []
    for seed in range(100):
        y, p = binary(400, seed)
        options: Any = {} if kind == "both" else {"action": "positive"}
        if kind == "clusters":
            y = np.repeat(y, 2)
            p = np.repeat(p, 2)
            options["clusters"] = np.arange(800) // 2
        rule = acceptance_rule(y, p, max_error=0.08, confidence=0.9, **options)
        broken.append(any(error > 0.08 for error in true_errors(rule)))
    assert 0 < np.mean(broken) <= 0.1 + 2 * np.sqrt(0.09 / 100)


def test_rows_of_the_calibrator_are_recognised():
    y, P = draw(1200)
    calibrator = TemperatureCalibrator().fit(P[:600], y[:600])
    with pytest.warns(UserWarning, match="was fitted to 100 % of these rows: the promise does not"):
        rule = acceptance_rule(y[:600], P[:600], max_error=0.1, calibrator=calibrator)
    assert rule.notes[-1].endswith("Make the rule from other rows.")
    rule = acceptance_rule(y[600:], P[600:], max_error=0.1, calibrator=calibrator)
    expected = acceptance_rule(y[600:], calibrator.predict_proba(P[600:]), max_error=0.1)
    assert rule.threshold == expected.threshold
    assert rule.model == calibrator.checksum
    assert expected.model is None
    with pytest.raises(InputError, match="calibrator: is int; expected a fitted calibrator"):
        acceptance_rule(y, P, max_error=0.1, calibrator=3)
    segment = np.where(y == 0, "web", "shop")
    segmented = SegmentCalibrator().fit(P, y, segments={"place": segment})
    with pytest.raises(InputError, match="calibrator: uses segments of its own"):
        acceptance_rule(y, P, max_error=0.1, calibrator=segmented)
