"""The arena: sets of real forecasts, their parts, and the scores of a calibrator on test rows."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from isoroc.metrics import calibration_error

#: Forecasts are clipped at this value for the log loss, which would otherwise be infinite at 0.
CLIP = 1e-6
GROUPS: dict[str, Callable[[int], bool]] = {"K = 2": lambda K: K == 2, "K >= 3": lambda K: K > 2}


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

    def part(self, n_rows: int) -> Set | None:
        """The set with random calibration rows, stratified; None where there are no more rows."""
        y = self.labels_cal
        if n_rows >= len(y):
            return None
        rows = _stratified(y, n_rows, self._generator(n_rows))
        return self._replace(probas_cal=self.probas_cal[rows], labels_cal=y[rows])

    def split(self, n_rows: int, repetition: int) -> Set | None:
        """A random split of all rows; 0 stands for as many calibration rows as there are.

        None where the set has too few rows. All rows that are not drawn are test rows.
        """
        P = np.concatenate([self.probas_cal, self.probas_test])
        y = np.concatenate([self.labels_cal, self.labels_test])
        if n_rows >= len(self.labels_cal):
            return None
        n_rows = n_rows or len(self.labels_cal)
        rows = _stratified(y, n_rows, self._generator(n_rows, repetition))
        test = np.ones(len(y), dtype=bool)
        test[rows] = False
        return Set(self.dataset, self.model, P[rows], y[rows], P[test], y[test])

    def thinned(self, share: float) -> Iterator[Set]:
        """The set of two classes with the rarer one thinned to a share of the rows.

        First with the forecasts of a model that knows this share, then with those of one that was
        trained on undersampled rows and does not. Nothing if fewer than 40 rows would be left.
        """
        P = np.concatenate([self.probas_cal, self.probas_test])
        y = np.concatenate([self.labels_cal, self.labels_test])
        rarer = int(y.mean() < 0.5)
        rows = self._generator(rarer).permutation(len(y))
        own, others = rows[y[rows] == rarer], rows[y[rows] != rarer]
        n_own = round(share / (1 - share) * len(others))
        if n_own < 40 or n_own >= len(own):
            return
        kept = self._generator(n_own).permutation(np.concatenate([own[:n_own], others]))
        known = P[kept] * np.where(np.arange(2) == rarer, n_own / len(own), 1.0)
        n_cal = len(kept) * len(self.labels_cal) // len(y)
        for kind, scores in (("rare", known), ("undersampled", P[kept])):
            Q = scores / scores.sum(axis=1, keepdims=True)
            parts = Q[:n_cal], y[kept[:n_cal]], Q[n_cal:], y[kept[n_cal:]]
            yield Set(self.dataset, f"{self.model} {kind}", *parts)

    def _generator(self, *seed: int) -> np.random.Generator:
        return np.random.default_rng([zlib.crc32(self.name.encode()), *seed])


def _stratified(y: np.ndarray, n_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Random rows in which classes are as frequent as in all; each has one row at least."""
    shuffled = rng.permutation(len(y))
    by_class = shuffled[np.argsort(y[shuffled], kind="stable")]
    _, first = np.unique(y[by_class], return_index=True)
    chosen = np.zeros(len(y), dtype=bool)
    chosen[np.linspace(0, len(y) - 1, n_rows).round().astype(int)] = True
    chosen[first] = True
    return np.sort(by_class[chosen])


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
        forecasts.append(np.ascontiguousarray(P / P.sum(axis=1, keepdims=True)))
        labels.append(np.asarray(arrays[f"labels_{part}"]).reshape(-1).astype(np.int64))
    return Set(dataset, model, forecasts[0], labels[0], forecasts[1], labels[1])


def losses_of(y: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Log loss and Brier score of each row, shape (2, n), after dividing the row by its sum."""
    Q = _normalised(Q)
    own = Q[np.arange(len(y)), y]
    brier = (Q**2).sum(axis=1) - 2 * own + 1
    return np.stack([-np.log(own.clip(CLIP, 1.0)), brier])


def scores_of(data: Set, Q: np.ndarray) -> dict[str, float]:
    """Scores of calibrated forecasts of the test rows."""
    y = data.labels_test
    log_loss, brier = losses_of(y, Q).mean(axis=1)
    Q = _normalised(Q)
    labels = np.arange(data.n_classes)
    decided = Q.argmax(axis=1)
    return {
        "log_loss": float(log_loss),
        "brier": float(brier),
        "ece_top": calibration_error(y, Q, labels=labels, kind="top", bins=15),
        "ece_classwise": calibration_error(y, Q, labels=labels, kind="classwise", bins=15),
        "accuracy": float(np.mean(decided == y)),
        "auc": one_vs_rest_auc(y, Q),
        "changed": float(np.mean(decided != data.probas_test.argmax(axis=1))),
    }


def one_vs_rest_auc(y: np.ndarray, Q: np.ndarray) -> float:
    """Mean over the classes that occur of the AUC of each against the rest."""
    areas = []
    for k in range(Q.shape[1]):
        own = y == k
        n, rest = own.sum(), (~own).sum()
        if n and rest:
            areas.append((rankdata(Q[:, k])[own].sum() - n * (n + 1) / 2) / (n * rest))
    return float(np.mean(areas))


def _normalised(Q: np.ndarray) -> np.ndarray:
    Q = np.maximum(np.asarray(Q, dtype=np.float64), 0)
    total = Q.sum(axis=1, keepdims=True)
    return np.where(total > 0, Q / np.where(total > 0, total, 1), 1 / Q.shape[1])
