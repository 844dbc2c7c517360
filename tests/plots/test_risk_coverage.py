"""RiskCoverageDisplay: its curves come from risk_coverage, and a rule is marked."""

import numpy as np
import pytest

from isoroc import InputError, IRPCalibrator
from isoroc.decisions import acceptance_rule, risk_coverage
from isoroc.plots import RiskCoverageDisplay


def draw(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.4, 0.4, n)
    return np.where(rng.random(n) < p, "yes", "no"), p


def test_curves_and_bands_are_those_of_the_table():
    y, p = draw()
    display = RiskCoverageDisplay.from_predictions(y, p, after=p**2)
    expected = risk_coverage(y, p, after=p**2)
    labels = [line.get_label() for line in display.line_]
    assert labels == [f"{of}, area {expected.area[of].value:.4f}" for of in ("before", "after")]
    for line, of in zip(display.line_, ("before", "after"), strict=True):
        rows = expected.table["of"] == of
        assert np.array_equal(line.get_ydata(), expected.table["error"][rows])
    assert display.panels == ["error of accepted rows"]


def test_a_rule_is_marked_with_its_limit_and_three_zones():
    y, p = draw(4000)
    rule = acceptance_rule(y[:2000], p[:2000], max_error=(0.05, 0.1))
    display = RiskCoverageDisplay.from_predictions(y[2000:], p[2000:], rule=rule)
    assert display.panels == ["error of accepted rows", "zones of the rule"]
    accepted = rule.accept(p[2000:])
    table = display.table
    marked = table["layer"] == "rule"
    assert table["coverage"][marked] == accepted.mean()
    wrong = np.where(p[2000:] > 0.5, "yes", "no") != y[2000:]
    assert table["error"][marked] == pytest.approx(wrong[accepted].mean())
    assert sorted(table["error"][table["layer"] == "limit"]) == [0.05, 0.1]
    zones = table["share"][table["layer"] == "zones"]
    assert zones.sum() == pytest.approx(1)
    assert zones[1] == pytest.approx(1 - accepted.mean())
    ends = [table[name][table["layer"] == "zones"] for name in ("left", "right")]
    assert ends[0][1] == pytest.approx(1 - rule.threshold[0])
    assert ends[0][2] == pytest.approx(rule.threshold[1])
    texts = [text.get_text() for text in display.axes_[1].get_legend().get_texts()]
    assert [text.partition(":")[0] for text in texts] == [
        "accept as no",
        "a person",
        "accept as yes",
    ]


def test_of_a_calibrator_and_with_a_single_threshold():
    y, p = draw()
    calibrator = IRPCalibrator().fit(p[:700], y[:700])
    Q = calibrator.predict_proba(p[700:])
    rule = acceptance_rule(y[700:], Q, max_error=0.2, action="top", labels=["no", "yes"])
    display = RiskCoverageDisplay.from_estimator(calibrator, p[700:], y[700:], rule=rule)
    assert len(display.axes_) == 1
    assert set(display.frame()["series"]) == {"before", "after", "rule"}


def test_rules_that_cannot_be_drawn():
    y, p = draw()
    with pytest.raises(InputError, match="rule: is float; pass what"):
        RiskCoverageDisplay.from_predictions(y, p, rule=0.9)
    rule = acceptance_rule(y, p, max_error=0.1, score=p, action="positive")
    with pytest.raises(InputError, match="uses scores or segments"):
        RiskCoverageDisplay.from_predictions(y, p, rule=rule)
