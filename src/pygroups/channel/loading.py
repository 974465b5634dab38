"""The state that a joiner begins with: on its way, arrived, set."""

from __future__ import annotations

import asyncio

from pygroups.core.address import Address
from pygroups.core.errors import ChannelClosed, StateLost
from pygroups.core.events import Marks
from pygroups.core.view import ViewId


class Loading:
    """A joiner's state on its way: as of `view`, which holds what `digest` says.

    `again`: this member has waited for a state before, from a provider that will not give it any more.
    """

    def __init__(self, view: ViewId, digest: Marks, *, again: bool) -> None:
        self.view = view
        self.digest = digest
        self.again = again
        self.provider: Address | None = None
        self.parts: list[bytes] = []
        self.none = False  # there is no state to be had: begin with what there is
        self.superseded = False  # another one, of a later view, comes in its place; or none, at the end
        self.ready = asyncio.Event()
        self.setting: asyncio.Task[None] | None = None  # the application sets the state
        self.error: Exception | None = None  # what that raised; or the state is lost

    @property
    def is_lost(self) -> bool:
        """Whether there was a state, and every member that had it is gone."""
        return self.none and self.again

    def supersede(self) -> None:
        """This state will not be set."""
        self.superseded = True
        self.ready.set()
        if self.setting is not None:
            self.setting.cancel()


def lost() -> StateLost:
    """What a program that keeps a state is told when it has to begin without one."""
    return StateLost(
        "no member that had the group's state is left, or able to give it: this member begins without one; "
        "to go on with an empty state, catch StateLost and read on"
    )


def unset() -> ChannelClosed:
    """What a program is told that reads on after its channel left while the state was being set."""
    return ChannelClosed(
        "the channel left its group while set_state() ran: the state is not set, and what follows it is not given"
    )
