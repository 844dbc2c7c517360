"""No command destroys what it reads."""

import os
import stat
from pathlib import Path

import pytest

import isoroc


@pytest.fixture
def files(table, run_cli):
    """A table, a model of it, and other names of both."""
    table.write_csv("x.csv")
    assert run_cli("fit", "x.csv", "-c", "temperature", "-o", "model.json").code == 0
    os.link("x.csv", "hard.csv")
    Path("soft.json").symlink_to("model.json")
    return {name: Path(name).read_bytes() for name in ("x.csv", "model.json")}


@pytest.mark.parametrize(
    "words",
    [
        ["fit", "x.csv", "-o", "x.csv"],
        ["fit", "x.csv", "-o", "hard.csv"],
        ["fit", "*.csv", "-o", "x.csv"],
        ["apply", "model.json", "x.csv", "-o", "model.json"],
        ["apply", "model.json", "x.csv", "-o", "soft.json"],
        ["apply", "model.json", "x.csv", "-o", "x.csv"],
        ["report", "x.csv", "--model", "model.json", "-o", "x.csv"],
        ["report", "x.csv", "--model", "model.json", "-o", "model.json"],
        ["export", "model.json", "--sql", "duckdb", "-o", "model.json"],
        ["export", "model.json", "--onnx", "soft.json"],
        ["count", "x.csv", "-o", "x.csv"],
        ["monitor", "model.json", "x.csv", "--state", "x.csv"],
        ["evaluate", "x.csv", "--model", "model.json", "--log-file", "x.csv"],
        ["evaluate", "x.csv", "--model=model.json", "--log-file", "soft.json"],
    ],
    ids=" ".join,
)
def test_the_target_is_an_input(words, files, run_cli):
    ran = run_cli(*words)
    assert ran.code == 2
    assert "is also an input" in ran.err
    for name, content in files.items():
        assert Path(name).read_bytes() == content


def test_only_regular_files_are_replaced(tmp_path):
    calibrator = isoroc.TemperatureCalibrator().fit([0.1, 0.3, 0.7, 0.9], [0, 1, 0, 1])
    counts = isoroc.Counts.from_arrays([0.1, 0.3, 0.7, 0.9], [0, 1, 0, 1])
    link = tmp_path / "null"
    link.symlink_to(os.devnull)
    calibrator.save(link)
    counts.to_parquet(link)
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)
    assert link.is_symlink()


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give files away")
def test_the_owner_is_kept(tmp_path):
    calibrator = isoroc.TemperatureCalibrator().fit([0.1, 0.3, 0.7, 0.9], [0, 1, 0, 1])
    path = tmp_path / "model.json"
    path.touch(0o640)
    os.chown(path, 65534, 65534)
    calibrator.save(path)
    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (65534, 65534, 0o640)


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_read_only_target_is_named(tmp_path):
    calibrator = isoroc.TemperatureCalibrator().fit([0.1, 0.3, 0.7, 0.9], [0, 1, 0, 1])
    path = tmp_path / "model.json"
    path.touch(0o444)
    with pytest.raises(PermissionError, match=r"model\.json"):
        calibrator.save(path)
