"""Fuzzing of fits: every calibrator, with its defaults, on generated sets.

    python benchmarks/fits.py [--count N] [--start S] [--most-numbers M] [--jobs J]

Each set is made from its seed by tests/generated.py: 2 to 50 classes, 5 to 5,000 rows, saturated
and tied forecasts, exact zeros and ones, rare classes, any precision, weights over ten orders of
magnitude. A fit must return forecasts on the simplex or raise InputError, without a warning of
another package. Prints how many sets each calibrator took and refused, and every failure. A set
takes about four seconds of processor time, all of them more than five hours.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter

from joblib import Parallel, delayed

from isoroc._support.progress import progress

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from test_generated import KINDS, fit_and_check


def fit_all(seed: int, most_numbers: int) -> dict[str, bool | str]:
    """Whether each calibrator refused the set, or what went wrong."""
    found: dict[str, bool | str] = {}
    for name in KINDS:
        try:
            found[name] = fit_and_check(name, seed, most_numbers=most_numbers)
        except Exception as error:  # noqa: BLE001
            found[name] = f"seed {seed}, {name}: {type(error).__name__}: {error}"
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--most-numbers", type=int, default=20_000)
    parser.add_argument("--jobs", type=int, default=-1, help="processes; one per core by default")
    arguments = parser.parse_args()
    taken, refused, failed = Counter[str](), Counter[str](), 0
    start = perf_counter()
    seeds = range(arguments.start, arguments.start + arguments.count)
    jobs = Parallel(n_jobs=arguments.jobs, return_as="generator_unordered")
    with progress("fits", shown=True) as report:
        work = (delayed(fit_all)(seed, arguments.most_numbers) for seed in seeds)
        for count, results in enumerate(jobs(work), 1):
            report(f"{count:,} of {arguments.count:,} sets")
            for name, result in results.items():
                if isinstance(result, str):
                    failed += 1
                    print(result, flush=True)
                else:
                    (refused if result else taken)[name] += 1
    print(f"{'calibrator':>28} {'taken':>7} {'refused':>7}")
    for name in KINDS:
        print(f"{name:>28} {taken[name]:>7,} {refused[name]:>7,}")
    print(f"{arguments.count:,} sets in {perf_counter() - start:.0f} s, {failed} failures")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
