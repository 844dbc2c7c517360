"""Programs of benchmarks/ run, and peers written from their papers do what these say."""

import argparse
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# Importing a peer may warn of what torch deprecates.
pytestmark = [pytest.mark.project, pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")]

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture
def script(monkeypatch):
    """The names in a script of benchmarks/, by its name."""
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    return lambda name: runpy.run_path(str(FOLDER / f"{name}.py"))


def overconfident(K, n=400, seed=0):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(K, 0.4), n)
    truth = 0.5 * P + 0.5 / K
    return P, (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)


def log_loss(y, Q):
    return -np.log(np.maximum(Q[np.arange(len(y)), y], 1e-9)).mean()


@pytest.mark.parametrize("K", [2, 3, 6])
@pytest.mark.parametrize("name", ["NA-FIR", "TvA isotonic", "TvA temperature"])
def test_peers_from_papers_lower_the_loss_of_an_overconfident_model(script, name, K):
    (make,) = [make for found, make, _ in script("peers")["FROM_PAPERS"] if found == name]
    P, y = overconfident(K)
    P_test, y_test = overconfident(K, seed=1)
    Q = make().fit(P, y).predict_proba(P_test)
    assert Q.min() >= 0
    np.testing.assert_allclose(Q.sum(axis=1), 1)
    assert log_loss(y_test, Q) < log_loss(y_test, P_test)


def test_one_function_for_all_classes_keeps_the_order_of_the_classes_in_each_row(script):
    P, y = overconfident(4)
    Q = script("peers")["FlatIsotonic"]().fit(P, y).predict_proba(P)
    i, k, j = np.nonzero(P[:, :, None] > P[:, None, :])
    assert (Q[i, k] >= Q[i, j]).all()


def test_the_largest_forecast_is_calibrated_as_a_whole(script):
    P, y = overconfident(4)
    Q = script("peers")["TopVersusAll"]("isotonic").fit(P, y).predict_proba(P)
    top = P.argmax(axis=1)
    assert Q[np.arange(len(y)), top].mean() == pytest.approx((top == y).mean())


@pytest.mark.parametrize("shape", ["scores", "column", "columns"])
def test_calibrators_for_calarena_take_its_arrays(script, shape):
    K = 5 if shape == "columns" else 2
    P, y = overconfident(K)
    y[y == 4] = 0  # absent from the calibration rows
    passed = {"scores": P[:, 1], "column": P[:, 1:], "columns": P}[shape].astype(np.float32)
    for make in script("peers")["CUSTOM_CALIBRATORS"].values():
        calibrator = make()
        calibrator.fit(passed, y)
        Q = calibrator.predict_proba(passed)
        assert Q.shape == P.shape
        np.testing.assert_allclose(Q.sum(axis=1), 1)


@pytest.fixture
def arena(tmp_path):
    """A folder of sets of two and three classes, with sources in both halves."""
    for dataset, K in (("a", 2), ("b", 2), ("c", 3), ("d1", 3), ("d2", 3)):
        arrays: dict[str, Any] = {}
        for seed, part in enumerate(("cal", "test")):
            P, y = overconfident(K, 150, seed)
            arrays |= {f"probas_{part}": P.astype(np.float32), f"labels_{part}": y}
        np.savez(tmp_path / f"{dataset}-lr.npz", **arrays)
    return tmp_path


def run(monkeypatch, name, *words):
    """Run a program as from the command line."""
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *map(str, words)])
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")


def test_the_halves_of_the_arena_share_no_source(script, arena):
    found = list(script("arena")["read_sets"](arena))
    halves: dict[str, set[str]] = {}
    for data in found:
        halves.setdefault(data.source, set()).add(data.half)
    assert sorted(halves) == ["a", "b", "c", "d"]
    assert all(len(half) == 1 for half in halves.values())
    assert set.union(*halves.values()) == {"A", "B"}


@pytest.mark.slow
def test_several_labels_and_ordered_classes_are_compared_with_peers(script):
    compare = script("quality")["compare_labels"]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 4))
    odds = 2 * X[:, :3] - [0, 1, 4]
    several = dict[str, list[Any]]()
    for group, losses in compare(X, (rng.logistic(size=odds.shape) < odds).astype(int), 0):
        several.setdefault(group, []).append(losses)
    assert {group: len(own) for group, own in several.items()} == {
        "rarer outcomes: 50 or more": 8,
        "rarer outcomes: fewer than 50": 4,
    }
    assert all(losses.shape == (3, 500) for own in several.values() for losses in own)
    isotonic, _, ours = np.mean([own.mean(axis=1) for own in several.popitem()[1]], axis=0)
    assert ours < isotonic
    ordered = dict(compare(X, np.digitize(odds[:, 0], [-2, 0, 2]), 0))
    assert [losses.shape for losses in ordered.values()] == [(2, 500)] * 2


def test_quality_chooses_on_one_half_and_reports_on_the_other(monkeypatch, arena, tmp_path, capsys):
    words = ["--rows", "60", "--repetitions", "1", "--members", "identity,spline", "--jobs", "1"]
    words += ["--methods", "isoroc Auto,sklearn temperature", "--out", tmp_path / "out"]
    run(monkeypatch, "quality", arena, "halves", *words)
    first = capsys.readouterr().out
    assert "Chosen on half A: identity" in first
    assert "Reported on half B" in first
    assert "ties: below 1 %" in first
    run(monkeypatch, "quality", arena, "halves", *words)  # all splits are in the file
    assert capsys.readouterr().out == first


def test_the_tables_of_speed_replace_those_of_a_page(script, monkeypatch, tmp_path, capsys):
    print_table = script("speed")["print_table"]
    makers, _ = print_table.__globals__["compared_methods"]()
    assert {"auto", "venn-abers", "sklearn sigmoid"} <= makers.keys()
    own = {name: makers[name] for name in ("isotonic", "temperature", "sklearn isotonic")}
    took = {"isotonic": (0.5, 0.1), "temperature": (2.0, 0.0), "sklearn isotonic": (1.5, 0.05)}
    of = {make: np.array(took[name]) for name, make in own.items()}
    names = print_table.__globals__
    monkeypatch.setitem(names, "compared_methods", lambda: (own, ["SMS"]))
    measured = names["Measured"]
    monkeypatch.setitem(
        names, "measure", lambda make, P, *_, **__: measured(*of[make] * len(P) / 100)
    )
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- speed table: begin -->\nold\n<!-- speed table: end -->\nb\n")
    options = {"rows": [100, 200, 400], "classes": [2], "budget": 3.5, "write": page}
    print_table(argparse.Namespace(**options))
    text = page.read_text()
    assert text.startswith("a\n<!-- speed table: begin -->\n\n")
    assert text.endswith("\n\n<!-- speed table: end -->\nb\n")
    assert "old" not in text
    fits, forecasts = text.split("| forecasts, seconds |")
    assert "| isotonic | 0.5 (3) | 1 (3) | 2 |" in fits  # the peer would take 6 s
    assert "| temperature | 2 | - | - |" in fits
    assert "| isotonic | 0.1 (0.5) | 0.2 (0.5) | 0.4 |" in forecasts
    assert "Not installed: SMS." in capsys.readouterr().out


def test_fits_and_forecasts_are_timed_or_fail(script):
    names = script("speed")
    P, y = overconfident(3, 60)
    makers, _ = names["compared_methods"]()
    measure = names["measure"]
    for name in ("isotonic", "kernel"):
        assert min(measure(makers[name], P, y, P)) > 0
        assert measure(makers[name], P * np.nan, y, P) == "fails"


def test_fits_of_kernel_scaling_are_shown_with_forecasts(script):
    names = script("speed")
    times = {("kernel", 9, 2): names["Measured"](0.5, 1.5), ("Kernel", 9, 2): "long"}
    assert names["cell"](times, "kernel", 9, 2, "fit") == "2"
    times["Kernel", 9, 2] = names["Measured"](0.0, 6.0)
    assert names["cell"](times, "kernel", 9, 2, "fit") == "2 (3)"
    assert names["cell"](times, "kernel", 9, 2, "forecasts") == "1.5 (4)"


def test_times_of_more_rows_are_expected_to_grow_as_before(script):
    expected = script("speed")["expected_seconds"]
    assert expected("auto", 4000, {1000: 0.5}) == pytest.approx(2.0)
    assert expected("Kernel", 4000, {1000: 0.5}) == pytest.approx(8.0)
    assert expected("auto", 4000, {1000: 0.5, 2000: 2.0}) == pytest.approx(8.0)
    assert expected("auto", 4000, {1000: 0.5, 2000: 0.4}) == pytest.approx(0.4)


def test_the_harness_repeats_a_study_in_the_same_way(monkeypatch, capsys):
    tables = []
    for jobs in (1, 2):
        run(monkeypatch, "simulations", "priors", "--repetitions", "3", "--jobs", jobs)
        tables.append([line for line in capsys.readouterr().out.splitlines() if line[:1] == "|"])
    assert tables[0] == tables[1]
    assert len(tables[0]) == 8
