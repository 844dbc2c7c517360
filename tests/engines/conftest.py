"""Engines, started once: a Spark session, and throw-away servers of PostgreSQL and MariaDB."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def spark():
    from pyspark.sql import SparkSession  # noqa: PLC0415

    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers import isoroc
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "4")
    for name in ("spark.driver.bindAddress", "spark.driver.host"):
        builder = builder.config(name, "127.0.0.1")
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def postgres():
    """A connection to a server that lives as long as the tests."""
    import psycopg  # noqa: PLC0415

    folder = tempfile.mkdtemp(prefix="isoroc-postgres-")
    programs = max(Path("/usr/lib/postgresql").glob("*/bin"))
    as_user = []
    if os.getuid() == 0:  # the server refuses to run as root
        as_user = ["runuser", "-u", "postgres", "--"]
        shutil.chown(folder, "postgres")
    data = f"{folder}/data"
    run = [*as_user, f"{programs}/initdb", "-D", data, "-U", "isoroc", "--auth=trust", "-N"]
    subprocess.run(run, check=True, capture_output=True, cwd="/")
    server = [*as_user, f"{programs}/pg_ctl", "-D", data, "-w", "-l", f"{folder}/log"]
    options = f"-c listen_addresses='' -k {folder}"
    subprocess.run([*server, "-o", options, "start"], check=True, capture_output=True, cwd="/")
    try:
        with psycopg.connect(host=folder, user="isoroc", dbname="postgres") as connection:
            connection.prepare_threshold = None  # tables of one name have columns of other types
            yield connection
    finally:
        subprocess.run([*server, "-m", "immediate", "stop"], check=True, capture_output=True)
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def mariadb():
    """A connection to a server that lives as long as the tests."""
    import pymysql  # noqa: PLC0415

    folder = tempfile.mkdtemp(prefix="isoroc-mariadb-")
    as_user = []
    if os.getuid() == 0:  # the server refuses to run as root
        as_user = ["--user=mysql"]
        shutil.chown(folder, "mysql")
    data = f"--datadir={folder}/data"
    socket = f"{folder}/socket"
    install = ["mariadb-install-db", "--no-defaults", data, "--skip-test-db", *as_user]
    install.append("--auth-root-authentication-method=normal")
    subprocess.run(install, check=True, capture_output=True, cwd="/")
    program = shutil.which("mariadbd", path=f"{os.environ['PATH']}:/usr/sbin") or "mariadbd"
    server = [program, "--no-defaults", data, f"--socket={socket}", "--skip-networking", *as_user]
    with Path(folder, "log").open("wb") as log:
        process = subprocess.Popen(server, stdout=log, stderr=log, cwd="/")
    try:
        for _ in range(300):
            if Path(socket).exists():
                break
            time.sleep(0.1)
        with pymysql.connect(unix_socket=socket, user="root") as connection:
            connection.cursor().execute("CREATE DATABASE isoroc")
            connection.select_db("isoroc")
            yield connection
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)
