"""The judge hears what every member saw, as it happens, and has the checks look at it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from pygroups.core.address import Address
from pygroups.core.errors import UsageError
from pygroups.core.events import Marks, NewView
from pygroups.core.layer import Record
from pygroups.core.limits import SECOND, Config
from pygroups.core.top import Delivered
from pygroups.core.view import ViewId

from .broken import Witness
from .causal import FOLLOWS_FROM, Causal
from .changes import Changes
from .duties import Leaves, Repairs, Windows
from .facts import Around, Check, Delivery, OnConnection, Rest, Situation, UnicastDelivery, Viewed, Written
from .joins import Joins
from .journals import JournalFirst
from .messages import Messages
from .order import Order
from .progress import Progress
from .quiet import Quiet
from .stability import Stability
from .states import States
from .synchrony import Synchrony
from .unicasts import Connections, Unicasts
from .views import TransitionalSet, ViewAccuracy, Views
from .window import WindowBound

PROFILES: Final = ("fifo", "total")
WANTED: Final = frozenset({"purge", "unicast_send", "unicast_deliver"})  # kinds of record that checks are told of


def checks_of(profile: str) -> list[Check]:
    """The checks of what `profile` promises."""
    if profile not in PROFILES:
        raise UsageError(f"the simulator has no checks for profile {profile!r}; there are: {', '.join(PROFILES)}")
    messages = Messages()
    order: list[Check] = [Order(), Causal(messages)] if profile == "total" else []
    return [
        Views(),
        TransitionalSet(),
        ViewAccuracy(),
        Changes(),
        States(messages),  # before messages, which takes over what a view begins with
        messages,
        *order,
        Stability(messages),
        Quiet(messages),
        Synchrony(),
        Unicasts(),
        Connections(),
        Progress(messages),
        Joins(),
        WindowBound(messages),
        Leaves(),
        Repairs(messages, one_order=profile == "total"),
        Windows(),
        JournalFirst(),
    ]


class Judge:
    """Tells each check what it wants to know.

    What a check raises goes through to whoever plays the world; with `goes_on` nothing is raised, and `broken` says in
    the end all that does not hold.
    """

    def __init__(self, checks: list[Check], *, goes_on: bool = False) -> None:
        self.checks = checks
        self.promises = list(dict.fromkeys(promise for check in checks for promise in check.promises))
        self.found: list[Witness] = []
        self.around = Around()
        for check in checks:
            check.found = self.found if goes_on else None
            check.around = self.around
        self._views: dict[Address, ViewId] = {}
        self._accepted = _hearers(checks, "accepted")
        self._viewed = _hearers(checks, "viewed")
        self._delivered = _hearers(checks, "delivered")
        self._received = _hearers(checks, "received")
        self._on_connection = _hearers(checks, "on_connection")
        self._written = _hearers(checks, "written")
        self._undelivered = _hearers(checks, "undelivered")
        self._purged = _hearers(checks, "purged")
        self._consumed = _hearers(checks, "consumed")
        self._held_up = _hearers(checks, "held_up")
        self._reached = _hearers(checks, "reached")
        self._leaving = _hearers(checks, "leaving")
        self._disturbed = _hearers(checks, "disturbed")
        self._ended = _hearers(checks, "ended")
        self._state_given = _hearers(checks, "state_given")
        self._state_set = _hearers(checks, "state_set")
        self._keeps_no_state = _hearers(checks, "keeps_no_state")
        self._state_refused = _hearers(checks, "state_refused")
        self._state_none = _hearers(checks, "state_none")
        self._looked = _hearers(checks, "looked")
        self._healed = _hearers(checks, "healed")
        self._settled = _hearers(checks, "settled")
        self.counters = {"messages": 0, "deliveries": 0, "views": 0}
        self.senders: dict[Address, None] = {}
        self.heard: dict[Address, int] = {}  # per origin, the first number that nobody has delivered

    @property
    def facts(self) -> dict[str, int]:
        """Per promise, how many facts were judged: views, runs or messages at a member.  0: nothing was said of it."""
        facts = dict.fromkeys(self.promises, 0)
        for check in self.checks:
            for promise, count in check.facts().items():
                facts[promise] += count
        return facts

    @property
    def broken(self) -> list[Witness]:
        """All that a judge found that goes on, less what follows from something else that is broken."""
        found = [witness.promise for witness in self.found]
        excused = any(promise in found for promise in FOLLOWS_FROM)
        return [witness for witness in self.found if witness.promise != "causal" or not excused]

    def accepted(self, member: Address, to: Address | None, number: int, payload: bytes) -> None:
        """The stack of `member` took a payload and gave it this number."""
        if to is None:
            self.counters["messages"] += 1
            self.senders.setdefault(member)
        for check in self._accepted:
            check(member, to, number, payload)

    def viewed(self, member: Address, event: NewView) -> None:
        """`member` was given a view."""
        self.counters["views"] += 1
        view = Viewed(
            member,
            event.view.id,
            event.view.members,
            self._views.get(member),
            event.previous,
            event.transitional,
            event.starts,
            self.around.clock(),
            event.joined,
            event.left,
            event.primary,
        )
        self._views[member] = view.id
        for check in self._viewed:
            check(view)

    def delivered(self, member: Address, event: Delivered) -> None:
        """`member` was given a run."""
        run = event.run
        assert run.origin is not None
        if event.position < 0:
            unicast = UnicastDelivery(member, run.origin, run.dest or member, run.first, run.count, run.body)
            for received in self._received:
                received(unicast)
            return
        origin, first, count = run.origin, run.first, run.count
        self.counters["deliveries"] += count
        if first + count > self.heard.get(origin, 1):
            self.heard[origin] = first + count
        delivery = Delivery(member, event.view, event.position, origin, first, count, run.body, run.stream, run.seq)
        for check in self._delivered:
            check(delivery)

    def recorded(self, member: Address, records: Sequence[Record]) -> None:
        """`member` wrote this down in a turn whose deliveries were told already: what no event tells."""
        for record in records:
            if record[0] in WANTED:
                kind, view, fields = record
                if kind != "purge":
                    self.on_connection(member, kind == "unicast_send", fields)
                elif view is not None:
                    for check in self._purged:
                        check(member, view, fields["digest"])

    def on_connection(self, member: Address, sent: bool, fields: dict[str, Any]) -> None:
        """`member` sent, or was given, unicasts."""
        origin = Address(fields["origin"], fields["origin_incarnation"])
        numbers = (fields["first"], fields["count"], fields["connection"])
        passed = OnConnection(member, sent, origin, fields["peer"], *numbers)
        for check in self._on_connection:
            check(passed)

    def written(self, member: Address, records: Sequence[Written]) -> None:
        """`member` has written this into its journal, and has told nobody yet what else it did in the turn."""
        for check in self._written:
            check(member, records)

    def undelivered(self, member: Address, to: Address, numbers: range) -> None:
        """`member` was told that its messages to `to` with these numbers were not acknowledged."""
        for check in self._undelivered:
            check(member, to, numbers)

    def consumed(self, member: Address, marks: Marks) -> None:
        """The application of `member` has read so far, per origin; only what changed."""
        for check in self._consumed:
            check(member, marks)

    def held_up(self, member: Address) -> None:
        """The application of `member` wants to multicast, and its window has no room."""
        for check in self._held_up:
            check(member)

    def reached(self, member: Address, delivered: int, stable: int) -> None:
        """`member` was told how far its own multicasts have come."""
        for check in self._reached:
            check(member, delivered, stable)

    def leaving(self, member: Address) -> None:
        """The application at `member` asked to leave."""
        for check in self._leaving:
            check(member)

    def disturbed(self) -> None:
        """Something happens that may make the living look dead."""
        self.unsettled()
        for check in self._disturbed:
            check()

    def unsettled(self, until: int | None = None) -> None:
        """Something that disturbs begins now, or ends, or has ended by `until`: what it sets going takes its time."""
        around = self.around
        over = around.clock() if until is None else until
        around.calm_from = max(around.calm_from, over + recovery(around.config))

    def calm(self) -> None:
        """Nothing is left of what disturbed: the time of duties begins."""
        self.around.calm_from = min(self.around.calm_from, self.around.clock())

    def stopped(self, member: Address, reason: str, unknown: range) -> None:
        """`member` is out of the group and was told which of its messages it cannot know the fate of."""
        if reason != "left":
            self.unsettled()
        for check in self._ended:
            check(member, reason, unknown)

    def crashed(self, member: Address) -> None:
        """`member`'s process ended without a word."""
        self.unsettled()
        for check in self._ended:
            check(member, "crashed", None)

    def state_given(self, member: Address, view: ViewId, digest: Marks, data: bytes) -> None:
        """`member` took its state, for those who join in `view`."""
        for check in self._state_given:
            check(member, view, digest, data)

    def state_set(self, member: Address, view: ViewId, provider: Address, digest: Marks, data: bytes) -> None:
        """`member` has the state of the start of `view`."""
        for check in self._state_set:
            check(member, view, provider, digest, data)

    def keeps_no_state(self, member: Address) -> None:
        """`member`, which has no view yet, wants no state and gives none."""
        for check in self._keeps_no_state:
            check(member)

    def state_refused(self, member: Address) -> None:
        """`member` was asked for its state, and does not give it."""
        for check in self._state_refused:
            check(member)

    def state_none(self, member: Address, view: ViewId) -> None:
        """`member` was told that it begins with none."""
        for check in self._state_none:
            check(member, view)

    def looked(self, situation: Situation) -> None:
        """This is how everybody stands, in a stretch in which nothing changes."""
        for check in self._looked:
            check(situation)

    def healed(self, deadline: int) -> None:
        """All faults are over; until `deadline`, by the world's time, everything promised must have happened."""
        for check in self._healed:
            check(deadline)

    def settled(self, rests: list[Rest]) -> None:
        """All should be well by now; raises Broken with the first thing that is not."""
        for check in self._settled:
            check(rests)


def recovery(config: Config) -> int:
    """How long after a disturbance those who live may still be busy with it: they look for the dead, and try again."""
    return config.heartbeat_timeout + config.verify_timeout + 4 * config.flush_timeout + 2 * SECOND


def _hearers(checks: list[Check], what: str) -> list[Callable[..., None]]:
    """The methods of that name, of the checks that want to be told."""
    return [getattr(check, what) for check in checks if getattr(type(check), what) is not getattr(Check, what)]
