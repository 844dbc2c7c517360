"""A fitted calibrator of every kind, on forecasts of every shape."""

import dataclasses
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags

import isoroc
from formulas import is_rounded
from isoroc import IRPCalibrator
from strategies import binary_data, labelled_forecasts

#: Every public calibrator of classes by its name. `MultiLabelCalibrator` is not one of them.
KINDS = {
    name: getattr(isoroc, name)
    for name in isoroc.__all__
    if name.endswith("Calibrator") and name != "MultiLabelCalibrator"
}
#: Parameters that keep fits short, for those that have them.
SHORT = {
    "random_state": 0,
    "cv": 2,
    "depth": 2,
    "n_knots": 2,
    "n_centres": 8,
    "half_lives": [None, 1000],
    "members": [
        KINDS["IdentityCalibrator"](),
        KINDS["TemperatureCalibrator"](),
        KINDS["IsotonicCalibrator"](),
        IRPCalibrator(top=None, random_state=0),
    ],
}

#: What forecasts look like: log odds, probabilities of the second of two classes, columns of
#: probabilities, columns of logits.
SHAPES: dict[int | str, dict[str, Any]] = {
    1: {"columns": 1, "unit": "logit"},
    "p": {"columns": 1, "unit": "probability"},
    2: {"columns": 2, "unit": "probability"},
    3: {"columns": 3, "unit": "probability"},
    5: {"columns": 5, "unit": "probability"},
    "3 logits": {"columns": 3, "unit": "logit"},
}

#: Learned, but of the calibration rows rather than of the map: documented not to be kept.
NOT_KEPT = {"summary_"}


def make(name, **parameters):
    """An unfitted calibrator that is quick to fit."""
    known = KINDS[name]().get_params(deep=False)
    short = {parameter: value for parameter, value in SHORT.items() if parameter in known}
    if name in {"OnlineCalibrator", "SegmentCalibrator"}:
        short["calibrator"] = KINDS["IsotonicCalibrator"]()
    return KINDS[name](**short | parameters)


def takes_classes(name, n_classes):
    return n_classes == 2 or get_tags(KINDS[name]()).classifier_tags.multi_class


CASES = [
    (name, shape)
    for name in KINDS
    for shape, form in SHAPES.items()
    if takes_classes(name, max(form["columns"], 2))
]


def forecasts(shape, n, seed=0):
    """Random forecasts of a shape, confident and timid ones."""
    form = SHAPES[shape]
    rng = np.random.default_rng(seed)
    if form["columns"] == 1:
        odds = rng.normal(scale=3, size=(n, 1))
        return odds if form["unit"] == "logit" else 1 / (1 + np.exp(-odds))
    P = rng.dirichlet(np.ones(form["columns"]), n) ** rng.choice([0.3, 1, 3], size=(n, 1))
    P /= P.sum(axis=1, keepdims=True)
    return np.log(P) + rng.normal(size=(n, 1)) if form["unit"] == "logit" else P


def probabilities(shape, P):
    """Forecasts of a shape as probabilities with one column per class."""
    if SHAPES[shape]["unit"] == "logit":
        P = np.exp(P if P.shape[1] > 1 else np.column_stack([np.zeros(len(P)), P]))
        return P / P.sum(axis=1, keepdims=True)
    return np.column_stack([1 - P, P]) if P.shape[1] == 1 else P


def draw_labels(P, seed=0):
    """Columns drawn with probabilities that follow the forecasts loosely, all classes included."""
    n, K = P.shape
    chance = (0.2 / K + 0.8 * P).cumsum(axis=1)
    y = (chance > np.random.default_rng(seed).random((n, 1))).argmax(axis=1)
    y[-K:] = range(K)
    return y


@cache
def fitted(name, shape, n=150, **parameters):
    """A calibrator of a kind for forecasts of a shape."""
    P = forecasts(shape, n, seed=1)
    y = draw_labels(probabilities(shape, P), seed=2)
    return make(name, **parameters).fit(P, y, unit=SHAPES[shape]["unit"])


@st.composite
def fitted_calibrators(draw, name):
    """A calibrator of a kind, fitted to drawn data, and the forecasts that it was fitted to."""
    options: dict[str, Any] = {}
    if not takes_classes(name, 3) or draw(st.booleans()):
        scores, y, weights = draw(binary_data(max_rows=25))
        P = np.clip(scores, -1e12, 1e12).reshape(-1, 1)
        inside = ((P >= 0) & (P <= 1)).all()
        options["unit"] = "probability" if inside else "logit"
    else:
        P, y, weights = draw(labelled_forecasts(max_rows=25))
        options["labels"] = range(P.shape[1])
    parameters = {}
    if issubclass(KINDS[name], IRPCalibrator):
        parameters["pseudocount"] = draw(st.sampled_from([0.0, 0.1, 1.0]))
        parameters["monotonicity"] = draw(st.sampled_from(["tree", "global", None]))
        parameters["min_bin_weight"] = draw(st.sampled_from([0, 2]))
        parameters["values"] = draw(st.sampled_from(["tilted", "constant"]))
    return make(name, **parameters).fit(P, y, sample_weight=weights, **options), P


def on_thresholds(calibrator):
    """Forecasts that lie exactly on the borders of bins, and a step to either side."""
    scores = calibrator.n_features_in_ == 1
    K = len(calibrator.classes_)
    if calibrator.unit_ == "logit" and not scores:
        return np.empty((0, K))  # no logits are exactly on the border of probabilities
    trees = getattr(calibrator, "trees_", [getattr(calibrator, "tree_", None)])
    rows: list[Any] = []
    for tree in trees:
        if tree is not None and tree.n_classes == K:
            rows.extend(gamma[1:] if scores else gamma for gamma in tree.thresholds)
    for k, cuts in enumerate(getattr(calibrator, "cuts_", [])):
        for cut in cuts:
            rest = np.full(K, (1 - cut) / (K - 1))
            rest[k if K > 2 else 1] = cut
            rows.append(rest[1:] if scores else rest)
    if not rows:
        return np.empty((0, calibrator.n_features_in_))
    P = np.array(rows)
    P = np.vstack([P, np.nextafter(P, np.inf), np.nextafter(P, -np.inf)])
    if scores:
        inside = (P >= 0).all(axis=1) & (P <= 1).all(axis=1)
        return P[inside] if calibrator.unit_ == "probability" else P
    return P[(P >= 0).all(axis=1) & (np.abs(P.sum(axis=1) - 1) < 1e-9)]


def assert_agrees(calibrator, P, Q):
    """Assert that Q is what `predict_proba` returns, to the last bit where no logarithm is taken.

    Libraries compute logarithms and exponentials differently in the last digit.
    """
    expected = calibrator.predict_proba(P)
    if is_rounded(calibrator.map_):
        np.testing.assert_allclose(Q, expected, rtol=0, atol=1e-12)
    else:
        np.testing.assert_array_equal(Q, expected)


def assert_same(a, b):
    """Equal to the last bit and of the same type, all the way down."""
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    elif isinstance(a, BaseEstimator):
        kept = {k: v for k, v in vars(a).items() if k not in NOT_KEPT}
        assert_same(kept, {k: v for k, v in vars(b).items() if k not in NOT_KEPT})
    elif dataclasses.is_dataclass(a):
        for field in dataclasses.fields(a):
            assert_same(getattr(a, field.name), getattr(b, field.name))
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same(a[key], b[key])
    else:
        assert a == b or (np.isreal(a) and np.isnan(a) and np.isnan(b))
