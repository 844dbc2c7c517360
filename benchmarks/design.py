"""Design of the automatic calibrator: its members and prior, chosen leaving one data set out.

    python benchmarks/design.py ARENA [--rows 0,200,300,500,1000] [--out FOLDER]
                                      [--quality 0=FOLDER,300=FOLDER]

ARENA is the same as for quality.py; 0 rows stand for all calibration rows. The forecasts of all
candidate members, out of fold and of the test rows, are computed once and kept in FOLDER
(build/design by default), so that a design is evaluated in seconds. A design is a set of members,
their shares in the prior and its strength. For each data set the design is chosen that is best on
all other data sets, with all rows and with 200, 500 and 1,000, and is evaluated on the one left
out; 300 rows take no part in the choice. With --quality, results of quality.py, prints win rates
against the external methods too.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from arena import CLIP, GROUPS, Set, read_sets
from quality import load_results
from sklearn.base import clone

import isoroc
from isoroc._calibrators import mixing
from isoroc._calibrators.base import Calibrator
from isoroc._folds import deal_folds
from isoroc._input import Sample, encode_labels
from isoroc._progress import progress

#: Members of the default with their shares in the prior, and further candidates.
DEFAULT_SHARES = {"identity": 8.0, "temperature": 2.0, "spline": 1.0, "kernel": 1.0}
FURTHER = {
    "K = 2": {"matrix": 1.0, "isotonic": 0.3, "monotone": 1.0, "Venn-Abers": 0.3},
    "K >= 3": {"matrix": 1.0, "isotonic": 0.3, "narrow kernel": 1.0, "wide kernel": 1.0},
}
CANDIDATES: dict[str, Calibrator] = {
    "identity": isoroc.IdentityCalibrator(),
    "temperature": isoroc.TemperatureCalibrator(floor="auto"),
    "spline": isoroc.SplineCalibrator(),
    "matrix": isoroc.MatrixCalibrator(),
    "isotonic": isoroc.IsotonicCalibrator(),
    "kernel": isoroc.KernelCalibrator(),
    "narrow kernel": isoroc.KernelCalibrator(width=0.35),
    "wide kernel": isoroc.KernelCalibrator(width=0.7),
    "Venn-Abers": isoroc.VennAbersCalibrator(),
    "monotone": isoroc.MonotoneCalibrator(),
}
#: Rows that take part in the choice.
CHOICE = (0, 200, 500, 1000)


class Design(NamedTuple):
    """Members with their shares in the prior, and its strength."""

    shares: tuple[tuple[str, float], ...]
    strength: float

    @classmethod
    def of(cls, shares: dict[str, float], strength: float = mixing.STRENGTH) -> Design:
        """Design of named shares."""
        return cls(tuple(shares.items()), strength)

    def __str__(self) -> str:
        shares = ", ".join(f"{name} {share:g}" for name, share in self.shares)
        return f"strength {self.strength:g}: {shares}"


def candidates(group: str) -> list[str]:
    """Names of the candidates of a group of sets."""
    return [*DEFAULT_SHARES, *FURTHER[group]]


class Forecasts(NamedTuple):
    """What the candidates forecast for one set."""

    dataset: str
    model: str
    n_classes: int
    unseen: np.ndarray
    """Likelihood of the outcome of each calibration row, out of fold, shape (n, M)."""
    test: np.ndarray
    """Likelihood of the outcome of each test row, shape (M, rows)."""
    products: np.ndarray
    """Mean over the test rows of the scalar products of forecasts, shape (M, M)."""

    def best_member(self) -> float:
        """Test log loss of the candidate that has the lowest."""
        return float((-np.log(self.test.clip(CLIP, 1))).mean(axis=1).min())

    def scores(self, design: Design) -> tuple[float, float]:
        """Test log loss and Brier score of the mixture."""
        names = candidates(group_of(self.n_classes))
        used = np.array([names.index(name) for name, _ in design.shares])
        prior = np.array([share for _, share in design.shares])
        n = len(self.unseen)
        strength, mixing.STRENGTH = mixing.STRENGTH, design.strength
        try:
            w = mixing.mixture_weights(self.unseen[:, used], np.ones(n), prior)
        finally:
            mixing.STRENGTH = strength
        own = w @ self.test[used]
        brier = w @ self.products[np.ix_(used, used)] @ w - 2 * own.mean() + 1
        return float(-np.log(own.clip(CLIP, 1)).mean()), float(brier)


def group_of(n_classes: int) -> str:
    """Name of the group that sets of so many classes belong to."""
    return next(group for group, where in GROUPS.items() if where(n_classes))


def forecasts_of(data: Set) -> Forecasts:
    """Fit all candidates to one set."""
    _, codes = encode_labels(data.labels_cal, data.n_classes, labels=range(data.n_classes))
    fold = deal_folds(len(codes), 5, np.random.RandomState(0))
    sample = Sample(data.probas_cal, codes, None)
    rows, test_rows = np.arange(len(codes)), np.arange(len(data.labels_test))
    unseen, test = [], []
    for name in candidates(group_of(data.n_classes)):
        member: Calibrator = clone(CANDIDATES[name])
        fitted, Q = member._fit_out_of_fold(sample, fold)  # noqa: SLF001
        unseen.append(Q[rows, codes])
        test.append(fitted.apply(data.probas_test))
    of_test = np.array(test)
    products = np.einsum("mik,oik->mo", of_test, of_test, optimize=True) / len(test_rows)
    own = of_test[:, test_rows, data.labels_test]
    return Forecasts(data.dataset, data.model, data.n_classes, np.array(unseen).T, own, products)


def load_all(arena: Path, n_rows: int, folder: Path) -> Iterator[Forecasts]:
    """Forecasts of all sets, from files where there are some."""
    with progress(f"{n_rows or 'all'} rows", shown=True) as report:
        for whole in read_sets(arena):
            data = whole.part(n_rows) if n_rows else whole
            if data is None:
                continue
            path = folder / f"{n_rows}-{data.name}.npz"
            if not path.exists():
                report(data.name)
                np.savez(path, **forecasts_of(data)._asdict())
            with np.load(path) as arrays:
                fields = {name: arrays[name] for name in Forecasts._fields}
            for name in ("dataset", "model", "n_classes"):
                fields[name] = fields[name].item()
            yield Forecasts(**fields)


def fixed_designs(group: str) -> dict[str, Design]:
    """The default, the default without and with each member, and other kernels."""
    found = {"default": Design.of(DEFAULT_SHARES)}
    without = {
        left_out: {name: share for name, share in DEFAULT_SHARES.items() if name != left_out}
        for left_out in DEFAULT_SHARES
    }
    found |= {f"default without {name}": Design.of(kept) for name, kept in without.items()}
    for name, share in FURTHER[group].items():
        found[f"default with {name}"] = Design.of(DEFAULT_SHARES | {name: share})
        if "kernel" in name:
            found[f"{name} instead"] = Design.of(without["kernel"] | {name: share})
    return found


def designs(group: str) -> list[Design]:
    """All designs to choose from: the fixed ones, and the default with other priors."""
    found = list(fixed_designs(group).values())
    names = ("identity", "temperature", "kernel")
    for strength, *shares in product((0.5, 1, 2, 4, 8), (1, 4, 8, 16), (1, 2, 4), (0.3, 1, 2)):
        other = DEFAULT_SHARES | dict(zip(names, shares, strict=True))
        found.append(Design.of(other, strength))
    return list(dict.fromkeys(found))


def regrets(sets: list[Forecasts], tried: list[Design]) -> np.ndarray:
    """By how much each design's log loss exceeds the best member's, as a log ratio, [set, design].

    A ratio, so that sets with sharp forecasts count as much as others.
    """
    rows = []
    for data in sets:
        best = data.best_member()
        rows.append([np.log(data.scores(design)[0] / best) for design in tried])
    return np.array(rows)


def choose(
    regret: dict[int, np.ndarray], datasets: dict[int, np.ndarray], left_out: str | None
) -> int:
    """The design with the lowest mean regret over the data sets that are not left out."""
    means = []
    for rows, of_sets in regret.items():
        names = np.unique(datasets[rows])
        means += [
            of_sets[datasets[rows] == name].mean(axis=0) for name in names if name != left_out
        ]
    return int(np.mean(means, axis=0).argmin())


def report_group(group: str, sets: dict[int, list[Forecasts]], peers: dict[int, Path]) -> None:
    """Choose designs for one group of sets, and print what they are worth."""
    tried = designs(group)
    datasets = {rows: np.array([data.dataset for data in sets[rows]]) for rows in sets}
    regret = {rows: regrets(sets[rows], tried) for rows in sets if rows in CHOICE}
    overall = choose(regret, datasets, None)
    chosen = {name: choose(regret, datasets, name) for name in np.unique(datasets[0])}
    print(f"\n## {group}\n\nBest on all data sets: {tried[overall]}\n\nLeft out, chosen:\n")
    for name, index in chosen.items():
        print(f"- {name}: {tried[index]}")
    head = "| rows | design | regret, % | wins, log loss | wins, Brier | made worse | worst, % |"
    print(f"\n{head} nats |\n" + "|---" * 8 + "|")
    for rows, of_rows in sets.items():
        results = load_results(peers[rows]) if rows in peers else {}
        rows_of = [("chosen without the data set", [tried[chosen[d.dataset]] for d in of_rows])]
        fixed = fixed_designs(group)
        rows_of += [(label, [design] * len(of_rows)) for label, design in fixed.items()]
        for label, used in rows_of:
            print(f"| {rows or 'all'} | {label} | {evaluate(of_rows, used, results)} |")


def evaluate(sets: list[Forecasts], used: list[Design], results: dict) -> str:
    """Cells of the table: regret, win rates, and comparison with the uncalibrated forecasts."""
    regret, wins, changes = [], [], []
    for data, design in zip(sets, used, strict=True):
        scores = data.scores(design)
        before = float(-np.log(data.test[0].clip(CLIP, 1)).mean())
        best = data.best_member()
        regret.append(np.log(scores[0] / best))
        changes.append((scores[0] / before - 1, scores[0] - before))
        name = f"{data.dataset}-{data.model}"
        for (method, other), row in results.items():
            if other == name and not method.startswith("isoroc"):
                differences = np.array([row["log_loss"], row["brier"]]) - scores
                wins.append((1 + np.sign(differences)) / 2)
    share, nats = max(changes)
    rates = [f"{rate:.3f}" for rate in np.mean(wins, axis=0)] if wins else ["", ""]
    worse = sum(change > 0 for change, _ in changes)
    cells = [f"{100 * np.mean(regret):.2f}", *rates, str(worse), f"{100 * share:.2f}"]
    return " | ".join([*cells, f"{nats:.4f}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("arena", type=Path)
    parser.add_argument("--rows", default="0,200,300,500,1000")
    parser.add_argument("--out", type=Path, default=Path("build/design"))
    parser.add_argument("--quality", default="", help="folders of quality.py, as 0=A,300=B")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    pairs = [pair.split("=") for pair in options.quality.split(",") if pair]
    peers = {int(rows): Path(folder) for rows, folder in pairs}
    every = {
        int(rows): list(load_all(options.arena, int(rows), options.out))
        for rows in options.rows.split(",")
    }
    for group, where in GROUPS.items():
        sets = {
            rows: [data for data in of_rows if where(data.n_classes)]
            for rows, of_rows in every.items()
        }
        if sets[0]:
            report_group(group, sets, peers)


if __name__ == "__main__":
    main()
