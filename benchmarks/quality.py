"""The arena: every calibrator on every set of real forecasts, evaluated on test rows.

    python benchmarks/quality.py ARENA [--only WORD] [--methods A,B] [--out FOLDER] [--fresh A,B]

ARENA is a folder of sets dataset-model.npz, each with probas_cal, labels_cal, probas_test and
labels_test, or an HDF5 file that contains them as dataset/model/probas_cal and so on. Writes three
files to FOLDER (build/quality by default): results.csv, one row per method and set; summary.md, win
rates and pairwise comparisons; winrates.png. benchmarks/requirements.txt lists the peers. Results
in results.csv are reused, except those of isoroc's own methods and of the methods in --fresh.
"""

from __future__ import annotations

import argparse
import csv
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one thread for all methods, torch included

import numpy as np

import isoroc
from isoroc._progress import progress
from isoroc.metrics import brier_score, calibration_error, cross_entropy

METRICS = ("log_loss", "brier", "ece_top", "ece_classwise", "fit_seconds", "predict_seconds")
#: Forecasts are clipped at this value for the log loss, which would otherwise be infinite at 0.
CLIP = 1e-6


class Set(NamedTuple):
    """Forecasts of one model on one data set: calibration rows and test rows."""

    dataset: str
    model: str
    probas_cal: np.ndarray
    labels_cal: np.ndarray
    probas_test: np.ndarray
    labels_test: np.ndarray

    @property
    def name(self) -> str:
        """Name of the set."""
        return f"{self.dataset}-{self.model}"

    @property
    def n_classes(self) -> int:
        """K."""
        return self.probas_cal.shape[1]


def read_sets(path: Path) -> Iterator[Set]:
    """All sets of a folder of .npz files or of an HDF5 file."""
    if path.is_dir():
        for file in sorted(path.glob("*.npz")):
            dataset, _, model = file.stem.rpartition("-")
            with np.load(file) as arrays:
                yield _as_set(dataset, model, arrays)
    else:
        import h5py  # noqa: PLC0415

        with h5py.File(path) as file:
            for dataset, models in file.items():
                for model, arrays in models.items():
                    yield _as_set(dataset, model, arrays)


def _as_set(dataset: str, model: str, arrays: Any) -> Set:
    forecasts, labels = [], []
    for part in ("cal", "test"):
        P = np.asarray(arrays[f"probas_{part}"], dtype=np.float64)
        if P.ndim == 1 or P.shape[1] == 1:
            P = np.column_stack([1 - P.reshape(-1), P.reshape(-1)])
        forecasts.append(P / P.sum(axis=1, keepdims=True))
        labels.append(np.asarray(arrays[f"labels_{part}"]).reshape(-1).astype(np.int64))
    return Set(dataset, model, forecasts[0], labels[0], forecasts[1], labels[1])


class Method(NamedTuple):
    """A calibrator by name."""

    name: str
    make: Callable[[], Any]
    ours: bool = False
    binary_only: bool = False


def own_methods() -> list[Method]:
    """Calibrators of this package."""
    make = {
        "isoroc Auto": lambda: isoroc.AutoCalibrator(random_state=0),
        "isoroc IRP": lambda: isoroc.IRPCalibrator(random_state=0),
        "isoroc bagged IRP": lambda: isoroc.BaggedIRPCalibrator(random_state=0),
        "isoroc spline": isoroc.SplineCalibrator,
        "isoroc matrix": isoroc.MatrixCalibrator,
        "isoroc monotone": isoroc.MonotoneCalibrator,
        "isoroc temperature": isoroc.TemperatureCalibrator,
        "isoroc isotonic": isoroc.IsotonicCalibrator,
        "isoroc Venn-Abers": isoroc.VennAbersCalibrator,
    }
    return [Method(name, factory, ours=True) for name, factory in make.items()]


def peers() -> tuple[list[Method], list[str]]:
    """Calibrators of probmetrics, and the names of those whose dependencies are missing."""
    names = ["Isotonic", "CIR", "Venn-Abers", "TS", "ETS", "VS", "SVS", "MS", "SMS"]
    names += ["Histogram", "Quantile histogram", "Platt", "Quadratic", "Beta", "Spline"]
    try:
        from probmetrics import calibrators  # noqa: PLC0415
    except ImportError:
        return [], names
    get, ovr = calibrators.get_calibrator, calibrators.MulticlassOneVsRestCalibrator

    def histogram(strategy: str) -> Callable[[], Any]:
        return lambda: ovr(calibrators.BinaryHistogramBinningCalibrator(strategy=strategy))

    make: dict[str, Callable[[], Any]] = {
        "Isotonic": lambda: get("isotonic"),
        "CIR": lambda: get("cir"),
        "Venn-Abers": lambda: get("ivap-ovr"),
        "TS": lambda: get("temp-scaling"),
        "ETS": calibrators.ETSCalibrator,
        "VS": calibrators.VectorScalingCalibrator,
        "SVS": lambda: get("svs"),
        "MS": calibrators.MatrixScalingCalibrator,
        "SMS": lambda: get("sms"),
        "Histogram": histogram("uniform"),
        "Quantile histogram": histogram("quantile"),
        "Platt": lambda: get("platt"),
        "Quadratic": lambda: get("quadratic-scaling"),
        "Beta": lambda: get("beta"),
        "Spline": calibrators.MLISplineCalibrator,
    }
    found, missing = [], []
    for name in names:
        try:
            make[name]()
        except ImportError:
            missing.append(name)
        else:
            found.append(Method(name, make[name], binary_only=names.index(name) > 10))
    return found, missing


class _Base:
    """The uncalibrated forecasts."""

    def fit(self, P: np.ndarray, y: np.ndarray) -> _Base:  # noqa: ARG002
        return self

    def predict_proba(self, P: np.ndarray) -> np.ndarray:
        return P


def run(method: Method, data: Set) -> dict[str, float]:
    """Metrics of one method on one set."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = perf_counter()
        calibrator = method.make()
        calibrator.fit(data.probas_cal, data.labels_cal)
        fitted = perf_counter()
        Q = np.asarray(calibrator.predict_proba(data.probas_test), dtype=np.float64)
        predicted = perf_counter()
    return scores_of(data.labels_test, Q) | {
        "fit_seconds": fitted - start,
        "predict_seconds": predicted - fitted,
    }


def scores_of(y: np.ndarray, Q: np.ndarray) -> dict[str, float]:
    """Scores of forecasts, after dividing each row by its sum."""
    Q = Q / Q.sum(axis=1, keepdims=True)
    labels = np.arange(Q.shape[1])
    return {
        "log_loss": cross_entropy(y, Q, labels=labels, eps=CLIP),
        "brier": brier_score(y, Q, labels=labels),
        "ece_top": calibration_error(y, Q, labels=labels, kind="top", bins=15),
        "ece_classwise": calibration_error(y, Q, labels=labels, kind="classwise", bins=15),
    }


Results = dict[tuple[str, str], dict[str, Any]]


def load_results(path: Path) -> Results:
    """Rows of an earlier run, by method and set."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        rows = [
            row
            | {name: float(row[name]) for name in METRICS}
            | {"n_classes": int(row["n_classes"])}
            for row in csv.DictReader(file)
        ]
    return {(row["method"], f"{row['dataset']}-{row['model']}"): row for row in rows}


def save_results(results: Results, path: Path) -> None:
    temporary = path.with_suffix(".new")
    with temporary.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["method", "dataset", "model", "n_classes", *METRICS])
        writer.writeheader()
        writer.writerows(results.values())
    temporary.replace(path)


class Comparison(NamedTuple):
    """Wins of methods over each other on some sets, for one metric."""

    methods: list[str]
    datasets: np.ndarray
    """Data set of each set; intervals resample data sets because sets of one are similar."""
    wins: np.ndarray
    """1, 1/2 or 0 for [set, method, other]; NaN on the diagonal and for missing results."""

    @classmethod
    def of(cls, results: Results, metric: str, where: Callable[[int], bool]) -> Comparison:
        """Comparison on the sets with a number of classes that satisfies `where`."""
        rows = {key: row for key, row in results.items() if where(row["n_classes"])}
        methods = list(dict.fromkeys(name for name, _ in rows))
        sets = sorted({name for _, name in rows})
        score = np.array([[_score(rows, m, s, metric) for m in methods] for s in sets])
        ahead = np.sign(score[:, None, :] - score[:, :, None])
        ahead[:, np.arange(len(methods)), np.arange(len(methods))] = np.nan
        return cls(methods, np.array([name.rpartition("-")[0] for name in sets]), (1 + ahead) / 2)

    def win_rates(self) -> np.ndarray:
        """Share of comparisons that each method wins."""
        return np.nanmean(self.wins, axis=(0, 2))

    def intervals(self, n_resamples: int = 2000, confidence: float = 0.95) -> np.ndarray:
        """Intervals of the win rates from resampled data sets, shape (2, methods)."""
        names, group = np.unique(self.datasets, return_inverse=True)
        won, played = (
            np.array([count[group == g].sum(axis=0) for g in range(len(names))])
            for count in (np.nansum(self.wins, axis=2), np.isfinite(self.wins).sum(axis=2))
        )
        rng = np.random.default_rng(0)
        times = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), n_resamples)
        tail = (1 - confidence) / 2
        return np.quantile((times @ won) / (times @ played), [tail, 1 - tail], axis=0)

    def pairwise(self) -> np.ndarray:
        """Share of sets that [method] wins against [other]."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the diagonal is empty
            return np.nanmean(self.wins, axis=0)


def _score(rows: Results, method: str, name: str, metric: str) -> float:
    row = rows.get((method, name))
    return np.nan if row is None else row[metric]


GROUPS: dict[str, Callable[[int], bool]] = {"K = 2": lambda K: K == 2, "K >= 3": lambda K: K > 2}


def summary(results: Results, missing: list[str]) -> str:
    """Markdown with win rates, means and times of all methods, and pairwise comparisons."""
    lines = []
    for group, where in GROUPS.items():
        rows = [row for row in results.values() if where(row["n_classes"])]
        if not rows:
            continue
        log, brier = (Comparison.of(results, metric, where) for metric in ("log_loss", "brier"))
        low, high = log.intervals()
        rates, brier_rates = log.win_rates(), brier.win_rates()
        order = np.argsort(-rates)
        lines += [f"\n## {group}: {len(log.datasets)} sets\n"]
        lines += ["| method | wins, log loss | 95 % | wins, Brier | log loss | Brier |"]
        lines[-1] += " top ECE | classwise ECE | fit, ms | predict, ms |"
        lines += ["|---" * 10 + "|"]
        for m in order:
            of_method = [row for row in rows if row["method"] == log.methods[m]]
            mean = {name: np.mean([row[name] for row in of_method]) for name in METRICS[:4]}
            ms = [1e3 * np.median([row[name] for row in of_method]) for name in METRICS[4:]]
            line = f"| {log.methods[m]} | {rates[m]:.3f} | {low[m]:.2f} to {high[m]:.2f} "
            line += f"| {brier_rates[m]:.3f} | {mean['log_loss']:.4f} | {mean['brier']:.4f} "
            line += f"| {mean['ece_top']:.4f} | {mean['ece_classwise']:.4f} "
            lines += [line + f"| {ms[0]:.3g} | {ms[1]:.3g} |"]
        lines += [f"\nShare of sets on which the row has the lower log loss, {group}:\n"]
        lines += ["| | " + " | ".join(log.methods[m] for m in order) + " |"]
        lines += ["|---" * (1 + len(order)) + "|"]
        share = log.pairwise()
        for m in order:
            cells = ["" if m == other else f"{share[m, other]:.2f}" for other in order]
            lines += [f"| {log.methods[m]} | " + " | ".join(cells) + " |"]
        worst = worst_against(results, "Base", where)
        lines += ["\nLargest log loss relative to the uncalibrated forecasts on any set:\n"]
        lines += [f"- {name}: {ratio:.4f} ({where_})" for name, (ratio, where_) in worst.items()]
    if missing:
        lines += [f"\nNot installed, so not compared: {', '.join(missing)}."]
    return "\n".join(lines).strip() + "\n"


def worst_against(
    results: Results, other: str, where: Callable[[int], bool]
) -> dict[str, tuple[float, str]]:
    """Largest ratio of the log loss of each method to that of `other`, and the set."""
    worst: dict[str, tuple[float, str]] = {}
    for (method, name), row in results.items():
        if where(row["n_classes"]) and method != other:
            ratio = row["log_loss"] / results[other, name]["log_loss"]
            worst[method] = max(worst.get(method, (0.0, "")), (ratio, name))
    return dict(sorted(worst.items(), key=lambda item: item[1]))


def draw(results: Results, path: Path) -> None:
    """Draw the win rates of all methods with their intervals, one panel per group."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    groups = [
        g for g, where in GROUPS.items() if any(where(r["n_classes"]) for r in results.values())
    ]
    figure = Figure(figsize=(5.2 * len(groups), 5.6), layout="constrained")
    for axes, group in zip(figure.subplots(1, len(groups), squeeze=False)[0], groups, strict=True):
        log = Comparison.of(results, "log_loss", GROUPS[group])
        brier = Comparison.of(results, "brier", GROUPS[group]).win_rates()
        rates, (low, high) = log.win_rates(), log.intervals()
        order = np.argsort(rates)
        place = np.arange(len(order))
        ours = np.array([log.methods[m].startswith("isoroc") for m in order])
        colours = np.where(ours, "#0072B2", "#7f7f7f")
        axes.hlines(place, low[order], high[order], color=colours, linewidth=2, alpha=0.5)
        axes.scatter(rates[order], place, c=colours, zorder=3, label="log loss")
        axes.scatter(
            brier[order], place, marker="|", s=90, c=colours, zorder=3, label="Brier score"
        )
        axes.set_yticks(place, [log.methods[m] for m in order])
        for tick, own in zip(axes.get_yticklabels(), ours, strict=True):
            tick.set_fontweight("bold" if own else "normal")
        axes.set(title=f"{group}, {len(log.datasets)} sets", xlim=(0, 1))
        axes.set_xlabel("share of comparisons won, 95 % interval")
        axes.grid(axis="x", alpha=0.3)
        axes.legend(loc="lower right")
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("arena", type=Path)
    parser.add_argument("--only", default="", help="sets whose name contains this")
    parser.add_argument(
        "--methods", default="", help="methods to run, separated by commas; all by default"
    )
    parser.add_argument(
        "--fresh", default="", help="peers to run again even if results.csv has them"
    )
    parser.add_argument("--out", type=Path, default=Path("build/quality"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    found, missing = peers()
    methods = [Method("Base", _Base), *own_methods(), *found]
    if options.methods:
        methods = [method for method in methods if method.name in options.methods.split(",")]
    table = options.out / "results.csv"
    results = load_results(table)
    with progress("arena", shown=True) as report:
        for data in read_sets(options.arena):
            if options.only not in data.name:
                continue
            for method in methods:
                known = (method.name, data.name) in results
                again = method.ours or method.name in options.fresh.split(",")
                if (known and not again) or (method.binary_only and data.n_classes > 2):
                    continue
                report(f"{data.name}, {method.name}")
                scores = run(method, data)
                about = {"method": method.name, "dataset": data.dataset, "model": data.model}
                results[method.name, data.name] = about | {"n_classes": data.n_classes} | scores
            save_results(results, table)
    text = summary(results, missing)
    (options.out / "summary.md").write_text(text)
    draw(results, options.out / "winrates.png")
    print(text)


if __name__ == "__main__":
    main()
