"""What must hold for the fitted attributes of each calibrator that came from a file."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

import numpy as np

from isoroc._calibrators.auto import AutoCalibrator
from isoroc._calibrators.bagging import BaggedIRPCalibrator
from isoroc._calibrators.base import Calibrator
from isoroc._calibrators.binned import BinCalibrator
from isoroc._calibrators.identity import IdentityCalibrator
from isoroc._calibrators.irp import IRPCalibrator
from isoroc._calibrators.matrix import MatrixCalibrator
from isoroc._calibrators.one_vs_rest import OneVsRestCalibrator
from isoroc._calibrators.spline import SplineCalibrator
from isoroc._calibrators.temperature import TemperedCalibrator
from isoroc._monotonicity import Certificate
from isoroc._persistence import Fault, check_array
from isoroc._table import Table
from isoroc._top import TopReduction
from isoroc._tree import BinTree

#: What probabilities may be off by when they are summed.
ROUNDING = 1e-6
#: No fit comes near; sums and products of numbers within cannot overflow.
LARGEST_WEIGHT, LARGEST_COEFFICIENT = 1e300, 1e100


@singledispatch
def check_state(calibrator: Calibrator, n_classes: int) -> None:
    """Raise a Fault where fitted attributes have a wrong type, shape or range for K classes.

    Every kind registers its check here: nothing unchecked reaches the compiled loops.
    """
    raise Fault("", f"{type(calibrator).__name__} for {n_classes} classes cannot be checked")


@check_state.register
def _(calibrator: AutoCalibrator, n_classes: int) -> None:
    members = _check_list(calibrator.members_, "members_")
    _check_probabilities(calibrator.weights_, "weights_", len(members))
    for name in ("member_scores_", "cv_results_"):
        if not isinstance(getattr(calibrator, name), Table):
            raise Fault(name, "expected a table")
    if not isinstance(calibrator.verdict_, str):
        raise Fault("verdict_", "expected a sentence")
    for m, member in enumerate(members):
        place = f"members_[{m}]"
        if not isinstance(member, Calibrator):
            raise Fault(place, "expected a calibrator")
        try:
            check_state(member, n_classes)
        except Fault as fault:
            raise Fault(f"{place}.{fault.place}", fault.problem) from fault


@check_state.register
def _(calibrator: BinCalibrator, n_classes: int) -> None:
    _check_bins(calibrator, n_classes)


@check_state.register
def _(calibrator: IRPCalibrator, n_classes: int) -> None:
    _check_bins(calibrator, _check_reduction(calibrator.reduction_, "reduction_", n_classes))
    certificate: Any = calibrator.certificate_
    if certificate is not None and not (
        isinstance(certificate, Certificate)
        and np.array_equal(certificate.thresholds, calibrator.tree_.thresholds)
    ):
        raise Fault("certificate_", "expected the certificate of this tree")


@check_state.register
def _(calibrator: BaggedIRPCalibrator, n_classes: int) -> None:
    _check_number(calibrator.pseudocount_, "pseudocount_", most=LARGEST_WEIGHT)
    n_turns = len(_check_list(calibrator.reductions_, "reductions_"))
    _check_list(calibrator.priors_, "priors_", n_turns)
    _check_list(calibrator.trees_, "trees_")
    sizes = []
    for turn, (reduction, prior) in enumerate(
        zip(calibrator.reductions_, calibrator.priors_, strict=True)
    ):
        sizes.append(_check_reduction(reduction, f"reductions_[{turn}]", n_classes))
        _check_probabilities(prior, f"priors_[{turn}]", sizes[-1])
    for t, tree in enumerate(calibrator.trees_):
        _check_tree(tree, f"trees_[{t}]", sizes[t % n_turns])


@check_state.register
def _(calibrator: OneVsRestCalibrator, n_classes: int) -> None:
    n_maps = 1 if n_classes == 2 else n_classes
    for m, cuts in enumerate(_check_list(calibrator.cuts_, "cuts_", n_maps)):
        check_array(cuts, f"cuts_[{m}]", shape=(None,))
        if not (np.diff(cuts) >= 0).all():
            raise Fault(f"cuts_[{m}]", "expected ascending numbers")
    for name in calibrator._fitted:  # noqa: SLF001
        if name != "cuts_":
            for m, values in enumerate(_check_list(getattr(calibrator, name), name, n_maps)):
                check_array(values, f"{name}[{m}]", shape=(len(calibrator.cuts_[m]) + 1,))
                if not ((values >= 0) & (values <= 1)).all():
                    raise Fault(f"{name}[{m}]", "expected numbers between 0 and 1")


@check_state.register
def _(calibrator: IdentityCalibrator, n_classes: int) -> None:  # noqa: ARG001
    _check_bool(calibrator.log_odds_, "log_odds_")


@check_state.register
def _(calibrator: TemperedCalibrator, n_classes: int) -> None:  # noqa: ARG001
    _check_tempered(calibrator)


@check_state.register
def _(calibrator: MatrixCalibrator, n_classes: int) -> None:
    _check_tempered(calibrator)
    ndim = np.ndim(calibrator.coef_)
    _check_coefficients(calibrator, "coef_", (n_classes,) * (1 if ndim == 1 else 2))
    for name in ("quadratic_", "intercept_"):
        _check_coefficients(calibrator, name, (n_classes,))
    _check_coefficients(calibrator, "penalty_", (4,))


@check_state.register
def _(calibrator: SplineCalibrator, n_classes: int) -> None:
    _check_bool(calibrator.log_odds_, "log_odds_")
    _check_number(calibrator.floor_, "floor_", above=0.0, most=1.0)
    _check_number(calibrator.smoothing_, "smoothing_", most=1.0)
    _check_coefficients(calibrator, "knots_", (None,))
    _check_coefficients(calibrator, "coef_", (n_classes, n_classes))
    _check_coefficients(calibrator, "slopes_", (n_classes, len(calibrator.knots_)))
    _check_coefficients(calibrator, "intercept_", (n_classes,))


def _check_bins(calibrator: BinCalibrator, n_classes: int) -> None:
    _check_tree(calibrator.tree_, "tree_", n_classes)
    _check_probabilities(calibrator.prior_, "prior_", n_classes)
    _check_number(calibrator.pseudocount, "pseudocount", most=LARGEST_WEIGHT)


def _check_tree(tree: Any, place: str, n_classes: int) -> None:
    if not isinstance(tree, BinTree) or tree.n_classes != n_classes:
        raise Fault(place, f"expected a tree of {n_classes} classes")


def _check_probabilities(values: Any, place: str, length: int) -> None:
    check_array(values, place, shape=(length,))
    if (values < 0).any() or abs(values.sum() - 1) > ROUNDING:
        raise Fault(place, "expected numbers >= 0 that sum to 1")


def _check_reduction(reduction: Any, place: str, n_classes: int) -> int:
    """Check a reduction of so many classes; how many classes it leaves."""
    if reduction is None:
        return n_classes
    if not isinstance(reduction, TopReduction) or reduction.top > n_classes - 2:
        raise Fault(place, f"expected a reduction of {n_classes} classes, or none")
    return reduction.top + 1


def _check_coefficients(calibrator: Any, name: str, shape: tuple[int | None, ...]) -> None:
    array = check_array(getattr(calibrator, name), name, shape=shape)
    if (np.abs(array) > LARGEST_COEFFICIENT).any():
        raise Fault(name, "expected smaller numbers")


def _check_tempered(calibrator: TemperedCalibrator) -> None:
    _check_bool(calibrator.log_odds_, "log_odds_")
    _check_number(calibrator.floor_, "floor_", above=0.0, most=1.0)
    _check_number(calibrator.temperature_, "temperature_", above=1e-100, most=1e100)
    _check_number(calibrator.smoothing_, "smoothing_", most=1.0)


def _check_list(values: Any, place: str, length: int | None = None) -> list[Any]:
    if not isinstance(values, list) or not values or length not in (None, len(values)):
        raise Fault(place, f"expected a list of {length or 'one or more'}")
    return values


def _check_bool(value: Any, place: str) -> None:
    if not isinstance(value, bool):
        raise Fault(place, "expected true or false")


def _check_number(value: Any, place: str, *, most: float, above: float = -math.inf) -> None:
    """Refuse what is not a number >= 0 in the given range."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not (0 <= value <= most and above < value):
        raise Fault(place, "expected a number in its range")
