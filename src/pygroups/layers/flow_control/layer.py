"""FLOW_CONTROL: windows at the sender bound every queue of every member.

A member has at most one window of bytes in multicasts that some other member has not consumed, and for each member at
most one window in messages to this member alone that it has not consumed.  The top looks for room before it makes a
run; this layer reports the bytes that have left a window.  Windows outlive views: a member that left no longer counts.
Note: docs/layers/flow_control.md.
"""

from __future__ import annotations

from collections import deque
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from pygroups.core.address import Address
from pygroups.core.driver_events import Ended
from pygroups.core.events import (
    Block,
    ConnectionClosed,
    Consumed,
    Event,
    Excluded,
    Expel,
    Freed,
    FreedTo,
    Marks,
    NewView,
    SlowestWanted,
    Stability,
    Undelivered,
)
from pygroups.core.layer import NEVER, Env, Layer
from pygroups.core.limits import MEMBERS_MAX, READ_REQUESTS_MAX
from pygroups.core.run import Run
from pygroups.core.services import GOSSIP, MEMBERSHIP
from pygroups.core.tables import Tables, under

from .slow import FullWindow

Number = Annotated[int, Meta(ge=1, le=1 << 62)]


class ReadReq(msgspec.Struct, array_like=True, tag=86):
    """Sender to receiver: answer when your application has read my messages to you alone below number `below`."""

    below: Number


class Read(msgspec.Struct, array_like=True, tag=87):
    """Receiver to sender: the application here has read your messages to me alone below number `below`."""

    below: Number


class SentRuns:
    """The own runs in one window, oldest first."""

    __slots__ = ("asked_at", "freed_bytes", "pieces_bytes", "run_min", "runs", "unasked_bytes", "window_bytes")

    tables: ClassVar[Tables] = {
        "runs": "window_runs",
        "runs[]": "fixed",
    }

    def __init__(self, run_min: int) -> None:
        self.run_min = run_min  # a smaller run fills the window as if it had so many bytes
        self.runs: deque[tuple[int, int]] = deque()  # the number after the run's last, and its bytes
        self.window_bytes = 0
        self.asked_at = 0  # when the receiver was asked last
        self.freed_bytes = 0  # of all own runs so far, those out of the window
        self.unasked_bytes = 0  # of those in it, those of which the receiver was not asked yet
        self.pieces_bytes = 0  # of a message of which only some pieces were sent: see FRAGMENTATION

    def enter(self, run: Run) -> None:
        """A run was sent.  A message in pieces enters with its last piece; its first piece may come again."""
        size = len(run.body)
        if run.index:
            size += 0 if run.index == 1 else self.pieces_bytes
            self.pieces_bytes = 0 if run.count else size
            if not run.count or (self.runs and self.runs[-1][0] == run.next):
                return  # the last piece was also sent in the view before, and all members dropped it there
        size = max(size, self.run_min)
        self.runs.append((run.first + run.count, size))
        self.window_bytes += size
        self.unasked_bytes += size

    def free(self, below: int) -> bool:
        """Every message below number `below` was consumed.  Returns whether a run left the window; runs leave whole."""
        freed = 0
        while self.runs and self.runs[0][0] <= below:
            freed += self.runs.popleft()[1]
        self._freed(freed)
        return freed > 0

    def give_up(self, numbers: range) -> None:
        """The messages of these numbers were given up: they are not sent again."""
        self._freed(sum(size for after, size in self.runs if after - 1 in numbers))
        self.runs = deque(run for run in self.runs if run[0] - 1 not in numbers)

    def _freed(self, size: int) -> None:
        self.window_bytes -= size
        self.freed_bytes += size
        self.unasked_bytes = min(self.unasked_bytes, self.window_bytes)


class FlowControl(Layer):
    """The windows of one member: one for multicasts, one for each receiver of unicasts."""

    __slots__ = ("agreed", "asked", "blocked", "full", "members", "multicasts", "quantum", "read", "run_min", "to_one")

    needs: ClassVar[frozenset[str]] = frozenset({"FIFO_UNICAST"})
    needs_in_group: ClassVar[frozenset[str]] = frozenset({"WINDOW"})
    gives: ClassVar[frozenset[str]] = frozenset({"BOUNDED"})
    heads: ClassVar[tuple[type, ...]] = (ReadReq, Read)
    own_heads_only: ClassVar[bool] = True
    events_down: ClassVar[tuple[type[Event], ...] | None] = (
        Consumed,
        Undelivered,
    )

    tables: ClassVar[Tables] = {
        "asked": "peers",
        "asked[]": "read_requests",
        "members": "members",
        "read": "outsiders_too",
        "to_one": "members",
        **under("full", FullWindow.tables),
        **under("multicasts", SentRuns.tables),
        **under("to_one[]", SentRuns.tables),
    }

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.members: tuple[Address, ...] = ()
        self.agreed = MEMBERSHIP in env.services and GOSSIP not in env.services  # all members have the same views
        self.blocked = False  # the view is about to end: no member reports before the next one
        self.run_min = env.config.run_bytes_min
        self.multicasts = SentRuns(self.run_min)
        self.to_one: dict[Address, SentRuns] = {}  # members with unread messages to them alone
        self.quantum = min(env.config.stable_bytes, env.config.window // 4)  # bytes between two questions to one member
        self.read: Marks = {}  # per member, how far the application here has read its messages to this member alone
        self.asked: dict[Address, deque[int]] = {}  # the numbers in their open requests, ascending
        self.full = FullWindow(env.config) if env.config.slow_exclude < NEVER else None

    # -- sending

    def down(self, run: Run) -> None:
        self.below.append(run)
        if run.origin is None:
            return
        if run.dest is None:
            self.multicasts.enter(run)
            if self.full is not None:
                self._watch(self.full)
        elif not run.heads:  # else it is another layer's
            self._to_one(run.dest, run)

    def _to_one(self, dest: Address, run: Run) -> None:
        if dest not in self.members and MEMBERSHIP in self.env.services:
            self.above.append(FreedTo(dest, None))  # no window counts messages to an outsider
            return
        sent = self.to_one.get(dest)
        if sent is None:
            sent = self.to_one[dest] = SentRuns(self.run_min)
        if not sent.unasked_bytes:
            self.wake_at(self.env.now + self.env.config.stable_period)
        sent.enter(run)
        if sent.unasked_bytes >= self.quantum:
            self._ask(dest, sent)

    def _ask(self, dest: Address, sent: SentRuns) -> None:
        sent.unasked_bytes, sent.asked_at = 0, self.env.now
        if dest != self.env.me:
            self.tell(dest, ReadReq(sent.runs[-1][0]))

    def timer(self) -> None:
        """Ask the receivers with so few bytes in their windows that this member did not ask them at once.  Look at a
        window that stays full."""
        self.wake = NEVER
        for dest, sent in self.to_one.items():
            if sent.unasked_bytes or (sent.window_bytes and self._ask_again_at(sent) <= self.env.now):
                self._ask(dest, sent)
            if sent.window_bytes:
                self.wake_at(self._ask_again_at(sent))
        if self.full is not None:
            if self.full.look_at <= self.env.now:
                self._look(self.full)
            self.wake_at(self.full.look_at)

    def _ask_again_at(self, sent: SentRuns) -> int:
        """The time to ask a receiver once more.  Without a group an unacknowledged question shows that the peer is
        gone; in a group a view shows this.  Where views are hints, the receiver may have forgotten the question,
        because its view was without this member."""
        return NEVER if self.agreed else sent.asked_at + self.env.config.heartbeat_timeout

    # -- a window that stays full

    def _watch(self, full: FullWindow) -> None:
        if full.note(self.multicasts.window_bytes, self.env.now):
            self.wake_at(full.look_at)

    def _on_report(self, full: FullWindow, stability: Stability) -> None:
        for wish in full.reported(stability.slowest, stability.idle, self.env.now):
            self._expel(wish)
        self._watch(full)

    def _look(self, full: FullWindow) -> None:
        """Look at a window that stays full.  A missing report of the coordinator has one of two causes: the coordinator
        does not answer, or the view changes and some member does not answer."""
        coordinator = self.members[0]
        for wish in full.look(self.members if self.blocked else (coordinator,), self.env.now):
            self._expel(wish)
        if coordinator == self.env.me:
            self.below.append(SlowestWanted())

    def _expel(self, wish: Expel) -> None:
        if wish.member != self.env.me:
            self.below.append(wish)

    # -- receiving

    def up(self, run: Run) -> None:
        head = run.head
        if isinstance(head, ReadReq):
            self.on_read_req(head, run.src)
        elif isinstance(head, Read):
            self.on_read(head, run.src)
        else:
            self.above.append(run)

    def on_read_req(self, req: ReadReq, sender: Address) -> None:
        asked = self.asked.get(sender)
        if asked is None:
            if sender not in self.members and self._outsiders_asked() >= self.env.config.unicast_peers_max:
                self.env.drop("too many read requests")
                return
            asked = self.asked[sender] = deque()
        if len(asked) >= READ_REQUESTS_MAX:
            asked.pop()  # the later request includes the earlier one
        asked.append(req.below)
        self._answer(sender)

    def _outsiders_asked(self) -> int:
        return len([asker for asker in self.asked if asker not in self.members])

    def _answer(self, sender: Address) -> None:
        asked, read = self.asked.get(sender), self.read.get(sender, 1)
        if not asked or asked[0] > read:
            return
        while asked and asked[0] <= read:
            asked.popleft()
        if not asked:
            del self.asked[sender]
        self.tell(sender, Read(read))

    def on_read(self, read: Read, receiver: Address) -> None:
        sent = self.to_one.get(receiver)
        if sent is not None and sent.free(read.below):
            self._freed_to(receiver, sent)

    def _freed_to(self, receiver: Address, sent: SentRuns) -> None:
        self.above.append(FreedTo(receiver, sent.freed_bytes))

    # -- messages that the others and the application have consumed

    def down_event(self, event: Event) -> None:
        if isinstance(event, Undelivered):
            self._undelivered(event)
            return
        self.below.append(event)
        if isinstance(event, Consumed):
            for sender, mark in event.unicasts.items():
                self._consumed(sender, mark)

    def _consumed(self, sender: Address, mark: int) -> None:
        if sender == self.env.me:
            self.on_read(Read(mark), sender)
        elif sender in self.read or sender in self.members or self._outsiders_read() < self._outsiders_max():
            # The sender may be in a view that is not installed here yet, and this may be the last read of its messages.
            self.read[sender] = max(mark, self.read.get(sender, 1))
            self._answer(sender)

    def _outsiders_max(self) -> int:
        """The number of processes outside the view whose read positions are remembered.  Before its first view all
        members are outside for a joiner, and without a group all processes are: a forgotten position would leave a
        window full."""
        return MEMBERS_MAX if self.agreed else self.env.config.marks_max

    def _outsiders_read(self) -> int:
        return len([sender for sender in self.read if sender not in self.members])

    def up_event(self, event: Event) -> None:
        self.above.append(event)
        if isinstance(event, Stability):
            if self.multicasts.free(event.consumed):
                self.above.append(Freed(self.multicasts.freed_bytes))
            if self.full is not None:
                self._on_report(self.full, event)
        elif isinstance(event, Undelivered):
            self._undelivered(event)
        elif isinstance(event, Block):
            self.blocked = True
        elif isinstance(event, NewView):
            self._install(event.view.members)
        elif isinstance(event, ConnectionClosed):
            if self.to_one.pop(event.peer, None) is not None:
                self.above.append(FreedTo(event.peer, None))
        elif isinstance(event, Ended):
            sent = self.to_one.get(event.peer)
            if sent is not None and sent.window_bytes:
                self._ask(event.peer, sent)  # its process may have crashed before it read them
        elif isinstance(event, Excluded):
            self.multicasts, self.to_one, self.asked = SentRuns(self.run_min), {}, {}
            self.full, self.wake = None, NEVER

    def _undelivered(self, event: Undelivered) -> None:
        """These messages leave the window: their receiver will not read them."""
        sent = self.to_one.get(event.to)
        if sent is not None:
            sent.give_up(event.numbers)
            self._freed_to(event.to, sent)

    def _install(self, members: tuple[Address, ...]) -> None:
        self.members, self.blocked = members, False
        if self.full is not None:
            self.full.installed()
        if GOSSIP not in self.env.services:  # otherwise a sender outside this view may have this member in its own
            self.read = {sender: mark for sender, mark in self.read.items() if sender in members}
        self.asked = {sender: asked for sender, asked in self.asked.items() if sender in members}
        for receiver in [receiver for receiver in self.to_one if receiver not in members]:
            del self.to_one[receiver]
            self.above.append(FreedTo(receiver, None))

    def gauges(self) -> dict[str, int]:
        return {
            "window_bytes": self.multicasts.window_bytes,
            "unicast_bytes": sum(sent.window_bytes for sent in self.to_one.values()),
        }
