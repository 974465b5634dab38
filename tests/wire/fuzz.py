"""Random damage to real frames, behind a right checksum, so that decoder and layers are really reached.

tests/fuzz makes its inputs with it, too.
"""

from __future__ import annotations

import copy
import random
import subprocess
import traceback
from pathlib import Path
from typing import Any, Final

import msgspec

from pygroups.core.address import Address
from pygroups.core.errors import PeerError
from pygroups.core.limits import MILLISECOND, SECOND
from tests.wire.group import Group, Process, warm
from tests.wire.samples import B, a_codec, packet_of, sealed

BYTES: Final = bytes.fromhex("00017f80818f90919fa0a1bfc0c1c2c3c4c6caccCfd3d4d9dcdfff")
NUMBERS: Final = (-1, 0, 1, 2, 255, 256, 4_096, 65_535, 1 << 31, (1 << 62) - 1, 1 << 62, (1 << 62) + 1, (1 << 64) - 1)
STRANGER: Final = Address("Z", "f" * 16)
STEPS_OF_ONE_GROUP: Final = 40  # before a fresh group takes its place
ROOT: Final = Path(__file__).parents[2]


# -- damage: packets are bytes, or, opened, [sender, dest, [[origin, first, index, count, heads, body], ...]]


def damaged_bytes(rng: random.Random, packet: bytes, other: bytes) -> bytes:
    """One to four wounds to the bytes: changed, flipped, inserted, cut out, repeated, taken from elsewhere."""
    data = bytearray(packet)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((1, 1, 2, 4, 8, 64)))
        wound = rng.randrange(7)
        if wound == 0:
            data[at : at + 1] = bytes([rng.choice(BYTES)])
        elif wound == 1 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif wound == 2:
            data[at:at] = rng.choice((rng.randbytes(4), bytes([rng.choice(BYTES)]) + b"\xff\xff\xff\xff"))
        elif wound == 3:
            del data[at:end]
        elif wound == 4:
            data[at:at] = data[at:end]
        elif wound == 5:
            begin = rng.randrange(len(other) + 1)
            data[at:end] = other[begin : begin + rng.randrange(1, 40)]
        elif rng.random() < 0.3:
            del data[at:]
    return bytes(data)


def damaged_values(rng: random.Random, packet: bytes, other: bytes) -> bytes:
    """One or two values exchanged for anything: it still is msgpack."""
    value = msgspec.msgpack.decode(packet)
    spots = places(msgspec.msgpack.decode(other))
    for _ in range(rng.randint(1, 2)):
        holder, key = rng.choice(places(value))
        from_holder, from_key = rng.choice(spots)
        foreign = copy.deepcopy(from_holder[from_key])
        anything: tuple[Any, ...] = (foreign, None, True, 1.5, b"", "", [], {}, rng.choice(NUMBERS))
        holder[key] = rng.choice(anything)
    return msgspec.msgpack.encode(value)


def lies(rng: random.Random, packet: bytes, other: bytes) -> bytes:
    """Values exchanged for others of their kind, heads for other heads: it still is a packet, and not true."""
    value, spots = msgspec.msgpack.decode(packet), places(msgspec.msgpack.decode(other))
    if rng.random() < 0.4:
        lie_about_heads(rng, rng.choice(value[2]), msgspec.msgpack.decode(other)[2])
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        holder, key = rng.choice([place for place in places(value) if place[0] is not value])
        old = holder[key]
        alike = [one[at] for one, at in spots if shape(one[at]) == shape(old) and one[at] != old]
        holder[key] = copy.deepcopy(rng.choice(alike)) if alike and rng.random() < 0.6 else nearby(rng, old)
    return msgspec.msgpack.encode(value)


def lie_about_heads(rng: random.Random, run: list[Any], others: list[list[Any]]) -> None:
    """Heads of another run, one more, one less, in another order; with a payload or without."""
    theirs, what = rng.choice(others), rng.randrange(6)
    if what == 0:
        run[4] = copy.deepcopy(theirs[4])
    elif what == 1:
        run[4].insert(rng.randrange(len(run[4]) + 1), copy.deepcopy(rng.choice(theirs[4])))
    elif what == 2 and len(run[4]) > 1:
        del run[4][rng.randrange(len(run[4]))]
    elif what == 3:
        rng.shuffle(run[4])
    elif what == 4:
        run[0], run[1], run[3], run[5] = None, 0, 0, b""
    else:
        run[0], run[1], run[3], run[5] = ["B", "0" * 15 + "2"], rng.randint(1, 9), rng.randint(1, 3), b"\x91\xc4\x01x"


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container in `value`, with each of its keys."""
    found: list[tuple[Any, Any]] = []
    if isinstance(value, list | dict):
        for key in list(range(len(value)) if isinstance(value, list) else value):
            found += [(value, key), *places(value[key])]
    return found


def shape(value: Any) -> Any:
    """What kind of thing it is: an address, a ballot, a head of that tag, a number."""
    if isinstance(value, list):
        return [value[0]] if value and isinstance(value[0], int) and len(value) > 2 else [shape(one) for one in value]
    return type(value)


def nearby(rng: random.Random, value: Any) -> Any:
    """Something of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return min(NUMBERS[-1], rng.choice((value + 1, max(0, value - 1), 0, value + 1_000, rng.choice(NUMBERS))))
    if isinstance(value, list) and value:
        at = rng.randrange(len(value))
        return rng.choice((value[:at], [*value, copy.deepcopy(value[at])], value[:at] + value[at + 1 :], value[::-1]))
    if isinstance(value, dict) and value:
        return dict(rng.sample(list(value.items()), rng.randrange(len(value))))
    if isinstance(value, bytes):
        return rng.choice((b"", value[:-1], value + b"\0", b"\x91\xc4\x01x"))
    if isinstance(value, str):
        return rng.choice(("A", "B", "C", "Z", f"{rng.randint(1, 5):016x}", value + "x"))
    return rng.choice(([], "A", 0, ["A", "0" * 15 + "1"]))


def damaged(rng: random.Random, sender: Address, frame: bytes, other: bytes) -> bytes:
    """A frame that holds up around what is left of `frame`; mostly from who sent it."""
    how = rng.choices((damaged_bytes, damaged_values, lies), (1, 1, 4))[0]
    packet = how(rng, packet_of(frame), packet_of(other))
    if rng.random() < 0.03:
        sender, packet = STRANGER, packet.replace(b"\xa1A", b"\xa1Z", 1)
    return sealed(packet or b"\0", sender)


# -- the decoder


def fuzz_decoder(rng: random.Random, frames: list[tuple[Address, bytes]], count: int) -> dict[str, int]:
    """Decode `count` damaged frames; how many were taken, and refused for which reason.  Anything else is raised."""
    codec, seen = a_codec(), {"taken": 0}
    for _ in range(count):
        try:
            codec.decode(damaged(rng, *rng.choice(frames), rng.choice(frames)[1]), B)
            seen["taken"] += 1
        except PeerError as error:
            seen[error.reason] = seen.get(error.reason, 0) + 1
    return seen


def real_frames(seed: int) -> list[tuple[Address, bytes]]:
    """What the members of a group said to each other while it came together, talked and lost one of them."""
    frames: list[tuple[Address, bytes]] = []

    def tap(sender: Address, receiver: Process, frame: bytes) -> list[bytes]:
        frames.append((sender, frame))
        return [frame]

    group = warm(seed=seed, tap=tap)
    group.lose(next(iter(group.processes.values())))
    group.run(SECOND)
    return frames


# -- a whole stack


class Attack:
    """Damaged frames to one member of a group that goes on talking meanwhile."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.frames: list[bytes] = []  # the last ones, from anybody to anybody
        self.harm = 0.0  # how many of the frames are damaged
        self.sent = 0
        self.seed = seed
        self.profile = self.rng.choice(("total", "fifo"))

    def run(self) -> None:
        """Raises what any stack raises."""
        how_much, from_the_start = self.rng.choice((0.02, 0.1, 0.3)), self.rng.random() < 0.2
        self.harm = how_much if from_the_start else 0.0
        group = warm(seed=self.seed, profile=self.profile, tap=self.tap)
        self.harm = how_much
        for _ in range(STEPS_OF_ONE_GROUP):
            self.something_happens(group)
            group.settle()
            if len(group.processes) < 2:
                return
        group.run(3 * SECOND)

    def tap(self, sender: Address, receiver: Process, frame: bytes) -> list[bytes]:
        """Some frames arrive damaged: before the real one, after it, or in its place."""
        rng = self.rng
        self.frames = [*self.frames[-60:], frame]
        if rng.random() >= self.harm:
            return [frame]
        self.sent += 1
        bad = damaged(rng, sender, frame, rng.choice(self.frames))
        return rng.choice(([bad], [bad, frame], [frame, bad]))

    def something_happens(self, group: Group) -> None:
        rng = self.rng
        process = rng.choice(list(group.processes.values()))
        what = rng.random()
        if what < 0.4 and not process.top.stopped:
            group.send(process, rng.randbytes(rng.randrange(200)))
        elif what < 0.5 and not process.top.stopped:
            group.send(process, b"to one", to=rng.choice(list(group.processes)))
        elif what < 0.8:
            group.run(rng.choice((MILLISECOND, 20 * MILLISECOND, 200 * MILLISECOND, SECOND)))
        elif what < 0.82 and len(group.processes) < 5:
            group.join("ABCDEFG"[group.births % 7])
        elif what < 0.83 and len(group.processes) > 2:
            group.lose(process)
            group.run(SECOND)


def where_raised(error: BaseException) -> str:
    """The function that raised it, and whose it was: what makes two failures one."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "pygroups" in f.filename] or [
        traceback.extract_tb(error.__traceback__)[-1]
    ]
    called = [f"{Path(frame.filename).stem}.{frame.name}" for frame in frames[-2:]]
    return f"{type(error).__name__} in {' > '.join(called)}"


def attack(seed: int) -> tuple[int, str | None, str]:
    """Damaged frames that were sent, and, if a stack raised, where and what."""
    attempt = Attack(seed)
    try:
        attempt.run()
    except Exception as error:  # noqa: BLE001 (to find them is what this is for)
        return attempt.sent, where_raised(error), "".join(traceback.format_exception(error))
    return attempt.sent, None, ""


def commit() -> str:
    """The commit that was fuzzed, with a plus if the sources differ from it."""

    def git(*command: str) -> str:
        return subprocess.run(["git", *command], capture_output=True, text=True, check=False, cwd=ROOT).stdout.strip()

    changed = "+" if git("status", "--porcelain", "--", "src") else ""
    return (git("rev-parse", "--short", "HEAD") or "unknown") + changed
