"""Tells a judge a history that was written for journals: each record becomes what a judge would have heard.

The two sets of checks share no code, and so they share no form of facts either; this is the only place that knows both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pygroups.core.address import Address
from pygroups.core.events import Gap, Marks, NewView
from pygroups.core.limits import MILLION, Config
from pygroups.core.run import Run, pack
from pygroups.core.top import Delivered
from pygroups.core.view import AgreedView, Subgroup, ViewId
from pygroups.layers.profiles import PROFILES
from pygroups.sim.promises.broken import Witness
from pygroups.sim.promises.changes import Changes
from pygroups.sim.promises.checks import checks_of
from pygroups.sim.promises.facts import Check, Rest
from pygroups.sim.promises.judge import Judge
from pygroups.sim.promises.unicasts import ConnectionsInOrder, Unicasts
from tests.pipeline.histories import MICROSECONDS, History, Life, Record


def judged(history: History) -> Judge:
    """A judge that has heard all of `history`, and went on whatever it found."""
    checks = checks_for(history.profile)
    checks = [check for check in checks if not isinstance(check, Changes)]  # journals do not say who left or joined
    judge = Judge(checks, goes_on=True)
    judge.around.config = Config(epsilon_ppm=history.epsilon_ppm or MILLION)
    Telling(history, judge).tell()
    return judge


def checks_for(profile: str) -> list[Check]:
    """The running checks for a profile of journals."""
    if profile == "unicast":
        return unicast_checks()
    return checks_of(PROFILES[profile].services)


def unicast_checks() -> list[Check]:
    return [Unicasts(), ConnectionsInOrder()]


class Telling:
    """Goes through the records of all members in the order in which they were written."""

    def __init__(self, history: History, judge: Judge) -> None:
        self.history = history
        self.judge = judge
        self.now = 0
        self.ended: dict[Address, None] = {}
        self.numbers: dict[Address, int] = {}  # per member, the number of its next multicast
        self.reported: dict[Address, list[int]] = {}
        self.unicasts: dict[tuple[Address, Address], dict[int, int]] = {}
        self.quiet: dict[Address, dict[str, int]] = {}  # the gauges of those that reached quiet
        judge.around.clock = lambda: self.now

    def tell(self) -> None:
        for at, record in enumerate(self.history.story):
            self.now = at * MICROSECONDS
            getattr(self, f"on_{record.kind}", self.nothing)(record, address_of(record.life))
        if self.quiet:
            self.judge.settled([self.rest(member) for member in self.quiet])

    def nothing(self, record: Record, member: Address) -> None:
        """What no promise is about."""

    def rest(self, member: Address) -> Rest:
        return Rest(member, self.numbers.get(member, 1), 0, self.quiet[member], False, False)

    # -- views and states

    def on_view(self, record: Record, member: Address) -> None:
        assert record.view is not None
        fields, id = record.fields, view_of(record.view)
        for later in self.history.story:  # a state is taken before its view, and written down in it
            if later.life is record.life and later.kind == "state_get" and later.view == record.view:
                data = str(later.fields["checksum"]).encode()
                self.judge.state_given(member, id, marks_of(later.fields["digest"]), data)
        members = tuple(map(parsed, fields["members"]))
        previous = (fields.get("previous_number"), fields.get("previous_creator"))
        event = NewView(
            AgreedView(id, members, tuple(one.name for one in members), fields.get("history") or ""),
            view_of(previous) if previous[0] is not None else None,
            tuple(map(parsed, fields["transitional"])),
            tuple(one for one in members if one not in self.came_to(record.view)),
            (),
            fields["primary"],
            marks_of(fields["digest"]) if "digest" in fields else None,
        )
        self.add_merge(record, event)
        self.judge.viewed(member, event)

    def came_to(self, view: tuple[int, str]) -> list[Address]:
        """The members that came to a view from another one."""
        views = [record for record in self.history.story if record.kind == "view" and record.view == view]
        return [address_of(record.life) for record in views if record.fields.get("previous_number") is not None]

    def add_merge(self, record: Record, event: NewView) -> None:
        """The sides of a merged view, its marks, and the gaps that its member announces: a judge hears them with it."""
        assert record.view is not None
        listed = record.fields.get("subgroups") or []
        sides = [Subgroup(self.left_by(side, record.view[0]), tuple(map(parsed, side)), {}) for side in listed]
        event.subgroups, gaps = tuple(sides), []
        ahead = {
            origin_of(step.fields): index
            for step in self.history.story
            if step.kind == "gap" and step.view == record.view
            for index, side in enumerate(listed)
            if set(step.fields["members"]) <= set(side)
        }
        for step in self.history.story:
            fields = step.fields
            if step.life is not record.life:
                continue
            if step.kind == "merge" and fields["stage"] == "installed" and proposed(step) == event.view.id:
                marks = marks_of(fields["digest"])
                event.digest = {origin: (mark, ahead.get(origin, 0)) for origin, mark in marks.items()}
            if listed and step.kind == "gap" and step.view == record.view:
                have = tuple(map(parsed, fields["members"]))
                gaps.append(Gap(origin_of(fields), fields["first"], fields["count"], have))
        event.gaps = tuple(gaps)

    def on_gap(self, record: Record, member: Address) -> None:
        """Where views are hints, a judge hears of a gap by itself."""
        fields = record.fields
        have = tuple(map(parsed, fields.get("members") or ()))
        self.judge.gap_announced(member, Gap(origin_of(fields), fields["first"], fields["count"], have))

    def left_by(self, side: list[str], number: int) -> ViewId:
        """The view of the first member of a side before the view of this number; one that never was without any."""
        views = [step.view for step in self.history.story if step.kind == "view" and step.life.address in side[:1]]
        earlier = [view for view in views if view is not None and view[0] < number]
        return view_of(earlier[-1]) if earlier else ViewId(0, Address("nobody", "0"))

    def on_merge(self, record: Record, member: Address) -> None:
        assert record.view is not None
        merged = proposed(record)
        fields = record.fields | {"next_number": merged.number, "next_creator": merged.leader}
        self.judge.recorded(member, [("merge", view_of(record.view), fields)])

    def on_flush(self, record: Record, member: Address) -> None:
        accepted = proposed(record)
        fields = record.fields | {"next_number": accepted.number, "next_creator": accepted.leader}
        self.judge.recorded(member, [("flush", view_of(record.view) if record.view else None, fields)])

    def on_suspect(self, record: Record, member: Address) -> None:
        if record.fields["reason"] == "vouched":
            self.judge.vouched(parsed(record.fields["peer"]))

    def on_state_set(self, record: Record, member: Address) -> None:
        assert record.view is not None
        digest, data = marks_of(record.fields["digest"]), str(record.fields["checksum"]).encode()
        self.judge.state_set(member, view_of(record.view), parsed(record.fields["peer"]), digest, data)

    # -- messages

    def on_send(self, record: Record, member: Address) -> None:
        first = record.fields["first"]
        for number, payload in enumerate(payloads_of(record), first):
            self.judge.accepted(member, None, number, payload)
        self.numbers[member] = first + record.fields["count"]

    def on_deliver(self, record: Record, member: Address) -> None:
        self.judge.delivered(member, self.delivered(record, None, record.fields["position"]))

    def on_purge(self, record: Record, member: Address) -> None:
        below = {parsed(stream): position for stream, position in record.fields["digest"].items()}
        self.judge.recorded(member, [("purge", view_of(record.view) if record.view else None, {"digest": below})])

    def on_undelivered(self, record: Record, member: Address) -> None:
        first, count = record.fields["first"], record.fields["count"]
        if "peer" not in record.fields:
            self.reported.setdefault(member, []).extend(range(first, first + count))
            return
        to = parsed(record.fields["peer"])
        own = self.unicasts[member, to]
        self.judge.undelivered(member, to, range(own[first], own[first] + count))

    def delivered(self, record: Record, to: Address | None, position: int, first: int | None = None) -> Delivered:
        fields = record.fields
        origin = origin_of(fields)
        stream = parsed(fields["stream"]) if "stream" in fields else None
        number = fields["first"] if first is None else first
        run = Run(
            origin, to, (), origin, number, 0, fields["count"], pack(payloads_of(record)), stream, fields.get("seq", 0)
        )
        return Delivered(run, view_of(record.view) if record.view else None, position)

    # -- unicasts; in these histories their numbers count per sender, at a judge per sender and receiver

    def on_unicast_send(self, record: Record, member: Address) -> None:
        to = parsed(record.fields["peer"])
        own = self.unicasts.setdefault((member, to), {})
        own[record.fields["first"]] = len(own) + 1
        for payload in payloads_of(record):
            self.judge.accepted(member, to, len(own), payload)
        self.judge.on_connection(member, True, record.fields | {"peer": to})

    def on_unicast_deliver(self, record: Record, member: Address) -> None:
        fields, to = record.fields, parsed(record.fields["peer"])
        origin = origin_of(fields)
        self.judge.on_connection(member, False, fields | {"peer": to})
        number = self.unicasts[origin, to][fields["first"]]
        self.judge.delivered(member, self.delivered(record, to, -1, number))

    # -- ends

    def on_leave(self, record: Record, member: Address) -> None:
        self.judge.leaving(member)

    def on_stop(self, record: Record, member: Address) -> None:
        listed = self.reported.get(member, [])
        unknown = range(listed[0], listed[-1] + 1) if listed else range(0)
        assert list(unknown) == listed, "a judge is told of what follows one another"
        self.judge.stopped(member, record.fields["reason"], unknown)

    def on_fault(self, record: Record, member: Address) -> None:
        if record.fields["reason"] != "crash":
            self.judge.disturbed()
            return
        for dead in map(parsed, record.fields["members"]):
            if dead not in self.ended:
                self.ended[dead] = None
                self.judge.crashed(dead)

    def on_heal(self, record: Record, member: Address) -> None:
        self.judge.healed(self.now + self.history.bound_us)

    def on_quiet(self, record: Record, member: Address) -> None:
        self.quiet[member] = {}

    def on_stats(self, record: Record, member: Address) -> None:
        if member in self.quiet:
            gauges = self.quiet[member]
            gauges.update({name: max(value, gauges.get(name, 0)) for name, value in record.fields["gauges"].items()})


def address_of(life: Life) -> Address:
    return Address(life.name, life.incarnation)


def origin_of(fields: dict[str, Any]) -> Address:
    return Address(fields["origin"], fields["origin_incarnation"])


def parsed(text: str) -> Address:
    name, _, incarnation = text.partition("@")
    return Address(name, incarnation)


def view_of(view: tuple[int, str]) -> ViewId:
    return ViewId(view[0], parsed(view[1]))


def proposed(record: Record) -> ViewId:
    """The view that a step of a merge is about."""
    return ViewId(record.fields["next_number"], parsed(record.fields["next_creator"]))


def marks_of(digest: dict[str, int]) -> Marks:
    """A journal's digest names the last number that is covered, a judge's the first that is not."""
    return {parsed(origin): last + 1 for origin, last in digest.items()}


def payloads_of(record: Record) -> list[bytes]:
    """Payloads that are the same exactly if the record says the same of them."""
    fields = record.fields
    label = f"{fields['bytes']} bytes {fields['checksum']}".encode()
    return [label] * fields["count"]


def lines(history: History, broken: list[Witness]) -> Iterator[str]:
    """The history as a short story, and what was found in it."""
    yield f"{history.group} ({history.profile}):"
    yield from history.told()
    for witness in broken:
        yield f"found {witness}"
