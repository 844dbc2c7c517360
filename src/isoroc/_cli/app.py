"""The command and its subcommands: options, errors, exit codes."""

import sys
import traceback
import warnings
from io import UnsupportedOperation
from typing import Any

from cyclopts import App, CycloptsError, Parameter

import isoroc
from isoroc._cli.config import with_options_of_file
from isoroc._cli.errors import CommandError, ExitCode, did_you_mean, first_line, in_options
from isoroc._cli.options import STANDARD
from isoroc._cli.process import discard_output, wait_if_ending
from isoroc._cli.texts import ABOUT, ALIASES, COMMANDS, EPILOGUE

#: Errors that the user can fix, and what to say of those whose own message does not.
_BAD_INPUT = (CycloptsError, CommandError, ValueError, TypeError, OSError, ImportError)
_MESSAGES: dict[type[Exception], str] = {
    MemoryError: "not enough memory; read fewer rows with --sample or --where, or count them.",
    RecursionError: "values are nested too deeply; correct the file.",
    UnsupportedOperation: "standard output is closed.",
}
_CAUGHT: tuple[type[BaseException], ...] = (*_BAD_INPUT, *_MESSAGES)


def build() -> App:
    """Command with its subcommands; a subcommand is imported when it is called."""
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
    modules = {"plot": "report", "merge": "count", "calibrators": "inspect"}
    for k, (name, text) in enumerate(COMMANDS.items()):
        module = f"isoroc._cli.commands.{modules.get(name, name)}"
        app.command(f"{module}:{name}", help=text, sort_key=k)
    app.register_install_completion_command(help="Install shell completion.")
    return app


def run(tokens: list[str]) -> int:
    """Run a command line and return its exit code; an error becomes one line on standard error."""
    debug = "--debug" in tokens
    try:
        words = [word for word in tokens if word not in ("--debug", "--quiet")]
        words, config = _take("--config", words)
        words = with_options_of_file(_usual(words), config)
        words = [STANDARD if word == "-" else word for word in words]
        if "--quiet" not in tokens:
            return _run(words, debug=debug)
        from isoroc._cli.terminal import quietly  # noqa: PLC0415

        with quietly():
            return _run(words, debug=debug)
    except (CommandError, OSError) as error:  # of the configuration
        return _fail(ExitCode.BAD_INPUT, "error", _message(error), debug=debug)


def _usual(words: list[str]) -> list[str]:
    """The words as the commands take them, of commands and options that people guess."""
    match words:
        case ["help", *rest]:
            words = [*rest[:1], "--help"]
        case ["version", *_]:
            words = ["--version"]
        case [first, *rest] if first in ALIASES:
            words = [ALIASES[first], *rest]
    if words and not words[0].startswith("-") and words[0] not in COMMANDS:
        known = did_you_mean(words[0], [*COMMANDS, *ALIASES, "help", "version"])
        raise CommandError(f"{words[0]}: not a command; {known}")
    if words and words[0] in ("apply", "monitor", "inspect", "export"):  # it is the first argument
        rest, model = _take("--model", ["--model" if word == "-m" else word for word in words[1:]])
        return [*words[:1], *([] if model is None else [model]), *rest]
    return words


def _take(option: str, tokens: list[str]) -> tuple[list[str], str | None]:
    """The words without an option of every command, and its value."""
    words, found, rest = list[str](), None, iter(tokens)
    for word in rest:
        name, sign, value = word.partition("=")
        if name != option:
            words.append(word)
        elif not (found := value if sign else next(rest, "")):
            raise CommandError(f"{option}: name a file.")
    return words, found


def _run(words: list[str], *, debug: bool) -> int:
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            code = build()(words)
            sys.stdout.flush()
        except KeyboardInterrupt:  # of polars, which handles SIGINT itself while it works
            raise
        except BrokenPipeError:
            discard_output()  # otherwise Python reports the error again when it exits
            return ExitCode.BROKEN_PIPE
        except SystemExit as error:
            if not isinstance(error.__context__, BrokenPipeError):
                raise
            return ExitCode.BROKEN_PIPE  # rich exits with code 1 and has closed the output
        except _CAUGHT as error:
            return _fail(ExitCode.BAD_INPUT, "error", _message(error), debug=debug)
        except BaseException as error:  # noqa: BLE001
            # A panic of polars is not an Exception, and must not end with exit code 1.
            what = f"{type(error).__name__}: {first_line(error)}; use --debug for details"
            return _fail(ExitCode.INTERNAL, "internal error", what, debug=debug)
    return code if isinstance(code, int) else ExitCode.OK


def _message(error: BaseException) -> str:
    for kind, text in _MESSAGES.items():
        if isinstance(error, kind):
            return text
    if isinstance(error, ImportError) and isinstance(error.__cause__, ImportError):
        return _message(error.__cause__)  # of the missing extra, not of the command that needs it
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, ValueError):
        # Raised by a command, which has imported the library already; `--help` has not.
        from isoroc._input import InputError  # noqa: PLC0415

        if isinstance(error, InputError):
            options = {"P": "--probs", "y_prob": "--probs", "y": "--label", "y_true": "--label"}
            options |= {"labels": "--classes", "classes": "--classes", "sample_weight": "--weight"}
            options |= {"n_resamples": "--resamples", "confidence": "--confidence"}
            options["tolerance"] = "--tolerance"
            option = options.get(error.argument, error.argument)
            return str(InputError(option, error.row, error.problem, in_options(error.fix)))
    return str(error) if isinstance(error, CommandError) else first_line(error)


def _fail(code: ExitCode, kind: str, message: str, *, debug: bool) -> int:
    from isoroc._cli.terminal import print_error  # noqa: PLC0415

    wait_if_ending()
    if debug:
        traceback.print_exc()
    print_error(kind, message)
    return code


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    from isoroc._cli.terminal import print_warning  # noqa: PLC0415

    print_warning(str(message))
