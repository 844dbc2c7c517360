"""One command for all of it: data in, tables and figures out."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from isoroc._progress import progress
from isoroc.paper._cache import Cache, replacing
from isoroc.paper._data import Forecasts, load
from isoroc.paper._experiment import claims, experiment
from isoroc.paper._repetition import repeat
from isoroc.paper._results import Heading, to_json, to_markdown

#: Numbers of classes in the paper.
CLASSES = (2, 3, 4)
#: Random splits of the repetition, the paper's own among them; and when it should be quick.
N_SPLITS, N_QUICK = 50, 3
_QUICK_CLASSIFIERS = ("logistic regression", "naive Bayes")


class Reproduction(NamedTuple):
    """What `reproduce` wrote and found."""

    #: Where everything is: results.md, results.json, figures/ and cache/.
    out: Path
    results: dict[str, Any]
    n_computed: int
    n_reused: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.out / 'results.md'}, results.json and figures/ beside it: "
            f"{self.seconds:.0f} s, {self.n_reused} of {self.n_reused + self.n_computed} pieces "
            "reused from cache/."
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
    """Run the paper's experiments, next to isoroc's calibrator, and write tables and figures.

    Parameters
    ----------
    data : str or Path, default=None
        A Covertype CSV, ready forecasts (``.npz``) or a data home of scikit-learn, see
        `isoroc.paper._data.load`; by default Covertype is fetched.
    classes : sequence of int, default=None
        Numbers of classes; 2, 3 and 4 by default, and that of the forecasts where they are ready.
    out : str or Path, default="build/paper"
        Folder to write to. What it holds in ``cache/`` is used again.
    quick : bool, default=False
        Repeat on few splits with two classifiers only, for a look.
    n_jobs : int, default=2
        Processes, as in joblib.
    verbose : bool, default=True
        Whether to show progress on standard error.
    """
    # First of all, so that a missing extra shows now and not after minutes of work.
    from isoroc.paper import _figures as figures  # noqa: PLC0415

    start = perf_counter()
    out = Path(out)
    cache = Cache(out / "cache")
    source = load(data)
    chosen = _choose_classes(source, classes)
    note = getattr(source, "note", "")
    if verbose and note:
        print(note, file=sys.stderr)  # noqa: T201
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
        page = to_markdown(heading, done, measured, repetition)
        for name, text in (
            ("results.json", json.dumps(results, indent=1) + "\n"),
            ("results.md", page),
        ):
            with replacing(out / name) as beside:
                beside.write_text(text, encoding="utf-8")
        for name, draw in figures.all_of(done, repetition, cache).items():
            report(f"figure {name}")
            figures.save(draw(), out / "figures" / name)
    seconds = perf_counter() - start
    return Reproduction(out, results, cache.n_computed, cache.n_reused, seconds)


def _choose_classes(source: Any, classes: Sequence[int] | None) -> Sequence[int]:
    if not isinstance(source, Forecasts):
        return classes or CLASSES
    if classes and source.n_classes not in classes:
        raise ValueError(
            f"classes: the forecasts have {source.n_classes} classes, which is not among "
            f"{', '.join(map(str, classes))}."
        )
    return (source.n_classes,)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of ``python -m isoroc.paper``."""
    parser = argparse.ArgumentParser(
        prog="python -m isoroc.paper",
        description="The experiments and figures of 'Classifier Calibration with ROC-Regularized "
        "Isotonic Regression', next to isoroc's calibrator.",
    )
    parser.add_argument(
        "--data",
        help="a Covertype CSV with a column Class, ready forecasts (.npz), or a data home of "
        "scikit-learn; by default Covertype is fetched",
    )
    parser.add_argument(
        "--classes", type=_parse_classes, help="numbers of classes, by default 2,3,4"
    )
    parser.add_argument("--out", default="build/paper", help="folder to write to (%(default)s)")
    parser.add_argument(
        "--quick", action="store_true", help="few splits and two classifiers in the repetition"
    )
    options = parser.parse_args(arguments)
    try:
        print(reproduce(**vars(options)))  # noqa: T201
    except (ValueError, OSError, ImportError) as error:
        parser.exit(1, f"{error}\n")


def _parse_classes(text: str) -> tuple[int, ...]:
    classes = tuple(int(part) for part in text.split(","))
    if min(classes) < 2:
        raise argparse.ArgumentTypeError("expected numbers of classes from 2, such as 2,3,4")
    return classes
