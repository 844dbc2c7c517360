"""Variants of growth on a folder of real forecasts.

Prints Markdown tables of the mean test log loss (forecasts clipped at 1e-6), number of bins and fit
time: of every variant on the sets with three and four classes, of every `top` on the sets with more
classes, and of both searches on generated forecasts with a smooth calibration map, all with
constant values. With `--values` it compares constant with tilted values instead, on every second
set of three classes or more and up to 1,500 random calibration rows. A set is a file
dataset-model.npz with probas_cal, labels_cal, probas_test and labels_test.

    python benchmarks/growth.py --arena ../shared/arena
    python benchmarks/growth.py --arena ../shared/arena --values
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import roc_auc_score as auc

from isoroc import BaggedIRPCalibrator, IdentityCalibrator, IRPCalibrator, IsotonicCalibrator
from isoroc._growth import best_first, search
from isoroc._growth.best_first import Growth, Split
from isoroc._maps.top import TopReduction

Data = dict[str, np.ndarray]
FAMILIES = search.families
Changes = dict[tuple[Any, str], Any]
Variant = tuple[str, dict[str, Any], Changes]


def by_gain(_: Growth, split: Split) -> float:
    return split.gain


def by_lift(_: Growth, split: Split) -> float:
    return split.lift


def full_splits_only(classes: tuple[int, ...], **_: object) -> Any:
    return FAMILIES(classes, pairs=False)


VARIANTS: list[Variant] = [
    ("default", {}, {}),
    ('monotonicity="global"', {"monotonicity": "global"}, {}),
    ("monotonicity=None", {"monotonicity": None}, {}),
    ("chosen by the gain M, as in Algorithm 2", {}, {(Growth, "score"): by_gain}),
    ("chosen by the whole lift", {}, {(Growth, "score"): by_lift}),
    ("full splits only", {}, {(search, "families"): full_splits_only}),
    ("no thresholds at points", {}, {(search, "NEAR_VERTEX"): np.inf}),
    ('search="grid"', {"search": "grid"}, {}),
    ("least slack 0.02", {}, {(best_first, "LEAST_SLACK"): {"tree": 0.02}}),
    ("n_starts=8", {"n_starts": 8}, {}),
    ("min_bin_weight=0", {"min_bin_weight": 0}, {}),
    ("min_bin_weight=10", {"min_bin_weight": 10}, {}),
    ("min_bin_weight=40", {"min_bin_weight": 40}, {}),
    ("min_lift=0", {"min_lift": 0}, {}),
    ("min_lift=2", {"min_lift": 2}, {}),
]


def forecasts_alone(top: int, *_: object) -> TopReduction:
    return TopReduction(top, 1e-6)


def generated(n: int, n_classes: int, sharpness: float, spread: float) -> Data:
    """Labels with Dirichlet probabilities, and forecasts that are a power of these."""

    def draw(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        truth = rng.dirichlet(np.full(n_classes, spread), size)
        y = (truth.cumsum(axis=1) > rng.random((size, 1))).argmax(axis=1)
        P = truth**sharpness
        return P / P.sum(axis=1, keepdims=True), y

    (P, y), (P_new, y_new) = draw(n, 0), draw(20_000, 1)
    return {"probas_cal": P, "labels_cal": y, "probas_test": P_new, "labels_test": y_new}


def log_loss(y: np.ndarray, Q: np.ndarray) -> float:
    return float(-np.log(Q[np.arange(len(y)), y].clip(min=1e-6)).mean())


def one_vs_rest(data: Data) -> np.ndarray:
    columns = [
        IsotonicRegression(out_of_bounds="clip")
        .fit(data["probas_cal"][:, k], data["labels_cal"] == k)
        .predict(data["probas_test"][:, k])
        for k in range(data["probas_cal"].shape[1])
    ]
    Q = np.column_stack(columns)
    total = Q.sum(axis=1, keepdims=True)
    return np.where(total > 0, Q / np.where(total > 0, total, 1), 1 / Q.shape[1])


@contextmanager
def patched(changes: Changes) -> Iterator[None]:
    patches = [patch.object(owner, name, value) for (owner, name), value in changes.items()]
    for change in patches:
        change.start()
    try:
        yield
    finally:
        for change in patches:
            change.stop()


def measure(sets: list[Data], **params: Any) -> np.ndarray:
    """Test log loss, number of bins and seconds of each set."""
    found = []
    for data in sets:
        start = perf_counter()
        cal = IRPCalibrator(prior="uniform", random_state=0, values="constant", **params).fit(
            data["probas_cal"], data["labels_cal"]
        )
        took = perf_counter() - start
        loss = log_loss(data["labels_test"], cal.predict_proba(data["probas_test"]))
        found.append((loss, cal.n_bins_, took))
    return np.array(found)


def line(name: str, few: np.ndarray) -> str:
    return f"| {name} | {few[:, 0].mean():.4f} | {few[:, 1].mean():.0f} | {few[:, 2].mean():.3f} |"


Baselines = dict[str, Callable[[Data], np.ndarray]]


def table(title: str, baselines: Baselines, sets: list[Data]) -> None:
    print(f"\n{title} ({len(sets)} sets)\n")
    print("| variant | log loss | bins | seconds |\n|---|---|---|---|")
    for name, forecast in baselines.items():
        losses = [log_loss(data["labels_test"], forecast(data)) for data in sets]
        print(f"| {name} | {np.mean(losses):.4f} | | |")


def auc_of(data: Data, Q: np.ndarray) -> float:
    """Mean AUC of each class that occurs against the rest."""
    y = data["labels_test"]
    seen = [k for k in range(Q.shape[1]) if 0 < np.count_nonzero(y == k) < len(y)]
    return float(np.mean([auc(y == k, Q[:, k]) for k in seen]))


def compare_values(sets: list[Data]) -> None:
    """Tables of test rows: constant and tilted values next to isotonic regression."""
    sets = [data for data in sets if data["probas_cal"].shape[1] > 2][::2]
    for data in sets:
        drawn = np.random.default_rng(0).permutation(len(data["labels_cal"]))[:1500]
        data |= {part: data[part][drawn] for part in ("probas_cal", "labels_cal")}
    for low, high in ((3, 4), (5, 12), (13, 1000)):
        some = [data for data in sets if low <= data["probas_cal"].shape[1] <= high]
        if not some:
            continue
        print(f"\n{low} to {high} classes ({len(some)} sets)\n")
        print("| calibrator | log loss | better than isotonic | AUC | accuracy | seconds |")
        print("|---|---|---|---|---|---|")
        losses: dict[str, np.ndarray] = {}
        for name, calibrator in COMPARED.items():
            found = np.array([_on_test_rows(calibrator, data) for data in some])
            losses[name] = found[:, 0]
            wins = np.count_nonzero(found[:, 0] < losses["isotonic"]) if "isotonic" in losses else 0
            means = found.mean(axis=0)
            measured = f"{means[1]:.4f} | {means[2]:.4f} | {means[3]:.3f}"
            print(f"| {name} | {means[0]:.4f} | {wins} | {measured} |", flush=True)


def _on_test_rows(calibrator: Any, data: Data) -> tuple[float, float, float, float]:
    K, start = data["probas_cal"].shape[1], perf_counter()
    cal = clone(calibrator).fit(data["probas_cal"], data["labels_cal"], labels=range(K))
    took, Q = perf_counter() - start, cal.predict_proba(data["probas_test"])
    y = data["labels_test"]
    return log_loss(y, Q), auc_of(data, Q), float((Q.argmax(axis=1) == y).mean()), took


COMPARED = {
    "uncalibrated": IdentityCalibrator(),
    "isotonic": IsotonicCalibrator(),
    "constant": IRPCalibrator(random_state=0, values="constant"),
    "tilted, the default": IRPCalibrator(random_state=0),
    "tilted, no certificate": IRPCalibrator(random_state=0, monotonicity=None),
    "ten tilted trees": BaggedIRPCalibrator(random_state=0),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--arena", type=Path, required=True)
    parser.add_argument("--values", action="store_true", help="constant against tilted values")
    sets = []
    options = parser.parse_args()
    for path in sorted(options.arena.glob("*.npz")):
        with np.load(path) as data:
            sets.append(dict(data))
    if options.values:
        compare_values(sets)
        return
    baselines = {
        "uncalibrated": lambda data: data["probas_test"],
        "isotonic one-vs-rest": one_vs_rest,
    }
    few = [data for data in sets if data["probas_cal"].shape[1] in (3, 4)]
    table("Three and four classes", baselines, few)
    for name, params, changes in VARIANTS:
        with patched(changes):
            print(line(name, measure(few, **params)), flush=True)
    many = [data for data in sets if data["probas_cal"].shape[1] > 4]
    table("More classes", baselines, many)
    for top in ("auto", 1, 2, 3, None):
        print(line(f"top={top!r}", measure(many, top=top)), flush=True)
    with patched({(TopReduction, "fit"): forecasts_alone}):
        print(line("top=1, the rest by the forecasts alone", measure(many, top=1)), flush=True)
    smooth = [
        generated(n, K, sharpness, spread)
        for n in (500, 3000)
        for K in (3, 4)
        for sharpness in (0.5, 1.0, 2.0)
        for spread in (0.3, 1.0)
    ]
    table("Generated, three and four classes", baselines, smooth)
    print(line("default", measure(smooth)), flush=True)
    coarse = measure(smooth, search="grid", grid_size=16)
    print(line('search="grid", grid_size=16', coarse), flush=True)


if __name__ == "__main__":
    main()
