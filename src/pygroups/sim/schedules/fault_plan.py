"""The faults of one schedule, drawn one after the other.  Enough members stay in the group, or come back."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final, NamedTuple

from pygroups.core.detection import detection
from pygroups.core.limits import MILLISECOND, SECOND, Config
from pygroups.sim.promises.facts import MEMBERS

from .steps import (
    COORDINATOR,
    FOLLOWER,
    Action,
    Clog,
    Crash,
    Cut,
    Gather,
    Leave,
    Pause,
    Ring,
    Send,
    StartProcess,
    Way,
)

FORMATION: Final = 500 * MILLISECOND  # most of the initial members have started by then
TURNS: Final = ("sends", "delivers", "stops", "installs")
WAYS: Final[tuple[Way, ...]] = ("both", "both", "out", "in")
ANYBODY: Final = "anybody"
JOINER: Final = "joiner"


class FaultStage(NamedTuple):
    """A labeled point: the role of the member that sends a head of this kind, and the event that leads to it."""

    label: str
    who: str  # COORDINATOR, FOLLOWER, ANYBODY or JOINER
    after: str  # the event that leads to it: "" for none, "change" of the view, "join"
    often: int = 1


STAGES: Final = (
    FaultStage("Ready", COORDINATOR, "change"),
    FaultStage("ReadyRsp", FOLLOWER, "change"),
    FaultStage("Collect", COORDINATOR, "change", 4),
    FaultStage("CollectAck", FOLLOWER, "change", 3),
    FaultStage("Propose", COORDINATOR, "change", 4),
    FaultStage("Accept", FOLLOWER, "change", 4),
    FaultStage("Install", COORDINATOR, "change", 3),
    FaultStage("InstallAck", FOLLOWER, "change"),
    FaultStage("Done", COORDINATOR, "change"),
    FaultStage("Digest", COORDINATOR, "join", 3),
    FaultStage("StateData", COORDINATOR, "join", 3),
    FaultStage("Join", JOINER, "join"),
    FaultStage("StateBegin", JOINER, "join"),
    FaultStage("StateAck", JOINER, "join"),
    FaultStage("StateDone", JOINER, "join"),
    FaultStage("Forward", FOLLOWER, "", 3),
    FaultStage("Sequencer.Data", COORDINATOR, "", 3),
    FaultStage("Nakack.Data", ANYBODY, "", 3),
    FaultStage("Vote", ANYBODY, ""),
    FaultStage("StabilityMsg", COORDINATOR, ""),
    FaultStage("Ack", ANYBODY, ""),
    FaultStage("XmitReq", ANYBODY, ""),
    FaultStage("NewViewId", COORDINATOR, "change", 2),
    FaultStage("NewViewIdAck", FOLLOWER, "change"),
    FaultStage("Request", FOLLOWER, "", 3),
    FaultStage("Bcast", COORDINATOR, "", 3),
    FaultStage("CumSeqAck", FOLLOWER, ""),
    FaultStage("Total.Resend", FOLLOWER, ""),
)


class Aim(NamedTuple):
    """The victim of a fault, and the moment of the fault."""

    who: str
    moment: str = "now"
    nth: int = 1
    at: int = 0  # slightly later than the planned time, if the victim has to start first


class FaultPlan:
    """Draws faults.  `may` contains the faults of the schedule, and `labels` the labels of the heads that its
    profile's members send."""

    def __init__(
        self,
        rng: Random,
        names: Sequence[str],
        lasts: int,
        config: Config,
        may: Sequence[str],
        labels: Sequence[str],
    ) -> None:
        self.rng = rng
        self.names = names
        self.lasts = lasts
        self.patience = detection(config, MEMBERS)
        self.interval = config.merge_interval
        self.may = may
        self.stages = [stage for stage in STAGES if stage.label in labels]
        self.gone = 0  # number of names that are not started again
        self.actions: list[Action] = []
        self.ends = 0  # the faults may not heal before this time

    def add_gathers(self) -> None:
        """After half of the faults that can split the group, gather its sides, so that later faults hit a whole
        group."""
        for fault in list(self.actions):
            if isinstance(fault, Cut | Pause | Ring | Clog) and self.rng.random() < 0.5:
                after = fault.at + fault.lasts + self.rng.randrange(0, SECOND)
                self.actions.append(Gather(at=after))

    def add_unicasts(self) -> None:
        """Members send each other unicasts around long cuts and clogs, so that connections are closed and opened
        again."""
        for cut in [step for step in self.actions if isinstance(step, Cut | Clog) and step.lasts > self.patience]:
            if self.rng.random() < 0.5:
                continue
            one, other = self.rng.sample(self.names, 2)
            low, high = max(0, cut.at - 300 * MILLISECOND), cut.at + cut.lasts + 2 * SECOND
            for _ in range(self.rng.randint(5, 8)):
                at = self.rng.randrange(low, high)
                self.actions.append(Send(at=at, who=one, count=1, size=20, to=other))

    def add_long_pause(self) -> int:
        """Add a pause of up to minutes, and return its end."""
        at = FORMATION + self.rng.randrange(0, self.lasts)
        lasts = int(min(180, 5 * self.rng.paretovariate(0.7)) * SECOND)
        self.actions.append(Pause(at=at, who=self.who(), lasts=lasts))
        return at + lasts

    # -- victims, times, durations

    def who(self) -> str:
        return COORDINATOR if self.rng.random() < 0.4 else self.rng.choice(self.names)

    def some(self, low: int) -> list[str]:
        return self.rng.sample(self.names, self.rng.randint(min(low, len(self.names)), len(self.names)))

    def span(self) -> int:
        """A duration: shorter than the time to suspect a member, or longer, or one that ends during the following
        view change."""
        if self.rng.random() < 0.3:
            return self.patience + self.rng.randrange(0, 400 * MILLISECOND)
        share = self.rng.uniform(0.1, 1.0) if self.rng.random() < 0.4 else self.rng.uniform(1.0, 3.0)
        return int(share * self.patience)

    def soon(self, most: int = 20 * MILLISECOND) -> int:
        return self.rng.randrange(0, most)

    def when(self) -> int:
        """A time for a fault: some faults hit the group while it forms, and some hit while an earlier fault still
        has effects."""
        kind = self.rng.random()
        if kind < 0.1:
            return self.rng.randrange(1, FORMATION)
        if kind < 0.6 and self.actions:
            before = self.rng.choice(self.actions).at
            suspected = before + self.patience if self.rng.random() < 0.5 else before
            return min(suspected + self.soon(300 * MILLISECOND), FORMATION + self.lasts - 1)
        return FORMATION + self.rng.randrange(0, self.lasts)

    def aim(self, at: int) -> Aim:
        """A victim and a moment.  If the moment only occurs in a view change, the plan gets a step that causes one."""
        kind = self.rng.random()
        if kind < 0.45:
            return Aim(self.who(), at=at)
        if kind < 0.6:
            moment = self.rng.choice(TURNS)
            if moment in ("stops", "installs") and self.rng.random() < 0.8:
                self._change(at + self.soon())
            return Aim(self.who(), moment, at=at)
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

    # -- causes of a view change

    def _change(self, at: int) -> None:
        """Add a step that changes the view, with any process as its subject."""
        changes: list[Action] = []
        if "leave" in self.may:
            changes.append(Leave(at=at, who=self.who()))
        if "crash" in self.may:
            changes.append(Crash(at=at, who=self.who()))
        if "restart" in self.may or "join" in self.may:
            changes.append(StartProcess(at=at, who=self.rng.choice(self.names)))
        if changes:
            change = self.rng.choice(changes)
            if isinstance(change, StartProcess):
                self.joins(at)
                return
            self.actions.append(change)
            self.comes_back(at)

    def joins(self, at: int) -> str | None:
        """A process that ended shortly before joins at `at`.  Returns its name, or None if this schedule lets no
        process end."""
        joiner, before = self.rng.choice(self.names), max(1, at - self.rng.randrange(200, 600) * MILLISECOND)
        if "crash" in self.may or "restart" in self.may:
            self.actions.append(Crash(at=before, who=joiner))
        elif "leave" in self.may or "handover" in self.may:
            self.actions.append(Leave(at=before, who=joiner))
        else:
            return None
        self.actions.append(StartProcess(at=at, who=joiner))
        return joiner

    def comes_back(self, at: int) -> None:
        """Start all ended processes again, unless enough other processes stay."""
        if self.gone < len(self.names) - 2 and self.rng.random() < 0.4:
            self.gone += 1
            return
        soon = self.rng.random() < 0.5
        back = at + int(self.rng.uniform(0.01, 0.3 if soon else 1.0) * self.lasts / 2)
        self.actions += [StartProcess(at=back, who=name) for name in self.names]

    def traffic(self, at: int) -> None:
        for _ in range(self.rng.randint(1, 4)):
            who, count = self.rng.choice(self.names), self.rng.choice([1, 3, 10])
            self.actions.append(Send(at=at + self.soon(), who=who, count=count, size=30))
