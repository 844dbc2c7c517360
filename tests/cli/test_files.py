import gzip
import os
import threading
from pathlib import Path

import polars as pl
import pytest

from cli_tables import listing
from isoroc._cli.errors import CommandError
from isoroc._cli.io.formats import Format, choose_format, file_errors
from isoroc._cli.io.opening import open_source
from isoroc._cli.io.source import Source
from isoroc._cli.io.writing import output_to, write_frame
from isoroc._cli.options import InputOptions

pytestmark = pytest.mark.usefixtures("folder")

posix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes")

FRAME = pl.DataFrame({"a": ["1", "2", None], "b": [0.5, 1.5, 2.5]})
ENDS = ["csv", "csv.gz", "csv.zst", "tsv", "ndjson", "jsonl.gz", "ndjson.zst", "parquet", "arrow"]


def read(source, **options):
    return source.scan(**options).collect()


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("known", [True, False])
def test_written_files_are_read_with_and_without_their_ending(end, known):
    write_frame(FRAME.lazy(), f"x.{end}", Format.from_option(end))
    if not known:
        Path(f"x.{end}").rename("x.data")
    asked = end if not known and end in ("tsv", "ndjson.zst") else None
    with open_source(["x.data" if not known else f"x.{end}"], InputOptions(format=asked)) as source:
        typed = read(source).cast({"a": pl.String, "b": pl.Float64})
    assert typed.equals(FRAME)
    assert listing() == ["x.data" if not known else f"x.{end}"]


def test_an_arrow_stream_is_read():
    FRAME.write_ipc_stream("stream")
    with open_source(["stream"]) as source:
        assert read(source).equals(FRAME)
        assert choose_format("-", None, source.format) == Format("arrow")


def test_compressed_text_without_an_ending_is_recognised():
    Path("x").write_bytes(gzip.compress(b' {"a": 1}\n'))
    with open_source(["x"]) as source:
        assert source.format == Format("ndjson", "gzip")


def test_text_stays_text():
    Path("x.csv").write_text("id,p\n007,0.10\n")
    with open_source(["x.csv"]) as source:
        assert read(source).row(0) == ("007", "0.10")


def test_integers_in_the_first_rows_do_not_make_a_column_integer():
    lines = ['{"p": 0}'] * 20_000 + ['{"p": 0.5}']
    Path("x.ndjson").write_text("\n".join(lines))
    with open_source(["x.ndjson"]) as source:
        assert read(source)["p"][-1] == 0.5


def test_globs_folders_and_lists_are_read_as_one_table(folder):
    for day in (3, 1, 2):
        inside = folder / "days" / f"day={day}"
        inside.mkdir(parents=True)
        pl.DataFrame({"x": [day]}).write_parquet(inside / "part.parquet")
    (folder / "days" / "_SUCCESS").touch()
    (folder / "days" / ".part.csv").touch()
    for given in (["days"], ["days/**/*.parquet"], ["days/day*"]):
        with open_source(given) as source:
            assert read(source)["x"].to_list() == [1, 2, 3]
            assert ("day" in source.schema) == (given == ["days"])
    with open_source(["days/day=2/part.parquet", "days/day=1"]) as source:
        assert read(source)["x"].to_list() == [2, 1]
        assert source.name == f"{Path('days/day=2/part.parquet')} and 1 more"
        assert source.place(1) == f"{Path('days/day=1/part.parquet')}: row 0"
        assert source.place(0) == f"{Path('days/day=2/part.parquet')}: row 0"


def test_names_that_look_like_globs_are_names():
    pl.DataFrame({"x": [1]}).write_csv("a[1].csv")
    with open_source(["a[1].csv"]) as source:
        assert read(source)["x"].to_list() == ["1"]


def test_standard_input_may_have_any_format(monkeypatch):
    for form in (b"x\n1\n", b'{"x": 1}\n', FRAME.lazy()):
        if isinstance(form, bytes):
            data = form
        else:
            FRAME.rename({"a": "x"}).write_parquet("x.parquet")
            data = Path("x.parquet").read_bytes()
        reading, writing = os.pipe()
        os.write(writing, data)
        os.close(writing)
        with os.fdopen(reading) as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            with open_source(["<standard>"]) as source:
                assert "x" in source.schema
                assert source.place(0) == "standard input: row 0"


@posix
def test_a_pipe_is_read():
    os.mkfifo("pipe")
    writer = threading.Thread(target=lambda: Path("pipe").write_text("x\n1\n"))
    writer.start()
    with open_source(["pipe"]) as source:
        assert read(source)["x"].to_list() == ["1"]
        assert source.place(0) == "pipe: row 0"
    writer.join()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["no.csv"], "no.csv: no such file"),
        (["*.csv"], r"\*.csv: no file matches"),
        (["empty"], "empty: no file in this folder ends in .csv"),
        (["<standard>", "x.tsv"], "standard input .* cannot be combined"),
        (["x.tsv", "x.ndjson"], "x.tsv: the files have several formats .ndjson, tsv."),
        (["x.parquet.gz"], "parquet files are compressed internally; remove the ending .gz"),
    ],
)
def test_missing_or_mixed_files_are_errors(folder, given, message):
    (folder / "empty").mkdir()
    for name in ("x.tsv", "x.ndjson", "x.parquet.gz"):
        (folder / name).touch()
    with pytest.raises(CommandError, match=message), open_source(given):
        pass


def test_unknown_formats_are_errors():
    with pytest.raises(CommandError, match="unknown format parket; did you mean 'parquet'"):
        Format.from_option("parket")
    assert choose_format("out", None, Format("csv", "gzip")) == Format("csv", "gzip")
    assert choose_format("<standard>", None, Format("csv", "gzip")) == Format("csv")
    assert choose_format("<standard>", "ndjson", Format("csv")) == Format("ndjson")


def test_a_broken_pipe_is_not_a_file_error():
    with pytest.raises(BrokenPipeError), file_errors("standard output"):
        raise OSError("Broken pipe (os error 32)")


def test_damaged_files_are_named(folder):
    (folder / "x.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(CommandError, match=r"x\.parquet: .*"):
        _ = Source([folder / "x.parquet"], Format("parquet"), ["x.parquet"]).schema


def test_writes_are_atomic(folder):
    (folder / "out.csv").write_text("old")
    (folder / "link.csv").symlink_to("out.csv")
    with pytest.raises(UnicodeEncodeError), output_to("link.csv") as path:
        Path(path).write_text("half, then \ud800")  # type: ignore[arg-type]
    assert (folder / "out.csv").read_text() == "old"
    with output_to("link.csv") as path:
        assert isinstance(path, Path)
        path.write_text("new")
    assert (folder / "out.csv").read_text() == "new"
    assert (folder / "link.csv").is_symlink()
    assert listing() == ["link.csv", "out.csv"]


@posix
def test_a_pipe_is_written_to_directly():
    os.mkfifo("pipe")
    found = []
    reader = threading.Thread(target=lambda: found.append(Path("pipe").read_text()))
    reader.start()
    with output_to("pipe") as path:
        assert isinstance(path, Path)
        path.write_text("through")
    reader.join()
    assert found == ["through"]
    assert Path("pipe").is_fifo()


@pytest.mark.parametrize(
    ("target", "message"),
    [("no/out.csv", "the folder does not exist"), (".", "is a folder; name a file")],
)
def test_invalid_targets_are_errors(target, message):
    with pytest.raises(CommandError, match=message), output_to(target):
        pass
