"""A fitted calibrator of every kind, on data of every shape."""

from functools import cache

import numpy as np
from hypothesis import strategies as st

from isoroc import HistogramCalibrator, IRPCalibrator
from isoroc._calibrators.load import kinds
from strategies import binary_data, labelled_forecasts

#: Every public calibrator, as few rows and little time as its kind allows.
KINDS = kinds()
BAGGED = {"n_trees": 2, "random_state": 0}
MEMBERS = [
    KINDS["IdentityCalibrator"](),
    KINDS["TemperatureCalibrator"](),
    KINDS["IsotonicCalibrator"](),
    KINDS["BaggedIRPCalibrator"](IRPCalibrator(top=None), **BAGGED),
]
FAST = {
    "BaggedIRPCalibrator": BAGGED,
    "AutoCalibrator": {"members": MEMBERS, "cv": 2, "random_state": 0},
    "RecursiveBinningCalibrator": {"depth": 2},
    "SplineCalibrator": {"n_knots": 2},
}

#: Kinds whose maps need no function that libraries compute differently in the last digit.
EXACT = {
    "BaggedIRPCalibrator",
    "HistogramCalibrator",
    "IRPCalibrator",
    "IsotonicCalibrator",
    "RecursiveBinningCalibrator",
    "VennAbersCalibrator",
}

#: What forecasts look like: number of columns, 1 for log odds and "p" for one probability.
SHAPES = (1, "p", 2, 3, 5)


def make(name, **parameters):
    return KINDS[name](**FAST.get(name, {}) | parameters)


def takes(name, shape):
    return KINDS[name] is not HistogramCalibrator or shape in (1, "p", 2)


CASES = [(name, shape) for name in KINDS for shape in SHAPES if takes(name, shape)]


def forecasts(shape, n, seed=0):
    """Random forecasts of a shape, confident and timid ones."""
    rng = np.random.default_rng(seed)
    if shape in (1, "p"):
        odds = rng.normal(scale=3, size=(n, 1))
        return odds if shape == 1 else 1 / (1 + np.exp(-odds))
    P = rng.dirichlet(np.ones(shape), n) ** rng.choice([0.3, 1, 3], size=(n, 1))
    return P / P.sum(axis=1, keepdims=True)


@cache
def fitted(name, shape, n=150, **parameters):
    """A calibrator of a kind for forecasts of a shape."""
    P = forecasts(shape, n, seed=1)
    K = max(P.shape[1], 2)
    chance = P if K > 2 or P.shape[1] == 2 else np.column_stack([P < 0.5, P >= 0.5])
    chance = (0.2 / K + 0.8 * chance / chance.sum(axis=1, keepdims=True)).cumsum(axis=1)
    y = (chance > np.random.default_rng(2).random((n, 1))).argmax(axis=1)
    return make(name, **parameters).fit(P, y)


@st.composite
def fitted_calibrators(draw, name):
    """A calibrator of a kind, fitted to drawn data, and rows to try it on: those and others."""
    mixture = name == "AutoCalibrator"  # too few scores may look like probabilities in a fold
    if KINDS[name] is HistogramCalibrator or (not mixture and draw(st.booleans())):
        scores, y, weights = draw(binary_data(max_rows=25))
        P = np.clip(scores, -1e12, 1e12).reshape(-1, 1)
    else:
        P, y, weights = draw(labelled_forecasts(max_rows=25))
    parameters = {}
    if issubclass(KINDS[name], IRPCalibrator):
        parameters["pseudocount"] = draw(st.sampled_from([0.0, 0.1, 1.0]))
        parameters["monotonicity"] = draw(st.sampled_from(["tree", "global", None]))
        parameters["min_bin_weight"] = draw(st.sampled_from([0, 2]))
    return make(name, **parameters).fit(P, y, sample_weight=weights), P


def on_thresholds(calibrator):
    """Forecasts that lie exactly on the borders of bins, and a step to either side."""
    scores = calibrator.n_features_in_ == 1
    K = len(calibrator.classes_)
    trees = getattr(calibrator, "trees_", [getattr(calibrator, "tree_", None)])
    rows = []
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
        return P[(P >= 0).all(axis=1) & (P <= 1).all(axis=1)] if _unit(calibrator) else P
    return P[(P >= 0).all(axis=1) & (np.abs(P.sum(axis=1) - 1) < 1e-9)]


def _unit(calibrator):
    return getattr(calibrator, "log_odds_", None) is False
