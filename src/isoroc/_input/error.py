"""InputError: what was wrong with what the user passed."""

from __future__ import annotations


class InputError(ValueError):
    """Input that cannot be used: which argument, which row, what is wrong and what to do.

    Attributes
    ----------
    argument : str
        Name of the argument.
    row : int or None
        The first offending row, where one is to blame.
    problem : str
        What is wrong.
    fix : str
        What was expected, or how to get there.

    Examples
    --------
    >>> error = InputError("P", 3, "sums to 1.1, not to 1", "pass probabilities")
    >>> str(error)
    'P: row 3 sums to 1.1, not to 1; pass probabilities.'
    >>> error.row
    3
    """

    def __init__(self, argument: str, row: int | None, problem: str, fix: str = "") -> None:
        super().__init__(argument, row, problem, fix)
        self.argument = argument
        self.row = row
        self.problem = problem
        self.fix = fix

    def __str__(self) -> str:
        row = "" if self.row is None else f"row {self.row} "
        fix = f"; {self.fix}" if self.fix else ""
        return f"{self.argument}: {row}{self.problem}{fix}."
