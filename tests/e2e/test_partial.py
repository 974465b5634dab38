"""Real processes on hosts of their own while a part of the network fails, for some time.

Whatever fails, within ten seconds everything that a member sends is delivered by all who are in its view; who is dead
is in no view.  When all reach each other again, all are in one view, and nobody was restarted.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.e2e.group import Group, Worker, until
from tests.e2e.hosts import Host, Hosts
from tests.patience import patience

pytestmark = pytest.mark.slow
LOAD = {"count": 1 << 40, "size": 100, "burst": 20, "pause": 0.02}  # of each, for as long as it lives
PORT = 7_000
SOON = 10.0  # seconds


class Site:
    """A group with a host for each member, all of which send."""

    def __init__(self, folder: Path, names: str, profile: str) -> None:
        self.group = Group(folder, profile=profile)
        self.hosts = Hosts(len(names))
        self.names = names
        self.on: dict[str, tuple[Worker, Host]] = {}

    def start(self) -> None:
        """One after the other, so that the first one leads."""
        for name, host in zip(self.names, self.hosts.hosts, strict=True):
            worker = self.group.prepare(host.prefix)
            self.group.go(worker, name, bind=f"{host.address}:{PORT}", insecure=True)
            self.on[name] = worker, host
            self.group.until(f"{name} has joined", lambda worker=worker: bool(worker.address))
            self.group.settle()
        for worker in self.workers:
            worker.order("send", **LOAD)
        time.sleep(1)

    @property
    def workers(self) -> list[Worker]:
        return [worker for worker, _ in self.on.values()]

    def worker(self, name: str) -> Worker:
        return self.on[name][0]

    def host(self, name: str) -> Host:
        return self.on[name][1]

    @contextmanager
    def cut(self, src: str, dest: str) -> Iterator[None]:
        """`dest` is not dialed by `src`, nor does it get anything over connections that `src` made."""
        with self.host(dest).rules(f"ip saddr {self.host(src).address} tcp dport {PORT} drop"):
            yield

    @contextmanager
    def refused(self, src: str, dest: str) -> Iterator[None]:
        """The port of `dest` refuses `src`, and resets the connection that `src` has made."""
        with self.host(dest).rules(f"ip saddr {self.host(src).address} tcp dport {PORT} reject with tcp reset"):
            yield

    def reset(self, src: str, dest: str) -> None:
        """Reset the connection that `src` has made to `dest`; a new one may be made at once."""
        for port in self.host(src).ports_to(self.host(dest), PORT):
            with self.host(dest).rules(
                f"ip saddr {self.host(src).address} tcp sport {port} tcp dport {PORT} reject with tcp reset"
            ):
                until(f"{src}'s connection to {dest} is gone", lambda port=port: not self._has(src, dest, port), 5)

    def _has(self, src: str, dest: str, port: int) -> bool:
        return port in self.host(src).ports_to(self.host(dest), PORT)

    def all_is_well(self, names: str) -> None:
        """These are in one view, and soon everything that they sent is delivered by all of them."""
        group, end = self.group, time.monotonic() + patience(SOON)
        workers = [self.worker(name) for name in names]
        addresses = {worker.address for worker in workers}
        group.until("one view", lambda: all(set(worker.members) == addresses for worker in workers))
        assert time.monotonic() < end, "there is a view of those who go on, and it came late"
        accepted = group.stop_sending()
        group.until(
            "everything is delivered",
            lambda: all(
                worker.progress["last"].get(sender, 0) == number
                for worker in workers
                for sender, number in accepted.items()
            ),
        )
        assert time.monotonic() < end, "everything is delivered, and it came late"
        assert all(number > 50 for number in accepted.values()), f"nobody waited for long: {accepted}"


@contextmanager
def site(folder: Path, names: str, profile: str) -> Iterator[Site]:
    one = Site(folder, names, profile)
    with ExitStack() as stack:
        stack.enter_context(one.hosts)
        stack.enter_context(one.group)
        one.start()
        yield one


@pytest.mark.parametrize("profile", ["total", pytest.param("fifo", marks=pytest.mark.long)])
def test_a_port_that_refuses_for_a_second_silences_nobody(tmp_path: Path, profile: str) -> None:
    """C's connection to A is reset, and A's port refuses C for a second; then A's connection to C is reset."""
    with site(tmp_path, "ABC", profile) as group:
        with group.refused("C", "A"):
            time.sleep(1)
        time.sleep(0.5)
        group.reset("A", "C")
        time.sleep(1)
        group.all_is_well("ABC")
        assert all("suspected" not in worker.reports for worker in group.workers)


@pytest.mark.parametrize("profile", ["total", pytest.param("fifo", marks=pytest.mark.long)])
def test_a_proof_that_was_wrong_silences_nobody(tmp_path: Path, profile: str) -> None:
    """Both connections between A and C are reset while A's port refuses C: to C nothing speaks for A's life."""
    with site(tmp_path, "ABC", profile) as group:
        with group.refused("C", "A"), group.refused("A", "C"):
            time.sleep(1)
        time.sleep(2)
        group.all_is_well("ABC")
        assert all("left" not in worker.reports for worker in group.workers)


@pytest.mark.parametrize("profile", ["total", pytest.param("fifo", marks=pytest.mark.long)])
def test_a_member_that_does_not_hear_its_leader_keeps_no_dead_in_the_view(tmp_path: Path, profile: str) -> None:
    """One direction of one link fails: from the leader A to D.  Then C is killed.  When the link works again, all who
    live are in one view, each as the same member."""
    with site(tmp_path, "ABCD", profile) as group:
        others = [group.worker(name) for name in "ABD"]
        with group.cut("A", "D"):
            time.sleep(0.5)
            killed = group.worker("C")
            killed.signal(signal.SIGKILL)
            killed_at = time.monotonic()

            def is_gone() -> bool:
                return all(killed.address not in worker.members for worker in others)

            group.group.until("the dead one is in nobody's view", is_gone)
            assert time.monotonic() - killed_at < patience(SOON)
            time.sleep(max(0.0, SOON - (time.monotonic() - killed_at)))
            assert any(len(worker.members) == 2 for worker in others), "two of them reach each other both ways"
            views = [worker.views[-1]["id"] for worker in others]
            time.sleep(3)
            assert [worker.views[-1]["id"] for worker in others] == views, "while the link fails no view changes"
        group.all_is_well("ABD")
        assert all("left" not in worker.reports for worker in others)


@pytest.mark.parametrize("seconds", [4.5])
def test_a_network_that_is_back_in_time_costs_nobody_the_group(tmp_path: Path, seconds: float) -> None:
    """B hears nobody and is heard by nobody.  TCP backs off: its next try would come too late."""
    with site(tmp_path, "ABC", "total") as group:
        before = [worker.views[-1]["id"] for worker in group.workers]
        with group.host("B").rules("iifname eth0 drop"):
            time.sleep(seconds)
        time.sleep(3)
        group.all_is_well("ABC")
        assert [worker.views[-1]["id"] for worker in group.workers] == before
