"""The cost of a large group grows with its members and not with their square (0108)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pygroups.core.limits import SECOND
from pygroups.sim.scenarios.group import ScenarioGroup, scenario
from tests.merging import Map, mapped, whole

SMALL, LARGE = 22, 44  # members; both are more than heartbeat_all
LINEAR: float = 2.9  # twice the members may cost so much more: with the square it is four times


class Meter:
    """The frames and bytes that leave all members."""

    def __init__(self, group: ScenarioGroup, monkeypatch: pytest.MonkeyPatch) -> None:
        self.frames = self.bytes = 0
        send = group.world.send

        def counted(member: Any, dest: Any, frames: Sequence[bytes]) -> None:
            self.frames += len(frames)
            self.bytes += sum(map(len, frames))
            send(member, dest, frames)

        monkeypatch.setattr(group.world, "send", counted)


def cost(
    count: int, monkeypatch: pytest.MonkeyPatch, happens: Callable[[ScenarioGroup, list[str]], None]
) -> tuple[int, int]:
    """Frames and bytes of what happens in a calm group of so many members, without the promises, which take long."""
    names = [f"member-{number:03}" for number in range(count + 1)]
    with scenario(names[:count], formed=False, promised=False) as group:
        group.start(names[:count])
        group.until(lambda: all(len(member.view) == count for member in group.members), within=30)
        group.after(20)
        meter = Meter(group, monkeypatch)
        happens(group, names)
        return meter.frames, meter.bytes


def join(group: ScenarioGroup, names: list[str]) -> None:
    group.start(names[-1])
    group.until(lambda: all(len(member.view) == len(names) for member in group.members), within=5)


def crash(group: ScenarioGroup, names: list[str]) -> None:
    group.crash(names[-2])
    group.until(lambda: all(len(member.view) == len(names) - 2 for member in group.members), within=5)


def nothing(group: ScenarioGroup, names: list[str]) -> None:
    group.after(10)


def cost_of_a_merge(views: Map, monkeypatch: pytest.MonkeyPatch) -> int:
    """Bytes until all members are in one view, without the promises."""
    with mapped(views, heartbeat=SECOND, heartbeat_timeout=5 * SECOND, merge_interval=SECOND) as group:
        group.judge.checks.clear()
        meter = Meter(group, monkeypatch)
        group.until(lambda: whole(group), within=40, step=0.05)
        return meter.bytes


def halves(count: int) -> Map:
    names = [f"member-{number:03}" for number in range(count)]
    one, other = names[: count // 2], names[count // 2 :]
    return {**dict.fromkeys(one, (5, " ".join(one))), **dict.fromkeys(other, (7, " ".join(other)))}


def test_two_halves_merge_without_their_views_for_each_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each member asks each member of the other half.  If each answer had the view, 60 members would cost 5.2 MB.
    (0111)"""
    assert cost_of_a_merge(halves(60), monkeypatch) < 3_300_000


@pytest.mark.parametrize("happens", [join, crash, nothing])
def test_twice_the_members_cost_twice_as_much(
    happens: Callable[[ScenarioGroup, list[str]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many = cost(SMALL, monkeypatch, happens), cost(LARGE, monkeypatch, happens)
    assert few[0] > 0
    assert many[0] <= LINEAR * few[0], f"frames: {few[0]} among {SMALL} members, {many[0]} among {LARGE}"
    assert many[1] <= LINEAR * few[1], f"bytes: {few[1]} among {SMALL} members, {many[1]} among {LARGE}"
