"""The platform of channels in memory.  channel/platform.py defines a platform."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Final

from pygroups._version import __version__
from pygroups.channel.channel_events import View
from pygroups.channel.options import Options
from pygroups.channel.platform import Ask, Connections, Members, SessionDiscovery, former_on_disk, journal_on_disk
from pygroups.channel.session import Session
from pygroups.core.address import INCARNATION_DIGITS, Address
from pygroups.core.errors import NotBuilt
from pygroups.core.layer import Random
from pygroups.core.records import PlainRecord
from pygroups.core.services import MERGING
from pygroups.drivers.discovery.options import DiscoverySources
from pygroups.drivers.former_life import Former, FormerJournal
from pygroups.drivers.member import Journal, Loop
from pygroups.journal.writer import JournalWriter, MemoryJournal
from pygroups.sim.promises.broken import Broken
from pygroups.sim.promises.checks import checks_of
from pygroups.sim.promises.judge import Judge
from pygroups.sim.schedules.schedule import stream
from pygroups.sim.world.network import CALM, SimulatedNetwork

from . import network as memory
from .background import Background
from .loop import PROCESS
from .watch import SessionWatch, WatchedRecorder, WatchedTop

HOST: Final = "memory"
LAGS: Final = 0.25  # the share of reads before which the loop runs other tasks, as if the program were busy


class MemoryPlatform:
    """The platform for all processes of one test.  All random numbers derive from `seed`."""

    def __init__(self, seed: int, failed: Callable[[BaseException], None]) -> None:
        self.seed = seed
        self.failed = failed
        self.clock = self.background = Background()
        self.weather = SimulatedNetwork(seed, CALM)
        self.rooms: dict[
            tuple[DiscoverySources, str], tuple[memory.Room, Judge]
        ] = {}  # by the sources of discovery, and group
        self.ends: dict[Address, memory.MemberNetwork] = {}  # by incarnation, ended ones included
        self.watches: dict[Address, SessionWatch] = {}  # by incarnation, ended ones included
        self.journals: dict[Address, MemoryJournal] = {}
        self.disturbed = False
        self._births: dict[str, int] = {}
        self._nameless = 0

    # -- requests of a session

    def name(self, options: Options) -> None:
        """Do nothing: a process of a test has a name."""

    def address(self, options: Options) -> Address:
        if options.group is None:
            raise NotBuilt(
                "pygroups.testing runs members of groups only: test a process without a group over real sockets, "
                "with bind='127.0.0.1:0'"
            )
        name = options.name or PROCESS.get() or self._another_name()
        birth = self._births[name] = self._births.get(name, 0) + 1
        digits = stream(self.seed, "life", name, birth).getrandbits(4 * INCARNATION_DIGITS)
        return Address(name, f"{digits:0{INCARNATION_DIGITS}x}")

    def _another_name(self) -> str:
        self._nameless += 1
        return f"member-{self._nameless}"

    def chance(self, me: Address) -> Random:
        return stream(self.seed, "layers", me)

    def lags(self, me: Address) -> Callable[[], bool]:
        pace = stream(self.seed, "pace", me)
        return lambda: pace.random() < LAGS

    def loop(self) -> Loop:
        return self.background

    def network(self, me: Address, options: Options) -> Connections:
        end = self.ends[me] = memory.MemberNetwork(self._room(options)[0], me)
        return end

    def discovery(self, me: Address, options: Options, network: Connections) -> SessionDiscovery:
        return memory.MemoryDiscovery(self._room(options)[0], self.ends[me])

    def journal(self, me: Address, options: Options) -> Journal:
        copy = self.journals[me] = _copy(me, options)
        disk = journal_on_disk(me, options, HOST, HOST)
        return Journals(copy, disk, self._lasting(), lambda records: self._wrote(me, records))

    def _lasting(self) -> list[PlainRecord]:
        """Marks of the active faults, for the journal of a new incarnation, which has not recorded the start of these
        faults."""
        return [("fault", None, {"reason": kind}) for kind in self.weather.troubles(self.background.time)]

    def _wrote(self, me: Address, records: Sequence[PlainRecord]) -> None:
        self.watches[me].recorded(records)

    def former(self, me: Address, options: Options) -> Former | None:
        found = former_on_disk(me, options, HOST, HOST)
        if found is not None and found.journal is not None:
            life = found.life.address
            copy = self.journals.setdefault(life, _copy(life, options))
            found.journal = Journals(copy, found.journal, [], lambda records: self.watches[me].answered(life, records))
        return found

    def local(self, me: Address, options: Options, ask: Ask, members: Members) -> None:
        """No command reaches a process in memory."""

    def ready(self, session: Session) -> None:
        _, judge = self._room(session.options)
        watch = self.watches[session.me] = SessionWatch(session, judge, PROCESS.get(), self.failed)
        session.member.inbox = watch
        session.sending.top = WatchedTop(session.sending.top, watch)
        session.states.recorder = WatchedRecorder(session.states.recorder, watch)

    def _room(self, options: Options) -> tuple[memory.Room, Judge]:
        key = (options.sources, options.journal_name)
        if key not in self.rooms:
            services = options.chosen_profile.services
            judge = Judge(checks_of(services))
            around = judge.around
            around.journals, around.expect = True, options.expect or 0
            around.services = services - {MERGING}  # a test may ask whether all rest while the sides are still apart
            if self.disturbed:
                judge.disturbed()
            chance = stream(self.seed, "world", options.journal_name)
            self.rooms[key] = memory.Room(self.background.agenda, self.weather, chance, self._ended), judge
        return self.rooms[key]

    def _ended(self, member: Address) -> None:
        self.watches[member].ended()

    # -- requests of a test

    def disturb(self) -> None:
        """From now on members that run may be suspected and excluded."""
        self.disturbed = True
        for _, judge in self.rooms.values():
            judge.disturbed()

    def living(self) -> list[SessionWatch]:
        """The watches of the members that are in their group or are joining it."""
        return [watch for watch in self.watches.values() if watch.lives]

    def views(self, group: str | None = None) -> list[View]:
        """The views that the living members of `group`, or of all groups, are in, without repetitions."""
        watches = [watch for watch in self.living() if group in (None, watch.session.options.journal_name)]
        return _views(watches)

    def at_rest(self, *, one: bool = False) -> None:
        """Check that all groups are at rest, with `one` in one view each.  Raises Broken with the first obstacle.
        Without `one`, members that reach no majority are left out: they wait."""
        for _, judge in self.rooms.values():
            watches = [watch for watch in self.living() if watch.judge is judge and (one or not watch.told)]
            self._not_cut_apart(watches)
            if one and len(views := _views(watches)) > 1:
                raise Broken("view-agreement", f"the members are in {len(views)} views: {_listed(views)}")
            all_read = not any(watch.has_unread for watch in watches)  # else layers hold messages for a slow reader
            judge.settled([watch.rest(holds=all_read) for watch in watches])

    def _not_cut_apart(self, watches: list[SessionWatch]) -> None:
        """Raises Broken if two members in one view are cut off from each other: the group has not settled yet."""
        for one, other in combinations(watches, 2):
            view = one.session.view
            together = view is not None and other.session.view is not None and view.id == other.session.view.id
            if together and not self.weather.connects(one.me.name, other.me.name):
                detail = "two members that are cut off from each other are in one view"
                raise Broken("view-accuracy", detail, member=one.me, other=other.me)


def _views(watches: Sequence[SessionWatch]) -> list[View]:
    views = [watch.session.view for watch in watches]
    return list({(id(watch.judge), view.id): view for watch, view in zip(watches, views, strict=True) if view}.values())


def _listed(views: Sequence[View]) -> str:
    return ", ".join([f"[{' '.join([member.name for member in view.members])}]" for view in views])


def _copy(member: Address, options: Options) -> MemoryJournal:
    return MemoryJournal(
        options.journal_name,
        *member,
        options.profile,
        host=HOST,
        boot_id=HOST,
        version=__version__,
        services=options.chosen_profile.services,
    )


class Journals:
    """A member's journal in memory, and the journal on disk if the program asked for one."""

    def __init__(
        self,
        memory: MemoryJournal,
        disk: JournalWriter | FormerJournal | None,
        marks: list[PlainRecord],
        wrote: Callable[[Sequence[PlainRecord]], None],
    ) -> None:
        self.memory = memory
        self.marks = marks  # the marks to write after the first record
        self.wrote = wrote
        self.disk = disk
        self.next_index = 0

    @property
    def lost(self) -> int:
        return 0 if self.disk is None else self.disk.lost

    def write(self, records: Sequence[PlainRecord], time_us: int, mono_us: int) -> None:
        if self.marks and records:
            records, self.marks = [records[0], *self.marks, *records[1:]], []
        self.next_index += len(records)
        self.memory.write(records, time_us, mono_us)
        self.wrote(records)
        if self.disk is not None:
            self.disk.write(records, time_us, mono_us)

    def close(self) -> None:
        if self.disk is not None:
            self.disk.close()
