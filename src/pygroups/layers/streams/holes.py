"""Requests for missing runs in the streams of a view: the time of a request, the member that is asked, the repeats.

Note: docs/layers/streams.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from pygroups.core.address import Address
from pygroups.core.events import Fetching
from pygroups.core.layer import NEVER, Layer
from pygroups.core.tables import Tables
from pygroups.core.view import ViewId

from .stream import Stream

FETCH_TRIES: Final = 2  # requests to the holder that the flush names; then any other member may have the runs

Ranges = tuple[tuple[int, int], ...]  # of numbers: half-open and ascending
Request = Callable[[ViewId, Address, Ranges], object]  # makes the head "send me these runs of that stream again"


class HoleRequests:
    """Sends the requests of one layer for missing runs."""

    __slots__ = ("layer", "members", "request", "suspects", "view")

    tables: ClassVar[Tables] = {
        "members": "members",
        "suspects": "members",
    }

    def __init__(self, layer: Layer, request: Request) -> None:
        self.layer = layer
        self.request = request
        self.view: ViewId | None = None
        self.members: dict[Address, None] = {}  # of the view, in rank order: any of them may hold a run
        self.suspects: dict[Address, None] = {}  # members that are not asked

    def begin(self, view: ViewId | None, members: tuple[Address, ...]) -> None:
        """Ask the members of this view from now on."""
        self.view, self.members = view, dict.fromkeys(members)
        self.suspects = {member: None for member in members if member in self.suspects}

    def watch(self, stream: Stream) -> None:
        """Have the holes of `stream` checked, the first time at once: a hole that is still there a period later is
        asked for."""
        if not stream.lacks:
            stream.check_at = NEVER
        elif stream.check_at == NEVER:
            stream.check_at = self.layer.env.now
            self.layer.wake_at(stream.check_at)

    def check(self, name: Address, stream: Stream) -> None:
        """Look at the holes of the stream `name`, once a period, and ask for those that are due."""
        env = self.layer.env
        stream.ripen()
        if stream.fetch is not None and stream.progressed:
            self.layer.below.append(Fetching())
        low = stream.ask_from(env.now)
        if low is not None:
            self.ask_for_holes(name, stream, low)
        stream.progressed = False
        stream.check_at = env.now + env.config.nakack_period
        self.layer.wake_at(stream.check_at)

    def ask_for_holes(self, name: Address, stream: Stream, low: int) -> None:
        """Ask one member for the missing runs from number `low` on."""
        env = self.layer.env
        ranges = stream.to_ask_for(low, env.config)
        if stream.fetch is not None:
            env.count("fetched to the cut")
        holder = self._whom_to_ask(name, stream)
        if not ranges or holder is None or self.view is None:
            return
        matters = stream.pause >= 4 * env.config.nakack_period  # a quarter of a shorter pause is less than a period
        chance = env.rng.random() if matters else 0.0
        stream.note_asked(low, ranges[-1][1], env.now, env.config, chance)
        self.layer.tell(holder, self.request(self.view, name, tuple(ranges)))
        if env.journaling:
            for first, end in ranges:
                env.record("retransmit_request", peer=holder, stream=name, low=first, high=end)

    def _whom_to_ask(self, name: Address, stream: Stream) -> Address | None:
        """The member that multicast the runs, or the holder that the flush names; after that any other member."""
        if stream.fetch is not None and stream.tries < FETCH_TRIES:
            return stream.fetch.holder
        if stream.fetch is None and stream.tries == 0 and name not in self.suspects:
            return name
        env = self.layer.env
        others = [member for member in self.members if member != env.me and member not in self.suspects]
        return env.rng.choice(others) if others else None
