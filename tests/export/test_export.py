import pytest

import isoroc.export
from isoroc import InputError, load_map
from zoo import fitted


def test_names():
    assert callable(isoroc.export.to_onnx)
    assert callable(isoroc.export.to_sql)
    with pytest.raises(AttributeError, match="attribute 'to_excel'"):
        isoroc.export.to_excel  # type: ignore[attr-defined]  # noqa: B018


def test_only_calibrators_are_exported():
    with pytest.raises(InputError, match=r"is of type int; .*a calibrator .*calibrators_"):
        isoroc.export.to_onnx(3)


def test_a_loaded_map_is_exported_under_the_name_of_its_calibrator(tmp_path):
    fitted("TemperatureCalibrator", "p").save(tmp_path / "model.json")
    loaded = load_map(tmp_path / "model.json")
    query = isoroc.export.to_sql(loaded, "p", dialect="duckdb")
    assert query.startswith("/* TemperatureCalibrator of isoroc")
    pytest.importorskip("onnx")
    metadata = {entry.key: entry.value for entry in isoroc.export.to_onnx(loaded).metadata_props}
    assert metadata["isoroc.calibrator"] == "TemperatureCalibrator"
