"""What dialing proves: a hello proves nothing, nor does a refusal while the peer is heard; a probe dials anew."""

from __future__ import annotations

import asyncio
import math
import random
import socket
from contextlib import closing
from typing import Any

import pytest

from pygroups.core.address import Address
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

            monkeypatch.setattr("pygroups.drivers.tcp.dialer.resolved", answers)
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
            a.net.outgoing[B].not_before = math.inf
            a.net.send([((B,), [b"lost"])])
            assert a.counts["frames dropped for a dead peer"] == 1
            listening_again(b, port)
            a.net.outgoing[B].not_before = 0.0
            a.net.send([((B,), [b"y"])])
            await until(lambda: b.frames == [b"y"])
            assert a.events == [Dead(B), Answered(B)]

    run(main)


class LateLoop:
    """Makes the present event loop late: each pass takes `seconds` of the loop's time."""

    def __init__(self, seconds: float) -> None:
        self.loop = asyncio.get_running_loop()
        self.seconds = seconds
        self.offset = 0.0
        time = self.loop.time
        self.loop.time = lambda: time() + self.offset  # type: ignore[method-assign]

    def passes(self) -> None:
        self.offset += self.seconds
        self.loop.call_soon(self.passes)


def test_an_answer_that_a_late_event_loop_has_not_read_is_an_answer() -> None:
    """The loop of both members takes longer for a pass than a dial may take."""

    async def main() -> None:
        late = LateLoop(seconds=2.0)
        async with nodes(A, B) as (a, _):
            late.passes()
            a.net.send([((B,), [b"x"])])
            while a.net.outgoing[B].dialing is not None:
                await asyncio.sleep(0)
            assert a.net.outgoing[B].sock is not None
            assert not a.counts["unanswered connections"]

    run(main)


def test_a_dial_that_is_given_up_tells_the_peer_nothing() -> None:
    """The peer reads the hello when the dialing member has given up.  If that were the end of the member, the peer
    would dial it, and both would dial each other without end."""

    async def main() -> None:
        async with nodes(A, B, connect_timeout=20_000) as (a, b):
            door, hellos = b.net.door, []
            door.greeted = hellos.append
            door.loop.remove_reader(door.sock)
            a.net.send([((B,), [b"x"])])
            await until(lambda: a.losses == [B])
            assert a.counts["unanswered connections"] == 1
            door.loop.add_reader(door.sock, door._accept)
            await until(lambda: hellos and not door.incoming)
            assert (b.events, b.losses) == ([], [])

    run(main)


def test_a_member_that_ends_while_it_dials_ends_as_a_crash_does() -> None:
    async def main() -> None:
        async with nodes(A, B) as (a, b):
            b.net.door.greeted = lambda _: a.net.close()
            a.net.send([((B,), [b"x"])])
            await until(lambda: b.events == [Ended(A)])

    run(main)


def test_unanswered_dials_pause_longer_each_time_and_at_different_times() -> None:
    random.seed(1)

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as mute:
            async with nodes(A, connect_timeout=1_000, reconnect_min=1_000_000, reconnect_max=64_000_000) as (a,):
                a.net.learn({peer: f"127.0.0.1:{mute.getsockname()[1]}" for peer in (B, C)}, Source.VIEW)
                pauses = [await unanswered(a, B), await unanswered(a, C)]
                assert abs(pauses[0] - pauses[1]) > 0.05
                for times in range(1, 7):
                    assert (1 << times) - 0.1 <= await unanswered(a, B) <= (1 << times) * 1.5

    async def unanswered(node: Node, peer: Address) -> float:
        """The pause after an unanswered dial of `peer`."""
        connection = node.net._connection(peer)
        connection.dial()
        await until(lambda: connection.dialing is None)
        return float(connection.not_before - node.net.loop.time())

    run(main)


def test_a_hello_of_the_peer_ends_a_pause_once() -> None:
    """After an outage connections come back one after another.  One that works in one direction brings the other."""

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as mute:
            place = f"127.0.0.1:{mute.getsockname()[1]}"
            async with nodes(A, connect_timeout=1_000, reconnect_min=60_000_000, reconnect_max=60_000_000) as (a,):
                a.net.learn({B: place}, Source.VIEW)
                connection = a.net._connection(B)
                connection.dial()
                for dials in (1, 2, 2):
                    await until(lambda: connection.dialing is None)
                    assert a.counts["unanswered connections"] == dials
                    (await greeted(a, B, contact=place)).close()

    run(main)


def test_a_new_view_ends_the_pause_before_a_dial_of_its_members() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as mute:
            contacts = {B: f"127.0.0.1:{mute.getsockname()[1]}"}
            async with nodes(A, connect_timeout=1_000, reconnect_min=60_000_000, reconnect_max=60_000_000) as (a,):
                a.net.learn(contacts, Source.VIEW)
                a.net._connection(B).dial()
                for dials in (1, 2, 2):
                    await until(lambda: a.net.outgoing[B].dialing is None)
                    assert a.counts["unanswered connections"] == dials
                    a.net.learn(contacts, Source.VIEW)

    run(main)


def test_a_hello_of_the_peer_starts_another_try_beside_a_silent_one() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.create_connection(full.getsockname()):
            async with nodes(A, B, connect_timeout=8_000_000) as (a, b):
                a.net.learn({B: f"127.0.0.1:{full.getsockname()[1]}"}, Source.VIEW)
                a.net.send([((B,), [b"x"])])
                await asyncio.sleep(0.05)
                b.net.send([((A,), [b"y"])])
                async with asyncio.timeout(1):
                    await until(lambda: b.frames == [b"x"])

    run(main)


def test_only_a_connection_that_stood_makes_the_next_pause_short() -> None:
    async def main() -> None:
        late = LateLoop(seconds=1.0)
        async with nodes(A, B) as (a, b):
            connection = a.net._connection(B)
            connection.pause = longer = 8 * a.net.config.reconnect_min
            for stands, pause in [(False, longer), (True, a.net.config.reconnect_min)]:
                a.events.clear()
                a.net.send([((B,), [b"x"])])
                await until(lambda: A in b.net.door.incoming and connection.sock is not None)
                late.offset += 1.0 if stands else 0.0
                b.net.door.ended(b.net.door.incoming[A][0], on_purpose=False)
                await until(lambda: a.events == [Ended(B)])
                assert connection.pause == pause

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
