"""The stack: what layers leave arrives at their neighbors, whole and in order; turns, timers, outputs, needs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pygroups.core.address import Address
from pygroups.core.driver_events import Announce, Contacts, Disconnect, Find, Probe
from pygroups.core.errors import PeerError, UsageError
from pygroups.core.events import Event, NewView
from pygroups.core.layer import NEVER, Env, Layer
from pygroups.core.limits import Config
from pygroups.core.run import Run
from pygroups.core.stack import Outlet, Stack, check_fit, origin_first
from pygroups.core.view import AgreedView, ViewId

A, B, C = (Address(name, "0" * 16) for name in "ABC")


class Note(Event):
    """An event of these tests."""

    text: str


class Plain:
    """A codec that leaves runs as they are."""

    def __init__(self) -> None:
        self.incoming: list[Run] | PeerError = []

    def encode(self, me: Address, dest: Address | None, runs: Sequence[Run]) -> list[bytes]:
        return [" ".join(str(run.head) for run in runs).encode()]

    def decode(self, frame: bytes | memoryview, me: Address) -> list[Run]:
        if isinstance(self.incoming, PeerError):
            raise self.incoming
        return self.incoming


def stack_of(*layers: type[Layer]) -> Stack:
    env = Env(A, 0, random.Random(1), Config(), journaling=True)
    return Stack(env, [layer(env) for layer in layers], Plain())


# -- order, and nothing lost


class Talker(Layer):
    """Passes on what comes and, as chance says, leaves more in both lists, before and after it."""

    def __init__(self, env: Env, rng: random.Random, words: list[int]) -> None:
        super().__init__(env)
        self.rng = rng
        self.words = words  # how many all of them may still say
        self.left: tuple[list[object], list[object]] = ([], [])  # above, below
        self.came: tuple[list[object], list[object]] = ([], [])  # from above, from below

    def _leave(self, item: Run | Event, direction: int) -> None:
        (self.above, self.below)[direction].append(item)
        self.left[direction].append(item)

    def _talk(self) -> None:
        """Nothing, an event or a run; up, down, or both."""
        if self.words[0] == 0 or self.rng.random() < 0.5:
            return
        self.words[0] -= 1
        item: Run | Event = Note(str(self.words)) if self.rng.random() < 0.5 else Run(A, B, (self.words[0],))
        what = self.rng.choice((1, 2, 3))
        if what & 1:
            self._leave(item, 0)
        if what & 2:
            self._leave(item, 1)

    def _handle(self, item: Run | Event, came_from_below: bool) -> None:
        self.came[came_from_below].append(item)
        self._talk()
        self._leave(item, not came_from_below)
        self._talk()

    def down(self, run: Run) -> None:
        self._handle(run, False)

    def down_event(self, event: Event) -> None:
        self._handle(event, False)

    def up(self, run: Run) -> None:
        self._handle(run, True)

    def up_event(self, event: Event) -> None:
        self._handle(event, True)


class Ender(Talker):
    """Has something to say at the end of a turn too."""

    def end_turn(self) -> None:
        self._talk()


@settings(deadline=None)
@given(
    st.integers(0, 1 << 32),
    st.lists(st.booleans(), min_size=1, max_size=7),
    st.lists(st.sampled_from(["receive", "happened", "asked", "end_turn"]), min_size=1, max_size=8),
)
def test_whatever_layers_leave_arrives_in_the_order_it_was_left(
    seed: int, enders: list[bool], calls: list[str]
) -> None:
    env = Env(A, 0, random.Random(1), Config())
    rng, words = random.Random(seed), [60]
    layers = [(Ender if ender else Talker)(env, rng, words) for ender in enders]
    codec = Plain()
    stack = Stack(env, layers, codec)
    outputs: list[Run | Event] = []
    for number, call in enumerate(calls):
        if call == "receive":
            codec.incoming = [Run(B, A, (f"{number}.{i}",)) for i in range(3)]
            stack.receive(b"", number)
        elif call == "happened":
            stack.happened(Note(f"happened {number}"), number)
        elif call == "asked":
            stack.asked(Note(f"asked {number}"), number)
        else:
            outputs += stack.end_turn(number).events
        for upper, lower in pairwise(layers):
            assert lower.came[0] == upper.left[1]
            assert upper.came[1] == lower.left[0]
        assert not any(layer.below for layer in layers) and not any(layer.above for layer in layers[1:])
    outputs += stack.end_turn(len(calls)).events
    assert outputs == layers[0].left[0], "the application gets all that the top left for it"


def test_what_the_top_left_while_nothing_was_called_goes_with_the_turn() -> None:
    stack = stack_of(Below, Layer)
    below = stack.layers[0]
    assert isinstance(below, Below)
    below.asks(Run(A, B, ("a full run",)))
    assert stack.end_turn(1).frames == [((B,), [b"a full run"])]


def test_runs_of_one_frame_arrive_in_its_order() -> None:
    stack = stack_of(Layer, Layer, Layer)
    assert isinstance(stack.codec, Plain)
    stack.codec.incoming = [Run(B, A, (n,)) for n in range(5)]
    stack.receive(b"", 7)
    assert [run.head for run in stack.end_turn(7).events if isinstance(run, Run)] == [0, 1, 2, 3, 4]
    assert stack.env.now == 7


class Red:
    """A head of one layer of the next test."""


class Blue:
    """A head of another."""


class White:
    """A head that no layer knows."""


class OfRed(Layer):
    """Has to see runs with its own head only, and passes them on."""

    heads = (Red,)
    own_heads_only = True

    def up(self, run: Run) -> None:
        self.above.append(run)


class OfBlue(OfRed):
    """Says something of each too, before it or after it."""

    heads = (Blue,)

    def up(self, run: Run) -> None:
        self.above += [run, Note("after")] if run.first % 2 else [Note("before"), run]


@given(
    st.lists(st.sampled_from([Layer, OfRed, OfBlue]), min_size=1, max_size=6),
    st.lists(st.sampled_from([Red, Blue, White]), max_size=8),
)
def test_a_run_that_goes_past_layers_overtakes_nothing(layers: list[type[Layer]], kinds: list[type]) -> None:
    stack = stack_of(Layer, *layers)
    assert isinstance(stack.codec, Plain)
    stack.codec.incoming = [Run(B, A, (kind(),), first=number) for number, kind in enumerate(kinds)]
    stack.receive(b"", 1)
    assert [run.first for run in stack.end_turn(1).events if isinstance(run, Run)] == list(range(len(kinds)))


def test_what_a_peer_did_wrong_is_counted_and_written_down_and_not_raised() -> None:
    stack = stack_of(Layer)
    assert isinstance(stack.codec, Plain)
    stack.codec.incoming = PeerError("checksum")
    stack.receive(b"", 1)
    stack.receive(b"", 1)
    assert stack.env.counters == {"drop checksum": 2}
    assert stack.end_turn(1).records == [("drop", None, {"reason": "checksum", "detail": "2"})]
    assert stack.end_turn(2).records == [], "each drop is written down once"


# -- the way out


def view_of(*members: Address) -> NewView:
    view = AgreedView(ViewId(1, members[0]), members, tuple(member.name for member in members))
    return NewView(view, None, members, members, (), True, None)


class Below(Layer):
    """Sends down whatever it is told as a script of the test."""

    def asks(self, *items: Run | Event) -> None:
        self.below += items


def test_a_multicast_goes_to_all_others_and_a_unicast_to_one() -> None:
    stack = stack_of(Below)
    below = stack.layers[0]
    assert isinstance(below, Below)
    below.asks(Run(A, None, ("before any view",)), view_of(A, B, C))
    below.asks(Run(A, None, (1,)), Run(A, B, (2,)), Run(A, None, (3,)), Run(A, B, (4,)))
    stack.asked(Note(""), 1)
    assert stack.end_turn(1).frames == [((B, C), [b"1 3"]), ((B,), [b"2 4"])]
    assert stack.end_turn(1).frames == [], "each run leaves once"


def test_a_multicast_goes_to_the_members_of_the_view_it_was_sent_in() -> None:
    stack = stack_of(Below)
    below = stack.layers[0]
    assert isinstance(below, Below)
    below.asks(view_of(A, B, C), Run(A, None, (1,)), view_of(A, C), Run(A, None, (2,)), view_of(A), Run(A, None, (3,)))
    stack.asked(Note(""), 1)
    assert stack.end_turn(1).frames == [((B, C), [b"1"]), ((C,), [b"2"])]


def test_commands_leave_for_the_driver_and_other_events_do_not() -> None:
    stack = stack_of(Below)
    below = stack.layers[0]
    assert isinstance(below, Below)
    commands: list[Event] = [Find(), Announce(True), Contacts({}), Probe(B), Disconnect(B)]
    below.asks(*commands, Note("of no driver's business"))
    stack.asked(Note(""), 1)
    assert stack.end_turn(1).commands == commands
    assert stack.end_turn(1).commands == []


# -- time


class Clock(Layer):
    """Wakes when told, and notes when it was woken."""

    woken: list[int]

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.woken = []
        self.next: list[int] = []

    def timer(self) -> None:
        self.woken.append(self.env.now)
        self.wake = self.next.pop(0) if self.next else NEVER


def test_only_those_are_woken_whose_time_has_come() -> None:
    stack = stack_of(Clock, Layer, Clock)
    upper, _, lower = stack.layers
    assert isinstance(upper, Clock) and isinstance(lower, Clock)
    assert stack.wake() == NEVER
    upper.wake_at(50)
    lower.wake_at(20)
    lower.wake_at(30)  # the earlier time stands
    lower.next = [60]
    assert stack.wake() == 20
    stack.advance(19)
    assert lower.woken == []
    stack.advance(20)
    assert (lower.woken, upper.woken, stack.wake()) == ([20], [], 50)
    stack.advance(70)
    assert (lower.woken, upper.woken, stack.wake()) == ([20, 70], [50 + 20], NEVER)


def test_a_layer_that_does_not_set_its_timer_anew_is_a_fault_of_ours() -> None:
    stack = stack_of(Clock)
    clock = stack.layers[0]
    assert isinstance(clock, Clock)
    clock.wake, clock.next = 5, [5]
    with pytest.raises(AssertionError, match="Clock did not set its timer anew"):
        stack.advance(5)
    plain = stack_of(Layer)
    plain.layers[0].wake = 5
    with pytest.raises(AssertionError, match="Layer set a timer and does not handle it"):
        plain.advance(5)


def test_what_a_timer_sends_leaves_with_the_turn() -> None:
    class Beat(Clock):
        def timer(self) -> None:
            super().timer()
            self.tell(B, "beat")

    stack = stack_of(Layer, Beat)
    stack.layers[1].wake_at(5)
    stack.advance(5)
    assert stack.end_turn(5).frames == [((B,), [b"beat"])]


def test_layers_end_their_turn_from_the_top_and_see_what_those_above_sent() -> None:
    class Last(Layer):
        def __init__(self, env: Env) -> None:
            super().__init__(env)
            self.seen = 0

        def down(self, run: Run) -> None:
            self.seen += 1
            super().down(run)

        def end_turn(self) -> None:
            self.tell(B, f"{self.seen} seen")

    stack = stack_of(Last, Last)
    assert stack.end_turn(1).frames == [((B,), [b"0 seen 1 seen"])]


def test_nobody_tells_itself() -> None:
    with pytest.raises(AssertionError, match="Layer sends word to itself"):
        stack_of(Layer).layers[0].tell(A, "word")


# -- needs and gives


class Ground(Layer):
    needs = frozenset({"UNICAST"})
    gives = frozenset({"STREAMS", "MEMBERSHIP"})


class Needy(Layer):
    needs = frozenset({"STREAMS", "SUNSHINE", "MEMBERSHIP", "AIR"})


def test_a_stack_that_does_not_fit_is_refused_with_the_names_of_what_is_missing() -> None:
    with pytest.raises(UsageError, match=r"^Needy needs AIR, SUNSHINE, which no layer below it gives$"):
        check_fit([Needy, Ground, Outlet])
    with pytest.raises(UsageError, match="Ground needs UNICAST"):
        check_fit([Ground])
    check_fit([Ground, Outlet])


def test_a_layer_may_need_one_above_it() -> None:
    class Answered(Layer):
        needs_above = frozenset({"SUNSHINE"})
        gives = frozenset({"SUNSHINE"})  # its own does not count

    class Sun(Layer):
        gives = frozenset({"SUNSHINE"})

    with pytest.raises(UsageError, match=r"^Answered needs SUNSHINE, which no layer above it gives$"):
        check_fit([Answered, Sun])
    check_fit([Sun, Answered])


def test_what_a_layer_above_gives_is_not_there_below() -> None:
    class Sun(Layer):
        gives = frozenset({"SUNSHINE", "AIR"})

    with pytest.raises(UsageError, match="Needy needs AIR, SUNSHINE"):
        stack_of(Sun, Needy, Ground)
    stack_of(Needy, Sun, Ground)


def test_gauges_bear_the_name_of_their_layer() -> None:
    class Holds(Layer):
        def gauges(self) -> dict[str, int]:
            return {"things": 3}

    stack = stack_of(Holds, Layer)
    assert stack.gauges() == {"holds.things": 3}
    assert stack.env.gauges() == {"holds.things": 3}, "the top writes them into its last record"


def test_without_a_journal_no_record_is_made() -> None:
    env = Env(A, 0, random.Random(1), Config())
    env.record("view", members=())
    assert env.records == []
    env.journaling = True
    env.record("view", members=())
    assert env.records == [("view", None, {"members": ()})]


def test_the_origin_of_a_run_gets_its_frame_first() -> None:
    a, b, c = (Address(name, "00") for name in "ABC")
    assert origin_first((a, b, c), b) == (b, a, c)
    assert origin_first((a, b, c), a) == (a, b, c)
    assert origin_first((a, c), b) == (a, c)
    assert origin_first((a, b), None) == (a, b)
