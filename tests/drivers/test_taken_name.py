"""The names that processes without one take in the folder of their journal."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from pygroups.drivers import taken_name
from pygroups.drivers.taken_name import LOCK, TakenName, take_name

Take = Callable[[], TakenName]


@pytest.fixture
def take(tmp_path: Path) -> Take:
    numbers = count(1)
    return lambda: take_name(tmp_path / "g", lambda: f"vm-{next(numbers)}")


def test_living_processes_have_different_names(take: Take) -> None:
    assert [take().name for _ in range(3)] == ["vm-1", "vm-2", "vm-3"]


def test_a_process_takes_the_name_of_a_crashed_one(take: Take) -> None:
    first, crashed, other = take(), take(), take()
    crashed.release(left=False)
    again = take()
    assert again.name == crashed.name
    crashed.release(left=True)  # without effect: it has another process
    first.release(left=False)
    assert [take().name, take().name] == [first.name, "vm-4"]
    other.release(left=False)


def test_nobody_takes_the_name_of_a_process_that_has_left(take: Take) -> None:
    first, left = take(), take()
    left.release(left=True)
    assert take().name == "vm-3"
    first.release(left=True)


def test_the_names_of_a_group_that_has_ended_are_forgotten(take: Take) -> None:
    for name in [take() for _ in range(3)]:
        name.release(left=False)
    assert [take().name, take().name] == ["vm-4", "vm-5"]


def test_a_new_name_is_not_that_of_a_living_process(tmp_path: Path) -> None:
    taken = [take_name(tmp_path, lambda: "vm-7") for _ in range(2)]  # the process id came again
    assert taken[0].name == "vm-7" and taken[1].name.startswith("vm-7-")


def test_a_process_that_is_stopped_while_it_chooses_holds_no_other_up(
    take: Take, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taken_name, "ATTEMPTS", 2)
    first, crashed = take(), take()
    crashed.release(left=False)
    stopped = TakenName(tmp_path / "g" / LOCK, taken_name._locked(tmp_path / "g" / LOCK) or 0)
    assert take().name == "vm-3"  # which is safe: nobody answers for the crashed one
    stopped.release(left=False)
    assert take().name == crashed.name
    first.release(left=True)


def test_a_forked_child_does_not_keep_the_name(take: Take) -> None:
    living, crashed = take(), take()
    (out, into), (begun, begins) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(into)
        os.write(begins, b"1")
        os.read(out, 1)  # until the parent has tried
        os._exit(0)
    os.close(out)
    os.read(begun, 1)
    crashed.release(left=False)
    again = take().name
    os.close(into)
    os.waitpid(child, 0)
    assert again == crashed.name
    living.release(left=True)
