"""The messages that a member has sent and delivered since it began, for `channel.stats()`."""

from __future__ import annotations

from .run import Run


class Volume:
    """So many messages, and the bytes of their runs."""

    __slots__ = ("bytes", "messages")

    def __init__(self) -> None:
        self.messages = 0
        self.bytes = 0

    def add(self, run: Run) -> None:
        """Count the messages of one more run."""
        self.messages += run.count
        self.bytes += len(run.body)

    def plain(self) -> dict[str, int]:
        """The two numbers, as values that JSON can represent."""
        return {"messages": self.messages, "bytes": self.bytes}


class Totals:
    """Messages to all members, and messages to one member alone."""

    __slots__ = ("delivered", "delivered_to_one", "missed", "sent", "sent_to_one", "views")

    def __init__(self) -> None:
        self.views = 0
        self.sent = Volume()
        self.delivered = Volume()
        self.sent_to_one = Volume()
        self.delivered_to_one = Volume()
        self.missed = 0  # messages of gaps: other members delivered them, and this one never does

    def plain(self) -> dict[str, int | dict[str, int]]:
        """All totals, as values that JSON can represent."""
        return {
            "views": self.views,
            "sent": self.sent.plain(),
            "delivered": self.delivered.plain(),
            "sent_to_one": self.sent_to_one.plain(),
            "delivered_to_one": self.delivered_to_one.plain(),
            "missed": self.missed,
        }
