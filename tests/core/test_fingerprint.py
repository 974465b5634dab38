"""What a joiner is told that does not fit: the field, and both values."""

from __future__ import annotations

import pytest

from pygroups.core.fingerprint import difference, fingerprint

TOTAL = fingerprint("total", "Sequencer/Flush", "run_bytes=65536 window=1048576")


@pytest.mark.parametrize(
    ("joiner", "says"),
    [
        (
            fingerprint("fifo", "Flush", "run_bytes=65536 window=1048576"),
            "the group has profile=total, the joiner profile=fifo",
        ),
        (
            fingerprint("total", "Sequencer/Flush", "run_bytes=65536 window=5"),
            "the group has window=1048576, the joiner window=5",
        ),
        (
            fingerprint("fifo", "Flush", "run_bytes=65536 window=5"),
            "the group has profile=total, the joiner profile=fifo; the group has window=1048576, the joiner window=5",
        ),
        (
            fingerprint("total", "Flush", "run_bytes=1 window=1048576"),
            "the group has other layers in the same profile: it runs another version of pygroups",
        ),
        ("", f"the group is {TOTAL!r}, the joiner is ''"),
        ("total Sequencer/Flush window=1", f"the group is {TOTAL!r}, the joiner is 'total Sequencer/Flush window=1'"),
        ("total Sequencer/Flush ==", f"the group is {TOTAL!r}, the joiner is 'total Sequencer/Flush =='"),
        ("a b\nc d", f"the group is {TOTAL!r}, the joiner is 'a b\\nc d'"),
    ],
)
def test_the_difference_is_named(joiner: str, says: str) -> None:
    assert difference(TOTAL, joiner) == says
