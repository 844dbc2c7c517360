import sys

import pytest

import isoroc.export
from isoroc._input import InputError
from isoroc.export._formula import check_exportable


def test_names():
    assert callable(isoroc.export.to_onnx)
    assert callable(isoroc.export.to_sql)
    with pytest.raises(AttributeError, match="no attribute 'to_excel'"):
        isoroc.export.to_excel  # noqa: B018


@pytest.mark.parametrize(("function", "missing"), [("to_onnx", "onnx"), ("to_sql", "sqlglot")])
def test_a_missing_package_is_named(function, missing, monkeypatch):
    for name in list(sys.modules):
        if name.startswith(("isoroc.export._", "isoroc._backends.", "isoroc._maps.query")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=f"needs {missing}: pip install"):
        getattr(isoroc.export, function)


def test_only_calibrators_are_exported():
    with pytest.raises(InputError, match=r"is of type int; expected a calibrator.*calibrators_"):
        check_exportable(3)
