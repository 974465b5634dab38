"""A leader: one member of the majority runs a job."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from pygroups.core.address import Address
from pygroups.core.errors import Unknown

from .blocks import Blocks
from .locks import Grant, Lock

Result = TypeVar("Result")
Job = Callable[[Grant], Awaitable[Result]]


class _Seat(Lock):
    kind = "leader"


class Leader:
    """The leader of all members that call `run` with this name.  Only profile "uniform" has this block.

    When the leader crashes, leaves or is cut off, the next member that waits leads, with the view without it.  A
    leader that reaches no majority any more stops its job at once.  A process that was stopped (SIGSTOP, a blocked
    event loop) can run a few more steps before it notices that another one leads: a store outside of the group
    checks `Grant.token`.
    """

    def __init__(self, blocks: Blocks, name: str) -> None:
        self._seat = _Seat(blocks, name)
        self._blocks = blocks
        self.name = name

    def __repr__(self) -> str:
        return f"<Leader {self.name!r}: {self.address}>"

    @property
    def address(self) -> Address | None:
        """The member that leads, as this process knows it; None: nobody does."""
        return self._seat.holder

    @property
    def is_me(self) -> bool:
        """Whether this member leads, as far as it knows."""
        return self.address == self._blocks.channel.address

    async def run(self, job: Job[Result]) -> Result:
        """Wait until this member leads, then run `job(grant)`, and return its result; the next member then leads.

        If this member stops leading meanwhile, the job is canceled, and runs again from its beginning when this member
        leads again.  An error of the job is raised here.  Canceling this call cancels the job.
        """
        while True:
            try:
                grant = await self._seat.acquire()
            except Unknown:  # excluded, and joining again
                continue
            working = asyncio.ensure_future(job(grant))
            ending = asyncio.ensure_future(grant.wait_ended())
            try:
                await asyncio.wait([working, ending], return_when=asyncio.FIRST_COMPLETED)
                if working.done():
                    return working.result()
            finally:
                await self._stop(grant, working, ending)

    async def _stop(self, grant: Grant, *tasks: asyncio.Future[Any]) -> None:
        """The seat is given back behind the end of the job, so two members never run it at once."""
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        self._seat._give_back(grant)


async def run_on_one(blocks: Blocks, name: str, job: Job[Result]) -> Result:
    """Run `job(grant)` on one of the members that call this function with the same name: see Leader.run.

    For a job that runs as long as the service: it returns only if its own job returns here.
    """
    return await Leader(blocks, name).run(job)
