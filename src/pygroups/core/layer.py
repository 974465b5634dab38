"""What a layer is, and all it may know of the world.  See ARCHITECTURE.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, Protocol, TypeVar

from .address import Address
from .events import Event
from .limits import Config
from .run import Run
from .view import ViewId

T = TypeVar("T")

NEVER: Final = 1 << 62  # a time that does not come

Record = tuple[str, "ViewId | None", dict[str, Any]]  # kind, the view it happened in, the kind's fields


class Random(Protocol):
    """The part of random.Random that layers use."""

    def random(self) -> float: ...
    def randrange(self, start: int, stop: int) -> int: ...
    def choice(self, seq: Sequence[T], /) -> T: ...
    def shuffle(self, x: list[Any], /) -> None: ...


class Env:
    """Who this member is, what time it is (microseconds), what chance says, what is configured; and its journal."""

    __slots__ = (
        "archiving",
        "config",
        "contact",
        "counters",
        "drops",
        "fingerprint",
        "gauges",
        "journaling",
        "keeps_state",
        "me",
        "now",
        "records",
        "rng",
        "run_records",
        "view",
        "waits_for_all",
    )

    def __init__(self, me: Address, now: int, rng: Random, config: Config, *, journaling: bool = False) -> None:
        self.me = me
        self.now = now
        self.rng = rng
        self.config = config
        self.contact = ""  # where this member listens; its driver sets it before it joins
        self.fingerprint = ""  # what all members must have in common; whoever builds the stack sets it
        self.keeps_state = True  # the application has a state, which joiners need and it can give
        self.waits_for_all = True  # an own multicast is on its way until all have it, not until it is ordered; Top says
        self.journaling = journaling  # without a journal no record is made at all
        self.run_records = journaling  # also those of every run that is sent or delivered; who watches may know them
        self.archiving = False  # what is delivered goes into the journal, payloads and all
        self.view: ViewId | None = None  # the view that the top has been given
        self.records: list[Record] = []  # of this turn
        self.drops: dict[str, int] = {}  # of this turn, by reason
        self.counters: dict[str, int] = {}  # of this life
        self.gauges: Callable[[], dict[str, int]] = dict  # what the whole stack holds; the stack sets it

    def record(self, kind: str, **fields: Any) -> None:
        """Write to the journal.  Callers on the data path ask `journaling` first."""
        if self.journaling:
            self.records.append((kind, self.view, fields))

    def drop(self, reason: str, count: int = 1) -> None:
        """Count `count` things that were discarded, and why.  Reasons are few and fixed: no text from a peer."""
        self.drops[reason] = self.drops.get(reason, 0) + count
        self.count(f"drop {reason}", count)

    def record_drops(self) -> None:
        """Write down what was discarded since this was done last."""
        for reason, count in self.drops.items():
            self.record("drop", reason=reason, detail=str(count))
        self.drops = {}

    def count(self, what: str, by: int = 1) -> None:
        """Add to a counter that channel.stats() shows."""
        self.counters[what] = self.counters.get(what, 0) + by


class Layer:
    """One protocol.  It calls no other layer: what it has to say it leaves in `above` and `below`, in the order it is
    to arrive, and the stack moves it.  `wake` is when it wants timer().

    A layer pushes one of its `heads` on a run that it sends down, or none; its peer pops what it pushed: a layer looks
    at the last head only, and a run whose last head is not its own is not for it and goes on up.
    """

    __slots__ = ("above", "below", "env", "wake")

    needs: ClassVar[frozenset[str]] = frozenset()  # of the layers below
    gives: ClassVar[frozenset[str]] = frozenset()  # to the layers above
    heads: ClassVar[tuple[type, ...]] = ()  # what its peers may receive; the codec learns them from here
    own_heads_only: ClassVar[bool] = False  # up() passes on every run whose last head is not its own: go past it

    def __init__(self, env: Env) -> None:
        self.env = env
        self.above: list[Run | Event] = []
        self.below: list[Run | Event] = []
        self.wake: int = NEVER

    def down(self, run: Run) -> None:
        """A run on its way to the network."""
        self.below.append(run)

    def up(self, run: Run) -> None:
        """A run on its way to the application."""
        self.above.append(run)

    def down_event(self, event: Event) -> None:
        """An event from the layer above; pass on what is not for this layer alone."""
        self.below.append(event)

    def up_event(self, event: Event) -> None:
        """An event from the layer below; pass on what is not for this layer alone."""
        self.above.append(event)

    def timer(self) -> None:
        """`wake` has come.  Set it anew, or to NEVER."""
        raise AssertionError(f"{type(self).__name__} set a timer and does not handle it")

    def end_turn(self) -> None:
        """Everything that came in this turn was handled: send now what was gathered."""

    def gauges(self) -> dict[str, int]:
        """What this layer holds, by name; everything here must be 0 when all is quiet."""
        return {}

    def tell(self, dest: Address | None, head: object) -> None:
        """Send `head` alone to the same layer at `dest`, or, with None, at every other member."""
        assert dest != self.env.me, f"{type(self).__name__} sends {head} to itself"
        self.below.append(Run(self.env.me, dest, (head,)))

    def wake_at(self, when: int) -> None:
        """Have timer() called at `when`, or earlier if it is set to be."""
        self.wake = min(self.wake, when)
