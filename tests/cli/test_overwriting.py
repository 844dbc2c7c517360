"""No command destroys what it reads."""

import os
import stat
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import pytest

import isoroc
from isoroc.__main__ import main


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
        ["apply", "model.json", "x.csv", "-o", "x.csv", "--replace", "--where", "p_cat > 0.5"],
        ["apply", "model.json", "x.csv", "-o", "x.csv", "--replace", "--on-bad", "skip"],
        ["apply", "model.json", "*.csv", "-o", "x.csv", "--replace"],
        ["report", "x.csv", "--model", "model.json", "-o", "x.csv"],
        ["report", "x.csv", "--model", "model.json", "-o", "model.json"],
        ["export", "model.json", "--sql", "duckdb", "-o", "model.json"],
        ["export", "model.json", "--onnx", "soft.json"],
        ["count", "x.csv", "-o", "x.csv"],
        ["monitor", "model.json", "x.csv", "--state", "x.csv"],
    ],
    ids=" ".join,
)
def test_the_target_is_an_input(words, files, run_cli):
    ran = run_cli(*words)
    assert ran.code == 2
    assert "is also an input" in ran.err
    for name, content in files.items():
        assert Path(name).read_bytes() == content


@pytest.mark.usefixtures("files")
def test_the_target_is_standard_input(monkeypatch, capsysbinary):
    with Path("x.csv").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert main(["apply", "model.json", "-", "-o", "hard.csv"]) == 2
    assert b"hard.csv: is also an input (standard input)" in capsysbinary.readouterr().err


def test_only_regular_files_are_replaced(tmp_path):
    calibrator = isoroc.TemperatureCalibrator().fit([0.1, 0.3, 0.7, 0.9], [0, 1, 0, 1])
    counts = isoroc.Counts.from_arrays([0.1, 0.3, 0.7, 0.9], [0, 1, 0, 1])
    link = tmp_path / "null"
    link.symlink_to(os.devnull)
    calibrator.save(link)
    counts.to_parquet(link)
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)
    assert link.is_symlink()


def test_pipes_are_written_to(tmp_path):
    counts = isoroc.Counts.from_arrays([0.1, 0.3, 0.7, 0.9], [0, 1, 0, 1])
    pipe = tmp_path / "pipe"
    read = list[bytes]()
    os.mkfifo(pipe)
    reader = Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    counts.to_parquet(pipe)
    reader.join()
    assert read[0].startswith(b"PAR1")
    assert pipe.is_fifo()


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give files away")
def test_the_owner_is_kept(tmp_path):
    calibrator = isoroc.TemperatureCalibrator().fit([0.1, 0.3, 0.7, 0.9], [0, 1, 0, 1])
    path = tmp_path / "model.json"
    path.touch(0o640)
    os.chown(path, 65534, 65534)
    calibrator.save(path)
    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (65534, 65534, 0o640)


@pytest.fixture
def unprivileged(monkeypatch):
    """An empty current folder of a user who is not root, as whom the test runs."""
    with TemporaryDirectory() as name:
        monkeypatch.chdir(name)
        is_root = os.getuid() == 0
        if is_root:  # who may write everywhere
            os.chown(name, 65534, 65534)
            os.setresgid(65534, 65534, 0)
            os.setresuid(65534, 65534, 0)
        yield
        Path().chmod(0o700)
        if is_root:
            os.setresuid(0, 0, 0)
            os.setresgid(0, 0, 0)
        monkeypatch.undo()


@pytest.mark.usefixtures("unprivileged")
def test_a_read_only_target_is_named(table, capsys):
    table.write_csv("x.csv")
    assert main(["fit", "x.csv", "-c", "temperature", "-o", "model.json"]) == 0
    for name in ("a.json", "a.csv", "a.parquet"):
        Path(name).touch(0o444)
    fit = ["fit", "x.csv", "-c", "irp", "-o"]
    state = ["monitor", "model.json", "x.csv", "--state"]
    lines = [
        ([*fit, "a.json"], "a.json: read-only"),
        (["apply", "model.json", "x.csv", "-o", "a.csv"], "a.csv: read-only"),
        (["count", "x.csv", "-o", "a.parquet"], "a.parquet: read-only"),
        ([*state, "a.json"], "a.json: read-only"),
    ]
    for words, message in lines:
        assert main(words) == 2
        assert message in capsys.readouterr().err
    Path().chmod(0o500)
    for words in (fit, state):
        assert main([*words, "b.json"]) == 2
        assert "b.json: Permission denied" in capsys.readouterr().err


#: Files of each kind, and commands that write another kind.
WRITERS = {
    "model.json": ["fit", "x.csv", "-c", "temperature"],
    "table.csv": ["apply", "model.json", "x.csv"],
    "table.parquet": ["apply", "model.json", "x.csv"],
    "counts.parquet": ["count", "x.csv"],
    "page.html": ["report", "x.csv"],
    "query.sql": ["export", "model.json", "--sql", "duckdb"],
}


def test_a_file_of_another_kind_is_not_replaced(table, run_cli):
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
            assert (ran.code, f"{target}: holds " in ran.err) == (2, True)
            assert Path(target).read_bytes() == before
    Path("empty").touch()
    assert run_cli(*WRITERS["model.json"], "-o", "empty").code == 0


@pytest.mark.usefixtures("files")
def test_states_do_not_replace_other_files(run_cli):
    Path("hard2.csv").write_text("id,p\n")
    ran = run_cli("monitor", "model.json", "x.csv", "--state", "hard2.csv")
    assert (ran.code, "hard2.csv: holds a table" in ran.err) == (2, True)
    assert Path("hard2.csv").read_text() == "id,p\n"
