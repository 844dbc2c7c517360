"""BLAS runs on one thread during fits and predictions, and as before afterwards."""

from dataclasses import dataclass
from threading import Barrier, Thread

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import ThreadpoolController, threadpool_limits

from isoroc import AutoCalibrator, IdentityCalibrator
from isoroc._maps import IdentityMap
from isoroc._support.threads import one_blas_thread

BLAS = ThreadpoolController().select(user_api="blas").lib_controllers


def counts():
    return {library.get_num_threads() for library in BLAS}


@pytest.fixture(autouse=True)
def _two_threads():
    with threadpool_limits(2, user_api="blas"):
        yield


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordingMap(IdentityMap):
    seen: list[set[int]]

    def compiled(self, forecasts):
        self.seen.append(counts())
        return super().compiled(forecasts)


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
    p, y = np.linspace(0.1, 0.9, 40), np.arange(40) % 3 == 0
    cal = AutoCalibrator(members=[Recording(), clone(Recording())], n_jobs=n_jobs, cv=2)
    cal.fit(p, y).predict_proba(np.tile(p, 100))
    for member in cal.members_:
        assert member.during_fit_ == {1}
        assert isinstance(member.map_, RecordingMap)
        assert member.map_.seen
        assert all(seen == {1} for seen in member.map_.seen)
    assert counts() == {2}
