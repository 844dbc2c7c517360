"""Speed and memory of isoroc and its peers in one run: prints tables.

    python benchmarks/speed.py [PART ...] [--quick] [--budget S] [--arena FOLDER [--step 3]]
    python benchmarks/speed.py table --write docs/evidence.md

By default it prints the part `table`: fits and forecasts of all calibrators and of their peers, by
rows and classes. With --write, the tables replace those in a page, between two comments. What is
expected to take longer than the budget is left out. With OMP_NUM_THREADS=1, all run in one thread.

The other parts, of which `all` runs all: serving (one row through `load_map`), binary, fit, large,
predict, metrics, cost (time and memory by rows and classes), members (all calibrators against
structured matrix scaling on sets of the arena), many (the same for many classes), onnx, torch, sql.
Every row is one job that isoroc and its peers do on the same data. Times are the least of several
runs, in seconds, and ratios are the time of a peer divided by the time of isoroc. Peers that are
not installed are left out (benchmarks/requirements.txt).
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import roc_auc_score

import isoroc
from isoroc import AutoCalibrator, IRPCalibrator, MonotoneCalibrator
from isoroc._calibrators.base import Calibrator
from isoroc._calibrators.registry import methods
from isoroc._support.table import markdown_table
from isoroc.metrics import calibration_error, roc_auc

Job = Callable[[], object]


def seconds(job: Job, *, budget: float = 4.0, most: int = 15) -> float:
    """Least time of a job, which is repeated as long as one more run fits the budget."""
    times: list[float] = []
    while not times or (sum(times) + min(times) < budget and len(times) < most):
        start = perf_counter()
        job()
        times.append(perf_counter() - start)
    return min(times)


def least(jobs: list[Job], repeats: int, clock: Callable[[], float] = perf_counter) -> np.ndarray:
    """Least time of each job after one run. Jobs take turns."""
    times = np.empty((repeats + 1, len(jobs)))
    for repeat, j in np.ndindex(times.shape):
        start = clock()
        jobs[j]()
        times[repeat, j] = clock() - start
    return times[1:].min(axis=0)


def least_of_rounds(jobs: list[Job]) -> np.ndarray:
    """Least time of each job in three rounds, in which it runs several times in a row.

    Threads of OpenMP keep a core busy for .1 s after their work, and slow down the job after them.
    """
    rounds = [[seconds(job, budget=0.5, most=25) for job in jobs] for _ in range(3)]
    return np.min(rounds, axis=0)


def show(job: str, n: int, **figures: object) -> None:
    """Print one row."""
    cells = (f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in figures.items())
    print(f"{job:<42} n = {n:>11,}  " + "  ".join(cells), flush=True)


def compare(job: str, n: int, ours: Job, **peers: Job) -> None:
    """Print the times of a job and of its peers, and their ratios."""
    times = {name: seconds(run) for name, run in {"isoroc": ours, **peers}.items()}
    ratios = {f"{name} / isoroc": times[name] / times["isoroc"] for name in peers}
    show(job, n, **times, **ratios)


def binary_data(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores and labels of an overconfident model."""
    rng = np.random.default_rng(0)
    scores = rng.random(n)
    return scores, (rng.random(n) < 0.2 + 0.6 * scores).astype(np.int64)


def data(n: int, K: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Overconfident forecasts, and labels. All classes occur."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(K, 0.5), n)
    y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    y[-K:] = range(K)
    P = truth**1.5
    return P / P.sum(axis=1, keepdims=True), y


def forest(n: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    """Forecasts of a random forest for new rows, and their labels."""
    options: Any = {"n_informative": 8, "n_classes": K, "flip_y": 0.1, "random_state": 0}
    X, y = make_classification(2 * n, 20, **options)
    model = RandomForestClassifier(200, random_state=0, n_jobs=-1).fit(X[:n], y[:n])
    return model.predict_proba(X[n:]), y[n:]


def one_vs_rest(P: np.ndarray, y: np.ndarray) -> list[IsotonicRegression]:
    return [IsotonicRegression().fit(P[:, k], y == k) for k in range(P.shape[1])]


def fit(P: np.ndarray, y: np.ndarray) -> IRPCalibrator:
    return IRPCalibrator(random_state=0).fit(P, y)


# All calibrators, by rows and classes


#: Calibrators of others that learn the same kind of map.
SAME_NAME = {
    "beta": ["Beta"],
    "isotonic": ["sklearn isotonic"],
    "kernel": ["Kernel"],
    "matrix": ["SMS", "MS"],
    "sigmoid": ["sklearn sigmoid"],
    "spline": ["CDF spline"],
    "temperature": ["sklearn temperature", "TS"],
    "venn-abers": ["Venn-Abers"],
}
#: Calibrators whose fits are shown with forecasts of as many rows, because this peer computes
#: everything then. Its time grows with the square of the number of rows.
WITH_FORECASTS = ("kernel", "Kernel")
QUADRATIC = "Kernel"


class Measured(NamedTuple):
    """Seconds of a fit, and of forecasts for as many new rows."""

    fit: float
    forecasts: float


def compared_methods() -> tuple[dict[str, Callable[[], Any]], list[str]]:
    """Makers of calibrators and of their peers, and the peers that are not installed."""
    from peers import peers  # noqa: PLC0415

    # A segment calibrator needs segments, and an online one batches.
    others = ("segment", "online")
    own = {name: make for name, make in methods().items() if name not in others}
    wanted = [name for names in SAME_NAME.values() for name in names]
    found, missing = peers()
    theirs = {method.name: method.make for method in found if method.name in wanted}
    return own | theirs, [name for name in missing if name in wanted]


def measure(
    make: Callable[[], Any], P: np.ndarray, y: np.ndarray, new: np.ndarray, budget: float = 0.5
) -> Measured | str:
    """Least times of a fit and of forecasts for new rows, or "fails"."""
    made = make()
    further = {"labels": range(P.shape[1])} if isinstance(made, Calibrator) else {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = seconds(partial(made.fit, P, y, **further), budget=budget)
            return Measured(fit, seconds(partial(made.predict_proba, new), budget=budget))
    except (ArithmeticError, MemoryError, RuntimeError, ValueError):
        return "fails"


def expected_seconds(name: str, n: int, known: dict[int, float]) -> float:
    """Time for n rows, from times for fewer rows: it grows by a power of their number."""
    (m, last), *others = sorted(known.items(), reverse=True)
    power = 2.0 if name == QUADRATIC else 1.0
    if others:
        fewer, first = others[0]
        power = max(np.log(last / first) / np.log(m / fewer), 0.0)
    return float(last * (n / m) ** power)


Times = dict[tuple[str, int, int], Measured | str]


def measure_all(options: argparse.Namespace) -> tuple[Times, list[str]]:
    """Times by method, rows and classes, or why there is none, and peers not installed."""
    makers, missing = compared_methods()
    times: Times = {}
    for K, n in product(options.classes, options.rows):
        if n * K > 3 * 10**7:
            times |= {(name, n, K): "large" for name in makers}
            continue
        start = perf_counter()
        P, y = data(n, K)
        new, _ = data(n, K, seed=1)
        for name, make in makers.items():
            smaller = {m: t for (own, m, k), t in times.items() if own == name and k == K}
            known = {m: sum(t) for m, t in smaller.items() if not isinstance(t, str)}
            long = known and expected_seconds(name, n, known) > options.budget
            if name == "Beta" and K > 2:
                times[name, n, K] = "binary"
            elif long or len(known) < len(smaller):
                times[name, n, K] = "long"
            else:
                if not smaller:  # some peers compile their loops when they first run
                    measure(make, P, y, new, budget=0.0)
                times[name, n, K] = measure(make, P, y, new)
        for name, make in 2 * list(makers.items()):  # later, when the machine may be faster
            first = times[name, n, K]
            if not isinstance(first, str) and sum(first) < 5:
                again = measure(make, P, y, new)
                times[name, n, K] = Measured(*map(min, first, again))
        took = perf_counter() - start
        print(f"K = {K}, n = {n:,}: {took:.0f} s", file=sys.stderr, flush=True)
    return times, missing


def shown_seconds(measured: Measured, name: str, job: str) -> float:
    """Seconds of a job, "fit" or "forecasts", as the tables show them."""
    if job == "fit" and name in WITH_FORECASTS:
        return sum(measured)
    return float(getattr(measured, job))


def cell(times: Times, name: str, n: int, K: int, job: str) -> str:
    """Seconds of a job, with the time of the fastest peer of its name divided by it."""
    measured = times[name, n, K]
    if isinstance(measured, str):
        return {"long": "-", "large": "-", "binary": ""}.get(measured, measured)
    own = shown_seconds(measured, name, job)
    peers = {peer: times.get((peer, n, K), "absent") for peer in SAME_NAME.get(name, [])}
    found = [shown_seconds(t, peer, job) for peer, t in peers.items() if not isinstance(t, str)]
    shown = f"{own:.2g}" if own < 100 else f"{own:.0f}"
    return f"{shown} ({min(found) / own:.2g})" if found else shown


def print_table(options: argparse.Namespace) -> None:
    """Fits and forecasts of all calibrators and their peers."""
    times, missing = measure_all(options)
    sizes = list(product(options.classes, options.rows))
    names = list(dict.fromkeys(name for name, _, _ in times))
    peers = [name for names in SAME_NAME.values() for name in names]
    names.sort(key=lambda name: name in peers)  # the calibrators of isoroc first
    tables = []
    for job in Measured._fields:
        head = [f"{job}, seconds", *(f"K = {K}, n = {n:,}" for K, n in sizes)]
        notes = dict.fromkeys(WITH_FORECASTS, ", with forecasts") if job == "fit" else {}
        lines = [
            [name + notes.get(name, ""), *(cell(times, name, n, K, job) for K, n in sizes)]
            for name in names
        ]
        tables.append(markdown_table(head, lines))
    threads = "one thread" if os.environ.get("OMP_NUM_THREADS") == "1" else "default threads"
    about = f"{platform.machine()}, {os.cpu_count()} cores, {threads}. In parentheses: the "
    about += "time of the fastest peer of the same name divided by it. Forecasts are for as many "
    about += "new rows. Both are left out (-) if they would take longer than "
    about += f"{options.budget:g} s together, judging by fewer rows, or if there are more than "
    about += "3·10⁷ probabilities (a million rows of 100 classes take .8 GB). The peer Kernel "
    about += "computes everything when it forecasts, so fits of kernel scaling have the time of a "
    about += "fit and of forecasts."
    if missing:
        about += f" Not installed: {', '.join(missing)}."
    text = "\n\n".join([about, *tables])
    print(text)
    if options.write is not None:
        marks = [f"<!-- speed table: {mark} -->" for mark in ("begin", "end")]
        page = options.write.read_text("utf-8")
        before, rest = page.split(marks[0])
        _, after = rest.split(marks[1])
        page = f"{before}{marks[0]}\n\n{text}\n\n{marks[1]}{after}"
        options.write.write_text(page, "utf-8")


def print_serving(_: argparse.Namespace) -> None:
    """One row through `load_map`, in processor microseconds: the least mean of 200 calls."""
    n = 5000
    rng = np.random.default_rng(0)
    segments = {"region": rng.choice(["north", "south"], n), "age": rng.normal(size=n)}
    lines = []
    for name, K in product(("temperature", "auto", "ordinal", "segment", "multilabel"), (2, 3, 10)):
        P, y = data(n, K)
        further: dict[str, Any] = {}
        made = methods().get(name, isoroc.MultiLabelCalibrator)()
        if name == "segment":
            further = {"segments": segments}
        if name == "multilabel":
            y = (rng.random(P.shape) < P).astype(int)
        elif name == "ordinal":
            further = {"labels": range(K)}
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = Path(folder) / "model.json"
            made.fit(P, y, **further).save(path)
            served = isoroc.load_map(path)
        row: list[Any] = [P[:1]]
        if served.map_.states().keys() & {"columns"}:
            row.append({"region": ["north"], "age": [0.5]})
        job = partial(repeat_job, partial(served.predict_proba, *row), 200)
        lines.append([name, str(K), f"{least([job], 9, process_time)[0] / 200 * 1e6:.0f}"])
    print(markdown_table(["calibrator", "classes or labels", "one row, CPU us"], lines))


def repeat_job(job: Job, times: int) -> None:
    for _ in range(times):
        job()


# Fits and predictions


def print_binary(options: argparse.Namespace) -> None:
    """Two classes: fits of probabilities and log odds, and predictions."""
    for n in options.sizes:
        scores, y = binary_data(n)
        for kind, values in (("probabilities", scores), ("logits", np.log(scores / (1 - scores)))):
            compare(
                f"binary fit, {kind}",
                n,
                partial(IRPCalibrator().fit, values, y),
                numpy_sort=partial(np.sort, values),
                sklearn=partial(IsotonicRegression().fit, values, y),
                scipy=lambda v=values, y=y: isotonic_regression(y[np.argsort(v)].astype(float)),
            )
        ours = IRPCalibrator().fit(scores, y)
        theirs = IsotonicRegression(out_of_bounds="clip").fit(scores, y)
        new = np.random.default_rng(1).random(n)
        name = f"binary predict, {ours.n_bins_} bins"
        compare(name, n, partial(ours.predict_proba, new), sklearn=partial(theirs.predict, new))


def print_fit(options: argparse.Namespace) -> None:
    """Three classes and more. Each peer runs on the sizes that it can handle."""
    cases = [(500, 3), (3000, 3), (3000, 4), (10**5, 3), (10**5, 4), (10**5, 10), (10**5, 100)]
    sets = [(f"fit, K = {K}", *data(n, K)) for n, K in [*cases, (options.sizes[-1] // 10, 3)]]
    sets += [(f"fit, K = {K}, a forest's forecasts", *forest(3000, K)) for K in (3, 4)]
    for name, P, y in sets:
        peers: dict[str, Job] = {"one_vs_rest": partial(one_vs_rest, P, y)}
        constant = IRPCalibrator(values="constant", random_state=0)
        peers["constant"] = partial(constant.fit, P, y)
        if len(P) <= 10**5 and find_spec("probmetrics"):
            peers["SMS"] = lambda P=P, y=y: sms().fit(P, y)
        compare(name, len(P), partial(fit, P, y), **peers)


def sms() -> Any:
    from probmetrics.calibrators import SMSCalibrator  # noqa: PLC0415

    return SMSCalibrator()


def print_large(_: argparse.Namespace) -> None:
    """Processor seconds of other fits."""
    auto = partial(AutoCalibrator, random_state=0)
    rows = 10**6
    cases = [(auto, 3000, 3), (auto, 3000, 1000), (auto, rows, 3)]
    cases += [(MonotoneCalibrator, n, K) for n, K in ((3000, 3), (rows, 2), (rows, 3), (rows, 4))]
    for make, n, K in cases:
        P, y = data(n, K)
        start = process_time()
        calibrator = make().fit(P, y)
        took = process_time() - start
        show(f"{type(calibrator).__name__}, K = {K}", n, **{"processor seconds": took})


def print_predict(options: argparse.Namespace) -> None:
    """Forecasts of a tree with 20 bins."""
    P, y = data(3000, 3)
    ours = IRPCalibrator(max_bins=20, random_state=0).fit(P, y)
    theirs = one_vs_rest(P, y)
    new, _ = data(options.sizes[-1], 3)
    compare(
        f"predict, K = 3, {ours.n_bins_} bins",
        len(new),
        partial(ours.predict_proba, new),
        one_vs_rest=lambda: [model.predict(new[:, k]) for k, model in enumerate(theirs)],
    )


def print_metrics(options: argparse.Namespace) -> None:
    """AUC, and calibration errors: binned, and cross-fitted next to one fit of IRP."""
    scores, y = binary_data(options.sizes[-1])
    peers: dict[str, Job] = {"numpy_sort": partial(np.sort, scores)}
    peers["sklearn"] = partial(roc_auc_score, y, scores)
    compare("AUC", len(y), partial(roc_auc, y, scores), **peers)
    job = partial(calibration_error, y, scores, bins=15)
    show("calibration error, 15 bins", len(y), seconds=seconds(job))
    for n, K in ((300, 2), (1000, 2), (10**4, 2), (10**5, 2), (3000, 3), (3000, 10)):
        P, y = data(n, K)
        cross_fitted = partial(calibration_error, y, P, bins="irp")
        compare(
            f"calibration error, K = {K}, cross-fitted", n, cross_fitted, IRP=partial(fit, P, y)
        )


def print_cost(options: argparse.Namespace) -> None:
    """Fit time and peak memory by rows and classes, and fitted exponents of the rows."""
    for K in (2, 3, 4, 10, 100):
        times = []
        for n in [n for n in (10**3, 10**4, 10**5, *options.sizes) if n * K <= 3 * 10**7]:
            P, y = data(n, K)
            scores = P[:, 1] if K == 2 else P
            times.append((n, seconds(partial(fit, scores, y))))
            memory = {"memory / input": peak_memory(scores, y)}
            show(f"cost, K = {K}", n, seconds=times[-1][1], **memory)
        slope = np.polyfit(*np.log(np.array(times).T), 1)[0]
        show(f"cost, K = {K}: seconds ~ n ** exponent", n, exponent=float(slope))


def peak_memory(forecasts: np.ndarray, y: np.ndarray) -> float:
    """Peak memory that loading and fitting add to a new process, relative to the input."""
    code = """
import sys, numpy, isoroc
from pathlib import Path
peak = lambda: 1024 * int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
for K in (2, 3):
    isoroc.IRPCalibrator().fit(numpy.random.default_rng(0).dirichlet(numpy.ones(K), 99), [*range(K)] * (99 // K) + [0] * (99 % K))
before = peak()
arrays = numpy.load(sys.argv[1])
isoroc.IRPCalibrator(random_state=0).fit(arrays["forecasts"], arrays["y"])
print(peak() - before)
"""  # noqa: E501
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(path, forecasts=forecasts, y=y)
        words = [sys.executable, "-c", code, str(path)]
        run = subprocess.run(words, capture_output=True, text=True, check=True)  # noqa: S603
    return float(run.stdout) / (forecasts.nbytes + y.nbytes)


# Against structured matrix scaling (SMS)


def print_members(options: argparse.Namespace) -> None:
    """Fits and forecasts on sets of the arena, as multiples of the times of SMS.

    Run it without OMP_NUM_THREADS, as users do.
    """
    names = ["Temperature", "Matrix", "Spline", "Kernel", "Monotone", "IRP", "Auto"]
    ratios: dict[tuple[str, str], list[np.ndarray]] = {}
    for path in sorted(options.arena.glob("*.npz"))[:: options.step]:
        with np.load(path) as arrays:
            P, P_new = (arrays[name].astype(np.float64) for name in ("probas_cal", "probas_test"))
            y = arrays["labels_cal"].reshape(-1).astype(np.int64)
        P, P_new = (rows / rows.sum(axis=1, keepdims=True) for rows in (P, P_new))
        made = [sms(), *(getattr(isoroc, f"{name}Calibrator")() for name in names)]
        fits = least([partial(own.fit, P, y) for own in made], 3)
        forecasts = least_of_rounds([partial(own.predict_proba, P_new) for own in made])
        for job, times in (("fit", fits), ("predict", forecasts)):
            group = "K = 2" if P.shape[1] == 2 else "K >= 3"
            ratios.setdefault((job, group), []).append(times[1:] / times[0])
    for (job, group), found in sorted(ratios.items()):
        for name, column in zip(names, np.array(found).T, strict=True):
            figures = {"median": float(np.median(column)), "largest": float(column.max())}
            show(f"{job}, {name} / SMS, {group}", len(column), **figures)


def print_many(_: argparse.Namespace) -> None:
    """Fits and forecasts of `AutoCalibrator` and of SMS for many classes, in seconds."""
    cases = [(1000, 10), (1000, 20), (1500, 30), (1500, 40), (640, 80), (2500, 50)]
    for n, K in [*cases, (1000, 100), (3000, 150), (2000, 200), (3000, 500), (3000, 1000)]:
        P, y = data(n, K)
        new, _ = data(n, K, seed=1)
        made = [AutoCalibrator(random_state=0), sms()]
        fits = least([partial(made[0].fit, P, y, labels=range(K)), partial(made[1].fit, P, y)], 3)
        forecasts = least_of_rounds([partial(own.predict_proba, new) for own in made])
        for job, (ours, theirs) in (("fit", fits), ("forecasts", forecasts)):
            figures = {"Auto": ours, "SMS": theirs, "ratio": ours / theirs}
            show(f"many classes, {job}, K = {K}", n, **figures)


# Exports


EXPORTED = ["Auto", "Temperature", "Matrix", "Spline", "Monotone", "Isotonic", "IRP"]


def exported(K: int, n: int = 5000) -> list[tuple[str, Any, np.ndarray]]:
    P, y = data(n, K)
    made = [(name, getattr(isoroc, f"{name}Calibrator")()) for name in EXPORTED]
    return [(name, own.fit(P, y, labels=range(K)), P) for name, own in made]


def print_onnx(_: argparse.Namespace) -> None:
    """Graphs against `predict_proba`, one thread. Size and loading with a thousand classes."""
    import onnxruntime  # noqa: PLC0415

    from isoroc.export import to_onnx  # noqa: PLC0415

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    lines = []
    for K in (12, 1000):
        for name, fitted, P in exported(K):
            start = process_time()
            model = to_onnx(fitted)
            written = process_time() - start
            start = perf_counter()
            session = onnxruntime.InferenceSession(model.SerializeToString(), settings)
            loaded = perf_counter() - start
            cells = [name, str(K), str(len(model.graph.node)), f"{model.ByteSize() / 1e6:.2f}"]
            cells += [f"{written:.2f}", f"{loaded:.2f}"]
            for rows in (P[:1], P[:1000]):
                jobs = [partial(session.run, None, {"forecasts": rows})]
                jobs += [partial(fitted.predict_proba, rows)]
                cells += [f"{1e6 * t:,.0f}" for t in least(jobs, 9, time.process_time)]
            off = np.abs(session.run(None, {"forecasts": P[:99]})[0] - fitted.predict_proba(P[:99]))
            lines.append([*cells, f"{off.max():.0e}"])
    head = ["calibrator", "K", "nodes", "MB", "written, s", "loaded, s", "graph, 1 row, us"]
    head += ["predict_proba", "1,000 rows, us", "predict_proba", "largest difference"]
    print(markdown_table(head, lines))


def print_torch(_: argparse.Namespace) -> None:
    """Modules of torch against `predict_proba` for 64 rows, on the CPU."""
    import torch  # noqa: PLC0415

    from isoroc.export import to_torch  # noqa: PLC0415

    lines = []
    for K in (2, 3, 10):
        for name, fitted, P in exported(K):
            start = perf_counter()
            module = to_torch(fitted)
            traced = perf_counter() - start
            rows = torch.tensor(P[:64])
            with torch.no_grad():
                found = least([partial(module, rows), partial(fitted.predict_proba, P[:64])], 50)
            cells = [f"{1e3 * t:.2f}" for t in found]
            lines.append([name, str(K), f"{traced:.2f}", *cells])
    print(markdown_table(["calibrator", "K", "traced, s", "module, ms", "NumPy, ms"], lines))


def plain_query(columns: list[str]) -> str:
    """As many weighted sums of all forecasts as there are classes."""
    weights = np.random.default_rng(0).normal(size=(len(columns), len(columns))).round(3).tolist()
    sums = [
        " + ".join(f"{a!r}e0 * {name}" for a, name in zip(row, columns, strict=True))
        for row in weights
    ]
    return f"SELECT id, {', '.join(sums)} FROM forecasts"  # noqa: S608


def print_sql(options: argparse.Namespace) -> None:
    """Queries in DuckDB on one thread, against plain arithmetic. Planning is part of both."""
    import duckdb  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    from isoroc.export import to_sql  # noqa: PLC0415

    lines = []
    for K, n in ((3, options.sizes[0]), (12, options.sizes[0]), (100, 10_000), (1000, 1000)):
        chosen = (
            exported(K) if K <= 12 else [e for e in exported(K) if e[0] in ("Temperature", "IRP")]
        )
        for name, fitted, _ in chosen:
            columns = [f"p{k}" for k in range(K)]
            (P, _) = data(n, K, 1)
            start = process_time()
            query = to_sql(fitted, columns, dialect="duckdb", keep="id")
            written = process_time() - start
            with duckdb.connect() as connection:
                connection.execute("SET threads = 1")
                source = pa.table({"id": np.arange(n)} | dict(zip(columns, P.T, strict=True)))
                connection.register("source", source)
                connection.execute("CREATE TABLE forecasts AS FROM source")
                make = "CREATE OR REPLACE TEMP TABLE result AS "
                texts = [plain_query(columns), query] if K <= 100 else [query]
                jobs = [partial(connection.execute, make + text) for text in texts]
                times = least(jobs, 3, time.process_time)
                found = connection.execute("FROM result ORDER BY id").fetchnumpy()
            Q = np.column_stack(list(found.values())[1:])
            ratio = f"{times[-1] / times[0]:.1f}" if len(times) > 1 else "-"
            cells = [name, str(K), f"{n:,}", f"{written:.1f}", f"{len(query) / 1e3:,.0f}"]
            off = f"{np.abs(Q - fitted.predict_proba(P)).max():.0e}"
            lines.append([*cells, f"{times[-1]:.2f}", ratio, off])
    head = ["map", "K", "rows", "written, s", "kB", "query, s", "/ plain", "largest difference"]
    print(markdown_table(head, lines))


PARTS = {
    name.removeprefix("print_"): job for name, job in globals().items() if name.startswith("print_")
}
NEEDS = {"members": "probmetrics", "many": "probmetrics", "onnx": "onnxruntime", "torch": "torch"}
NEEDS |= {"sql": "duckdb"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}, or all")
    parser.add_argument("--budget", type=float, default=20.0, help="seconds in the tables")
    parser.add_argument("--write", type=Path, help="page whose tables are replaced")
    parser.add_argument("--quick", action="store_true", help="leave out the largest sizes")
    parser.add_argument("--arena", type=Path, help="folder of real forecasts, for members")
    parser.add_argument("--step", type=int, default=3, help="every Nth set of it")
    options = parser.parse_args()
    options.sizes = [10**5, 10**6] if options.quick else [10**5, 10**6, 10**7]
    options.rows = [10**3] if options.quick else [10**3, 10**5, 10**6]
    options.classes = [2, 3, 10] if options.quick else [2, 3, 10, 100]
    parts = PARTS if options.parts == ["all"] else options.parts or ["table"]
    packages = [name for name in ("numpy", "scipy", "probmetrics", "torch") if find_spec(name)]
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    print(f"Python {platform.python_version()} on {platform.machine()}, {versions}")
    for name in parts:
        missing = NEEDS.get(name)
        if (missing and not find_spec(missing)) or (name == "members" and options.arena is None):
            print(
                f"\n## {name}: left out, it needs {missing}" + " and --arena" * (name == "members")
            )
            continue
        print(f"\n## {name}\n")
        PARTS[name](options)


if __name__ == "__main__":
    main()
