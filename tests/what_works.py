"""What works with what: every feature on every road, in one list that tests run and a page shows.

A road takes forecasts. It learns or measures, given outcomes, or it serves a fitted calibrator.
Each feature is a scenario that says what must hold on a road. A road names the features that it
refuses, with words of the sentence that says so. Everything else must work.
``python tools/what_works.py`` writes the page.
"""

import contextlib
import inspect
import io
import json
import sqlite3
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from sklearn.linear_model import LogisticRegression

import isoroc
from exported import run_onnx
from isoroc import (
    CalibratedClassifier,
    CalibrationMonitor,
    Counts,
    CumulativeCalibrator,
    MultiLabelCalibrator,
    Report,
    SegmentCalibrator,
    TemperatureCalibrator,
    evaluate,
    metrics,
)
from isoroc.__main__ import main
from isoroc._backends import NUMPY
from isoroc._input.kinds import columns_of
from isoroc.export import to_onnx, to_sql
from zoo import KINDS, make, takes_classes

ORDER = ["low", "mid", "high"]
TWO = ["no", "yes"]


@dataclass(frozen=True, eq=False)
class Rows:
    """Forecasts, and outcomes as numbers in the order of the columns."""

    P: np.ndarray
    y: np.ndarray
    names: list[str]
    region: np.ndarray

    @property
    def texts(self):
        """The same outcomes as texts, not in alphabetical order."""
        return np.array(self.names)[self.y] if self.y.ndim == 1 else self.y

    @property
    def shares(self):
        return np.eye(len(self.names))[self.y] if self.y.ndim == 1 else 0.9 * self.y


@cache
def rows(shape, n=150):
    """Rows of three classes, of the scores of two, or of three labels that may come together."""
    rng = np.random.default_rng(0)
    region = np.array(["north", "south"])[rng.integers(2, size=n)]
    power = np.where(region == "north", 0.4, 2.0)
    if shape == "several":
        P = rng.random((n, 3)).round(3)
        return Rows(P, (rng.random((n, 3)) < P ** power[:, None]).astype(int), ORDER, region)
    if shape == 2:
        P = rng.random(n).round(3)
        return Rows(P, (rng.random(n) < P**power).astype(int), TWO[::-1], region)
    P = rng.dirichlet(np.ones(3), n).round(3)
    P[:, 2] = 1 - P[:, 0] - P[:, 1]
    truth = P ** power[:, None]
    truth /= truth.sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return Rows(P, y, ORDER, region)


class RefusedError(ValueError):
    """A command refused its input."""


# Scenarios of roads that learn or measure


def same(found, expected, atol):
    np.testing.assert_allclose(found, expected, rtol=atol, atol=atol)


def differ(found, other):
    if np.shape(found) == np.shape(other):
        assert np.abs(np.nan_to_num(found) - np.nan_to_num(other)).max() > 1e-5


@dataclass(frozen=True, eq=False)
class Road:
    """What takes forecasts, outcomes and options and returns numbers."""

    name: str
    call: Callable[..., Any]
    #: Words of the sentence that refuses a feature.
    refuses: dict[str, str] = field(default_factory=dict)
    shape: Any = 3
    #: Tolerance. Larger where folds or resamples are drawn again.
    atol: float = 1e-6
    #: Tolerance between a row of frequency k and k equal rows.
    atol_of_copies: float = 1e-6
    #: Features that are accepted and cannot change the result.
    without_effect: tuple[str, ...] = ()
    #: Option that allows several labels.
    several: dict[str, Any] = field(default_factory=dict)
    #: Whether columns are matched with classes by name, in whatever order.
    by_name: bool = False
    slow: bool = False

    def check(self, feature):
        """Check what must hold for a feature. The road may refuse it with an error."""
        LEARNING[feature](self, rows(self.shape))

    @cache  # noqa: B019
    def plain(self):
        """The result for all rows without any feature."""
        own = rows(self.shape)
        return self.call(own.P, own.y)

    def changed(self, feature, found):
        """Check that a feature changed the result, or could not."""
        if feature in self.without_effect:
            same(found, self.plain(), self.atol)
        else:
            differ(found, self.plain())


def with_weights(road, rows):
    """Rows of weight 0 are absent, and unequal weights change the result."""
    kept = np.arange(len(rows.P)) % 3 > 0
    found = road.call(rows.P, rows.y, sample_weight=kept.astype(float))
    same(found, road.call(rows.P[kept], rows.y[kept]), road.atol)
    unequal = 1.0 + np.arange(len(rows.P)) % 2 * 9
    road.changed("weights", road.call(rows.P, rows.y, sample_weight=unequal))


def with_frequencies(road, rows):
    """A row of frequency k is k equal rows."""
    times = 1 + np.arange(len(rows.P)) % 2
    options = {"sample_weight": times.astype(float), "weighting": "frequency"}
    repeated = road.call(rows.P.repeat(times, axis=0), rows.y.repeat(times, axis=0))
    same(road.call(rows.P, rows.y, **options), repeated, road.atol_of_copies)


def with_clusters(road, rows):
    """Clusters of one row change nothing but what is drawn at random. Larger ones do."""
    number = np.arange(len(rows.P))
    same(road.call(rows.P, rows.y, clusters=number), road.plain(), road.atol)
    road.changed("clusters", road.call(rows.P, rows.y, clusters=number // 10))


def with_segments(road, rows):
    """Segments matter, and not only that there are some."""
    found = road.call(rows.P, rows.y, segments={"region": rows.region})
    differ(found, road.call(rows.P, rows.y, segments={"region": rows.region[::-1]}))


def with_soft_labels(road, rows):
    """Shares of 0 and 1 are labels, and others count in part."""
    same(road.call(rows.P, rows.shares), road.plain(), road.atol)
    forecasts = rows.P if rows.P.ndim == 2 else np.column_stack([1 - rows.P, rows.P])
    road.changed("soft labels", road.call(rows.P, 0.8 * rows.shares + 0.2 * forecasts))


def with_several_labels(road, _):
    """A row may have several labels."""
    own = rows("several")
    found = np.asarray(road.call(own.P, own.y, **road.several), dtype=float)
    differ(found, np.asarray(road.call(own.P, 1 - own.y, **road.several), dtype=float))


def with_ordered_classes(road, rows):
    """The columns are the classes in the given order, not in alphabetical order."""
    found = road.call(rows.P, rows.texts, labels=rows.names)
    expected = road.plain()
    if road.by_name:
        expected = road.call(rows.P[:, ::-1], rows.texts, labels=rows.names[::-1])
    same(found, expected, road.atol)


def with_units(road, rows):
    """Percentages are probabilities times 100."""
    same(road.call(100 * rows.P, rows.y, unit="percent"), road.plain(), road.atol)


def with_missing_values(road, rows):
    """A forecast is missing."""
    P = rows.P.copy()
    P[3] = np.nan
    road.call(P, rows.y)


LEARNING = {
    "weights": with_weights,
    "frequencies": with_frequencies,
    "clusters": with_clusters,
    "segments": with_segments,
    "soft labels": with_soft_labels,
    "several labels": with_several_labels,
    "ordered classes": with_ordered_classes,
    "units": with_units,
    "missing values": with_missing_values,
}
FEATURES = tuple(LEARNING)


# Roads that learn or measure


def region_of(P):
    """The regions of rows of three classes."""
    own = rows(3)
    places = dict(zip(map(tuple, own.P.round(6).tolist()), own.region, strict=True))
    scale = 100 if np.nanmax(P) > 1.5 else 1
    return np.array([places.get(tuple(p), "north") for p in (P / scale).round(6).tolist()])


def fit(own, P, y, unit="auto", **options):
    """Forecasts of a fitted calibrator for some rows."""
    calibrator = own()
    if isinstance(calibrator, SegmentCalibrator):  # whatever else is tried, there are segments
        options = {"segments": {"region": region_of(P)}} | options
    calibrator.fit(P, y, unit=unit, **options)
    shape = 2 if P.ndim == 1 else 3 if calibrator.map_.kind.exclusive else "several"
    new = rows(shape).P[:40] * (100 if unit == "percent" else 1)
    further = [{"region": rows(shape).region[:40]}] if "segments" in options else []
    return calibrator.predict_proba(new, *further)


def fit_counts(P, y, weighting="importance", **options):
    counts = Counts.from_arrays(P, y, **options)
    own = TemperatureCalibrator().fit_counts(counts, weighting=weighting)
    return own.predict_proba(rows(3).P[:40])


def fit_classifier(P, y, segments=None, **options):
    own = CalibratedClassifier(LogisticRegression(), method="temperature", cv=3)
    X = P if segments is None else np.column_stack([P, segments["region"] == "north"])
    if segments is not None:
        own.set_params(segments=[3])
    own.fit(X, y, **options)
    new = rows(3).P[:40]
    if segments is not None:
        new = np.column_stack([new, rows(3).region[:40] == "north"])
    return own.predict_proba(new)


def figures(evaluation):
    """All numbers of an evaluation."""
    numbers = [x for each in evaluation.measures.values() for f in each.values() for x in f]
    return np.array([*numbers, *numbers_of(dict(evaluation.segments))], dtype=float)


def evaluate_rows(P, y, **options):
    return figures(evaluate(y, P, **options))


def evaluate_counts(P, y, **options):
    return figures(evaluate.from_counts(Counts.from_arrays(P, y, **options)))


def evaluate_batches(P, y, sample_weight=None, labels=(0, 1, 2), **options):
    batch = (y, P) if sample_weight is None else (y, P, None, sample_weight)
    return figures(evaluate.from_batches([batch], labels=labels, **options))


def numbers_of(found):
    """All numbers of a result or of a JSON document, in order."""
    if isinstance(found, bool | np.bool_ | str) or found is None:
        return []
    if isinstance(found, int | float | np.number):
        return [float(found)]
    if isinstance(found, np.ndarray):
        return numbers_of(found.tolist())
    if isinstance(found, dict):
        names = sorted(set(found) - {"versions", "class", "classes", "labels"})
        return [x for name in names for x in numbers_of(found[name])]
    if isinstance(found, list | tuple):
        return [x for part in found for x in numbers_of(part)]
    return numbers_of(vars(found))


def report(P, y, **options):
    return np.array(numbers_of(json.loads(Report(y, P, **options).to_json())))


def monitor(P, y, **options):
    own = rows(3)
    calibrator = TemperatureCalibrator().fit(own.P, own.y)
    return np.array(numbers_of(CalibrationMonitor(calibrator).update(y, P, **options)))


def measure(name, P, y, **options):
    """Numbers that a function of `isoroc.metrics` returns."""
    metric = getattr(metrics, name)
    if name == "segment_report":
        segments = options.pop("segments", {"all": np.zeros(len(P))})
        found: Any = dict(metric(y, P, segments, min_rows=5, **options))
    elif name == "bootstrap":
        found = metric(metrics.log_loss, y, P, n_resamples=19, **options)
    elif name == "estimate_rate":
        found = metric(y, P, rows(2).P, **{"labels": [0, 1]} | options)
    elif name == "expected":
        found = metric(P, "accuracy", **options)
    else:
        found = metric(y, P, **options)
    return np.array(numbers_of(found))


# Commands


def run(*words):
    """Standard output of the command, run in this process. A refusal is an error."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    err = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(word) for word in words])
        out.flush()
    if code not in (0, 1):  # 1: a check failed
        raise RefusedError(err.getvalue())
    return out.buffer.getvalue().decode()


def table_words(P, y, *, labels=None, multilabel=False, **options):
    """Write ``rows.csv``. Returns the words that name its columns."""
    y = np.asarray(y)
    names = labels or [*"abc"]
    if y.ndim == 2 and len(names) != y.shape[1]:
        names = [*"abc"][: y.shape[1]]
    P = P.reshape(len(P), -1)
    columns = {f"p_{name}": column for name, column in zip(names, P.T, strict=False)}
    words = ["--probs", ",".join(columns)]
    if y.ndim == 1:
        columns["y"] = y if labels else np.array(names)[y]
    else:
        columns |= {f"share_{name}": column for name, column in zip(names, y.T, strict=True)}
        words += ["--labels" if multilabel else "--label-shares", "share_*"]
    for option, value in options.items():
        if isinstance(value, str):
            words += [f"--{option}", value]
            continue
        columns[option] = value["region"] if isinstance(value, dict) else value
        words += ["--weight" if option == "sample_weight" else f"--{option}", option]
    pl.DataFrame(columns, nan_to_null=True).write_csv("rows.csv")
    return words


def in_folder(call):
    """The same in an empty folder."""

    def inside(*arguments, **options):
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            return call(*arguments, **options)

    return inside


@in_folder
def command_fit(P, y, **options):
    kind = "cumulative" if "labels" in options else "temperature"
    several = "multilabel" in options
    run("fit", "rows.csv", *table_words(P, y, **options), "-c", kind, "-o", "model.json")
    calibrator = isoroc.load_map("model.json")
    further = [{"segments": rows(3).region[:40]}] if "segments" in options else []
    new = rows("several" if several else 3).P[:40] * (100 if "unit" in options else 1)
    return calibrator.predict_proba(new, *further)


@in_folder
def command_json(command, P, y, **options):
    words = table_words(P, y, **options)
    if command == "monitor":
        several = "multilabel" in options
        own = rows("several" if several else 3)
        names = ORDER if "labels" in options else [*"abc"]
        frame = pd.DataFrame(own.P, columns=[f"p_{name}" for name in names])
        model: Any = TemperatureCalibrator()
        model = MultiLabelCalibrator(model) if several else model
        y_fit = own.y if several else np.array(names)[own.y]
        model.fit(frame, y_fit, labels=names).save("model.json")
        words = ["model.json", "rows.csv", *words]
    else:
        words = ["rows.csv", *words]
    return np.array(numbers_of(json.loads(run(command, *words, "--json"))))


def command_rate(P, y, labels=("a", "b"), **options):
    """The rows, and as many without labels."""
    if np.ndim(y) == 1:
        texts = y if np.asarray(y).dtype.kind == "U" else np.array(labels)[y]
        y = np.append(texts.astype(object), [None] * len(texts))
    else:
        y = np.vstack([y, y])
    for name, value in options.items():
        if isinstance(value, np.ndarray):
            options[name] = np.tile(value, 2)
        elif isinstance(value, dict):
            options[name] = {column: np.tile(entries, 2) for column, entries in value.items()}
    return command_json("rate", np.append(P, P, axis=0), y, labels=list(labels), **options)


@in_folder
def command_count(P, y, **options):
    run("count", "rows.csv", *table_words(P, y, **options), "-o", "counts.parquet")
    return Counts.from_parquet("counts.parquet").sample(per_fold=False).class_weights()


# Roads that serve


class Served(NamedTuple):
    """A fitted calibrator, and rows for it."""

    calibrator: Any
    P: np.ndarray
    segments: dict[str, Any]
    names: list[str]


def segmented():
    """Rows whose outcomes depend on a region and on an age."""
    own = rows(3, 600)
    rng = np.random.default_rng(1)
    age = rng.uniform(18, 80, 600)
    odds = np.where(own.region == "north", 3.0, 0.3) * np.where(age < 50, 0.4, 2.5)
    truth = own.P * np.column_stack([np.ones((600, 2)), odds])
    truth /= truth.sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1) > rng.random((600, 1))).argmax(axis=1)
    return {"region": own.region.astype(object), "age": age}, own.P, y


@cache
def served(feature):
    """A calibrator that was fitted with a feature."""
    own = rows(3)
    n = len(own.P)
    names = [f"p_{name}" for name in ORDER]
    times = 1.0 + np.arange(n) % 2
    of_rows: dict[str, dict[str, Any]] = {
        "weights": {"sample_weight": times},
        "frequencies": {"sample_weight": times, "weighting": "frequency"},
        "clusters": {"clusters": np.arange(n) // 10},
    }
    options = of_rows.get(feature, {})
    segments: dict[str, Any] = {}
    P = own.P
    y = own.y
    calibrator: Any = TemperatureCalibrator()
    if feature == "segments":
        segments, P, y = segmented()
        calibrator = SegmentCalibrator(TemperatureCalibrator())
    elif feature == "soft labels":
        y = 0.8 * own.shares + 0.2 * P
    elif feature == "several labels":
        P = rows("several").P
        y = rows("several").y
        calibrator = MultiLabelCalibrator(TemperatureCalibrator())
    elif feature == "ordered classes":
        y = own.texts
        options = {"labels": ORDER}
        calibrator = CumulativeCalibrator()
    elif feature == "units":
        P = 100 * P
        options = {"unit": "percent"}
    if segments:
        options["segments"] = segments
    calibrator.fit(P, y, **options)
    P = P[:30].copy()
    segments = {name: column[:30].copy() for name, column in segments.items()}
    if feature == "missing values":
        P[3] = np.nan
    if segments:
        assert calibrator.columns_.tolist() == ["region", "age"]
        segments["region"][:4] = ["never seen", None, "North", "north "]
        segments["age"][4:7] = [np.nan, np.inf, -np.inf]
    return Served(calibrator, P, segments, names)


@dataclass(frozen=True, eq=False)
class ServingRoad:
    """What takes a `Served` and returns calibrated forecasts, NaN for rows that are refused."""

    name: str
    call: Callable[..., Any]
    refuses: dict[str, str] = field(default_factory=dict)
    without_effect = ()
    slow: bool = False

    def check(self, feature, *engine):
        """Check that forecasts equal `predict_proba`."""
        own = served(feature)
        good = ~np.isnan(own.P).any(axis=1)
        expected = np.full((len(own.P), 3), np.nan)
        further = [{name: column[good] for name, column in own.segments.items()}]
        expected[good] = own.calibrator.predict_proba(own.P[good], *further * bool(own.segments))
        found = self.call(own, *engine)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def predict(own, of=None):
    further = [own.segments] if own.segments else []
    return (of or own.calibrator).predict_proba(own.P, *further)


def formula(own):
    """The formula of the map in NumPy, which `predict_proba` replaces by compiled loops."""
    if np.isnan(own.P).any():
        return predict(own)
    fitted = own.calibrator.map_
    places = []
    if own.segments:
        codes = own.calibrator.encode_segments(own.segments)
        places = [fitted.locate(NUMPY, j, codes[:, [j]]) for j in range(codes.shape[1])]
    return fitted.calibrate(NUMPY, columns_of(own.P), places)[0]


@in_folder
def loaded(load, own):
    own.calibrator.save("model.json")
    return predict(own, load("model.json"))


def onnx(own):
    segments = {}
    for name, column in own.segments.items():
        texts = column.dtype == object
        segments[name] = np.array([x or "" for x in column], object) if texts else column
    return run_onnx(to_onnx(own.calibrator), own.P, segments)


def frame_of(own):
    """A table of pandas, with a key."""
    columns = {"id": np.arange(len(own.P))} | dict(zip(own.names, own.P.T, strict=True))
    return pd.DataFrame(columns | own.segments)


def by_query(own, execute, dialect, table="forecasts"):
    """Forecasts of a query. `execute` takes it and the table."""
    query = to_sql(own.calibrator, own.names, dialect=dialect, table=(table,), keep="id")
    return sorted_forecasts(execute(query, pa.Table.from_pandas(frame_of(own))))


def sorted_forecasts(found):
    return np.array([row[1:] for row in sorted(found)], dtype=float)


def run_duckdb(query, table):
    with duckdb.connect() as connection:
        connection.register("forecasts", table)
        return connection.execute(query).fetchall()


def run_sqlite(query, table):
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE forecasts ({', '.join(table.column_names)})")
    marks = ", ".join("?" * table.num_columns)
    given = zip(*table.to_pydict().values(), strict=True)
    connection.executemany(f"INSERT INTO forecasts VALUES ({marks})", list(given))  # noqa: S608
    found = connection.execute(query).fetchall()
    connection.close()
    return found


def by_frame(own, convert, collect):
    """Forecasts of `predict_frame`. `collect` makes a table of pandas."""
    found = collect(own.calibrator.predict_frame(convert(frame_of(own)), own.names))
    return found.sort_values("id").iloc[:, -3:].to_numpy(dtype=float)


@in_folder
def command_apply(own):
    own.calibrator.save("model.json")
    pl.from_pandas(frame_of(own)).write_parquet("rows.parquet")
    words = ["--probs", ",".join(own.names), "--names", "x,y,z", "-o", "out.parquet"]
    run("apply", "model.json", "rows.parquet", *words)
    return pl.read_parquet("out.parquet").select("x", "y", "z").to_numpy()


@in_folder
def command_export(own):
    own.calibrator.save("model.json")
    words = ["--sql", "duckdb", "--probs", ",".join(own.names), "--keep", "id"]
    query = run("export", "model.json", *words)
    return sorted_forecasts(run_duckdb(query, pa.Table.from_pandas(frame_of(own))))


@in_folder
def command_inspect(own):
    own.calibrator.save("model.json")
    shown = json.loads(run("inspect", "model.json", "--json"))
    assert shown["checksum"] == own.calibrator.checksum
    return formula(own)


def read_duckdb(frame):
    """A relation, whose connection lives as long as it does."""
    return duckdb.connect().from_df(frame)


# The list


def without(argument):
    """What Python says about an argument that does not exist."""
    return f"unexpected keyword argument '{argument}'"


SEVERAL = "labels that do not exclude each other: use MultiLabelCalibrator"
NO_PROBABILITIES = "not to 1; each row must hold the probabilities of all classes"
NAN: dict[Any, str] = {3: "row 3 holds NaN; probabilities must be finite"}
NAN |= dict.fromkeys((2, "several"), "row 3 is NaN; scores must be finite")
EMPTY = "is empty; correct such rows, or leave them out with --where"
OUTCOMES = "expected the class that came true in each row"


def refusals_of_fit(shape=3):
    refuses = {"segments": without("segments"), "several labels": SEVERAL}
    return refuses | {"missing values": NAN[shape]}


def refusals_of_counts():
    return refusals_of_fit() | {"clusters": without("clusters")}


def refusals_of_metrics(shape, known):
    """Refusals of a metric whose arguments are known."""
    refuses = refusals_of_fit(shape) | {"frequencies": without("weighting")}
    refuses |= {"units": without("unit")}
    arguments = {"clusters": "clusters", "ordered classes": "labels", "weights": "sample_weight"}
    for feature, argument in arguments.items():
        if argument not in known:
            refuses[feature] = without(argument)
    if "sample_weight" not in known:
        refuses["frequencies"] = without("sample_weight")
    if "segments" in known:
        del refuses["segments"]
    return refuses


def fits():
    """The fit of every calibrator."""
    slow = {f"{name}Calibrator" for name in ("Auto", "Beta", "Ordinal", "Segment", "Sigmoid")}
    for name in KINDS:
        # IRPCalibrator has folds for more than four classes only.
        uses_folds = make(name)._uses_folds and name != "IRPCalibrator"
        uses_folds = uses_folds or name == "SegmentCalibrator"
        shape = 3 if takes_classes(name, 3) else 2
        refuses = refusals_of_fit(shape)
        if name == "SegmentCalibrator":
            del refuses["segments"]
        without_effect: tuple[str, ...] = () if uses_folds else ("clusters",)
        if name == "IdentityCalibrator":
            without_effect = "weights", "clusters", "soft labels"
        if name == "OnlineCalibrator":
            refuses["clusters"] = "decayed counts hold no clusters"
            without_effect = ()
        yield Road(
            f"`{name}`",
            partial(fit, partial(make, name)),
            refuses,
            shape=shape,
            atol=0.1 if uses_folds else 1e-6,
            without_effect=without_effect,
            slow=name in slow,
        )
    refuses = {"segments": without("segments"), "missing values": NAN["several"]}
    refuses["soft labels"] = "expected 0, 1 or NaN for each entry of P"
    several = partial(MultiLabelCalibrator, TemperatureCalibrator())
    call = partial(fit, several)
    # The labels of a row are a cluster for the weights of the maps, and so are its copies' labels.
    yield Road(
        "`MultiLabelCalibrator`",
        call,
        refuses,
        shape="several",
        atol=0.1,
        atol_of_copies=1e-3,
        slow=True,
    )
    refuses = {"frequencies": without("weighting"), "missing values": "Input X contains NaN"}
    labels = "fit the classifier first, then a calibrator to its forecasts"
    refuses |= dict.fromkeys(("soft labels", "several labels"), labels)
    refuses |= {"ordered classes": without("labels"), "units": without("unit")}
    yield Road("`CalibratedClassifier`", fit_classifier, refuses, atol=0.1, slow=True)
    yield Road("`fit_counts` of every calibrator", fit_counts, refusals_of_counts())


def evaluations():
    """Evaluations, the report and the monitor."""
    unweighted = {"frequencies": without("weighting")}
    refuses = unweighted | {"missing values": NAN[3]}
    several = {"multilabel": True}
    yield Road("`evaluate`", evaluate_rows, refuses, atol=0.1, several=several, slow=True)
    counts = refusals_of_counts() | unweighted
    yield Road("`evaluate.from_counts`", evaluate_counts, counts, slow=True)
    yield Road("`evaluate.from_batches`", evaluate_batches, counts, atol=0.1, slow=True)
    yield Road("`Report`", report, refuses, atol=0.5, several=several, slow=True)
    refuses = refusals_of_metrics(3, ()) | {"soft labels": OUTCOMES}
    refuses["several labels"] = NO_PROBABILITIES
    yield Road("`CalibrationMonitor.update`", monitor, refuses)


def measures():
    """Every function of `isoroc.metrics` that takes rows."""
    of_two_classes = {"estimate_rate", "calibration_curve", "calibration_summary", "segment_report"}
    of_two_classes |= {"roc_auc", "roc_convex_hull", "symmetric_roc_curve"}
    # Folds and resamples are drawn again, and intervals for clusters have degrees of freedom.
    vary = {"bootstrap", "calibration_curve", "calibration_summary", "calibration_test"}
    vary |= {"decompose", "estimate_rate", "expected"}
    for name in dir(metrics):
        metric = getattr(metrics, name)
        if inspect.isclass(metric) or not callable(metric) or name == "segment_report_from_counts":
            continue
        shape = 2 if name in of_two_classes else 3
        refuses = refusals_of_metrics(shape, inspect.signature(metric).parameters)
        without_effect: tuple[str, ...] = ()
        if name == "estimate_rate":
            refuses["soft labels"] = OUTCOMES
        if name == "expected":  # takes no outcomes
            refuses["several labels"] = NO_PROBABILITIES
            without_effect = ("soft labels",)
        yield Road(
            f"`metrics.{name}`",
            partial(measure, name),
            refuses,
            shape=shape,
            atol=0.3 if name in vary else 1e-6,
            without_effect=without_effect,
            slow=name == "calibration_test",
        )


def commands():
    """Every command that takes outcomes."""
    refuses = {"missing values": EMPTY}
    unknown = {feature: f"Unknown option: --{feature}" for feature in ("clusters", "segments")}
    ordered = {"ordered classes": "the order of the classes 'high', 'low', 'mid' is not known"}
    options: dict[str, Any] = {"several": {"multilabel": True}, "slow": True}
    only = ("clusters",)
    yield Road("`isoroc fit`", command_fit, refuses | ordered, without_effect=only, **options)
    refuses = refuses | {"frequencies": "Unknown option: --weighting"}
    options["by_name"] = True
    for name in ("evaluate", "report"):
        yield Road(f"`isoroc {name}`", partial(command_json, name), refuses, atol=0.5, **options)
    refuses = refuses | unknown
    one = {"several labels": "this command takes one outcome per row; use --label"}
    yield Road("`isoroc count`", command_count, refuses | one, **options)
    own = {"weights": "monitoring counts rows; leave the weights out"}
    own |= {"soft labels": "monitoring needs labels; use --label"}
    own["units"] = "not to 1; these look like percentages"
    yield Road("`isoroc monitor`", partial(command_json, "monitor"), refuses | own, **options)
    rated = "rate reads rows of equal weight and any score"
    own = dict.fromkeys(("weights", "units"), rated)
    came_true = "rate takes one outcome; use --label"
    own |= dict.fromkeys(("soft labels", "several labels"), came_true)
    yield Road("`isoroc rate`", command_rate, refuses | own, shape=2, atol=0.1, slow=True)


def serving():
    """What makes forecasts of a fitted calibrator."""
    refused = {"missing values": NAN[3]}
    yield ServingRoad("`predict_proba`", formula, refused)
    yield ServingRoad("`load`", partial(loaded, isoroc.load), refused)
    yield ServingRoad("`load_map`", partial(loaded, isoroc.load_map), refused)
    yield ServingRoad("ONNX", onnx)
    yield ServingRoad("SQL in DuckDB", partial(by_query, execute=run_duckdb, dialect="duckdb"))
    yield ServingRoad("SQL in SQLite", partial(by_query, execute=run_sqlite, dialect="sqlite"))
    frames: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
        "pandas": (pd.DataFrame, pd.DataFrame),
        "polars": (pl.from_pandas, lambda found: found.to_pandas()),
        "lazy polars": (lambda df: pl.from_pandas(df).lazy(), lambda df: df.collect().to_pandas()),
        "pyarrow": (pa.Table.from_pandas, lambda found: found.to_pandas()),
        "DuckDB": (read_duckdb, lambda found: found.df()),
    }
    for name, (convert, collect) in frames.items():
        call = partial(by_frame, convert=convert, collect=collect)
        yield ServingRoad(f"`predict_frame`, {name}", call)
    yield ServingRoad("`isoroc apply`", command_apply, {"missing values": EMPTY}, slow=True)
    yield ServingRoad("`isoroc export`", command_export, slow=True)
    yield ServingRoad("`isoroc inspect`", command_inspect, refused, slow=True)


def to_torch(own):
    import torch  # noqa: PLC0415  # is not installed everywhere

    further = []
    if own.segments:
        further = [torch.tensor(own.calibrator.encode_segments(own.segments))]
    return isoroc.export.to_torch(own.calibrator)(torch.tensor(own.P), *further).numpy()


def dask(own):
    import dask.dataframe as dd  # noqa: PLC0415  # is not installed everywhere

    convert = partial(dd.from_pandas, npartitions=3)
    return by_frame(own, convert, lambda found: found.compute())


def spark(own, session):
    def convert(frame):
        return session.createDataFrame(pa.Table.from_pandas(frame))

    return by_frame(own, convert, lambda found: found.toPandas())


#: Engines of ``make test-engines``. SQL engines take a dialect, a table and what runs a query.
ENGINES = {
    "clickhouse": ServingRoad("SQL in ClickHouse", by_query),
    "datafusion": ServingRoad("SQL in DataFusion", by_query),
    "mariadb": ServingRoad("SQL in MariaDB", by_query),
    "polars": ServingRoad("SQL in polars", by_query),
    "postgres": ServingRoad("SQL in PostgreSQL", by_query),
    "spark": ServingRoad("SQL in Spark", by_query),
    "dask frame": ServingRoad("`predict_frame`, Dask", dask),
    "spark frame": ServingRoad("`predict_frame`, Spark", spark),
    "torch": ServingRoad("torch", to_torch),
}
ROADS: dict[str, list[Any]] = {
    "Fitting": list(fits()),
    "Evaluating": list(evaluations()),
    "Metrics and tests": list(measures()),
    "Commands": list(commands()),
    "Forecasts of a fitted calibrator": list(serving()),
    "Forecasts on other engines": list(ENGINES.values()),
}


def page():
    """The page of the documentation."""
    sentences = list(
        dict.fromkeys(
            road.refuses[feature]
            for roads in ROADS.values()
            for road in roads
            for feature in FEATURES
            if feature in road.refuses
        )
    )
    lines = [INTRODUCTION]
    for title, roads in ROADS.items():
        lines += [f"## {title}", ""]
        lines += [f"| | {' | '.join(FEATURES)} |", f"|---|{'---|' * len(FEATURES)}"]
        for road in roads:
            cells = []
            for feature in FEATURES:
                if feature in road.refuses:
                    cells.append(f"[{sentences.index(road.refuses[feature]) + 1}]")
                else:
                    cells.append("same" if feature in road.without_effect else "yes")
            lines.append(f"| {road.name} | {' | '.join(cells)} |")
        lines.append("")
    lines += ["## What refusals say", "", "Words of the sentences behind the numbers:", ""]
    lines += [f"{i}. {sentence}" for i, sentence in enumerate(sentences, start=1)]
    return "\n".join(lines) + "\n"


INTRODUCTION = """# What works with what

The tests run every cell of these tables. The list behind them is `tests/what_works.py`, and
`python tools/what_works.py` writes this page from it.

- **yes**: it works. In fits and measures, rows of weight 0 are absent, frequencies are repeated
  rows, clusters of one row change nothing, shares of 0 and 1 are labels, percentages are
  probabilities, and the feature has an effect. For forecasts, a calibrator that was fitted with the
  feature returns what `predict_proba` returns, within 1e-12, also for missing and unknown segments.
  A missing forecast makes the row NaN or NULL.
- **same**: it is accepted and cannot change the result. Clusters change folds and intervals, but
  not the maximum of a likelihood, and `IRPCalibrator` has folds only for more than four classes.
- **[1]**: it is refused with a sentence. The number refers to the list at the end.

Ordered classes are texts whose order is given by `labels`. The commands sort classes, and match
columns with them by name, so ordered maps need classes that are numbers there.
"""
