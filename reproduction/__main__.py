"""All experiments with one command: data in, tables and figures out."""

from __future__ import annotations

import argparse
import json
import logging
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

from joblib import parallel_config

from reproduction import figures
from reproduction.data import CLASSIFIERS, Forecasts, load
from reproduction.experiments import claims, experiment, repeat
from reproduction.results import Heading, to_json, to_markdown

#: Number of random splits, the paper's own among them, and the number with --quick.
N_SPLITS = 50
N_QUICK = 3
QUICK_CLASSIFIERS = ("logistic regression", "naive Bayes")

log = logging.getLogger(__name__)


def reproduce(
    source: Any, classes: list[int] | None = None, *, out: Path, quick: bool = False
) -> dict[str, Any]:
    """Run the experiments next to isoroc's calibrator on the same data, and return the JSON.

    Parameters
    ----------
    source : Rows or Forecasts
        The data.
    classes : list of int, default=None
        Numbers of classes. By default 2, 3 and 4. Ready forecasts have theirs.
    out : Path
        Folder of results.md, results.json and figures/.
    quick : bool, default=False
        Repeat the experiment on three random splits with two classifiers instead of 50 with four.
    """
    if isinstance(source, Forecasts):
        heading = Heading(source.title)
        repetition = {}
        done = [experiment(source)]
    else:
        heading = Heading(source.title, source.note)
        if source.note:
            warnings.warn(source.note, stacklevel=2)
        classes = classes or [2, 3, 4]
        done = [experiment(source.forecasts(K)) for K in classes]
        seeds = range(1, 1 + (N_QUICK if quick else N_SPLITS))
        classifiers = QUICK_CLASSIFIERS if quick else tuple(CLASSIFIERS)
        repetition = repeat(source, classes, seeds, classifiers)
    measured = [claims(each) for each in done]
    results = to_json(heading, done, measured, repetition)
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    page = to_markdown(heading, done, measured, repetition)
    (out / "results.md").write_text(page, encoding="utf-8")
    for name, draw in figures.all_figures(done, repetition).items():
        log.info("figure %s", name)
        figures.save(draw(), out / "figures" / name)
    return results


def numbers(text: str) -> list[int]:
    """Numbers of classes that are separated by commas."""
    found = [int(word) for word in text.split(",")]
    if min(found) < 2:
        raise ValueError(text)
    return found


def main(words: list[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m reproduction", description=__doc__)
    parser.add_argument(
        "--data",
        help="a Covertype CSV with a column Class, ready forecasts (.npz), or a data home of "
        "scikit-learn; by default Covertype is downloaded",
    )
    parser.add_argument(
        "--classes", type=numbers, help="numbers of classes of rows; by default 2,3,4"
    )
    parser.add_argument("--out", type=Path, default=Path("build/paper"), help="folder to write to")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="repeat on three random splits with two classifiers instead of 50 with four",
    )
    options = parser.parse_args(words)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    start = perf_counter()
    try:
        source = load(options.data)
    except (OSError, ValueError) as error:
        parser.error(f"--data: {error}")
    with parallel_config(n_jobs=2):
        reproduce(source, options.classes, out=options.out, quick=options.quick)
    seconds = perf_counter() - start
    print(f"Wrote results.md, results.json and figures/ to {options.out} in {seconds:.0f} s.")


if __name__ == "__main__":
    main()
