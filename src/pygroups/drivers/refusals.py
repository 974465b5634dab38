"""Refusals without a seal that a joiner hears, and what they mean: hints, which count by their places.

Anybody can send a refusal, so one that refuses proves nothing.  A joiner with the wrong secret hears refusals from
most places that it was told, and a joiner that a liar misleads hears them from few.  The folder of a group is closed to
other users, so an entry there that cannot be opened is no lie.  Note: docs/drivers.md, docs/decisions/0199.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, Final

from pygroups.core.address import Address
from pygroups.core.tables import Tables

LEASE: Final = 2.5  # seconds for which a refusal, or an answer of the group, counts; longer than joiners ask apart
PLACES_MAX: Final = 4_096


def object_to_founding(refusing: int, told: int) -> bool:
    """Whether the refusals of so many places keep a process from founding the group, of `told` places that discovery
    names beside that of the process itself: more than half of them, or any if discovery names none."""
    return refusing * 2 > told


class Refusals:
    """The refusals that one process hears, and the answers of its group, which make them void.

    `strict`: every refusal counts, because this process has no secret, and can check no answer.  `now`: the time in
    seconds.
    """

    tables: ClassVar[Tables] = {"places": PLACES_MAX, "told": PLACES_MAX}

    def __init__(self, now: Callable[[], float], *, strict: bool) -> None:
        self.now = now
        self.strict = strict
        self.places: dict[str, float] = {}  # when each place refused last; the latest last
        self.told: frozenset[str] = frozenset()  # the places that discovery names, without the own one
        self.entry_at = self.answered_at = -LEASE  # of an entry that cannot be opened; of an answer of the group
        self.since = now()  # the first refusal since which the refusals object without a pause
        self.by = ""

    def tell(self, places: Iterable[str]) -> None:
        """Discovery names these places, and that of this process is none of them."""
        self.told = frozenset(places)

    def refused(self, place: str) -> None:
        """The process at `place`, "host:port", refuses, or its answer is not sealed."""
        self._note(f"the process at {place}")
        self.places.pop(place, None)
        self.places[place] = self.now()
        if len(self.places) > PLACES_MAX:
            del self.places[next(iter(self.places))]

    def entry_refused(self, process: Address, folder: object) -> None:
        """The entry of a process in the folder cannot be opened."""
        self._note(f"the process {process} in {folder}")
        self.entry_at = self.now()

    def _note(self, by: str) -> None:
        self.by = by
        if not self.objects:
            self.since = self.now()

    def answered(self) -> None:
        """A process of the group, with the same secret, was heard."""
        self.answered_at = self.now()

    @property
    def refusing(self) -> list[str]:
        """The places that have refused lately, while no process with the same secret was heard."""
        oldest = self.now() - LEASE
        return [] if self.answered_at >= oldest else [place for place, at in self.places.items() if at >= oldest]

    @property
    def objects(self) -> bool:
        """Whether this process must not found the group."""
        oldest = self.now() - LEASE
        if self.answered_at >= oldest:
            return False
        refusing = self.refusing
        if self.entry_at >= oldest or (refusing and (self.strict or not self.told)):
            return True
        return object_to_founding(len(self.told.intersection(refusing)), len(self.told))
