"""The replicated part of a work queue: tasks that wait, tasks that a worker has, and workers that wait for a task."""

from __future__ import annotations

from collections import deque
from collections.abc import Container
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from pygroups.core.address import Address

from .machine import Machine, Tokens
from .news import News, Ticket
from .wire import BlockKey, Time

FAILED_MAX: Final = 1_000  # tasks that are kept after they failed; then the oldest one is forgotten
Attempts = Annotated[int, Meta(ge=0)]


class Job(msgspec.Struct, array_like=True):
    """A task: `attempts` counts the workers that got it, at most `most` (0: without a limit)."""

    id: int
    value: bytes
    attempts: Attempts = 0
    most: Attempts = 0


class Offer(msgspec.Struct, array_like=True, tag="o"):
    """Append tasks.  The answer has their ids."""

    values: list[bytes]
    most: Attempts = 0
    at_us: Time = 0  # at the sender


class Take(msgspec.Struct, array_like=True, tag="t"):
    """Wait for a task.  The answer is a Job."""


class Done(msgspec.Struct, array_like=True, tag="d"):
    """The task that the member's `call` got is done.  The answer says whether the member still had it."""

    call: int


class Back(msgspec.Struct, array_like=True, tag="b"):
    """Give up the task that the member's `call` got or waits for; another worker gets it.  `counts`: it was an
    attempt."""

    call: int
    counts: bool = True


class QueueState(msgspec.Struct, array_like=True):
    waiting: list[Job]
    running: list[tuple[Ticket, Job]]
    workers: list[Ticket]
    failed: list[Job]


class QueueMachine(Machine):
    """Each task is with one worker at a time.  The task of a worker that leaves the view is given next."""

    ops = Offer | Take | Done | Back
    state = QueueState

    def __init__(self, key: BlockKey, tokens: Tokens, news: list[News]) -> None:
        super().__init__(key, tokens, news)
        self.waiting: deque[Job] = deque()
        self.running: dict[Ticket, Job] = {}
        self.workers: deque[Ticket] = deque()
        self.failed: deque[Job] = deque(maxlen=FAILED_MAX)

    def apply(self, ticket: Ticket, op: Offer | Take | Done | Back) -> None:
        if isinstance(op, Offer):
            self.tokens.reach(op.at_us)
            jobs = [Job(self.tokens.next(), value, most=op.most) for value in op.values]
            self.waiting.extend(jobs)
            self.answer(ticket, [job.id for job in jobs])
        elif isinstance(op, Take):
            self.workers.append(ticket)
        elif isinstance(op, Done):
            self.answer(ticket, self.running.pop(Ticket(ticket.owner, op.call), None) is not None)
        else:
            self.answer(ticket, self._back(Ticket(ticket.owner, op.call), counts=op.counts))
        self._give()

    def _back(self, ticket: Ticket, *, counts: bool) -> bool:
        job = self.running.pop(ticket, None)
        if job is None:
            self.workers = deque([one for one in self.workers if one != ticket])
            return False
        self._return([job], counts=counts)
        return True

    def _return(self, jobs: list[Job], *, counts: bool) -> None:
        """Tasks that came from a worker: each is the next one again, or has failed."""
        again: list[Job] = []
        for job in jobs:
            job.attempts -= 0 if counts else 1
            (self.failed if job.most and job.attempts >= job.most else again).append(job)
        self.waiting.extendleft(sorted(again, key=lambda job: -job.id))

    def _give(self) -> None:
        while self.waiting and self.workers:
            job, ticket = self.waiting.popleft(), self.workers.popleft()
            job.attempts += 1
            self.running[ticket] = job
            self.answer(ticket, msgspec.structs.replace(job))

    def on_view(self, members: Container[Address]) -> None:
        self.workers = deque([one for one in self.workers if one.owner in members])
        lost = [ticket for ticket in self.running if ticket.owner not in members]
        self._return([self.running.pop(ticket) for ticket in lost], counts=True)
        self._give()

    @property
    def is_empty(self) -> bool:
        return not (self.waiting or self.running or self.workers or self.failed)

    def saved(self) -> object:
        return QueueState(list(self.waiting), list(self.running.items()), list(self.workers), list(self.failed))

    def load(self, state: QueueState) -> None:
        self.waiting, self.running = deque(state.waiting), dict(state.running)
        self.workers, self.failed = deque(state.workers), deque(state.failed, FAILED_MAX)
