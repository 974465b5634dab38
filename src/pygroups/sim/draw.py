"""What a seed means: the schedule that is drawn from it."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final, NamedTuple

from pygroups.core.errors import NotBuilt, UsageError
from pygroups.core.limits import MILLISECOND, SECOND, Config

from .schedule import (
    COORDINATOR,
    Action,
    Break,
    Crash,
    Cut,
    Gather,
    Habits,
    Leave,
    Leaving,
    Moment,
    Pause,
    Schedule,
    Send,
    Start,
    Way,
    Weather,
    stream,
)

NAMES: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MEMBERS_MIN: Final = 2
MEMBERS_MAX: Final = len(NAMES)
MESSAGES: Final = 320  # planned while there are faults; some of their senders will be gone
FORMATION: Final = 500 * MILLISECOND  # most of the first members have started by then

# Faults with how often each is drawn; the first three are what nine schedules in ten have at least one of.
GRAVE: Final = {"crash": 4, "isolate": 5, "pause": 3}
OTHERS: Final = {"halves": 2, "oneway": 2, "pair": 1, "leave": 2, "break": 2, "join": 1}
MOMENTS: Final[tuple[Moment, ...]] = ("sends", "delivers", "stops", "installs")
LEAVINGS: Final[tuple[Leaving, ...]] = ("all", "some", "nothing")
WEATHERS: Final = ("loss", "burst", "repeat", "reorder", "tail", "late")
DISTURBING: Final = ("isolate", "pause", "halves", "oneway", "pair", "loss", "burst", "tail")
FAULTS: Final = (*GRAVE, *OTHERS, *WEATHERS)


class Wish(NamedTuple):
    """What the caller wants of all schedules."""

    profile: str
    members: int | None = None  # how many; None: drawn
    minutes: float | None = None  # of faults; None: some seconds, drawn
    faults: tuple[str, ...] = FAULTS


def checked_faults(text: str) -> tuple[str, ...]:
    """The faults of a list with commas; UsageError for a name that is none."""
    if text == "swarm":
        raise NotBuilt("--faults swarm is not built yet; give a list such as crash,isolate,loss")
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in FAULTS:
            raise UsageError(f"there is no fault {name!r}; there are: {', '.join(FAULTS)}")
    return names


def draw(seed: int, wish: Wish) -> Schedule:
    """The schedule of `seed`."""
    rng = stream(seed, "schedule")
    if rng.random() < 0.15:  # nobody ever looks dead who lives: then nobody may be taken for dead
        wish = wish._replace(faults=tuple(fault for fault in wish.faults if fault not in DISTURBING))
    count = wish.members or (rng.randint(6, 12) if rng.random() < 0.05 else rng.randint(3, 5))
    names = tuple(NAMES[:count])
    config = _config(stream(seed, "config"))
    lasts = _duration(rng, wish, config)
    heal_at = FORMATION + lasts
    actions = [
        *_starts(stream(seed, "starts"), names, heal_at, wish),
        *_faults(stream(seed, "faults"), names, lasts, _patience(config), wish),
        *_sends(stream(seed, "sends"), names, heal_at, config),
    ]
    return Schedule(
        seed=seed,
        profile=wish.profile,
        names=names,
        habits=_habits(stream(seed, "habits"), names),
        config=config,
        weather=_weather(stream(seed, "weather"), wish),
        rejoin=rng.random() < 0.5,
        actions=tuple(
            sorted((a for a in actions if a.at < heal_at or isinstance(a, Start | Send)), key=lambda a: a.at)
        ),
        heal_at=heal_at,
        bound=30 * SECOND + 20 * _patience(config),
    )


def _config(rng: Random) -> dict[str, int]:
    """Mostly faster than the defaults, so that more happens in a second; sometimes with small limits."""
    config: dict[str, int] = {}
    if rng.random() < 0.85:
        beat = rng.choice([50, 100, 200]) * MILLISECOND
        config |= {
            "heartbeat": beat,
            "heartbeat_timeout": rng.randint(3, 6) * beat,
            "verify_timeout": rng.randint(1, 2) * beat,
            "ready_timeout": rng.choice([100, 200, 500]) * MILLISECOND,
            "flush_timeout": rng.choice([150, 300, 1000]) * MILLISECOND,
            "leave_timeout": 3 * SECOND,
            "join_retry": rng.choice([100, 300]) * MILLISECOND,
        }
    if rng.random() < 0.3:
        config |= {"run_bytes": 2 << 10, "window": rng.choice([4, 8, 32]) << 10, "stable_bytes": 2 << 10}
    if rng.random() < 0.1:
        config |= {"nakack_early_max": 8, "unicast_early_max": 8, "nakack_request_runs": 3, "unicast_request_runs": 3}
    if rng.random() < 0.7:
        config |= {"connection_age": rng.choice([1, 3]) * SECOND}
    return config


def _patience(config: dict[str, int]) -> int:
    """How long a silent member is waited for before it is suspected."""
    defaults = Config(**config)
    return defaults.heartbeat_timeout + defaults.verify_timeout


def _duration(rng: Random, wish: Wish, config: dict[str, int]) -> int:
    if wish.minutes is not None:
        return int(wish.minutes * 60 * SECOND)
    return int(max(rng.uniform(5, 8) * SECOND, rng.uniform(2, 3) * _patience(config)))


def _habits(rng: Random, names: Sequence[str]) -> dict[str, Habits]:
    return {
        name: Habits(
            loop_delay=rng.choice([50, 100, 300, 2 * MILLISECOND]),
            reads_after=rng.choice([100, MILLISECOND, 5 * MILLISECOND, 5 * MILLISECOND, 100 * MILLISECOND]),
        )
        for name in names
    }


def _weather(rng: Random, wish: Wish) -> Weather:
    def share(fault: str, often: float, shares: Sequence[float]) -> float:
        drawn, amount = rng.random() < often, rng.choice(shares)
        return amount if drawn and fault in wish.faults else 0.0

    delay = rng.choice([100, 200, 500, 2 * MILLISECOND, 10 * MILLISECOND])
    return Weather(
        delay=delay,
        jitter=rng.choice([delay // 10, delay]),
        loss=share("loss", 0.5, [0.005, 0.02, 0.05, 0.15]),
        bursts=share("burst", 0.2, [0.001, 0.005]),
        burst_frames=rng.randint(5, 50),
        repeat=share("repeat", 0.4, [0.01, 0.05, 0.2]),
        reorder=share("reorder", 0.4, [0.01, 0.05, 0.2]),
        reorder_by=rng.choice([1, 5, 20]) * MILLISECOND,
        tail=share("tail", 0.3, [0.002, 0.01]),
        tail_max=rng.choice([200, 1000, 2000]) * MILLISECOND,
        late=share("late", 0.4, [0.002, 0.01, 0.03]),
        late_max=rng.choice([1, 3, 5]) * SECOND,
    )


def _starts(rng: Random, names: Sequence[str], heal_at: int, wish: Wish) -> list[Action]:
    """Most start together; at least two of them do, so that there are two senders from the beginning."""
    starts: list[Action] = []
    for rank, name in enumerate(names):
        latecomer = rank >= 2 and rng.random() < 0.15 and "join" in wish.faults
        at = rng.randrange(FORMATION, heal_at) if latecomer else rng.randrange(0, FORMATION // 2)
        starts.append(Start(at=at, who=name))
    return starts


class _Plan:
    """Draws faults one after the other and sees to it that enough members stay."""

    def __init__(self, rng: Random, names: Sequence[str], lasts: int, patience: int, faults: Sequence[str]) -> None:
        self.rng = rng
        self.names = names
        self.lasts = lasts
        self.patience = patience
        self.faults = faults
        self.gone = 0  # names that nobody starts again
        self.actions: list[Action] = []

    def who(self) -> str:
        return COORDINATOR if self.rng.random() < 0.4 else self.rng.choice(self.names)

    def span(self) -> int:
        """Shorter than anybody's patience, or longer, or so that it ends while the others go on without the victim."""
        if self.rng.random() < 0.3:
            return self.patience + self.rng.randrange(0, 400 * MILLISECOND)
        share = self.rng.uniform(0.1, 1.0) if self.rng.random() < 0.4 else self.rng.uniform(1.0, 3.0)
        return int(share * self.patience)

    def when(self) -> int:
        """Some faults hit the group while it forms, some come while what an earlier one began goes on."""
        kind = self.rng.random()
        if kind < 0.1:
            return self.rng.randrange(1, FORMATION)
        if kind < 0.6 and self.actions:
            before = self.rng.choice(self.actions).at
            suspected = before + self.patience if self.rng.random() < 0.5 else before
            return min(suspected + self.rng.randrange(0, 300 * MILLISECOND), FORMATION + self.lasts - 1)
        return FORMATION + self.rng.randrange(0, self.lasts)

    def add(self, fault: str) -> None:
        at = self.when()
        getattr(self, f"add_{fault}")(at)
        if self.rng.random() < 0.6:
            self.add_traffic(at)

    def add_traffic(self, at: int) -> None:
        """So that much is on its way when it happens."""
        for _ in range(self.rng.randint(1, 4)):
            soon = at + self.rng.randrange(0, 20 * MILLISECOND)
            self.actions.append(
                Send(at=soon, who=self.rng.choice(self.names), count=self.rng.choice([1, 3, 10]), size=30)
            )

    def moment(self, at: int) -> Moment:
        """Some faults wait for what their victim does next; where that is a view change, something begins one."""
        if self.rng.random() < 0.6:
            return "now"
        moment = self.rng.choice(MOMENTS)
        if moment in ("stops", "installs") and self.rng.random() < 0.8:
            self.add_change(at + self.rng.randrange(0, 20 * MILLISECOND))
        return moment

    def add_change(self, at: int) -> None:
        """Something that changes the view, done to anybody."""
        changes = [
            change for change in (Leave(at=at, who=self.who()), Crash(at=at, who=self.who())) if self.may(change)
        ]
        if changes:
            self.actions.append(self.rng.choice(changes))
            self._return(at)

    def may(self, change: Leave | Crash) -> bool:
        return ("leave" if isinstance(change, Leave) else "crash") in self.faults

    def add_crash(self, at: int) -> None:
        moment, leaves = self.moment(at), self.rng.choice(LEAVINGS)
        self.actions.append(Crash(at=at, who=self.who(), moment=moment, leaves=leaves))
        self._return(at)

    def add_isolate(self, at: int) -> None:
        self.actions.append(Cut(at=at, side=(self.who(),), lasts=self.span(), moment=self.moment(at)))

    def add_pause(self, at: int) -> None:
        self.actions.append(Pause(at=at, who=self.who(), lasts=self.span(), moment=self.moment(at)))

    def add_halves(self, at: int) -> None:
        side = self.rng.sample(self.names, self.rng.randint(1, len(self.names) - 1))
        self.actions.append(Cut(at=at, side=tuple(side), lasts=self.span()))

    def add_oneway(self, at: int) -> None:
        way: Way = "out" if self.rng.random() < 0.5 else "in"
        self.actions.append(Cut(at=at, side=(self.who(),), lasts=self.span(), way=way))

    def add_pair(self, at: int) -> None:
        one, other = self.rng.sample(self.names, 2)
        way: Way = "both" if self.rng.random() < 0.5 else "out"
        self.actions.append(Cut(at=at, side=(one,), others=(other,), lasts=self.span(), way=way))

    def add_leave(self, at: int) -> None:
        self.actions.append(Leave(at=at, who=self.who()))
        self._return(at)

    def add_break(self, at: int) -> None:
        one, other = self.rng.sample(self.names, 2)
        self.actions.append(Break(at=at, who=one, other=other))

    def add_join(self, at: int) -> None:
        """Somebody who is gone, if anybody is, comes back."""
        self.actions.append(Start(at=at, who=self.rng.choice(self.names)))

    def add_gathers(self) -> None:
        """Sides that went apart are often brought together again, so that what comes later finds a group."""
        for fault in list(self.actions):
            if isinstance(fault, Cut | Pause) and self.rng.random() < 0.5:
                after = fault.at + fault.lasts + self.rng.randrange(0, SECOND)
                self.actions.append(Gather(at=after))

    def _return(self, at: int) -> None:
        """Whoever may be gone is started again, unless enough others stay."""
        if self.gone < len(self.names) - 2 and self.rng.random() < 0.4:
            self.gone += 1
            return
        soon = self.rng.random() < 0.5
        back = at + int(self.rng.uniform(0.01, 0.3 if soon else 2.0) * self.lasts / 2)
        self.actions += [Start(at=back, who=name) for name in self.names]


def _faults(rng: Random, names: Sequence[str], lasts: int, patience: int, wish: Wish) -> list[Action]:
    plan = _Plan(rng, names, lasts, patience, wish.faults)
    grave = {fault: often for fault, often in GRAVE.items() if fault in wish.faults}
    chosen = grave | {fault: often for fault, often in OTHERS.items() if fault in wish.faults}
    if not chosen:
        return []
    if grave and rng.random() < 0.95:
        plan.add(_one_of(rng, grave))
    phases = max(1, lasts // (6 * SECOND)) if wish.minutes else 1
    for _ in range(phases * rng.choice([0, 1, 1, 2, 3, 4, 6])):
        plan.add(_one_of(rng, chosen))
    plan.add_gathers()
    return plan.actions


def _one_of(rng: Random, weights: dict[str, int]) -> str:
    return rng.choices(list(weights), list(weights.values()))[0]


def _sends(rng: Random, names: Sequence[str], heal_at: int, config: dict[str, int]) -> list[Action]:
    """Steady senders and bursts.  In half of the schedules a few messages after everything healed, to see that it works
    again; in the others nothing more is sent, and what was lost last must be found without that."""
    senders = rng.sample(names, rng.randint(2, len(names)))
    large = Config(**config).run_bytes
    whole = max(1, heal_at // (8 * SECOND))
    sends: list[Action] = []
    left = MESSAGES * whole
    while left > 0:
        count = rng.choice([1, 1, 1, 2, 5, 20])
        size = rng.randint(10, 200) if rng.random() < 0.97 else rng.randint(200, large)
        at = rng.randrange(FORMATION // 2, heal_at)
        to = rng.choice(names) if rng.random() < 0.1 else None
        sends.append(Send(at=at, who=rng.choice(senders), count=count, size=size, to=to))
        left -= count if to is None else 0
    for _ in range(rng.choice([0, 10])):
        sends.append(Send(at=heal_at + rng.randrange(0, 2 * SECOND), who=rng.choice(names), count=1, size=20))
    return sends
