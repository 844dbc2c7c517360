"""Optional packages may be missing until something needs them."""

import subprocess
import sys

import pytest

WITHOUT = """
import sys

class Missing:
    names = {"matplotlib", "mpltern", "jinja2", "onnx", "sqlglot", "torch", "polars", "rich"}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""


def run(code):
    command = [sys.executable, "-c", WITHOUT + code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


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


def test_reports_need_jinja2_only_for_their_page():
    ran = run("from isoroc import Report\nprint(Report([0, 1], [0.2, 0.7]).to_html())")
    assert ran.stderr.endswith("ImportError: Report.to_html needs jinja2: pip install jinja2\n")
