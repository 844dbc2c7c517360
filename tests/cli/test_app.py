import re
import runpy
import shlex
import sys
import warnings
from pathlib import Path

import pytest

import isoroc
from isoroc._cli import app, main
from isoroc._cli.options import STANDARD
from isoroc._cli.process import discard_output
from isoroc._cli.terminal import print_table, progress_bar
from isoroc._cli.texts import COMMANDS


def test_version_and_help(run_cli):
    assert run_cli("--version").text == f"{isoroc.__version__}\n"
    ran = run_cli("--help")
    assert ran.code == 0
    assert "Exit codes: 0 success" in ran.text
    for name in COMMANDS:
        assert f" {name} " in ran.text
        shown = run_cli(name, "--help").text
        assert f"Usage: isoroc {name}" in shown
        assert f"isoroc {name}" in shown.partition("Usage")[2].partition("\n")[2]  # an example


def test_the_examples_in_help_texts_parse():
    blocks = re.findall(r"(?s)```\n(.*?)```", "".join(COMMANDS.values()))
    lines = "".join(blocks).splitlines()
    assert len(lines) >= 20
    for line in lines:
        split = shlex.split(line.partition("isoroc ")[2].partition(" | ")[0])
        words = [STANDARD if word == "-" else word for word in split]
        command, bound, _ = app.build().parse_args(words)
        assert command.__name__ == words[0]
        assert bound.arguments or words[0] in ("calibrators", "demo")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fot"], "fot: not a command; did you mean 'fit'?"),
        (["fit"], "requires an argument"),
        (["evaluate", "x.csv", "--modle", "m"], "--modle"),
        (["evaluate", "x.csv", "--confidence", "many"], "many"),
        (["export", "m.json", "--input-type", "half"], "half"),
    ],
)
def test_usage_errors_are_one_line(run_cli, words, message):
    ran = run_cli(*words)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1


def test_debug_shows_the_traceback(run_cli):
    ran = run_cli("fit", "no.csv", "-o", "m.json", "--debug")
    assert ran.code == 2
    assert "Traceback" in ran.err
    assert ran.err.endswith("isoroc: error: no.csv: no such file; check the name.\n")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyError("x"), 3, "isoroc: internal error: KeyError: 'x'; use --debug for details\n"),
        (KeyboardInterrupt(), 130, "isoroc: ended by SIGINT\n"),
        (ImportError("onnx: pip install onnx"), 2, "error: onnx: pip install"),
        (PermissionError(13, "Permission denied", "m.json"), 2, "m.json: Permission denied"),
        (TypeError(), 2, "isoroc: error: TypeError\n"),
    ],
)
def test_exit_codes(run_cli, monkeypatch, error, code, message):
    def fail():
        raise error

    monkeypatch.setattr("isoroc._cli.commands.demo.demo", fail)
    ran = run_cli("demo")
    assert ran.code == code
    assert message in ran.err


def test_a_broken_pipe_is_not_reported(run_cli, monkeypatch):
    def fail():
        raise BrokenPipeError

    monkeypatch.setattr("isoroc._cli.commands.demo.demo", fail)
    discarded = []
    monkeypatch.setattr(app, "discard_output", lambda: discarded.append(True))
    assert run_cli("demo").code == 141
    assert discarded == [True]


def test_warnings_are_one_line(run_cli, monkeypatch):
    def warn():
        warnings.simplefilter("always")
        warnings.warn("mind the gap", stacklevel=1)

    monkeypatch.setattr("isoroc._cli.commands.demo.demo", warn)
    ran = run_cli("demo")
    assert (ran.code, ran.err) == (0, "isoroc: warning: mind the gap\n")


def test_a_missing_extra_is_named_with_the_command_that_installs_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "polars", None)  # as if it were not installed
    assert main(["fit"]) == 2
    message = "isoroc: the command line needs polars: pip install polars\n"
    assert capsys.readouterr().err == message


def test_a_failed_import_is_named(run_cli, monkeypatch):
    monkeypatch.setitem(sys.modules, "isoroc._cli.commands.export", None)
    ran = run_cli("export", "m.json", "--sql", "duckdb")
    assert (ran.code, "halted" in ran.err, ran.err.count("\n")) == (2, True, 1)


def test_the_default_is_the_command_line_of_the_process(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["isoroc", "--version"])
    assert main() == 0
    assert capsys.readouterr().out == f"{isoroc.__version__}\n"


def test_python_m(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["isoroc", "--version"])
    main_file = str(Path(isoroc.__file__).with_name("__main__.py"))
    with pytest.raises(SystemExit, match="0"):
        runpy.run_path(main_file, run_name="__main__")
    assert capsys.readouterr().out == f"{isoroc.__version__}\n"


def test_output_is_discarded(tmp_path, monkeypatch):
    with (tmp_path / "out").open("w") as out:
        monkeypatch.setattr("sys.stdout", out)
        discard_output()
        out.write("ignored")
    assert (tmp_path / "out").read_text() == ""


def test_terminals_show_progress_bars_and_fitted_tables(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    with progress_bar("reading", 30) as advance:
        advance(30)
    print_table("title", ["name", "value"], [["a" * 200, "1"]])
    out, err = (re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text) for text in capsys.readouterr())
    assert "30/30 rows" in err
    assert max(map(len, out.splitlines())) == 60


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_and_options(shell):
    script = app.build().generate_completion(shell=shell)
    for word in ("evaluate", "fail-if", "probs", "output-format"):
        assert word in script
