"""Optional packages may be missing until something needs them."""

import subprocess
import sys

import pytest

import isoroc

WITHOUT = """
import sys

class Missing:
    names = set({names})

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""


EXTRAS = ["matplotlib", "mpltern", "jinja2", "onnx", "sqlglot", "torch", "polars", "rich"]
#: Every command that reads or writes tables.
LINES = """
demo --keep .
fit march.csv --label animal -c temperature -o model.json
apply model.json may.csv -o may.parquet
apply model.json may.csv -o may.ndjson
apply model.json may.ndjson --suffix _again -o again.csv
count march.csv --label animal -o march.counts.parquet
merge march.counts.parquet -o both.parquet
fit --counts march.counts.parquet -c irp -o irp.json
evaluate april.csv --model model.json
monitor model.json april.csv --label animal
inspect model.json
report april.csv --model model.json -o out.html
export model.json --sql duckdb -o out.sql
"""


def run(code, missing=EXTRAS, **options):
    command = [sys.executable, "-c", WITHOUT.replace("{names}", repr(missing)) + code]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.mark.slow
def test_the_command_needs_neither_pandas_nor_pyarrow(tmp_path):
    code = f"""
from isoroc.__main__ import main
for line in {LINES.strip()!r}.splitlines():
    code = main(line.split())
    assert code == 0, line
print("done", {{"pandas", "pyarrow"}} & set(sys.modules))
"""
    ran = run(code, missing=["pandas", "pyarrow"], cwd=tmp_path)
    assert ran.stdout.endswith("done set()\n"), ran.stderr
    assert (tmp_path / "out.html").stat().st_size > 10_000


@pytest.mark.slow
def test_all_public_names_without_extras():
    ran = run("from isoroc import *\nprint(AutoCalibrator.__name__, plots.__name__)")
    assert ran.stdout == "AutoCalibrator isoroc.plots\n", ran.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("plots.RocDisplay", "matplotlib: pip install matplotlib mpltern"),
        ("export.to_onnx", "onnx: pip install onnx"),
        ("export.to_sql", "sqlglot: pip install sqlglot"),
        ("export.to_torch", "torch: pip install torch"),
    ],
)
def test_what_is_missing_is_named(name, message):
    module, _, attribute = name.partition(".")
    ran = run(f"from isoroc.{module} import {attribute}")
    assert ran.stderr.endswith(f"ImportError: isoroc.{name} needs {message}\n")


@pytest.mark.slow
def test_reports_need_jinja2_only_for_their_page():
    ran = run("from isoroc import Report\nprint(Report([0, 1], [0.2, 0.7]).to_html())")
    assert ran.stderr.endswith("ImportError: Report.to_html needs jinja2: pip install jinja2\n")


def test_python_suggests_a_name_that_exists():
    for module, name, meant in (
        ("isoroc", "TemperatureCalibratr", "TemperatureCalibrator"),
        ("isoroc.metrics", "brier_score", "brier_score_loss"),
    ):
        ran = run(f"import {module}\n{module}.{name}")
        assert f"module {module!r} has no attribute {name!r}" in ran.stderr
        assert f"Did you mean: {meant!r}?" in ran.stderr


def test_other_names_raise_the_usual_errors():
    with pytest.raises(ImportError, match="cannot import name 'xyzzy'"):
        exec("from isoroc import xyzzy")  # noqa: S102
    assert not hasattr(isoroc, "__wrapped__")
