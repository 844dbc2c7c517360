"""`isoroc rate`: the rate of an outcome from few labels."""

import json

import numpy as np
import polars as pl
import pytest

from isoroc.metrics import estimate_rate


@pytest.fixture
def answers(folder):  # noqa: ARG001
    rng = np.random.default_rng(0)
    right = rng.random(2000) < 0.7
    judge = np.clip(np.where(right, 0.8, 0.4) + 0.15 * rng.normal(size=2000), 0, 1).round(3)
    known = np.arange(2000) % 20 == 0
    system = np.where(np.arange(2000) // 20 % 2, "b", "a")
    labels = [("yes" if r else "no") if k else None for r, k in zip(right, known, strict=True)]
    table = pl.DataFrame({"system": system, "judge": judge, "correct": labels})
    table.write_csv("answers.csv")
    return table.with_columns(right=right, known=known)


OPTIONS = ["answers.csv", "--label", "correct", "--probs", "judge"]


def test_the_command_gives_what_the_function_gives(answers, run_cli):
    ran = run_cli("rate", *OPTIONS, "--json")
    assert ran.code == 0, ran.err
    result = json.loads(ran.out)
    assert result["outcome"] == "yes"
    known = answers["known"].to_numpy()
    y = answers["right"].to_numpy()
    p = answers["judge"].to_numpy()
    expected = estimate_rate(y[known], p[known], p[~known])
    (found,) = result["rates"]
    assert found["rate"]["value"] == pytest.approx(expected.value)
    assert found["rate"]["low"] == pytest.approx(expected.low)
    assert found["difference"] is None


def test_groups_have_rates_and_differences(answers, run_cli):  # noqa: ARG001
    ran = run_cli("rate", *OPTIONS, "--by", "system", "--json")
    first, second = json.loads(ran.out)["rates"]
    gap = second["rate"]["value"] - first["rate"]["value"]
    assert second["difference"][0] == pytest.approx(gap)
    shown = run_cli("rate", *OPTIONS, "--by", "system").out.decode()
    assert "difference to a" in shown
    assert f"{gap:+.3f}" in shown


def test_the_outcome_of_interest_can_be_named(answers, run_cli):  # noqa: ARG001
    rates = [
        json.loads(run_cli("rate", *OPTIONS, "--json", *more).out)["rates"][0]["rate"]["value"]
        for more in ([], ["--classes", "yes,no"])
    ]
    assert sum(rates) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--where", "correct IS NOT NULL"], "no rows without a label"),
        (["--probs", "system"], "2 columns"),
        (["--by", "sytem"], "system"),
        (["--weight", "judge"], "equal weight"),
        (["--classes", "yes,never"], "expected two"),
    ],
)
def test_errors_say_what_to_change(answers, run_cli, words, message):  # noqa: ARG001
    ran = run_cli("rate", *OPTIONS, *words)
    assert ran.code == 2
    assert message in ran.err


def test_a_score_that_is_not_a_number_is_named_with_its_row(answers, run_cli):  # noqa: ARG001
    ran = run_cli("rate", "answers.csv", "--label", "correct", "--probs", "system")
    assert ran.code == 2
    assert "answers.csv" in ran.err
    assert "not a number" in ran.err
