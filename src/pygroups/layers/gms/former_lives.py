"""Former lives: a process answers for the life that the folder of its journal shows, where a majority decides.

The former life has ended, so its process is in no further view.  Its answers still count in its last view: without them
a group that loses its majority would stay blocked although the processes are back.  So the former life is a member that
leaves, and another process speaks for it: messages to it go to that process (ToFormer), and come back (FromFormer).
A proposal that is accepted for the former life is written into that life's folder before the answer leaves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from pygroups.core.address import Address
from pygroups.core.former import FormerLife
from pygroups.core.view import Ballot

from .heads import (
    Accept,
    Collect,
    CollectAck,
    Excluded,
    Install,
    InstallAck,
    LeaveReq,
    Low,
    Propose,
    Stuck,
)
from .membership import Membership
from .proposal import Proposal, difference_in, proposal_of, text_of

To = Collect | Propose | Install | Stuck
From = LeaveReq | CollectAck | Low | Accept | InstallAck | Excluded


class ToFormer(msgspec.Struct, array_like=True, tag=65):
    """A message to a former life, to the process that answers for it."""

    former: Address
    head: To


class FromFormer(msgspec.Struct, array_like=True, tag=66):
    """The answer of a former life, from the process that answers for it."""

    former: Address
    head: From


HEADS: Final = (ToFormer, FromFormer)
FORWARDED: Final = (Collect, Propose, Install)


class Speaker:
    """The answers of this process for its former life."""

    def __init__(self, membership: Membership) -> None:
        self.membership = membership
        self.env = membership.env

    @property
    def life(self) -> FormerLife | None:
        """The former life, until this process is a member itself."""
        return self.env.former if self.membership.view is None else None

    def tell_members(self, members: Iterable[Address]) -> None:
        """Members that lack a majority need the answers of the former life in its last view."""
        life = self.life
        if life is not None and life.view is not None:
            for member in members:
                self._say(member, LeaveReq(life.view.id, life.address))

    def on_asked(self, src: Address, head: To) -> None:
        """A member asks the former life."""
        life = self.life
        if life is None or life.view is None:
            self.env.drop("question to a former life that is over")
        elif isinstance(head, Stuck):
            if src not in life.view.members:
                self._say(src, Excluded(head.view))
        elif isinstance(head, Install):
            proposal = proposal_of(head.difference, life.view)
            if proposal is not None:
                self._installs(src, life, proposal)
        else:
            self._votes(src, life, head)

    def _votes(self, src: Address, life: FormerLife, head: Collect | Propose) -> None:
        """Be bound, or accept, unless the former life is bound to a higher ballot.  The record comes first."""
        assert life.view is not None
        proposal = proposal_of(head.difference, life.view) if isinstance(head, Propose) else None
        ballot = head.ballot if isinstance(head, Collect) else head.difference.ballot
        view = head.view if isinstance(head, Collect) else head.difference.sides[0].old
        if view != life.view.id or ballot.leader != src or (isinstance(head, Propose) and proposal is None):
            self.env.drop("question about another view of a former life")
        elif life.bound is not None and ballot < life.bound:
            self._say(src, Low(ballot, life.bound))
        elif proposal is None:
            self._record("collect", ballot)
            accepted = difference_in(life.accepted)
            self._say(src, CollectAck(ballot, [], leaving=True, standing=False, accepted=accepted))
        else:
            self._record("accepted", ballot, proposal)
            self._say(src, Accept(ballot))

    def _installs(self, src: Address, life: FormerLife, proposal: Proposal) -> None:
        """The next view is decided.  A former life that it names has its last view there."""
        assert life.view is not None
        if proposal.side_of(life.view.id) is not None:
            self._say(src, InstallAck(proposal.view.id))
            if life.address in proposal.view.members:
                self._record("installed", proposal.ballot, proposal)
        elif proposal.view.id == life.view.id:
            self._say(src, InstallAck(proposal.view.id))

    def _record(self, stage: str, ballot: Ballot, proposal: Proposal | None = None) -> None:
        """Write a step of the former life into its own journal, and take it."""
        life = self.env.former
        assert life is not None
        view = None if life.view is None else life.view.id
        fields = {"stage": stage, "ballot_number": ballot.number, "ballot_leader": ballot.leader}
        if proposal is not None:
            side, id = proposal.sides[0], proposal.view.id
            detail = text_of(proposal) if stage == "accepted" else proposal.view.history
            fields |= {"next_number": id.number, "next_creator": id.leader, "members": proposal.view.members}
            fields |= {"transitional": side.members, "digest": dict(side.cut), "detail": detail}
        self.env.records.append(("flush", view, {**fields, "life": life.address}))
        life.take("flush", view, fields)

    def _say(self, dest: Address, head: From) -> None:
        life = self.env.former
        assert life is not None
        self.membership.tell(dest, FromFormer(life.address, head))
