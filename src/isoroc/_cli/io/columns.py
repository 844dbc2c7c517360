"""Which columns hold the forecasts and the outcome, and which class each forecast belongs to."""

import re
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from isoroc._cli.errors import CommandError, did_you_mean
from isoroc._cli.options import EVERYTHING, InputOptions, Selection

#: What `apply` appends to the names of the forecasts that it calibrates.
SUFFIX = "_cal"
_SEVERAL = (r"proba_.+", r"prob_.+", r"p_.+", r"probability_.+", r"proba\d+", r"prob\d+", r"p\d+")
_SINGLE = ("p", "prob", "proba", "probability", "score", "y_prob", "y_proba", "y_score", "forecast")
_GIVE_CLASSES = "give the class of each column with --classes"
_LABELS = ("y", "label", "target", "outcome", "y_true")


def find_label(given: str | None, columns: Collection[str]) -> str:
    """Column of the outcomes: the given one, or the only one with a usual name."""
    if given is not None:
        return check_column("--label", given, columns)
    found = [name for name in columns if name.lower() in _LABELS]
    if len(found) != 1:
        what = f"{'several columns' if found else 'no column'} could hold the outcomes"
        raise CommandError(f"{what}; name one with --label: {', '.join(found or columns)}.")
    return found[0]


def find_forecasts(
    given: Sequence[str] | None,
    columns: Collection[str],
    others: Collection[str | None] = (),
    *,
    of_model: Sequence[str] | None = None,
) -> list[str]:
    """Columns of the forecasts: names, globs or patterns given, of a model, or usual."""
    if given:
        words: list[str] = []
        for item in given:
            whole = item in columns or _is_pattern(item)
            words += [item] if whole else split_words([item]) or []
        found = [name for word in words for name in _match(word, columns)]
        if len(set(found)) < len(found):
            raise CommandError(f"--probs: a column is named twice in {', '.join(found)}.")
        return found
    if of_model and set(of_model) <= set(columns):
        return list(of_model)
    free = [name for name in columns if name not in others]
    # Columns that `apply` added to a file are not the forecasts that it calibrated.
    free = [name for name in free if name.removesuffix(SUFFIX) not in set(free) - {name}]
    usual = [[name for name in free if re.fullmatch(p, name, re.IGNORECASE)] for p in _SEVERAL]
    families = (
        [family for family in usual if len(family) > 1]
        or [[name] for name in free if name.lower() in _SINGLE]
        or [family for family in usual if family]
    )
    if len(families) == 1:
        return families[0]
    if not families:
        problem = "no column has a usual name of forecasts (p_*, proba_*, score, ...)"
        raise CommandError(f"{problem}; name them with --probs: {', '.join(free)}.")
    choices = " or ".join(",".join(family) for family in families)
    raise CommandError(f"several sets of columns could be the forecasts; --probs {choices}?")


def check_column(option: str, name: str, columns: Collection[str]) -> str:
    """The name, if there is such a column."""
    if name not in columns:
        raise CommandError(f"{option}: no column {name!r}; {did_you_mean(name, columns)}")
    return name


def split_words(given: Sequence[str] | None) -> list[str] | None:
    """Words of an option that may be repeated and may hold several words separated by commas."""
    if given is None:
        return None
    return [word.strip() for item in given for word in item.split(",") if word.strip()]


def _is_pattern(word: str) -> bool:
    """Whether a word is a regular expression, which may contain commas."""
    return word.startswith("/") and word.endswith("/") and len(word) > 2


def _match(word: str, columns: Collection[str]) -> list[str]:
    if word in columns:
        return [word]
    if _is_pattern(word):
        try:
            found = [name for name in columns if re.search(word[1:-1], name)]
        except re.error as error:
            raise CommandError(f"--probs {word}: not a regular expression ({error}).") from error
    elif any(sign in word for sign in "*?["):
        found = [name for name in columns if fnmatchcase(name, word)]
    else:
        return [check_column("--probs", word, columns)]
    if not found:
        known = ", ".join(columns)
        raise CommandError(f"--probs {word}: no column matches; expected some of {known}.")
    return found


def arrange(
    columns: Sequence[str], labels: Iterable[Any], options: InputOptions = EVERYTHING
) -> tuple[list[str], list[Any]]:
    """Columns in the order of the sorted classes, and those classes.

    A column belongs to the class that the user gave, or that its name ends in (``proba_cat``). If
    no name ends in a class, the columns are in the order of the sorted classes. For two classes one
    column is enough: it belongs to the class that its name ends in, otherwise to the second one,
    and the class that it belongs to comes last.
    """
    known, classes = sorted(labels), _given(options, columns)
    if options.by_position and classes is not None:
        raise CommandError("--classes and --by-position exclude each other; leave one out.")
    if len(columns) == 1:
        return _arrange_one(columns[0], known, classes)
    if len(known) > len(columns):
        problem = f"{len(known)} classes ({list_labels(known)}) but {len(columns)} columns of"
        fix = "name one column for each class with --probs"
        raise CommandError(f"{problem} forecasts ({', '.join(columns)}); {fix}.")
    if classes is not None:
        owners = _given_classes(columns, known, classes)
    else:
        named = None if options.by_position else _classes_in_names(columns, known)
        owners = named or _classes_in_order(columns, known)
    order = sorted(range(len(columns)), key=lambda k: owners[k])
    return [columns[k] for k in order], [owners[k] for k in order]


def order_columns(
    columns: list[str], classes: list[Any], of_model: list[str] | None, options: InputOptions
) -> list[str]:
    """Columns in the order of a model's classes; names must be those `of_model` or of classes."""
    given = _given(options, columns)
    if of_model and sorted(columns) == sorted(of_model) and not (given or options.by_position):
        return of_model
    ordered, known = arrange(columns, classes, options)
    if options.by_position:
        return columns
    single = len(columns) == 1
    names = (*columns, *_without_common_end(columns))
    chosen = given or (single and options.probs)
    if of_model and not chosen and all(_class_in_name(name, known) is None for name in names):
        raise CommandError(
            f"the model was fitted on {', '.join(of_model)}, and the names {', '.join(columns)} "
            f"are neither these nor those of its classes; {_GIVE_CLASSES}, or use --by-position if "
            "they are in this order."
        )
    if not single:
        return [ordered[known.index(label)] for label in classes]
    if known[1] != classes[1]:
        problem = f"the model takes scores of the class {classes[1]!s}, but {columns[0]} is named"
        fix = "name the column with --probs, or its class with --classes"
        raise CommandError(f"{problem} like those of {known[1]!s}; {fix}.")
    return ordered


def _given(options: InputOptions, columns: Sequence[str]) -> list[str] | None:
    """The class of each column as the user gave it."""
    if not isinstance(options, Selection) or options.positive is None:
        return split_words(options.classes)
    if len(columns) > 1 or options.classes is not None:
        fix = f"for {', '.join(columns)} name the class of each with --classes"
        raise CommandError(f"--positive names the class of a single column of forecasts; {fix}.")
    return [options.positive]


def list_labels(labels: Sequence[Any]) -> str:
    """Up to eight labels for a message."""
    return ", ".join([*map(str, labels[:8]), *(["..."] if len(labels) > 8 else [])])


def _arrange_one(
    column: str, known: list[Any], classes: Sequence[str] | None
) -> tuple[list[str], list[Any]]:
    if len(known) != 2:
        problem = f"requires two classes, but the labels have {len(known)} ({list_labels(known)})"
        fix = "name one column for each class with --probs"
        raise CommandError(f"one column of forecasts ({column}) {problem}; {fix}.")
    if classes is None:
        positive = _class_in_name(column, known)
        positive = known[1] if positive is None else positive
    else:
        named = {str(label): label for label in known}
        if len(classes) != 1 or classes[0] not in named:
            options = list_labels(known)
            raise CommandError(f"--classes: name the class of {column}, one of {options}.")
        positive = named[classes[0]]
    return [column], [label for label in known if label != positive] + [positive]


def _given_classes(columns: Sequence[str], known: list[Any], classes: Sequence[str]) -> list[Any]:
    if len(classes) != len(columns) or len(set(classes)) < len(classes):
        expected = f"{len(columns)} different classes, one for each of {', '.join(columns)}"
        raise CommandError(f"--classes: expected {expected}; got {', '.join(classes)}.")
    owners = _typed_like(classes, known)
    if absent := [label for label in known if label not in owners]:
        raise CommandError(f"--classes: the label {absent[0]!r} is not among them.")
    return owners


def _classes_in_names(columns: Sequence[str], known: list[Any]) -> list[Any] | None:
    """Class of each column by its name; None if no name ends in a class."""
    for names in (columns, _without_common_end(columns)):
        found = [_class_in_name(name, known) for name in names]
        if any(label is not None for label in found):
            break
    else:
        return None
    named = [label for label in found if label is not None]
    if set(named) != set(known) or len(set(named)) < len(named):
        problem = f"{', '.join(columns)} match the classes {list_labels(known)}"
        raise CommandError(f"only some of the columns {problem}; {_GIVE_CLASSES}.")
    if len(named) == len(columns):
        return found
    # The other columns are of classes that do not occur: what follows the common beginning.
    pairs = zip(names, found, strict=True)
    starts = {name[: len(name) - len(str(label))] for name, label in pairs if label is not None}
    start = next(iter(starts))
    rest = [name.removeprefix(start) for name in names]
    if len(starts) > 1 or not all(name.startswith(start) for name in names) or "" in rest:
        names = ", ".join(columns)
        raise CommandError(f"some of the columns {names} match no label; {_GIVE_CLASSES}.")
    return _typed_like(rest, known)


def _classes_in_order(columns: Sequence[str], known: list[Any]) -> list[Any]:
    """Sorted classes, if there is one for each column or they are integers from 0."""
    K = len(columns)
    if len(known) == K:
        return known
    if all(type(label) is int and 0 <= label < K for label in known):
        return list(range(K))
    problem = f"{len(known)} classes occur ({list_labels(known)}) but there are {K} columns"
    raise CommandError(f"{problem} of forecasts ({', '.join(columns)}); {_GIVE_CLASSES}.")


def _without_common_end(columns: Sequence[str]) -> list[str]:
    """Names without an end that all of them share, such as ``_cal``."""
    starts, signs, ends = zip(*(name.rpartition("_") for name in columns), strict=True)
    return list(starts) if all(signs) and len(set(ends)) == 1 else list(columns)


def _class_in_name(name: str, known: Sequence[Any]) -> Any:
    """Longest label that a name ends in, as a separate word, in the same case or else in any."""
    for fold in (str, str.casefold):
        if ends := [label for label in known if _ends_in(fold(name), fold(str(label)))]:
            return max(ends, key=lambda label: len(str(label)))
    return None


def _ends_in(name: str, text: str) -> bool:
    if not text or not name.endswith(text):
        return False
    before = name[: len(name) - len(text)][-1:]
    return not before.isalnum() or (text.isdigit() and before.isalpha())


def _typed_like(texts: Sequence[str], known: list[Any]) -> list[Any]:
    """Names of classes as labels of the type of the known ones."""
    named = {str(label): label for label in known}
    try:
        return [named[text] if text in named else type(known[0])(text) for text in texts]
    except ValueError as error:
        problem = f"{', '.join(texts)} are not of the type of the labels {list_labels(known)}"
        raise CommandError(f"the classes {problem}; name them with --classes.") from error
