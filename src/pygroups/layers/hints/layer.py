"""HINTS: the views of a group in which no member waits for another one.

The leader decides on each view alone and announces it.  No member stops its messages for a view: a view is a hint.  A
member takes each view that names it and is above its own.  Needs discovery, suspicions, and MERGE2, which finds other
views; a merge announces the union of the views.  Note: docs/layers/hints.md; design note 002.
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from pygroups.core import driver_events
from pygroups.core.address import Address
from pygroups.core.events import Event, Excluded, Gone, JoinRefused, Leave
from pygroups.core.events import Join as JoinWanted
from pygroups.core.fingerprint import difference
from pygroups.core.layer import NEVER, Env, Layer
from pygroups.core.limits import DETAIL_MAX
from pygroups.core.merge_events import MergeFailed, MergeWanted, Occupied, Replaced, Reserved, RoundTrips
from pygroups.core.run import Run
from pygroups.core.suspicion_events import HeartbeatOf, LifeVerified, Suspect, Unsuspect
from pygroups.core.tables import Tables, under
from pygroups.core.view import AgreedView, Subgroup, ViewId

from ..gms.heads import OTHER_SETTINGS, Join, Refuse
from . import decide
from .heads import HEADS, Accuse, Announce, Bye, LeaveReq, ViewReq, Whole
from .joining import Search
from .leading import Changes
from .returning import Return


class Phase(Enum):
    """The relation of this process to the group."""

    NEW = "it has not asked to join"
    JOINING = "it looks for members, and has no view"
    MEMBER = "it has a view"
    GONE = "it was a member, and is none any more"


class Hints(Layer):
    """Decides on views and announces them, at the leader; takes announced views, at all members."""

    __slots__ = (
        "changes",
        "electors",
        "highest",
        "later",
        "leaving",
        "phase",
        "primary",
        "returning",
        "search",
        "suspects",
        "tell_at",
        "told",
        "view",
        "view_at",
    )

    needs: ClassVar[frozenset[str]] = frozenset({"DISCOVERY", "FIFO_UNICAST", "SUSPICION", "MERGING"})
    gives: ClassVar[frozenset[str]] = frozenset({"MEMBERSHIP"})
    heads: ClassVar[tuple[type, ...]] = HEADS
    own_heads_only: ClassVar[bool] = True
    tables: ClassVar[Tables] = {
        "electors": "members_max",
        "later": "fixed",
        "suspects": "members",
        "told": "members",
        **under("changes", Changes.tables),
        **under("search", Search.tables),
    }

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.phase = Phase.NEW
        self.view: AgreedView | None = None
        self.view_at = 0  # when it was installed
        self.primary = True  # a hint, see View.primary of the channel
        self.electors: tuple[Address, ...] = ()  # the members of the last view that was primary
        self.leaving = False
        self.highest = 0  # the highest number of a view that this member knows
        self.suspects: dict[Address, None] = {}  # members that this member suspects by its own evidence
        self.tell_at = NEVER  # when the leader is told again of them, and of the wish to leave
        self.told: dict[Address, int] = {}  # members that got the view because they lacked it, and when
        self.later: tuple[ViewId, Address, int] | None = None  # a later view, a member of it, and when to ask for it
        self.search = Search(self)
        self.changes = Changes(self)
        self.returning = Return(self)

    @property
    def current(self) -> AgreedView:
        """The view of this member.  A caller must first check that there is a view."""
        assert self.view is not None
        return self.view

    def leads(self) -> bool:
        """Whether this member leads."""
        return self.view is not None and decide.leader(self.view, self._out()) == self.env.me

    def _out(self) -> dict[Address, None]:
        return {**self.suspects, **self.changes.ended}

    # -- views

    def _install(self, view: AgreedView, *, primary: bool, sides: tuple[Subgroup, ...] = ()) -> None:
        event = decide.change(self.view, view, primary=primary, sides=sides)
        if self.view is None:
            contacts = dict(zip(view.members, view.contacts, strict=True))
            self.below.append(driver_events.Contacts(contacts))  # the layers above may hold the event for a while
        self.phase, self.view, self.view_at, self.primary = Phase.MEMBER, view, self.env.now, primary
        if primary:
            self.electors = view.members
        self.highest = max(self.highest, view.id.number)
        self.suspects = {member: None for member in self.suspects if member in view.members}
        self.told = {member: when for member, when in self.told.items() if member in view.members}
        if self.later is not None and self.later[0] <= view.id:
            self.later = None
        self.changes.installed(view.members, led=view.id.leader == self.env.me)
        self.below.append(event)
        self.below.append(Occupied(False, self.highest))
        self.above.append(event)
        if not self.leads():
            self.changes.forget()
        self._tell_the_leader()

    def _take(self, view: AgreedView, *, primary: bool, sides: tuple[Subgroup, ...] = ()) -> None:
        """Take a view that another member has announced, if it names this member and is above its own."""
        me = self.env.me
        self.highest = max(self.highest, view.id.number)
        if self.phase not in (Phase.JOINING, Phase.MEMBER):
            return
        if me not in view.members:
            self.env.drop("view without this member")
            if self.leaving:
                self._left("left", "")
            elif self.view is not None and view.id > self.view.id and decide.went_on(self.view, view):
                self.returning.begin()
        elif self.view is None or view.id > self.view.id:
            self._install(view, primary=primary, sides=sides)
        else:
            self.env.drop("earlier view")

    def _lead(self) -> None:
        """Decide on the next view, and announce it."""
        changes, old, me = self.changes, self.current, self.env.me
        out = {**changes.ended, **self.suspects, **changes.leavers, **({me: None} if self.leaving else {})}
        id = ViewId(self.highest + 1, me)
        view = decide.next_view(old, id, out, changes.joiners)
        if view is None:
            self._left("left", "")
            return
        if out.keys().isdisjoint(old.members) and not any(joiner in view.members for joiner in changes.joiners):
            return
        primary = decide.is_primary(self.electors or old.members, view.members)
        announcement = decide.difference(old, view, primary=primary)
        joiners, leavers = dict(changes.joiners), [m for m in changes.leavers if m in old.members]
        if self.leaving:
            self.tell(None, announcement)
            self._greet(joiners, view, primary=primary)
            self._left("left", "")
            return
        self._install(view, primary=primary)
        self.tell(None, announcement)
        self._greet(joiners, view, primary=primary)
        for member in leavers:
            self.tell(member, Bye(id))

    def _greet(self, joiners: dict[Address, str], view: AgreedView, *, primary: bool) -> None:
        self.below.append(driver_events.Contacts(joiners))
        for joiner in joiners:
            self.tell(joiner, Whole(view, primary))

    # -- members in other views

    def _named(self, member: Address, id: ViewId) -> None:
        """`member` named the view `id`, and not the one of this member: one of the two lacks a view.

        The announcement may still be on its way to it.
        """
        if self.phase is not Phase.MEMBER:
            return
        now, config, mine = self.env.now, self.env.config, self.current
        if id > mine.id:
            self.highest = max(self.highest, id.number)
            if self.later is None or self.later[0] < id:
                self.later = (id, member, now + config.ready_timeout)
        elif id < mine.id and member in mine.members:
            told_at = self.told.get(member, self.view_at + config.ready_timeout - config.flush_timeout)
            if now >= told_at + config.flush_timeout:
                self.told[member] = now
                self.tell(member, Whole(mine, self.primary))

    def _ask_for_a_later_view(self) -> None:
        if self.later is not None and self.later[2] <= self.env.now:
            (id, member, _), self.later = self.later, None
            self.tell(member, ViewReq(id))

    # -- runs

    def up(self, run: Run) -> None:
        head, src = run.head, run.src
        if not isinstance(head, HEADS):
            self.above.append(run)
            return
        if isinstance(head, Announce):
            self.on_announce(src, head)
        elif isinstance(head, Whole):
            self.on_whole(head)
        elif isinstance(head, Refuse):
            self.on_refuse(src, head)
        elif self.phase is not Phase.MEMBER:
            self.env.drop("request to a process without a view")
        elif isinstance(head, Join):
            self.on_join(src, head)
        elif isinstance(head, ViewReq):
            if self.current.id >= head.id:
                self.tell(src, Whole(self.current, self.primary))
        elif isinstance(head, Accuse):
            self.on_accuse(src, head)
        elif isinstance(head, LeaveReq):
            self.on_leave_req(src)
        elif isinstance(head, Bye):
            self.on_bye(src)
        self._work()

    def on_announce(self, src: Address, head: Announce) -> None:
        if self.view is None:
            self.env.drop("announcement before the first view")
        elif head.previous == self.view.id:
            view = decide.announced(self.view, head)
            if view is None:
                self.env.drop("impossible view")
            else:
                self._take(view, primary=head.primary)
        elif head.id > self.view.id:
            self._named(src, head.id)  # this member lacks the view before

    def on_whole(self, head: Whole) -> None:
        sides = decide.subgroups(head.view, head.sides)
        if sides is None:
            self.env.drop("impossible view")
        else:
            if self.env.me in head.view.members:
                self.returning.answered()
            self._take(head.view, primary=head.primary, sides=sides)

    def on_refuse(self, src: Address, head: Refuse) -> None:
        others = head.reason == OTHER_SETTINGS
        wanted = src in self.search.found if others else self.search.has_asked
        if self.phase is not Phase.JOINING or not wanted:
            self.env.drop("refusal of no request")
        elif others:
            self.search.stays_apart(src, head.detail)
        else:
            self._left(head.reason, head.detail)

    def on_join(self, src: Address, head: Join) -> None:
        """A joiner asks.  Each member refuses other settings; the leader admits the joiner."""
        joiner = head.joiner
        leader = decide.leader(self.current, self._out())
        if joiner == self.env.me:
            self.env.drop("request of this process itself")
            return
        self.below.append(driver_events.Contacts({joiner: head.contact}))
        if head.fingerprint != self.env.fingerprint:
            detail = difference(self.env.fingerprint, head.fingerprint)
            self.tell(joiner, Refuse(OTHER_SETTINGS, detail[:DETAIL_MAX]))
            self.above.append(JoinRefused(joiner, detail))
        elif self.returning.asks:
            self.env.drop("request to a member after a pause")
        elif joiner in self.current.members:
            self.tell(joiner, Whole(self.current, self.primary))
        elif leader == self.env.me:
            self.changes.join(head, self.current)
        elif leader is not None and src == joiner:
            self.tell(leader, head)

    def on_accuse(self, src: Address, head: Accuse) -> None:
        """A member suspects another one.  Two members may disagree about the leader, so it is handed on once."""
        member, leader = head.member, decide.leader(self.current, self._out())
        if src not in self.current.members:
            self.env.drop("suspicion of a stranger")
            return
        if member not in self.current.members or member == self.env.me:
            return
        if leader == self.env.me:
            self.changes.accuse(member)
        elif leader is not None and leader != src and src == head.accuser:
            self.tell(leader, head)

    def on_leave_req(self, src: Address) -> None:
        leader = decide.leader(self.current, self._out())
        if src not in self.current.members:
            self.tell(src, Bye(self.current.id))
        elif leader == self.env.me:
            self.changes.leave(src)

    def on_bye(self, src: Address) -> None:
        """The leave of this member is over: its leader has a view without it."""
        if src not in self.current.members:
            self.env.drop("end of a leave by a stranger")
        elif self.leaving:
            self._left("left", "")

    # -- events

    def up_event(self, event: Event) -> None:
        if isinstance(event, MergeWanted):
            self._merge(event)
        elif isinstance(event, HeartbeatOf):
            self._named(event.member, event.view)
        elif isinstance(event, LifeVerified):
            self._lives(event.member)
        elif isinstance(event, Replaced):
            self._left("name taken", f"{event.newer} joined later under the same name")
        elif isinstance(event, driver_events.Incompatible) and self.phase is Phase.JOINING:
            self.search.stays_apart(event.peer, event.detail)
        elif isinstance(event, driver_events.Found):
            self._found(event)
        elif isinstance(event, Suspect):
            self._suspect(event.member)
            self.above.append(event)
        elif isinstance(event, Unsuspect):
            self.suspects.pop(event.member, None)
            self.changes.ended.pop(event.member, None)
            self.above.append(event)
        elif not isinstance(event, Reserved | RoundTrips):
            self.above.append(event)
            return
        self._work()

    def down_event(self, event: Event) -> None:
        if isinstance(event, HeartbeatOf):
            self._named(event.member, event.view)
        elif isinstance(event, JoinWanted):
            self.phase = Phase.JOINING
            self.search.again()
        elif isinstance(event, Leave):
            self._leave()
        else:
            if isinstance(event, Gone):  # the top has left by itself
                self.phase, self.wake = Phase.GONE, NEVER
            self.below.append(event)
            return
        self._work()

    def _found(self, event: driver_events.Found) -> None:
        if self.phase is not Phase.JOINING:
            return
        if not event.may_found:
            self.search.on_found(event)
        elif self.search.refused_by_all() is None:
            me, id = self.env.me, ViewId(self.highest + 1, self.env.me)
            self._install(AgreedView(id, (me,), (self.env.contact,), "", (id.number,)), primary=True)

    def _suspect(self, member: Address) -> None:
        if self.view is None or member not in self.view.members:
            self.changes.asked.pop(member, None)  # a joiner that has ended
            return
        self.suspects[member] = None
        self._tell_the_leader()

    def _lives(self, member: Address) -> None:
        refused = self.changes.answered(member)
        if refused is not None:
            self.tell(refused.joiner, Refuse("name taken", f"{member} is alive"))

    def _tell_the_leader(self) -> None:
        """Report this member's suspicions, and its wish to leave, to the leader: now, and again later."""
        self.tell_at = NEVER
        if self.phase is not Phase.MEMBER or not (self.suspects or self.leaving):
            return
        view, leader = self.current, decide.leader(self.current, self._out())
        if leader == self.env.me:
            for member in self.suspects:
                self.changes.suspect(member)
        elif leader is not None:
            for member in self.suspects:
                self.tell(leader, Accuse(view.id, member, self.env.me))
            if self.leaving:
                self.tell(leader, LeaveReq(view.id))
        config = self.env.config
        self.tell_at = self.env.now + (config.ready_timeout if self.leaving else config.heartbeat_timeout)

    def _leave(self) -> None:
        self.leaving = True
        if self.phase is not Phase.MEMBER:
            self._left("left", "")
        elif self.leads():
            self._lead()
        else:
            self._tell_the_leader()

    def _left(self, reason: str, detail: str) -> None:
        """This process is in the group no more."""
        if self.phase is not Phase.GONE:
            self.phase, self.wake = Phase.GONE, NEVER
            self.above.append(Excluded(reason, detail))
            self.below.append(Gone())

    # -- merges

    def _merge(self, event: MergeWanted) -> None:
        """This member leads a merge: announce the union of the views.  Nobody is asked, and nothing is collected."""
        if self.phase is not Phase.MEMBER or event.sides[0][0].id != self.current.id:
            self.below.append(MergeFailed(event.merge))
            return
        self.highest = max(self.highest, event.highest)
        view = decide.union(ViewId(self.highest + 1, self.env.me), event.sides)
        sides = decide.sides_of(view, event.sides)
        primary = decide.is_primary(self.electors or self.current.members, view.members)
        self._install(view, primary=primary, sides=decide.subgroups(view, sides) or ())
        self.tell(None, Whole(view, primary, sides))

    # -- time

    def after_pause(self) -> None:
        if self.phase is Phase.MEMBER:
            self.returning.begin()
            self.wake_at(self.env.now)

    def timer(self) -> None:
        self.wake = NEVER
        if self.phase is Phase.JOINING:
            refused = self.search.refused_by_all()
            if refused is not None:
                self._left(OTHER_SETTINGS, refused)
                return
            self.search.again()
        elif self.phase is Phase.MEMBER:
            if self.leads():
                self.changes.look()
            else:
                self.changes.forget()
            self._ask_for_a_later_view()
            self.returning.ask(self.current.members)
            if self.tell_at <= self.env.now:
                self._tell_the_leader()
        self._work()

    def _work(self) -> None:
        """Make the next view if it is due, and set the timer."""
        if self.phase is not Phase.MEMBER:
            return
        if self.leads() and self.changes.wanted and self.changes.due() <= self.env.now:
            self._lead()
        if self.phase is Phase.MEMBER:
            asks = NEVER if self.later is None else self.later[2]
            due = self.changes.due() if self.leads() else NEVER
            self.wake = max(self.env.now + 1, min(self.tell_at, asks, due, self.returning.ask_at))

    def gauges(self) -> dict[str, int]:
        return {"changes": len(self.changes.joiners) + len(self.changes.leavers) + len(self.changes.ended)}
