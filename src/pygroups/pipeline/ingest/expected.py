"""The next number of each sender, per incarnation: a running value along the journal, so that fifo needs no sort
later."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

_NONE: Final = -(1 << 63)


@dataclass
class Numbering:
    """The next number of each sender (by key) at one incarnation.

    `given`: a view record had the numbers of a given state. `gossip`: before that, no first number is expected.
    """

    gossip: bool = False
    given: bool = False
    next: dict[int, int] = field(default_factory=dict)

    def begin(self, marks: Mapping[int, int]) -> None:
        """Begin with a given state, which covers the messages of each sender up to a mark."""
        self.given = True
        self.next = {sender: mark + 1 for sender, mark in marks.items()}

    def follow(self, codes: NDArray[np.int32], senders: list[int | None], behind: NDArray[np.int64]) -> "Expected":
        """The numbers expected before each of some records that follow each other.

        `senders[codes[i]]` is the sender's key, `behind[i]` the number behind the record's last one, or `NOTHING`.
        """
        expected = np.full(len(codes), _NONE, np.int64)
        same = {sender: code for code, sender in enumerate(senders) if sender is not None}
        one = np.array([-1 if sender is None else same[sender] for sender in senders], np.int32)
        codes = one[codes]
        order = np.argsort(codes.astype(np.int16) if len(senders) < 1 << 15 else codes, kind="stable")
        found, begins = np.unique(codes[order], return_index=True)
        for code, rows in zip(found.tolist(), np.split(order, begins[1:]), strict=True):
            sender = senders[code] if code >= 0 else None
            if sender is not None:
                expected[rows] = self._one_sender(sender, behind[rows])
        return Expected(expected, expected == _NONE)

    def _one_sender(self, sender: int, behind: NDArray[np.int64]) -> NDArray[np.int64]:
        default = _NONE if self.gossip and not self.given else 1
        tops = np.maximum.accumulate(np.concatenate([[self.next.get(sender, default)], behind]))
        if tops[-1] != _NONE:
            self.next[sender] = int(tops[-1])
        return tops[:-1]


@dataclass
class Expected:
    """A column of numbers; where `nulls`, none is expected."""

    values: NDArray[np.int64]
    nulls: NDArray[np.bool_]


NOTHING: Final = _NONE
"""In place of a number: the record has none."""
