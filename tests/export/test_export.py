import re
import subprocess
import sys

import pytest

import isoroc.export
from isoroc import InputError
from isoroc.export._formula import check_exportable


def test_names():
    assert callable(isoroc.export.to_onnx)
    assert callable(isoroc.export.to_sql)
    with pytest.raises(AttributeError, match="no attribute 'to_excel'"):
        isoroc.export.to_excel  # noqa: B018


@pytest.mark.parametrize(
    ("function", "missing"),
    [
        ("to_onnx", "onnx"),
        ("calibrate_onnx", "onnx"),
        ("to_sql", "sqlglot"),
        ("counts_sql", "sqlglot"),
        ("to_torch", "torch"),
    ],
)
def test_a_missing_package_is_named(function, missing):
    program = f"import sys; sys.modules[{missing!r}] = None; from isoroc.export import {function}"
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    assert run.returncode == 1
    assert re.search(rf"\nImportError: \w+ needs {missing}: pip install .*\n$", run.stderr)


def test_only_calibrators_are_exported():
    with pytest.raises(InputError, match=r"is of type int; .*a calibrator .*calibrators_"):
        check_exportable(3)
