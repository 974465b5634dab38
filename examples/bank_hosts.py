"""Hosts with a network between them, on this machine: network namespaces, and a bridge as their switch.

A cut moves the cables of some hosts to another switch.  Needs root, and `ip`, `nsenter` and `unshare`.  Nothing is left
at the end: a namespace ends with its process, and the network of the machine is not touched.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

ENVIRONMENT = os.environ | {"PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}
HOLD = ("unshare", "--net", "sleep", "infinity")


def can_make_hosts() -> bool:
    """Whether this program may make hosts here."""
    tools = [shutil.which(tool, path=ENVIRONMENT["PATH"]) for tool in ("ip", "nsenter", "unshare")]
    if os.geteuid() or not all(tools):
        return False
    return subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode == 0


class Hosts:
    """`count` hosts, numbered from 0, and two switches.  All hosts are connected to the first switch."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.holders: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        try:
            self.holders = [subprocess.Popen(HOLD) for _ in range(self.count + 1)]
            for holder in self.holders:
                wait_for_namespace(holder)
            self._connect()
        except BaseException:
            self._end()
            raise
        return self

    def _connect(self) -> None:
        for switch in ("switch0", "switch1"):
            self._at(self.count, "link", "add", switch, "type", "bridge")
            self._at(self.count, "link", "set", switch, "up")
        for host in range(self.count):
            peer = ("peer", "name", "eth0", "netns", str(self.holders[host].pid))
            self._at(self.count, "link", "add", f"cable{host}", "type", "veth", *peer)
            self._at(self.count, "link", "set", f"cable{host}", "master", "switch0", "up")
            self._at(host, "link", "set", "lo", "up")
            self._at(host, "address", "add", f"{self.address(host)}/24", "dev", "eth0")
            self._at(host, "link", "set", "eth0", "up")

    def address(self, host: int) -> str:
        """The address of a host."""
        return f"10.76.0.{host + 1}"

    def prefix(self, host: int) -> tuple[str, ...]:
        """What a command begins with that runs on a host."""
        return ("nsenter", f"--net=/proc/{self.holders[host].pid}/ns/net", "--")

    def cut(self, side: Sequence[int]) -> None:
        """From now on the hosts of `side` reach each other only."""
        for host in side:
            self._at(self.count, "link", "set", f"cable{host}", "master", "switch1")

    def heal(self) -> None:
        """All hosts reach each other."""
        for host in range(self.count):
            self._at(self.count, "link", "set", f"cable{host}", "master", "switch0")

    def _at(self, host: int, *command: str) -> None:
        subprocess.run([*self.prefix(host), "ip", *command], check=True, env=ENVIRONMENT)

    def _end(self) -> None:
        for holder in self.holders:
            holder.kill()
            holder.wait()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end()


def wait_for_namespace(holder: subprocess.Popen[bytes]) -> None:
    """Wait until the process is in a network of its own."""
    mine = os.readlink("/proc/self/ns/net")
    while os.readlink(f"/proc/{holder.pid}/ns/net") == mine:
        if holder.poll() is not None:
            raise OSError("unshare --net failed")
        time.sleep(0.005)
