"""What a joiner makes of refusals: they count by places, lately, and while no process of the group answers."""

from __future__ import annotations

import pytest

from pygroups.core.address import Address
from pygroups.drivers.refusals import LEASE, PLACES_MAX, Refusals, object_to_founding

ONE, TWO, THREE = "127.0.0.1:1", "127.0.0.1:2", "[::1]:3"


class Clock:
    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def refusals(*told: str, strict: bool = False) -> tuple[Refusals, Clock]:
    clock = Clock()
    found = Refusals(clock, strict=strict)
    found.tell(told)
    return found, clock


@pytest.mark.parametrize(
    ("refusing", "told", "objects"),
    [
        (0, 1, False),
        (1, 1, True),
        (1, 2, False),
        (2, 2, True),
        (1, 3, False),
        (2, 3, True),
        (2, 4, False),
        (3, 4, True),
    ],
)
def test_more_than_half_of_the_places_object(refusing: int, told: int, objects: bool) -> None:
    assert object_to_founding(refusing, told) == objects


def test_one_liar_of_two_places_does_not_object_and_both_do() -> None:
    found, _ = refusals(ONE, TWO)
    for _ in range(100):
        found.refused(ONE)
    assert found.refusing == [ONE] and not found.objects
    found.refused(TWO)
    assert found.objects


def test_a_place_that_was_not_told_does_not_count_beside_those_that_were() -> None:
    found, _ = refusals(ONE)
    found.refused(TWO)
    found.refused(THREE)
    assert not found.objects
    found.tell([])
    assert found.objects  # without a place to compare with, a refusal is all that is known


def test_refusals_object_since_they_were_enough() -> None:
    found, clock = refusals(ONE, TWO)
    found.refused(ONE)
    clock.at += 1
    found.refused(TWO)
    enough = clock.at
    for place in (ONE, TWO, ONE):
        clock.at += 1
        found.refused(place)
        assert found.objects and found.since == enough
    clock.at += LEASE + 0.1
    assert not found.objects
    found.refused(ONE)
    found.refused(TWO)
    assert found.since == clock.at


def test_without_a_secret_each_refusal_counts_and_an_entry_of_the_folder_always() -> None:
    found, _ = refusals(ONE, TWO, strict=True)
    found.refused(ONE)
    assert found.objects
    found, _ = refusals(ONE, TWO)
    found.entry_refused(Address("B", "b" * 16), "/tmp/orders")
    assert found.objects and "/tmp/orders" in found.by


def test_an_answer_of_the_group_makes_refusals_void() -> None:
    found, clock = refusals(ONE)
    found.refused(ONE)
    assert found.objects
    found.answered()
    assert not found.objects and found.refusing == []
    clock.at += LEASE + 0.1
    found.refused(ONE)
    assert found.objects and found.since == clock.at


def test_places_are_kept_up_to_a_limit() -> None:
    found, _ = refusals()
    for number in range(PLACES_MAX + 10):
        found.refused(f"127.0.0.1:{number}")
    assert len(found.places) == PLACES_MAX
