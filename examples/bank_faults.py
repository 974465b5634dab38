"""Runs the processes of bank.py, and kills, stops and cuts them off at random.  At the end all processes must have made
the same transfers in the same order, also each process that was killed, and no money may be lost.

    python examples/bank_faults.py --seconds 300
    python examples/bank_faults.py --folder bank-faults && pygroups audit bank-faults/journal

The network is cut only where this program runs as root and finds `ip`, `nsenter` and `unshare`: each process is then on
a host of its own (bank_hosts.py).  Exit code 0: one history, and the right sum in every process that was running.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from bank import Bank
from bank_hosts import Hosts, can_make_hosts

BANK = Path(__file__).with_name("bank.py")
TRANSFER = re.compile(r"transfer (\d+): .*")


class Failed(Exception):
    """The bank broke a promise, or a step took too long."""


class Process:
    """One process of the bank, and what it has printed."""

    def __init__(self, name: str, out: Path, command: list[str]) -> None:
        self.name = name
        self.out = out
        with out.open("wb") as file:
            self.process = subprocess.Popen(command, stdout=file)

    def lines(self) -> list[str]:
        text = self.out.read_text()
        return text[: text.rfind("\n") + 1].splitlines()

    def last(self, kind: str) -> str:
        """Its last line that begins so."""
        return next((line for line in reversed(self.lines()) if line.startswith(kind)), "")


class Faults:
    """The bank for some minutes."""

    def __init__(self, options: argparse.Namespace, folder: Path, hosts: Hosts | None) -> None:
        self.options = options
        self.folder = folder
        self.hosts = hosts
        self.chance = random.Random(options.seed)
        self.names = [chr(ord("A") + number) for number in range(options.members)]
        self.running: dict[str, Process] = {}
        self.ended: list[Process] = []
        self.began = time.monotonic()
        self.done: Counter[str] = Counter()

    def tell(self, what: str) -> None:
        print(f"{time.monotonic() - self.began:6.1f} s  {what}", flush=True)

    def run(self) -> None:
        self.tell(f"seed {self.options.seed}; {'with' if self.hosts else 'without'} cuts of the network")
        try:
            for name in self.names:
                self.start(name)
            self.come_together()
            self.kill()
            while time.monotonic() < self.began + self.options.seconds:
                time.sleep(self.chance.uniform(0, 1))
                self.come_together()
                self.chance.choice([self.kill, self.stop, *([self.cut] if self.hosts else [])])()
            self.come_together()
            self.close()
        finally:
            for process in self.running.values():
                process.process.kill()
                process.process.wait()
        self.judge()

    # -- processes

    def start(self, name: str) -> None:
        number = 1 + sum(process.name == name for process in self.ended)
        command = [sys.executable, str(BANK), name, "--expect", str(len(self.names)), "--folder", str(self.folder)]
        command += ["--timeout", str(self.options.timeout), "--pause", str(self.options.pause)]
        if self.hosts is not None:
            host = self.names.index(name)
            command = [*self.hosts.prefix(host), *command, "--bind", f"{self.hosts.address(host)}:0", "--insecure"]
        self.running[name] = Process(name, self.folder / f"{name}-{number}.txt", command)

    def come_together(self) -> None:
        """Wait until all processes are in one view, and have handled a new transfer of each of them in it."""
        self.wait_until("all are in one view", self.are_together)
        had = self.transfers()
        self.wait_until("each has handled new transfers", lambda: all(self.transfers()[n] > had[n] for n in had))

    def are_together(self) -> bool:
        views = {process.last("view ") for process in self.running.values()}
        return len(views) == 1 and sorted(views.pop().split()[2:]) == self.names

    def transfers(self) -> dict[str, int]:
        """How many transfers each process knows."""
        return {name: number_of(process.last("transfer ")) for name, process in self.running.items()}

    def wait_until(self, what: str, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + self.options.within
        while not condition():
            if ended := [name for name, process in self.running.items() if process.process.poll() is not None]:
                raise Failed(f"{' and '.join(ended)} ended: see {self.folder}")
            if time.monotonic() > end:
                raise Failed(f"not within {self.options.within:.0f} s: {what}; see {self.folder}")
            time.sleep(0.05)

    # -- faults: each leaves one process alone, which keeps the accounts

    def some(self) -> list[str]:
        return sorted(self.chance.sample(self.names, self.chance.randint(1, len(self.names) - 1)))

    def kill(self) -> None:
        names = self.some()
        self.tell(f"kill -9 of {' and '.join(names)}")
        for name in names:
            self.running[name].process.kill()
        for name in names:
            process = self.running.pop(name)
            process.process.wait()
            self.ended.append(process)
            self.done["kills"] += 1
        time.sleep(self.chance.uniform(0, 1))
        for name in names:
            self.start(name)

    def stop(self) -> None:
        name, seconds = self.chance.choice(self.names), self.chance.uniform(0, 3 * self.options.timeout)
        self.tell(f"{name} is stopped for {seconds:.1f} s")
        process = self.running[name].process
        process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        process.send_signal(signal.SIGCONT)
        self.done["stops"] += 1

    def cut(self) -> None:
        assert self.hosts is not None
        names, seconds = self.some(), self.chance.uniform(0, 3 * self.options.timeout)
        self.tell(f"{' and '.join(names)} cut off from the others for {seconds:.1f} s")
        self.hosts.cut([self.names.index(name) for name in names])
        time.sleep(seconds)
        self.hosts.heal()
        self.done["cuts"] += 1

    # -- the end

    def close(self) -> None:
        self.tell("closing the bank")
        self.running[self.names[0]].process.send_signal(signal.SIGINT)
        for process in self.running.values():
            try:
                code = process.process.wait(self.options.within)
            except subprocess.TimeoutExpired:
                raise Failed(f"{process.name} did not end within {self.options.within:.0f} s") from None
            if code:
                raise Failed(f"{process.name} ended with exit code {code}: see {process.out}")

    def judge(self) -> None:
        """Raise Failed if two processes, dead or alive, made different transfers, or if a sum is wrong."""
        history: dict[int, str] = {}
        for process in [*self.ended, *self.running.values()]:
            for line in process.lines():
                if TRANSFER.fullmatch(line) and history.setdefault(number_of(line), line) != line:
                    raise Failed(f"two histories: {line!r} in {process.out}, and {history[number_of(line)]!r}")
        ends = {process.last("closed ") for process in self.running.values()}
        right = f"closed after transfer {len(history)}; all accounts have {sum(Bank().accounts.values())}"
        if ends != {right} or sorted(history) != list(range(1, len(history) + 1)):
            raise Failed(f"the processes ended with {sorted(ends)}, and {right!r} is right")
        faults = ", ".join(f"{count} {kind}" for kind, count in self.done.items())
        self.tell(f"survived: {faults}")
        self.tell(f"one history of {len(history)} transfers in {len(self.ended) + len(self.running)} processes")
        self.tell(f"the accounts of each process have {sum(Bank().accounts.values())}, as at the start")


def number_of(line: str) -> int:
    """The number of a transfer; 0 for no line."""
    found = TRANSFER.match(line)
    return int(found[1]) if found else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300.0, help="of faults")
    parser.add_argument("--members", type=int, default=3, help="processes")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31), help="of the faults")
    parser.add_argument("--timeout", type=float, default=1.0, help="of bank.py")
    parser.add_argument("--pause", type=float, default=0.05, help="of bank.py")
    parser.add_argument("--within", type=float, default=120.0, help="seconds for the group to recover from a fault")
    parser.add_argument("--no-cuts", action="store_true", help="leave the network alone")
    parser.add_argument("--folder", type=Path, help="keep journals and output there; by default only after a failure")
    options = parser.parse_args()
    if options.members < 2:
        parser.error("--members: a bank of one process cannot lose one")
    folder = options.folder or Path(tempfile.mkdtemp(prefix="bank-"))
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        parser.error(f"--folder: {folder} is not empty")
    with ExitStack() as stack:
        hosts = None
        if can_make_hosts() and not options.no_cuts:
            hosts = stack.enter_context(Hosts(options.members))
        try:
            Faults(options, folder, hosts).run()
        except Failed as failure:
            print(f"FAILED: {failure}", flush=True)
            return 1
    if options.folder is None:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
