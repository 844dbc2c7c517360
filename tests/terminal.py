"""Commands on a pseudo-terminal."""

import os
import re
import subprocess
from typing import NamedTuple

import pytest


class Shown(NamedTuple):
    """What a command wrote: to standard output, and to a terminal as its standard error."""

    code: int
    out: bytes
    screen: bytes

    @property
    def text(self):
        """The screen without control sequences."""
        return re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", self.screen).decode()


def run_on_terminal(command):
    """Run a command whose standard error is a terminal of 100 columns."""
    pty = pytest.importorskip("pty", reason="Windows has no pseudo-terminals")
    terminal, other = pty.openpty()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=other,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(other)
    screen = b""
    try:
        while part := os.read(terminal, 1 << 16):
            screen += part
    except OSError:  # how Linux reports that the other end was closed
        pass
    os.close(terminal)
    out, _ = process.communicate()
    return Shown(process.returncode, out, screen)
