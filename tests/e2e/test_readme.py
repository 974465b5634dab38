"""The program of README.md, as a reader copies it: it works, and whoever was stopped comes back."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.e2e.group import ROOT, Process, until

pytestmark = pytest.mark.slow
PROGRAM, BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


class Program(Process):
    """README's program, with a group of the test's own."""

    def __init__(self, file: Path) -> None:
        self.said: list[str] = []
        super().__init__(str(file))

    def heard(self, line: bytes) -> None:
        self.said.append(line.decode().rstrip("\n"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    group = f"readme-{os.getpid()}"
    assert PROGRAM.count('"orders"') == 1
    file = tmp_path / "orders.py"
    file.write_text(PROGRAM.replace('"orders"', f'"{group}"'))
    return file


def views(program: Program) -> list[list[str]]:
    """The members in each view that the program has printed."""
    return [line.split()[4:] for line in program.said if line.startswith("now in the group:")]


def test_two_shells_see_each_other_and_a_member_that_was_stopped_comes_back(file: Path) -> None:
    first, second = both = Program(file), Program(file)
    try:
        until("both are in one view", lambda: all(views(one) and len(views(one)[-1]) == 2 for one in both))
        names = views(first)[-1]
        until("a message of each", lambda: all(any(f"{name} b'sure'" in one.said for one in both) for name in names))
        second.signal(signal.SIGSTOP)
        until("the other one goes on alone", lambda: len(views(first)[-1]) == 1)
        before = len(views(second))
        second.signal(signal.SIGCONT)
        until(
            "a merge",
            lambda: len(views(first)[-1]) == 2 and len(views(second)) > before and len(views(second)[-1]) == 2,
        )
        assert sorted(views(first)[-1]) == sorted(views(second)[-1]) == sorted(names)
        second.signal(signal.SIGINT)
        assert second.ended() != 0
        until("the other one is alone", lambda: len(views(first)[-1]) == 1)
        first.signal(signal.SIGKILL)
    finally:
        first.end()
        second.end()
