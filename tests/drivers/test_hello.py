"""The first words on a connection."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pygroups.core.address import Address
from pygroups.core.errors import PeerError
from pygroups.drivers.hello import LENGTH, Hello, Welcome, decoded, encoded, other_version, welcome
from pygroups.wire.frame import VERSION
from tests.drivers.tiny_stack import A, B, C

HELLO = Hello(VERSION, "g", A, "127.0.0.1:1", B)


def test_a_hello_arrives_as_it_was_said() -> None:
    words = encoded(HELLO)
    assert LENGTH.unpack(words[:4]) == (len(words) - 4,)
    assert decoded(words[4:], Hello) == HELLO


@pytest.mark.parametrize(
    ("hello", "refusal"),
    [
        (HELLO, ""),
        (msgspec.structs.replace(HELLO, version=VERSION + 1), other_version(VERSION, VERSION + 1)),
        (msgspec.structs.replace(HELLO, group="h"), "another group"),
        (msgspec.structs.replace(HELLO, expected=C), "another member"),
        (msgspec.structs.replace(HELLO, expected=Address("B", "0" * 16)), "another member"),
        (msgspec.structs.replace(HELLO, sender=B), "the sender has the address of this process"),
    ],
    ids=["wanted", "version", "group", "member", "incarnation", "myself"],
)
def test_the_wanted_member_is_named_and_a_refusal_names_nobody(hello: Hello, refusal: str) -> None:
    assert welcome(hello, B, "g") == Welcome(VERSION, None if refusal else B, refusal)


@pytest.mark.parametrize(
    "address", [Address("A", "short"), Address("A/..", "a" * 16), Address("A", "A" * 16), Address("", "a" * 16)]
)
def test_an_address_that_cannot_be_is_not_heard(address: Address) -> None:
    with pytest.raises(PeerError):
        decoded(encoded(msgspec.structs.replace(HELLO, sender=address))[4:], Hello)


@given(st.binary(max_size=200))
def test_noise_is_no_hello(noise: bytes) -> None:
    with pytest.raises(PeerError):
        decoded(noise, Hello)
    with pytest.raises(PeerError):
        decoded(noise, Welcome)


@given(st.integers(0, len(encoded(HELLO)) - 5))
def test_half_a_hello_is_none(length: int) -> None:
    with pytest.raises(PeerError):
        decoded(encoded(HELLO)[4 : 4 + length], Hello)
