"""Threads: one for BLAS, and several for work that does not depend on each other.

A fit makes thousands of products that take microseconds. Waking other threads of BLAS takes longer,
and far longer when the cores are busy. Larger products are a small part of each fit.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

    from threadpoolctl import ThreadpoolController

T = TypeVar("T")
R = TypeVar("R")
_limit = Lock()
#: Whether `in_threads` has called the running code, which starts no further threads then.
_is_inside: ContextVar[bool] = ContextVar("_is_inside", default=False)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Context in which BLAS runs on one thread. It may be nested.

    The number of BLAS threads belongs to the process. If contexts of several threads overlap, the
    first one sets and restores the limit, and the others do nothing.
    """
    if not _limit.acquire(blocking=False):
        yield
        return
    try:
        with _blas().limit(limits=1):
            yield
    finally:
        _limit.release()


def count_threads() -> int:
    """How many threads work may take: ``OMP_NUM_THREADS``, or the cores open to this process.

    Spark, Dask and joblib set this variable in workers that share the cores.
    """
    first, _, _ = os.environ.get("OMP_NUM_THREADS", "").partition(",")
    if first.strip().isdigit():
        return max(1, int(first))
    of_process = getattr(os, "sched_getaffinity", None)  # of Linux
    return len(of_process(0)) if of_process else os.cpu_count() or 1


def in_threads(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """What a function returns for each item, in as many threads as `count_threads` says.

    It should spend its time in compiled code that releases the interpreter lock. Calls see the
    context of the caller, such as `numpy.errstate`. BLAS has one thread. A nested call runs in the
    thread that makes it.
    """
    waiting = list(items)
    n_threads = 1 if _is_inside.get() else min(count_threads(), len(waiting))
    with one_blas_thread():
        if n_threads > 1:
            return _share_out(function, waiting, n_threads)
        return [function(item) for item in waiting]


def _share_out(function: Callable[[T], R], items: list[T], n_threads: int) -> list[R]:
    """What a function returns for each item, in this thread and others.

    The start of a thread takes .1 ms and more, so the calling one takes items as well.
    """
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  # slow to import

    left = deque(enumerate(items))
    results: dict[int, R] = {}

    def work() -> None:
        while True:
            try:
                i, item = left.popleft()
            except IndexError:
                return
            results[i] = function(item)

    context = copy_context()
    context.run(_is_inside.set, True)  # noqa: FBT003
    pool = ThreadPoolExecutor(n_threads - 1)
    others: list[Future[None]] = []
    try:
        with suppress(RuntimeError):  # no thread can be started, as in a browser
            others.extend(pool.submit(context.copy().run, work) for _ in range(n_threads - 1))
        context.run(work)
        for other in others:
            other.result()
    finally:
        left.clear()  # after an error
        pool.shutdown()
    return [results[i] for i in range(len(items))]


@cache
def _blas() -> "ThreadpoolController":
    """The BLAS libraries of this process. The search takes milliseconds, so it runs once."""
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415  # slow to import

    return ThreadpoolController().select(user_api="blas")
