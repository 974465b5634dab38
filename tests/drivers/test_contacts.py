"""Contacts: what they are, and where a member may listen."""

from __future__ import annotations

import pytest

from pygroups.core.errors import UsageError
from pygroups.drivers.contacts import Contact, advertised, checked_bind, parse_contact


@pytest.mark.parametrize("text", ["127.0.0.1:0", "host.example:65535", "[::1]:7"])
def test_a_contact_reads_as_it_was_written(text: str) -> None:
    assert str(parse_contact(text)) == text


@pytest.mark.parametrize(
    "text",
    ["", "host", ":1", "host:", "host:-1", "host:65536", "host:1x", "::1:7", "a b:1", "x" * 255 + ":1", "h:٣", None],
)
def test_what_is_no_contact_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(UsageError, match="write it as host:port"):
        parse_contact(text)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("example", False)],
)
def test_only_this_machine_reaches_loopback(host: str, loopback: bool) -> None:
    assert Contact(host, 1).loopback is loopback


def test_a_place_that_others_reach_needs_insecure() -> None:
    with pytest.raises(UsageError, match="insecure=True"):
        checked_bind("192.0.2.1:0", None, insecure=False)
    assert checked_bind("192.0.2.1:0", None, insecure=True) == Contact("192.0.2.1", 0)


def test_nobody_can_dial_everywhere() -> None:
    with pytest.raises(UsageError, match="advertise="):
        checked_bind("0.0.0.0:0", None, insecure=True)
    checked_bind("0.0.0.0:0", "192.0.2.1:0", insecure=True)
    with pytest.raises(UsageError, match="name this machine"):
        advertised(Contact("0.0.0.0", 4), "0.0.0.0:4")


def test_an_advertised_port_of_zero_is_the_one_that_the_system_chose() -> None:
    assert str(advertised(Contact("127.0.0.1", 4711), "host:0")) == "host:4711"
    assert str(advertised(Contact("127.0.0.1", 4711), "host:5")) == "host:5"
    assert str(advertised(Contact("127.0.0.1", 4711), None)) == "127.0.0.1:4711"
