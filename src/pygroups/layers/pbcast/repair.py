"""The requests of a member for messages that it lacks.

Any member of the view may hold them, so a member asks one after the other: first those that are known to hold them,
drawn at random, and at last those that keep messages for members that come late.  When nobody has a message any more,
the member announces a gap; it never waits for ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from pygroups.core.address import Address
from pygroups.core.layer import NEVER, Layer
from pygroups.core.limits import MEMBERS_MAX
from pygroups.core.tables import Tables

from . import decide
from .heads import WANTS_MAX, Lacks
from .store import Origin, Store

REFUSALS_MAX: Final = 8  # members that refused, after which nobody is taken to hold the messages
HOLDERS_MAX: Final = 64  # remembered holders of the messages that this member lacks of one origin
HOLES_MAX: Final = 16  # ranges of one origin in one request
EAGER: Final = 4  # requests after which the pause doubles
DOUBLINGS: Final = 2  # of the pause between two requests


class Want:
    """The next message of one origin, which this member lacks."""

    __slots__ = ("ask_at", "asked", "holders", "lows", "next", "since")

    def __init__(self, next: int, now: int, ask_at: int) -> None:
        self.next = next
        self.since = now
        self.ask_at = ask_at
        self.asked: dict[Address, None] = {}
        self.holders: dict[Address, None] = {}
        self.lows: dict[Address, int] = {}  # those that do not hold it any more, and the first message that each holds


class Repair:
    """What this member lacks, and whom it asked."""

    __slots__ = ("config", "env", "late", "layer", "peers", "store", "wants")

    tables: ClassVar[Tables] = {
        "late": "members",
        "peers": "members",
        "wants": "marks",
        "wants[].asked": "members_max",
        "wants[].holders": "fixed",
        "wants[].lows": "members_max",
    }

    def __init__(self, layer: Layer, store: Store) -> None:
        self.layer = layer
        self.env = layer.env
        self.config = layer.env.config
        self.store = store
        self.peers: dict[Address, None] = {}  # the other members of the view
        self.late: dict[Address, None] = {}  # members that keep messages for those that come late
        self.wants: dict[Address, Want] = {}

    def look_at(self, name: Address, origin: Origin) -> None:
        """A message of this origin was delivered, or was learned of."""
        want = self.wants.get(name)
        if not origin.lacks:
            if want is not None:
                del self.wants[name]
        elif want is None or want.next != origin.next:
            made = self.wants[name] = Want(origin.next, self.env.now, self.env.now + self.config.gossip_retry)
            if want is not None:  # the rest of the answer may be on its way
                made.holders, made.ask_at = want.holders, min(want.ask_at, made.ask_at)

    def held_by(self, name: Address, members: Iterable[Address]) -> None:
        """These members hold all messages of an origin that this member has heard of: ask one of them soon."""
        want = self.wants.get(name)
        if want is not None:
            want.ask_at = min(want.ask_at, self.env.now) if not want.asked else want.ask_at
            for member in members:
                if len(want.holders) < HOLDERS_MAX and member != self.env.me:
                    want.holders[member] = None

    def refused(self, src: Address, name: Address, low: int) -> None:
        """`src` holds the messages of an origin only from `low` on."""
        want = self.wants.get(name)
        if want is not None and low > want.next and src in want.asked:
            want.lows[src] = low
            want.holders.pop(src, None)
            want.ask_at = self.env.now

    def ask(self, *, waits: bool = False) -> list[tuple[Address, int]]:
        """Ask for what is due.  Returns the origins of which this member must go on at a later message, and at which:
        nobody has the next one.  With `waits` this member has no room for messages, and asks for none."""
        now = self.env.now
        if waits:
            for want in self.wants.values():
                want.since, want.ask_at = now, max(want.ask_at, now + self.config.gossip_retry)
            return []
        asks: dict[Address, list[tuple[Address, int, int]]] = {}
        skips = []
        for name, want in self.wants.items():
            origin = self.store.origins[name]
            if self._is_hopeless(want):
                skips.append((name, decide.skip_to(origin.next, origin.first_early, origin.known, want.lows.values())))
            elif want.ask_at <= now:
                holder = self._holder(want)
                want.ask_at = now + (self.config.gossip_retry << min(max(0, len(want.asked) - EAGER), DOUBLINGS))
                if holder is not None:
                    if len(want.asked) < MEMBERS_MAX:
                        want.asked[holder] = None
                    holes = origin.holes(HOLES_MAX)
                    asks.setdefault(holder, []).extend([(name, low, high) for low, high in holes])
        for holder, wants in asks.items():
            for at in range(0, len(wants), WANTS_MAX):
                self.layer.tell(holder, Lacks(wants[at : at + WANTS_MAX]))
        return skips

    def _holder(self, want: Want) -> Address | None:
        known = [member for member in want.holders if member in self.peers]
        late = [member for member in self.late if member in self.peers] if want.lows else []
        others = late or list(self.peers)
        may = decide.holders(want.asked, known, others) or others
        return self.env.rng.choice(may) if may else None

    def _is_hopeless(self, want: Want) -> bool:
        """Whether nobody is taken to hold the message: enough members said so, or the time is over."""
        keepers = [member for member in self.late if member in self.peers]
        enough = len(want.lows) >= min(REFUSALS_MAX, len(self.peers)) and all(m in want.lows for m in keepers)
        return (bool(want.lows) and enough) or self.env.now >= want.since + self.config.gossip_patience

    def next_time(self) -> int:
        """When ask() is due."""
        patience = self.config.gossip_patience
        return min([min(want.ask_at, want.since + patience) for want in self.wants.values()], default=NEVER)
