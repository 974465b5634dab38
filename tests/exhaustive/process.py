"""One process of the small world: the real stack of a profile, and an application that reads at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from pygroups.core.address import Address
from pygroups.core.driver_events import Ended, Found, Lost
from pygroups.core.events import Block, Consumed, Event, Excluded, Join, Leave, NewView, Undelivered
from pygroups.core.layer import Env, Record
from pygroups.core.limits import SECOND, Config
from pygroups.core.run import Run
from pygroups.core.stack import Output
from pygroups.core.top import Delivered, Reached, Top
from pygroups.core.turn import run_layers
from pygroups.core.view import AgreedView
from pygroups.layers.failure.layer import Failure
from pygroups.layers.profiles import PROFILES, build_stack
from pygroups.layers.verify_suspect import VerifySuspect
from pygroups.sim.promises.judge import WANTED
from pygroups.wire.codec import Codec

CONFIG: Final = Config(heartbeat=2 * SECOND, merge_interval=2 * SECOND, connection_age=2 * SECOND, tombstone=4 * SECOND)
TURNS_MAX: Final = 50  # without a pause; more of them are an endless storm


class Steady:
    """In place of random numbers: a process draws the same at each time and in each order of events."""

    def random(self) -> float:
        return 0.5

    def randrange(self, start: int, stop: int) -> int:
        return (start + stop) // 2

    def choice(self, seq: Sequence[Any], /) -> Any:
        return seq[0]

    def shuffle(self, x: list[Any], /) -> None:
        pass


class Unnumbered(Codec):
    """The codec of the wire, without the numbers of frames: nothing is repeated, so each frame has progress."""

    def __init__(self, profile: str) -> None:
        super().__init__("small", PROFILES[profile].heads())
        self.profile = profile

    def encode(self, me: Address, dest: Address | None, runs: Sequence[Run]) -> list[bytes]:
        self.next_number = 0
        return super().encode(me, dest, runs)

    def decode(self, frame: bytes | memoryview, me: Address) -> list[Run]:
        return [msgspec.structs.replace(run, frame=-1) for run in super().decode(frame, me)]


CODECS: Final = {name: Unnumbered(name) for name in PROFILES}
STEADY: Final = Steady()


class Unheard(msgspec.Struct, frozen=True):
    """In place of the time that a silent process has: from now on it is suspected."""

    peer: Address


class Turn(NamedTuple):
    """The visible effects of one turn."""

    frames: list[tuple[tuple[Address, ...], list[bytes]]]
    commands: list[Event]
    told: list[tuple[str, Any]]  # to the judge, from the steps before the application's
    events: list[tuple[str, Any]]  # to the judge, from the application's step


class Process:
    """A stack, and the few facts about its application."""

    __slots__ = ("blocked", "ended", "env", "leaving", "me", "next", "profile", "routes", "stack", "unread", "view")

    def __init__(self, me: Address, profile: str, now: int, *, lossless: bool = True) -> None:
        self.me = me
        self.profile = profile
        self.env = Env(me, now, STEADY, CONFIG, journaling=True)
        self.env.contact, self.env.run_records, self.env.lossless = me.name, False, lossless
        self.env.keeps_state = False
        self.stack = build_stack(PROFILES[profile], self.env, lambda _: CODECS[profile])
        self.view: AgreedView | None = None
        self.blocked = self.leaving = False
        self.ended = ""
        self.next = 0  # the place of the next action in this process's program
        self.unread: dict[Address, int] = {}
        self.routes: dict[Address, None] = {}

    @property
    def top(self) -> Top:
        top = self.stack.layers[0]
        assert isinstance(top, Top)
        return top

    # -- input

    def frame(self, src: Address, frame: bytes, now: int) -> list[Turn]:
        self.routes.setdefault(src)
        self.stack.receive(frame, now)
        return self.turns(now, [])

    def event(self, event: Event, now: int) -> list[Turn]:
        """An event of the driver."""
        if isinstance(event, Unheard):
            return self._suspects(event.peer, now)
        if isinstance(event, Found):
            self.routes.update(dict.fromkeys(event.members))
        elif isinstance(event, Ended):
            if event.peer not in self.routes:
                return []
            self.stack.happened(Lost(event.peer), now)
        self.stack.happened(event, now)
        return self.turns(now, [])

    def _suspects(self, peer: Address, now: int) -> list[Turn]:
        """The time that FAILURE and VERIFY_SUSPECT give a silent member is over."""
        failure, verify = self._failure(), self._verify()
        if peer not in failure.heard:
            return []
        failure.heard[peer] = now - failure.silences[peer]
        failure.wake_at(now)
        turns = self.turns(now, [])
        if peer in verify.asked and not self.ended:
            verify.asked[peer] = now
            verify.wake_at(now)
            turns += self.turns(now, [])
        return turns

    def _failure(self) -> Failure:
        return next(layer for layer in self.stack.layers if isinstance(layer, Failure))

    def _verify(self) -> VerifySuspect:
        return next(layer for layer in self.stack.layers if isinstance(layer, VerifySuspect))

    def act(self, action: str, now: int) -> list[Turn]:
        """The application joins, sends or leaves."""
        self.next += 1
        told: list[tuple[str, Any]] = []
        if action == "join":
            self.stack.asked(Join(), now)
        elif action == "leave":
            self.leaving = True
            told.append(("leaving", ()))
            self.stack.asked(Leave(), now)
        else:
            assert action == "send", action
            payload = f"{self.me.name}{self.next}".encode()
            told.append(("accepted", (None, self.top.accept(payload), payload)))
        return self.turns(now, told)

    def may(self, action: str) -> bool:
        """Whether the application can do this now."""
        return action == "join" or (self.view is not None and not self.leaving)

    # -- turns

    def turns(self, now: int, told: list[tuple[str, Any]]) -> list[Turn]:
        """Play turns until nothing is due."""
        done: list[Turn] = []
        while not self.ended and len(done) < TURNS_MAX:
            unread, self.unread = self.unread, {}
            output = run_layers(self.stack, Consumed(unread, {}) if unread else None, now)
            done.append(self._turn(output, told, unread))
            told = []
            if self.stack.wake() > now and not self.unread:
                return done
        assert self.ended, "a storm of turns"
        return done

    def _turn(self, output: Output, told: list[tuple[str, Any]], unread: dict[Address, int]) -> Turn:
        if unread:
            told = [*told, ("consumed", (unread,))]
        records: list[Record] = [record for record in output.records if record[0] in WANTED]
        events: list[tuple[str, Any]] = []
        for event in output.events:
            self._arrived(event, events)
        if records:
            events.append(("recorded", (records,)))
        return Turn(output.frames, output.commands, told, events)

    def _arrived(self, event: Run | Event, events: list[tuple[str, Any]]) -> None:
        if type(event) is Delivered:
            origin = event.run.origin
            assert origin is not None and event.position >= 0
            self.unread[origin] = event.run.next
            events.append(("delivered", (event,)))
        elif type(event) is Reached:
            events.append(("reached", (event.delivered, event.stable)))
        elif isinstance(event, NewView):
            self.view, self.blocked = event.view, False
            self.routes.update(dict.fromkeys(event.view.members))
            events.append(("viewed", (event,)))
        elif isinstance(event, Block):
            self.blocked = True
        elif isinstance(event, Excluded):
            self.ended = event.reason
            events.append(("stopped", (event.reason, self.top.unknown())))
        elif isinstance(event, Undelivered):
            events.append(("undelivered", (event.to, event.numbers)))
