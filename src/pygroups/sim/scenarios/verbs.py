"""The actions of a scenario on members, on the network between them, and on single runs on the wire."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pygroups.core.address import INCARNATION_DIGITS, Address
from pygroups.core.errors import UsageError
from pygroups.core.limits import SECOND
from pygroups.core.run import Run, pack

from ..promises.judge import Judge
from ..schedules.schedule import Weather
from ..schedules.steps import Crash, Cut, Leave, Leaving, Moment, Way, moments
from ..world import faults
from .frames import Fate, FrameRule, Heads, Hit, Where
from .script import ScenarioWorld

CALM: Final = Weather(jitter=0)  # all frames of a link take equally long: no frame overtakes another

Names = str | Iterable[str]


class Verbs:
    """The actions on a group; the base of ScenarioGroup."""

    def __init__(self, world: ScenarioWorld, judge: Judge, heads: Heads) -> None:
        self.world = world
        self.judge = judge
        self._heads = heads

    # -- members

    def start(self, names: Names) -> None:
        """Start new incarnations under these names, which then join."""
        for name in listed(names):
            self.world.start(name)

    def crash(
        self, name: str, moment: Moment = "now", *, nth: int = 1, leaves: Leaving = "all", reaches: int = 1
    ) -> None:
        """Crash the process of `name`: now, or at a moment of a later turn (see steps.Moment), for the `nth` time from
        now on.  The process `sends`, `delivers`, `stops`, `installs`, or sends a head with the name `moment`.

        `leaves` says which frames of that turn leave before the crash: all, some, nothing, or those to the `first`
        processes, whose number is `reaches`.  With `unwritten` the process crashes between the layers and the journal
        of that turn.
        """
        who, at = self._running(name), self.world.agenda.now
        crash = Crash(at=at, who=who, moment=checked(moment), nth=nth, leaves=leaves, reaches=reaches)
        faults.apply(self.world, crash)

    def leave(self, name: str) -> None:
        """Let the application of `name` ask to leave."""
        faults.apply(self.world, Leave(at=self.world.agenda.now, who=self._running(name)))

    def pause(self, name: str) -> None:
        """Stop the process of `name` until `resume`; arriving frames wait."""
        self.judge.disturbed()
        self.world.tell(self._running(name), "is paused")
        self.world.running[name].pause()

    def resume(self, name: str) -> None:
        """Let the process of `name` run again."""
        self.world.tell(self._running(name), "runs again")
        self.world.running[name].resume()
        self.judge.unsettled()

    def _running(self, name: str) -> str:
        if name not in self.world.running:
            raise UsageError(f"no process runs under the name {name}")
        return name

    # -- the network

    def cut(self, side: Names, others: Names | None = None, way: Way = "both") -> None:
        """Cut the network between `side` and `others` (default: all other names), or only `out` of the side, or
        `in`to it."""
        links = self._links(listed(side), others, way)
        self.judge.disturbed()
        self.world.tell(" ".join(listed(side)), f"cut {way}")
        self.world.network.cut(links)

    def isolate(self, name: str, moment: Moment = "now", *, nth: int = 1, way: Way = "both") -> None:
        """Cut the network between `name` and all other names: now, or at a moment of a later turn of `name`, as for
        `crash`.  At a moment the cut begins before the frames of that turn leave.  `mend` and `heal` remove it."""
        if moment == "now":
            self.cut(name, way=way)
        else:
            side, at = (self._running(name),), self.world.agenda.now
            fault = Cut(at=at, side=side, lasts=0, stays=True, way=way, moment=checked(moment), nth=nth)
            faults.apply(self.world, fault)

    def mend(self, side: Names, others: Names | None = None, way: Way = "both") -> None:
        """Remove a cut."""
        self.world.tell(" ".join(listed(side)), "a cut ends")
        self.world.network.mend(self._links(listed(side), others, way))
        self.judge.unsettled()

    def heal(self) -> None:
        """Remove all cuts, calm the weather, and end all rules."""
        self.world.tell("-", "all network faults end")
        self.world.network.mend_all()
        self.world.network.set_weather(CALM)
        self.world.rules.clear()
        self.judge.unsettled()

    def _links(self, side: list[str], others: Names | None, way: Way) -> list[tuple[str, str]]:
        rest = [name for name in self.world.births if name not in side] if others is None else listed(others)
        out = [(one, other) for one in side for other in rest]
        into = [(other, one) for one, other in out]
        return (out if way != "in" else []) + (into if way != "out" else [])

    def weather(self, weather: Weather) -> None:
        """Let the network treat frames as `weather` says from now on."""
        self.world.network.set_weather(weather)
        if self.world.network.silences:
            self.judge.disturbed()

    # -- single runs on the wire

    def drop(
        self,
        *heads: str | type,
        src: Names = (),
        dest: Names = (),
        count: int | None = None,
        first: bool = False,
        where: Where | None = None,
    ) -> FrameRule:
        """Lose the next `count` runs (default: all) that carry one of these heads on the link from `src` to `dest`.

        A head has a name such as `Data`, or `nakack.Data` where several layers have a head of that name.  With `first`
        the rule ignores retransmissions.  `where` limits the rule to runs for which it returns True.
        """
        return self._rule("drop", heads, src, dest, count, first, where)

    def watch(
        self,
        *heads: str | type,
        src: Names = (),
        dest: Names = (),
        count: int | None = None,
        first: bool = False,
        where: Where | None = None,
    ) -> FrameRule:
        """Record matching runs, in `hits` of the rule, and let them pass."""
        return self._rule("watch", heads, src, dest, count, first, where)

    def repeat(
        self,
        *heads: str | type,
        copies: int = 1,
        src: Names = (),
        dest: Names = (),
        count: int | None = None,
        first: bool = False,
        where: Where | None = None,
    ) -> FrameRule:
        """Send `copies` further copies of matching runs."""
        return self._rule("repeat", heads, src, dest, count, first, where, copies)

    def delay(
        self,
        *heads: str | type,
        by: float,
        src: Names = (),
        dest: Names = (),
        count: int | None = None,
        first: bool = False,
        where: Where | None = None,
    ) -> FrameRule:
        """Send matching runs `by` seconds later."""
        return self._rule("delay", heads, src, dest, count, first, where, int(by * SECOND))

    def _rule(
        self,
        fate: Fate,
        heads: tuple[str | type, ...],
        src: Names,
        dest: Names,
        count: int | None,
        first: bool,
        where: Where | None,
        amount: int = 0,
    ) -> FrameRule:
        rule = FrameRule(
            fate,
            self._heads.of(heads),
            src=listed(src),
            dest=listed(dest),
            count=count,
            first=first,
            where=where,
            amount=amount,
        )
        self.world.rules.append(rule)
        return rule

    def again(self, hit: Hit) -> None:
        """Let a copy of a matched run arrive again."""
        (frame,) = self.world.frames_of(hit.src, [hit.run])
        self._arrives(hit.src, hit.dest, frame)

    def inject(
        self,
        src: str | Address,
        dest: str,
        *heads: object,
        payloads: Sequence[bytes] = (),
        first: int = 1,
        multicast: bool = False,
    ) -> None:
        """Let a run arrive at `dest` that `src` seems to have sent, with these heads, the lowest layer's last.

        `src` may be an unused name, or an address.  With `payloads` the run contains messages of `src`, with numbers
        from `first` on.
        """
        sender, receiver = self.address(src), self._address(dest)
        run = Run(sender, None if multicast else receiver, heads)
        if payloads:
            run = Run(sender, run.dest, heads, sender, first, 0, len(payloads), pack(payloads))
        (frame,) = self.world.codec.encode(sender, run.dest, [run])
        self._arrives(sender, receiver, frame)

    def _arrives(self, src: Address, dest: Address, frame: bytes) -> None:
        self.world.tell(dest.name, f"a frame with the sender {src} is injected")
        receiver = self.world.lives[dest]
        receiver.arrive((src, frame))

    def address(self, who: str | Address) -> Address:
        """The incarnation that runs under a name, or the last one; an invented address for a name that was never
        used."""
        if isinstance(who, Address):
            return who
        return self._address(who) if who in self.world.births else Address(who, "f" * INCARNATION_DIGITS)

    def _address(self, name: str) -> Address:
        """The incarnation that runs under `name`, or the last one."""
        return self.world.life(name).address


def listed(names: Names) -> list[str]:
    """The names as a list; a text contains names with blanks between them."""
    return names.split() if isinstance(names, str) else list(names)


def checked(moment: Moment) -> Moment:
    """The moment, if a fault can wait for it.  Raises UsageError otherwise."""
    if moment not in moments():
        raise UsageError(f"a fault cannot wait for {moment!r}; possible moments: {', '.join(moments())}")
    return moment
