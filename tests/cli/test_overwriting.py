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


#: Files of each kind, and commands that write another kind.
WRITERS = {
    "model.json": ["fit", "x.csv", "-c", "temperature"],
    "table.csv": ["apply", "model.json", "x.csv"],
    "table.parquet": ["apply", "model.json", "x.csv"],
    "counts.parquet": ["count", "x.csv"],
    "page.html": ["report", "x.csv", "--resamples", "0"],
    "query.sql": ["export", "model.json", "--sql", "duckdb"],
}


def test_a_file_of_another_kind_is_replaced_only_by_force(table, run_cli):
    table.write_csv("x.csv")
    for target, words in WRITERS.items():
        for _ in range(2):  # a file of the same kind is replaced
            ran = run_cli(*words, "-o", target)
            assert ran.code == 0, ran.err
    Path("state.json").write_text('{"format": "isoroc-monitor"}')
    Path("notes.txt").write_text("do not lose this")
    kept = [*WRITERS, "state.json", "notes.txt"]
    for target in kept:
        before = Path(target).read_bytes()
        for own, words in WRITERS.items():
            same = own == target or {own, target} == {"table.csv", "table.parquet"}
            is_text = own in ("table.csv", "table.parquet", "query.sql")
            if same or (is_text and target in ("notes.txt", "query.sql")) or target in words:
                continue
            ran = run_cli(*words, "-o", target)
            assert (ran.code, f"{target}: holds " in ran.err, "--force" in ran.err) == (
                2,
                True,
                True,
            )
            assert Path(target).read_bytes() == before
    words = [*WRITERS["table.csv"], "-o", "state.json", "--output-format", "csv"]
    assert run_cli(*words, "--force").code == 0
    assert Path("state.json").read_text().startswith("id,")
    Path("empty").touch()
    assert run_cli(*WRITERS["model.json"], "-o", "empty").code == 0


@pytest.mark.usefixtures("files")
def test_states_and_pictures_do_not_replace_other_files(run_cli):
    words = ["monitor", "model.json", "x.csv"]
    Path("time.png").write_text("id,p\n")
    for option, target in (("--state", "hard2.csv"), ("--plot", "time.png")):
        Path("hard2.csv").write_text("id,p\n")
        ran = run_cli(*words, option, target)
        assert (ran.code, f"{target}: holds " in ran.err) == (2, True)
        assert Path(target).read_text() == "id,p\n"
