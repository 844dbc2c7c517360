"""How the members of a mixture forecast rows that they have not seen, and what follows."""

from __future__ import annotations

import numpy as np

from isoroc._simplex import Floats, Ints
from isoroc._table import Table


def score_members(names: list[str], weights: Floats, losses: Floats, row_weights: Floats) -> Table:
    """Mean loss of each member, and gain over the last column, the forecasts as they are."""
    gains = losses[:, -1:] - losses[:, :-1]
    loss, loss_error = _mean_and_error(losses[:, :-1], row_weights)
    gain, gain_error = _mean_and_error(gains, row_weights)
    return Table(
        member=np.array(names),
        weight=weights,
        log_loss=loss,
        log_loss_se=loss_error,
        gain=gain,
        gain_se=gain_error,
    )


def _mean_and_error(values: Floats, row_weights: Floats) -> tuple[Floats, Floats]:
    share = row_weights / row_weights.sum()
    mean = share @ values
    return mean, np.sqrt(share**2 @ (values - mean) ** 2)


def losses_by_fold(names: list[str], losses: Floats, row_weights: Floats, fold: Ints) -> Table:
    table = Table(member=np.array(names))
    for held_out in range(fold.max() + 1):
        inside = fold == held_out
        table[f"fold{held_out}"] = np.average(
            losses[inside, : len(names)], axis=0, weights=row_weights[inside]
        )
    return table


def verdict(scores: Table) -> str:
    """Whether the mixture, the last row, is better than the forecasts beyond noise."""
    loss, gain, error = (float(scores[name][-1]) for name in ("log_loss", "gain", "gain_se"))
    change = f"log loss {loss + gain:.4f} before, {loss:.4f} after on unseen rows"
    if gain <= 2 * error:
        return f"leave it: no member improves on the forecasts beyond noise ({change})"
    return f"calibrate: {change}, better by {gain:.4f} (standard error {error:.4f})"
