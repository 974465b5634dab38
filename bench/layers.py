"""What the layers cost: one run of one message, and one of 100, through the real stacks of two members in memory.

The sender is the member that orders: the run goes down its stack, up to its own application, and up the stack of the
other one.  Both consume, vote and purge meanwhile, which is in the figures.  Budgets: 15 us a run of one message, and
0.15 us a message at 100 a run (docs: bench/README.md).
"""

from __future__ import annotations

import argparse
import time

import common  # first: it makes this tree the one that is measured
from pair import End, Pair, Spent

from pygroups.layers.profiles import PROFILES

SIZE = 100
BUDGET_RUN_US, BUDGET_MESSAGE_US = 15.0, 0.15


def round_of(pair: Pair, sender: End, messages: int, runs: int) -> int:
    """Send `runs` runs of `messages` messages, one after the other, 100 us apart."""
    payload = bytes(SIZE)
    before = [end.messages for end in pair.ends]
    for _ in range(runs):
        for _ in range(messages):
            sender.top.accept(payload)
        pair.due[sender] = None
        pair.settle()
        pair.tick(100)
    assert [end.messages - old for end, old in zip(pair.ends, before, strict=True)] == [runs * messages] * 2
    return runs


def accepting_us(seconds: float, profile: str) -> float:
    """What `accept` and the packing of a run cost by themselves, per message: they are not the layers' work."""
    pair = Pair(codec=False, profile=profile)
    top = pair.ends[0].top
    payload = bytes(SIZE)

    def work() -> int:
        for _ in range(20):
            for _ in range(100):
                top.accept(payload)
            top.open.payloads, top.open.size = [], 0
        return 2_000

    return common.best_us(work, seconds)[0]


def measured(messages: int, seconds: float, profile: str) -> dict[str, float]:
    """Microseconds per run, with and without the codec, from the member that orders and from the other one."""
    found: dict[str, float] = {}
    for name, codec, sender in (
        ("layers", False, 0),
        ("layers_and_codec", True, 0),
        ("layers_and_codec_of_a_forward", True, 1),
    ):
        pair = Pair(codec=codec, profile=profile)
        end = pair.ends[sender]
        best, median = common.best_us(lambda pair=pair, end=end: round_of(pair, end, messages, 50), seconds)  # type: ignore[misc]
        found[f"{name}_us_per_run"] = round(best, 2)
        found[f"{name}_us_per_run_median"] = round(median, 2)
    return found


def each_layer(messages: int, seconds: float, profile: str) -> dict[str, float]:
    """Microseconds per run in each layer, at both members together."""
    spent = Spent()
    pair = Pair(codec=False, spent=spent, profile=profile)
    best: dict[str, float] = {}
    end = time.monotonic() + seconds
    rounds = 0
    while rounds < 20 or time.monotonic() < end:
        rounds += 1
        spent.forget()
        runs = round_of(pair, pair.ends[0], messages, 50)
        for name in spent.ns:
            best[name] = min(best.get(name, 1e9), spent.us(name, runs))
    return {name.lower(): round(us, 2) for name, us in best.items()}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--seconds", type=float, default=2.0, help="for each of the figures")
    options.add_argument("--profile", default="total", choices=[name for name in PROFILES if name != "unicast"])
    chosen = options.parse_args()
    seconds, profile = chosen.seconds, chosen.profile
    for messages in (1, 100):
        result = common.Result("layers")
        found = measured(messages, seconds, profile)
        per_message = found["layers_us_per_run"] / messages
        result.write(
            profile=profile,
            messages_per_run=messages,
            size=SIZE,
            **found,
            layers_us_per_message=round(per_message, 3),
            accept_us_per_message=round(accepting_us(seconds / 2, profile), 3),
            budget_us=BUDGET_RUN_US if messages == 1 else BUDGET_MESSAGE_US * messages,
            each_layer_us_per_run=each_layer(messages, seconds, profile),
        )


if __name__ == "__main__":
    main()
