"""What users pass, validated in one place: forecasts, labels and weights become a `Sample`.

Every refusal is an `InputError` that names the argument, the row and the fix.
"""

from isoroc._input.arrays import SLICE as SLICE
from isoroc._input.arrays import check_length as check_length
from isoroc._input.arrays import in_order as in_order
from isoroc._input.arrays import slices as slices
from isoroc._input.arrays import to_array as to_array
from isoroc._input.arrays import with_readable_names as with_readable_names
from isoroc._input.error import InputError as InputError
from isoroc._input.error import check_choices as check_choices
from isoroc._input.error import check_confidence as check_confidence
from isoroc._input.error import check_names as check_names
from isoroc._input.error import check_number as check_number
from isoroc._input.error import check_option as check_option
from isoroc._input.outcomes import Aspect as Aspect
from isoroc._input.outcomes import check_after as check_after
from isoroc._input.outcomes import check_every_class as check_every_class
from isoroc._input.outcomes import check_outcomes as check_outcomes
from isoroc._input.outcomes import check_probabilities as check_probabilities
from isoroc._input.outcomes import split_by_kind as split_by_kind
from isoroc._input.plausible import check_units as check_units
from isoroc._input.plausible import find_reversal as find_reversal
from isoroc._input.plausible import range_of as range_of
from isoroc._input.plausible import warn_if_reversed as warn_if_reversed
from isoroc._input.rows import WEIGHT_FIX as WEIGHT_FIX
from isoroc._input.rows import Names as Names
from isoroc._input.rows import categories_of as categories_of
from isoroc._input.rows import check_clusters as check_clusters
from isoroc._input.rows import check_groups as check_groups
from isoroc._input.rows import check_order as check_order
from isoroc._input.rows import check_two_classes as check_two_classes
from isoroc._input.rows import check_weights as check_weights
from isoroc._input.rows import encode_labels as encode_labels
from isoroc._input.rows import rows_by_group as rows_by_group
from isoroc._input.rows import valid_weights as valid_weights
from isoroc._input.sample import CellSample as CellSample
from isoroc._input.sample import Sample as Sample
from isoroc._input.sample import UnitOption as UnitOption
from isoroc._input.sample import Weighting as Weighting
from isoroc._input.sample import check_forecasts as check_forecasts
from isoroc._input.sample import check_new as check_new
from isoroc._input.sample import check_sample as check_sample
from isoroc._input.sample import deal_folds as deal_folds
from isoroc._input.sample import first_improbable as first_improbable
from isoroc._input.sample import join_samples as join_samples
from isoroc._input.sample import resolve_unit as resolve_unit
from isoroc._input.sample import valid_rows as valid_rows
from isoroc._input.segments import Segments as Segments
from isoroc._input.segments import check_segments as check_segments
from isoroc._input.shares import check_numbers as check_numbers
from isoroc._input.shares import check_shares as check_shares
from isoroc._input.shares import check_unlabelled as check_unlabelled
from isoroc._input.shares import listed as listed
from isoroc._input.shares import numbers_by_class as numbers_by_class
