"""checks-membership: histories in which a member was paused for long, good ones and planted ones."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pygroups.core.address import Address
from pygroups.core.view import ViewId
from pygroups.sim.promises.broken import Broken
from pygroups.sim.promises.facts import Delivery, Viewed, WorldFacts
from pygroups.sim.promises.membership import ChecksMembership

START = "1 view 1 A ABC; 1 view 1 B ABC; 1 view 1 C ABC"


class Told:
    """A check that hears `TIME view NUMBER MEMBER MEMBERS`, `TIME pause|deliver|end|look MEMBER`."""

    def __init__(self, *, majority: bool) -> None:
        self.now = 0
        self.check = ChecksMembership()
        self.check.around = WorldFacts(clock=lambda: self.now, services=frozenset({"PRIMARY"} if majority else ()))

    def hear(self, history: str) -> None:
        for line in history.split(";"):
            time, what, *words = line.split()
            self.now = int(time)
            getattr(self, what)(words)

    def view(self, words: Sequence[str]) -> None:
        number, member, names = words
        members, id = tuple(address(name) for name in names), ViewId(int(number), address("A"))
        old = self.check.views.get(address(member))
        self.check.viewed(Viewed(address(member), id, members, old, old, members, None, self.now))

    def pause(self, words: Sequence[str]) -> None:
        self.check.paused(address(words[0]))

    def deliver(self, words: Sequence[str]) -> None:
        member = address(words[0])
        self.check.delivered(Delivery(member, self.check.views[member], 0, member, 1, 1, b""))

    def end(self, words: Sequence[str]) -> None:
        self.check.ended(address(words[0]), "crashed", None)

    def quiet(self, words: Sequence[str]) -> None:
        self.check.settled([])


def address(name: str) -> Address:
    return Address(name, f"{ord(name):016x}")


GOOD = {
    "a short pause": (f"{START}; 5 view 2 B BC; 5 view 2 C BC; 6 deliver A; 7 quiet", False, 0),
    "all are still there": (f"{START}; 9 pause A; 9 deliver A; 10 deliver A; 11 quiet", False, 2),
    "all were still there": (f"{START}; 9 pause A; 10 view 2 B BC; 10 view 2 C BC; 11 deliver A; 12 quiet", False, 1),
    "the cut of the old view": (f"{START}; 5 view 2 B BC; 9 pause A; 9 deliver A; 9 view 3 A A; 10 quiet", False, 1),
    "the next view is no old one": (
        f"{START}; 5 view 2 B BC; 9 pause A; 9 view 3 A A; 10 deliver A; 11 quiet",
        False,
        0,
    ),
    "the end": (f"{START}; 5 view 2 B BC; 9 pause A; 9 deliver A; 9 end A; 10 quiet", False, 1),
    "a majority is there": (f"{START}; 5 end B; 9 pause A; 9 deliver A; 10 quiet", True, 1),
}
PLANTED = {
    "both others went on": (f"{START}; 5 view 2 B BC; 6 view 2 C BC; 9 pause A; 9 deliver A; 10 quiet", False),
    "one other went on": (f"{START}; 5 view 2 B BC; 9 pause A; 10 deliver A; 11 deliver A", False),
    "one other has ended": (f"{START}; 5 end B; 9 pause C; 10 deliver C; 11 view 2 C AC", False),
    "a member that never had the view": ("1 view 1 A AB; 9 pause A; 9 deliver A; 10 quiet", False),
    "again": (f"{START}; 5 pause A; 5 deliver A; 6 view 2 B BC; 9 pause A; 9 deliver A; 10 end A", False),
    "a majority went on": (f"{START}; 5 view 2 B BC; 5 view 2 C BC; 9 pause A; 9 deliver A; 10 quiet", True),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_is_good_holds(name: str) -> None:
    history, majority, judged = GOOD[name]
    told = Told(majority=majority)
    told.hear(history)
    assert told.check.facts() == {"checks-membership": judged}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str) -> None:
    history, majority = PLANTED[name]
    told = Told(majority=majority)
    *before, last = history.split(";")
    told.hear(";".join(before))  # until the last line nothing is wrong
    with pytest.raises(Broken) as caught:
        told.hear(last)
    assert caught.value.witness.promise == "checks-membership"
