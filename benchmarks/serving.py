"""Serving a model file: what loading costs, how threads share a map, and the FastAPI example.

    python benchmarks/serving.py [--classes K] [--seconds S] [--only load threads service]

`load`: CPU seconds and peak memory of a new process up to its first forecast. `threads`: rows per
second of one map in one process. `service`: latency of examples/serve.py under uvicorn, one
process, with clients on the same machine that keep their connections, and its CPU time for each
request; its peak memory and threads. Runs on Linux; needs what benchmarks/requirements.txt lists.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import isoroc

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

#: Prints the CPU seconds of its process, and its memory as Linux says it.
USED = """
import json, pathlib, resource
used = resource.getrusage(resource.RUSAGE_SELF)
status = pathlib.Path("/proc/self/status").read_text()
print(json.dumps([used.ru_utime + used.ru_stime, status]))
"""
STARTS = {
    "`import numpy`": "import numpy",
    "`isoroc.load_map`": "import isoroc, sys; isoroc.load_map(sys.argv[1]).predict_proba({row})",
    "`isoroc.load`": "import isoroc, sys; isoroc.load(sys.argv[1]).predict_proba({row})",
}
#: Runs the example until it is interrupted.
SERVER = """
import sys
sys.path.insert(0, sys.argv[3])
import uvicorn
from serve import create_app
uvicorn.run(create_app(sys.argv[1]), port=int(sys.argv[2]), log_level="error")
"""


def forecasts(n_rows: int, n_classes: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(n_classes, 0.3), n_rows)


def model_file(folder: str, n_classes: int) -> Path:
    rng = np.random.default_rng(1)
    P = forecasts(2000, n_classes)
    y = [rng.choice(n_classes, p=0.6 * p + 0.4 / n_classes) for p in P]
    path = Path(folder, "model.json")
    isoroc.AutoCalibrator(random_state=0).fit(P, y, labels=range(n_classes)).save(path)
    return path


def peak_memory(status: str) -> float:
    """Peak memory in MB of a process, from its /proc/PID/status."""
    return int(status.split("VmHWM:")[1].split(maxsplit=1)[0]) * 1024 / 1e6


def measure_load(path: Path, n_classes: int) -> None:
    print("| to the first forecast | CPU seconds | peak memory, MB |\n|---| ---: | ---: |")
    row = [[1 / n_classes] * n_classes]
    for name, code in STARTS.items():
        words = [sys.executable, "-c", code.format(row=row) + USED, str(path)]
        runs = [json.loads(subprocess.check_output(words)) for _ in range(5)]  # noqa: S603
        seconds = min(seconds for seconds, _ in runs)
        peak = min(peak_memory(status) for _, status in runs)
        print(f"| {name} | {seconds:.2f} | {peak:.0f} |")


def measure_threads(path: Path, n_classes: int, seconds: float) -> None:
    served = isoroc.load_map(path)
    print("\n| rows of a call | threads | calls per second | rows per second |")
    print("| ---: | ---: | ---: | ---: |")
    for n_rows in (1, 1000):
        P = forecasts(n_rows, n_classes)
        for n_threads in (1, 2, 4):
            end = time.perf_counter() + seconds

            def calls(_: int, P: np.ndarray = P, end: float = end) -> int:
                done = 0
                while time.perf_counter() < end:
                    served.predict_proba(P)
                    done += 1
                return done

            with ThreadPoolExecutor(n_threads) as pool:
                rate = sum(pool.map(calls, range(n_threads))) / seconds
            print(f"| {n_rows:,} | {n_threads} | {rate:,.0f} | {rate * n_rows:,.0f} |")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def cpu_seconds(pid: int) -> float:
    """CPU seconds that a process has used, from its /proc/PID/stat."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def answered(port: int, body: bytes, n_clients: int, seconds: float) -> list[float]:
    """Latencies of all requests that clients send at the same time."""
    latencies: list[float] = []
    arguments = port, body, time.perf_counter() + seconds, latencies
    clients = [threading.Thread(target=ask, args=arguments) for _ in range(n_clients)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    return latencies


def ask(port: int, body: bytes, end: float, latencies: list[float]) -> None:
    """Send requests one after the other on one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    while time.perf_counter() < end:
        start = time.perf_counter()
        connection.request("POST", "/calibrate", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        latencies.append(time.perf_counter() - start)
        if answer.status != 200:
            raise SystemExit(f"the service answered {answer.status}")
    connection.close()


def wait_for(port: int) -> None:
    for _ in range(300):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit("the service did not start")


def measure_service(path: Path, n_classes: int, seconds: float) -> None:
    port = free_port()
    words = [sys.executable, "-c", SERVER, str(path), str(port), str(EXAMPLES)]
    server = subprocess.Popen(words)  # noqa: S603
    try:
        wait_for(port)
        print("\n| rows | clients | median, ms | 99 %, ms | requests per second | CPU, ms |")
        print("| ---: | ---: | ---: | ---: | ---: | ---: |")
        for n_rows in (1, 100, 1000):
            body = json.dumps({"forecasts": forecasts(n_rows, n_classes).tolist()}).encode()
            for n_clients in (1, 8):
                before = cpu_seconds(server.pid)
                latencies = answered(port, body, n_clients, seconds)
                median, late = 1e3 * np.quantile(latencies, [0.5, 0.99])
                rate = len(latencies) / seconds
                cpu = 1e3 * (cpu_seconds(server.pid) - before) / len(latencies)
                line = (f"{n_rows:,}", n_clients, f"{median:.1f}", f"{late:.1f}", f"{rate:,.0f}")
                print("|", *(f"{cell} |" for cell in line), f"{cpu:.2f} |")
        status = Path(f"/proc/{server.pid}/status").read_text("utf-8")
        threads = status.split("Threads:")[1].split()[0]
        print(f"\nThe service: peak memory {peak_memory(status):.0f} MB, {threads} threads.")
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--classes", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parts = ("load", "threads", "service")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # of the service: it has threads of its own
    with tempfile.TemporaryDirectory() as folder:
        path = model_file(folder, options.classes)
        if "load" in options.only:
            measure_load(path, options.classes)
        if "threads" in options.only:
            measure_threads(path, options.classes, options.seconds)
        if "service" in options.only:
            measure_service(path, options.classes, options.seconds)


if __name__ == "__main__":
    main()
