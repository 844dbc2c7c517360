"""Quality: calibrators on sets of real forecasts, evaluated on test rows.

    python benchmarks/quality.py ARENA [PART ...] [--sets WORD,... or N] [--members A,B]
        [--methods A,B] [--rows 80,300,1000,0] [--repetitions 2] [--rare] [--jobs N] [--out FOLDER]

ARENA is a folder of sets dataset-model.npz, each with probas_cal, labels_cal, probas_test and
labels_test, or an HDF5 file that contains them as dataset/model/probas_cal and so on.

All rows of a set are split at random into calibration rows, as many as --rows says (0: as many as
the set has), and test rows. On each split the methods are fitted, and the candidate members
forecast the calibration rows out of fold and the test rows once. All designs of the automatic
calibrator (members, shares in the prior) are mixtures of these forecasts. Parts:

halves   The data sets, not the rows, are divided by a hash of their source. The design is chosen
         on one half and reported on the other, and the other way round: wins over external methods
         next to significant gains and harm, by rows, classes, ties and kind of model.
methods  All methods with all calibration rows: win rates, mean scores, times, and
         the automatic calibrator against each other method.
networks The same for forecasts of networks and language models, by kind and number of rows. ARENA
         is then a folder with files of arrays NAME|P (probabilities) and NAME|y (class codes).
order    What each calibrator does to decisions and to the order of the test rows.
counts   Counts against rows in test log loss, on generated rows.
growth   Variants of growth, and constant against tilted values, with `IRPCalibrator`.
segments `SegmentCalibrator`, its common map, Platt scaling and MCGrad (if installed) for three
         models. ARENA is then a folder of CSV files whose last column is the label.
labels   Several labels and ordered classes, 500 calibration rows: generated sets, and sets of
         ARENA with features X and Y, a matrix of 0 and 1 or a vector of ordered classes.

The first two, which run by default, write one line per split to FOLDER/splits.jsonl (build/quality
by default), and take splits that are there from it. --rare adds sets of two classes in which the
rarer one is thinned. Cheap: --sets 20 (every Nth set so that 20 are left), --members
identity,spline, --rows 300 --repetitions 1. Peers that are not installed are left out
(benchmarks/requirements.txt). Methods of scikit-learn and of papers need nothing else.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import chain, product
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from arena import CLIP, GROUPS, Set, losses_of, read_sets, scores_of
from joblib import Parallel, delayed
from peers import Method, Uncalibrated, own_methods, peers
from scipy.special import logit
from sklearn.base import clone
from sklearn.calibration import _SigmoidCalibration
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import isoroc
from isoroc import IRPCalibrator
from isoroc._calibrators import mixing
from isoroc._calibrators.base import Calibrator
from isoroc._core.evidence import score_test
from isoroc._counts import deal_by_content
from isoroc._input import Sample, encode_labels
from isoroc._maps import IdentityMap
from isoroc._support.progress import progress
from isoroc._support.table import markdown_table

BEFORE = "Uncalibrated"
AUTO = "isoroc Auto"
CAUTIOUS = "isoroc Auto, verdict"
CHOSEN = "chosen"
#: Methods that fit in seconds, by default. Peers are included if they are installed.
QUICK = f"{BEFORE},{AUTO},isoroc Auto, monotone,isoroc IRP,isoroc spline,isoroc kernel"
QUICK += ",isoroc monotone,isoroc isotonic,SMS,SVS,Beta,Quadratic,TS,ETS,CIR,NA-FIR"
QUICK += ",TvA isotonic,TvA temperature,sklearn isotonic,sklearn sigmoid,sklearn temperature"
#: The peer that tables by part of the splits show: the first that is there.
RIVALS = ("SMS", "sklearn temperature", "sklearn isotonic")
#: Share of the rarer class in the sets that are thinned, and of the test rows in the upper tail.
RARE = 0.015
TAIL = 0.01
#: A design may harm significantly on this share of the splits with few rows.
MOST_HARM = 0.05
FEW = 300
#: Differences of more standard errors than this are significant.
SIGNIFICANT = 1.96

# The designs of the automatic calibrator

CANDIDATES: dict[str, Calibrator] = {
    "identity": isoroc.IdentityCalibrator(),
    "temperature": isoroc.TemperatureCalibrator(floor="auto"),
    "spline": isoroc.SplineCalibrator(),
    "monotone": isoroc.MonotoneCalibrator(),
    "sigmoid": isoroc.SigmoidCalibrator(),
    "beta": isoroc.BetaCalibrator(),
    "kernel": isoroc.KernelCalibrator(),
}
#: Shares to choose from, where 0 leaves a member out.
GRIDS: dict[str, dict[str, tuple[float, ...]]] = {group: {"identity": (4, 8)} for group in GROUPS}
GRIDS["K = 2"] |= {
    "spline": (3, 4),
    "monotone": (0, 3),
    "sigmoid": (0, 1.5),
    "beta": (0, 1.5),
    "kernel": (0.5,),
}
GRIDS["K >= 3"] |= {
    "temperature": (0, 2, 4),
    "spline": (0, 1),
    "monotone": (0, 2, 4),
    "kernel": (1, 2),
}


class Design(NamedTuple):
    """Members with their shares in the prior. The first are the uncalibrated forecasts."""

    shares: tuple[tuple[str, float], ...]
    caution: mixing.Caution

    def __str__(self) -> str:
        shares = " : ".join(f"{name} {share:g}" for name, share in self.shares)
        return f"{shares}, few rows {self.caution.few_rows:g}"

    def prior(self, n_rows: float, n_informative: float, p: float) -> np.ndarray:
        """The shares, for numbers of rows and the p-value of the forecasts."""
        shares = np.array([share for _, share in self.shares], dtype=np.float64)
        shares[0] = self.caution.share(shares[0], n_rows, n_informative, p)
        return shares


def designs(group: str, members: list[str]) -> list[Design]:
    """All designs of some members for a group of sets."""
    grids = {name: shares for name, shares in GRIDS[group].items() if name in members}
    found = []
    least, default = mixing.Caution.of(2 if group == "K = 2" else 3)
    for few_rows, *shares in product((0, default / 3, default), *grids.values()):
        used = tuple((n, s) for n, s in zip(grids, shares, strict=True) if s)
        if used:
            found.append(Design(used, mixing.Caution(least, few_rows)))
    return list(dict.fromkeys(found))


def group_of(n_classes: int) -> str:
    """Name of the group of sets with this number of classes."""
    return next(group for group, where in GROUPS.items() if where(n_classes))


# One split


def upper_tail(data: Set) -> tuple[np.ndarray, int]:
    """The test rows with the largest uncalibrated scores of the rarest class, and that class."""
    rarest = int(np.bincount(data.labels_test, minlength=data.n_classes).argmin())
    score = data.probas_test[:, rarest]
    return np.argsort(-score, kind="stable")[: max(10, round(TAIL * len(score)))], rarest


def tail_error(data: Set, forecast: float) -> float:
    """Difference between the mean forecast in the upper tail and the frequency there."""
    tail, rarest = upper_tail(data)
    return abs(forecast - float((data.labels_test[tail] == rarest).mean()))


def z_value(loss: np.ndarray, other: np.ndarray) -> float:
    """Mean difference of the losses of the same rows, in standard errors."""
    gain = loss - other
    error = gain.std() / np.sqrt(len(gain))
    mean = float(gain.mean())
    return mean / error if abs(mean) > 1e-9 else 0.0  # less is a rounding error


def forecasts_of(method: Method, data: Set) -> tuple[np.ndarray, Any, dict[str, float]]:
    """Forecasts of the test rows, the fitted calibrator, and the times."""
    quiet = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
    with warnings.catch_warnings(), quiet[0], quiet[1]:
        warnings.simplefilter("ignore")
        start = perf_counter()
        calibrator = method.make()
        options = {"labels": range(data.n_classes)} if method.ours else {}
        calibrator.fit(data.probas_cal, data.labels_cal, **options)
        fitted = perf_counter()
        Q = np.asarray(calibrator.predict_proba(data.probas_test), dtype=np.float64)
    if Q.shape != data.probas_test.shape or not np.isfinite(Q).all():
        raise ValueError("the forecasts are not finite, or classes are missing")
    return Q, calibrator, {"fit": fitted - start, "predict": perf_counter() - fitted}


def mixtures(data: Set, members: list[str]) -> list[list[float]]:
    """Log loss, harm in standard errors, and tail error of each design."""
    _, codes = encode_labels(data.labels_cal, data.n_classes, labels=range(data.n_classes))
    sample = deal_by_content(Sample(data.probas_cal, codes), 5)
    fold = sample.folds()
    rows = np.arange(len(data.labels_test))
    unseen = {}
    own = {}
    tails = {}
    for name in (name for name in GRIDS[group_of(data.n_classes)] if name in members):
        fitted, Q = clone(CANDIDATES[name])._fit_out_of_fold(sample, fold)  # noqa: SLF001
        unseen[name] = Q[np.arange(len(fold)), sample.codes]
        Q = fitted.apply(data.probas_test)
        own[name] = Q[rows, data.labels_test]
        tails[name] = Q[upper_tail(data)].mean()
    weights = sample.row_weights()
    before = IdentityMap(kind=sample.kind).apply(sample.forecasts)
    p = score_test(before, sample)
    n_informative = mixing.informative_rows(before, sample)
    loss_before = losses_of(data.labels_test, data.probas_test)[0]
    found = []
    for design in designs(group_of(data.n_classes), members):
        used = [name for name, _ in design.shares]
        columns = np.column_stack([unseen[name] for name in used])
        prior = design.prior(weights.sum(), n_informative, p)
        w = mixing.mixture_weights(columns, weights, prior, unchanged=0)
        loss = -np.log((w @ np.array([own[name] for name in used])).clip(CLIP, 1))
        tail = tail_error(data, float(w @ np.array([tails[name] for name in used])))
        found.append([float(loss.mean()), z_value(loss, loss_before), tail])
    return found


def study_split(
    data: Set, asked: int, repetition: int, names: list[str], members: list[str]
) -> Any:
    """What is written of one split: about it, scores of the methods, and of the designs."""
    about = {"set": data.name, "dataset": data.dataset, "source": data.source, "half": data.half}
    about |= {"model": data.model, "K": data.n_classes, "rows": len(data.labels_cal)}
    about |= {"asked": asked, "repetition": repetition, "ties": data.ties}
    losses: dict[str, np.ndarray] = {}
    scores: dict[str, dict[str, float]] = {}
    for method in all_methods(names):
        if method.binary_only and data.n_classes > 2:
            continue
        try:
            Q, calibrator, times = forecasts_of(method, data)
        except Exception as error:  # noqa: BLE001  a peer that fails is left out
            print(f"{method.name} failed on {data.name}: {error!r:.200}")
            continue
        found = {method.name: Q}
        if method.name == AUTO:
            trusted = calibrator.verdict_.should_calibrate
            found[CAUTIOUS] = Q if trusted else data.probas_test
        for name, own in found.items():
            losses[name] = losses_of(data.labels_test, own)
            scores[name] = scores_of(data, own) | times
            scores[name]["tail"] = tail_error(data, float(own[upper_tail(data)].mean()))
    for name, (log_loss, brier) in losses.items():
        scores[name]["z"] = z_value(log_loss, losses[BEFORE][0])
        if AUTO in losses:
            scores[name]["z_auto"] = z_value(losses[AUTO][0], log_loss)
            scores[name]["z_auto_brier"] = z_value(losses[AUTO][1], brier)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mixed = mixtures(data, members) if members else []
    return about | {"methods": scores, "members": members, "designs": mixed}


def all_methods(names: list[str]) -> list[Method]:
    """Methods by their names, the uncalibrated forecasts first."""
    known = [Method(BEFORE, Uncalibrated), *own_methods(), *peers()[0]]
    return [method for method in known if method.name in {BEFORE, *names}]


def chosen_sets(options: argparse.Namespace) -> list[Set]:
    """Sets of the arena that options name: some of them, or some words of their names."""
    sets = list(read_sets(options.arena))
    if options.sets.isdigit():
        return sets[:: max(1, len(sets) // int(options.sets))]
    return [data for data in sets if any(word in data.name for word in options.sets.split(","))]


def run(options: argparse.Namespace) -> list[dict[str, Any]]:
    """All splits, including the ones in the file. Large ones are repeated less often."""
    path = options.out / "splits.jsonl"
    options.out.mkdir(parents=True, exist_ok=True)
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    known = {(row["set"], row["asked"], row["repetition"]) for row in found}
    names = [method.name for method in all_methods(split_names(options.methods))]
    members = [name for name in CANDIDATES if name in options.members.split(",")]
    work = []
    wanted = set()
    for whole in chosen_sets(options):
        rare = whole.thinned(RARE) if options.rare and whole.n_classes == 2 else ()
        for data, asked in product([whole, *rare], map(int, options.rows.split(","))):
            n_times = min(options.repetitions, 2000 // (asked or len(data.labels_cal)))
            for repetition in range(max(1, n_times)):
                part = data.split(asked, repetition)
                if part is not None:
                    wanted.add((part.name, asked, repetition))
                    work.append((part, asked, repetition, names, members))
    work = [task for task in work if (task[0].name, task[1], task[2]) not in known]
    work.sort(key=lambda task: -task[0].probas_cal.size)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    jobs = Parallel(n_jobs=options.jobs, return_as="generator_unordered", batch_size=1)
    with progress("quality", shown=True) as report, path.open("a") as file:
        for count, row in enumerate(jobs(delayed(study_split)(*task) for task in work), 1):
            file.write(json.dumps(row) + "\n")
            found.append(row)
            report(f"{count} of {len(work)} splits")
    return [row for row in found if (row["set"], row["asked"], row["repetition"]) in wanted]


def split_names(text: str) -> list[str]:
    """Names of methods, some of which contain a comma."""
    known = [method.name for method in [*own_methods(), *peers()[0]]]
    return [name for name in known if f",{name}," in f",{text},"]


# The tables of the splits of one group of sets


class Results:
    """Scores of methods on splits, as arrays of shape (splits, methods)."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows
        self.names = list(dict.fromkeys(name for row in rows for name in row["methods"]))
        self.names.sort(key=lambda name: (name != BEFORE, not name.startswith("isoroc")))
        self.external = np.array([not name.startswith("isoroc") for name in self.names])
        group = group_of(rows[0]["K"])
        members = rows[0]["members"]
        self.designs = designs(group, members) if members else []
        shape = (len(rows), len(self.designs), 3)
        self.mixed = np.array([row["designs"] for row in rows], dtype=np.float64).reshape(shape)
        self.datasets, self.half, self.model = (self.about(n) for n in ("dataset", "half", "model"))
        self.asked = self.about("asked")
        self.classes = self.about("K")
        self.thinned = np.char.find(self.model, " ") > 0
        self.loss, self.z, self.tail = (self.scores(n) for n in ("log_loss", "z", "tail"))

    def about(self, name: str) -> np.ndarray:
        """What is known about each split."""
        return np.array([row[name] for row in self.rows])

    def scores(self, name: str) -> np.ndarray:
        """A score of all methods on all splits, NaN where a method has none."""
        none: dict[str, float] = {}
        found = (row["methods"] for row in self.rows)
        return np.array([[own.get(m, none).get(name, np.nan) for m in self.names] for own in found])

    def add(self, name: str, columns: np.ndarray) -> None:
        """Add a method that is, on each split, one of the designs."""
        loss, z, tail = self.mixed[np.arange(len(self.rows)), columns].T
        self.names = [*self.names, name]
        self.external = np.append(self.external, False)
        self.loss, self.z, self.tail = (
            np.column_stack(pair) for pair in ((self.loss, loss), (self.z, z), (self.tail, tail))
        )

    def choose(self, where: np.ndarray) -> int:
        """Number of the design of the lowest mean loss on some splits.

        With few rows it must harm significantly on at most `MOST_HARM` of them, or as rarely as any
        does. Data sets and numbers of rows count alike.
        """
        few = where & (self.asked > 0) & (self.asked <= FEW)
        harm = (self.mixed[few, :, 1] > SIGNIFICANT).mean(axis=0) if few.any() else np.zeros(1)
        kinds = set(zip(self.datasets[where].tolist(), self.asked[where].tolist(), strict=True))
        means = [
            self.mixed[where & (self.datasets == name) & (self.asked == asked), :, 0].mean(axis=0)
            for name, asked in sorted(kinds)
        ]
        allowed = harm <= max(MOST_HARM, float(harm.min()))
        return int(np.where(allowed, np.mean(means, axis=0), np.inf).argmin())

    def wins(self, m: int) -> np.ndarray:
        """Share of the external methods that a method beats on each split, ties as halves."""
        others = self.external & (np.arange(len(self.names)) != m)
        gaps = self.loss[:, others] - self.loss[:, [m]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a method that failed has none
            return np.nanmean((1 + np.sign(gaps)) / 2, axis=1)

    def harm(self, m: int, where: np.ndarray) -> list[str]:
        """Significant gains and harm, losses much higher than before, and the largest increase."""
        before = self.loss[where, 0]
        loss = self.loss[where, m]
        change = loss - before
        much = (change > 0.01 * before) & (change > 0.002)
        marks = self.z[where, m] < -SIGNIFICANT, self.z[where, m] > SIGNIFICANT, much
        return [*(f"{100 * mark.mean():.1f}" for mark in marks), f"{1e3 * change.max():.1f}"]

    def line(self, m: int, where: np.ndarray) -> list[str]:
        """Cells of the table of methods on some splits."""
        where = where & np.isfinite(self.loss[:, m])
        regret = 1e3 * (self.loss[where, m] - np.nanmin(self.loss[where], axis=1))
        cells = [self.names[m], f"{where.sum():,}"]
        cells += [interval(self.wins(m)[where], self.datasets[where], ".3f")]
        cells += [f"{self.loss[where, m].mean():.4f}", f"{regret.mean():.2f}"]
        return [*cells, *self.harm(m, where), f"{self.tail[where, m].mean():.4f}"]

    def parts(self) -> dict[str, np.ndarray]:
        """Splits by number of rows, of classes, by ties and kind of model."""
        whole = ~self.thinned
        ties = self.about("ties")
        found = {"all splits": whole}
        for asked in np.unique(self.asked):
            found[f"{asked or 'all'} rows"] = whole & (self.asked == asked)
        for low, high in ((3, 5), (6, 12), (13, 10**6)):
            name = f"{low} to {high} classes" if high < 10**6 else f"{low} classes and more"
            found[name] = whole & (self.classes >= low) & (self.classes <= high)
        found["ties: below 1 % of the rows"] = whole & (ties < 0.01)
        found["ties: 1 to 50 %"] = whole & (ties >= 0.01) & (ties <= 0.5)
        found["ties: above 50 %"] = whole & (ties > 0.5)
        found |= {f"model {kind}": self.model == kind for kind in np.unique(self.model[whole])}
        for kind in ("rare", "undersampled"):
            found[f"{RARE:.1%} events, {kind}"] = np.char.endswith(self.model, f" {kind}")
        return {name: where for name, where in found.items() if where.any()}


def interval(values: np.ndarray, datasets: np.ndarray, spec: str) -> str:
    """Mean, and a 95 % interval from resampled data sets."""
    names, group = np.unique(datasets, return_inverse=True)
    total = np.bincount(group, values)
    count = np.bincount(group)
    rng = np.random.default_rng(0)
    times = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), 2000)
    low, high = np.quantile((times @ total) / (times @ count), [0.025, 0.975])
    return f"{values.mean():{spec}} ({low:{spec}} to {high:{spec}})"


HARM = ["better, %", "harm, %", "worse by > 1 % and .002, %", "worst, 1e-3"]


def print_halves(rows: list[dict[str, Any]]) -> None:
    """Designs chosen on one half of the data sets and reported on the other."""
    for group, where in GROUPS.items():
        some = [row for row in rows if where(row["K"])]
        if not some:
            continue
        results = Results(some)
        sets = {half: sorted(set(results.datasets[results.half == half])) for half in "AB"}
        print(f"\n## {group}\n")
        for half in "AB":
            print(f"Half {half}: {', '.join(sets[half]) or 'no data sets'}.")
        if results.designs and all(sets.values()):
            on = {half: results.choose((results.half == half) & ~results.thinned) for half in "AB"}
            for half, design in on.items():
                print(f"Chosen on half {half}: {results.designs[design]}.")
            other = np.where(results.half == "A", on["B"], on["A"])
            results.add(CHOSEN, other)
        head = ["method", "splits", "wins (95 %)", "log loss", "regret, 1e-3", *HARM, "tail error"]
        for half in "AB" if results.designs else ("A and B",):
            where_half = np.char.find(half, results.half) >= 0
            where_half &= ~results.thinned
            if where_half.any():
                order = np.argsort(
                    [-results.wins(m)[where_half].mean() for m in range(len(results.names))]
                )
                lines = [results.line(int(m), where_half) for m in order]
                print(f"\nReported on half {half}:\n")
                print(markdown_table(head, lines))
        print_parts(results)


def print_parts(results: Results) -> None:
    """Both halves: wins next to significant gains and harm, by part of the splits."""
    rival = next((name for name in RIVALS if name in results.names), BEFORE)
    shown = [name for name in (CHOSEN, AUTO, rival) if name in results.names]
    lines = []
    for label, where in results.parts().items():
        for name in shown:
            m = results.names.index(name)
            there = where & np.isfinite(results.loss[:, m])
            if there.any():
                wins = f"{results.wins(m)[there].mean():.3f}"
                lines.append([label, f"{there.sum():,}", name, wins, *results.harm(m, there)])
    print("\nBoth halves, by part:\n")
    print(markdown_table(["splits with", "number", "method", "wins", *HARM], lines))


def print_methods(rows: list[dict[str, Any]]) -> None:
    """All methods on the splits with all calibration rows."""
    means = ("brier", "ece_top", "ece_classwise", "accuracy", "auc", "changed")
    for group, where in GROUPS.items():
        some = [r for r in rows if where(r["K"]) and " " not in r["model"] and not r["asked"]]
        some = [row for row in some if row["repetition"] == 0]
        if not some:
            continue
        results = Results(some)
        order = np.argsort([-np.nanmean(results.wins(m)) for m in range(len(results.names))])
        lines = []
        against = []
        for m in map(int, order):
            there = np.isfinite(results.loss[:, m])
            wins = interval(results.wins(m)[there], results.datasets[there], ".3f")
            cells = [results.names[m], f"{there.sum()}", wins]
            cells += [f"{results.loss[there, m].mean():.4f}"]
            cells += [f"{results.scores(name)[there, m].mean():.4f}" for name in means]
            times = (np.median(results.scores(name)[there, m]) for name in ("fit", "predict"))
            lines.append([*cells, *(f"{1e3 * time:.3g}" for time in times)])
            if AUTO in results.names and results.names[m] not in (AUTO, CAUTIOUS):
                own = results.names.index(AUTO)
                ahead = (1 + np.sign(results.loss[there, m] - results.loss[there, own])) / 2
                z = [results.scores(name)[there, m] for name in ("z_auto", "z_auto_brier")]
                counts = [(sign * own > SIGNIFICANT).sum() for own in z for sign in (-1, 1)]
                against.append([results.names[m], f"{ahead.mean():.2f}", *map(str, counts)])
        print(f"\n## {group}, all calibration rows: {len(some)} sets\n")
        head = ["method", "sets", "wins (95 %)", "log loss", "Brier", "top ECE", "classwise ECE"]
        head += ["accuracy", "AUC", "changed", "fit, ms", "predict, ms"]
        print(markdown_table(head, lines))
        if against:
            print(f"\n{AUTO} against each other method:\n")
            head = ["method", "ahead, log loss", "significantly ahead", "behind"]
            print(markdown_table([*head, "significantly ahead, Brier", "behind"], against))


def print_networks(rows: list[dict[str, Any]]) -> None:
    """Log loss, top-label error, harm and times by kind of model and number of rows."""
    head = ["forecasts", "rows", "splits", "method", "log loss", "top ECE", "behind isoroc, %"]
    lines = []
    for kind in dict.fromkeys(row["model"] for row in rows):
        for asked in sorted({row["asked"] for row in rows if row["model"] == kind}):
            results = Results([r for r in rows if (r["model"], r["asked"]) == (kind, asked)])
            own = results.loss[:, results.names.index(AUTO)]
            for m in np.argsort(np.nanmean(results.loss, axis=0)).tolist():
                there = np.isfinite(results.loss[:, m])
                cells = [kind, f"{asked or 'all'}", f"{there.sum()}", results.names[m]]
                cells += [f"{results.loss[there, m].mean():.4f}"]
                cells += [f"{results.scores('ece_top')[there, m].mean():.4f}"]
                cells += [f"{100 * (results.loss[there, m] > own[there]).mean():.0f}"]
                harm = 100 * (results.z[there, m] > SIGNIFICANT).mean()
                time = 1e3 * np.median(results.scores("fit")[there, m])
                lines.append([*cells, f"{harm:.1f}", f"{time:.3g}"])
    print(markdown_table([*head, "harm, %", "fit, ms"], lines))


# Order and decisions


def calibrators() -> dict[str, Any]:
    """Calibrators whose effect on the order is shown."""
    names = ["Temperature", "Monotone", "Auto", "Kernel", "Matrix", "Spline", "Isotonic"]
    names += ["VennAbers", "IRP"]
    found = {"before calibration": isoroc.IdentityCalibrator()}
    found |= {name: getattr(isoroc, f"{name}Calibrator")() for name in names}
    found["Temperature, floor"] = isoroc.TemperatureCalibrator(floor="auto")
    found["Auto, monotone"] = isoroc.AutoCalibrator(monotone=True)
    return found


def order_of(data: Set) -> dict[str, list[float]]:
    """Measures of the test rows for each calibrator."""
    labels = np.arange(data.n_classes)
    area = "auc" if data.n_classes == 2 else "auc_one_vs_rest"
    result = {}
    for name, calibrator in calibrators().items():
        if "random_state" in calibrator.get_params():
            calibrator.set_params(random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # forecasts may be no better than chance
            calibrator.fit(data.probas_cal, data.labels_cal, labels=labels)
            Q = calibrator.predict_proba(data.probas_test)
            both = data.labels_test, data.probas_test, Q
            found = isoroc.evaluate(*both, labels=labels)
        changes = ("decisions_changed", "pairs_reversed", "pairs_tied")
        result[name] = [found["accuracy", "after"], found[area, "after"]]
        result[name] += [100 * found[change, "change"] for change in changes]
        result[name].append(float(losses_of(data.labels_test, Q)[0].mean()))
    return result


def print_order(options: argparse.Namespace) -> None:
    """Means over the sets of what calibration changes, by number of classes."""
    sets = chosen_sets(options)
    found = Parallel(n_jobs=options.jobs)(delayed(order_of)(data) for data in sets)
    head = ["calibrator", "accuracy", "AUC", "decisions changed, %", "pairs reversed, %"]
    head += ["pairs tied, %", "log loss", "AUC lower, sets"]
    for low, high in ((2, 2), (3, 4), (5, 10**6)):
        some = [own for own, data in zip(found, sets, strict=True) if low <= data.n_classes <= high]
        if some:
            lines = []
            before = np.array([own["before calibration"] for own in some])
            for name in some[0]:
                values = np.array([own[name] for own in some])
                lower = (values[:, 1] < before[:, 1] - 1e-9).sum()
                lines.append([name, *(f"{mean:.4f}" for mean in values.mean(axis=0)), str(lower)])
            print(f"\n{low} to {high:,} classes, {len(some)} sets\n")
            print(markdown_table(head, lines), flush=True)


# Counts instead of rows


def generated(n: int, K: int, seed: int, power: float = 1.5, spread: float = 0.5) -> Any:
    """Forecasts that are a power of true probabilities, and labels."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(K, spread), n)
    y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    P = truth**power
    return P / P.sum(axis=1, keepdims=True), y


def print_counts(_: argparse.Namespace, n: int = 100_000) -> None:
    """Each calibrator fitted to rows and to their counts: log loss on as many new rows."""
    made = [isoroc.TemperatureCalibrator(), isoroc.MatrixCalibrator(), isoroc.SplineCalibrator()]
    made += [isoroc.KernelCalibrator(), isoroc.IsotonicCalibrator(), IRPCalibrator(random_state=0)]
    made.append(isoroc.AutoCalibrator(random_state=0, max_cells=n + 1))  # no cells of its own
    head = ["K", "calibrator", "test log loss, rows", "counts - rows", "s, rows", "s, counts"]
    lines = []
    for K, calibrator in product((2, 3, 4, 10), made):
        (P, y) = generated(n, K, 0)
        (P_new, y_new) = generated(n, K, 1)
        P, P_new = (P[:, 1], P_new[:, 1]) if K == 2 else (P, P_new)
        counts = isoroc.Counts.from_arrays(P, y)
        losses = []
        times = []
        for fit, data in ((calibrator.fit, (P, y)), (calibrator.fit_counts, (counts,))):
            start = process_time()
            fit(*data)
            times.append(f"{process_time() - start:.1f}")
            losses.append(-np.log(calibrator.predict_proba(P_new)[np.arange(n), y_new]))
        change = losses[1] - losses[0]
        means = [f"{x.mean():+.6f} ± {x.std() / np.sqrt(n):.6f}" for x in (losses[0], change)]
        lines.append([str(K), type(calibrator).__name__, *means, *times])
    print(markdown_table(head, lines))


# Growth


VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    'monotonicity="global"': {"monotonicity": "global"},
    "monotonicity=None": {"monotonicity": None},
    'search="grid"': {"search": "grid"},
}


def grown(sets: list[Set], calibrator: Any) -> np.ndarray:
    """Test log loss, accuracy, AUC, bins and seconds of each set."""
    found = []
    for data in sets:
        start = perf_counter()
        labels = range(data.n_classes)
        fitted = clone(calibrator).fit(data.probas_cal, data.labels_cal, labels=labels)
        took = perf_counter() - start
        scores = scores_of(data, fitted.predict_proba(data.probas_test))
        bins = getattr(fitted, "n_bins_", np.nan)
        found.append([*(scores[n] for n in ("log_loss", "accuracy", "auc")), bins, took])
    return np.array(found)


def print_variants(title: str, sets: list[Set], variants: dict[str, Any]) -> None:
    """One line per variant, after the lines of other calibrators."""
    if not sets:
        return
    rows = {name: grown(sets, variant) for name, variant in variants.items()}
    isotonic = rows["isotonic"][:, 0]
    lines = [
        [name, *(f"{mean:.4g}" for mean in found.mean(axis=0)), str((found[:, 0] < isotonic).sum())]
        for name, found in rows.items()
    ]
    head = ["variant", "log loss", "accuracy", "AUC", "bins", "seconds", "better than isotonic"]
    print(f"\n{title} ({len(sets)} sets)\n\n{markdown_table(head, lines)}", flush=True)


def print_growth(options: argparse.Namespace) -> None:
    """Variants of growth with constant values, then constant against tilted values."""
    sets = [data for data in chosen_sets(options) if data.n_classes > 2]
    plain = IRPCalibrator(prior="uniform", random_state=0, values="constant")
    others = {"uncalibrated": isoroc.IdentityCalibrator(), "isotonic": isoroc.IsotonicCalibrator()}

    trees = {name: clone(plain).set_params(**own) for name, own in VARIANTS.items()}
    few = [data for data in sets if data.n_classes <= 4]
    print_variants("Three and four classes", few, others | trees)
    smooth = []
    for n, K, power, spread in product((500, 3000), (3, 4), (0.5, 1.0, 2.0), (0.3, 1.0)):
        rows = (*generated(n, K, 0, power, spread), *generated(20_000, K, 1, power, spread))
        smooth.append(Set("generated", f"{n}-{K}-{power}-{spread}", *rows))
    print_variants("Generated, three and four classes", smooth, others | {"default": plain})
    values = {
        "constant": IRPCalibrator(random_state=0, values="constant"),
        "tilted, the default": IRPCalibrator(random_state=0),
        "tilted, no certificate": IRPCalibrator(random_state=0, monotonicity=None),
    }
    parts = [data.split(min(1500, len(data.labels_cal) - 1), 0) for data in sets[::2]]
    for low, high in ((3, 4), (5, 12), (13, 10**6)):
        some = [data for data in parts if data is not None and low <= data.n_classes <= high]
        print_variants(
            f"Values that vary in a bin, {low} to {high:,} classes", some, others | values
        )


# Segments


def split_by_segments(file: Path, seed: int, sizes: list[int]) -> list[dict[str, Any]]:
    """Test log loss of each method on a random split of a table, by model and rows."""
    data = pd.read_csv(file)
    found = []
    y = data.pop(data.columns[-1]).factorize(sort=True)[0]
    data = data.fillna(data.median(numeric_only=True)).fillna("missing")
    numbers = data.select_dtypes("number").columns.tolist()
    names = [name for name in data if name not in numbers]
    order = np.random.default_rng(seed).permutation(len(y))
    n = len(y) // 3
    train, test, rest = np.split(order, [min(n, 10_000), min(n, 10_000) + min(n, 4000)])
    one = OneHotEncoder(handle_unknown="ignore")
    scaled = StandardScaler()
    ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    boosting = HistGradientBoostingClassifier()
    logistic = LogisticRegression(max_iter=300)
    models: dict[str, Any] = {"boosting": (boosting, (ordinal, names), ("passthrough", numbers))}
    models["logistic"] = logistic, (one, names), (scaled, numbers)
    models["two columns"] = logistic, (scaled, numbers[:2])
    for model, (classifier, *columns) in models.items():
        fitted = make_pipeline(make_column_transformer(*columns), classifier)
        P = fitted.fit(data.iloc[train], y[train]).predict_proba(data)
        for cal in (rest[:size] for size in sizes):
            given = {"P": P[cal], "y": y[cal], "labels": range(P.shape[1])}
            segments = isoroc.SegmentCalibrator().fit(**given, segments=data.iloc[cal])
            Q = {"uncalibrated": P[test], "common map": segments.common_.predict_proba(P[test])}
            Q["segments"] = segments.predict_proba(P[test], data.iloc[test])
            Q["Platt"] = isoroc.SigmoidCalibrator().fit(**given).predict_proba(P[test])
            if P.shape[1] == 2 and find_spec("mcgrad"):
                from mcgrad.methods import MCGrad  # noqa: PLC0415

                rows = data.assign(p=P[:, 1].clip(CLIP, 1 - CLIP), label=y)
                kinds = ("categorical", names), ("numerical", numbers)
                used = {f"{kind}_feature_column_names": own for kind, own in kinds}
                boosted = MCGrad().fit(rows.iloc[cal], "p", "label", **used)
                q = np.asarray(boosted.predict(rows.iloc[test], "p", **used))
                Q["MCGrad"] = np.column_stack([1 - q, q])
            losses = {method: losses_of(y[test], own)[0] for method, own in Q.items()}
            worse = float(z_value(losses["segments"], losses["common map"]) > SIGNIFICANT)
            about = {"data": file.stem, "model": model, "rows": len(cal), "worse": worse}
            found.append(about | {method: float(own.mean()) for method, own in losses.items()})
    return found


def print_segments(options: argparse.Namespace) -> None:
    """Means over splits, and how many are significantly worse than the common map."""
    sizes = [int(size) or 10**9 for size in options.rows.split(",")]
    tasks = product(sorted(options.arena.glob("*.csv")), range(options.repetitions), [sizes])
    rows = Parallel(n_jobs=options.jobs)(delayed(split_by_segments)(*task) for task in tasks)
    table = pd.DataFrame([row for own in rows for row in own])
    table = table.groupby(["data", "model", "rows"], sort=False).mean().round(4).reset_index()
    print(markdown_table(list(table), table.astype(str).to_numpy().tolist()))


# Several labels and ordered classes


def sets_of_labels(folder: Path, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Features, and matrices of 0 and 1 or ordered classes: generated ones, and ones from files."""
    yield make_multilabel_classification(8000, 30, n_classes=20, length=60, random_state=seed)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8000, 8))
    latent = X[:, :4].sum(axis=1) + X[:, 4] * X[:, 5] + rng.logistic(size=8000)
    yield X, np.searchsorted([-3, -1, 0, 2, 4], latent)
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as file:
            if {"X", "Y"} <= {*file}:
                yield file["X"], file["Y"]


def compare_labels(X: np.ndarray, Y: np.ndarray, seed: int) -> Iterator[tuple[str, np.ndarray]]:
    """What is compared, and the losses of the test rows by each method, ours last."""
    models: dict[str, Any] = {
        "lr": make_pipeline(StandardScaler(), LogisticRegression(max_iter=200)),
        "nb": GaussianNB(),
        "forest": RandomForestClassifier(60, random_state=seed),
        "boosted": HistGradientBoostingClassifier(max_iter=40, random_state=seed),
    }
    train, cal, test = np.split(np.random.default_rng(seed).permutation(len(X)), [1000, 1500])
    y = Y[cal]
    came = Y[test]
    for name, each in models.items():
        model = each if Y.ndim == 1 else OneVsRestClassifier(each)
        model.fit(X[train], Y[train])
        P = model.predict_proba(X[cal])
        new = model.predict_proba(X[test])
        if Y.ndim == 1:
            both = isoroc.AutoCalibrator(random_state=0), isoroc.OrdinalCalibrator(random_state=0)
            Qs = [own.fit(P, y, labels=model.classes_).predict_proba(new) for own in both]
            below = came[:, None] <= model.classes_[:-1]
            squares = [(Q.cumsum(axis=1)[:, :-1] - below) ** 2 for Q in Qs]
            yield "ordered, ranked probability score", np.mean(squares, axis=2)
            column = np.searchsorted(model.classes_, came)
            yield "ordered, log loss", -np.log([Q[np.arange(len(Q)), column] for Q in Qs])
            continue
        ours = isoroc.MultiLabelCalibrator().fit(P, y).predict_proba(new)
        for k, (p, q) in enumerate(zip(P.T, new.T, strict=True)):
            # As in scikit-learn, a sigmoid of log odds if the model has a decision function.
            view = logit if name in ("lr", "boosted") else np.asarray
            a, b = (view(own.clip(1e-9, 1 - 1e-9)) for own in (p, q))
            sigmoid = _SigmoidCalibration().fit(a, y[:, k]).predict(b)
            isotonic = IsotonicRegression(out_of_bounds="clip").fit(p, y[:, k]).predict(q)
            right = [np.where(came[:, k], Q, 1 - Q) for Q in (isotonic, sigmoid, ours[:, k])]
            rare = min(y[:, k].sum(), len(y) - y[:, k].sum())
            for group in [f"fewer than {n}" for n in (10, 50) if rare < n] or ["50 or more"]:
                yield f"rarer outcomes: {group}", -np.log(np.maximum(right, 1e-15))


def print_labels(options: argparse.Namespace) -> None:
    """`MultiLabelCalibrator` next to maps of single labels, `OrdinalCalibrator` next to Auto."""
    tasks = [(*own, seed) for seed in range(5) for own in sets_of_labels(options.arena, seed)]
    run = delayed(lambda *task: list(compare_labels(*task)))
    lines = []
    found = dict[str, list[np.ndarray]]()
    for group, losses in chain(*Parallel(n_jobs=options.jobs)(run(*task) for task in tasks)):
        found.setdefault(group, []).append(losses)
    for group, cases in found.items():
        means = np.mean([losses.mean(axis=1) for losses in cases], axis=0)
        for m, peer in enumerate(["Auto"] if len(means) == 2 else ["isotonic", "sigmoid"]):
            z = np.array([z_value(losses[-1], losses[m]) for losses in cases])
            shares = np.mean([z < 0, z < -SIGNIFICANT, z > SIGNIFICANT], axis=1)
            figures = [f"{means[m]:.4f}", f"{means[-1]:.4f}", *(f"{x:.0%}" for x in shares)]
            lines.append([group, str(len(cases)), peer, *figures])
    head = ["group", "cases", "peer", "its loss", "ours", "ahead", "significantly", "behind"]
    print(markdown_table(head, lines))


SPLITS = {"halves": print_halves, "methods": print_methods, "networks": print_networks}
OTHERS: dict[str, Callable[[argparse.Namespace], None]] = {
    "order": print_order,
    "counts": print_counts,
    "growth": print_growth,
    "segments": print_segments,
    "labels": print_labels,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("arena", type=Path)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join([*SPLITS, *OTHERS])}")
    parser.add_argument("--sets", default="", help="words in the names of sets, or how many")
    parser.add_argument("--members", default=",".join(CANDIDATES), help="of designs; may be empty")
    parser.add_argument("--methods", default=QUICK, help='separated by commas, or "all"')
    parser.add_argument("--rows", default="80,200,300,500,1000,2500,0")
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--rare", action="store_true", help="add sets with rare events")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; one per core by default")
    parser.add_argument("--out", type=Path, default=Path("build/quality"))
    options = parser.parse_args()
    found, missing = peers()
    if options.methods == "all":
        options.methods = ",".join(method.name for method in [*own_methods(), *found])
    chosen = options.parts or ["halves", "methods"]
    unknown = set(chosen) - {*SPLITS, *OTHERS}
    if unknown:
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}")
    rows = run(options) if set(chosen) & set(SPLITS) else []
    if rows and missing:
        print(f"Not installed, so not compared: {', '.join(missing)}.")
    for part in chosen:
        print(f"\n# {part}")
        if part in SPLITS:
            SPLITS[part](rows)
        else:
            OTHERS[part](options)


if __name__ == "__main__":
    main()
