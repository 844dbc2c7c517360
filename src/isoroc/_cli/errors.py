"""Errors that the user can fix, and the exit codes of the command."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from enum import IntEnum


class ExitCode(IntEnum):
    OK = 0
    CHECK_FAILED = 1  #: a condition of ``--fail-if`` holds, or an alarm of ``monitor``
    BAD_INPUT = 2  #: options, files or data that cannot be used
    INTERNAL = 3  #: a bug in isoroc
    INTERRUPTED = 130
    BROKEN_PIPE = 141  #: standard output was closed


class CommandError(Exception):
    """An error that the user can fix. Its argument says how."""


def first_line(error: BaseException) -> str:
    """Message of an exception without the details for programmers that may follow it."""
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """End of a message about an unknown word: the closest known word, or else all of them."""
    names = list(known)
    near = get_close_matches(word, names, n=1)
    shown = ", ".join(names[:50]) + (", ..." if len(names) > 50 else "")
    return f"did you mean {near[0]!r}?" if near else f"expected one of {shown}."


#: Words about Python in messages of the library, and their equivalents on the command line.
_WORDS = {
    "MultiLabelCalibrator, and the option multilabel of evaluate": "--labels",
    "MultiLabelCalibrator": "--labels",
    "multilabel=True": "--labels",
    " (see MultiLabelBinarizer)": "",
    "one 1-D array": "one column",
    ". For logits pass scipy.special.softmax(logits, axis=1)": "",
}
#: Arguments of the library whose options have other names.
OPTIONS = {
    "P": "probs",
    "y_prob": "probs",
    "y": "label",
    "y_true": "label",
    "labels": "classes",
    "sample_weight": "weight",
    "time": "time",
}


def option_of(argument: str) -> str:
    """Option of the command for an argument of the library."""
    return f"--{OPTIONS.get(argument, argument).replace('_', '-')}"


def in_options(text: str) -> str:
    """A message of the library with the options of the command in place of arguments.

    ``unit="percent"`` becomes ``--unit percent``, ``labels=`` becomes ``--classes``, and
    ``AutoCalibrator(monotone=True)`` becomes ``--calibrator auto --monotone true``.
    """
    for python, words in _WORDS.items():
        text = text.replace(python, words)
    text = re.sub(r"(\w+)Calibrator\(([^)]*)\)", r"\1Calibrator \2", text)
    text = re.sub(r"\b(\w+)Calibrator\b ?", lambda name: f"{_calibrator_option(name[1])} ", text)
    names = (
        "clusters|cv|fold_by|folds|labels|members|monotone|prior|segments|sample_weight|top|unit"
    )
    given = re.compile(rf"""\b({names}|weighting)=(?:"(\w+)"|(\w+)|(?!["\w]))""")
    if given.search(text) is not None:
        text = given.sub(_as_option, text)
        text = re.sub(r'"(\w+)"', r"\1", text)  # further values: "percent" or "logit"
    return re.sub(r" +(?=[ ,;.)]|$)", "", text)


def _as_option(given: re.Match[str]) -> str:
    name, text, value = given.groups()
    return f"{option_of(name)} {text or (value or '').lower()}".rstrip()


def _calibrator_option(name: str) -> str:
    from isoroc._calibrators.registry import short_name  # noqa: PLC0415 -- slow to import

    return f"--calibrator {short_name(name)}"
