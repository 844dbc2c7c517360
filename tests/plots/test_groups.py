import numpy as np
import pytest

from isoroc import InputError, evaluate
from isoroc.plots import GroupsDisplay


def data(n):
    rng = np.random.default_rng(0)
    p = rng.random(n)
    return p, rng.random(n) < p**2


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
