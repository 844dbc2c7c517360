"""All experiments with one call: data in, tables and figures out."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from isoroc._files import replacing
from isoroc._input import InputError
from isoroc._progress import progress
from isoroc.paper._cache import Cache
from isoroc.paper._data import Forecasts, load
from isoroc.paper._experiment import claims, experiment
from isoroc.paper._repetition import repeat
from isoroc.paper._results import Heading, to_json, to_markdown

#: Numbers of classes in the paper.
CLASSES = (2, 3, 4)
#: Number of random splits, the paper's own among them; and the number with `quick`.
N_SPLITS, N_QUICK = 50, 3
_QUICK_CLASSIFIERS = ("logistic regression", "naive Bayes")


class Reproduction(NamedTuple):
    """What `reproduce` computed and where it is."""

    #: Folder of results.md, results.json, figures/ and cache/.
    out: Path
    #: Content of results.json.
    results: dict[str, Any]
    n_computed: int
    n_reused: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"Wrote results.md, results.json and figures/ to {self.out} in {self.seconds:.0f} s; "
            f"{self.n_reused} of {self.n_reused + self.n_computed} results came from its cache/."
        )


def reproduce(
    data: str | Path | None = None,
    *,
    classes: Sequence[int] | None = None,
    out: str | Path = "build/paper",
    quick: bool = False,
    n_jobs: int | None = 2,
    verbose: bool = True,
) -> Reproduction:
    """Run the paper's experiments, next to isoroc's calibrator on the same data.

    Parameters
    ----------
    data : str or Path, default=None
        A Covertype CSV with a column ``Class``, ready forecasts (``.npz`` with the arrays
        `probas_cal`, `labels_cal`, `probas_test` and `labels_test`), or a data home of scikit-learn
        that contains Covertype. By default Covertype is downloaded; if that fails, the digits of
        scikit-learn are used instead and a warning says so.
    classes : sequence of int, default=None
        Numbers of classes. By default 2, 3 and 4, or the number of classes of ready forecasts.
    out : str or Path, default="build/paper"
        Folder to write to. Results in its folder ``cache`` are reused.
    quick : bool, default=False
        Repeat the experiment on three random splits with two classifiers instead of 50 with four.
    n_jobs : int, default=2
        Number of processes, as in joblib.
    verbose : bool, default=True
        Whether to show progress on standard error.

    Returns
    -------
    Reproduction
    """
    # Imported first, so that a missing extra is reported at once and not after minutes of work.
    from isoroc.paper import _figures as figures  # noqa: PLC0415

    start = perf_counter()
    out = Path(out)
    cache = Cache(out / "cache")
    source = load(data)
    chosen = _choose_classes(source, classes)
    note = "" if isinstance(source, Forecasts) else source.note
    if note:
        warnings.warn(note, stacklevel=2)
    with progress("reproducing", shown=verbose) as report:
        done, measured = [], []
        for K in chosen:
            report(f"K = {K}, forecasts")
            forecasts = source if isinstance(source, Forecasts) else source.forecasts(K)
            done.append(experiment(forecasts, cache, n_jobs=n_jobs, report=report))
            measured.append(claims(done[-1], cache))
        repetition = {}
        if not isinstance(source, Forecasts):
            seeds = range(1, 1 + (N_QUICK if quick else N_SPLITS))
            few = {"classifiers": _QUICK_CLASSIFIERS} if quick else {}
            repetition = repeat(
                source, chosen, seeds, cache=cache, n_jobs=n_jobs, report=report, **few
            )
        heading = Heading(source.title, note)
        results = to_json(heading, done, measured, repetition)
        _write(out / "results.json", json.dumps(results, indent=1) + "\n")
        _write(out / "results.md", to_markdown(heading, done, measured, repetition))
        for name, draw in figures.all_figures(done, repetition, cache).items():
            report(f"figure {name}")
            figures.save(draw(), out / "figures" / name)
    seconds = perf_counter() - start
    return Reproduction(out, results, cache.n_computed, cache.n_reused, seconds)


def _choose_classes(source: Any, classes: Sequence[int] | None) -> Sequence[int]:
    if classes and min(classes) < 2:
        raise InputError(
            "classes", None, f"{min(classes)} is not a number of classes", "expected 2 or more"
        )
    if not isinstance(source, Forecasts):
        return classes or CLASSES
    if classes and source.n_classes not in classes:
        raise InputError(
            "classes",
            None,
            f"the forecasts have {source.n_classes} classes, which is not among "
            f"{', '.join(map(str, classes))}",
        )
    return (source.n_classes,)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as new:
        new.write_text(text, encoding="utf-8")
