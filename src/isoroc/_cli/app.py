"""The commands and what happens around each of them: options, errors, exit codes."""

from __future__ import annotations

import sys
import traceback
import warnings
from typing import Any

from cyclopts import App, CycloptsError

import isoroc
from isoroc._cli.errors import CommandError, first_line
from isoroc._cli.io.streams import forget_output, mark_standard
from isoroc._cli.texts import ABOUT, COMMANDS, EPILOGUE

OK, CHECK_FAILED, BAD_INPUT, INTERNAL, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 3, 130, 141


def build() -> App:
    """The command with its subcommands, none of which is imported before it is asked for."""
    app = App(
        name="isoroc",
        help=ABOUT,
        help_format="markdown",
        help_epilogue=EPILOGUE,
        version=isoroc.__version__,
        print_error=False,
        exit_on_error=False,
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    for k, (name, text) in enumerate(COMMANDS.items()):
        app.command(f"isoroc._cli.commands.{name}:{name}", help=text, sort_key=k)
    app.register_install_completion_command(help="Install shell completion.")
    return app


def run(tokens: list[str]) -> int:
    """Run a command line and return its exit code; errors become one line."""
    debug = "--debug" in tokens
    words = mark_standard([word for word in tokens if word != "--debug"])
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            code = build()(words)
            sys.stdout.flush()
        except KeyboardInterrupt:
            return _fail(INTERRUPTED, "interrupted", "nothing was written", debug=debug)
        except BrokenPipeError:
            forget_output()  # or Python complains once more when it flushes on its way out
            return BROKEN_PIPE
        except (CycloptsError, CommandError, ValueError, TypeError, OSError, ImportError) as error:
            return _fail(BAD_INPUT, "error", _message(error), debug=debug)
        except Exception as error:  # noqa: BLE001
            what = f"{type(error).__name__}: {first_line(error)}; see more with --debug"
            return _fail(INTERNAL, "internal error", what, debug=debug)
    return code if isinstance(code, int) else OK


def _message(error: BaseException) -> str:
    if isinstance(error, ImportError) and isinstance(error.__cause__, ImportError):
        return _message(error.__cause__)  # a missing extra, behind a command that needs it
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return first_line(error)


def _fail(code: int, kind: str, message: str, *, debug: bool) -> int:
    from isoroc._cli.terminal import complain  # noqa: PLC0415

    if debug:
        traceback.print_exc()
    complain(kind, message)
    return code


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    from isoroc._cli.terminal import note  # noqa: PLC0415

    note(f"isoroc: warning: {message}")
