"""UDP: datagrams on loopback, what splits and joins them, and what refusals and answers prove."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from functools import partial
from typing import Any

import pytest

from pygroups.core.address import Address
from pygroups.core.driver_events import Answered, Dead, Ended
from pygroups.core.errors import NotSent, UsageError
from pygroups.core.limits import Config
from pygroups.core.turn import Source
from pygroups.drivers.contacts import Contact, parse_contact
from pygroups.drivers.udp import sockets as udp_sockets
from pygroups.drivers.udp.udp import UdpNetwork
from pygroups.wire.frame import Checksum
from tests.drivers import networks
from tests.drivers.networks import A_LISTENER, Node, until
from tests.drivers.tiny_stack import A, B, C
from tests.patience import patience

SEAL = Checksum("g")


class UdpNode(Node):
    """A network over UDP, and what it was told."""

    def __init__(
        self,
        me: Address,
        group: str = "g",
        bind: str = "127.0.0.1:0",
        to_all: Contact | None = None,
        advertise: str | None = None,
        **config: Any,
    ) -> None:
        insecure = advertise is not None
        self._watch(
            UdpNetwork(me, group, Config(**config), bind=bind, to_all=to_all, advertise=advertise, insecure=insecure)
        )
        self.sent = 0

    def send(self, *dests: Address, size: int = 100) -> bytes:
        frame = SEAL.sealed([os.urandom(size)], self.net.me, self.sent)
        self.sent += 1
        self.net.send([(dests, [frame])])
        return frame


nodes = partial(networks.nodes, kind=UdpNode)


def test_frames_of_every_size_arrive_whole() -> None:
    async def main() -> None:
        async with nodes(A, B, C) as (a, b, c):
            sizes = (1, 1_000, 1_364, 1_365, 5_000, 70_000, 1_000_000)
            sent = []
            for size in sizes:  # each arrives before the next: no buffer overflows
                sent.append(a.send(B, C, size=size))
                await until(lambda: len(b.frames) == len(c.frames) == len(sent))
            assert b.frames == c.frames == sent
            assert b.net.joiner.kept_bytes == 0

    asyncio.run(main())


def test_the_socket_has_large_buffers() -> None:
    async def main() -> None:
        async with nodes(A) as (a,):
            sock = a.net.datagrams.sock
            for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
                given = sock.getsockopt(socket.SOL_SOCKET, option) // 2
                assert given >= a.net.config.socket_bytes or os.geteuid(), "root may have any buffer"

    asyncio.run(main())


def test_buffers_that_are_smaller_than_asked_for_are_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without privileges the system gives no more than its limit."""
    for option in ("SO_RCVBUFFORCE", "SO_SNDBUFFORCE"):
        monkeypatch.setattr(udp_sockets, option, -1)  # no such option, as without privileges

    async def main() -> None:
        async with nodes(A, socket_bytes=1 << 30):
            pass

    asyncio.run(main())
    (record,) = caplog.records
    receive, send, wanted = record.args or ()
    assert wanted == 1 << 30 and 0 < receive < wanted and 0 < send < wanted
    assert "net.core.rmem_max" in record.getMessage()


def test_a_place_where_nobody_listens_proves_the_end() -> None:
    """B is closed: A's next frame is refused, which ends B for A; asked to look, A finds the proof."""

    async def main() -> None:
        async with nodes(A, B) as (a, b):
            a.send(B)
            await until(lambda: b.frames and a.net.peers[B].known)  # a late answer would be a sign of life
            b.net.close()
            a.send(B)
            await until(lambda: a.events)
            assert a.events == [Ended(B)]
            a.send(B)
            await asyncio.sleep(0.02)
            assert a.events == [Ended(B)], "once is enough"
            a.net.probe(B)
            await until(lambda: len(a.events) == 2)
            assert a.events[1:] == [Dead(B)]
            await asyncio.sleep(0.02)
            assert len(a.events) == 2

    asyncio.run(main())


def test_a_socket_for_both_versions_of_ip_reaches_an_ipv4_peer_and_finds_the_proof_of_its_end() -> None:
    async def main() -> None:
        async with nodes(A, bind="[::]:0", advertise="127.0.0.1:0") as (a,), nodes(B) as (b,):
            a.net.learn({B: b.net.contact}, Source.VIEW)
            b.net.learn({A: a.net.contact}, Source.VIEW)
            sent = [a.send(B), b.send(A)]
            await until(lambda: b.frames and a.frames and a.net.peers[B].known and b.net.peers[A].known)
            assert [*b.frames, *a.frames] == sent
            b.net.close()
            a.send(B)
            await until(lambda: a.events)
            a.net.probe(B)
            await until(lambda: len(a.events) == 2)
            assert a.events == [Ended(B), Dead(B)]

    asyncio.run(main())


def test_an_ipv6_socket_without_ipv4_and_an_ipv4_socket_cannot_reach_each_other() -> None:
    async def main() -> None:
        async with nodes(A, bind="[::1]:0") as (a,), nodes(B) as (b,):
            for one, other in ((a, b), (b, a)):
                assert "sends only to IPv" in one.net.unreachable(parse_contact(other.net.contact))
                one.net.learn({other.net.me: other.net.contact}, Source.VIEW)
                one.send(other.net.me)
                assert one.counts["peers whose address has another version of IP"] == 1
                with pytest.raises(NotSent, match="sends only to"):
                    await one.net.meet(other.net.contact)

    asyncio.run(main())


def test_a_refusal_at_one_address_of_a_name_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of B has two addresses; B listens at the second one alone, and only its end there is proven."""

    async def main() -> None:
        async with nodes(A) as (a,), nodes(B, bind="127.0.0.2:0") as (b,):
            port = parse_contact(b.net.contact).port

            async def answers(*_: Any) -> list[Any]:
                return [(socket.AF_INET, (host, port)) for host in ("127.0.0.3", "127.0.0.2")]

            monkeypatch.setattr("pygroups.drivers.udp.udp.resolved", answers)
            a.net.learn({B: f"localhost:{port}"}, Source.VIEW)
            a.net.probe(B)
            await until(lambda: a.events)
            assert a.events == [Answered(B)]
            a.send(B)
            await until(lambda: b.frames)
            b.net.close()
            a.net.probe(B)
            await until(lambda: len(a.events) == 2)
            assert a.events[1:] == [Dead(B)]

    asyncio.run(main())


def test_a_living_peer_answers() -> None:
    async def main() -> None:
        async with nodes(A, B) as (a, _b):
            a.net.probe(B)
            await until(lambda: a.events)
            assert a.events == [Answered(B)]
            a.net.probe(A)
            assert a.events == [Answered(B), Answered(A)]

    asyncio.run(main())


def test_another_process_at_the_place_proves_the_end() -> None:
    async def main() -> None:
        async with nodes(A, B) as (a, b):
            place = b.net.contact
            b.net.close()
            other = UdpNode(C, bind=place)
            await other.net.open()
            a.net.probe(B)
            await until(lambda: a.events)
            other.net.close()
            assert a.events == [Dead(B, certain=True)]

    asyncio.run(main())


def test_a_refusal_at_a_place_that_a_stranger_named_proves_nothing() -> None:
    async def main() -> None:
        async with nodes(A) as (a,):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as nobody:
                nobody.bind(("127.0.0.1", 0))
                contact = f"127.0.0.1:{nobody.getsockname()[1]}"
            a.net.learn({B: contact}, Source.PEER)
            a.net.probe(B)
            a.send(B)
            await until(lambda: a.counts["refusals at a place that only a hello named"] > 3)
            assert a.events == []

    asyncio.run(main())


def test_a_refusal_proves_nothing_of_a_peer_that_is_heard() -> None:
    """What the peer sends comes from another socket than the one that is closed."""

    async def main() -> None:
        async with nodes(A, B, verify_timeout=100_000) as (a, b):
            b.net.close()
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as living:
                a.net.probe(B)
                for counter in range(60):
                    living.sendto(SEAL.sealed([b"x"], B, counter), tuple(parse_contact(a.net.contact)))
                    await asyncio.sleep(0.001)
            assert Dead(B) not in a.events

    asyncio.run(main())


def test_an_answer_takes_a_proof_back_and_a_late_frame_does_not() -> None:
    async def main() -> None:
        async with nodes(A, B) as (a, b):
            place = b.net.contact
            b.net.close()
            a.net.probe(B)
            await until(lambda: a.events == [Dead(B)])
            late = SEAL.sealed([b"x"], B, 0)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as living:
                living.sendto(late, tuple(parse_contact(a.net.contact)))
            await until(lambda: a.frames == [late])
            await until(lambda: a.events == [Dead(B), Dead(B)])
            again = UdpNode(B, bind=place)
            await again.net.open()
            again.net.learn({A: a.net.contact}, Source.VIEW)
            again.send(A)
            await until(lambda: a.events[-1:] == [Answered(B)])
            again.net.close()

    asyncio.run(main())


def test_a_killed_process_is_proven_dead_within_a_moment() -> None:
    """A real process with a real signal; the frames that A goes on sending show it."""
    child = subprocess.Popen(
        [sys.executable, "-c", A_LISTENER, B.name, B.incarnation, "udp"], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None

    async def main(contact: str) -> None:
        async with nodes(A) as (a,):
            a.net.learn({A: a.net.contact, B: contact}, Source.VIEW)
            a.net.probe(B)
            await until(lambda: a.events == [Answered(B)])
            loop = asyncio.get_running_loop()
            child.kill()
            child.wait()
            killed_at = loop.time()
            while Ended(B) not in a.events:
                a.send(B)
                await asyncio.sleep(0.001)
            a.net.probe(B)
            await until(lambda: Dead(B) in a.events)
            assert loop.time() - killed_at < patience(0.25)

    try:
        asyncio.run(main(child.stdout.readline().strip()))
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def test_a_frame_for_all_leaves_once_and_reaches_all() -> None:
    """Through the loopback interface; a frame for one alone goes to that one alone."""

    async def main() -> None:
        to_all = Contact("239.77.77.77", _free_port())
        async with nodes(A, B, C, to_all=to_all) as (a, b, c):
            frame, big = a.send(B, C), a.send(B, C, size=9_000)
            await until(lambda: b.frames == c.frames == [frame, big])
            alone = a.send(B)
            await until(lambda: b.frames[2:] == [alone])
            await asyncio.sleep(0.02)
            assert (a.frames, c.frames[2:]) == ([], [])

    asyncio.run(main())


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def test_a_stranger_learns_no_address() -> None:
    async def main() -> None:
        async with nodes(A) as (a,):
            stranger = UdpNode(C)
            await stranger.net.open()
            stranger.net.learn({B: a.net.contact}, Source.VIEW)  # it looks for B, and A is there
            stranger.net.probe(B)
            await until(lambda: stranger.events)
            assert stranger.events == [Dead(B, certain=True)]
            assert a.counts["questions refused"] >= 1  # it asks every few milliseconds until it is answered
            assert C not in a.net.book.hearsay
            stranger.net.close()

    asyncio.run(main())


def test_what_is_no_datagram_of_a_member_is_counted() -> None:
    async def main() -> None:
        async with nodes(A) as (a,):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
                place = tuple(parse_contact(a.net.contact))
                for datagram in (b"", b"x", b"Q", b"Q" + b"0" * 20, b"A" + b"0" * 20, b"S", b"S" * 40):
                    stranger.sendto(datagram, place)
            await until(lambda: a.counts.total() == 7)
            assert a.frames == []
            assert set(a.counts) == {
                "datagrams without a frame",
                "questions dropped: malformed hello",
                "answers without a question",
                "malformed parts",
            }

    asyncio.run(main())


def test_a_place_that_is_taken_is_refused_with_a_sentence() -> None:
    async def main() -> None:
        async with nodes(A) as (a,):
            with pytest.raises(UsageError, match=r"cannot listen on 127\.0\.0\.1:\d+ \(UDP\): "):
                await UdpNode(B, bind=a.net.contact).net.open()

    asyncio.run(main())


def test_guests_are_forgotten_members_are_not() -> None:
    async def main() -> None:
        async with nodes(A, B, guests=2) as (a, b):
            strangers = [Address(f"S{number}", f"{number:016x}") for number in range(1, 9)]
            a.net.learn(dict.fromkeys(strangers, b.net.contact), Source.DIRECTORY)
            for dest in (B, *strangers):
                a.send(dest)
            assert len(a.net.peers) <= 2 + 2
            assert B in a.net.peers
            assert len(a.net.by_incarnation) == len(a.net.peers)

    asyncio.run(main())
