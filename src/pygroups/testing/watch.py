"""Passes each event of a member in memory to the checks of its group's promises, and then to the channel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pygroups.channel.sending.outbox import Top
from pygroups.channel.session import Session
from pygroups.channel.state.states import Recorder
from pygroups.core.address import Address, parse_address
from pygroups.core.events import Block, Blocked, Consumed, Event, Excluded, NewView, Unblocked, Undelivered
from pygroups.core.layer import Env, Record
from pygroups.core.records import PlainRecord
from pygroups.core.run import Run
from pygroups.core.state_events import StateArrived, StateFailed, StateWanted
from pygroups.core.top import Delivered, Reached
from pygroups.core.view import ViewId
from pygroups.sim.promises.broken import Broken
from pygroups.sim.promises.facts import Rest
from pygroups.sim.promises.judge import Judge

from .errors import Crashed

JUDGED: Final = (
    "purge",
    "unicast_send",
    "unicast_deliver",
    "suspect",
    "flush",
)  # records of facts that no event reports
ADDRESSES: Final = ("peer", "next_creator", "ballot_leader")  # the columns of these records that hold an address


class SessionWatch:
    """Stands between a member and its session.  `failed` is called with broken promises and with members' errors."""

    def __init__(self, session: Session, judge: Judge, process: str, failed: Callable[[BaseException], None]) -> None:
        self.session = session
        self.judge = judge
        self.process = process  # the process that opened the channel
        self.failed = failed
        self.me = session.me
        self.leaving = False  # the judge knows that the member wants to leave
        self.over = False  # the judge knows how the member ended
        self.blocked = False
        self.told = False  # the program knows that this member reaches no majority
        self.records: list[PlainRecord] = []  # the records of this turn, for the judge
        if session.options.state is None:
            self._tell(judge.keeps_no_state, self.me)

    # -- the member's inbox

    def consumed(self) -> Consumed | None:
        if self.session.leaving and not self.leaving and not self.over:  # in this turn the member asks to leave
            self.leaving = True
            self._tell(self.judge.leaving, self.me)
        consumed = self.session.consumed()
        if consumed is not None:
            self._tell(self.judge.consumed, self.me, consumed.marks)
        return consumed

    def arrived(self, events: Sequence[Run | Event]) -> None:
        for event in events:
            self._tell(self._judge, event)
        self.session.arrived(events)

    def turned(self) -> None:
        if self.records:
            records, self.records = self.records, []
            self._tell(self.judge.recorded, self.me, [_as_it_was(record) for record in records])
        self.session.turned()

    def journal_lost(self, reason: str) -> None:
        self.session.journal_lost(reason)

    def crashed(self, error: BaseException) -> None:
        if not isinstance(error, Crashed):
            self.failed(error)
        self.session.crashed(error)

    # -- to the judge

    def recorded(self, records: Sequence[PlainRecord]) -> None:
        """The member has journaled `records`, and has not yet passed on the events of the turn."""
        self._tell(self.judge.written, self.me, records)
        self.records += [record for record in records if record[0] in JUDGED]

    def answered(self, life: Address, records: Sequence[PlainRecord]) -> None:
        """The member has journaled these answers for its former incarnation."""
        self._tell(self.judge.recorded, life, [_as_it_was(record) for record in records if record[0] in JUDGED])

    def _tell(self, fact: Callable[..., None], *args: object) -> None:
        try:
            fact(*args)
        except Broken as broken:
            self.failed(broken)

    def accepted(self, to: Address | None, number: int, payload: bytes) -> None:
        """The application has sent `payload`."""
        self._tell(self.judge.accepted, self.me, to, number, payload)

    def refused(self) -> None:
        """The application was asked for its state and did not give a state."""
        self._tell(self.judge.state_refused, self.me)

    def ended(self) -> None:
        """The process has ended.  A member that had not left counts as crashed."""
        if not self.over:
            self.over = True
            self._tell(self.judge.crashed, self.me)

    def _judge(self, event: Run | Event) -> None:
        judge, me, session = self.judge, self.me, self.session
        if isinstance(event, Delivered):
            judge.delivered(me, event)
        elif isinstance(event, Reached):
            judge.reached(me, event.delivered, event.stable)
        elif isinstance(event, NewView):
            self.blocked = False
            judge.viewed(me, event)
        elif isinstance(event, Block):
            self.blocked = True
        elif isinstance(event, Blocked | Unblocked):
            self.told = isinstance(event, Blocked)
            judge.blocked(me, event.reason if isinstance(event, Blocked) else None)
        elif isinstance(event, Undelivered):
            judge.undelivered(me, event.to, event.numbers)
        elif isinstance(event, StateWanted) and session.options.state is not None:
            judge.state_given(me, event.view, event.digest, b"")  # the content belongs to the application
        elif isinstance(event, StateArrived):
            self._state_arrived(event)
        elif isinstance(event, Excluded) and not self.over:
            self.over = True
            if session.view is not None:
                judge.stopped(me, event.reason, session.sending.top.unknown())

    def _state_arrived(self, event: StateArrived) -> None:
        loading = self.session.states.loading
        if event.none:
            self.judge.state_none(self.me, event.view)
        elif event.last and loading is not None and loading.view == event.view:
            self.judge.state_set(self.me, event.view, event.provider, loading.digest, b"")

    # -- the state of the member

    @property
    def lives(self) -> bool:
        """Whether the member is in the group or is joining the group."""
        return not self.over and not self.session.member.closed

    @property
    def has_unread(self) -> bool:
        """Whether messages wait that the application has not read yet."""
        return self.session.reading.has_unread

    def rest(self, *, holds: bool) -> Rest:
        """The state of the member for the checks of a group at rest.  `holds` adds the gauges of the layers."""
        session = self.session
        gauges = session.member.stack.gauges() if holds else {}
        unsent = session.sending.waiting
        return Rest(self.me, session.sending.top.unknown().stop, unsent, gauges, self.blocked, session.leaving)

    def __str__(self) -> str:
        session = self.session
        view = session.view
        where = "not joined" if view is None else f"view {view.id.number} [{' '.join(m.name for m in view.members)}]"
        unread, senders = len(session.reading.queue), session.sending.waiting
        waiting = f", {senders} wait for room in the window" if senders else ""
        return f"channel {self.me.name} of group {session.options.group!r}: {where}, {unread} unread{waiting}"


def _as_it_was(record: PlainRecord) -> Record:
    """A record of the journal with addresses in place of their texts."""
    kind, view, fields = record
    then = None if view is None else ViewId(view[0], parse_address(view[1]))
    return kind, then, {name: _parsed(name, value) for name, value in fields.items()}


def _parsed(name: str, value: Any) -> object:
    if name in ADDRESSES:
        return parse_address(value)
    if isinstance(value, Mapping):
        return {parse_address(key): number for key, number in value.items()}
    return value


class WatchedRecorder:
    """Passes the requests of a channel's state transfer to the member, and reports a refused state to the watch."""

    def __init__(self, recorder: Recorder, watch: SessionWatch) -> None:
        self.recorder = recorder
        self.watch = watch
        self.record = recorder.record
        self.losses = recorder.losses

    def ask(self, event: Event) -> None:
        if isinstance(event, StateFailed):
            self.watch.refused()
        self.recorder.ask(event)


class WatchedTop:
    """The top of a stack as a channel uses it.  Reports each accepted message to the watch."""

    def __init__(self, top: Top, watch: SessionWatch) -> None:
        self.env: Env = top.env
        self.top = top
        self.watch = watch
        self.room = top.room
        self.sent_bytes = top.sent_bytes
        self.waits_for = top.waits_for
        self.waits_for_readers = top.waits_for_readers
        self.unknown = top.unknown

    def accept(self, payload: bytes, to: Address | None = None) -> int:
        number = self.top.accept(payload, to)
        self.watch.accepted(to, number, payload)
        return number
