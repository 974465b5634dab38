"""What dialing proves: a hello proves nothing, nor does a refusal while the peer is heard; a probe dials anew."""

from __future__ import annotations

import asyncio
import socket
from contextlib import closing
from typing import Any

import pytest

from pygroups.core.driver_events import Answered, Dead, Ended
from pygroups.core.turn import Source
from pygroups.drivers.hello import LENGTH, Welcome, encoded
from pygroups.wire.frame import VERSION
from tests.drivers.networks import Node, greeted, nodes, run, until
from tests.drivers.tiny_stack import A, B, C


async def shut(node: Node) -> int:
    """Close the port of `node`, and leave its connections open; the port."""
    door = node.net.door
    assert door.sock is not None
    port = door.sock.getsockname()[1]
    door.loop.remove_reader(door.sock)
    door.sock.close()
    door.sock = None
    return int(port)


def listening_again(node: Node, port: int) -> None:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", port))
    node.net.door.open(sock)


def test_a_forged_hello_changes_nothing_about_where_a_member_is_dialed() -> None:
    async def main() -> None:
        async with nodes(A, B) as (a, b):
            (await greeted(a, B, contact="127.0.0.1:9")).close()
            await until(lambda: a.events == [Ended(B)])
            a.net.probe(B)
            await until(lambda: len(a.events) == 2)
            assert a.events[1] == Answered(B)
            a.net.send([((B,), [b"x"])])
            await until(lambda: b.frames == [b"x"])

    run(main)


def test_a_refusal_at_a_place_that_only_a_hello_named_is_no_proof() -> None:
    async def main() -> None:
        async with nodes(A, verify_timeout=1) as (a,):
            (await greeted(a, C, contact="127.0.0.1:9")).close()
            await until(lambda: a.events == [Ended(C)])
            a.net.probe(C)
            await until(lambda: a.counts["refusals at a place that only a hello named"])
            await until(lambda: a.net.outgoing[C].dialing is None)
            assert a.events == [Ended(C)]

    run(main)


def test_where_a_peer_says_that_it_listens_is_tried_when_the_standing_place_is_silent() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0), backlog=0) as mute:
            async with nodes(A, B) as (a, b):
                a.net.learn({B: f"127.0.0.1:{mute.getsockname()[1]}"}, Source.VIEW)
                a.net.learn({B: b.net.contact}, Source.PEER)
                a.net.probe(B)
                await until(lambda: a.events == [Answered(B)])

    run(main)


def test_a_refusal_at_one_address_of_a_name_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of B has an address where no process listens, and one where B listens."""

    async def main() -> None:
        async with nodes(A, B) as (a, b):
            port = int(b.net.contact.rpartition(":")[2])

            async def answers(*_: Any) -> list[Any]:
                return [(socket.AF_INET, (host, port)) for host in ("127.0.0.3", "127.0.0.1")]

            monkeypatch.setattr("pygroups.drivers.dialer.resolved", answers)
            a.net.learn({B: f"localhost:{port}"}, Source.VIEW)
            a.net.probe(B)
            await until(lambda: a.events == [Answered(B)])
            b.net.close()
            a.net.probe(B)
            await until(lambda: Dead(B) in a.events)

    run(main)


def test_a_refusal_is_no_proof_while_the_peer_is_heard() -> None:
    async def main() -> None:
        async with nodes(A, B, verify_timeout=50_000, connect_timeout=200_000) as (a, b):
            b.net.send([((A,), [b"x"])])
            await until(lambda: a.frames)
            port = await shut(b)
            a.net.probe(B)
            await until(lambda: a.net.outgoing[B].dialing is None)
            assert a.events == []
            assert a.counts["refusals by a peer that is heard"] > 1
            listening_again(b, port)
            a.net.probe(B)
            await until(lambda: a.events == [Answered(B)])

    run(main)


def test_a_probe_hears_a_port_that_opens_again_while_it_asks() -> None:
    async def main() -> None:
        async with nodes(A, B) as (a, b):
            b.net.send([((A,), [b"x"])])
            await until(lambda: a.frames)
            port = await shut(b)
            a.net.probe(B)
            a.net.send([((B,), [b"it waits"])])
            await until(lambda: a.counts["refusals by a peer that is heard"] > 1)
            listening_again(b, port)
            await until(lambda: a.events == [Answered(B)])
            await until(lambda: b.frames == [b"it waits"])

    run(main)


def test_a_refusal_is_a_proof_as_soon_as_the_peer_is_heard_no_more() -> None:
    async def main() -> None:
        async with nodes(A, B) as (a, b):
            b.net.send([((A,), [b"x"])])
            await until(lambda: a.frames)
            await shut(b)
            a.net.probe(B)
            await until(lambda: a.counts["refusals by a peer that is heard"])
            b.net.outgoing[A].close()
            await until(lambda: Dead(B) in a.events)
            assert a.events == [Ended(B), Dead(B)]

    run(main)


def test_a_wrong_proof_is_taken_back_when_the_peer_says_hello() -> None:
    async def main() -> None:
        async with nodes(A, B) as (a, b):
            port = await shut(b)
            a.net.probe(B)
            await until(lambda: a.events == [Dead(B)])
            listening_again(b, port)
            b.net.send([((A,), [b"x"])])
            await until(lambda: a.events == [Dead(B), Answered(B)])
            a.net.send([((B,), [b"y"])])
            await until(lambda: b.frames == [b"y"])

    run(main)


def test_a_wrong_proof_is_taken_back_when_a_frame_gets_through() -> None:
    async def main() -> None:
        async with nodes(A, B) as (a, b):
            port = await shut(b)
            a.net.probe(B)
            await until(lambda: a.events == [Dead(B)])
            a.net.send([((B,), [b"lost"])])
            assert a.counts["frames dropped for a dead peer"] == 1
            listening_again(b, port)
            await asyncio.sleep(0.05)
            a.net.send([((B,), [b"y"])])
            await until(lambda: b.frames == [b"y"])
            assert a.events == [Dead(B), Answered(B)]

    run(main)


def test_frames_that_wait_behind_a_stuck_connection_go_over_the_one_that_a_probe_made() -> None:
    """The one that was begun is lost, and none comes in two pieces."""

    async def main() -> None:
        got: list[bytes] = []
        connections = 0

        async def stands_still(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal connections
            connections += 1
            number = connections
            with closing(writer):
                (length,) = LENGTH.unpack(await reader.readexactly(4))
                await reader.readexactly(length)
                writer.write(encoded(Welcome(VERSION, B)))
                if number == 1:
                    await forever.wait()
                    return
                while not forever.is_set():
                    (length,) = LENGTH.unpack(await reader.readexactly(4))
                    got.append(await reader.readexactly(length))

        forever = asyncio.Event()
        server = await asyncio.start_server(stands_still, "127.0.0.1", 0, limit=1 << 16)
        async with server, nodes(A) as (a,):
            a.net.learn({B: f"127.0.0.1:{server.sockets[0].getsockname()[1]}"}, Source.VIEW)
            frames = [bytes([number]) * 300_000 for number in range(60)]
            a.net.send([((B,), frames)])
            await until(lambda: connections == 1 and 0 < a.net.waiting_bytes() < 60 * 300_000)
            waiting = a.net.waiting_bytes()
            a.net.probe(B)
            await until(lambda: a.events == [Answered(B)])
            await until(lambda: not a.net.waiting_bytes() and got and got[-1] == frames[-1])
            assert got == frames[-len(got) :]
            assert len(got) >= waiting // 300_004
            forever.set()
            a.net.outgoing[B].close()

    run(main)
