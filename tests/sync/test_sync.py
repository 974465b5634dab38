"""pygroups.sync over real sockets: several members in one process, threads, and a fork."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pygroups import ChannelClosed, Left, Message, UsageError, View
from pygroups.blocks import NotHeld
from pygroups.sync import Blocks, Channel, Counter, Lock, ReplicatedDict, Requests, WorkQueue
from pygroups.wire.ring import line_of


@pytest.fixture
def place(tmp_path: Path) -> dict[str, Any]:
    return {"discovery": f"dir:{tmp_path}"}


@pytest.fixture
def two(place: dict[str, Any]) -> Iterator[tuple[Blocks, Blocks]]:
    with Blocks("g", profile="uniform", name="A", **place) as a, Blocks("g", profile="uniform", name="B", **place) as b:
        yield a, b


def test_a_channel_sends_and_reads_in_threads(place: dict[str, Any]) -> None:
    with Channel("g", name="A", **place) as a, Channel("g", name="B", **place) as b:
        senders = [threading.Thread(target=a.send, args=(b"%d" % number,)) for number in range(20)]
        for sender in senders:
            sender.start()
        heard: list[bytes] = []
        while len(heard) < 20:
            event = b.receive(timeout=60)
            if isinstance(event, Message):
                heard.append(event.payload)
        assert sorted(heard, key=int) == [b"%d" % number for number in range(20)]
        with pytest.raises(TimeoutError):
            b.receive(timeout=0.01)
        assert a.is_coordinator and len(b.view.members) == 2
        assert b.leave().reason == "left"
        assert isinstance([*b][-1], Left)
        with pytest.raises(ChannelClosed):
            b.receive()
        assert isinstance(next(iter(a)), View)


def test_threads_of_two_members_share_blocks(two: tuple[Blocks, Blocks]) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work(of: Blocks) -> None:
        counter, lock = Counter(of, "n"), Lock(of, "l")
        for _ in range(5):
            with lock as grant:
                inside.append(grant.token)
                most.append(len(inside))
                counter.add()
                inside.remove(grant.token)

    threads = [threading.Thread(target=work, args=(of,)) for of in (*two, *two)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 20
    assert Counter(two[0], "n").add() == 21
    with pytest.raises(ZeroDivisionError), Lock(two[0], "l"):
        raise ZeroDivisionError
    grant = Lock(two[1], "l").acquire(timeout=60)
    grant.release()
    with pytest.raises(NotHeld):
        grant.release()


def test_dicts_queues_and_requests_block(two: tuple[Blocks, Blocks]) -> None:
    a, b = two
    prices: ReplicatedDict[str, int] = ReplicatedDict(a, "prices", str, int)
    prices.set("apple", 3, until="stable")
    assert (prices["apple"], prices.copy(), list(prices), "fig" in prices) == (3, {"apple": 3}, ["apple"], False)
    assert prices.compare_and_set("apple", 3, 4)
    queue: WorkQueue[str] = WorkQueue(a, "q", str)
    put = queue.put("x")
    task = WorkQueue[str](b, "q", str).get(timeout=60)
    assert (task.id, task.value) == (put, "x")
    task.done()
    Requests(b, "double", lambda value, caller: 2 * value)
    other = next(member for member in a.members if member.name == "B")
    assert Requests(a, "double", lambda value, caller: 0).call(other, 4, timeout=60) == 8


def test_a_forked_process_opens_its_own(place: dict[str, Any]) -> None:
    with Blocks("g", name="A", **place) as a:
        d: ReplicatedDict[str, int] = ReplicatedDict(a, "d", str, int)
        d.set("parent", 1)
        child = os.fork()
        if child == 0:
            os._exit(_in_the_child(d, place))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        d.set("still", 2)
        assert d.copy() == {"parent": 1, "child": 2, "still": 2}


def _in_the_child(inherited: ReplicatedDict[str, int], place: dict[str, Any]) -> int:
    """The exit code of the child: 0 if all is right."""
    try:
        inherited.set("x", 1)
    except ChannelClosed:
        pass
    else:
        return 1
    with Blocks("g", name="B", **place) as b:
        mine: ReplicatedDict[str, int] = ReplicatedDict(b, "d", str, int)
        if mine.copy() != {"parent": 1}:
            return 2
        mine.set("child", 2, until="stable")
    return 0


def test_outside_of_with_and_inside_of_the_loop_is_an_error(place: dict[str, Any]) -> None:
    channel = Channel("g", **place)
    with pytest.raises(ChannelClosed, match="inside `with`"):
        channel.send(b"x")
    with Blocks("g", **place) as blocks:
        d: ReplicatedDict[str, int] = ReplicatedDict(blocks, "d", str, int)
        with pytest.raises(UsageError, match="in its own event loop"):
            blocks.ask(lambda: d.set("x", 1))


def test_keys_are_read_again(place: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.touch(0o600)
    path.write_text(line_of(1, bytes(32)))
    with Channel("g", name="A", secret=path, **place) as channel:
        path.write_text(line_of(2, bytes(32)) + line_of(1, bytes(32)))
        channel.rotate()
        channel.send(b"x", until="delivered")
        path.write_text("nonsense")
        with pytest.raises(UsageError, match="line 1 of the secret"):
            channel.rotate()
