import numpy as np
import pytest

from isoroc import AutoCalibrator, InputError, IsotonicCalibrator, evaluate
from isoroc.plots import GroupsDisplay, LearningCurveDisplay, MembersDisplay


def data(n):
    rng = np.random.default_rng(0)
    p = rng.random(n)
    return p, rng.random(n) < p**2


def test_members_are_those_of_the_calibrator(make_axes):
    calibrator = AutoCalibrator(random_state=0).fit(*data(400))
    display = MembersDisplay.from_estimator(calibrator, ax=make_axes())
    table = calibrator.member_scores_
    weight, gain = (layer.data for layer in display.layers)
    np.testing.assert_array_equal(weight["value"], table["weight"][:-1])
    np.testing.assert_allclose((gain["low"] + gain["high"]) / 2, table["gain"])
    assert display.names[-1] == "mixture"
    assert display.axes_[0].get_title() == f"verdict: {calibrator.verdict_.decision}"
    with pytest.raises(InputError, match="IsotonicCalibrator has no members"):
        MembersDisplay.from_estimator(IsotonicCalibrator())


def test_groups_are_those_of_the_evaluation(make_axes):
    p, y = data(600)
    region = np.where(np.arange(600) % 3, "south", "north")
    result = evaluate(y, p, p**2, groups=region, n_resamples=0)
    display = GroupsDisplay.from_evaluation(result, measure="brier_score_loss", ax=make_axes())
    assert display.names == ["all rows (600)", "south (400)", "north (200)"]
    changes = [
        part.measures["brier_score_loss"]["change"]
        for part in (result, result.groups["south"], result.groups["north"])
    ]
    for name, expected in zip(("value", "low", "high"), zip(*changes, strict=True), strict=True):
        np.testing.assert_array_equal(display.layers[0].data[name], expected)
    assert display.axes_[0].get_xlabel() == "change of the Brier score\n(below 0 is better)"
    with pytest.raises(InputError, match="evaluation: has no groups"):
        GroupsDisplay.from_evaluation(evaluate(y, p, p**2, n_resamples=0))
    with pytest.raises(InputError, match="measure"):
        GroupsDisplay.from_evaluation(result, measure="beauty")


def test_learning_curve_ends_at_the_loss_of_all_rows(make_axes):
    p, y = data(900)
    new = (p[400:], y[400:])
    display = LearningCurveDisplay.from_estimator(
        IsotonicCalibrator(), p[:400], y[:400], test=new, ax=make_axes()
    )
    line, before = (layer.data for layer in display.layers)
    assert line["rows"].tolist() == [50, 100, 200, 400]
    fitted = IsotonicCalibrator().fit(p[:400], y[:400])
    result = evaluate(y[400:], p[400:], fitted, n_resamples=0)
    assert line["value"][-1] == pytest.approx(result["log_loss", "after"])
    assert before["value"][0] == pytest.approx(result["log_loss", "before"])
    assert display.verdict == result.verdict
    assert (line["low"] <= line["value"] + 1e-12).all()
    assert line["value"][-1] < line["value"][0]
    far = LearningCurveDisplay.from_estimator(
        IsotonicCalibrator(), p[:400], y[:400], test=(p[400:] ** 60, y[400:]), ax=make_axes()
    )
    assert "off the scale" in far.ax_.get_legend().get_texts()[1].get_text()
    with pytest.raises(InputError, match=r"sizes: got .*; expected numbers from 2 to 400"):
        LearningCurveDisplay.from_estimator(
            IsotonicCalibrator(), p[:400], y[:400], test=new, sizes=[10, 500]
        )


def test_learning_curve_of_a_rare_class(make_axes):
    rng = np.random.default_rng(0)
    p = rng.random(4000) / 50
    y = np.where(rng.random(4000) < p, "a", "b")
    P = np.column_stack([1 - p, p])
    options = {"test": (P, y), "labels": ["b", "a"], "ax": make_axes()}
    display = LearningCurveDisplay.from_estimator(IsotonicCalibrator(), P, y, **options)
    assert display.layers[0].data["rows"].tolist() == [1000, 2000, 4000]
    options["ax"] = make_axes()
    display = LearningCurveDisplay.from_estimator(
        IsotonicCalibrator(), P, y, sizes=[2, 4000], **options
    )
    assert display.layers[0].data["rows"][-1] == 4000  # draws of two rows may have one class only
    with pytest.raises(InputError, match="have one class only"):
        LearningCurveDisplay.from_estimator(IsotonicCalibrator(), P, y, sizes=[2], **options)
