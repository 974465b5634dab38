"""The contacts of peers: those from the view and the directory are trusted, those from a peer itself are only tried.

Any process that knows an address can send a hello with it.  A contact from a hello, or from the request of a joiner,
therefore never replaces a trusted contact, and a refusal at such a contact is no proof that the peer ended.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import NamedTuple

from pygroups.core.address import Address
from pygroups.core.errors import UsageError
from pygroups.core.turn import Source

from .contacts import Contact, parse_contact


class Reach(NamedTuple):
    """A contact at which a peer can be dialed."""

    contact: Contact
    stands: bool  # the contact is trusted: a refusal there is a sign that the peer's process has ended


class Book:
    """The contacts that one member knows, at most `limit` of each kind."""

    def __init__(self, me: Address, limit: int, *, insecure: bool, count: Callable[[str], None]) -> None:
        self.me = me
        self.limit = limit
        self.insecure = insecure
        self.count = count
        self.standing: dict[Address, str] = {}
        self.hearsay: dict[Address, str] = {}

    def learn(self, contacts: Mapping[Address, str], source: Source, needed: Container[Address]) -> None:
        """Store contacts from `source`.  Above the limit, the oldest contact that is not `needed` is forgotten."""
        known = self.hearsay if source is Source.PEER else self.standing
        for peer, contact in contacts.items():
            if known.get(peer) != contact and peer != self.me:
                known[peer] = contact
                if len(known) > self.limit:
                    _forget_one(known, needed)

    def knows(self, peer: Address) -> bool:
        """Whether some contact of `peer` is known."""
        return peer in self.standing or peer in self.hearsay

    def reaches(self, peer: Address) -> list[Reach]:
        """The contacts at which `peer` can be dialed, the trusted one first."""
        standing, hearsay = self.standing.get(peer), self.hearsay.get(peer)
        if standing is None and hearsay is None:
            self.count("peers without a contact")
        contacts = [(standing, True)]
        if hearsay != standing:
            contacts.append((hearsay, False))
        return [Reach(contact, stands) for text, stands in contacts if text and (contact := self._allowed(text))]

    def _allowed(self, text: str) -> Contact | None:
        try:
            contact = parse_contact(text)
        except UsageError:
            self.count("invalid contacts")
            return None
        if not contact.loopback and not self.insecure:
            self.count("contacts beyond this machine")
            return None
        return contact


def _forget_one(known: dict[Address, str], needed: Container[Address]) -> None:
    unused = next((peer for peer in known if peer not in needed), None)
    if unused is not None:
        del known[unused]
