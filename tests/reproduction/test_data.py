import gzip
from typing import Any
from urllib.error import URLError

import numpy as np
import pytest
from reproduction.data import CLASSIFIERS, Forecasts, Rows, load

from conftest import DATA, SHARED
from reproduction import data

pytestmark = pytest.mark.project


def generated(n, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(1, n_classes + 1), n)
    return np.eye(n_classes)[y - 1] + rng.normal(size=(len(y), n_classes)), y


def write_csv(path, X, y, header, opener=open):
    with opener(path, "wt") as file:
        file.write(header + "\n")
        for i, (row, label) in enumerate(zip(X, y, strict=True)):
            file.write(",".join([str(i), *map(repr, row.tolist()), str(label)]) + "\n")


@pytest.mark.parametrize(("name", "opener"), [("rows.csv", open), ("rows.csv.gz", gzip.open)])
def test_a_csv_is_read_without_its_row_numbers(tmp_path, name, opener):
    X, y = generated(5, 3)
    path = tmp_path / name
    write_csv(path, X, y, ',a,b,"c",Class', opener)
    rows = load(path)
    assert isinstance(rows, Rows)
    np.testing.assert_array_equal(rows.X, X)
    np.testing.assert_array_equal(rows.y, y)
    assert rows.title == "rows.csv"


def test_invalid_csv_files(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b,label\n1,2,3\n")
    with pytest.raises(ValueError, match=r"rows.csv has no column Class among a, b, label"):
        load(path)
    path.write_text("a,Class\n1,oak\n")
    with pytest.raises(ValueError, match="oak"):
        load(path)


@pytest.mark.parametrize("K", [2, 3])
def test_the_split_is_that_of_the_paper(K):
    path = SHARED / "data" / "covtypesmall.csv.gz"
    if not path.exists():
        pytest.skip(f"{path} does not exist")
    rows = load(path)
    ready = load(DATA / f"cover{K}.npz")
    assert isinstance(rows, Rows)
    assert isinstance(ready, Forecasts)
    again = rows.forecasts(K)
    np.testing.assert_array_equal(again.y_cal, ready.y_cal)
    np.testing.assert_array_equal(again.y_test, ready.y_test)
    # The solver stops before it converges, so the result depends on rounding errors.
    np.testing.assert_allclose(again.P_cal, ready.P_cal, atol=0.01)
    np.testing.assert_allclose(again.P_test, ready.P_test, atol=0.01)


def test_rows_are_the_first_of_each_class(monkeypatch):
    monkeypatch.setattr(data, "ROWS_PER_CLASS", 2)
    rows = Rows(np.arange(7.0)[:, None], np.array([5, 3, 5, 3, 3, 5, 9]), "an example")
    X, y = rows.of_classes(2)
    assert X.ravel().tolist() == [1, 3, 0, 2]
    assert y.tolist() == [0, 0, 1, 1]
    with pytest.raises(ValueError, match="an example has 3 classes, 4 are needed"):
        rows.of_classes(4)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_forecasts_are_of_rows_that_the_classifier_has_not_seen(monkeypatch, classifier):
    monkeypatch.setattr(data, "SIZES", (60, 30, 20))
    X, y = generated(50, 3)
    X = np.column_stack([X, np.arange(len(y))])  # identifies the rows
    forecasts = Rows(X, y, "generated").forecasts(3, seed=7, classifier=classifier)
    assert forecasts.P_cal.shape == (30, 3)
    assert forecasts.P_test.shape == (20, 3)
    np.testing.assert_allclose(forecasts.P_cal.sum(axis=1), 1)
    assert forecasts.title == f"generated, {classifier}"
    assert forecasts.n_classes == 3
    order = np.random.RandomState(7).permutation(150)
    np.testing.assert_array_equal(forecasts.y_cal, y[order[60:90]] - 1)
    np.testing.assert_array_equal(forecasts.y_test, y[order[90:110]] - 1)


def test_few_rows_are_split_in_the_proportions_of_the_paper():
    X, y = generated(60, 2)
    forecasts = Rows(X, y, "generated").forecasts(2)
    assert (len(forecasts.y_cal), len(forecasts.y_test)) == (10, 20)


def test_a_class_without_training_rows_is_an_error():
    X, y = generated(60, 2)
    y[:-1] = 1
    seed = next(s for s in range(99) if 119 in np.random.RandomState(s).permutation(120)[90:])
    with pytest.raises(ValueError, match="generated has too few rows: one of 2 classes does not"):
        Rows(X, y, "generated").forecasts(2, seed)


def save_forecasts(path, **changed):
    P = np.array([[0.2, 0.8], [0.7, 0.3], [0.5, 0.5]])
    arrays = {"probas_cal": P, "labels_cal": [1, 0, 1], "probas_test": P, "labels_test": [1, 0, 0]}
    kept: dict[str, Any] = {k: v for k, v in (arrays | changed).items() if v is not None}
    np.savez(path, **kept)


def test_ready_forecasts(tmp_path):
    path = tmp_path / "some.npz"
    save_forecasts(path)
    forecasts = load(str(path))
    assert isinstance(forecasts, Forecasts)
    assert forecasts.title == "some"
    assert forecasts.y_test.tolist() == [1, 0, 0]
    assert forecasts.P_cal.shape == (3, 2)


def test_forecasts_without_an_array(tmp_path):
    path = tmp_path / "some.npz"
    save_forecasts(path, labels_test=None)
    with pytest.raises(ValueError, match=r"some\.npz has no array labels_test"):
        load(path)


def test_covertype_from_scikit_learn(monkeypatch, tmp_path):
    X, y = generated(4, 7)
    asked = []

    def fetch(**options):
        asked.append(options)
        return X, y

    monkeypatch.setattr(data, "fetch_covtype", fetch)
    for source, home in ((None, {}), (tmp_path, {"data_home": tmp_path})):
        rows = load(source)
        assert isinstance(rows, Rows)
        assert rows.title == "Covertype"
        assert not rows.note
        np.testing.assert_array_equal(rows.of_classes(4)[0], X[:16])
        assert asked[-1].items() >= home.items()
    assert asked[-1]["download_if_missing"] is False


def test_without_covertype_the_digits_are_used(monkeypatch):
    def fetch(**_):
        raise URLError("no network")

    monkeypatch.setattr(data, "fetch_covtype", fetch)
    rows = load()
    assert isinstance(rows, Rows)
    assert "not Covertype" in rows.title
    assert "no network" in rows.note
    assert "\n" not in rows.note
    assert rows.of_classes(3)[1].tolist() == (rows.y * 3 // 10).tolist()
