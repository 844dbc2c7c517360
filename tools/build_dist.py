"""Build the source distribution and a wheel from it, with the same bytes every time.

The clock of the build is the date of the last commit, or SOURCE_DATE_EPOCH where that is set.
setuptools honours it for wheels. Source distributions are packed again here, because setuptools
leaves the times and owners of the files on the builder's disk in them.
"""

import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"


def commit_time() -> str:
    """Seconds since 1970 at the last commit."""
    command = ["git", "log", "-1", "--format=%ct"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603
    return run.stdout.strip()


def repack(path: Path, epoch: int) -> None:
    """Write a .tar.gz again with sorted names, one time and no owner."""
    packed = io.BytesIO()
    with (
        tarfile.open(path) as old,
        gzip.GzipFile("", "wb", fileobj=packed, mtime=epoch) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for entry in sorted(old.getmembers(), key=lambda member: member.name):
            content = old.extractfile(entry)
            entry.mtime = epoch
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
            entry.pax_headers = {}
            new.addfile(entry, content)
    path.write_bytes(packed.getvalue())


def main() -> None:
    """Replace what is in dist/ by one source distribution and one wheel."""
    os.environ.setdefault("SOURCE_DATE_EPOCH", commit_time())
    build = [sys.executable, "-m", "build", "--outdir", str(DIST)]
    for old in [*DIST.glob("*.tar.gz"), *DIST.glob("*.whl")]:
        old.unlink()
    subprocess.run([*build, "--sdist", str(ROOT)], check=True)  # noqa: S603
    (source,) = DIST.glob("*.tar.gz")
    repack(source, int(os.environ["SOURCE_DATE_EPOCH"]))
    work = ROOT / "build" / "dist"
    shutil.rmtree(work, ignore_errors=True)
    with tarfile.open(source) as archive:
        archive.extractall(work, filter="data")
    unpacked = work / source.name.removesuffix(".tar.gz")
    subprocess.run([*build, "--wheel", str(unpacked)], check=True)  # noqa: S603


if __name__ == "__main__":
    main()
