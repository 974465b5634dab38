"""Conversation tests as text: a few members, each with the layers under test and nothing else, over a scripted network.

A file `tests/layers/text/<layer>/<number>_<what>.txt` is a list of blocks: comments (`#`), commands, `----`, then what
they print, indented, up to an empty line.  `pytest tests/layers/test_text.py` compares; `UPDATE=1 pytest
tests/layers/test_text.py` writes what is printed now: read the diff.  The layer is named by the folder unless the
first command is `layers Upper Lower ...`, top first.  Each command is one turn at the members it touches.

Runs go through the real codec, one run a frame, and stay in flight until they are delivered; nothing else happens by
itself.  `LINK` is `A>B`, with `*` for any member; `WHICH` picks among the frames in flight there: names of heads,
numbers from 1, `last`, or nothing for all of them.

    members A B C                 begin; the clock shows 0.  `config verify_timeout=2s` stands before it
    world alone lossless          before `members`: without a group; with a driver that reports every loss (Lost)
    view 1 A B [at A] [cut={C=1}] [starts={C=3}]
                                  a NewView from gms: upward, or downward where the layers lie below gms
    send A B x y                  the application of A sends one run of payloads to B; B may be * (a multicast)
    flood A B 25 x                25 runs of one payload each, x0 to x24, in one turn
    tell A B hello                a layer above sends a run without payload, whose head is Word
    put A>B Data conn=1 seq=2 [x] a frame from A that A's layers know nothing of; heads bottom last, joined by |
    event A down Forget peer=B    an event from above (down) or below (up); values: 5, 20ms, true, none, B,
                                  3:B (a ballot), {B=4,C=2}, [B,C]
    deliver [LINK WHICH]          without LINK: everything, until nothing is in flight
    lose LINK WHICH   repeat LINK WHICH   last LINK WHICH (it overtakes nobody: it goes behind all others)
    keep LINK WHICH as NAME       a copy for later;  late NAME: it is in flight again
    cut LINK ...   heal           what is sent there is lost
    tick                          to the next time that anybody waits for, and fire it
    wait 30ms                     let so much time pass, firing on the way, delivering nothing
    run 2s                        let so much time pass, delivering everything at once
    sleep A   awake A             A neither receives nor is called in between: its process is stopped
    crash A                       A is no more
    begin A ... end A             what happens to A in between is one turn
    quietly COMMAND               without the lines about the network and the clock
    show [A]                      what is held (gauges that are not 0) and what was dropped
    journal [A]                   what was written since the last `journal`

Printed: `sent`, `lost`; `got` (a run reached the top), `told` (an event did), `asks` (a command reached the driver).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from enum import Enum
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, structs

from pygroups.core import driver_events, events, merge_events, suspicion_events
from pygroups.core.address import Address
from pygroups.core.events import Event, Marks, NewView, Positions
from pygroups.core.layer import NEVER, Env, Layer, services_of
from pygroups.core.limits import Config
from pygroups.core.run import Run, pack, unpack
from pygroups.core.stack import Output, Stack
from pygroups.core.view import AgreedView, Ballot, ViewId
from pygroups.layers.sequencer import Sequencer
from pygroups.wire.codec import Codec

# Fields that are printed only when something is in them.
SELDOM = (
    "slowest",
    "idle",
    "members_only",
    "expelled",
    "reason",
    "policy",
    "merge",
    "changes",
    "marks",
    "digest",
    "lacks",
    "missing",
    "subgroups",
    "gaps",
    "accepted",
    "history",
    "vouched",
    "winner",
    "round_trip",
    "more",
)
BELOW_GMS = {"Merge2", "Unicast2", "VerifySuspect", "Failure", "Discovery"}
UNITS = {"us": 1, "ms": 1_000, "s": 1_000_000}
ENDLESS = 20_000  # deliveries and ticks of one command: more is a conversation that never ends
NETWORK = ("sent ", "lost ", "now ")


class Word(msgspec.Struct, array_like=True, tag=255):
    """A head of no layer here, for runs without payload."""

    text: Annotated[str, Meta(max_length=64)]


class Packet(NamedTuple):
    src: str
    dest: str
    frame: bytes


class Ear(Layer):
    """On top: what reaches it leaves with the turn's output, and runs go down at the end of a turn, as from the top."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.to_send: list[Run] = []

    def end_turn(self) -> None:
        self.below.extend(self.to_send)
        self.to_send = []

    def up_event(self, event: Event) -> None:
        if isinstance(event, NewView):
            self.env.view = event.view.id
        self.above.append(event)


class OneByOne:
    """The real codec, with a frame of its own for each run, so that the script can lose single runs.  `placed`: the
    layers are above the numbered streams, so a multicast comes from the stream of its sender."""

    def __init__(self, codec: Codec, placed: bool) -> None:
        self.codec = codec
        self.placed = placed

    def encode(self, me: Address, dest: Address | None, runs: Sequence[Run]) -> list[bytes]:
        return [frame for run in runs for frame in self.codec.encode(me, dest, [run])]

    def decode(self, frame: bytes | memoryview, me: Address) -> list[Run]:
        runs = self.codec.decode(frame, me)
        if not self.placed:
            return runs
        return [run if run.dest else structs.replace(run, stream=run.src, seq=-1) for run in runs]


class Member:
    """One member of a conversation, and what its stack left behind in its last turn."""

    def __init__(self, name: str, number: int, layers: Sequence[type[Layer]], config: Config, *world: str) -> None:
        self.name = name
        self.address = Address(name, f"{number:016x}")
        self.env = Env(self.address, 0, random.Random(number), config, journaling=True)
        self.env.contact = name
        self.env.lossless = "lossless" in world
        given = services_of(layers) - {"TOTAL"}  # no top paces its runs by the order
        self.env.services = given | (frozenset() if "alone" in world else self.env.services)
        heads = [Word, *(head for layer in layers for head in layer.heads)]
        self.codec = OneByOne(Codec("test", heads), placed="FIFO_MULTICAST" not in given and Sequencer in layers)
        floor = type("Floor", (Layer,), {"gives": frozenset().union(*(layer.needs for layer in layers))})
        ear = type("HigherLayers", (Ear,), {"gives": frozenset().union(*(layer.needs_above for layer in layers))})
        self.under_test = [layer(self.env) for layer in layers]
        self.ear = ear(self.env)
        self.stack = Stack(self.env, [self.ear, *self.under_test, floor(self.env)], self.codec)
        self.view: AgreedView | None = None
        self.next_number: dict[Address | None, int] = {}
        self.asleep = False
        self.open_turn = False
        self.written: list[tuple[str, dict[str, Any]]] = []

    def run_of(self, dest: Address | None, payloads: Sequence[str]) -> Run:
        """The application's next run to `dest`."""
        first = self.next_number.get(dest, 1)
        self.next_number[dest] = first + len(payloads)
        body = pack([payload.encode() for payload in payloads])
        return Run(self.address, dest, (), self.address, first, 0, len(payloads), body)


def layer_class(name: str) -> type[Layer]:
    """The layer `Unicast2` or, by its module, `unicast2`."""
    name = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
    module = import_module(f"pygroups.layers.{snake}")
    if hasattr(module, "__path__"):  # a protocol in a folder
        module = import_module(f"{module.__name__}.layer")
    found: type[Layer] = getattr(module, name)
    return found


class Conversation:
    """See the module.  `do` runs one command and returns what it printed; tests in Python may call it too."""

    def __init__(self, *layers: str) -> None:
        self.layers = [layer_class(name) for name in layers]
        self.config = Config()
        self.world: tuple[str, ...] = ()
        self.members: dict[str, Member] = {}
        self.now = 0
        self.flight: list[Packet] = []
        self.kept: dict[str, list[Packet]] = {}
        self.cuts: list[str] = []
        self.lines: list[str] = []

    def do(self, command: str) -> list[str]:
        """One line of a script."""
        word, *rest = command.split()
        if word == "quietly":
            return [line for line in self.do(" ".join(rest)) if not line.startswith(NETWORK)]
        before, self.lines = self.lines, []
        getattr(self, f"do_{word}")(*rest)
        printed, self.lines = self.lines, before
        return printed

    # -- who takes part

    def do_layers(self, *names: str) -> None:
        self.layers = [layer_class(name) for name in names]

    def do_config(self, *settings: str) -> None:
        changes = {name: value_of(text) for name, text in (setting.split("=", 1) for setting in settings)}
        self.config = msgspec.structs.replace(self.config, **changes)

    def do_world(self, *words: str) -> None:
        assert {*words} <= {"alone", "lossless"}
        self.world = words

    def do_members(self, *names: str) -> None:
        for name in names:
            number = len(self.members) + 1
            self.members[name] = Member(name, number, self.layers, self.config, *self.world)
            self.members[name].env.now = self.now

    def do_view(self, number: str, *words: str) -> None:
        fields = {key: self._value(value) for key, _, value in (word.partition("=") for word in words if "=" in word)}
        names = tuple(word for word in words if "=" not in word)
        if "at" in names:
            members, where = names[: names.index("at")], names[names.index("at") + 1 :]
        else:
            members, where = names, names
        addresses = tuple(self.members[name].address for name in members)
        view = AgreedView(ViewId(int(number), addresses[0]), addresses, tuple(members))
        for name in where:
            self._install(self.members[name], view, **fields)

    def _install(
        self, member: Member, view: AgreedView, cut: Positions | None = None, starts: Marks | None = None
    ) -> None:
        old = member.view.members if member.view else ()
        event = NewView(
            view,
            member.view.id if member.view else None,
            tuple(one for one in view.members if one in old or one == member.address),
            tuple(one for one in view.members if one not in old),
            tuple(one for one in old if one not in view.members),
            True,
            starts,
            cut=cut or {},
        )
        member.view = view
        if any(layer.__name__ in BELOW_GMS for layer in self.layers):
            member.env.view = view.id
            member.stack.asked(event, self.now)
        else:
            member.stack.outlet.peers = tuple(one for one in view.members if one != member.address)
            member.stack.happened(event, self.now)
        self._end_turn(member)

    # -- what members do

    def do_send(self, src: str, dest: str, *payloads: str) -> None:
        member = self.members[src]
        self._down(member, member.run_of(self._address(dest), payloads))

    def do_flood(self, src: str, dest: str, count: str, prefix: str) -> None:
        member = self.members[src]
        runs = [member.run_of(self._address(dest), [f"{prefix}{number}"]) for number in range(int(count))]
        member.ear.to_send.extend(runs)
        self._end_turn(member)

    def do_tell(self, src: str, dest: str, text: str) -> None:
        member = self.members[src]
        self._down(member, Run(member.address, self._address(dest), (Word(text),)))

    def _address(self, name: str) -> Address | None:
        return None if name == "*" else self.members[name].address

    def _down(self, member: Member, run: Run) -> None:
        member.ear.to_send.append(run)
        self._end_turn(member)

    def do_event(self, name: str, way: str, kind: str, *fields: str) -> None:
        member = self.members[name]
        of = next(module for module in (events, suspicion_events, merge_events, driver_events) if hasattr(module, kind))
        event = self._struct(getattr(of, kind), fields)
        assert way in ("up", "down"), f"an event goes up or down, not {way}"
        (member.stack.happened if way == "up" else member.stack.asked)(event, self.now)
        self._end_turn(member)

    def do_put(self, link: str, *words: str) -> None:
        src, dest = link.split(">")
        sender = self.members[src]
        text, _, payloads = " ".join(words).partition(" [")
        heads = tuple(self._head(part.split()) for part in text.split("|") if part.strip())
        to = self._address(dest)
        run = Run(sender.address, to, heads)
        if payloads:
            run = sender.run_of(to, payloads.rstrip("]").split())
            for head in heads:
                run = run.push(head)
        for receiver in [dest] if dest != "*" else [name for name in self.members if name != src]:
            for frame in sender.codec.encode(sender.address, to, [run]):
                self._post(src, receiver, frame)

    def _head(self, words: list[str]) -> Any:
        known = {head.__name__: head for layer in self.layers for head in layer.heads} | {"Word": Word}
        return self._struct(known[words[0]], words[1:])

    def _struct(self, kind: Any, fields: Sequence[str]) -> Any:
        types = {field.name: field.type for field in msgspec.structs.fields(kind)}
        given = (field.split("=", 1) for field in fields)
        return kind(**{name: self._field(text, types[name]) for name, text in given})

    def _field(self, text: str, kind: Any) -> Any:
        """A layer is named by its class; everything else is a value."""
        return layer_class(text) if kind is type else msgspec.convert(self._value(text), kind)

    def _value(self, text: str) -> Any:
        if text.startswith("{"):
            pairs = [pair.split("=") for pair in text[1:-1].split(",") if pair]
            return {self._value(key): self._value(value) for key, value in pairs}
        if text.startswith("["):
            return [self._value(part) for part in text[1:-1].split(",") if part]
        if text in self.members:
            return tuple(self.members[text].address)
        number, colon, name = text.partition(":")
        if colon and name in self.members:
            return (int(number), tuple(self.members[name].address))
        return value_of(text)

    # -- the network

    def do_deliver(self, *where: str) -> None:
        if where:
            for packet in self._take(where):
                self._arrive(packet)
            return
        for _ in range(ENDLESS):
            first = next((packet for packet in self.flight if not self.members[packet.dest].asleep), None)
            if first is None:
                return
            self.flight.remove(first)
            self._arrive(first)
        raise AssertionError("the members never stop talking")

    def _arrive(self, packet: Packet) -> None:
        member = self.members[packet.dest]
        member.stack.receive(packet.frame, self.now)
        self._end_turn(member)

    def do_lose(self, *where: str) -> None:
        for packet in self._take(where):
            self.lines.append(f"lost {self._packet(packet)}")

    def do_repeat(self, *where: str) -> None:
        self.flight.extend(self._find(where))

    def do_last(self, *where: str) -> None:
        self.flight.extend(self._take(where))

    def do_keep(self, *words: str) -> None:
        *where, _, name = words
        self.kept[name] = self._find(where)

    def do_late(self, name: str) -> None:
        self.flight.extend(self.kept[name])

    def do_cut(self, *links: str) -> None:
        self.cuts.extend(links)

    def do_heal(self) -> None:
        self.cuts = []

    def _take(self, where: Sequence[str]) -> list[Packet]:
        found = self._find(where)
        for packet in found:
            self.flight.remove(packet)
        return found

    def _find(self, where: Sequence[str]) -> list[Packet]:
        link, *which = where
        there = [packet for packet in self.flight if matches(link, packet)]
        names = [word for word in which if not word.isdigit() and word != "last"]
        if names:
            there = [packet for packet in there if self._head_name(packet) in names]
        places = [len(there) if word == "last" else int(word) for word in which if word not in names]
        assert there and max(places, default=1) <= len(there), f"nothing is in flight at {' '.join(where)}"
        return [there[place - 1] for place in places] if places else there

    def _head_name(self, packet: Packet) -> str:
        return type(self._run(packet).head).__name__

    def _run(self, packet: Packet) -> Run:
        (run,) = self.members[packet.src].codec.decode(packet.frame, self.members[packet.dest].address)
        return run

    def _post(self, src: str, dest: str, frame: bytes) -> None:
        packet = Packet(src, dest, frame)
        cut = dest not in self.members or any(matches(link, packet) for link in self.cuts)
        self.lines.append(f"{'lost' if cut else 'sent'} {self._packet(packet)}")
        if not cut:
            self.flight.append(packet)

    # -- time

    def do_tick(self) -> None:
        wakes = [member.stack.wake() for member in self.members.values() if not member.asleep]
        when = min(wakes, default=NEVER)
        assert when != NEVER, "nobody waits for anything"
        self._fire(max(when, self.now))

    def do_wait(self, time: str) -> None:
        for _ in self._until(self.now + time_of(time)):
            pass

    def do_run(self, time: str) -> None:
        self.do_deliver()
        for _ in self._until(self.now + time_of(time)):
            self.do_deliver()

    def _until(self, end: int) -> Iterator[None]:
        for _ in range(ENDLESS):
            wakes = [member.stack.wake() for member in self.members.values() if not member.asleep]
            when = max(self.now, min([*wakes, end]))
            if when >= end and all(wake > end for wake in wakes):
                self.now = end
                return
            self._fire(when)
            yield
        raise AssertionError("the members never stop waking up")

    def _fire(self, when: int) -> None:
        if when != self.now:
            self.now = when
            self.lines.append(f"now {time_text(when)}")
        for member in list(self.members.values()):
            if not member.asleep and member.stack.wake() <= when:
                member.stack.advance(when)
                self._end_turn(member)

    def do_sleep(self, name: str) -> None:
        self.members[name].asleep = True

    def do_awake(self, name: str) -> None:
        self.members[name].asleep = False

    def do_crash(self, name: str) -> None:
        self.flight = [packet for packet in self.flight if packet.dest != name]
        self.members[name].asleep = True
        self.cuts += [f"*>{name}", f"{name}>*"]

    # -- turns, and what they print

    def do_begin(self, name: str) -> None:
        self.members[name].open_turn = True

    def do_end(self, name: str) -> None:
        self.members[name].open_turn = False
        self._end_turn(self.members[name])

    def _end_turn(self, member: Member) -> None:
        if member.open_turn:
            return
        output: Output = member.stack.end_turn(self.now)
        member.written.extend((kind, fields) for kind, _, fields in output.records)
        for item in output.events:
            what = f"got {self._payload(item)}" if isinstance(item, Run) else f"told {self.text(item)}"
            self.lines.append(f"{member.name} {what}")
        self.lines.extend(f"{member.name} asks {self.text(command)}" for command in output.commands)
        for dests, frames in output.frames:
            for frame in frames:
                for dest in dests:
                    self._post(member.name, dest.name, frame)

    def do_show(self, *names: str) -> None:
        for name in names or self.members:
            env = self.members[name].env
            held = [f"{gauge}={value}" for gauge, value in env.gauges().items() if value]
            drops = [f"{what[5:]} {n}" for what, n in env.counters.items() if what.startswith("drop ")]
            self.lines.append(f"{name} holds {' '.join(held) or 'nothing'}")
            self.lines.extend(f"{name} dropped {drop}" for drop in drops)

    def do_journal(self, *names: str) -> None:
        hidden = ("origin_incarnation", "bytes", "checksum")
        for name in names or self.members:
            for kind, fields in self.members[name].written:
                shown = " ".join(f"{key}={self.text(v)}" for key, v in fields.items() if key not in hidden)
                self.lines.append(f"{name} wrote {kind} {shown}")
            self.members[name].written = []

    def _packet(self, packet: Packet) -> str:
        run = self._run(packet)
        parts = [" | ".join(self.text(head) for head in reversed(run.heads))] if run.heads else []
        return " ".join([f"{packet.src}>{packet.dest}", *parts, *([self._body(run)] if run.count else [])])

    def _payload(self, run: Run) -> str:
        """A run that reached the top: heads that are left, payloads, where it stands, from whom, through whom."""
        parts = [self.text(head) for head in run.heads] + ([self._body(run)] if run.count else [])
        if run.stream is not None and run.seq >= 0:
            parts.append(f"at {run.stream.name}/{run.seq}")
        parts.append(f"from {(run.origin or run.src).name}")
        if run.origin is not None and run.src != run.origin:
            parts.append(f"through {run.src.name}")
        return " ".join(parts)

    def _body(self, run: Run) -> str:
        return f"[{' '.join(payload.decode() for payload in unpack(run.body))}]"

    def text(self, value: Any) -> str:
        """A head, an event or a value, with names in place of addresses."""
        if isinstance(value, Address):
            return value.name
        if isinstance(value, Ballot | ViewId):
            return f"{value.number}:{value.leader.name}"
        if isinstance(value, NewView):
            return f"NewView {self.text(value.view.id)} {self.text(value.view.members)}"
        if isinstance(value, msgspec.Struct):
            fields = [
                f"{name}={self.text(getattr(value, name))}"
                for name in value.__struct_fields__
                if name not in SELDOM or getattr(value, name)
            ]
            return " ".join([type(value).__name__, *fields])
        if isinstance(value, Enum):
            return value.name.lower()
        if isinstance(value, range):
            return f"[{value.start},{value.stop})"
        if isinstance(value, dict):
            return "{" + ",".join(f"{self.text(key)}={self.text(item)}" for key, item in value.items()) + "}"
        if isinstance(value, (tuple, list)):
            return "[" + ",".join(self.text(item) for item in value) + "]"
        if isinstance(value, type):
            return value.__name__
        if isinstance(value, bytes):
            words = value.decode(errors="replace")
            return words if words.isprintable() else f"0x{value.hex()}"
        return str(value)


def matches(link: str, packet: Packet) -> bool:
    src, dest = link.split(">")
    return src in ("*", packet.src) and dest in ("*", packet.dest)


def value_of(text: str) -> Any:
    """A number, a time, true, false, none, or the text itself."""
    words: dict[str, Any] = {"true": True, "false": False, "none": None}
    if text in words:
        return words[text]
    if text.lstrip("-").isdigit():
        return int(text)
    digits = text.rstrip("ums")
    return time_of(text) if digits.replace(".", "", 1).isdigit() and text[len(digits) :] in UNITS else text


def time_of(text: str) -> int:
    """Microseconds of `20ms`, `1.5s`, `7us`."""
    digits = text.rstrip("ums")
    return int(float(digits) * UNITS[text[len(digits) :]])


def time_text(us: int) -> str:
    return f"{us // 1_000}ms" if us % 1_000 == 0 else f"{us}us"


def retold(text: str, layer: str) -> str:
    """The file as it would read with what its commands print now."""
    conversation = Conversation(layer)
    out: list[str] = []
    for block in blocks(text):
        out.extend(block)
        commands = [line for line in block if line and not line.startswith("#")]
        if commands:
            out.append("----")
            out.extend(f"  {line}" for command in commands for line in conversation.do(command))
        out.append("")
    return "\n".join(out).rstrip("\n") + "\n"


def blocks(text: str) -> Iterator[list[str]]:
    """Comments and commands of each block; what was printed is left out."""
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        if not line.strip():
            if block:
                yield block
            block = []
        elif line != "----" and not line.startswith("  "):
            block.append(line)
