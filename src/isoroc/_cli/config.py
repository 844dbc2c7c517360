"""``isoroc.toml``: options of the commands in a file."""

import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

from isoroc._cli.errors import CommandError, did_you_mean
from isoroc._cli.options import InputOptions, Selection
from isoroc._cli.texts import COMMANDS

#: The file that is read if it exists and ``--config`` names no other.
DEFAULT = "isoroc.toml"
#: Section whose options hold for every command that has them.
_COMMON = "columns"
_OF_ROWS = [field.name.replace("_", "-") for field in fields(Selection)]
_ACCEPTED = {
    "apply": [field.name.replace("_", "-") for field in fields(InputOptions)],
    **dict.fromkeys(("fit", "count", "evaluate", "monitor", "report", "plot"), _OF_ROWS),
}
_SHORT = {"label": ("-l", "-y"), "probs": ("-p",), "weight": ("-w",), "output": ("-o",),
          "calibrator": ("-c",), "model": ("-m",)}  # fmt: skip


def with_options_of_file(words: list[str], config: str | None) -> list[str]:
    """Words of a command line, followed by the options of a file that they do not contain."""
    if not words or words[0] not in COMMANDS or {"--help", "-h"} & set(words):
        return words
    path = Path(config or DEFAULT)
    if config is None and not path.is_file():
        return words
    sections = _read(path)
    common = sections.get(_COMMON, {})
    for name in common:
        if name not in _OF_ROWS:
            raise CommandError(f"{path}: [{_COMMON}] {name}: {did_you_mean(name, _OF_ROWS)}")
    # Rows and columns of counts were chosen when they were counted.
    accepted = () if "--counts" in words else _ACCEPTED.get(words[0], ())
    options = {name: value for name, value in common.items() if name in accepted}
    options |= sections.get(words[0], {})
    return words + [word for name in options for word in _words(name, options[name], words)]


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        with path.open("rb") as file:
            sections = tomllib.loads(file.read(2**20).decode())  # a device may never end
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: {error}.") from error
    known = [_COMMON, *COMMANDS]
    for name, options in sections.items():
        if name not in known or not isinstance(options, dict):
            raise CommandError(f"{path}: {name} is not a section; {did_you_mean(name, known)}")
    return {
        section: {name.replace("_", "-"): value for name, value in options.items()}
        for section, options in sections.items()
    }


def _words(name: str, value: Any, given: list[str]) -> list[str]:
    """An option as words; none if the command line has it already."""
    option = f"--{name}"
    spelled = (option, *_SHORT.get(name, ()))
    if any(word in spelled or word.startswith(f"{option}=") for word in given):
        return []
    if isinstance(value, bool):
        return [option] if value else []
    values = value if isinstance(value, list) else [value]
    return [word for item in values for word in (option, str(item))]
