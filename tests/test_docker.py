"""The Dockerfile; `make lint` checks its style. No test builds the image."""

import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

pytestmark = pytest.mark.project

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def instructions():
    text = re.sub(r"(?m)^#.*\n", "", (ROOT / "Dockerfile").read_text()).replace("\\\n", " ")
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip()]


def values(name):
    return [value for word, value in instructions() if word == name]


def defaults():
    return dict(value.split("=") for value in values("ARG"))


def test_the_image_has_a_supported_python_and_existing_extras():
    versions = [x.rpartition(" ")[2] for x in PROJECT["classifiers"] if "Python :: 3." in x]
    assert defaults()["PYTHON"] in versions
    extras = set(defaults()["EXTRAS"].split(","))
    assert "cli" in extras
    assert extras <= set(PROJECT["optional-dependencies"])


def test_the_compiler_stays_in_the_first_stage_and_the_command_is_not_run_by_root():
    stages = [k for k, (word, _) in enumerate(instructions()) if word == "FROM"]
    assert len(stages) == 2
    last = instructions()[stages[1] :]
    assert "apt-get" not in str(last)
    assert [value for word, value in last if word == "USER"] == ["10001"]
    assert last[-2:] == [("ENTRYPOINT", '["isoroc"]'), ("CMD", '["--help"]')]
    assert "isoroc" in PROJECT["scripts"]


def is_sent(path):
    """Whether .dockerignore leaves a path in the context; the last pattern that matches decides."""
    sent = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!").removeprefix("**/")
        inside = [path, *(str(parent) for parent in Path(path).parents)]
        names = inside if "**" not in line else [*inside, Path(path).name, *Path(path).parts]
        if line and line[0] != "#" and any(fnmatch(name, pattern) for name in names):
            sent = line.startswith("!")
    return sent


def test_the_context_is_what_a_wheel_is_built_from():
    needed = ["pyproject.toml", "setup.py", PROJECT["readme"], *PROJECT["license-files"]]
    sources = [path.relative_to(ROOT) for path in (ROOT / "src" / "isoroc").rglob("*.*")]
    suffixes = {".py", ".pyi", ".pyx", ".pxd", ".h"}
    needed += [str(path) for path in sources if path.suffix in suffixes]
    assert all(is_sent(path) for path in needed)
    others = [".git/config", ".venv/bin/python", "tests/test_docker.py", "isoroc.toml"]
    others += ["src/isoroc/_core/rows.cpython-313.so", "src/isoroc/__pycache__/x.pyc"]
    assert not any(is_sent(path) for path in others)
