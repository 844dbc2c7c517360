"""Ledger: weights and losses of the members of an online mixture, and what they guarantee."""

from dataclasses import dataclass, replace
from math import ceil, inf, log, log1p
from typing import Literal, Self

import numpy as np

from isoroc._core.types import Floats

#: What ages are counted in: rows, or the difference of times, which are numbers or dates.
ClockUnit = Literal["rows", "numbers", "days"]


@dataclass(frozen=True)
class RegretBound:
    """What the forecasts of an online mixture may lose against the best of its members.

    ``float(bound)`` is the number of nats, in total over all rows, and ``str(bound)`` a sentence.

    Attributes
    ----------
    nats : float
        The total log loss of the forecasts that were served exceeds the total of any member by at
        most this: ``(delay + 1) * log(n_members) + sharing + waiting``.
    n_members : int
        Number of members.
    delay : int
        Number of forecasts that may wait for their labels at no further cost.
    sharing : float
        Part that the fixed share has added. It grows with the number of batches.
    waiting : float
        Part that forecasts waiting for their labels have cost, as measured. It is 0 if at most
        ``delay + 1`` rows were served by each state and were labelled together.
    per_change : float
        Against the best sequence of members, each change of member adds at most this. Infinite
        without a fixed share.
    waited : int
        The most rows that were served by one state and were labelled together.
    late : int
        Rows that were served by an earlier state.

    Examples
    --------
    >>> from isoroc import OnlineCalibrator
    >>> calibrator = OnlineCalibrator(half_lives=[None, 300], share=0.0)
    >>> for p, y in [(0.2, 0), (0.7, 1), (0.4, 1)]:
    ...     calibrator = calibrator.partial_fit([p], [y], classes=[0, 1])
    >>> print(calibrator.regret_bound_)
    at most 1.10 nats more in total than the best of 3 members (ln 3), whatever the data
    """

    nats: float
    n_members: int
    delay: int
    sharing: float
    waiting: float
    per_change: float
    waited: int
    late: int

    def __float__(self) -> float:
        return self.nats

    def __str__(self) -> str:
        times = f"{self.delay + 1:,} x " if self.delay else ""
        parts = [f"{times}ln {self.n_members}"]
        parts += [f"{self.sharing:.2f} by the fixed share"] * (self.sharing > 0)
        is_known = self.waited <= self.delay + 1 and not self.late
        if not is_known:
            parts.append(f"{self.waiting:.2f} that waiting for labels has cost so far")
        text = f"at most {self.nats:.2f} nats more in total than the best of {self.n_members} "
        text += f"members ({' + '.join(parts)})"
        if is_known:
            return f"{text}, whatever the data"
        late = f" and {self.late:,} were served by an earlier state" if self.late else ""
        return f"{text}; up to {self.waited:,} forecasts waited together{late}"


@dataclass(frozen=True, eq=False, kw_only=True)
class Ledger:
    """Weights and total losses of the members so far.

    Weights follow Bayes' rule, with likelihoods to the power ``1 / (delay + 1)``. After each batch
    a share of the weight is divided equally among all members.
    """

    log_weights: Floats  # of each member, for the next rows, (M,)
    losses: Floats  # total log loss of each member, (M,)
    served: float = 0.0  # total log loss of the forecasts that were served
    mixed: float = 0.0  # total mix loss: of Bayes' mixture if no forecast waits and the delay is 0
    sharing: float = 0.0  # what sharing adds to the bound, nats
    per_change: float = 0.0  # what a change of the best member adds at most, nats
    delay: int = 0
    n_rows: int = 0
    n_batches: int = 0
    n_unfitted: int = 0  # rows since the members were fitted
    waited: int = 0  # the most rows that were labelled together
    late: int = 0  # rows that were served by an earlier state
    clock: float = 0.0  # rows, or the latest time
    unit: ClockUnit = "rows"  # of the clock and of half-lives

    @classmethod
    def begin(cls, n_members: int, delay: int, unit: ClockUnit = "rows") -> Self:
        """Equal weights, no losses."""
        weights = np.full(n_members, -log(n_members))
        clock = 0.0 if unit == "rows" else -inf
        return cls(
            log_weights=weights,
            losses=np.zeros(n_members),
            delay=delay,
            unit=unit,
            clock=clock,
        )

    @property
    def weights(self) -> Floats:
        """Weights of the members, which sum to one."""
        shares = np.exp(self.log_weights)
        return np.asarray(shares / shares.sum())

    def add(
        self,
        losses: Floats,
        served: float,
        n_rows: int,
        share: float,
        *,
        weight: float,
        late: bool,
    ) -> Self:
        """The ledger with the total losses of one batch: of each member, and as served.

        `share` of the weight of the members is then divided equally. `weight` is the rows' weight.
        """
        M = len(self.losses)
        power = 1 / (self.delay + 1)
        logs = self.log_weights - power * losses
        total = float(np.logaddexp.reduce(logs))
        logs -= total
        kept = 1 - share + share / M
        if share:
            logs = np.logaddexp(logs + log1p(-share), log(share / M))
            logs -= np.logaddexp.reduce(logs)
        change = log(M / share) / power if share else inf
        waited = max(n_rows, ceil(weight - 1e-9))
        return replace(
            self,
            log_weights=logs,
            losses=self.losses + losses,
            served=self.served + float(served),
            mixed=self.mixed - total / power,
            sharing=self.sharing - log(kept) / power,
            per_change=max(self.per_change, change),
            n_rows=self.n_rows + n_rows,
            n_batches=self.n_batches + 1,
            n_unfitted=self.n_unfitted + n_rows,
            waited=self.waited if late else max(self.waited, waited),
            late=self.late + n_rows * late,
        )

    @property
    def bound(self) -> RegretBound:
        """What the served forecasts may have lost against the best member."""
        M = len(self.losses)
        # With at most delay + 1 rows at a time it is 0, by Hölder's inequality.
        waiting = max(self.served - self.mixed, 0.0)
        return RegretBound(
            nats=(self.delay + 1) * log(M) + self.sharing + waiting,
            n_members=M,
            delay=self.delay,
            sharing=self.sharing,
            waiting=waiting,
            per_change=self.per_change,
            waited=self.waited,
            late=self.late,
        )
