"""Tables for the tests of engines."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from isoroc import SegmentCalibrator, TemperatureCalibrator

#: Columns of categories, with a shift of each, in the types that Python has.
CATEGORIES: dict[str, list[Any]] = {
    "boolean": [True, False],
    "number": [1, 2, 30],
    "text": ["North", "S\u00fcd", "o'hara"],
    "digits": ["01", "1.0", "2"],
}
#: The same and others, as columns of other tables have them, next to the type of the column.
TYPED: dict[str, list[tuple[str, list[Any]]]] = {
    "boolean": [("int", [1, 0, 2]), ("text", ["true", "False", "no"]), ("float", [1.0, 0.0, 2.0])],
    "number": [
        ("float", [1.0, 2.0, 30.0, 4.0]),
        ("text", ["1", "2.0", "30.00", "north", "-", ""]),
        ("decimal", [1, 2, 30, 4]),
    ],
    "text": [("text", ["North", "north", "S\u00fcd", "Sud", "North ", "o'hara", "O'hara"])],
    "digits": [("text", ["01", "1.0", "2", "1", "2.0", "2.5"]), ("float", [2.0, 3.0])],
}
CASES = [(name, kind) for name, columns in TYPED.items() for kind, _ in columns]


class Segmented(NamedTuple):
    """A calibrator of segments, and rows for it."""

    calibrator: SegmentCalibrator
    p: np.ndarray
    segments: dict[str, list[Any]]


@cache
def fit_categories(name):
    """A calibrator for a column of categories, and for one of numbers."""
    rng = np.random.default_rng(0)
    n = 900
    levels = np.array(CATEGORIES[name])
    place = rng.integers(len(levels), size=n)
    p = rng.random(n)
    age = rng.uniform(18, 80, n).round(1)
    y = rng.random(n) < p ** (np.array([0.3, 1.0, 3.0])[place] * np.where(age < 50, 0.5, 2.0))
    calibrator = SegmentCalibrator(TemperatureCalibrator(), categorical=["code"])
    return calibrator.fit(p, y, segments={"code": levels[place], "age": age})


def typed_rows(name, kind):
    """Rows of a table whose column of categories has a type, and numbers that may be missing."""
    calibrator = fit_categories(name)
    assert calibrator.columns_.tolist() == ["code", "age"]
    values = dict(TYPED[name])[kind]
    ages = [20.0, 60.0, None, np.inf, -np.inf]
    codes = [*values, None]
    p = np.linspace(0.1, 0.9, len(codes) * len(ages))
    segments = {"code": codes * len(ages), "age": [age for age in ages for _ in codes]}
    return Segmented(calibrator, p, segments)


def make_columns(K, n=4000, seed=0):
    """Forecasts, labels, weights and keys as columns."""
    rng = np.random.default_rng(seed)
    P = rng.random((n, 1)) if K == 1 else rng.dirichlet(np.full(K, 0.3), n)
    P[:50] = P[:50].round(1)
    if K > 1:
        P[:50] /= P[:50].sum(axis=1, keepdims=True)
    labels = np.array([f"c{k:02}" for k in range(max(K, 2))])
    columns = {f"p{k}": P[:, k] for k in range(K)}
    columns["y"] = labels[rng.integers(0, len(labels), n)]
    columns["w"] = rng.integers(0, 5, n) / 2
    columns["key"] = rng.integers(-(10**12), 10**12, n)
    return P, columns
