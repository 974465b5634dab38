"""DISCOVERY announces once and takes it back once; the conversation itself stands in text/discovery/."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from pygroups.core.address import Address
from pygroups.core.driver_events import Announce, Ask, Find, Found, Looked, Nobody, Presence, Replied
from pygroups.core.events import Gone, NewView
from pygroups.core.layer import Env
from pygroups.core.limits import SECOND, Config
from pygroups.core.view import AgreedView, ViewId
from pygroups.layers.discovery.layer import Discovery

A = Address("A", "01")
VIEW = NewView(AgreedView(ViewId(1, A), (A,), ("a",)), None, (A,), (), (), True, None)


@given(st.lists(st.sampled_from([VIEW, Gone(), Find()])))
def test_found_from_the_first_view_on_until_it_is_no_member(events: list[NewView | Gone | Find]) -> None:
    layer = Discovery(Env(A, 0, random.Random(1), Config()))
    for event in events:
        layer.down_event(event)
    announced = [item.member for item in layer.below if isinstance(item, Announce)]
    views = VIEW in events and (Gone() not in events or events.index(VIEW) < events.index(Gone()))
    assert announced == [True] * views + [False] * (Gone() in events)
    first = events.index(VIEW) if views else len(events)
    asked = [Find(at > first) if isinstance(event, Find) else event for at, event in enumerate(events)]
    assert [item for item in layer.below if not isinstance(item, Announce)] == asked  # a member founds no group


def test_what_was_found_goes_up() -> None:
    layer = Discovery(Env(A, 0, random.Random(1), Config()))
    layer.up_event(Found({A: "a"}, False))
    assert layer.above == [Found({A: "a"}, False)]


def test_a_founder_waits_six_seconds_for_a_name_that_is_not_known() -> None:
    env = Env(A, 0, random.Random(1), Config())
    env.contact, env.asks = "a", True
    layer = Discovery(env)
    layer.down_event(Find())
    layer.up_event(Looked((), (), sure=False))
    while Find() not in layer.below:
        assert layer.wake > env.now
        env.now = layer.wake
        layer.timer()
    assert env.now == 6 * SECOND
    layer = Discovery(env)
    layer.down_event(Find())
    layer.up_event(Looked((), (), sure=True))
    assert layer.below[-1] == Find(), "a name that does not exist keeps nobody waiting"


def test_a_contact_of_an_earlier_view_that_refuses_is_asked_seldom_and_then_forgotten() -> None:
    """B and C were members, over a network.  Their processes have ended, and another process listens where C was."""
    b, c = Address("B", "02"), Address("C", "03")
    env = Env(A, 0, random.Random(1), Config())
    env.contact, env.asks = "a", True
    layer = Discovery(env)
    three = AgreedView(ViewId(1, A), (A, b, c), ("a", "b", "c"))
    layer.down_event(NewView(three, None, (A, b, c), (), (), True, None))
    layer.down_event(NewView(AgreedView(ViewId(2, A), (A,), ("a",)), None, (), (b, c), (), True, None))
    asked = {"b": 0, "c": 0}
    for number in range(1, 601):
        layer.below.clear()
        env.now += SECOND
        layer.up_event(Looked((), (), sure=True))
        for place in [item.place for item in layer.below if isinstance(item, Ask)]:
            asked[place] += 1
            if place == "b":
                layer.up_event(Nobody(place, env.now))
            else:
                layer.up_event(Replied(place, Presence(Address("C", "04"), place, True, False, None, ""), env.now))
        if number == 8:
            assert asked == {"b": 8, "c": 8}
    assert asked == {"b": 16, "c": 600}
    assert list(layer.former) == ["c"]
