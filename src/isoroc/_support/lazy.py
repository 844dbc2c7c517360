"""Public names that are imported at their first use, so that optional packages may be missing."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import lazy_loader

#: Names in other packages, and the names here.
ELSEWHERE = {
    "PlattScaling": "isoroc.SigmoidCalibrator",
    "calibration_intercept": "isoroc.metrics.calibration_summary",
    "calibration_slope": "isoroc.metrics.calibration_summary",
    "ece": "isoroc.metrics.expected_calibration_error",
    "ici": "isoroc.metrics.calibration_summary",
}


def attach(
    module: str, file: str, *, needs: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package; its stub lists the public names.

    `needs` says what to install for optional packages. Errors about missing names suggest one.
    """
    get, names, public = lazy_loader.attach_stub(module, file)
    extras = needs or {}

    def get_or_explain(name: str) -> Any:
        try:
            return get(name)
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package not in extras:
                raise
            install = extras[package]
            raise ImportError(f"{module}.{name} needs {package}: pip install {install}") from error
        except AttributeError:
            known = name.startswith("_") or name in public
            if known or not (hint := _suggest(module, name, public)):
                raise
            # ``from module import name`` first asks whether the module has the name. It would
            # replace an AttributeError by an error without the hint.
            is_import = sys._getframe(1).f_code.co_name == "_handle_fromlist"  # noqa: SLF001
            kind = ImportError if is_import else AttributeError
            raise kind(f"{module} has no attribute {name!r}. {hint}") from None

    return get_or_explain, names, public


def _suggest(module: str, name: str, public: list[str]) -> str:
    """A question with the public name that a user may have meant."""
    from isoroc._support.hints import did_you_mean  # noqa: PLC0415  # only after mistakes

    if name in ELSEWHERE:
        return f"Did you mean {ELSEWHERE[name]!r}?"
    parts = [part for part in public if part.islower() and find_spec(f"{module}.{part}")]
    inside = [
        f"{part}.{public_name}"
        for part in parts
        for public_name in import_module(f"{module}.{part}").__all__
    ]
    return did_you_mean(name, [*public, *inside])
