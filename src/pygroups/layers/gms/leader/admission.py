"""Admission: the joiners, the leavers and the contested names that wait for the next view.  Only a leader has any."""

from __future__ import annotations

from typing import ClassVar

from pygroups.core.address import Address
from pygroups.core.driver_events import Contacts
from pygroups.core.events import JoinRefused
from pygroups.core.limits import MEMBERS_MAX
from pygroups.core.suspicion_events import VerifyLife
from pygroups.core.tables import Tables

from ..decisions import decide
from ..decisions.answer_times import AnswerTimes
from ..heads import Join, Ready, Refuse
from ..membership import Membership


class Admission:
    """The queue of joins and leaves at the leader."""

    tables: ClassVar[Tables] = {
        "answered": "members_max",
        "contested": "members_max",
        "joiners": "members_max",
        "joiners[]": "fixed",
        "leavers": "members",
        "made": "views_per_second",
        "silent": "members_max",
        "silent[]": "fixed",
    }

    def __init__(self, membership: Membership, times: AnswerTimes) -> None:
        self.membership = membership
        self.env = membership.env
        self.times = times
        self.joiners: dict[Address, tuple[str, int]] = {}  # contact, and when it asked last
        self.silent: dict[Address, tuple[str, int]] = {}  # contact, and when it was asked Ready alone
        self.leavers: dict[Address, None] = {}
        self.renewal = False  # a member wants a view with the same members: its state needs another provider
        self.contested: dict[Address, Join] = {}  # a joiner under the name of this process, which is being verified
        self.answered: dict[Address, None] = {}  # those of them that answered once, perhaps an earlier question
        self.since = 0  # when the first of the waiting joins and leaves came
        self.made: list[int] = []  # times of the last views that had joiners or leavers

    # -- joins

    def on_join(self, head: Join) -> None:
        """A joiner asks.  A name in use is verified first."""
        membership, view = self.membership, self.membership.current
        membership.below.append(Contacts({head.joiner: head.contact}))
        if head.joiner in view.members:
            return  # decided already, on its way
        former = self._former_life(head.joiner)
        if former is not None:
            self.contested[former] = head
            membership.below.append(VerifyLife(former))
        elif head.joiner in self.silent:
            self._ask_alone(head)
        elif head.joiner not in self.joiners and self._is_full():
            self.env.drop("too many joiners")  # the joiner asks again
        else:
            self._admit(head.joiner, head.contact)

    def _is_full(self) -> bool:
        members = self.membership.current.members
        return len(members) + len(self.joiners) + len(self.silent) >= MEMBERS_MAX

    def _admit(self, joiner: Address, contact: str) -> None:
        self._queued()
        self.joiners[joiner] = (contact, self.env.now)

    def _queued(self) -> None:
        if not self.is_wanted():
            self.since = self.env.now

    def is_wanted(self) -> bool:
        """Whether a join, a leave or a wish for another view waits."""
        return bool(self.joiners or self.leavers or self.renewal)

    # -- joiners that are heard and cannot be reached

    def left_unanswered(self, joiner: Address) -> None:
        """`joiner` left Ready unanswered.  No attempt waits for it again before it has answered a Ready."""
        contact, _ = self.joiners.pop(joiner, ("", 0))
        if contact:
            self.silent[joiner] = (contact, self.env.now)

    def _ask_alone(self, head: Join) -> None:
        """Ask a silent joiner Ready outside of any attempt.  An answer brings it back into the queue."""
        membership, now = self.membership, self.env.now
        _, asked_at = self.silent[head.joiner]
        if now >= asked_at + self.env.config.ready_timeout:
            self.times.ask(head.joiner, now)
            membership.tell(head.joiner, Ready(membership.next_ballot(), membership.current.id))
            self.silent[head.joiner] = (head.contact, now)

    def on_answer(self, joiner: Address) -> None:
        """A joiner answered Ready."""
        if joiner in self.silent:
            contact, _ = self.silent.pop(joiner)
            self._admit(joiner, contact)

    def remove(self, joiner: Address) -> None:
        """Another group, or another leader, took `joiner` in."""
        self.joiners.pop(joiner, None)
        self.silent.pop(joiner, None)

    # -- a name that another incarnation has

    def _former_life(self, joiner: Address) -> Address | None:
        """Another incarnation under the joiner's name that may still be alive."""
        for member in (*self.membership.current.members, *self.joiners):
            if member.name == joiner.name and member != joiner and not self.membership.suspicions.is_over(member):
                return member
        return None

    def former_life_answered(self, former: Address) -> None:
        """The former incarnation is alive.  Only the second answer counts: the first may be to a question that was
        under way when the former incarnation ended."""
        if former in self.contested and former not in self.answered:
            self.answered[former] = None
            self.membership.below.append(VerifyLife(former))
            return
        self.answered.pop(former, None)
        contender = self.contested.pop(former, None)
        if contender is not None:
            detail = f"the name {former.name!r} belongs to {former}, which is alive"
            membership = self.membership
            membership.tell(contender.joiner, Refuse("name taken", detail))
            membership.above.append(JoinRefused(contender.joiner, detail))
            self.env.count("name taken")

    def former_life_ended(self, former: Address) -> None:
        """The former incarnation has ended: the joiner may have its name."""
        self.remove(former)
        self.answered.pop(former, None)
        contender = self.contested.pop(former, None)
        if contender is not None:
            self._admit(contender.joiner, contender.contact)

    # -- leaves, and a view for a new provider

    def on_leave(self, member: Address) -> None:
        """`member` wants to leave."""
        self._queued()
        self.leavers[member] = None

    def leaves_too(self, member: Address) -> None:
        """`member` answers Ready as a leaver: it leaves with the attempt under way."""
        self.leavers[member] = None

    def on_view_wanted(self) -> None:
        """A member wants a view with the same members."""
        self._queued()
        self.renewal = True

    # -- when it is due, and over

    def due(self) -> int | None:
        """The time in microseconds when a view change for this queue may begin; None if the queue is empty."""
        self._forget_old_joiners()
        if not self.is_wanted():
            return None
        config = self.env.config
        return decide.when_to_start(self.since, config.batch, self.made, config.views_per_second)

    def _forget_old_joiners(self) -> None:
        """A joiner repeats its question.  A joiner that has stopped asking is gone."""
        age = 16 * self.env.config.join_retry
        oldest = self.env.now - age
        self.joiners = {joiner: asked for joiner, asked in self.joiners.items() if asked[1] > oldest}
        self.silent = {joiner: asked for joiner, asked in self.silent.items() if asked[1] > oldest}
        if self.silent:
            self.membership.wake_at(min([when for _, when in self.silent.values()]) + age)

    def forget(self) -> None:
        """Another member leads now, and joiners and leavers ask that member."""
        self.joiners, self.silent, self.leavers, self.renewal = {}, {}, {}, False

    def installed(self, changed: bool) -> None:
        """A new view.  `changed` is True if members joined or left with it."""
        view = self.membership.current
        self.joiners = {joiner: asked for joiner, asked in self.joiners.items() if joiner not in view.members}
        self.silent = {joiner: asked for joiner, asked in self.silent.items() if joiner not in view.members}
        self.leavers = {member: None for member in self.leavers if member in view.members}
        self.renewal = False
        self.contested, self.answered, self.since = {}, {}, self.env.now
        if changed:
            self.made = [*self.made, self.env.now][-self.env.config.views_per_second :]
