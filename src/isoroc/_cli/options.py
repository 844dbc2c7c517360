"""Arguments and options that several commands have."""

from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Group, Parameter

#: What ``-`` becomes before options are parsed: a hyphen would start an option.
STANDARD = "<standard>"

Forecasts = Annotated[list[str], Parameter(help="Files, globs, folders, or - for standard input.")]
ModelFile = Annotated[str, Parameter(help="Model file written by isoroc fit, or --model FILE.")]
UseModel = Annotated[
    str | None, Parameter(alias="-m", help="Model file, to compare before and after calibration.")
]
Output = Annotated[str, Parameter(alias="-o")]
Force = Annotated[
    bool, Parameter(help="Replace an existing file of another kind, such as a model by a table.")
]
Json = Annotated[bool, Parameter(help="Print JSON.")]
Resamples = Annotated[
    int, Parameter(help="Resamples for the interval of the volume of three classes; 0: none.")
]
Clusters = Annotated[
    str | None,
    Parameter(help="Column of clusters of rows that may depend on each other, such as patients."),
]
SegmentColumns = Annotated[
    list[str] | None,
    Parameter(help="Columns of segments, separated by commas: where the forecasts are wrong."),
]
_ROWS = Group.create_ordered("Rows and columns")


@Parameter(name="*", group=_ROWS)
@dataclass(frozen=True, kw_only=True)
class InputOptions:
    """Which forecasts are read, and from which format."""

    probs: Annotated[list[str] | None, Parameter(alias="-p")] = None
    """Columns of the forecasts, separated by commas: names and globs `p_*`. Default: those of the
    model, or columns named `p_*`, `proba_*`, `p0`, `p1`, ... or `score`. For two classes one column
    is enough: any score that increases with the probability of the second class."""
    classes: list[str] | None = None
    """Class of each column of `--probs`, separated by commas, if it does not follow from the names
    of the columns. The scores of a single column increase with the probability of its class."""
    by_position: bool = False
    """The columns of `--probs` are in the order of the classes, or of the columns that the model
    was fitted on, whatever their names."""
    where: str | None = None
    """Use only rows that satisfy this SQL condition: "day >= '2025-01-01' AND y IS NOT NULL"."""
    format: str | None = None
    """Format of the input, if it follows from neither name nor content: csv, tsv, ndjson, parquet,
    arrow."""
    separator: str | None = None
    """Separator of the fields of CSV files, or tab. Default: the one of comma, semicolon, tab and |
    that splits the header."""


@dataclass(frozen=True, kw_only=True)
class Selection(InputOptions):
    """Which rows of forecasts and outcomes are read."""

    label: Annotated[str | None, Parameter(alias=("-l", "-y"))] = None
    """Column of the outcomes. Default: the column named y, label, target, outcome or y_true."""
    unit: Literal[
        "auto", "probability", "percent", "proportion", "logit", "log_probability", "rank"
    ] = "auto"
    """What the forecasts are. `auto` takes several columns for probabilities, and a single one for
    log odds if a value lies outside [0, 1]."""
    weight: Annotated[str | None, Parameter(alias="-w")] = None
    """Column of the weights of the rows, or none. Default: that of the model, if there is one."""
    sample: float | None = None
    """Use only this fraction of the rows, such as 0.1, chosen at random but always the same."""


#: What is read if the user names neither rows nor columns.
EVERYTHING, ALL_ROWS = InputOptions(), Selection()
