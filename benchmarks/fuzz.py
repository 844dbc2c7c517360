"""Fuzzing: damaged model files in the library and in the commands, and fits to generated sets.

    python benchmarks/fuzz.py files [--count N] [--seed S]
    python benchmarks/fuzz.py commands [--count N] [--seed S]
    python benchmarks/fuzz.py fits [--count N] [--seed S] [--most-numbers M] [--jobs J]

A damaged model file must load as a valid model or raise ModelFileError. Mutants are made from files
of every calibrator. Either bytes are changed, removed, repeated and moved, or entries of the
document are changed, removed, swapped and replaced by hostile values, and the checksum is computed
again. A mutant that loads must return forecasts on the simplex.

The commands read such mutants of files that ``isoroc fit`` wrote, most of them with an altered
summary, parameter or state, and damaged states of a monitor. Each command must succeed, or end with
one line and an exit code for invalid input: "internal error" is a finding.

Sets to fit are made from their seeds by tests/generated.py: 2 to 50 classes, 5 to 5,000 rows,
saturated and tied forecasts, exact zeros and ones, rare classes, any precision, weights over ten
orders of magnitude. Every calibrator, with its defaults, must return forecasts on the simplex or
raise InputError, without a warning of another package. A set takes about four seconds of processor
time, all of them more than five hours.

Prints the number of each outcome, every failure, time, and for files peak memory.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import hashlib
import io
import json
import resource
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed

import isoroc
from isoroc.__main__ import main as command
from isoroc._maps.modelfile.document import MAX_BYTES, MAX_VALUES
from isoroc._support.progress import progress

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
                    calibrator = getattr(isoroc, name)()
                    if "cv" in calibrator.get_params():
                        calibrator.set_params(cv=2)
                    path = Path(folder, "model.json")
                    several = np.eye(K)[y][:, -forecasts.shape[1] :]
                    outcomes = several if name == "MultiLabelCalibrator" else y
                    calibrator.fit(forecasts, outcomes).save(path)
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


def mutate_document(data: bytes, rng: np.random.Generator, *path: str) -> bytes:
    """A file with entries changed, removed, swapped or added, and a matching checksum.

    Most changes are below the `path`, by default in the model.
    """
    document = json.loads(data)
    for _ in range(rng.integers(1, 4)):
        found = list(
            places(below(document, path or ("model",)) if rng.random() < 0.9 else document)
        )
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


def below(document: Any, path: Sequence[str]) -> Any:
    """Entry of a document, or None if an earlier mutation removed it."""
    for name in path:
        document = document.get(name) if isinstance(document, dict) else None
    return document


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
    exclusive = calibrator.map_.kind.exclusive
    if not ((Q >= 0).all() and np.allclose(Q.sum(axis=1) if exclusive else Q.clip(min=1), 1)):
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


def run_command(words: Sequence[str]) -> tuple[int, str]:
    """Exit code of a command, and what it wrote to standard error."""
    errors = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(errors):
        code = command(list(words))
    return code, errors.getvalue()


def table_of_forecasts(n_rows: int) -> str:
    """A CSV file of forecasts, outcomes, two columns of segments and two of labels."""
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(3), n_rows)
    y = (truth.cumsum(axis=1) > rng.random((n_rows, 1))).argmax(axis=1)
    P = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    lines = [
        f"{a},{b},{c},{k},{'north' if a > 0.3 else 'south'},{rng.integers(20, 70)},{k % 2},{k // 2}"
        for (a, b, c), k in zip(P.tolist(), y.tolist(), strict=True)
    ]
    return "\n".join(["p_0,p_1,p_2,y,region,age,is_1,is_2", *lines, ""])


def command_seeds() -> list[bytes]:
    """Model files that ``isoroc fit`` writes, in the current folder, which has ``data.csv``."""
    Path("data.csv").write_text(table_of_forecasts(200), encoding="utf-8")
    files = []
    for words in (
        ["--calibrator", "irp"],
        ["--calibrator", "auto", "--cv", "2"],
        ["--calibrator", "temperature", "--segments", "region,age"],
        ["--calibrator", "ordinal"],
        ["--labels", "is_1,is_2", "--probs", "p_1,p_2"],
        ["--calibrator", "venn-abers", "--probs", "p_2", "--where", "y <> 1"],
    ):
        code, errors = run_command(["fit", "data.csv", "-o", "model.json", *words])
        if code:
            raise AssertionError(errors)
        files.append(Path("model.json").read_bytes())
    run_command(["monitor", "model.json", "data.csv", "--where", "y <> 1", "--state", "state.json"])
    return files


def fuzz_commands(count: int, seed: int = 0) -> Counter[str]:
    """Number of each exit code of commands that read `count` mutants."""
    rng = np.random.default_rng(seed)
    parts = [("summary",), ("summary", "forecast_cells"), ("model", "parameters"), ("model",)]
    parts += [("model", "state"), ("model", "state", "verdict_")]
    uses = ["inspect m.json", "inspect m.json --json", "apply m.json data.csv -o out.csv"]
    uses += ["apply m.json data.csv -o out.csv --prior 0=0.2,1=0.3,2=0.5", "export m.json --onnx x"]
    uses += ["monitor m.json data.csv", "monitor m.json data.csv --unlabelled --json"]
    uses += ["monitor model.json data.csv --state s.json", "evaluate data.csv -m m.json --json"]
    uses += ["export m.json --sql duckdb -o x.sql", "report data.csv -m m.json -o x.html"]
    uses += ["fit data.csv -c identity -o new.json --compare m.json"]
    tally: Counter[str] = Counter(crashed=0)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        files = command_seeds()
        state = Path("state.json").read_bytes()
        for _ in range(count):
            data = files[rng.integers(len(files))]
            words = uses[rng.integers(len(uses))].split()
            path = parts[rng.integers(len(parts))]
            Path("m.json").write_bytes(mutate_document(data, rng, *path))
            Path("s.json").write_bytes(mutate_document(state, rng, "totals"))
            code, errors = run_command(words)
            tally[f"exit code {code}"] += 1
            if code not in (0, 1, 2) or (code == 2 and errors.count("\n") != 1):
                tally["crashed"] += 1
                print(" ".join(words), errors, sep="\n")
    return tally


def fit_all(seed: int, most_numbers: int) -> dict[str, bool | str]:
    """Whether each calibrator refused the set, or what went wrong."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    from test_generated import fit_and_check  # noqa: PLC0415

    found: dict[str, bool | str] = {}
    for name in CALIBRATORS:
        try:
            found[name] = fit_and_check(name, seed, most_numbers=most_numbers)
        except Exception as error:  # noqa: BLE001
            found[name] = f"seed {seed}, {name}: {type(error).__name__}: {error}"
    return found


def fuzz_files(options: argparse.Namespace) -> int:
    """Damage files, and return the number of failures."""

    def peak() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    fuzz(100, options.seed)
    before = peak()
    start = perf_counter()
    tally = fuzz(options.count, options.seed)
    seconds = perf_counter() - start
    after = peak()
    for name, number in sorted(tally.items()):
        print(f"{name:>26}: {number:>9,}")
    print(f"{options.count:,} files in {seconds:.0f} s")
    print(f"peak memory {before:.0f} MiB after 100 files, {after:.0f} MiB at the end")
    at_the_limits()
    print(f"peak memory {peak():.0f} MiB after hostile files of the largest size allowed")
    return tally["crashed"]


def fuzz_uses(options: argparse.Namespace) -> int:
    """Run commands on damaged files, and return the number of failures."""
    start = perf_counter()
    tally = fuzz_commands(options.count, options.seed)
    for name, number in sorted(tally.items()):
        print(f"{name:>26}: {number:>9,}")
    print(f"{options.count:,} commands in {perf_counter() - start:.0f} s")
    return tally["crashed"]


def fuzz_fits(options: argparse.Namespace) -> int:
    """Fit to generated sets, and return the number of failures."""
    taken = Counter[str]()
    refused = Counter[str]()
    failed = 0
    start = perf_counter()
    jobs = Parallel(n_jobs=options.jobs, return_as="generator_unordered")
    seeds_ = range(options.seed, options.seed + options.count)
    with progress("fits", shown=True) as report:
        work = (delayed(fit_all)(seed, options.most_numbers) for seed in seeds_)
        for count, results in enumerate(jobs(work), 1):
            report(f"{count:,} of {options.count:,} sets")
            for name, result in results.items():
                if isinstance(result, str):
                    failed += 1
                    print(result, flush=True)
                else:
                    (refused if result else taken)[name] += 1
    for name in CALIBRATORS:
        print(f"{name:>28}: {taken[name]:>7,} taken {refused[name]:>7,} refused")
    print(f"{options.count:,} sets in {perf_counter() - start:.0f} s, {failed} failures")
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("files", "commands", "fits"))
    parser.add_argument("--count", type=int, help="100,000 files or 5,000 of others by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most-numbers", type=int, default=20_000, help="in a set")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; one per core by default")
    options = parser.parse_args()
    options.count = options.count or (100_000 if options.part == "files" else 5000)
    parts = {"files": fuzz_files, "commands": fuzz_uses, "fits": fuzz_fits}
    return int(parts[options.part](options) > 0)


if __name__ == "__main__":
    sys.exit(main())
