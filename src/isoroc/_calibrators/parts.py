"""Parts of a large sample, for what needs only some of its rows."""

from isoroc._input import Sample

PART_NUMBERS = 100_000  # numbers in a part: rows times classes
PART_ROWS = 1000  # its least number of rows


def draw_part(sample: Sample) -> Sample:
    """The sample, or random rows of it where it is large."""
    return sample.draw(max(PART_ROWS, PART_NUMBERS // sample.n_classes))
