"""The simulated world: processes, the network between them, and the effects of a schedule on both."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from pygroups.core.address import INCARNATION_DIGITS, Address
from pygroups.core.events import Event
from pygroups.core.layer import Env, Record
from pygroups.core.limits import MILLISECOND, Config
from pygroups.core.records import plain_records
from pygroups.core.rejoin import Exclusions
from pygroups.core.services import MEMBERSHIP
from pygroups.core.stack import Output, Stack
from pygroups.core.turn import start_fields
from pygroups.core.view import ViewId
from pygroups.journal.writer import MemoryJournal

from ..promises.facts import Rest
from ..promises.judge import Judge
from ..schedules.schedule import Schedule, stream
from ..schedules.steps import COORDINATOR, Crash, Replay
from .agenda import Agenda
from .folders import Folder
from .loop import MILLION, local_time
from .member import SimulatedMember
from .network import CALM, SimulatedNetwork
from .on_merge import choose
from .outside import Finder, Wires
from .story import Story
from .virtual import VirtualWorld

WALL_CLOCK: Final = 1_700_000_000_000_000  # the time of all wall clocks at the start of the world
RESTART: Final = 200 * MILLISECOND  # time until an excluded process starts again, beside its pause
Sending = tuple[tuple[Address, ...], list[bytes]]  # receivers, and the frames for them
Kept = tuple[int, Address, Address, bytes]  # the time of sending, sender, receiver, frame


def group_of(schedule: Schedule) -> str:
    """The group's name in the journals.  Each seed has its own name, so that journals of several seeds share one
    folder."""
    return f"seed-{schedule.seed}"


class World(VirtualWorld[SimulatedMember]):
    """Plays one schedule.

    `build` makes the stack of a member from its env.  `at_moments` is faults.at_moments; it is a parameter because that
    module imports this one.
    """

    def __init__(
        self,
        schedule: Schedule,
        build: Callable[[Env], Stack],
        judge: Judge,
        *,
        at_moments: Callable[[World, SimulatedMember, Output], Output],
        journals: bool = False,
        story: Story | None = None,
    ) -> None:
        self.schedule = schedule
        self.build = build
        self.judge = judge
        self.at_moments = at_moments
        self.journals = journals
        self.story = story
        self.judges_journals = journals or any(
            isinstance(action, Crash) and action.leaves == "unwritten" for action in schedule.actions
        )
        super().__init__(Agenda(), SimulatedNetwork(schedule.seed, schedule.weather), stream(schedule.seed, "world"))
        if schedule.streams:
            self.use_pipes()
        self.config = Config(**schedule.config)
        if schedule.others:
            self.directory.parts(schedule.others)
            self.agenda.at(schedule.others_meet_at, self.directory.meets)
        self.births: dict[str, int] = {}  # number of starts of each name
        self.started: dict[str, int] = {}  # the time of the last start of each name
        self.exclusions: dict[str, Exclusions] = {}  # by name
        self.folders: dict[str, Folder] = {}  # of journals, by the names of processes
        self.wall_ahead: dict[str, int] = {}  # the shift of each host's wall clock, in microseconds
        self.phase = 0  # number of heals: ends of faults of an earlier phase have no effect
        self.staying: list[Callable[[], None]] = []  # each brings back a lasting fault after the heal
        self.changes = 0  # number of starts, ends, pauses and slow times of processes that the schedule causes
        self.late_until = 0  # the last time at which a frame of the bad weather can arrive
        self.to_lose: tuple[str, str] | None = None  # the next frame from one host to another is lost
        around = judge.around
        around.clock, around.restless, around.config = lambda: self.agenda.now, self.is_restless, self.config
        around.trip, around.journals = schedule.trip, self.judges_journals
        self.directory.births = schedule.expect > 0
        around.overtaken_by = schedule.weather.reorder_by if schedule.weather.reorder else 0
        self._keeps_for = max((step.since for step in schedule.actions if isinstance(step, Replay)), default=0)
        self._kept: dict[tuple[str, str], deque[Kept]] = {}  # frames for a replay, by sending and receiving host

    def tell(self, who: str, what: str | Event) -> None:
        """Record an event in the story, if there is one."""
        if self.story is not None:
            self.story.hear(self.agenda.now, who, what)

    def is_restless(self) -> bool:
        """Whether any fault disturbs a process or the network now."""
        disturbed = (
            member.paused or member.reading.stopped or len(member.delays) > 1 for member in self.running.values()
        )
        network = self.network
        return network.weather.treats or network.is_disturbed(self.agenda.now) or any(disturbed)

    # -- processes

    def start(self, name: str) -> None:
        """Start a new incarnation under `name`, unless a process runs under it."""
        if name in self.running:
            return
        member = self._live(name, beside=False)
        self.changes += 1
        member.join()

    def start_beside(self, name: str, *, stranger: bool) -> SimulatedMember:
        """Start another process under a name that is in use, or one with another profile."""
        member = self._live(name, beside=True)
        if stranger:
            member.env.fingerprint = "another profile"
        member.join()
        return member

    def _live(self, name: str, *, beside: bool) -> SimulatedMember:
        birth = self.births[name] = self.births.get(name, 0) + 1
        seed, now = self.schedule.seed, self.agenda.now
        self.started[name] = now
        digits = stream(seed, "life", name, birth).getrandbits(4 * INCARNATION_DIGITS)
        address = Address(name, f"{digits:0{INCARNATION_DIGITS}x}")
        habits = self.schedule.habits[name]
        shown = local_time(now, habits.drift)
        env = Env(address, shown, stream(seed, "layers", name, birth), self.config, journaling=True)
        env.lossless = self.pipes is not None
        env.contact, env.run_records = name, self.judges_journals  # otherwise unused: the judge gets events
        chance = stream(seed, "process", address.name, address.incarnation)
        choose(env, self.schedule.on_merge)
        env.expect = self.schedule.expect
        member = SimulatedMember(self, address, env, self.build(env), habits, chance)
        if name in self.schedule.others:
            env.fingerprint += " settings=other"
            self.count("other settings")
        if stream(seed, "folder", name, birth).random() < self.schedule.folders:
            self.folders.setdefault(name, Folder(lambda one: not self.lives[one].ended)).opens(env)
        elif self.folders.pop(name, None) is not None:
            self.count("folders lost")
        around = self.judge.around
        around.services, around.expect = env.services, env.expect
        member.network, member.discovery = Wires(self, member), Finder(self, member, member.found)
        self.begins(member, beside=beside)
        if self.journals:
            owner = (group_of(self.schedule), name, address.incarnation, self.schedule.profile)
            member.journal = MemoryJournal(*owner, services=env.services)
            self.mark(member, "start", **start_fields(self.schedule.bound, env))
            self._mark_what_lasts(member)
        self.tell(name, f"starts as {address}")
        return member

    def gone(self, member: SimulatedMember) -> None:
        """End the process of `member`: its kernel closes the connections."""
        if not self.end(member):
            return
        if member.ended == "excluded" and self.schedule.rejoin:
            name = member.address.name
            row = self.exclusions.setdefault(name, Exclusions())
            pause = row.pause(self.agenda.now - self.started[name])
            self.agenda.after(RESTART + pause, self._again, name)

    def _again(self, name: str) -> None:
        """Restart an excluded process as a new incarnation.  The group caused this, so it does not count as a change
        of the schedule."""
        changes = self.changes
        self.start(name)
        self.changes = changes

    def crash(self, member: SimulatedMember) -> None:
        """Crash the process of `member` in the middle of its work."""
        member.ended = "crashed"
        self.changes += 1
        self.tell(member.address.name, "crashes")
        member.judge.crashed(member.address)
        self.gone(member)

    # -- the network

    def send(self, process: SimulatedMember, dest: Address, frames: Sequence[bytes]) -> None:
        """`process` hands frames for `dest` to its kernel.  Some frames are kept for a replay, and one may be lost."""
        if (self._keeps_for or self.to_lose) and dest in process.routes:
            self._keep(process.address, dest, frames)
            if self.to_lose == (process.address.name, dest.name) and frames:
                frames, self.to_lose = frames[1:], None
                if self.pipes is not None:
                    self.pipes.breaks(process.address, dest)
                self.judge.around.lost_at = self.agenda.now
                self.count("frame of a lone message lost")
        super().send(process, dest, frames)

    def _keep(self, src: Address, dest: Address, frames: Sequence[bytes]) -> None:
        now, kept = self.agenda.now, self._kept.setdefault((src.name, dest.name), deque())
        kept += [(now, src, dest, frame) for frame in frames]
        while kept and kept[0][0] < now - self._keeps_for:
            kept.popleft()

    def replay(self, src: str, dest: str, since: int) -> None:
        """The frames that one host sent to another in the last `since` microseconds arrive again."""
        delay = self.network.delay(src, dest)
        for then, sender, receiver, frame in self._kept.get((src, dest), ()):
            if then >= self.agenda.now - since:
                self.network.counters["replayed"] += 1
                self.agenda.after(delay, self.arrives, sender, receiver, frame, True)

    def trapped(self, member: SimulatedMember, output: Output) -> Output:
        """Let the faults happen that waited for this turn of `member`.  Returns the output that is left to
        distribute."""
        return self.at_moments(self, member, output)

    # -- victims

    def named(self, who: str) -> SimulatedMember | None:
        """The running process that a schedule means by `who`; for COORDINATOR the coordinator that most members
        follow."""
        if who != COORDINATOR:
            return self.running.get(who)
        if MEMBERSHIP not in self.judge.around.services:
            return next(iter(self.running.values()), None)
        followers: dict[Address, int] = {}
        for member in self.running.values():
            if member.view is not None:
                coordinator = member.view.coordinator
                followers[coordinator] = followers.get(coordinator, 0) + 1
        for address in sorted(followers, key=lambda address: (-followers[address], address)):
            if not self.lives[address].ended:
                return self.lives[address]
        return None

    # -- journals

    def write(self, member: SimulatedMember, records: Sequence[Record]) -> None:
        """Write the records of a turn, or a mark, to `member`'s journal."""
        if member.journal is not None:
            now, name = self.agenda.now, member.address.name
            wall = WALL_CLOCK + now + now * member.habits.wall_drift // MILLION + self.wall_ahead.get(name, 0)
            for life in dict.fromkeys(fields.get("life", member.address) for _, _, fields in records):
                journal = self.lives[life].journal
                assert journal is not None
                of_life = [record for record in records if record[2].get("life", member.address) == life]
                own = [(kind, view, {k: v for k, v in fields.items() if k != "life"}) for kind, view, fields in of_life]
                put = journal.lose if member.disk_full else journal.write
                put(plain_records(own), wall, now)

    def mark(self, member: SimulatedMember, kind: str, **fields: Any) -> None:
        """Write a line of the world into `member`'s journal."""
        self.write(member, [(kind, member.env.view, fields)])

    def mark_all(self, kind: str, **fields: Any) -> None:
        """Write the same line into the journal of every running process."""
        for member in self.running.values():
            self.mark(member, kind, **fields)

    def _mark_what_lasts(self, newborn: SimulatedMember) -> None:
        """Write marks of the active faults for an incarnation that starts during them, because it missed their first
        marks."""
        lasting = self.network.troubles(self.agenda.now)
        others = self.running.values()
        lasting += ["pause"] if any(member.paused for member in others) else []
        lasting += ["slow member"] if any(len(member.delays) > 1 for member in others) else []
        for kind in lasting:
            self.mark(newborn, "fault", reason=kind, members=())

    # -- the end

    def heal(self) -> None:
        """End all faults."""
        self.tell("-", "all faults end")
        self.judge.healed(self.agenda.now + self.schedule.bound)
        self._recover()
        self.mark_all("heal")

    def calm(self) -> None:
        """End all faults except the lasting ones."""
        self.tell("-", "all faults end, except the lasting ones")
        self._recover()
        for bring_back in self.staying:
            bring_back()

    def _recover(self) -> None:
        self.phase += 1
        self.changes += 1
        self.late_until = self.agenda.now + self.network.weather.lateness
        self.judge.unsettled(self.late_until)
        self.network.mend_all()
        self.directory.tells_the_truth(self.agenda.now)
        for member in list(self.beside.values()):
            self.crash(member)
        self.network.set_weather(CALM)
        for member in list(self.running.values()):
            member.heal()

    def largest_side(self) -> list[SimulatedMember]:
        """The members of the view that most processes are in.

        Without MERGE2 sides that split stay apart, so only one of them can be the group at the end.  The journals of
        the other members end without the `quiet` mark, as if these members had been stopped.
        """
        if MEMBERSHIP not in self.judge.around.services:
            return list(self.running.values())
        sides: dict[ViewId, list[SimulatedMember]] = {}
        for member in self.running.values():
            if member.view is not None:
                sides.setdefault(member.view.id, []).append(member)
        return max(sides.values(), key=len, default=[])

    def settled_members(self) -> list[SimulatedMember]:
        """The members of the group at the end, or of both groups if some processes have other settings."""
        return list(self.running.values()) if self.schedule.others else self.largest_side()

    def rests(self) -> list[Rest]:
        """The state of every running process."""
        return [
            Rest(
                member.address,
                member.top.unknown().stop,
                sum(order.count for order in member.app.orders),
                member.stack.gauges(),
                member.blocked,
                member.leaving,
            )
            for member in self.running.values()
        ]
