"""What all benchmarks share: where a result goes, and what stands beside it so that it can be compared."""

from __future__ import annotations

import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

HOME: Final = Path(__file__).resolve().parents[1]
RESULTS: Final = HOME / "bench" / "results"

sys.path.insert(0, str(HOME / "src"))  # the tree that the script lies in, whatever is installed


def commit() -> str:
    """The commit that was measured, with a plus if the sources differ from it."""

    def git(*command: str) -> str:
        return subprocess.run(["git", *command], capture_output=True, text=True, check=False, cwd=HOME).stdout.strip()

    changed = "+" if git("status", "--porcelain", "--", "src") else ""
    return (git("rev-parse", "--short", "HEAD") or "unknown") + changed


def machine() -> dict[str, float]:
    """How fast this machine does now what never changes: to tell a slow product from a busy machine."""
    data, calls = bytes(1_000), 20_000
    body = msgspec.msgpack.encode([bytes(100)] * 600)
    unpack = msgspec.msgpack.Decoder(list[bytes]).decode

    def callbacks() -> int:
        seen: list[bytes] = []
        append = seen.append
        for at in range(calls):
            append(data[at % 900 : at % 900 + 100])
        return calls

    def unpacking() -> int:
        for _ in range(20):
            unpack(body)
        return 20 * 600

    return {
        "slice_and_call_ns": round(best_us(callbacks, 0.1)[0] * 1_000, 1),
        "unpack_ns": round(best_us(unpacking, 0.1)[0] * 1_000, 1),
        "tcp_cpu_s_per_gb": round(best_us(_over_tcp, 0.3)[0] * 1_000, 2),
    }


def _over_tcp() -> int:
    """16 MiB over loopback in writes of 64 KiB; bytes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        out = socket.create_connection(server.getsockname())
        into, _ = server.accept()
    chunk, buffer, count = bytes(64 << 10), bytearray(256 << 10), 256
    with out, into:
        for _ in range(count):
            out.sendall(chunk)
            left = len(chunk)
            while left:
                left -= into.recv_into(buffer)
    return count * len(chunk)


class Result:
    """One line of bench/results/<name>.jsonl; the load is that of the whole machine, before and after."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.began = time.monotonic()
        self.load = [round(load, 2) for load in os.getloadavg()]

    def write(self, *, told: bool = True, **measured: Any) -> None:
        """Append the line, and print it unless the caller tells it in its own words."""
        line = {
            "bench": self.name,
            "commit": commit(),
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "seconds": round(time.monotonic() - self.began, 1),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "load_before": self.load,
            "load_after": [round(load, 2) for load in os.getloadavg()],
            "machine": machine(),
        } | measured
        RESULTS.mkdir(exist_ok=True)
        with (RESULTS / f"{self.name}.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")
        if told:
            short = {"commit": line["commit"], "load": self.load, "machine": line["machine"]} | measured
            print(json.dumps(short), flush=True)


def passed(name: str, **part: Any) -> dict[str, Any] | None:
    """The last line of bench/results/<name>.jsonl with these values, if it was measured on this commit without a fault.

    A long measurement in parts goes on behind those parts.
    """
    path, now = RESULTS / f"{name}.jsonl", commit()
    lines = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
    wanted = part | {"commit": now, "faults": []}
    found = [line for line in lines if all(line.get(key) == value for key, value in wanted.items())]
    return found[-1] if found and not now.endswith("+") else None


def busy_seconds() -> float:
    """CPU seconds that all processes of this machine have used since it started."""
    user, nice, system, _idle, _wait, *others = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9])
    return (user + nice + system + sum(others)) / os.sysconf("SC_CLK_TCK")


def best_us(work: Callable[[], int], seconds: float) -> tuple[float, float]:
    """Microseconds of CPU per unit of `work`, which says how many units it did: the best and the median round.

    The best is what it costs; what is above it is what else the machine did.
    """
    rounds: list[float] = []
    end = time.monotonic() + seconds
    while len(rounds) < 5 or time.monotonic() < end:
        before = time.process_time_ns()
        units = work()
        rounds.append((time.process_time_ns() - before) / 1_000 / units)
    return min(rounds), statistics.median(rounds)


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of them lie; `values` is sorted."""
    return values[min(len(values) - 1, int(share * len(values)))]
