import sys

import pytest

import isoroc.export
from isoroc.export._writer import map_of


def test_names():
    assert callable(isoroc.export.to_onnx)
    assert callable(isoroc.export.to_sql)
    with pytest.raises(AttributeError, match="no attribute 'to_excel'"):
        isoroc.export.to_excel  # noqa: B018


@pytest.mark.parametrize(
    ("function", "missing", "extra"), [("to_onnx", "onnx", "onnx"), ("to_sql", "sqlglot", "sql")]
)
def test_a_missing_extra_is_named(function, missing, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    for name in ("onnx", "sql", "expressions"):
        monkeypatch.delitem(sys.modules, f"isoroc.export._{name}", raising=False)
    with pytest.raises(ImportError) as error:
        getattr(isoroc.export, function)
    assert str(error.value) == f"{function} needs {missing}: pip install 'isoroc[{extra}]'"


def test_a_kind_without_a_map_is_named():
    with pytest.raises(TypeError, match="int cannot be exported"):
        map_of(3, None, [])
