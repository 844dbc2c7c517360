"""Threads: one for BLAS, and several for work that does not depend on each other.

A fit makes thousands of products that take microseconds. Waking other threads of BLAS takes longer,
and far longer when the cores are busy. Larger products are a small part of each fit.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
from os import cpu_count
from threading import Lock
from typing import TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")
R = TypeVar("R")
_limit = Lock()


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


def in_threads(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """What a function returns for each item, in as many threads as there are cores.

    It should spend its time in compiled code that releases the interpreter lock. Calls see the
    context of the caller, such as `numpy.errstate`. BLAS has one thread.
    """
    waiting = list(items)
    with one_blas_thread(), ThreadPoolExecutor(cpu_count()) as pool:
        try:
            calls = [pool.submit(copy_context().run, function, item) for item in waiting]
        except RuntimeError:  # no thread can be started, as in a browser
            return [function(item) for item in waiting]
        return [call.result() for call in calls]


@cache
def _blas() -> ThreadpoolController:
    """The BLAS libraries of this process. The search takes milliseconds, so it runs once."""
    return ThreadpoolController().select(user_api="blas")
