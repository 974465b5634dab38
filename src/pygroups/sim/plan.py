"""The faults of one schedule, drawn one after the other; enough members stay, or come back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final, NamedTuple

from pygroups.core.limits import MILLISECOND, SECOND

from . import applications, lasting
from .schedule import (
    COORDINATOR,
    FOLLOWER,
    Action,
    Break,
    Clog,
    Crash,
    Cut,
    Flap,
    Gather,
    Jump,
    Leave,
    Leaving,
    Pause,
    Replay,
    Ring,
    Send,
    Slow,
    Start,
    Unread,
    Way,
)
from .tearing import ahead, hears_late, tear

FORMATION: Final = 500 * MILLISECOND  # most of the first members have started by then
TURNS: Final = ("sends", "delivers", "stops", "installs")
LEAVINGS: Final[tuple[Leaving, ...]] = ("all", "some", "first", "nothing")
WAYS: Final[tuple[Way, ...]] = ("both", "both", "out", "in")
ANYBODY: Final = "anybody"
JOINER: Final = "joiner"


class Stage(NamedTuple):
    """A labeled point: who sends a head of this kind, and when."""

    label: str
    who: str  # COORDINATOR, FOLLOWER, ANYBODY or JOINER
    after: str  # what has to begin before: "" for nothing, "change" of the view, "join"
    often: int = 1


STAGES: Final = (
    Stage("Ready", COORDINATOR, "change"),
    Stage("ReadyRsp", FOLLOWER, "change"),
    Stage("Collect", COORDINATOR, "change", 4),
    Stage("CollectAck", FOLLOWER, "change", 3),
    Stage("Propose", COORDINATOR, "change", 4),
    Stage("Accept", FOLLOWER, "change", 4),
    Stage("Install", COORDINATOR, "change", 3),
    Stage("InstallAck", FOLLOWER, "change"),
    Stage("Done", COORDINATOR, "change"),
    Stage("Digest", COORDINATOR, "join", 3),
    Stage("StateData", COORDINATOR, "join", 3),
    Stage("Join", JOINER, "join"),
    Stage("StateBegin", JOINER, "join"),
    Stage("StateAck", JOINER, "join"),
    Stage("StateDone", JOINER, "join"),
    Stage("Forward", FOLLOWER, "", 3),
    Stage("Sequencer.Data", COORDINATOR, "", 3),
    Stage("Nakack.Data", ANYBODY, "", 3),
    Stage("Vote", ANYBODY, ""),
    Stage("StabilityMsg", COORDINATOR, ""),
    Stage("Ack", ANYBODY, ""),
    Stage("XmitReq", ANYBODY, ""),
)


class Aim(NamedTuple):
    """Whom a fault hits, and at which moment."""

    who: str
    moment: str = "now"
    nth: int = 1
    at: int = 0  # a little later than it was aimed, where its victim has to start first


class Plan:
    """Draws faults.  `may` are those that the schedule has; `labels` what its profile's members send."""

    def __init__(
        self, rng: Random, names: Sequence[str], lasts: int, patience: int, may: Sequence[str], labels: Sequence[str]
    ) -> None:
        self.rng = rng
        self.names = names
        self.lasts = lasts
        self.patience = patience
        self.may = may
        self.stages = [stage for stage in STAGES if stage.label in labels]
        self.gone = 0  # names that nobody starts again
        self.actions: list[Action] = []

    def add(self, fault: str) -> None:
        """One more fault of this kind, often with much on its way when it happens."""
        at = self._when()
        _DRAWN[fault](self, at)
        if self.rng.random() < 0.7:
            self._traffic(at)

    def add_gathers(self) -> None:
        """Sides that went apart are often brought together again, so that what comes later finds a group."""
        for fault in list(self.actions):
            if isinstance(fault, Cut | Pause | Ring | Clog) and self.rng.random() < 0.5:
                after = fault.at + fault.lasts + self.rng.randrange(0, SECOND)
                self.actions.append(Gather(at=after))

    def add_unicasts(self) -> None:
        """Some write to each other while they lose sight of each other: connections are given up and made anew."""
        for cut in [step for step in self.actions if isinstance(step, Cut | Clog) and step.lasts > self.patience]:
            if self.rng.random() < 0.5:
                continue
            one, other = self.rng.sample(self.names, 2)
            low, high = max(0, cut.at - 300 * MILLISECOND), cut.at + cut.lasts + 2 * SECOND
            for _ in range(self.rng.randint(5, 8)):
                at = self.rng.randrange(low, high)
                self.actions.append(Send(at=at, who=one, count=1, size=20, to=other))

    def add_last_change(self, heal_at: int) -> None:
        """The coordinator leaves just before everything heals, with much on its way; then nothing happens any more, so
        that what is lost now is not made good by a later view."""
        at = heal_at - self.soon(300 * MILLISECOND) - 1
        self.actions = [step for step in self.actions if step.at < at]
        for _ in range(self.rng.randint(2, 5)):
            sent = at + self.rng.randrange(-30, 60) * MILLISECOND
            self.actions += [Send(at=sent, who=name, count=5, size=30) for name in self.names]
        self.actions.append(Leave(at=at, who=COORDINATOR))
        if "ahead" in self.may and self.rng.random() < 0.7:
            hears_late(self, at - 1, heal_at - at)

    def add_long_pause(self) -> int:
        """Somebody does not run for up to minutes.  When that is over."""
        at = FORMATION + self.rng.randrange(0, self.lasts)
        lasts = int(min(180, 5 * self.rng.paretovariate(0.7)) * SECOND)
        self.actions.append(Pause(at=at, who=self._who(), lasts=lasts))
        return at + lasts

    # -- whom, when, how long

    def _who(self) -> str:
        return COORDINATOR if self.rng.random() < 0.4 else self.rng.choice(self.names)

    def some(self, low: int) -> list[str]:
        return self.rng.sample(self.names, self.rng.randint(min(low, len(self.names)), len(self.names)))

    def span(self) -> int:
        """Shorter than anybody's patience, or longer, or so that it ends while the others go on without the victim."""
        if self.rng.random() < 0.3:
            return self.patience + self.rng.randrange(0, 400 * MILLISECOND)
        share = self.rng.uniform(0.1, 1.0) if self.rng.random() < 0.4 else self.rng.uniform(1.0, 3.0)
        return int(share * self.patience)

    def soon(self, most: int = 20 * MILLISECOND) -> int:
        return self.rng.randrange(0, most)

    def _when(self) -> int:
        """Some faults hit the group while it forms, some come while what an earlier one began goes on."""
        kind = self.rng.random()
        if kind < 0.1:
            return self.rng.randrange(1, FORMATION)
        if kind < 0.6 and self.actions:
            before = self.rng.choice(self.actions).at
            suspected = before + self.patience if self.rng.random() < 0.5 else before
            return min(suspected + self.soon(300 * MILLISECOND), FORMATION + self.lasts - 1)
        return FORMATION + self.rng.randrange(0, self.lasts)

    def _aim(self, at: int) -> Aim:
        """Some faults wait for what their victim does next; where that takes a view change, something begins one."""
        kind = self.rng.random()
        if kind < 0.45:
            return Aim(self._who(), at=at)
        if kind < 0.6:
            moment = self.rng.choice(TURNS)
            if moment in ("stops", "installs") and self.rng.random() < 0.8:
                self._change(at + self.soon())
            return Aim(self._who(), moment, at=at)
        return self._aim_at_stage(at)

    def _aim_at_stage(self, at: int) -> Aim:
        stage = self.rng.choices(self.stages, [stage.often for stage in self.stages])[0]
        nth = self.rng.choice((1, 1, 1, 2, 3))
        who = stage.who if stage.who in (COORDINATOR, FOLLOWER) else self.rng.choice(self.names)
        if stage.after == "change":
            self._change(at + 1 + self.soon())
        elif stage.after == "join":
            joiner = self.joins(at)
            if stage.who == JOINER and joiner is not None:
                return Aim(joiner, stage.label, nth, at + 1)
        return Aim(who, stage.label, nth, at)

    # -- what begins a view change

    def _change(self, at: int) -> None:
        """Something that changes the view, done to anybody."""
        changes: list[Action] = []
        if "leave" in self.may:
            changes.append(Leave(at=at, who=self._who()))
        if "crash" in self.may:
            changes.append(Crash(at=at, who=self._who()))
        if "restart" in self.may or "join" in self.may:
            changes.append(Start(at=at, who=self.rng.choice(self.names)))
        if changes:
            change = self.rng.choice(changes)
            if isinstance(change, Start):
                self.joins(at)
                return
            self.actions.append(change)
            self.comes_back(at)

    def joins(self, at: int) -> str | None:
        """Somebody joins at `at`, who ended a while before.  Nobody, if nobody may end."""
        joiner, before = self.rng.choice(self.names), max(1, at - self.rng.randrange(200, 600) * MILLISECOND)
        if "crash" in self.may or "restart" in self.may:
            self.actions.append(Crash(at=before, who=joiner))
        elif "leave" in self.may or "handover" in self.may:
            self.actions.append(Leave(at=before, who=joiner))
        else:
            return None
        self.actions.append(Start(at=at, who=joiner))
        return joiner

    def comes_back(self, at: int) -> None:
        """Whoever may be gone is started again, unless enough others stay."""
        if self.gone < len(self.names) - 2 and self.rng.random() < 0.4:
            self.gone += 1
            return
        soon = self.rng.random() < 0.5
        back = at + int(self.rng.uniform(0.01, 0.3 if soon else 1.0) * self.lasts / 2)
        self.actions += [Start(at=back, who=name) for name in self.names]

    def _traffic(self, at: int) -> None:
        for _ in range(self.rng.randint(1, 4)):
            who, count = self.rng.choice(self.names), self.rng.choice([1, 3, 10])
            self.actions.append(Send(at=at + self.soon(), who=who, count=count, size=30))

    # -- processes

    def crash(self, at: int) -> None:
        aim, leaves = self._aim(at), self.rng.choice(LEAVINGS)
        reaches = self.rng.randint(1, 3) if leaves == "first" else 1
        self.actions.append(
            Crash(at=aim.at, who=aim.who, moment=aim.moment, nth=aim.nth, leaves=leaves, reaches=reaches)
        )
        self.comes_back(at)

    def restart(self, at: int) -> None:
        who = self.rng.choice(self.names)
        self.actions += [Crash(at=at, who=who), Start(at=at + 1 + self.soon(self.rng.choice((10, 20_000))), who=who)]

    def pause(self, at: int) -> None:
        aim = self._aim(at)
        self.actions.append(Pause(at=aim.at, who=aim.who, lasts=self.span(), moment=aim.moment, nth=aim.nth))

    def slow(self, at: int) -> None:
        delay = self.rng.choice((5 * MILLISECOND, 20 * MILLISECOND, self.patience // 4, self.patience))
        self.actions.append(Slow(at=at, who=self._who(), lasts=2 * self.span(), loop_delay=delay))

    def full(self, at: int) -> None:
        lasts = self.rng.choice((200, 1_000, 3_000)) * MILLISECOND
        self.actions.append(Unread(at=at, who=self._who(), lasts=lasts))

    def clock(self, at: int) -> None:
        by = self.rng.choice((MILLISECOND, SECOND, 3_600 * SECOND, 86_400 * SECOND)) * self.rng.choice((-1, 1))
        self.actions.append(Jump(at=at, who=self._who(), by=by))

    # -- the group

    def leave(self, at: int) -> None:
        self.actions.append(Leave(at=at, who=self._who()))
        self.comes_back(at)

    def join(self, at: int) -> None:
        """Somebody who is gone, if anybody is, comes back."""
        self.actions.append(Start(at=at, who=self.rng.choice(self.names)))

    def join_storm(self, at: int) -> None:
        """Some who ended, or were made to leave, come back at one time."""
        back = at + self.rng.randrange(50, 1_500) * MILLISECOND
        for who in self.some(2)[: len(self.names) - 1]:
            self.actions.append(Crash(at=at, who=who) if "crash" in self.may else Leave(at=at, who=who))
        self.actions += [Start(at=back + self.soon(5 * MILLISECOND), who=name) for name in self.names]

    def leave_storm(self, at: int) -> None:
        self.actions += [Leave(at=at + self.soon(), who=who) for who in self.some(2)]
        back = at + self.rng.randrange(100, 1_500) * MILLISECOND
        self.actions += [Start(at=back, who=name) for name in self.names]

    def handover(self, at: int) -> None:
        self.joins(at)
        change = at + self.soon(60 * MILLISECOND)
        crashes = "crash" in self.may and self.rng.random() < 0.3
        self.actions.append(Crash(at=change, who=COORDINATOR) if crashes else Leave(at=change, who=COORDINATOR))
        self.comes_back(change)

    # -- the network

    def isolate(self, at: int) -> None:
        aim = self._aim(at)
        self.actions.append(Cut(at=aim.at, side=(aim.who,), lasts=self.span(), moment=aim.moment, nth=aim.nth))

    def halves(self, at: int) -> None:
        side = self.rng.sample(self.names, self.rng.randint(1, len(self.names) - 1))
        self.actions.append(Cut(at=at, side=tuple(side), lasts=self.span()))

    def ring(self, at: int) -> None:
        order = tuple(self.rng.sample(self.names, len(self.names)))
        self.actions.append(Ring(at=at, order=order, lasts=self.span()))

    def oneway(self, at: int) -> None:
        way: Way = "out" if self.rng.random() < 0.5 else "in"
        self.actions.append(Cut(at=at, side=(self._who(),), lasts=self.span(), way=way))

    def pair(self, at: int) -> None:
        one, other = self.rng.sample(self.names, 2)
        way: Way = "both" if self.rng.random() < 0.5 else "out"
        self.actions.append(Cut(at=at, side=(one,), others=(other,), lasts=self.span(), way=way))

    def flap(self, at: int) -> None:
        one, other = self.rng.sample(self.names, 2)
        down, up = (int(self.rng.uniform(0.02, 1.2) * self.patience) for _ in range(2))
        times = self.rng.randint(2, 8)
        alone = self.rng.random() < 0.5
        self.actions.append(Flap(at=at, who=one, other=other if alone else None, times=times, down=down, up=up))

    def clog(self, at: int) -> None:
        one, other = self.rng.sample(self.names, 2)
        who, to = (one, other) if self.rng.random() < 0.5 else (self._who(), None)
        self.actions.append(Clog(at=at, who=who, other=to, lasts=self.span(), way=self.rng.choice(WAYS)))

    def replay(self, at: int) -> None:
        one, other = self.rng.sample(self.names, 2)
        self.actions.append(
            Replay(at=at, who=one, other=other, since=self.rng.choice((500, 2_000, 5_000)) * MILLISECOND)
        )

    def breaks(self, at: int) -> None:
        one, other = self.rng.sample(self.names, 2)
        self.actions.append(Break(at=at, who=one, other=other))

    def refused(self, at: int) -> None:
        lasting.refused(self, at, self.rng.choice((20 * MILLISECOND, SECOND, self.span())))


_DRAWN: Final[dict[str, Callable[[Plan, int], None]]] = {
    "crash": Plan.crash,
    "restart": Plan.restart,
    "isolate": Plan.isolate,
    "pause": Plan.pause,
    "halves": Plan.halves,
    "ring": Plan.ring,
    "oneway": Plan.oneway,
    "pair": Plan.pair,
    "tear": tear,
    "ahead": ahead,
    "flap": Plan.flap,
    "clog": Plan.clog,
    "replay": Plan.replay,
    "break": Plan.breaks,
    "refused": Plan.refused,
    "leave": Plan.leave,
    "join": Plan.join,
    "join-storm": Plan.join_storm,
    "leave-storm": Plan.leave_storm,
    "handover": Plan.handover,
    "slow": Plan.slow,
    "full": Plan.full,
    "clock": Plan.clock,
    "forget": applications.forget,
    "alone": applications.leave_alone,
    "twin": applications.twin,
    "stranger": applications.stranger,
    "directory": applications.mislead,
}
