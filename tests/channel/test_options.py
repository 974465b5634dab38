"""What a channel is told: each refusal is one sentence that says what to do; and what the journal holds of it all."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

import pytest

import pygroups
from pygroups import Channel, Config, Message, UsageError
from pygroups.channel import options
from pygroups.channel.options import Options, default_name
from pygroups.core.errors import NotBuilt
from pygroups.drivers.discovery import options as discovery_options
from tests.channel.socket_group import Group, in_a_group, until
from tests.channel.test_state import records
from tests.patience import patience


def test_relative_folders_count_from_the_folder_at_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = Options("g", discovery=["dir:groups", "cache:addresses"], journal="journal")
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    for one in (options, options.named("A")):
        assert one.sources.folder is not None
        found = (one.sources.folder.root, one.sources.cache, one.folder)
        assert found == (tmp_path / "groups", tmp_path / "addresses", tmp_path / "journal")
    assert (options.name, options.named("A").name) == (None, "A")
    (tmp_path / "gone").rmdir()
    with pytest.raises(UsageError, match="journal='j' is relative, and the current folder is gone"):
        Options("g", journal="j")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rejoin": 1}, "rejoin=1 must be True or False"),
        ({"group": ""}, "cannot name a group"),
        ({"group": "a/b"}, "cannot name a group"),
        ({"group": ".."}, "cannot name a group"),
        ({"group": None}, "needs a group"),
        ({"group": 5}, "cannot name a group"),
        ({"name": "A B"}, "cannot name a member"),
        ({"name": ""}, "cannot name a member"),
        ({"name": "x" * 65}, "cannot name a member"),
        ({"profile": "totally"}, "there is no profile 'totally'; there are: fifo, total"),
        ({"bind": "nowhere"}, "write it as host:port"),
        ({"bind": "0.0.0.0:0"}, "insecure=True"),
        ({"advertise": "nowhere"}, "write it as host:port"),
        ({"transport": "pigeon"}, "there is no transport 'pigeon'; there are: 'tcp', 'udp'"),
        ({"transport": "udp:127.0.0.1:7000"}, "has no IPv4 multicast address with a port"),
        ({"transport": "udp:239.1.2.3:0"}, "has no IPv4 multicast address with a port"),
        ({"transport": "udp:239.1.2.3"}, "write it as host:port"),
        ({"transport": "udp", "config": Config(datagram=500)}, "datagram=500 must be between 576 and 65507"),
        ({"discovery": "dir:"}, "names no folder"),
        ({"discovery": "10.0.0.1:7000"}, "insecure=True"),
        ({"discovery": ["cache:/x"]}, "alone finds no process"),
        ({"journal_payloads": True}, "need journal=DIR"),
        ({"journal": ""}, "journal='' names no folder: give the path of a folder"),
        ({"journal_fsync": True}, "need journal=DIR"),
        ({"state": object()}, "get_state"),
        ({"expect": 3}, "expect= works only where a majority decides each view; profile 'total' is not such a profile"),
        ({"config": {"window": 5}}, "pygroups.Config"),
    ],
)
def test_what_is_wrong_is_refused_at_the_call(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as caught:
        Channel(**{"group": "g", **options})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"expect": 0}, "expect=0 must be a number of processes from 1 to"),
        ({"expect": True}, "expect=True must be a number of processes"),
        ({"expect": "3"}, "expect='3' must be a number of processes"),
        (
            {"discovery": "127.0.0.1:7000"},
            "profile 'uniform' over the network needs expect=, the number of all processes",
        ),
    ],
)
def test_what_a_majority_needs_is_asked_for_at_the_call(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as caught:
        Channel("g", profile="uniform", **options)
    assert "\n" not in str(caught.value)


def test_a_member_of_a_majority_always_leaves_without_its_journal() -> None:
    """Otherwise it would accept views that its former life does not know of."""
    assert Options("g", profile="uniform", expect=3, discovery="127.0.0.1:7000").leaves_without_journal
    assert not Options("g").leaves_without_journal


def test_a_place_or_a_folder_that_cannot_be_had_is_one_clear_error(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
                async with group.channel("A", bind=f"127.0.0.1:{port}"):
                    pass
        file = tmp_path / "a file"
        file.write_text("")
        with pytest.raises(UsageError, match=r"the journal in .* cannot be opened: Not a directory"):
            async with group.channel("A", journal=file):
                pass
        with pytest.raises(
            UsageError, match=r"members cannot find each other in .*: Not a directory; discovery='dir:/path' names"
        ):
            async with Channel("g", discovery=f"dir:{file}"):
                pass
        await group.read("A")  # and nothing of all that is in the way

    in_a_group(tmp_path, story)


def test_names_by_default_differ_and_are_names() -> None:
    names = {default_name() for _ in range(3)}
    assert len(names) == 3
    assert all(str(os.getpid()) in name for name in names)
    assert [Channel("g", name=name) for name in names]


@pytest.mark.parametrize("pid", [1, 7, 999])
def test_processes_with_one_host_name_and_one_small_pid_have_different_names(
    pid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two containers with one host name, each with its own count of processes and of channels."""
    monkeypatch.setattr(os, "getpid", lambda: pid)
    monkeypatch.setattr(options, "_lives", iter([1] * 20))
    names = {default_name() for _ in range(20)}
    assert len(names) == 20
    assert [Channel("g", name=name) for name in names]


def test_members_find_each_other_without_any_option(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(discovery_options, "MEETING_ROOT", tmp_path)

    async def main() -> None:
        async with Channel("orders") as first, Channel("orders") as second:
            async with asyncio.timeout(patience(20)):
                while len(first.view.members) < 2:
                    await asyncio.sleep(0.01)
            assert set(first.view.members) == {first.address, second.address}

    asyncio.run(main())


def test_a_fixed_port_and_an_advertised_name_are_used(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        first = await group.read("A", bind=f"127.0.0.1:{port}", advertise="localhost:0")
        session = first.channel._session
        assert session is not None
        assert session.network.contact == f"localhost:{port}"
        second = await group.read("B")
        await second.channel.send(b"x", until="stable")
        await until(lambda: first.payloads == [b"x"])

    in_a_group(tmp_path, story)


def test_the_journal_holds_the_life_the_marks_and_the_payloads(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        folder = tmp_path / "journal"
        async with group.channel("A", journal=folder, journal_payloads=True, journal_fsync=True) as channel:
            await channel.send_many([b"one", b"two"], until="stable")
            channel.mark("fault", reason="on purpose", members=[channel.address], detail="nothing happened")
            channel.mark("heal")
            channel.mark("quiet")
            with pytest.raises(UsageError, match="use fault, heal, quiet"):
                channel.mark("birthday")
            me = str(channel.address)
        (start,) = records(folder, "start")
        assert start["gauges"]["bound_us"] > 0
        (deliver,) = records(folder, "deliver")
        assert deliver["payload"] == [b"one", b"two"]
        (fault,) = records(folder, "fault")
        assert (fault["reason"], fault["members"], fault["detail"]) == ("on purpose", [me], "nothing happened")
        assert len(records(folder, "heal")) == len(records(folder, "quiet")) == 1
        (stats,) = records(folder, "stats")  # with the mark; what comes after it is no rest any more
        assert not any(stats["gauges"].values())
        (stop,) = records(folder, "stop")
        assert stop["reason"] == "left"

    in_a_group(tmp_path, story)


def test_what_the_package_offers() -> None:
    for name in pygroups.__all__:
        assert getattr(pygroups, name) is not None
    assert len(pygroups.__all__) <= 35
    for error in (pygroups.NameTaken, pygroups.Refused, pygroups.Timeout, pygroups.WouldDeadlock, pygroups.Unknown):
        assert issubclass(error, pygroups.Error)
    message = Message(pygroups.Address("A", "a" * 16), b"x", 1, None, None)
    assert message == Message(pygroups.Address("A", "a" * 16), b"x", 1, None, None)
    with pytest.raises(AttributeError):
        message.number = 2  # type: ignore[misc]


def test_config_is_checked() -> None:
    with pytest.raises(UsageError, match="window"):
        Channel("g", config=Config(window=5))


def test_a_change_of_the_key_at_an_exclusion_is_refused_with_its_reason() -> None:
    anything: Any = Channel
    reason = (
        r"^rotate_on_exclude= is not built: an excluded process has every key that could carry the new one; .* by hand"
    )
    for profile in ("total", "uniform"):
        with pytest.raises(NotBuilt, match=reason):
            anything("g", profile=profile, secret=bytes(32), rotate_on_exclude=True)


def test_an_unknown_or_missing_argument_is_named_in_one_sentence() -> None:
    anything: Any = Channel
    with pytest.raises(UsageError, match=r"^Channel\(\) has no option discovry=: use discovery=$"):
        anything("g", discovry="dir:/x")
    with pytest.raises(
        UsageError, match=r"has no option xyz=: the options are profile, name, bind, advertise, transport"
    ):
        anything("g", xyz=1)
    with pytest.raises(
        UsageError, match=r"^Channel\(\) needs a group: give it a name, for instance Channel\('orders'\)"
    ):
        anything(profile="fifo")
    with pytest.raises(UsageError, match="takes the group alone without a name"):
        anything("g", "fifo")
    assert anything(group="g").group == "g"
