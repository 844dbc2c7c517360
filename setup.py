"""The compiled kernels and the links of releases; everything else is in pyproject.toml."""

import os
import platform
import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

# setuptools has these since Python has not.
from distutils.ccompiler import new_compiler  # isort: skip
from distutils.errors import DistutilsPlatformError  # isort: skip
from distutils.sysconfig import customize_compiler  # isort: skip

SUBJECTS = ("growth", "pav", "rows", "smooth", "surface")

# Comparisons that need not trap become vector instructions.
OPTIONS = {} if sys.platform == "win32" else {"smooth": ["-fno-trapping-math"]}
if sys.platform == "linux":
    # GCC makes vectors of the eight rows of a tile before it unrolls the loop over them. The other
    # way round, loops over the classes take up to twice as long.
    OPTIONS["smooth"].append("--param=max-completely-peel-times=4")

ROOT = Path(__file__).resolve().parent
HOME = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["isoroc"]["home"]


#: Commands that compile.
BUILDS = {"bdist_wheel", "build", "build_ext", "develop", "editable_wheel", "install"}

#: Where a compiler comes from.
SOURCES = {
    "darwin": "run xcode-select --install",
    "win32": 'install "Build Tools for Visual Studio" with "Desktop development with C++"',
    "linux": "on Debian and Ubuntu run apt install gcc libc6-dev python3-dev, "
    "on Fedora dnf install gcc python3-devel",
}


def lacks_compiler() -> bool:
    """Whether there is no C compiler, or none of the headers of Python."""
    compiler = new_compiler()
    customize_compiler(compiler)
    try:
        if compiler.compiler_type == "msvc":
            compiler.initialize()
        else:
            version = [compiler.compiler_so[0], "--version"]
            subprocess.run(version, capture_output=True, check=True)  # noqa: S603
    except (DistutilsPlatformError, OSError, subprocess.CalledProcessError):
        return True
    return not Path(sysconfig.get_path("include"), "Python.h").exists()


def compiler_needed(platform: str) -> str:
    """What to tell those who lack one, in one line."""
    fix = SOURCES.get(platform, SOURCES["linux"])
    return f"isoroc needs a C compiler and the headers of Python to be built: {fix}"


def absolute(text: str, home: str) -> str:
    """Markdown whose relative links lead to files of the repository at home, if there is one."""
    if not home:
        return text
    text = text.replace('<img src="', f'<img src="{home}/raw/main/')
    return re.sub(
        r"(!?)(\[[^\]]*\]\()(?!https?:|#)",
        lambda link: f"{link[1]}{link[2]}{home}/{'raw' if link[1] else 'blob'}/main/",
        text,
    )


def urls(home: str) -> dict[str, str]:
    """The links that the package index shows next to a release."""
    if not home:
        return {}
    return {
        "Repository": home,
        "Documentation": f"{home}/tree/main/docs",
        "Issues": f"{home}/issues",
        "Changelog": f"{home}/blob/main/CHANGELOG.md",
    }


# Two other ways to compile the kernels, each in a build folder of its own. ISOROC_KERNELS=checked
# has bounds checks and the compiler's sanitizers, for `make sanitize`. ISOROC_KERNELS=fused lets
# the compiler replace a * b + c by one instruction that rounds once, for `make test-digits`.
KERNELS = os.environ.get("ISOROC_KERNELS", "")
if KERNELS not in {"", "checked", "fused"}:
    sys.exit(f"ISOROC_KERNELS is {KERNELS!r}; expected checked or fused")
CHECKED = KERNELS == "checked"
BUILD = f"build/{KERNELS}" if KERNELS else "build"

link_args = []
if CHECKED:
    compile_args = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-omit-frame-pointer"]
    compile_args += ["-fno-sanitize-recover=undefined"]
    link_args = ["-fsanitize=address,undefined"]
elif sys.platform == "win32":
    compile_args = ["/O2", "/W3"]  # does not fuse by default
else:
    # Without debugging information the bytes of a wheel do not depend on the folder of the build.
    compile_args = ["-O3", "-g0", "-Wall", "-Wextra"]
    # Rounding once where another machine rounds twice would change the last digit of forecasts.
    compile_args += ["-ffp-contract=fast" if KERNELS == "fused" else "-ffp-contract=off"]
    if KERNELS == "fused" and platform.machine() in {"x86_64", "AMD64"}:
        compile_args += ["-mfma"]

if __name__ == "__main__":
    os.umask(0o022)  # a wheel holds the modes of its files, which must not depend on the builder
    if BUILDS & set(sys.argv) and lacks_compiler():
        sys.exit(compiler_needed(sys.platform))
    setup(
        long_description=absolute((ROOT / "README.md").read_text("utf-8"), HOME),
        long_description_content_type="text/markdown",
        project_urls=urls(HOME),
        ext_modules=cythonize(
            [
                Extension(
                    f"isoroc._core.{name}",
                    [f"src/isoroc/_core/{name}.pyx"],
                    depends=["setup.py"],  # other options compile again
                    extra_compile_args=compile_args + OPTIONS.get(name, []),
                    extra_link_args=link_args,
                    define_macros=[("ISOROC_CHECKED", "1" if CHECKED else "0")],
                )
                for name in SUBJECTS
            ],
            build_dir=f"{BUILD}/c",
            compiler_directives={
                "language_level": 3,
                "boundscheck": CHECKED,
                "initializedcheck": CHECKED,
                "wraparound": False,
                "cdivision": True,
                "freethreading_compatible": True,
            },
        ),
        options={
            "build": {"build_base": BUILD},
            "build_ext": {"parallel": os.cpu_count()},
        },
    )
