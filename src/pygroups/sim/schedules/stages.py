"""The labeled points of the protocols: the head that a member is about to send shows its stage in a view change, an
ordering or a state transfer.  A schedule names such a point by the head.  A fault with a label waits until its
victim sends this head in a turn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final

from pygroups.core.address import Address
from pygroups.core.run import Run
from pygroups.core.stack import Codec
from pygroups.layers.gms.heads import Collect, Install, Propose
from pygroups.layers.merge2.heads import MergeReq
from pygroups.layers.profiles import PROFILES, Profile


class Digest:
    """The label of an Install that goes to a joiner and contains the position at which each origin starts."""


class MergeCollect:
    """The label of a Collect for a merge."""


class MergePropose:
    """The label of a Propose for a merge."""


class MergeInstall:
    """The label of an Install of a merged view."""


OF_MERGES: Final[dict[type, type]] = {Collect: MergeCollect, Propose: MergePropose, Install: MergeInstall}


def labels() -> dict[type, str]:
    """Each head of a profile with its label: its name, with the name of its layer in front where several layers have a
    head of that name."""
    return _labels(tuple(PROFILES.values()))


def kinds() -> dict[str, type]:
    """The same by label."""
    return _kinds(tuple(PROFILES.values()))


@cache
def _labels(profiles: tuple[Profile, ...]) -> dict[type, str]:
    layers = dict.fromkeys([layer for profile in profiles for layer in profile.layers])
    first = {head: layer.__name__ for layer in reversed(layers) for head in layer.heads}  # two layers may share it
    names = [head.__name__ for head in first]
    plain = {
        head: head.__name__ if names.count(head.__name__) == 1 else f"{layer}.{head.__name__}"
        for head, layer in first.items()
    }
    return {**plain, **{kind: kind.__name__ for kind in (Digest, *OF_MERGES.values())}}


@cache
def _kinds(profiles: tuple[Profile, ...]) -> dict[str, type]:
    return {label: kind for kind, label in _labels(profiles).items()}


def labels_of(heads: Iterable[type]) -> tuple[str, ...]:
    """The labels of the messages that members with these heads send."""
    label, sent = labels(), list(heads)
    sent += [Digest] if Install in sent else []
    sent += OF_MERGES.values() if MergeReq in sent else []
    return tuple([label[head] for head in sent])


def kind_of(head: object) -> type:
    """The type of the head, or the label of its own that it has with this content."""
    kind = type(head)
    if isinstance(head, Install) and head.starts is not None:
        return Digest
    merges = (isinstance(head, Propose | Install) and len(head.difference.sides) > 1) or (
        isinstance(head, Collect) and head.merge is not None
    )
    return OF_MERGES[kind] if merges else kind


class Watched:
    """A codec that counts the runs that its member sends, by the head of the highest layer."""

    __slots__ = ("_encode", "_kinds", "decode", "sent")

    def __init__(self, codec: Codec) -> None:
        self._encode = codec.encode
        self._kinds = kinds()
        self.decode = codec.decode
        self.sent: dict[type, int] = {}

    def encode(self, me: Address, dest: Address | None, runs: Sequence[Run]) -> list[bytes]:
        """Encode `runs` with the inner codec, and count them."""
        sent = self.sent
        for run in runs:
            heads = run.heads
            if heads:
                kind = type(heads[0])
                if kind in OF_MERGES:
                    kind = kind_of(heads[0])
                sent[kind] = sent.get(kind, 0) + 1
        return self._encode(me, dest, runs)

    def count(self, label: str) -> int:
        """Return how many heads with this label were sent; 0 for a label that no layer has."""
        kind = self._kinds.get(label)
        return self.sent.get(kind, 0) if kind is not None else 0

    def counts(self) -> dict[str, int]:
        """Return the count of every label, as `sent <label>`."""
        known = labels()
        return {f"sent {known.get(kind, kind.__name__)}": number for kind, number in self.sent.items()}
