"""The messages outside of frames: sealed, refused, and what a refusal may mean."""

from __future__ import annotations

import pytest

from pygroups.core.address import Address
from pygroups.core.errors import PeerError
from pygroups.drivers.handshake import REFUSALS_PER_SECOND, REFUSED_PATIENCE, Handshake, Unopened
from pygroups.drivers.hello import DiscoveryQuestion, Hello, packed, padded
from pygroups.wire.frame import VERSION
from pygroups.wire.ring import Ring, Secret

A, B = Address("A", "a" * 16), Address("B", "b" * 16)
LIAR = ("127.0.0.1", 7000)
HELLO = packed(Hello(VERSION, "orders", A, "127.0.0.1:1", B))


class Clock:
    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def with_secret(me: Address = A, key: bytes = bytes(32), clock: Clock | None = None) -> Handshake:
    return Handshake(me, Secret(Ring({1: key})), clock or Clock())


def without(me: Address = A, clock: Clock | None = None) -> Handshake:
    return Handshake(me, None, clock or Clock())


def test_a_message_is_opened_once() -> None:
    one, other = with_secret(A), with_secret(B)
    body = one.closed(HELLO)
    assert b"orders" not in body and b"127.0.0.1" not in body
    assert other.opened(body) == HELLO
    with pytest.raises(Unopened):
        other.opened(body)
    assert other.opened(one.closed(HELLO)) == HELLO


def test_an_answer_is_opened_only_for_its_question() -> None:
    one, other = with_secret(A), with_secret(B)
    first, second = one.closed(HELLO), one.closed(HELLO)
    assert one.about(first) != one.about(second)
    answer = other.closed(b"welcome", other.about(first))
    with pytest.raises(Unopened):
        one.answered(answer, LIAR, one.about(second))
    assert one.answered(answer, LIAR, one.about(first)) == b"welcome"


@pytest.mark.parametrize(("asks", "listens"), [(bytes(32), bytes(31) + b"x"), (bytes(32), None), (None, bytes(32))])
def test_a_message_that_cannot_be_opened_is_refused_and_the_refusal_is_a_hint(
    asks: bytes | None, listens: bytes | None
) -> None:
    asking = without(A) if asks is None else with_secret(A, asks)
    listening = without(B) if listens is None else with_secret(B, listens)
    body = asking.closed(HELLO)
    with pytest.raises(Unopened):
        listening.opened(body)
    refusal = listening.refusal(body)
    assert 0 < len(refusal) < len(body)
    assert not asking.refusals.objects
    with pytest.raises(PeerError, match="an answer without a seal"):
        asking.answered(refusal, ("::1", 7000))
    assert asking.refusals.objects
    assert asking.refusals.by == "the process at [::1]:7000"


def test_the_refusal_is_the_same_whatever_was_wrong_and_never_longer_than_the_message() -> None:
    listening = with_secret(B)
    good = with_secret(A).closed(HELLO)
    echo = good[20:28]
    damaged = [good[:30] + bytes([good[30] ^ 1]) + good[31:], good[:3] + b"\x09" + good[4:], good[:40], good[:28]]
    assert len({listening.refusal(body) for body in damaged}) == 1
    assert listening.refusal(good).endswith(echo)
    assert listening.refusal(good[:1]) == listening.refusal(b"") == b""


def test_refusals_are_few() -> None:
    clock = Clock()
    listening, body = with_secret(B, clock=clock), with_secret(A).closed(HELLO)
    assert sum(bool(listening.refusal(body)) for _ in range(1_000)) == REFUSALS_PER_SECOND
    clock.at += 1
    assert listening.refusal(body)


def test_a_refusal_that_repeats_no_number_of_this_process_is_no_hint() -> None:
    one, other, listening = with_secret(A), with_secret(A), without(B)
    refusal = listening.refusal(other.closed(HELLO))
    with pytest.raises(PeerError):
        one.answered(refusal, LIAR)
    assert not one.refusals.objects
    one.closed(HELLO)
    assert not one.is_refusal(refusal, "127.0.0.1:1")


def test_a_refusal_counts_only_from_the_place_that_was_asked() -> None:
    """Over UDP a liar at one place can forge the sender of its datagrams, and speak for the others."""
    asking, listening = with_secret(A), without(B)
    refusal = listening.refusal(asking.closed(HELLO, place=("127.0.0.1", 1)))
    assert asking.is_refusal(refusal, "127.0.0.1:1") and not asking.is_refusal(refusal, "127.0.0.1:2")
    assert asking.is_refusal(listening.refusal(asking.closed(HELLO)), "127.0.0.1:2"), "asked by multicast"


def test_no_refusal_can_be_made_from_those_of_other_messages() -> None:
    asking = with_secret(A)
    first, second = (bytes(asking.closed(HELLO, place=("127.0.0.1", port))) for port in (1, 2))
    number = int.from_bytes(first[12:20], "big") + 1
    assert number == int.from_bytes(second[12:20], "big"), "numbers can be guessed"
    guessed = first[:12] + number.to_bytes(8, "big") + first[20:]
    assert not asking.is_refusal(without(B).refusal(guessed), "127.0.0.1:2")


def test_questions_of_discovery_leave_room_for_their_answers() -> None:
    from pygroups.core.driver_events import Presence

    question = padded(DiscoveryQuestion(VERSION, "orders", b"12345678", Presence(A, "127.0.0.1:1", False, True, A)))
    assert len(with_secret().closed(packed(question))) - len(packed(question)) == 36


# -- what a joiner makes of refusals


def test_only_refusals_for_some_seconds_end_the_join() -> None:
    clock = Clock()
    joiner = with_secret(clock=clock)
    begun = clock.at
    while clock.at - begun < REFUSED_PATIENCE:
        joiner.refusals.refused("127.0.0.1:7000")
        assert joiner.refusals.objects and joiner.verdict() is None
        clock.at += 0.5
    joiner.refusals.refused("127.0.0.1:7000")
    verdict = joiner.verdict()
    assert verdict is not None
    assert "another secret: the process at 127.0.0.1:7000" in verdict.detail and "\n" not in verdict.detail


def test_a_sealed_answer_prevails_over_any_number_of_refusals() -> None:
    clock = Clock()
    joiner = with_secret(clock=clock)
    for _ in range(40):
        joiner.refusals.refused("127.0.0.1:7000")
        joiner.heard(B)
        assert not joiner.refusals.objects and joiner.verdict() is None
        clock.at += 0.5


# -- entries of a folder


def test_an_entry_opens_as_often_as_it_is_read_and_only_under_its_own_name() -> None:
    one, other = with_secret(A), with_secret(B)
    data = one.entry_closed(b"text")
    assert other.entry_opened(data, A) == other.entry_opened(data, A) == b"text"
    for reader, process in ((other, B), (other, Address("A", B.incarnation)), (without(B), A)):
        with pytest.raises(Unopened):
            reader.entry_opened(data, process)
    with pytest.raises(Unopened):
        other.entry_opened(b'{"member": true}', A)
    assert without(B).entry_opened(b"text", A) == b"text"
