"""Which columns hold the forecasts and the outcome."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase

from isoroc._cli.errors import CommandError, did_you_mean

#: What `apply` appends to the names of the forecasts that it calibrates.
SUFFIX = "_cal"
_SEVERAL = (r"proba_.+", r"prob_.+", r"p_.+", r"probability_.+", r"proba\d+", r"prob\d+", r"p\d+")
_SINGLE = ("p", "prob", "proba", "probability", "score", "y_prob", "y_proba", "y_score", "forecast")
_LABELS = ("y", "label", "target", "outcome", "y_true")


def find_label(given: str | None, columns: Sequence[str]) -> str:
    """Column of the outcomes: the given one, or the only one with a usual name.

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
    """Columns of the forecasts: the given ones, or those with usual names.

    Parameters
    ----------
    given : sequence of str or None
        Names, globs such as ``p_*``, or regular expressions between slashes; each item may hold
        several, separated by commas.
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
    # Columns that `apply` added to a file are not the forecasts that it calibrated.
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
            "no column has a usual name of forecasts (p_*, proba_*, score, ...); name them with "
            f"--probs: {', '.join(free)}."
        )
    choices = " or ".join(",".join(family) for family in families)
    raise CommandError(f"several sets of columns could be the forecasts; --probs {choices}?")


def find_model_forecasts(
    given: Sequence[str] | None,
    columns: Sequence[str],
    of_model: Sequence[str] | None,
    others: Collection[str | None] = (),
) -> list[str]:
    """Columns of a model's forecasts: those it was fitted on, if present and none are given."""
    if not given and of_model and set(of_model) <= set(columns):
        return list(of_model)
    return find_forecasts(given, columns, others)


def check_column(option: str, name: str, columns: Sequence[str]) -> str:
    """The name, if there is such a column."""
    if name not in columns:
        raise CommandError(f"{option}: no column {name!r}; {did_you_mean(name, columns)}")
    return name


def split_words(given: Sequence[str] | None) -> list[str] | None:
    """Words of an option that may be repeated and may hold several words separated by commas.

    Examples
    --------
    >>> split_words(["cat, dog", "bird"])
    ['cat', 'dog', 'bird']
    """
    if given is None:
        return None
    return [word.strip() for item in given for word in item.split(",") if word.strip()]


def _split(item: str) -> list[str]:
    """Words separated by commas; a regular expression may contain commas itself."""
    if item.startswith("/") and item.endswith("/") and len(item) > 2:
        return [item]
    return split_words([item]) or []


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
        raise CommandError(
            f"--probs {word}: no column matches; expected some of {', '.join(columns)}."
        )
    return found
