"""Comparison of calibrators on many sets: win rates, paired tests, tables and a picture."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from arena import GROUPS

#: Scores by method and set.
Results = dict[tuple[str, str], dict[str, Any]]
#: Log loss and Brier score of all test rows, shape (2, n), by set and method.
Losses = dict[str, dict[str, np.ndarray]]

LOSSES = ("log_loss", "brier")
MEANS = ("log_loss", "brier", "ece_top", "ece_classwise", "accuracy", "auc", "changed")
TIMES = ("fit_seconds", "predict_seconds")
#: Differences of mean losses of more standard errors than this are significant.
SIGNIFICANT = 1.96
#: Methods of this package; all others are external.
OURS = "isoroc"
AUTO = "isoroc Auto"
BEFORE = "Uncalibrated"


class Comparison(NamedTuple):
    """Wins of methods over external methods on some sets, for one loss."""

    methods: list[str]
    external: np.ndarray
    """Whether each method is external."""
    datasets: np.ndarray
    """Data set of each set; intervals resample data sets because sets of one are similar."""
    ahead: np.ndarray
    """1, 0 or -1 for [set, method, other]; NaN on the diagonal and for missing results."""

    @classmethod
    def of(cls, results: Results, metric: str, where: Callable[[int], bool]) -> Comparison:
        """Comparison on the sets with a number of classes that satisfies `where`."""
        rows = {key: row for key, row in results.items() if where(row["n_classes"])}
        methods = list(dict.fromkeys(name for name, _ in rows))
        sets = sorted({name for _, name in rows})
        score = np.array([[_score(rows, m, s, metric) for m in methods] for s in sets])
        ahead = np.sign(score[:, None, :] - score[:, :, None])
        ahead[:, np.arange(len(methods)), np.arange(len(methods))] = np.nan
        external = np.array([not name.startswith(OURS) for name in methods])
        datasets = np.array([name.rpartition("-")[0] for name in sets])
        return cls(methods, external, datasets, ahead)

    def wins(self, tie: float = 0.5) -> np.ndarray:
        """Wins of each method over external ones, [set, method, other]; a tie counts `tie`."""
        ahead = self.ahead[:, :, self.external]
        return np.where(ahead == 0, tie, np.where(np.isnan(ahead), np.nan, ahead > 0))

    def win_rates(self, tie: float = 0.5) -> np.ndarray:
        """Share of the comparisons with external methods that each method wins."""
        return np.nanmean(self.wins(tie), axis=(0, 2))

    def intervals(self, n_resamples: int = 2000, confidence: float = 0.95) -> np.ndarray:
        """Intervals of the win rates from resampled data sets, shape (2, methods)."""
        names, group = np.unique(self.datasets, return_inverse=True)
        wins = self.wins()
        won, played = (
            np.array([count[group == g].sum(axis=0) for g in range(len(names))])
            for count in (np.nansum(wins, axis=2), np.isfinite(wins).sum(axis=2))
        )
        rng = np.random.default_rng(0)
        times = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), n_resamples)
        tail = (1 - confidence) / 2
        return np.quantile((times @ won) / (times @ played), [tail, 1 - tail], axis=0)

    def share_ahead(self, method: str) -> np.ndarray:
        """Share of sets on which a method is ahead of each other, ties as halves."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # against itself there is none
            return np.nanmean((1 + self.ahead[:, self.methods.index(method)]) / 2, axis=0)


def _score(rows: Results, method: str, name: str, metric: str) -> float:
    row = rows.get((method, name))
    return np.nan if row is None else row[metric]


def paired_tests(
    losses: Losses, names: list[str], method: str, other: str
) -> tuple[np.ndarray, int]:
    """Sets on which a method is significantly ahead and behind in each loss, and sets compared.

    The test is that of the mean of paired differences of the losses of the test rows.

    Returns
    -------
    counts : ndarray of shape (2, 2)
        Ahead and behind (columns) in log loss and in Brier score (rows).
    n_sets : int
    """
    counts, n_sets = np.zeros((2, 2), dtype=int), 0
    for name in names:
        if not {method, other} <= losses[name].keys():
            continue
        gains = losses[name][other].astype(np.float64) - losses[name][method]
        error = gains.std(axis=1) / np.sqrt(gains.shape[1])
        counts[:, 0] += gains.mean(axis=1) > SIGNIFICANT * error
        counts[:, 1] += gains.mean(axis=1) < -SIGNIFICANT * error
        n_sets += 1
    return counts, n_sets


def summary(results: Results, losses: Losses, missing: list[str]) -> str:
    """Markdown with the tables of both groups."""
    lines = []
    for group, where in GROUPS.items():
        names = sorted({name for (_, name), row in results.items() if where(row["n_classes"])})
        if names:
            lines += [f"\n## {group}: {len(names)} sets\n", *table(results, where)]
            lines += ["\nRelative to the uncalibrated forecasts, set by set:\n"]
            lines += worst_table(results, where)
            if any(AUTO in losses[name] for name in names):
                lines += [f"\n{AUTO} against each other method:\n"]
                lines += auto_table(results, losses, names, where)
    if missing:
        lines += [f"\nNot installed, so not compared: {', '.join(missing)}."]
    return "\n".join(lines).strip() + "\n"


def table(results: Results, where: Callable[[int], bool]) -> list[str]:
    """Win rates, mean scores and median times of all methods."""
    log, brier = (Comparison.of(results, metric, where) for metric in LOSSES)
    low, high = log.intervals()
    rates, strict, brier_rates = log.win_rates(), log.win_rates(tie=0.0), brier.win_rates()
    head = ["method", "wins, log loss", "95 %", "ties lost", "wins, Brier", "log loss", "Brier"]
    head += ["top ECE", "classwise ECE", "accuracy", "AUC", "changed", "fit, ms", "predict, ms"]
    lines = [_line(head), "|---" * len(head) + "|"]
    for m in np.argsort(-rates):
        rows = [
            row
            for (method, _), row in results.items()
            if method == log.methods[m] and where(row["n_classes"])
        ]
        cells = [log.methods[m], f"{rates[m]:.3f}", f"{low[m]:.2f} to {high[m]:.2f}"]
        cells += [f"{strict[m]:.3f}", f"{brier_rates[m]:.3f}"]
        cells += [f"{np.mean([row[name] for row in rows]):.4f}" for name in MEANS]
        cells += [f"{1e3 * np.median([row[name] for row in rows]):.3g}" for name in TIMES]
        if len(rows) < len(log.datasets):
            cells[0] += f" ({len(rows)} sets)"
        lines.append(_line(cells))
    return lines


def worst_table(results: Results, where: Callable[[int], bool]) -> list[str]:
    """For each method the sets that it makes worse, and the worst of them."""
    changes: dict[str, list[tuple[float, float, str]]] = {}
    for (method, name), row in results.items():
        if where(row["n_classes"]) and method != BEFORE and (BEFORE, name) in results:
            before = results[BEFORE, name]["log_loss"]
            change = row["log_loss"] - before
            changes.setdefault(method, []).append((change / before, change, name))
    head = ["method", "sets made worse", "of which by more than 1 % and 0.002"]
    lines = [_line([*head, "largest increase, %", "in nats", "set"]), "|---" * 6 + "|"]
    for method, of_sets in sorted(changes.items(), key=lambda item: max(item[1])):
        share, change, name = max(of_sets)
        worse = sum(change > 0 for _, change, _ in of_sets)
        much = sum(share > 0.01 and change > 0.002 for share, change, _ in of_sets)
        lines.append(
            _line([method, str(worse), str(much), f"{100 * share:.2f}", f"{change:.4f}", name])
        )
    return lines


def auto_table(
    results: Results, losses: Losses, names: list[str], where: Callable[[int], bool]
) -> list[str]:
    """The automatic calibrator against each other method: sets ahead, and significantly so."""
    log, brier = (Comparison.of(results, metric, where) for metric in LOSSES)
    ahead, brier_ahead = log.share_ahead(AUTO), brier.share_ahead(AUTO)
    head = ["method", "sets"]
    for loss in ("log loss", "Brier"):
        head += [f"ahead, {loss}", "significantly ahead", "significantly behind"]
    lines = [_line(head), "|---" * len(head) + "|"]
    for m in np.argsort(ahead):
        if log.methods[m] == AUTO:
            continue
        counts, n_sets = paired_tests(losses, names, AUTO, log.methods[m])
        cells = [log.methods[m], str(n_sets)]
        for share, (better, worse) in zip((ahead[m], brier_ahead[m]), counts, strict=True):
            cells += [f"{share:.2f}", str(better), str(worse)]
        lines.append(_line(cells))
    return lines


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def draw(results: Results, path: Path) -> None:
    """Draw the win rates of all methods with their intervals, one panel per group."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    groups = [
        g for g, where in GROUPS.items() if any(where(r["n_classes"]) for r in results.values())
    ]
    figure = Figure(figsize=(5.2 * len(groups), 9.0), layout="constrained")
    for axes, group in zip(figure.subplots(1, len(groups), squeeze=False)[0], groups, strict=True):
        log = Comparison.of(results, "log_loss", GROUPS[group])
        brier = Comparison.of(results, "brier", GROUPS[group]).win_rates()
        rates, (low, high) = log.win_rates(), log.intervals()
        order = np.argsort(rates)
        place = np.arange(len(order))
        ours = ~log.external[order]
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
        axes.set_ylim(-0.7, len(order) - 0.3)
        axes.set_xlabel("share of comparisons won, 95 % interval")
        axes.grid(axis="x", alpha=0.3)
        axes.legend(loc="lower right")
    figure.savefig(path, dpi=130)
