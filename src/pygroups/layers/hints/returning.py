"""The return of a member that the others may have left out: it was paused for long, or most members of its view are in
a later one without it.

The member asks some members of its view to admit it, as a joiner does.  One that still has it in its view answers with
that view, and the leader of a view without it makes the next view with it.  So no merge is needed, whose questions name
the views of all sides.
"""

from __future__ import annotations

from collections.abc import Sequence

from pygroups.core.address import Address
from pygroups.core.layer import NEVER, Layer

from ..gms.heads import Join
from .joining import ASK_MAX


class Return:
    """The questions of a member that the others may have left out."""

    __slots__ = ("ask_at", "env", "layer", "until")

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.env = layer.env
        self.ask_at = NEVER
        self.until = NEVER  # afterwards MERGE2 alone looks for the others

    @property
    def asks(self) -> bool:
        """Whether the view of this member may be one that the others have left."""
        return self.ask_at < NEVER

    def begin(self) -> None:
        """The others may have left this member out."""
        self.ask_at = self.ask_at if self.asks else self.env.now
        self.until = self.env.now + self.env.config.heartbeat_timeout

    def answered(self) -> None:
        """A member has sent a view with this member.  One that came before the first question is from before the
        pause, and so may be all announcements."""
        if self.env.now < self.ask_at < NEVER:
            self.ask_at = self.until = NEVER

    def ask(self, members: Sequence[Address]) -> None:
        """If it is time, ask some of `members`, drawn anew each time, until one answers."""
        now, env = self.env.now, self.env
        others = [member for member in members if member != env.me]
        if now < self.ask_at:
            return
        if now >= self.until or not others:
            self.ask_at = self.until = NEVER
            return
        env.rng.shuffle(others)
        for member in others[:ASK_MAX]:
            self.layer.tell(member, Join(env.me, env.contact, env.fingerprint))
        self.ask_at = now + env.config.ready_timeout
