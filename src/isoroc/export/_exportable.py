"""What can be exported."""

from typing import Any

from isoroc._input import InputError
from isoroc._maps import Map
from isoroc._maps.modelfile.maps import LoadedMap


def check_exportable(fitted: Any) -> str:
    """Name of a calibrator, or of that of a loaded map; raises an error unless it is fitted."""
    if isinstance(getattr(fitted, "map_", None), Map):
        return fitted.calibrator if isinstance(fitted, LoadedMap) else type(fitted).__name__
    if hasattr(fitted, "fit_counts"):  # one of ours
        from sklearn.utils.validation import check_is_fitted  # noqa: PLC0415  # served maps need none

        check_is_fitted(fitted, "map_")
    fix = "expected a calibrator of isoroc; from a CalibratedClassifier, export calibrators_[0]"
    raise InputError("calibrator", None, f"is of type {type(fitted).__name__}", fix)
