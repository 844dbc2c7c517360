"""What users pass, validated in one place: forecasts, labels and weights become a `Sample`.

Every refusal is an `InputError` that names the argument, the row and the fix.
"""

from isoroc._input.arrays import SLICE, check_length, slices, to_array
from isoroc._input.columns import column_names, in_order, match_columns, with_readable_names
from isoroc._input.error import InputError
from isoroc._input.forecasts import (
    Scores,
    check_forecasts,
    check_new,
    first_improbable,
    resolve_scores,
    valid_rows,
)
from isoroc._input.groups import Names, check_groups, rows_by_group
from isoroc._input.labels import check_two_classes, encode_labels
from isoroc._input.orientation import Reversal, find_reversal, warn_if_reversed
from isoroc._input.outcomes import (
    Kind,
    check_after,
    check_every_class,
    check_outcomes,
    check_probabilities,
    split_by_kind,
)
from isoroc._input.parameters import check_choices, check_confidence, check_number, check_option
from isoroc._input.sample import CellSample, Sample, check_sample
from isoroc._input.units import check_units, range_of
from isoroc._input.weights import check_counts, check_weights

__all__ = [
    "SLICE",
    "CellSample",
    "InputError",
    "Kind",
    "Names",
    "Reversal",
    "Sample",
    "Scores",
    "check_after",
    "check_choices",
    "check_confidence",
    "check_counts",
    "check_every_class",
    "check_forecasts",
    "check_groups",
    "check_length",
    "check_new",
    "check_number",
    "check_option",
    "check_outcomes",
    "check_probabilities",
    "check_sample",
    "check_two_classes",
    "check_units",
    "check_weights",
    "column_names",
    "encode_labels",
    "find_reversal",
    "first_improbable",
    "in_order",
    "match_columns",
    "range_of",
    "resolve_scores",
    "rows_by_group",
    "slices",
    "split_by_kind",
    "to_array",
    "valid_rows",
    "warn_if_reversed",
    "with_readable_names",
]
