"""Calibrators beyond one machine: fitted to counts, applied to the dataframes of any engine."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from isoroc._calibrators import frames
from isoroc._counts import Counts
from isoroc._input import InputError, Sample, warn_if_reversed


class AtScale:
    """What every calibrator does with counts and with dataframes."""

    #: Whether cross-validation is part of the fit, so that the folds of counts are needed.
    uses_folds: ClassVar[bool] = False

    summary_: dict[str, Any]

    @abstractmethod
    def fit_validated(self, sample: Sample, P: Any = None) -> Self:
        """Fit to a sample whose parts have been checked."""

    def fit_counts(self, counts: Counts) -> Self:
        """Learn the calibration map from counts.

        Each cell stands for its rows with their mean forecast. If every cell holds one distinct
        forecast, the result is that of `fit`. Cross-validation uses the folds of the counts.

        Parameters
        ----------
        counts : Counts
            Of forecasts and outcomes.

        Returns
        -------
        self

        Examples
        --------
        >>> from isoroc import Counts, IsotonicCalibrator
        >>> counts = Counts.from_arrays([0.1, 0.3, 0.6, 0.9], [0, 1, 0, 1])
        >>> IsotonicCalibrator(pseudocount=0).fit_counts(counts).predict_proba([0.5])
        array([[0.5, 0.5]])
        """
        given: Any = counts
        if not isinstance(given, Counts):
            name = type(given).__name__
            raise TypeError(f"counts: expected Counts, got {name}; pass rows to fit.")
        sample = counts.sample(per_fold=self.uses_folds)
        if not len(sample):
            raise InputError("counts", None, "hold no rows", "at least one is needed")
        warn_if_reversed(sample)
        self.fit_validated(sample)
        self.summary_ = self.summary_ | {"rows": counts.n_rows}
        return self

    def predict_frame(
        self, df: Any, probs: str | Sequence[str], *, names: Sequence[str] | None = None
    ) -> Any:
        """Dataframe with columns of calibrated forecasts added, lazily where the engine is lazy.

        Parameters
        ----------
        df : dataframe
            Of pandas, polars (eager or lazy), pyarrow, DuckDB (a relation), Dask or PySpark.
        probs : str or sequence of str
            Columns of the forecasts, in the order of `classes_`, or the one column of scores.
        names : sequence of str, default=None
            Names of the new columns; ``calibrated_`` and the label by default.

        Returns
        -------
        dataframe
            Of the same type, with one new column for each class. A row that `predict_proba` would
            refuse, or that holds a missing value, gets missing values.

        Notes
        -----
        DuckDB runs the query of `isoroc.export.to_sql`, which requires sqlglot. Other
        engines call `predict_proba` on partitions or batches, so isoroc has to be installed where
        these are.

        Examples
        --------
        >>> import polars as pl
        >>> from isoroc import IsotonicCalibrator
        >>> calibrator = IsotonicCalibrator().fit([0.1, 0.3, 0.6, 0.9], ["no", "yes", "no", "yes"])
        >>> calibrator.predict_frame(pl.DataFrame({"p": [0.5]}), probs="p").columns
        ['p', 'calibrated_no', 'calibrated_yes']
        """
        probs = [probs] if isinstance(probs, str) else list(probs)
        return frames.predict_frame(self, df, probs, None if names is None else list(names))
