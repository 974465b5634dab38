"""What layers record becomes plain words."""

from __future__ import annotations

import pytest

from pygroups.core.address import Address
from pygroups.core.records import plain_records
from pygroups.core.view import ViewId

A, B = Address("A", "0" * 16), Address("B", "1" * 16)


def test_addresses_become_texts_wherever_they_stand() -> None:
    fields = {
        "members": (A, B),
        "subgroups": [(A,), (B,)],
        "digest": {A: 1, B: 2},
        "peer": B,
        "first": 7,
        "primary": True,
        "payload": [b"x"],
        "previous_number": None,
    }
    assert plain_records([("view", ViewId(3, A), fields), ("drop", None, {"reason": "old view"})]) == [
        (
            "view",
            (3, str(A)),
            {
                "members": [str(A), str(B)],
                "subgroups": [[str(A)], [str(B)]],
                "digest": {str(A): 1, str(B): 2},
                "peer": str(B),
                "first": 7,
                "primary": True,
                "payload": [b"x"],
                "previous_number": None,
            },
        ),
        ("drop", None, {"reason": "old view"}),
    ]


def test_what_a_journal_cannot_hold_is_a_fault_of_ours() -> None:
    with pytest.raises(AssertionError, match="a journal cannot hold"):
        plain_records([("stats", None, {"gauges": object()})])
