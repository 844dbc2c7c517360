"""Speed and memory of isoroc and its peers in one run: prints a table and writes a JSON file.

Every row is one job that isoroc and its peers do on the same data. Times are medians in seconds,
and "peer / isoroc" is the time of the peer divided by that of isoroc.

    python benchmarks/speed.py [--quick] [--only WORD] [--arena FOLDER [--part 3]] [--out FILE]

With --arena, the three-class sets among the files dataset-model.npz of a folder are fitted too, and
each calibrator is compared with structured matrix scaling (SMS) on all of them.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.spatial import ConvexHull
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import roc_auc_score

from isoroc import (
    AutoCalibrator,
    IRPCalibrator,
    KernelCalibrator,
    MatrixCalibrator,
    MonotoneCalibrator,
    SplineCalibrator,
    TemperatureCalibrator,
)
from isoroc._core.simplex import lattice, regions
from isoroc.metrics import (
    calibration_error,
    pairwise_separability,
    roc_auc,
    roc_surface,
    volume_under_surface,
)

Row = dict[str, str | int | float]
Job = Callable[[], object]


def seconds(job: Job, *, budget: float = 4.0, most: int = 15) -> float:
    """Median time of a job after one warm-up run, repeated until the budget is used."""
    start = perf_counter()
    job()
    first = perf_counter() - start
    times = [] if first < budget else [first]
    while (len(times) < 3 and sum(times) < 3 * budget) or (
        sum(times) < budget and len(times) < most
    ):
        start = perf_counter()
        job()
        times.append(perf_counter() - start)
    return median(times)


def row(job: str, n: int, ours: Job, **peers: Job) -> Row:
    times = {name: seconds(run) for name, run in {"isoroc": ours, **peers}.items()}
    ratios = {f"{name} / isoroc": times[name] / times["isoroc"] for name in peers}
    return {"job": job, "n": n, **times, **ratios}


def binary_data(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores and labels of an overconfident model."""
    rng = np.random.default_rng(0)
    scores = rng.random(n)
    return scores, (rng.random(n) < 0.2 + 0.6 * scores).astype(np.int64)


def data(n: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Overconfident forecasts, and labels."""
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.full(n_classes, 0.5), n)
    y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    P = truth**1.5
    return P / P.sum(axis=1, keepdims=True), y


def forest(n: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Forecasts of a random forest for new rows, and their labels."""
    X, y = make_classification(
        2 * n, 20, n_informative=8, n_classes=n_classes, flip_y=0.1, random_state=0
    )
    model = RandomForestClassifier(200, random_state=0, n_jobs=-1).fit(X[:n], y[:n])
    return model.predict_proba(X[n:]), y[n:]


def argsort_and_pool(scores: np.ndarray, y: np.ndarray) -> object:
    order = np.argsort(scores)
    return isotonic_regression(y[order].astype(np.float64))


def one_vs_rest(P: np.ndarray, y: np.ndarray) -> list[IsotonicRegression]:
    return [IsotonicRegression().fit(P[:, k], y == k) for k in range(P.shape[1])]


def binary_fits(sizes: list[int]) -> Iterator[Row]:
    for n in sizes:
        scores, y = binary_data(n)
        sources = {"probabilities": scores, "logits": np.log(scores / (1 - scores))}
        for kind, values in sources.items():
            yield row(
                f"binary fit, {kind}",
                n,
                lambda values=values, y=y: IRPCalibrator().fit(values, y),
                numpy_sort=lambda values=values: np.sort(values),
                sklearn=lambda values=values, y=y: IsotonicRegression().fit(values, y),
                scipy=lambda values=values, y=y: argsort_and_pool(values, y),
            )


def binary_predictions(sizes: list[int]) -> Iterator[Row]:
    for n in sizes:
        scores, y = binary_data(n)
        ours = IRPCalibrator().fit(scores, y)
        theirs = IsotonicRegression(out_of_bounds="clip").fit(scores, y)
        new = np.random.default_rng(1).random(n)
        yield row(
            f"binary predict, {ours.n_bins_} bins",
            n,
            lambda ours=ours, new=new: ours.predict_proba(new),
            sklearn=lambda theirs=theirs, new=new: theirs.predict(new),
        )


def fits(cases: list[tuple[int, int]]) -> Iterator[Row]:
    """Fit of K >= 3 classes; each peer runs on the sizes that it can handle."""
    for n, K in cases:
        yield fit_row(f"fit, K = {K}", *data(n, K))
    for K in (3, 4):
        yield fit_row(f"fit, K = {K}, a forest's forecasts", *forest(3000, K))


def real_fits(arena: Path) -> Iterator[Row]:
    for path in sorted(arena.glob("*.npz")):
        with np.load(path) as arrays:
            P, y = arrays["probas_cal"], arrays["labels_cal"].astype(np.int64)
        if P.shape[1] == 3:
            yield fit_row(f"fit, {path.stem}", P, y)


def member_times(arena: Path, part: int) -> Iterator[Row]:
    """Fits and forecasts of calibrators on sets of the arena, as multiples of the times of SMS.

    Run it without OMP_NUM_THREADS, as users do. Calibrators take turns; the least of three times of
    a fit and of twenty times of the forecasts counts.
    """
    from probmetrics.calibrators import SMSCalibrator  # noqa: PLC0415

    makes = [SMSCalibrator, TemperatureCalibrator, MatrixCalibrator, SplineCalibrator]
    makes += [KernelCalibrator, MonotoneCalibrator, IRPCalibrator, AutoCalibrator]
    ratios: dict[tuple[str, str], list[np.ndarray]] = {}
    for path in sorted(arena.glob("*.npz"))[::part]:
        with np.load(path) as arrays:
            P, P_new = (arrays[name].astype(np.float64) for name in ("probas_cal", "probas_test"))
            y = arrays["labels_cal"].reshape(-1).astype(np.int64)
        P, P_new = (rows / rows.sum(axis=1, keepdims=True) for rows in (P, P_new))
        fitted = [make() for make in makes]
        times = {
            "fit": least_times([partial(found.fit, P, y) for found in fitted], 3),
            "predict": least_times([partial(found.predict_proba, P_new) for found in fitted], 20),
        }
        group = "K = 2" if P.shape[1] == 2 else "K >= 3"
        for job, least in times.items():
            ratios.setdefault((job, group), []).append(least[1:] / least[0])
    for (job, group), found in sorted(ratios.items()):
        for make, column in zip(makes[1:], np.array(found).T, strict=True):
            figures = {"median": float(np.median(column)), "largest": float(column.max())}
            yield {"job": f"{job}, {make.__name__} / SMS, {group}", "n": len(column), **figures}


def many_classes(cases: list[tuple[int, int]]) -> Iterator[Row]:
    """Fits and forecasts of `AutoCalibrator` and of SMS for many classes, in seconds."""
    from probmetrics.calibrators import SMSCalibrator  # noqa: PLC0415

    for n, K in cases:
        P, y = data(n, K)
        found = [AutoCalibrator(random_state=0), SMSCalibrator()]
        jobs = [partial(found[0].fit, P, y, labels=range(K)), partial(found[1].fit, P, y)]
        fits = least_times(jobs, 3)
        forecasts = least_times([partial(made.predict_proba, P) for made in found], 5)
        for job, (ours, sms) in {"fit": fits, "forecasts": forecasts}.items():
            figures = {"AutoCalibrator": ours, "SMS": sms, "ratio": ours / sms}
            yield {"job": f"many classes, {job}, K = {K}", "n": n, **figures}


def least_times(jobs: list[Job], repeats: int) -> np.ndarray:
    """Least time of each job; jobs take turns."""
    times = np.empty((repeats, len(jobs)))
    for repeat in times:
        for j, job in enumerate(jobs):
            start = perf_counter()
            job()
            repeat[j] = perf_counter() - start
    return times.min(axis=0)


def fit_row(job: str, P: np.ndarray, y: np.ndarray) -> Row:
    n, K = P.shape
    constant = IRPCalibrator(values="constant", random_state=0)
    peers: dict[str, Job] = {"one_vs_rest": lambda: one_vs_rest(P, y)}
    peers["constant"] = lambda: constant.fit(P, y)
    if n <= 10**5 and find_spec("probmetrics"):
        from probmetrics.calibrators import SMSCalibrator  # noqa: PLC0415

        peers["SMS"] = lambda: SMSCalibrator().fit(P, y)
    if n <= 500 and K == 3:
        sys.path.append(str(Path(__file__).resolve().parents[1]))
        from reproduction.published import ReferenceIRP  # noqa: PLC0415

        peers["reference"] = lambda: ReferenceIRP(100).fit(P, y)
    return row(job, n, lambda: fit(P, y), **peers)


def fit(P: np.ndarray, y: np.ndarray) -> IRPCalibrator:
    return IRPCalibrator(random_state=0).fit(P, y)


def large_fits(name: str, make: Callable[[], Any], cases: list[tuple[int, int]]) -> Iterator[Row]:
    for n, K in cases:
        P, y = data(n, K)
        start = process_time()
        make().fit(P, y)
        yield {"job": f"{name}, K = {K}", "n": n, "processor seconds": process_time() - start}


def predictions(n: int) -> Iterator[Row]:
    P, y = data(3000, 3)
    ours = IRPCalibrator(max_bins=20, random_state=0).fit(P, y)
    theirs = one_vs_rest(P, y)
    new, _ = data(n, 3)
    yield row(
        f"predict, K = 3, {ours.n_bins_} bins",
        n,
        lambda: ours.predict_proba(new),
        one_vs_rest=lambda: [model.predict(new[:, k]) for k, model in enumerate(theirs)],
    )


def binary_metrics(sizes: list[int]) -> Iterator[Row]:
    for n in sizes:
        scores, y = binary_data(n)
        yield row(
            "AUC",
            n,
            lambda scores=scores, y=y: roc_auc(y, scores),
            numpy_sort=lambda scores=scores: np.sort(scores),
            sklearn=lambda scores=scores, y=y: roc_auc_score(y, scores),
        )
        peers: dict[str, Job] = {}
        if find_spec("netcal"):
            from netcal.metrics import ECE  # noqa: PLC0415

            peers["netcal"] = lambda scores=scores, y=y: ECE(15).measure(scores, y)
        if find_spec("probmetrics"):
            import torch  # noqa: PLC0415
            from probmetrics.metrics import Metrics  # noqa: PLC0415

            ece = Metrics.from_names(["ece-15"]).compute_all_from_labels_probs
            labels, P = torch.as_tensor(y), torch.as_tensor(np.column_stack([1 - scores, scores]))
            peers["probmetrics"] = lambda ece=ece, labels=labels, P=P: ece(labels, P)
        yield row(
            "calibration error, 15 bins",
            n,
            lambda scores=scores, y=y: calibration_error(y, scores, bins=15),
            **peers,
        )


def volumes(cases: list[tuple[int, int]]) -> Iterator[Row]:
    """Times and values of volumes under ROC surfaces.

    The peer for the hull is the obvious method: a lattice of thresholds and Qhull. moocore measures
    the boxes of the points that isoroc found, so its time is that of the last step only.
    """
    for n, K in cases:
        P, y = data(n, K)
        for volume in ("hull", "boxes"):
            peers: dict[str, Job] = {}
            values: Row = {"value": float(volume_under_surface(y, P, volume=volume))}
            if volume == "hull" and n <= 3000:
                peers["lattice"] = lambda P=P, y=y: lattice_volume(P, y)
                values["lattice value"] = lattice_volume(P, y)
            if volume == "boxes" and K == 3 and n <= 3000 and find_spec("moocore"):
                from moocore import hypervolume  # noqa: PLC0415

                points = roc_surface(y, P).points
                peers["moocore"] = lambda points=points: hypervolume(points, ref=0, maximise=True)
                values["moocore value"] = peers["moocore"]()
            found = row(
                f"{volume}, K = {K}",
                n,
                lambda P=P, y=y, volume=volume: volume_under_surface(y, P, volume=volume),
                **peers,
            )
            yield found | values
        yield row(
            f"separability, K = {K}",
            n,
            lambda P=P, y=y: pairwise_separability(y, P, random_state=0),
        )


def resolutions() -> Iterator[Row]:
    """Value and time of volumes for several resolutions."""
    for n, K, resolutions in (
        (10**4, 3, (50, 100, 200, 400, None)),
        (3000, 4, (250, 500, 1000, 2000, 4000)),
        (3000, 5, (250, 500, 1000, 2000, 4000)),
    ):
        P, y = data(n, K)
        for volume in ("hull", "boxes"):
            for resolution in resolutions:
                start = perf_counter()
                found = volume_under_surface(y, P, volume=volume, resolution=resolution or 10**9)
                yield {
                    "job": f"{volume}, K = {K}, " + (f"{resolution}" if resolution else "exact"),
                    "n": n,
                    "seconds": perf_counter() - start,
                    "value": found.value,
                    "points": found.n_points,
                }


def lattice_volume(P: np.ndarray, y: np.ndarray) -> float:
    """Volume of the hull from about 5,000 thresholds of a lattice larger than the simplex."""
    K = P.shape[1]
    grid = lattice(K, {3: 100, 4: 29, 5: 16}[K])
    points = [np.eye(K), np.zeros((1, K))]
    for gamma in grid + (K - 1) * (grid - 1 / K):
        right = y[regions(P, gamma) == y]
        points.append(np.bincount(right, minlength=K)[None] / np.bincount(y))
    return float(ConvexHull(np.vstack(points)).volume)


def growth_of_cost(sizes: list[int]) -> Iterator[Row]:
    """Fit time and peak memory for several n and K, and fitted exponents of n."""
    for K in (2, 3, 4, 10, 100):
        times = []
        for n in sizes:
            if n * K > 10**7:
                continue
            P, y = data(n, K)
            scores = P[:, 1] if K == 2 else P
            times.append((n, seconds(lambda scores=scores, y=y: fit(scores, y))))
            yield {
                "job": f"cost, K = {K}",
                "n": n,
                "seconds": times[-1][1],
                "memory / input": peak_memory(scores, y),
            }
        slope = np.polyfit(*np.log(np.array(times).T), 1)[0]
        yield {"job": f"cost, K = {K}: seconds ~ n ** exponent", "n": n, "exponent": float(slope)}


def peak_memory(forecasts: np.ndarray, y: np.ndarray) -> float:
    """Peak resident memory that loading and fitting add to a process, relative to the input."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(path, forecasts=forecasts, y=y)
        run = subprocess.run(  # noqa: S603
            [sys.executable, __file__, "--fit-once", str(path)],
            capture_output=True,
            text=True,
            check=True,
        )
    return float(run.stdout) / (forecasts.nbytes + y.nbytes)


def fit_once(path: Path) -> None:
    """Print by how many bytes loading the arrays and fitting raise the peak of this process."""

    def peak() -> int:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        return 1024 * int(status.split("VmHWM:")[1].split()[0])

    IRPCalibrator().fit([0.0, 1.0], [0, 1])
    fit(*data(100, 3))
    before = peak()
    with np.load(path) as arrays:
        forecasts, y = arrays["forecasts"], arrays["y"]
    fit(forecasts, y)
    print(peak() - before)


def start_up() -> Iterator[Row]:
    """Import and first fit of 500 rows in a new process, after scikit-learn was imported."""
    P, y = data(500, 3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(path, P=P, y=y)
        code = f"""
import numpy, sklearn.isotonic, time
data = numpy.load({str(path)!r})
P, y = data["P"], data["y"]
start = time.perf_counter()
import isoroc
isoroc.IRPCalibrator(random_state=0).fit(P, y)
print(time.perf_counter() - start)
"""
        command = [sys.executable, "-c", code]
        runs = [
            subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
            for _ in range(5)
        ]
    took = median(float(run.stdout) for run in runs)
    yield {"job": "new process, import and fit, K = 3", "n": 500, "seconds": took}


def show(found: Row) -> None:
    figures = "  ".join(
        f"{name} {value:.4g}" for name, value in found.items() if name not in ("job", "n")
    )
    print(f"{found['job']:<40} n = {found['n']:>11,}  {figures}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="leave out the largest sizes")
    parser.add_argument("--only", default="", help="sections whose name contains this")
    parser.add_argument("--arena", type=Path, help="folder of real forecasts")
    parser.add_argument("--part", type=int, default=3, help="with members: use every Nth set")
    parser.add_argument("--out", type=Path, default=Path("build/bench/speed.json"))
    parser.add_argument("--fit-once", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit_once:
        fit_once(options.fit_once)
        return

    most = 10**6 if options.quick else 10**7
    sizes = [n for n in (10**5, 10**6, 10**7) if n <= most]
    cases = [(500, 3), (3000, 3), (3000, 4), (10**5, 3), (10**5, 4), (10**5, 10), (10**5, 100)]
    sections = {
        "binary fit": lambda: binary_fits(sizes),
        "binary predict": lambda: binary_predictions(sizes),
        "memory": lambda: [
            {
                "job": "binary fit, peak memory / input arrays",
                "n": most,
                "ratio": peak_memory(*binary_data(most)),
            },
            {
                "job": "fit, K = 3, peak memory / input arrays",
                "n": most,
                "ratio": peak_memory(*data(most, 3)),
            },
        ],
        "fit": lambda: fits([*cases, (10**6, 3)]),
        "automatic": lambda: large_fits(
            "automatic",
            lambda: AutoCalibrator(random_state=0),
            [(3000, 3), (3000, 1000), (10**6, 3)],
        ),
        "monotone": lambda: large_fits(
            "monotone", MonotoneCalibrator, [(3000, 3), (10**6, 2), (10**6, 3), (10**6, 4)]
        ),
        "predict": lambda: predictions(most),
        "metrics": lambda: binary_metrics([most]),
        "volume": lambda: volumes([(500, 3), (3000, 3), (10**5, 3), (3000, 4), (3000, 5)]),
        "resolution": resolutions,
        "start": start_up,
        "cost": lambda: growth_of_cost([10**3, 10**4, 10**5, 10**6]),
    }
    if find_spec("probmetrics"):
        many = [(1000, 10), (1000, 20), (1500, 30), (1500, 40), (1000, 50), (2500, 50)]
        many += [(1000, 100), (3000, 100), (2000, 200), (3000, 500), (3000, 1000)]
        sections["many"] = lambda: many_classes(many)
    if options.arena:
        sections["arena"] = lambda: real_fits(options.arena)
        if find_spec("probmetrics"):
            sections["members"] = lambda: member_times(options.arena, options.part)
    if not find_spec("probmetrics"):
        print("probmetrics is not installed: pip install -r benchmarks/requirements.txt")
    rows: list[Row] = []
    for name, section in sections.items():
        if options.only in name:
            for found in section():
                rows.append(found)
                show(found)
    packages = ["isoroc", "numpy", "scipy", "scikit-learn"]
    packages += ["probmetrics", "torch"] if find_spec("probmetrics") else []
    packages += [name for name in ("netcal", "moocore") if find_spec(name)]
    versions = {"python": platform.python_version(), "machine": platform.machine()}
    versions |= {name: version(name) for name in packages}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"versions": versions, "rows": rows}, indent=2) + "\n")
    print(f"written to {options.out}")


if __name__ == "__main__":
    main()
