"""Lock, Semaphore, Counter and Leader in a group in memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pygroups import UsageError
from pygroups.blocks import Blocks, Counter, Grant, Leader, Lock, NotHeld, Semaphore, WorkQueue, run_on_one
from pygroups.testing import Group


def uniform(name: str | None = None, **options: Any) -> Blocks:
    return Blocks("g", profile="uniform", name=name, **options)


class Store:
    """A store outside of the group that checks fencing tokens, and counts the holders that are inside at a time."""

    def __init__(self) -> None:
        self.highest = 0
        self.inside = 0
        self.most = 0
        self.writes: list[str] = []

    def write(self, who: str, token: int) -> None:
        assert token >= self.highest, f"{who} writes with token {token} after {self.highest}"
        self.highest = token
        self.writes.append(who)


@pytest.mark.parametrize("block", [Lock, Counter, Leader, WorkQueue, lambda b, n: Semaphore(b, n, 2)])
def test_they_need_a_majority(block: Any) -> None:
    with pytest.raises(UsageError, match=r"both sides of a network split would give the same thing .* use 'uniform'"):
        block(Blocks("g", profile="total"), "x")


async def test_a_lock_has_one_holder_and_goes_to_the_next_in_order(group: Group) -> None:
    async with uniform("A") as a, uniform("B") as b, uniform("C") as c:
        locks = [Lock(one, "till") for one in (a, b, c)]
        store = Store()

        async def work(name: str, lock: Lock) -> None:
            for _ in range(10):
                async with lock as grant:
                    store.inside += 1
                    store.most = max(store.most, store.inside)
                    store.write(name, grant.token)
                    await asyncio.sleep(0.01)
                    store.inside -= 1

        await asyncio.gather(*[work(name, lock) for name, lock in zip("ABC", locks, strict=True)])
        assert store.most == 1
        assert sorted(store.writes) == sorted("ABC" * 10)
        assert len(set(store.writes[:9])) == 3  # in turns
        await group.settled()
        assert [lock.holder for lock in locks] == [None, None, None]


async def test_the_lock_of_a_crashed_member_is_free_with_the_view_without_it(group: Group) -> None:
    held: list[Grant] = []

    async def hold() -> None:
        async with uniform() as blocks:
            held.append(await Lock(blocks, "till").acquire())
            await asyncio.sleep(1_000)

    async with uniform("A") as a, uniform("B"):
        group.start("C", hold())
        await asyncio.sleep(2)
        lock = Lock(a, "till")
        assert lock.holder is not None and lock.holder.name == "C"
        assert await lock.try_acquire() is None
        waiting = asyncio.create_task(lock.acquire())
        await asyncio.sleep(1)
        group.crash("C")
        grant = await waiting
        assert grant.token > held[0].token
        assert grant.is_held
        await grant.release()
        assert not grant.is_held


async def test_a_member_that_waits_for_a_lock_and_crashes_does_not_get_it(group: Group) -> None:
    async def wait() -> None:
        async with uniform() as blocks, Lock(blocks, "till"):
            raise AssertionError("it crashed before")

    async with uniform("A") as a, uniform("B") as b:
        grant = await Lock(a, "till").acquire()
        group.start("C", wait())
        await asyncio.sleep(2)
        waiting = asyncio.create_task(Lock(b, "till").acquire())
        await asyncio.sleep(1)
        group.crash("C")
        await asyncio.sleep(2)
        await grant.release()
        await (await waiting).release()


async def test_a_lease_ends_by_order_and_its_holder_knows_it_first(group: Group) -> None:
    async with uniform("A") as a, uniform("B") as b:
        at_a, at_b = Lock(a, "till", lease=10), Lock(b, "till", lease=10)
        grant = await at_b.acquire()
        await asyncio.sleep(8)
        await grant.renew()
        await asyncio.sleep(8)
        assert grant.is_held
        waiting = asyncio.create_task(at_a.acquire())
        while not waiting.done():
            known = grant.is_held
            await asyncio.sleep(0.001)
        assert not known
        with pytest.raises(NotHeld, match="its lease is over"):
            await grant.renew()
        with pytest.raises(NotHeld, match="its lease is over"):
            await grant.release()
        assert (await waiting).token > grant.token


async def test_a_canceled_wait_does_not_keep_the_lock(group: Group) -> None:
    async with uniform("A") as a, uniform("B") as b:
        at_a, at_b = Lock(a, "till"), Lock(b, "till")
        grant = await at_a.acquire()
        with pytest.raises(TimeoutError, match="lock 'till' did not come within 1 s, and the request is withdrawn"):
            await at_b.acquire(timeout=1)
        waiting = asyncio.create_task(at_b.acquire())
        await asyncio.sleep(1)
        waiting.cancel()
        await grant.release()
        await group.settled()
        assert at_a.holder is None
        with pytest.raises(ZeroDivisionError):
            async with at_b:
                raise ZeroDivisionError
        async with at_a:
            pass


async def test_the_grant_of_a_blocked_member_ends(group: Group) -> None:
    async with uniform("A") as a, uniform("B"), uniform("C", rejoin=True) as c:
        grant = await Lock(c, "till").acquire()
        waiting = asyncio.create_task(Lock(a, "till").acquire())
        group.partition(["C"])
        assert "no majority" in await grant.wait_ended()
        assert not grant.is_held
        next_grant = await waiting
        assert next_grant.token > grant.token
        group.heal()
        await asyncio.sleep(20)
        await next_grant.release()
        async with Lock(c, "till") as again:
            assert again.token > next_grant.token


async def test_a_semaphore_lets_so_many_in(group: Group) -> None:
    async with uniform("A") as a, uniform("B") as b:
        at_a, at_b = Semaphore(a, "pool", 2), Semaphore(b, "pool", 2)
        first, second = await at_a.acquire(), await at_b.acquire()
        assert await at_a.try_acquire() is None
        await group.settled()
        assert [member.name for member in at_a.holders] == ["A", "B"]
        with pytest.raises(UsageError, match="has 2 permits in this group, and not 3"):
            await Semaphore(b, "pool", 3).acquire()
        await first.release()
        third = await at_a.try_acquire()
        assert third is not None and third.token > second.token
        with pytest.raises(NotHeld, match="it was released"):
            await first.release()


async def test_a_counter_gives_each_number_once(group: Group) -> None:
    async with uniform("A") as a, uniform("B") as b:
        counters = [Counter(one, "n") for one in (a, b)]
        numbers = await asyncio.gather(*[counter.add() for _ in range(50) for counter in counters])
        assert sorted(numbers) == list(range(1, 101))
        assert await counters[0].compare_and_set(100, 7)
        assert not await counters[1].compare_and_set(100, 8)
        await counters[1].set((1 << 63) - 1)
        with pytest.raises(UsageError, match="range of 64 bits"):
            await counters[0].add()
        async with uniform("C") as c:
            assert Counter(c, "n").value == (1 << 63) - 1


async def test_one_member_runs_the_job_and_the_next_one_after_its_crash(group: Group) -> None:
    runs: list[tuple[str, str]] = []

    async def live(name: str) -> None:
        async def job(grant: Grant) -> None:
            runs.append((name, "begins"))
            try:
                await asyncio.sleep(10_000)
            finally:
                runs.append((name, "ends"))

        async with uniform(rejoin=True) as blocks:
            await run_on_one(blocks, "scheduler", job)

    for name in "ABC":
        group.start(name, live(name))
        await group.settled(one=True)
    assert runs == [("A", "begins")]
    group.crash("A")
    await asyncio.sleep(5)
    assert runs[-1] == ("B", "begins")
    group.start("A", live("A"))
    await group.settled(one=True)
    group.partition(["B"])
    await asyncio.sleep(20)
    assert runs[-2:] in ([("B", "ends"), ("C", "begins")], [("C", "begins"), ("B", "ends")])
    group.heal()
    await asyncio.sleep(20)
    assert len(runs) == 5, runs


async def test_a_job_that_returns_gives_its_result_and_the_next_one_leads(group: Group) -> None:
    async with uniform("A") as a, uniform("B") as b:
        leaders = [Leader(one, "x") for one in (a, b)]

        async def job(grant: Grant) -> int:
            await asyncio.sleep(1)
            return grant.token

        running = [asyncio.create_task(leader.run(job)) for leader in leaders]
        await asyncio.sleep(0.5)
        assert [leader.is_me for leader in leaders] == [True, False]
        tokens = [await one for one in running]
        assert tokens[0] < tokens[1]
        await group.settled()
        assert leaders[0].address is None
