"""Messages of the command name its options, never arguments of Python, and advise what works."""

import ast
import errno
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import isoroc
from isoroc._cli.errors import in_options

PACKAGE = Path(isoroc.__file__).parent
#: Packages whose errors the commands can show. Dataframes and tensors stay in Python.
REACHABLE = ("_input", "_calibrators", "_counts", "_evaluation", "_maps", "metrics", "export")
IN_PYTHON = ("arrays.py", "classifier.py", "frames.py", "tensors.py", "_torch.py", "thresholds.py")


def texts_of(path):
    """Texts of a module with several words, without docstrings."""
    tree = ast.parse(path.read_text())
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    parts = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield re.sub(r"\{[^{}]*\}", "x", ast.unparse(node))
        elif isinstance(node, ast.Constant) and id(node) not in told | parts:
            yield str(node.value)


def test_no_text_of_the_library_names_a_python_argument_in_the_command():
    found = [
        text
        for folder in REACHABLE
        for path in sorted((PACKAGE / folder).rglob("*.py"))
        if path.name not in IN_PYTHON
        for text in texts_of(path)
        if " " in text
        and "\n" not in text
        and re.search(
            r"\b(unit|labels|weighting|monotone|fold_by|folds|members)=|Calibrator\b", text
        )
    ]
    assert len(found) > 15
    for text in found:
        shown = in_options(text)
        assert re.search(r"\b[a-z_]+=[\"\w]|labels=|Calibrator\b", shown) is None, shown
        assert "--" in shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('say: unit="logit", unit="rank"', "say: --unit logit, --unit rank"),
        ("once; labels= sets the classes", "once; --classes sets the classes"),
        ("use AutoCalibrator(monotone=True)", "use --calibrator auto --monotone true"),
        ("use BetaCalibrator or IRPCalibrator", "use --calibrator beta or --calibrator irp"),
        ("count with another fold_by=", "count with another --fold-by"),
        ('with unit="logit", "percent" or "rank"', "with --unit logit, percent or rank"),
        ("the value 'a=b' of row 3", "the value 'a=b' of row 3"),
    ],
)  # fmt: skip
def test_arguments_become_options(text, expected):
    assert in_options(text) == expected


def scores(n=400, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 2, n)
    return p, (rng.random(n) < p).astype(int)


def test_arguments_that_the_user_gave_are_named_as_options(run_cli):
    p, y = scores()
    pl.DataFrame({"score": p, "y": y}).write_csv("x.csv")
    ran = run_cli("fit", "x.csv", "-o", "m.json", "-c", "irp", "--max-bins", "0")
    assert (ran.code, ran.err.split(":")[2]) == (2, " --max-bins")
    ran = run_cli("fit", "x.csv", "-o", "m.json", "--members", "irp,nothing")
    assert (ran.code, "nothing: not a calibrator" in ran.err) == (2, True)
    assert run_cli("fit", "x.csv", "-o", "m.json", "--members", "beta,identity").code == 0
    assert [type(m).__name__ for m in isoroc.load("m.json").members] == [
        "BetaCalibrator",
        "IdentityCalibrator",
    ]


def test_logarithms_of_probabilities_are_recognised(run_cli):
    p, y = scores()
    pl.DataFrame({"p_0": np.log(1 - p), "p_1": np.log(p), "y": y}).write_csv("x.csv")
    words = ["fit", "x.csv", "-o", "m.json", "-c", "beta"]
    ran = run_cli(*words)
    assert (ran.code, "--unit log_probability." in ran.err) == (2, True)
    assert run_cli(*words, "--unit", "log_probability").code == 0


def test_percentages_of_the_other_class_are_not_read_as_log_odds(run_cli, folder):
    p, y = scores()
    pl.DataFrame({"score": 100 * (1 - p), "y": y}).write_csv("x.csv")
    words = ["fit", "x.csv", "-o", "m.json", "-c", "beta"]
    ran = run_cli(*words)
    assert (ran.code, (folder / "m.json").exists()) == (2, False)
    assert "worse than chance" in ran.err
    assert "--unit percent" in ran.err
    assert "--classes" in ran.err
    assert run_cli(*words, "--unit", "percent", "--classes", "0").code == 0


def test_conditions_that_a_message_advises_work(run_cli):
    p, y = scores(60)
    texts = [f"{value:.6f}" for value in p]
    texts[7] = "N/A"
    pl.DataFrame({"my score": texts, "y": y}).write_csv("x.csv")
    words = ["fit", "x.csv", "-o", "m.json", "-c", "beta", "--probs", "my score"]
    ran = run_cli(*words)
    assert ran.code == 2
    [advised] = re.findall(r'--where "(.*)"\.', ran.err)
    for where in (
        advised.replace("\\", ""),
        "\"my score\" <> 'N/A'",
        "\"my score\" <> 'N/A' AND y < 2",
    ):
        ran = run_cli(*words, "--where", where)
        assert (ran.code, "59 rows" in ran.err) == (0, True), ran.err


def test_decimal_commas_and_other_encodings_have_a_hint(run_cli):
    Path("comma.csv").write_text("score;y\n0,25;0\n0,75;1\n")
    ran = run_cli("fit", "comma.csv", "-o", "m.json")
    assert (ran.code, "decimal point, such as 0.25" in ran.err) == (2, True)
    for header in ("score,y,größe", "score,y,size"):
        Path("cp1252.csv").write_bytes(f"{header}\n0.25,0,groß\n0.75,1,groß\n".encode("cp1252"))
        ran = run_cli("fit", "cp1252.csv", "-o", "m.json")
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert "cp1252.csv: not UTF-8; convert the file" in ran.err


def test_columns_that_cannot_describe_rows(run_cli):
    p, y = scores()
    pl.DataFrame({"score": p, "y": y, "a": y}).write_csv("x.csv")
    for command in (
        ["fit", "x.csv", "-o", "m.json"],
        ["evaluate", "x.csv"],
        ["report", "x.csv", "--json"],
    ):
        for columns, problem in {"a,a": "named twice", "a,y": "'y' holds the outcomes"}.items():
            ran = run_cli(*command, "--segments", columns)
            assert (ran.code, problem in ran.err) == (2, True), ran.err
    ran = run_cli("evaluate", "x.csv", "--clusters", "y")
    assert (ran.code, "--clusters: 'y' holds the outcomes" in ran.err) == (2, True)


def test_rate_of_an_empty_table(run_cli):
    Path("x.csv").write_text("score,y\n")
    ran = run_cli("rate", "x.csv")
    assert (ran.code, ran.err) == (2, "isoroc: error: x.csv: no rows; at least one is needed.\n")


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("option", ["--state", "--prometheus"])
def test_a_full_disk_names_the_file(run_cli, monkeypatch, option):
    def fail(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fail)
    ran = run_cli("monitor", "model.json", "data.csv", option, "kept.txt")
    assert (ran.code, ran.err) == (2, "isoroc: error: kept.txt: No space left on device\n")
    assert not Path("kept.txt").exists()
