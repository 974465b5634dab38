"""What one hostile input may cost its receiver: bytes of an answer, memory, CPU, and nothing else.

With a secret the attacker is a stranger, whose input is dropped before or at the tag.  Behind the tag, and without a
secret, an input is decoded: its costs are bounded by the limits of the fields (core/limits.py).
"""

from __future__ import annotations

import gc
import random
import struct
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
import pytest

from pygroups.core.driver_events import Presence
from pygroups.core.errors import PeerError
from pygroups.core.limits import FRAME_MAX, MARKS_MAX, RUNS_PER_FRAME_MAX
from pygroups.core.view import Ballot
from pygroups.drivers.handshake import Handshake
from pygroups.drivers.hello import DiscoveryQuestion, Hello, packed, padded, with_length
from pygroups.drivers.tcp.incoming import Incoming
from pygroups.drivers.udp.datagrams import split
from pygroups.layers.gms.heads import CollectAck
from pygroups.layers.streams.gaps import LACKS_MAX, TOLD_MAX
from pygroups.layers.verify_suspect import AreYouAlive
from pygroups.wire.frame import VERSION
from pygroups.wire.ring import Secret, ring_of_bytes
from tests.fuzz import targets
from tests.fuzz.mutate import Mutator
from tests.fuzz.seeds import seeds
from tests.fuzz.targets import PLACE, SEALED, SECRET, SECRET_CODEC, _Ends, _Socket, stranger
from tests.wire.samples import GROUP, A, B, wire_run
from tests.wire.samples import packed as packet_with
from tests.wire.test_bounds import proposal

ENCODE: Final = msgspec.msgpack.Encoder().encode
NONCE: Final = bytes(8)
MUTATED: Final = 25  # inputs of each decoder
SMALL: Final = 32 << 10  # bytes that any input may cost: objects of the first use
STEPS: Final = 50_000  # of the loop that is a yardstick
YARDSTICKS: Final = 20  # in one unit of CPU: some 50 ms on an idle machine of 2026


def named(sender: str) -> bytes:
    return ENCODE([sender, "1" * 16])


# -- bytes out for bytes in


def hello(group: str = GROUP, expected: object = B, version: int = VERSION) -> bytes:
    return packed(padded(Hello(version, group, A, "127.0.0.1:1", expected)))  # type: ignore[arg-type]


def question(group: str = GROUP, version: int = VERSION) -> bytes:
    presence = Presence(A, "127.0.0.1:1", False, True, A)
    return packed(padded(DiscoveryQuestion(version, group, NONCE, presence)))


def strange(message: bytes, about: bytes = b"") -> bytes:
    """A message that is sealed with another secret."""
    return Handshake(A, Secret(ring_of_bytes(bytes(32)))).closed(message, about)


def recorded(message: bytes, about: bytes = b"") -> bytes:
    """A message of a member that an attacker has recorded, and that this process has not had."""
    return Handshake(A, Secret(ring_of_bytes(SECRET))).closed(message, about)


MESSAGES: Final[dict[str, bytes]] = {
    "hello": hello(),
    "hello to another process": hello(expected=stranger()),
    "hello of another group": hello("x"),
    "hello of another version": hello(version=VERSION + 1),
    "question": question(),
    "question of another group": question("x"),
    "question of another version": question(version=VERSION + 1),
}


def of_every_kind() -> dict[str, tuple[str, bytes]]:
    """Messages of strangers, by kind: whether they are a hello or a question, and the bytes."""
    found = {}
    for kind, message in MESSAGES.items():
        word = kind.split()[0]
        found[kind] = word, message
        found[f"{kind}, another secret"] = word, strange(message, NONCE if word == "hello" else b"")
        found[f"{kind}, recorded"] = word, recorded(message, NONCE if word == "hello" else b"")
        found[f"{kind}, cut off"] = word, message[:9]
    found["short hello"] = "hello", packed(Hello(VERSION + 1, GROUP, A, "127.0.0.1:1", B))
    found["short hello, recorded"] = "hello", recorded(found["short hello"][1], NONCE)
    found["noise"] = "question", random.Random(1).randbytes(60)
    return found


def answered_datagram(ends: _Ends, word: str, message: bytes) -> tuple[int, int]:
    """The bytes of the answer, and of the datagram."""
    datagram = b"Q" + NONCE + message if word == "hello" else b"F" + message
    before = ends.sent
    ends.udp.arrived(memoryview(datagram), PLACE)
    return ends.sent - before, len(datagram)


def answered_connection(ends: _Ends, word: str, message: bytes) -> tuple[int, int]:
    sock = _Socket(with_length(message))
    end = Incoming(ends.door, sock, "127.0.0.1:1")  # type: ignore[arg-type]
    ends.door.strangers[end] = None
    while not end.closed:
        end._readable()
    return sock.sent, len(with_length(message))


def factors(answered: Callable[[_Ends, str, bytes], tuple[int, int]], secret: bytes | None) -> dict[str, float]:
    """The bytes of each answer for a byte of its question."""
    found = {}
    for kind, (word, message) in of_every_kind().items():
        out, came = answered(_Ends(secret), word, message)
        found[kind] = out / came
    return found


@pytest.mark.parametrize("secret", [SECRET, None])
def test_no_datagram_of_a_stranger_gets_a_longer_answer(secret: bytes | None) -> None:
    found = factors(answered_datagram, secret)
    assert {kind: factor for kind, factor in found.items() if factor > 1} == {}
    assert found["hello"] > 0 and found["hello, another secret"] > 0, "an answer, and a refusal"


@pytest.mark.parametrize("secret", [SECRET, None])
def test_the_first_bytes_of_a_connection_get_an_answer_of_at_most_twice_their_length(secret: bytes | None) -> None:
    """Nobody can open a connection in the name of a third host."""
    found = factors(answered_connection, secret)
    assert max(found.values()) <= (1 if secret else 2)
    assert found["hello"] > 0


def test_frames_and_parts_of_a_stranger_get_no_answer() -> None:
    ends = _Ends(SECRET)
    frame = seeds("frame")[0]
    for datagram in (frame, *split(frame * 9, 576), b"A" + NONCE + hello(), b"R" + question(), b"\0", b""):
        ends.udp.arrived(memoryview(datagram), PLACE)
    assert ends.sent == 0


# -- memory and CPU


def cpu(work: Callable[[], object]) -> float:
    begun = time.thread_time()
    work()
    return time.thread_time() - begun


def yardstick() -> int:
    """A loop that makes and forgets objects, as a decoder does, one at a time."""
    kept = 0
    for number in range(STEPS):
        kept += len((number, kept))
    return kept


def cost(decode: Callable[[bytes], None], data: bytes) -> tuple[int, float]:
    """The most memory that is in use meanwhile, in bytes, and the CPU, in units.

    Yardsticks are measured in turn with it, so that the machine and its other work make no difference.  No garbage is
    collected: a collection visits all objects of this process, most of which belong to other tests."""
    rounds = 3 if len(data) < 1 << 20 else 2
    gc.disable()
    try:
        measured = [(cpu(lambda: decode(data)), cpu(yardstick)) for _ in range(rounds)]
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        decode(data)
        memory = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
        gc.enable()
    return memory, min(once for once, _ in measured) / min(beside for _, beside in measured) / YARDSTICKS


def to_the_stranger(data: bytes) -> None:
    """All ways into a process with a secret."""
    with suppress(PeerError):
        SECRET_CODEC.decode(data, B)
    SEALED.udp.arrived(memoryview(data), PLACE)


def of_strangers() -> Iterator[bytes]:
    rng = random.Random(1)
    for target in ("frame", "datagram", "connection", "packet"):
        mutator, known = Mutator(target, None), seeds(target)
        yield from [mutator.mutated(rng.choice(known), known, rng) for _ in range(MUTATED)]
    frame = seeds("frame")[0]
    yield frame[:20] + bytes(FRAME_MAX - 20)
    yield frame[:20] + bytes(FRAME_MAX)
    yield from [kind + bytes(65_000) for kind in (b"Q", b"A", b"F", b"R", b"P")]


def test_a_stranger_costs_no_more_memory_than_its_bytes() -> None:
    for data in of_strangers():
        to_the_stranger(data)
        memory, units = cost(to_the_stranger, data)
        assert memory <= 2 * len(data) + SMALL, data[:40]
        assert units <= 1, data[:40]


def run_with(head: bytes) -> bytes:
    return b"\x93\xa1A\xa0\x91\x96\xc0\x00\x00\x00\x91" + head + b"\xc4\x00"


def many_runs(count: int) -> bytes:
    run = b"\x96\xc0\x00\x00\x00\x91" + ENCODE(AreYouAlive(1)) + b"\xc4\x00"
    return b"\x93\xa1A\xa0\xdd" + struct.pack(">I", count) + run * count


def many_marks(count: int) -> bytes:
    """A digest of so many senders, written by hand."""
    whole = ENCODE(CollectAck(Ballot(1, A), [], False))
    before, _, after = whole.partition(b"\xc3\xc3\x80")  # standing, primary, marks
    assert after
    marks = b"".join(b"\x92\xa1A\xb0" + b"%016x" % number + b"\x01" for number in range(count))
    return run_with(before + b"\xc3\xc3\xdf" + struct.pack(">I", count) + marks + after)


def many_lacks(heads: int) -> bytes:
    """Proposals, each with as many gaps as a merge may name."""
    least = msgspec.msgpack.encode([38, proposal()])
    ranges = b"\xdc" + struct.pack(">H", LACKS_MAX) + b"\x93\1\2\x90" * LACKS_MAX
    lacks = b"".join(b"\x92\xa1A\xa4" + b"%04x" % number + ranges for number in range(TOLD_MAX))
    head = least[:2] + b"\x9b" + least[3:] + b"\x80\x80\xc0\xdf" + struct.pack(">I", TOLD_MAX) + lacks
    return b"\x93\xa1A\xa0\x91\x96\xc0\0\0\0" + bytes([0x90 + heads]) + head * heads + b"\xc4\0"


WORST: Final[dict[str, tuple[Callable[[], bytes], int, float]]] = {
    "a body of 3 MiB": (lambda: packet_with(wire_run(origin=A, first=1, count=1, body=bytes(3 << 20))), 2, 1),
    "a million heads": (lambda: packet_with(wire_run(*[[1, 1]] * 1_000_000)), 2, 1),
    "300,000 runs": (lambda: many_runs(300_000), 2, 1),
    "as many runs as allowed": (lambda: many_runs(RUNS_PER_FRAME_MAX), 32, 1),
    "as many senders as allowed": (lambda: many_marks(MARKS_MAX), 14, 1),
    "as many gaps as allowed": (lambda: many_lacks(1), 34, 1),
    "a frame full of gaps": (lambda: many_lacks(7), 34, 7),
    "one sender too many": (lambda: many_marks(MARKS_MAX + 1), 2, 1),
}
"""What a member, or any process where there is no secret, can send: the input, the times its bytes that it may take of
memory, and of CPU, in units."""


@pytest.mark.parametrize("what", WORST)
def test_what_an_authentic_packet_costs_is_bounded(what: str) -> None:
    make, times, slow = WORST[what]
    data = make()
    assert len(data) < FRAME_MAX
    memory, units = cost(targets.packet, data)
    assert memory <= times * len(data) + SMALL, memory / len(data)
    assert units <= slow, units


# -- nothing else

WATCHED: Final = """
import random, sys
from tests.fuzz import targets
from tests.fuzz.mutate import Mutator
from tests.fuzz.receive import Play
from tests.fuzz.seeds import seeds
from pygroups.core.limits import SECOND

PARTS = ("open", "import", "exec", "compile", "os.", "shutil.", "subprocess.", "socket.", "ctypes.", "pickle.",
         "marshal.", "code.", "glob.", "tempfile.", "builtins.", "urllib.", "ssl.")
happened, watching = [], False


def hook(event, values):
    if watching and event.startswith(PARTS):
        happened.append((event, str(values)[:200]))


sys.addaudithook(hook)
plant, count = sys.argv[1], int(sys.argv[2])
if plant:
    import pygroups.layers.gms.layer as gms
    before = gms.Gms.up
    gms.Gms.up = lambda self, run: (exec(plant), before(self, run))[1]
rng = random.Random(1)
for target in ("packet", "frame", "datagram", "connection", "command", "text"):
    known, mutator, decode = seeds(target), Mutator(target, None), targets.DECODERS[target]
    for data in known:  # the first use reads the annotations of the messages
        decode(data)
    for _ in range(count):
        data = mutator.mutated(rng.choice(known), known, rng)
        watching = True
        decode(data)
        watching = False
known, mutator = seeds("receive"), Mutator("receive", None)
for seed in range(6):
    play, warmed = Play(seed), Play(seed)
    for data in known[:20]:
        warmed.receive(data)
    for _ in range(count):
        data = play.made(rng, rng.choice(known), mutator)
        watching = True
        play.receive(data)
        watching = False
        if not play.group.processes:
            break
for event in dict.fromkeys(happened):
    print(*event)
"""


def audited(plant: str, count: int) -> str:
    """The files, modules, programs and sockets that the receive path used, as the interpreter reports them."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, plant, str(count)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=root,
        env={"PYTHONPATH": f"{root / 'src'}:{root}", "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_hostile_input_opens_no_file_imports_nothing_and_runs_nothing() -> None:
    assert audited("", 100) == ""


@pytest.mark.slow
@pytest.mark.parametrize("plant", ["open('/dev/null').close()", "import pickle; pickle.loads(b'cos\\ngetcwd\\n.')"])
def test_a_layer_that_opens_a_file_or_unpickles_is_found(plant: str) -> None:
    assert ("open" if "open" in plant else "pickle.find_class") in audited(plant, 3)
