"""Fuzzing of fits: every calibrator, with its defaults, on generated sets.

    python benchmarks/fits.py [--count N] [--start S] [--most-numbers M]

Each set is made from its seed by tests/generated.py: 2 to 50 classes, 5 to 5,000 rows, saturated
and tied forecasts, exact zeros and ones, rare classes, any precision, weights over ten orders of
magnitude. A fit must return forecasts on the simplex or raise InputError, without a warning of
another package. Prints how many sets each calibrator took and refused, and every failure.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from test_generated import KINDS, fit_and_check


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--most-numbers", type=int, default=20_000)
    arguments = parser.parse_args()
    taken, refused, failed = Counter[str](), Counter[str](), 0
    start = perf_counter()
    for seed in range(arguments.start, arguments.start + arguments.count):
        for name in KINDS:
            try:
                was_refused = fit_and_check(name, seed, most_numbers=arguments.most_numbers)
            except Exception as error:  # noqa: BLE001
                failed += 1
                print(f"seed {seed}, {name}: {type(error).__name__}: {error}", flush=True)
                continue
            (refused if was_refused else taken)[name] += 1
    print(f"{'calibrator':>28} {'taken':>7} {'refused':>7}")
    for name in KINDS:
        print(f"{name:>28} {taken[name]:>7,} {refused[name]:>7,}")
    print(f"{arguments.count:,} sets in {perf_counter() - start:.0f} s, {failed} failures")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
