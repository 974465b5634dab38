"""The channel: the membership of one process in a group, for asyncio programs.  Guide: docs/guides/channel.md."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Final, Self

from pygroups.core.address import Address
from pygroups.core.errors import ChannelClosed, UsageError
from pygroups.core.limits import ENTRY_BYTES
from pygroups.drivers.member import Member
from pygroups.journal.schema import MARKS

from .channel_events import Event, Left, View
from .loop_check import EXIT, LEAVE, READ, READY, SEND, SEND_MANY, SEND_NOWAIT, WAIT, check_loop
from .options import Options, with_parameters_of
from .rejoin import Incarnations
from .sending.demands import Payload, Until
from .sending.outbox import Outbox, Top
from .session import Session
from .statistics import statistics

NOT_JOINED: Final = "the channel has not joined its group: use it inside `async with`"


class Channel:
    """A member of `group`, from the start of `async with` until the leave.

    Iteration over a channel gives one ordered stream of events: Message, View, MergeView, Gap, Suspected, Slow,
    Blocked, Unblocked, Undelivered, JournalLost and Left.

    `profile`: "total" (one order for all members, the default), "fifo" (the order of each sender), "uniform" or
    "uniform-fifo" (the same two, with views that a majority decides: what any member delivered, all survivors of the
    majority deliver), "total1999" (as total, by the protocol of 1999 over datagrams), "gossip" (for many processes:
    with high probability, and gaps are announced), or "unicast": two processes without a group,
    opened with `Channel(None, profile="unicast")`; see `send`.
    Guide: docs/guides/choosing-a-profile.md.  `name`: the member's name,
    unique in the group; by default made from the host name and the process id, with random characters if the process id
    is below 1,000.  With `journal`, where a majority decides and the group is on one machine, it is first of all the
    name of a crashed member, for which this one then answers.  `bind`: the address to listen on, `host:port`, by
    default a free port of 127.0.0.1; an address outside loopback needs `secret`, or `insecure=True`.
    `secret`: the keys of the group, which all members need, as a
    path (pathlib.Path) of a file that `pygroups secret new FILE` makes, the text of such a file, or at least 16 random
    bytes; everything that the members send is then encrypted and authenticated.  Guide: docs/guides/secret.md.
    `advertise`: the address that the other members connect to, if that address differs from `bind`; port 0 is the port
    of `bind`.  `transport`: "tcp" (the default, but in profile "total1999"), "udp", or
    "udp:239.1.2.3:7000" for IP multicast; all members need the same one.  `discovery`: where members find each other:
    "dir:/path" (the same folder for all processes, by default one below /tmp), "host:port,host:port", "dns:name:port",
    "udp:239.1.2.3:7001", "cache:/path", or a list of these.
    `min_members`: the join waits until the view has so many members; meanwhile `send` raises ChannelClosed.
    `expect`: the number of all processes that may take part in the first view, for a group in which a majority decides
    each view.  `rejoin`: after an exclusion this member joins again, as a new incarnation with another address, and the
    events go on: `Left("excluded")`, the state, a View.  `journal`: a folder for the log of this member's events;
    `journal_payloads` adds the messages, `journal_fsync` calls fsync for each write.  `state`: an object with `async
    get_state()` and `async set_state(data)`, or with `async set_state_chunks(chunks)` for a large state.  `on_merge`:
    the side whose state all members take when the sides of a network split merge: "keep" (none), "primary", or a
    function that gets a tuple of MergeSide and returns one of them.  `events="none"`: for a program that only sends;
    the channel keeps no events, and every message counts as read.  `config`: limits and timeouts.

    Raises UsageError for a wrong option.  `async with` raises
    NameTaken or Refused if the group refuses this member, and UsageError if an address or a folder of an option cannot
    be used.
    """

    @with_parameters_of(Options)
    def __init__(self, options: Options) -> None:
        self._options = options
        self._incarnations: Incarnations | None = None
        self._session: Session | None = None  # of the newest incarnation that has joined
        self._current: Iterator[Event] = iter(())  # the rest of the run that is being read
        self._top: Top  # these four belong to the session; `send` uses them directly, for speed
        self._out: Outbox
        self._member: Member
        self._birth = 0

    def __repr__(self) -> str:
        session = self._session
        if session is not None and session.receivers is not None:
            return f"<Channel without a group, {session.me} at {session.network.contact or 'no place yet'}>"
        if session is None or session.view is None:
            return f"<Channel {self.group!r}, not joined>"
        if session.left.done():
            return f"<Channel {self.group!r} {session.me}, left>"
        number, members = session.view.id.number, len(session.view.members)
        return f"<Channel {self.group!r} {session.me}, view {number} of {members}>"

    # -- the member and its group

    @property
    def address(self) -> Address:
        """The address of this member: its name, and a random incarnation, which is new for each channel and each
        rejoin."""
        return self._opened().me

    @property
    def group(self) -> str | None:
        """The group's name; None for a channel without a group."""
        return self._options.group

    @property
    def view(self) -> View:
        """The newest view of this member.  The program may not have read the event of this view yet.  Raises
        ChannelClosed before the channel has joined, and for a channel without a group."""
        session = self._opened()
        if session.view is None:
            raise ChannelClosed(
                NOT_JOINED
                if session.receivers is None
                else "a channel without a group has no view: name each receiver with to="
            )
        return session.view

    @property
    def contact(self) -> str:
        """The place where this process listens, "host:port".  A channel without a group takes this place as `to`."""
        return self._opened().network.contact

    @property
    def is_coordinator(self) -> bool:
        """Whether this member is the first member of the newest view.  In a network split each side has a
        coordinator."""
        return self.view.coordinator == self.address

    async def ready(self) -> None:
        """Wait until this member is in a view and its state is set.  Without `state=` there is no state to wait for.

        Raises the error of set_state(), if there was one; StateLost if all members that had the state are gone;
        ChannelClosed if the channel leaves first.  The program need not read events for this.
        """
        await (await self._joined(READY).settled()).ready()

    def _opened(self) -> Session:
        if self._session is None:
            raise ChannelClosed(NOT_JOINED)
        if self._session.elsewhere is not None:
            raise ChannelClosed(self._session.elsewhere)
        return self._session

    def _joined(self, remedy: str) -> Incarnations:
        """The incarnations, for calls that a join in progress delays."""
        self._here(remedy)
        assert self._incarnations is not None
        return self._incarnations

    def _use(self, session: Session) -> None:
        """From now on messages are sent by this session."""
        self._session = session
        self._out, self._member, self._top = session.sending, session.member, session.sending.top
        self._birth = session.sending.birth

    def _here(self, remedy: str) -> Session:
        """The session, for calls that change it.  They must come from the event loop that opened the channel; the error
        for another loop names the remedy."""
        session = self._opened()
        check_loop(session.loop, remedy)
        return session

    # -- sending

    async def send(
        self,
        payload: Payload,
        *,
        to: Address | str | None = None,
        until: Until | None = None,
        timeout: float | None = None,
    ) -> int:
        """Send a message to all members, or `to` one member.  Returns the number of the message.

        Without a group `to` is the place of a process, "host:port", or the sender of a message.  `send` then waits
        until the process there has answered, and raises NotSent if no process answers.

        `send` waits while the window is full.  With `until="delivered"` `send` also waits until the message is in this
        member's event queue, with `until="read"` until this program has asked for the event after the message, and with
        `until="stable"` until the message is in the event queue of every member of the view.
        With `to`, `until="delivered"` waits until the receiver has acknowledged the message; "read" and "stable" are
        refused.  The task that reads the events must not wait for `until="read"`: `send` raises Unknown after 10 s.
        With `rejoin=True` the messages of an excluded member wait until the member has joined again.  `timeout` limits
        the whole wait, in seconds.  After NotSent (Timeout, WouldDeadlock) the message was certainly not sent.  After
        Unknown the message may still be delivered.  Raises DeliveredElsewhere if only the other side of a network split
        delivered the message, ChannelClosed if the channel is not in its group, and UsageError for a wrong argument,
        such as a payload over `payload_max` bytes.
        """
        if type(payload) is bytes and to is None and until is None and timeout is None and self._session is not None:
            out = self._out
            left = out.credit - len(payload) - ENTRY_BYTES
            if left >= 0:
                if not self._member.due:
                    self._here(SEND)
                    self._member.schedule()
                number = self._top.accept(payload)
                out.credit = left
                return out.numbered(number) if self._birth else number
        if isinstance(to, str):
            session = self._here(SEND)
            return await session.receivers_for(to).send(session.sending, payload, to, until, timeout)
        return await self._joined(SEND).send(payload, to, until, timeout)

    def send_nowait(self, payload: Payload, *, to: Address | str | None = None) -> int:
        """Send a message without waiting.  Returns the number of the message, or raises WouldBlock if the window is
        full, or if the process at "host:port" has not answered yet.  Raises the other errors of `send` that need no
        wait."""
        session = self._joined(SEND_NOWAIT).open_now()
        if isinstance(to, str):
            return session.receivers_for(to).send_nowait(session.sending, payload, to)
        return session.sending.send_nowait(payload, to)

    async def send_many(
        self, payloads: Iterable[Payload], *, until: Until | None = None, timeout: float | None = None
    ) -> list[int]:
        """Send all `payloads` to all members, in order.  Returns their numbers.  `until` applies to the last message.

        NotSent.accepted is the number of messages that were sent before the error.
        """
        return await self._joined(SEND_MANY).send_many(payloads, until, timeout)

    async def wait(self, number: int, *, until: Until | None = None, timeout: float | None = None) -> None:
        """Wait until this member's message `number` is delivered, read or stable, as `send(until=...)` does.

        `number` is the return value of a send.  Without `until` a message to all members is awaited until it is stable,
        and a message to one member until its receiver has acknowledged it.  `timeout` is in seconds.  Raises Unknown if
        the timeout expires, if the channel leaves its group first, if the channel has joined again since, or if the
        receiver leaves before the acknowledgement.  Raises DeliveredElsewhere if only the other side of a network split
        delivered the message, and UsageError for a number that no message has.  After the receiver has left, `wait`
        raises Unknown for each message to this receiver.
        """
        await self._here(WAIT).sending.wait(number, until, timeout)

    # -- reading

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        for event in self._current:
            return event
        self._current = await self._joined(READ).next(whole=False)
        return next(self._current)

    def batches(self) -> AsyncIterator[list[Event]]:
        """The same events in lists.  A list has all messages that have arrived in one view, or one event of another
        kind."""
        return Batches(self._rest, lambda: self._joined(READ))

    def _rest(self) -> list[Event]:
        rest, self._current = list(self._current), iter(())
        return rest

    # -- joining and leaving

    async def __aenter__(self) -> Self:
        if self._session is not None:
            raise UsageError("this channel was opened before: create a new Channel")
        self._incarnations = Incarnations(self._options, self._use)
        await self._incarnations.join()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._session is not None and self._session.elsewhere is not None:
            return  # the process that opened it leaves
        incarnations = self._joined(EXIT)
        await incarnations.leave()
        session = incarnations.session
        if session.crash is not None and error is None:
            raise session.crash

    async def leave(self) -> Left:
        """Leave the group in an orderly way, within `leave_timeout`.  Returns the last event, which iteration also
        gives.  A member that gives its state to joiners finishes this first, for up to `leave_timeout` more.

        From now on the channel accepts no messages, and all messages count as read here.
        """
        return await self._joined(LEAVE).leave()

    # -- statistics and marks

    def stats(self) -> dict[str, Any]:
        """Counters, gauges and the bound of the memory, as plain values that JSON can represent."""
        return statistics(self._opened())

    def rotate(self) -> None:
        """Read the file of `secret=` again at once.  Without this call a changed file is read within a second.

        Raises UsageError if the channel has no such file, or if the file cannot be used; the keys stay as they were.
        """
        file = self._options.secret_file
        if file is None:
            raise UsageError("rotate() needs a file: open the channel with secret=Path('FILE')")
        if file.read():
            self._opened().directory.refresh()

    def mark(self, kind: str, reason: str = "", members: Sequence[Address] = (), detail: str = "") -> None:
        """Write a mark into the journal: `fault` (with the members concerned), `heal` or `quiet`.

        The audit uses these marks, for instance to judge whether members were suspected without a fault.  Raises
        UsageError for another kind, and without `journal=DIR`.
        """
        if kind not in MARKS:
            raise UsageError(f"mark {kind!r} is not known: use {', '.join(MARKS)}")
        if self._options.folder is None:
            raise UsageError("mark() needs a journal: open the channel with journal=DIR")
        if not (isinstance(reason, str) and isinstance(detail, str)):
            raise UsageError("mark() takes reason and detail as text")
        if isinstance(members, str) or not all(isinstance(member, Address) for member in members):
            raise UsageError("mark() takes members as addresses, from channel.view.members")
        session = self._opened()
        fields = {"reason": reason or None, "members": tuple(members) or None, "detail": detail or None}
        session.member.record(kind, {name: value for name, value in fields.items() if value is not None})
        if kind == "quiet":
            session.quiet = True
            session.member.write_statistics()


class Batches:
    """A channel's events in lists.  The iterator stays usable after the cancellation of a task that waits for a
    list."""

    def __init__(self, rest: Callable[[], list[Event]], joined: Callable[[], Incarnations]) -> None:
        self._rest = rest
        self._joined = joined

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[Event]:
        return self._rest() or list(await self._joined().next(whole=True))
