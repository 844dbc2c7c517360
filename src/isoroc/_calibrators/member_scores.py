"""How the members of a mixture forecast rows that they have not seen, and what follows."""

from __future__ import annotations

import numpy as np

from isoroc._simplex import Floats, Ints
from isoroc._table import Table

#: A gain of more standard errors than this is beyond noise.
SIGNIFICANT = 2.0


def bounded_losses(likelihood: Floats, row_weights: Floats, n_classes: int) -> Floats:
    """Log loss of each row when forecasts are mixed with the uniform one, of the weight of one row.

    It is at most ``log(K * (n + 1))``, so that no single row can decide a mean over n rows.

    Examples
    --------
    >>> import numpy as np
    >>> bounded_losses(np.array([0.0, 0.5, 1.0]), np.ones(3), 2).round(2)
    array([2.08, 0.69, 0.13])
    """
    total = row_weights.sum()
    return np.asarray(-np.log((total * likelihood + 1 / n_classes) / (total + 1)))


def score_members(
    names: list[str], weights: Floats, losses: Floats, row_weights: Floats, *, counted: bool
) -> Table:
    """Mean loss of each member, and gain over the last column, the forecasts as they are.

    Rows are cells of several rows each if `counted`, so a weight of two is two independent rows.
    """
    gains = losses[:, -1:] - losses[:, :-1]
    loss, loss_error = mean_and_error(losses[:, :-1], row_weights, counted=counted)
    gain, gain_error = mean_and_error(gains, row_weights, counted=counted)
    return Table(
        member=np.array(names),
        weight=weights,
        log_loss=loss,
        log_loss_se=loss_error,
        gain=gain,
        gain_se=gain_error,
    )


def mean_and_error(values: Floats, row_weights: Floats, *, counted: bool) -> tuple[Floats, Floats]:
    """Weighted mean of each column, and its standard error."""
    total = row_weights.sum()
    share = row_weights / total
    mean = share @ values
    return mean, np.sqrt((share / total if counted else share**2) @ (values - mean) ** 2)


def losses_by_fold(names: list[str], losses: Floats, row_weights: Floats, fold: Ints) -> Table:
    table = Table(member=np.array(names))
    for held_out in range(fold.max() + 1):
        inside = fold == held_out
        table[f"fold{held_out}"] = np.average(
            losses[inside, : len(names)], axis=0, weights=row_weights[inside]
        )
    return table


def verdict(scores: Table, impossible: int, n_rows: int) -> str:
    """Whether the mixture, the last row, is better than the forecasts beyond noise.

    Parameters
    ----------
    scores : Table
        As `score_members` returns it.
    impossible, n_rows : int
        Rows whose outcome was given probability 0, and all rows.
    """
    loss, gain, error = (float(scores[name][-1]) for name in ("log_loss", "gain", "gain_se"))
    change = f"log loss {loss + gain:.4f} before, {loss:.4f} after on unseen rows"
    if gain > SIGNIFICANT * error:
        text = f"calibrate: {change}, better by {gain:.4f} (standard error {error:.4f})"
    else:
        text = f"leave it: no improvement on the forecasts beyond noise ({change})"
    if impossible:
        text += f"; {impossible} of {n_rows} outcomes had been given probability 0"
    return text
