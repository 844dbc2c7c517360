"""Maps in model files: everything is checked, nothing is executed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, fields
from inspect import isabstract
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoroc import _maps
from isoroc._backends import ops_for
from isoroc._core.types import Floats
from isoroc._input import InputError, check_new
from isoroc._input.kinds import KINDS, Kind, Unit
from isoroc._input.seen import remember_output
from isoroc._maps.base import Map
from isoroc._maps.bins import BinMap
from isoroc._maps.modelfile import Fault, checks, decode, encode, read
from isoroc._maps.modelfile.checks import ROUNDING
from isoroc._maps.modelfile.document import entries, faults_of
from isoroc._maps.segments import apply_map
from isoroc._support.table import Table

#: All maps, by the names of their classes.
MAPS: dict[str, type[Map]] = {
    name: found
    for name, found in vars(_maps).items()
    if name.endswith("Map") and not isabstract(found)
}
MAX_CLASSES = 10_000  # limits the time that loading a file can take


def map_document(fitted: Any, place: str) -> dict[str, Any]:
    """The schema's ``map`` for a map and those inside it."""
    if not isinstance(fitted, Map):
        name = type(fitted).__name__
        raise InputError(place, None, f"{name} cannot be stored in a model file")
    states = {name: getattr(fitted, name) for name in fitted.states()}
    numbers = encode(states, f"{place}.numbers", map_document)["items"]
    name = type(fitted).__name__
    return {"type": "map", "kind": name, "forecasts": fitted.kind.name, "numbers": numbers}


def map_from(document: dict[str, Any], place: str) -> Map:
    """The map of a document. Whether its numbers fit together is not checked."""
    entries(document, place, ("type", "kind", "forecasts", "numbers"))
    name = str(document["kind"])
    forecasts = str(document["forecasts"])
    map_type = MAPS.get(name) if document["type"] == "map" else None
    if map_type is None:
        raise Fault(f"{place}.kind", f"{name[:100]!a} is not a map of this version")
    if forecasts not in KINDS:
        raise Fault(f"{place}.forecasts", f"expected {' or '.join(KINDS)}")
    required = [f.name for f in fields(map_type) if "check" in f.metadata and f.default is MISSING]
    numbers = document["numbers"], map_type.states(), f"{place}.numbers"
    return map_type(kind=KINDS[forecasts], **decode_known(*numbers, map_from, required))


def decode_known(
    values: Any,
    known: Iterable[str],
    place: str,
    make: Callable[[dict[str, Any], str], Any],
    required: Iterable[str] = (),
) -> dict[str, Any]:
    """Decoded values by name. Raises a `Fault` if one is unknown or a required one is missing."""
    given = entries(values, place, required, known)
    return {name: decode(value, f"{place}.{name}", make) for name, value in given.items()}


@dataclass(frozen=True, eq=False, repr=False)
class LoadedMap:
    """A map from a model file: what it takes to serve a calibrator, without scikit-learn.

    Attributes
    ----------
    map_, calibrator
        The map that the calibrator applies to forecasts, and the name of the calibrator's class.
    classes_, n_features_in_, summary_, checksum
        As in `IdentityCalibrator`.
    names : list of str or None
        Names of the columns of the forecasts, if `fit` saw any.
    parameters : dict
        Parameters of the calibrator, as the file has them.
    state : dict
        What else the calibrator learned, by the names of its attributes.
    """

    map_: Map
    calibrator: str
    classes_: NDArray[Any]
    n_features_in_: int
    names: list[str] | None
    parameters: dict[str, Any]
    state: dict[str, Any]
    summary_: dict[str, Any]
    checksum: str

    def __repr__(self) -> str:
        return f"LoadedMap({self.calibrator}, {len(self.classes_)} classes, {self.map_!r})"

    @property
    def unit_(self) -> Unit:
        """Unit of the forecasts, given to `fit` or inferred: "probability", "logit" or another."""
        return self.map_.kind.unit

    def predict_proba(self, P: Any, segments: Any = None) -> Floats:
        """Calibrated forecasts, shape (n, K). Pass `segments` if the calibrator uses any."""
        ops = ops_for(P)
        values = check_new(P, self.map_.kind, self.n_features_in_, self.summary_, ops)
        Q = apply_map(self.map_, values, segments)
        remember_output(Q, self.summary_)
        return ops.like(P, Q)  # type: ignore[no-any-return]

    def tables(self) -> dict[str, Table]:
        """Tables of fitted attributes, such as the bins and the path of a tree."""
        tables = {name: value for name, value in self.state.items() if isinstance(value, Table)}
        if isinstance(self.map_, BinMap):
            names = [str(label) for label in self.classes_]
            tables |= {"bins_": self.map_.bins(names), "path_": self.map_.path(names)}
        return tables

    def certificate(self) -> Any:
        """The guarantee that the map has, if it has one."""
        return self.state.get("certificate_") or self.map_.certificate(len(self.classes_))


def load_map(path: str | os.PathLike[str]) -> LoadedMap:
    """Load the map of a model file. It makes the same forecasts as the saved calibrator.

    Unlike `isoroc.load`, it imports neither scikit-learn nor SciPy, so it is the quickest way to
    serve a model.

    Parameters
    ----------
    path : path-like
        A file that a calibrator's `save` or ``isoroc fit`` wrote.

    Returns
    -------
    LoadedMap
        The map, with `predict_proba`.

    Raises
    ------
    ModelFileError
        As `isoroc.load` does.

    Examples
    --------
    >>> import os, tempfile
    >>> import isoroc
    >>> calibrator = isoroc.IRPCalibrator().fit([0.1, 0.3, 0.7, 0.9], ["no", "yes", "no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.json")
    ...     calibrator.save(path)
    ...     served = load_map(path)
    >>> served.predict_proba([0.2, 0.8]).shape
    (2, 2)
    """
    # The state is for `isoroc inspect` and reports, which show these.
    shown_state = {
        "verdict_": checks.verdict,
        "certificate_": checks.certificate,
        "member_scores_": checks.table,
    }
    document = read(path)
    with faults_of(path):
        model = document["model"]
        parameters = model["parameters"]
        decode_known(parameters, parameters, "model.parameters", _as_document)
        state = decode_known(model["state"], model["state"], "model.state", _as_document)
        fitted = checked_map(model, state)
        for name, check in shown_state.items():
            if name in state:
                check(state[name], f"model.state.{name}", {})
    names = state.pop("feature_names_in_", None)
    return LoadedMap(
        map_=fitted,
        calibrator=model["kind"],
        classes_=state.pop("classes_"),
        n_features_in_=state.pop("n_features_in_"),
        names=None if names is None else names.tolist(),
        parameters=parameters,
        state=state,
        summary_=document["summary"],
        checksum=document["checksum"],
    )


def _as_document(document: dict[str, Any], place: str) -> dict[str, Any]:
    """Check the values of a calibrator inside another one, which are not used."""
    if document["type"] != "calibrator":
        raise Fault(place, "expected a calibrator")
    for part in ("parameters", "state"):
        decode_known(document[part], document[part], f"{place}.{part}", _as_document)
    if "map" in document:
        map_from(document["map"], f"{place}.map")
    return document


def checked_map(model: dict[str, Any], state: dict[str, Any]) -> Map:
    """The map of a calibrator's document, checked by making forecasts."""
    if "map" not in model:
        raise Fault("model.map", "is missing")
    try:
        with np.errstate(all="ignore"):
            fitted = map_from(model["map"], "model.map")
            K = _check_common(state, fitted.kind)
            fitted.check(K)
            _check_forecasts(fitted, K)
    except Fault as fault:
        known = fault.place.startswith("model.")
        place = fault.place if known else f"model.map.numbers.{fault.place}"
        raise Fault(place, fault.problem) from fault
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        problem = f"no forecasts can be made from it ({ascii(str(error))[1:100]})"
        raise Fault("model.map", problem) from error
    return fitted


def _check_common(state: dict[str, Any], kind: Kind) -> int:
    """Check classes and columns, and return K."""
    classes = state.get("classes_")
    if not isinstance(classes, np.ndarray) or classes.ndim != 1:
        raise Fault("model.state.classes_", "expected an array")
    n_columns = state.get("n_features_in_")
    K = len(classes)
    least = 1 + kind.exclusive
    if not least <= K <= MAX_CLASSES:
        problem = f"expected {least} to {MAX_CLASSES} classes, got {K}"
        raise Fault("model.state.classes_", problem)
    if len(set(classes.tolist())) != K or any(c != c for c in classes.tolist()):  # noqa: PLR0124
        raise Fault("model.state.classes_", "the classes are not distinct")
    wrong = n_columns != (1 if kind.single else K) or (kind.single and K != 2)
    if wrong or type(n_columns) is not int:
        problem = f"expected the number of columns of {kind.name} of {K} classes"
        raise Fault("model.state.n_features_in_", problem)
    names = state.get("feature_names_in_", np.array([""] * n_columns, dtype=object))
    if not isinstance(names, np.ndarray) or names.shape != (n_columns,) or names.dtype != object:
        raise Fault("model.state.feature_names_in_", f"expected {n_columns} names")
    return K


def _check_forecasts(fitted: Map, n_classes: int) -> None:
    """Check that forecasts of the vertices and the centre are valid probabilities."""
    if fitted.kind.single:
        values = np.array([0.0, 0.5, 1.0])
    else:
        values = np.full((3, n_classes), 1 / n_classes)
        values[:2] = 0.0
        values[0, 0] = values[1, -1] = 1.0
        values = fitted.kind.from_simplex(values)
    Q = fitted.apply(values)
    off = np.abs(Q.sum(axis=1) - 1) if fitted.kind.exclusive else Q - 1
    if Q.shape != (len(values), n_classes) or not ((Q >= 0).all() and (off < ROUNDING).all()):
        raise Fault("model.map", "the forecasts made from it are not valid probabilities")
