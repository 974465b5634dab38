"""Groups of worker processes: started, told what to do, killed, and ended with the test in any case, by their pids."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pygroups
from tests.e2e.logs import Life, read_life
from tests.patience import patience

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = Path(pygroups.__file__).parents[1]  # the workers' product is that of this process
LOOK_SECONDS: Final = 0.01
SECONDS: Final = 30.0  # for whatever takes far less on a machine that does nothing else


def until(what: str, condition: Callable[[], bool], seconds: float = SECONDS) -> None:
    """Wait until `condition()`; AssertionError when it takes longer than patience allows."""
    end = time.monotonic() + patience(seconds)
    while not condition():
        assert time.monotonic() < end, f"this did not come about in {patience(seconds):.0f} s: {what}"
        time.sleep(LOOK_SECONDS)


class Process:
    """A child with pipes.  A thread reads what it prints, so that it never waits for us."""

    def __init__(self, *command: str, prefix: Sequence[str] = ()) -> None:
        environment = os.environ | {"PYTHONPATH": f"{PACKAGES}{os.pathsep}{ROOT}", "PYTHONUNBUFFERED": "1"}
        self.child = subprocess.Popen(
            [*prefix, sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=ROOT,
        )
        self.errors = ""
        self.readers = [threading.Thread(target=read, daemon=True) for read in (self._read_output, self._read_errors)]
        for reader in self.readers:
            reader.start()

    def heard(self, line: bytes) -> None:
        """A line of its standard output."""
        raise NotImplementedError

    def _read_output(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            self.heard(line)

    def _read_errors(self) -> None:
        assert self.child.stderr is not None
        for line in self.child.stderr:
            self.errors += line.decode(errors="replace")

    def write(self, line: bytes) -> None:
        """Give it a line of input; one that has died cannot read it any more."""
        assert self.child.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.write(line + b"\n")
            self.child.stdin.flush()

    @property
    def alive(self) -> bool:
        return self.child.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """To this process alone; it is our child and not waited for, so nobody else can have its number."""
        if self.alive:
            os.kill(self.child.pid, number)

    def ended(self, seconds: float = SECONDS) -> int:
        """Wait for its end; its exit code.  All that it said has been heard then."""
        code = self.child.wait(patience(seconds))
        for reader in self.readers:
            reader.join(patience(seconds))
        return code

    def end(self) -> None:
        """Whatever it does."""
        self.signal(signal.SIGKILL)
        self.child.wait()
        for reader in self.readers:
            reader.join()
        for pipe in (self.child.stdin, self.child.stdout, self.child.stderr):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def memory_peak(self) -> int:
        """The most bytes that it has had in memory."""
        status = Path(f"/proc/{self.child.pid}/status").read_text()
        (peak,) = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
        return int(peak) * 1024


class Worker(Process):
    """A process that will live one life; `go` begins it."""

    def __init__(self, folder: Path, number: int, prefix: Sequence[str] = ()) -> None:
        self.log = folder / "logs" / f"{number}.log"
        self.name = ""
        self.reports: dict[str, dict[str, Any]] = {}  # the last one of each kind
        self.heard_of = Counter[str]()  # how many there were of each kind
        self.views: list[dict[str, Any]] = []
        super().__init__("-m", "tests.e2e.worker", prefix=prefix)

    def heard(self, line: bytes) -> None:
        report: dict[str, Any] = json.loads(line)
        kind = report.pop("report")
        if kind == "view":
            self.views.append(report)
        self.reports[kind] = report
        self.heard_of[kind] += 1

    def order(self, do: str, **how: Any) -> None:
        """Tell it to do something."""
        self.write(json.dumps({"do": do} | how).encode())

    def go(self, name: str, **wishes: Any) -> None:
        """Begin a life: `wishes` are those of Channel, and of the worker."""
        self.name = name
        self.write(json.dumps({"name": name, "log": str(self.log)} | wishes).encode())

    @property
    def address(self) -> str:
        """Its address, once it has joined; nothing before."""
        joined: str = self.reports.get("joined", {}).get("address", "")
        return joined

    @property
    def members(self) -> list[str]:
        """The members of its newest view."""
        members: list[str] = self.views[-1]["members"] if self.views else []
        return members

    @property
    def progress(self) -> dict[str, Any]:
        return self.reports.get("progress", {"accepted": 0, "last": {}, "held": {"nothing is known": 1}})

    def mark(self, kind: str, reason: str = "", members: Iterable[str] = ()) -> None:
        """Have it write a mark into its journal, and wait until it has."""
        self.ask("marked", "mark", kind=kind, reason=reason, members=list(members))

    def ask(self, report: str, do: str, **how: Any) -> None:
        """Give an order, and wait for the next report of that kind."""
        before = self.heard_of[report]
        self.order(do, **how)
        until(f"{self.name} reports {report}", lambda: self.heard_of[report] > before or not self.alive)


class Group:
    """Workers of one group, whose logs and journals lie under `folder`; at the end of `with` none of them lives."""

    def __init__(self, folder: Path, group: str = "g", **wishes: Any) -> None:
        self.folder = folder
        self.journal = folder / "journal"
        (folder / "logs").mkdir(parents=True, exist_ok=True)
        self.wishes = {
            "group": group,
            "discovery": f"dir:{folder / 'discovery'}",
            "journal": str(self.journal),
        } | wishes
        self.workers: list[Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for worker in self.workers:
            worker.end()
        if error is not None:
            for worker in self.workers:
                error.add_note(f"{worker.name} {worker.address} {worker.child.returncode}: {worker.progress}")
                if worker.errors:
                    error.add_note(worker.errors)

    def prepare(self, prefix: Sequence[str] = ()) -> Worker:
        """A process that has imported everything, or soon will have; it begins its life when it is told to `go`.

        The command that starts it begins with `prefix`, which must become that process.
        """
        worker = Worker(self.folder, len(self.workers), prefix)
        self.workers.append(worker)
        return worker

    def go(self, worker: Worker, name: str, **wishes: Any) -> Worker:
        """Have a prepared process join this group under `name`."""
        worker.go(name, **(self.wishes | wishes))
        return worker

    def start(self, *names: str, **wishes: Any) -> list[Worker]:
        """Members of these names, in one view; in the order of that view, the first one coordinates."""
        started = [self.go(self.prepare(), name, **wishes) for name in names]
        self.until(f"{' '.join(names)} have joined", lambda: all(worker.address for worker in started))
        self.settle()
        return sorted(started, key=lambda worker: started[0].members.index(worker.address))

    def until(self, what: str, condition: Callable[[], bool]) -> None:
        """Wait until `condition()`; AssertionError when it takes too long, or when a process broke meanwhile."""

        def unless_broken() -> bool:
            for worker in self.workers:
                code = worker.child.poll()
                assert code in (None, 0, -signal.SIGKILL), f"{worker.name} ended with exit code {code}: {what}"
            return condition()

        until(what, unless_broken)

    @property
    def living(self) -> list[Worker]:
        """Those who have joined, and run."""
        return [worker for worker in self.workers if worker.address and worker.alive and "left" not in worker.reports]

    def settle(self) -> None:
        """Wait until all the living have one view, of themselves."""

        def settled() -> bool:
            living = self.living
            addresses = {worker.address for worker in living}
            ids = {tuple(worker.views[-1]["id"]) for worker in living if worker.views}
            return len(ids) == 1 and all(set(worker.members) == addresses for worker in living)

        self.until("all who live have one view", settled)

    def stop_sending(self) -> dict[str, int]:
        """How many messages each of the living had accepted when it stopped, by address."""
        for worker in self.living:
            worker.ask("sent", "stop sending")
        return {worker.address: worker.reports["sent"]["accepted"] for worker in self.living}

    def quiet(self, accepted: dict[str, int]) -> None:
        """Wait until all who live have these messages, and hold nothing any more."""
        before = {worker: worker.heard_of["progress"] for worker in self.living}

        def at_rest() -> bool:
            return all(
                worker.heard_of["progress"] > before[worker] + 1
                and not worker.progress["held"]
                and all(worker.progress["last"].get(sender, 0) == number for sender, number in accepted.items())
                for worker in self.living
            )

        self.until("everything is delivered everywhere", at_rest)

    def everywhere(self, kind: str, reason: str = "", members: Iterable[str] = ()) -> None:
        """A mark in the journal of everybody who lives."""
        members = list(members)
        for worker in self.living:
            worker.mark(kind, reason, members)

    def leave(self) -> None:
        """All who live leave, at once and in good order."""
        leaving = self.living
        for worker in leaving:
            worker.order("leave")
        for worker in leaving:
            assert worker.ended() == 0, worker.errors
            assert worker.reports["left"] == {"reason": "left", "unknown": []}, worker.name

    def lives(self) -> list[Life]:
        """What all of them were given, the dead included."""
        return [read_life(worker.address or f"{worker.name}@?", worker.log) for worker in self.workers if worker.name]


def audit(*journals: Path) -> tuple[int, dict[str, Any]]:
    """What `pygroups audit --json` says of everything under `journals`: exit code, and verdicts by promise.

    In this process: most of an audit's time is Spark's start, and later audits find it started."""
    from pygroups.cli.audit import as_object
    from pygroups.pipeline.audit import audit as judged  # with Spark, which workers do not need

    result = judged(journals, master="local[2]")
    return int(result.broken), as_object(result)


def broken(found: dict[str, Any]) -> list[str]:
    """The promises that an audit found broken."""
    return [promise["name"] for promise in found["promises"] if promise["verdict"] == "broken"]
