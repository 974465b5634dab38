"""What a network that loses datagrams costs: bytes on the wire beside those without loss.

Real processes, each on a host of its own (a network namespace; needs root and nftables), over UDP.  Each member sends
`--count` messages as fast as its window lets it, and the run ends when all have all of them and no layer holds
anything.  The firewall of each host drops its share of the datagrams that come in.  The bytes are those that all
hosts sent.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import common

sys.path.insert(0, str(common.HOME))

from tests.e2e.group import Group
from tests.e2e.hosts import Host, Hosts

PORT = 7_000


def sent(hosts: list[Host]) -> int:
    """The bytes that these hosts have sent so far."""
    lines = [line for host in hosts for line in host.run("cat", "/proc/net/dev").splitlines() if "eth0" in line]
    return sum([int(line.split(":")[1].split()[8]) for line in lines])


def play(profile: str, transport: str, percent: float, members: int, count: int, size: int) -> dict[str, Any]:
    """Bytes and seconds of one run."""
    with ExitStack() as stack:
        hosts = stack.enter_context(Hosts(members)).hosts
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        group = stack.enter_context(Group(folder, profile=profile, transport=transport, journal=None))
        workers = []
        for name, host in zip("ABCDEFGH", hosts, strict=False):
            worker = group.go(group.prepare(host.prefix), name, bind=f"{host.address}:{PORT}", insecure=True)
            group.until(f"{name} has joined", lambda worker=worker: bool(worker.address))
            workers.append(worker)
        group.settle()
        if percent:
            rule = f"ip protocol udp numgen random mod 1000 < {round(10 * percent)} drop"
            for host in hosts:
                stack.enter_context(host.rules(rule))
        before, began = sent(hosts), time.monotonic()
        for worker in workers:
            worker.order("send", count=count, size=size)
        group.until("all is sent", lambda: all("sent" in worker.reports for worker in workers))
        group.quiet({worker.address: count for worker in workers})
        measured = {"bytes": sent(hosts) - before, "run_s": round(time.monotonic() - began, 1)}
        group.leave()
    return measured


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--members", type=int, default=3)
    options.add_argument("--count", type=int, default=20_000, help="messages of each member")
    options.add_argument("--size", type=int, default=100)
    options.add_argument("--transport", default="udp")
    options.add_argument("--profiles", nargs="+", default=["fifo", "total"])
    options.add_argument("--losses", nargs="+", type=float, default=[1.0, 10.0], help="percent of the datagrams")
    given = options.parse_args()
    for profile in given.profiles:
        plain = 0
        for percent in [0.0, *given.losses]:
            result = common.Result("loss")
            measured = play(profile, given.transport, percent, given.members, given.count, given.size)
            plain = plain or measured["bytes"]
            result.write(
                profile=profile,
                transport=given.transport,
                members=given.members,
                messages_each=given.count,
                message_bytes=given.size,
                loss_percent=percent,
                more_bytes=round(measured["bytes"] / plain - 1, 3),
                **measured,
            )


if __name__ == "__main__":
    main()
