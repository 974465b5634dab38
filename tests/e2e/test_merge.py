"""Real processes on hosts of their own: a network split under load ends in one view, and every gap is announced."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.group import Group, Worker, until
from tests.e2e.hosts import Hosts

pytestmark = pytest.mark.slow
LOAD = {"count": 1 << 40, "size": 100, "burst": 10, "pause": 0.02}
PORT = 7_000
SETTINGS = {"heartbeat": 0.2, "heartbeat_timeout": 1.0, "verify_timeout": 0.5}


def announced(worker: Worker) -> dict[str, list[tuple[int, int]]]:
    """By sender, the first number and the count of each gap that the member announced."""
    found: dict[str, list[tuple[int, int]]] = {}
    for line in worker.log.read_text().splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "G":
            sender, first, count = rest.split()
            found.setdefault(sender, []).append((int(first), int(count)))
    return found


def numbers(worker: Worker) -> dict[str, list[int]]:
    """By sender, the numbers of the messages that the member delivered and of those that it announced as missing."""
    found: dict[str, list[int]] = {}
    for line in worker.log.read_text().splitlines():
        words = line.split()
        if words[0] == "M":
            found.setdefault(words[1], []).append(int(words[2]))
        elif words[0] == "G":
            found.setdefault(words[1], []).extend(range(int(words[2]), int(words[2]) + int(words[3])))
        else:
            assert words[0] != "X", line
    return found


@pytest.mark.parametrize("profile", ["total", pytest.param("fifo", marks=pytest.mark.long)])
def test_two_and_three_of_five_are_separated_and_merge(tmp_path: Path, profile: str) -> None:
    names = "ABCDE"
    with ExitStack() as stack:
        hosts = stack.enter_context(Hosts(len(names)))
        group = stack.enter_context(Group(tmp_path, profile=profile))
        workers = {}
        for name, host in zip(names, hosts.hosts, strict=True):
            worker = workers[name] = group.prepare(host.prefix)
            bind = {"bind": f"{host.address}:{PORT}", "insecure": True}
            group.go(worker, name, **bind, settings=SETTINGS)
            group.until(f"{name} has joined", lambda worker=worker: bool(worker.address))
        group.settle()
        for worker in workers.values():
            worker.order("send", **LOAD)
        time.sleep(1)
        sides = ["AB", "CDE"]
        with ExitStack() as cut:
            for host, name in zip(hosts.hosts, names, strict=True):
                others = [names.index(one) for one in (sides[1] if name in sides[0] else sides[0])]
                cut.enter_context(host.rules(*(f"ip saddr {hosts.hosts[other].address} drop" for other in others)))
            for side in sides:
                wanted = {workers[name].address for name in side}
                until(
                    f"{side} have a view of their own",
                    lambda wanted=wanted, side=side: all(set(workers[name].members) == wanted for name in side),
                )
            time.sleep(1)
        healed = time.monotonic()
        group.settle()
        took = time.monotonic() - healed
        time.sleep(1)
        accepted = group.stop_sending()
        group.quiet(accepted)
        assert all(len(worker.members) == 5 for worker in workers.values())
        for worker in workers.values():
            assert announced(worker), f"{worker.name} announced no gap, and was separated under load"
            for sender, heard in numbers(worker).items():
                assert heard == list(range(heard[0], heard[0] + len(heard))), f"{worker.name} skipped one of {sender}"
                assert heard[-1] == accepted[sender]
        print(f"{profile}: one view {took:.1f} s after the network healed")
