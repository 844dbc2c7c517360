"""How often intervals of calibration terms and errors cover the truth, and the level of verdicts.

    python benchmarks/coverage.py [--quick] [--jobs N] [--repetitions N] [--only WHAT]

Draws labels with known probabilities. Forecasts have 2 to 50 distinct values, are continuous, or
are rounded to 6 to 1 digits. They are calibrated, too confident or not confident enough (a power of
the truth, normalised), or forecast events of 1 %, rightly or twice as often. Prints, for each
setting, how often 95 % intervals of the calibration terms of log loss and Brier score and of the l1
calibration error cover the truth. For calibrated forecasts an interval misses only if it lies above
0. Then the verdict of `evaluate` is to calibrate, so its level is 1 less the coverage for the log
loss.

With ``--only evaluate``: the intervals of `evaluate` and of the clinical panel, for few rows,
weights, ties, rare events and clustered rows, and the level of the test of calibration with
clusters. With ``--only areas``: those of AUC, for few rows of a class and good scores.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, xlogy

from isoroc import evaluate
from isoroc._input import check_probabilities
from isoroc.metrics import calibration_summary, calibration_test
from isoroc.metrics._estimation.calibration_terms import Parts

Array = np.ndarray
MEASURES = ("log", "brier", "l1")
#: Power of the truth that forecasts are, and by how much the rate of rare events is too large.
POWERS = {"calibrated": 1.0, "over 1.2": 1.2, "over 2": 2.0, "under .8": 0.8, "under .5": 0.5}
RARE = {"1 % events": 1.0, "1 % doubled": 2.0}
KINDS = (*POWERS, *RARE)
#: Number of distinct forecasts; 0 for continuous ones.
VALUES = (2, 5, 10, 20, 50, 0)


class Case(NamedTuple):
    """A setting."""

    n_classes: int
    values: int
    n: int
    kind: str
    digits: int | None = None


def draw_truth(case: Case, size: int, rng: np.random.Generator) -> Array:
    """True probabilities of some forecasts."""
    K = case.n_classes
    if case.kind in POWERS:
        if K == 2 and case.values:
            u = (np.arange(size) + 0.5) / size
            return np.column_stack([1 - u, u])
        return rng.dirichlet(np.ones(K), size)
    event = 0.01 * np.exp(rng.normal(size=size) / 2 - 1 / 8)
    rest = rng.dirichlet(np.ones(K - 1), size) * event[:, None]
    return np.column_stack([1 - event, rest])


def forecast(truth: Array, kind: str) -> Array:
    """The forecasts of true probabilities."""
    if kind in POWERS:
        P = truth ** POWERS[kind]
        return P / P.sum(axis=1, keepdims=True)
    events = RARE[kind] * truth[:, 1:]
    return np.column_stack([1 - events.sum(axis=1), events])


def rounded(P: Array, digits: int | None) -> Array:
    """Forecasts with a number of digits; the first of two classes has the rest."""
    if digits is None:
        return P
    P = P.round(digits)
    P[:, 0] += (P.shape[1] == 2) * (1 - P.sum(axis=1))
    return P / P.sum(axis=1, keepdims=True)


def given(truth: Array, P: Array) -> Array:
    """E[Y | forecast]: the mean truth of the rows with the same forecast."""
    _, group, n = np.unique(P, axis=0, return_inverse=True, return_counts=True)
    group = group.ravel()
    means = [np.bincount(group, column) / n for column in truth.T]
    return np.column_stack(means)[group]


def targets(truth: Array, P: Array) -> dict[str, float]:
    """What is estimated."""
    half = 2 if P.shape[1] == 2 else 1
    square = ((truth - P) ** 2).sum(axis=1).mean()
    least = np.finfo(np.float64).eps  # as in the log loss
    divergence = (xlogy(truth, truth) - xlogy(truth, P.clip(min=least))).sum(axis=1).mean()
    return {
        "log": max(float(divergence), 0.0) if (truth != P).any() else 0.0,
        "brier": float(square / half),
        "l1": float(np.abs(truth - P).sum(axis=1).mean() / 2),
    }


def study(case: Case, repetitions: int) -> dict[str, float]:
    """Share of repetitions in which the intervals cover."""
    rng = np.random.default_rng([KINDS.index(case.kind), *case[:3], case.digits or 0])
    support = draw_truth(case, case.values or 400_000, rng)
    P = rounded(forecast(support, case.kind), case.digits)
    expected = targets(support if case.digits is None else given(support, P), P)
    covered = dict.fromkeys(MEASURES, 0)
    for _ in range(repetitions):
        truth = support[rng.integers(len(support), size=case.n)]
        y = (rng.random((case.n, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
        P = rounded(forecast(truth, case.kind), case.digits)
        sample = check_probabilities(y, P, None, range(case.n_classes), keep_zeros=True)
        parts = Parts.of(sample, "canonical")
        for measure in MEASURES:
            if measure == "l1":
                estimate, _ = parts.absolute()
            else:
                estimate, _ = parts.split_loss(measure)["calibration"]
            low, high = estimate.interval(0.95)
            covered[measure] += low <= expected[measure] <= max(high, 0.0)
    return {measure: count / repetitions for measure, count in covered.items()}


def cases(*, quick: bool, only: str) -> Iterator[Case]:
    sizes = (200, 1000) if quick else (200, 1000, 5000, 20_000)
    classes = (2, 3) if quick else (2, 3, 10)
    for K, values, n, kind in product(classes, VALUES, sizes, KINDS):
        if quick and values in (2, 10, 50):
            continue
        if only in ("", "tied" if values else "continuous"):
            yield Case(K, values, n, kind)
    for K, digits, kind in product((2, 3), (6, 4, 3, 2, 1), KINDS):
        for n in (2000,) if quick else (2000, 300_000 if K == 2 else 20_000):
            if only in ("", "rounded"):
                yield Case(K, 0, n, kind, digits)


def name_of(case: Case) -> str:
    """The forecasts of a setting, without their kind."""
    if case.digits is not None:
        return f"{case.digits} digits"
    return str(case.values or "continuous")


def report(found: dict[Case, dict[str, float]]) -> None:
    """The tables, and their extremes."""
    rows: dict[Case, list[Case]] = {}
    for case in found:
        rows.setdefault(case._replace(kind=""), []).append(case)
    for measure in MEASURES:
        print(f"\n### {measure}\n\n| K | values | n | " + " | ".join(KINDS) + " |")
        print("| ---: " * (3 + len(KINDS)) + "|")
        for row, of_kinds in rows.items():
            cells = " | ".join(f"{found[case][measure]:.3f}" for case in of_kinds)
            print(f"| {row.n_classes} | {name_of(row)} | {row.n:,} | {cells} |")
    for name in ("tied", "continuous", "rounded"):
        some = {case: shares for case, shares in found.items() if group_of(case) == name}
        for measure in MEASURES if some else ():
            shares = np.array([value[measure] for value in some.values()])
            right = [v[measure] for c, v in some.items() if c.kind in ("calibrated", "1 % events")]
            within = np.mean((shares >= 0.92) & (shares <= 0.98))
            print(
                f"\n{name}, {measure}: coverage {shares.min():.3f} to {shares.max():.3f}, mean "
                f"{shares.mean():.3f}, in {within:.0%} of the settings .92 to .98; level "
                f"{1 - np.mean(right):.3f} on average, {1 - min(right):.3f} at most"
            )


class Design(NamedTuple):
    """Rows of two classes whose forecasts are a power of their probabilities."""

    name: str
    n: int
    power: float = 1.0
    rate: float = 0.0
    """Mean probability of rare events; 0 for uniformly distributed probabilities."""
    values: int = 0
    """Number of distinct forecasts; 0 for continuous ones."""
    weighted: bool = False
    """Whether weights have an exponential distribution, independent of everything else."""
    size: int = 1
    """Rows per cluster. Their probabilities have a correlation of .5 on the probit scale, and their
    outcomes, given the probabilities, one of .3."""

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """True probabilities, outcomes and clusters."""
        cluster = np.arange(n) // self.size
        common, own = rng.normal(size=(2, n)), rng.normal(size=(2, n))
        shared = np.array([[0.5], [0.3]]) * (self.size > 1)
        x, z = np.sqrt(shared) * common[:, cluster] + np.sqrt(1 - shared) * own
        p = self.rate * np.exp(x / 2 - 1 / 8) if self.rate else ndtr(x)
        if self.values:
            p = (np.floor(p * self.values) + 0.5) / self.values
        p = p.clip(1e-6, 1 - 1e-6)
        return p, z < ndtri(p), cluster

    def forecasts(self, p: Array) -> tuple[Array, Array]:
        """Forecasts before and after calibration."""
        a, b = (p ** (self.power * t) / (p ** (self.power * t) + (1 - p) ** (self.power * t))
                for t in (1.0, 0.8))  # fmt: skip
        return a, b


POWERS_OF = {"calibrated": 1.0, "overconfident": 2.0, "underconfident": 0.5}
DESIGNS = [
    *(Design(f"{name}{', weighted' * w}", n, t, weighted=w)
      for name, t in POWERS_OF.items() for n in (100, 500) for w in (False, True)),
    *(Design(f"{name}, 5 values", 500, t, values=5) for name, t in POWERS_OF.items()),
    *(Design(f"{name}, 1 % events", 500, t, rate=0.01) for name, t in POWERS_OF.items()),
    *(Design(f"{name}, clusters of 5", n, t, size=5)
      for name, t in POWERS_OF.items() for n in (300, 1000)),
]  # fmt: skip
#: What is covered: a measure, and of which forecasts.
COVERED = {
    "log loss": ("log_loss", "before"),
    "its change": ("log_loss", "change"),
    "Brier score": ("brier_score_loss", "before"),
    "accuracy": ("accuracy", "before"),
    "AUC": ("auc", "before"),
    "calibration loss": ("calibration_loss", "before"),
    "calibration error": ("calibration_error", "before"),
    "ICI": ("ici", "before"),
}


def truths(design: Design) -> dict[tuple[str, str], float]:
    """Expected values of the measures."""
    p, _, _ = design._replace(size=1).draw(400_000, np.random.default_rng(0))
    found = {}
    for of, q in zip(("before", "after"), design.forecasts(p), strict=True):
        found["log_loss", of] = float(-(p * np.log(q) + (1 - p) * np.log1p(-q)).mean())
        found["brier_score_loss", of] = float((p * (1 - q) ** 2 + (1 - p) * q**2).mean())
        found["accuracy", of] = float(np.where(q > 0.5, p, 1 - p).mean())
        found["calibration_error", of] = found["ici", of] = float(np.abs(p - q).mean())
        found["calibration_loss", of] = found["log_loss", of] + float(
            (xlogy(p, p) + xlogy(1 - p, 1 - p)).mean()
        )
        _, rank = np.unique(q, return_inverse=True)
        events, others = np.bincount(rank, p), np.bincount(rank, 1 - p)
        below = np.cumsum(others) - others / 2
        found["auc", of] = float(events @ below / (events.sum() * others.sum()))
    found["log_loss", "change"] = found["log_loss", "after"] - found["log_loss", "before"]
    return found


def study_evaluate(design: Design, repetitions: int) -> dict[str, float]:
    """Share of intervals that cover, and with clusters the level of the test."""
    expected = truths(design)
    covered = {name: [] for name in COVERED} | {"test": []}
    for seed in range(repetitions):
        rng = np.random.default_rng([seed, design.n])
        p, y, cluster = design.draw(design.n, rng)
        if y.all() or not y.any():
            continue
        before, after = design.forecasts(p)
        options = {"labels": [False, True], "clusters": cluster if design.size > 1 else None}
        options["sample_weight"] = rng.exponential(size=design.n) if design.weighted else None
        measures = evaluate(y, before, after, n_resamples=0, **options).measures
        panel = calibration_summary(y, before, **options).table
        ici = [panel[end][panel["measure"] == "ici"][0] for end in ("low", "high")]
        for name, (measure, of) in COVERED.items():
            low, high = ici if measure == "ici" else measures[measure][of][1:]
            if not np.isnan(low):
                within = (
                    low <= expected[measure, of] + 1e-9 and expected[measure, of] <= high + 1e-9
                )
                covered[name].append(within)
        if design.size > 1 and design.power == 1:
            found = calibration_test(y, before, n_resamples=199, random_state=seed, **options)
            covered["test"].append(found.p_value <= 0.05)
    return {name: float(np.mean(hits)) for name, hits in covered.items() if hits}


def report_evaluate(found: dict[Design, dict[str, float]]) -> None:
    print("| forecasts | n | " + " | ".join(COVERED) + " |")
    print("| --- | ---: |" + " ---: |" * len(COVERED))
    for design, shares in found.items():
        cells = (f"{shares[name]:.3f}".lstrip("0") for name in COVERED)
        print(f"| {design.name} | {design.n:,} | " + " | ".join(cells) + " |")
    for design, shares in found.items():
        if "test" in shares:
            print(f"level of the test, {design.name}, {design.n:,} rows: {shares['test']:.3f}")


class Scores(NamedTuple):
    """Normal scores of some events among n rows, with a given AUC."""

    events: int
    n: int
    auc: float


AREAS = [Scores(*row) for row in (
    (1, 100, 0.8), (2, 100, 0.8), (5, 500, 0.8), (5, 500, 0.9), (10, 100, 0.8), (10, 100, 0.95),
    (10, 500, 0.98), (15, 30, 0.99), (50, 100, 0.83), (50, 100, 0.95), (250, 500, 0.75),
)]  # fmt: skip


def study_areas(case: Scores, repetitions: int) -> dict[str, float]:
    """Share of intervals of AUC that cover."""
    covered, y = 0, np.arange(case.n) < case.events
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        scores = rng.normal(size=case.n) + np.sqrt(2) * ndtri(case.auc) * y
        _, low, high = evaluate(y, scores, unit="logit", n_resamples=0).measures["auc"]["before"]
        covered += low <= case.auc <= high
    return {"covered": covered / repetitions}


def report_areas(found: dict[Scores, dict[str, float]]) -> None:
    print("| events | n | AUC | covered |\n| ---: | ---: | ---: | ---: |")
    for case, shares in found.items():
        print(f"| {case.events} | {case.n} | {case.auc:g} | {shares['covered']:.3f} |")


def group_of(case: Case) -> str:
    if case.digits is not None:
        return "rounded"
    return "tied" if case.values else "continuous"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few settings and repetitions")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--repetitions", type=int, default=None, help="data sets per setting")
    only = ("tied", "continuous", "rounded", "evaluate", "areas")
    parser.add_argument("--only", choices=only, default="")
    options = parser.parse_args()
    repetitions = options.repetitions or (20 if options.quick else 400)
    own, show, chosen = study, report, list(cases(quick=options.quick, only=options.only))
    if options.only == "evaluate":
        own, show, chosen = study_evaluate, report_evaluate, DESIGNS
    elif options.only == "areas":
        own, show, chosen = study_areas, report_areas, AREAS
    times = [repetitions] * len(chosen)
    if options.jobs == 1:
        found = list(map(own, chosen, times))
    else:
        with ProcessPoolExecutor(options.jobs) as pool:
            found = list(pool.map(own, chosen, times))
    print(f"{repetitions} data sets for each setting")
    show(dict(zip(chosen, found, strict=True)))


if __name__ == "__main__":
    main()
