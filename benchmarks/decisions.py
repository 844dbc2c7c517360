"""Error, coverage and level of estimated class shares. Prints the table of docs/decisions.md.

python benchmarks/decisions.py [--repetitions 500]
"""

from __future__ import annotations

import argparse
from itertools import product

import numpy as np

from isoroc._table import markdown_table
from isoroc.decisions import estimate_prior

MEANS = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
OLD = {2: np.array([0.5, 0.5]), 4: np.array([0.25, 0.25, 0.25, 0.25])}
NEW = {
    2: {"none": OLD[2], "small": np.array([0.55, 0.45]), "large": np.array([0.9, 0.1])},
    4: {
        "none": OLD[4],
        "small": np.array([0.3, 0.2, 0.25, 0.25]),
        "large": np.array([0.7, 0.1, 0.1, 0.1]),
    },
}


def draw(n: int, old: np.ndarray, new: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Forecasts of rows of the new population that are exact for the old one."""
    K = len(old)
    x = MEANS[rng.choice(K, size=n, p=new)] + rng.normal(size=(n, 2))
    joint = old * np.exp(-((x[:, None] - MEANS[:K]) ** 2).sum(axis=2) / 2)
    return joint / joint.sum(axis=1, keepdims=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=500)
    repetitions = parser.parse_args().repetitions
    lines = []
    n = 300
    for n_classes, shift in product((2, 4), ("none", "small", "large")):
        old, new = OLD[n_classes], NEW[n_classes][shift]
        errors, covered, found = [], [], []
        for seed in range(repetitions):
            Q = draw(n, old, new, np.random.default_rng(seed))
            estimate = estimate_prior(Q, old, n_resamples=100, random_state=seed)
            errors.append(estimate.prior - new)
            covered.append((estimate.low <= new) & (new <= estimate.high))
            found.append(estimate.p_value < 0.05)
        error = np.sqrt(np.mean(np.square(errors)))
        figures = f"{error:.3f}", f"{np.mean(covered):.3f}", f"{np.mean(found):.3f}"
        lines.append((str(n_classes), f"{n:,}", shift, *figures))
    print(markdown_table(["K", "rows", "shift", "error", "covered", "found"], lines))


if __name__ == "__main__":
    main()
