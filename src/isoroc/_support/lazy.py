"""Public names that are imported at their first use, so that optional packages may be missing."""

from collections.abc import Callable
from typing import Any

import lazy_loader


def attach(
    module: str, file: str, needs: dict[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__``, ``__all__``; `needs`: what to install for optional packages."""
    get, names, public = lazy_loader.attach_stub(module, file)

    def get_or_explain(name: str) -> Any:
        try:
            return get(name)
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package not in needs:
                raise
            install = needs[package]
            raise ImportError(f"{module}.{name} needs {package}: pip install {install}") from error

    return get_or_explain, names, public
