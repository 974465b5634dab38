"""VERIFY_SUSPECT against a slow model; the conversations themselves stand in text/verify_suspect/."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pygroups.core.address import Address
from pygroups.core.events import Event, NewView
from pygroups.core.layer import NEVER, Env
from pygroups.core.limits import MILLISECOND, Config
from pygroups.core.run import Run
from pygroups.core.suspicion_events import Heard, Proven, Silent, Suspect, Unsuspect
from pygroups.core.view import AgreedView, ViewId
from pygroups.layers.verify_suspect import AreYouAlive, IAmAlive, VerifySuspect

A, B, C = (Address(name, "01") for name in "ABC")
TIMEOUT = Config().verify_timeout


def view(number: int, *members: Address) -> NewView:
    made = AgreedView(ViewId(number, members[0]), members, tuple(member.name for member in members))
    return NewView(made, None, members, (), (), True, None)


class World:
    """The layer at A, and beside it what it should say, computed from the whole history of each member."""

    def __init__(self) -> None:
        self.layer = VerifySuspect(Env(A, 0, random.Random(1), Config(), journaling=True))
        self.layer.down_event(view(1, A, B, C))
        self.history: dict[Address, list[tuple[str, int]]] = {B: [], C: []}
        self.said: list[tuple[int, Event]] = []

    def step(self, what: str, member: Address, pause: int) -> None:
        layer, end = self.layer, self.layer.env.now + pause
        while layer.wake <= end:
            layer.env.now = layer.wake
            layer.timer()
            self.listen()
        layer.env.now = end
        if what == "answer":
            number = layer.numbers.get(member)
            what = "nothing" if number is None else what  # to no question
            layer.up(Run(member, A, (IAmAlive(number or 0),)))
        elif what != "nothing":
            layer.up_event({"silent": Silent, "heard": Heard, "proven": Proven}[what](member))
        self.history[member].append(("heard" if what == "answer" else what, end))
        self.listen()

    def listen(self) -> None:
        self.said += [(self.layer.env.now, item) for item in self.layer.above if isinstance(item, Event)]
        self.layer.above.clear()

    def expected(self, member: Address) -> list[tuple[int, Event]]:
        said: list[tuple[int, Event]] = []
        asked, state = NEVER, "alive"
        for what, when in [*self.history[member], ("nothing", self.layer.env.now)]:
            if asked <= when:
                said.append((asked, Suspect(member, False)))
                asked, state = NEVER, "suspected"
            if what == "silent" and state == "alive" and asked == NEVER:
                asked = when + TIMEOUT
            elif what == "heard":
                asked = NEVER
                if state in ("suspected", "dead"):
                    said.append((when, Unsuspect(member)))
                    state = "alive"
            elif what == "proven" and state != "dead":
                said.append((when, Suspect(member, True)))
                asked, state = NEVER, "dead"
        return said


STEP = st.tuples(
    st.sampled_from(["silent", "silent", "heard", "answer", "proven", "nothing"]),
    st.sampled_from([B, C]),
    st.integers(0, 700).map(lambda ms: ms * MILLISECOND),
)


@settings(max_examples=300)
@given(st.lists(STEP, max_size=40))
def test_it_says_what_the_histories_of_the_members_say(steps: list[tuple[str, Address, int]]) -> None:
    world = World()
    for step in steps:
        world.step(*step)
    world.step("nothing", B, 2 * TIMEOUT)
    assert world.layer.wake == NEVER
    for member in (B, C):
        told: list[tuple[int, Any]] = [(when, event) for when, event in world.said if event.member == member]  # type: ignore[attr-defined]
        assert told == world.expected(member)
    written = [kind for kind, _, _ in world.layer.env.records]
    assert written == ["suspect" if isinstance(event, Suspect) else "unsuspect" for _, event in world.said]


def test_anybody_who_asks_is_answered_and_nobody_above_hears_of_it() -> None:
    layer = VerifySuspect(Env(A, 0, random.Random(1), Config()))
    layer.up(Run(B, A, (AreYouAlive(7),)))
    (answer,) = layer.below
    assert isinstance(answer, Run)
    assert (answer.dest, answer.head) == (B, IAmAlive(7))
    assert layer.above == []


def test_a_view_without_them_forgets_suspects_and_those_being_asked() -> None:
    world = World()
    world.step("silent", B, 0)
    world.step("proven", C, 0)
    world.layer.down_event(view(2, A))
    assert world.layer.gauges() == {"asked": 0, "suspected": 0}
    world.said.clear()
    world.step("nothing", B, 2 * TIMEOUT)
    assert world.said == []


def test_an_answer_to_an_earlier_question_shows_nothing() -> None:
    """The network repeats the answer to a question of an earlier silence: the host may be dead now."""
    world = World()
    for what in ("silent", "answer", "silent"):
        world.step(what, B, 0)
    world.layer.up(Run(B, A, (IAmAlive(1),)))
    world.step("nothing", B, TIMEOUT)
    assert [event for _, event in world.said] == [Suspect(B, False)]
