"""FRAGMENTATION: a payload that is larger than a run travels in pieces, each a run of its own, and arrives whole.

All pieces carry the number of their message, and an index from 1.  The last piece counts as one message, the others as
none.  An origin sends one large payload at a time to each destination, and nothing after it until its last piece has
arrived here (a multicast) or was handed down (a message to one member).  A view that ends before that drops the pieces
at every member, and the origin sends all of them again in the next view.  Note: docs/layers/fragmentation.md.
"""

from __future__ import annotations

from typing import ClassVar

from pygroups.core.address import Address
from pygroups.core.events import (
    Block,
    ConnectionClosed,
    DeliveredTo,
    Event,
    Excluded,
    FreedTo,
    Leave,
    NewView,
    Undelivered,
)
from pygroups.core.layer import NEVER, Env, PassingLayer
from pygroups.core.limits import ENTRY_BYTES
from pygroups.core.run import Run, pack
from pygroups.core.services import MEMBERSHIP
from pygroups.core.tables import Tables, under

from .pieces import Confirmations, GivenUp, Outgoing, PiecesAsk, PiecesHere, PiecesMissed
from .pieces_in import Collecting


class Fragmentation(PassingLayer):
    """Splits large payloads into pieces, and joins the pieces at the receiver."""

    __slots__ = (
        "ahead",
        "blocked",
        "collecting",
        "confirmations",
        "ended",
        "freed",
        "leave",
        "outgoing",
        "receivers",
        "run_min",
        "size",
        "through",
    )

    needs: ClassVar[frozenset[str]] = frozenset({"FIFO_UNICAST"})
    needs_in_group: ClassVar[frozenset[str]] = frozenset({"FIFO_MULTICAST", "BLOCK_AT_VIEW"})
    gives: ClassVar[frozenset[str]] = frozenset({"ANY_SIZE"})
    heads: ClassVar[tuple[type, ...]] = (PiecesHere, GivenUp, PiecesMissed, PiecesAsk)
    events_down: ClassVar[tuple[type[Event], ...] | None] = (Leave,)

    tables: ClassVar[Tables] = {
        "freed": "members",
        "freed[]": "fixed",
        "outgoing": "one_more",
        "receivers": "members",
        "through": "members",
        **under("collecting", Collecting.tables),
        **under("confirmations", Confirmations.tables),
        **under("outgoing[]", Outgoing.tables),
    }

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        config = env.config
        self.size = config.run_bytes + 2 * ENTRY_BYTES  # of a piece, and of the largest payload that is not cut
        self.run_min = config.run_bytes_min
        self.ahead = max(2, config.window // self.size)  # pieces on their way that some receiver has not confirmed
        self.receivers: tuple[Address, ...] = ()  # the other members of the view
        self.blocked = True  # no view, or one that is about to end
        self.ended = False  # this member has left its group
        self.outgoing: dict[Address | None, Outgoing] = {}  # by destination; None: all members
        self.collecting = Collecting(self, config.payload_max + 2 * ENTRY_BYTES, max(1, self.ahead // 4))
        self.freed: dict[Address, tuple[int, int]] = {}  # by receiver, the bytes freed by FLOW_CONTROL and here
        self.through: dict[Address, int] = {}  # by receiver: the last large message handed down to it alone
        self.confirmations = Confirmations()  # without a group
        self.leave: Leave | None = None  # the application leaves: passed on when no piece to one member waits here

    # -- sending

    def down(self, run: Run) -> None:
        if run.origin is None or run.heads:
            self.below.append(run)  # another layer's
            return
        box = self.outgoing.get(run.dest)
        if box is not None:
            box.behind.append(run)
        elif len(run.body) <= self.size or run.count > 1:
            self.below.append(run)
        else:
            self._begin(run)

    def _begin(self, run: Run) -> None:
        self.env.count("payloads sent in pieces")
        self.outgoing[run.dest] = Outgoing(run, self.size)
        self._go_on(run.dest)

    def _go_on(self, dest: Address | None) -> None:
        """Hand down the pieces that may leave now."""
        box = self.outgoing[dest]
        if dest is None and self.blocked:
            return  # all of them leave again in the next view
        if dest == self.env.me:
            upto = box.pieces
        else:
            upto = min(box.pieces, self.ahead + box.lowest(self.receivers if dest is None else (dest,)))
        while box.sent < upto:
            box.sent += 1
            self.below.append(box.piece(box.sent, self.size))
        if MEMBERSHIP not in self.env.services:
            box.asked_at = self.env.now
            self.wake_at(self.env.now + self.env.config.heartbeat_timeout)
        if dest is not None and box.sent == box.pieces:
            self._finished(dest)  # UNICAST2 brings them, or reports the message

    def _finished(self, dest: Address | None) -> None:
        """All pieces of the large run have left.  Now the runs behind the large run leave, up to the next large run."""
        box = self.outgoing.pop(dest)
        behind = box.behind
        if dest is not None:
            self._note_through(dest, box.run.first)
            if box.sent == box.pieces and dest != self.env.me and MEMBERSHIP not in self.env.services:
                self.confirmations.sent(dest, box.run.first, box.pieces, self.env.now)
        while behind:
            run = behind.popleft()
            self.down(run)
            if dest in self.outgoing:
                self.outgoing[dest].behind.extend(behind)
                return
        self._leave_if_all_left()

    def _note_through(self, dest: Address, message: int) -> None:
        """Remember the large message also after `dest` has left the view: UNICAST2 may give it up later."""
        self.through.pop(dest, None)
        if len(self.through) >= self.env.config.unicast_peers_max:
            del self.through[next(iter(self.through))]
        self.through[dest] = message

    def on_pieces_here(self, here: PiecesHere, receiver: Address) -> None:
        dest = receiver if here.alone else None
        if here.alone and self.confirmations.is_whole(receiver, here.message, here.upto):
            self._settle(receiver, here.message)
            return
        box = self.outgoing.get(dest)
        if box is None or box.run.first != here.message:
            return  # the last piece, or a piece of an earlier view
        if here.upto > box.sent:
            self.env.drop("pieces that were not sent")
            return
        box.arrived[receiver] = max(here.upto, box.arrived.get(receiver, 0))
        self._go_on(dest)

    # -- receiving

    def rise(self, run: Run) -> Run | None:
        if not run.heads:  # payloads
            if not run.index:
                return run
            self._collect(run)
            return None
        head = run.head
        if isinstance(head, PiecesHere):
            self.on_pieces_here(head, run.src)
        elif isinstance(head, GivenUp):
            self.collecting.on_given_up(head, run.src)
        elif isinstance(head, PiecesMissed):
            self.on_pieces_missed(head, run.src)
        elif isinstance(head, PiecesAsk):
            self.collecting.on_pieces_ask(head, run.src)
        else:
            return run
        return None

    def _collect(self, run: Run) -> None:
        body = self.collecting.collect(run)
        if body is None:
            return
        self._whole(run, body)
        if MEMBERSHIP not in self.env.services and run.origin is not None and run.origin != self.env.me:
            self.collecting.confirm_whole(run.origin, run.first, run.index)

    def _whole(self, last: Run, body: bytes) -> None:
        """Hand up the message at the place of its last piece."""
        self.above.append(
            Run(last.src, last.dest, last.heads, last.origin, last.first, 0, 1, body, last.stream, last.seq)
        )
        box = self.outgoing.get(None)
        if last.origin == self.env.me and last.dest is None and box is not None and box.run.first == last.first:
            self._finished(None)

    # -- without a group: an acknowledged last piece does not prove that the message arrived whole

    def _settle(self, receiver: Address, message: int) -> None:
        """The fate of a large message is known: those behind it count as far as they are acknowledged."""
        below = self.confirmations.settle(receiver, message)
        if below is not None:
            self.above.append(DeliveredTo(receiver, below))

    def on_pieces_missed(self, missed: PiecesMissed, receiver: Address) -> None:
        box = self.outgoing.get(receiver)
        waits = box is not None and box.run.first == missed.message
        if MEMBERSHIP in self.env.services or not (waits or missed.message <= self.through.get(receiver, 0)):
            self.env.drop("pieces that were not sent")
            return
        me, number = self.env.me, missed.message
        run = box.run if box is not None and waits else Run(me, receiver, (), me, number, 0, 1)
        self.env.record("undelivered", **run.columns(), peer=receiver, connection=None)
        self.above.append(Undelivered(receiver, range(number, number + 1)))
        if waits:
            self._give_room_back(receiver, max(len(run.body), self.run_min))
            self._finished(receiver)
        else:
            self.below.append(Undelivered(receiver, range(number, number + 1)))  # FLOW_CONTROL has it in the window
            self._settle(receiver, number)

    def _ask(self) -> None:
        """Ask the receivers that have confirmed no further piece for a long time."""
        for dest, box in self.outgoing.items():
            if dest is None or dest == self.env.me:
                continue
            when = box.asked_at + self.env.config.heartbeat_timeout
            if when <= self.env.now:
                self._tell_behind(dest, PiecesAsk(box.run.first), box.run.first)
                box.asked_at, when = self.env.now, self.env.now + self.env.config.heartbeat_timeout
            self.wake_at(when)
        for dest, message in self.confirmations.to_ask(self.env.now, self.env.config.heartbeat_timeout):
            self._tell_behind(dest, PiecesAsk(message), message)
        if self.confirmations.asked_at:
            self.wake_at(min(self.confirmations.asked_at.values()) + self.env.config.heartbeat_timeout)

    def timer(self) -> None:
        self.wake = NEVER
        self.collecting.forget_the_silent()
        if MEMBERSHIP not in self.env.services:
            self._ask()

    # -- membership

    def down_event(self, event: Event) -> None:
        if isinstance(event, Leave):
            self.leave = event
            self._leave_if_all_left()
        else:
            self.below.append(event)

    def _leave_if_all_left(self) -> None:
        if self.leave is not None and not self.outgoing:
            self.below.append(self.leave)
            self.leave = None

    def up_event(self, event: Event) -> None:
        if isinstance(event, Block):
            self.blocked = True
        elif isinstance(event, Excluded):
            self._end()
        elif isinstance(event, Undelivered):
            self._give_up(event.to, event.numbers)
            return
        elif isinstance(event, FreedTo):
            self._freed_to(event.to, event.total_bytes)
            return
        elif isinstance(event, DeliveredTo):
            event = DeliveredTo(event.to, self.confirmations.delivered(event.to, event.below))
        self.above.append(event)
        if isinstance(event, ConnectionClosed):
            self._closed(event.peer)
        if isinstance(event, NewView):
            self._install(event)

    def _closed(self, peer: Address) -> None:
        """Without a group: nothing of the messages to `peer` that wait here gets through on the closed connection."""
        for number in self.confirmations.forget(peer):
            self.above.append(Undelivered(peer, range(number, number + 1)))
        if peer in self.outgoing:
            self._give_up(peer, range(0))

    def _install(self, event: NewView) -> None:
        """Drop the pieces of multicasts of the previous view.  Also begin again with the messages to single members
        that come from another view: there this member was an outsider, whose pieces may be forgotten."""
        members = event.view.members
        self.blocked = False
        self.receivers = tuple(member for member in members if member != self.env.me)
        self.collecting.install(self.receivers)
        self.freed = {dest: freed for dest, freed in self.freed.items() if dest in members}
        for dest in [dest for dest in self.outgoing if dest is not None and dest not in members]:
            self._give_up(dest, range(0))
        for dest in [dest for dest in self.outgoing if dest is not None and dest not in event.transitional]:
            self._begin_again(self.outgoing[dest])
            self._go_on(dest)
        box = self.outgoing.get(None)
        if box is not None:
            self._begin_again(box)
            if any(gap.origin == self.env.me and gap.next > box.run.first for gap in event.gaps):
                self._finished(None)  # another subgroup has delivered the whole message
            else:
                self._go_on(None)

    def _begin_again(self, box: Outgoing) -> None:
        if box.sent:
            self.env.count("payloads sent again from their first piece")
        box.begin_again()

    def _give_up(self, dest: Address, numbers: range) -> None:
        """Report the messages that `dest` will not get to the application: `numbers`, and all that are queued here."""
        box = self.outgoing.pop(dest, None)
        begun = self.through.get(dest, 0)
        if box is not None:
            begun = box.run.first if box.sent else begun
            held = [box.run, *box.behind]
            for run in held:
                self.env.record("undelivered", **run.columns(), peer=dest, connection=None)
            numbers = range(numbers.start if numbers else held[0].first, held[-1].next)
            self._give_room_back(dest, sum([max(len(run.body), self.run_min) for run in held]))
        if numbers and numbers.start <= begun and not self.ended and dest != self.env.me:
            self._tell_behind(dest, GivenUp(begun), begun)  # also outside this view: it may return with some pieces
        if numbers:
            self.above.append(Undelivered(dest, numbers))
        self._leave_if_all_left()

    def _give_room_back(self, dest: Address, size: int) -> None:
        """The top counts `size` bytes in the window of `dest`, and FLOW_CONTROL below never got the messages."""
        total, here = self.freed.get(dest, (0, 0))
        self.freed[dest] = (total, here + size)
        self._freed_to(
            dest,
            total if dest in self.receivers or dest == self.env.me or MEMBERSHIP not in self.env.services else None,
        )

    def _freed_to(self, dest: Address, total: int | None) -> None:
        """FLOW_CONTROL has freed `total` bytes of the window of `dest`; the bytes that were given up here are added."""
        if total is None:
            self.freed.pop(dest, None)
            self.above.append(FreedTo(dest, None))
            return
        _, here = self.freed.get(dest, (0, 0))
        self.freed[dest] = (total, here)
        self.above.append(FreedTo(dest, total + here))

    def _tell_behind(self, dest: Address, head: object, first: int) -> None:
        """Send `head` to `dest` behind the pieces, in the lane of the pieces: on a run with an empty list of
        payloads."""
        me = self.env.me
        self.below.append(Run(me, dest, (head,), me, first, 0, 1, pack([])))

    def _end(self) -> None:
        self.leave, self.ended = None, True
        for dest in list(self.outgoing):
            if dest is not None:
                self._give_up(dest, range(0))
        self.blocked, self.outgoing, self.wake = True, {}, NEVER
        self.collecting.incoming = {}

    def gauges(self) -> dict[str, int]:
        boxes = self.outgoing.values()
        return {
            "pieces_to_send": sum(box.pieces - box.sent for box in boxes),
            "waiting": sum(len(box.behind) for box in boxes),
            "collected_bytes": sum(message.size for message in self.collecting.incoming.values()),
        }
