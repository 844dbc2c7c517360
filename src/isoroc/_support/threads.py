"""One thread for BLAS, so that many small matrix products do not wake a pool of threads each.

A fit makes thousands of products that take microseconds. Waking other threads takes longer, and far
longer when the cores are busy. Larger products are a small part of each fit.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController

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


@cache
def _blas() -> ThreadpoolController:
    """The BLAS libraries of this process. The search takes milliseconds, so it runs once."""
    return ThreadpoolController().select(user_api="blas")
