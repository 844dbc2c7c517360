"""Public names that are imported at their first use, so that optional packages may be missing."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

import lazy_loader

#: Names in other packages, and what isoroc calls the same thing.
MEANT = {
    "PlattScaling": "isoroc.SigmoidCalibrator",
    "TemperatureScaling": "isoroc.TemperatureCalibrator",
    "brier_score": "isoroc.metrics.brier_score_loss",
    "calibration_intercept": "isoroc.metrics.calibration_summary",
    "calibration_slope": "isoroc.metrics.calibration_summary",
    "ece": "isoroc.metrics.expected_calibration_error",
    "ici": "isoroc.metrics.calibration_summary",
}


def attach(
    module: str, file: str, *, needs: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package whose stub lists the public names.

    `needs` says what to install for optional packages.
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
            problem = f"module {module!r} has no attribute {name!r}"
            if name in MEANT:
                problem += f". Did you mean {MEANT[name]}?"
                # ``from module import name`` would replace an AttributeError with another error.
                if sys._getframe(1).f_code.co_name == "_handle_fromlist":  # noqa: SLF001
                    raise ImportError(problem, name=module) from None
            # Given the module, Python suggests one of its names.
            raise AttributeError(problem, name=name, obj=sys.modules[module]) from None

    return get_or_explain, names, public
