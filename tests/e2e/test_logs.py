"""The checks of what applications were given: each is first seen to find a fault that was planted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e import logs
from tests.e2e.logs import Chapter, Life, Sent, all_faults, complete, digest, faults_without_order, read_life

A, B, C = "A@1", "B@2", "C@3"
LEFT = {"reason": "left", "unknown": []}


def chapter(number: int, members: list[str], delivered: list[Sent], *, joined: tuple[str, ...] = ()) -> Chapter:
    """A view to which all but `joined` came together."""
    together = tuple(member for member in members if member not in joined)
    return Chapter((number, A), tuple(members), joined, together, delivered, list(range(len(delivered))), [])


def story() -> dict[str, Life]:
    """A, B and C; C dies, having been ahead of the others; A and B go on and leave."""
    common: list[Sent] = [(A, 1), (B, 1), (A, 2), (C, 1), (B, 2)]
    second: list[Sent] = [(C, 2), (A, 3), (B, 3)]

    def survivor(address: str) -> Life:
        return Life(address, [chapter(1, [A, B, C], [*common]), chapter(2, [A, B], [*second])], LEFT, [])

    return {A: survivor(A), B: survivor(B), C: Life(C, [chapter(1, [A, B, C], [*common, (C, 2)])], None, [])}


def test_a_story_without_fault_has_none() -> None:
    lives = list(story().values())
    assert all_faults(lives) == []
    assert list(complete(lives[:2], {A: 3, B: 3, C: 2})) == []


def swapped(lives: dict[str, Life]) -> None:
    delivered = lives[B].chapters[0].delivered
    delivered[1], delivered[2] = delivered[2], delivered[1]


def swapped_at_the_dead(lives: dict[str, Life]) -> None:
    delivered = lives[C].chapters[0].delivered
    delivered[2], delivered[3] = delivered[3], delivered[2]


def repeated(lives: dict[str, Life]) -> None:
    for life in (lives[A], lives[B]):
        life.chapters[1].delivered.append((B, 3))
        life.chapters[1].positions.append(3)


def repeated_in_the_next_view(lives: dict[str, Life]) -> None:
    for life in (lives[A], lives[B]):
        life.chapters[1].delivered.insert(0, (B, 2))
        life.chapters[1].positions.append(3)


def skipped_everywhere(lives: dict[str, Life]) -> None:
    for life in lives.values():
        life.chapters[0].delivered.remove((A, 2))
        life.chapters[0].positions.pop()


def skipped_by_one(lives: dict[str, Life]) -> None:
    lives[B].chapters[0].delivered.pop()
    lives[B].chapters[0].positions.pop()


def first_one_missing(lives: dict[str, Life]) -> None:
    lives[A].chapters[0] = lives[A].chapters[0]._replace(joined=(B,))
    lives[A].chapters.insert(0, chapter(0, [A], []))
    lives[A].chapters[1].delivered.remove((B, 1))
    lives[A].chapters[1].positions.pop()


def other_members(lives: dict[str, Life]) -> None:
    lives[B].chapters[1] = lives[B].chapters[1]._replace(members=(B, A))


def other_positions(lives: dict[str, Life]) -> None:
    lives[B].chapters[1].positions[0] = 1


def in_another_view(lives: dict[str, Life]) -> None:
    first, second = lives[B].chapters
    second.delivered.insert(0, first.delivered.pop())


def altered(lives: dict[str, Life]) -> None:
    lives[B].strange.append("A@1 2 holds something else")


def lost_at_the_end(lives: dict[str, Life]) -> None:
    lives[B].chapters[1].delivered.pop()
    lives[B].chapters[1].positions.pop()


PLANTED: dict[Callable[[dict[str, Life]], None], set[str]] = {
    swapped: {"one_order", "together"},
    swapped_at_the_dead: {"one_order"},
    repeated: {"sender_order"},
    repeated_in_the_next_view: {"sender_order"},
    skipped_everywhere: {"sender_order"},
    skipped_by_one: {"sender_order", "together"},
    first_one_missing: {"one_order", "sender_order", "together"},
    other_members: {"one_order"},
    other_positions: {"positions"},
    in_another_view: {"one_order", "positions", "together"},
    altered: {"strange"},
    lost_at_the_end: {"together"},
}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_found_by_the_checks_that_it_concerns(plant: Callable[[dict[str, Life]], None]) -> None:
    lives = story()
    plant(lives)
    checks = ("strange", "sender_order", "positions", "one_order", "together")
    assert {name for name in checks if list(getattr(logs, name)(list(lives.values())))} == PLANTED[plant]


def test_another_order_is_a_fault_in_total_and_none_in_fifo() -> None:
    lives = story()
    swapped(lives)
    assert all_faults(list(lives.values()))
    assert faults_without_order(list(lives.values())) == []
    skipped_by_one(lives)
    assert faults_without_order(list(lives.values()))


def test_what_was_accepted_and_not_delivered_is_missed() -> None:
    lives = list(story().values())
    assert list(complete(lives[:2], {A: 4})) == [
        f"{member} was given 3 messages of {A}, who sent 4" for member in (A, B)
    ]
    assert list(complete(lives[:1], {B: 2})) == [f"{A} was given 3 messages of {B}, who sent 2"]


def test_the_digest_tells_orders_apart() -> None:
    lives = story()
    assert digest(lives[A]) == digest(lives[B]) != digest(lives[C])
    swapped(lives)
    assert digest(lives[A]) != digest(lives[B])


def test_a_log_is_read_up_to_its_last_whole_line(tmp_path: Path) -> None:
    view = {"id": [1, A], "members": [A, B], "joined": [B], "transitional": [A]}
    log = tmp_path / "log"
    log.write_text(f"V {json.dumps(view)}\nM {A} 1 0\nM {A} 2 1\nM {A} 3")
    assert read_life(A, log) == Life(A, [Chapter((1, A), (A, B), (B,), (A,), [(A, 1), (A, 2)], [0, 1], [])], None, [])


def merged() -> dict[str, Life]:
    """A alone, B and C together, and one view again; each side misses what the other one delivered."""
    first: list[Sent] = [(A, 1), (B, 1)]
    alone, together = chapter(2, [A], [(A, 2)]), chapter(3, [B, C], [(B, 2), (C, 1)])
    last: list[Sent] = [(A, 3), (B, 3), (C, 2)]

    def life(address: str, middle: Chapter, gaps: list[tuple[str, int, int]], joined: tuple[str, ...]) -> Life:
        stay = tuple(member for member in (A, B, C) if member not in joined)
        end = Chapter((4, A), (A, B, C), joined, stay, [*last], [0, 1, 2], gaps)
        before = middle._replace(delivered=[*middle.delivered], positions=[*middle.positions])
        return Life(address, [chapter(1, [A, B, C], [*first]), before, end], LEFT, [])

    b, c = (life(address, together, [(A, 2, 1)], (A,)) for address in (B, C))
    return {A: life(A, alone, [(B, 2, 1), (C, 1, 1)], (B, C)), B: b, C: c}


def test_after_a_merge_only_the_messages_of_gaps_are_missing() -> None:
    lives = merged()
    assert all_faults(list(lives.values())) == []
    lives[A].chapters[2].gaps.pop(0)
    assert [fault for fault in all_faults(list(lives.values())) if "message 3 of B@2" in fault]
    lives = merged()
    lives[C].chapters[2].gaps[0] = (A, 3, 1)
    assert [fault for fault in all_faults(list(lives.values())) if "gap of A@1" in fault]
    lives = merged()
    lives[B].chapters[2].delivered[0] = (A, 1)
    assert [fault for fault in all_faults(list(lives.values())) if "message 1 of A@1" in fault]


def test_a_gap_in_a_log_belongs_to_its_view(tmp_path: Path) -> None:
    log = tmp_path / "log"
    view = {"id": [4, A], "members": [A, B], "joined": [B], "transitional": [A]}
    log.write_text(f"V {json.dumps(view)}\nG {B} 1 2\n")
    assert read_life(A, log).chapters[0].gaps == [(B, 1, 2)]
