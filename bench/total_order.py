"""Total order among real processes on loopback TCP, profile `total`: throughput and latency.

Every member sends as fast as its window allows and delivers everything in one order.  Counted between two instants
within the load, at every member; afterwards all members must have delivered the same messages in the same order, each
sender's in its order, all of them once.  CPU seconds are user and system time of all members.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import common  # first: it makes this tree the one that is measured

from pygroups.layers.profiles import profile_named
from pygroups.wire.ring import KEY_NEW, line_of

WORKER = Path(__file__).with_name("worker.py")
WARM_SECONDS, COOL_SECONDS = 1.0, 0.5
QUIETEST = ("messages_per_s", "cpu_s_per_million_deliveries", "cpu_share_of_others")
BUDGETS = {("batches", 100): 0.6, ("batches", 1_000): 1.2, ("each", 100): 0.7, ("each", 1_000): 1.4}


class Member:
    """One process, seen from outside."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def do(self, what: str, **more: Any) -> dict[str, Any]:
        stdin = self.process.stdin
        assert stdin is not None
        stdin.write(json.dumps({"do": what, **more}).encode() + b"\n")
        await stdin.drain()
        return await self.answer()

    async def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), 120)
        if not line:
            raise RuntimeError(f"member {self.process.pid} has ended")
        answer: dict[str, Any] = json.loads(line)
        return answer


class Group:
    """`count` members in their own processes."""

    def __init__(self, count: int, how: str, **options: Any) -> None:
        self.count, self.how, self.options = count, how, options
        self.members: list[Member] = []

    async def __aenter__(self) -> Group:
        self.place = TemporaryDirectory()
        try:
            for index in range(self.count):
                await self._join(index)
            while len((await self.members[0].do("view"))["members"]) < self.count:
                await asyncio.sleep(0.05)
        except BaseException:
            await self._end()
            raise
        return self

    async def _join(self, index: int) -> None:
        member = await self.start(index)
        self.members.append(member)
        await member.answer()

    async def start(self, index: int, **more: Any) -> Member:
        """The process of a member that is in no list yet, and has answered nothing yet."""
        options = {"group": "bench", "name": f"m{index}", "discovery": f"dir:{self.place.name}", "how": self.how}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(WORKER),
            json.dumps(options | {"index": index} | self.options | more),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 24,
        )
        return Member(process)

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    async def _end(self) -> None:
        for member in self.members:
            if member.process.returncode is None and member.process.stdin is not None:
                member.process.stdin.close()
        for member in self.members:
            try:
                await asyncio.wait_for(member.process.wait(), 15)
            except TimeoutError:
                member.process.kill()
        self.place.cleanup()

    async def all_do(self, what: str, **more: Any) -> list[dict[str, Any]]:
        return await asyncio.gather(*[member.do(what, **more) for member in self.members])


# -- throughput


async def throughput(
    members: int,
    size: int,
    how: str,
    seconds: float,
    config: dict[str, int],
    profile: str = "total",
    transport: str = "tcp",
    secret: bool = False,
    yields: bool = False,
) -> dict[str, Any]:
    """Everybody floods; deliveries and CPU between two instants, and the share of each member in all messages, the
    coordinator first.  `secret`: all frames are encrypted.  `yields`: each sender yields after each message."""
    sealed = {"secret": line_of(1, secrets.token_bytes(KEY_NEW))} if secret else {}
    async with Group(members, how, config=config, profile=profile, transport=transport, **sealed) as group:
        first = time.monotonic() + WARM_SECONDS
        last = first + seconds
        busy = asyncio.create_task(busy_between(first, last))
        sent = await group.all_do("flood", size=size, until=last + COOL_SECONDS, yields=yields, look_at=[first, last])
        total = sum(answer["accepted"] for answer in sent)
        await group.all_do("wait", count=total, patience=20.0)
        reports = await group.all_do("report")
        stats = (await group.members[0].do("stats"))["stats"]
    verify(reports, total, one_order="TOTAL" in profile_named(profile).services)
    shares = [round(answer["accepted"] / total, 3) for answer in sent]
    return {**between(reports, await busy), "shares": shares, "counters": stats.get("counters", {})}


async def busy_between(first: float, last: float) -> float:
    """CPU seconds of the whole machine between two instants."""
    await asyncio.sleep(max(0.0, first - time.monotonic()))
    before = common.busy_seconds()
    await asyncio.sleep(max(0.0, last - time.monotonic()))
    return common.busy_seconds() - before


def verify(reports: list[dict[str, Any]], total: int, *, one_order: bool = True) -> None:
    """RuntimeError unless everybody has everything, once, in an order that keeps each sender's; one order for all."""
    wrong = [
        f"member {index}: {what} {report[what]}"
        for index, report in enumerate(reports)
        for what in ("double_or_out_of_order", "missing")
        if report[what]
    ]
    if one_order and len({report["order"] for report in reports}) != 1:
        wrong.append(f"orders differ: {[(r['delivered'], r['order']) for r in reports]}")
    if any(report["delivered"] != total for report in reports):
        wrong.append(f"{total} were sent, delivered: {[report['delivered'] for report in reports]}")
    if wrong:
        raise RuntimeError("; ".join(wrong))


def between(reports: list[dict[str, Any]], busy: float) -> dict[str, Any]:
    deliveries = sum(r["snapshots"][1]["delivered"] - r["snapshots"][0]["delivered"] for r in reports)
    cpu = sum(r["snapshots"][1]["cpu"] - r["snapshots"][0]["cpu"] for r in reports)
    if not deliveries:
        raise RuntimeError("nothing was delivered between the two instants: this machine is too busy to measure")
    elapsed = statistics.mean(r["snapshots"][1]["at"] - r["snapshots"][0]["at"] for r in reports)
    return {
        "messages_per_s": round(deliveries / len(reports) / elapsed),
        "deliveries": deliveries,
        "cpu_s_per_million_deliveries": round(cpu / deliveries * 1e6, 3),
        "cpu_share": round(cpu / elapsed / (os.cpu_count() or 1), 2),
        "cpu_share_of_others": round((busy - cpu) / elapsed / (os.cpu_count() or 1), 2),
        "order_verified": True,
    }


# -- latency


async def latency(
    members: int, size: int, rate: float, seconds: float, profile: str = "", transport: str = "tcp"
) -> dict[str, Any]:
    """One sender that does not order; from the time at which it was to send to its own delivery.  With `profile`, to
    the delivery at the slowest member, in that profile."""
    async with Group(members, "batches", profile=profile or "total", transport=transport) as group:
        sender = group.members[-1]
        timed = group.members if profile else [sender]
        for member in timed:
            await member.do("read_differently", of=members - 1)
        sent = await sender.do("drip", size=size, rate=rate, until=time.monotonic() + seconds)
        await group.all_do("wait", count=sent["accepted"], patience=20.0)
        times = [await member.do("latencies") for member in timed]
        found = max(times, key=lambda one: one["p50"])
        reports = await group.all_do("report")
    verify(reports, sent["accepted"], one_order="TOTAL" in profile_named(profile or "total").services)
    return {"messages": found["count"], "p50_ms": round(found["p50"], 3), "p99_ms": round(found["p99"], 3)}


# -- with and without a seal


async def side_by_side(options: argparse.Namespace) -> None:
    """The same load in turn without and with a secret, so that other programs disturb both alike."""
    for size in options.sizes:
        for how in options.how:
            result = common.Result("total_order")
            tries: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
            for _ in range(options.repeat):
                for secret, found in tries.items():
                    found.append(
                        await throughput(options.members, size, how, options.seconds, options.config, secret=secret)
                    )
            middle = {
                secret: statistics.median([one["cpu_s_per_million_deliveries"] for one in found])
                for secret, found in tries.items()
            }
            rates = {
                secret: statistics.median([one["messages_per_s"] for one in found]) for secret, found in tries.items()
            }
            result.write(
                what="seal",
                members=options.members,
                size=size,
                how=how,
                config=options.config,
                cpu_s_per_million_deliveries={"plain": middle[False], "sealed": middle[True]},
                cpu_ratio=round(middle[False] / middle[True], 2),
                messages_per_s={"plain": rates[False], "sealed": rates[True]},
                throughput_ratio=round(rates[True] / rates[False], 2),
                cpu_share_of_others=[one["cpu_share_of_others"] for found in tries.values() for one in found],
            )


# -- all of it


async def run(options: argparse.Namespace) -> None:
    if options.seal:
        await side_by_side(options)
        return
    for size in options.sizes:
        for how in options.how:
            result = common.Result("total_order")
            tries = [
                await throughput(options.members, size, how, options.seconds, options.config, yields=options.yields)
                for _ in range(options.repeat)
            ]
            tries.sort(key=lambda one: one["cpu_s_per_million_deliveries"])
            quietest = min(tries, key=lambda one: one["cpu_share_of_others"])
            result.write(
                what="throughput",
                members=options.members,
                size=size,
                how=how,
                yields=options.yields,
                config=options.config,
                budget_cpu_s_per_million=BUDGETS.get((how, size)) if options.members == 4 else None,
                **tries[len(tries) // 2],
                tries=[[one["cpu_s_per_million_deliveries"], one["cpu_share_of_others"]] for one in tries],
                quietest={name: quietest[name] for name in QUIETEST},
            )
    if options.latency:
        result = common.Result("total_order")
        found = await latency(options.members, 100, 200.0, options.seconds * 2)
        result.write(what="latency", members=options.members, size=100, rate=200, **found)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--members", type=int, default=4)
    options.add_argument("--sizes", type=int, nargs="*", default=[100, 1_000])
    options.add_argument("--how", nargs="*", choices=["batches", "each"], default=["batches", "each"])
    options.add_argument("--seconds", type=float, default=5.0, help="counted, of each load")
    options.add_argument("--repeat", type=int, default=3, help="times each load; the median is written")
    options.add_argument("--seal", action="store_true", help="compare throughput with and without a secret")
    options.add_argument("--yields", action="store_true", help="each sender lets other tasks run after each message")
    options.add_argument("--latency", action=argparse.BooleanOptionalAction, default=True)
    options.add_argument("--config", type=json.loads, default={}, help="of the members, as JSON; throughput only")
    asyncio.run(run(options.parse_args()))


if __name__ == "__main__":
    main()
