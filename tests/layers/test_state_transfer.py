"""STATE_TRANSFER: who gives a state to whom, over view changes.  Scenarios as numbered in its note."""

from __future__ import annotations

from collections import Counter

import pytest

from pygroups.core import stack
from pygroups.core.address import Address
from pygroups.core.events import Event, Gap, Marks, Missing, NewView
from pygroups.core.limits import MEMBERS_MAX
from pygroups.core.run import Run
from pygroups.core.stack import Outlet
from pygroups.core.standing import Standing, WaitsForState
from pygroups.core.state_events import StateArrived, StateChunk, StateFailed, StateTaken, StateWanted, ViewWanted
from pygroups.core.view import AgreedView, Subgroup, ViewId
from pygroups.layers.state_transfer.heads import StateBegin, StateDone, StateRefused
from pygroups.layers.state_transfer.layer import StateTransfer
from pygroups.layers.state_transfer.providers import Providers, after_merge, providers
from pygroups.layers.streams import gaps

from .conversation import Conversation, Member


class Group:
    """Members with this layer alone; `view` gives each of them the view that a real group would."""

    def __init__(self, *names: str) -> None:
        self.talk = Conversation("StateTransfer")
        self.talk.do(f"members {' '.join(names)}")
        self.told: dict[str, list[Event]] = {name: [] for name in names}
        self.at: dict[str, AgreedView] = {}

    def member(self, name: str) -> Member:
        return self.talk.members[name]

    def layer(self, name: str) -> StateTransfer:
        (layer,) = self.member(name).under_test
        assert isinstance(layer, StateTransfer)
        return layer

    def view(
        self,
        number: int,
        names: str,
        *,
        where: str = "",
        digest: Marks | None = None,
        standings: dict[Address, Standing] | None = None,
        gaps: tuple[Gap, ...] = (),
    ) -> None:
        """Those `where`, or all, install it; what each said before is how those who go on stand to the state."""
        members = tuple(self.member(name).address for name in names)
        view = AgreedView(ViewId(number, members[0]), members, tuple(names))
        stayed = [m for m in members if self.at.get(m.name) and m in self.at[m.name].members]
        founded = not self.at
        standings = {one: self.layer(one.name).standing for one in stayed} if standings is None else standings
        for name in where or names:
            old = self.at.get(name)
            me = self.member(name).address
            joined = tuple(m for m in members if m not in stayed)
            left = () if old is None else tuple(m for m in old.members if m not in members)
            begins = None if old is not None or founded else (digest or {})
            together = tuple(stayed) if old is not None else (me,)
            previous = old.id if old else None
            event = NewView(view, previous, together, joined, left, True, begins, standings, {}, begins is not None)
            event.gaps = gaps
            self.happened(name, event)
        for name in names:
            self.at[name] = view

    def happened(self, name: str, event: Event) -> None:
        self.member(name).stack.happened(event, 0)
        self.end_turn(name)

    def give(self, name: str, to: str, *parts: bytes, last: bool = True, view: int = 0) -> None:
        at = self.at[name].id if not view else ViewId(view, self.at[name].coordinator)
        for number, part in enumerate(parts, 1):
            ends = last and number == len(parts)
            lacks = [e.lacks for e in self.heard(name, StateWanted) if isinstance(e, StateWanted) and e.view == at]
            chunk = StateChunk(at, self.member(to).address, part, ends, lacks=lacks[0] if ends and lacks else {})
            self.member(name).stack.asked(chunk, 0)
        self.end_turn(name)

    def end_turn(self, name: str) -> None:
        """Frames go into the conversation's network, events into `told`."""
        output = self.member(name).stack.end_turn(0)
        self.told[name] += [item for item in output.events if isinstance(item, Event)]
        for dests, frames in output.frames:
            for dest in dests:
                for frame in frames:
                    self.talk._post(name, dest.name, frame)

    def settle(self) -> None:
        """Deliver everything that is in flight."""
        while self.talk.flight:
            packet = self.talk.flight.pop(0)
            self.member(packet.dest).stack.receive(packet.frame, 0)
            self.end_turn(packet.dest)

    def heard(self, name: str, kind: type[Event]) -> list[Event]:
        return [event for event in self.told[name] if isinstance(event, kind)]

    def holds(self, name: str) -> dict[str, int]:
        return {what: value for what, value in self.member(name).env.gauges().items() if value}


def arrived(group: Group, name: str) -> list[tuple[int, bytes, bool]]:
    found = group.heard(name, StateArrived)
    return [(e.view.number, e.data, e.last) for e in found if isinstance(e, StateArrived)]


def wanted(group: Group, name: str) -> list[tuple[int, tuple[str, ...]]]:
    found = group.heard(name, StateWanted)
    return [(e.view.number, tuple(j.name for j in e.joiners)) for e in found if isinstance(e, StateWanted)]


def test_1_a_founder_needs_no_state() -> None:
    group = Group("A")
    group.view(1, "A")
    assert [type(event) for event in group.told["A"]] == [NewView]
    assert group.holds("A") == {}


def test_2_a_joiner_is_given_the_state_in_order_and_everybody_knows_when_it_has_it() -> None:
    group = Group("A", "B")
    group.view(1, "A")
    group.view(2, "AB", digest={Address("Z", "0"): 7})
    assert [type(event) for event in group.told["A"]][-2:] == [StateWanted, NewView], "asked before the view"
    assert group.holds("A") == group.holds("B") == {"statetransfer.stateless": 1}
    group.give("A", "B", b"one", b"two")
    group.settle()
    assert arrived(group, "B") == [(2, b"one", False), (2, b"two", True)]
    assert [e.chunks for e in group.heard("A", StateTaken) if isinstance(e, StateTaken)] == [1, 2, None]
    assert group.holds("A") == group.holds("B") == {}


def test_2_no_part_leaves_before_the_joiner_has_the_view() -> None:
    group = Group("A", "B")
    group.view(1, "A")
    group.view(2, "AB", where="A")
    group.give("A", "B", b"sta", b"te")
    assert not group.talk.flight
    del group.at["B"]
    group.view(2, "AB", where="B")
    group.settle()
    assert arrived(group, "B") == [(2, b"sta", False), (2, b"te", True)]
    assert group.holds("A") == group.holds("B") == {}


def test_2_the_joiner_may_have_the_view_before_the_provider() -> None:
    group = Group("A", "B")
    group.view(1, "A")
    at_a = group.at["A"]
    group.view(2, "AB", where="B", standings={group.member("A").address: True})
    group.settle()
    group.at["A"] = at_a
    del group.at["B"]
    group.view(2, "AB", where="A")
    group.give("A", "B", b"state")
    group.settle()
    assert arrived(group, "B") == [(2, b"state", True)]
    assert group.holds("A") == group.holds("B") == {}


def test_2_what_another_side_would_give_it_does_not_come() -> None:
    """C gives B the state of a view that B never gets, and nothing of it is in the way of A's (fifo seed 6147)."""
    group = Group("A", "B", "C")
    group.view(1, "A", where="A")
    group.at = {}
    group.view(1, "C", where="C")
    group.view(3, "CB", where="C")
    group.give("C", "B", *[b"other"] * 20)
    del group.at["B"], group.at["C"]
    group.at["A"] = AgreedView(ViewId(1, group.member("A").address), (group.member("A").address,), ("A",))
    group.view(2, "AB")
    group.give("A", "B", b"state")
    group.settle()
    assert arrived(group, "B") == [(2, b"state", True)]
    assert group.holds("A") == group.holds("B") == {}
    group.view(4, "C", where="C")
    assert group.holds("C") == {} and not group.layer("C").held


def test_only_so_many_are_remembered_that_wait_for_a_state() -> None:
    group = Group("A")
    group.view(1, "A")
    layer, head = group.layer("A"), StateBegin(ViewId(9, group.member("A").address))
    for number in range(MEMBERS_MAX + 1):
        layer.up(Run(Address("X", f"{number:016x}"), group.member("A").address, (head,)))
    assert group.member("A").env.drops == {"too many joiners without a state": 1}
    group.view(10, "A")
    assert not layer.begun


def test_3_another_member_leaves_and_the_provider_goes_on() -> None:
    group = Group("A", "B", "C")
    group.view(1, "A")
    group.view(2, "AB")
    group.give("A", "B", b"state")
    group.settle()
    group.view(3, "ABC")
    group.give("A", "C", b"half", last=False)
    group.settle()
    group.view(4, "AC")
    assert wanted(group, "A")[-1] == (3, ("C",)), "nobody asks for a state of the later view"
    group.give("A", "C", b"rest", view=3)
    group.settle()
    assert arrived(group, "C") == [(3, b"half", False), (3, b"rest", True)]
    assert group.holds("A") == group.holds("C") == {}


def test_4_the_provider_is_lost_and_the_next_one_gives_the_state_of_the_next_view() -> None:
    group = Group("A", "B", "C")
    group.view(1, "A")
    group.view(2, "AB")
    group.give("A", "B", b"state")
    group.settle()
    group.view(3, "ABC")
    group.give("A", "C", b"half", last=False)
    group.settle()
    group.view(4, "BC")
    assert wanted(group, "B") == [(4, ("C",))]
    (*_, last) = group.heard("C", NewView)
    assert isinstance(last, NewView) and last.with_state, "C begins this view with a given state"
    group.give("B", "C", b"whole")
    group.settle()
    assert arrived(group, "C")[-1] == (4, b"whole", True)
    assert group.holds("B") == group.holds("C") == {}


def test_5_nobody_has_a_state_so_the_first_begins_with_none() -> None:
    group = Group("A", "B", "C")
    group.view(1, "A")
    group.view(2, "ABC")
    group.view(3, "BC")
    assert group.heard("B", StateArrived) == [], "C may have got A's state after it was asked"
    assert group.layer("B").standing == WaitsForState(None, group.at["B"].id)
    group.view(4, "BC")
    (gone,) = (e for e in group.heard("B", StateArrived) if isinstance(e, StateArrived))
    assert gone.none and gone.last
    assert wanted(group, "B") == [(4, ("C",))]
    group.give("B", "C", b"nothing much")
    group.settle()
    assert group.holds("B") == group.holds("C") == {}


def test_5_the_only_one_who_waits_begins_at_once() -> None:
    group = Group("A", "B", "C")
    group.view(1, "A")
    group.view(2, "AB")
    group.view(3, "BC")
    assert [e.view.number for e in group.heard("B", StateArrived) if isinstance(e, StateArrived)] == [3]


def late_state(group: Group, refused: str = "") -> dict[Address, Standing]:
    """A gives C its state after B and C were asked how they stand; returns what they said."""
    group.view(1, "A")
    group.view(2, "ABC")
    group.settle()
    for joiner in refused:
        failed = StateFailed(group.at["A"].id, group.member(joiner).address, "it raised")
        group.member("A").stack.asked(failed, 0)
        group.end_turn("A")
        group.settle()
    asked = {group.member(name).address: group.layer(name).standing for name in "ABC"}
    group.give("A", "C", b"state")
    packets, group.talk.flight = group.talk.flight, []
    for packet in [packet for packet in packets if packet.dest == "C"]:
        group.member("C").stack.receive(packet.frame, 0)
        group.end_turn("C")
    return asked


def test_5_who_got_a_state_after_it_was_asked_gives_it_in_the_next_view() -> None:
    """A dies; its last part comes to C when B and C have said that they wait for it."""
    group = Group("A", "B", "C")
    asked = late_state(group)
    late, group.talk.flight = group.talk.flight, []
    group.view(3, "BC", standings=asked)
    assert group.heard("B", StateArrived) == [] and wanted(group, "C") == []
    group.view(4, "BC")
    group.talk.flight += [packet for packet in late if packet.dest == "B"]
    group.settle()
    assert wanted(group, "C") == [(4, ("B",))]
    group.give("C", "B", b"of view 4")
    group.settle()
    assert arrived(group, "B") == [(4, b"of view 4", True)]
    assert group.holds("B") == group.holds("C") == {}


@pytest.fixture
def wishes(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each member asked for another view."""
    counted: Counter[str] = Counter()

    class Noting(Outlet):
        def down_event(self, event: Event) -> None:
            counted[self.env.me.name] += isinstance(event, ViewWanted)
            super().down_event(event)

    monkeypatch.setattr(stack, "Outlet", Noting)
    return counted


def test_5_who_waits_for_a_view_wants_it_as_soon_as_somebody_has_a_state(wishes: Counter[str]) -> None:
    """A gives B none, and goes on giving C its state: views in between name nobody for B, and it asks for no more."""
    group = Group("A", "B", "C")
    asked = late_state(group, refused="B")
    told = [packet for packet in group.talk.flight if packet.dest == "B"]
    group.talk.flight = []
    waits = asked[group.member("B").address]
    assert isinstance(waits, WaitsForState) and waits.failed == (group.member("A").address,)
    assert wishes["B"] == 1, "A refused"
    group.view(3, "ABC", standings=asked)
    first = WaitsForState(None, group.at["B"].id, waits.failed)
    assert group.layer("B").standing == first
    assert wishes["B"] == 2, "C may have it"
    asked[group.member("B").address] = first
    group.view(4, "ABC", standings=asked)
    assert group.layer("B").standing == first and wishes["B"] == 2, "C had not got it when that view began"
    group.member("B").stack.advance(group.member("B").env.config.state_timeout)
    group.end_turn("B")
    assert wishes["B"] == 3, "now and then, for whatever happens to C"
    assert "state that did not come in time" not in group.member("B").env.counters
    group.talk.flight = told
    group.settle()
    assert wishes["B"] == 4, "C says that it has it"
    group.view(5, "ABC", standings=asked)
    assert wishes["B"] == 5, "C said so behind its answer to Collect"
    group.view(6, "ABC")
    assert wanted(group, "A") == [(2, ("B", "C"))] and wanted(group, "C") == [(6, ("B",))]


def test_a_part_from_somebody_who_was_not_asked_is_dropped() -> None:
    group = Group("A", "B", "C")
    group.view(1, "A")
    group.view(2, "ABC")
    group.give("C", "B", b"forged")
    group.settle()
    assert arrived(group, "B") == []
    assert StateArrived not in map(type, group.told["C"])


def test_6_who_keeps_no_state_gives_none() -> None:
    """The coordinator is a customer without a state; whoever has one is asked, also when that is the last in rank."""
    group = Group("A", "B", "C")
    group.member("A").env.keeps_state = False
    group.view(1, "A")
    group.view(2, "AB")
    (gone,) = arrived(group, "B")
    assert gone == (2, b"", True), "nobody has a state: B begins with none"
    group.settle()
    group.view(3, "ABC")
    assert wanted(group, "A") == []
    assert wanted(group, "B") == [(3, ("C",))]
    group.give("B", "C", b"state")
    group.settle()
    assert arrived(group, "C") == [(3, b"state", True)]
    assert group.layer("A").standing is False
    assert group.layer("C").standing is True


def test_7_everybody_finds_the_same_provider_whoever_has_heard_of_the_state() -> None:
    """B has its state, and D has not heard so when B becomes the first in rank: D waits for it all the same."""
    group = Group("A", "B", "D")
    group.view(1, "A")
    group.view(2, "ABD")
    group.settle()
    group.give("A", "B", b"state")
    for packet in [packet for packet in group.talk.flight if packet.dest == "B"]:
        group.talk.flight.remove(packet)
        group.member("B").stack.receive(packet.frame, 0)
        group.end_turn("B")
    late, group.talk.flight = group.talk.flight, []
    group.view(3, "BD")
    assert wanted(group, "B") == [(3, ("D",))]
    group.give("B", "D", b"of view 3")
    group.settle()
    assert arrived(group, "D") == [(3, b"of view 3", True)]
    group.talk.flight = [packet for packet in late if packet.dest != "A"]
    group.settle()
    assert group.holds("B") == group.holds("D") == {}


def test_8_who_had_its_state_after_it_was_asked_tells_the_joiners_too() -> None:
    group = Group("A", "B", "C")
    group.view(1, "A")
    group.view(2, "AB")
    asked = {group.member("A").address: True, group.member("B").address: group.layer("B").standing}
    assert isinstance(asked[group.member("B").address], WaitsForState)
    group.give("A", "B", b"state")
    group.settle()
    group.view(3, "ABC", standings=asked)
    group.give("A", "C", b"later")
    group.settle()
    assert group.holds("A") == group.holds("B") == group.holds("C") == {}


# -- who gives to whom, as a table

Z = Address("Z", "0" * 16)  # who has gone
ONE, TWO = ViewId(1, Address("A", "1" * 16)), ViewId(2, Address("A", "1" * 16))
A, B, C, D = (Address(name, f"{number:016x}") for number, name in enumerate("ABCD", 1))


@pytest.mark.parametrize(
    ("standings", "found"),
    [
        ({A: True, B: True}, Providers({C: WaitsForState(A, TWO), D: WaitsForState(A, TWO)})),
        ({A: False, B: True}, Providers({C: WaitsForState(B, TWO), D: WaitsForState(B, TWO)})),
        ({A: True, B: True, C: WaitsForState(B, ONE)}, Providers({C: WaitsForState(B, ONE), D: WaitsForState(A, TWO)})),
        (
            {A: True, B: True, C: WaitsForState(A, ONE, (A,))},
            Providers({C: WaitsForState(B, TWO, (A,)), D: WaitsForState(A, TWO)}),
        ),
        ({A: True, B: True, C: WaitsForState(B, ONE, (A, B))}, Providers({D: WaitsForState(A, TWO)}, None, (C,))),
        ({A: True, B: False, C: WaitsForState(A, ONE, (A,)), D: False}, Providers({}, None, (C,))),
        (
            {A: True, B: False, C: WaitsForState(A, ONE, (A,)), D: WaitsForState(A, ONE, (A,))},
            Providers({C: WaitsForState(None, TWO, (A,)), D: WaitsForState(None, TWO, (A,))}),
        ),
        (
            {A: True, B: False, C: WaitsForState(None, ONE, (A,)), D: WaitsForState(None, ONE, (A,))},
            Providers({}, None, (C, D)),
        ),
        (
            {A: True, B: False, C: WaitsForState(None, ONE), D: WaitsForState(None, ONE)},
            Providers({C: WaitsForState(A, TWO), D: WaitsForState(A, TWO)}),
        ),
        ({A: False, B: False}, Providers({D: WaitsForState(C, TWO)}, C)),
        ({A: False, B: False, C: WaitsForState(A, ONE, (A,))}, Providers({D: WaitsForState(C, TWO)}, C)),
        (
            {A: False, B: False, C: WaitsForState(A, ONE, (A,)), D: WaitsForState(A, ONE)},
            Providers({C: WaitsForState(None, TWO, (A,)), D: WaitsForState(A, ONE)}),
        ),
        (
            {A: False, B: False, C: WaitsForState(None, ONE), D: WaitsForState(Z, ONE)},
            Providers({C: WaitsForState(None, ONE), D: WaitsForState(None, TWO)}),
        ),
        (
            {A: False, B: False, C: WaitsForState(Z, ONE), D: WaitsForState(None, ONE)},
            Providers({D: WaitsForState(C, TWO)}, C),
        ),
        ({A: True, B: True, C: True, D: False}, Providers({})),
    ],
)
def test_whoever_can_gives_to_those_who_have_none(standings: dict[Address, Standing], found: Providers) -> None:
    assert providers(TWO, (A, B, C, D), standings) == found


def test_10_a_merge_with_a_winner_makes_joiners_of_the_others() -> None:
    """A and B come from the side that loses.  B waited for A's state; C gives them the state of its side."""
    standings: dict[Address, Standing] = {A: True, B: WaitsForState(A, ONE), C: True, D: False}
    left = after_merge(standings, (A, B))
    assert left == {C: True, D: False}
    assert providers(TWO, (A, B, C, D), left) == Providers({A: WaitsForState(C, TWO), B: WaitsForState(C, TWO)})
    assert after_merge({A: False, C: True}, (A,)) == {A: False, C: True}, "a member that keeps no state needs none"


def test_10_news_of_a_state_that_a_merge_replaced_does_not_count() -> None:
    """B reports its state of view 3 late, after view 5 replaced this state.  It still waits for that of C."""
    group = Group("A", "B", "C")
    group.view(1, "A")
    group.view(3, "AB")
    members = tuple(group.member(name).address for name in "ABC")
    a, b, c = members
    sides = (Subgroup(group.at["A"].id, (a, b)), Subgroup(ViewId(4, c), (c,), {c: 9}))
    merged = AgreedView(ViewId(5, a), members, tuple("ABC"))
    event = NewView(merged, group.at["A"].id, (a, b), (c,), (), True, None, {a: True, b: True, c: True})
    event.subgroups, event.winner, event.digest = sides, 1, {c: (9, 1)}
    layer = group.layer("A")
    layer.up_event(event)
    waits = {member: entry.provider for member, entry in layer.stateless.items()}
    assert waits == {a: c, b: c}
    layer.up(Run(b, a, (StateDone(ViewId(3, a)),)))
    assert b in layer.stateless
    layer.up(Run(b, a, (StateDone(merged.id),)))
    assert b not in layer.stateless


def test_a_refusal_waits_until_the_joiner_has_the_view() -> None:
    group = Group("A", "B", "C")
    group.view(1, "AB")
    group.view(2, "ABC", where="AB")
    refused = StateFailed(group.at["A"].id, group.member("C").address, "it raised")
    group.member("A").stack.asked(refused, 0)
    group.end_turn("A")
    layer = group.layer("A")
    assert layer.held and not layer.below
    layer.up(Run(group.member("C").address, group.member("A").address, (StateBegin(group.at["A"].id),)))
    assert [item.head for item in layer.below if isinstance(item, Run)] == [StateRefused(group.at["A"].id)]


@pytest.mark.parametrize("gave", [0, 1])
def test_9_a_provider_is_told_that_its_joiner_has_gone(gave: int) -> None:
    """B goes before it has its whole state: at once if A gave a part, otherwise when A gives the first one."""
    group = Group("A", "B")
    group.view(1, "A")
    group.view(2, "AB")
    group.give("A", "B", *[b"part"] * gave, last=False)
    group.settle()
    group.view(3, "A")

    def ends() -> int:
        return sum(event.chunks is None for event in group.heard("A", StateTaken) if isinstance(event, StateTaken))

    assert ends() == gave
    group.give("A", "B", b"part", last=False, view=2)
    assert ends() == gave + 1
    assert not group.talk.flight and group.holds("A") == {}


Y, Z = Address("Y", "0"), Address("Z", "0")


def lacks_of(group: Group, name: str) -> list[Missing]:
    return [event.lacks for event in group.heard(name, StateArrived) if isinstance(event, StateArrived)]


def test_11_a_state_says_what_it_lacks_and_its_new_owner_says_it_of_its_own() -> None:
    """A skips two messages of Z in a merge.  B gets its state, and then C that of B."""
    group = Group("A", "B", "C")
    group.view(1, "A")
    group.view(2, "A", gaps=(Gap(Z, 1, 2, ()),))
    group.view(3, "AB", digest={Z: 3})
    assert group.layer("B").lacks == {Z: ((1, 3),)}, "nothing, as long as it has no state"
    group.give("A", "B", b"one", b"two")
    group.settle()
    assert lacks_of(group, "B") == [{}, {Z: ((1, 3),)}], "with the last part"
    group.view(4, "AB", gaps=(Gap(Z, 5, 1, ()),))
    group.view(5, "BC", digest={Z: 6})
    group.give("B", "C", b"state")
    group.settle()
    assert lacks_of(group, "C") == [{Z: ((1, 3), (5, 6))}]
    assert group.layer("C").lacks == group.layer("B").lacks


def test_11_gaps_behind_a_state_that_is_awaited_belong_to_it() -> None:
    """B waits for the state of view 2, and a merge follows: its state lacks the messages of this gap."""
    group = Group("A", "B")
    group.view(1, "A")
    group.view(2, "AB", digest={Z: 3})
    group.view(3, "AB", gaps=(Gap(Z, 3, 1, ()),))
    group.give("A", "B", b"state", view=2)
    group.settle()
    assert lacks_of(group, "B") == [{}], "the state is that of the start of view 2"
    assert group.layer("A").lacks == group.layer("B").lacks == {Z: ((3, 4),)}


def test_11_a_member_that_begins_without_a_state_lacks_all_of_before() -> None:
    group = Group("A", "B", "C")
    group.view(1, "A")
    group.view(2, "AB", digest={Z: 3})
    group.view(3, "B")
    assert [e.none for e in group.heard("B", StateArrived) if isinstance(e, StateArrived)] == [True]
    group.view(4, "BC", digest={Z: 7})
    group.give("B", "C", b"state")
    group.settle()
    assert lacks_of(group, "C") == [{Z: ((1, 3),)}]
    assert group.layer("A").standing is True
    assert group.layer("B").standing == group.layer("C").standing == "anew"


def test_11_too_much_for_a_message_is_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaps, "TOLD_BYTES", 0)
    group = Group("A", "B")
    group.view(1, "A")
    group.view(2, "A", gaps=(Gap(Z, 1, 2, ()),))
    group.view(3, "AB", digest={Z: 9, Y: 4})
    group.give("A", "B", b"state")
    group.settle()
    assert lacks_of(group, "B") == [{Z: ((1, 9),), Y: ((1, 4),)}]
