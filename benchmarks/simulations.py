"""Coverage: how often intervals contain the truth, tests reject and monitors raise an alarm.

    python benchmarks/simulations.py [STUDY ...] [--repetitions N] [--quick] [--jobs N]

Every study is one function: it draws data whose truth is known, for a setting and a random
generator, and returns figures, most of them whether an interval covers. The harness repeats it for
all settings of the study, on all cores, and prints a table of the means: a row for each setting.
`@study` puts a function into the table of studies, with its settings. Without names all studies
run.
"""

from __future__ import annotations

import argparse
import warnings
import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import product
from math import log
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit, logit, ndtr, ndtri, xlogy
from scipy.stats import rankdata
from threadpoolctl import threadpool_limits

import isoroc
from isoroc import AutoCalibrator, CalibrationMonitor, InputError, evaluate
from isoroc._evaluation.monitor import Alternatives, Evidence
from isoroc._input import check_probabilities
from isoroc._maps import IdentityMap
from isoroc._support.table import markdown_table
from isoroc.decisions import acceptance_rule, cascade_rule, net_benefit, threshold_for
from isoroc.metrics import (
    calibration_error,
    calibration_summary,
    calibration_test,
    decompose,
    estimate_rate,
    expected,
    segment_report,
)
from isoroc.metrics._estimation.calibration_terms import Parts
from isoroc.metrics._estimation.cell_errors import error_in_cells, sum_in_cells

Array = np.ndarray
Figures = dict[str, Any]
#: Rows that stand for the population.
POPULATION = 400_000

# The harness


class Study(NamedTuple):
    """A function of a generator and a setting, its settings, and how its figures are shown."""

    once: Callable[..., Figures]
    settings: dict[str, Any]
    repetitions: int
    summarise: Callable[[list[Figures]], Figures]


STUDIES: dict[str, Study] = {}


def means(found: list[Figures]) -> Figures:
    """Mean of each figure over the repetitions that have it."""
    names = dict.fromkeys(name for own in found for name in own)
    return {name: float(np.mean([own[name] for own in found if name in own])) for name in names}


def study(
    settings: dict[str, Any], repetitions: int = 400, summarise: Callable[..., Figures] = means
) -> Callable[[Callable[..., Figures]], Callable[..., Figures]]:
    """Add a function to the studies. `settings` are lists of values by name."""

    def add(once: Callable[..., Figures]) -> Callable[..., Figures]:
        STUDIES[once.__name__] = Study(once, settings, repetitions, summarise)
        return once

    return add


def repeat(name: str, setting: dict[str, Any], first: int, times: int) -> list[Figures]:
    """Figures of some repetitions, each with a seed that depends on nothing but its number."""
    mark = zlib.crc32(f"{name} {setting}".encode())
    once = STUDIES[name].once
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        numbers = range(first, first + times)
        found = (once(np.random.default_rng([mark, n]), **setting) for n in numbers)
        return [figures for figures in found if figures]


def run(name: str, options: argparse.Namespace) -> None:
    """Print the table of one study."""
    chosen = STUDIES[name]
    start = perf_counter()
    combinations = product(*chosen.settings.values())
    settings = [dict(zip(chosen.settings, values, strict=True)) for values in combinations]
    if options.quick:
        settings = settings[:: max(1, len(settings) // 4)]
    times = options.repetitions or (8 if options.quick else chosen.repetitions)
    block = min(times, 20)
    tasks = [(s, first) for s in range(len(settings)) for first in range(0, times, block)]
    calls = [(name, settings[s], first, min(block, times - first)) for s, first in tasks]
    with ProcessPoolExecutor(options.jobs, initializer=threadpool_limits, initargs=(1,)) as pool:
        found = list(pool.map(repeat, *zip(*calls, strict=True)))
    gathered: list[list[Figures]] = [[] for _ in settings]
    for (s, _), own in zip(tasks, found, strict=True):
        gathered[s] += own
    rows = [chosen.summarise(own) if own else {} for own in gathered]
    names = list(dict.fromkeys(column for row in rows for column in row))
    print(f"\n### {name}: {chosen.once.__doc__}\n\n{times} repetitions\n")
    lines = []
    for setting, row in zip(settings, rows, strict=True):
        shown = [f"{v:,}" if isinstance(v, int) else str(v) for v in setting.values()]
        lines.append([*shown, *(figure(row.get(column)) for column in names)])
    print(markdown_table([*settings[0], *names], lines))
    print(f"\n({perf_counter() - start:.0f} s)", flush=True)


def figure(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) and abs(value) < 100 else f"{value:,.0f}"


def inside(low: Any, truth: Any, high: Any) -> Any:
    return (low <= truth + 1e-9) & (truth <= high + 1e-9)


def labels_of(P: Array, rng: np.random.Generator) -> Array:
    """Labels that are drawn with given probabilities."""
    return (rng.random((len(P), 1)) > P.cumsum(axis=1)[:, :-1]).sum(axis=1)


def powers(P: Array, power: float) -> Array:
    """A power of probabilities, normalised: above 1 too confident, below 1 too timid."""
    Q = np.maximum(P, 1e-300) ** power
    return Q / Q.sum(axis=1, keepdims=True)


def draw(
    rng: np.random.Generator, n: int, K: int, power: float, spread: float = 1.0
) -> tuple[Array, Array, Array]:
    """Forecasts that are a power of true probabilities, these, and labels."""
    truth = rng.dirichlet(np.full(K, spread), n).clip(min=1e-300)
    return powers(truth, power), truth, labels_of(truth, rng)


def errors_of(truth: Array, P: Array) -> dict[str, float]:
    """Calibration errors and parts of the losses of a population."""
    half = 2 if P.shape[1] == 2 else 1
    square = ((truth - P) ** 2).sum(axis=1).mean()
    divergence = (xlogy(truth, truth) - xlogy(truth, P.clip(min=1e-300))).sum(axis=1).mean()
    return {
        "accuracy": float(truth[np.arange(len(P)), P.argmax(axis=1)].mean()),
        "l1": float(np.abs(truth - P).sum(axis=1).mean() / 2),
        "l2": float(np.sqrt(square / 2)),
        "log": max(float(divergence), 0.0) if (truth != P).any() else 0.0,
        "brier": float(square / half),
        "log refinement": float(-xlogy(truth, truth).sum(axis=1).mean()),
        "brier refinement": float((1 - (truth**2).sum(axis=1).mean()) / half),
    }


@cache
def population(K: int, power: float) -> dict[str, float]:
    P, truth, _ = draw(np.random.default_rng(2**20), POPULATION, K, power)
    return errors_of(truth, P)


# Calibration terms and errors

DRAWN = {"K": (2, 3), "n": (500, 3000), "power": (0.7, 1.0, 1.3, 2.0)}


@study(DRAWN, 150)
def estimates(rng: np.random.Generator, K: int, n: int, power: float) -> Figures:
    """Truth, means of the estimates of calibration errors, and coverage of the decomposition."""
    P, _, y = draw(rng, n, K, power)
    truth = population(K, power)
    labels = range(K)
    quantile = {"bins": "quantile", "labels": labels}
    found: Figures = {"l1": truth["l1"], "uniform": calibration_error(y, P, labels=labels, bins=15)}
    found |= {"quantile": calibration_error(y, P, **quantile)}
    found |= {"irp": calibration_error(y, P, bins="irp"), "l2": truth["l2"]}
    found |= {"l2, quantile": calibration_error(y, P, norm="l2", **quantile)}
    for loss in ("log", "brier"):
        parts = decompose(y, P, loss=loss, bins="irp")
        low, high = (parts.table()[end][1:3] for end in ("low", "high"))
        targets = truth[loss], truth[f"{loss} refinement"]
        found[f"{loss}: bias"] = parts.calibration - targets[0]
        found[f"{loss}: covered"] = bool(low[0] <= targets[0] <= high[0])
        found[f"{loss}: refinement covered"] = bool(low[1] <= targets[1] <= high[1])
    return found


@study(DRAWN, 100)
def evaluations(rng: np.random.Generator, K: int, n: int, power: float) -> Figures:
    """Coverage of the intervals of `evaluate`: forecasts before, the truth after."""
    P, g, y = draw(rng, n, K, power)
    truth = population(K, power)
    targets = {
        ("log_loss", "before"): truth["log"] + truth["log refinement"],
        ("log_loss", "change"): -truth["log"],
        ("brier_score_loss", "change"): -truth["brier"],
        ("calibration_loss", "before"): truth["log"],
        ("calibration_error", "before"): truth["l1"],
        ("accuracy", "before"): truth["accuracy"],
    }
    if K == 2:
        targets["auc", "before"] = 5 / 6  # of two classes whose probability is uniform
    found = isoroc.evaluate(y, P, g, labels=range(K)).measures
    return {
        f"{measure} {of}": inside(found[measure][of].low, target, found[measure][of].high)
        for (measure, of), target in targets.items()
        if power != 1 or of != "change"  # there is no change
    }


@study({"K": (2, 3), "n": (2000, 50_000), "power": (1.0, 2.0), "digits": (6, 4, 3, 2, 1)}, 100)
def rounded(rng: np.random.Generator, K: int, n: int, power: float, digits: int) -> Figures:
    """Whether the intervals of calibration errors of rounded forecasts cover."""
    P, truth, y = draw(rng, n, K, power)
    P = P.round(digits)
    P[:, 0] += (K == 2) * (1 - P.sum(axis=1))
    P /= P.sum(axis=1, keepdims=True)
    _, group, size = np.unique(P, axis=0, return_inverse=True, return_counts=True)
    given = np.column_stack([np.bincount(group.ravel(), own) / size for own in truth.T])
    target = errors_of(given[group.ravel()], P)["l1"]  # of E[Y | forecast] on these rows
    found = evaluate(y, P, labels=range(K)).measures["calibration_error"]["before"]
    return {"covered": inside(found.low, target, found.high), "bias": found.value - target}


def design(n: int, rate: float, size: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Probabilities of an event, outcomes and clusters.

    In clusters, probabilities have a correlation of .5 on the probit scale, and outcomes one of .3.
    """
    cluster = np.arange(n) // size
    common = rng.normal(size=(2, n))
    own = rng.normal(size=(2, n))
    shared = np.array([[0.5], [0.3]]) * (size > 1)
    x, z = np.sqrt(shared) * common[:, cluster] + np.sqrt(1 - shared) * own
    p = (rate * np.exp(x / 2 - 1 / 8) if rate < 0.5 else ndtr(x)).clip(1e-6, 1 - 1e-6)
    return p, z < ndtri(p), cluster


@cache
def truths(rate: float, power: float) -> dict[str, float]:
    """Expected measures of forecasts that are a power of the probabilities."""
    p, _, _ = design(POPULATION, rate, 1, np.random.default_rng(0))
    truth = np.column_stack([1 - p, p])
    losses = [
        float(-xlogy(truth, powers(truth, t)).sum(axis=1).mean()) for t in (power, 0.8 * power)
    ]
    events = p[np.argsort(p)]
    others = 1 - np.sort(p)
    area = float(events @ (np.cumsum(others) - others / 2) / (events.sum() * others.sum()))
    found = errors_of(truth, powers(truth, power))
    return {
        "log_loss": losses[0],
        "change": losses[1] - losses[0],
        "accuracy": found["accuracy"],
        "calibration_loss": found["log"],
        "calibration_error": found["l1"],
        "auc": area,
    }


MEASURED = {"rate": (0.5, 0.01), "power": (0.5, 1.0, 2.0), "n": (100, 500)}


@study(MEASURED | {"kind": ("plain", "weighted", "clusters")})
def measures(rng: np.random.Generator, rate: float, power: float, n: int, kind: str) -> Figures:
    """Whether the intervals of evaluate cover: few rows, rare events, weights, clusters of 5."""
    p, y, cluster = design(n, rate, 5 if kind == "clusters" else 1, rng)
    if y.all() or not y.any():
        return {}
    before, after = (powers(np.column_stack([1 - p, p]), t)[:, 1] for t in (power, 0.8 * power))
    weights = rng.exponential(size=n) if kind == "weighted" else None
    options: Any = {"sample_weight": weights, "clusters": cluster if kind == "clusters" else None}
    found = evaluate(y, before, after, labels=[False, True], **options).measures
    known = {name: own.get("before") for name, own in found.items()}
    known["change"] = found["log_loss"]["change"]
    return {
        name: inside(known[name].low, value, known[name].high)
        for name, value in truths(rate, power).items()
        if not np.isnan(known[name].low)
    }


#: True probabilities.
TRUTHS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "beta": lambda rng, n: with_rest(rng.beta(1, 3, n)),
    "probit": lambda rng, n: with_rest(ndtr(rng.normal(size=n)).clip(1e-6, 1 - 1e-6)),
    "sharp": lambda rng, n: with_rest(expit(3 * rng.normal(size=n))),
    "5 %": lambda rng, n: with_rest(np.minimum(0.05 * rng.lognormal(-0.245, 0.7, n), 0.6)),
    "1 %": lambda rng, n: with_rest(np.minimum(0.01 * rng.lognormal(-0.125, 0.5, n), 0.4)),
    "three": lambda rng, n: rng.dirichlet(np.full(3, 0.4), n),
    "six": lambda rng, n: rng.dirichlet(np.ones(6), n),
}
#: What forecasts make of them: a power, other odds of all classes but the first, or waves.
CHANGED: dict[str, Callable[[Array], Array]] = {
    "calibrated": lambda P: P,
    **{f"power {t}": lambda P, t=t: powers(P, t) for t in (0.5, 0.8, 1.3, 2, 3)},
    **{
        f"odds {f}": lambda P, f=f: powers(P * np.append(1, np.full(P.shape[1] - 1, f)), 1)
        for f in (1.5, 3)
    },
    "waves": lambda P: with_rest(expit(logit(P[:, 1]) + 0.5 * np.sin(1.5 * logit(P[:, 1])))),
}
#: Truth, change and digits to which forecasts are rounded.
DESIGNS = [
    "probit,calibrated,",
    "probit,power 2,",
    "probit,power 0.5,",
    "sharp,power 1.3,",
    "sharp,calibrated,3",
    "sharp,power 3,3",
    "sharp,power 3,1",
    "beta,odds 1.5,",
    "beta,waves,",
    "beta,power 2,2",
    "beta,odds 3,3",
    "5 %,calibrated,",
    "5 %,power 0.8,",
    "1 %,calibrated,",
    "1 %,odds 1.5,4",
    "three,power 1.3,",
    "three,power 2,3",
    "three,calibrated,1",
    "six,power 2,",
    "six,calibrated,",
    "beta,power 3,1",
]


def with_rest(p: Array) -> Array:
    return np.column_stack([1 - p, p])


def designed(rng: np.random.Generator, n: int, kind: str) -> tuple[Array, Array]:
    """True probabilities and forecasts."""
    name, change, digits = kind.split(",")
    truth = TRUTHS[name](rng, n)
    P = CHANGED[change](truth)
    if digits and P.shape[1] == 2:
        P = with_rest(P[:, 1].round(int(digits)))
    elif digits:
        P = powers(P.round(int(digits)), 1.0)
    return truth, P


@cache
def designed_truth(kind: str) -> dict[str, float]:
    truth, P = designed(np.random.default_rng(12345), POPULATION, kind)
    if not kind.endswith(","):
        group, size = np.unique(P, axis=0, return_inverse=True, return_counts=True)[1:]
        truth = np.column_stack([np.bincount(group.ravel(), g) / size for g in truth.T])[
            group.ravel()
        ]
    found = errors_of(truth, P.clip(min=np.finfo(float).eps))  # as the log loss is bounded
    return found | {"loss": found["log"] + found["log refinement"]}


@study({"design": DESIGNS, "n": (100, 500, 2000)})
def designs(rng: np.random.Generator, design: str, n: int) -> Figures:
    """Coverage of calibration terms and errors and of parts of the log loss, rows of weight 1."""
    truth, P = designed(rng, n, design)
    y = labels_of(truth, rng)
    target = designed_truth(design)
    if len(np.unique(y)) == 1:
        return {}
    parts = Parts.of(check_probabilities(y, P, None, range(P.shape[1])), "canonical")
    split = parts.split_loss()
    brier = parts.split_loss("brier")["calibration"]
    found = {"log": split["calibration"], "log refinement": split["refinement"]}
    found |= {"loss": split["loss"], "brier": brier, "l1": parts.absolute()}
    ends = {name: statistic.interval(0.95) for name, (statistic, _) in found.items()}
    return {name: inside(low, target[name], max(high, 0.0)) for name, (low, high) in ends.items()}


#: Scores of events and of others with an area under the ROC curve.
SCORES: dict[str, Callable[[np.random.Generator, int, int, float], tuple[Array, Array]]] = {
    "normal": lambda rng, m, n, auc: (
        rng.normal(np.sqrt(2) * ndtri(auc), 1, m),
        rng.normal(size=n),
    ),
    "wide": lambda rng, m, n, auc: (rng.normal(np.sqrt(5) * ndtri(auc), 2, m), rng.normal(size=n)),
    "exponential": lambda rng, m, n, auc: (
        rng.exponential(auc / (1 - auc), m),
        rng.exponential(size=n),
    ),
    "mirrored": lambda rng, m, n, auc: (
        -rng.exponential(size=m),
        -rng.exponential(auc / (1 - auc), n),
    ),
    "mixed": lambda rng, m, n, auc: (
        rng.normal(30.0 * (rng.random(m) > 2 * (1 - auc)), 1),
        rng.normal(size=n),
    ),
}


@study(
    {"scores": tuple(SCORES), "auc": (0.8, 0.9, 0.95), "events": (2, 5, 10, 50), "n": (100, 500)}
)
def areas(rng: np.random.Generator, scores: str, auc: float, events: int, n: int) -> Figures:
    """Whether the interval of AUC covers with few events."""
    own = np.concatenate(SCORES[scores](rng, events, n - events, auc))
    found = evaluate(np.arange(n) < events, own, unit="logit").measures["auc"]["before"]
    return {} if np.isnan(found.low) else {"covered": inside(found.low, auc, found.high)}


@study({"K": (2, 3, 5), "spread": (1.0, 0.2), "power": (1.0, 0.75, 1.25, 1.5)}, 200)
def rejections(rng: np.random.Generator, K: int, spread: float, power: float) -> Figures:
    """Share of data sets of 500 rows in which `calibration_test` rejects at 5 %."""
    P, _, y = draw(rng, 500, K, power, spread)
    options = {"n_resamples": 99, "random_state": int(rng.integers(2**31)), "labels": range(K)}
    return {"rejected": calibration_test(y, P, **options).p_value <= 0.05}


# The verdict of AutoCalibrator

CHANGES: dict[str, Callable[[Array], Array]] = {
    "calibrated": lambda P: P,
    "confident": lambda P: powers(P, 1.5),
    "timid": lambda P: powers(P, 0.7),
    "bias": lambda P: powers(P * np.append(1.5, np.ones(P.shape[1] - 1)), 1.0),
}


@study({"K": (2, 3, 10), "spread": (0.1, 1.0), "n": (50, 100, 300, 1000, 3000)}, 200)
def verdicts(rng: np.random.Generator, K: int, spread: float, n: int) -> Figures:
    """How often the verdict is to calibrate. Every fourth repetition has other forecasts."""
    P = rng.dirichlet(np.full(K, spread), size=n)
    y = labels_of(P, rng)
    found = {}
    for name, change in CHANGES.items() if rng.random() < 0.25 else [*CHANGES.items()][:1]:
        calibrator = AutoCalibrator(random_state=int(rng.integers(2**31)))
        calibrator.fit(change(P), y, labels=range(K))
        found[name] = calibrator.verdict_.should_calibrate
    return found


# The monitor

LIMIT = log(20)  # confidence 0.95
BATCH = 20
DRIFTS: dict[str, dict[str, float]] = {
    "none": {},
    "odds of one class x 1.25": {"odds": 1.25},
    "odds of one class x 2": {"odds": 2.0},
    "power 0.8 (overconfident)": {"power": 0.8},
    "power 0.5 (very overconfident)": {"power": 0.5},
    "power 1.5 (underconfident)": {"power": 1.5},
}


def drifted(Q: Array, power: float = 1.0, odds: float = 1.0) -> Array:
    """True probabilities: a power of forecasts, with other odds of the first class."""
    truth = Q**power
    truth[:, 0] *= odds
    return truth / truth.sum(axis=1, keepdims=True)


def products(
    alternatives: Alternatives, K: int, n: int, rng: np.random.Generator, **drift: float
) -> Array:
    """Logarithm of the product of ratios in each batch of n rows."""
    Q = rng.dirichlet(np.ones(K), size=n)
    ratios = alternatives.log_ratios(Q, labels_of(drifted(Q, **drift), rng))
    return ratios.reshape(-1, BATCH, ratios.shape[1]).sum(axis=1)


def first_alarm(
    alternatives: Alternatives, batches: Array, evidence: Evidence, before: int = 0
) -> tuple[int | None, Evidence]:
    """Number of batches until the alarm, or None, and the evidence after all of them."""
    alarm = None
    for b, log_products in enumerate(batches):
        evidence = evidence.add(log_products, before + b)
        if alarm is None and evidence.value(alternatives) >= LIMIT:
            alarm = b + 1
    return alarm, evidence


@study({"K": (2, 3), "batches": (50, 1000)}, 1000)
def alarms(rng: np.random.Generator, K: int, batches: int) -> Figures:
    """False alarms of a monitor."""
    alternatives = Alternatives(K)
    none = Evidence.none(len(alternatives.family))
    rows = products(alternatives, K, batches * BATCH, rng)
    return {"false alarm": first_alarm(alternatives, rows, none)[0] is not None}


@study({"K": (2, 3), "n": (500, 2000)}, 100)
def fitted(rng: np.random.Generator, K: int, n: int) -> Figures:
    """Alarms of the monitor of a calibrator, without drift, in 100 batches of n / 5 rows."""

    def rows(size: int) -> tuple[Array, Array]:
        Q = rng.dirichlet(np.ones(K), size=size)
        return labels_of(drifted(Q, power=0.7), rng), Q

    y, Q = rows(n)
    calibrator = AutoCalibrator(random_state=0).fit(Q, y)
    monitors = [CalibrationMonitor(calibrator, tolerance=t) for t in (0.0, None)]
    for _ in range(100):
        y, Q = rows(n // 5)
        for monitor in monitors:
            monitor.update(y, calibrator.predict_proba(Q))
    raised = [monitor.alarm_ is not None for monitor in monitors]
    Q = rng.dirichlet(np.ones(K), size=100_000)
    truth = drifted(Q, power=0.7)
    excess = (truth * np.log(truth / calibrator.predict_proba(Q))).sum(axis=1).mean()
    excused = raised[1] and bool(excess > monitors[1].tolerance)
    return {"tolerance 0": raised[0], "default": raised[1], "default, and it was wrong": excused}


def quantiles(found: list[Figures]) -> Figures:
    rows = [own["rows"] for own in found]
    ends = np.quantile(rows, [0.5, 0.9], method="higher")
    return {"median rows": float(ends[0]), "90 % quantile": float(ends[1])}


@study({"K": (2, 3), "drift": tuple(DRIFTS)[1:], "calm": (10, 500)}, 100, quantiles)
def delays(rng: np.random.Generator, K: int, drift: str, calm: int) -> Figures:
    """Rows until the alarm after some calm batches."""
    alternatives = Alternatives(K)
    none = Evidence.none(len(alternatives.family))
    early, evidence = first_alarm(alternatives, products(alternatives, K, calm * BATCH, rng), none)
    if early is not None:
        return {}
    batches = products(alternatives, K, 1000 * BATCH, rng, **DRIFTS[drift])
    alarm, _ = first_alarm(alternatives, batches, evidence, calm)
    return {"rows": np.inf if alarm is None else alarm * BATCH}


@cache
def error_in_bins(K: int, drift: str, n_bins: int = 200) -> float:
    """Root mean square of the difference between rates and forecasts, in narrow bins."""
    Q = np.random.default_rng(3).dirichlet(np.ones(K), size=POPULATION)
    squares = []
    for q, t in zip(Q.T, drifted(Q, **DRIFTS[drift]).T, strict=True):
        cell = np.minimum((q * n_bins).astype(int), n_bins - 1)
        n = np.bincount(cell, minlength=n_bins)
        squares.append(np.sum(np.bincount(cell, t - q, n_bins) ** 2 / n.clip(1)) / n.sum())
    return float(np.sqrt(np.mean(squares)))


@study({"K": (2, 3), "drift": tuple(DRIFTS), "n": (100, 1000)}, 1000)
def batch_errors(rng: np.random.Generator, K: int, drift: str, n: int) -> Figures:
    """Calibration error of one batch, and coverage of its interval."""
    Q = rng.dirichlet(np.ones(K), size=n)
    y = labels_of(drifted(Q, **DRIFTS[drift]), rng)
    truth = error_in_bins(K, drift)
    error, low, high = error_in_cells(sum_in_cells(Q, y), 1.96)
    return {"truth": truth, "mean square": error**2, "covered": bool(low <= truth <= high)}


# Decision curves, panels, thresholds, metrics without labels

BENDS: dict[str, Callable[[Array], Array]] = {
    "calibrated": lambda z: z,
    "too extreme": lambda z: z / 1.5,
    "too low": lambda z: z + 0.5,
    "bent": lambda z: z + 0.3 * np.sin(z),
}
RATES = {"common": -0.5, "rare": -4.0}  # a third, and 3 %
THRESHOLDS = np.array([0.02, 0.05, 0.1, 0.2, 0.5, 0.8])
PRACTICE = {"kind": tuple(BENDS), "rate": tuple(RATES), "n": (200, 1000, 5000)}


def scores(rng: np.random.Generator, kind: str, rate: str, n: int) -> tuple[Array, Array]:
    """Forecasts of two classes and true probabilities."""
    z = rng.normal(RATES[rate], 1.5, n)
    return expit(z), expit(BENDS[kind](z))


@cache
def many_scores(kind: str, rate: str) -> tuple[Array, Array]:
    return scores(np.random.default_rng(0), kind, rate, POPULATION)


@study(PRACTICE, 1000)
def benefit(rng: np.random.Generator, kind: str, rate: str, n: int) -> Figures:
    """Coverage of `net_benefit`: means over six thresholds."""
    p, g = many_scores(kind, rate)
    odds = THRESHOLDS / (1 - THRESHOLDS)
    before, after, everyone = (
        np.array(
            [np.mean((q >= t) * (g - (1 - g) * o)) for t, o in zip(THRESHOLDS, odds, strict=True)]
        )
        for q in (p, g, np.ones_like(p))
    )
    own, truth = scores(rng, kind, rate, n)
    y = rng.random(n) < truth
    if y.all() or not y.any():
        return {}
    curve = net_benefit(y, own, THRESHOLDS, after=truth, labels=[False, True])
    tables = {
        "before": (curve.benefit("before"), before),
        "scaled": (curve.benefit("before", scaled=True), before / g.mean()),
        "change": (curve.benefit("after", minus="before"), after - before),
        "after - all": (curve.benefit("after", minus="all"), after - everyone),
    }
    return {
        name: float(np.mean(inside(table["low"], target, table["high"])))
        for name, (table, target) in tables.items()
    }


@cache
def line_of(kind: str, rate: str) -> tuple[float, float]:
    """Intercept with slope one, and slope, of the log odds in the population."""
    p, g = many_scores(kind, rate)
    z = logit(p)
    shift = brentq(lambda a: np.mean(g - expit(z + a)), -10, 10)

    def loss(b: Array) -> float:
        eta = b[0] + b[1] * z
        return float(np.mean(np.logaddexp(0, eta) - g * eta))

    return shift, minimize(loss, [0.0, 1.0]).x[1]


@study(PRACTICE, 500)
def panel(rng: np.random.Generator, kind: str, rate: str, n: int) -> Figures:
    """Coverage of `calibration_summary` and of the directions of `evaluate`."""
    p, g = scores(rng, kind, rate, n)
    y = rng.random(n) < g
    if y.all() or not y.any():
        return {}
    table = calibration_summary(y, p, labels=[False, True]).table
    d = np.abs(g - p)
    truth = [g.sum() / p.sum(), *line_of(kind, rate), d.mean(), np.median(d), np.quantile(d, 0.9)]
    covers = inside(table["low"], np.array([*truth, d.max()]), table["high"])
    covers |= np.isnan(table["low"])
    many, true = many_scores(kind, rate)
    sure = np.maximum(many, 1 - many) - np.where(many > 0.5, true, 1 - true)
    ends = evaluate(y, p, labels=[False, True]).directions["before"]
    found = dict(zip(table["measure"].tolist(), covers.tolist(), strict=True))
    for name, row, target in (("top", 0, sure.mean()), ("class", 2, (many - true).mean())):
        found[f"direction, {name}"] = bool(inside(ends["low"][row], target, ends["high"][row]))
    return found


@study(PRACTICE, 1000)
def threshold(rng: np.random.Generator, kind: str, rate: str, n: int) -> Figures:
    """Coverage of `threshold_for`."""
    p, g = many_scores(kind, rate)
    order = np.argsort(p)
    right, wrong_ = (np.cumsum(x[order][::-1])[::-1] for x in (g, 1 - g))
    p = p[order]
    own, truth = scores(rng, kind, rate, n)
    y = rng.random(n) < truth
    found = {}
    goals = {"precision": 0.8 if rate == "common" else 0.3, "recall": 0.9}
    for metric, goal in (goals | {"false_positive_rate": 0.01, "alerts": 0.05}).items():
        try:
            report = threshold_for(y, own, metric=metric, target=goal, labels=[False, True])
        except InputError:  # out of reach, or one class only
            continue
        i = min(int(np.searchsorted(p, report.threshold)), len(p) - 1)
        acted = right[i] + wrong_[i]
        reached = {"precision": right[i] / acted, "recall": right[i] / right[0]}
        reached |= {"false_positive_rate": wrong_[i] / wrong_[0], "alerts": acted / len(p)}
        row = report.table["metric"].tolist().index(metric)
        ends = report.table["low"][row], report.table["high"][row]
        found[metric] = bool(inside(ends[0], reached[metric], ends[1]))
    return found


CALIBRATORS = {
    "temperature": isoroc.TemperatureCalibrator,
    "isotonic": isoroc.IsotonicCalibrator,
    "auto": lambda: AutoCalibrator(random_state=0),
}


def observed(y: Array, Q: Array) -> dict[str, float]:
    """The metrics on labels. The functions of scikit-learn take longer than all else."""
    K = Q.shape[1]
    matrix = np.bincount(K * y + Q.argmax(axis=1), minlength=K * K).reshape(K, K)
    f1 = 2 * np.diag(matrix) / np.maximum(matrix.sum(axis=0) + matrix.sum(axis=1), 1)
    own = np.bincount(y, minlength=K)
    ranks = rankdata(Q, axis=0)
    sums = np.array([ranks[y == k, k].sum() for k in range(K)])
    auc = (sums - own * (own + 1) / 2) / (own * (len(y) - own))
    likelihood = np.maximum(Q[np.arange(len(y)), y], np.finfo(float).eps)
    found = {"accuracy": np.trace(matrix) / len(y), "f1": f1[1] if K == 2 else f1.mean()}
    return found | {"auc": auc.mean(), "log_loss": -np.log(likelihood).mean()}


@study({"calibrator": tuple(CALIBRATORS), "K": (2, 3), "n_cal": (500, 5000), "n": (200, 1000)}, 100)
def weeks(rng: np.random.Generator, calibrator: str, K: int, n_cal: int, n: int) -> Figures:
    """Coverage of `expected` in ten weeks after a calibration. `alone`: without `calibration=`."""

    def rows(size: int, concentration: Array) -> tuple[Array, Array]:
        truth = rng.dirichlet(concentration, size)
        return labels_of(truth, rng), powers(truth, 1.5)

    y, P = rows(n_cal, np.ones(K))
    if len(np.unique(y)) < K:
        return {}
    fit = CALIBRATORS[calibrator]().fit(P, y)
    found: dict[str, list[bool]] = {}
    for _ in range(10):
        y, P = rows(n, rng.uniform(0.6, 1.6, K))
        Q = fit.predict_proba(P)
        for (metric, truth), own in product(observed(y, Q).items(), (fit, None)):
            ends = expected(Q, metric, calibration=own, n_draws=200)
            name = metric if own is not None else f"{metric}, alone"
            found.setdefault(name, []).append(bool(inside(ends.low, truth, ends.high)))
    return {name: float(np.mean(covers)) for name, covers in found.items()}


# Streams: online calibration

DAY = 100  # rows of a batch
#: Slope of the log forecasts, and shift of the first class, at a time between 0 and 1.
STREAMS: dict[str, Callable[[float], tuple[float, float]]] = {
    "calibrated": lambda _: (1.0, 0.0),
    "constant error": lambda _: (0.5, 0.5),
    "one change": lambda t: (1.0, 0.0) if t < 0.5 else (0.5, 0.8),
    "two changes": lambda t: (1.0, 0.8 * (t < 0.3) - 0.8 * (t > 0.7)),
    "slow shift": lambda t: (1.0, 1.6 * t),
    "seasons": lambda t: (1.0, 0.4 * float(np.sin(4 * np.pi * t))),
    "fading slope": lambda t: (1.0 - 0.5 * t, 0.0),
    "bent": lambda _: (1.0, 0.0),
}
MEMBERS: dict[str, Callable[[], Any]] = {
    "temperature": isoroc.TemperatureCalibrator,
    "matrix": isoroc.MatrixCalibrator,
    "spline": isoroc.SplineCalibrator,
    "monotone": isoroc.MonotoneCalibrator,
}
DELAYS = (0, 1, 10)
Batches = list[tuple[Array, Array]]


def stream(rng: np.random.Generator, K: int, kind: str, n_batches: int) -> Batches:
    """Batches of forecasts and labels. "bent" has too many confident forecasts."""
    batches = []
    for b in range(n_batches):
        slope, shift = STREAMS[kind]((b + 0.5) / n_batches)
        P = powers(rng.dirichlet(np.full(K, 0.7), DAY).clip(min=1e-9), 1.0)
        truth = powers(powers(P, slope) * np.append(np.exp(shift), np.ones(K - 1)), 1.0)
        if kind == "bent":
            truth = powers(np.where(P > 0.5, 0.5 + 0.3 * (P - 0.5), P), 1.0)
        batches.append((P, labels_of(truth, rng)))
    return batches


def losses_of(Q: Array, y: Array) -> Array:
    return -np.log(Q[np.arange(len(y)), y].clip(min=np.finfo(float).eps))


def follow(forecasts: list[Callable[[Array], Array]], batches: Batches, delay: int) -> float:
    """Total loss of served forecasts. `forecasts[j]` knows the labels of j batches."""
    served = (forecasts[max(b - delay, 0)] for b in range(len(batches)))
    return sum(losses_of(f(P), y).sum() for f, (P, y) in zip(served, batches, strict=True))


def make_member(K: int) -> Any:
    return isoroc.SplineCalibrator if K == 2 else isoroc.MonotoneCalibrator


def refitted(batches: Batches, n_rows: int) -> list[Callable[[Array], Array]]:
    """A calibrator of the members' kind that is fitted to the latest rows after each batch."""
    K = batches[0][0].shape[1]
    make = make_member(K)
    found: list[Callable[[Array], Array]] = [lambda P: P]
    for b in range(1, len(batches)):
        recent = batches[max(b - n_rows // DAY, 0) : b]
        P, y = (np.concatenate(part) for part in zip(*recent, strict=True))
        found.append(make().fit(P, y, labels=range(K)).predict_proba)
    return found


@cache
def remembering(kind: Any) -> Any:
    """A calibrator that fits the same rows once: members are the same for every delay."""

    class Remembering(kind):
        known: ClassVar[dict[Any, Any]] = {}

        def _fit(self, sample: Any) -> Any:
            arrays = sample.forecasts, sample.codes, sample.row_weights()
            key = tuple(array.tobytes() for array in arrays)
            if key not in self.known:
                self.known[key] = super()._fit(sample)
            return self.known[key]

    return Remembering()


def mixed(batches: Batches, wait: int, **parameters: Any) -> Figures:
    """Losses of an `OnlineCalibrator`, which is told which of its states made the forecasts."""
    K = batches[0][0].shape[1]
    online = isoroc.OnlineCalibrator(**parameters)
    states: list[Any] = []
    total = 0.0
    for b in range(len(batches) + wait):
        state = getattr(online, "map_", None)
        if b < len(batches):
            P, y = batches[b]
            total += losses_of(P if state is None else state.apply(P), y).sum()
            states.append(state)
        if b >= wait:
            served = states[b - wait]
            if served is None and state is not None:
                served = IdentityMap(kind=state.kind)
            served = None if served is state else served
            online.partial_fit(*batches[b - wait], classes=range(K), served=served)
    ledger = online.ledger_
    bound = online.regret_bound_
    excess = total - float(ledger.losses.min())
    if excess > float(bound) + 1e-6:
        raise RuntimeError(f"the excess {excess} is above the bound {bound}")
    return {
        "loss": total,
        "best": float(ledger.losses.min()),
        "excess": excess,
        "bound": float(bound),
    }


def by_river(batches: Batches, wait: int, rate: float = 0.02) -> float | None:
    """Total loss of river's logistic regression of the log odds of each class, if it is there.

    It has no calibrator. This is Platt scaling by stochastic gradient descent, begun at the
    identity. With more classes, each is fitted against the rest.
    """
    try:
        from river.linear_model import LogisticRegression  # noqa: PLC0415
        from river.optim import SGD  # noqa: PLC0415
        from river.optim.initializers import Constant  # noqa: PLC0415
    except ImportError:
        return None
    odds = [logit(P.clip(1e-9, 1 - 1e-9)) for P, _ in batches]
    K = odds[0].shape[1]
    columns = {
        k: LogisticRegression(SGD(rate), intercept_lr=rate, initializer=Constant(1.0))
        for k in range(int(K == 2), K)
    }
    total = 0.0
    for b, (P, y) in enumerate(batches):
        Q = np.zeros_like(P)
        for k, model in columns.items():
            Q[:, k] = [model.predict_proba_one({"z": z})[True] for z in odds[b][:, k].tolist()]
        if K == 2:
            Q[:, 0] = 1 - Q[:, 1]
        total += losses_of(Q / Q.sum(axis=1, keepdims=True), y).sum()
        if b >= wait:
            outcomes = batches[b - wait][1]
            for row, outcome in zip(odds[b - wait].tolist(), outcomes.tolist(), strict=True):
                for k, model in columns.items():
                    model.learn_one({"z": row[k]}, outcome == k)
    return total


@study({"K": (2, 3, 10), "member": tuple(MEMBERS), "kind": tuple(STREAMS)}, 1)
def members(rng: np.random.Generator, K: int, member: str, kind: str) -> Figures:
    """30 batches: millinats per row above uncalibrated forecasts, by calibrator of the members."""
    batches = stream(rng, K, kind, 30)
    n = sum(len(y) for _, y in batches)
    plain = follow([lambda P: P] * len(batches), batches, 0)
    return {"mixture": 1000 * (mixed(batches, 0, calibrator=MEMBERS[member]())["loss"] - plain) / n}


@cache
def matches(name: str) -> Batches:
    """Published forecasts in order of time, if they are there."""
    path = Path(__file__).resolve().parents[2] / "shared" / "networks" / "networks.npz"
    if not path.exists():
        return []
    with np.load(path) as sets:
        P = powers(sets[f"{name}|P"].astype(np.float64), 1.0)
        y = sets[f"{name}|y"].astype(np.intp)
    n = len(y) // DAY * DAY
    return list(zip(np.split(P[:n], n // DAY), np.split(y[:n], n // DAY), strict=True))


@study({"K": (2, 3, 10), "kind": (*STREAMS, "538-nba_games", "538-nfl_games")}, 2)
def streams(rng: np.random.Generator, K: int, kind: str) -> Figures:
    """Millinats per row above uncalibrated forecasts. (1), (10): labels come batches later."""
    batches = stream(rng, K, kind, 30) if kind in STREAMS else matches(kind)
    if not batches or (kind not in STREAMS and K > 2):
        return {}
    n = sum(len(y) for _, y in batches)
    plain = follow([lambda P: P] * len(batches), batches, 0)
    windows = {"all rows": n, "last 2,000": 2000, "last 500": 500}
    refits = {name: refitted(batches, rows) for name, rows in windows.items()}
    found = {}
    for delay in DELAYS:
        mark = f" ({delay})" if delay else ""
        own = mixed(batches, delay, calibrator=remembering(make_member(K)))
        totals = {name: follow(own, batches, delay) for name, own in refits.items()}
        if (loss := by_river(batches, delay)) is not None:
            totals["river"] = loss
        totals |= {"best member": own["best"], "mixture": own["loss"]}
        found |= {name + mark: 1000 * (total - plain) / n for name, total in totals.items()}
        found |= {f"excess{mark}, nats": own["excess"], f"bound{mark}, nats": own["bound"]}
    return found


# Class shares, costs and segments

MEANS = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
NEW = {2: {"none": (0.5, 0.5), "small": (0.55, 0.45), "large": (0.9, 0.1)}}
NEW |= {4: {"none": (0.25,) * 4, "small": (0.3, 0.2, 0.25, 0.25), "large": (0.7, 0.1, 0.1, 0.1)}}


@study({"K": (2, 4), "shift": ("none", "small", "large")}, 500)
def priors(rng: np.random.Generator, K: int, shift: str) -> Figures:
    """Class shares of 300 new rows: coverage, tests, and forecasts adjusted to new shares."""
    old = np.full(K, 1 / K)
    new = np.array(NEW[K][shift])
    y = rng.choice(K, size=300, p=new)
    x = MEANS[y] + rng.normal(size=(300, 2))
    Q = powers(old * np.exp(-((x[:, None] - MEANS[:K]) ** 2).sum(axis=2) / 2), 1.0)
    found = isoroc.estimate_prior(Q, old)
    right = []
    for own in (isoroc.adjust_prior(Q, old, new), Q):
        shares = CalibrationMonitor(range(K)).update(y, own).shares
        right.append(float(np.mean((shares["low"] <= 0) & (shares["high"] >= 0))))
    return {
        "mean square error": float(np.mean((found.prior - new) ** 2)),
        "covered": float(np.mean((found.low <= new) & (new <= found.high))),
        "found": found.p_value < 0.05,
        "adjusted right": right[0],
        "not adjusted right": right[1],
    }


LEARNERS = {
    "sigmoid": isoroc.SigmoidCalibrator,
    "auto": partial(AutoCalibrator, random_state=0),
    "isotonic": isoroc.IsotonicCalibrator,
}


@study({"calibrator": tuple(LEARNERS), "n_cal": (200, 1000), "share": (0.2, 0.5)}, 200)
def learned_priors(rng: np.random.Generator, calibrator: str, n_cal: int, share: float) -> Figures:
    """Class shares of 2,000 new rows after calibration on few rows, half of them positive."""

    def rows(n: int, positive: float) -> tuple[Array, Array]:
        y = rng.random(n) < positive
        return expit(1.2 * (np.where(y, 1, -1) + rng.normal(size=n)) + 0.4), y

    p, y = rows(n_cal, 0.5)
    fitted = LEARNERS[calibrator]().fit(p, y)
    Q = fitted.predict_proba(rows(2000, share)[0])
    found: Figures = {}
    for name, known in (("alone", None), ("calibration", fitted)):
        prior = isoroc.estimate_prior(Q, float(y.mean()), calibration=known)
        found[f"{name}: covered"] = bool(inside(prior.low[1], share, prior.high[1]))
        found[f"{name}: differs"] = prior.p_value < 0.05
    return found


# Segments and clusters


@study({"kind": ("right", "temperature 2", "temperature 3", "noise"), "shift": (0.0, 0.5)}, 300)
def segments(rng: np.random.Generator, kind: str, shift: float) -> Figures:
    """Segments that are found in 2,000 rows. With a shift, one of six is wrong."""
    z = rng.normal(size=2000)
    group = rng.integers(6, size=2000)
    truth = expit(z + shift * (group == 2))
    factor = float(kind.rpartition(" ")[2]) if kind.startswith("temperature") else 1.0
    p = expit(3 * z + 3 * rng.normal(size=2000)) if kind == "noise" else expit(factor * z)
    columns = {"group": group.astype(str), "other": rng.normal(size=2000)}
    table = segment_report(rng.random(2000) < truth, p, columns)
    own = np.flatnonzero(table["column"] == "group")
    names = table["segment"][own].astype(int)
    ratio = np.bincount(group, truth)[names] / np.bincount(group, p)[names]
    return {
        "any": bool((table["adjusted"] <= 0.05).any()),
        "the wrong one": bool(table["adjusted"][own][names == 2][0] <= 0.05),
        "ratio covered": float(np.mean(inside(table["low"][own], ratio, table["high"][own]))),
    }


@study({"n_clusters": (3, 4, 5, 6, 10), "shift": (0.0, 1.5)}, 300)
def segments_of_clusters(rng: np.random.Generator, n_clusters: int, shift: float) -> Figures:
    """Eight segments of few clusters of 20 rows. With a shift, one is wrong."""
    cluster = np.repeat(np.arange(8 * n_clusters), 20)
    segment = cluster // n_clusters
    z = rng.normal(size=len(cluster))
    own = rng.normal(scale=0.5, size=8 * n_clusters)[cluster]
    y = rng.random(len(cluster)) < expit(z + own + shift * (segment == 2))
    p = expit(z / np.sqrt(1 + 0.346 * 0.25))
    table = segment_report(y, p, segment.astype(str), clusters=cluster)
    wrong = table["adjusted"][table["segment"] == "2"][0] <= 0.05
    return {"any": bool((table["adjusted"] <= 0.05).any()), "the wrong one": bool(wrong)}


#: Rows of each cluster.
SIZES = {
    "60 of 5": [5] * 60,
    "20, 5 to 60": [60] * 2 + [20] * 4 + [5] * 14,
    "30, 2 to 80": [max(int(80 * 0.85**i), 2) for i in range(30)],
    "20, 5 to 150": [150] + [5] * 19,
}


@study({"sizes": tuple(SIZES)}, 300)
def unequal(rng: np.random.Generator, sizes: str) -> Figures:
    """Whether the intervals of evaluate cover with clusters of unequal sizes."""
    size = np.array(SIZES[sizes])
    cluster = np.repeat(np.arange(len(size)), size)
    n = len(cluster)
    shared = np.array([[0.5], [0.3]])
    common = rng.normal(size=(2, len(size)))[:, cluster]
    x, z = np.sqrt(shared) * common + np.sqrt(1 - shared) * rng.normal(size=(2, n))
    p = ndtr(x).clip(1e-6, 1 - 1e-6)
    y = z < ndtri(p)
    after = ndtr(ndtri(p) + 0.5)
    if y.all() or not y.any():
        return {}
    truth = truths(0.5, 1.0)
    found = evaluate(y, p, after, clusters=cluster).measures
    names = ("log_loss", "accuracy", "auc")
    known = {name: found[name]["before"] for name in names}
    figures = {name: inside(own.low, truth[name], own.high) for name, own in known.items()}
    low, high = found["accuracy"]["change"][1:]
    return figures | {"accuracy change": inside(low, lost_accuracy(), high), "width": high - low}


@cache
def lost_accuracy() -> float:
    """Change of accuracy if probabilities are shifted by half a unit on the probit scale."""
    p, _, _ = design(POPULATION, 0.5, 1, np.random.default_rng(0))
    right = np.where(ndtri(p) > -0.5, p, 1 - p)
    return float((right - np.maximum(p, 1 - p)).mean())


@study({"weights": ("one of 500", "one of 50"), "power": (1.0, 2.0)}, 300)
def heavy(rng: np.random.Generator, weights: str, power: float) -> Figures:
    """Whether intervals cover, and how wide they are, if one row has a large weight."""
    n = 2000 if weights == "one of 500" else 300
    p, y, _ = design(n, 0.5, 1, rng)
    own = np.ones(n)
    own[0] = 500 if n == 2000 else 50
    before = powers(np.column_stack([1 - p, p]), power)[:, 1]
    found = evaluate(y, before, sample_weight=own).measures
    truth = truths(0.5, power)
    figures: Figures = {}
    for name in ("log_loss", "accuracy", "calibration_loss", "calibration_error", "auc"):
        _, low, high = found[name]["before"]
        figures[name] = inside(low, truth[name], high)
        figures[f"{name}: width"] = high - low
    return figures


@study({"shared": (False, True)}, 300)
def rates(rng: np.random.Generator, *, shared: bool) -> Figures:
    """Coverage of `estimate_rate` if the unlabelled rows are 60 clusters of 30."""

    def rows(common: Array) -> tuple[Array, Array]:
        z = 1.2 * common + rng.normal(size=len(common))
        return rng.random(len(common)) < expit(z), expit(z + 0.5)

    cluster = np.repeat(np.arange(60), 30)
    y, p = rows(rng.normal(size=60)[cluster])
    chosen = rng.random(len(cluster)) < 0.1
    labelled = (y[chosen], p[chosen]) if shared else rows(rng.normal(size=200))
    others = ~chosen if shared else np.ones(len(cluster), dtype=bool)
    own = cluster[chosen] if shared else None
    found: Figures = {}
    for name, known in (("without", None), ("with", cluster[others])):
        rate = estimate_rate(*labelled, p[others], clusters=own, clusters_unlabelled=known)
        found[name] = inside(rate.low, 0.5, rate.high)
    return found


# Acceptance rules


class Rows(NamedTuple):
    """Forecasts, the true probability of each class, and what else a rule takes."""

    P: Array
    truth: Array
    options: Figures  # of `acceptance_rule`, one entry per row


def confident(rng: np.random.Generator, n: int, K: int = 4) -> Array:
    return rng.dirichlet(np.full(K, 0.6 / K), n)


def independent(rng: np.random.Generator, n: int) -> Rows:
    P = confident(rng, n)
    return Rows(P, P, {})


def too_confident(rng: np.random.Generator, n: int) -> Rows:
    P = confident(rng, n)
    return Rows(powers(P, 2.0), P, {})


def rounded_forecasts(rng: np.random.Generator, n: int) -> Rows:
    P = confident(rng, n)
    coarse = P.round(1) + 1e-9
    return Rows(coarse / coarse.sum(axis=1, keepdims=True), P, {})


def with_bump(rng: np.random.Generator, n: int) -> Rows:
    """Among sure rows a tenth is wrong three times as often: errors do not increase steadily."""
    P = confident(rng, n)
    top = P.max(axis=1)
    odd = (top > 0.98) & (top < 0.985)
    return Rows(P, np.where(odd[:, None], 0.7 * P + 0.3 / 4, P), {})


def ten_classes(rng: np.random.Generator, n: int) -> Rows:
    P = confident(rng, n, 10)
    return Rows(P, P, {})


def in_clusters(rng: np.random.Generator, n: int) -> Rows:
    """Three rows of a cluster have the same forecast, and the same label in most clusters."""
    P = np.repeat(confident(rng, -(-n // 3)), 3, axis=0)[:n]
    return Rows(P, P, {"clusters": np.arange(n) // 3})


def with_weights(rng: np.random.Generator, n: int) -> Rows:
    """Rows with unsure forecasts weigh more."""
    P = confident(rng, n)
    return Rows(P, P, {"sample_weight": rng.uniform(0.5, 1.5, n) * (2 - P.max(axis=1))})


def two_ends(rng: np.random.Generator, n: int) -> Rows:
    P = confident(rng, n, 2)
    return Rows(P, P, {})


def in_segments(rng: np.random.Generator, n: int) -> Rows:
    """Three segments, of which one is harder than its forecasts say."""
    P = confident(rng, n)
    segment = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    return Rows(P, np.where((segment == 2)[:, None], powers(P, 0.7), P), {"segments": segment})


#: A function that draws rows, number of rows, largest error, and options of `acceptance_rule`.
ACCEPTANCE: dict[str, tuple[Callable[..., Rows], int, float, Figures]] = {
    "independent": (independent, 600, 0.05, {}),
    "independent, 2 %": (independent, 600, 0.02, {}),
    "independent, 5,000 rows, 2 %": (independent, 5000, 0.02, {}),
    "too confident": (too_confident, 600, 0.05, {}),
    "rounded to .1": (rounded_forecasts, 600, 0.1, {}),
    "errors that fall and rise": (with_bump, 600, 0.05, {}),
    "clusters of three": (in_clusters, 1800, 0.05, {}),
    "weights": (with_weights, 600, 0.05, {}),
    "two ends, 5 and 10 %": (two_ends, 600, 0.05, {"max_error": (0.05, 0.1)}),
    "ten classes": (ten_classes, 600, 0.05, {}),
    "ten classes, each": (ten_classes, 5000, 0.05, {"by_class": True}),
    "three segments": (in_segments, 2000, 0.05, {}),
}


@cache
def acceptance_population(case: str) -> Rows:
    """Rows that stand for the population."""
    return ACCEPTANCE[case][0](np.random.default_rng(0), POPULATION // 8)


def zone_errors(rule: Any, rows: Rows) -> list[tuple[float, float, float, float]]:
    """For each zone its limit, true error and coverage, and the coverage of an oracle."""
    top = rows.P.argmax(axis=1)
    wrong = 1 - rows.truth[np.arange(len(top)), top]
    weights = rows.options.get("sample_weight", np.ones(len(top)))
    segments = rows.options.get("segments")
    accepted = rule.accept(rows.P, segments=segments)
    found = []
    for i in range(rule.zones.n_rows):
        inside = np.ones(len(top), dtype=bool)
        if rule.action in ("both", "class"):
            inside &= rule.classes.astype(str)[top] == rule.zones["action"][i]
        if segments is not None:
            inside &= segments.astype(str) == rule.zones["segment"][i]
        limit = float(rule.zones["max_error"][i])
        mine = inside & accepted
        error = float(np.average(wrong[mine], weights=weights[mine])) if mine.any() else 0.0
        order = np.flatnonzero(inside)[np.argsort(-rows.P.max(axis=1)[inside])]
        mass = weights[order].cumsum()
        fine = np.flatnonzero((weights * wrong)[order].cumsum() <= limit * mass)
        best = mass[fine[-1]] if len(fine) else 0.0
        found.append((limit, error, float(weights[mine].sum()), float(best)))
    return found


def broken_promises(found: list[Figures]) -> Figures:
    """Means, with the standard error of the share of broken promises."""
    row = means(found)
    share = row["broken"]
    error = float(np.sqrt(max(share * (1 - share), 1 / len(found) ** 2) / len(found)))
    return {"broken": share, "standard error": error} | row


@study({"case": tuple(ACCEPTANCE)}, 200, broken_promises)
def acceptance(rng: np.random.Generator, case: str) -> Figures:
    """Rules of confidence .9: promises broken, by a plain rule too, and share of the oracle."""
    draw_rows, n, limit, options = ACCEPTANCE[case]
    rows = draw_rows(rng, n)
    y = labels_of(rows.truth, rng)
    if "clusters" in rows.options:  # all rows of a cluster have the label of the first, mostly
        first = np.arange(n) // 3 * 3
        y = np.where(rng.random(n // 3 + 1)[np.arange(n) // 3] < 0.8, y[first], y)
    options = {"max_error": limit} | rows.options | options
    options["labels"] = range(rows.P.shape[1])
    rule = acceptance_rule(y, rows.P, confidence=0.9, **options)
    population = acceptance_population(case)
    zones = zone_errors(rule, population)
    top = rows.P.max(axis=1)
    order = np.argsort(-top)
    mistakes = (rows.P.argmax(axis=1) != y)[order].cumsum()
    fine = np.flatnonzero(mistakes <= limit * np.arange(1, n + 1))
    own = population.P.max(axis=1) >= (top[order][fine[-1]] if len(fine) else 2.0)
    truth = 1 - np.take_along_axis(population.truth, population.P.argmax(axis=1)[:, None], 1)[:, 0]
    return {
        "broken": any(error > most for most, error, *_ in zones),
        "of the oracle": sum(zone[2] for zone in zones) / sum(zone[3] for zone in zones),
        "none": not rule.certified,
        "plain broken": bool(own.any() and truth[own].mean() > limit),
    }


@study({"last": ("person", "accept"), "n": (600, 3000)}, 100, broken_promises)
def cascades(rng: np.random.Generator, last: str, n: int) -> Figures:
    """Two models with costs 1 and 10, a person 100: broken promises of 8 or 12 %, mean cost."""

    def rows(size: int) -> tuple[Array, list[Array]]:
        parts = rng.normal(size=(size, 2)) * [5.0, 4.0]
        scale = 1 / np.sqrt(1 + 16 / 3)
        return parts.sum(axis=1), [expit(parts[:, 0] * scale), expit(parts.sum(axis=1))]

    score, P = rows(n)
    limit = 0.08 if last == "person" else 0.12
    y = rng.logistic(size=n) < score
    costs = [1, 10, 100] if last == "person" else [1, 10]
    options: Any = {"costs": costs, "max_error": limit, "confidence": 0.9, "last": last}
    rule = cascade_rule(y, P, **options)
    score, P = rows(POPULATION // 8)
    labels, stages = rule.answer(*P)
    answered = stages < 2
    wrong = np.where(labels.astype(bool), expit(-score), expit(score))
    found = {"broken": bool(answered.any() and wrong[answered].mean() > limit)}
    if rule.certified:
        found |= {"cost": rule.cost.value, "first model": float(rule.shares[0])}
    return found | {"none": not rule.certified}


@cache
def network_sets() -> dict[str, tuple[Array, Array]]:
    """Forecasts of networks and language models of at least 900 rows, if the folder is there."""
    path = Path(__file__).resolve().parents[2] / "shared" / "networks" / "networks.npz"
    if not path.exists():
        return {}
    with np.load(path) as file:
        names = [name[:-2] for name in file.files if name.endswith("|P")]
        sets = {name: (file[f"{name}|P"], file[f"{name}|y"]) for name in names}
    return {name: pair for name, pair in sets.items() if len(pair[1]) >= 900}


@study({"name": tuple(network_sets()) or ("none",), "limit": (0.05, 0.1)}, 100, broken_promises)
def networks(rng: np.random.Generator, name: str, limit: float) -> Figures:
    """Rules of confidence .9 from 300 labels of a set. The whole set is the population."""
    if name not in network_sets():
        return {}
    P, y = network_sets()[name]
    some = rng.permutation(len(y))[:300]
    options: Any = {"labels": range(P.shape[1]), "action": "top"}
    rule = acceptance_rule(y[some], P[some], max_error=limit, confidence=0.9, **options)
    wrong = P.argmax(axis=1) != y
    accepted = rule.accept(P)
    order = np.argsort(-P.max(axis=1))
    fine = np.flatnonzero(wrong[order].cumsum() <= limit * np.arange(1, len(y) + 1))
    return {
        "broken": bool(accepted.any() and wrong[accepted].mean() > limit),
        "error of all": float(wrong.mean()),
        "coverage": float(accepted.mean()),
        "oracle": (fine[-1] + 1) / len(y) if len(fine) else 0.0,
        "none": not rule.certified,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("studies", nargs="*", help=f"of {', '.join(STUDIES)}")
    parser.add_argument("--repetitions", type=int, help="the default depends on the study")
    parser.add_argument("--quick", action="store_true", help="few settings and repetitions")
    parser.add_argument("--jobs", type=int, help="processes; one per core by default")
    options = parser.parse_args()
    unknown = set(options.studies) - set(STUDIES)
    if unknown:
        parser.error(f"unknown studies: {', '.join(sorted(unknown))}")
    for name in options.studies or STUDIES:
        run(name, options)


if __name__ == "__main__":
    main()
