"""Sending inside `async for` never deadlocks; a program that only sends stops nobody but senders; see answering.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.channel.answering import NAMES, SMALL, answer, only_send
from tests.channel.socket_group import Group, in_a_group

pytestmark = pytest.mark.slow


def test_four_members_that_answer_each_message_with_one_never_deadlock(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        programs = await answer(group, 1, seconds=3.0)
        assert [program.deadlocks for program in programs] == [0] * len(NAMES)
        assert all(program.sent > 2 * SMALL.window // 2048 for program in programs)

    in_a_group(tmp_path, story)


def test_with_two_answers_to_each_message_they_learn_of_the_deadlock_and_lose_nothing(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        programs = await answer(group, 2, seconds=40.0)
        assert sum(program.deadlocks for program in programs) > 0

    in_a_group(tmp_path, story)


def test_a_member_that_only_sends(tmp_path: Path) -> None:
    """Its queue is bounded, nothing counts as read, its own sends wait, and no view change waits for it."""

    async def story(group: Group) -> None:
        sent, most, longest = await only_send(group, seconds=3.0)
        assert 0 < sent <= SMALL.window // 2048
        assert most <= 3 * SMALL.window
        assert longest < 20

    in_a_group(tmp_path, story)
