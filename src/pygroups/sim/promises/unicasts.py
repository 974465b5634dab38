"""What messages to one member promise: unicast-once, unicast-fifo, unicast-reported, and integrity."""

from __future__ import annotations

from pygroups.core.address import Address
from pygroups.core.run import unpack

from .broken import Broken
from .facts import Check, Rest, UnicastDelivery

Pair = tuple[Address, Address]  # origin and receiver


class Unicasts(Check):
    """What is sent to one member arrives as sent, in order and once; and what does not arrive is reported."""

    promises = ("unicast-fifo", "unicast-once", "unicast-reported")

    def __init__(self) -> None:
        self.sent: dict[Pair, list[bytes]] = {}  # from number 1
        self.next: dict[Pair, int] = {}  # the number after the last one delivered
        self.holes: dict[Pair, list[int]] = {}  # numbers that were skipped at the receiver
        self.reported: dict[Pair, dict[int, None]] = {}

    def accepted(self, member: Address, to: Address | None, number: int, payload: bytes) -> None:
        if to is not None:
            payloads = self.sent.setdefault((member, to), [])
            payloads.append(payload)
            if number != len(payloads):
                detail = f"message number {len(payloads)} to one member was given the number {number}"
                raise Broken("unicast-fifo", detail, member=member, other=to, message=(member, number))

    def received(self, delivery: UnicastDelivery) -> None:
        pair, low = (delivery.origin, delivery.member), delivery.first
        high = low + delivery.count
        if unpack(delivery.body) != self.sent.get(pair, [])[low - 1 : high - 1]:
            raise self._broken("integrity", "its origin did not send that", pair, low)
        expected = self.next.get(pair, 1)
        if low < expected:
            again = [number for number in range(low, high) if number not in self.holes.get(pair, [])]
            promise = "unicast-once" if again else "unicast-fifo"
            raise self._broken(promise, f"{expected} is the next one", pair, low)
        self.holes.setdefault(pair, []).extend(range(expected, low))
        self.next[pair] = high

    def undelivered(self, member: Address, to: Address, numbers: range) -> None:
        self.reported.setdefault((member, to), {}).update(dict.fromkeys(numbers))

    def settled(self, rests: list[Rest]) -> None:
        living = {rest.member: None for rest in rests}
        for pair, payloads in self.sent.items():
            if pair[0] in living:
                self._check_all(pair, len(payloads), living)

    def _check_all(self, pair: Pair, count: int, living: dict[Address, None]) -> None:
        """Each message is delivered or reported; delivered counts only while the receiver can be asked."""
        reported, holes = self.reported.get(pair, {}), self.holes.get(pair, [])
        missing = [number for number in holes if number not in reported]
        if pair[1] in living:
            missing += [number for number in range(self.next.get(pair, 1), count + 1) if number not in reported]
        if missing:
            raise self._broken("unicast-reported", "neither delivered nor reported", pair, missing[0])

    def _broken(self, promise: str, detail: str, pair: Pair, number: int) -> Broken:
        return Broken(promise, detail, member=pair[1], other=pair[0], message=(pair[0], number))
