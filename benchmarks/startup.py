"""CPU seconds and peak memory of each command on small files: what starting costs.

Each command runs in its own process several times. CPU time, user and system, depends little on
what else the machine does; the least of all runs is printed.

    python benchmarks/startup.py [--repeats N]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import shlex
import subprocess
import sys
import tempfile

from isoroc._cli import main as isoroc

COMMANDS = [
    "--version",
    "--help",
    "apply --help",
    "count march.csv --label animal -o march.counts.parquet",
    "inspect irp.json",
    "inspect model.json",
    "apply irp.json may.csv -o out.csv",
    "apply model.json may.csv -o out.csv",
    "apply model.json may.parquet -o out.parquet",
    "export model.json --sql duckdb -o out.sql",
    "export model.json --onnx out.onnx",
    "monitor model.json april.csv --label animal",
    "evaluate april.csv --model model.json --resamples 0",
    "evaluate april.csv --model model.json",
    "fit march.csv --label animal --calibrator irp -o out.json",
    "fit march.csv --label animal -o out.json",
    "report april.csv --model model.json --resamples 0 -o out.html",
]

#: Runs the command as the only child of a new process, so that the figures are those of it.
RUNNER = """
import json, resource, subprocess, sys
run = subprocess.run([sys.executable, "-m", "isoroc", *sys.argv[1:]], capture_output=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
unit = 1 if sys.platform == "darwin" else 1024
print(json.dumps([run.returncode, used.ru_utime + used.ru_stime, unit * used.ru_maxrss]))
"""


def measured(line: str, repeats: int) -> tuple[float, float]:
    words = [sys.executable, "-c", RUNNER, *shlex.split(line)]
    runs = []
    for _ in range(repeats):
        done = subprocess.run(words, stdout=subprocess.PIPE, check=True)  # noqa: S603
        code, seconds, peak = json.loads(done.stdout)
        if code:
            raise SystemExit(f"isoroc {line}: exit code {code}")
        runs.append((seconds, peak))
    return min(seconds for seconds, _ in runs), min(peak for _, peak in runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            isoroc(["demo", "--keep", "."])
            isoroc(shlex.split("fit march.csv --label animal -c irp -o irp.json"))
            isoroc(shlex.split("apply irp.json may.csv --replace -o may.parquet"))
        print("| command | CPU seconds | peak memory, MB |\n|---|---|---|")
        for line in COMMANDS:
            seconds, peak = measured(line, repeats)
            print(f"| `{line}` | {seconds:.2f} | {peak / 1e6:.0f} |", flush=True)


if __name__ == "__main__":
    main()
