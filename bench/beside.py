"""What a user would pick instead, with the same load on the same machine in one run: four processes that all send as
fast as they can, each of which receives all messages in one order, which is verified; then a lone sender.

    python bench/beside.py              # needs: apt-get install redis-server
                                        #        pip install pyzmq pysyncobj
    python bench/beside.py --table      # writes the last figures into docs/performance.md

- Redis streams: XADD in pipelines, XREAD in each process; a server without disk and without a copy.
- ZeroMQ forwarder: one more process that sends on (PULL to PUB) what all the others push to it; nothing is repeated.
- PySyncObj: a replicated log of Raft, in memory and never compacted, of four processes.

A process has at most IN_FLIGHT bytes of its own on their way.  CPU seconds are those of all processes, servers too.
What is not installed is named and left out.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import importlib.util
import itertools
import json
import os
import re
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Protocol

import common  # first: it makes this tree the one that is measured
import total_order

MEMBERS: Final = 4
HEAD: Final = struct.Struct(">BxxxI")  # who sent it, and its number there
IN_FLIGHT: Final = 1 << 20
PATIENCE: Final = 90.0  # seconds for one load, beside its own
WARM_SECONDS, COOL_SECONDS = 2.0, 0.5
LONE: Final = (100, 200)  # bytes, and messages a second
PAGE: Final = common.HOME / "docs" / "performance.md"
TABLE: Final = re.compile(r"(<!-- figures: bench/beside.py -->\n).*?(<!-- end of the figures -->\n)", re.DOTALL)


class Peer(Protocol):
    """One process's end of a system that gives all processes the same messages in one order."""

    def send(self, payloads: list[bytes]) -> None: ...

    def receive(self, seconds: float) -> Sequence[bytes]:
        """What came, in order; empty if nothing came for that long."""


# -- the systems


class Redis:
    """All processes add to one stream and read it from its beginning."""

    def __init__(self, index: int, ports: list[int]) -> None:
        import redis

        self.redis = redis.Redis(port=ports[0])
        self.last: Any = "0"

    def send(self, payloads: list[bytes]) -> None:
        with self.redis.pipeline(transaction=False) as pipe:
            for payload in payloads:
                pipe.xadd("s", {"m": payload}, maxlen=200_000, approximate=True)
            pipe.execute()

    def receive(self, seconds: float) -> Sequence[bytes]:
        found: Any = self.redis.xread({"s": self.last}, count=1_000, block=max(1, round(seconds * 1_000)))
        if not found:
            return ()
        entries = found[0][1]
        self.last = entries[-1][0]
        return [entry[1][b"m"] for entry in entries]


class ZeroMQ:
    """Pushes to the forwarder, and subscribes to all of it."""

    def __init__(self, index: int, ports: list[int]) -> None:
        import zmq

        context, self.again, self.noblock = zmq.Context(), zmq.Again, zmq.NOBLOCK
        self.out, self.into = context.socket(zmq.PUSH), context.socket(zmq.SUB)
        self.into.setsockopt(zmq.RCVHWM, 0)
        self.into.setsockopt(zmq.SUBSCRIBE, b"")
        self.out.connect(f"tcp://127.0.0.1:{ports[0]}")
        self.into.connect(f"tcp://127.0.0.1:{ports[1]}")

    def send(self, payloads: list[bytes]) -> None:
        for payload in payloads:
            self.out.send(payload)

    def receive(self, seconds: float) -> Sequence[bytes]:
        found: list[bytes] = []
        if self.into.poll(seconds * 1_000):
            with contextlib.suppress(self.again):
                while len(found) < 1_000:
                    found.append(self.into.recv(self.noblock))
        return found


def forward(ports: list[int]) -> None:
    import zmq

    context = zmq.Context()
    into, out = context.socket(zmq.PULL), context.socket(zmq.PUB)
    out.setsockopt(zmq.SNDHWM, 0)
    into.bind(f"tcp://127.0.0.1:{ports[0]}")
    out.bind(f"tcp://127.0.0.1:{ports[1]}")
    zmq.proxy(into, out)


class Raft:
    """A replicated object whose one command hands its argument on."""

    def __init__(self, index: int, ports: list[int]) -> None:
        from pysyncobj import SyncObj, SyncObjConf, replicated

        came: collections.deque[bytes] = collections.deque()

        class Log(SyncObj):  # type: ignore[misc]
            @replicated  # type: ignore[untyped-decorator]
            def add(self, payload: bytes) -> None:
                came.append(payload)

        nodes = [f"127.0.0.1:{port}" for port in ports]
        # Without compaction: a process that lags would get a state in place of messages.
        whole = {"logCompactionMinEntries": 1 << 30, "logCompactionMinTime": 1 << 30}
        conf = SyncObjConf(autoTick=False, commandsQueueSize=1_000_000, **whole)
        self.log, self.came = Log(nodes[index], nodes[:index] + nodes[index + 1 :], conf), came
        until = time.monotonic() + 20
        while not self.log.isReady() and time.monotonic() < until:
            self.log.doTick(0.01)

    def send(self, payloads: list[bytes]) -> None:
        for payload in payloads:
            self.log.add(payload)

    def receive(self, seconds: float) -> Sequence[bytes]:
        self.log.doTick(seconds)
        found = list(self.came)
        self.came.clear()
        return found


PEERS: Final[dict[str, Callable[[int, list[int]], Peer]]] = {
    "Redis streams": Redis,
    "ZeroMQ": ZeroMQ,
    "PySyncObj": Raft,
}


def missing(name: str) -> str:
    """What has to be installed for a system; empty if all is there."""
    modules = {"Redis streams": ("redis",), "ZeroMQ": ("zmq",), "PySyncObj": ("pysyncobj",)}.get(name, ())
    lacking = [one for one in modules if importlib.util.find_spec(one) is None]
    if name == "Redis streams" and shutil.which("redis-server") is None:
        lacking.append("redis-server")
    return ", ".join(lacking)


# -- one process


def member(peer: Peer, index: int, heads_file: Path) -> None:
    """Says "ready", is told a load in one line, and answers with what it saw."""
    print("ready", flush=True)
    load = json.loads(sys.stdin.readline())
    heads, looks, times = bytearray(), [], []
    numbers, sent_at, own = itertools.count(), [0.0], 0
    start, end = load["at"] + WARM_SECONDS, load["at"] + WARM_SECONDS + load["seconds"]
    stop, pad, lone = end + COOL_SECONDS, bytes(load["size"] - HEAD.size), load["lone"]
    most, batch = max(1, IN_FLIGHT // load["size"]), 1 if lone else 100
    flying, due = 0, load["at"]
    sends = not lone or index == MEMBERS - 1

    def look(at: float) -> None:
        if len(looks) < 2 and time.monotonic() >= at:
            looks.append((time.monotonic(), time.process_time(), len(heads) // HEAD.size))

    def take(seconds: float) -> int:
        """How many own messages came."""
        came = peer.receive(seconds)
        heads.extend(b"".join([payload[: HEAD.size] for payload in came]))
        count = sum([payload[0] == index for payload in came])
        if lone and sends:
            times.extend([time.monotonic() - sent_at[own + n + 1] for n in range(count)])
        return count

    while (now := time.monotonic()) < stop or (flying and now < stop + 10):
        look(end if looks else start)
        room = sends and now < stop and now >= due and flying + batch <= most
        if room:
            if lone:
                sent_at.append(now)
                due += 1 / LONE[1]
            peer.send([HEAD.pack(index, next(numbers)) + pad for _ in range(batch)])
            flying += batch
        wait = 0.0 if room and not lone else min(0.05, max(0.0, due - time.monotonic()) if lone and sends else 0.05)
        came = take(wait)
        flying, own = flying - came, own + came
    quiet = time.monotonic() + 1.0
    while time.monotonic() < quiet:
        take(0.05)
    heads_file.write_bytes(heads)
    print(json.dumps({"looks": looks, "times": times}), flush=True)


# -- all processes


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]


@contextlib.contextmanager
def servers(name: str, ports: list[int], folder: Path) -> Iterator[list[int]]:
    """The processes that a system needs beside the four, by pid."""
    command = {
        "Redis streams": ["redis-server", "--port", str(ports[0]), "--save", "", "--dir", str(folder)],
        "ZeroMQ": [sys.executable, __file__, "--forward", *map(str, ports)],
    }.get(name)
    if command is None:
        yield []
        return
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            for port in ports[: 2 if name == "ZeroMQ" else 1]:
                wait_for(port)
            yield [process.pid]
        finally:
            process.terminate()


def wait_for(port: int) -> None:
    """Until a process listens there.  Raises OSError after some seconds."""
    until = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def command_of(name: str, index: int, ports: list[int], folder: Path) -> list[str]:
    file = str(folder / str(index))
    return [sys.executable, __file__, "--member", name, str(index), file, *map(str, ports)]


def measured(name: str, size: int, seconds: float, *, lone: bool = False) -> dict[str, Any]:
    """The rate and the CPU seconds of a load, or, with `lone`, the latency of a sender alone."""
    ports = free_ports(MEMBERS)
    with TemporaryDirectory() as name_of_folder, contextlib.ExitStack() as stack:
        folder = Path(name_of_folder)
        pids = stack.enter_context(servers(name, ports, folder))
        processes = []
        for index in range(MEMBERS):
            command = command_of(name, index, ports, folder)
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            stack.callback(process.kill)
            processes.append(process)
        late = threading.Timer(PATIENCE + seconds, lambda: [process.kill() for process in processes])
        late.start()
        stack.callback(late.cancel)
        for process in processes:
            answer_of(process, "ready")
        at = time.monotonic() + 0.5
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(json.dumps({"at": at, "size": size, "seconds": seconds, "lone": lone}) + "\n")
            process.stdin.flush()
        beside = []
        for moment in (at + WARM_SECONDS, at + WARM_SECONDS + seconds):
            time.sleep(max(0.0, moment - time.monotonic()))
            beside.append(sum(map(cpu_of, pids)))
        answers = [json.loads(answer_of(process, "{")) for process in processes]
        verify(name, [(folder / str(index)).read_bytes() for index in range(MEMBERS)])
    if lone:
        times = sorted(answers[-1]["times"])
        return {
            "p50_ms": round(common.quantile(times, 0.5) * 1e3, 2),
            "p99_ms": round(common.quantile(times, 0.99) * 1e3, 2),
        }
    looks = [answer["looks"] for answer in answers]
    deliveries = sum(last[2] - first[2] for first, last in looks)
    cpu = sum(last[1] - first[1] for first, last in looks) + beside[1] - beside[0]
    elapsed = statistics.mean(last[0] - first[0] for first, last in looks)
    return {
        "messages_per_s": round(deliveries / MEMBERS / elapsed),
        "cpu_s_per_million_deliveries": round(cpu / max(deliveries, 1) * 1e6, 3),
    }


def answer_of(process: subprocess.Popen[str], begins: str) -> str:
    """The next line of a process that begins so; libraries print others."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(begins):
            return line
    raise RuntimeError(f"a process has ended with {process.wait()}")


def verify(name: str, heads: Sequence[bytes]) -> None:
    """One order at all, and each sender's messages in its own."""
    least = min(map(len, heads))
    if any(one[:least] != heads[0][:least] for one in heads):
        raise RuntimeError(f"{name}: two processes have different orders")
    found = collections.Counter[int]()
    for sender, number in HEAD.iter_unpack(heads[0]):
        if number != found[sender]:
            raise RuntimeError(f"{name}: {number} of sender {sender} comes where {found[sender]} is due")
        found[sender] += 1


def pygroups(size: int, seconds: float, *, lone: bool = False) -> dict[str, Any]:
    """The same load of `total`, as total_order.py makes it."""
    if lone:
        return asyncio.run(total_order.latency(MEMBERS, size, float(LONE[1]), seconds))
    return asyncio.run(total_order.throughput(MEMBERS, size, "batches", seconds, {}))


def measure(names: Sequence[str], seconds: float, repeat: int) -> None:
    result = common.Result("beside")
    found: dict[str, Any] = {}
    for name in names:
        if lacking := missing(name):
            print(f"{name} is left out: {lacking} is not installed", file=sys.stderr)
            continue
        one = pygroups if name == "pygroups" else lambda *load, name=name, **more: measured(name, *load, **more)
        row: dict[str, Any] = {}
        for size in (100, 1_000):
            tries = [one(size, seconds) for _ in range(repeat)]
            tries.sort(key=lambda each: float(each["cpu_s_per_million_deliveries"]))
            middle = tries[len(tries) // 2]
            row[str(size)] = {key: middle[key] for key in ("messages_per_s", "cpu_s_per_million_deliveries")}
        times = [one(LONE[0], seconds, lone=True) for _ in range(repeat)]
        row["lone"] = {key: statistics.median([each[key] for each in times]) for key in ("p50_ms", "p99_ms")}
        print(name, json.dumps(row), file=sys.stderr, flush=True)
        found[name] = row
    result.write(members=MEMBERS, systems=found)


def table(line: dict[str, Any]) -> str:
    rows = [
        "| | 100 B: messages a second, CPU s for a million deliveries | 1,000 B | a lone message: p50, p99 ms |",
        "|---|---|---|---|",
    ]
    for name, row in line["systems"].items():
        loads = [
            f"{row[size]['messages_per_s']:,}, {row[size]['cpu_s_per_million_deliveries']:.2f}"
            for size in ("100", "1000")
        ]
        rows.append(f"| {name} | {loads[0]} | {loads[1]} | {row['lone']['p50_ms']:.2f}, {row['lone']['p99_ms']:.2f} |")
    where = f"commit {line['commit']}, {line['date'][:10]}, {line['cores']} cores, Python {line['python']}"
    return "\n".join([*rows, "", f"Measured at {where}; load of the machine {line['load_before'][0]} before.", ""])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--seconds", type=float, default=4.0, help="of each load")
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--only", nargs="*", default=["pygroups", *PEERS], help="of these systems")
    options.add_argument("--table", action="store_true", help="measure nothing, write the table of the page")
    options.add_argument("--member", nargs="*", help=argparse.SUPPRESS)
    options.add_argument("--forward", nargs="*", type=int, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.forward:
        forward(given.forward)
    elif given.member:
        name, index, file, *ports = given.member
        member(PEERS[name](int(index), list(map(int, ports))), int(index), Path(file))
    elif given.table:
        line = json.loads((common.RESULTS / "beside.jsonl").read_text().splitlines()[-1])
        page, places = TABLE.subn(lambda found: found[1] + table(line) + found[2], PAGE.read_text())
        assert places == 1, "the page has no place for the figures"
        PAGE.write_text(page)
    else:
        measure(given.only, given.seconds, given.repeat)


if __name__ == "__main__":
    main()
