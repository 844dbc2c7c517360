"""Study: the design of the automatic calibrator, chosen and evaluated leaving out whole data sets.

    python benchmarks/study.py ARENA [--rows 80,200,300,500,1000,2500,0] [--repetitions 3]
                                     [--jobs N] [--only WORD] [--peers A,B] [--out FOLDER]
                                     [--report]

ARENA is the same as for quality.py. All rows of a set are split at random, several times, into
calibration rows (as many as --rows says; 0 stands for as many as the set has) and test rows. On
each split the candidate members predict the calibration rows out of fold and the test rows once;
all designs (members, shares in the prior) are mixtures of these forecasts.
`AutoCalibrator` as it is and the peers are fitted to the same rows. The results are written to
FOLDER/study.npz (build/study by default), and --report reads them instead of computing them.

For each data set the design is chosen that is best on all other data sets: of the lowest mean loss
among those that rarely harm with few rows. What is printed for "chosen" are its results on the data
set left out.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from arena import CLIP, GROUPS, Set, read_sets
from joblib import Parallel, delayed
from peers import peers
from quality import silence
from sklearn.base import clone

import isoroc
from isoroc._calibrators import mixing
from isoroc._calibrators.base import Calibrator
from isoroc._counts import deal_by_content
from isoroc._input import Sample, encode_labels
from isoroc._maps import IdentityMap
from isoroc._support.progress import progress

CANDIDATES: dict[str, Calibrator] = {
    "identity": isoroc.IdentityCalibrator(),
    "temperature": isoroc.TemperatureCalibrator(),
    "spline": isoroc.SplineCalibrator(),
    "monotone": isoroc.MonotoneCalibrator(),
    "kernel": isoroc.KernelCalibrator(),
    "matrix": isoroc.MatrixCalibrator(),
}
#: Peers that fit in seconds, by default.
QUICK = "SMS,SVS,Beta,Quadratic,Logistic,TS,TS with mixture,ETS,CIR"
QUICK += ",sklearn isotonic,sklearn sigmoid,sklearn temperature"
#: Share of the rarer class in the sets that are thinned.
RARE = 0.015
#: Share of the test rows with the largest scores, the upper tail.
TAIL = 0.01
#: A design may harm significantly on this share of the splits with at most so many rows.
MOST_HARM, FEW = 0.05, 300
#: Differences of more standard errors than this are significant.
SIGNIFICANT = 1.96


class Design(NamedTuple):
    """Members with their shares in the prior; the first are the uncalibrated forecasts."""

    shares: tuple[tuple[str, float], ...]
    few_rows: float

    def __str__(self) -> str:
        shares = " : ".join(f"{name} {share:g}" for name, share in self.shares)
        return f"{shares}, few rows {self.few_rows:g}"

    def prior(self, n_rows: float, p: float) -> np.ndarray:
        """The shares, for a number of rows and the p-value of the forecasts."""
        shares = np.array([share for _, share in self.shares], dtype=np.float64)
        shares[0] = mixing.share_of_forecasts(shares[0], self.few_rows, n_rows, p)
        return shares


#: Shares to choose from; 0 leaves a member out.
GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    "K = 2": {
        "identity": (4, 8),
        "temperature": (0, 2),
        "spline": (4,),
        "monotone": (0, 2),
        "kernel": (0, 0.5, 1),
    },
    "K >= 3": {
        "identity": (4, 8),
        "temperature": (0, 2),
        "spline": (0, 1),
        "monotone": (0, 2, 4),
        "kernel": (1, 2),
    },
}
FEW_ROWS = (0, 150, 600)


def designs(group: str) -> list[Design]:
    """All designs of a group of sets; the first are single members."""
    found = [Design(((name, 1.0),), 0) for name in CANDIDATES]
    for few_rows, *shares in product(FEW_ROWS, *GRIDS[group].values()):
        used = zip(GRIDS[group], shares, strict=True)
        found.append(Design(tuple((n, s) for n, s in used if s), few_rows))
    return list(dict.fromkeys(found))


def group_of(n_classes: int) -> str:
    """Name of the group that sets of so many classes belong to."""
    return next(group for group, where in GROUPS.items() if where(n_classes))


class Forecasts(NamedTuple):
    """What methods forecast for the test rows."""

    own: np.ndarray
    """Likelihood of the outcome of each row, shape (..., n)."""
    tail: np.ndarray
    """Mean forecast of the rarest class in its upper tail, shape (...,)."""

    @classmethod
    def of(cls, data: Set, Q: np.ndarray) -> Forecasts:
        """Of the forecasts of one method."""
        Q = np.maximum(np.asarray(Q, dtype=np.float64), 0)
        Q = Q / Q.sum(axis=1, keepdims=True)
        return cls(Q[np.arange(len(Q)), data.labels_test], Q[upper_tail(data)].mean())


def upper_tail(data: Set) -> tuple[np.ndarray, int]:
    """The test rows with the largest uncalibrated scores of the rarest class, and that class."""
    rarest = int(np.bincount(data.labels_test, minlength=data.n_classes).argmin())
    score = data.probas_test[:, rarest]
    return np.argsort(-score, kind="stable")[: max(10, round(TAIL * len(score)))], rarest


class Candidates(NamedTuple):
    """What the candidates forecast for the rows of a split."""

    unseen: np.ndarray
    """Likelihoods of distinct calibration rows out of fold, shape (n, M),"""
    weights: np.ndarray
    """and their weights."""
    p: float
    """Of the test of the uncalibrated forecasts."""
    test: Forecasts


def fit_candidates(data: Set) -> Candidates:
    """Forecasts of all candidates."""
    _, codes = encode_labels(data.labels_cal, data.n_classes, labels=range(data.n_classes))
    sample = deal_by_content(Sample(data.probas_cal, codes), 5, np.random.RandomState(0))
    fold = sample.folds()
    unseen, test = [], []
    for candidate in CANDIDATES.values():
        fitted, Q = clone(candidate)._fit_out_of_fold(sample, fold)  # noqa: SLF001
        unseen.append(Q[np.arange(len(fold)), sample.codes])
        test.append(Forecasts.of(data, fitted.apply(data.probas_test)))
    own, tail = (np.array(part) for part in zip(*test, strict=True))
    weights, before = sample.row_weights(), IdentityMap(kind=sample.kind).apply(sample.forecasts)
    p = mixing.departure(before, sample, weights)
    return Candidates(np.array(unseen).T, weights, p, Forecasts(own, tail))


def mix(found: Candidates, design: Design) -> Forecasts:
    """Forecasts of a mixture."""
    used = [list(CANDIDATES).index(name) for name, _ in design.shares]
    prior = design.prior(found.weights.sum(), found.p)
    w = mixing.mixture_weights(found.unseen[:, used], found.weights, prior)
    return Forecasts(w @ found.test.own[used], w @ found.test.tail[used])


def score(data: Set, found: list[Forecasts | None]) -> np.ndarray:
    """Loss, harm over its error, and tail error of each method, shape (M, 3)."""
    tail, rarest = upper_tail(data)
    outcomes = (data.labels_test[tail] == rarest).mean()
    rows = np.full((len(found), 3), np.nan)
    before = -np.log(Forecasts.of(data, data.probas_test).own.clip(CLIP, 1))
    for row, forecasts in zip(rows, found, strict=True):
        if forecasts is not None:
            loss = -np.log(forecasts.own.clip(CLIP, 1))
            error = (loss - before).std() / np.sqrt(len(loss))
            harm = (loss - before).mean() / error if error > 0 else 0.0
            row[:] = loss.mean(), harm, abs(forecasts.tail - outcomes)
    return rows


def study_split(data: Set, peer_names: list[str]) -> np.ndarray:
    """Scores of the uncalibrated forecasts, of ours, of all designs, and of the peers."""
    group = group_of(data.n_classes)
    found: list[Any] = [Forecasts.of(data, data.probas_test)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = isoroc.AutoCalibrator(random_state=0)
        ours.fit(data.probas_cal, data.labels_cal, labels=range(data.n_classes))
        found.append(Forecasts.of(data, ours.predict_proba(data.probas_test)))
        found.append(found[ours.verdict_.should_calibrate])
        candidates = fit_candidates(data)
        found += [mix(candidates, design) for design in designs(group)]
        with silence():
            found += [fit_peer(name, data) for name in peer_names]
    return score(data, found)


def fit_peer(name: str, data: Set) -> Forecasts | None:
    """Forecasts of a peer; None where it fails or does not apply."""
    method = next(method for method in peers()[0] if method.name == name)
    alike = name == "Logistic"  # of three classes and more it is SMS
    if (method.binary_only or alike) and data.n_classes > 2:
        return None
    try:
        Q = method.make().fit(data.probas_cal, data.labels_cal).predict_proba(data.probas_test)
    except Exception:  # noqa: BLE001  a peer that fails is left out
        return None
    usable = np.shape(Q) == data.probas_test.shape and np.isfinite(Q).all()
    return Forecasts.of(data, Q) if usable else None


def splits(arena: Path, options: argparse.Namespace) -> Iterator[tuple[Set, int, int]]:
    """All splits with their number of rows and repetition; large ones are repeated less often."""
    for whole in read_sets(arena):
        if options.only not in whole.name:
            continue
        for data in [whole, *(whole.thinned(RARE) if whole.n_classes == 2 else ())]:
            for n_rows in map(int, options.rows.split(",")):
                n_times = min(options.repetitions, 2000 // (n_rows or len(data.labels_cal)))
                for repetition in range(max(1, n_times)):
                    part = data.split(n_rows, repetition)
                    if part is not None:
                        yield part, n_rows, repetition


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Results of all splits, by group: scores of shape (splits, methods, 3), and what each is."""
    names = [method.name for method in peers()[0] if method.name in options.peers.split(",")]
    work = sorted(splits(options.arena, options), key=lambda s: -s[0].probas_cal.size)

    def one(part: Set, n_rows: int, repetition: int) -> tuple[Any, ...]:
        scores = study_split(part, names)
        about = (part.dataset, part.model, part.n_classes, len(part.labels_cal), n_rows, repetition)
        return group_of(part.n_classes), about, scores

    os.environ.setdefault("OMP_NUM_THREADS", "1")
    jobs = Parallel(n_jobs=options.jobs, return_as="generator_unordered", batch_size=1)
    found: dict[str, list[tuple[Any, np.ndarray]]] = {}
    with progress("study", shown=True) as report:
        for count, (group, about, scores) in enumerate(jobs(delayed(one)(*s) for s in work)):
            found.setdefault(group, []).append((about, scores))
            report(f"{count + 1} of {len(work)} splits")
    results: dict[str, Any] = {"peers": np.array(names)}
    for group, rows in found.items():
        results[f"{group} about"] = np.array([about for about, _ in rows], dtype=object).astype(str)
        results[f"{group} scores"] = np.array([scores for _, scores in rows], dtype=np.float32)
    return results


class Results:
    """Scores of the methods on the splits of one group of sets."""

    def __init__(self, group: str, about: np.ndarray, scores: np.ndarray, names: list[str]) -> None:
        self.dataset, self.model = about[:, 0], about[:, 1]
        self.n_classes, self.n_rows = about[:, 2].astype(int), about[:, 4].astype(int)
        self.tried = designs(group)
        self.loss, self.harm, self.tail = np.moveaxis(scores, 2, 0)
        first = 3 + len(self.tried)
        self.columns = {"uncalibrated": 0, "default": 1, "default, caution": 2}
        self.columns |= {name: 3 + m for m, name in enumerate(CANDIDATES)}
        self.columns |= {name: first + m for m, name in enumerate(names)}
        self.peers = np.array([0, *range(first, scores.shape[1])])
        self.own = np.arange(3 + len(CANDIDATES), first)
        self.best = np.nanmin(self.loss, axis=1)
        self.thinned = np.char.find(self.model, " ") > 0

    def choose(self, left_out: str | None) -> int:
        """Column of the best design on all data sets but one.

        That is the one of the lowest mean loss among those that with few rows harm significantly on
        at most `MOST_HARM` of the splits. Data sets and numbers of rows count alike.
        """
        whole = ~self.thinned & (self.dataset != left_out)
        few = whole & (self.n_rows > 0) & (self.n_rows <= FEW)
        harm = (self.harm[few][:, self.own] > SIGNIFICANT).mean(axis=0)
        means = [
            self.loss[whole & (self.dataset == name) & (self.n_rows == rows)][:, self.own].mean(
                axis=0
            )
            for name in np.unique(self.dataset[whole])
            for rows in np.unique(self.n_rows[whole & (self.dataset == name)])
        ]
        mean = np.where(harm <= max(MOST_HARM, harm.min()), np.mean(means, axis=0), np.inf)
        return int(self.own[mean.argmin()])

    def chosen(self) -> dict[str, int]:
        """Column of the design of each data set, chosen without it."""
        return {str(name): self.choose(name) for name in np.unique(self.dataset)}

    def line(self, columns: np.ndarray, where: np.ndarray) -> list[str]:
        """Cells of a table for the method of each split, on some of the splits."""
        rows = np.flatnonzero(where)
        loss, harm = self.loss[rows, columns[rows]], self.harm[rows, columns[rows]]
        rows, loss, harm = (part[np.isfinite(loss)] for part in (rows, loss, harm))
        rivals = self.loss[rows][:, self.peers]
        rivals[self.peers == columns[rows][:, None]] = np.nan
        wins = np.where(np.isnan(rivals), np.nan, (1 + np.sign(rivals - loss[:, None])) / 2)
        regret, before = loss - self.best[rows], self.loss[rows, 0]
        datasets = self.dataset[rows]
        change = loss - before
        much = (change > 0.01 * before) & (change > 0.002)
        cells = [interval(np.nanmean(wins, axis=1), datasets, ".3f")]
        cells += [interval(1e3 * regret, datasets, ".2f"), f"{loss.mean():.4f}"]
        cells += [f"{100 * np.mean(part):.1f}" for part in (change > 0, harm > SIGNIFICANT, much)]
        return [
            *cells,
            f"{1e3 * change.max():.1f}",
            f"{np.nanmean(self.tail[rows, columns[rows]]):.4f}",
        ]


HEAD = ["method", "wins", "regret, 1e-3", "log loss", "harm, %", "significant, %", "> 1 %, %"]
HEAD += ["worst, 1e-3", "tail error"]


def interval(values: np.ndarray, datasets: np.ndarray, spec: str) -> str:
    """Mean, and a 95 % interval from resampled data sets."""
    names, group = np.unique(datasets, return_inverse=True)
    total, count = np.bincount(group, values), np.bincount(group)
    rng = np.random.default_rng(0)
    times = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), 2000)
    low, high = np.quantile((times @ total) / (times @ count), [0.025, 0.975])
    return f"{values.mean():{spec}} ({low:{spec}} to {high:{spec}})"


def report(group: str, results: Results) -> Iterator[str]:
    """Lines of the tables of one group of sets."""
    chosen = results.chosen()
    overall = results.choose(None)
    yield f"\n## {group}: {len(set(zip(results.dataset, results.model, strict=True)))} sets\n"
    yield f"Chosen on all data sets: {results.tried[overall - 3]}.\n"
    yield "Chosen without each data set:\n"
    for column in sorted(set(chosen.values())):
        names = ", ".join(name for name, of in chosen.items() if of == column)
        yield f"- {results.tried[column - 3]}: {names}"
    n = len(results.dataset)
    methods = {"chosen, left out": np.array([chosen[name] for name in results.dataset])}
    methods |= {name: np.full(n, column) for name, column in results.columns.items()}
    for label, where in parts(group, results).items():
        few = label != "all splits"
        if where.any():
            yield f"\n{label}: {where.sum()} splits\n\n| " + " | ".join(HEAD) + " |"
            yield "|---" * len(HEAD) + "|"
            for name, columns in methods.items():
                if few and name not in (
                    "chosen, left out",
                    "default",
                    "uncalibrated",
                    "SMS",
                    "SVS",
                    "Beta",
                ):
                    continue
                if np.isfinite(results.loss[np.flatnonzero(where), columns[where]]).any():
                    yield f"| {name} | " + " | ".join(results.line(columns, where)) + " |"


def parts(group: str, results: Results) -> dict[str, np.ndarray]:
    """Splits by number of rows, of classes, and by kind of model."""
    whole = ~results.thinned
    found = {"all splits": whole}
    for rows in np.unique(results.n_rows):
        found[f"{rows or 'all'} rows"] = whole & (results.n_rows == rows)
    if group != "K = 2":
        bounds: list[tuple[str, Callable[[np.ndarray], np.ndarray]]] = [
            ("K = 3 to 5", lambda K: K <= 5),
            ("K = 6 to 12", lambda K: (K > 5) & (K <= 12)),
            ("K > 12", lambda K: K > 12),
        ]
        found |= {label: test(results.n_classes) for label, test in bounds}
    found |= {f"model {kind}": results.model == kind for kind in np.unique(results.model[whole])}
    for kind in ("rare", "undersampled"):
        found[f"{kind}: {RARE:.1%} of the rows"] = np.char.endswith(results.model, kind)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("arena", type=Path)
    parser.add_argument("--rows", default="80,200,300,500,1000,2500,0")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="sets whose name contains this")
    parser.add_argument("--peers", default=QUICK)
    parser.add_argument("--out", type=Path, default=Path("build/study"))
    parser.add_argument("--report", action="store_true", help="of the results in --out")
    options = parser.parse_args()
    path = options.out / "study.npz"
    if not options.report:
        options.out.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, **run(options))
    with np.load(path) as found:
        for group in GROUPS:
            if f"{group} about" in found:
                arrays = found[f"{group} about"], found[f"{group} scores"]
                results = Results(group, *arrays, found["peers"].tolist())
                print("\n".join(report(group, results)))


if __name__ == "__main__":
    main()
