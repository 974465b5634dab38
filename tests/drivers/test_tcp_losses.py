"""A TCP network reports every loss: a lost frame was reported, and a calm connection reports nothing."""

from __future__ import annotations

import asyncio
import errno
import os
import socket

import pytest

from pygroups.core.address import Address
from pygroups.core.turn import Source
from tests.drivers.networks import Node, dialed, nodes, run, until
from tests.drivers.tiny_stack import A, B

GONE = Address("gone", f"{7:016x}")


def test_frames_that_arrive_late_are_no_loss() -> None:
    async def main() -> None:
        async with nodes(A, B) as (a, b):
            for _ in range(40):
                a.net.send([((B,), [os.urandom(1 << 20)])])
            await until(lambda: len(b.frames) == 40)
            assert a.losses == b.losses == []

    run(main)


def test_frames_dropped_for_a_slow_peer_are_reported() -> None:
    async def main() -> None:
        async with nodes(A, B, link_bytes=1 << 20) as (a, b):
            for _ in range(10):
                a.net.send([((B,), [bytes(200_000)])])
            await until(lambda: len(b.frames) == 5)
            assert a.losses == [B] * 5

    run(main)


def test_frames_to_a_process_that_refuses_are_reported() -> None:
    async def main() -> None:
        async with nodes(A, B) as (a, _):
            a.net.learn({GONE: "127.0.0.1:1"}, Source.VIEW)
            a.net.send([((GONE,), [b"never"])])
            await until(lambda: a.losses == [GONE])
            a.net.send([((GONE,), [b"never again"])])
            await until(lambda: a.losses == [GONE, GONE])  # at once, or after another refusal

    run(main)


def test_frames_to_a_process_that_nobody_knows_are_reported() -> None:
    async def main() -> None:
        async with nodes(A) as (a,):
            a.net.send([((GONE,), [b"never"])])
            await until(lambda: a.losses == [GONE])

    run(main)


def test_a_connection_that_another_one_replaces_may_have_lost_its_last_frames() -> None:
    async def main() -> None:
        async with nodes(A, B) as (a, b):
            a.net.send([((B,), [b"one"])])
            await until(lambda: b.frames)
            a.net.probe(B)
            await until(lambda: a.losses == [B])

    run(main)


def test_frames_dropped_by_a_disconnect_are_reported() -> None:
    async def main() -> None:
        async with nodes(A, B) as (a, _):
            a.net.send([((B,), [b"waits for the connection"])])
            a.net.disconnect(B)
            assert a.losses == [B]
            a.net.disconnect(B)
            assert a.losses == [B]

    run(main)


@pytest.mark.parametrize("which", ["the sender", "the receiver"])
def test_both_sides_report_a_connection_that_breaks(which: str) -> None:
    async def main() -> None:
        async with nodes(A, B) as (a, b):
            a.net.send([((B,), [b"one"])])
            await until(lambda: b.frames)
            _break(a, b, which)
            await until(lambda: a.losses == [B] and b.losses == [A])
            before = len(b.frames)
            a.net.send([((B,), [b"two"])])
            await until(lambda: len(b.frames) > before)
            assert a.losses == [B] and b.losses == [A]

    run(main)


def _break(a: Node, b: Node, which: str) -> None:
    if which == "the sender":
        link = a.net.outgoing[B]
        assert link.sock is not None
        link._lost()  # as after an error of its socket
    else:
        (connection,) = b.net.door.incoming[A]
        b.net.door.ended(connection, on_purpose=False)


class NotAcknowledged:
    """A socket whose connection the kernel has ended, because its data stayed unacknowledged."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock

    def fileno(self) -> int:
        return self.sock.fileno()

    def close(self) -> None:
        self.sock.close()

    def recv(self, size: int) -> bytes:
        raise TimeoutError(errno.ETIMEDOUT, f"nothing of {size} bytes")


@pytest.mark.parametrize("heard", [True, False])
def test_a_path_that_drops_data_and_brings_heartbeats_is_named(heard: bool, caplog: pytest.LogCaptureFixture) -> None:
    """The other direction works, or the other process is silent, too, and is suspected."""

    async def main() -> None:
        async with nodes(A, B) as (a, b):
            for one, other in ((a, b), (b, a))[: 1 + heard]:
                one.net.send([((other.net.me,), [b"a frame"])])
                await until(lambda other=other: other.frames)  # type: ignore[misc]
            connection = a.net.outgoing[B]
            connection.sock = NotAcknowledged(connection.sock)  # type: ignore[assignment,arg-type]
            connection._readable()
            assert a.losses == [B]
            told = [record.getMessage() for record in caplog.records if "acknowledged no data" in record.getMessage()]
            assert len(told) == heard
            assert not told or f"{B}" in told[0]

    run(main)


def test_noise_of_a_stranger_is_no_loss() -> None:
    async def main() -> None:
        async with nodes(A, B) as (a, b):
            _, writer = await dialed(a)
            writer.write(b"noise")
            writer.close()
            a.net.send([((B,), [b"one"])])
            await until(lambda: b.frames)
            await asyncio.sleep(0)
            assert a.losses == b.losses == []

    run(main)


def test_a_frame_that_is_not_authentic_ends_its_connection_and_both_ends_report_the_loss() -> None:
    """Only reported losses are repaired, so no frame is dropped in silence."""

    async def main() -> None:
        async with nodes(A, B) as (a, b):
            a.net.send([((B,), [b"first"])])
            await until(lambda: b.frames)
            b.net.door.receive = lambda frame: False
            a.net.send([((B,), [b"forged"])])
            await until(lambda: a.losses and b.losses)
            assert (a.losses, b.losses) == ([B], [A])
            assert b.counts["connections closed: a frame that is not authentic"] == 1
            b.net.door.receive = b.net.receive
            await until(lambda: a.net.send([((B,), [b"again"])]) or b"again" in b.frames)

    run(main)
