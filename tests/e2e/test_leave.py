"""Leaving in good order loses nothing that was accepted, whoever leaves and however many at once."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.group import Group, Worker
from tests.e2e.logs import Life, all_faults, complete

pytestmark = pytest.mark.slow
BOTH: Final = pytest.mark.parametrize("profile", ["total", pytest.param("fifo", marks=pytest.mark.long)])
LOAD: Final = {"count": 1 << 40, "size": 100, "burst": 20, "pause": 0.005}
FORGETTING: Final = {"connection_age": 2_000_000}
"""How long the others keep what a leaver has not acknowledged before it went: 30 s by default, in microseconds here."""


def loaded(group: Group, names: str) -> list[Worker]:
    """Members that send and send, and have begun to hear each other."""
    workers = group.start(*names)
    for worker in workers:
        worker.order("send", **LOAD)
    group.until(
        "all hear all",
        lambda: all(worker.progress["last"].get(other.address, 0) > 100 for worker in workers for other in workers),
    )
    return workers


def left_well(workers: Sequence[Worker]) -> None:
    """They have gone, and know the fate of all they sent."""
    for worker in workers:
        assert worker.ended() == 0, worker.errors
        assert worker.reports["left"] == {"reason": "left", "unknown": []}, worker.name


def own_messages_came_back(lives: Sequence[Life], workers: Sequence[Worker]) -> None:
    """Each was given all that it had accepted itself; `all_faults` compares it with the others, who left with it."""
    by_address = {life.address: life for life in lives}
    for worker in workers:
        accepted = worker.progress["accepted"]
        assert accepted > 100
        assert not list(complete([by_address[worker.address]], {worker.address: accepted}))


@BOTH
def test_all_leave_at_once_under_load(tmp_path: Path, profile: str) -> None:
    with Group(tmp_path, profile=profile, journal=None) as group:
        workers = loaded(group, "ABCDE")
        for worker in workers:
            worker.order("leave")
        left_well(workers)
        lives = group.lives()
    assert not all_faults(lives, profile)
    own_messages_came_back(lives, workers)


@BOTH
def test_one_coordinator_after_the_other_leaves_under_load(tmp_path: Path, profile: str) -> None:
    with Group(tmp_path, profile=profile, journal=None, config=FORGETTING) as group:
        workers = loaded(group, "ABCD")
        for number, worker in enumerate(workers[:-1]):
            worker.order("leave")
            left_well([worker])
            group.settle()
            rest = workers[number + 1 :]
            assert rest[0].members == [one.address for one in rest]  # who came next coordinates
            assert not any(one.heard_of["suspected"] for one in rest)
        last = workers[-1]
        group.quiet(group.stop_sending())
        group.leave()
        lives = group.lives()
    assert not all_faults(lives, profile)
    own_messages_came_back(lives, workers)
    gone = {worker.address: worker.progress["accepted"] for worker in workers}
    assert not list(complete([life for life in lives if life.address == last.address], gone))


@BOTH
def test_a_leaver_loses_nothing_though_the_coordinator_dies_meanwhile(tmp_path: Path, profile: str) -> None:
    with Group(tmp_path, profile=profile, journal=None, config=FORGETTING) as group:
        coordinator, leaver, *others = loaded(group, "ABCD")
        leaver.order("leave")
        coordinator.signal(signal.SIGKILL)
        left_well([leaver])
        group.settle()
        group.quiet(group.stop_sending())
        group.leave()
        lives = group.lives()
    assert not all_faults(lives, profile)
    own_messages_came_back(lives, [leaver, *others])
    survivors = [life for life in lives if life.address in {worker.address for worker in others}]
    assert not list(complete(survivors, {leaver.address: leaver.progress["accepted"]}))
