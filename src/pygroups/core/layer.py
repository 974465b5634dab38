"""The base class of all layers, and the environment that a layer can read.  See ARCHITECTURE.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Final, Protocol, TypeVar

from pygroups.core.tables import Tables

from .address import Address
from .events import Event
from .former import FormerLife
from .limits import COUNTERS_MAX, Config
from .merge_side import KEEP, Chooses
from .run import Run
from .services import ALONE_IN_A_TEST
from .totals import Totals
from .view import ViewId

T = TypeVar("T")

NEVER: Final = 1 << 62  # a time that is never reached

Record = tuple[str, "ViewId | None", dict[str, Any]]  # kind, the current view, the fields of the kind


class Random(Protocol):
    """The part of random.Random that layers use."""

    def random(self) -> float: ...
    def randrange(self, start: int, stop: int) -> int: ...
    def choice(self, seq: Sequence[T], /) -> T: ...
    def shuffle(self, x: list[Any], /) -> None: ...


def bodiless(run: Run) -> bytes | None:
    """No layer keeps the bodies of own runs."""
    return None


class Env:
    """The environment of a member's layers: its address, the time (microseconds), random numbers, the configuration,
    and the journal."""

    __slots__ = (
        "archiving",
        "asks",
        "chooses",
        "config",
        "contact",
        "counters",
        "drops",
        "expect",
        "fingerprint",
        "former",
        "gauges",
        "journaling",
        "keeps_state",
        "kept",
        "lossless",
        "me",
        "now",
        "on_merge",
        "own_body",
        "records",
        "requested",
        "rng",
        "run_records",
        "sender_waits",
        "sent",
        "services",
        "stored",
        "totals",
        "view",
    )

    tables: ClassVar[Tables] = {
        "counters": "counters",
        "drops": "counters",
        "kept": "turn",
        "records": "turn",
        "services": "fixed",
        "stored": "nothing",
    }

    def __init__(self, me: Address, now: int, rng: Random, config: Config, *, journaling: bool = False) -> None:
        self.me = me
        self.now = now
        self.rng = rng
        self.config = config
        self.contact = ""  # the address this member listens on; the driver sets it before the join
        self.fingerprint = ""  # must be equal at all members; the builder of the stack sets it
        self.asks = False  # members are found over the network: processes ask each other; the driver sets it too
        self.expect = 0  # processes that may take part in the birth of the group; 0: the directory's lock decides
        self.former: FormerLife | None = None  # as the folder of the journal shows it; the driver sets it
        self.keeps_state = True  # the application has a state: it can give the state, and needs it when it joins
        self.kept: list[Run] | None = None  # delivered runs of this turn, which the driver stores; None: it stores none
        self.stored: Sequence[tuple[Run, int]] = ()  # those of an earlier process, and the age of each in microseconds
        self.lossless = False  # the driver reports every loss of frames (driver_events.Lost); other frames arrive
        self.own_body: Callable[[Run], bytes | None] = bodiless  # the body of an own run that came without it
        self.sender_waits = False  # for room in the window of multicasts: more follows; the application's side sets it
        self.on_merge = KEEP  # how the side that wins a merge is chosen; part of the fingerprint
        self.chooses: Chooses | None = None  # chooses this side; None: no side wins
        self.services = ALONE_IN_A_TEST  # what the layers of the stack give; set before a layer is made
        self.journaling = journaling  # without a journal no record is made at all
        self.run_records = journaling  # also make records of sent and delivered runs; a watcher may not need them
        self.archiving = False  # the journal also gets the payloads of delivered runs
        self.view: ViewId | None = None  # the last view that the top has received
        self.records: list[Record] = []  # of this turn
        self.drops: dict[str, int] = {}  # of this turn, by reason
        self.counters: dict[str, int] = {}  # since the member began
        self.sent = 0  # runs with payloads that this member has sent since it began, once for each receiver
        self.requested = 0  # those of them that a receiver requested again
        self.totals = Totals()  # the same
        self.gauges: Callable[[], dict[str, int]] = dict  # the gauges of all layers; the stack sets this function

    def record(self, kind: str, **fields: Any) -> None:
        """Add a record for the journal.  Callers on the data path check `journaling` first."""
        if self.journaling:
            self.records.append((kind, self.view, fields))

    def drop(self, reason: str, count: int = 1) -> None:
        """Count `count` dropped things under a reason.  Reasons are few and fixed, and contain no text from a peer."""
        self.drops[reason] = self.drops.get(reason, 0) + count
        self.count(f"drop {reason}", count)

    def record_drops(self) -> None:
        """Record the drops since the last call."""
        for reason, count in self.drops.items():
            self.record("drop", reason=reason, detail=str(count))
        self.drops = {}

    def count(self, what: str, by: int = 1) -> None:
        """Add to a counter that channel.stats() shows."""
        if what not in self.counters and len(self.counters) >= COUNTERS_MAX:
            what = "counters beyond the limit"
        self.counters[what] = self.counters.get(what, 0) + by


class Layer:
    """One protocol.  A layer never calls another layer.  A layer appends runs and events to `above` and `below`, in the
    order in which they must arrive, and the stack moves them.  `wake` is the time of the next call of timer().

    A layer pushes at most one of its `heads` on a run that it sends down.  The same layer at the receiver pops that
    head. A layer looks only at the last head; a run with another layer's head last goes on up.
    """

    __slots__ = ("above", "below", "env", "wake")

    needs: ClassVar[frozenset[str]] = frozenset()  # services that a layer below must give
    needs_in_group: ClassVar[frozenset[str]] = frozenset()  # the same, if some layer below gives MEMBERSHIP
    needs_above: ClassVar[frozenset[str]] = frozenset()  # services that a layer above must give
    gives: ClassVar[frozenset[str]] = frozenset()  # services of core/services.py
    heads: ClassVar[tuple[type, ...]] = ()  # the heads of this protocol; the codec registers them
    tables: ClassVar[Tables] = {}  # its containers, with their limits: see core/tables.py
    own_heads_only: ClassVar[bool] = False  # up() only passes on runs with other heads, so the stack may skip the layer

    events_down: ClassVar[tuple[type[Event], ...] | None] = None  # down_event() only passes on others; None: unknown

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

    def rise(self, run: Run) -> Run | None:
        """Take a run on its way to the application, and return the run that goes up behind everything in `above`, or
        None.  The stack calls this function, so that a run that no layer stops rises from one to the next."""
        self.up(run)
        return None

    def down_event(self, event: Event) -> None:
        """An event from the layer above.  Pass it on, unless it is for this layer alone."""
        self.below.append(event)

    def up_event(self, event: Event) -> None:
        """An event from the layer below.  Pass it on, unless it is for this layer alone."""
        self.above.append(event)

    def timer(self) -> None:
        """The time `wake` is reached.  Set `wake` again, or set it to NEVER."""
        raise AssertionError(f"{type(self).__name__} set a timer and does not handle it")

    def after_pause(self) -> None:
        """This member took no turn for longer than `heartbeat_timeout`.  Called before any input of the turn."""

    def end_turn(self) -> None:
        """The turn ends: all its input was handled.  Send the collected messages now."""

    def gauges(self) -> dict[str, int]:
        """The number of things that this layer holds, by name.  Each must be 0 when the group is quiet."""
        return {}

    def waits_for(self) -> tuple[Address, ...]:
        """The members for which the messages wait that this layer holds; () if none waits."""
        return ()

    def tell(self, dest: Address | None, head: object) -> None:
        """Send `head` alone to the same layer at `dest`, or, with None, at every other member."""
        assert dest != self.env.me, f"{type(self).__name__} sends {head} to itself"
        self.below.append(Run(self.env.me, dest, (head,)))

    def wake_at(self, when: int) -> None:
        """Call timer() at `when`, or earlier if an earlier time is set."""
        if when < self.wake:
            self.wake = when


class PassingLayer(Layer):
    """Base of the layers through which each delivered run passes: `rise` is their work, and not `up`."""

    __slots__ = ()

    def up(self, run: Run) -> None:
        onward = self.rise(run)
        if onward is not None:
            self.above.append(onward)

    def rise(self, run: Run) -> Run | None:
        raise NotImplementedError


def services_of(layers: Iterable[type[Layer]]) -> frozenset[str]:
    """What a stack of these layers gives."""
    return frozenset(service for layer in layers for service in layer.gives)
