"""Contacts: what they are, and where a member may listen."""

from __future__ import annotations

import asyncio
import socket

import pytest

from pygroups.core.errors import UsageError
from pygroups.drivers import contacts
from pygroups.drivers.contacts import Contact, checked_bind, parse_contact


def advertised(bound: Contact, advertise: str | None) -> Contact:
    async def main() -> Contact:
        return await contacts.advertised(bound, advertise, asyncio.get_running_loop())

    return asyncio.run(main())


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
        checked_bind("192.0.2.1:0", insecure=False)
    assert checked_bind("192.0.2.1:0", insecure=True) == Contact("192.0.2.1", 0)


def test_nobody_can_dial_everywhere() -> None:
    assert checked_bind("0.0.0.0:0", insecure=True).everywhere
    assert str(advertised(Contact("0.0.0.0", 4), "192.0.2.1:0")) == "192.0.2.1:4"
    with pytest.raises(UsageError, match="name this machine"):
        advertised(Contact("0.0.0.0", 4), "0.0.0.0:4")


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_member_that_listens_everywhere_tells_the_address_of_its_route(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    routes = {socket.AF_INET: "10.1.2.3", socket.AF_INET6: "2001:db8::7"}
    monkeypatch.setattr(contacts, "_routed", lambda far, family: routes[family])
    told = advertised(Contact(host, 4711), None)
    assert str(told) == ("[2001:db8::7]:4711" if host == "::" else "10.1.2.3:4711")
    routes[socket.AF_INET6] = ""
    assert str(advertised(Contact(host, 4711), None)) == "10.1.2.3:4711"  # `::` accepts IPv4 too


def test_a_machine_without_any_address_needs_advertise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contacts, "_routed", lambda far, family: "")
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: [(socket.AF_INET, 0, 0, "", ("127.0.1.1", 0))])
    with pytest.raises(UsageError, match=r"bind '0.0.0.0:4' is every address .*: give advertise='host:port'"):
        advertised(Contact("0.0.0.0", 4), None)


def test_an_advertised_port_of_zero_is_the_one_that_the_system_chose() -> None:
    assert str(advertised(Contact("127.0.0.1", 4711), "host:0")) == "host:4711"
    assert str(advertised(Contact("127.0.0.1", 4711), "host:5")) == "host:5"
    assert str(advertised(Contact("127.0.0.1", 4711), None)) == "127.0.0.1:4711"


@pytest.mark.parametrize("bind", ["nosuchhost:0", "orders.example:7000"])
def test_a_name_to_listen_at_is_not_called_an_address_of_other_machines(bind: str) -> None:
    with pytest.raises(UsageError, match=f"bind '{bind}' is a name that may lead to an address for other machines"):
        checked_bind(bind, insecure=False)
    assert str(checked_bind(bind, insecure=True)) == bind
    assert checked_bind("localhost:0", insecure=False)


def test_an_address_with_a_network_interface_is_refused_in_one_sentence() -> None:
    with pytest.raises(UsageError, match=r"bind '\[fe80::1%eth0\]:0' names a network interface .* \('eth0'\)"):
        checked_bind("[fe80::1%eth0]:0", insecure=True)
    with pytest.raises(UsageError, match=r"advertise '\[fe80::1%eth0\]:0' names a network interface"):
        contacts.checked_advertise("[fe80::1%eth0]:0")
