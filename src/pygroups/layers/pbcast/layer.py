"""PBCAST: multicasts reach all members with a high probability, in the order of each sender, and a member that can no
longer have a message announces a gap.

A member delivers its own multicasts at the send, and the network carries each of them once.  Now and then a member
gossips about the messages that it has; a receiver requests those that it lacks, and passes the gossip on to some other
members.  The load of a member does not grow with the group.  Needs a membership whose views are hints: no view begins
the numbers anew.  Note: docs/layers/pbcast.md; design note 002.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import ClassVar, Final

from msgspec import structs

from pygroups.core.address import Address
from pygroups.core.events import Consumed, Event, Excluded, Gap, Gone, Leave, NewView
from pygroups.core.layer import NEVER, Env, Layer
from pygroups.core.limits import LATE_BUFFER, SECOND
from pygroups.core.run import Run
from pygroups.core.suspicion_events import HeartbeatOf
from pygroups.core.tables import Tables, under
from pygroups.core.view import AgreedView

from . import decide
from .heads import FORMER_MAX, HEADS, SENDERS_MAX, Data, Gossip, Lacks, Purged, StartReq, Starts
from .repair import HOLDERS_MAX, Repair
from .rounds import Cache, Entry, Named
from .store import START, Origin, Store
from .unread import Unread

ANSWER_RUNS: Final = 64  # runs that one request is answered with
ANSWER_BYTES: Final = 64 << 10  # the same in bytes
LATE_LAG: Final = 10_000  # messages of each sender that a late-join handler keeps although all members have them
LATE_KEEP: Final = 600 * SECOND  # for which it keeps messages
LAST_FANOUT: Final = 64  # members that get the last gossip of a member that leaves


class Pbcast(Layer):
    """Multicasts with gossip in place of acknowledgments."""

    __slots__ = (
        "behind",
        "cache",
        "gossip_at",
        "gossips",
        "keep",
        "lag",
        "late",
        "leave_at",
        "queue",
        "repair",
        "start_at",
        "start_until",
        "starting",
        "stopped",
        "store",
        "unread",
        "view",
    )

    needs: ClassVar[frozenset[str]] = frozenset({"MULTICAST", "UNICAST", "FIFO_UNICAST", "MEMBERSHIP"})
    gives: ClassVar[frozenset[str]] = frozenset({"GOSSIP"})
    heads: ClassVar[tuple[type, ...]] = HEADS
    tables: ClassVar[Tables] = {
        "behind": "future_runs_max",
        "queue": "turn",
        **under("cache", Cache.tables),
        **under("repair", Repair.tables),
        **under("store", Store.tables),
        **under("unread", Unread.tables),
    }

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.view: AgreedView | None = None
        self.late = env.config.late_join_handler == 1  # this member keeps messages for members that come late
        self.lag = LATE_LAG if self.late else env.config.lag
        self.keep = LATE_KEEP if self.late else env.config.gossip_keep
        self.store = Store(LATE_BUFFER if self.late else env.config.gossip_buffer)
        self.store.restore([(run, age) for run, age in env.stored if age < self.keep], env.now)
        env.stored = ()
        self.repair = Repair(self, self.store)
        self.cache = Cache(env.config.gossip_cache)
        self.queue: list[Run] = []  # gossips and requests of this turn: they come after the messages
        self.gossips = 0  # of this member so far
        self.gossip_at = NEVER
        self.starting: NewView | None = None  # the first view of a joiner, which waits for its starts
        self.behind: list[Run | Event] = []  # the items that came after it
        self.start_at = NEVER  # when the joiner asks again
        self.start_until = NEVER
        self.leave_at = NEVER
        self.stopped = False
        self.unread = Unread(env.config.queue_max)

    # -- sending

    def down(self, run: Run) -> None:
        if run.dest is not None or run.origin is None:
            self.below.append(run)
            return
        own = self.store.of(self.env.me)
        assert run.first == own.next, f"message {run.first} follows {own.next}"
        self.below.append(run.push(Data()))
        self._deliver(own, run)

    # -- receiving

    def up(self, run: Run) -> None:
        head = run.head
        if isinstance(head, Data):
            self.on_data(run)
        elif isinstance(head, HEADS):
            if len(self.queue) < self.env.config.gossip_queue:
                self.queue.append(run)
            else:
                self.env.drop("gossip beyond the queue")
        elif self.starting is not None:
            self._wait(run)
        else:
            self.above.append(run)

    def _wait(self, item: Run | Event) -> None:
        """Keep an item behind the first view.  A joiner that has too many of them begins without its starts."""
        self.behind.append(item)
        if self.starting is not None and len(self.behind) >= self.env.config.future_runs_max:
            self._started(self.starting, {})

    def on_data(self, run: Run) -> None:
        """A message arrived: it is the next one of its origin, or it lies beyond a hole, or it is a repetition."""
        name, env = run.origin, self.env
        if name is None or name == env.me or run.index:
            env.drop("multicast that no member sends")
            return
        if self.view is None or self.starting is not None or self.stopped:
            env.drop("multicast before the first view")
            return
        if name not in self.view.members and not self.store.had(name):
            env.drop("multicast of a non-member")
            return
        origin = self.store.of(name)
        if run.first < origin.next:
            env.count("multicasts again")
        elif self.unread.is_full:
            env.drop("multicast that the application has no room for")
            origin.learn(run.next, env.now)
            self.repair.look_at(name, origin)
        elif run.first == origin.next:
            self._deliver(origin, run)
            self._deliver_early(origin)
            self.repair.look_at(name, origin)
        elif run.first not in origin.early:
            self._hold(origin, run)
            self.repair.look_at(name, origin)

    def _hold(self, origin: Origin, run: Run) -> None:
        origin.learn(run.next, self.env.now)
        if not self.store.hold_early(origin, run, self.env.config.gossip_early_max):
            self.env.drop("multicast far beyond a hole")

    def _deliver(self, origin: Origin, run: Run) -> None:
        assert run.origin is not None
        kept = Run(run.src, None, (), run.origin, run.first, 0, run.count, run.body, run.origin, run.first)
        origin.next = run.next
        origin.learn(run.next, self.env.now)
        forgotten = self.store.keep(kept, self.env.now)
        if forgotten:
            self.env.count("runs forgotten for the limit of bytes", forgotten)
        if self.env.kept is not None:
            self.env.kept.append(kept)
        self.unread.delivered(kept)
        self.above.append(kept)

    def _deliver_early(self, origin: Origin) -> None:
        while origin.early and (run := self.store.take_early(origin, origin.next)) is not None:
            self._deliver(origin, run)

    # -- gossips and requests, after the messages of the turn

    def end_turn(self) -> None:
        if self.queue:
            queue, self.queue = self.queue, []
            for run in queue:
                self._take(run, run.head)
        if self.repair.wants:
            self._repair()

    def _take(self, run: Run, head: object) -> None:
        view = self.view
        if view is None or self.stopped:
            self.env.drop("gossip before the first view")
        elif isinstance(head, Starts) and run.src in view.members:
            self.on_starts(head)
        elif self.starting is not None:
            self.env.drop("gossip before the start")
        elif isinstance(head, StartReq):
            self.on_start_req(run.src, head)
        elif run.src not in view.members:
            self.env.drop("gossip of a non-member")
            if isinstance(head, Gossip):
                self.below.append(HeartbeatOf(run.src, head.view))
        elif isinstance(head, Gossip):
            self.on_gossip(run.src, head, view)
        elif isinstance(head, Lacks):
            self.on_lacks(run.src, head)
        elif isinstance(head, Purged):
            for name, low in head.lows:
                self.repair.refused(run.src, name, low)

    def on_gossip(self, src: Address, head: Gossip, view: AgreedView) -> None:
        """Learn what others have, and pass the gossip on to members that have not seen it."""
        named = self.cache.views.get(head.view)
        if head.view != view.id:
            self.below.append(HeartbeatOf(src, head.view))
        if named is None:
            self.env.drop("gossip of an unknown view")
            return
        members, size = named.members, named.size
        sets = decide.unpacked(head.seen) | decide.unpacked(head.having)
        far = any(not isinstance(of, Address) and of >= size for of, _ in head.digest)
        if head.gossiper >= size or sets >> size or far:
            self.env.drop("malformed gossip")
            return
        gossiper = members[head.gossiper]
        if gossiper not in view.members:
            self.env.drop("gossip of a non-member")
            return
        lacking = named.here & ~decide.unpacked(head.having)
        entry = self.cache.find(gossiper, head.number)
        if entry is not None:
            self.env.count("gossips again")
            entry.lacking &= lacking
            self._purge_if_all_have(entry)
            return
        if head.late:
            self.repair.late[gossiper] = None
        had = self.store.had  # a former member is ignored if it was in no view with this member
        ranked = {members[of]: high for of, high in head.digest if not isinstance(of, Address)}
        former = {of: high for of, high in head.digest if isinstance(of, Address) and had(of)}
        entry = Entry(ranked | former, lacking)
        self.cache.add(gossiper, head.number, entry)
        self.env.count("gossips")
        self._compare(gossiper, named, entry)
        self._purge_if_all_have(entry)
        self._pass_on(src, head, named, entry)

    def _compare(self, gossiper: Address, named: Named, entry: Entry) -> None:
        """Find the messages of the digest that this member lacks.  A member that lacks none leaves the list."""
        lacks: list[Address] = []
        for name, high in entry.digest.items():
            if name != self.env.me:
                origin = self.store.of(name)
                origin.learn(high, self.env.now)
                if origin.next < high:
                    lacks.append(name)
                    self.repair.look_at(name, origin)
        if not lacks:
            entry.lacking &= ~(1 << named.rank)
            return
        having = decide.some(self.env.rng, named.here & ~entry.lacking, named.size, HOLDERS_MAX)
        for name in lacks:
            self.repair.held_by(name, [gossiper, *[named.members[rank] for rank in having]])

    def _purge_if_all_have(self, entry: Entry) -> None:
        if not entry.lacking and entry.digest:
            count = 0
            for name, below in decide.purge_below(entry.digest, self.lag).items():
                count += self.store.purge(name, below)
            entry.digest = {}
            if count:
                self.env.count("runs purged", count)

    def _pass_on(self, src: Address, head: Gossip, named: Named, entry: Entry) -> None:
        """Send the gossip to some members that have not got it, as far as this member knows."""
        size, seen = named.size, decide.unpacked(head.seen) | 1 << named.rank
        unseen = named.here & ~seen
        if not unseen or not entry.lacking:
            return
        passed = structs.replace(
            head, seen=decide.packed(seen, size), having=decide.packed(named.everyone & ~entry.lacking, size)
        )
        count = decide.fanout(unseen.bit_count(), size, self.env.config.subset)
        for rank in decide.some(self.env.rng, unseen, size, count):
            self.tell(named.members[rank], passed)

    def on_lacks(self, src: Address, head: Lacks) -> None:
        """Send the requested runs that are held here, within a limit, and at least one: a run may be larger than the
        limit.  The member asks others for the rest."""
        runs, room, lows = ANSWER_RUNS, ANSWER_BYTES, []
        for name, low, high in head.wants:
            origin = self.store.origins.get(name)
            if origin is None:  # a former member that was in no view with this one
                lows.append((name, high))
                continue
            held = origin.held_from(low)
            if low < held:
                lows.append((name, held))
            for run in origin.between(low, high):
                if not runs or (room < len(run.body) and runs < ANSWER_RUNS):
                    self.env.drop("requests for more runs than are sent at once")
                    break
                runs, room = runs - 1, room - len(run.body)
                self.below.append(Run(self.env.me, src, (Data(),), run.origin, run.first, 0, run.count, run.body))
                self.env.count("runs sent again")
                self.env.count("bytes sent again", len(run.body))
        if lows:
            self.tell(src, Purged(lows))

    def _repair(self) -> None:
        """Ask for the messages that this member lacks, and announce those that nobody has."""
        for name, to in self.repair.ask(waits=self.unread.is_full):
            self._skip(name, self.store.of(name), to)
        self.wake_at(self.repair.next_time())

    def _skip(self, name: Address, origin: Origin, to: int) -> None:
        if to > origin.next:
            self.env.count("messages given up", to - origin.next)
            self.above.append(Gap(name, origin.next, to - origin.next, ()))
            origin.next = to
        origin.learn(to, self.env.now)
        self._deliver_early(origin)
        self.repair.look_at(name, origin)

    # -- the own gossips

    def _gossip(self, most: int = decide.FANOUT_MAX) -> None:
        """Begin a gossip about the messages that this member has, to at most `most` members."""
        view, env = self.view, self.env
        assert view is not None
        before = env.now - self.keep
        count = self.store.purge_older(before)
        size, me = len(view.members), env.me
        ranks = {member: at for at, member in enumerate(view.members)}
        digest = self._digest(ranks)
        if size == 1:
            for name, below in decide.purge_below(digest, self.lag).items():
                count += self.store.purge(name, below)
        if count:
            env.count("runs purged", count)
        if size == 1 or not digest:
            return
        self.gossips += 1
        named, to_all = self.cache.views[view.id], env.config.use_mcast_for_gossip == 1
        others = named.everyone & ~(1 << named.rank)
        head = Gossip(
            named.rank,
            self.gossips,
            view.id,
            [(ranks.get(name, name), high) for name, high in digest.items()],
            decide.packed(named.everyone if to_all else 1 << named.rank, size),
            decide.packed(1 << named.rank, size),
            self.late,
        )
        self.cache.add(me, self.gossips, Entry(digest, others))
        if to_all:
            self.tell(None, head)
            return
        for rank in decide.some(env.rng, others, size, decide.fanout(size - 1, size, env.config.subset, most)):
            self.tell(view.members[rank], head)

    def _digest(self, members: Collection[Address]) -> dict[Address, int]:
        """Per sender, the number after the last message that this member has.  A former member is named while this
        member keeps messages of it: another one may lack its last ones, and nobody else tells of them."""
        origins = self.store.origins
        former = [name for name, origin in origins.items() if origin.kept and name not in members]
        fresh: list[Address] = []
        others: list[Address] = []
        for member in members:
            origin = origins.get(member)
            if origin is not None and origin.next > START:
                (fresh if origin.kept else others).append(member)
        names = decide.chosen(former, (), self.gossips, FORMER_MAX)
        names += decide.chosen(fresh, others, self.gossips, SENDERS_MAX - len(names))
        return {name: origins[name].next for name in names}

    def _set_gossip(self) -> None:
        config = self.env.config
        size = 1 if self.view is None else len(self.view.members)
        pause = decide.interval(self.env.rng, size, config.gossip_interval, config.desired_avg_gossip)
        self.gossip_at = self.env.now + pause

    # -- a joiner learns where it begins

    def _begin(self, event: NewView) -> None:
        self.starting, self.behind = event, []
        self.start_until = self.env.now + self.env.config.gossip_patience
        self._ask_for_starts(event.view.id.leader)

    def _ask_for_starts(self, member: Address) -> None:
        assert self.starting is not None
        self.start_at = self.env.now + self.env.config.ready_timeout
        self.tell(member, StartReq(self.starting.view.id, self.env.config.catch_up == 1))
        self.wake_at(self.start_at)

    def on_start_req(self, src: Address, head: StartReq) -> None:
        named = self.cache.views.get(head.view)
        if named is None or src not in named.members:
            self.env.drop("request for a start in an unknown view")
            return
        origins = [self.store.origins.get(member) for member in named.members]
        starts = [START if one is None else one.low if head.catch_up else one.next for one in origins]
        self.tell(src, Starts(head.view, starts))

    def on_starts(self, head: Starts) -> None:
        event = self.starting
        if event is None or head.view != event.view.id or len(head.starts) != len(event.view.members):
            self.env.drop("start that was not asked for")
            return
        self._started(event, dict(zip(event.view.members, head.starts, strict=True)))

    def _started(self, event: NewView, starts: dict[Address, int]) -> None:
        """Hand up the first view, and all that came after it."""
        starts = {member: max(START, start) for member, start in starts.items()} | {self.env.me: START}
        for member, start in starts.items():
            self.store.begin(member, start)
        behind, self.starting, self.behind = self.behind, None, []
        self.start_at = NEVER
        self.above.append(structs.replace(event, starts=starts))
        self.above += self._meet(event.view.members)
        self.above += behind

    # -- membership and time

    def up_event(self, event: Event) -> None:
        if isinstance(event, NewView):
            self._install(event)
        elif isinstance(event, Excluded):
            if self.starting is not None:  # the views behind the first one follow it
                self._started(self.starting, {})
            self.stopped, self.wake = True, NEVER
            self.gossip_at = self.start_at = self.leave_at = NEVER
            self.repair.wants = {}
            self.above.append(event)
        elif self.starting is not None:
            self._wait(event)
        else:
            self.above.append(event)

    def _install(self, event: NewView) -> None:
        view, me = event.view, self.env.me
        first, self.view = self.view is None, view
        self.cache.installed(view, me)
        self.repair.peers = {member: None for member in view.members if member != me}
        self.repair.late = {member: None for member in self.repair.late if member in view.members}
        gaps = [] if first else self._meet(event.joined)
        self._forget_outsiders(view)
        before = self.gossip_at
        self._set_gossip()
        self.gossip_at = min(before, self.gossip_at)
        self.wake_at(self.gossip_at)
        if first and view.id.leader != me:
            self._begin(event)
            return
        for item in (event, *gaps):
            if self.starting is not None:
                self._wait(item)
            else:
                self.above.append(item)

    def _meet(self, members: Iterable[Address]) -> list[Gap]:
        """Begin with the messages of members that are new in the view, so that they are missed also if the member
        leaves before one arrives.  Returns the gaps of those that this process has only stored."""
        gaps = []
        for member in members:
            if self.store.meet(member) > START:
                count = self.store.of(member).next - START
                self.env.count("messages given up", count)
                gaps.append(Gap(member, START, count, ()))
        return gaps

    def _forget_outsiders(self, view: AgreedView) -> None:
        """Forget origins outside the view, above a limit: the oldest ones first."""
        here = dict.fromkeys(view.members)
        outside = [name for name in self.store.origins if name not in here]
        for name in outside[: max(0, len(outside) - self.env.config.marks_max)]:
            self.store.forget(name)
            self.repair.wants.pop(name, None)

    def down_event(self, event: Event) -> None:
        if isinstance(event, Leave) and self._linger():
            return
        if isinstance(event, Gone):
            self.stopped, self.wake = True, NEVER
        elif isinstance(event, Consumed):
            self.unread.consumed(event.marks)
        self.below.append(event)

    def _linger(self) -> bool:
        """Before a member that has sent messages leaves, it gossips about them, and answers requests for a while."""
        own = self.store.of(self.env.me)
        if self.view is None or self.stopped or len(self.view.members) == 1 or not own.kept or self.leave_at < NEVER:
            return False
        self._gossip(LAST_FANOUT)
        config = self.env.config
        self.leave_at = self.env.now + min(config.gossip_retry, config.leave_timeout // 2)
        self.wake_at(self.leave_at)
        return True

    def timer(self) -> None:
        self.wake = NEVER
        now = self.env.now
        if self.start_at <= now:
            self._start_again()
        if self.gossip_at <= now:
            self._gossip()
            self._set_gossip()
        if self.repair.wants:
            self._repair()
        if self.leave_at <= now:
            self.leave_at = NEVER
            self.below.append(Leave())
        self.wake = max(now + 1, min(self.gossip_at, self.start_at, self.leave_at, self.repair.next_time()))

    def _start_again(self) -> None:
        event, view = self.starting, self.view
        assert event is not None and view is not None
        if not self.repair.peers or self.env.now >= self.start_until:
            self._started(event, {})
        else:
            self._ask_for_starts(self.env.rng.choice([*self.repair.peers]))

    def gauges(self) -> dict[str, int]:
        early = sum([len(origin.early) for origin in self.store.origins.values()])
        return {"wanted": len(self.repair.wants), "early": early, "queue": len(self.queue)}
