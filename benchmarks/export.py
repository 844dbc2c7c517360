"""ONNX graphs: speed, time to load, and what the floats of converted forests cost.

python benchmarks/export.py [--only speed load forests]

Prints tables. "forests" needs skl2onnx.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import onnx
import onnxruntime
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss

import isoroc
from isoroc._support.table import markdown_table
from isoroc.export import to_onnx

#: Calibrators whose graphs are loaded; those that take any number of classes.
LOADED = [
    "IdentityCalibrator",
    "TemperatureCalibrator",
    "MatrixCalibrator",
    "SplineCalibrator",
    "MonotoneCalibrator",
    "IsotonicCalibrator",
    "VennAbersCalibrator",
    "IRPCalibrator",
    "BaggedIRPCalibrator",
    "AutoCalibrator",
]


def draw(n: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Overconfident forecasts that confuse two classes where a third is likely, and labels."""
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.full(n_classes, 0.3), size=n).clip(1e-9)
    truth /= truth.sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    y[-n_classes:] = range(n_classes)
    P = truth**1.7
    P *= 1 + 0.3 * np.sin(7 * truth + np.arange(n_classes))
    P[:, :2] = np.where(truth[:, [2]] > 0.1, P[:, 1::-1], P[:, :2])
    return P / P.sum(axis=1, keepdims=True), y


def session_of(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def seconds(*jobs: Callable[[], object], repeat: int) -> list[float]:
    """Least processor time of each job; jobs alternate."""
    best = [np.inf] * len(jobs)
    for job in jobs:
        job()
    for _ in range(9):
        for i, job in enumerate(jobs):
            start = time.process_time()
            for _ in range(repeat):
                job()
            best[i] = min(best[i], (time.process_time() - start) / repeat)
    return best


def print_speed() -> None:
    """Time per batch of graphs, and of predict_proba in the same run."""
    P, y = draw(5000, 12)
    lines = []
    for name in ("AutoCalibrator", "TemperatureCalibrator", "IsotonicCalibrator", "IRPCalibrator"):
        kind = getattr(isoroc, name)
        fitted = kind(random_state=0) if "random_state" in kind().get_params() else kind()
        fitted.fit(P, y)
        model = to_onnx(fitted)
        session = session_of(model)
        for n, repeat in ((1, 200), (1000, 10)):
            rows = P[:n]
            found, expected = seconds(
                partial(session.run, None, {"forecasts": rows}),
                partial(fitted.predict_proba, rows),
                repeat=repeat,
            )
            times = [f"{1e6 * t:,.0f}" for t in (found, expected)]
            size = str(len(model.graph.node))
            lines.append((name, size, f"{n:,}", *times, f"{found / expected:.2f}"))
        if hasattr(fitted, "members_"):
            print("members:", ", ".join(type(m).__name__ for m in fitted.members_), end="\n\n")
    head = ["K = 12", "nodes", "rows", "graph, us", "predict_proba, us", "ratio"]
    print(markdown_table(head, lines))


def print_load(n_classes: int = 1000) -> None:
    """Size of graphs of many classes, and the time that sessions take to create."""
    P, y = draw(5000, n_classes)
    lines = []
    for name in LOADED:
        fitted = getattr(isoroc, name)().fit(P, y)
        start = time.process_time()
        model = to_onnx(fitted)
        written = time.process_time() - start
        loads = []
        for _ in range(3):
            start = time.perf_counter()
            session = session_of(model)
            loads.append(time.perf_counter() - start)
        [Q] = session.run(None, {"forecasts": P[:100]})
        off = float(np.abs(Q - fitted.predict_proba(P[:100])).max())
        size = f"{model.ByteSize() / 1e6:.2f}"
        nodes = str(len(model.graph.node))
        lines.append((name, nodes, size, f"{written:.2f}", f"{min(loads):.2f}", f"{off:.0e}"))
        print(*lines[-1], flush=True)
    head = [
        f"K = {n_classes}",
        "nodes",
        "MB",
        "written in, CPU s",
        "loaded in, s",
        "largest difference",
    ]
    print(markdown_table(head, lines))


def print_forests() -> None:
    """What calibrators make of the probabilities of converted forests."""
    from skl2onnx import to_onnx as convert  # noqa: PLC0415

    lines = []
    for n_classes in (2, 3):
        X, y = make_classification(
            240_000, n_features=20, n_informative=8, n_classes=n_classes, flip_y=0.1, random_state=0
        )
        X = X.astype(np.float32)
        fit, calibrate, test = slice(20_000), slice(20_000, 40_000), slice(40_000, None)
        for leaf in (1, 5):
            forest = RandomForestClassifier(100, min_samples_leaf=leaf, random_state=0, n_jobs=2)
            forest.fit(X[fit], y[fit])
            options = {"zipmap": False}
            converted = session_of(convert(forest, X[:1], options=options, target_opset=17))
            [single] = converted.run(["probabilities"], {"X": X[test]})
            exact = forest.predict_proba(X[test])
            for kind in (isoroc.IRPCalibrator, isoroc.AutoCalibrator):
                fitted = kind(random_state=0).fit(forest.predict_proba(X[calibrate]), y[calibrate])
                Q, found = fitted.predict_proba(exact), fitted.predict_proba(single)
                moved = "-"
                if hasattr(fitted, "apply"):
                    moved = f"{(fitted.apply(exact) != fitted.apply(single)).sum():,}"
                off = np.abs(Q - found)
                change = log_loss(y[test], found) - log_loss(y[test], Q)
                lines.append(
                    (
                        str(n_classes),
                        str(leaf),
                        kind.__name__,
                        f"{np.abs(exact - single).max():.0e}",
                        moved,
                        f"{(off.max(axis=1) > 1e-6).sum():,}",
                        f"{off.max():.1e}",
                        f"{change:+.0e}",
                        f"{(Q.argmax(axis=1) != found.argmax(axis=1)).sum():,}",
                    )
                )
    head = [
        "K",
        "rows per leaf",
        "calibrator",
        "forecasts off by",
        "rows in another bin",
        "rows off by > 1e-6",
        "largest difference",
        "change of log loss",
        "other labels",
    ]
    print(markdown_table(head, lines))


PARTS = {"speed": print_speed, "load": print_load, "forests": print_forests}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    warnings.simplefilter("ignore")
    for part in parser.parse_args().only:
        print(f"\n## {part}\n")
        PARTS[part]()


if __name__ == "__main__":
    main()
