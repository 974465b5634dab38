"""Discovery over the network, with a folder or without one: addresses from a list, DNS, IP multicast and a file.

This driver looks for places, and carries questions and answers between processes.  The layer DISCOVERY decides which
process to ask, and which one founds the group.  Note: docs/layers/discovery.md, docs/decisions/0087.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar, Final, Protocol

from pygroups.core.address import Address
from pygroups.core.driver_events import Asked, Found, Incompatible, Looked, Nobody, Presence, Replied
from pygroups.core.errors import UsageError
from pygroups.core.events import Event
from pygroups.core.limits import Config
from pygroups.core.tables import Tables, under
from pygroups.drivers.discovery.options import LISTED_MAX
from pygroups.wire.frame import VERSION

from ..contacts import Contact, parse_contact
from ..handshake import Handshake
from ..hello import OTHER_GROUP, Answering, DiscoveryQuestion, DiscoveryReply, other_version, padded
from ..member import CLOCK, Clock
from ..rate_limited import RateLimitedLog
from .directory import Directory
from .lookups import Lookup
from .multicast import Multicast
from .options import DiscoverySources
from .remembered import Remembered

LOGGER: Final = logging.getLogger("pygroups.drivers.network_discovery")
OPEN_MAX: Final = 4_096  # questions of this process, and of others, whose answers may still come
ANSWERS_PER_SECOND: Final = 2_000
NONCE_BYTES: Final = 8
TOLD_MAX: Final = 64


class DiscoveryNetwork(Protocol):
    """The part of a member's network that discovery uses; see tcp.py and udp.py."""

    bind: Contact
    handshake: Handshake
    asked: Callable[[DiscoveryQuestion, Answering], None] | None
    crashed: Callable[[BaseException], None]

    def ask(self, contact: Contact, question: DiscoveryQuestion, done: Callable[[DiscoveryReply | None], None]) -> None:
        """Ask the process at `contact`.  `done` is called with its answer, with None if no process listens there, or
        not at all."""

    def unreachable(self, contact: Contact) -> str:
        """The reason why this process cannot send to `contact`; "" if this process can send, or if the answer is not
        known."""


class NetworkDiscovery:
    """The discovery of one process.  `happened` is called with Found, Looked, Replied, Nobody and Asked."""

    asks = True

    tables: ClassVar[Tables] = {
        "answers": OPEN_MAX + 1,
        "answers[]": "fixed",
        "asking": OPEN_MAX + 1,
        "cached": LISTED_MAX,
        "foreign": "members_max",
        "listed": LISTED_MAX,
        "lookups": LISTED_MAX,
        "lookups[].contacts": LISTED_MAX,
        "multicasts": LISTED_MAX,
        "multicasts[].sockets": "fixed",
        "own": LISTED_MAX,
        "questions": OPEN_MAX + 1,
        "questions[]": "fixed",
        "seekers": "members_max",
        "sources.listed": LISTED_MAX,
        "sources.names": LISTED_MAX,
        "sources.to_all": LISTED_MAX,
        "told": TOLD_MAX,
        "view": "members",
        **under("directory", Directory.tables),
        **under("warn", RateLimitedLog.tables),
    }

    def __init__(
        self,
        sources: DiscoverySources,
        group: str,
        me: Address,
        config: Config,
        loop: asyncio.AbstractEventLoop,
        network: DiscoveryNetwork,
        *,
        transport: str = "tcp",
        insecure: bool = False,
        clock: Clock = CLOCK,
    ) -> None:
        self.sources = sources
        self.group = group
        self.me = me
        self.config = config
        self.loop = loop
        self.network = network
        self.handshake = network.handshake
        self.insecure = insecure
        self.clock = clock
        self.warn = RateLimitedLog(LOGGER)
        self.happened: Callable[[Event], None]
        self.count: Callable[[str], None]
        self.directory: Directory | None = None
        if sources.folder is not None:
            self.directory = Directory(
                sources.folder, group, me, config, loop, transport, network.unreachable, network.handshake
            )
        self.remembered = Remembered(sources.cache, group) if sources.cache else None
        self.cached: tuple[str, ...] = ()  # the contacts of the file
        self.listed = [contact for contact in sources.listed if contact.is_number]
        names = dict.fromkeys([*sources.names, *[contact for contact in sources.listed if not contact.is_number]])
        self.lookups = [Lookup(name, loop, self._looked, self._count, self.warn) for name in names]
        self.multicasts: dict[str, Multicast] = {}
        self.view: Mapping[Address, str] = {}
        self.questions: dict[bytes, tuple[str, int]] = {}  # of this process: the place, and when it was asked
        self.asking: dict[tuple[str, Presence], None] = {}  # questions that a connection carries now
        self.answers: dict[int, tuple[DiscoveryQuestion, Answering]] = {}  # questions of others, by token
        self.tokens = 0
        self.own: dict[str, None] = {}  # places at which this process itself listens
        self.told: dict[str, None] = {}  # hosts with another secret that the log has named
        self.second, self.answered = 0, 0  # the answers of this second

    # -- beginning and end

    def open(self, contact: str) -> None:
        """Begin to answer.  Raises UsageError if a source of discovery cannot be used."""
        for reason in filter(None, map(self.network.unreachable, self.sources.listed)):
            raise UsageError(f"discovery names an address that this process cannot reach: {reason}")
        if self.directory is not None:
            self.directory.happened, self.directory.count = self.happened, self.count
            self.directory.open(contact)
        self.own[contact] = None
        if self.remembered is not None:
            self.cached = tuple([str(one) for one in self.remembered.open()])
        for to_all in self.sources.to_all:
            multicast = Multicast(to_all, _interface(self.network.bind), self, insecure=self.insecure)
            try:
                multicast.open()
            except OSError as error:
                raise UsageError(
                    f"discovery 'udp:{to_all}' cannot be used on this machine: {error.strerror or error}"
                ) from error
            self.multicasts[f"udp:{to_all}"] = multicast
        self.network.asked = self._tcp_or_udp_asked
        LOGGER.info("%s looks for members of group %s: %s", self.me, self.group, self._names())

    def _names(self) -> str:
        sources = self.sources
        names = [f"folder {sources.folder.root}"] if sources.folder else []
        names += [f"address {contact}" for contact in sources.listed] + [f"DNS name {name}" for name in sources.names]
        names += [f"multicast {contact}" for contact in sources.to_all] + [f"file of {sources.cache}"] * bool(
            sources.cache
        )
        return ", ".join(names)

    def close(self) -> None:
        """Stop asking and answering."""
        self.network.asked = None
        for lookup in self.lookups:
            lookup.close()
        for multicast in self.multicasts.values():
            multicast.close()
        if self.directory is not None:
            self.directory.close()

    # -- commands of a turn

    def find(self, founding: bool) -> None:
        """Look for members in the folder, and for places on the network.  Found and Looked follow."""
        if not self.view:
            self._warn_of_refusals()
        if self.directory is not None:
            self.directory.find(founding)
        elif founding:
            self.happened(Found({}, not self.handshake.refusals.objects))
        if not self.view and (verdict := self.handshake.verdict()) is not None:
            self.happened(verdict)
        for lookup in self.lookups:
            lookup.look()
        self._looked()

    def _looked(self) -> None:
        contacts = [contact for lookup in self.lookups for contact in self._askable(lookup.contacts)]
        places = (*map(str, (*self.listed, *contacts)), *self.cached)
        sure = all(lookup.sure for lookup in self.lookups)
        self.handshake.refusals.tell(place for place in places if place not in self.own)
        self.happened(Looked(places, tuple(self.multicasts), sure))

    def _listens_at(self, place: str) -> None:
        """This process listens at this place, which therefore neither refuses nor fails to."""
        if place not in self.multicasts and len(self.own) < LISTED_MAX:
            self.own[place] = None
            self.handshake.refusals.tell(self.handshake.refusals.told - {place})

    def _warn_of_refusals(self) -> None:
        for place in self.handshake.refusals.refusing:
            self.warn.warning(
                f"refused {place}",
                "%s answers without the secret of this process: it has another secret or none, or it is no process of "
                "this group; it keeps this process from founding the group %s only together with most other places",
                place,
                self.group,
            )

    def _askable(self, contacts: Sequence[Contact]) -> list[Contact]:
        """The addresses of one name without those that this process cannot ask because of their version of IP.  A name
        without any other address gets a warning."""
        reasons = {contact: self.network.unreachable(contact) for contact in contacts}
        left = [contact for contact, reason in reasons.items() if not reason]
        for _ in range(len(contacts) - len(left)):
            self.count("addresses of a name with another version of IP")
        if reasons and not left:
            self.warn.warning("version", "the addresses of a name are left out: %s", "; ".join(reasons.values()))
        return left

    def announce(self, member: bool, invited: bool = False) -> None:
        """Publish in the folder whether this process is a member.  Over the network it answers for itself."""
        if self.directory is not None:
            self.directory.announce(member, invited)

    def installed(self, members: Mapping[Address, str]) -> None:
        """Note the members of the view, in the file too."""
        self.view = members
        if self.directory is not None:
            self.directory.installed(members)
        self._remember()

    def refresh(self) -> None:
        """Renew the entry in the folder, and the times in the file."""
        if self.directory is not None:
            self.directory.refresh()
        self._remember()

    def _remember(self) -> None:
        if self.remembered is None:
            return
        try:
            self.remembered.write(self.view.values())
        except OSError as error:
            self.count("addresses of members that could not be kept")
            self.warn.warning("file", "addresses of members cannot be kept in %s: %s", self.remembered.path, error)

    # -- own questions

    def ask(self, place: str, presence: Presence) -> None:
        """Ask the process at `place`, or all processes that listen to a multicast address."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        question = padded(DiscoveryQuestion(VERSION, self.group, nonce, presence))
        if (place, presence) in self.asking:
            return
        self.questions[nonce] = (place, self.clock.now())
        if len(self.questions) > OPEN_MAX:
            del self.questions[next(iter(self.questions))]
        multicast = self.multicasts.get(place)
        if multicast is not None:
            multicast.ask(question)
            return
        try:
            contact = parse_contact(place)
        except UsageError:
            self.count("invalid contacts")
            return
        if contact.loopback or self.insecure or not contact.is_number:
            self.network.ask(contact, question, partial(self._done, nonce))
        else:
            self.count("contacts beyond this machine")

    def _done(self, nonce: bytes, reply: DiscoveryReply | None) -> None:
        """The place has answered, or no process listens there."""
        if reply is not None and reply.nonce == nonce:
            self.replied(reply)
            return
        place, at = self.questions.pop(nonce, ("", 0))
        if reply is None and place:
            self.happened(Nobody(place, at))

    def replied(self, reply: DiscoveryReply) -> None:
        """A process answered."""
        place, at = self.questions.get(reply.nonce, ("", 0))
        if place not in self.multicasts:
            self.questions.pop(reply.nonce, None)
        presence = reply.presence
        if place and presence is not None:
            self.handshake.heard(presence.process)
            if presence.process == self.me:
                self._listens_at(place)
        if not place or (presence is None and place in self.multicasts):
            self.count("answers of discovery to no question")
        elif presence is None:
            self.happened(Nobody(place, at))
        elif reply.refusal and presence.member:
            self.happened(Incompatible(presence.process, reply.refusal))
        elif presence.member and (reason := self._separated(presence)):
            self.happened(Incompatible(presence.process, reason))
        else:
            self.happened(Replied(place, presence, at))

    def _separated(self, presence: Presence) -> str:
        """The reason why this process cannot reach the member that answered; "" if this process can."""
        try:
            return self.network.unreachable(parse_contact(presence.contact))
        except UsageError:
            return ""

    # -- questions of others

    def asked(self, question: DiscoveryQuestion, answer: Answering) -> None:
        """A question came over multicast.  A process of another group stays silent."""
        if question.group == self.group and question.presence.process != self.me:
            self._asked(question, answer)

    def _tcp_or_udp_asked(self, question: DiscoveryQuestion, answer: Answering) -> None:
        """A question came to this process alone."""
        if question.group != self.group:
            answer(DiscoveryReply(VERSION, question.nonce, None, OTHER_GROUP))
        elif question.presence.process == self.me:
            answer(DiscoveryReply(VERSION, question.nonce, question.presence))  # the process has asked itself
        else:
            self._asked(question, answer)

    def _asked(self, question: DiscoveryQuestion, answer: Answering) -> None:
        self.handshake.heard(question.presence.process)
        second = int(self.loop.time())
        self.answered = self.answered + 1 if second == self.second else 1
        self.second = second
        if self.answered > ANSWERS_PER_SECOND or len(self.answers) >= OPEN_MAX:
            self.count("questions of discovery without an answer: too many")
            return
        self.tokens += 1
        self.answers[self.tokens] = (question, answer)
        self.happened(Asked(self.tokens, question.presence))

    def answer(self, token: int, presence: Presence) -> None:
        """Answer the question with this token."""
        question, answer = self.answers.pop(token)
        refusal = "" if question.version == VERSION else other_version(VERSION, question.version)
        answer(DiscoveryReply(VERSION, question.nonce, presence, refusal))

    # -- for the parts

    def not_opened(self, to_all: Contact, host: str) -> None:
        """A message from `host` to a multicast address cannot be opened.  Nobody refuses there, so both sides found
        groups; this process logs it once for each host."""
        self.count("datagrams of discovery dropped: another secret, or none")
        if host in self.told or len(self.told) >= TOLD_MAX:
            return
        self.told[host] = None
        LOGGER.warning(
            "a process at %s looks for members at %s with another secret, or with none, and does not find this one: if "
            "both belong to the group %s, give both the same secret=, and start the one with the wrong one again",
            host,
            to_all,
            self.group,
        )

    def crashed(self, error: BaseException) -> None:
        """An error that is a bug in pygroups ends the member."""
        self.network.crashed(error)

    def _count(self, what: str) -> None:
        self.count(what)


def _interface(bind: Contact) -> str:
    """The network interface for multicast: the one of `bind`, or the system's choice."""
    if bind.is_number and ":" not in bind.host:
        return bind.host
    return "127.0.0.1" if bind.loopback else "0.0.0.0"
