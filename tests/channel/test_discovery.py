"""Members that find each other over the network: by a list of addresses, a DNS name, IP multicast and remembered
addresses, over sockets of this machine."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import socket
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pygroups import Channel, Refused, UsageError
from pygroups.core.address import Address
from pygroups.core.driver_events import Presence
from pygroups.drivers import hello
from pygroups.wire.frame import VERSION
from tests.channel.socket_group import until
from tests.patience import patience

multicasts = itertools.count(20_000 + os.getpid() % 20_000)


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Ports at which no process of this machine listens, over TCP or UDP."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with Sockets() as sockets:
        found: list[int] = []
        while len(found) < count:
            one = sockets.take(socket.socket(family, socket.SOCK_STREAM))
            one.bind((host, 0))
            other = sockets.take(socket.socket(family, socket.SOCK_DGRAM))
            port = one.getsockname()[1]
            try:
                other.bind((host, port))
            except OSError:
                continue
            found.append(port)
        return found


class Sockets:
    """Sockets that are closed together."""

    def __init__(self) -> None:
        self.sockets: list[socket.socket] = []

    def __enter__(self) -> Sockets:
        return self

    def take(self, sock: socket.socket) -> socket.socket:
        self.sockets.append(sock)
        return sock

    def __exit__(self, *_: object) -> None:
        for sock in self.sockets:
            sock.close()


class Processes:
    """Channels of one group that find each other over the network."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self.stack = stack

    async def join(self, name: str, group: str = "g", **options: Any) -> Channel:
        return await self.stack.enter_async_context(Channel(group, name=name, **options))

    async def join_at_once(self, options: dict[str, dict[str, Any]]) -> list[Channel]:
        return list(await asyncio.gather(*[self.join(name, **given) for name, given in options.items()]))


@asynccontextmanager
async def processes() -> Any:
    async with asyncio.timeout(60), AsyncExitStack() as stack:
        yield Processes(stack)


def played(story: Callable[[Processes], Awaitable[None]]) -> None:
    async def main() -> None:
        async with processes() as here:
            await story(here)

    asyncio.run(main())


def in_one_view(channels: list[Channel]) -> bool:
    return len({channel.view.id for channel in channels}) == 1 and len(channels[0].view.members) == len(channels)


@contextmanager
def dns(answers: dict[str, list[str]]) -> Iterator[dict[str, list[str]]]:
    """A resolver that knows these names alone; a test changes its answers."""
    real = socket.getaddrinfo

    def looked_up(host: Any, port: Any, *rest: Any, **named: Any) -> Any:
        if host not in answers:
            return real(host, port, *rest, **named)
        if not answers[host]:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        time.sleep(0.05)  # in a thread: the loop does not wait for it
        return [found for one in answers[host] for found in real(one, port, *rest, **named)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", looked_up)
        yield answers


def options_of(kind: str, count: int, transport: str) -> dict[str, dict[str, Any]]:
    """The options of `count` processes that find each other in this way."""
    names = [f"m{number:02}" for number in range(count)]
    if kind == "multicast":
        way = f"udp:239.77.1.9:{next(multicasts)}"
        return {name: {"discovery": way, "transport": transport} for name in names}
    if kind == "dns":
        (port,) = free_ports(1)
        hosts = [f"127.0.1.{number + 1}" for number in range(count)]
        way = f"dns:group.example:{port}"
        return {
            name: {"discovery": way, "bind": f"{host}:{port}", "transport": transport}
            for name, host in zip(names, hosts, strict=True)
        }
    binds = [f"127.0.0.1:{port}" for port in free_ports(count)]
    way = ",".join(binds)
    return {
        name: {"discovery": way, "bind": bind, "transport": transport} for name, bind in zip(names, binds, strict=True)
    }


@pytest.mark.parametrize("transport", ["tcp", "udp"])
@pytest.mark.parametrize("kind", ["list", "dns", "multicast"])
def test_JOIN_07_ten_at_once_in_each_kind_of_discovery(kind: str, transport: str) -> None:
    async def story(here: Processes) -> None:
        options = options_of(kind, 10, transport)
        channels = await here.join_at_once(options)
        await until(lambda: in_one_view(channels))
        assert channels[0].view.id.number <= 5  # few views

    with dns({"group.example": [f"127.0.1.{number + 1}" for number in range(10)]}):
        played(story)


async def waits(here: Processes, name: str, options: dict[str, Any]) -> float:
    """The seconds in which a process that is alone joins, without the CPU time that it needs itself."""
    began = time.process_time(), time.monotonic()
    channel = await here.join(name, **options)
    seconds = time.monotonic() - began[1] - (time.process_time() - began[0])
    assert channel.view.members == (channel.address,)
    await channel.leave()
    return seconds


ALONE = 5


@pytest.mark.parametrize("transport", ["tcp", "udp"])
@pytest.mark.parametrize("kind", ["folder", "list", "cache"])
def test_a_process_alone_has_its_view_within_100_ms_where_nobody_can_be_there(
    kind: str, transport: str, tmp_path: Path
) -> None:
    """The median of several joins: each address refuses, or the folder has no entry, so the process knows that no
    other one is there.  The cache has the addresses of two members that have ended."""

    async def story(here: Processes) -> None:
        seconds = []
        for number in range(ALONE):
            bind, *others = [f"127.0.0.1:{port}" for port in free_ports(3)]
            ways = {"folder": [f"dir:{tmp_path / 'groups'}"], "list": [",".join([bind, *others])]}
            if kind == "cache":
                cache = tmp_path / f"addresses{number}"
                cache.mkdir(mode=0o700)
                (cache / "g.json").write_text(json.dumps(dict.fromkeys(others, time.time())))
                ways["cache"] = [bind, f"cache:{cache}"]
            options = {"discovery": ways[kind], "bind": bind, "transport": transport}
            seconds.append(await waits(here, "A", options))
        assert statistics.median(seconds) < patience(0.1), seconds

    played(story)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
@pytest.mark.parametrize("kind", ["dns", "multicast"])
def test_a_process_alone_has_its_view_within_a_second(kind: str, transport: str) -> None:
    async def story(here: Processes) -> None:
        seconds = []
        for _ in range(ALONE):
            (options,) = options_of(kind, 1, transport).values()
            seconds.append(await waits(here, "A", options))
        assert statistics.median(seconds) < patience(1.0), seconds

    with dns({"group.example": ["127.0.1.1", "127.0.1.2"]}):
        played(story)


def test_JOIN_08_addresses_where_nobody_answers_keep_nobody_waiting() -> None:
    async def story(here: Processes) -> None:
        refused, *ports = free_ports(3)
        with socket.create_server(("127.0.0.1", 0)) as silent:  # it accepts, and says nothing
            way = ",".join(f"127.0.0.1:{port}" for port in (refused, silent.getsockname()[1], *ports))
            first = await here.join("B", discovery=way, bind=f"127.0.0.1:{ports[0]}")
            second = await here.join("C", discovery=way, bind=f"127.0.0.1:{ports[1]}")
            await until(lambda: in_one_view([first, second]))

    played(story)


def test_a_process_that_no_list_names_comes_in_by_one_that_is_listed() -> None:
    async def story(here: Processes) -> None:
        (port,) = free_ports(1)
        way = f"127.0.0.1:{port}"
        options = {"hub": {"discovery": way, "bind": way}, "A": {"discovery": way}, "B": {"discovery": way}}
        channels = [await here.join("hub", **options.pop("hub")), *await here.join_at_once(options)]
        await until(lambda: in_one_view(channels))

    played(story)


def test_groups_of_two_names_at_the_same_addresses_never_hear_each_other() -> None:
    async def story(here: Processes) -> None:
        options = options_of("list", 4, "tcp")
        groups = ["g", "g", "h", "h"]
        channels = await asyncio.gather(
            *[here.join(name, group, **given) for (name, given), group in zip(options.items(), groups, strict=True)]
        )
        await until(lambda: in_one_view(list(channels[:2])) and in_one_view(list(channels[2:])))
        await channels[0].send(b"x", until="stable")
        assert [len(channel.view.members) for channel in channels] == [2, 2, 2, 2]

    played(story)


def test_a_dns_name_is_looked_up_again() -> None:
    async def story(here: Processes) -> None:
        options = options_of("dns", 2, "tcp")
        first = await here.join("m00", **options["m00"])
        answers["group.example"] += ["127.0.1.2"]
        second = await here.join("m01", **options["m01"])
        await until(lambda: in_one_view([first, second]))

    with dns({"group.example": ["127.0.1.1"]}) as answers:
        played(story)


@pytest.mark.parametrize("way", ["dns:group.example:{}", "group.example:{}"])
@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_lookup_that_fails_for_now_founds_no_second_group(
    way: str, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (port,) = free_ports(1)
    real, failures = socket.getaddrinfo, [socket.EAI_AGAIN, socket.EAI_FAIL]

    def looked_up(host: Any, *rest: Any, **named: Any) -> Any:
        if host != "group.example":
            return real(host, *rest, **named)
        if failures:
            raise socket.gaierror(failures.pop(), "Temporary failure in name resolution")
        return real("127.0.0.1", *rest, **named)

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)

    async def story(here: Processes) -> None:
        a = await here.join("a", discovery=f"127.0.0.1:{port}", bind=f"127.0.0.1:{port}", transport=transport)
        b = await here.join("b", discovery=way.format(port), transport=transport)
        assert not failures
        assert len(b.view.members) == 2, "b has joined the group of a"
        await until(lambda: in_one_view([a, b]))

    played(story)


def test_a_listed_name_that_does_not_exist_keeps_nobody_waiting() -> None:
    async def story(here: Processes) -> None:
        began = time.monotonic()
        channel = await here.join("a", discovery=["gone.example:7000", "x" * 70 + ".example:7000"])
        assert time.monotonic() - began < patience(3)
        assert len(channel.view.members) == 1

    with dns({"gone.example": []}):
        played(story)


def test_a_dns_name_without_an_address_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def story(here: Processes) -> None:
        (port,) = free_ports(1)
        await here.join("A", discovery=f"dns:misspelled.example:{port}", bind=f"127.0.0.1:{port}")

    with dns({"misspelled.example": []}):
        played(story)
    (line,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert line.getMessage() == "the name misspelled.example has no address, and is looked up again"


def test_several_ways_at_once(tmp_path: Path) -> None:
    async def story(here: Processes) -> None:
        (port,) = free_ports(1)
        folder, address = f"dir:{tmp_path / 'groups'}", f"127.0.0.1:{port}"
        first = await here.join("A", discovery=[folder, address], bind=address)
        by_folder = await here.join("B", discovery=folder)
        by_address = await here.join("C", discovery=(address,))
        await until(lambda: in_one_view([first, by_folder, by_address]))

    played(story)


def test_an_address_is_remembered_and_an_outdated_one_does_no_harm(tmp_path: Path) -> None:
    cache = tmp_path / "addresses"

    async def story(here: Processes) -> None:
        (port,) = free_ports(1)
        address = f"127.0.0.1:{port}"
        first = await here.join("A", discovery=address, bind=address)
        second = await here.join("B", discovery=[address, f"cache:{cache}"])
        await until(lambda: in_one_view([first, second]))
        kept = json.loads((cache / "g.json").read_text())
        assert address in kept
        assert len(kept) == 2
        (elsewhere,) = free_ports(1)
        third = await here.join("C", discovery=[f"127.0.0.1:{elsewhere}", f"cache:{cache}"])
        await until(lambda: in_one_view([first, second, third]))  # by the remembered address alone

    played(story)

    async def later(here: Processes) -> None:
        (elsewhere,) = free_ports(1)
        began = time.monotonic(), time.process_time()
        alone = await here.join("A", discovery=[f"127.0.0.1:{elsewhere}", f"cache:{cache}"])
        assert alone.view.members == (alone.address,)
        assert time.monotonic() - began[0] < patience(1.0 + time.process_time() - began[1])

    played(later)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_members_over_ipv6(transport: str, tmp_path: Path) -> None:
    async def story(here: Processes) -> None:
        ports = free_ports(2, "::1")
        way = ",".join(f"[::1]:{port}" for port in ports)
        options = {f"m{port}": {"discovery": way, "bind": f"[::1]:{port}", "transport": transport} for port in ports}
        channels = await here.join_at_once(options)
        await until(lambda: in_one_view(channels))
        await channels[0].send(b"x", until="stable", timeout=20)

    played(story)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_member_on_all_addresses_logs_the_address_that_it_announces(
    transport: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pygroups.drivers.contacts._routed", lambda far, family: "127.0.0.1")
    caplog.set_level(logging.INFO, logger="pygroups")

    async def story(here: Processes) -> None:
        common = {"discovery": f"dir:{tmp_path / 'groups'}", "insecure": True, "transport": transport}
        first = await here.join("A", bind="0.0.0.0:0", **common)
        second = await here.join("B", bind="0.0.0.0:0", advertise="127.0.0.1:0", **common)
        await until(lambda: in_one_view([first, second]))
        told = [record.getMessage() for record in caplog.records if "for the other members" in record.getMessage()]
        assert len(told) == 1
        assert str(first.address) in told[0]
        assert "announces 127.0.0.1:" in told[0]

    played(story)


ANOTHER_VERSION = """
import sys
from pygroups.cli.main import main

import pygroups.drivers.udp.udp

for name, module in list(sys.modules.items()):
    if name.startswith(("pygroups.wire.", "pygroups.drivers.")) and hasattr(module, "VERSION"):
        module.VERSION += 1
sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["tcp", "udp"])
@pytest.mark.parametrize("kind", ["list", "folder"])
def test_a_joiner_with_another_wire_version_is_refused_and_founds_nothing(
    kind: str, transport: str, tmp_path: Path
) -> None:
    async def story(here: Processes) -> None:
        ports = free_ports(2)
        way = ",".join(f"127.0.0.1:{port}" for port in ports) if kind == "list" else f"dir:{tmp_path / 'groups'}"
        member = await here.join("A", discovery=way, bind=f"127.0.0.1:{ports[0]}", transport=transport)
        options = {"name": "B", "discovery": way, "transport": transport, "bind": f"127.0.0.1:{ports[1]}"}
        arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
        joiner = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", ANOTHER_VERSION, "join", "g", *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        printed, errors = await joiner.communicate()
        assert (joiner.returncode, printed) == (2, b""), errors.decode()
        expected = f"the group has wire version {VERSION}, the joiner {VERSION + 1}: "
        assert expected in errors.decode().splitlines()[-1]
        assert member.view.members == (member.address,)

    played(story)


def test_two_profiles_at_the_same_addresses_are_one_group_and_a_refusal() -> None:
    async def story(here: Processes) -> None:
        options = options_of("list", 2, "tcp")
        member = await here.join("A", profile="total", **options["m00"])
        with pytest.raises(Refused, match="the group has profile=total, the joiner profile=fifo"):
            await here.join("B", profile="fifo", **options["m01"])
        assert member.view.members == (member.address,)

    played(story)


def test_without_insecure_no_way_leads_to_other_machines(tmp_path: Path) -> None:
    for options in ({"bind": "0.0.0.0:0"}, {"discovery": "10.0.0.1:7000"}, {"bind": "[::]:0"}):
        with pytest.raises(UsageError, match="insecure=True"):
            Channel("g", **options)  # type: ignore[arg-type]

    async def story(here: Processes) -> None:
        channel = await here.join("A", discovery="dns:group.example:7000")
        assert channel.view.members == (channel.address,)
        assert channel.stats()["counters"]["contacts beyond this machine"]

    with dns({"group.example": ["192.0.2.1"]}):
        played(story)


def test_the_last_one_out_leaves_nothing_behind(tmp_path: Path) -> None:
    sockets = len(list(Path("/proc/self/fd").iterdir()))

    async def story(here: Processes) -> None:
        folder, cache = tmp_path / "groups", tmp_path / "addresses"
        ways = [f"dir:{folder}", f"cache:{cache}", f"udp:239.77.1.9:{next(multicasts)}"]
        options = {name: {"discovery": ways} for name in "ABC"}
        channels = await here.join_at_once(options)
        await until(lambda: in_one_view(channels))
        for channel in channels:
            await channel.leave()
        assert list(folder.iterdir()) == []
        assert [path.name for path in cache.iterdir()] == ["g.json"]

    played(story)
    assert len(list(Path("/proc/self/fd").iterdir())) == sockets


def test_members_that_find_each_other_in_a_folder_answer_no_question(tmp_path: Path) -> None:
    async def story(here: Processes) -> None:
        (port,) = free_ports(1)
        await here.join("A", discovery=f"dir:{tmp_path / 'groups'}", bind=f"127.0.0.1:{port}")
        presence = Presence(Address("X", "0" * 16), "127.0.0.1:1", member=False, seeks=True)
        question = hello.DiscoveryQuestion(VERSION, "g", b"12345678", presence)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(hello.encoded(question))
        assert await reader.read() == b""  # closed, and the address of the member is not told
        writer.close()

    played(story)


def test_a_join_that_waits_names_the_member_and_the_address_that_it_was_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("pygroups.drivers.contacts._routed", lambda far, family: "127.0.0.9")

    async def story(here: Processes) -> None:
        (port,) = free_ports(1)
        way = f"127.0.0.1:{port}"
        member = await here.join("A", discovery=way, bind=way, insecure=True)
        joiner = Channel("g", name="B", discovery=way, bind="0.0.0.0:0", insecure=True)
        async with joiner:
            session = joiner._session
            assert session is not None
            session.waits.joining = True  # as if it still waited
            text = session.waits.waits_to_join()
        assert text is not None
        assert text.startswith(f"the join waits for an answer of {member.address}; the answer goes to 127.0.0.9:")

    played(story)


def test_a_join_that_waits_names_the_address_of_advertise() -> None:
    async def story(here: Processes) -> None:
        (port,) = free_ports(1)
        way = f"127.0.0.1:{port}"
        member = await here.join("A", discovery=way, bind=way)
        joiner = Channel("g", name="B", discovery=way, advertise="127.0.0.1:9")  # no process listens there
        joining = asyncio.create_task(joiner.__aenter__())
        waiting = f"the join waits for an answer of {member.address}"
        await until(lambda: (waits := waits_to_join(joiner)) is not None and waits.startswith(waiting))
        assert waits_to_join(joiner) == (
            f"{waiting}; the answer goes to 127.0.0.1:9, the address of advertise=, which must lead to this process"
        )
        joining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await joining

    played(story)


def waits_to_join(channel: Channel) -> str | None:
    session = channel._session
    return None if session is None else session.waits.waits_to_join()
