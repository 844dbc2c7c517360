"""Report: forecasts before and after calibration on one page."""

from __future__ import annotations

import html
import json
import os
from typing import Any, Self

from numpy.typing import ArrayLike

from isoroc._counts import Counts
from isoroc._input import UnitOption
from isoroc._maps.loading import LoadedMap
from isoroc._report.summary import gather_counts, gather_rows, summarize
from isoroc._support.files import replacing


class Report:
    """Forecasts before and after calibration on one page, as a single HTML file.

    The page needs no network and no script: style and pictures are in the file. A notebook shows
    the report if it is the value of a cell.

    Parameters
    ----------
    y, P : array-like
        Labels and forecasts before calibration, as in `isoroc.evaluate`. Use rows that the
        calibrator was not fitted on.
    calibrator : calibrator or LoadedMap, default=None
        A fitted calibrator of isoroc. Its certificate and code that applies it are part of the
        report.
    after : array-like of shape (n, K) or (n,), default=None
        Forecasts after calibration. By default the calibrator makes them.
    labels, sample_weight, clusters, segments, multilabel, unit
        As in `isoroc.evaluate`. Classes and unit default to the calibrator's, and a
        `MultiLabelCalibrator` implies ``multilabel=True``.
    title : str, default="Calibration report"
        Title of the page.
    model_path : str, default="model.json"
        Name of the model file in the code that applies the calibrator.
    clinical : bool, default=False
        Add the table of `isoroc.metrics.calibration_summary`, which is usual in reports on clinical
        prediction models, for up to eight classes.

    Attributes
    ----------
    summary : dict
        Everything that the page shows, as plain values. ``summary["version"]`` is the version of
        its layout.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import IRPCalibrator, Report
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> y = rng.random(4000) < p**2
    >>> calibrator = IRPCalibrator().fit(p[:2000], y[:2000])
    >>> report = Report.from_estimator(calibrator, p[2000:], y[2000:])
    >>> print(report.summary["verdict"]["sentences"][0])
    In 201 rows class True had a probability of 0.5 to 0.6 (mean 0.55) and came true in 30 % of
    them; after calibration its probability is 0.31 on average.
    >>> page = report.to_html("report.html")  # doctest: +SKIP
    """

    def __init__(
        self,
        y: ArrayLike,
        P: ArrayLike,
        *,
        calibrator: Any = None,
        after: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        segments: Any = None,
        multilabel: bool = False,
        unit: UnitOption = "auto",
        title: str = "Calibration report",
        model_path: str = "model.json",
        clinical: bool = False,
    ) -> None:
        evidence = gather_rows(
            y,
            P,
            sample_weight,
            labels,
            unit,
            calibrator=calibrator,
            after=after,
            segments=segments,
            clusters=clusters,
            multilabel=multilabel,
        )
        self.summary = summarize(evidence, title, model_path, clinical=clinical)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> Self:
        """Report about the forecasts of a classifier, or forecasts before and after calibration.

        Parameters
        ----------
        estimator : calibrator, LoadedMap or classifier
            Fitted. The report of a `CalibratedClassifier` with one calibrator has its certificate.
            With several calibrators it only has the forecasts before and after.
        X, y : array-like
            Forecasts for a calibrator or features for a classifier, and labels. Use rows that the
            estimator was not fitted on.
        **options
            Other arguments of `Report`. `segments` are also passed to a `SegmentCalibrator`.
        """
        from isoroc._calibrators.base import Calibrator  # noqa: PLC0415  # scikit-learn, 1 s
        from isoroc._evaluation.forecasts import forecasts_of, unwrap  # noqa: PLC0415

        estimator, X = unwrap(estimator, X)
        before, after, classes = forecasts_of(estimator, X, options.get("segments"))
        if isinstance(estimator, Calibrator | LoadedMap):
            before = X
            options["calibrator"] = estimator
        return cls(y, before, **{"after": after, "labels": classes} | options)

    @classmethod
    def from_counts(cls, counts: Counts, *, calibrator: Any = None, **options: Any) -> Self:
        """Report from counts of any number of rows.

        Losses and decisions are based on all cells. Everything else is based on rows drawn from
        the cells, all of them if there are not many.

        Parameters
        ----------
        counts : Counts
            Counts of rows that the calibrator was not fitted on.
        calibrator : calibrator or LoadedMap, default=None
            A fitted calibrator of isoroc that takes probabilities.
        **options
            `title`, `model_path` and `clinical`.
        """
        report = cls.__new__(cls)
        report.summary = summarize(gather_counts(counts, calibrator), **options)
        return report

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """The page, also written to a file if a path is given. Requires jinja2."""
        try:
            from isoroc._report.page import render  # noqa: PLC0415 -- jinja2 may be missing
        except ModuleNotFoundError:
            raise ImportError("Report.to_html needs jinja2: pip install jinja2") from None
        page = render(self.summary)
        if path is not None:
            with replacing(path) as new:
                new.write_text(page, encoding="utf-8")
        return page

    def to_json(self) -> str:
        """The summary as JSON."""
        return json.dumps(self.summary, ensure_ascii=False, allow_nan=False)

    def _repr_html_(self) -> str:
        # A separate frame keeps the style of the page out of the notebook.
        page = html.escape(self.to_html())
        title = html.escape(self.summary["title"])
        style = "width:100%;height:720px;border:1px solid #8886;border-radius:6px"
        return f'<iframe srcdoc="{page}" title="{title}" sandbox="" style="{style}"></iframe>'

    def __repr__(self) -> str:
        return "\n".join([self.summary["title"], *self.summary["verdict"]["sentences"]])
