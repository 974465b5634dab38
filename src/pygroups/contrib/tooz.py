"""A tooz driver: `tooz.coordination.get_coordinator("pygroups://GROUP", b"member")` needs no server.

Each coordinator is a member of the pygroups group GROUP, in profile "uniform".  All tooz groups are items of one
replicated dict; an item has the members of the tooz group and its leader, each with the address of the coordinator
behind it.  A coordinator that is not in the view any more is neither a member nor a leader: no clock decides that, and
no heartbeat of the program.  Guide: docs/guides/blocks.md.
"""

from __future__ import annotations

import atexit
import contextlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import tooz
from tooz import coordination, locking, utils
from tooz.coordination import Characteristics

from pygroups import sync
from pygroups.blocks import NotHeld
from pygroups.channel import Config
from pygroups.core.address import Address
from pygroups.core.errors import ChannelClosed, Error, UsageError

Result = TypeVar("Result")
Async = coordination.CoordAsyncResult
PREFIX: Final = "tooz/"  # of the names of blocks, so that a program can have its own in the same group
TIMEOUT: Final = 30.0  # seconds, of one operation


class Member(msgspec.Struct, frozen=True):
    """A member of a tooz group."""

    member_id: bytes
    owner: Address  # of its coordinator
    capabilities: bytes  # as tooz encodes them


class Leader(msgspec.Struct, frozen=True):
    """The leader of a tooz group, which need not be a member of it."""

    owner: Address
    member_id: bytes


class Group(msgspec.Struct, frozen=True):
    """A tooz group."""

    members: tuple[Member, ...] = ()
    leader: Leader | None = None

    def member(self, member_id: bytes) -> Member | None:
        """The member of this name."""
        return next((member for member in self.members if member.member_id == member_id), None)

    def without(self, member_id: bytes) -> Group:
        """The group without the member of this name."""
        return Group(tuple([member for member in self.members if member.member_id != member_id]), self.leader)

    def owned(self, is_owner: Callable[[Address], bool]) -> Group:
        """What belongs to the coordinators for which `is_owner` is true."""
        members = tuple([member for member in self.members if is_owner(member.owner)])
        return Group(members, self.leader if self.leader is not None and is_owner(self.leader.owner) else None)


class PygroupsDriver(coordination.CoordinationDriverCachedRunWatchers):
    """`pygroups://GROUP?OPTION=VALUE&...`: GROUP is the name of the pygroups group, and the options are those of
    `pygroups.sync.Blocks` that OPTIONS lists, with `secret_file`, the path of a secret, and `heartbeat_timeout` of its
    Config.  Without an option the members are on one machine and find each other there.  `rejoin` is true by default.

    `timeout`, in seconds, limits each operation, by default to 30; then its result raises OperationTimedOut.  A
    coordinator that reaches no majority of the group ends so.  Operations of one coordinator take place in the order
    of their calls.  Each one, also a read, sees all that any coordinator completed before.

    Shared locks and `break_` of a lock are not supported: they raise `tooz.NotImplemented`.
    """

    CHARACTERISTICS = (
        Characteristics.NON_TIMEOUT_BASED,
        Characteristics.DISTRIBUTED_ACROSS_THREADS,
        Characteristics.DISTRIBUTED_ACROSS_PROCESSES,
        Characteristics.DISTRIBUTED_ACROSS_HOSTS,
        Characteristics.LINEARIZABLE,
        Characteristics.SEQUENTIAL,
        Characteristics.CAUSAL,
        Characteristics.SERIALIZABLE,
        Characteristics.SAME_VIEW_UNDER_PARTITIONS,
        Characteristics.SAME_VIEW_ACROSS_CLIENTS,
    )

    def __init__(self, member_id: bytes, parsed_url: Any, options: Mapping[str, list[Any]]) -> None:
        super().__init__(_bytes(member_id), parsed_url, dict(options))
        self._url = parsed_url
        self._given = options
        self.timeout = TIMEOUT
        self._opened: sync.Blocks | None = None
        self._worker = ThreadPoolExecutor(1)  # one operation after the other

    # -- beginning and end

    def _start(self) -> None:
        """Join the group.  Raises ToozConnectionError, with the reason, if that is not possible."""
        try:
            options = _options(self._given)
            self.timeout = options.pop("timeout", TIMEOUT)
            config = Config(**{name: options.pop(name) for name in ("heartbeat_timeout",) if name in options})
            options = {"rejoin": True, "config": config, **options}
            blocks = sync.Blocks(_group_name(self._url), profile="uniform", **options)
            self._groups = sync.ReplicatedDict[bytes, Group](blocks.__enter__(), PREFIX + "groups", bytes, Group)
        except (Error, OSError) as error:
            raise coordination.ToozConnectionError(str(error)) from error
        self._opened, self._worker = blocks, ThreadPoolExecutor(1, "tooz")
        atexit.register(self._leave)  # a program that ends without stop() need not be suspected by the others

    def stop(self) -> None:
        """Leave all groups, and release all locks."""
        self._joined_groups.clear()  # _stop leaves all at once
        super().stop()

    def _stop(self) -> None:
        with contextlib.suppress(tooz.ToozError):
            self._run(self._drop_mine).get()
        self._worker.shutdown()
        self._leave()
        atexit.unregister(self._leave)
        self._opened = None

    def _leave(self) -> None:
        """Leave the pygroups group.  In a forked process nothing is to be left."""
        with contextlib.suppress(Error):
            self.blocks.__exit__(None, None, None)

    @property
    def blocks(self) -> sync.Blocks:
        """The member of the pygroups group.  Raises ToozError unless the coordinator is started."""
        if self._opened is None:
            raise tooz.ToozError("the coordinator is not started: call start() first")
        return self._opened

    # -- operations

    def _run(self, work: Callable[..., Result], *given: Any) -> Async[Result]:
        _ = self.blocks
        future: Future[Result] = self._worker.submit(work, *given)
        return coordination.CoordinatorResult(future, translated)

    def _catch_up(self) -> None:
        """Wait until this process has all that was completed before: send a change of nothing, and wait for it."""
        self._groups.delete(timeout=self.timeout)

    def _read(self, group_id: bytes) -> tuple[Group | None, Group]:
        """The group as it is stored, and without those that have left.  Raises GroupNotCreated.

        The view is read after the item, so whoever wrote the item has been in the view.
        """
        stored = self._groups.get(group_id)
        if stored is None:
            raise coordination.GroupNotCreated(group_id)
        present = frozenset(self.blocks.members)
        return stored, stored.owned(present.__contains__)

    def _group(self, group_id: bytes) -> Group:
        self._catch_up()
        return self._read(group_id)[1]

    def _member(self, group_id: bytes, member_id: bytes) -> Member:
        member = self._group(group_id).member(member_id)
        if member is None:
            raise coordination.MemberNotJoined(group_id, member_id)
        return member

    def _change(self, group_id: bytes, changed: Callable[[Group], Group | None]) -> None:
        """Replace the group by `changed(group)`, None for no group, at one place of the order."""
        self._catch_up()
        while True:
            stored, group = self._read(group_id)
            after = changed(group)
            if after == stored or self._groups.compare_and_set(group_id, stored, after, timeout=self.timeout):
                return

    @property
    def _me(self) -> Address:
        return self.blocks.channel.address

    def _drop_mine(self) -> None:
        self._catch_up()
        for group_id, group in self._groups.copy().items():
            if group.owned(self._me.__eq__) != Group():
                self._change(group_id, lambda group: group.owned(self._me.__ne__))

    # -- groups and members

    def create_group(self, group_id: bytes) -> Async[None]:
        def work() -> None:
            if not self._groups.compare_and_set(_bytes(group_id), None, Group(), timeout=self.timeout):
                raise coordination.GroupAlreadyExist(group_id)

        return self._run(work)

    def get_groups(self) -> Async[list[bytes]]:
        def work() -> list[bytes]:
            self._catch_up()
            return list(self._groups)

        return self._run(work)

    def delete_group(self, group_id: bytes) -> Async[None]:
        def changed(group: Group) -> None:
            if group.members:
                raise coordination.GroupNotEmpty(group_id)

        return self._run(self._change, _bytes(group_id), changed)

    def join_group(self, group_id: bytes, capabilities: coordination.Capabilities | None = None) -> Async[None]:
        data = utils.dumps({} if capabilities is None else capabilities)

        def changed(group: Group) -> Group:
            if group.member(self._member_id) is not None:
                raise coordination.MemberAlreadyExist(group_id, self._member_id)
            return Group((*group.members, Member(self._member_id, self._me, data)), group.leader)

        def work() -> None:
            self._change(_bytes(group_id), changed)
            self._joined_groups.add(group_id)

        return self._run(work)

    def leave_group(self, group_id: bytes) -> Async[None]:
        def work() -> None:
            self._change(_bytes(group_id), lambda group: self._without_me(group_id, group))
            self._joined_groups.discard(group_id)

        return self._run(work)

    def update_capabilities(self, group_id: bytes, capabilities: coordination.Capabilities) -> Async[None]:
        data = utils.dumps(capabilities)

        def changed(group: Group) -> Group:
            others = self._without_me(group_id, group)
            return Group((*others.members, Member(self._member_id, self._me, data)), group.leader)

        return self._run(self._change, _bytes(group_id), changed)

    def _without_me(self, group_id: bytes, group: Group) -> Group:
        if group.member(self._member_id) is None:
            raise coordination.MemberNotJoined(group_id, self._member_id)
        return group.without(self._member_id)

    def get_members(self, group_id: bytes) -> Async[set[bytes]]:
        return self._run(lambda: {member.member_id for member in self._group(_bytes(group_id)).members})

    def get_member_capabilities(self, group_id: bytes, member_id: bytes) -> Async[coordination.Capabilities | None]:
        return self._run(lambda: utils.loads(self._member(_bytes(group_id), _bytes(member_id)).capabilities))

    def get_members_with_capabilities(self, group_id: bytes) -> Async[dict[bytes, coordination.Capabilities | None]]:
        def work() -> dict[bytes, coordination.Capabilities | None]:
            members = self._group(_bytes(group_id)).members
            return {member.member_id: utils.loads(member.capabilities) for member in members}

        return self._run(work)

    def get_member_info(self, group_id: bytes, member_id: bytes) -> Async[dict[str, Any]]:
        """`capabilities`, and `address`: the member of the pygroups group as text."""

        def work() -> dict[str, Any]:
            member = self._member(_bytes(group_id), _bytes(member_id))
            return {"capabilities": utils.loads(member.capabilities), "address": str(member.owner)}

        return self._run(work)

    # -- leaders

    def get_leader(self, group_id: bytes) -> Async[Any]:
        """The member that leads, None if nobody does."""

        def work() -> bytes | None:
            leader = self._group(_bytes(group_id)).leader
            return None if leader is None else leader.member_id

        return self._run(work)

    def run_watchers(self, timeout: float | None = None) -> list[Any]:
        """Call the callbacks of what has happened since the last call, and stand for election in each group that has a
        callback for that."""
        results = super().run_watchers(timeout)
        self.run_elect_coordinator()
        return results

    def run_elect_coordinator(self) -> None:
        for group_id, hooks in list(self._hooks_elected_leader.items()):
            if hooks and self._run(self._elect, _bytes(group_id)).get():
                hooks.run(coordination.LeaderElected(group_id, self._member_id))

    def _elect(self, group_id: bytes) -> bool:
        """Lead this group if nobody does.  Returns whether this coordinator leads from now on."""
        was_free = False

        def changed(group: Group) -> Group:
            nonlocal was_free
            was_free = group.leader is None
            return Group(group.members, Leader(self._me, self._member_id)) if was_free else group

        with contextlib.suppress(coordination.GroupNotCreated):
            self._change(group_id, changed)
        return was_free

    def stand_down_group_leader(self, group_id: bytes) -> bool:
        """Lead this group no more.  Returns whether this coordinator has led it."""
        was_mine = False

        def changed(group: Group) -> Group:
            nonlocal was_mine
            was_mine = group.leader is not None and group.leader.owner == self._me
            return Group(group.members, None) if was_mine else group

        self._run(self._change, _bytes(group_id), changed).get()
        return was_mine

    # -- locks

    def get_lock(self, name: bytes) -> PygroupsLock:
        return PygroupsLock(name, self)


class PygroupsLock(locking.Lock):
    """A lock of the group, without a lease: it is free again after `release`, `stop`, or the end of its process."""

    def __init__(self, name: bytes, driver: PygroupsDriver) -> None:
        super().__init__(name)
        self._driver = driver
        self._grant: sync.Grant | None = None

    @property
    def acquired(self) -> bool:
        """Whether this object has the lock, as far as this process knows."""
        return self.is_still_owner()

    @property
    def token(self) -> int:
        """The fencing token of the holder: see pygroups.blocks.Grant.  0: this object does not have the lock."""
        grant = self._grant
        return 0 if grant is None else grant.token

    def is_still_owner(self) -> bool:
        grant = self._grant
        with translated():
            return grant is not None and grant.is_held

    def acquire(self, blocking: bool | float = True, shared: bool = False, timeout: float | None = None) -> bool:
        if shared:
            raise tooz.NotImplemented("pygroups has no shared locks")
        waits, limit = utils.convert_blocking(blocking, timeout)
        with translated():
            lock = sync.Lock(self._driver.blocks, PREFIX + _bytes(self.name).decode("latin-1"))
            if not waits or (limit is not None and limit <= 0):
                grant = lock.try_acquire(timeout=self._driver.timeout)
            else:
                try:
                    grant = lock.acquire(timeout=limit)
                except TimeoutError:
                    return False
            if grant is not None:
                self._grant = grant
        return grant is not None

    def release(self) -> bool:
        grant, self._grant = self._grant, None
        if grant is None:
            return False
        try:
            with translated():
                grant.release()
        except NotHeld:
            return False
        return True


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Raise the errors of pygroups as those of tooz; NotHeld has none."""
    try:
        yield
    except NotHeld:
        raise
    except ChannelClosed as error:
        raise coordination.ToozConnectionError(str(error)) from error
    except Error as error:
        kind = coordination.OperationTimedOut if isinstance(error, TimeoutError) else tooz.ToozError
        raise kind(str(error)) from error


def _bytes(text: bytes | str) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _group_name(url: Any) -> str:
    if ":" in url.netloc or url.path.strip("/"):
        text = f"{url.scheme}://{url.netloc}{url.path}"
        raise UsageError(f"{text} must have a group and nothing else, as there is no server: write pygroups://GROUP")
    return str(url.netloc)


def _flag(text: object) -> bool:
    found = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}.get(str(text).lower())
    if found is None:
        raise ValueError(f"{text!r} is neither true nor false")
    return found


OPTIONS: Final[dict[str, Callable[[Any], object]]] = {
    **dict.fromkeys(("name", "bind", "advertise", "transport", "discovery", "journal"), str),
    **dict.fromkeys(("min_members", "expect"), int),
    **dict.fromkeys(("rejoin", "insecure", "journal_fsync"), _flag),
    "secret_file": Path,
    **dict.fromkeys(("heartbeat_timeout", "timeout"), float),
}
"""The options of a URL."""


def _options(given: Mapping[str, list[Any]]) -> dict[str, Any]:
    """The options for Blocks, and `timeout`.  Raises UsageError for an unknown name or a wrong value."""
    options: dict[str, Any] = {}
    for name, values in given.items():
        if name not in OPTIONS:
            raise UsageError(f"pygroups:// has no option {name!r}: use one of {', '.join(OPTIONS)}")
        try:
            read = [OPTIONS[name](value) for value in values]
        except ValueError as error:
            raise UsageError(f"{name}={values[-1]} is not valid: {error}") from None
        options["secret" if name == "secret_file" else name] = read if name == "discovery" else read[-1]
    return options
