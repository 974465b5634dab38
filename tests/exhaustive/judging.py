"""The verdict on a history of the small world, by the checks of the simulator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pygroups.core.address import Address
from pygroups.core.limits import SECOND
from pygroups.layers.profiles import PROFILES
from pygroups.sim.promises.broken import Broken
from pygroups.sim.promises.checks import checks_of
from pygroups.sim.promises.facts import Rest
from pygroups.sim.promises.judge import Judge

from .lives import Told
from .process import CONFIG
from .world import ADDRESSES, COUNT, Choice, State, World

APART: Final = 12 * SECOND  # both sides of an isolation have noticed by then
BOUND: Final = 60 * SECOND  # a group that is not settled by then never is


Outcome = tuple[tuple[object, tuple[tuple[Address, int], ...]], ...]


class Hearing:
    """Judges one history: the choices in their order, then the time until the group has settled."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.now = 0
        self.cut_life = -1  # the state of the process that was cut off
        self.judge = Judge(checks_of(PROFILES[world.profile].services))
        self.judge.around.clock = lambda: self.now
        self.judge.around.config = CONFIG
        self.judge.around.services = PROFILES[world.profile].services
        for address in ADDRESSES:
            self.judge.keeps_no_state(address)

    def hear(self, state: State, choice: Choice) -> State:
        """Play one choice, and let the judge hear of it.  Raises Broken."""
        self.now = state.now
        if choice.who >= 0:
            self._tell(choice.who, self.world.told(state, choice))
            if choice.cut:
                self.cut_life = self.world.end_alone(state, choice)
                self.judge.around.restless = lambda: True  # no duty of time is judged any more
                self.judge.disturbed()
            if choice.crashes:
                self.judge.crashed(ADDRESSES[choice.who])
        return self.world.after(state, choice)

    def _tell(self, who: int, told: Told) -> None:
        for kind, what in told:
            getattr(self.judge, kind)(ADDRESSES[who], *what)

    def settle(self, state: State, *, heals: bool = True) -> None:
        """Time passes, with one order of events, until every promise is kept.  With `heals` a process that is cut off
        goes on alone for a while, and is then reached again.  Raises Broken if the group never settles."""
        if state.cut_off and heals:
            state, until = self.world.still_apart(state, self.cut_life), state.now + APART
            while state.now < until:
                state = self._next(state)
            state = self.world.healed(state)
        deadline = state.now + BOUND
        while True:
            if not any(state.links):
                try:
                    self.judge.settled(rests(self.world, state))
                except Broken:
                    if state.now >= deadline:
                        raise
                else:
                    return
            state = self._next(state)

    def _next(self, state: State) -> State:
        choices = self.world.choices(state)
        return self.hear(state, choices[0] if choices else Choice("time"))


def rests(world: World, state: State) -> list[Rest]:
    """The state of every process that runs."""
    found = []
    for who in range(COUNT):
        if state.alive >> who & 1:
            life = world.lives.lives[state.lives[who]]
            if life.next:  # it has begun to join
                unused, gauges, blocked, leaving = life.rest
                found.append(Rest(ADDRESSES[who], unused, 0, gauges, blocked, leaving))
    return found


def judge(world: World, setup: Iterable[Choice], path: Sequence[Choice], *, heals: bool = True) -> None:
    """Judge the history that consists of `setup` and `path`.  With `heals` an isolation ends after it.  Raises Broken,
    or the exception of a layer."""
    hearing = Hearing(world)
    state = world.begin()
    for choice in setup:
        state = hearing.hear(state, choice)
    state = world.open(state)
    for choice in path:
        state = hearing.hear(state, choice)
    if state.alive:
        hearing.settle(state, heals=heals)


def outcome(world: World, state: State) -> Outcome:
    """The view and the deliveries of each process.  Of the ends with the same outcome, an isolation ends in one."""
    lives = [world.lives.lives[life] for life in state.lives]
    return tuple((life.view, tuple(life.delivered.items())) for life in lives)


def unstable(world: World, state: State) -> str:
    """The message that its sender believes to be delivered everywhere, and that a member of its view lacks, if any.

    The other checks do not depend on the order of events at different members.  This one does, so it looks at every
    state of the world, not only at one path to each end.
    """
    living = [who for who in range(COUNT) if (state.alive | state.cut_off) >> who & 1]
    lives = [world.lives.lives[life] for life in state.lives]
    for one in living:
        if lives[one].stable <= 1:
            continue
        for other in living:
            same = lives[other].view is not None and lives[other].view == lives[one].view
            if same and lives[other].delivered.get(ADDRESSES[one], 1) < lives[one].stable:
                return f"{ADDRESSES[one]}#{lives[one].stable - 1} is no message that {ADDRESSES[other]} has delivered"
    return ""


def described(world: World, setup: Iterable[Choice], path: Sequence[Choice]) -> list[str]:
    """The history as lines: each choice, the frame or event that arrives, and what the application sees."""
    state = world.begin()
    for choice in setup:
        state = world.after(state, choice)
    state, start = world.open(state), state.now
    lines = []
    for choice in path:
        text = f"{(state.now - start) / SECOND:9.6f}  {choice}"
        if choice.kind in ("frame", "loss"):
            text += f": {world.shown(state.links[COUNT * choice.src + choice.who][0], choice.who)}"
        seen = [kind for kind, _ in world.told(state, choice) if kind not in ("recorded", "consumed", "reached")]
        lines.append(text + (f"  -> {', '.join(seen)}" if seen else ""))
        state = world.after(state, choice)
    return lines
