"""``isoroc rate``: the rate of an outcome, from few labels and the scores of a judge."""

import numpy as np
import polars as pl

from isoroc._cli import options as opt
from isoroc._cli.batches import no_rows, read_numbers
from isoroc._cli.errors import CommandError
from isoroc._cli.io.columns import check_column, find_forecasts, find_label, split_words
from isoroc._cli.io.opening import open_source
from isoroc._cli.io.source import ROW
from isoroc._cli.terminal import print_json, print_table
from isoroc._core.types import Floats
from isoroc.metrics import RateEstimate, estimate_rate


def rate(
    forecasts: opt.Tables,
    /,
    *,
    selection: opt.Selection = opt.ALL_ROWS,
    by: str | None = None,
    confidence: float = 0.95,
    json: opt.Json = False,
) -> None:
    """Estimate the rate of an outcome from few labels and scores of all rows.

    Parameters
    ----------
    by
        Column of groups, such as models. Each has a rate, and its difference to the first.
    confidence
        Probability that an interval covers the rate.
    """
    if selection.weight is not None or selection.unit != "auto":
        raise CommandError("--weight and --unit: rate reads rows of equal weight and any score.")
    if selection.label_shares or selection.labels:
        raise CommandError("--label-shares, --labels: rate takes one outcome; use --label.")
    with open_source(forecasts, selection) as source:
        label = find_label(selection.label, source.schema)
        columns = find_forecasts(selection.probs, source.schema, [label, by])
        if len(columns) > 1:
            raise CommandError(f"--probs: {len(columns)} columns; name the one of the scores.")
        used = [ROW, label, *columns]
        if by is not None:
            used.append(check_column("--by", by, source.schema))
        table = source.rows(selection.where).select(used).collect()
        if table.is_empty():
            raise no_rows(source, selection.where)
        y, classes = _outcomes(table[label], split_words(selection.classes))
        scores = read_numbers(table, columns[0], source)
    known = ~np.isnan(y)
    whole = pl.repeat("all rows", len(y), eager=True)
    keys = whole if by is None else table[by].cast(pl.String).fill_null("")
    rates = dict[str, RateEstimate]()
    sizes = {}
    for name in keys.unique(maintain_order=True):
        rows = (keys == name).to_numpy()
        parts = y[rows & known], scores[rows & known], scores[rows & ~known]
        sizes[name] = len(parts[0]), len(parts[2])
        if not min(sizes[name]):
            missing = "labels" if not sizes[name][0] else "rows without a label"
            raise CommandError(f"{name}: no {missing}; rate needs rows of both kinds.")
        rates[name] = estimate_rate(*parts, confidence=confidence)
    first, *others = rates
    gaps = {name: rates[name].minus(rates[first]) for name in others}
    if json:
        entries = [
            {"group": name, "rate": vars(rates[name]), "difference": gaps.get(name)}
            for name in rates
        ]
        print_json("rate", {"outcome": classes[-1], "confidence": confidence, "rates": entries})
        return
    lines = []
    interval = "{0.low:.3f} to {0.high:.3f}"
    for name, estimate in rates.items():
        line = [name, *(f"{n:,}" for n in sizes[name]), f"{estimate.value:.3f}"]
        line += [interval.format(part) for part in (estimate, estimate.labels_alone)]
        gap = gaps.get(name)
        difference = f"{gap.value:+.3f}, {interval.format(gap)}" if gap else ""
        lines.append([*line, f"{estimate.n_effective:,.0f}", difference])
    level = f"{100 * confidence:g} % interval"
    head = ["", "labels", "others", "rate", level, "labels alone", "worth labels"]
    head += [f"difference to {first}"] if gaps else []
    print_table(f"Rate of {classes[-1]}", head, [line[: len(head)] for line in lines], numeric=True)


def _outcomes(values: pl.Series, classes: list[str] | None) -> tuple[Floats, list[str]]:
    """0, 1 or NaN for each row, and the two outcomes."""
    texts = values.cast(pl.String).str.strip_chars().str.replace(r"^(-?\d+)\.0+$", "$1")
    texts = texts.replace(["", "NaN", "nan", "null", "NA"], None)
    seen = sorted(texts.drop_nulls().unique().to_list())
    for pair in (["0", "1"], ["false", "true"]):
        if classes is None and set(map(str.lower, seen)) <= set(pair):
            texts = texts.str.to_lowercase()
            seen = pair
            classes = pair
    outcomes = seen if classes is None else classes
    if len(outcomes) != 2 or not set(seen) <= set(outcomes):
        fix = "expected two; name them with --classes, the one of interest last"
        raise CommandError(f"--label: the outcomes are {', '.join(seen) or 'missing'}; {fix}.")
    codes = texts.replace_strict(outcomes, [0.0, 1.0], default=None, return_dtype=pl.Float64)
    return codes.fill_null(float("nan")).to_numpy(), outcomes
