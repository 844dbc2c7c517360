"""Test what is in dist/ on every Python found, each in an environment of its own.

An environment holds the wheel, or one built from the source distribution where the wheel is for
another Python, its extras, and the other requirements of the tests: the lists that cibuildwheel
reads in pyproject.toml, and nothing else.
"""

import fnmatch
import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["cibuildwheel"]
#: Tags of the supported Pythons: cp311, ..., and cp314t, ... without the GIL.
TAGS = [tag.removesuffix("-*") for tag in SETTINGS["build"].split()]


def tag_of(python: str) -> str:
    """The tag of an interpreter in names of wheels, or none for a command that does not run."""
    code = (
        "import sys, sysconfig; free = sysconfig.get_config_var('Py_GIL_DISABLED'); "
        "print('cp%d%d' % sys.version_info[:2] + 't' * bool(free))"
    )
    run = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    return run.stdout.strip()


def find_pythons() -> dict[str, str]:
    """The supported Pythons on this machine by tag, this one first."""
    commands = [shutil.which(f"python3.{tag.removeprefix('cp3')}") for tag in TAGS]
    found: dict[str, str] = {}
    for path in [sys.executable, *filter(None, commands)]:
        # pyenv has commands for Pythons that another version would have to be active for.
        found.setdefault(tag_of(path), path)
    return {tag: path for tag, path in found.items() if tag in TAGS}


def settings(tag: str) -> dict[str, Any]:
    """What cibuildwheel would do with the wheel of a Python on Linux."""
    chosen = dict(SETTINGS)
    for override in SETTINGS["overrides"]:
        patterns = override["select"].split()
        if any(fnmatch.fnmatch(f"{tag}-manylinux_x86_64", pattern) for pattern in patterns):
            chosen |= override
    return chosen


def test(python: str, tag: str) -> None:
    """Install into a new environment and run the tests there."""
    chosen = settings(tag)
    folder = ROOT / "build" / "test-dist" / tag
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([python, "-m", "venv", str(folder)], check=True)  # noqa: S603
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    archives = [*(ROOT / "dist").glob(f"*-cp*-{tag}-*.whl"), *(ROOT / "dist").glob("*.tar.gz")]
    package = f"isoroc[{','.join(chosen['test-extras'])}] @ {archives[0].as_uri()}"
    pip = [str(scripts / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, package, *chosen["test-requires"]], check=True)  # noqa: S603
    command = shlex.split(chosen["test-command"].replace("{project}", ROOT.as_posix()))
    environment = os.environ | chosen["test-environment"]
    environment.pop("PYTHONPATH", None)  # of the installed package, not of the sources
    run = [str(scripts / command[0]), *command[1:]]
    subprocess.run(run, cwd=folder, env=environment, check=True)  # noqa: S603


def main() -> None:
    """Test on each Python in turn. The first failure ends it."""
    pythons = find_pythons()
    for tag, python in pythons.items():
        sys.stdout.write(f"{tag}: {python}\n")
        sys.stdout.flush()
        test(python, tag)
    missing = [tag for tag in TAGS if tag not in pythons]
    sys.stdout.write(f"tested on {', '.join(pythons)}; not found: {', '.join(missing) or 'none'}\n")


if __name__ == "__main__":
    main()
