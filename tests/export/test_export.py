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


@pytest.mark.parametrize(("function", "missing"), [("to_onnx", "onnx"), ("to_sql", "sqlglot")])
def test_a_missing_package_is_named(function, missing, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    for name in ("onnx", "sql", "expressions"):
        monkeypatch.delitem(sys.modules, f"isoroc.export._{name}", raising=False)
    with pytest.raises(ImportError) as error:
        getattr(isoroc.export, function)
    assert str(error.value) == f"{function} needs {missing}: pip install {missing}"


def test_only_calibrators_are_exported():
    with pytest.raises(InputError, match=r"is of type int; .*a calibrator .*calibrators_"):
        check_exportable(3)
