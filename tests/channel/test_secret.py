"""Channels with a secret: they meet only their like, over every transport, and change their keys under load."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pygroups import Channel, NotSent, Refused, UsageError
from pygroups.core.address import Address
from pygroups.core.limits import MILLISECOND
from pygroups.core.limits import Config as Limits
from pygroups.drivers import handshake
from pygroups.drivers.secret_file import SecretFile
from pygroups.wire.ring import line_of
from tests.channel.socket_group import Group, in_a_group, until
from tests.channel.test_discovery import free_ports

OLD, NEW = bytes(32), bytes(range(32))
B = Address("B", "b" * 16)


def key_file(folder: Path, *keys: bytes, name: str = "secret") -> Path:
    path = folder / name
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.writelines([line_of(1 + (key == NEW), key) for key in keys])
    return path


@pytest.fixture(params=["folder tcp", "folder udp", "listed tcp", "listed udp"])
def way(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """The options by which two processes find each other, for each of them."""
    how, transport = request.param.split()
    if how == "folder":
        return [{"transport": transport}] * 2
    ports = free_ports(2)
    listed = ",".join(f"127.0.0.1:{port}" for port in ports)
    return [{"transport": transport, "discovery": listed, "bind": f"127.0.0.1:{port}"} for port in ports]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "REFUSED_PATIENCE", 0.2)


def test_members_with_one_secret_meet(tmp_path: Path, way: list[dict[str, Any]]) -> None:
    async def story(group: Group) -> None:
        a = await group.read("A", secret=NEW, **way[0])
        b = await group.read("B", secret=NEW, **way[1])
        await a.channel.send(b"x" * 300_000, until="delivered")
        await b.channel.send(b"y", until="delivered")
        await until(lambda: a.payloads == b.payloads == [b"x" * 300_000, b"y"])

    in_a_group(tmp_path, story)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("secrets", [(OLD, NEW), (OLD, None), (None, NEW)])
def test_a_joiner_with_another_secret_gets_one_sentence(
    tmp_path: Path, way: list[dict[str, Any]], secrets: tuple[bytes | None, bytes | None]
) -> None:
    async def story(group: Group) -> None:
        a = await group.read("A", secret=secrets[0], **way[0])
        with pytest.raises(Refused) as caught:
            await group.joined("B", secret=secrets[1], **way[1])
        said = str(caught.value)
        assert "\n" not in said and "secret=" in said
        assert ("another secret" in said) == (secrets[1] is not None)
        await a.channel.send(b"goes on", until="delivered")
        assert len(a.channel.view.members) == 1

    in_a_group(tmp_path, story)


async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A liar over TCP: it refuses the message of a stranger, as a process with another secret does."""
    question = await reader.read(4 + 36)
    body = handshake.Handshake(B).refusal(question[4:])
    writer.write(len(body).to_bytes(4, "big") + body)
    writer.close()


class RefusingDatagrams(asyncio.DatagramProtocol):
    """The same over UDP."""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        if data[:1] == b"F":
            self.transport.sendto(b"R" + handshake.Handshake(B).refusal(data[1:]), addr)


@contextlib.asynccontextmanager
async def liar(transport: str, port: int) -> AsyncIterator[None]:
    """A process at `port` that refuses whatever it is asked."""
    if transport == "tcp":
        async with await asyncio.start_server(refuse, "127.0.0.1", port):
            yield
    else:
        loop = asyncio.get_running_loop()
        sockets, _ = await loop.create_datagram_endpoint(RefusingDatagrams, local_addr=("127.0.0.1", port))
        yield
        sockets.close()


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_one_of_two_places_that_refuses_keeps_nobody_from_founding(
    tmp_path: Path, transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A liar at a listed place, and a process that starts alone: it founds the group, and names the liar."""
    ports = free_ports(3)
    listed = ",".join(f"127.0.0.1:{port}" for port in ports)

    async def story(group: Group) -> None:
        async with liar(transport, ports[2]):
            way = {"discovery": listed, "secret": NEW, "transport": transport}
            a = await group.joined("A", bind=f"127.0.0.1:{ports[0]}", **way)
            assert len(a.view.members) == 1
            b = await group.joined("B", bind=f"127.0.0.1:{ports[1]}", **way)
            await until(lambda: len(a.view.members) == len(b.view.members) == 2)

    in_a_group(tmp_path, story)
    told = [one.message for one in caplog.records if "answers without the secret" in one.message]
    assert told and all(one.startswith(f"127.0.0.1:{ports[2]} ") for one in told)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_places_that_all_refuse_end_the_join_with_one_sentence(tmp_path: Path, transport: str) -> None:
    """Two liars, or a group with another secret, at both listed places: they cannot be told apart."""
    ports = free_ports(3)
    listed = ",".join(f"127.0.0.1:{port}" for port in ports)

    async def story(group: Group) -> None:
        way = {"discovery": listed, "transport": transport}
        for name, port in zip("AB", ports[1:], strict=True):
            await group.read(name, secret=OLD, bind=f"127.0.0.1:{port}", **way)
        with pytest.raises(Refused, match=r"another secret: the process at .* give discovery= more places"):
            await group.joined("C", secret=NEW, bind=f"127.0.0.1:{ports[0]}", **way)

    in_a_group(tmp_path, story)


@pytest.mark.usefixtures("impatient")
def test_the_own_place_under_another_name_does_not_make_a_refusal_weaker(tmp_path: Path) -> None:
    """A process that binds all addresses is told its own place as 127.0.0.1: the only other place refuses."""
    ports = free_ports(2)
    listed = ",".join(f"127.0.0.1:{port}" for port in ports)

    async def story(group: Group) -> None:
        async with liar("tcp", ports[1]):
            with pytest.raises(Refused, match="another secret"):
                way = {"bind": f"0.0.0.0:{ports[0]}", "advertise": "127.0.0.2:0"}
                await group.joined("A", secret=NEW, discovery=listed, **way)

    in_a_group(tmp_path, story)


def test_two_secrets_at_one_multicast_address_are_named_once_at_both_sides(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(group: Group) -> None:
        way: dict[str, Any] = {"discovery": f"udp:239.77.1.9:{free_ports(1)[0]}"}
        a, b = await group.joined("A", secret=OLD, **way), await group.joined("B", secret=NEW, **way)
        await until(lambda: len([one for one in caplog.records if "another secret" in one.message]) == 2)
        assert len(a.view.members) == len(b.view.members) == 1

    in_a_group(tmp_path, story)
    told = [one for one in caplog.records if "another secret" in one.message]
    assert len(told) == 2 and all("give both the same secret=" in one.message for one in told)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_without_a_group_another_secret_is_one_sentence(transport: str) -> None:
    config = Limits(connect_timeout=500 * MILLISECOND)
    common: dict[str, Any] = {"profile": "unicast", "transport": transport, "config": config}

    async def story() -> None:
        async with Channel(None, secret=NEW, **common) as a, Channel(None, secret=OLD, **common) as b:
            with pytest.raises(NotSent, match=r"has another secret, or one .* give both the same secret=$"):
                await b.send(b"x", to=a._session.network.contact)  # type: ignore[union-attr]
        async with Channel(None, secret=NEW, **common) as a, Channel(None, secret=NEW, **common) as b:
            await b.send(b"x", to=a._session.network.contact, until="delivered")  # type: ignore[union-attr]

    asyncio.run(story())


@pytest.mark.parametrize("transport", ["tcp", pytest.param("udp", marks=pytest.mark.long)])
def test_keys_change_under_load_and_nothing_is_lost(tmp_path: Path, transport: str) -> None:
    """The operator's three steps: the new key everywhere, then first everywhere, then the old one nowhere."""
    names = "ABC"

    async def story(group: Group) -> None:
        files = {name: key_file(tmp_path, OLD, name=name) for name in names}
        readers = [await group.read(name, secret=files[name], transport=transport) for name in names]
        sent, going = 0, True

        async def send() -> None:
            nonlocal sent
            while going:
                await readers[sent % 3].channel.send(b"%d" % sent)
                sent += 1

        sending = asyncio.create_task(send())
        for keys in ([OLD, NEW], [NEW, OLD], [NEW]):
            for reader, name in zip(readers, names, strict=True):
                key_file(tmp_path, *keys, name=name)
                reader.channel.rotate()
                before = sent
                await until(lambda before=before: sent > before + 20)
        going = False
        await sending
        await until(lambda: all(len(reader.payloads) >= sent for reader in readers))
        for reader in readers:
            assert sorted(map(int, reader.payloads)) == list(range(sent))
            assert len(reader.views[-1].members) == 3
            assert not any("seal" in name or "key" in name for name in reader.channel.stats()["counters"])
        late = await group.read("D", secret=key_file(tmp_path, NEW, name="new"), transport=transport)
        assert len(late.channel.view.members) == 4

    in_a_group(tmp_path, story)


def test_a_changed_file_is_read_without_a_call(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        path = key_file(tmp_path, OLD)
        a = await group.read("A", secret=path)
        b = await group.read("B", secret=path)
        key_file(tmp_path, NEW, OLD)
        options = a.channel._options, b.channel._options
        await until(lambda: all(one.keys is not None and one.keys.ring.sending == 2 for one in options))
        await a.channel.send(b"x", until="delivered")
        await until(lambda: b.payloads == [b"x"])

    in_a_group(tmp_path, story)


def test_a_file_that_became_wrong_changes_nothing(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        path = key_file(tmp_path, OLD)
        a = await group.read("A", secret=path)
        path.chmod(0o644)
        with pytest.raises(UsageError, match="run chmod 600"):
            a.channel.rotate()
        path.chmod(0o600)
        path.write_text("nonsense")
        with pytest.raises(UsageError, match="line 1 of the secret"):
            a.channel.rotate()
        b = await group.read("B", secret=line_of(1, OLD))
        assert len(b.channel.view.members) == 2

    in_a_group(tmp_path, story)


def test_each_mistake_in_a_file_is_logged_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = key_file(tmp_path, OLD)
    file = SecretFile(path, lambda: 5.0)
    for mistake in ("nonsense", "1 x", "nonsense again and again"):
        path.write_text(mistake)
        assert not file.look()
    assert len(caplog.records) == 2  # the first and the last one have the same sentence


@pytest.mark.parametrize(
    ("secret", "sentence"),
    [
        (b"short", "secret= has 5 bytes, and needs 16 to 1,024 random bytes"),
        ("correct horse battery staple", "line 1 of secret= is not a key"),
        (17, r"secret= must be a path .*, and is a int"),
        (Path("/nonexistent/secret"), "cannot be read: No such file"),
        (Path("/dev/null"), "is not a file"),
    ],
)
def test_a_wrong_secret_is_one_sentence_at_the_call(secret: object, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as caught:
        Channel("g", secret=secret)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value) and "horse" not in str(caught.value)


def test_rotate_needs_a_file(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        a = await group.joined("A", secret=NEW)
        with pytest.raises(UsageError, match=r"secret=Path\('FILE'\)"):
            a.rotate()

    in_a_group(tmp_path, story)


def test_with_a_secret_every_address_may_be_bound_and_asked() -> None:
    Channel("g", bind="0.0.0.0:0", discovery="10.0.0.1:7000", secret=NEW)
    with pytest.raises(UsageError, match="give secret="):
        Channel("g", bind="0.0.0.0:0")


def test_nothing_that_a_program_prints_shows_the_secret(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    key = b"hunter2hunter2hunter2hunter2"
    caplog.set_level("DEBUG")

    async def story(group: Group) -> None:
        path = key_file(tmp_path, key)
        a = await group.read("A", secret=path, journal=tmp_path / "journal", journal_payloads=True)
        b = await group.read("B", secret=line_of(1, key), journal=tmp_path / "journal")
        await a.channel.send(b"x", until="delivered")
        shown = f"{a.channel!r} {a.channel._options!r} {b.channel._options!r} {a.channel.stats()} {a.events}"
        assert "hunter2" not in shown and line_of(1, key).split()[1] not in shown

    in_a_group(tmp_path, story)
    assert "hunter2" not in caplog.text and line_of(1, key).split()[1] not in caplog.text
    for path in (tmp_path / "journal").rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert key not in data and line_of(1, key).split()[1].encode() not in data


def open_ports() -> set[tuple[str, int]]:
    """The network sockets of this process that anybody can send to: listening ones of TCP, all of UDP."""
    mine = {
        os.readlink(f"/proc/self/fd/{fd}")
        for fd in os.listdir("/proc/self/fd")
        if os.path.exists(f"/proc/self/fd/{fd}")
    }
    found = set()
    for kind in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/self/net/{kind}").read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if f"socket:[{rest[5]}]" in mine and (kind.startswith("udp") or state == "0A"):
                found.add((kind, int(local.rsplit(":", 1)[1], 16)))
    return found


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_member_opens_no_port_but_that_of_its_transport(transport: str, tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        before = open_ports()
        channel = await group.joined("A", secret=NEW, transport=transport, journal=tmp_path / "journal")
        port = int(channel.contact.rsplit(":", 1)[1])
        assert open_ports() - before == {(transport, port)}

    in_a_group(tmp_path, story)
