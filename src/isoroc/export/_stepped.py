"""Maps that are constant on bins: trees, means of trees, and step functions of each class."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from isoroc._calibrators.bagging import BaggedIRPCalibrator
from isoroc._calibrators.binned import BinCalibrator
from isoroc._calibrators.irp import IRPCalibrator
from isoroc._calibrators.one_vs_rest import OneVsRestCalibrator
from isoroc._simplex import Floats
from isoroc._top import TopReduction
from isoroc._tree import BinTree
from isoroc.export._writer import C, Writer, map_of


@map_of.register
def _(calibrator: BinCalibrator, w: Writer[C], columns: Sequence[C]) -> list[C]:
    return _bin_values(w, calibrator.tree_, calibrator.bin_values_, columns)


@map_of.register
def _(calibrator: IRPCalibrator, w: Writer[C], columns: Sequence[C]) -> list[C]:
    points, expand = _reduced(w, calibrator.reduction_, columns)
    return expand(_bin_values(w, calibrator.tree_, calibrator.bin_values_, points))


@map_of.register
def _(calibrator: BaggedIRPCalibrator, w: Writer[C], columns: Sequence[C]) -> list[C]:
    if len(columns) < 3:
        cuts, values = calibrator._steps()  # noqa: SLF001
        return w.look_up(values, w.locate(cuts, columns[-1]))
    of_turns = []
    n_turns = len(calibrator.reductions_)
    for turn, reduction in enumerate(calibrator.reductions_):
        points, expand = _reduced(w, reduction, columns)
        of_trees = []
        for t in range(turn, len(calibrator.trees_), n_turns):
            values = calibrator._bin_values(t)  # noqa: SLF001
            of_trees.append(w.keep(_bin_values(w, calibrator.trees_[t], values, points)))
        of_turns.append(w.keep(expand([w.run(q) for q in zip(*of_trees, strict=True)])))
    n_trees = w.number(len(calibrator.trees_))
    return [w.divide(w.run(q), n_trees) for q in zip(*of_turns, strict=True)]


@map_of.register
def _(calibrator: OneVsRestCalibrator, w: Writer[C], columns: Sequence[C]) -> list[C]:
    steps = list(zip(calibrator.cuts_, calibrator._step_values(), strict=True))  # noqa: SLF001
    own = columns if len(steps) > 1 else columns[-1:]
    Q = [
        q
        for (cuts, values), column in zip(steps, own, strict=True)
        for q in w.look_up(values[:, None], w.locate(cuts, column))
    ]
    if len(Q) == 1:
        return [w.subtract(w.number(1.0), *w.keep(Q)), *Q]
    Q = w.keep(Q)
    [total] = w.keep([w.total(Q)])
    return [w.divide(q, total) for q in Q]


def _bin_values(w: Writer[C], tree: BinTree, values: Floats, columns: Sequence[C]) -> list[C]:
    """Values of the bins in which forecasts lie."""
    binary = tree.n_classes == 2
    return w.look_up(values, w.locate(tree.cuts, columns[-1]) if binary else w.route(tree, columns))


def _reduced(
    w: Writer[C], reduction: TopReduction | None, columns: Sequence[C]
) -> tuple[Sequence[C], Callable[[list[C]], list[C]]]:
    """Forecasts as a tree takes them, and how to get forecasts of all classes from its values."""
    if reduction is None:
        return columns, lambda Q: Q
    zero, left = w.number(0.0), list(columns)
    largest, places = [], []
    for _ in range(reduction.top):
        value, place = w.keep(w.largest(left))
        largest.append(value)
        places.append(place)
        left = w.keep(w.where(w.is_at(place, k), w.number(-1.0), c) for k, c in enumerate(left))
    rest = w.maximum(w.subtract(w.number(1.0), w.total(largest)), zero)
    floor = w.number(reduction.floor)
    shares = w.keep(
        w.where(w.at_most(zero, c), w.add(p, floor), zero)
        for c, p in zip(left, columns, strict=True)
    )
    [total] = w.keep([w.total(shares)])

    def expand(Q: list[C]) -> list[C]:
        *of_ranks, of_rest = w.keep(Q)
        [ratio] = w.keep([w.divide(of_rest, total)])
        expanded = []
        for k, share in enumerate(shares):
            value = w.multiply(share, ratio)
            for place, q in zip(places, of_ranks, strict=True):
                value = w.where(w.is_at(place, k), q, value)
            expanded.append(value)
        return expanded

    return w.keep([*largest, rest]), expand
