"""The script of the nightly job as a process group that can be killed, cheap to start.

Its commands are forked from a process that has imported scikit-learn already, as a start of Python
takes most of the time of a night and touches no file. polars is imported after the fork, because it
starts threads.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

import isoroc
import isoroc.decisions
import isoroc.metrics
from isoroc._cli.app import run

for _package in (isoroc, isoroc.decisions, isoroc.metrics):
    for _name in _package.__all__:
        getattr(_package, _name)

#: A command of the script: it asks for being run, and waits for its exit code.
ASK = """\
#!/bin/sh
printf '%s\\0' "${0##*/}" "$@" > bin/requests
until read -r code < bin/answers; do :; done  # while the answer before is being closed
exit "$code"
"""


def prepare(folder):
    """Write the commands of the script to a folder ``bin``."""
    (folder / "bin").mkdir()
    for name in ("isoroc", "cp", "mv"):
        (folder / "bin" / name).write_text(ASK)
        (folder / "bin" / name).chmod(0o755)
    for name in ("requests", "answers"):
        os.mkfifo(folder / "bin" / name)


def start(day, last=None):
    """Start the script, which is killed before step number `last`, as a process.

    Steps are appended to ``bin/steps`` when they begin, and what they print to ``bin/log``.
    """
    for name in ("steps", "log"):
        Path("bin", name).write_text("")
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__, "pytest"])
    process = context.Process(target=_run, args=(day, last))
    process.start()
    return process


def kill(process):
    """Kill a night with all of its processes at once."""
    while process.is_alive():
        with suppress(ProcessLookupError):  # it has no group of its own yet
            os.killpg(process.pid, signal.SIGKILL)
            process.join()


def steps():
    """Steps of the last night, by the name of the command."""
    return Path("bin/steps").read_text().split()


def _run(day, last):
    os.setsid()
    log = os.open("bin/log", os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(log, stream)
    words = ["sh", "nightly.sh", f"{day}.csv", f"{day + 1}.csv", "calibrated.csv"]
    path = f"{Path('bin').resolve()}:{os.environ['PATH']}"
    script = subprocess.Popen(words, env=os.environ | {"PATH": path})
    # Opened for reading and writing, a FIFO does not wait for the other end.
    requests = os.open("bin/requests", os.O_RDWR | os.O_NONBLOCK)
    while script.poll() is None:
        try:
            command, *words = os.read(requests, 4096).decode().split("\0")[:-1]
        except BlockingIOError:
            time.sleep(0.001)
            continue
        if len(steps()) == last:
            os.killpg(0, signal.SIGKILL)
        with Path("bin/steps").open("a") as noted:
            noted.write(f"{words[0] if command == 'isoroc' else command}\n")
        code = _fork(words) if command == "isoroc" else subprocess.call([f"/bin/{command}", *words])
        Path("bin/answers").write_text(f"{code}\n")
    sys.exit(script.returncode)


def _fork(words):
    """Exit code of the command, run in a new process."""
    if process := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    code = 3
    try:
        code = run(words)
        sys.stdout.flush()
    finally:
        os._exit(code)
