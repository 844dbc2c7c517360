"""Versions of file formats: older files are migrated, newer ones refused."""

import re
from collections.abc import Callable, Sequence
from typing import Any

Document = dict[str, Any]


def migrate(
    document: Document,
    newest: int,
    steps: Sequence[Callable[[Document], Document]] = (),
    *,
    key: str = "version",
) -> Document:
    """A document in the newest version of its format.

    Each step turns a document of one version into the next, and the last step leads to the newest.
    Other versions raise a `ValueError` with a problem and a fix.
    """
    version = document.get(key)
    oldest = newest - len(steps)
    if type(version) is not int or version < oldest:
        known = f"expected format version {newest}" + (f" or from {oldest} on" if steps else "")
        raise ValueError(f"{known}, got {ascii(version)[:40]}", "Save it again with this version")
    if version > newest:
        from importlib.metadata import version as version_of  # noqa: PLC0415  # slow to import

        library = str(document.get("library"))
        is_release = re.fullmatch(r"[0-9][0-9a-z.+]{0,30}", library)
        problem = f"format version {ascii(version)[:40]} is newer than {newest}, which is the "
        problem += f"newest that isoroc {version_of('isoroc')} reads"
        wanted = f"isoroc {library} or later" if is_release else "the latest isoroc"
        raise ValueError(problem, f"Install {wanted}")
    for step in steps[version - oldest :]:
        document = step(document)
    return document | {key: newest}
