"""Data of the experiments: Covertype, a CSV, ready forecasts, or a substitute."""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_covtype, load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from isoroc._core.types import Floats, Ints

#: The paper takes the first rows of each class: this many, or all if there are fewer.
ROWS_PER_CLASS = 4000
#: Of these it takes, in random order, this many for training, calibration and test.
SIZES = (4500, 500, 1000)
#: Seed of the paper's split.
SEED = 1
#: The paper's classifier comes first. As in the paper, features are not scaled and the solver stops
#: after 100 iterations without having converged.
CLASSIFIERS: dict[str, Callable[[int], Any]] = {
    "logistic regression": lambda seed: LogisticRegression(random_state=seed),
    "naive Bayes": lambda _: GaussianNB(),
    "random forest": lambda seed: RandomForestClassifier(random_state=seed),
    "boosting": lambda seed: HistGradientBoostingClassifier(max_iter=50, random_state=seed),
}


class Forecasts(NamedTuple):
    """Forecasts of a classifier and the columns of the outcomes, for calibration and test."""

    P_cal: Floats
    y_cal: Ints
    P_test: Floats
    y_test: Ints
    title: str

    @property
    def n_classes(self) -> int:
        """K."""
        return int(self.P_cal.shape[1])


class Rows(NamedTuple):
    """Features and labels of all classes."""

    X: Floats
    y: NDArray[Any]
    title: str
    #: Whether K classes are made by joining neighbouring ones. Otherwise they are the first K.
    joined: bool = False
    #: What readers of the results have to know about the data.
    note: str = ""

    def of_classes(self, K: int) -> tuple[Floats, Ints]:
        """Features of K classes, and the column of each label.

        Examples
        --------
        >>> import numpy as np
        >>> rows = Rows(np.eye(4), np.array([3, 1, 2, 1]), "an example")
        >>> rows.of_classes(2)[1]
        array([0, 0, 1])
        >>> rows._replace(joined=True).of_classes(2)[1]
        array([1, 0, 0, 0])
        """
        classes, codes = np.unique(self.y, return_inverse=True)
        if len(classes) < K:
            raise ValueError(f"{self.title} has {len(classes)} classes, {K} are needed.")
        if self.joined:
            return self.X, np.asarray(codes * K // len(classes))
        kept = [np.flatnonzero(codes == k)[:ROWS_PER_CLASS] for k in range(K)]
        rows = np.concatenate(kept)
        return self.X[rows], codes[rows]

    def forecasts(self, K: int, seed: int = SEED, classifier: str = "") -> Forecasts:
        """Forecasts of a classifier for calibration and test rows. It is trained on other rows.

        Parameters
        ----------
        K : int
            Number of classes.
        seed : int
            Seed of the random split and of the classifier.
        classifier : str
            A name of `CLASSIFIERS`. By default the paper's, logistic regression.
        """
        X, y = self.of_classes(K)
        train, cal, test = _parts(len(y), seed)
        if len(np.unique(y[train])) < K:
            raise ValueError(
                f"{self.title} has too few rows: one of {K} classes does not occur among the "
                f"{len(train)} training rows."
            )
        name = classifier or next(iter(CLASSIFIERS))
        model = CLASSIFIERS[name](seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X[train], y[train])
        P_cal = model.predict_proba(X[cal])
        P_test = model.predict_proba(X[test])
        return Forecasts(P_cal, y[cal], P_test, y[test], f"{self.title}, {name}")


def _parts(n: int, seed: int) -> list[Ints]:
    """Training, calibration and test rows: `SIZES`, or in the same proportions if n is smaller."""
    sizes = np.array(SIZES)
    if n < sizes.sum():
        sizes = sizes * n // sizes.sum()
    # The paper's split comes from the legacy generator with seed 1.
    order = np.random.RandomState(seed).permutation(n)
    return np.split(order[: sizes.sum()], np.cumsum(sizes)[:-1])


def load(data: str | Path | None = None) -> Rows | Forecasts:
    """Data of the experiments.

    Parameters
    ----------
    data : str or Path, default=None
        A Covertype CSV with a column ``Class``, possibly gzipped, or ready forecasts (``.npz`` with
        the arrays `probas_cal`, `labels_cal`, `probas_test` and `labels_test`), or a data home of
        scikit-learn that contains Covertype. By default Covertype is downloaded. If that fails, the
        digits of scikit-learn are used instead, and title and note say so.
    """
    if data is None:
        return _download_or_substitute()
    path = Path(data)
    if path.is_dir():
        X, y = fetch_covtype(data_home=path, download_if_missing=False, return_X_y=True)
        return Rows(X, y, "Covertype")
    return read_forecasts(path) if path.suffix == ".npz" else read_csv(path)


def _download_or_substitute() -> Rows:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the note reports the failure
            X, y = fetch_covtype(return_X_y=True, n_retries=1, delay=0.1)
    except OSError as error:
        digits = load_digits()
        note = (
            f"Covertype cannot be downloaded ({str(error).strip('<>')}); these results are for the "
            "digits of scikit-learn, with neighbouring digits joined into classes."
        )
        return Rows(digits.data, digits.target, "digits (not Covertype)", joined=True, note=note)
    return Rows(X, y, "Covertype")


def read_csv(path: Path) -> Rows:
    """Rows of a CSV file: `Class` is the label, all other columns that have a name are features.

    A column without a name holds row numbers, which reveal the label in files sorted by class.
    """
    packed = path.suffix == ".gz"
    with gzip.open(path, "rt", encoding="utf-8") if packed else path.open(encoding="utf-8") as file:
        names = [name.strip('"') for name in file.readline().rstrip("\r\n").split(",")]
        if "Class" not in names:
            raise ValueError(f"{path} has no column Class among {', '.join(names[:5])}, ...")
        label = names.index("Class")
        used = [i for i, name in enumerate(names) if name and i != label]
        values = np.loadtxt(file, delimiter=",", ndmin=2, usecols=[*used, label])
    return Rows(values[:, :-1], values[:, -1], path.name.removesuffix(".gz"))


def read_forecasts(path: Path) -> Forecasts:
    """Ready forecasts from an ``.npz`` file."""
    names = ("probas_cal", "labels_cal", "probas_test", "labels_test")
    with np.load(path) as file:
        if missing := set(names) - set(file):
            raise ValueError(f"{path} has no array {min(missing)}.")
        P_cal, y_cal, P_test, y_test = (file[name] for name in names)
    return Forecasts(P_cal, y_cal, P_test, y_test, path.stem)
