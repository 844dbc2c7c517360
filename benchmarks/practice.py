"""How often the intervals of decision curves, panels, thresholds and expected metrics cover.

    python benchmarks/practice.py [--quick] [--jobs N] [--repetitions N] [--only PART]

Draws outcomes with known probabilities: forecasts are calibrated, too extreme (log odds times 1.5),
too low (log odds less 0.5) or bent; events are common (a third) or rare (3 %). Prints, for each
setting, how often 95 % intervals cover the truth: of `net_benefit` at six thresholds, of
`calibration_summary`, of `calibration_direction`, and of `threshold_for`. "weeks" draws weeks of
rows without labels whose forecasts have shifted, calibrated by calibrators fitted to other rows,
and counts how often `expected` covers what the labels turn out to give. "drift" does so on
real data that change from year to year: forecasts of employment in Massachusetts, 2015 to 2018,
which ship with the package nannyml (`pip install --no-deps nannyml`, or --data with its folder
datasets/data).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit, logit
from scipy.stats import rankdata
from threadpoolctl import threadpool_limits

from isoroc import AutoCalibrator, InputError, IsotonicCalibrator, TemperatureCalibrator
from isoroc.decisions import net_benefit, threshold_for
from isoroc.metrics import calibration_direction, calibration_summary, expected

Array = np.ndarray
THRESHOLDS = np.array([0.02, 0.05, 0.1, 0.2, 0.5, 0.8])
KINDS: dict[str, Callable[[Array], Array]] = {
    "calibrated": lambda z: z,
    "too extreme": lambda z: z / 1.5,
    "too low": lambda z: z + 0.5,
    "bent": lambda z: z + 0.3 * np.sin(z),
}
RATES = {"common": -0.5, "rare": -4.0}
CALIBRATORS = {
    "temperature": TemperatureCalibrator,
    "isotonic": IsotonicCalibrator,
    "auto": lambda: AutoCalibrator(random_state=0),
}
#: A large sample that stands for the population.
POPULATION = 400_000
Case = tuple[Any, ...]
Result = dict[str, float]


def draw(kind: str, rate: str, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Forecasts and true probabilities."""
    z = rng.normal(RATES[rate], 1.5, n)
    return expit(z), expit(KINDS[kind](z))


def repeat(
    study: Callable[[Array, Array, Array], dict[str, bool]],
    case: Case,
    repetitions: int,
    seed: int,
) -> Result:
    """Share of repetitions in which each interval covers."""
    kind, rate, n = case
    rng = np.random.default_rng([list(KINDS).index(kind), list(RATES).index(rate), n, seed])
    found: dict[str, list[bool]] = {}
    for _ in range(repetitions):
        p, g = draw(kind, rate, n, rng)
        y = rng.random(n) < g
        if y.all() or not y.any():
            continue
        for name, covers in study(y, p, g).items():
            found.setdefault(name, []).append(covers)
    return {name: float(np.mean(covers)) for name, covers in found.items()}


def inside(low: Any, truth: Any, high: Any) -> Any:
    return (low <= truth + 1e-6) & (truth <= high + 1e-6)


def benefit(case: Case, repetitions: int, seed: int) -> Result:
    p, g = draw(*case[:2], POPULATION, np.random.default_rng(0))
    odds = THRESHOLDS / (1 - THRESHOLDS)
    g_mean = g.mean()
    before, after, everyone = (
        np.array(
            [np.mean((q >= t) * (g - (1 - g) * o)) for t, o in zip(THRESHOLDS, odds, strict=True)]
        )
        for q in (p, g, np.ones_like(p))
    )

    def study(y: Array, p: Array, g: Array) -> dict[str, bool]:
        curve = net_benefit(y, p, THRESHOLDS, after=g, labels=[False, True])
        truths = {
            "before": (curve.benefit("before"), before),
            "scaled": (curve.benefit("before", scaled=True), before / g_mean),
            "change": (curve.benefit("after", minus="before"), after - before),
            "after - all": (curve.benefit("after", minus="all"), after - everyone),
        }
        return {
            f"{name} {t:g}": bool(covers)
            for name, (table, truth) in truths.items()
            for t, covers in zip(
                THRESHOLDS, inside(table["low"], truth, table["high"]), strict=True
            )
        }

    return repeat(study, case, repetitions, seed)


def panel(case: Case, repetitions: int, seed: int) -> Result:
    p, g = draw(*case[:2], POPULATION, np.random.default_rng(0))
    z = logit(p)
    shift = brentq(lambda a: np.mean(g - expit(z + a)), -10, 10)

    def loss(b: Array) -> float:
        eta = b[0] + b[1] * z
        return float(np.mean(np.logaddexp(0, eta) - g * eta))

    slope = minimize(loss, [0.0, 1.0]).x[1]

    def study(y: Array, p: Array, g: Array) -> dict[str, bool]:
        table = calibration_summary(y, p, labels=[False, True]).table
        d = np.abs(g - p)
        truth = [g.sum() / p.sum(), shift, slope, d.mean(), np.median(d), np.quantile(d, 0.9)]
        covers = inside(table["low"], np.array([*truth, d.max()]), table["high"])
        covers |= np.isnan(table["low"])
        return dict(zip(table["measure"].tolist(), covers.tolist(), strict=True))

    return repeat(study, case, repetitions, seed)


def direction(case: Case, repetitions: int, seed: int) -> Result:
    p, g = draw(*case[:2], POPULATION, np.random.default_rng(0))
    top = np.maximum(p, 1 - p) - np.where(p > 0.5, g, 1 - g)
    truth = {"top": top.mean(), "class": (p - g).mean()}

    def study(y: Array, p: Array, _: Array) -> dict[str, bool]:
        table = calibration_direction(y, p, labels=[False, True])
        ends = zip(truth.items(), table["low"][[0, 2]], table["high"][[0, 2]], strict=True)
        return {name: bool(inside(low, value, high)) for (name, value), low, high in ends}

    return repeat(study, case, repetitions, seed)


def threshold(case: Case, repetitions: int, seed: int) -> Result:
    p, g = draw(*case[:2], POPULATION, np.random.default_rng(0))
    order = np.argsort(p)
    p, right, wrong = p[order], *(np.cumsum(x[order][::-1])[::-1] for x in (g, 1 - g))
    targets = {"precision": 0.8 if case[1] == "common" else 0.3, "recall": 0.9}
    targets |= {"false_positive_rate": 0.01, "alerts": 0.05}

    def study(y: Array, q: Array, _: Array) -> dict[str, bool]:
        found = {}
        for metric, target in targets.items():
            try:
                report = threshold_for(y, q, metric=metric, target=target, labels=[False, True])
            except InputError:  # out of reach
                continue
            i = min(int(np.searchsorted(p, report.threshold)), len(p) - 1)
            acted = right[i] + wrong[i]
            truth = {"precision": right[i] / acted, "recall": right[i] / right[0]}
            truth |= {"false_positive_rate": wrong[i] / wrong[0], "alerts": acted / len(p)}
            row = report.table["metric"].tolist().index(metric)
            ends = report.table["low"][row], report.table["high"][row]
            found[metric] = bool(inside(ends[0], truth[metric], ends[1]))
        return found

    return repeat(study, case, repetitions, seed)


def observed(y: Array, Q: Array) -> dict[str, float]:
    """The metrics on labels; scikit-learn's functions take longer than all else."""
    K = Q.shape[1]
    matrix = np.bincount(K * y + Q.argmax(axis=1), minlength=K * K).reshape(K, K)
    f1 = 2 * np.diag(matrix) / np.maximum(matrix.sum(axis=0) + matrix.sum(axis=1), 1)
    own = np.bincount(y, minlength=K)
    ranks = rankdata(Q, axis=0)
    sums = np.array([ranks[y == k, k].sum() for k in range(K)])
    auc = (sums - own * (own + 1) / 2) / (own * (len(y) - own))
    return {
        "accuracy": np.trace(matrix) / len(y),
        "f1": f1[1] if K == 2 else f1.mean(),
        "auc": auc.mean(),
        "log_loss": -np.log(np.maximum(Q[np.arange(len(y)), y], np.finfo(float).eps)).mean(),
    }


def weeks(case: Case, repetitions: int, seed: int) -> Result:
    """Ten weeks after each of some calibrations; `alone` leaves out that these are uncertain."""
    name, K, n_cal, n = case
    rng = np.random.default_rng([list(CALIBRATORS).index(name), K, n_cal, n, seed])
    found: dict[str, list[bool]] = {}

    def rows(size: int, concentration: Array) -> tuple[Array, Array]:
        truth = rng.dirichlet(concentration, size)
        P = truth**1.5 / (truth**1.5).sum(axis=1, keepdims=True)
        return (rng.random((size, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1), P

    for _ in range(max(repetitions // 10, 1)):
        y, P = rows(n_cal, np.ones(K))
        if len(np.unique(y)) < K:
            continue
        calibrator = CALIBRATORS[name]().fit(P, y)
        for _ in range(10):
            y, P = rows(n, rng.uniform(0.6, 1.6, K))
            Q = calibrator.predict_proba(P)
            for metric, truth in observed(y, Q).items():
                for kind, calibration in (("", calibrator), (" alone", None)):
                    ends = expected(Q, metric, calibration=calibration, n_draws=200)
                    covers = bool(inside(ends.low, truth, ends.high))
                    found.setdefault(metric + kind, []).append(covers)
    return {name: float(np.mean(covers)) for name, covers in found.items()}


def drift(case: Case, repetitions: int, seed: int) -> Result:
    """Employment in Massachusetts: calibrated on some rows of 2015, chunks of 2016 to 2018."""
    import polars as pl  # noqa: PLC0415

    name, n_cal, n, folder = case
    names = ("reference", "analysis", "analysis_target")
    reference, analysis, target = (
        pl.read_parquet(Path(folder) / f"employment_MA_{part}.pq") for part in names
    )
    analysis = analysis.join(target, on="id")
    rng = np.random.default_rng(seed)
    some = reference[rng.permutation(len(reference))[:n_cal]]
    column = "predicted_probability"
    calibrator = CALIBRATORS[name]().fit(some[column].to_numpy(), some["employed"].to_numpy())
    found: dict[str, list[float]] = {}
    for _, rows in analysis.group_by("year", maintain_order=True):
        chunks = np.array_split(rng.permutation(len(rows)), len(rows) // n)
        for chunk in chunks[: max(repetitions // 3, 1)]:
            part = rows[chunk]
            y, Q = part["employed"].to_numpy(), calibrator.predict_proba(part[column].to_numpy())
            for metric, truth in observed(y, Q).items():
                ends = expected(Q, metric, calibration=calibrator, n_draws=200)
                found.setdefault(metric, []).append(inside(ends.low, truth, ends.high))
                found.setdefault(f"{metric} error", []).append(abs(ends.estimate - truth))
    return {name: float(np.mean(values)) for name, values in found.items()}


def cases(part: str, data: str, *, quick: bool) -> list[Case]:
    if quick and part not in ("weeks", "drift"):
        return list(product(KINDS, RATES, (1000,)))
    if quick and part == "weeks":
        return list(product(("temperature", "isotonic"), (2,), (500,), (200,)))
    if part == "weeks":
        return list(product(CALIBRATORS, (2, 3), (500, 5000), (200, 1000)))
    if part == "drift":
        return list(product(CALIBRATORS, (1000, 20_000), (1000,), (data,))) if data else []
    return list(product(KINDS, RATES, (200, 1000, 5000)))


PARTS = {"benefit": benefit, "panel": panel, "direction": direction, "threshold": threshold}
PARTS |= {"weeks": weeks, "drift": drift}


def run(pool: ProcessPoolExecutor, part: str, chosen: list[Case], repetitions: int) -> list[Result]:
    """Results of the settings, in tasks of 100 repetitions that processes share."""
    tasks = 1 if part == "drift" else max(repetitions // 100, 1)
    units = [(case, repetitions // tasks, seed) for case in chosen for seed in range(tasks)]
    found = list(pool.map(PARTS[part], *zip(*units, strict=True)))
    results = []
    for start in range(0, len(found), tasks):
        some = found[start : start + tasks]
        names = dict.fromkeys(name for result in some for name in result)
        results.append({n: float(np.mean([r[n] for r in some if n in r])) for n in names})
    return results


def find_data() -> str:
    spec = find_spec("nannyml")
    folders = spec.submodule_search_locations if spec else None
    return str(Path(folders[0]) / "datasets" / "data") if folders else ""


def report(part: str, found: dict[Case, Result]) -> None:
    names = list(dict.fromkeys(name for result in found.values() for name in result))
    if part == "benefit":  # one column for each kind of difference, the least over thresholds
        kinds = list(dict.fromkeys(name.rpartition(" ")[0] for name in names))
        found = {
            case: {
                f"{kind}, {end}": pick(v for n, v in result.items() if n.rpartition(" ")[0] == kind)
                for kind in kinds
                for end, pick in (("least", min), ("mean", lambda v: float(np.mean(list(v)))))
            }
            for case, result in found.items()
        }
        names = list(next(iter(found.values())))
    print(f"\n### {part}\n\n| setting | " + " | ".join(names) + " |")
    print("|---" + "| ---: " * len(names) + "|")
    for case, result in found.items():
        cells = " | ".join(f"{result.get(name, float('nan')):.3f}" for name in names)
        shown = case[:-1] if part == "drift" else case
        setting = ", ".join(f"{x:,}" if isinstance(x, int) else str(x) for x in shown)
        print(f"| {setting} | {cells} |")
    columns = ([result.get(name, np.nan) for result in found.values()] for name in names)
    print("| mean | " + " | ".join(f"{np.nanmean(column):.3f}" for column in columns) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of processes")
    parser.add_argument("--repetitions", type=int, default=1000, help="data sets per setting")
    parser.add_argument("--quick", action="store_true", help="few settings")
    parser.add_argument("--only", choices=tuple(PARTS), action="append")
    parser.add_argument("--data", default=find_data(), help="folder with the samples of nannyml")
    options = parser.parse_args()
    print(f"{options.repetitions} data sets or weeks for each setting")
    with ProcessPoolExecutor(options.jobs, initializer=threadpool_limits, initargs=(1,)) as pool:
        for part in options.only or PARTS:
            chosen = cases(part, options.data, quick=options.quick)
            if not chosen:
                print(f"\n{part}: skipped, nannyml is not installed")
                continue
            results = run(pool, part, chosen, options.repetitions)
            report(part, dict(zip(chosen, results, strict=True)))


if __name__ == "__main__":
    main()
