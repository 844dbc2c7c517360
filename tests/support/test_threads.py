"""BLAS runs on one thread in fits and predictions. Calibrators work in many threads, or one."""

import pkgutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Thread, current_thread

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import ThreadpoolController, threadpool_limits

from isoroc import AutoCalibrator, IdentityCalibrator, _core, evaluate
from isoroc._maps import IdentityMap, Map
from isoroc._support.threads import count_threads, in_threads, one_blas_thread
from zoo import CASES, SHAPES, draw_labels, fitted, forecasts, make, probabilities

BLAS = ThreadpoolController().select(user_api="blas").lib_controllers


def counts():
    return {library.get_num_threads() for library in BLAS}


@pytest.fixture(autouse=True)
def _two_threads():
    with threadpool_limits(2, user_api="blas"):
        yield


class RecordingMap(IdentityMap):
    seen: list[set[int]]
    compiled = Map.compiled  # no loop, so the formula runs

    def formula(self, ops, X, places=()):
        self.seen.append(counts())
        return super().formula(ops, X, places)


class Recording(IdentityCalibrator):
    def _fit(self, sample):
        self.during_fit_ = counts()
        return RecordingMap(kind=super()._fit(sample).kind, seen=[])


def test_nested_contexts():
    with one_blas_thread():
        with one_blas_thread():
            assert counts() == {1}
        assert counts() == {1}
    assert counts() == {2}


@pytest.mark.parametrize(("set_to", "n"), [("3", 3), ("4,2", 4), (" 2 ", 2), ("0", 1)])
def test_the_number_of_threads_is_set_as_for_blas(monkeypatch, set_to, n):
    monkeypatch.setenv("OMP_NUM_THREADS", set_to)
    assert count_threads() == n


@pytest.mark.parametrize("set_to", ["", "many"])
def test_threads_are_as_many_as_cores_of_the_process(monkeypatch, set_to):
    monkeypatch.setenv("OMP_NUM_THREADS", set_to)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 5, 7}, raising=False)
    assert count_threads() == 3
    monkeypatch.delattr("os.sched_getaffinity")
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    assert count_threads() == 6


def test_results_of_threads_are_in_order_and_keep_the_context(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")

    def divide(x):
        return x, counts(), np.geterr()["divide"]

    with np.errstate(divide="raise"):
        assert in_threads(divide, range(50)) == [(x, {1}, "raise") for x in range(50)]
    assert in_threads(divide, []) == []
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda x: 1 / x, [1, 0])
    assert counts() == {2}


def test_threads_start_no_threads(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    together = Barrier(2)

    def names(_):
        together.wait()  # both outer threads run at the same time
        return {current_thread().name, *in_threads(lambda _: current_thread().name, range(5))}

    first, second = in_threads(names, range(2))
    assert len(first) == len(second) == 1
    assert first.isdisjoint(second)


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_forecasts_do_not_depend_on_the_number_of_threads(monkeypatch, name, shape):
    """Which may change where a part of the rows begins."""
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    calibrator = fitted(name, shape)
    new = forecasts(shape, 4000, seed=1)
    expected = calibrator.predict_proba(new)
    monkeypatch.setattr(type(calibrator.map_), "least_part", 500)
    assert np.array_equal(calibrator.predict_proba(new), expected)


def test_evaluations_do_not_depend_on_the_number_of_threads(monkeypatch):
    P = probabilities(3, forecasts(3, 400, seed=1))
    y = draw_labels(P, seed=2)
    found = []
    for n_threads in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", n_threads)
        found.append(evaluate(y, P, after=P[:, [0, 2, 1]]).to_dict())
    assert found[0] == found[1]


def test_an_error_restores_the_threads():
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        _ = 1 / 0
    assert counts() == {2}


def test_contexts_that_overlap_between_threads():
    together = Barrier(2)

    def inner():
        with one_blas_thread():
            together.wait()
            together.wait()

    thread = Thread(target=inner)
    with one_blas_thread():
        thread.start()
        together.wait()
        assert counts() == {1}
    assert counts() == {2}
    together.wait()
    thread.join()
    assert counts() == {2}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_fits_and_predictions(n_jobs):
    p = np.linspace(0.1, 0.9, 40)
    y = np.arange(40) % 3 == 0
    cal = AutoCalibrator(members=[Recording(), clone(Recording())], n_jobs=n_jobs, cv=2)
    cal.fit(p, y).predict_proba(np.tile(p, 100))
    for member in cal.members_:
        assert member.during_fit_ == {1}
        assert isinstance(member.map_, RecordingMap)
        assert member.map_.seen
        assert all(seen == {1} for seen in member.map_.seen)
    assert counts() == {2}


@pytest.mark.parametrize(("name", "shape"), [case for case in CASES if case[1] in ("p", 3)])
def test_threads_fit_and_share_calibrators(name, shape):
    """Without the GIL, compiled loops run, and maps compute what they cache, at the same time."""
    unit = SHAPES[shape]["unit"]
    P = forecasts(shape, 150, seed=1)
    new = forecasts(shape, 300)
    y = draw_labels(probabilities(shape, P), seed=2)
    expected = fitted(name, shape).predict_proba(new)  # fitted to these rows
    shared = make(name).fit(P, y, unit=unit)  # has computed nothing yet
    together = Barrier(3)

    def use(_):
        together.wait()
        own = make(name).fit(P, y, unit=unit)
        together.wait()
        return shared.predict_proba(new), own.predict_proba(new)

    with ThreadPoolExecutor(3) as pool:
        for pair in pool.map(use, range(3)):
            assert np.array_equal(pair, [expected, expected])


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="a Python that always has the GIL"
)
def test_compiled_modules_leave_the_gil_off():
    """An extension that does not declare that it needs no GIL would enable it when imported."""
    imports = "; ".join(
        f"import {x.name}" for x in pkgutil.iter_modules(_core.__path__, f"{_core.__name__}.")
    )
    code = f"import sys; {imports}; print(sys._is_gil_enabled())"
    command = [sys.executable, "-W", "error", "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.mark.parametrize("shape", ["p", 3])
def test_no_thread_is_needed(monkeypatch, shape):
    """As in a browser, where none can be started."""

    def start(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Thread, "start", start)
    P = forecasts(shape, 150, seed=1)
    y = draw_labels(probabilities(shape, P), seed=2)
    for name in (name for name, x in CASES if x == shape):
        after = make(name).fit(P, y, unit=SHAPES[shape]["unit"]).predict_proba(P)
        assert np.allclose(after.sum(axis=1), 1)
    assert np.isfinite(evaluate(y, P, after=after)["log_loss", "after"])
