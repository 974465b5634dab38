"""The judge receives the events of every member as they happen, and passes them to the checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pygroups.core.address import Address
from pygroups.core.detection import detection
from pygroups.core.events import Gap, Marks, NewView
from pygroups.core.layer import Record
from pygroups.core.limits import SECOND, Config
from pygroups.core.top import Delivered
from pygroups.core.view import ViewId

from .alone import SettledAlone
from .broken import Witness
from .causal import FOLLOWS_FROM
from .facts import MEMBERS, Check, Delivery, OnConnection, Rest, Situation, UnicastDelivery, Viewed, WorldFacts, Written

WANTED: Final = frozenset(
    {"purge", "unicast_send", "unicast_deliver", "suspect", "flush", "merge", "retransmit_request"}
)  # for checks


class Judge:
    """Passes each event to the checks that override its method.

    An exception of a check goes through to the caller that plays the world.  With `goes_on` no check raises, and
    `broken` lists all violations at the end.
    """

    def __init__(self, checks: list[Check], *, goes_on: bool = False) -> None:
        self.checks = checks
        self.promises = list(dict.fromkeys(promise for check in checks for promise in check.promises))
        self.found: list[Witness] = []
        self.around = WorldFacts()
        for check in checks:
            check.found = self.found if goes_on else None
            check.around = self.around
        self._views: dict[Address, ViewId] = {}
        self._accepted = _hearers(checks, "accepted")
        self._viewed = _hearers(checks, "viewed")
        self._delivered = _hearers(checks, "delivered")
        self._gap_announced = _hearers(checks, "gap_announced")
        self._received = _hearers(checks, "received")
        self._on_connection = _hearers(checks, "on_connection")
        self._written = _hearers(checks, "written")
        self._journal_lost = _hearers(checks, "journal_lost")
        self._undelivered = _hearers(checks, "undelivered")
        self._purged = _hearers(checks, "purged")
        self._consumed = _hearers(checks, "consumed")
        self._held_up = _hearers(checks, "held_up")
        self._reached = _hearers(checks, "reached")
        self._leaving = _hearers(checks, "leaving")
        self._disturbed = _hearers(checks, "disturbed")
        self._passed_layers = _hearers(checks, "passed_layers")
        self._paused = _hearers(checks, "paused")
        self._asked_out = _hearers(checks, "asked_out")
        self._replaced = _hearers(checks, "replaced")
        self._merge_accepted = _hearers(checks, "merge_accepted")
        self._ended = _hearers(checks, "ended")
        self._state_given = _hearers(checks, "state_given")
        self._state_set = _hearers(checks, "state_set")
        self._keeps_no_state = _hearers(checks, "keeps_no_state")
        self._state_late = _hearers(checks, "state_late")
        self._state_refused = _hearers(checks, "state_refused")
        self._state_none = _hearers(checks, "state_none")
        self._program_given = _hearers(checks, "program_given")
        self._program_skips = _hearers(checks, "program_skips")
        self._looked = _hearers(checks, "looked")
        self._healed = _hearers(checks, "healed")
        self._settled = _hearers(checks, "settled")
        self._accepts = _hearers(checks, "accepts")
        self._runs_requested = _hearers(checks, "runs_requested")
        self._blocked = _hearers(checks, "blocked")
        self._vouched = _hearers(checks, "vouched")
        self.counters = {"messages": 0, "deliveries": 0, "views": 0}
        self.senders: dict[Address, None] = {}
        self.alone = any(isinstance(one, SettledAlone) for one in checks)  # without a group unicasts are the messages
        self.heard: dict[Address, int] = {}  # per origin, the first number that no member has delivered

    def of(self, name: str) -> Judge:
        """The judge of the group that the process `name` can join: this one if all have the same settings."""
        return self

    @property
    def facts(self) -> dict[str, int]:
        """Per promise, the number of judged facts: views, runs or messages at a member.  A promise with 0 facts was
        not judged."""
        facts = dict.fromkeys(self.promises, 0)
        for check in self.checks:
            for promise, count in check.facts().items():
                facts[promise] += count
        return facts

    @property
    def broken(self) -> list[Witness]:
        """All violations that a judge with `goes_on` found, without those that follow from another one."""
        found = [witness.promise for witness in self.found]
        excused = any(promise in found for promise in FOLLOWS_FROM)
        return [witness for witness in self.found if witness.promise != "causal" or not excused]

    def accepted(self, member: Address, to: Address | None, number: int, payload: bytes) -> None:
        """The stack of `member` took a payload and numbered it."""
        if to is None or self.alone:
            self.counters["messages"] += 1
            self.senders.setdefault(member)
        for check in self._accepted:
            check(member, to, number, payload)

    def viewed(self, member: Address, event: NewView) -> None:
        """`member` installed a view."""
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
            tuple(event.expelled),
            event.subgroups,
            event.digest,
            event.gaps,
            event.view.history,
            None if event.winner is None else event.losers,
        )
        self._views[member] = view.id
        for check in self._viewed:
            check(view)

    def delivered(self, member: Address, event: Delivered) -> None:
        """`member` delivered a run."""
        run = event.run
        assert run.origin is not None
        if event.position < 0:
            unicast = UnicastDelivery(member, run.origin, run.dest or member, run.first, run.count, run.body)
            if self.alone:
                self.counters["deliveries"] += run.count
                self.heard[run.origin] = self.heard.get(run.origin, 1) + run.count
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

    def gap_announced(self, member: Address, gap: Gap) -> None:
        """`member` announced messages that it never delivers."""
        for check in self._gap_announced:
            check(member, gap)

    def recorded(self, member: Address, records: Sequence[Record]) -> None:
        """`member` wrote these records in a turn whose deliveries are already reported; some facts appear in records
        only."""
        for record in records:
            if record[0] in WANTED:
                kind, view, fields = record
                if kind == "suspect":
                    self.suspected(member, fields["peer"], fields["reason"])
                elif kind == "flush":
                    for accepts in self._accepts:
                        accepts(fields.get("life", member), fields)
                elif kind == "merge":
                    self.merge_step(member, view, fields)
                elif kind == "retransmit_request":
                    for runs_requested in self._runs_requested:
                        runs_requested(member, fields["stream"], fields["low"])
                elif kind != "purge":
                    self.on_connection(member, kind == "unicast_send", fields)
                elif view is not None:
                    for check in self._purged:
                        check(member, view, fields["digest"])

    def merge_step(self, member: Address, view: ViewId | None, fields: dict[str, Any]) -> None:
        """`member` recorded a step of a merge, in `view`."""
        if fields["stage"] == "accepted" and view is not None:
            for check in self._merge_accepted:
                check(member, view, ViewId(fields["next_number"], fields["next_creator"]))

    def on_connection(self, member: Address, sent: bool, fields: dict[str, Any]) -> None:
        """`member` sent or delivered unicasts on a connection."""
        origin = Address(fields["origin"], fields["origin_incarnation"])
        numbers = (fields["first"], fields["count"], fields["connection"])
        passed = OnConnection(member, sent, origin, fields["peer"], *numbers)
        for check in self._on_connection:
            check(passed)

    def suspected(self, member: Address, peer: Address, reason: str) -> None:
        """`member` suspects `peer`.  With the reason "replaced", `member` itself gives way to a newer process of its
        name.  With the reason "slow", or "unanswering", it has asked the group to exclude `peer`
        by policy."""
        if reason == "replaced":
            for check in self._replaced:
                check(member)
        elif reason in ("slow", "unanswering"):
            for check in self._asked_out:
                check(member, peer, reason == "unanswering")

    def written(self, member: Address, records: Sequence[Written]) -> None:
        """`member` has written these records into its journal; no other process has seen an effect of this turn yet."""
        for check in self._written:
            check(member, records)

    def journal_lost(self, member: Address) -> None:
        """`member` learned that its journal cannot be written, and that some records are lost."""
        for check in self._journal_lost:
            check(member)

    def blocked(self, member: Address, reason: str | None) -> None:
        """`member` learned that it is blocked for this reason, or (None) that `member` is no longer blocked."""
        for check in self._blocked:
            check(member, reason)

    def vouched(self, member: Address) -> None:
        """An operator vouches that the process of `member` has ended for good."""
        for check in self._vouched:
            check(member)

    def undelivered(self, member: Address, to: Address, numbers: range) -> None:
        """`member` learned that its messages to `to` with these numbers were not acknowledged."""
        for check in self._undelivered:
            check(member, to, numbers)

    def consumed(self, member: Address, marks: Marks) -> None:
        """The application of `member` has read up to these marks; `marks` contains only origins that changed."""
        for check in self._consumed:
            check(member, marks)

    def held_up(self, member: Address) -> None:
        """The application of `member` has a multicast to send, and its window has no room."""
        for check in self._held_up:
            check(member)

    def reached(self, member: Address, delivered: int, stable: int) -> None:
        """`member` learned how far its own multicasts were delivered."""
        for check in self._reached:
            check(member, delivered, stable)

    def leaving(self, member: Address) -> None:
        """The application at `member` asked to leave."""
        for check in self._leaving:
            check(member)

    def disturbed(self) -> None:
        """A fault begins that may make a living process look dead."""
        self.unsettled()
        for check in self._disturbed:
            check()

    def passed_layers(self, member: Address, view: ViewId, layers: Mapping[str, list[ViewId]]) -> None:
        """The application of `member` gets `view`; `layers` has the views that reached each layer."""
        for check in self._passed_layers:
            check(member, view, layers)

    def paused(self, member: Address) -> None:
        """`member` begins its first turn after a pause that is longer than the others need to suspect it."""
        for check in self._paused:
            check(member)

    def unsettled(self, until: int | None = None) -> None:
        """A disturbance begins now, or ends now, or has ended by `until`.  The effects of a disturbance last for a
        recovery time."""
        around = self.around
        over = around.clock() if until is None else until
        around.calm_from = max(around.calm_from, over + recovery(around.config))

    def calm(self) -> None:
        """No effects of disturbances are left: the duties of time apply from now on."""
        self.around.calm_from = min(self.around.calm_from, self.around.clock())

    def stopped(self, member: Address, reason: str, unknown: range) -> None:
        """`member` is out of the group and learned which of its messages have an unknown fate."""
        if reason != "left":
            self.unsettled()
        for check in self._ended:
            check(member, reason, unknown)

    def crashed(self, member: Address) -> None:
        """`member`'s process crashed."""
        self.unsettled()
        for check in self._ended:
            check(member, "crashed", None)

    def state_given(self, member: Address, view: ViewId, digest: Marks, data: bytes) -> None:
        """`member` took its state, for the joiners of `view`."""
        for check in self._state_given:
            check(member, view, digest, data)

    def state_set(self, member: Address, view: ViewId, provider: Address, digest: Marks, data: bytes) -> None:
        """`member` received the state of the start of `view`."""
        for check in self._state_set:
            check(member, view, provider, digest, data)

    def keeps_no_state(self, member: Address) -> None:
        """`member`, which has no view yet, neither takes nor gives a state."""
        for check in self._keeps_no_state:
            check(member)

    def state_late(self, member: Address) -> None:
        """No state came for `member` in time, and it goes on with none."""
        for check in self._state_late:
            check(member)

    def state_refused(self, member: Address) -> None:
        """`member` was asked for its state and does not give it."""
        for check in self._state_refused:
            check(member)

    def state_none(self, member: Address, view: ViewId) -> None:
        """`member` learned that it begins without a state."""
        for check in self._state_none:
            check(member, view)

    def program_given(self, member: Address, origin: Address, first: int, count: int) -> None:
        """The program of `member` gets these multicasts."""
        for check in self._program_given:
            check(member, origin, first, count)

    def program_skips(self, member: Address, gap: Gap) -> None:
        """The program of `member` gets this gap."""
        for check in self._program_skips:
            check(member, gap)

    def looked(self, situation: Situation) -> None:
        """`situation` is the state of every process, in a period without changes."""
        for check in self._looked:
            check(situation)

    def healed(self, deadline: int) -> None:
        """All faults have ended; by `deadline`, in the world's time, every promise must be kept."""
        for check in self._healed:
            check(deadline)

    def settled(self, rests: list[Rest]) -> None:
        """Every promise should be kept by now; raises Broken with the first that is not."""
        for check in self._settled:
            check(rests)


def recovery(config: Config) -> int:
    """The time after a disturbance in which members may still handle its effects, in microseconds: they suspect
    crashed members, and repeat attempts at a view."""
    return detection(config, MEMBERS) + 4 * config.flush_timeout + 2 * SECOND


def _hearers(checks: list[Check], what: str) -> list[Callable[..., None]]:
    """The methods with the name `what`, of the checks that override it."""
    return [getattr(check, what) for check in checks if getattr(type(check), what) is not getattr(Check, what)]
