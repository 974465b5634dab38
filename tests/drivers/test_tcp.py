"""Frames over TCP: what arrives, and what the end of a connection proves."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from typing import Any

import pytest

from pygroups.core.address import Address
from pygroups.core.driver_events import Answered, Dead, Ended
from pygroups.core.errors import UsageError
from pygroups.core.limits import FRAME_MAX, HELLO_MAX, Config
from pygroups.core.turn import Source
from pygroups.drivers.hello import CLOSING, LENGTH, Hello, Welcome, encoded, other_version
from pygroups.drivers.tcp.tcp import TcpNetwork
from pygroups.wire.frame import VERSION
from tests.drivers.networks import A_LISTENER, dialed, nodes, run, until
from tests.drivers.tiny_stack import A, B, C

D, E = Address("D", "d" * 16), Address("E", "e" * 16)


def test_frames_arrive_whole_once_and_in_order() -> None:
    async def main() -> None:
        async with nodes(A, B) as (a, b):
            frames = [os.urandom(size) for size in (1, 3, 65_536, 3 << 20, 0x100, 300_000) for _ in range(3)]
            for frame in frames:
                a.net.send([((B,), [frame])])
            await until(lambda: len(b.frames) == len(frames))
            assert b.frames == frames
            assert a.frames == []

    run(main)


def test_one_write_takes_all_frames_of_a_turn_for_all_receivers() -> None:
    async def main() -> None:
        async with nodes(A, B, C) as (a, b, c):
            a.net.send([((B, C), [b"one", b"two"]), ((C,), [b"three"]), ((B, C), [b"four"])])
            await until(lambda: len(b.frames) == 3 and len(c.frames) == 4)
            assert b.frames == [b"one", b"two", b"four"]
            assert c.frames == [b"one", b"two", b"three", b"four"]

    run(main)


def test_more_than_the_kernel_takes_waits_and_arrives() -> None:
    async def main() -> None:
        async with nodes(A, B) as (a, b):
            frame = os.urandom(1 << 20)
            for _ in range(40):
                a.net.send([((B,), [frame])])
            await asyncio.sleep(0)
            assert a.net.waiting_bytes() > 1 << 20
            await until(lambda: len(b.frames) == 40)
            assert set(b.frames) == {frame}
            assert a.net.waiting_bytes() == 0

    run(main)


def test_what_a_slow_peer_does_not_take_is_bounded_and_counted() -> None:
    async def main() -> None:
        async with nodes(A, B, link_bytes=1 << 20) as (a, b):
            for _ in range(10):
                a.net.send([((B,), [bytes(200_000)])])
            assert a.net.waiting_bytes() <= 1 << 20
            assert a.counts["frames dropped for a slow peer"] == 5
            await until(lambda: len(b.frames) == 5)

    run(main)


def test_the_queues_of_all_peers_outside_the_view_have_one_limit() -> None:
    """They are many, and each could queue as much as a member."""
    limit = 1 << 20

    async def main() -> None:
        async with nodes(A, B, C, D, E, link_bytes=limit) as (a, *others):
            a.net.learn({A: a.net.contact, B: others[0].net.contact}, Source.VIEW)
            for _ in range(10):
                a.net.send([((B, C, D, E), [bytes(100_000)])])
            assert 2 * limit - 200_000 < a.net.waiting_bytes() <= 2 * limit
            assert a.counts["frames dropped for a slow peer"] == len(a.losses) == 20
            await until(lambda: sum(len(other.frames) for other in others) == 20)
            assert a.net.waiting_bytes() == a.net.guests_bytes == 0

    run(main)


def test_a_view_that_makes_members_guests_bounds_their_queues() -> None:
    limit = 1 << 20

    async def main() -> None:
        async with nodes(A, B, C, D, link_bytes=limit) as (a, *_):
            for _ in range(8):
                a.net.send([((B, C, D), [bytes(100_000)])])
            assert a.net.waiting_bytes() > 2 * limit
            a.net.learn({A: a.net.contact}, Source.VIEW)
            assert 0 < a.net.waiting_bytes() == a.net.guests_bytes <= limit
            assert len(a.losses) == 2

    run(main)


def test_the_dialed_side_learns_where_the_dialing_one_listens() -> None:
    async def main() -> None:
        async with nodes(A, B) as (a, b):
            b.net.book.standing.clear()
            a.net.send([((B,), [b"hello"])])
            await until(lambda: b.frames)
            b.net.send([((A,), [b"hello yourself"])])
            await until(lambda: a.frames)

    run(main)


def test_each_side_hears_that_the_connection_ended() -> None:
    async def main() -> None:
        async with nodes(A, B) as (a, b):
            a.net.send([((B,), [b"x"])])
            await until(lambda: b.frames)
            b.net.door.ended(b.net.door.incoming[A][0], on_purpose=False)
            await until(lambda: a.events and b.events)
            assert (a.events, b.events) == ([Ended(B)], [Ended(A)])
            a.net.send([((B,), [b"y"])])  # and goes on over a new one
            await until(lambda: b.frames == [b"x", b"y"])

    run(main)


def test_a_connection_that_ends_on_purpose_means_nothing() -> None:
    async def main() -> None:
        async with nodes(A, B) as (a, b):
            a.net.send([((B,), [b"x"])])
            await until(lambda: b.frames)
            a.net.disconnect(B)
            await until(lambda: not b.net.door.incoming)
            assert (a.events, b.events) == ([], [])

    run(main)


def test_a_living_peer_answers_a_probe_and_the_connection_is_used() -> None:
    async def main() -> None:
        async with nodes(A, B) as (a, b):
            a.net.probe(B)
            await until(lambda: a.events)
            a.net.send([((B,), [b"x"])])
            await until(lambda: b.frames)
            assert a.events == [Answered(B)]
            assert len(b.net.door.incoming[A]) == 1

    run(main)


def test_a_member_that_is_to_probe_itself_knows_the_answer() -> None:
    async def main() -> None:
        async with nodes(A) as (a,):
            a.net.probe(A)
            assert a.events == [Answered(A)]
            assert a.net.outgoing == {}

    run(main)


def test_a_probe_beside_an_open_connection_replaces_it_and_nobody_takes_it_for_an_end() -> None:
    async def main() -> None:
        async with nodes(A, B) as (a, b):
            a.net.send([((B,), [b"x"])])
            await until(lambda: b.frames)
            for _ in range(3):
                a.events.clear()
                a.net.probe(B)
                await until(lambda: a.events)
                assert a.events == [Answered(B)]
            a.net.send([((B,), [b"y"])])
            await until(lambda: len(b.frames) == 2 and len(b.net.door.incoming[A]) == 1)
            assert b.events == []

    run(main)


def test_a_refused_connection_proves_the_end() -> None:
    async def main() -> None:
        async with nodes(A, B) as (a, b):
            a.net.send([((B,), [b"x"])])
            await until(lambda: b.frames)
            b.net.close()
            await until(lambda: Ended(B) in a.events)
            a.net.probe(B)
            await until(lambda: Dead(B) in a.events)
            a.net.send([((B,), [b"y"])])  # a life that ended does not come back
            assert a.counts["frames dropped for a dead peer"] == 1
            assert a.events == [Ended(B), Dead(B)]

    run(main)


@pytest.mark.parametrize("again", [Address("B", "0" * 16), C])
def test_another_life_at_the_same_place_proves_the_end(again: Address) -> None:
    async def main() -> None:
        async with nodes(A, again) as (a, other):
            a.net.learn({B: other.net.contact}, Source.VIEW)
            a.net.probe(B)
            await until(lambda: a.events)
            assert a.events == [Dead(B, certain=True)]
            assert (other.events, other.frames) == ([], [])

    run(main)


def test_a_peer_that_is_there_and_says_nothing_proves_nothing() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as mute:
            async with nodes(A, connect_timeout=50_000, verify_timeout=1) as (a,):
                a.net.learn({B: f"127.0.0.1:{mute.getsockname()[1]}"}, Source.VIEW)
                a.net.probe(B)
                await until(lambda: a.counts["unanswered connections"])
                assert a.events == []
                a.net.send([((B,), [b"x"])])  # so soon after it is not dialed again
                assert a.counts["frames dropped for a peer that gives no answer"] == 1

    run(main)


def test_a_peer_that_takes_connections_and_ends_them_is_tried_again_at_once() -> None:
    async def main() -> None:
        taken = 0

        async def dying(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal taken
            taken += 1
            if taken == 3:
                server.close()
            writer.transport.abort()

        server = await asyncio.start_server(dying, "127.0.0.1", 0)
        async with nodes(A) as (a,):
            a.net.learn({B: f"127.0.0.1:{server.sockets[0].getsockname()[1]}"}, Source.VIEW)
            a.net.probe(B)
            await until(lambda: a.events)
            assert a.events == [Dead(B)]
            assert taken >= 3

    run(main)


def test_it_is_not_tried_for_ever() -> None:
    async def main() -> None:
        async def rude(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.transport.abort()

        server = await asyncio.start_server(rude, "127.0.0.1", 0)
        async with server, nodes(A, probe_tries=4, verify_timeout=1) as (a,):
            a.net.learn({B: f"127.0.0.1:{server.sockets[0].getsockname()[1]}"}, Source.VIEW)
            a.net.probe(B)
            await until(lambda: a.net.outgoing[B].dialing is None)
            assert a.events == []
            assert a.counts["connections that ended unanswered"] == 1

    run(main)


@pytest.mark.slow
def test_a_killed_process_is_known_to_be_dead() -> None:
    async def main() -> None:
        command = [sys.executable, "-c", A_LISTENER, *B]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                async with nodes(A) as (a,):
                    a.net.learn({B: process.stdout.readline().strip()}, Source.VIEW)
                    a.net.probe(B)
                    await until(lambda: a.events)
                    assert a.events == [Answered(B)]
                    process.send_signal(signal.SIGKILL)
                    await until(lambda: a.events[-1] == Ended(B))
                    a.net.probe(B)
                    await until(lambda: a.events[-1] != Ended(B))
                    assert a.events[-1] == Dead(B)
            finally:
                process.kill()

    run(main)


def test_nobody_dials_beyond_this_machine_unasked() -> None:
    async def main() -> None:
        async with nodes(A) as (a,):
            a.net.learn({B: "192.0.2.1:9", C: "rubbish"}, Source.VIEW)
            a.net.probe(B)
            a.net.probe(C)
            a.net.probe(Address("D", "d" * 16))
            await until(lambda: sum(a.counts.values()) == 3)
            assert a.counts == {
                "contacts beyond this machine": 1,
                "invalid contacts": 1,
                "peers without a contact": 1,
            }

    run(main)


# -- strangers


@pytest.mark.parametrize(
    ("hello", "refusal"),
    [
        (Hello(VERSION, "other", A, "127.0.0.1:1", B), "another group"),
        (Hello(VERSION + 1, "g", A, "127.0.0.1:1", B), other_version(VERSION, VERSION + 1)),
    ],
)
def test_who_does_not_belong_here_is_told_why_and_sent_away(hello: Hello, refusal: str) -> None:
    async def main() -> None:
        async with nodes(B) as (b,):
            reader, writer = await dialed(b)
            writer.write(encoded(hello) + LENGTH.pack(3) + b"abc")
            assert await reader.read() == encoded(Welcome(VERSION, None, refusal))
            writer.close()
            await until(lambda: not b.net.door.strangers)
            assert (b.frames, b.events, b.net.book.hearsay) == ([], [], {})

    run(main)


@pytest.mark.parametrize("noise", [LENGTH.pack(HELLO_MAX + 1), LENGTH.pack(5) + b"noise", b"GET / HTTP/1.1\r\n\r\n"])
def test_noise_ends_the_connection_and_nothing_else(noise: bytes) -> None:
    async def main() -> None:
        async with nodes(B) as (b,):
            reader, writer = await dialed(b)
            writer.write(noise)
            with pytest.raises(ConnectionResetError):
                assert await reader.read() == b""
                raise ConnectionResetError  # an orderly end is as good
            writer.close()
            await until(lambda: not b.net.door.strangers)
            assert (b.frames, b.events) == ([], [])
            assert sum(b.counts.values()) == 1

    run(main)


def test_a_frame_above_the_limit_ends_the_connection_before_anything_is_set_aside_for_it() -> None:
    async def main() -> None:
        async with nodes(B) as (b,):
            reader, writer = await dialed(b)
            writer.write(encoded(Hello(VERSION, "g", A, "127.0.0.1:1", B)))
            assert await reader.read(4)
            writer.write(LENGTH.pack(FRAME_MAX + 1))
            await until(lambda: b.events)
            assert b.events == [Ended(A)]
            assert b.counts["connections closed: the frame is larger than the limit"] == 1
            writer.close()

    run(main)


def test_frames_in_every_division_of_the_bytes() -> None:
    async def main() -> None:
        async with nodes(B) as (b,):
            _, writer = await dialed(b)
            bodies = [b"a", bytes(1_000), b"bc"]
            stream = encoded(Hello(VERSION, "g", A, "127.0.0.1:1", B))
            stream += b"".join(LENGTH.pack(len(body)) + body for body in bodies)
            for at in range(len(stream)):
                writer.write(stream[at : at + 1])
                await asyncio.sleep(0)
            await until(lambda: len(b.frames) == 3)
            assert b.frames == bodies
            writer.write(CLOSING + LENGTH.pack(1) + b"z")
            writer.close()
            await until(lambda: not b.net.door.incoming)
            assert (b.frames, b.events) == (bodies, [])

    run(main)


def test_strangers_are_few_and_have_little_time() -> None:
    async def main() -> None:
        async with nodes(B, strangers=3, stranger_timeout=50_000) as (b,):
            connections = [await dialed(b) for _ in range(5)]
            await until(lambda: b.counts["connections refused: too many strangers"] == 2)
            await until(lambda: b.counts["connections without a hello"] == 3)
            await until(lambda: not b.net.door.strangers)
            for _, writer in connections:
                writer.close()

    run(main)


def test_the_name_of_a_place_to_listen_at_is_not_looked_up_in_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name server that does not answer would stop the heartbeats of all members in this loop."""
    here, real, threads = threading.get_ident(), socket.getaddrinfo, []

    def looked_up(*what: Any, **how: Any) -> Any:
        threads.append(threading.get_ident())
        return real(*what, **how)

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)

    async def main() -> None:
        network = TcpNetwork(A, "g", Config(), bind="localhost:0")
        network.receive = network.happened = network.crashed = lambda what: True
        network.count = lambda what, by=1: None
        await network.open()
        assert network.contact.startswith("127.0.0.1:") or network.contact.startswith("[::1]:")
        network.close()

    run(main)
    assert here not in threads


def test_a_place_that_is_taken_is_one_clear_error() -> None:
    async def main() -> None:
        async with nodes(A) as (a,):
            other = TcpNetwork(B, "g", Config(), bind=a.net.contact)
            with pytest.raises(
                UsageError,
                match=r"cannot listen on 127.0.0.1:\d+: Address already in use; choose another address for bind",
            ):
                await other.open()

    run(main)


def test_lengths_are_four_bytes_in_network_order() -> None:
    assert LENGTH.pack(1) == struct.pack("!I", 1)


def test_links_to_peers_that_never_came_into_a_view_are_forgotten() -> None:
    """A process that is refused and begins anew, again and again, has another incarnation each time."""

    async def main() -> None:
        async with nodes(A, B, guests=8) as (a, b):
            for number in range(100):
                a.net.send([((Address("C", f"{number:016x}"), B), [b"you are refused"])])
                await until(lambda: all(link.dialing is None for link in a.net.outgoing.values()))
                assert len(a.net.outgoing) <= 8 + 2
            assert b.frames == [b"you are refused"] * 100

    run(main)
