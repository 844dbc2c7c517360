"""Fuzzing of the loader: a mutated model file must load as a valid model or raise ModelFileError.

    python benchmarks/fuzz.py [--count N] [--seed S]

Mutants are made from files of every calibrator. Either bytes are changed, removed, repeated and
moved; or entries of the document are changed, removed, swapped and replaced by hostile values, and
the checksum is computed again. A mutant that loads must return forecasts on the simplex. Prints the
number of each outcome, time, and peak memory.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import resource
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import isoroc
from isoroc._maps.modelfile.document import MAX_BYTES, MAX_VALUES

CALIBRATORS = [name for name in isoroc.__all__ if name.endswith("Calibrator")]

HOSTILE: list[Any] = [
    *(0, 1, -1, 2, 3, 7, 2**31, 2**53 + 1, 2**63, -(2**63), 2**64, 10**400),
    *(0.0, -0.0, 0.5, 1.5, -1e-300, 1e308, -1e308, 5e-324, float("inf"), float("nan")),
    *("", "NaN", "Infinity", "-Infinity", "auto", "int64", "\ud800", "x" * 500, "tree"),
    *(None, True, False, [], {}, [[]], {"type": "tuple", "items": []}),
    *({"type": "float", "value": "NaN"}, {"type": "dict", "items": {"a": 1}}),
    {"type": "array", "dtype": "float64", "shape": [0, 3], "values": []},
    {"type": "array", "dtype": "object", "shape": [1], "values": ["a"]},
    {"type": "array", "dtype": "str", "length": 100000, "shape": [1], "values": ["a"]},
]


def seeds(classes: Sequence[int]) -> list[tuple[bytes, np.ndarray]]:
    """Model files of every calibrator and number of classes, with forecasts for each."""
    rng = np.random.default_rng(0)
    files = []
    with tempfile.TemporaryDirectory() as folder:
        for K in classes:
            P = rng.dirichlet(np.ones(K), 100)
            y = (P.cumsum(axis=1) > rng.random((100, 1))).argmax(axis=1)
            for forecasts in [P, P[:, 1:]] if K == 2 else [P]:
                for name in CALIBRATORS:
                    if name == "HistogramCalibrator" and K > 2:
                        continue
                    calibrator = getattr(isoroc, name)()
                    for few in {"cv": 2, "n_trees": 2}.items():
                        if few[0] in calibrator.get_params():
                            calibrator.set_params(**dict([few]))
                    path = Path(folder, "model.json")
                    calibrator.fit(forecasts, y).save(path)
                    files.append((path.read_bytes(), forecasts[:20]))
    return files


def mutate_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    """A file with bytes changed, removed, repeated or moved."""
    text = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        at, to = sorted(rng.integers(0, len(text) + 1, 2))
        to = min(to, at + int(rng.choice([1, 2, 8, 100, len(text)])))
        match rng.integers(5):
            case 0:
                text[at : at + 1] = bytes([rng.integers(256)])
            case 1:
                del text[at:to]
            case 2:
                text[at:at] = text[at:to]
            case 3:
                text[at:at] = rng.choice(
                    [b"[", b"{", b"}", b",", b'"', b"1e999", b"NaN", b"9" * 99]
                )
            case _:
                part = text[at:to]
                del text[at:to]
                text[len(text) // 2 : len(text) // 2] = part
    return bytes(text)


def mutate_document(data: bytes, rng: np.random.Generator) -> bytes:
    """A file with entries changed, removed, swapped or added, and a matching checksum."""
    document = json.loads(data)
    for _ in range(rng.integers(1, 4)):
        found = list(places(document.get("model") if rng.random() < 0.9 else document))
        if not found:  # an earlier mutation left nothing there
            break
        holder, key = found[rng.integers(len(found))]
        other, other_key = found[rng.integers(len(found))]
        match rng.integers(6):
            case 0 | 1:
                holder[key] = copy.deepcopy(HOSTILE[rng.integers(len(HOSTILE))])
            case 2:
                holder[key] = copy.deepcopy(other[other_key])
            case 3:
                del holder[key]
                continue
            case 4 if isinstance(holder[key], float):
                holder[key] *= float(rng.choice([-1, 0.5, 1 + 1e-9, 1e6]))
            case 4 if isinstance(holder[key], int):
                holder[key] += int(rng.choice([-1, 1, 2]))
            case _ if isinstance(holder, dict):
                holder[str(other_key)] = copy.deepcopy(other[other_key])
    body = {name: entry for name, entry in document.items() if name != "checksum"}
    signed = {name: entry for name, entry in body.items() if name != "saved"}
    text = json.dumps(signed, sort_keys=True, separators=(",", ":"))
    checksum = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps(body | {"checksum": f"sha256:{checksum}"}).encode()


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every list or object in a document with each of its keys."""
    if isinstance(value, dict | list):
        for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
            yield value, key
            yield from places(entry)


def fuzz(count: int, seed: int = 0, classes: Sequence[int] = (2, 3, 5)) -> Counter[str]:
    """Number of each outcome among `count` mutants."""
    rng = np.random.default_rng(seed)
    files = seeds(classes)
    tally: Counter[str] = Counter(crashed=0)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        path = Path(folder, "mutant.json")
        for _ in range(count):
            data, forecasts = files[rng.integers(len(files))]
            mutate = mutate_bytes if rng.random() < 0.3 else mutate_document
            path.write_bytes(mutate(data, rng))
            try:
                tally[verdict(path, forecasts)] += 1
            except Exception:  # noqa: BLE001  # every other error is a finding
                tally["crashed"] += 1
                if tally["crashed"] <= 5:
                    traceback.print_exc()
    return tally


def verdict(path: Path, forecasts: np.ndarray) -> str:
    try:
        calibrator = isoroc.load(path)
    except isoroc.ModelFileError as error:
        if str(path) not in str(error) or "\n" in str(error):
            raise AssertionError("the message does not name the file in one line") from error
        return "refused"
    try:
        Q = calibrator.predict_proba(forecasts)
    except ValueError:  # for example another number of columns
        return "loaded, forecasts refused"
    if not ((Q >= 0).all() and np.allclose(Q.sum(axis=1), 1)):
        raise AssertionError("forecasts off the simplex")
    return "loaded"


def at_the_limits() -> None:
    """Load files of the largest allowed size that need as much memory as possible."""
    head = b'{"format": "isoroc-model", "version": 1, "summary": '
    hard = {
        "objects": b"[" + b'{"":0},' * (MAX_VALUES // 2 - 10) + b"0]",
        "numbers": b"[" + b"0.12345678," * (MAX_VALUES - 10) + b"0]",
        "letters": b'"' + "\U0001f600".encode() + b"a" * (MAX_BYTES - 200) + b'"',
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "mutant.json")
        for value in hard.values():
            path.write_bytes(head + value + b"}")
            if verdict(path, np.empty((0, 0))) != "refused":
                raise AssertionError("a hostile file was loaded")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    fuzz(100, arguments.seed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = perf_counter()
    tally = fuzz(arguments.count, arguments.seed)
    seconds = perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name, number in sorted(tally.items()):
        print(f"{name:>26}: {number:>9,}")
    print(f"{arguments.count:,} files in {seconds:.0f} s")
    print(f"peak memory {before / 1024:.0f} MiB after 100 files, {after / 1024:.0f} MiB at the end")
    at_the_limits()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"peak memory {most / 1024:.0f} MiB after hostile files of the largest size allowed")


if __name__ == "__main__":
    main()
