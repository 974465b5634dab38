"""Fuzzes one target in this process, guided by coverage where atheris is installed: `python -m tests.fuzz.worker`.

The guide is libFuzzer: it keeps an input that reaches a new branch of pygroups, and makes further inputs from it.
Without atheris inputs are made in the same way, from the first inputs only.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, Final, NamedTuple

try:
    import atheris
except ImportError:
    atheris = None

FAULTS_MAX: Final = 20  # different ways to fail that are kept
INSTRUMENTED: Final = {
    "packet": ["pygroups.wire"],
    "frame": ["pygroups.wire"],
    "datagram": ["pygroups.drivers", "pygroups.wire"],
    "connection": ["pygroups.drivers", "pygroups.wire"],
    "command": ["pygroups.blocks"],
    "text": ["pygroups.drivers", "pygroups.wire", "pygroups.core.address"],
    "journal": ["pygroups.journal"],
    "receive": ["pygroups.layers"],
}
"""The code of each target that reports its branches to the guide: more of it takes longer, and leads astray."""
NEAR: Final = 12  # places of an input in which three further ones differ from it
HANG: Final = 0.5  # seconds of CPU for one input, of code that is instrumented


class Order(NamedTuple):
    """What one worker is to do."""

    target: str
    inputs: int  # after which it ends
    seconds: float  # the same
    seed: int
    corpus: str  # a folder; "" without a guide
    report: str  # a file


def _mutate(data: bytes, most: int) -> bytes:
    """`data` changed by libFuzzer, which puts another function into `atheris` when it starts."""
    changed: bytes = atheris.Mutate(data, most)
    return changed


class Fuzz:
    """Counts the inputs of one target, and keeps each way to fail once."""

    def __init__(self, order: Order, plain: Callable[[bytes, int], bytes] | None = None) -> None:
        from tests.fuzz import mutate, receive, seeds, targets
        from tests.wire.fuzz import where_raised

        self.order = order
        self.mutator = mutate.Mutator(order.target, plain)
        self.where = where_raised
        self.end_of_targets = targets.close
        self.near = mutate.near
        self.new_play = receive.Play
        self.seeds = seeds.seeds(order.target)
        self.decoder = targets.DECODERS.get(order.target)
        if self.decoder is not None:
            self.decoder(self.seeds[0])  # the first one loads what the others find loaded
        self.play: Any = None
        self.plays = 0
        self.count = 0
        self.slowest = 0.0
        self.begun = time.monotonic()
        self.memory: list[int] = []  # KiB, at the beginning, in the middle and at the end
        self.faults: dict[str, dict[str, Any]] = {}

    def one(self, data: bytes) -> None:
        """Give the target one input."""
        self.count += 1
        if self.count * 3 // max(1, self.order.inputs) >= len(self.memory):
            self.memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        begun = time.thread_time()
        try:
            self._give(data)
        except Exception as error:  # noqa: BLE001 (to find them is what this is for)
            self._keep(data, error)
            self.play = None
        took = time.thread_time() - begun if self.decoder is not None else getattr(self.play, "slowest", 0.0)
        self.slowest = max(self.slowest, took)
        if took > HANG:
            self._keep(data, TimeoutError(f"{took:.2f} s of CPU for one input"))
            self.play = None
        if self.count >= self.order.inputs or time.monotonic() - self.begun > self.order.seconds:
            self.finish()

    def _give(self, data: bytes) -> None:
        if self.decoder is None:
            play = self._play()
            play.receive(data)
            for near in play.near(data):
                self.count += 1
                play.receive(near)
            return
        self.decoder(data)
        for near in self.near(data, NEAR):
            self.count += 1
            self.decoder(near)

    def _play(self) -> Any:
        if self.play is not None and self.play.over:
            self.play.finish()
            self.play = None
        if self.play is None:
            self.play = self.new_play(self.order.seed + self.plays)
            self.plays += 1
        return self.play

    def _keep(self, data: bytes, error: Exception) -> None:
        where = self.where(error)
        known = self.faults.get(where)
        if known is not None:
            known["times"] += 1
        elif len(self.faults) < FAULTS_MAX:
            inputs = [data] if self.play is None else self.play.inputs
            self.faults[where] = {
                "times": 1,
                "play": None if self.play is None else self.play.seed,
                "inputs": [one.hex() for one in inputs],
                "story": "".join(traceback.format_exception(error)),
            }

    def made(self, data: bytes, most: int, seed: int) -> bytes:
        """An input made from `data`."""
        rng = random.Random(seed)
        if self.decoder is None:
            try:
                return bytes(self._play().made(rng, data, self.mutator)[:most])
            except Exception as error:  # noqa: BLE001 (a play that is finished may fail too)
                self._keep(data, error)
                self.play = None
                return data
        return self.mutator.mutated(data, self.seeds, rng)[:most]

    def finish(self) -> None:
        """Write the report, and end this process: libFuzzer would not return."""
        self.memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        report = {
            "target": self.order.target,
            "guided": self.mutator.plain is not None,
            "inputs": self.count,
            "plays": self.plays,
            "seconds": round(time.monotonic() - self.begun, 1),
            "slowest_ms": round(self.slowest * 1_000, 1),
            "memory_kib": [self.memory[0], self.memory[len(self.memory) // 2], self.memory[-1]],
            "faults": self.faults,
        }
        Path(self.order.report).write_text(json.dumps(report))
        self.end_of_targets()
        sys.stdout.flush()
        os._exit(0)

    def unguided(self) -> None:
        """Go on until `finish`."""
        rng = random.Random(self.order.seed)
        for data in self.seeds:
            self.one(data)
        while True:
            self.one(self.made(rng.choice(self.seeds), 1 << 16, rng.getrandbits(64)))


def instrument(target: str) -> None:
    """Let the functions of the code of `target` report their branches to the guide."""
    packages = tuple(INSTRUMENTED[target])
    for name, module in list(sys.modules.items()):
        if not name.startswith(packages):
            continue
        kinds = [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == name]
        for owner in (module, *kinds):
            for one in vars(owner).values():
                function = getattr(one, "fget", None) or getattr(one, "__func__", one)
                if isinstance(function, FunctionType) and function.__module__ == name:
                    atheris.instrument_func(function)


def main(order: Order) -> None:
    """Fuzz until the order is done.  Does not return."""
    fuzz = Fuzz(order, None if atheris is None else _mutate)
    if atheris is None:
        fuzz.unguided()
    instrument(order.target)
    folder = Path(order.corpus)
    for number, data in enumerate(fuzz.seeds):
        (folder / f"seed{number}").write_bytes(data)
    options = [f"-seed={order.seed % (1 << 31) or 1}", "-max_len=4096", "-verbosity=0", "-print_final_stats=0"]
    atheris.Setup([sys.argv[0], *options, str(folder)], fuzz.one, custom_mutator=fuzz.made)
    atheris.Fuzz()


if __name__ == "__main__":
    main(Order(**json.loads(sys.argv[1])))
