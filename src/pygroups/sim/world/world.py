"""The simulated world: processes, the network between them, and what the schedule does to both."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from pygroups.core.address import INCARNATION_DIGITS, Address
from pygroups.core.events import Event
from pygroups.core.layer import Env, Record
from pygroups.core.limits import MILLISECOND, Config
from pygroups.core.records import plain_records
from pygroups.core.stack import Output, Stack
from pygroups.core.view import ViewId
from pygroups.journal.writer import MemoryJournal

from ..promises.facts import Rest
from ..promises.judge import Judge
from ..schedules.schedule import Schedule, stream
from ..schedules.steps import COORDINATOR, Crash, Replay
from .agenda import Agenda
from .loop import MILLION, local_time
from .member import SimulatedMember
from .network import CALM, SimulatedNetwork
from .outside import Finder, Wires
from .story import Story
from .virtual import VirtualWorld

WALL_CLOCK: Final = 1_700_000_000_000_000  # what all wall clocks show when the world begins
Sending = tuple[tuple[Address, ...], list[bytes]]  # who gets which frames
Kept = tuple[int, Address, Address, bytes]  # when a frame was sent, by whom, to whom


def group_of(schedule: Schedule) -> str:
    """The group's name in the journals: one for each seed, so that they lie side by side in one folder."""
    return f"seed-{schedule.seed}"


class World(VirtualWorld[SimulatedMember]):
    """Plays one schedule.  `build` makes the stack of a member from its env; `at_moments` is faults.at_moments, which
    knows this module and is not known by it."""

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
        self.config = Config(**schedule.config)
        self.births: dict[str, int] = {}  # how often each name was started
        self.wall_ahead: dict[str, int] = {}  # by how much the wall clock of a host was set ahead, or back
        self.phase = 0  # how often everything has healed: what an earlier fault would end is over already
        self.staying: list[Callable[[], None]] = []  # brings back what stays when the rest heals
        self.changes = 0  # how often a process began, ended or stood still because the schedule says so
        self.late_until = 0  # frames of the bad weather may arrive until then
        self.to_lose: tuple[str, str] | None = None  # the next frame from one host to another is lost
        around = judge.around
        around.clock, around.restless, around.config = lambda: self.agenda.now, self.is_restless, self.config
        around.trip, around.journals = schedule.trip, self.judges_journals
        self._keeps_for = max((step.since for step in schedule.actions if isinstance(step, Replay)), default=0)
        self._kept: dict[tuple[str, str], deque[Kept]] = {}  # by hosts, what may be replayed

    def tell(self, who: str, what: str | Event) -> None:
        """Tell the story, if somebody listens."""
        if self.story is not None:
            self.story.hear(self.agenda.now, who, what)

    def is_restless(self) -> bool:
        """Whether anything disturbs a process or the network now."""
        disturbed = (member.paused or member.unread or len(member.delays) > 1 for member in self.running.values())
        network = self.network
        return network.weather.treats or network.is_disturbed(self.agenda.now) or any(disturbed)

    # -- processes

    def start(self, name: str) -> None:
        """A new life begins under `name`, unless one lives."""
        if name in self.running:
            return
        member = self._live(name, beside=False)
        self.changes += 1
        member.join()

    def start_beside(self, name: str, *, stranger: bool) -> SimulatedMember:
        """Another process begins under a name that is taken, or one with another profile."""
        member = self._live(name, beside=True)
        if stranger:
            member.env.fingerprint = "another profile"
        member.join()
        return member

    def _live(self, name: str, *, beside: bool) -> SimulatedMember:
        birth = self.births[name] = self.births.get(name, 0) + 1
        seed, now = self.schedule.seed, self.agenda.now
        digits = stream(seed, "life", name, birth).getrandbits(4 * INCARNATION_DIGITS)
        address = Address(name, f"{digits:0{INCARNATION_DIGITS}x}")
        habits = self.schedule.habits[name]
        shown = local_time(now, habits.drift)
        env = Env(address, shown, stream(seed, "layers", name, birth), self.config, journaling=True)
        env.contact, env.run_records = name, self.judges_journals  # else for nobody: the judge knows from events
        chance = stream(seed, "process", address.name, address.incarnation)
        member = SimulatedMember(self, address, env, self.build(env), habits, chance)
        member.network, member.discovery = Wires(self, member), Finder(self, member, member.found)
        self.begins(member, beside=beside)
        if self.journals:
            member.journal = MemoryJournal(group_of(self.schedule), name, address.incarnation, self.schedule.profile)
            self.mark(member, "start", gauges={"bound_us": self.schedule.bound, "epsilon_ppm": 0})
            self._mark_what_lasts(member)
        self.tell(name, f"starts as {address}")
        return member

    def gone(self, member: SimulatedMember) -> None:
        """The process of `member` ends: its kernel closes what it had open."""
        if not self.ends(member):
            return
        if member.ended == "excluded" and self.schedule.rejoin:
            self.agenda.after(200 * MILLISECOND, self._again, member.address.name)

    def _again(self, name: str) -> None:
        """Who was excluded joins as a new life: the group's doing, and no change of what it has to live with."""
        changes = self.changes
        self.start(name)
        self.changes = changes

    def crash(self, member: SimulatedMember) -> None:
        """The process of `member` ends in the middle of whatever it did."""
        member.ended = "crashed"
        self.changes += 1
        self.tell(member.address.name, "crashes")
        self.judge.crashed(member.address)
        self.gone(member)

    # -- the network

    def send(self, process: SimulatedMember, dest: Address, frames: Sequence[bytes]) -> None:
        """`process` hands frames for `dest` to its kernel; some are kept for a replay, and one may be lost."""
        if (self._keeps_for or self.to_lose) and dest in process.routes:
            self._keep(process.address, dest, frames)
            if self.to_lose == (process.address.name, dest.name) and frames:
                frames, self.to_lose = frames[1:], None
                self.judge.around.lost_at = self.agenda.now
                self.count("frame of a lone message lost")
        super().send(process, dest, frames)

    def _keep(self, src: Address, dest: Address, frames: Sequence[bytes]) -> None:
        now, kept = self.agenda.now, self._kept.setdefault((src.name, dest.name), deque())
        kept += [(now, src, dest, frame) for frame in frames]
        while kept and kept[0][0] < now - self._keeps_for:
            kept.popleft()

    def replay(self, src: str, dest: str, since: int) -> None:
        """What was sent from one host to another in the last `since` microseconds arrives again."""
        delay = self.network.delay(src, dest)
        for then, sender, receiver, frame in self._kept.get((src, dest), ()):
            if then >= self.agenda.now - since:
                self.network.counters["replayed"] += 1
                self.agenda.after(delay, self.arrives, sender, receiver, frame, True)

    def trapped(self, member: SimulatedMember, output: Output) -> Output:
        """The layers of `member` have left this in a turn: let the faults happen that waited for it."""
        return self.at_moments(self, member, output)

    # -- who is meant

    def named(self, who: str) -> SimulatedMember | None:
        """The living process that a schedule means by `who`."""
        if who != COORDINATOR:
            return self.running.get(who)
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
        """The records of a turn, or a mark, go to `member`'s journal."""
        if member.journal is not None:
            now, name = self.agenda.now, member.address.name
            wall = WALL_CLOCK + now + now * member.habits.wall_drift // MILLION + self.wall_ahead.get(name, 0)
            member.journal.write(plain_records(records), wall, now)

    def mark(self, member: SimulatedMember, kind: str, **fields: Any) -> None:
        """A line that the world writes into `member`'s journal."""
        self.write(member, [(kind, member.env.view, fields)])

    def mark_all(self, kind: str, **fields: Any) -> None:
        """The same line in the journal of everybody who runs."""
        for member in self.running.values():
            self.mark(member, kind, **fields)

    def _mark_what_lasts(self, newborn: SimulatedMember) -> None:
        """A life that begins while a fault lasts has not seen its mark: it gets one of its own."""
        lasting = self.network.troubles(self.agenda.now)
        others = self.running.values()
        lasting += ["pause"] if any(member.paused for member in others) else []
        lasting += ["slow member"] if any(len(member.delays) > 1 for member in others) else []
        for kind in lasting:
            self.mark(newborn, "fault", reason=kind, members=())

    # -- the end

    def heal(self) -> None:
        """All faults are over."""
        self.tell("-", "everything heals")
        self.judge.healed(self.agenda.now + self.schedule.bound)
        self._recover()
        self.mark_all("heal")

    def calm(self) -> None:
        """All faults are over but those that stay."""
        self.tell("-", "everything heals but what stays")
        self._recover()
        for bring_back in self.staying:
            bring_back()

    def _recover(self) -> None:
        self.phase += 1
        self.changes += 1
        self.late_until = self.agenda.now + self.network.weather.lateness
        self.judge.unsettled(self.late_until)
        self.network.mend_all()
        self.directory.tells_the_truth()
        for member in list(self.beside.values()):
            self.crash(member)
        self.network.set_weather(CALM)
        for member in list(self.running.values()):
            member.heal()

    def largest_side(self) -> list[SimulatedMember]:
        """Those who are in the view that most are in.

        Sides that split stay apart, so only one of them can be what is there when all is quiet: the others end in the
        journals without that mark, as if they had been stopped.
        """
        sides: dict[ViewId, list[SimulatedMember]] = {}
        for member in self.running.values():
            if member.view is not None:
                sides.setdefault(member.view.id, []).append(member)
        return max(sides.values(), key=len, default=[])

    def rests(self) -> list[Rest]:
        """How everybody who lives stands."""
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
