"""What a scenario does to members, to the network between them, and to single runs on the wire."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pygroups.core.address import INCARNATION_DIGITS, Address
from pygroups.core.errors import UsageError
from pygroups.core.limits import SECOND
from pygroups.core.run import Run, pack

from ..promises.judge import Judge
from ..schedules.schedule import Weather
from ..schedules.steps import MOMENTS, Crash, Leave, Leaving, Moment, Way
from ..world import faults
from .frames import Fate, Heads, Hit, Rule, Where
from .script import ScenarioWorld

CALM: Final = Weather(jitter=0)  # each frame takes as long as the one before it: nothing overtakes

Names = str | Iterable[str]


class Verbs:
    """What can be done to a group; the base of ScenarioGroup."""

    def __init__(self, world: ScenarioWorld, judge: Judge, heads: Heads) -> None:
        self.world = world
        self.judge = judge
        self._heads = heads

    # -- members

    def start(self, names: Names) -> None:
        """New lives begin under these names, and join."""
        for name in listed(names):
            self.world.start(name)

    def crash(
        self, name: str, moment: Moment = "now", *, nth: int = 1, leaves: Leaving = "all", reaches: int = 1
    ) -> None:
        """Its process ends without a word: now, or at a moment of a later turn (see schedule.Moment: it `sends`,
        `delivers`, `stops`, `installs`, or sends a head of this name), for the `nth` time from now on.

        `leaves`: which of that turn's frames are on the wire by then: all, some, nothing, or those to the `first` so
        many that it `reaches`.  `unwritten`: it dies between the layers and the journal of that turn.
        """
        who, at = self._running(name), self.world.agenda.now
        if moment not in MOMENTS:
            raise UsageError(f"a crash cannot wait for {moment!r}; it can for: {', '.join(MOMENTS)}")
        faults.apply(self.world, Crash(at=at, who=who, moment=moment, nth=nth, leaves=leaves, reaches=reaches))

    def leave(self, name: str) -> None:
        """Its application asks to leave."""
        faults.apply(self.world, Leave(at=self.world.agenda.now, who=self._running(name)))

    def pause(self, name: str) -> None:
        """Its process does not run; what arrives waits, until `resume`."""
        self.judge.disturbed()
        self.world.tell(self._running(name), "is paused")
        self.world.running[name].pause()

    def resume(self, name: str) -> None:
        """It runs again."""
        self.world.tell(self._running(name), "runs again")
        self.world.running[name].resume()

    def _running(self, name: str) -> str:
        if name not in self.world.running:
            raise UsageError(f"nobody runs under the name {name}")
        return name

    # -- the network

    def cut(self, side: Names, others: Names | None = None, way: Way = "both") -> None:
        """Nothing passes between `side` and `others` (all the rest), or only not `out` of the side, or `in`to it."""
        links = self._links(listed(side), others, way)
        self.judge.disturbed()
        self.world.tell(" ".join(listed(side)), f"cut {way}")
        self.world.network.cut(links)

    def isolate(self, name: str) -> None:
        """Nothing passes between it and all the rest."""
        self.cut(name)

    def mend(self, side: Names, others: Names | None = None, way: Way = "both") -> None:
        """Take back a cut."""
        self.world.tell(" ".join(listed(side)), "a cut heals")
        self.world.network.mend(self._links(listed(side), others, way))

    def heal(self) -> None:
        """Take back all cuts, stop all rules; the network is calm."""
        self.world.tell("-", "the network heals")
        self.world.network.mend_all()
        self.world.network.set_weather(CALM)
        self.world.rules.clear()

    def _links(self, side: list[str], others: Names | None, way: Way) -> list[tuple[str, str]]:
        rest = [name for name in self.world.births if name not in side] if others is None else listed(others)
        out = [(one, other) for one in side for other in rest]
        into = [(other, one) for one, other in out]
        return (out if way != "in" else []) + (into if way != "out" else [])

    def weather(self, weather: Weather) -> None:
        """From now on the network treats frames so."""
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
    ) -> Rule:
        """Lose the next `count` runs (all, without it) that carry one of these heads on the way from `src` to `dest`.

        A head is named `Data`, or `nakack.Data` where several layers have one of that name.  `first`: only what was not
        sent on this way before.  `where`: only runs of which this is true.
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
    ) -> Rule:
        """Only note them: `hits` of the rule."""
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
    ) -> Rule:
        """Have so many copies of them follow."""
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
    ) -> Rule:
        """Let them leave `by` seconds later."""
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
    ) -> Rule:
        rule = Rule(
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
        """A copy of a run that a rule has seen arrives once more."""
        (frame,) = self.world.codec.encode(hit.src, hit.run.dest, [hit.run])
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
        """A run arrives at `dest` that `src` seems to have sent, under these heads, the lowest layer's last.

        `src` may be a name that nobody has, or an address.  With `payloads` it is a run of messages of `src`, whose
        numbers begin at `first`.
        """
        sender, receiver = self.address(src), self._address(dest)
        run = Run(sender, None if multicast else receiver, heads)
        if payloads:
            run = Run(sender, run.dest, heads, sender, first, 0, len(payloads), pack(payloads))
        (frame,) = self.world.codec.encode(sender, run.dest, [run])
        self._arrives(sender, receiver, frame)

    def _arrives(self, src: Address, dest: Address, frame: bytes) -> None:
        self.world.tell(dest.name, f"a frame that says it is of {src} arrives")
        receiver = self.world.lives[dest]
        receiver.arrive((src, frame))

    def address(self, who: str | Address) -> Address:
        """The life that runs under a name, or the last one; under a name that nobody ever had, one that is made up."""
        if isinstance(who, Address):
            return who
        return self._address(who) if who in self.world.births else Address(who, "f" * INCARNATION_DIGITS)

    def _address(self, name: str) -> Address:
        """The life that runs under `name`, or the last one."""
        return self.world.life(name).address


def listed(names: Names) -> list[str]:
    """The names, which may be one text with blanks between them."""
    return names.split() if isinstance(names, str) else list(names)
