"""The command and its subcommands: options, errors, exit codes."""

import sys
import traceback
import warnings
from io import UnsupportedOperation
from typing import Any

from cyclopts import App, CycloptsError, Parameter

import isoroc
from isoroc._cli.errors import (
    OPTIONS,
    CommandError,
    ExitCode,
    did_you_mean,
    first_line,
    in_options,
    option_of,
)
from isoroc._cli.options import STANDARD
from isoroc._cli.process import QUIET, discard_output, wait_if_ending
from isoroc._cli.texts import ABOUT, COMMANDS, EPILOGUE


def build() -> App:
    """Command with its subcommands. A subcommand is imported when it is called."""
    app = App(
        name="isoroc",
        help=ABOUT,
        help_format="markdown",
        help_epilogue=EPILOGUE,
        version=isoroc.__version__,
        print_error=False,
        exit_on_error=False,
        result_action="return_value",
        default_parameter=Parameter(negative=()),  # --json, but no --no-json
        suppress_keyboard_interrupt=False,
    )
    modules = {"merge": "count", "calibrators": "inspect"}
    for k, (name, text) in enumerate(COMMANDS.items()):
        module = f"isoroc._cli.commands.{modules.get(name, name)}"
        app.command(f"{module}:{name}", help=text, sort_key=k)
    app.register_install_completion_command(help="Install shell completion.")
    return app


def run(tokens: list[str]) -> int:
    """Run a command line and return its exit code. An error is one line on standard error."""
    words = [STANDARD if word == "-" else word for word in tokens]
    words = [word for word in words if word not in ("--debug", "--quiet")]
    before = QUIET.set(QUIET.get() or "--quiet" in tokens)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            if words and not words[0].startswith("-") and words[0] not in COMMANDS:
                hint = did_you_mean(words[0], COMMANDS)
                raise CommandError(f"{words[0]}: not a command; {hint}")  # noqa: TRY301
            code = build()(words)
            sys.stdout.flush()
    except KeyboardInterrupt:  # raised by polars, which handles SIGINT itself while it works
        raise
    except BrokenPipeError:
        discard_output()  # otherwise Python reports the error again when it exits
        return ExitCode.BROKEN_PIPE
    except SystemExit as error:
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        return ExitCode.BROKEN_PIPE  # rich exits with code 1 and has closed the output
    except BaseException as error:  # noqa: BLE001
        # A panic in polars is not an Exception, and must not end with exit code 1.
        return _fail(error, tokens)
    finally:
        QUIET.reset(before)
    return code if isinstance(code, int) else ExitCode.OK


def _fail(error: BaseException, tokens: list[str]) -> int:
    from isoroc._cli.terminal import print_error  # noqa: PLC0415

    wait_if_ending()
    if "--debug" in tokens:
        traceback.print_exc()
    if (message := _message(error, tokens)) is not None:
        print_error("error", message)
        return ExitCode.BAD_INPUT
    what = f"{type(error).__name__}: {first_line(error)}"
    print_error("internal error", f"{what}; use --debug for details")
    return ExitCode.INTERNAL


def _message(error: BaseException, tokens: list[str]) -> str | None:  # noqa: PLR0911
    """What to tell the user about an error, or None if it is a bug in isoroc."""
    match error:
        case MemoryError():
            return "not enough memory; read fewer rows with --where, or count them."
        case RecursionError():
            return "values are nested too deeply; correct the file."
        case UnsupportedOperation():
            return "standard output is closed."
        case CommandError():
            return str(error)
        case ImportError(__cause__=ImportError() as cause):
            return _message(
                cause, tokens
            )  # names the missing package, not the command that needs it
        case OSError(filename=str() as name):
            return f"{name}: {error.strerror}"
        case ValueError():
            return _with_options(error, tokens)
        case CycloptsError() | TypeError() | OSError() | ImportError():
            return first_line(error)
    return None


def _with_options(error: ValueError, tokens: list[str]) -> str:
    """Message of an error of the library, with options of the command in place of arguments."""
    # A command that raises such errors has imported this already, but `--help` has not.
    from isoroc._input import InputError  # noqa: PLC0415

    if not isinstance(error, InputError):
        return first_line(error)
    name = error.argument
    problem = in_options(error.problem)
    fix = in_options(error.fix)
    if name == "path":  # the problem names the file
        return f"{problem}; {fix}."
    given = {token.partition("=")[0] for token in tokens}
    if name in OPTIONS or option_of(name) in given:
        name = option_of(name)
    return str(InputError(name, error.row, problem, fix))


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    from isoroc._cli.terminal import print_warning  # noqa: PLC0415

    argument, colon, text = str(message).partition(": ")
    name = option_of(argument) if argument in OPTIONS else argument
    print_warning(in_options(f"{name}{colon}{text}"))
