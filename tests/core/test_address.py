"""Addresses: how they are written, compared and refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pygroups.core.address import INCARNATION_DIGITS, Address, checked_name, parse_address
from pygroups.core.errors import UsageError

names = st.text("abcXYZ019._-", min_size=1, max_size=64)
incarnations = st.text("0123456789abcdef", min_size=1, max_size=32)
addresses = st.builds(Address, names, incarnations)


@settings(deadline=None)
@given(addresses)
def test_what_is_written_is_read(address: Address) -> None:
    assert parse_address(str(address)) == address


@settings(deadline=None)
@given(addresses, addresses)
def test_addresses_compare_by_name_then_incarnation_each_by_bytes(one: Address, other: Address) -> None:
    by_bytes = [(a.name.encode(), a.incarnation.encode()) for a in (one, other)]
    assert (one < other) == (by_bytes[0] < by_bytes[1])
    assert (one == other) == (by_bytes[0] == by_bytes[1])


def test_two_lives_under_one_name_are_two_members() -> None:
    assert Address("A", "0" * INCARNATION_DIGITS) != Address("A", "1" * INCARNATION_DIGITS)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A",
        "A@",
        "@3f2c91d0",
        "A@3F2C91D0",  # digits are lower case: one life, one text
        "A@xyz",
        "A@" + "0" * 33,
        "a b@00",
        "a/b@00",
        "ä@00",
        "a\n@00",
        "A@00\n",
        "A@B@00",  # a name holds no @, so an address is cut in one way only
        "N" * 65 + "@00",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="name@incarnation"):
        parse_address(text)


@pytest.mark.parametrize("name", ["A", "a.b-c_d", "0", "...", "N" * 64])
def test_names_that_are_folder_names_are_taken(name: str) -> None:
    assert checked_name(name, "member") == name


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "a\0b", "a\n", "ä", "N" * 65, "a@b", "٣", None, 7, b"A"])
def test_other_names_are_refused_in_a_sentence(name: object) -> None:
    with pytest.raises(UsageError, match="cannot name a group: use 1 to 64 letters"):
        checked_name(name, "group")  # type: ignore[arg-type]
