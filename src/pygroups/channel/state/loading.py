"""The state that a joiner starts with: it arrives in parts, and is then set."""

from __future__ import annotations

import asyncio

from pygroups.core.address import Address
from pygroups.core.errors import ChannelClosed, StateLost
from pygroups.core.events import Marks, Missing
from pygroups.core.state_events import StateArrived
from pygroups.core.view import ViewId
from pygroups.layers.streams.gaps import gaps_below

from ..channel_events import Gap, View, gap_of
from .spill import Received


class Loading:
    """A joiner's state at the start of `view`, which contains the messages below the marks of `digest`.

    `again`: this member has waited for a state before, from a provider that did not give it.  `resets`: the state
    replaces the one that the application has, after a merge.  The state is set when the application has read all
    earlier events.  With the state the application gets `begins` in place of the events up to its view, and, if the
    state replaces another one, gaps over `lacks`: the messages below `digest` that the state does not contain.  Without
    a state it gets the events behind the marks `first`: those of the first state that this member waited for in vain.
    """

    def __init__(
        self,
        begins: tuple[View, list[Gap]],
        digest: Marks,
        received: Received,
        *,
        first: Marks,
        again: bool,
        resets: bool,
    ) -> None:
        self.begins = begins
        self.view: ViewId = begins[0].id
        self.digest = digest
        self.lacks: Missing = {}
        self.first = first
        self.again = again
        self.resets = resets
        self.reached = asyncio.Event()  # the application has read all events before this state
        if not resets:
            self.reached.set()
        self.provider: Address | None = None
        self.received = received
        self.none = False  # no member has a state: start without one
        self.superseded = False  # the state of a later view replaces this one, or the member has ended
        self.ready = asyncio.Event()
        self.setting: asyncio.Task[None] | None = None  # the task that calls set_state()
        self.error: Exception | None = None  # the error of set_state(), or StateLost

    @property
    def is_lost(self) -> bool:
        """Whether the group had a state, and every member that had it is gone."""
        return self.none and (self.again or self.resets)

    @property
    def gaps(self) -> list[Gap]:
        """The gaps that follow the view of the state."""
        below = map(gap_of, gaps_below(self.lacks)) if self.resets else ()
        return [*below, *self.begins[1]]

    @property
    def is_complete(self) -> bool:
        """Whether the whole state is here, so that the application will get it."""
        return self.ready.is_set() and not self.superseded and not self.none

    def waits(self) -> str | None:
        """A sentence about the state while some of it has not arrived."""
        if self.ready.is_set():
            return None
        if self.provider is None:
            return "this program waits for the state of the group, of which nothing has arrived yet"
        return f"this program waits for the state of the group: {self.received.size:,} bytes came from {self.provider}"

    def arrived(self, event: StateArrived) -> None:
        """A chunk has arrived."""
        self.provider, self.none = event.provider, event.none
        if self.error is None:
            try:
                self.received.add(event.data)
            except OSError as error:
                self.fail(error)
        if event.last:
            self.lacks = event.lacks
            self.ready.set()

    def fail(self, error: OSError) -> None:
        """The parts cannot be stored, so no state can be set."""
        from tempfile import gettempdir

        text = f"the group's state cannot be stored: {error.strerror}; free space in {gettempdir()}, or set TMPDIR"
        self.error = self.error or OSError(error.errno, text)
        self.received.close()
        self.ready.set()

    def supersede(self) -> None:
        """Give up this state: it will not be set."""
        self.superseded = True
        self.ready.set()
        self.reached.set()
        if self.setting is None:
            self.received.close()
        else:
            self.setting.cancel()


def lost(*, resets: bool) -> StateLost:
    """The error for a program that keeps a state and has to start without one, or, with `resets`, with an old one."""
    if resets:
        return StateLost(
            "the members with the winning state of the merge have ended, or could not give their state: this program "
            "still has the state of its side, and the events since the merge follow; to continue with the state of "
            "this side, catch StateLost and read further events"
        )
    return StateLost(
        "this member has no state: the members with the group's state have ended, or could not give the state; "
        "the events since this member joined follow; to continue with an empty state, catch StateLost and read further "
        "events"
    )


def unset() -> ChannelClosed:
    """The error for a program that reads on after its channel left during set_state()."""
    return ChannelClosed("the channel left its group while set_state() ran: the state is not set, and no event follows")
