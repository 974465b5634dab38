"""Every container of a member has a limit by name, and stays below it when the member is overloaded."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import inspect
from msgspec.structs import replace

from pygroups import Channel, ChannelClosed
from pygroups.channel import bounds
from pygroups.channel.session import Session
from pygroups.core import tables
from pygroups.core.address import Address
from pygroups.core.events import Join
from pygroups.core.layer import Env
from pygroups.core.limits import MEMBERS_MAX, MILLISECOND, SECOND, Config
from pygroups.core.run import Run, pack
from pygroups.core.stack import Stack
from pygroups.core.top import Top
from pygroups.core.view import AgreedView, ViewId
from pygroups.drivers.discovery.directory import Directory
from pygroups.drivers.discovery.network import NetworkDiscovery
from pygroups.drivers.tcp.tcp import TcpNetwork
from pygroups.drivers.udp.udp import UdpNetwork
from pygroups.journal.writer import JournalWriter
from pygroups.layers.profiles import PROFILES
from pygroups.layers.unicast2 import layer as unicast2
from pygroups.wire.codec import Codec
from tests.channel.socket_group import Group, in_a_group, until
from tests.channel.test_secret import NEW, OLD, key_file
from tests.containers import Container, containers
from tests.wire.group import Process, warm
from tests.wire.samples import GROUP, HEADS

TIGHT = Config(
    payload_max=4 << 10,
    run_bytes=1 << 10,
    window=8 << 10,
    stable_bytes=1 << 10,
    nakack_early_max=16,
    nakack_answer_runs=4,
    future_runs_max=16,
    future_bytes=16 << 10,
    unicast_early_max=16,
    unicast_peers_max=32,
    tombstones_max=16,
    contacts_max=32,
    marks_max=32,
    gossip_buffer=32 << 10,
    gossip_early_max=16,
    gossip_cache=16,
    queue_max=256 << 10,
    receive_bytes=256 << 10,
    link_bytes=256 << 10,
    strangers=16,
    guests=16,
)
CALLS = 50  # of the program of these tests, at most


def offences(begins: Mapping[str, object], config: Config, members: int) -> list[str]:
    """The containers without a limit, and those above theirs."""
    names, most = dict(tables.rows(begins)), dict(tables.valued(begins, config, members))
    found: dict[str, str] = {}
    for one in containers(begins):
        if one.kind is str:
            continue  # names, and texts whose length the wire limits
        limit = most.get(one.path, -1)
        if limit == -1:
            found.setdefault(one.path, f"{one.path}: no limit has a name for this {one.kind.__name__}")
        elif one.size > (CALLS if limit is None else limit):
            found[one.path] = f"{one.path}: {one.size} entries, and {names[one.path]} is {limit}"
    return sorted(found.values())


def parts_of(stack: Any) -> dict[str, object]:
    parts: dict[str, object] = {type(layer).__name__.lower(): layer for layer in stack.layers}
    return {**parts, "stack": stack, "env": stack.env}


# -- the walk


def test_the_walk_finds_containers_wherever_they_are() -> None:
    class Hidden:
        __slots__ = ("bytes", "deep")

        def __init__(self) -> None:
            self.bytes = bytearray(7)
            self.deep = {"key": [SimpleNamespace(), {1, 2, 3}]}

    Hidden.__module__ = "pygroups.planted"
    found = list(containers({"root": Hidden()}))
    assert found == [
        Container("root.bytes", 7, bytearray),
        Container("root.deep", 1, dict),
        Container("root.deep[]", 2, list),
        Container("root.deep[][]", 3, set),
    ]


def test_a_container_without_a_limit_is_found() -> None:
    stack = warm().processes.popitem()[1].stack
    assert offences(parts_of(stack), Config(), 3) == []
    stack.env.gauges.__self__._routes.append({})  # a list that has a row may grow to its limit
    stack.planted = {}  # type: ignore[attr-defined]
    assert offences(parts_of(stack), Config(), 3) == ["stack.planted: no limit has a name for this dict"]


def test_a_container_above_its_limit_is_found() -> None:
    stack = warm().processes.popitem()[1].stack
    stable = parts_of(stack)["stable"]
    stable.awaited = dict.fromkeys(range(4), 0)  # type: ignore[attr-defined]
    assert offences(parts_of(stack), Config(), 3) == ["stable.awaited: 4 entries, and members is 3"]


def test_every_limit_that_a_row_names_exists_and_every_limit_has_a_row() -> None:
    layers = {layer for profile in PROFILES.values() for layer in profile.layers}
    drivers = (Directory, NetworkDiscovery, TcpNetwork, UdpNetwork, JournalWriter)
    limits = [limit for part in (*layers, *drivers, Env, Stack, Top, Session) for limit in part.tables.values()]
    assert {limit for limit in limits if isinstance(limit, str)} == set(tables.limits(Config(), 3))


# -- a stack among liars


@cache
def type_info(cls: type) -> inspect.StructType:
    info = inspect.type_info(cls)
    assert isinstance(info, inspect.StructType)
    return info


class Liar:
    """Makes heads of every kind with values of the right types: from strangers in numbers, and from members."""

    def __init__(self, seed: int, process: Process, view: ViewId | None) -> None:
        assert view is not None
        self.view = view
        self.rng = random.Random(seed)
        self.process = process
        self.strangers = [Address(f"s{n}", f"{n + 1_000:016x}") for n in range(MEMBERS_MAX + 200)]
        self.members = list(process.group.processes)

    def address(self) -> Address:
        return self.rng.choice(self.rng.choice((self.strangers, self.members)))

    def view_id(self) -> ViewId:
        view = self.view
        return self.rng.choice((view, view, ViewId(view.number + 1, view.leader), ViewId(1, self.address())))

    def value(self, kind: Any) -> Any:
        rng = self.rng
        match kind:
            case inspect.IntType():
                return rng.choice((kind.ge or 0, rng.randrange(1, 40), rng.randrange(1, 1 << 20)))
            case inspect.BoolType():
                return rng.random() < 0.5
            case inspect.NoneType():
                return None
            case inspect.StrType():
                return "127.0.0.1:1"
            case inspect.BytesType():
                return b"x"
            case inspect.ListType():
                return [self.value(kind.item_type) for _ in range(rng.randrange(4))]
            case inspect.VarTupleType():
                return tuple(self.value(kind.item_type) for _ in range(rng.randrange(1, 4)))
            case inspect.TupleType():
                return tuple(map(self.value, kind.item_types))
            case inspect.DictType():
                return {self.value(kind.key_type): self.value(kind.value_type) for _ in range(rng.randrange(40))}
            case inspect.UnionType():
                return self.value(rng.choice(kind.types))
            case inspect.EnumType():
                return rng.choice(list(kind.cls))
            case inspect.LiteralType():
                return rng.choice(kind.values)
            case inspect.NamedTupleType():
                return self.address() if kind.cls is Address else kind.cls(*self.view_id())
            case inspect.StructType():
                return self.struct(kind.cls)
        raise AssertionError(f"no values of {kind}")

    def struct(self, cls: Any) -> Any:
        if cls is AgreedView:
            members = tuple(dict.fromkeys(self.address() for _ in range(3)))
            return AgreedView(self.view_id(), members, ("127.0.0.1:1",) * len(members))
        info = type_info(cls)
        return cls(**{field.name: self.value(field.type) for field in info.fields})

    def frames(self, head: type) -> Iterator[bytes]:
        """Frames with this head: of every stranger, and some more."""
        codec, rng = Codec(GROUP, HEADS), self.rng
        for number, sender in enumerate([*self.strangers, *rng.choices(self.strangers, k=100)]):
            if number % 25 == 0:
                told = self.struct(head)
            dest = rng.choice((self.process.address, None))
            for heads in ((told,), (told, unicast2.Data(number + 1, number % 2, 0, 0, True))):
                run = Run(sender, dest if len(heads) == 1 else self.process.address, heads)
                if number % 3 == 0:
                    first, body = rng.randrange(1, 40), pack([bytes(900)])
                    run = Run(sender, run.dest, run.heads, sender, first, 0, 1, body)
                yield from codec.encode(sender, dest, [run])


def overload(process: Process, liar: Liar) -> Iterator[None]:
    """Give the stack frames with every head, and stop now and then after a turn."""
    group = process.group
    for head in HEADS:
        for number, frame in enumerate(liar.frames(head)):
            process.stack.receive(frame, group.now)
            if number % 100 == 99:
                process.stack.end_turn(group.now)
        process.stack.end_turn(group.now)
        yield
        group.now += 5 * MILLISECOND


def members_of(process: Process) -> int:
    """The members of the view.  Where views are hints, a member that lies can announce any view."""
    hints: Any = parts_of(process.stack).get("hints")
    return 3 if hints is None or hints.view is None else max(3, len(hints.view.members))


OFTEN_OR_LONG = pytest.mark.parametrize(
    "profile",
    ["uniform", "gossip", *(pytest.param(one, marks=pytest.mark.long) for one in ("total", "fifo", "total1999"))],
)


@pytest.mark.slow
@OFTEN_OR_LONG
def test_a_stack_that_strangers_overload_keeps_its_limits(profile: str) -> None:
    group = warm(profile=profile, config=TIGHT)
    process = next(iter(group.processes.values()))
    for _ in overload(process, Liar(1, process, process.env.view)):
        assert offences(parts_of(process.stack), TIGHT, members_of(process)) == []
    assert sum(process.env.counters.values()) > 10_000


@pytest.mark.slow
@OFTEN_OR_LONG
def test_a_joiner_that_strangers_overload_keeps_its_limits(profile: str) -> None:
    group = warm(profile=profile, config=TIGHT)
    view = next(iter(group.processes.values())).env.view
    joiner = Process(group, "D", 9)
    joiner.stack.asked(Join(), group.now)
    for _ in overload(joiner, Liar(1, joiner, view)):
        assert offences(parts_of(joiner.stack), TIGHT, members_of(joiner)) == []
    assert (profile == "gossip" or joiner.env.view is None) and sum(joiner.env.counters.values()) > 10_000


# -- channels


def of_channel(channel: Channel) -> list[str]:
    """The offences of an open channel, between two turns."""
    session = channel._session
    assert session is not None
    return offences(bounds.roots(session), TIGHT, len(channel.view.members))


async def between_turns(channel: Channel) -> None:
    while channel._member.due:
        await asyncio.sleep(0)


async def flood(channel: Channel, to: Address, seconds: float) -> None:
    """Send small and large messages to everybody and to one, in many tasks, for a while."""

    largest = min(TIGHT.payload_max, channel.stats()["payload_max"])

    async def send(number: int) -> None:
        while True:
            await channel.send(bytes(number if number % 5 else largest), to=to if number % 2 else None)

    with suppress(TimeoutError):
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as tasks:
            for number in range(CALLS // 2):
                tasks.create_task(send(number))


async def strangers(contact: str, count: int) -> None:
    """Connect and say nothing, or say nonsense."""
    host, port = contact.rsplit(":", 1)
    for number in range(count):
        try:
            _, writer = await asyncio.open_connection(host, int(port))
        except OSError:
            continue
        writer.write(bytes(number % 9))


@pytest.mark.parametrize(
    ("profile", "transport"),
    [
        *(("uniform", "tcp"), ("gossip", "udp")),
        *(
            pytest.param(*one, marks=pytest.mark.long)
            for one in (("total", "udp"), ("fifo", "tcp"), ("total", "tcp"), ("uniform", "udp"), ("fifo", "udp"))
        ),
        *(pytest.param("total1999", transport, marks=pytest.mark.long) for transport in ("tcp", "udp")),
    ],
)
def test_a_channel_that_is_overloaded_keeps_its_limits(profile: str, transport: str, tmp_path: Path) -> None:
    """Three members send all that they may, one of them reads slowly and one nothing, while strangers knock."""

    async def story(group: Group) -> None:
        patient = replace(TIGHT, heartbeat_timeout=60 * SECOND, connect_timeout=60 * SECOND)  # no member is slow here
        options: dict[str, Any] = {"config": patient, "profile": profile, "transport": transport}
        if profile == "fifo":
            options["secret"] = key_file(tmp_path, NEW, OLD)
        channels = [await group.joined(name, journal=tmp_path / name, **options) for name in "ABC"]
        await until(lambda: all(len(channel.view.members) == 3 for channel in channels))
        reading = asyncio.create_task(slowly(channels[0]))
        floods = [asyncio.create_task(flood(channel, channels[2].address, 1.5)) for channel in channels]
        if transport == "tcp":
            floods.append(asyncio.create_task(strangers(channels[0]._session.network.contact, 40)))  # type: ignore[union-attr]
        while not all(task.done() for task in floods):
            for channel in channels:
                await between_turns(channel)
                assert of_channel(channel) == []
            await asyncio.sleep(0.05)
        for channel in channels:
            stats = channel.stats()
            assert json.loads(json.dumps(stats)) == stats
            assert len(stats["tables"]) > 150
            assert [path for path, row in stats["tables"].items() if row["size"] > (row["limit"] or CALLS)] == []
            assert sum(stats["memory"].values()) == stats["memory_bound"]
        reading.cancel()

    in_a_group(tmp_path, story)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_member_that_looks_for_others_over_the_network_keeps_its_limits(transport: str) -> None:
    places = ["127.0.0.1:29875,127.0.0.1:29876", "dns:localhost:29877"]

    async def story() -> None:
        async with Channel("g", name="A", discovery=places, config=TIGHT, transport=transport) as channel:
            for _ in range(20):
                await between_turns(channel)
                assert of_channel(channel) == []
                await asyncio.sleep(0.01)

    asyncio.run(story())


async def slowly(channel: Channel) -> None:
    async for _ in channel:
        await asyncio.sleep(0.001)


def test_a_channel_whose_news_nobody_reads_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Views fill no window: a program that reads none of them for hours does not fill the memory with them."""
    monkeypatch.setattr("pygroups.channel.session.UNREAD_EVENTS_MAX", 4)

    async def story(group: Group) -> None:
        idle = await group.joined("A", config=TIGHT)
        other = await group.joined("B", config=TIGHT)
        reading = asyncio.create_task(slowly(other))
        for name in "CD":
            async with group.channel(name, config=TIGHT) as guest:
                await until(lambda: len(guest.view.members) >= 2)
        await until(lambda: other.view.members == (other.address,))
        with pytest.raises(ChannelClosed, match="left 4 events unread"):
            async for _ in idle:
                pass
        reading.cancel()

    in_a_group(tmp_path, story)
