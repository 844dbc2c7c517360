"""The command as a process: its signals and streams."""

import os
import signal
import sys
import threading
import time
from contextvars import ContextVar

#: Whether progress notes are hidden.
QUIET = ContextVar("quiet", default=False)
#: Set when a signal that ends the command has arrived.
_arrived = threading.Event()


def prepare() -> None:
    """Prepare this process: remove temporary files at its end, and encode any character.

    BLAS, which is not loaded yet, gets one thread, unless the user has set a number. Products are
    small here, and threads that wait for the next one use as much processor time as the work.
    A closed stream is replaced by a file that cannot be read or written, so that using it is an
    error and no other file takes its number.
    """
    numbers = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    if not any(name in os.environ for name in numbers):
        os.environ |= dict.fromkeys(numbers[1:], "1")
    for name, mode in {"stdin": "w", "stdout": "r", "stderr": "w"}.items():
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    if threading.current_thread() is threading.main_thread() and os.name == "posix":
        _clean_up_on_signals()


def wait_if_ending() -> None:
    """If a signal has arrived, wait until its files are removed and the process ends."""
    if _arrived.is_set():
        time.sleep(60)


def discard_output() -> None:
    """Discard whatever is still written to standard output, because its reader closed it."""
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _clean_up_on_signals() -> None:
    """Remove temporary files when a signal arrives, then exit with 128 + its number.

    Python runs handlers in the main thread, which may be in a library for minutes. The number of a
    signal is written to a pipe at once, and another thread reads it.
    """
    names = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGXCPU")
    known = {number for number in signal.Signals if number.name in names}
    # Signals that are ignored, such as SIGHUP under nohup, must stay ignored.
    ending = {number for number in known if signal.getsignal(number) != signal.SIG_IGN}
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in ending:
        signal.signal(number, lambda *_: None)
    threading.Thread(target=_wait, args=(reading, ending), daemon=True).start()


def _wait(pipe: int, ending: set[signal.Signals]) -> None:
    while numbers := os.read(pipe, 1):
        if numbers[0] in ending:
            _arrived.set()
            from isoroc._support.files import remove_unfinished  # noqa: PLC0415

            remove_unfinished()
            erase = "\r\x1b[2K\x1b[?25h" if os.isatty(2) else ""  # a progress bar hid the cursor
            os.write(2, f"{erase}isoroc: ended by {signal.Signals(numbers[0]).name}\n".encode())
            os._exit(128 + numbers[0])
