"""The small world: three processes, what is on its way between them, and each choice of what happens next.

A state of the world is a tuple of small numbers, so that it can be stored and compared quickly.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product
from typing import Final, NamedTuple

from pygroups.core.address import Address
from pygroups.core.driver_events import Answered, Dead, Ended, Found, Lost
from pygroups.core.events import Event
from pygroups.core.layer import NEVER
from pygroups.core.limits import MILLISECOND
from pygroups.layers.profiles import PROFILES

from .alone import Alone, Queues
from .lives import Lives, Step, Told
from .process import CODECS, Process, Unheard

NAMES: Final = "ABC"
COUNT: Final = len(NAMES)
ADDRESSES: Final = tuple(Address(name, f"{number:016x}") for number, name in enumerate(NAMES, 1))
NETWORK: Final = COUNT  # the sender of the driver's events, in place of a process
PATIENCE: Final = 600 * MILLISECOND  # after a longer pause the group is at rest, or waits for a timeout in vain
GRAIN: Final = 20 * MILLISECOND  # time passes in such steps; timers are late by less
SETUP_MAX: Final = 1_000  # choices before the search
BEGIN: Final = GRAIN << 26


class Case(NamedTuple):
    """A small case: what happens before the search, and what may happen during it, at any time."""

    name: str
    setup: str  # the letters of the processes that take their next action; the group becomes quiet after each
    program: dict[str, tuple[str, ...]]  # for each process, its actions in this order
    crashes: int = 1
    may_crash: str = NAMES
    isolations: bool = False  # in place of a crash, the process is cut off from the others, and lives on
    early: int = 0  # times at which time may pass while something is on its way
    loses: str = ""  # one frame with a head of this name may be lost, as over UDP

    def concerns(self, profile: str) -> bool:
        """Whether the members of this profile send the head that may be lost."""
        return not self.loses or self.loses in {head.__name__ for head in PROFILES[profile].heads()}


class State(NamedTuple):
    """A state of the world."""

    now: int
    lives: tuple[int, ...]
    links: tuple[tuple[int, ...], ...]  # the items on their way, from x to y at place COUNT*x+y
    announced: int  # a bit for each process that the directory names
    alive: int  # a bit for each process
    crashes: int  # how many processes may still crash
    early: int
    refused: int = 0  # a bit for each pair: the driver of x has told that a connection to y was refused
    cut_off: int = 0  # a bit for each process that no frame reaches or leaves
    losses: int = 0  # how many frames may still be lost


class Choice(NamedTuple):
    """What happens next: `kind` is frame, loss, act, timer, crash, cut or time.

    `reach` is of a step in which the process crashes or is cut off: per process, how many frames of its output still
    leave.  With `seen` its application has seen the step too.  `then` is of a process that is cut off: the inputs that
    it still takes, in this order (alone.py).
    """

    kind: str
    who: int = -1
    src: int = -1
    reach: tuple[int, ...] = ()
    seen: bool = True
    cut: bool = False
    then: tuple[int, ...] = ()

    @property
    def crashes(self) -> bool:
        return not self.cut and (self.kind == "crash" or bool(self.reach))

    def __str__(self) -> str:
        who = NAMES[self.who] if self.who >= 0 else "-"
        text = f"{who} {self.kind}"
        if self.src >= 0:
            text += " from the network" if self.src == NETWORK else f" from {NAMES[self.src]}"
        if self.reach:
            left = [f"{count} to {name}" for count, name in zip(self.reach, NAMES, strict=True) if count]
            text += f", and {'is cut off' if self.cut else 'crashes'}; of its frames leave {', '.join(left) or 'none'}"
        if self.then:
            text += f"; then it takes {len(self.then)} more"
        return text


_SOURCES: Final = (*range(COUNT), NETWORK)
FRAMES: Final = tuple(tuple(Choice("frame", who, src) for src in _SOURCES) for who in range(COUNT))
LOSSES: Final = tuple(tuple(Choice("loss", who, src) for src in range(COUNT)) for who in range(COUNT))
TIME: Final = Choice("time")
TIMERS: Final = tuple(Choice("timer", who) for who in range(COUNT))
ACTS: Final = tuple(Choice("act", who) for who in range(COUNT))


class World:
    """The moves of a small case."""

    def __init__(self, case: Case, profile: str) -> None:
        self.case = case
        self.profile = profile
        self.lives = Lives(ADDRESSES)
        self.alone = Alone(self.lives)
        self.programs = tuple(case.program.get(name, ()) for name in NAMES)
        self._may_be_lost: dict[int, bool] = {}  # by item

    def begin(self) -> State:
        """The state in which no process has begun to join."""
        lives = tuple(
            self.lives.first(Process(address, self.profile, BEGIN, lossless=not self.case.loses))
            for address in ADDRESSES
        )
        empty: tuple[tuple[int, ...], ...] = ((),) * (COUNT * (COUNT + 1))
        return State(BEGIN, lives, empty, 0, (1 << COUNT) - 1, 0, 0)

    def open(self, state: State) -> State:
        """The same state at the beginning of the search: from now on processes may crash."""
        return state._replace(crashes=self.case.crashes, early=self.case.early, losses=int(bool(self.case.loses)))

    def start(self) -> tuple[State, list[Choice]]:
        """The state in which the search begins, and the choices that lead to it."""
        state = self.begin()
        path: list[Choice] = []
        for action in self.case.setup:
            state = self._forced(state, Choice("act", NAMES.index(action)), path)
            while True:
                choices = [choice for choice in self.choices(state) if choice.kind != "act"]
                if not choices:
                    break
                assert len(path) < SETUP_MAX, "the group is never at rest"
                state = self._forced(state, choices[0], path)
        return self.open(state), path

    def _forced(self, state: State, choice: Choice, path: list[Choice]) -> State:
        path.append(choice)
        return self.after(state, choice)

    # -- what may happen next

    def choices(self, state: State) -> list[Choice]:
        """All that may happen next, without the crashes."""
        found: list[Choice] = []
        due, soonest = False, NEVER
        for who in range(COUNT):
            if state.alive >> who & 1:
                life = self.lives.lives[state.lives[who]]
                due, soonest = due or life.wake <= state.now, min(soonest, life.works_at)
                found += self.choices_of(state, who)
        if not due and soonest <= state.now + PATIENCE and (state.early or not any(state.links)):
            found.append(TIME)
        return found + (self._losses(state) if state.losses else [])

    def _losses(self, state: State) -> list[Choice]:
        """The losses that may happen next, to frames that arrive next."""
        return [
            LOSSES[who][src]
            for who, src in permutations(range(COUNT), 2)
            if state.links[COUNT * src + who] and self._loses(state.links[COUNT * src + who][0], who)
        ]

    def _loses(self, item: int, who: int) -> bool:
        """Whether this item on its way to the process `who` is a frame with the head that may be lost."""
        if item not in self._may_be_lost:
            src, what = self.lives.items[item]
            runs = CODECS[self.profile].decode(what, ADDRESSES[who]) if src >= 0 else []
            heads = {type(head).__name__ for run in runs for head in run.heads}
            self._may_be_lost[item] = self.case.loses in heads
        return self._may_be_lost[item]

    def choices_of(self, state: State, who: int) -> list[Choice]:
        """The same for one process."""
        if not state.alive >> who & 1:
            return []
        life = self.lives.lives[state.lives[who]]
        found = [FRAMES[who][src] for src in _SOURCES if state.links[COUNT * src + who]]
        if life.wake <= state.now:
            found.append(TIMERS[who])
        if life.next < len(self.programs[who]):
            action = self.programs[who][life.next]
            if action == "join" or life.may_act:
                found.append(ACTS[who])
        return found

    def crashes(self, state: State, choice: Choice) -> Iterator[Choice]:
        """The same step with a crash or an isolation of its process, after any part of its output has left."""
        if not state.crashes or choice.who < 0 or choice.kind == "loss" or NAMES[choice.who] not in self.case.may_crash:
            return
        step = self.step(state, choice)
        sent = dict(step.sent)
        counts = [len(sent.get(dest, ())) for dest in range(COUNT)]
        ways = list(product(*(range(count + 1) for count in counts)))
        if not self.case.isolations:
            for reach in ways:
                yield choice._replace(reach=reach, seen=False)
            yield choice._replace(reach=tuple(counts))
        elif not step.ended:
            queues = self._queues(state, choice)
            for then in self.alone.endings(step.life, queues, state.now):
                for reach in ways:
                    yield choice._replace(reach=reach, cut=True, then=then)

    def idle_crashes(self, state: State) -> Iterator[Choice]:
        """Crashes or isolations between two steps, while nothing is on its way; any other is one of `crashes`, with
        news of it that travel for a while."""
        if state.crashes and not any(state.links):
            for who in range(COUNT):
                if state.alive >> who & 1 and NAMES[who] in self.case.may_crash:
                    yield Choice("cut", who, cut=True) if self.case.isolations else Choice("crash", who)

    # -- what follows

    def step(self, state: State, choice: Choice) -> Step:
        """The step of the process whose choice it is."""
        who = choice.who
        life = state.lives[who]
        if choice.kind == "frame":
            return self.lives.step(life, state.links[COUNT * choice.src + who][0], state.now)
        if choice.kind == "act":
            return self.lives.step(life, -1, state.now, self.programs[who][self.lives.lives[life].next])
        return self.lives.step(life, -2, state.now)

    def after(self, state: State, choice: Choice) -> State:
        """The state after `choice`."""
        if choice.kind == "time":
            return self._later(state)
        links = list(state.links)
        if choice.kind == "loss":
            place = COUNT * choice.src + choice.who
            links[place] = links[place][1:]
            return state._replace(links=tuple(links), losses=state.losses - 1)
        if choice.kind == "crash":
            history = self.lives.lives[state.lives[choice.who]].history
            state, dead = state._replace(crashes=state.crashes - 1), self.lives.dead(history)
            return self._ended(state, choice.who, dead, links, Ended(ADDRESSES[choice.who]))
        if choice.kind == "cut":
            return self._cut_off(state, choice.who, links)
        step = self.step(state, choice)
        if choice.kind == "frame":
            place = COUNT * choice.src + choice.who
            links[place] = links[place][1:]
        return self._moved(state, choice, step, links)

    def _queues(self, state: State, choice: Choice) -> Queues:
        """What is on its way to the process of `choice` when its step is done."""
        links = [state.links[COUNT * src + choice.who] for src in _SOURCES]
        if choice.kind == "frame":
            links[choice.src] = links[choice.src][1:]
        return tuple(links)

    def _moved(self, state: State, choice: Choice, step: Step, links: list[tuple[int, ...]]) -> State:
        """The state after `step`, whose input is not in `links` any more."""
        who, alive, refused, announced = choice.who, state.alive, state.refused, state.announced
        queues = tuple(links[COUNT * src + who] for src in _SOURCES)
        to_network: list[Event] = []
        refusals: list[int] = []
        unreached = state.cut_off if not state.cut_off >> who & 1 else (1 << COUNT) - 1
        for dest, items in step.sent:
            if unreached >> dest & 1:
                continue
            if alive >> dest & 1:
                links[COUNT * who + dest] += items[: choice.reach[dest]] if choice.reach else items
            elif not refused >> COUNT * who + dest & 1:
                refused |= 1 << COUNT * who + dest
                refusals.append(dest)
        if step.announces is not None and choice.seen:
            announced = announced & ~(1 << who) | step.announces << who
        to_network += [self._found(announced, who)] * step.finds
        for peer in step.probes:
            if unreached >> peer & 1:
                continue
            lives = alive >> peer & 1
            if lives:
                to_network.append(Answered(ADDRESSES[peer]))
            else:
                refusals.append(peer)
            refused |= (1 - lives) << COUNT * who + peer
        links[COUNT * NETWORK + who] += tuple(self.lives.item(-1, event) for event in to_network)
        for peer in refusals:  # no proof while a connection of the peer is open, with frames that are not read yet
            way = COUNT * peer + who
            links[way if links[way] else COUNT * NETWORK + who] += (self.lives.item(-1, Dead(ADDRESSES[peer])),)
        state = state._replace(announced=announced, refused=refused)
        if choice.cut:
            life, _ = self.alone.played(step.life, queues, state.now, choice.then)
            lives = (*state.lives[:who], life, *state.lives[who + 1 :])
            return self._cut_off(state._replace(lives=lives), who, links)
        if choice.reach:
            state = state._replace(crashes=state.crashes - 1)
            dead = self.lives.dead(self.lives.lives[step.life].history) if choice.seen else step.crashed
            return self._ended(state, who, dead, links, Ended(ADDRESSES[who]))
        if step.ended:
            return self._ended(state, who, step.life, links, Lost(ADDRESSES[who]))
        lives_now = (*state.lives[:who], step.life, *state.lives[who + 1 :])
        return state._replace(lives=lives_now, links=tuple(links))

    def _ended(self, state: State, who: int, dead: int, links: list[tuple[int, ...]], news: Event) -> State:
        """The process has ended: its peers learn that behind its last frame, and frames to it are lost."""
        announced = state.announced & ~(1 << who)
        return self._silent(state, who, dead, links, news)._replace(announced=announced)

    def _cut_off(self, state: State, who: int, links: list[tuple[int, ...]]) -> State:
        """The process is cut off, and has taken what was on its way to it.  Its peers suspect it some time behind its
        last frame."""
        state = state._replace(crashes=state.crashes - 1, cut_off=state.cut_off | 1 << who)
        frozen = self.lives.frozen(state.lives[who])
        return self._silent(state, who, frozen, links, Unheard(ADDRESSES[who]))

    def _silent(self, state: State, who: int, life: int, links: list[tuple[int, ...]], news: Event) -> State:
        alive = state.alive & ~(1 << who)
        item = self.lives.item(-1, news)
        for other in range(COUNT):
            links[COUNT * other + who] = ()
            if alive >> other & 1:
                links[COUNT * who + other] += (item,)
        links[COUNT * NETWORK + who] = ()
        lives = (*state.lives[:who], life, *state.lives[who + 1 :])
        return state._replace(lives=lives, links=tuple(links), alive=alive)

    def _found(self, announced: int, who: int) -> Found:
        members = {ADDRESSES[one]: NAMES[one] for one in range(COUNT) if announced >> one & 1 and one != who}
        return Found(members, not members)

    def _later(self, state: State) -> State:
        """Time passes until the next timer, which may be one that waits for a heartbeat."""
        living = [state.lives[who] for who in range(COUNT) if state.alive >> who & 1]
        soonest = min(self.lives.lives[life].wake for life in living)
        return state._replace(now=-(-soonest // GRAIN) * GRAIN, early=state.early - any(state.links))

    # -- an isolation that ends

    def end_alone(self, state: State, choice: Choice) -> int:
        """The state of the process that `choice` cuts off, when it has taken its inputs."""
        if choice.kind == "cut":
            return state.lives[choice.who]
        queues = self._queues(state, choice)
        return self.alone.played(self.step(state, choice).life, queues, state.now, choice.then)[0]

    def still_apart(self, state: State, life: int) -> State:
        """The same state, in which the process that is cut off goes on alone, from its state `life`."""
        lives = [life if state.cut_off >> who & 1 else state.lives[who] for who in range(COUNT)]
        alive = state.alive | state.cut_off if self.lives.lives[life].data else state.alive
        return state._replace(lives=tuple(lives), alive=alive)

    def healed(self, state: State) -> State:
        """The process that was cut off is reached again.  All connections to it were lost."""
        links = list(state.links)
        for one, other in permutations(range(COUNT), 2):
            if state.alive >> one & state.alive >> other & (state.cut_off >> one | state.cut_off >> other) & 1:
                links[COUNT * NETWORK + one] += (self.lives.item(-1, Lost(ADDRESSES[other])),)
        return state._replace(links=tuple(links), cut_off=0)

    # -- for the judge

    def told(self, state: State, choice: Choice) -> Told:
        """What the judge hears of this step."""
        if choice.kind in ("time", "loss", "crash", "cut"):
            return ()
        step = self.step(state, choice)
        if choice.cut:
            _, more = self.alone.played(step.life, self._queues(state, choice), state.now, choice.then)
            return step.told + more
        return step.told if choice.seen else step.told_crashed

    def shown(self, item: int, who: int) -> str:
        """An item on its way to the process `who`, for people."""
        src, what = self.lives.items[item]
        if src < 0:
            return repr(what)
        runs = CODECS[self.profile].decode(what, ADDRESSES[who])
        return " + ".join(" ".join([type(head).__name__ for head in run.heads] or ["payload"]) for run in runs)
