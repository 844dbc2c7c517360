"""Arguments and options that several commands have."""

from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Group, Parameter

#: What ``-`` becomes before options are parsed: a hyphen would start an option.
STANDARD = "<standard>"
#: Default ending of the names of calibrated columns.
SUFFIX = "_cal"

Tables = Annotated[list[str], Parameter(help="Files, globs, folders, or - for standard input.")]
ModelFile = Annotated[str, Parameter(help="Model file written by isoroc fit.")]
UseModel = Annotated[
    str | None, Parameter(alias="-m", help="Model file, to compare before and after calibration.")
]
UseRule = Annotated[
    str | None, Parameter(help="Rule written by isoroc accept: which rows may be accepted.")
]
Output = Annotated[str, Parameter(alias="-o")]
FromCounts = Annotated[
    bool, Parameter(help="The files are counts, written by isoroc count or by a warehouse.")
]
Suffix = Annotated[str, Parameter(help="Ending of the names of the calibrated columns.")]
CalibratedNames = Annotated[
    list[str] | None,
    Parameter(help="Names of the calibrated columns in the order of the classes of the model."),
]
Json = Annotated[bool, Parameter(help="Print JSON.")]
_ROWS = Group.create_ordered("Rows and columns")


@Parameter(name="*", group=_ROWS)
@dataclass(frozen=True, kw_only=True)
class InputOptions:
    """Which forecasts are read, and from which format."""

    probs: Annotated[list[str] | None, Parameter(alias="-p")] = None
    """Columns of the forecasts, separated by commas: names, or globs such as `p_*`. Default: the
    columns of the model, or those named `p_*`, `proba_*`, `p0`, `p1`, ... or `score`. For two
    classes one column is enough: a score that increases with the probability of the second."""
    classes: list[str] | None = None
    """Class of each column of `--probs`, separated by commas, if the names of the columns do not
    end in it. A single column holds scores that increase with the probability of its class: give
    this class, or both, its own last."""
    by_position: bool = False
    """Ignore the names of the columns of `--probs`: they are in the order of the classes, or of the
    columns that the model was fitted to."""
    where: str | None = None
    """Use only rows that satisfy this SQL condition: "day >= '2025-01-01' AND y IS NOT NULL"."""
    format: str | None = None
    """Format of the input, if neither name nor content shows it: csv, tsv, ndjson, parquet,
    arrow."""
    separator: str | None = None
    """Field separator of CSV files: one character, or tab. Default: whichever of comma, semicolon,
    tab and | splits the header into most columns."""


@dataclass(frozen=True, kw_only=True)
class Selection(InputOptions):
    """Which rows of forecasts and outcomes are read."""

    label: Annotated[str | None, Parameter(alias=("-l", "-y"))] = None
    """Column of the outcomes. Default: the column named y, label, target, outcome or y_true."""
    labels: list[str] | None = None
    """Columns of labels that do not exclude each other, separated by commas: 1 if a row has the
    label, 0 if not, empty if it is not known. Their names end in the labels, as the names
    of the forecasts do."""
    label_shares: list[str] | None = None
    """Columns of soft labels, separated by commas: the share of each class in a row, such as the
    share of annotators. Their names end in the classes, as the names of the forecasts do."""
    unit: Literal[
        "auto", "probability", "percent", "proportion", "logit", "log_probability", "rank"
    ] = "auto"
    """Unit of the forecasts. `auto` reads several columns as probabilities, and a single one as log
    odds if a value lies outside [0, 1]."""
    weight: Annotated[str | None, Parameter(alias="-w")] = None
    """Column of row weights, or `none`. Default: the weight column of the model, if any."""


@Parameter(name="*", group=_ROWS)
@dataclass(frozen=True, kw_only=True)
class Description:
    """Columns that describe the rows."""

    segments: list[str] | None = None
    """Columns of segments, separated by commas: names or globs. `fit` corrects the forecasts within
    them. Other commands show where the forecasts are wrong."""
    categorical: list[str] | None = None
    """Columns of `--segments` whose numbers are categories, such as zip codes."""
    clusters: str | None = None
    """Column of clusters. Rows of one cluster, such as a patient, are dependent."""


#: Default input: columns that are found by name.
EVERYTHING = InputOptions()
#: Default selection: all rows.
ALL_ROWS = Selection()
#: Default description: no columns.
UNDESCRIBED = Description()
