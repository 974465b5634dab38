"""Processes that find each other over a network found one group, and soon: see founding.py."""

from __future__ import annotations

from random import Random

import pytest

from pygroups.core.address import Address
from pygroups.core.driver_events import Presence
from pygroups.core.limits import MILLISECOND, SECOND
from pygroups.layers.discovery.search import Search
from tests.layers.founding import Liar, World, drawn


@pytest.mark.parametrize("first", [*range(0, 600, 100), 1_600])
def test_no_process_founds_a_second_group(first: int) -> None:
    for seed in range(first, first + 100):
        world = drawn(seed)
        world.run(12 * SECOND)
        for when, process, members in world.foundings:
            others = [str(other.me) for other in members]
            assert not others, f"seed {seed}: {process.me} founds a group at {when} beside {others}"
        waiting = [str(process.me) for process in world.living() if not process.member]
        assert not waiting, f"seed {seed}: {waiting} have no group"


def test_a_process_that_is_refused_everywhere_founds_at_once() -> None:
    world = World(Random(1), delay_max=2 * MILLISECOND)
    alone = world.start("a", ("a", "b", "c"))
    world.run(20 * SECOND)
    assert alone.joined_at < 20 * MILLISECOND


def test_a_process_that_hears_nothing_founds_within_a_second() -> None:
    world = World(Random(1), delay_max=2 * MILLISECOND, silent={"b"})
    alone = world.start("a", ("a", "b", "c"))
    world.run(20 * SECOND)
    assert 400 * MILLISECOND <= alone.joined_at < SECOND


def only_one_founds(world: World) -> None:
    assert [members for _, _, members in world.foundings if members] == []
    assert all(process.member for process in world.living())


def test_a_late_refusal_does_not_remove_a_process_that_was_heard_since() -> None:
    world = World(Random(1), delay_max=2 * MILLISECOND, refusal_delays={"a": 100 * MILLISECOND})
    world.start("b", ("a",))
    world.run(20 * MILLISECOND)
    world.start("a", ("b",))
    world.run(5 * SECOND)
    only_one_founds(world)
    assert len(world.foundings) == 1


def test_a_process_that_stood_still_does_not_trust_what_it_heard_before() -> None:
    world = World(Random(1), delay_max=2 * MILLISECOND, silent={"n"})
    first = world.start("a", ("b", "n"))
    second = world.start("b", ("a", "n"))
    world.run(20 * MILLISECOND)
    first.asleep_until = 4 * SECOND
    world.run(8 * SECOND)
    assert second.joined_at < 4 * SECOND < first.joined_at
    assert [process for _, process, _ in world.foundings] == [second]


def test_a_permission_of_the_folder_is_void_if_another_process_was_heard_meanwhile() -> None:
    world = World(Random(1), delay_max=2 * MILLISECOND, folder_delay=100 * MILLISECOND)
    second = world.start("b", ("a", "b"))
    second.slow = True
    world.run(20 * MILLISECOND)
    world.start("a", ("a", "b")).slow = False
    world.run(5 * SECOND)
    only_one_founds(world)
    assert [process.me.name for _, process, _ in world.foundings] == ["a"]


def test_an_answer_from_before_another_process_was_to_found_does_not_count() -> None:
    me, hub, other = Address("m", "01"), Address("s", "01"), Address("a", "01")
    search = Search(me, 400 * MILLISECOND, 10)
    search.looked(("s",), ())
    search.asks("s", 0)
    search.heard(Presence(other, "a", False, True, other), 1)
    assert search.choose(1) == other  # so the hub may let a third process found from now on
    search.replied("s", Presence(hub, "s", False, True, me, "m"), 0, 2)
    search.nobody("a", 3)
    assert search.choose(4) == me
    assert search.may_found_at(4) > 4
    assert search.unsettled(4) == ["s"]
    search.asks("s", 4)
    search.replied("s", Presence(hub, "s", False, True, me, "m"), 4, 5)
    assert search.may_found_at(6) == 6


def test_an_answer_that_names_another_process_is_no_permission() -> None:
    world = World(Random(1), delay_max=2 * MILLISECOND, question_delays={("b", "h"): 40 * MILLISECOND})
    world.start("h", ("h",)).asleep_until = 15 * MILLISECOND  # it asks nobody before both others have started
    world.start("b", ("a", "h"))  # nobody is at `a` when it asks there
    world.run(10 * MILLISECOND)
    world.start("a", ("h",))
    world.run(5 * SECOND)
    only_one_founds(world)


def test_a_process_that_was_late_itself_waits_longer_for_silent_places() -> None:
    world = World(Random(1), delay_max=2 * MILLISECOND, silent={"n"})
    late = world.start("a", ("n",))
    world.run(50 * MILLISECOND)
    late.asleep_until = 500 * MILLISECOND
    world.run(5 * SECOND)
    assert 700 * MILLISECOND < late.joined_at < 2 * SECOND


CLAIMS = [(seeks, contact) for seeks in (True, False) for contact in ("nowhere", "silent")]


@pytest.mark.parametrize(("seeks", "contact"), CLAIMS)
def test_a_process_that_nobody_finds_at_its_contact_keeps_no_group_from_others(seeks: bool, contact: str) -> None:
    """It has the lowest address, and answers each question at the place of the list."""
    for seed in range(30):
        world = World(Random(seed), delay_max=20 * MILLISECOND, silent={"silent"})
        world.here["list"] = Liar(world, contact, seeks=seeks)
        world.run(world.rng.randrange(SECOND))
        began = world.now
        for name in ("m", "n", "o"):
            world.start(name, ("list", "m"))
            world.run(world.now + world.rng.randrange(200 * MILLISECOND))
        world.run(began + 12 * SECOND)
        only_one_founds(world)
        last = max(process.joined_at for process in world.living()) - began
        assert last < 2 * SECOND if contact == "nowhere" else 5 * SECOND < last < 9 * SECOND


def test_a_process_counts_when_it_answers_at_its_contact_and_not_after_a_refusal() -> None:
    me, other = Address("m", "01"), Address("a", "01")
    search = Search(me, 400 * MILLISECOND, 10)
    member = Presence(other, "a", True, False)
    search.heard(member, 1)
    assert search.contacts_of_members() == {other: "a"}
    search.nobody("a", 2)
    search.replied("list", member, 3, 4)
    assert search.contacts_of_members() == {}
    search.replied("a", member, 5, 6)
    assert search.contacts_of_members() == {other: "a"}
    search.heard(member, 60 * SECOND)
    assert search.contacts_of_members() == {other: "a"}
    search.nobody("a", 61 * SECOND)
    search.heard(member, 62 * SECOND)
    assert search.contacts_of_members() == {}


def test_a_process_that_was_late_itself_gives_others_that_time_to_answer() -> None:
    search = Search(Address("m", "01"), 400 * MILLISECOND, 10)
    member = Presence(Address("a", "01"), "a", True, False)
    search.heard(member, 0)
    search.wait_longer(60 * SECOND)
    search.heard(member, 61 * SECOND)
    assert search.contacts_of_members()
    search.heard(member, 70 * SECOND)
    assert not search.contacts_of_members()


def test_few_processes_are_remembered_that_did_not_answer() -> None:
    search = Search(Address("m", "01"), 400 * MILLISECOND, 10)
    for number in range(100):
        search.heard(Presence(Address(f"a{number:03}", "01"), "nowhere", False, True), number)
    search.nobody("nowhere", 200)
    assert not search.seekers
    assert len(search.unproven) <= 10
