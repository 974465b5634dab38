"""Promises about messages to one member: unicast-once, unicast-fifo, unicast-reported; run-identity and integrity
too."""

from __future__ import annotations

from collections.abc import Mapping

from pygroups.core.address import Address
from pygroups.core.services import GOSSIP

from .facts import Check, OnConnection, Rest, UnicastDelivery, Viewed
from .messages import unpacked

Pair = tuple[Address, Address]  # origin and receiver


class Unicasts(Check):
    """Each unicast is delivered unchanged and once, or is reported as not acknowledged.

    Where views are hints, a joiner keeps what arrives behind its first view for a moment, and may end meanwhile.
    """

    promises = ("unicast-once", "unicast-reported")

    def __init__(self) -> None:
        self.sent: dict[Pair, dict[int, bytes]] = {}  # payloads by number, in the order of sending
        self.next: dict[Pair, int] = {}  # the number after the highest delivered one
        self.missing: dict[Pair, dict[int, None]] = {}  # lower numbers that were not delivered
        self.reported: dict[Pair, dict[int, None]] = {}
        self.stopped: dict[Address, None] = {}
        self.waiting: dict[Address, None] = {}  # receivers that ended without a first view
        self.begun: dict[Address, None] = {}
        self.judged = 0
        self.reports = 0

    def facts(self) -> dict[str, int]:
        return {"unicast-once": self.judged, "unicast-reported": self.reports}

    def viewed(self, view: Viewed) -> None:
        self.begun[view.member] = None

    def accepted(self, member: Address, to: Address | None, number: int, payload: bytes) -> None:
        if to is None:
            return
        payloads = self.sent.setdefault((member, to), {})
        last = next(reversed(payloads), 0)
        if number <= last:
            detail = f"a message to one member got the number {number}, after the number {last}"
            self.broken("integrity", detail, member=member, other=to, message=(member, number))
        payloads[number] = payload

    def received(self, delivery: UnicastDelivery) -> None:
        pair, low = (delivery.origin, delivery.to), delivery.first
        high = low + delivery.count
        self.judged += 1
        known, payloads = self.sent.get(pair, {}), unpacked(delivery.body)
        sent = [known[number] for number in range(low, high) if number in known]
        if payloads != sent:
            self._broken("integrity", "the origin did not send this payload", pair, low)
            if len(sent) == delivery.count:
                self._broken("run-identity", "one run has two bodies: its origin sent another one", pair, low)
        if delivery.member != delivery.to:
            return  # unicast-fifo reports this, and the true receiver still waits
        expected, missing = self.next.get(pair, 1), self.missing.setdefault(pair, {})
        again = [number for number in range(low, min(high, expected)) if number not in missing]
        if again:
            self._broken("unicast-once", "the message is delivered a second time", pair, again[0])
        for number in range(low, high):
            missing.pop(number, None)
        missing.update(dict.fromkeys([number for number in range(expected, low) if number in known]))
        self.next[pair] = max(expected, high)

    def undelivered(self, member: Address, to: Address, numbers: range) -> None:
        self.reported.setdefault((member, to), {}).update(dict.fromkeys(numbers))

    def ended(self, member: Address, reason: str, unknown: range | None) -> None:
        if unknown is not None:
            self.stopped[member] = None
        if GOSSIP in self.around.services and member not in self.begun:
            self.waiting[member] = None

    def settled(self, rests: list[Rest]) -> None:
        told = {**self.stopped, **{rest.member: None for rest in rests}}
        self.reports = 0
        for pair, payloads in self.sent.items():
            if pair[0] in told and pair[1] not in self.waiting:
                self.reports += len(payloads)
                self._check_all(pair, payloads)

    def _check_all(self, pair: Pair, payloads: Mapping[int, bytes]) -> None:
        """Check that each message is delivered or reported."""
        reported, next_number = self.reported.get(pair, {}), self.next.get(pair, 1)
        open_ones = [*self.missing.get(pair, {}), *[number for number in payloads if number >= next_number]]
        for number in open_ones:
            if number not in reported:
                self._broken(
                    "unicast-reported", "the message was neither delivered nor reported as undelivered", pair, number
                )
                return

    def _broken(self, promise: str, detail: str, pair: Pair, number: int) -> None:
        self.broken(promise, detail, member=pair[1], other=pair[0], message=(pair[0], number))


class ConnectionsInOrder(Check):
    """One receiver delivers a prefix of the messages sent on a connection, in order; later connections have higher
    ids."""

    promises = ("unicast-fifo",)

    def __init__(self) -> None:
        self.sent: dict[tuple[Address, int], list[OnConnection]] = {}  # per origin and connection
        self.came: dict[tuple[Address, Address, int], int] = {}  # per receiver, origin and connection: number of runs
        self.newest: dict[Pair, int] = {}  # per origin and receiver: the connection of the last delivery
        self.judged = 0

    def facts(self) -> dict[str, int]:
        return {"unicast-fifo": self.judged}

    def on_connection(self, passed: OnConnection) -> None:
        if passed.sent:
            self.sent.setdefault((passed.origin, passed.connection), []).append(passed)
        else:
            self.judged += 1
            wrong = self._wrong(passed)
            if wrong is not None:
                message = (passed.origin, passed.first)
                self.broken("unicast-fifo", wrong, member=passed.member, other=passed.origin, message=message)

    def _wrong(self, passed: OnConnection) -> str | None:
        """The fault of a delivery, in words; None if it is right."""
        here, connection = (passed.origin, passed.member), passed.connection
        place = self.came.get((*here, connection), 0)
        self.came[(*here, connection)] = place + 1
        newest, self.newest[here] = self.newest.get(here, connection), connection
        sent = self.sent.get((passed.origin, connection), [])
        if passed.member != passed.to or (sent and sent[0].to != passed.member):
            return f"connection {connection} has another receiver"
        if connection < newest:
            return f"a message of connection {connection} was delivered after one of the later connection {newest}"
        if place >= len(sent):
            return f"more was delivered than was sent on connection {connection}"
        if sent[place].first != passed.first:
            return f"the next message on connection {connection} is number {sent[place].first}"
        return None
