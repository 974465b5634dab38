"""A queue of tasks that the members of a group share."""

from __future__ import annotations

from typing import Any, Final, Generic, Self, TypeVar, cast, overload

import msgspec

from pygroups.core.errors import UsageError

from .blocks import Blocks
from .errors import NotHeld
from .holding import Holding
from .options import DECIDED
from .queue_machine import Back, Done, Offer, QueueMachine, Take
from .queue_machine import Job as Replicated
from .wire import BlockKey, encode, now_us

V = TypeVar("V")
ATTEMPTS_MAX: Final = 1_000_000


class Task(Holding, Generic[V]):
    """A task that this worker has, and no other.  `id` grows with each task of the group; `attempt` is 1 for the first
    worker that gets the task."""

    ends_when_blocked = False  # `done()` says whether the group waited for this worker

    def __init__(self, queue: WorkQueue[V]) -> None:
        super().__init__()
        self.id = 0
        self.attempt = 0
        self.value: V
        self._queue = queue

    def __repr__(self) -> str:
        return f"<Task {self.id} of {self._queue!r}, attempt {self.attempt}>"

    async def done(self) -> None:
        """The task is done: nobody gets it any more.  Raises NotHeld if this member was out of the group meanwhile,
        and the task was given to another worker."""
        if self.why_ended is not None or not await self._queue._call(Done(self.call)):
            self._queue._forget(self)
            raise NotHeld(f"{self!r} was given to another worker: {self.why_ended or 'it was given back'}")
        self._queue._forget(self)
        self.end("it is done")

    async def give_back(self) -> None:
        """Another worker, or this one, gets the task again; this attempt counts.  Raises NotHeld as `done` does."""
        self._queue._forget(self)
        if self.why_ended is not None or not await self._queue._call(Back(self.call)):
            raise NotHeld(f"{self!r} was given to another worker: {self.why_ended or 'it is done'}")
        self.end("it was given back")


class WorkQueue(Generic[V]):
    """Tasks in the order in which they were put, each with one worker at a time, until one worker says that it is done.

    `value` is the type of the tasks; by default any plain value.  `attempts`: a task that so many workers got and did
    not finish is not given again; it is in `failed`.  Only profile "uniform" has this block.

    A task that was put is done once, or is in the queue, or is in `failed`: `done()` succeeds for one worker only.
    **Crash**: the task of a worker that is not in the view any more is given to another one, first of all.  The dead
    worker may have done a part of it, so effects outside of the group need a check: `Task.id` names the task and
    grows.  **Split**: only the side with a majority gives tasks.
    """

    @overload
    def __init__(self: WorkQueue[Any], blocks: Blocks, name: str, *, attempts: int | None = None) -> None: ...

    @overload
    def __init__(
        self: WorkQueue[V], blocks: Blocks, name: str, value: type[V], *, attempts: int | None = None
    ) -> None: ...

    @overload
    def __init__(self, blocks: Blocks, name: str, value: Any, *, attempts: int | None = None) -> None: ...

    def __init__(self, blocks: Blocks, name: str, value: Any = Any, *, attempts: int | None = None) -> None:
        blocks.check_block("a WorkQueue", name, DECIDED)
        if attempts is not None and (
            isinstance(attempts, bool) or not isinstance(attempts, int) or not 1 <= attempts <= ATTEMPTS_MAX
        ):
            raise UsageError(f"attempts={attempts!r} must be a number from 1 to {ATTEMPTS_MAX:,}")
        self.name = name
        self.attempts = attempts or 0
        self._blocks = blocks
        self._key: BlockKey = ("queue", name)
        try:
            self._values: msgspec.msgpack.Decoder[V] = msgspec.msgpack.Decoder(value)
        except TypeError as error:
            raise UsageError(f"value={value!r} is not a type that msgspec decodes: {error}") from None

    def __repr__(self) -> str:
        return f"WorkQueue {self.name!r}"

    # -- putting

    async def put(self, value: V, *, timeout: float | None = None) -> int:
        """Append a task.  Returns its id.  Raises Unknown if the group may have it."""
        (task,) = await self.put_many([value], timeout=timeout)
        return task

    async def put_many(self, values: list[V], *, timeout: float | None = None) -> list[int]:
        """Append tasks at one place of the order.  Returns their ids."""
        offer = Offer([self._encoded(value) for value in values], self.attempts, now_us())
        return cast("list[int]", await self._blocks.call(self._key, offer, timeout=timeout))

    def _encoded(self, value: V) -> bytes:
        try:
            data = encode(value)
            self._values.decode(data)
        except (TypeError, OverflowError, msgspec.ValidationError) as error:
            raise UsageError(f"this cannot be a task of queue {self.name!r}: {error}") from None
        return data

    # -- working

    async def get(self, *, timeout: float | None = None) -> Task[V]:
        """Wait for the next task.  Raises Unknown (a TimeoutError too) if none came within `timeout` seconds, or if
        this member was excluded meanwhile: then it waits no more, and has no task.  A canceled call gives a task back
        that came meanwhile."""
        task = Task(self)
        try:
            job: Replicated = await self._blocks.call(self._key, Take(), timeout=timeout, holding=task)
            task.value = self._values.decode(job.value)
        except BaseException as error:
            self._forget(task)
            self._blocks.post(self._key, Back(task.call, counts=isinstance(error, msgspec.ValidationError)))
            if isinstance(error, msgspec.ValidationError):
                raise UsageError(f"queue {self.name!r} has a task of another type: {error}") from None
            raise
        task.id, task.attempt = job.id, job.attempts
        return task

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Task[V]:
        """`async for task in queue` gives one task after the other, without an end."""
        return await self.get()

    # -- looking

    @property
    def waiting(self) -> int:
        """The number of tasks that no worker has, as this process knows it."""
        machine = self._machine
        return 0 if machine is None else len(machine.waiting)

    @property
    def running(self) -> int:
        """The number of tasks that a worker has, as this process knows it."""
        machine = self._machine
        return 0 if machine is None else len(machine.running)

    @property
    def failed(self) -> dict[int, V]:
        """The tasks that `attempts` workers got and none finished, by id; the last 1,000 of them."""
        machine = self._machine
        return {} if machine is None else {job.id: self._values.decode(job.value) for job in machine.failed}

    @property
    def _machine(self) -> QueueMachine | None:
        return cast("QueueMachine | None", self._blocks.machine(self._key))

    async def _call(self, op: object) -> bool:
        return bool(await self._blocks.call(self._key, op))

    def _forget(self, task: Task[V]) -> None:
        self._blocks.held.pop(task.call, None)
