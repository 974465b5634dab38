"""IPv4 and IPv6 in one group, over sockets of this machine: a member on `[::]` exchanges frames with peers of both
kinds, and a process that can reach only one kind is refused with a sentence."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from pygroups import Refused, UsageError
from tests.channel.socket_group import until
from tests.channel.test_discovery import Processes, dns, free_ports, in_one_view, played
from tests.patience import patience

LEFT_OUT = "the addresses of a name are left out"
TRANSPORTS = pytest.mark.parametrize("transport", ["tcp", "udp"])


def options(tmp_path: Path, transport: str) -> dict[str, Any]:
    return {"discovery": f"dir:{tmp_path / 'groups'}", "insecure": True, "transport": transport}


@TRANSPORTS
@pytest.mark.parametrize("peer", ["127.0.0.1", "[::1]"])
def test_a_member_on_all_addresses_and_a_peer_of_either_version(peer: str, transport: str, tmp_path: Path) -> None:
    async def story(here: Processes) -> None:
        common = options(tmp_path, transport)
        everywhere = await here.join("A", bind="[::]:0", advertise=f"{peer}:0", **common)
        other = await here.join("B", bind=f"{peer}:0", **common)
        await until(lambda: in_one_view([everywhere, other]))
        await everywhere.send(b"x", until="stable", timeout=20)
        await other.send(b"y", until="stable", timeout=20)

    played(story)


@TRANSPORTS
def test_members_on_all_addresses_with_contacts_of_both_versions(transport: str, tmp_path: Path) -> None:
    async def story(here: Processes) -> None:
        common = options(tmp_path, transport)
        hosts = {"A": "127.0.0.1", "B": "[::1]", "C": "127.0.0.1"}
        binds = {name: {"bind": "[::]:0", "advertise": f"{host}:0", **common} for name, host in hosts.items()}
        channels = await here.join_at_once(binds)
        await until(lambda: in_one_view(channels))
        for channel in channels:
            await channel.send(b"x", until="stable", timeout=20)

    played(story)


def test_over_tcp_peers_of_both_versions_are_one_group(tmp_path: Path) -> None:
    async def story(here: Processes) -> None:
        common = options(tmp_path, "tcp")
        channels = [
            await here.join(name, bind=f"{host}:0", **common) for name, host in (("A", "127.0.0.1"), ("B", "[::1]"))
        ]
        await until(lambda: in_one_view(channels))
        await channels[1].send(b"x", until="stable", timeout=20)

    played(story)


@pytest.mark.parametrize(("bind", "other"), [("127.0.0.1", "[::1]"), ("[::1]", "127.0.0.1")])
@pytest.mark.parametrize("way", ["folder", "list", "multicast"])
def test_a_process_that_can_only_reach_the_other_version_is_refused(
    way: str, bind: str, other: str, tmp_path: Path
) -> None:
    async def story(here: Processes) -> None:
        (port,) = free_ports(1, other.strip("[]"))
        given = {
            "folder": f"dir:{tmp_path / 'groups'}",
            "list": f"{other}:{port}",
            "multicast": f"udp:239.77.1.8:{20_000 + port % 20_000}",
        }[way]
        member = await here.join("A", bind=f"{other}:{port}", discovery=given, transport="udp")
        with pytest.raises((UsageError, Refused), match=r"sends only to IPv[46] addresses: give bind='\[::\]:0'"):
            await here.join("B", bind=f"{bind}:0", discovery=given, transport="udp")
        assert member.view.members == (member.address,)

    played(story)


def test_a_joiner_that_the_member_cannot_answer_is_refused(tmp_path: Path) -> None:
    async def story(here: Processes) -> None:
        common = options(tmp_path, "udp")
        await here.join("A", bind="127.0.0.1:0", **common)
        with pytest.raises(Refused, match=r"cannot send to the joiner: \[::1\]:\d+ is not an IPv4 address"):
            await here.join("B", bind="[::]:0", advertise="[::1]:0", **common)

    played(story)


@TRANSPORTS
@pytest.mark.parametrize("answers", [["::1", "127.0.1.1"], ["127.0.1.1", "::1"]])
def test_a_dns_name_with_addresses_of_both_versions(answers: list[str], transport: str) -> None:
    async def story(here: Processes) -> None:
        (port,) = free_ports(1, "::1")
        way = f"dns:group.example:{port}"
        first = await here.join("A", bind=f"[::1]:{port}", discovery=way, transport=transport)
        joiner = {"tcp": "127.0.1.1", "udp": "[::]"}[transport]  # an IPv4 socket of UDP reaches no IPv6 address
        common = {"discovery": way, "transport": transport, "insecure": True}
        second = await here.join("B", bind=f"{joiner}:0", advertise=None if transport == "tcp" else "[::1]:0", **common)
        await until(lambda: in_one_view([first, second]))
        await second.send(b"x", until="stable", timeout=20)

    with dns({"group.example": answers}):
        played(story)


def test_addresses_of_a_name_that_the_socket_cannot_reach_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """A process with an IPv4 socket does not wait for an answer of an IPv6 address: it has its view in a second.  The
    name has another address, so there is no warning."""

    async def story(here: Processes) -> None:
        (port,) = free_ports(1)
        began = time.process_time(), time.monotonic()
        way = f"dns:group.example:{port}"
        channel = await here.join("A", bind=f"127.0.0.1:{port}", discovery=way, transport="udp")
        assert time.monotonic() - began[1] < patience(1.0 + time.process_time() - began[0])
        assert channel.stats()["counters"]["addresses of a name with another version of IP"]

    with dns({"group.example": ["::1", "127.0.0.1"]}):
        played(story)
    assert LEFT_OUT not in caplog.text


def test_a_name_that_the_socket_reaches_at_no_address_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def story(here: Processes) -> None:
        (port,) = free_ports(1)
        await here.join("A", bind=f"127.0.0.1:{port}", discovery=f"dns:group.example:{port}", transport="udp")

    with dns({"group.example": ["::1"]}):
        played(story)
    assert f"{LEFT_OUT}: [::1]:" in caplog.text


@TRANSPORTS
@pytest.mark.parametrize("answers", [["::1", "127.0.0.1"], ["127.0.0.1", "::1"]])
@pytest.mark.parametrize("host", ["127.0.0.1", "[::]"])
def test_a_contact_with_a_name_of_both_versions(host: str, answers: list[str], transport: str, tmp_path: Path) -> None:
    """The peer listens at one of the addresses of its name: a refusal at the other one proves nothing."""

    async def story(here: Processes) -> None:
        common = options(tmp_path, transport)
        named = await here.join("A", bind="127.0.0.1:0", advertise="peer.example:0", **common)
        other = await here.join("B", bind=f"{host}:0", advertise="127.0.0.1:0", **common)
        await until(lambda: in_one_view([named, other]))
        await other.send(b"x", until="stable", timeout=20)

    with dns({"peer.example": answers}):
        played(story)
