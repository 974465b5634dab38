"""Where peers listen: what the view and the directory say stands, and what a peer says of itself is only tried.

A hello proves nothing: whoever knows an address can say it.  So a contact from a hello, or from the request of a
joiner, never takes the place of one that stands, and a refusal there says nothing about the peer.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import NamedTuple

from pygroups.core.address import Address
from pygroups.core.errors import UsageError
from pygroups.core.turn import Source

from .contacts import Contact, parse_contact


class Reach(NamedTuple):
    """A place to dial a peer at."""

    contact: Contact
    stands: bool  # a refusal here is a sign that the peer's process has ended


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
        """These listen there, says `source`.  The oldest that is not `needed` makes room."""
        known = self.hearsay if source is Source.PEER else self.standing
        for peer, contact in contacts.items():
            if known.get(peer) != contact and peer != self.me:
                known[peer] = contact
                if len(known) > self.limit:
                    _forget_one(known, needed)

    def reaches(self, peer: Address) -> list[Reach]:
        """Where `peer` may be dialed; the one that stands first."""
        standing, hearsay = self.standing.get(peer), self.hearsay.get(peer)
        if standing is None and hearsay is None:
            self.count("peers that nobody knows where to dial")
        told = [(standing, True)]
        if hearsay != standing:
            told.append((hearsay, False))
        return [Reach(contact, stands) for text, stands in told if text and (contact := self._allowed(text))]

    def _allowed(self, text: str) -> Contact | None:
        try:
            contact = parse_contact(text)
        except UsageError:
            self.count("contacts that are none")
            return None
        if not contact.loopback and not self.insecure:
            self.count("contacts beyond this machine")
            return None
        return contact


def _forget_one(known: dict[Address, str], needed: Container[Address]) -> None:
    unused = next((peer for peer in known if peer not in needed), None)
    if unused is not None:
        del known[unused]
