"""The result of a measurement: what the members reported, as numbers of the group, as JSON or as text."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TypeVar

import msgspec

from .messages import Seen, Task

Value = TypeVar("Value", int, float)


class Result(msgspec.Struct):
    """The fields of `pygroups perf --json`, in its order.  A number that nothing was measured for is None."""

    profile: str
    transport: str
    members: int
    senders: int
    size: int  # bytes of a message
    duration_s: float
    messages_per_s: int  # delivered to each member, from all senders
    bytes_per_s: int
    deliveries: int  # of all members between the two instants
    cpu_s_per_million_deliveries: float | None  # user and system time of all members
    latency_ms: dict[str, float | None]  # from the send to the delivery at each member
    run_messages: dict[str, int | None]  # messages in one run
    retransmitted_bytes: int
    order_verified: bool  # one order at all members, if the profile has one; each sender's own order
    lost: int
    double: int
    gap_ms: float | None  # with --failover: the longest time without a delivery at a survivor

    @property
    def is_right(self) -> bool:
        """Whether nothing was lost, repeated or out of order."""
        return self.order_verified and not self.lost and not self.double


def result_of(
    task: Task, members: int, senders: int, duration: float, seen: Sequence[Seen], *, one_order: bool
) -> Result:
    """The numbers of the group from the reports of its living members."""
    counted = sum([one.counted for one in seen])
    rate = fmean([one.counted / one.seconds for one in seen])
    latencies = sorted([1_000 * latency for one in seen for latency in one.latencies])
    runs = sorted([size for one in seen for size in one.run_messages])
    gaps = [one.gap for one in seen if one.gap is not None]
    double = sum([one.double for one in seen])
    return Result(
        profile=task.profile,
        transport=task.transport,
        members=members,
        senders=senders,
        size=task.load.size,
        duration_s=duration,
        messages_per_s=round(rate),
        bytes_per_s=round(rate * task.load.size),
        deliveries=counted,
        cpu_s_per_million_deliveries=(
            round(sum([one.cpu_seconds for one in seen]) / counted * 1e6, 3) if counted else None
        ),
        latency_ms={f"p{share}": _rounded(quantile(latencies, share / 100)) for share in (50, 99)},
        run_messages={"p50": quantile(runs, 0.5), "max": max([one.run_messages_max for one in seen]) or None},
        retransmitted_bytes=sum([one.bytes_sent_again for one in seen]),
        order_verified=not double and (not one_order or len({(one.delivered, one.order) for one in seen}) == 1),
        lost=sum([one.lost for one in seen]),
        double=double,
        gap_ms=round(1_000 * max(gaps), 1) if gaps else None,
    )


def quantile(values: Sequence[Value], share: float) -> Value | None:
    """The value below which `share` of the sorted `values` lie; None without values."""
    return values[min(len(values) - 1, int(share * len(values)))] if values else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def printed(result: Result, *, json: bool) -> str:
    """The result as one JSON object, or as lines for people."""
    if json:
        return msgspec.json.encode(result).decode()
    many = "all of them send" if result.senders == result.members else f"{result.senders} of them send"
    p50, p99 = result.latency_ms["p50"], result.latency_ms["p99"]
    lines = [
        f"{result.members} members over {result.transport}, profile {result.profile}; {many} messages of "
        f"{result.size:,} bytes for {result.duration_s:g} s",
        f"  {result.messages_per_s:>11,} messages a second at each member ({result.bytes_per_s / 1e6:,.1f} MB/s)",
    ]
    if result.cpu_s_per_million_deliveries is not None:
        lines.append(f"  {result.cpu_s_per_million_deliveries:>11.2f} CPU seconds per million deliveries")
    if p50 is not None and p99 is not None:
        lines.append(f"  {p50:>11.2f} ms from the send to a delivery (median); 99 % within {p99:,.2f} ms")
    if result.run_messages["p50"] is not None:
        lines.append(
            f"  {result.run_messages['p50']:>11,} messages in a run (median); at most {result.run_messages['max']:,}"
        )
    lines.append(f"  {result.retransmitted_bytes:>11,} bytes sent again")
    if result.gap_ms is not None:
        lines.append(f"  {result.gap_ms:>11,.1f} ms without a delivery after the coordinator was killed")
    wrong = [f"{count:,} {what}" for count, what in ((result.lost, "lost"), (result.double, "repeated")) if count]
    wrong += [] if result.order_verified else ["the order differs"]
    lines.append(
        f"  WRONG: {', '.join(wrong)}" if wrong else "  order verified: nothing lost, repeated or out of order"
    )
    return "\n".join(lines)
