"""The decisions of PBCAST as pure functions: when to gossip, to whom, about which senders, and what to purge."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from pygroups.core.layer import NEVER, Random

from .heads import SENDERS_MAX

T = TypeVar("T")

FANOUT_MAX: Final = 4  # members that get one gossip from one member, however large the group is
PERMILLE: Final = 1_000
RANK_BYTES: Final = 3  # of a rank in a list


def interval(rng: Random, members: int, fixed: int, average: int) -> int:
    """The time until the next gossip of a member, in microseconds.

    Static: `fixed`, if it is not NEVER.  Dynamic, drawn anew before each gossip: from (0, 2 * `average` * `members`],
    so that a member receives a gossip every `average` microseconds, however large the group is (design note 002,
    "Dynamic adjustment of gossip_interval").
    """
    if fixed < NEVER:
        return fixed
    return 1 + rng.randrange(0, 2 * average * max(1, members))


def fanout(candidates: int, members: int, subset: int, most: int = FANOUT_MAX) -> int:
    """To how many of `candidates` a gossip goes: `subset` thousandths of the members, at least one and at most
    FANOUT_MAX; to `most` if that is more."""
    if most > FANOUT_MAX:
        return min(candidates, most)
    return min(candidates, most, max(1, -(-subset * members // PERMILLE)))


def some(rng: Random, of: int, size: int, count: int) -> list[int]:
    """`count` different ranks below `size` from the bit set `of`, drawn at random; all of them if there are no more."""
    if 4 * of.bit_count() < size or count >= of.bit_count():
        ranks = ranks_of(of, size)
        rng.shuffle(ranks)
        return ranks[:count]
    chosen: dict[int, None] = {}
    while len(chosen) < count:
        rank = rng.randrange(0, size)
        if of >> rank & 1:
            chosen[rank] = None
    return list(chosen)


def purge_below(digest: Mapping[T, int], lag: int) -> dict[T, int]:
    """Per sender, the number below which messages may be forgotten, if all members have got a gossip with `digest`.

    `lag` messages of each sender are kept: [P:25, Q:3, R:100] with the lag 10 gives P:15 and R:90, and nothing of Q
    (design note 002, "Garbage collection lag-behind").
    """
    return {sender: high - lag for sender, high in digest.items() if high > lag}


def ranks_of(bits: int, size: int) -> list[int]:
    """The ranks below `size` in a bit set, ascending."""
    return [rank for rank in range(size) if bits >> rank & 1]


def packed(bits: int, size: int) -> bytes | list[int]:
    """A bit set over `size` ranks on the wire: its bits, the lowest one first, or its ranks if they are few."""
    if RANK_BYTES * bits.bit_count() < size // 8:
        return ranks_of(bits, size)
    return bits.to_bytes(-(-size // 8), "little")


def unpacked(ranks: bytes | list[int]) -> int:
    """The bit set that packed() wrote."""
    if isinstance(ranks, bytes):
        return int.from_bytes(ranks, "little")
    return sum([1 << rank for rank in dict.fromkeys(ranks)])


def chosen(fresh: Sequence[T], others: Sequence[T], turn: int, most: int = SENDERS_MAX) -> list[T]:
    """The senders in one digest: those with new messages first, then others in turn."""
    first = list(fresh[:most])
    if len(fresh) > most:
        begin = turn * most % len(fresh)
        return [*fresh[begin:], *fresh[:begin]][:most]
    if not others:
        return first
    begin = turn * most % len(others)
    return [*first, *others[begin:], *others[:begin]][:most]


def skip_to(next: int, early: int | None, known: int, lows: Iterable[int]) -> int:
    """The number at which a member goes on that can no longer have the message `next`: the lowest one above it that
    can be had.  `early`: the first message beyond the hole that it holds.  `lows`: the first messages that other
    members said to hold."""
    return min([low for low in (early, *lows) if low is not None and low > next], default=max(known, next))


def holders(asked: Container[T], preferred: Sequence[T], all_of: Sequence[T]) -> list[T]:
    """The members that may be asked next: those not asked yet that are known to hold a message, then any not asked."""
    return [m for m in preferred if m not in asked] or [m for m in all_of if m not in asked] or list(preferred)
