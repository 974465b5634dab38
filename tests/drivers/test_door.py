"""Who may connect to a member, how many, for how long, and what their unfinished frames may cost."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pygroups.core.address import Address
from pygroups.core.driver_events import Ended
from pygroups.drivers.hello import LENGTH, Hello, encoded, other_version
from pygroups.drivers.tcp.door import READ_BYTES
from pygroups.wire.frame import VERSION
from tests.drivers.networks import dialed, greeted, nodes, run, until
from tests.drivers.tiny_stack import A, B, C

HUGE = 4 << 20

FEW_DESCRIPTORS = """
import asyncio, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
from pygroups.core.address import Address
from pygroups.core.limits import Config
from pygroups.drivers.tcp.tcp import TcpNetwork

async def main():
    files = [open("/dev/null") for _ in range(40)]  # the program has a use for most of them
    network = TcpNetwork(Address(sys.argv[1], sys.argv[2]), "g", Config(stranger_timeout=1_000_000))
    network.receive = lambda frame: print("frame", flush=True) or True
    network.happened = lambda event: None
    network.count = lambda what, by=1: print(what, flush=True)
    network.crashed = lambda error: sys.exit(str(error))
    network.door.strangers_max = 1_000  # the limits that would have kept this from happening
    network.door.guests_max = 1_000
    await network.open()
    print(network.contact, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


def other(number: int) -> Address:
    return Address(f"m{number}", f"{number:016x}")


@contextmanager
def memory_below(bytes_max: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < bytes_max
    finally:
        tracemalloc.stop()


def test_three_hundred_peers_that_announce_a_large_frame_get_no_memory_for_it() -> None:
    async def main() -> None:
        async with nodes(B) as (b,):
            b.net.door.guests_max = 1_000
            writers = [await greeted(b, other(number)) for number in range(300)]
            with memory_below(10 << 20):
                for writer in writers:
                    writer.write(LENGTH.pack(HUGE) + b"and no more")
                await until(lambda: b.net.door.kept_bytes == 300 * 15)
            for writer in writers:
                writer.close()
            await until(lambda: not b.net.door.incoming)
            assert b.net.door.kept_bytes == 0

    run(main)


def test_what_unfinished_frames_keep_is_bounded_and_who_is_in_the_view_is_served() -> None:
    async def main() -> None:
        async with nodes(A, B, receive_bytes=8 << 20) as (a, b):
            writers = [await greeted(b, other(number)) for number in range(4)]
            for writer in writers:
                writer.write(LENGTH.pack(HUGE) + bytes(3 << 20))
            await until(lambda: b.counts["connections closed: unfinished frames"])
            assert b.net.door.kept_bytes <= 8 << 20
            frame = os.urandom(3 << 20)
            a.net.send([((B,), [frame])])
            await until(lambda: b.frames == [frame])
            for writer in writers:
                writer.close()
            await until(lambda: list(b.net.door.incoming) == [A])
            assert b.net.door.kept_bytes == 0

    run(main)


def test_a_frame_of_a_member_that_is_more_than_all_may_keep_ends_its_connection() -> None:
    async def main() -> None:
        async with nodes(A, B, receive_bytes=1 << 20) as (a, b):
            a.net.send([((B,), [bytes(3 << 20)])])
            await until(lambda: b.events == [Ended(A)])
            assert b.counts["connections closed: unfinished frames"] == 1
            assert b.net.door.kept_bytes == 0

    run(main)


@pytest.mark.parametrize("size", [READ_BYTES - 4, READ_BYTES, READ_BYTES + 1, 3 * READ_BYTES, 1 << 20, (3 << 20) + 3])
def test_a_frame_of_any_size_comes_whole_in_pieces_of_any_size(size: int) -> None:
    async def main() -> None:
        async with nodes(B) as (b,):
            b.net.door.members = (A,)
            writer = await greeted(b, A)
            frames = [os.urandom(size), b"small", os.urandom(size)]
            stream = b"".join([LENGTH.pack(len(frame)) + frame for frame in frames])
            for begin in range(0, len(stream), 99_991):
                writer.write(stream[begin : begin + 99_991])
                await writer.drain()
                await asyncio.sleep(0)
            await until(lambda: len(b.frames) == 3)
            assert b.frames == frames
            assert b.net.door.kept_bytes == 0
            writer.close()

    run(main)


def test_of_a_thousand_peers_outside_the_view_few_stay_and_the_members_do() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4_096, hard), hard))

    async def main() -> None:
        async with nodes(A, B, guests=50) as (a, b):
            a.net.send([((B,), [b"x"])])
            await until(lambda: b.frames)
            writers = [await greeted(b, other(number)) for number in range(1_000)]
            await until(lambda: len(b.net.door.incoming) == 51)
            assert set(b.net.door.incoming) == {A, *(other(number) for number in range(950, 1_000))}
            assert b.counts["connections closed: too many peers outside the view"] == 950
            assert b.events == []  # whose connection was closed was nobody of the view
            a.net.send([((B,), [b"y"])])
            await until(lambda: b.frames == [b"x", b"y"])
            for writer in writers:
                writer.close()

    try:
        run(main)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_guest_that_was_silent_longest_goes_first() -> None:
    async def main() -> None:
        async with nodes(B, guests=2) as (b,):
            writers = [await greeted(b, other(number)) for number in range(2)]
            await asyncio.sleep(0.005)
            writers[0].write(LENGTH.pack(4) + b"busy")
            await until(lambda: b.frames)
            writers.append(await greeted(b, other(2)))
            assert list(b.net.door.incoming) == [other(0), other(2)]
            for writer in writers:
                writer.close()

    run(main)


def test_a_peer_outside_the_view_that_brings_nothing_is_closed_and_a_member_is_not() -> None:
    async def main() -> None:
        async with nodes(A, B, guest_timeout=100_000) as (a, b):
            a.net.send([((B,), [b"x"])])
            writer = await greeted(b, C)
            await until(lambda: C not in b.net.door.incoming or b.net.door.members != {A: None, B: None})
            b.net.door.members = (A, B)
            await until(lambda: C not in b.net.door.incoming)
            await asyncio.sleep(0.2)
            assert b.counts["connections closed: silent, and outside the view"] == 1
            assert list(b.net.door.incoming) == [A]
            assert b.events == []
            writer.close()

    run(main)


def test_a_peer_has_one_connection_and_the_one_before_may_bring_what_is_on_its_way() -> None:
    async def main() -> None:
        async with nodes(B, connect_timeout=100_000) as (b,):
            first = await greeted(b, A)
            second = await greeted(b, A)
            first.write(LENGTH.pack(3) + b"old")
            second.write(LENGTH.pack(3) + b"new")
            await until(lambda: sorted(b.frames) == [b"new", b"old"])
            await until(lambda: len(b.net.door.incoming[A]) == 1)
            second.write(LENGTH.pack(5) + b"newer")
            await until(lambda: b.frames[-1] == b"newer")
            third, fourth = await greeted(b, A), await greeted(b, A)
            assert len(b.net.door.incoming[A]) == 2
            assert b.events == []
            for writer in (first, second, third, fourth):
                writer.close()
            await until(lambda: b.events == [Ended(A)])

    run(main)


def test_when_a_second_connection_in_a_peers_name_ends_the_first_is_the_peers_again() -> None:
    async def main() -> None:
        async with nodes(A, B, connect_timeout=300_000) as (a, b):
            a.net.send([((B,), [b"x"])])
            await until(lambda: b.frames)
            forged = await greeted(b, A)
            forged.close()
            await until(lambda: len(b.net.door.incoming[A]) == 1)
            await asyncio.sleep(0.5)
            a.net.send([((B,), [b"y"])])
            await until(lambda: b.frames == [b"x", b"y"])
            assert (a.events, b.events) == ([], [])

    run(main)


def test_connections_notice_that_the_other_machine_is_gone() -> None:
    async def main() -> None:
        async with nodes(A, B) as (a, b):
            a.net.send([((B,), [b"x"])])
            await until(lambda: b.frames)
            for sock in (a.net.outgoing[B].sock, b.net.door.incoming[A][0].sock):
                assert sock is not None
                assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 12_000

    run(main)


def test_a_process_that_may_open_few_files_lets_few_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda what: (64, 64))

    async def main() -> None:
        async with nodes(B) as (b,):
            assert (b.net.door.strangers_max, b.net.door.guests_max) == (8, 16)

    run(main)


@pytest.mark.slow
def test_a_full_table_of_descriptors_is_met_in_order() -> None:
    async def main() -> None:
        command = [sys.executable, "-c", FEW_DESCRIPTORS, *B]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            try:
                host, _, port = process.stdout.readline().strip().rpartition(":")
                place = (host, int(port))
                crowd = [socket.create_connection(place) for _ in range(100)]
                while process.stdout.readline().strip() != "connections that could not be accepted":
                    pass
                for sock in crowd:
                    sock.close()
                with socket.create_connection(place, timeout=10) as sock:
                    sock.sendall(encoded(Hello(VERSION, "g", A, "127.0.0.1:1", B)) + LENGTH.pack(1) + b"x")
                    while process.stdout.readline().strip() != "frame":
                        pass
            finally:
                process.kill()
            errors = process.stderr.read()
            assert "Traceback" not in errors
            assert errors.count("this member cannot accept a connection: Too many open files") == 1

    run(main)


async def _noise(node_count: int) -> None:
    async with nodes(B, strangers=3) as (b,):
        writers = [(await dialed(b))[1] for _ in range(node_count)]
        await until(lambda: b.counts["connections refused: too many strangers"] == node_count - 3)
        for writer in writers:
            writer.close()


@pytest.mark.parametrize(
    ("hello", "why"),
    [
        (Hello(VERSION, "other", A, "127.0.0.1:1", B), "another group"),
        (Hello(VERSION, "g", A, "127.0.0.1:1", C), "another member"),
        (Hello(VERSION + 1, "g", A, "127.0.0.1:1", B), other_version(VERSION, VERSION + 1)),
    ],
)
def test_a_connection_that_is_refused_is_logged_with_the_reason(
    caplog: pytest.LogCaptureFixture, hello: Hello, why: str
) -> None:
    async def main() -> None:
        async with nodes(B) as (b,):
            reader, writer = await dialed(b)
            writer.write(encoded(hello))
            assert await reader.read()
            writer.close()
            (record,) = caplog.records
            assert (record.name, record.levelname) == ("pygroups.drivers.tcp", "WARNING")
            assert record.getMessage().startswith(f"a connection from {A} (127.0.0.1:")
            assert record.getMessage().endswith(f" is refused: {why}")

    run(main)


def test_who_is_refused_is_logged_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    run(lambda: _noise(20))
    lines = [record.getMessage() for record in caplog.records if record.name == "pygroups.drivers.tcp"]
    assert len([line for line in lines if line.endswith("is refused: too many strangers")]) == 1


def test_who_is_refused_for_ever_new_reasons_is_logged_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with nodes(B) as (b,):
            for number in range(1, 301):
                reader, writer = await dialed(b)
                writer.write(encoded(Hello(VERSION + number, "g", A, "127.0.0.1:1", B)))
                assert await reader.read()
                writer.close()

    run(main)
    assert len([record for record in caplog.records if "is refused" in record.getMessage()]) == 1
