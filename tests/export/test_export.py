import pytest

import isoroc.export
from isoroc import InputError


def test_names():
    assert callable(isoroc.export.to_onnx)
    assert callable(isoroc.export.to_sql)
    with pytest.raises(AttributeError, match="attribute 'to_excel'"):
        isoroc.export.to_excel  # type: ignore[attr-defined]  # noqa: B018


def test_only_calibrators_are_exported():
    with pytest.raises(InputError, match=r"is of type int; .*a calibrator .*calibrators_"):
        isoroc.export.to_onnx(3)
