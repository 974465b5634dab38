"""The discovery of a process without a group, which has no members to find."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pygroups.core.address import Address
from pygroups.core.events import Event
from pygroups.core.turn import NoQuestions


class NoDiscovery(NoQuestions):
    """Finds no process, and announces nothing."""

    def __init__(self) -> None:
        self.happened: Callable[[Event], None]
        self.count: Callable[[str], None]

    def open(self, contact: str) -> None:
        """Do nothing."""

    def find(self, founding: bool) -> None:
        """Do nothing."""

    def announce(self, member: bool, invited: bool = False) -> None:
        """Do nothing."""

    def installed(self, members: Mapping[Address, str]) -> None:
        """Do nothing."""

    def refresh(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""
