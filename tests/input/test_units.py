"""In which unit forecasts are: what users say, what is refused, and what messages recommend."""

import inspect
import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax

import isoroc
from isoroc import (
    AutoCalibrator,
    Counts,
    InputError,
    IRPCalibrator,
    IsotonicCalibrator,
    TemperatureCalibrator,
    decisions,
    evaluate,
    metrics,
)
from isoroc._input import Sample
from zoo import KINDS, make, takes_classes

RNG = np.random.default_rng(0)
Z = 2 * RNG.normal(size=800)
P = expit(Z)
Y = RNG.random(800) < P
LOGITS = 2 * RNG.normal(size=(600, 3))
P3 = softmax(LOGITS, axis=1)
Y3 = (LOGITS + RNG.gumbel(size=LOGITS.shape)).argmax(axis=1)
ONE_COLUMN = {"percent": 100 * P, "log_probability": np.log(P)}
COLUMNS = {"percent": 100 * P3, "proportion": 7 * P3, "log_probability": np.log(P3)}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("unit", ONE_COLUMN)
def test_scores_of_two_classes_in_other_units(name, unit, tmp_path):
    same: Any = (P, "probability") if unit == "percent" else (Z, "logit")
    plain = make(name).fit(same[0], Y, unit=same[1])
    other = make(name).fit(ONE_COLUMN[unit], Y, unit=unit)
    assert (other.unit_, plain.unit_) == (unit, same[1])
    np.testing.assert_allclose(
        other.predict_proba(ONE_COLUMN[unit]), plain.predict_proba(same[0]), atol=1e-6
    )
    other.save(tmp_path / "m.json")
    loaded = isoroc.load(tmp_path / "m.json")
    assert loaded.unit_ == unit
    np.testing.assert_array_equal(
        loaded.predict_proba(ONE_COLUMN[unit]), other.predict_proba(ONE_COLUMN[unit])
    )


@pytest.mark.parametrize("name", [name for name in KINDS if takes_classes(name, 3)])
@pytest.mark.parametrize("unit", COLUMNS)
def test_columns_in_other_units(name, unit):
    plain = make(name).fit(P3, Y3)
    other = make(name).fit(COLUMNS[unit], Y3, unit=unit)
    assert other.unit_ == unit
    atol = 2e-3 if unit == "log_probability" else 1e-6
    np.testing.assert_allclose(
        other.predict_proba(COLUMNS[unit]), plain.predict_proba(P3), atol=atol
    )


@pytest.mark.parametrize(("unit", "forecasts", "y"), [
    *((unit, forecasts, Y) for unit, forecasts in ONE_COLUMN.items()),
    *((unit, forecasts, Y3) for unit, forecasts in COLUMNS.items()),
])  # fmt: skip
def test_evaluations_and_counts_know_the_units(unit, forecasts, y):
    plain = P if forecasts.ndim == 1 else P3
    found = evaluate(y, forecasts, unit=unit)
    if unit != "log_probability" or forecasts.ndim == 2:
        expected = evaluate(y, plain)
        for measure in ("log_loss", "brier_score_loss"):
            assert found[measure, "before"] == pytest.approx(expected[measure, "before"])
    given: Any = ((plain, "probability"), (forecasts, unit))
    counts = [Counts.from_arrays(values, y, unit=scores, resolution=16) for values, scores in given]
    np.testing.assert_allclose(
        counts[1].class_weights.sum(axis=0), counts[0].class_weights.sum(axis=0)
    )
    np.testing.assert_allclose(
        (counts[1].forecasts.T @ counts[1].rows), (counts[0].forecasts.T @ counts[0].rows)
    )


@pytest.mark.parametrize("name", [name for name in KINDS if takes_classes(name, 3)])
def test_minus_infinity_is_the_logarithm_of_0(name):
    zeros = np.where(P3 < 0.02, 0.0, P3)
    zeros /= zeros.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        logs = np.log(zeros)
    plain = make(name).fit(zeros, Y3)
    other = make(name).fit(logs, Y3, unit="log_probability")
    np.testing.assert_allclose(other.predict_proba(logs), plain.predict_proba(zeros), atol=1e-6)


def test_minus_infinity_that_cannot_be_read():
    with pytest.raises(InputError, match="row 1 holds -infinity only"):
        TemperatureCalibrator().fit(
            [[0.0, -1.0], [-np.inf, -np.inf]], [0, 1], unit="log_probability"
        )
    with pytest.raises(InputError, match=r"row 1 is -infinity; .* Replace -infinity by a bound"):
        TemperatureCalibrator().fit([-0.1, -np.inf], [1, 0], unit="log_probability")


@pytest.mark.parametrize(
    ("given", "meant"), [("logits", "logit"), ("logprob", "log_probability"), ("%", None)]
)
def test_units_that_are_misspelled(given, meant):
    with pytest.raises(InputError, match=f"got '{given}'") as caught:
        TemperatureCalibrator().fit(P3, Y3, unit=given)
    assert str(caught.value).endswith(f"Did you mean '{meant}'?" if meant else f"got '{given}'.")


def test_rounded_rows_are_proportions():
    rounded = np.round(P3, 2)
    with pytest.raises(InputError, match=r'divide each row by its sum.*pass unit="proportion"'):
        TemperatureCalibrator().fit(rounded, Y3)
    with pytest.raises(InputError, match=r"not to 1; divide each row by its sum\.$"):
        metrics.log_loss(Y3, rounded)
    calibrator = TemperatureCalibrator().fit(rounded, Y3, unit="proportion")
    expected = TemperatureCalibrator().fit(rounded / rounded.sum(axis=1, keepdims=True), Y3)
    np.testing.assert_allclose(calibrator.temperature_, expected.temperature_)
    with pytest.raises(InputError, match=r'look like percentages: .* pass unit="percent"'):
        TemperatureCalibrator().fit(100 * P3, Y3)
    with pytest.raises(InputError, match=r"row \d+ sums to .*, not to 100; .*proportion"):
        TemperatureCalibrator().fit(np.round(100 * P3), Y3, unit="percent")
    with pytest.raises(InputError, match="row 0 sums to 0"):
        TemperatureCalibrator().fit(np.zeros((600, 3)), Y3, unit="proportion")


# What can hardly be log odds


@pytest.mark.parametrize(("scores", "recommended"), [
    (100 * P, "percent"), (np.round(100 * P), "percent"), (np.round(100 * P, 1), "percent"),
    (np.log(P), "log_probability"), (np.round(10 * P), "rank"), (np.ceil(5 * P), "rank"),
    (np.ceil(10 * P) / 2, "rank"), (300 + 550 * P, "rank"), (np.round(300 + 550 * P), "rank"),
    (-300 * (1.2 - P), "rank"),
])  # fmt: skip
def test_scores_that_can_hardly_be_log_odds_are_refused(scores, recommended):
    with pytest.raises(InputError, match=f'unit="logit", .*unit="{recommended}"'):
        AutoCalibrator().fit(scores, Y)
    with pytest.raises(InputError, match=f'unit="{recommended}"'):
        Counts.from_arrays(scores, Y)
    assert TemperatureCalibrator().fit(scores, Y, unit="logit").unit_ == "logit"
    kind = TemperatureCalibrator if recommended != "rank" else IsotonicCalibrator
    assert kind().fit(scores, Y, unit=recommended).unit_ == recommended
    assert IRPCalibrator().fit(scores, Y).unit_ == "logit"  # only the order counts


def test_ranks_are_for_calibrators_that_use_only_the_order():
    with pytest.raises(InputError, match=r"unit: .*AutoCalibrator uses more than the order"):
        AutoCalibrator().fit(np.ceil(5 * P), Y, unit="rank")
    with pytest.raises(InputError, match=r"unit: expected one of .*; got 'rank'"):
        IsotonicCalibrator().fit(P3, Y3, unit="rank")
    with pytest.raises(InputError, match=r"unit: expected one of .*; got 'proportion'"):
        IsotonicCalibrator().fit(P, Y, unit="proportion")


def log_odds(seed):
    """Log odds as models make them, and outcomes of which they may be far off."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([20, 50, 300, 3000]))
    shape = {
        "normal": lambda: rng.normal(size=n),
        "laplace": lambda: rng.laplace(size=n),
        "uniform": lambda: rng.uniform(-1.7, 1.7, n),
        "tree": lambda: rng.choice(rng.normal(size=7), n),
        "bimodal": lambda: rng.choice([-1, 1], n) + 0.3 * rng.normal(size=n),
    }[str(rng.choice(["normal", "laplace", "uniform", "tree", "bimodal"]))]()
    z = rng.choice([-7, -5, -3, -1, 0, 1, 3, 5, 7]) + rng.choice([0.3, 1, 2, 5, 20]) * shape
    truth = z * rng.choice([0.5, 1, 2]) + rng.choice([-1, 0, 1])
    z = (z, np.round(z, 1), np.round(z, 2), z.astype(np.float32))[rng.integers(4)]
    return z, rng.random(n) < expit(truth)


def test_log_odds_are_not_refused():
    tried = refused = 0
    for seed in range(1500):
        z, y = log_odds(seed)
        if 0 < y.sum() < len(y):
            tried += 1
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    Counts.from_arrays(z, y)
                except InputError:
                    refused += 1
    assert tried > 1000
    assert refused == 0


@pytest.mark.parametrize("scores", [
    np.r_[Z, -8.0], RNG.integers(-128, 128, 800).astype(float), np.sign(P - 0.5),
    4 + RNG.normal(size=800), -4 + RNG.normal(size=800), 200 * Z, np.log(P / (1 - P)) - 3,
])  # fmt: skip
def test_plausible_log_odds_are_read_without_a_word(scores):
    y = RNG.random(len(scores)) < expit(scores)
    assert TemperatureCalibrator().fit(scores, y).unit_ == "logit"


def test_scores_on_one_side_that_contradict_the_outcomes_warn():
    about = r"every forecast is then at least 0\.5, but the rate"
    with pytest.warns(UserWarning, match=about) as caught:
        TemperatureCalibrator().fit(10 * P, np.random.default_rng(0).random(800) < P / 2)
    assert [warning.filename for warning in caught] == [__file__]  # the line that called `fit`
    likely = np.random.default_rng(0).random(800) > P / 2
    with pytest.warns(UserWarning, match=r"every forecast is then at most 0\.5, but the rate"):
        TemperatureCalibrator().fit(-10 * P, likely)
    TemperatureCalibrator().fit(0.9 - 10 * P, likely)  # some forecasts are above 0.5


# Forecasts in another unit than in fit


@pytest.mark.parametrize("loaded", [False, True])
def test_probabilities_for_a_calibrator_of_another_unit_warn(loaded, tmp_path):
    def read(calibrator):
        calibrator.save(tmp_path / "m.json")
        return isoroc.load_map(tmp_path / "m.json") if loaded else calibrator

    of_columns = read(TemperatureCalibrator().fit(LOGITS, Y3, unit="logit"))
    of_scores = read(TemperatureCalibrator().fit(Z, Y))
    of_percent = read(TemperatureCalibrator().fit(100 * P, Y, unit="percent"))
    for calibrator, right, wrong in (
        (of_columns, LOGITS, P3), (of_scores, Z, P), (of_percent, 100 * P, P),
    ):  # fmt: skip
        calibrator.predict_proba(right)
        calibrator.predict_proba(right[:1])
        with pytest.warns(UserWarning, match=r"must be in the same unit as in fit"):
            calibrator.predict_proba(wrong)
    of_scores.predict_proba(P[:5])  # a few log odds may lie in [0, 1]
    with pytest.raises(InputError, match=r'P: row \d+ is .* For log odds fit with unit="logit"'):
        read(TemperatureCalibrator().fit(P, Y)).predict_proba(Z)
    with pytest.warns(UserWarning, match="sum to one in each row"):
        TemperatureCalibrator().fit(P3, Y3, unit="logit")


# Messages

WRONG = {
    "rounded": (np.round(P3, 2), Y3),
    "percent": (100 * P3, Y3),
    "logits": (LOGITS, Y3),
    "log odds": (Z, Y),
    "scores in percent": (100 * P, Y),
    "swapped": (Y3, P3),
    "swapped scores": (Y.astype(int), P),
    "swapped texts": (np.where(Y, "yes", "no"), P),
    "duplicate columns": (pd.DataFrame(P3, columns=["a", "b", "a"]), Y3),
    "an id": (np.column_stack([np.arange(600), P3]), Y3),
    "ragged": ([[0.5, 0.5], [1.0]], [0, 1]),
    "NaN": (np.where(P3 > 0.9, np.nan, P3), Y3),
    "an absent class": (P3, np.minimum(Y3, 1)),
    "one-hot": (P3, np.eye(3)[Y3]),
    "several labels": (expit(LOGITS), LOGITS > 0),
    "lists of labels": (P3, [["a"], ["a", "b"]] * 300),
    "sets of labels": (P3, [{"a"}, {"a", "b"}] * 300),
    "soft labels": (P3, P3[::-1]),
    "soft labels of two classes": (P, P[::-1]),
    "one-vs-rest": (expit(LOGITS), Y3),
    "mappings": ([dict(zip("abc", row, strict=True)) for row in P3], Y3),
    "infinite logarithms": (np.where(P3[0].max() > P3, -np.inf, np.log(P3)), Y3),
}
FUNCTIONS = {
    "fit": lambda P, y: TemperatureCalibrator().fit(P, y),
    "predict_proba": lambda P, _: TemperatureCalibrator().fit(P3, Y3).predict_proba(P),
    "from_arrays": Counts.from_arrays,
    "evaluate": lambda P, y: evaluate(y, P),
    "log_loss": lambda P, y: metrics.log_loss(y, P),
    "calibration_error": lambda P, y: metrics.calibration_error(y, P),
    "roc_curve": lambda P, y: metrics.roc_auc(y, P),
    "decide": lambda P, _: decisions.decide(P, 1 - np.eye(3)),
}
SIGNATURES: dict[str, Any] = {
    "fit": TemperatureCalibrator.fit,
    "predict_proba": TemperatureCalibrator.predict_proba,
    "from_arrays": Counts.from_arrays,
    "evaluate": evaluate,
    "log_loss": metrics.log_loss,
    "calibration_error": metrics.calibration_error,
    "roc_curve": metrics.roc_auc,
    "decide": decisions.decide,
}


@pytest.mark.parametrize("called", FUNCTIONS)
@pytest.mark.parametrize("case", WRONG)
def test_messages_recommend_only_arguments_that_the_function_has(called, case):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            FUNCTIONS[called](*WRONG[case])
        except InputError as error:
            text = str(error).replace("softmax(logits, axis=1)", "")
        else:
            return
    own = inspect.signature(SIGNATURES[called]).parameters
    of_fit = re.findall(r"fit with (\w+)=", text)
    recommended = set(re.findall(r"(\w+)=", text)) - set(of_fit)
    assert recommended <= set(own), text
    assert set(of_fit) <= set(inspect.signature(TemperatureCalibrator.fit).parameters)


CURABLE = ["rounded", "percent", "logits", "scores in percent", "one-vs-rest"]


@pytest.mark.parametrize("case", CURABLE)
def test_what_messages_recommend_works(case):
    forecasts, y = WRONG[case]
    with pytest.raises(InputError) as caught:
        AutoCalibrator().fit(forecasts, y)
    for unit in re.findall(r'unit="(\w+)"', caught.value.fix):
        kind = IsotonicCalibrator if unit == "rank" else TemperatureCalibrator
        assert kind().fit(forecasts, y, unit=unit).unit_ == unit


@pytest.mark.parametrize(("case", "words"), [
    ("swapped", "the two arguments are swapped"),
    ("swapped scores", "the two arguments are swapped"),
    ("swapped texts", "the two arguments are swapped"),
    ("duplicate columns", "P: several columns have the same name"),
    ("ragged", "its rows have different numbers of entries"),
    ("several labels", r"y: row \d+ sums to .* use MultiLabelCalibrator"),
    ("lists of labels", r"y: .* several labels per row \(multi-label\) .* MultiLabelCalibrator"),
    ("sets of labels", r"y: .* several labels per row \(multi-label\) .* MultiLabelCalibrator"),
    ("soft labels of two classes", r"y: .* are soft labels. Pass one column for each class"),
    ("one-vs-rest", "P: row 0 sums to .* Divide one-vs-rest scores by their sum"),
    ("mappings", r"P: is a mapping, or a list of mappings, .* pass pandas\.DataFrame\(P\)"),
    ("infinite logarithms", 'P: row 0 holds -infinity; .* pass unit="log_probability"'),
])  # fmt: skip
def test_mistakes_are_named(case, words):
    with pytest.raises(InputError, match=words):
        TemperatureCalibrator().fit(*WRONG[case])


def test_ragged_costs():
    with pytest.raises(InputError, match=r"^costs: its rows have different numbers of entries"):
        decisions.decide(P3, [[0, 1], [1], [1, 0]])


@pytest.mark.parametrize("unit", ["probability", "logit"])
def test_a_single_column_decides_for_the_likelier_class(unit):
    p = np.array([0.0, 0.49, 0.5, 0.51, 1.0])
    scores = p if unit == "probability" else np.array([-9.0, -0.04, 0.0, 0.04, 9.0])
    sample = Sample(scores, np.zeros(5, dtype=np.uint8), unit=unit)
    assert sample.decisions().tolist() == [0, 0, 0, 1, 1]  # the first class on ties


@pytest.mark.parametrize(
    ("scores", "warns"),
    [
        (np.linspace(0, 1, 20), True),
        (np.linspace(-0.001, 1, 20), False),
        (np.linspace(0, 1.001, 20), False),
        (np.linspace(0, 1, 19), False),
    ],
)
def test_log_odds_that_may_be_probabilities(scores, warns):
    """A warning if 20 or more scores reach from 0 to 1, both included, and no farther."""
    rng = np.random.default_rng(0)
    z = np.append(rng.uniform(-2, 2, 198), [-2.0, 2.0])
    y = rng.random(200) < 1 / (1 + np.exp(-z))
    calibrator = isoroc.SigmoidCalibrator().fit(z, y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        calibrator.predict_proba(scores)
    texts = [str(each.message)[:38] for each in caught]
    assert texts == ['P: forecasts are read as unit="logit",'] * warns
