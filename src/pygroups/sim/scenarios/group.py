"""Scenarios: given, when, then, in a few lines each, in virtual time.  Guide: docs/guides/scenarios.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from pygroups.core.errors import UsageError
from pygroups.core.events import Event
from pygroups.core.layer import Layer
from pygroups.core.limits import SECOND, Config
from pygroups.layers.profiles import Profile, profile_named

from ..promises.broken import Broken, Witness
from ..promises.checks import checks_of
from ..promises.facts import Check
from ..promises.judge import Judge
from ..schedules.schedule import Habits, OnMerge, Schedule, Weather
from ..world.ending import settle
from ..world.member import SimulatedMember
from ..world.spacetime import MemberEvent, SpaceTime
from .apps import Acting, Actor, ActorFactory
from .frames import Heads
from .player import ObservationRecorder, Player
from .script import ScenarioWorld, Script
from .verbs import CALM, Names, Verbs, listed

BRISK: Final = Habits()
FORMS_WITHIN: Final = 60.0  # seconds until all members are in one view
SETTLING: Final = 0.02  # seconds between two checks whether the group has settled
STORY_LINES: Final = 200  # the last lines of a failed scenario's story


def scenario(
    names: Names = "A B C",
    *,
    profile: str | Profile = "total",
    layers: Sequence[type[Layer]] | None = None,
    application: ActorFactory | None = None,
    checks: Iterable[Check] = (),
    formed: bool = True,
    seed: int = 0,
    weather: Weather = CALM,
    habits: Habits = BRISK,
    journal: bool = False,
    on_merge: OnMerge = "keep",
    folders: float = 0.0,
    bound: float = 60.0,
    promised: bool = True,
    **config: int,
) -> ScenarioGroup:
    """A group in virtual time, for `with scenario("A B C") as group`.

    The group starts with all of `names` in one view in this order, or without members (`formed=False`).  The promises
    of `profile` are judged during the whole scenario.  At the end of the block all faults heal, and every promise must
    be kept within `bound` seconds.  A failure is raised with the story of the scenario.

    - `profile`: a name, or a Profile of the caller.  `layers`: replacements for those below the top, top first.
    - `application`: makes that of each member.  `checks`: judged beside what the layers give (if `promised`).
    - `seed`: of all random choices.  `journal`: whether members keep journals.  Raises UsageError for a wrong value.
    - `weather`, `habits`, `on_merge`, `folders`: see Schedule.  `config`: fields of core.limits.Config, in their units.
    """
    found = profile_named(profile) if isinstance(profile, str) else profile
    found = found._replace(layers=tuple(found.layers if layers is None else layers))
    wanted = names.split() if isinstance(names, str) else list(names)
    Config(**config)  # raises UsageError
    schedule = Schedule(
        seed=seed,
        profile=found.name,
        names=tuple(wanted),
        habits=dict.fromkeys(wanted, habits),
        config=config,
        weather=weather,
        on_merge=on_merge,
        folders=folders,
        actions=(),
        heal_at=0,
        bound=int(bound * SECOND),
    )
    group = ScenarioGroup(schedule, found, list(checks), application, journal, promised=promised)
    if formed:
        group.forms(wanted)
    return group


class NotYet(AssertionError):
    """A condition did not become true in time."""


class ScenarioGroup(Verbs):
    """A group in virtual time: methods for faults and time, and access to each member."""

    def __init__(
        self,
        schedule: Schedule,
        profile: Profile,
        checks: list[Check],
        application: ActorFactory | None,
        journal: bool,
        *,
        promised: bool,
    ) -> None:
        self._recorder = ObservationRecorder()
        promises = checks_of(profile.services) if promised else []
        self._listener = _Listener(self)
        judge = Judge([*promises, *checks, self._recorder])
        world = ScenarioWorld(schedule, profile, judge, journals=journal, story=self._listener)
        super().__init__(world, judge, Heads(profile.layers))
        self._application = application
        self.actors: dict[str, Actor] = {}
        self.world.on_start = self._begin_acting
        if self.world.network.silences:
            self.judge.disturbed()

    # -- members

    def __getitem__(self, name: str) -> Player:
        """The member with this name."""
        return Player(self.world, self._recorder, name)

    @property
    def members(self) -> list[Player]:
        """The running members, in the order of their starts."""
        return [self[name] for name in self.world.running]

    def forms(self, names: Names) -> None:
        """Start these members one after the other, until all are in one view in this order."""
        wanted = listed(names)
        for name in wanted:
            self.start(name)
            self.until(lambda name=name: bool(self[name].view), within=FORMS_WITHIN)  # type: ignore[misc]
        self.until(lambda: all(self[name].view == tuple(wanted) for name in wanted), within=FORMS_WITHIN)
        self.settles(within=FORMS_WITHIN)

    # -- time

    @property
    def now(self) -> float:
        """Virtual time in seconds."""
        return self.world.agenda.now / SECOND

    def after(self, seconds: float) -> None:
        """Let this time pass."""
        self.world.agenda.run_until(self.world.agenda.now + int(seconds * SECOND))

    def later(self, seconds: float, do: Callable[..., Any], *args: Any) -> None:
        """Call `do(*args)` after this time."""
        self.world.agenda.after(int(seconds * SECOND), do, *args)

    def until(self, condition: Callable[[], bool], within: float, step: float = 0.001) -> None:
        """Let time pass until the condition holds.  The condition is evaluated every `step` seconds.  Raises
        AssertionError if it does not hold `within` this many seconds."""
        agenda = self.world.agenda
        limit = agenda.now + int(within * SECOND)
        while not condition():
            if agenda.now >= limit:
                raise NotYet(f"the condition does not hold after {within:g} seconds of virtual time")
            agenda.run_until(min(agenda.now + int(step * SECOND), limit))

    def settles(self, within: float = 60.0) -> None:
        """Let time pass until every promise so far is kept.  Raises AssertionError if that takes longer than
        `within` seconds."""
        missing: list[Broken] = []

        def settled() -> bool:
            if self.world.planned:
                missing[:] = [Broken("liveness", f"{self.world.planned} payloads are still to be sent")]
                return False
            try:
                self.judge.settled(self.world.rests())
            except Broken as broken:
                missing[:] = [broken]
                return False
            return True

        self.after(SETTLING)  # lets the latest requests begin
        try:
            self.until(settled, within, step=SETTLING)
        except NotYet:
            raise NotYet(f"after {within:g} seconds: {missing[0]}") from None

    # -- beginning and end

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            try:
                self.ends()
            except (Broken, AssertionError) as broken:
                self._note(broken)
                raise
        else:
            self._note(error)

    def _note(self, error: BaseException) -> None:
        error.add_note(self.told(error.witness if isinstance(error, Broken) else None))

    def ends(self) -> None:
        """Heal all faults, and wait until every promise is kept.  Raises Broken if the bound ends first.  `with` calls
        this method.

        Raises NotYet if a fault still waits for its moment: the scenario would show nothing.
        """
        for member in self.world.running.values():
            for fault in [armed.trap.fault for armed in member.armed if not armed.trap.over]:
                kind = type(fault).__name__.lower()
                raise NotYet(f"{member.address.name} has a {kind} at {fault.moment!r}, and did not reach that point")
        self.world.rules.clear()
        for player in self.members:
            player.reads()
        self.world.heal()
        self.world.network.set_weather(CALM)
        settle(self.world)

    def told(self, witness: Witness | None = None) -> str:
        """The events so far, as a table of the last rows; rows that show parts of `witness` are marked."""
        table = SpaceTime(list(self.world.births))
        table.heard = self._listener.heard
        lines = [line.plain() for line in table.lines(witness)]
        return "\n".join(["events:", *lines[-STORY_LINES:]])

    def save_journals(self, root: Path) -> None:
        """Write the journals of all members so far into a folder for `pygroups audit`; needs scenario(journal=True)."""
        for member in self.world.lives.values():
            if member.journal is None:
                raise UsageError("this scenario keeps no journals: write scenario(..., journal=True)")
            member.journal.save(root)

    # -- listeners

    def _begin_acting(self, member: SimulatedMember, script: Script) -> None:
        if self._application is not None:
            acting = Acting(self.world, member)
            self.actors[member.address.name] = self._application(acting)

    def heard(self, who: str, event: Event) -> None:
        """The stack of `who` gave this event to its application."""
        actor = self.actors.get(who)
        if actor is not None:
            actor.on_event(event)


class _Listener:
    """Records the events, and passes the events of stacks to their applications."""

    def __init__(self, group: ScenarioGroup) -> None:
        self.heard: list[MemberEvent] = []
        self._group = group

    def hear(self, now: int, who: str, what: str | Event) -> None:
        self.heard.append(MemberEvent(now, who, what))
        if isinstance(what, Event):
            self._group.heard(who, what)
