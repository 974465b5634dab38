"""`pygroups join` in shells: lines are typed into pipes, and what is printed is read as a user's program would."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.e2e.group import Process, until

Said = tuple[str, int, str]  # by whom, its number, the text


class Shell(Process):
    """One `pygroups join`."""

    def __init__(self, name: str, group: str, folder: Path, *options: str) -> None:
        self.name = name
        self.events: list[dict[str, Any]] = []
        self.times: list[float] = []  # when each was read here
        self.typed: list[str] = []
        where = ("--discovery", f"dir:{folder}")
        super().__init__("-m", "pygroups", "join", group, "--name", name, *where, *options)

    def heard(self, line: bytes) -> None:
        self.times.append(time.monotonic())
        self.events.append(json.loads(line))

    def type(self, text: str) -> None:
        """A line, as typed by a user."""
        self.typed.append(text)
        self.write(text.encode())

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["event"] == kind]

    @property
    def said(self) -> list[Said]:
        """All messages that it printed, in order."""
        return [(event["from"], event["number"], event["text"]) for event in self.of_kind("message")]

    @property
    def view(self) -> dict[str, Any]:
        """The last one that it printed."""
        views = [event for event in self.events if event["event"] in ("view", "merge")]
        return views[-1] if views else {"members": [], "addresses": [], "id": [0, ""]}

    @property
    def address(self) -> str:
        """Its own, as the first view says it."""
        (own,) = [one for one in self.of_kind("view")[0]["addresses"] if one.partition("@")[0] == self.name]
        assert isinstance(own, str)
        return own


class Shells:
    """Shells of one group; at the end of `with` none of them lives."""

    def __init__(self, folder: Path, group: str = "g") -> None:
        self.folder = folder
        self.group = group
        self.shells: list[Shell] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for shell in self.shells:
            shell.end()
            if error is not None:
                error.add_note(f"{shell.name} {shell.child.returncode} {shell.events[-5:]} {shell.errors}")

    def open(self, name: str, *options: str) -> Shell:
        """Start one; it may not be a member for long."""
        shell = Shell(name, self.group, self.folder, *options)
        self.shells.append(shell)
        return shell

    def start(self, *names: str) -> list[Shell]:
        """One after the other, each a member before the next one starts; so the first one coordinates."""
        started = []
        for name in names:
            started.append(self.open(name))
            for shell in started:
                view_of(shell, *[one.name for one in started])
        return started


def view_of(shell: Shell, *names: str) -> None:
    """Wait until the last view that `shell` printed has these members, in this order."""
    until(f"{shell.name} is in a view of {' '.join(names)}", lambda: shell.view["members"] == list(names))
