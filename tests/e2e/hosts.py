"""Hosts with a network between them, made of network namespaces: packets are dropped and refused as firewalls do it.

Each host has one address, 10.77.0.1 and so on, and an nftables table that tests add rules to.  Needs root, `ip` and
`nft`; a namespace ends with the process that was started to hold it.
"""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.patience import patience

NETWORK: Final = ipaddress.ip_network("10.77.0.0/24")
BAD_NETWORK: Final = ipaddress.ip_network("10.78.0.0/24")
HOLD: Final = ("unshare", "--net", "sleep", "600")
ENVIRONMENT: Final = os.environ | {"PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}
BEFORE_JOINING: Final = "{ type filter hook prerouting priority -500; }"  # of the parts of a datagram that IP has split
ESTABLISHED: Final = "01"  # in /proc/net/tcp


class CannotMakeHosts(AssertionError):
    """This machine does not let its tests make hosts; the text says what is missing."""


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=patience(20), env=ENVIRONMENT)
    if done.returncode:
        raise CannotMakeHosts(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Host:
    """One namespace."""

    def __init__(self, number: int) -> None:
        self.address = str(NETWORK[number])
        self.holder = subprocess.Popen(HOLD)

    @property
    def prefix(self) -> tuple[str, ...]:
        """What a command begins with that is to run on this host."""
        return ("nsenter", f"--net=/proc/{self.holder.pid}/ns/net", "--")

    def run(self, *command: str) -> str:
        """Run `command` on this host."""
        return run(*self.prefix, *command)

    def end(self) -> None:
        self.holder.send_signal(signal.SIGKILL)
        self.holder.wait()

    # -- firewalls

    @contextmanager
    def rules(self, *rules: str) -> Iterator[None]:
        """As long as this lasts, these rules judge what comes in."""
        with self._rules("input", *rules):
            yield

    @contextmanager
    def losing(self, percent: float) -> Iterator[None]:
        """As long as this lasts, this share of the packets of UDP that come in is dropped, at random.

        A datagram that IP has split is several packets, each with its own chance to be lost.
        """
        with self._rules("packets", f"ip protocol udp numgen random mod 1000 < {round(10 * percent)} drop"):
            yield

    @contextmanager
    def _rules(self, chain: str, *rules: str) -> Iterator[None]:
        for rule in rules:
            self.run("nft", "add", "rule", "inet", "tests", chain, *rule.split())
        try:
            yield
        finally:
            self.run("nft", "flush", "chain", "inet", "tests", chain)

    def ports_to(self, other: Host, port: int) -> list[int]:
        """Own ports of the connections from here to `port` of `other`."""
        lines = self.run("cat", "/proc/net/tcp").splitlines()[1:]
        wanted = f"{_in_hex(other.address)}:{port:04X}"
        fields = [line.split() for line in lines]
        return [
            int(own.partition(":")[2], 16) for _, own, far, state, *_ in fields if (far, state) == (wanted, ESTABLISHED)
        ]


def _in_hex(address: str) -> str:
    return "".join(f"{part:02X}" for part in reversed(ipaddress.ip_address(address).packed))


class Hosts:
    """Some hosts and the switch between them; none of them is left at the end of `with`."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.switch: subprocess.Popen[bytes]
        self.hosts: list[Host] = []

    def __enter__(self) -> Self:
        missing = [
            tool for tool in ("ip", "nft", "nsenter", "unshare") if not shutil.which(tool, path=ENVIRONMENT["PATH"])
        ]
        if missing or os.geteuid():
            raise CannotMakeHosts(f"hosts for tests need root, and these commands: {' '.join(missing) or 'all there'}")
        self.switch = subprocess.Popen(HOLD)
        try:
            self.hosts = [Host(number) for number in range(1, self.count + 1)]
            for holder in (self.switch, *(host.holder for host in self.hosts)):
                _wait_for_namespace(holder)
            self._connect()
        except BaseException:
            self._end()
            raise
        return self

    def _connect(self) -> None:
        inside: Sequence[str] = ("nsenter", f"--net=/proc/{self.switch.pid}/ns/net", "--", "ip")
        run(*inside, "link", "add", "br0", "type", "bridge")
        run(*inside, "link", "set", "br0", "up")
        for number, host in enumerate(self.hosts):
            plug = f"plug{number}"
            peer = ("peer", "name", "eth0", "netns", str(host.holder.pid))
            run(*inside, "link", "add", plug, "type", "veth", *peer)
            run(*inside, "link", "set", plug, "master", "br0", "up")
            host.run("ip", "link", "set", "lo", "up")
            host.run("ip", "address", "add", f"{host.address}/{NETWORK.prefixlen}", "dev", "eth0")
            host.run("ip", "link", "set", "eth0", "up")
            host.run("nft", "add", "table", "inet", "tests")
            host.run("nft", "add", "chain", "inet", "tests", "input", "{ type filter hook input priority 0; }")
            host.run("nft", "add", "chain", "inet", "tests", "packets", BEFORE_JOINING)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        for host in self.hosts:
            host.end()
        self.switch.kill()
        self.switch.wait()


class BadNetwork:
    """A network of relay.py between some hosts, who have addresses of their own in it: 10.78.0.1 and so on."""

    def __init__(self, hosts: Sequence[Host], **faults: float) -> None:
        self.addresses = {host: str(BAD_NETWORK[number]) for number, host in enumerate(hosts, 1)}
        self.counts = Counter[str]()  # what the relay did, once it has ended
        options = [word for name, value in faults.items() for word in (f"--{name}", str(value))]
        places = [f"{host.holder.pid}:{address}" for host, address in self.addresses.items()]
        self.relay = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.relay", *options, *places],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )

    def address(self, host: Host) -> str:
        return self.addresses[host]

    def wait(self) -> None:
        """Until packets are carried."""
        assert self.relay.stdout is not None
        if self.relay.stdout.readline() != "ready\n":
            raise CannotMakeHosts("the relay between the hosts has ended")

    def end(self) -> None:
        said, _ = self.relay.communicate("", timeout=patience(20))
        self.counts.update(json.loads(said or "{}"))


@contextmanager
def bad_network(hosts: Sequence[Host], **faults: float) -> Iterator[BadNetwork]:
    """Packets between `hosts` go through a relay with these faults, as long as this lasts."""
    network = BadNetwork(hosts, **faults)
    try:
        network.wait()
        yield network
        network.end()
    finally:
        network.relay.kill()
        network.relay.wait()


def _wait_for_namespace(holder: subprocess.Popen[bytes]) -> None:
    """Until the process is in a network of its own."""
    mine, end = os.readlink("/proc/self/ns/net"), time.monotonic() + patience(10)
    while os.readlink(f"/proc/{holder.pid}/ns/net") == mine or b"sleep" not in _command(holder.pid):
        if holder.poll() is not None or time.monotonic() > end:
            raise CannotMakeHosts("this machine lets nobody make a network namespace: unshare --net failed")
        time.sleep(0.005)


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/comm").read_bytes()
