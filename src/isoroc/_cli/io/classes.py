"""Which column of the forecasts belongs to which class."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from numpy.typing import NDArray

from isoroc._cli.errors import CommandError


def arrange(
    columns: Sequence[str], labels: Iterable[Any], *, classes: Sequence[str] | None = None
) -> tuple[list[str], list[Any]]:
    """Columns in the order of the sorted classes, and those classes.

    A column belongs to the class that its name ends in (``proba_cat``). If no name ends in a
    class, the columns are in the order of the sorted classes. For two classes one column is
    enough: it belongs to the class that its name ends in, otherwise to the second one, and the
    class that it belongs to comes last.

    Parameters
    ----------
    columns : sequence of str
        Columns of the forecasts.
    labels : iterable
        Labels that occur, all of one type.
    classes : sequence of str, default=None
        The class of each column as the user gave it, or of the only column.

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
            f"{len(known)} classes ({list_labels(known)}) but {len(columns)} columns of forecasts "
            f"({', '.join(columns)}); name one column for each class with --probs."
        )
    if classes is not None:
        owners = _given_classes(columns, known, classes)
    else:
        owners = _classes_in_names(columns, known) or _classes_in_order(columns, known)
    order = sorted(range(len(columns)), key=lambda k: owners[k])
    return [columns[k] for k in order], [owners[k] for k in order]


def arrange_for_model(
    columns: Sequence[str],
    classes: NDArray[Any],
    of_model: Sequence[str] | None,
    given: Sequence[str] | None,
) -> list[str]:
    """Columns in the order of a model's classes.

    Parameters
    ----------
    columns : sequence of str
        Columns of the forecasts.
    classes : ndarray of shape (K,)
        Classes of the model.
    of_model : sequence of str or None
        Columns that the model was fitted on, in the order of its classes.
    given : sequence of str or None
        The class of each column as the user gave it.
    """
    if of_model is not None and list(columns) == list(of_model) and not given:
        return list(columns)
    ordered, known = arrange(columns, classes.tolist(), classes=given)
    if len(columns) == 1:
        if known[1] != classes[1]:
            raise CommandError(
                f"the model takes scores of the class {classes[1]!s}, but {columns[0]} is named "
                f"like those of {known[1]!s}; name the column with --probs, or its class with "
                "--classes."
            )
        return ordered
    return [ordered[known.index(label)] for label in classes.tolist()]


def list_labels(labels: Sequence[Any]) -> str:
    """Up to eight labels for a message.

    Examples
    --------
    >>> list_labels(range(10))
    '0, 1, 2, 3, 4, 5, 6, 7, ...'
    """
    shown = ", ".join(map(str, labels[:8]))
    return shown if len(labels) <= 8 else f"{shown}, ..."


def _arrange_one(
    column: str, known: list[Any], classes: Sequence[str] | None
) -> tuple[list[str], list[Any]]:
    if len(known) != 2:
        raise CommandError(
            f"one column of forecasts ({column}) requires two classes, but the labels have "
            f"{len(known)} ({list_labels(known)}); name one column for each class with --probs."
        )
    if classes is None:
        positive = _class_in_name(column, known)
        positive = known[1] if positive is None else positive
    else:
        named = {str(label): label for label in known}
        if len(classes) != 1 or classes[0] not in named:
            raise CommandError(
                f"--classes: name the class of {column}, one of {list_labels(known)}."
            )
        positive = named[classes[0]]
    return [column], [label for label in known if label != positive] + [positive]


def _given_classes(columns: Sequence[str], known: list[Any], classes: Sequence[str]) -> list[Any]:
    """Class of each column as the user gave it."""
    if len(classes) != len(columns) or len(set(classes)) < len(classes):
        raise CommandError(
            f"--classes: expected {len(columns)} different classes, one for each of "
            f"{', '.join(columns)}; got {', '.join(classes)}."
        )
    owners = _typed_like(classes, known)
    absent = [label for label in known if label not in owners]
    if absent:
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
        raise CommandError(
            f"only some of the columns {', '.join(columns)} match the classes "
            f"{list_labels(known)}; give the class of each column with --classes."
        )
    if len(named) == len(columns):
        return found
    # The other columns are of classes that do not occur: what follows the common beginning.
    starts = {
        name[: len(name) - len(str(label))]
        for name, label in zip(names, found, strict=True)
        if label is not None
    }
    start = next(iter(starts))
    rest = [name.removeprefix(start) for name in names]
    if len(starts) > 1 or not all(name.startswith(start) for name in names) or "" in rest:
        raise CommandError(
            f"some of the columns {', '.join(columns)} match no label; give the class of each "
            "column with --classes."
        )
    return _typed_like(rest, known)


def _classes_in_order(columns: Sequence[str], known: list[Any]) -> list[Any]:
    """Sorted classes, if there is one for each column or they are integers from 0."""
    K = len(columns)
    if len(known) == K:
        return known
    if all(type(label) is int and 0 <= label < K for label in known):
        return list(range(K))
    raise CommandError(
        f"{len(known)} classes occur ({list_labels(known)}) but there are {K} columns of forecasts "
        f"({', '.join(columns)}); give the class of each column with --classes."
    )


def _without_common_end(columns: Sequence[str]) -> list[str]:
    """Names without an end that all of them share, such as ``_cal``."""
    ends = {name[name.rfind("_") :] for name in columns if "_" in name}
    if len(ends) != 1 or any("_" not in name for name in columns):
        return list(columns)
    return [name[: name.rfind("_")] for name in columns]


def _class_in_name(name: str, known: Sequence[Any]) -> Any:
    """Longest label that a name ends in, as a separate word; None if it ends in none.

    Upper and lower case are distinguished only if a label matches exactly.
    """
    for fold in (str, str.casefold):
        ends = [label for label in known if _ends_in(fold(name), fold(str(label)))]
        if ends:
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
    kind = type(known[0])
    try:
        return [named[text] if text in named else kind(text) for text in texts]
    except ValueError as error:
        raise CommandError(
            f"the classes {', '.join(texts)} are not of the type of the labels "
            f"{list_labels(known)}; name them with --classes."
        ) from error
