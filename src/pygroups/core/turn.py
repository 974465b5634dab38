"""The turn of a member: receive, layers, journal, network, application, always in this order.

The world around a stack (sockets, the simulator, the groups in memory of tests) gives the stack its input, and then
calls `play`.  Another process or the application can see only events that are already in the journal.  A process that
is killed between two steps therefore leaves a complete journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Protocol

from .address import Address
from .driver_events import Announce, Answer, Ask, Contacts, Disconnect, Find, Found, Presence, Probe, Replied
from .events import Consumed, Event, NewView
from .layer import Env, Record
from .run import Run
from .services import GOSSIP
from .stack import Output, Stack


class Source(Enum):
    """The source of a contact."""

    VIEW = "the view"
    DIRECTORY = "the directory"
    PEER = "a process that claims to be this peer"


class Network(Protocol):
    """The connections of one member."""

    def send(self, frames: Iterable[tuple[Sequence[Address], Sequence[bytes]]]) -> None:
        """Give the network these frames, each for its receivers."""

    def learn(self, contacts: Mapping[Address, str], source: Source) -> None:
        """Store the contacts of peers."""

    def probe(self, peer: Address) -> None:
        """Make a new connection.  Answered, Dead or nothing follows."""

    def disconnect(self, peer: Address) -> None:
        """Close the connection with `peer`; that is no sign that this member has crashed."""


class Discovery(Protocol):
    """The place where the members of a group find each other, as one member sees it."""

    def find(self, founding: bool) -> None:
        """Look for members.  Found follows.  With `founding` this process may found the group if there is none."""

    def ask(self, place: str, presence: Presence) -> None:
        """Ask the process at `place`.  Replied, Nobody or nothing follows."""

    def answer(self, token: int, presence: Presence) -> None:
        """Answer the question with this token."""

    def announce(self, member: bool, invited: bool = False) -> None:
        """Publish whether this process is a member now, or is about to be admitted."""

    def installed(self, members: Mapping[Address, str]) -> None:
        """Note the members of the view, and their contacts.  Any other member in the folder belongs to another
        group."""


class NoQuestions:
    """The part of a discovery in which no process asks another one: a folder names the members."""

    asks = False

    def ask(self, place: str, presence: Presence) -> None:
        raise AssertionError("no place on the network is known")

    def answer(self, token: int, presence: Presence) -> None:
        raise AssertionError("no process asked")


class Application(Protocol):
    """The receiver of the application's events."""

    def arrived(self, events: Sequence[Run | Event]) -> None:
        """Give the application these events, in this order."""


class Outside(Protocol):
    """The parts of the world that a turn uses, beside the stack."""

    @property
    def network(self) -> Network: ...
    @property
    def discovery(self) -> Discovery: ...
    @property
    def inbox(self) -> Application: ...
    def write(self, records: Sequence[Record], now: int) -> None:
        """Write the records of a turn at `now` (microseconds) into the journal; no crash of the process loses them."""


def learn_found(event: Event, network: Network) -> None:
    """Store the contacts of members in an event of discovery, before the stack gets the event."""
    if isinstance(event, Found):
        network.learn(event.members, Source.DIRECTORY)
    elif isinstance(event, Replied) and event.presence.member:
        network.learn({event.presence.process: event.presence.contact}, Source.DIRECTORY)


def start_fields(bound_us: int, env: Env) -> dict[str, object]:
    """The fields of the first record in a journal: the group settles within `bound_us` after a fault, and of a million
    messages its members miss at most `epsilon_ppm`.  0: the stack promises every message."""
    return {"gauges": {"bound_us": bound_us, "epsilon_ppm": env.config.epsilon_ppm if GOSSIP in env.services else 0}}


def play(stack: Stack, consumed: Consumed | None, now: int, outside: Outside) -> None:
    """Play one turn at `now` (microseconds of the member's clock), after all input was received."""
    hand_out(run_layers(stack, consumed, now), now, outside)


def run_layers(stack: Stack, consumed: Consumed | None, now: int) -> Output:
    """The step of the layers: report the newly consumed messages to them, call the timers that are due, and take the
    output."""
    if consumed is not None:
        stack.asked(consumed, now)
    stack.advance(now)
    return stack.end_turn(now)


def hand_out(output: Output, now: int, outside: Outside) -> None:
    """The steps of the journal, the network and the application: hand the output of the layers to each.

    Contacts are learned before anything is sent: frames of the turn may go to members that are new.
    """
    records, frames, commands, events = output
    if records:
        outside.write(records, now)
    for command in commands:
        if type(command) is Contacts:
            outside.network.learn(command.contacts, Source.PEER)
    for event in events:
        if type(event) is NewView:
            view = event.view
            contacts = dict(zip(view.members, view.contacts, strict=True))
            outside.network.learn(contacts, Source.VIEW)
            outside.discovery.installed(contacts)
    if frames:
        outside.network.send(frames)
    for command in commands:
        _obey(command, outside)
    if events:
        outside.inbox.arrived(events)


def _obey(command: Event, outside: Outside) -> None:
    if isinstance(command, Probe):
        outside.network.probe(command.peer)
    elif isinstance(command, Find):
        outside.discovery.find(not command.members_only)
    elif isinstance(command, Ask):
        outside.discovery.ask(command.place, command.presence)
    elif isinstance(command, Answer):
        outside.discovery.answer(command.token, command.presence)
    elif isinstance(command, Announce):
        outside.discovery.announce(command.member, command.invited)
    elif isinstance(command, Disconnect):
        outside.network.disconnect(command.peer)
    else:
        assert isinstance(command, Contacts), f"unknown driver command: {command}"
