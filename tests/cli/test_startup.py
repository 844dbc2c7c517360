"""What commands import: start-up is most of the time of a small job."""

import json
import subprocess
import sys

import pytest

#: Calibrators of any number of classes.
MODELS = [
    "auto",
    "identity",
    "irp",
    "isotonic",
    "kernel",
    "matrix",
    "monotone",
    "spline",
    "temperature",
    "venn-abers",
]
#: Commands in the order in which one process runs them, and modules that none of the commands up to
#: there needs.
STEPS = [
    (
        ["--version", "--help", "aply model.json"],
        {"numpy", "polars", "scipy", "sklearn", "narwhals"},
    ),
    (
        [
            "fit --help",
            "apply --help",
            "inspect --help",
            "export --help",
            "count data.csv -l y -p p_* -o one.parquet",
            "merge one.parquet -o two.parquet",
            *(f"apply {name}.json data.csv -o out.csv" for name in MODELS),
            "apply auto.json data.csv -o out.parquet",
            *(f"inspect {name}.json" for name in ("auto", "kernel", "monotone")),
            "export auto.json --sql duckdb -o out.sql",
            "export auto.json --onnx out.onnx",
        ],
        {"scipy", "sklearn", "joblib", "pandas", "pyarrow"},
    ),
    (
        ["monitor model.json data.csv"],
        {"sklearn", "scipy.stats", "scipy.optimize", "scipy.spatial", "pandas", "pyarrow"},
    ),
    (
        ["evaluate data.csv -m model.json -l y", "report data.csv -m model.json -o report.html"],
        {"sklearn", "scipy.stats", "pandas", "pyarrow", "isoroc._calibrators.base"},
    ),
    (
        ["inspect irp.json", "fit data.csv -c temperature -o new.json"],
        {
            "matplotlib",
            "sklearn.ensemble",
            "sklearn.linear_model",
            "sklearn.metrics",
            "sklearn.model_selection",
        },
    ),
]
SCRIPT = """
import contextlib, io, json, sys
from isoroc.__main__ import main
found = []
for commands, _ in json.loads(sys.argv[1]):
    for line in commands:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            code = main(line.split())
        found.append((line, code, list(sys.modules)))
print(json.dumps(found))
"""


@pytest.mark.slow
@pytest.mark.usefixtures("model")
def test_commands_import_what_they_need(run_cli):
    for name in MODELS:
        assert run_cli("fit", "data.csv", "-c", name, "-o", f"{name}.json").code == 0
    steps = [(commands, sorted(unneeded)) for commands, unneeded in STEPS]
    words = [sys.executable, "-c", SCRIPT, json.dumps(steps)]
    ran = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    for commands, unneeded in STEPS:
        for line in commands:
            found, code, modules = ran.pop(0)
            assert (found, code) == (line, 2 if line.startswith("aply") else 0)
            assert not unneeded & set(modules), line
    assert not ran
