"""Whose fault it is can be told from the class alone."""

from __future__ import annotations

import inspect

import pytest

from pygroups.core import errors
from pygroups.core.errors import Error, NotSent, PeerError, Timeout, Unknown, UsageError, WouldBlock, WouldDeadlock

RAISED = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, Exception)]


def test_what_a_peer_does_wrong_is_none_of_the_errors_an_application_sees() -> None:
    assert not issubclass(PeerError, Error)
    assert PeerError("checksum").reason == str(PeerError("checksum")) == "checksum"
    assert all(issubclass(cls, Error) for cls in RAISED if not issubclass(cls, PeerError))


@pytest.mark.parametrize("cls", RAISED, ids=lambda cls: cls.__name__)
def test_every_error_says_what_it_means(cls: type) -> None:
    assert cls.__doc__ and cls.__doc__ != (cls.__base__.__doc__ or "")


def test_not_sent_and_perhaps_sent_are_never_mixed() -> None:
    assert {cls for cls in RAISED if issubclass(cls, NotSent)} == {NotSent, WouldBlock, WouldDeadlock, Timeout}
    assert not issubclass(Unknown, NotSent | UsageError)
    assert NotSent("full").accepted == 0
    assert Timeout("too late", 5).accepted == 5
    assert Unknown("too late", 7).number == 7
