"""The session of one incarnation: its member, inbox, outbox and state, and the join and the leave."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Sequence
from typing import ClassVar, Final

from pygroups.core import events as core
from pygroups.core.address import Address
from pygroups.core.driver_events import Ended
from pygroups.core.errors import ChannelClosed, Excluded, JournalFailed, Refused, UsageError
from pygroups.core.layer import Env
from pygroups.core.limits import SECOND, UNREAD_EVENTS_MAX
from pygroups.core.merge_events import StaysApart
from pygroups.core.merge_side import choice_of
from pygroups.core.run import Run
from pygroups.core.services import GOSSIP, PRIMARY
from pygroups.core.stack import Stack
from pygroups.core.state_events import StateArrived, StateTaken, StateWanted
from pygroups.core.tables import Tables, under
from pygroups.core.top import Delivered, Reached, Top
from pygroups.drivers.contacts import parse_contact
from pygroups.drivers.discovery.options import LISTED_MAX
from pygroups.drivers.forks import watched
from pygroups.drivers.handshake import OtherSecret
from pygroups.drivers.late_store import LateStore
from pygroups.drivers.local_socket import LocalSocket
from pygroups.drivers.member import Member
from pygroups.drivers.rate_limited import RateLimitedLog
from pygroups.drivers.secret_file import SecretFile
from pygroups.layers.profiles import build_stack
from pygroups.wire.codec import Codec
from pygroups.wire.seal import FRAMES, Sealed

from .alone import alone
from .channel_events import JournalLost, Left, MergeView, View, gap_of, translated
from .endings import excluded, refusal, replaced
from .log import Log, apart
from .options import Options
from .platform import platform_of_the_loop
from .reading.inbox import Inbox, NoInbox
from .reading.items import Raised
from .sending.outbox import Outbox
from .sending.receivers import KnownReceivers, Reachable
from .state.states import States
from .tracing import trace_of
from .view_line import view_line
from .waits import Waits
from .watchdog import Watchdog

DRAIN_SECONDS: Final = 0.5  # for the last frames to reach the kernel


class Session:
    """One membership in a group.  The session receives the events that a turn has for the application."""

    tables: ClassVar[Tables] = {
        "options.chosen_profile.layers": "fixed",
        "options.discovery": LISTED_MAX,
        "options.sources.listed": LISTED_MAX,
        "options.sources.names": LISTED_MAX,
        "options.sources.to_all": LISTED_MAX,
        **under("options.secret_file", SecretFile.tables),
        "view.joined": "members",
        "view.left": "members_max",
        "view.members": "members",
        "view.transitional": "members",
        **under("member.late", LateStore.tables),
        **under("member.local", LocalSocket.tables),
        **under("reading", Inbox.tables),
        **under("receivers", KnownReceivers.tables),
        **under("refusals", RateLimitedLog.tables),
        **under("sending", Outbox.tables),
        **under("states", States.tables),
        **under("waits", Waits.tables),
        **under("watchdog", Watchdog.tables),
    }

    def __init__(self, options: Options) -> None:
        self.loop = loop = asyncio.get_running_loop()
        self.options = options
        self.platform = here = platform_of_the_loop()
        self.me = me = here.address(options)
        self.view: View | None = None
        self.leaving = False
        self.quiet = False  # the program has written the mark `quiet`, so the leave writes no statistics
        self.crash: BaseException | None = None
        self.unjournaled: JournalFailed | None = None  # the reason why this member leaves without its journal
        self.joined: asyncio.Future[None] = loop.create_future()
        self.left: asyncio.Future[Left] = loop.create_future()
        self.closing: asyncio.Task[Left] | None = None
        self.rejoins: Callable[[Session], bool] = never  # called at an exclusion: does a new incarnation join?
        self.excluded = excluded("")  # the sentence for an exclusion
        self.elsewhere: str | None = None  # set in a forked child: the message of ChannelClosed there
        config = options.limits
        self.network = here.network(me, options)
        self.directory = here.discovery(me, options, self.network)
        self.log = Log(me.name, options.journal_name)
        self.member = self._new_member()
        stack = self.member.stack
        self._connect()
        self.refusals = RateLimitedLog(self.log, lambda: here.clock.now() / SECOND)
        self.states = States(options.state, self.member, config, self.member.loop.call_later, self._broke, self.log)
        inbox = Inbox if options.events == "all" else NoInbox
        self.reading = inbox(
            me,
            self.states,
            config,
            self.member.schedule,
            self.member.schedule_later,
            stack.env.drop,
            here.clock.now,
            here.lags(me),
        )
        self.sending = Outbox(
            _top(stack),
            self.member.schedule,
            self.reading,
            self._members,
            self.member.ask,
            self._delivery_waits_for,
        )
        self.waits = Waits(me, options, self.sending, self.reading, self.log, self._announced, self._alone)
        self.watchdog = Watchdog(self.waits, here.loop(), here.clock, self.log, config.heartbeat_timeout / SECOND)
        self.receivers = None if options.group is not None else KnownReceivers(self.network.meet, config.contacts_max)
        self.reachable = Reachable(self.network.knows)
        watched(self)
        here.ready(self)

    def _new_member(self) -> Member:
        here, me, options = self.platform, self.me, self.options
        journal, late = here.journal(me, options), self._late_store()
        stack = self._stack(journaling=journal is not None, late=late)
        member = Member(stack, self.network, self.directory, journal, self, here.loop(), here.clock)
        member.late = late
        if PRIMARY in options.chosen_profile.services:
            member.answers_for(here.former(me, options))
            member.local = here.local(me, options, member.ask, lambda: self.view.members if self.view else ())
        return member

    def _late_store(self) -> LateStore | None:
        """The folder of a late-join handler, in a profile with such handlers."""
        folder = self.options.late_folder
        if folder is None or GOSSIP not in self.options.chosen_profile.services:
            return None
        return LateStore(folder, self.platform.clock.wall(), lambda text: self.log.warning("%s", text))

    def _stack(self, *, journaling: bool, late: LateStore | None) -> Stack:
        options, here = self.options, self.platform
        env = Env(self.me, here.clock.now(), here.chance(self.me), options.limits, journaling=journaling)
        env.lossless = self.network.lossless
        env.archiving = options.journal_payloads
        if late is not None:
            env.kept, env.stored, late.stored = [], late.stored, ()
        env.expect = options.expect or 0
        env.on_merge, env.chooses = choice_of(options.on_merge, self._undecided)
        frame_bytes = options.carrier.frame_bytes(options.limits)
        trace, keys, group = trace_of(self.me), options.keys, options.journal_name
        seal = None if keys is None else Sealed(keys, FRAMES, group)
        return build_stack(options.chosen_profile, env, lambda heads: Codec(group, heads, frame_bytes, seal), trace)

    def _connect(self) -> None:
        member, network, directory = self.member, self.network, self.directory
        network.receive, network.happened, network.crashed = member.receive, member.happened, member.crash
        directory.happened = self._found
        network.count = directory.count = member.stack.env.count

    def _announced(self) -> str | None:
        """The address for the other members; None if it is that of bind=."""
        differs = self.network.bind.everywhere or self.options.advertise is not None
        return self.network.contact if differs else None

    def _alone(self) -> str | None:
        """The log line while this member is alone; None if its options expect no other machine or process."""
        if self.receivers is not None:
            return None
        return alone(self.options.sources, parse_contact(self.options.bind), self.network.contact)

    def _delivery_waits_for(self) -> tuple[Address, ...]:
        """The members for which layers below the top hold own messages back."""
        layers = self.member.stack.layers[1:]
        return tuple(dict.fromkeys([member for layer in layers for member in layer.waits_for()]))

    def _found(self, event: core.Event) -> None:
        if isinstance(event, OtherSecret):
            if not self.joined.done():
                self.joined.set_exception(Refused(event.detail))
            return
        self.waits.on_event(event)
        self.member.happened(event)

    def look_at_secret(self) -> None:
        """Read the file of the secret again if it has changed."""
        file = self.options.secret_file
        if file is not None and file.look():
            self.directory.refresh()  # the entry in the folder is sealed, too

    def _members(self) -> Container[Address]:
        """The processes to which this member can send."""
        if self.receivers is not None:
            return self.reachable
        return () if self.view is None else self.view.members

    def receivers_for(self, to: str) -> KnownReceivers:
        """The places of a channel without a group.  Raises UsageError in a group, where `to` must be an address."""
        if self.receivers is None:
            raise UsageError(f"to={to!r} is not an address: use one of channel.view.members, or a message's sender")
        return self.receivers

    # -- join and leave

    async def join(self) -> None:
        """Open network, discovery and journal, and join the group.  Raises Refused or NameTaken if the group
        refuses."""
        try:
            await self.network.open()
            self.directory.open(self.network.contact)
            self.member.stack.env.contact = self.network.contact
            self.member.stack.env.asks = self.directory.asks
            self.member.stack.env.keeps_state = self.options.state is not None
            if self.member.local is not None:
                await self.member.local.open()
            self.member.begin()
            self.watchdog.also = self.look_at_secret
            self.watchdog.start()
            if self.receivers is None:
                self.member.ask(core.Join())
            else:
                self._open()
            await self.joined
        except BaseException as error:
            self.watchdog.stop()
            self.member.close()
            self._end("left", f"the join failed: {error}" if isinstance(error, Exception) else "the join was given up")
            self.joined.cancel()  # ends the waits in ready()
            raise

    async def ready(self) -> None:
        """Wait until this member has joined and its state, if it keeps one, is set."""
        await asyncio.wait([self.joined])
        while not self.left.done() and (loading := self.states.loading) is not None:
            await self.states.load(loading)
        if self.states.lost is not None:
            raise self.states.lost
        if self.left.done():
            raise ChannelClosed("the channel has left its group")

    async def leave(self) -> Left:
        """Leave in an orderly way, then close everything.  Returns the last event."""
        begins, self.leaving = not self.leaving, True
        try:
            if begins:
                self.sending.close("the channel is leaving its group")
                self.reading.be_generous()
                await self._finish_giving()
                if not self.quiet:
                    self.member.write_statistics()
                self.member.ask(core.Leave())
            left = await asyncio.shield(self.left)
            if not self.member.closed:
                await self.network.drain(DRAIN_SECONDS)
        finally:
            self.watchdog.stop()
            self.states.stop()
            if self.receivers is not None:
                self.receivers.close()
            self.member.close()
            self._end("left")
        await asyncio.sleep(0)  # the connections close in the next pass of the loop, which can be its last pass
        return left

    async def _finish_giving(self) -> None:
        """Wait until the joiners have the states that this member gives, for `leave_timeout` at most."""
        reader = self.reading.reader
        reads = reader is not None and not reader.done() and reader is not asyncio.current_task()
        for wanted in () if reads else self.reading.due_requests():
            self.states.take(wanted)  # the program will not reach it, and has handled all that comes before it
        giving = asyncio.ensure_future(self.states.finish(reads=reads))
        ends: tuple[asyncio.Future[None], asyncio.Future[Left]] = (giving, self.left)
        try:
            patience = self.options.limits.leave_timeout / SECOND
            await asyncio.wait(ends, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        finally:
            giving.cancel()

    async def closed(self) -> None:
        """Wait until an excluded member has closed its connections and its journal."""
        if self.closing is not None:
            await asyncio.wait([self.closing])

    # -- the member's inbox

    def consumed(self) -> core.Consumed | None:
        return self.reading.consumption.take()

    def arrived(self, events: Sequence[Run | core.Event]) -> None:
        for event in events:
            if type(event) is Delivered:
                self.reading.put(event)
            elif type(event) is Reached:
                self.sending.on_reached(event)
            elif isinstance(event, core.DeliveredTo):
                self.sending.receipts.delivered(event.to, event.below)
            elif isinstance(event, core.NewView):
                self._on_view(event)
            elif isinstance(event, StateWanted):
                self._on_state_wanted(event)
            elif isinstance(event, StateTaken):
                self.states.on_taken(event)
            elif isinstance(event, StateArrived):
                self.states.on_arrived(event)
            elif isinstance(event, core.Excluded):
                self._on_excluded(event)
            else:
                self._on_news(event)

    def _on_news(self, event: Run | core.Event) -> None:
        """Handle suspicions, gaps, unacknowledged messages to single members, and other news."""
        if isinstance(event, Ended | core.ConnectionClosed) and self.receivers is not None:
            self.receivers.doubt(event.peer)
        if isinstance(event, core.Gap):
            self._on_own_gap(event)
        elif isinstance(event, core.VouchedFor) and self.member.local is not None:
            self.member.local.answered(event)
        elif isinstance(event, StaysApart):
            self.log.event("%s", apart(event.peer, event.reason, event.detail))
        elif isinstance(event, core.Blocked):
            self.log.event("this member is blocked: %s", event.reason)
        elif isinstance(event, core.JoinRefused):
            self.refusals.warning("joiner", "%s may not join: %s", event.joiner, event.reason)
        elif isinstance(event, core.Undelivered):
            self.sending.receipts.undelivered(event.to, event.numbers)
        self.waits.on_event(event)
        if (news := translated(event)) is not None:
            self.reading.put(news)

    def turned(self) -> None:
        self.sending.turned()

    def journal_lost(self, reason: str) -> None:
        self.log.event("%s", reason)
        self.reading.put(JournalLost(reason))
        if self.options.leaves_without_journal and self.unjournaled is None:
            self.unjournaled = JournalFailed(reason)
            self._leave_without_journal(self.unjournaled)

    def _leave_without_journal(self, error: JournalFailed) -> None:
        if not self.joined.done():
            self.joined.set_exception(error)
        elif not self.leaving:
            self.sending.close(f"{error}, and the channel is leaving its group", error)
            self.reading.why_ended = error
            self.closing = asyncio.get_running_loop().create_task(self.leave(), name="pygroups closes")

    def crashed(self, error: BaseException) -> None:
        self.crash = error
        self.watchdog.stop()
        self.sending.give_up(f"the member crashed ({type(error).__name__})", error)
        self.reading.forget_state()
        self.reading.put(Raised(error, final=True))
        if not self.joined.done():
            self.joined.set_exception(error)
        self.waits.ended = True
        if not self.left.done():
            self.left.set_result(Left("crashed", [*self.sending.top.unknown()]))

    def forked(self) -> None:
        """In a forked child every use of the channel raises ChannelClosed, because the channel belongs to the
        parent."""
        self.elsewhere = (
            "the channel belongs to another process, which opened it before the fork; "
            "open a new channel in this process"
        )
        self.sending.forked(self.elsewhere)
        self.reading.forked(self.elsewhere)

    def _broke(self, error: Exception) -> None:
        self.reading.put(Raised(error, final=False))

    def _on_view(self, event: core.NewView) -> None:
        view = translated(event)
        assert isinstance(view, View)
        text, is_loss = view_line(event, self.view, self.waits.suspected)
        self.view = view
        self.waits.on_event(event)
        self.reading.consumption.forget_outside(view.members)
        self.sending.receipts.installed(view.members)
        (self.log.event if is_loss else self.log.info)("%s", text if self.joined.done() else f"joined, {text}")
        for member, policy in event.expelled.items():
            self.log.warning("%s was excluded, because this member %s", member, policy)
        if event.with_state:
            self._begin_with_a_state(event, view)
        else:
            self.reading.put(view)
        self._leave_if_nobody_reads()
        self._open()

    def _begin_with_a_state(self, event: core.NewView, view: View) -> None:
        """A state comes before `view`, or no member has one.  Two lists of gaps: the state's, and this member's own."""
        without = event.gaps if event.without_state is None else event.without_state
        for gap in (*event.gaps, *(event.without_state or ())):
            self._on_own_gap(gap)
        if self.options.state is None:
            for item in (view, *map(gap_of, without)):
                self.reading.put(item)
        else:
            assert event.starts is not None
            resets = isinstance(view, MergeView) and view.reset
            loading = self.states.begin(view, [*map(gap_of, event.gaps)], event.starts, resets=resets)
            self.reading.begin_again(loading, view, [*map(gap_of, without)])

    def _on_own_gap(self, gap: core.Gap) -> None:
        if gap.origin == self.me:
            self.sending.on_gap(range(gap.first, gap.next))
            self.reading.consumption.skipped(gap.size)

    def _open(self) -> None:
        """The channel is open: it has a view with enough members, or needs none."""
        least = self.options.min_members or 1
        if not self.joined.done() and (self.view is None or len(self.view.members) >= least):
            self.joined.set_result(None)
            self.waits.joining = False
            self.sending.open()

    def _undecided(self, why: str) -> None:
        self.member.stack.env.count("merge without a winner")
        self.log.warning("no side wins the merge, and each member keeps its state: %s", why)

    def _leave_if_nobody_reads(self) -> None:
        """Leave when the program has left too many views and other news unread: these events fill no window."""
        unread = sum([not isinstance(item, Delivered) for item in self.reading.queue])
        if unread >= UNREAD_EVENTS_MAX and self.closing is None:
            self.reading.why_ended = ChannelClosed(
                f"the program left {unread:,} events unread, which is the limit: read the events in a separate task, "
                "or open the channel with events='none'"
            )
            self.closing = asyncio.get_running_loop().create_task(self.leave(), name="pygroups leaves")

    def _on_state_wanted(self, event: StateWanted) -> None:
        if self.options.state is None:
            self.states.give_none(event)
        elif not self.leaving:  # a leaving program may not read any more; the next view has another provider
            wanted = self.states.want(event)
            if not self.joined.done() and not self.reading.has_messages and not self.states.is_coming:
                self.states.take(wanted)  # a program that min_members= keeps waiting has no message to handle first
            self.reading.want(wanted)

    def _on_excluded(self, event: core.Excluded) -> None:
        if not self.joined.done():
            self.joined.set_exception(refusal(event) if self.view is None else Excluded(excluded(event.policy)))
            return
        self.reading.be_generous()
        if not self.leaving and event.reason != "left":
            if event.reason == "name taken":  # no next incarnation: it would end the newer process in turn
                self.excluded = replaced(event.detail)
            else:
                self.sending.rejoins = self.rejoins(self)
                self.excluded = excluded(event.policy, rejoins=self.sending.rejoins)
            self.reading.why_ended = Excluded(self.excluded)
        self._end(event.reason)
        if not self.leaving:
            self.leaving = True
            self.closing = asyncio.get_running_loop().create_task(self.leave(), name="pygroups closes")

    def _end(self, reason: str, line: str | None = None) -> None:
        """Report to the application and to all waiting tasks, only once, that the membership has ended.  `line`: the
        line for the log, if it is not the reason."""
        if self.left.done():
            return
        if reason == "left" and self.unjournaled is not None:
            reason = "journal lost"
        self.waits.ended = True
        self.reading.forget_state()
        left = Left(reason, [*self.sending.top.unknown()])
        self.sending.give_up(f"the channel left its group ({reason})")
        self.reading.put(left)
        self.left.set_result(left)
        if reason in ("left", "journal lost"):
            self.log.info("%s", line or reason)
        else:
            self.log.event("%s", self.excluded)


def never(session: Session) -> bool:
    """Without `rejoin=True` no incarnation follows an excluded one."""
    return False


def _top(stack: Stack) -> Top:
    top = stack.layers[0]
    assert isinstance(top, Top)
    return top
