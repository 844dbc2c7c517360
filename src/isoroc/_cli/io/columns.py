"""Which columns hold the forecasts and the outcome, and which column belongs to which class."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from isoroc._cli.errors import CommandError, did_you_mean

#: What `apply` appends to the names of the forecasts that it calibrates.
SUFFIX = "_cal"
_SEVERAL = (r"proba_.+", r"prob_.+", r"p_.+", r"probability_.+", r"proba\d+", r"prob\d+", r"p\d+")
_SINGLE = ("p", "prob", "proba", "probability", "score", "y_prob", "y_proba", "y_score", "forecast")
_LABELS = ("y", "label", "target", "outcome", "y_true")


def find_label(given: str | None, columns: Sequence[str]) -> str:
    """Column of the outcomes: the one given, or the one that is named like it.

    Examples
    --------
    >>> find_label(None, ["id", "p_a", "p_b", "Label"])
    'Label'
    """
    if given is not None:
        return check_column("--label", given, columns)
    found = [name for name in columns if name.lower() in _LABELS]
    if len(found) != 1:
        what = "several columns" if found else "no column"
        raise CommandError(
            f"{what} could hold the outcomes; name one with --label: {', '.join(found or columns)}."
        )
    return found[0]


def find_forecasts(
    given: Sequence[str] | None, columns: Sequence[str], others: Collection[str | None] = ()
) -> list[str]:
    """Columns of the forecasts: those given, or those that are named like it.

    Parameters
    ----------
    given : sequence of str or None
        Names, globs such as ``p_*`` or regular expressions between slashes, also joined by commas.
    columns : sequence of str
        All columns.
    others : collection of str, default=()
        Columns that hold something else.

    Examples
    --------
    >>> columns = ["y", "p_cat", "p_dog", "p_cat_cal", "p_dog_cal"]
    >>> find_forecasts(None, columns)
    ['p_cat', 'p_dog']
    >>> find_forecasts(["p_*_cal"], columns)
    ['p_cat_cal', 'p_dog_cal']
    >>> find_forecasts(["p_dog,/cat$/"], columns)
    ['p_dog', 'p_cat']
    """
    if given:
        words = [w for item in given for w in ([item] if item in columns else _split(item))]
        found = [name for word in words for name in _match(word, columns)]
        if len(set(found)) < len(found):
            raise CommandError(f"--probs: a column is named twice in {', '.join(found)}.")
        return found
    free = [name for name in columns if name not in others]
    # What `apply` added to a file is not what it was made from.
    free = [name for name in free if name.removesuffix(SUFFIX) not in set(free) - {name}]
    families = []
    for pattern in _SEVERAL:
        family = [name for name in free if re.fullmatch(pattern, name, re.IGNORECASE)]
        if len(family) > 1:
            families.append(family)
    families = families or [[name] for name in free if name.lower() in _SINGLE]
    families = families or [
        [name] for name in free if any(re.fullmatch(p, name, re.IGNORECASE) for p in _SEVERAL)
    ]
    if len(families) == 1:
        return families[0]
    if not families:
        raise CommandError(
            f"no column is named like a forecast (p_*, proba_*, score, ...); name them with "
            f"--probs: {', '.join(free)}."
        )
    choices = " or ".join(",".join(family) for family in families)
    raise CommandError(f"several sets of columns could be the forecasts; --probs {choices}?")


def check_column(option: str, name: str, columns: Sequence[str]) -> str:
    """The name, if there is such a column."""
    if name not in columns:
        raise CommandError(f"{option}: no column {name!r}; {did_you_mean(name, columns)}")
    return name


def _split(item: str) -> list[str]:
    """Words joined by commas; a regular expression may hold commas of its own."""
    if item.startswith("/") and item.endswith("/") and len(item) > 2:
        return [item]
    return split_words([item]) or []


def split_words(given: Sequence[str] | None) -> list[str] | None:
    """Words that may be joined by commas, one by one.

    Examples
    --------
    >>> split_words(["cat, dog", "bird"])
    ['cat', 'dog', 'bird']
    """
    if given is None:
        return None
    return [word.strip() for item in given for word in item.split(",") if word.strip()]


def _match(word: str, columns: Sequence[str]) -> list[str]:
    if word in columns:
        return [word]
    if word.startswith("/") and word.endswith("/"):
        try:
            found = [name for name in columns if re.search(word[1:-1], name)]
        except re.error as error:
            raise CommandError(f"--probs {word}: not a regular expression ({error}).") from error
    elif any(sign in word for sign in "*?["):
        found = [name for name in columns if fnmatchcase(name, word)]
    else:
        return [check_column("--probs", word, columns)]
    if not found:
        raise CommandError(f"--probs {word}: no column matches; there are {', '.join(columns)}.")
    return found


def arrange(
    columns: Sequence[str], labels: Iterable[Any], *, classes: Sequence[str] | None = None
) -> tuple[list[str], list[Any]]:
    """Columns in the order of the sorted classes, and those classes.

    A column belongs to the class that its name ends in (``proba_cat``). Where no name says
    anything of the kind, columns stand in the order of the sorted classes. For two classes one
    column is enough: it is of the class that its name ends in, otherwise of the second, and that
    class comes last.

    Parameters
    ----------
    columns : sequence of str
    labels : iterable
        Labels that occur, all of one type.
    classes : sequence of str, default=None
        The class of each column as the user gave it, or of the one column.

    Examples
    --------
    >>> arrange(["proba_dog", "proba_cat"], ["cat", "dog"])
    (['proba_cat', 'proba_dog'], ['cat', 'dog'])
    >>> arrange(["p_0", "p_1", "p_2"], [2, 0])
    (['p_0', 'p_1', 'p_2'], [0, 1, 2])
    >>> arrange(["p_ham"], ["ham", "spam"])
    (['p_ham'], ['spam', 'ham'])
    """
    known = sorted(labels)
    if len(columns) == 1:
        return _arrange_one(columns[0], known, classes)
    if len(known) > len(columns):
        raise CommandError(
            f"{len(known)} classes ({_listed(known)}) but {len(columns)} columns of forecasts "
            f"({', '.join(columns)}); name one for each class with --probs."
        )
    if classes is not None:
        owners = _given(columns, known, classes)
    else:
        owners = _owners(columns, known) or _in_order(columns, known)
    order = sorted(range(len(columns)), key=lambda k: owners[k])
    return [columns[k] for k in order], [owners[k] for k in order]


def _arrange_one(
    column: str, known: list[Any], classes: Sequence[str] | None
) -> tuple[list[str], list[Any]]:
    if len(known) != 2:
        raise CommandError(
            f"one column of forecasts ({column}) is for two classes, the labels have {len(known)} "
            f"({_listed(known)}); name one column for each class with --probs."
        )
    if classes is None:
        positive = _owner(column, known, known[1])
    else:
        named = {str(label): label for label in known}
        if len(classes) != 1 or classes[0] not in named:
            raise CommandError(f"--classes: name the class of {column}, one of {_listed(known)}.")
        positive = named[classes[0]]
    return [column], [label for label in known if label != positive] + [positive]


def _given(columns: Sequence[str], known: list[Any], classes: Sequence[str]) -> list[Any]:
    if len(classes) != len(columns) or len(set(classes)) < len(classes):
        raise CommandError(
            f"--classes: expected {len(columns)} different classes, one for each of "
            f"{', '.join(columns)}; got {', '.join(classes)}."
        )
    owners = _typed_like(classes, known)
    strangers = [label for label in known if label not in owners]
    if strangers:
        raise CommandError(f"--classes: the label {strangers[0]!r} is not among them.")
    return owners


def _owners(columns: Sequence[str], known: list[Any]) -> list[Any] | None:
    """Class of each column by its name; None where names say nothing."""
    for cores in (columns, _cores(columns)):
        found = [_owner(core, known, None) for core in cores]
        if any(label is not None for label in found):
            break
    else:
        return None
    named = [label for label in found if label is not None]
    if set(named) != set(known) or len(set(named)) < len(named):
        raise CommandError(
            f"the columns {', '.join(columns)} match the classes {_listed(known)} only in part; "
            "say which is which with --classes, in the order of the columns."
        )
    if len(named) == len(columns):
        return found
    # Classes that never came true: their names are what follows where the others' names stand.
    starts = {
        core[: len(core) - len(str(label))]
        for core, label in zip(cores, found, strict=True)
        if label is not None
    }
    start = next(iter(starts))
    rest = [core.removeprefix(start) for core in cores]
    if len(starts) > 1 or not all(core.startswith(start) for core in cores) or "" in rest:
        raise CommandError(
            f"no label is named like some of {', '.join(columns)}; say which class each column is "
            "of with --classes."
        )
    return _typed_like(rest, known)


def _in_order(columns: Sequence[str], known: list[Any]) -> list[Any]:
    """Sorted classes, where there is one for each column or they are the integers from 0."""
    K = len(columns)
    if len(known) == K:
        return known
    if all(type(label) is int and 0 <= label < K for label in known):
        return list(range(K))
    raise CommandError(
        f"{len(known)} classes occur ({_listed(known)}) but there are {K} columns of forecasts "
        f"({', '.join(columns)}); say which class each is of with --classes."
    )


def _cores(columns: Sequence[str]) -> list[str]:
    """Names without an end that all of them share, such as ``_cal``."""
    ends = {name[name.rfind("_") :] for name in columns if "_" in name}
    if len(ends) != 1 or any("_" not in name for name in columns):
        return list(columns)
    return [name[: name.rfind("_")] for name in columns]


def _owner(name: str, known: Sequence[Any], otherwise: Any) -> Any:
    """The longest label that a name ends in, as a word of its own; case decides only ties."""
    for fold in (str, str.casefold):
        ends = [label for label in known if _ends_in(fold(name), fold(str(label)))]
        if ends:
            return max(ends, key=lambda label: len(str(label)))
    return otherwise


def _ends_in(name: str, text: str) -> bool:
    if not text or not name.endswith(text):
        return False
    before = name[: len(name) - len(text)][-1:]
    return not before.isalnum() or (text.isdigit() and before.isalpha())


def _typed_like(texts: Sequence[str], known: list[Any]) -> list[Any]:
    """Names of classes as labels of the type that is known."""
    named = {str(label): label for label in known}
    kind = type(known[0])
    try:
        return [named[text] if text in named else kind(text) for text in texts]
    except ValueError as error:
        raise CommandError(
            f"the classes {', '.join(texts)} are not of the type of the labels {_listed(known)}; "
            "name them with --classes."
        ) from error


def _listed(labels: Sequence[Any]) -> str:
    shown = ", ".join(map(str, labels[:8]))
    return shown if len(labels) <= 8 else f"{shown}, ..."
