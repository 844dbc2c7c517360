"""Which columns hold the forecasts and the outcome, and which class each forecast belongs to."""

import os
import re
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any

from isoroc._cli.errors import CommandError, did_you_mean
from isoroc._cli.options import EVERYTHING, SUFFIX, InputOptions

_GIVE_CLASSES = "give the class of each column with --classes"


def abridged(names: Iterable[Any], most: int = 8) -> str:
    shown = [str(name) for name in islice(names, most + 1)]
    return ", ".join([*shown[:most], *(["..."] if len(shown) > most else [])])


def split_words(given: Sequence[str] | None) -> list[str] | None:
    """Words of an option that may be repeated and may hold several words separated by commas."""
    if given is None:
        return None
    return [word.strip() for item in given for word in item.split(",") if word.strip()]


def check_column(option: str, name: str, columns: Collection[str]) -> str:
    """The name, if there is such a column."""
    if name not in columns:
        raise CommandError(f"{option}: no column {name!r}; {did_you_mean(name, columns)}")
    return name


def find_label(given: str | None, columns: Collection[str]) -> str:
    """Column of the outcomes: the given one, or the only one with a usual name."""
    if given is not None:
        names = split_words([given]) or []
        if given not in columns and len(names) > 1 and set(names) <= set(columns):
            what = f"--label {given}: the column of one outcome is expected"
            raise CommandError(f"{what}; for labels that do not exclude each other use --labels.")
        return check_column("--label", given, columns)
    usual = [c for c in columns if c.lower() in ("y", "label", "target", "outcome", "y_true")]
    if len(usual) != 1:
        what = f"{'several columns' if usual else 'no column'} could hold the outcomes"
        raise CommandError(f"{what}; name one with --label: {abridged(usual or columns, 30)}.")
    return usual[0]


def find_weight(given: str | None, columns: Collection[str]) -> str | None:
    """Column of the weights. "none" is a column only if there is one of this name."""
    if given is None or (given == "none" and given not in columns):
        return None
    return check_column("--weight", given, columns)


def find_shares(
    given: Sequence[str], columns: Collection[str], option: str = "--label-shares"
) -> dict[str, str]:
    """Columns of outcomes by class: the class is the name without the prefix that all share."""
    chosen = given_columns(given, columns, option)
    start = re.sub(r"[^\W_]+$", "", os.path.commonprefix(chosen))  # noqa: RUF071 -- not paths
    return {name.removeprefix(start): name for name in chosen}


def find_forecasts(
    given: Sequence[str] | None,
    columns: Collection[str],
    others: Collection[str | None] = (),
    *,
    of_model: Sequence[str] | None = None,
) -> list[str]:
    """Columns of the forecasts: as given, as in the model, or the only ones with usual names.

    `others` are columns that hold something else.
    """
    if given:
        return given_columns(given, columns, "--probs")
    if of_model and set(of_model) <= set(columns):
        return list(of_model)
    free = [name for name in columns if name not in others]
    candidates = _usual_columns(free)
    if not candidates:
        problem = "no column has a usual name of forecasts (p_*, proba_*, score, ...)"
        raise CommandError(f"{problem}; name them with --probs: {abridged(free, 30)}.")
    if len(candidates) > 1:
        choices = " or ".join(",".join(names) for names in candidates)
        raise CommandError(f"several sets of columns could be the forecasts; --probs {choices}?")
    return candidates[0]


def given_columns(given: Sequence[str], columns: Collection[str], option: str) -> list[str]:
    """Columns that a user named or matched by globs. A name may contain commas."""
    chosen: list[str] = []
    for item in given:
        for word in [item] if item in columns else split_words([item]) or ():
            if word in columns or not any(sign in word for sign in "*?["):
                chosen.append(check_column(option, word, columns))
                continue
            matching = [name for name in columns if fnmatchcase(name, word)]
            if not matching:
                known = abridged(columns, 30)
                raise CommandError(f"{option} {word}: no column matches; expected some of {known}.")
            chosen += matching
    if len(set(chosen)) < len(chosen):
        raise CommandError(f"{option}: a column is named twice in {', '.join(chosen)}.")
    return chosen


def _usual_columns(columns: list[str]) -> list[list[str]]:
    """Sets of columns with usual names of forecasts: for several classes, or else single ones."""
    # Columns that `apply` added to a file are not the forecasts that it calibrated.
    calibrated = {f"{name}{SUFFIX}" for name in columns}
    columns = [name for name in columns if name not in calibrated]
    single = "p|prob|proba|probability|score|y_prob|y_proba|y_score|forecast"
    several = r"proba_.+", r"prob_.+", r"p_.+", r"probability_.+", r"proba\d+", r"prob\d+", r"p\d+"

    def matching(pattern: str) -> list[str]:
        return [name for name in columns if re.fullmatch(pattern, name, re.IGNORECASE)]

    families = [names for pattern in several if (names := matching(pattern))]
    return (
        [names for names in families if len(names) > 1]
        or [[name] for name in matching(single)]
        or families
    )


def arrange(
    columns: Sequence[str], labels: Iterable[Any], options: InputOptions = EVERYTHING
) -> tuple[list[str], list[Any]]:
    """Columns in the order of the sorted classes, and those classes.

    A column belongs to the class that the user gave, or that its name ends in (``proba_cat``). If
    no name ends in a class, the columns are in the order of the sorted classes. For two classes one
    column is enough. It belongs to the class that its name ends in, or else to the second one, and
    its class comes last.
    """
    known = sorted(labels)
    if (pair := _given_pair(columns, known, options)) is not None:
        return [*columns], pair
    owners = find_classes(columns, known, options)
    if len(columns) == 1:
        return [*columns], [label for label in known if label not in owners] + owners
    order = sorted(range(len(columns)), key=lambda k: owners[k])
    return [columns[k] for k in order], [owners[k] for k in order]


def order_columns(
    columns: list[str], classes: list[Any], of_model: list[str] | None, options: InputOptions
) -> list[str]:
    """Columns in the order of a model's classes.

    Their names must equal the model's column names or end in its classes, unless the user gives the
    class of each column, a single column, or says that they are in the order of the model's
    columns.
    """
    single = len(columns) == 1
    if of_model and not options.by_position and options.classes is None:
        if sorted(columns) == sorted(of_model):
            return of_model
        names = [*columns, *_without_common_end(columns)]
        if not (single and options.probs) and not any(_classes_at_end(names, classes)):
            raise CommandError(
                f"the model was fitted on {', '.join(of_model)}, and the names "
                f"{', '.join(columns)} are neither these nor the names of its classes; "
                f"{_GIVE_CLASSES}, or use --by-position if they are in this order."
            )
    owners = find_classes(columns, sorted(classes), options)
    if options.by_position:
        return columns
    if single and owners != classes[1:]:
        problem = f"the model takes scores of the class {classes[1]!s}, but {columns[0]} is named"
        fix = "name the column with --probs, or its class with --classes"
        raise CommandError(f"{problem} after {owners[0]!s}; {fix}.")
    return columns if single else [columns[owners.index(label)] for label in classes]


def find_classes(columns: Sequence[str], known: list[Any], options: InputOptions) -> list[Any]:
    """Class of each column, where `known` are the sorted labels."""
    K = len(columns)
    names = ", ".join(columns)
    given = split_words(options.classes)
    if options.by_position and given is not None:
        raise CommandError("--classes and --by-position exclude each other; leave one out.")
    if (pair := _given_pair(columns, known, options)) is not None:
        return pair[1:]
    if K == 1 and len(known) != 2:
        problem = f"requires two classes, but the labels have {len(known)} ({abridged(known)})"
        fix = "name one column for each class with --probs"
        if len(known) == 1:
            fix = f"give both with --classes, the class of {names} last, or {fix}"
        raise CommandError(f"one column of forecasts ({names}) {problem}; {fix}.")
    if len(known) > max(K, 2):
        problem = f"{len(known)} classes ({abridged(known)}) but {K} columns of forecasts ({names})"
        raise CommandError(f"{problem}; name one column for each class with --probs.")
    if given is not None:
        return _given_classes(columns, known, given)
    if K == 1:
        [at_end] = _classes_at_end(columns, known)
        return list(at_end or known[1:])
    in_names = [] if options.by_position else _classes_in_names(columns, known)
    if in_names or len(known) == K:
        return in_names or known
    if all(type(label) is int and 0 <= label < K for label in known):
        return list(range(K))
    problem = f"{len(known)} classes occur ({abridged(known)}) but there are {K} columns"
    raise CommandError(f"{problem} of forecasts ({names}); {_GIVE_CLASSES}.")


def _given_pair(
    columns: Sequence[str], known: list[Any], options: InputOptions
) -> list[Any] | None:
    """Both classes of a single column, its own last, if the user gives both."""
    given = split_words(options.classes)
    if len(columns) > 1 or given is None or len(given) != 2:
        return None
    classes = _typed_like(given, known)
    if not set(known) <= set(classes) or len(set(classes)) < 2:
        problem = f"expected the two classes of {columns[0]}, its own last"
        raise CommandError(
            f"--classes: {problem}; got {', '.join(given)}, but the labels are {abridged(known)}."
        )
    return classes


def _given_classes(columns: Sequence[str], known: list[Any], given: Sequence[str]) -> list[Any]:
    K = len(columns)
    names = ", ".join(columns)
    if K == 1 and (len(given) != 1 or given[0] not in map(str, known)):
        raise CommandError(f"--classes: name the class of {names}, one of {abridged(known)}.")
    if len(given) != K or len(set(given)) < K:
        expected = f"{K} different classes, one for each of {names}"
        raise CommandError(f"--classes: expected {expected}; got {', '.join(given)}.")
    classes = _typed_like(given, known)
    absent = [label for label in known if label not in classes]
    if K > 1 and absent:
        raise CommandError(f"--classes: the label {absent[0]!r} is not among them.")
    return classes


def _classes_in_names(columns: Sequence[str], known: list[Any]) -> list[Any]:
    """Class of each column by its name, or an empty list if no name ends in a class."""
    names = columns
    at_end = _classes_at_end(columns, known)
    if not any(at_end):
        names = _without_common_end(columns)
        at_end = _classes_at_end(names, known)
    named = [label for labels in at_end for label in labels]
    if not named:
        return []
    if set(named) != set(known) or len(set(named)) < len(named):
        problem = f"{', '.join(columns)} match the classes {abridged(known)}"
        raise CommandError(f"only some of the columns {problem}; {_GIVE_CLASSES}.")
    if len(named) == len(columns):
        return named
    # The other columns belong to classes that do not occur, whose names follow the common prefix.
    pairs = ((name, label) for name, labels in zip(names, at_end, strict=True) for label in labels)
    starts = {name[: len(name) - len(str(label))] for name, label in pairs}
    start = next(iter(starts))
    rest = [name.removeprefix(start) for name in names]
    if len(starts) > 1 or not all(name.startswith(start) for name in names) or "" in rest:
        names = ", ".join(columns)
        raise CommandError(f"some of the columns {names} match no label; {_GIVE_CLASSES}.")
    return _typed_like(rest, known)


def _without_common_end(columns: Sequence[str]) -> list[str]:
    """Names without the suffix that all of them share, such as ``_cal``."""
    starts, signs, ends = zip(*(name.rpartition("_") for name in columns), strict=True)
    return list(starts) if all(signs) and len(set(ends)) == 1 else list(columns)


def _classes_at_end(names: Sequence[str], known: Sequence[Any]) -> list[tuple[Any, ...]]:
    """For each name the longest class that it ends in as a separate word, if there is one.

    The case of letters matters only if classes differ in it.
    """
    texts = [str(label) for label in known]
    fold = str.casefold if len(set(map(str.casefold, texts))) == len(texts) else str
    classes = {fold(text): (label,) for text, label in zip(texts, known, strict=True)}

    def at_end(name: str) -> tuple[Any, ...]:
        for start in range(len(name)):
            text = name[start:]
            before = name[start - 1 : start]
            is_word = not before.isalnum() or (text.isdigit() and before.isalpha())
            if is_word and text in classes:
                return classes[text]
        return ()

    return [at_end(fold(name)) for name in names]


def _typed_like(texts: Sequence[str], known: list[Any]) -> list[Any]:
    """Names of classes as labels of the same type as the known ones."""
    named = {str(label): label for label in known}
    try:
        return [named[text] if text in named else type(known[0])(text) for text in texts]
    except ValueError as error:
        problem = f"{', '.join(texts)} are not of the type of the labels {abridged(known)}"
        raise CommandError(f"the classes {problem}; name them with --classes.") from error
