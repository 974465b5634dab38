"""Locks and semaphores that the members of a group share."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Final, cast

from pygroups.core.address import Address
from pygroups.core.errors import UnknownYet, UsageError

from .blocks import Blocks
from .errors import NotHeld
from .holding import Holding
from .options import DECIDED
from .permit_machine import Acquire, PermitMachine, Release, Renew
from .wire import BlockKey, now_us

PERMITS_MAX: Final = 1 << 31
LEASE_MAX: Final = 24 * 3600.0  # seconds


class Grant(Holding):
    """What `acquire` returns: the lock, or one permit of a semaphore.

    `token` is the fencing token: each later grant in the group has a higher one.  Send it with each write to a store
    outside of the group, and let the store refuse a token below the highest one that it has seen: then a holder that
    was stopped and runs again cannot write any more.  Tokens follow the clock (microseconds since 1970), so they also
    grow when all members have ended and the group begins anew.
    """

    def __init__(self, block: Semaphore) -> None:
        super().__init__()
        self.token = 0
        self._block = block
        self._valid_until: float | None = None

    def __repr__(self) -> str:
        return f"<Grant {self.token} of {self._block!r}, {'held' if self.is_held else self.why_ended or 'ended'}>"

    @property
    def is_held(self) -> bool:
        """Whether this process holds it as far as it knows: not released, lease not over by the clock of this process,
        majority reached.  A process that was stopped for a while may not know better yet: see `token`."""
        late = self._valid_until is not None and asyncio.get_running_loop().time() >= self._valid_until
        return self.why_ended is None and not late

    async def renew(self) -> None:
        """Begin the lease again.  Raises NotHeld if it was over."""
        began = asyncio.get_running_loop().time()
        if self.why_ended is not None or not await self._block._call(Renew(self.call)):
            raise NotHeld(f"{self._block!r} is not held any more: {self.why_ended or 'its lease is over'}")
        self._granted(began)

    async def release(self) -> None:
        """Give it back.  The next waiting call gets it.  Raises NotHeld if it was over before."""
        ended = self.why_ended
        self._block._forget(self)
        if ended is not None:
            self._block._post(Release(self.call))  # blocked for a while: the group may still count it as held
            raise NotHeld(f"{self._block!r} was not held any more: {ended}")
        self.end("it was released")
        if not await self._block._call(Release(self.call)):
            raise NotHeld(f"{self._block!r} was not held any more: its lease is over")

    def _granted(self, began: float) -> None:
        """The lease counts from before the request, so it is over here before it is over in the group."""
        self._valid_until = began + self._block.lease if self._block.lease else None


class Semaphore:
    """At most `permits` holders in the group at a time; the waiting calls get it in the order of their requests.

    `async with semaphore as grant` waits for a permit and gives it back.  Only profile "uniform" has this block.

    **Crash**: the permits of a member that is not in the view any more are free, with that view.  **Split**: only the
    side with a majority goes on; the grants of the other side end with `Blocked`.  A member that is stopped does not
    notice that, so a store outside of the group must check `Grant.token`.  `lease`: the longest time in seconds to
    hold it without `renew()`, measured by the coordinator, and ended by a message in the order of the group; after a
    change of the coordinator the time can be longer.  All processes must give the same `permits`.
    """

    kind = "semaphore"

    def __init__(self, blocks: Blocks, name: str, permits: int, *, lease: float | None = None) -> None:
        blocks.check_block(f"a {type(self).__name__}", name, DECIDED)
        if isinstance(permits, bool) or not isinstance(permits, int) or not 1 <= permits <= PERMITS_MAX:
            raise UsageError(f"permits={permits!r} must be a number from 1 to {PERMITS_MAX:,}")
        if lease is not None and (
            isinstance(lease, bool) or not isinstance(lease, int | float) or not 0 < lease <= LEASE_MAX
        ):
            raise UsageError(f"lease={lease!r} must be a number of seconds above 0, up to a day")
        self.name = name
        self.permits = permits
        self.lease = float(lease or 0)
        self._blocks = blocks
        self._key: BlockKey = (self.kind, name)
        self._within: dict[asyncio.Task[object] | None, list[Grant]] = {}  # of `async with`, by task

    def __repr__(self) -> str:
        return f"{type(self).__name__} {self.name!r}"

    @property
    def holders(self) -> tuple[Address, ...]:
        """The members that hold a permit, as this process knows it; a member with two permits is there twice."""
        machine = cast("PermitMachine | None", self._blocks.machine(self._key))
        return () if machine is None else tuple([ticket.owner for ticket in machine.held])

    async def acquire(self, *, timeout: float | None = None) -> Grant:
        """Wait for a permit.  Raises Unknown (a TimeoutError too) if none came within `timeout` seconds, or if this
        member was excluded meanwhile: then it waits no more, and holds nothing."""
        grant = await self._acquire(waits=True, timeout=timeout)
        assert grant is not None
        return grant

    async def try_acquire(self, *, timeout: float | None = None) -> Grant | None:
        """A permit if one is free, otherwise None."""
        return await self._acquire(waits=False, timeout=timeout)

    async def _acquire(self, *, waits: bool, timeout: float | None) -> Grant | None:
        grant, began = Grant(self), asyncio.get_running_loop().time()
        request = Acquire(self.permits, self.lease, waits, now_us())
        try:
            token = await self._blocks.call(self._key, request, timeout=timeout, holding=grant)
        except BaseException as error:
            self._forget(grant)
            self._post(Release(grant.call))  # it may have come meanwhile
            if isinstance(error, UnknownYet):
                text = f"{self.kind} {self.name!r} did not come within {timeout} s, and the request is withdrawn"
                raise UnknownYet(text, error.number) from None
            raise
        if token is None:
            return None
        grant.token = token
        grant._granted(began)
        return grant

    async def __aenter__(self) -> Grant:
        grant = await self.acquire()
        self._within.setdefault(asyncio.current_task(), []).append(grant)
        return grant

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        task = asyncio.current_task()
        grant = self._within[task].pop()
        if not self._within[task]:
            del self._within[task]
        if kind is None:
            await grant.release()
        else:
            self._give_back(grant)

    # -- for its grants

    async def _call(self, op: object) -> bool:
        return bool(await self._blocks.call(self._key, op))

    def _give_back(self, grant: Grant) -> None:
        """Release without waiting for it."""
        self._forget(grant)
        grant.end("it was released")
        self._post(Release(grant.call))

    def _post(self, op: object) -> None:
        self._blocks.post(self._key, op)

    def _forget(self, grant: Grant) -> None:
        self._blocks.held.pop(grant.call, None)


class Lock(Semaphore):
    """One holder in the group at a time: a Semaphore with one permit, with the same promises.  A holder that asks for
    it again waits for itself.

    async with Lock(blocks, "till", lease=30) as grant:
        store.write(data, token=grant.token)
    """

    kind = "lock"

    def __init__(self, blocks: Blocks, name: str, *, lease: float | None = None) -> None:
        super().__init__(blocks, name, 1, lease=lease)

    @property
    def holder(self) -> Address | None:
        """The member that holds the lock, as this process knows it."""
        return next(iter(self.holders), None)
