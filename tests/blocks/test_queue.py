"""WorkQueue in a group in memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pygroups import UsageError
from pygroups.blocks import Blocks, NotHeld, Task, WorkQueue
from pygroups.testing import Group


def uniform(name: str | None = None, **options: Any) -> Blocks:
    return Blocks("g", profile="uniform", name=name, **options)


async def test_each_task_goes_to_one_worker(group: Group) -> None:
    async with uniform("A") as a, uniform("B") as b:
        at_a, at_b = WorkQueue(a, "mail", str), WorkQueue(b, "mail", str)
        done: list[str] = []

        async def work(queue: WorkQueue[str]) -> None:
            async for task in queue:
                done.append(task.value)
                await task.done()

        workers = [asyncio.create_task(work(queue)) for queue in (at_a, at_b)]
        ids = await at_a.put_many([f"letter {number}" for number in range(40)])
        ids.append(await at_b.put("the last one"))
        await group.settled()
        assert ids == sorted(ids)
        assert sorted(done) == sorted([*[f"letter {number}" for number in range(40)], "the last one"])
        assert (at_a.waiting, at_a.running, at_a.failed) == (0, 0, {})
        for worker in workers:
            worker.cancel()


async def test_the_task_of_a_crashed_worker_is_given_to_another_one(group: Group) -> None:
    async def crash(attempts: int | None = None) -> None:
        async with uniform() as blocks:
            await WorkQueue(blocks, "mail", attempts=attempts).get()
            await asyncio.sleep(1_000)

    async with uniform("A") as a, uniform("B"):
        queue = WorkQueue(a, "mail", str, attempts=2)
        first = await queue.put("x")
        await queue.put("y")
        for name in "CD":
            group.start(name, crash())
            await asyncio.sleep(2)
            assert (queue.waiting, queue.running) == (1, 1)
            group.crash(name)
            await asyncio.sleep(2)
        assert queue.failed == {first: "x"}
        task = await queue.get()
        assert (task.value, task.attempt) == ("y", 1)
        await task.done()
        with pytest.raises(NotHeld, match="it is done"):
            await task.done()


async def test_a_worker_that_was_cut_off_cannot_end_its_task(group: Group) -> None:
    async with uniform("A") as a, uniform("B"), uniform("C", rejoin=True) as c:
        at_a, at_c = WorkQueue(a, "mail", str), WorkQueue(c, "mail", str)
        await at_a.put("x")
        task = await at_c.get()
        group.partition(["C"])
        again = await at_a.get()
        assert (again.id, again.attempt) == (task.id, 2)
        group.heal()
        await asyncio.sleep(20)
        with pytest.raises(NotHeld, match="given to another worker"):
            await task.done()
        await again.done()


async def test_a_task_that_is_given_back_comes_next_and_a_canceled_get_takes_none(group: Group) -> None:
    async with uniform("A") as a:
        queue = WorkQueue(a, "mail", str)
        getting = asyncio.create_task(queue.get())
        await asyncio.sleep(1)
        getting.cancel()
        with pytest.raises(TimeoutError):
            await queue.get(timeout=1)
        await queue.put_many(["x", "y"])
        task: Task[str] = await queue.get()
        assert (task.value, task.attempt) == ("x", 1)
        await task.give_back()
        assert (await queue.get()).attempt == 2
        with pytest.raises(UsageError, match="cannot be a task"):
            await queue.put(3)  # type: ignore[arg-type]
