"""Bias and coverage of metrics, level and power of tests, on data with a known truth.

True probabilities follow a Dirichlet distribution, labels are drawn with these probabilities, and
forecasts are a power of them, normalised. So E[Y | forecast] is the true probability, and the
calibration errors and decompositions of the population are known. Forecasts with a power of 1 are
calibrated, above 1 overconfident. Other forecasts point in a wrong direction or have no
information. Prints the tables of docs/coverage.md.

    python benchmarks/estimators.py [--quick] [--only STUDY]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, islice, product
from time import process_time

import numpy as np

from isoroc import evaluate
from isoroc.metrics import (
    bootstrap,
    calibration_error,
    calibration_test,
    decompose,
    smooth_calibration_error,
)

Array = np.ndarray


def draw(
    n: int, n_classes: int, power: float, seed: int, spread: float = 1.0
) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(n_classes, spread), n).clip(min=1e-300)
    P = truth**power
    P /= P.sum(axis=1, keepdims=True)
    return P, truth, labels_of(truth, rng)


def labels_of(P: Array, rng: np.random.Generator) -> Array:
    return (rng.random((len(P), 1)) > P.cumsum(axis=1)[:, :-1]).sum(axis=1)


def population(n_classes: int, power: float) -> dict[str, float]:
    P, g, _ = draw(1_000_000, n_classes, power, seed=2**20)
    log_g, log_p = np.log(g), np.log(P.clip(min=1e-300))
    square = ((g - P) ** 2).sum(axis=1).mean()
    half = 2 if n_classes == 2 else 1
    return {
        "l1": np.abs(g - P).sum(axis=1).mean() / 2,
        "l2": np.sqrt(square / 2),
        "log calibration": abs((g * (log_g - log_p)).sum(axis=1).mean()),
        "log refinement": -(g * log_g).sum(axis=1).mean(),
        "brier calibration": square / half,
        "brier refinement": (1 - (g**2).sum(axis=1).mean()) / half,
    }


def table(head: list[str], rows: list[list[str]]) -> None:
    print("| " + " | ".join(head) + " |")
    print("| " + " | ".join("---" for _ in head) + " |")
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)
    print(flush=True)


def settings(*, quick: bool) -> Iterator[tuple[int, int, float, int]]:
    """Number of classes, rows, power, and number of data sets."""
    for n_classes, n, times in ((2, 500, 300), (2, 3000, 150), (3, 500, 100), (3, 3000, 40)):
        for power in (0.7, 1.0, 1.3, 2.0):
            yield n_classes, n, power, 6 if quick else times


def estimates(*, quick: bool) -> None:
    """Means of the estimators of calibration error; bias and coverage of the decomposition."""
    binned = {
        "l1, 15 uniform bins": {"bins": 15},
        "l1, 15 quantile bins": {"bins": "quantile"},
        "l2, 15 quantile bins": {"bins": "quantile", "norm": "l2"},
        "l2, debiased": {"bins": "quantile", "norm": "l2", "debias": True},
    }
    means, covers = [], []
    seeds = count()
    for n_classes, n, power, times in settings(quick=quick):
        truth = population(n_classes, power)
        found: dict[str, list[float]] = {}
        values, ends = [], []
        for seed in islice(seeds, times):
            P, _, y = draw(n, n_classes, power, seed)
            for name, options in binned.items():
                found.setdefault(name, []).append(
                    calibration_error(y, P, labels=range(n_classes), **options)
                )
            found.setdefault("l1, irp", []).append(calibration_error(y, P, bins="irp"))
            parts = [decompose(y, P, loss=loss, bins="irp") for loss in ("log", "brier")]
            square = max(parts[1].calibration, 0) / (1 if n_classes == 2 else 2)
            found.setdefault("l2, irp", []).append(np.sqrt(square))
            found.setdefault("smooth", []).append(smooth_calibration_error(y, P))
            values.append([part for p in parts for part in (p.calibration, p.refinement)])
            frames = [p.frame() for p in parts]
            ends.append([np.concatenate([f[end][1:3] for f in frames]) for end in ("low", "high")])
        case = [str(n_classes), f"{n:,}", f"{power:g}"]
        order = ["l1, 15 uniform bins", "l1, 15 quantile bins", "l1, irp"]
        l2 = ["l2, 15 quantile bins", "l2, debiased", "l2, irp"]
        row = [f"{truth['l1']:.3f}", *(f"{np.mean(found[k]):.3f}" for k in order)]
        row += [f"{truth['l2']:.3f}", *(f"{rms(found[k]):.3f}" for k in l2)]
        means.append([*case, *row, f"{np.mean(found['smooth']):.3f}"])
        names = [f"{loss} {part}" for loss in ("log", "brier") for part in PARTS]
        targets = np.array([truth[name] for name in names])
        bias = np.mean(values, axis=0) - targets
        low, high = np.array(ends).transpose(1, 0, 2)
        covered = np.mean((low <= targets) & (targets <= high), axis=0)
        shown = [
            [f"{truth[name]:.3f}", f"{b:+.3f}", f"{c:.2f}"] if "cal" in name else [f"{c:.2f}"]
            for name, b, c in zip(names, bias, covered, strict=True)
        ]
        covers.append([*case, *(cell for cells in shown for cell in cells)])
    print("### Calibration error: truth and mean estimate\n")
    case = ["K", "n", "power"]
    table(
        [*case, "l1", "uniform", "quantile", "irp", "l2", "quantile", "debiased", "irp", "smooth"],
        means,
    )
    print("### Decomposition: truth, bias and coverage of the 95 % interval\n")
    head = ["calibration", "bias", "covered", "refinement covered"]
    table([*case, *(f"{loss} {h}" for loss in ("log:", "Brier:") for h in head)], covers)


PARTS = ("calibration", "refinement")


def rms(values: list[float]) -> float:
    """Root mean square, because it is the square that is estimated without bias."""
    return float(np.sqrt(np.mean(np.square(values))))


def wrong(case: str, n: int, n_classes: int, seed: int) -> tuple[Array, Array, Array]:
    """Forecasts that are not a power of the truth, E[Y | forecast], and labels."""
    P, g, _ = draw(n, n_classes, 1.0, seed)
    skewed = np.arange(1.0, n_classes + 1) / np.arange(1, n_classes + 1).sum()
    if case == "inverted":
        P = (1 - g) / (n_classes - 1)
    elif case == "two columns swapped":
        P = g[:, [1, 0, *range(2, n_classes)]]
    elif case == "noise":
        g = np.full_like(g, 1 / n_classes)
    elif case == "constant":
        P, g = np.full_like(g, 1 / n_classes), np.tile(skewed, (n, 1))
    elif case == "nearly constant":
        P, g = (1 + 1e-3 * g) / (n_classes + 1e-3), np.tile(skewed, (n, 1))
    else:  # folded: the first class is most likely where its forecast is 1/2
        first = 1 - np.abs(2 * P[:, :1] - 1)
        g = np.hstack([first, (1 - first) * P[:, 1:] / P[:, 1:].sum(axis=1, keepdims=True)])
    return P, g, labels_of(g, np.random.default_rng([seed, 1]))


def errors(y: Array, P: Array) -> list[float]:
    """The default estimates of both errors."""
    return [calibration_error(y, P, norm=k, labels=range(P.shape[1])) for k in ("l1", "l2")]


def directions(*, quick: bool) -> None:
    """Truth and mean estimate for forecasts that are wrong in every way."""
    cases = ("inverted", "two columns swapped", "noise", "constant", "nearly constant", "folded")
    powers = {"power 2": 2.0, "power 0.5": 0.5}
    sizes = {200: 40, 2000: 10, 20_000: 3, 200_000: 1}
    rows = []
    for n_classes, case in product((2, 3, 10), (*cases, *powers)):
        if n_classes == 2 and case == "two columns swapped":  # the same as inverted
            continue
        make = partial(draw, power=powers[case]) if case in powers else partial(wrong, case)
        l1, l2 = [], []
        for n, times in sizes.items():
            samples = (make(n, n_classes, seed=seed) for seed in range(1 if quick else times))
            found = np.array([errors(y, P) for P, _, y in samples])
            l1.append(found[:, 0].mean())
            l2.append(rms(found[:, 1]))
        P, g, _ = make(10**6, n_classes, seed=2**20)
        l1.insert(0, np.abs(g - P).sum(axis=1).mean() / 2)
        l2.insert(0, np.sqrt(((g - P) ** 2).sum(axis=1).mean() / 2))
        rows.append([str(n_classes), case, *(f"{x:.3f}" for x in l1 + l2)])
    print("### Wrong directions: truth and mean estimate by number of rows\n")
    head = [f"{n:,}" for n in sizes]
    table(["K", "forecasts", "l1", *head, "l2", *head], rows)


def chance(*, quick: bool) -> None:
    """What calibrated forecasts get by chance."""
    rows = []
    for n_classes, (n, times) in product((2, 3, 10), ((200, 400), (1000, 200), (10_000, 40))):
        samples = (draw(n, n_classes, 1.0, seed) for seed in range(4 if quick else times))
        found = [errors(y, P) for P, _, y in samples]
        mean, high = np.mean(found, axis=0), np.quantile(found, 0.95, axis=0)
        figures = [mean[0], high[0], rms(np.array(found)[:, 1]), high[1]]
        rows.append([str(n_classes), f"{n:,}", *(f"{x:.3f}" for x in figures)])
    print("### Calibrated forecasts: estimates by chance\n")
    table(["K", "n", "l1: mean", "95 % quantile", "l2: root mean square", "95 % quantile"], rows)


def intervals(*, quick: bool) -> None:
    """Coverage of bootstrap intervals for two classes and 500 rows."""
    metrics = {
        'l1, `bins="irp"`': ("l1", {"bins": "irp"}),
        'l2, `bins="irp"`': ("l2", {"bins": "irp", "norm": "l2"}),
        "l2, debiased": ("l2", {"bins": "quantile", "norm": "l2", "debias": True}),
        "l1, 15 quantile bins": ("l1", {"bins": "quantile"}),
    }
    rows = []
    seeds = count()
    for power in (0.7, 1.3, 2.0):
        truth = population(2, power)
        for name, (norm, options) in metrics.items():
            metric = partial(calibration_error, **options)
            covered = []
            for seed in islice(seeds, 4 if quick else 100):
                P, _, y = draw(500, 2, power, seed)
                result = bootstrap(metric, y, P, n_resamples=99, random_state=seed)
                mirrored = 2 * result.estimate - np.array([result.high, result.low])
                covered.append(
                    [
                        low <= truth[norm] <= high
                        for low, high in ((result.low, result.high), mirrored)
                    ]
                )
            shares = [f"{share:.2f}" for share in np.mean(covered, axis=0)]
            rows.append([f"{power:g}", name, *shares])
    print("### Coverage of 95 % bootstrap intervals, two classes, 500 rows\n")
    table(["power", "metric", "percentile", "basic"], rows)


def evaluations(*, quick: bool) -> None:
    """Coverage of the intervals of `evaluate`: forecasts before, the truth after."""
    rows = []
    seeds = count()
    for n_classes, n, power, times in settings(quick=quick):
        P, g, _ = draw(1_000_000, n_classes, power, seed=2**20)
        truth = population(n_classes, power)
        half = 2 if n_classes == 2 else 1
        expected = {
            ("log_loss", "before"): truth["log calibration"] + truth["log refinement"],
            ("log_loss", "change"): -truth["log calibration"],
            ("brier_score_loss", "change"): -((g - P) ** 2).sum(axis=1).mean() / half,
            ("calibration_loss", "before"): truth["log calibration"],
            ("calibration_error", "before"): truth["l1"],
            ("accuracy", "before"): g.max(axis=1).mean(),
        }
        if n_classes == 2:
            expected["auc", "before"] = 5 / 6  # of two classes whose probability is uniform
        covered = []
        for seed in islice(seeds, times // 2 or 1):
            P, g, y = draw(n, n_classes, power, seed)
            found = evaluate(y, P, g, labels=range(n_classes), n_resamples=100).measures
            ends = [found[measure][of] for measure, of in expected]
            covered.append(
                [e.low <= x <= e.high for e, x in zip(ends, expected.values(), strict=True)]
            )
        shares = [
            "-" if power == 1 and of == "change" else f"{share:.2f}"  # there is no change
            for (_, of), share in zip(expected, np.mean(covered, axis=0), strict=True)
        ]
        rows.append([str(n_classes), f"{n:,}", f"{power:g}", *shares, *["-"] * (7 - len(shares))])
    print("### Coverage of the 95 % intervals of `evaluate`\n")
    head = ["log loss", "its change", "change of the Brier score", "calibration loss"]
    table(["K", "n", "power", *head, "calibration error", "accuracy", "AUC"], rows)


def p_value(statistic: Callable[[Array], Array], P: Array, y: Array, seed: int) -> float:
    """p-value of another statistic, which takes many sets of labels at once."""
    rng = np.random.default_rng(seed)
    values = statistic(np.array([y, *(labels_of(P, rng) for _ in range(99))]))
    return float(np.mean(values >= values[0]))


def kernel_statistic(P: Array) -> Callable[[Array], Array]:
    """SKCE of Widmann et al. (2019); Laplacian kernel, bandwidth the median distance."""
    distance = np.sqrt(((P[:, None] - P) ** 2).sum(axis=2))
    kernel = np.exp(-distance / np.median(distance))
    np.fill_diagonal(kernel, 0)

    def statistic(labels: Array) -> Array:
        Z = np.eye(P.shape[1])[labels] - P  # (resample, row, class)
        flat = Z.transpose(1, 0, 2).reshape(len(P), -1)
        return np.asarray((flat * (kernel @ flat)).sum(axis=0).reshape(len(labels), -1).sum(axis=1))

    return statistic


def binned_statistic(P: Array) -> Callable[[Array], Array]:
    metric = partial(calibration_error, bins="quantile", labels=range(P.shape[1]))
    return lambda labels: np.array([metric(y, P) for y in labels])


def level_and_power(*, quick: bool) -> None:
    """Share of data sets of 500 rows in which calibration is rejected at 5 %."""
    rows = []
    seeds = count()
    statistics = (kernel_statistic, binned_statistic)
    for n_classes, spread, power in product((2, 3, 5), (1.0, 0.2), (1.0, 0.75, 1.25, 1.5)):
        ours, theirs = [], []
        for seed in islice(seeds, 5 if quick else 600 if power == 1 else 200):
            P, _, y = draw(500, n_classes, power, seed, spread)
            options = {"n_resamples": 99, "random_state": seed, "labels": range(n_classes)}
            ours.append(calibration_test(y, P, **options).p_value)
            if len(theirs) < 50:
                theirs.append([p_value(statistic(P), P, y, seed) for statistic in statistics])
        rejected = [np.mean(np.array(p) <= 0.05, axis=0) for p in (ours, theirs)]
        shares = [f"{share:.2f}" for share in (rejected[0], *rejected[1])]
        rows.append([str(n_classes), f"{spread:g}", f"{power:g}", *shares])
    print("### Share of data sets of 500 rows in which calibration is rejected at 5 %\n")
    head = ["K", "Dirichlet", "power", "`calibration_test`", "SKCE", "l1 in 15 bins"]
    table(head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few data sets, for a quick check")
    parser.add_argument("--only", default="", help="studies whose name contains this word")
    arguments = parser.parse_args()
    quick = arguments.quick
    for study in (directions, chance, estimates, evaluations, intervals, level_and_power):
        if arguments.only not in study.__name__:
            continue
        start = process_time()
        study(quick=quick)
        print(f"({process_time() - start:.0f} s)\n", flush=True)


if __name__ == "__main__":
    main()
