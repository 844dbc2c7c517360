"""BaggedIRPMap: the mean of trees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from isoroc._core.rows import locate
from isoroc._maps import written
from isoroc._maps.base import CalibrationMap
from isoroc._persistence import states
from isoroc._simplex import Floats, binary_scores
from isoroc._top import TopReduction
from isoroc._tree import BinTree
from isoroc._writer import C, Writer


class BaggedIRPMap(CalibrationMap):
    """What `BaggedIRPCalibrator` learns."""

    trees_: list[BinTree]
    reductions_: list[TopReduction | None]
    priors_: list[Floats]
    pseudocount_: float

    fitted_state: ClassVar[dict[str, states.Check]] = {
        "pseudocount_": states.number(most=states.LARGEST_WEIGHT),
        "reductions_": states.list_of(states.anything, "turns"),
        "priors_": states.list_of(states.anything, "turns"),
        "trees_": states.list_of(states.anything),
    }

    def _of_each_tree(self, forecasts: Floats) -> Iterator[Floats]:
        """Calibrated forecasts of one tree after the other, shape (n, K)."""
        points = [forecasts if r is None else r.reduce(forecasts) for r in self.reductions_]
        for t, tree in enumerate(self.trees_):
            turn = t % len(points)
            Q = np.take(self.tree_values(t), tree.bin_of(points[turn]), axis=0)
            reduction = self.reductions_[turn]
            yield Q if reduction is None else reduction.expand(Q, forecasts)

    def tree_values(self, t: int) -> Floats:
        """Values of the bins of tree t."""
        tree, prior = self.trees_[t], self.priors_[t % len(self.priors_)]
        return tree.values(self.pseudocount_, prior)[tree.bins]

    def steps(self) -> tuple[Floats, Floats]:
        """For two classes the mean of all trees as one step function: cuts, and values (m, 2)."""
        cuts = np.unique(np.concatenate([tree.cuts for tree in self.trees_]))
        ends = np.append(cuts, np.inf)  # the largest score of each step
        return cuts, np.asarray(sum(self._of_each_tree(ends)) / len(self.trees_))

    def _calibrate(self, forecasts: Floats) -> Floats:
        if forecasts.ndim == 1 or forecasts.shape[1] == 2:
            cuts, values = self.steps()
            return np.take(values, locate(cuts, binary_scores(forecasts)), axis=0)
        total: Any = 0.0
        for turn, reduction in enumerate(self.reductions_):
            points = forecasts if reduction is None else reduction.reduce(forecasts)
            Q: Any = 0.0
            for t in range(turn, len(self.trees_), len(self.reductions_)):
                Q += np.take(self.tree_values(t), self.trees_[t].bin_of(points), axis=0)
            # Forecasts of all classes depend linearly on those of the ranks: once is enough.
            total += Q if reduction is None else reduction.expand(Q, forecasts)
        return np.asarray(total / len(self.trees_))

    def _write(self, w: Writer[C], columns: Sequence[C]) -> list[C]:
        if len(columns) < 3:
            cuts, values = self.steps()
            return w.look_up(values, w.locate(cuts, columns[-1]))
        of_turns = []
        for turn, reduction in enumerate(self.reductions_):
            points, expand = (columns, None) if reduction is None else reduction.write(w, columns)
            of_trees = [
                w.keep(written.bin_values(w, self.trees_[t], self.tree_values(t), points))
                for t in range(turn, len(self.trees_), len(self.reductions_))
            ]
            total = [w.run(q) for q in zip(*of_trees, strict=True)]
            of_turns.append(w.keep(total if expand is None else expand(total)))
        n_trees = w.number(len(self.trees_))
        return [w.divide(w.run(q), n_trees) for q in zip(*of_turns, strict=True)]

    def _check_fitted(self, n_classes: int) -> None:
        """Check the fitted attributes, each tree against its turn."""
        super()._check_fitted(n_classes)
        of_turns = []
        for turn, (reduction, prior) in enumerate(zip(self.reductions_, self.priors_, strict=True)):
            sizes = {"K": n_classes}
            states.reduction("R")(reduction, f"reductions_[{turn}]", sizes)
            states.probabilities("R")(prior, f"priors_[{turn}]", sizes)
            of_turns.append(sizes)
        for t, tree in enumerate(self.trees_):
            states.tree("R")(tree, f"trees_[{t}]", of_turns[t % len(of_turns)])
