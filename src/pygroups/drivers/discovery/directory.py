"""Discovery in a folder: members of one machine find each other there, with locks of the kernel.

Each process has an entry, a file with its address as the name, and keeps a lock on it until it ends.  An entry whose
lock is free belongs to an ended process, and is removed.  A process may found the group if it holds the group's lock
and there is no member.  The process keeps the lock until it has announced itself, so processes that start at the same
moment form one group. An entry that was removed is written again.  Errors of the file system are counted and logged,
and the operation is retried. Note: docs/drivers.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Collection
from typing import ClassVar, Final

from pygroups.core.address import Address
from pygroups.core.driver_events import Found
from pygroups.core.errors import UsageError
from pygroups.core.events import Event
from pygroups.core.limits import MEMBERS_MAX, SECOND, Config
from pygroups.core.tables import Tables, under
from pygroups.core.turn import NoQuestions

from ..contacts import Contact, parse_contact
from ..forks import watched
from ..handshake import Handshake
from ..rate_limited import RateLimitedLog
from .entries import (
    UNOPENED,
    Entry,
    address_of,
    founders_lock,
    is_at,
    living,
    own_folder,
    remove_empty_group,
    text_of,
    written,
)
from .options import GroupsFolder

LOGGER: Final = logging.getLogger("pygroups.drivers.directory")
LOOKS_AT_OTHERS: Final = 25  # checks of the own entry between two checks for members of another group
LOOKERS: Final = 8  # the first members of a view do this; if all members read all entries, an idle group would be busy
FOLDER_TRIES: Final = 20  # of making the folder and an entry in it while other processes remove the empty folder
RETRY_MAX: Final = 1.0  # seconds, between two tries while the file system refuses


class Directory(NoQuestions):
    """The discovery of one process, in the folder of its group.  `happened` is called with Found.

    With a `loop` the process checks its entry every `directory_period`.
    """

    tables: ClassVar[Tables] = {
        "foreign": "members_max",
        "seekers": "members_max",
        "view": "members",
        **under("warn", RateLimitedLog.tables),
    }

    def __init__(
        self,
        groups: GroupsFolder,
        group: str,
        me: Address,
        config: Config,
        loop: asyncio.AbstractEventLoop | None = None,
        transport: str = "tcp",
        unreachable: Callable[[Contact], str] = lambda contact: "",
        handshake: Handshake | None = None,
    ) -> None:
        self.groups = groups
        self.group = group
        self.folder = groups.root / group
        self.me = me
        self.config = config
        self.loop = loop
        self.transport = transport
        self.unreachable = unreachable  # the reason why this process cannot send to a contact
        self.handshake = handshake or Handshake(me)
        self.invitation_s = 4 * config.flush_timeout / SECOND  # the age at which an invitation counts as outdated
        self.happened: Callable[[Event], None]
        self.count: Callable[[str], None]
        self.path = self.folder / str(me)
        self.entry = -1  # the open entry, with its lock
        self.founding = -1  # the group's lock, while this process holds it
        self.published = Entry(member=False, contact="")
        self.unpublished = False  # the entry could not be updated
        self.keys_of_entry = 0  # the version of the keys that seal the entry
        self.retry: asyncio.TimerHandle | None = None
        self.wants_to_found = False  # by the last search
        self.retries = 0  # tries of `find` in a row that the file system refused
        self.look: asyncio.TimerHandle | None = None
        self.looks = 0
        self.unreached = ""  # the reason why this process and another one of the group cannot reach each other
        self.seekers: dict[Address, str] = {}  # other processes without a view, by the last look into the folder
        self.view: Collection[Address] = ()
        self.foreign: frozenset[Address] = frozenset()  # members outside the view at the last check
        self.warn = RateLimitedLog(LOGGER)
        watched(self)

    def open(self, contact: str) -> None:
        """Write the entry.  Raises UsageError if the folder cannot be used, or belongs to another user."""
        self.published = Entry(member=False, contact=contact, transport=self.transport)
        try:
            self._write_entry()
            self._others()
        except OSError as error:
            other = "discovery='dir:/path' names another folder"
            raise UsageError(f"members cannot find each other in {self.folder}: {_why(error)}; {other}") from error
        if self.unreached:
            raise UsageError(self.unreached)
        LOGGER.info("%s looks for members of group %s in %s", self.me, self.group, self.folder)
        self._look_later()

    def close(self) -> None:
        """Remove the entry, so that no process finds this one any more.  The last process removes the folder."""
        for timer in (self.retry, self.look):
            if timer is not None:
                timer.cancel()
        self.retry = self.look = None
        self._release_founding()
        self.published = Entry(member=False, contact="")
        if self.entry >= 0:
            with contextlib.suppress(OSError):  # the rest of the member must close even if the folder is gone
                if is_at(self.entry, self.path):
                    self.path.unlink()
                    remove_empty_group(self.folder)
            self._let_go()

    def forked(self) -> None:
        """In a forked child the entry and the locks belong to the parent: close the copies, and remove nothing."""
        self._release_founding()
        self._let_go()
        self.published = Entry(member=False, contact="")

    def _let_go(self) -> None:
        if self.entry >= 0:
            os.close(self.entry)
            self.entry = -1

    # -- the own entry

    def announce(self, member: bool, invited: bool = False) -> None:
        """Publish whether this process is a member now, or is being admitted.

        This releases the founder's lock.  A founder keeps the lock until the entry is written.
        """
        self.published.member, self.published.invited = member, invited
        if not self.published.contact:
            return
        self._publish()
        if not member:
            self._release_founding()

    def refresh(self) -> None:
        """Renew the entry's time, so that no cleanup of /tmp removes it.  Write it again if it was removed."""
        if not self.published.contact:
            return
        if self.keys_of_entry != self.handshake.version:
            self._publish()
        elif self._ensure_written():
            self._try("be renewed", lambda: os.utime(self.entry))

    def installed(self, members: Collection[Address]) -> None:
        """Note the members of this process's view."""
        self.view = members

    def _publish(self) -> None:
        """Update the entry."""
        self.unpublished = not self._ensure_written() or not self._try(
            "be changed", lambda: os.pwrite(self.entry, self._text(), 0)
        )
        if self.published.member and not self.unpublished:
            self._release_founding()

    def _ensure_written(self) -> bool:
        """Write the entry again if it is not in the folder.  Returns whether it is there."""
        if self.entry >= 0 and is_at(self.entry, self.path):
            return True
        if self.entry >= 0:
            self.count("directory entries that were removed")
            self.warn.warning("removed", "the entry %s was removed: this process writes it again", self.path)
        return self._try("be written", self._write_entry)

    def _write_entry(self) -> None:
        if self.groups.private:
            own_folder(self.groups.root)
        with contextlib.suppress(FileExistsError):
            self.groups.root.mkdir(0o700, parents=True)
        file = self._new_entry()
        self._let_go()  # only now: a process without an entry would count as ended
        self.entry = file

    def _new_entry(self) -> int:
        """The open file of a new entry.  The last process of the group may remove the folder at the same moment."""
        for _ in range(FOLDER_TRIES):
            with contextlib.suppress(FileNotFoundError):
                own_folder(self.folder)
                return written(self.folder, self.me, self._text())
        own_folder(self.folder)
        return written(self.folder, self.me, self._text())

    def _text(self) -> bytes:
        self.keys_of_entry = self.handshake.version
        return self.handshake.entry_closed(text_of(self.published))

    def _try(self, what: str, change: Callable[[], object]) -> bool:
        """Whether `change` succeeded; if not, the next check tries again."""
        try:
            change()
        except OSError as error:
            self.count("directory entries that could not be written")
            self.warn.warning(what, "the entry %s cannot %s: %s", self.path, what, _why(error))
            return False
        return True

    # -- checks

    def _look_later(self) -> None:
        if self.loop is not None:
            self.look = self.loop.call_later(self.config.directory_period / SECOND, self._look)

    def _look(self) -> None:
        if self.published.contact:
            if not self._ensure_written() or self.unpublished:
                self._publish()
            self.looks += 1
            if self.looks % LOOKS_AT_OTHERS == 0 and self.me in list(self.view)[:LOOKERS]:
                self.look_for_another_group()
            self._look_later()

    def look_for_another_group(self) -> None:
        """Log members that are outside this member's view in two checks in a row: there are two groups of one name."""
        try:
            members = self.members() if self.published.member else {}
        except OSError:
            return  # find() and refresh() count such errors
        foreign = frozenset(members).difference(self.view)
        still = sorted(foreign & self.foreign)
        self.foreign = foreign
        if still:
            self.count("searches that found another group of this name")
            names = ", ".join(map(str, still[:5])) + (" and more" if len(still) > 5 else "")
            one_name = not {member.name for member in still}.isdisjoint(
                [member.name for member in (*self.view, self.me)]
            )
            self.warn.warning(
                "foreign",
                "there is a second group with the name %s in %s, with the members %s, which are not in this member's "
                "view; the two groups merge when all their members can reach each other%s",
                self.group,
                self.folder,
                names,
                ", after the older one of two processes with the same name has ended" if one_name else "",
            )

    # -- the others

    def find(self, founding: bool = True) -> None:
        """Search for members.  Found follows, at once or when it is clear which process founds the group.

        A process that does not want to found the group gets the members that are there now, and no permission.
        """
        self.wants_to_found = founding and not self.published.member
        if self.retry is not None:
            self.retry.cancel()
            self.retry = None
        self.refresh()
        try:
            found = self._found()
        except OSError as error:
            self.retries += 1
            self.count("searches of the directory that failed")
            self.warn.warning(
                "find", "the search for members in %s failed, and is repeated: %s", self.folder, _why(error)
            )
            self._find_later()
            return
        self.retries = 0
        if found is None:
            self._find_later()
        else:
            self.happened(found)

    def _found(self) -> Found | None:
        """The members, or None while it is not clear which process founds the group."""
        members, invited = self._others()
        if not self.published.member and (verdict := self.handshake.verdict()) is not None:
            self.happened(verdict)
        invited = invited or self.handshake.refusals.objects
        if members or not self.wants_to_found:
            self._release_founding()
            return Found(members, False, self.seekers, not self.unreached)
        if invited or not self._take_founding():
            return None
        members, invited = self._others()  # another process may have founded it since
        invited = invited or self.handshake.refusals.objects
        if members or invited:
            self._release_founding()
        return Found(members, not members and not invited, self.seekers)

    def _find_later(self) -> None:
        pause = self.config.lock_retry / SECOND
        pause = min(pause * 2 ** min(self.retries, 10), max(pause, RETRY_MAX))
        self.retry = asyncio.get_running_loop().call_later(pause, self._find_again)

    def _find_again(self) -> None:
        self.find(self.wants_to_found)

    def members(self) -> dict[Address, str]:
        """The living members of the group, with their contacts.  Removes the entries of ended processes."""
        return self._others()[0]

    def _others(self) -> tuple[dict[Address, str], bool]:
        """The other members, and whether this process must not found the group although there is no member.

        A process must not found the group while a group admits a process that has not announced itself yet, or while
        this process cannot reach a member, because of another transport or another version of IP.
        """
        found, invited = {}, False
        self.unreached, self.seekers = "", {}
        for name in sorted(os.listdir(self.folder)):
            address = address_of(name)
            if address is None or address == self.me:
                continue
            entry = living(self.folder / name, self.invitation_s, self.handshake.entry_opened)
            if entry is UNOPENED:
                self._foreign_secret(address)
                continue
            if entry is not None:
                self.handshake.heard(address)
            if entry is not None and (reason := self._separated(entry)):
                self.unreached = f"{address} of group {self.group} {reason}"
                invited = invited or entry.member or entry.invited
            elif entry is not None and entry.member:
                found[address] = entry.contact
            elif entry is not None:
                if len(self.seekers) < MEMBERS_MAX:
                    self.seekers[address] = entry.contact
                invited = invited or entry.invited
        return found, invited

    def _foreign_secret(self, process: Address) -> None:
        self.count("entries that could not be opened")
        self.handshake.refusals.entry_refused(process, self.folder)
        self.warn.warning(
            "secret", "the entry of %s in %s cannot be opened: another secret, or none", process, self.folder
        )

    def _separated(self, entry: Entry) -> str:
        """The reason why this process cannot reach the process of `entry`; "" if this process can."""
        if entry.transport != self.transport:
            return (
                f"uses transport {entry.transport!r}, and this process uses {self.transport!r}: "
                f"give transport={entry.transport!r}"
            )
        with contextlib.suppress(UsageError):
            if reason := self.unreachable(parse_contact(entry.contact)):
                return f"cannot be reached: {reason}"
        return ""

    # -- founding

    def _take_founding(self) -> bool:
        if self.founding < 0:
            lock = founders_lock(self.folder)
            self.founding = -1 if lock is None else lock
        return self.founding >= 0

    def _release_founding(self) -> None:
        if self.founding >= 0:
            os.close(self.founding)
            self.founding = -1


def _why(error: OSError) -> str:
    return error.strerror or str(error)
