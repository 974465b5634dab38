"""Hosts with a network between them, made of network namespaces: packets are dropped and refused as firewalls do it.

Each host has one address, 10.77.0.1 and so on, and an nftables table that tests add rules to.  Needs root, `ip` and
`nft`; a namespace ends with the process that was started to hold it.
"""

from __future__ import annotations

import ipaddress
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

NETWORK: Final = ipaddress.ip_network("10.77.0.0/24")
HOLD: Final = ("unshare", "--net", "sleep", "600")
ENVIRONMENT: Final = os.environ | {"PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}
ESTABLISHED: Final = "01"  # in /proc/net/tcp


class CannotMakeHosts(AssertionError):
    """This machine does not let its tests make hosts; the text says what is missing."""


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20, env=ENVIRONMENT)
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
        for rule in rules:
            self.run("nft", "add", "rule", "inet", "tests", "input", *rule.split())
        try:
            yield
        finally:
            self.run("nft", "flush", "chain", "inet", "tests", "input")

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        for host in self.hosts:
            host.end()
        self.switch.kill()
        self.switch.wait()


def _wait_for_namespace(holder: subprocess.Popen[bytes]) -> None:
    """Until the process is in a network of its own."""
    mine, end = os.readlink("/proc/self/ns/net"), time.monotonic() + 10
    while os.readlink(f"/proc/{holder.pid}/ns/net") == mine or b"sleep" not in _command(holder.pid):
        if holder.poll() is not None or time.monotonic() > end:
            raise CannotMakeHosts("this machine lets nobody make a network namespace: unshare --net failed")
        time.sleep(0.005)


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/comm").read_bytes()
