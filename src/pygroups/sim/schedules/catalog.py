"""The faults by name, each with a sentence.  `--faults` accepts these names, and a seed draws a part of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pygroups.core.errors import UsageError
from pygroups.core.services import MEMBERSHIP, STATE_AT_VIEW, VIRTUAL_SYNCHRONY

SENTENCES: Final[Mapping[str, str]] = {
    "crash": "a process crashes, at any moment or at a labeled point of a protocol",
    "restart": "a process crashes and starts again at once, under the same name",
    "isolate": "one process, often the coordinator, is cut off from all others",
    "pause": "a process does not run for a time",
    "long-pause": "a process does not run for up to minutes",
    "halves": "the network parts into two sides",
    "ring": "each process reaches only two others",
    "oneway": "no frame reaches a process, or no frame of the process reaches others",
    "pair": "a single link is cut, both ways or one way",
    "tear": "two view changes overlap, and each loses contact to some members at a step",
    "ahead": "other members install a view, and send in it, before its coordinator does",
    "merge": "the network parts for so long that each side makes a view and sends, then all sides merge",
    "merge-leader": "the leader of a merge crashes, stops or is cut off at a step, also in two merges at once",
    "flap": "a link, or all links of a process, fail and recover several times",
    "clog": "all frames of a link or a process are held, then arrive in a burst",
    "break": "a connection is lost, with the frames in transit",
    "leave": "an application leaves",
    "join": "a process starts late, or starts again",
    "together": "all processes start at the same instant",
    "join-storm": "several processes start at once while the group is in use",
    "leave-storm": "several applications leave at once",
    "handover": "the coordinator leaves or crashes during a join",
    "slow": "a process handles all its input late",
    "full": "an application reads nothing for a while; windows are small",
    "forget": "an application closes a connection, and the peer continues to use it",
    "alone": "an application leaves while it is cut off",
    "no-keeper": "some applications keep no state",
    "twin": "a second process starts under a name that is taken",
    "stranger": "a process of another profile wants to join",
    "settings": "some processes have other settings: their group must never merge with the other one",
    "directory": "the directory answers late, with ended processes, or incompletely",
    "unshown": "sides part and merge while the directory shows no member to any other",
    "attack": "a process that is in no view sends noise, frames of another group, and heads that only members may send",
    "clock": "wall clocks are set ahead and back",
    "drift": "the clocks of the members run at different speeds",
    "loss": "single frames are lost",
    "burst": "many frames in a row are lost",
    "repeat": "frames arrive twice",
    "reorder": "frames overtake each other",
    "tail": "some frames take much longer",
    "late": "copies of frames arrive much later, in other views, over other connections, at restarted processes",
    "replay": "all frames from one process to another of the last seconds arrive again",
    "corrupt": "bits are flipped, ends are missing, two frames are glued together",
    # Faults that last after all others have healed, and wrong answers that are never corrected.
    "stay-oneway": "one direction of a link, or of all links of a process, stays cut",
    "stay-pair": "two processes stay unable to reach each other; the others reach both",
    "stay-apart": "one process, or a side, stays cut off from all others",
    "far": "the frames of a host take long: a round trip takes longer than a stage of a view change waits",
    "unreached": "the frames of a joiner arrive, and no frame reaches it",
    "refused": "a connection to a running process is reset and the next one is refused: a wrong proof of its end",
    "expel": "an application reads nothing, or a process stops, for longer than the group's policy allows",
    "limits": "the limits and timeouts of all layers are small",
    "no-state": "an application fails, or never answers, when it is asked for its state",
    "disk-full": "a journal cannot be written for a time; its member goes on without it, or leaves",
}
FAULTS: Final = tuple(SENTENCES)
WHOLE_JOURNALS: Final = tuple(fault for fault in FAULTS if fault != "disk-full")  # with these no journal has a hole


def is_swarm(faults: Sequence[str]) -> bool:
    """Whether `faults` are so many that a schedule takes only a small part of them."""
    return set(WHOLE_JOURNALS) <= set(faults)


# The weight of each fault, where it can be drawn.  Nine in ten schedules have a grave fault.
GRAVE: Final[Mapping[str, int]] = {"crash": 8, "isolate": 9, "pause": 6, "restart": 2}
STEPS: Final[Mapping[str, int]] = {
    **GRAVE,
    "halves": 3,
    "ring": 1,
    "oneway": 3,
    "pair": 1,
    "tear": 8,
    "ahead": 2,
    "merge": 3,
    "merge-leader": 4,
    "flap": 1,
    "clog": 2,
    "break": 2,
    "refused": 3,
    "replay": 2,
    "leave": 3,
    "join": 1,
    "join-storm": 1,
    "leave-storm": 1,
    "handover": 2,
    "slow": 2,
    "full": 2,
    "forget": 2,
    "alone": 2,
    "twin": 2,
    "stranger": 1,
    "directory": 2,
    "clock": 1,
}
# Faults that can make a living process look dead.
DISTURBING: Final = (
    *(
        "isolate",
        "pause",
        "long-pause",
        "halves",
        "ring",
        "oneway",
        "pair",
        "tear",
        "ahead",
        "merge",
        "merge-leader",
        "flap",
        "clog",
        "slow",
        "alone",
        "twin",
    ),
    *("loss", "burst", "tail", "corrupt"),
    *("stay-oneway", "stay-pair", "stay-apart", "far", "unreached", "refused"),
)


# Faults of processes without a group: no view changes there, no process looks for another one, and none has a state.
ALONE: Final = (
    *("crash", "restart", "isolate", "pause", "long-pause", "halves", "ring", "oneway", "pair", "flap", "clog"),
    *("break", "leave", "join", "together", "slow", "full", "forget", "refused", "limits", "clock", "drift"),
    *("loss", "burst", "repeat", "reorder", "tail", "late", "replay", "corrupt"),
)


OF_SERVICES: Final = {"tear": VIRTUAL_SYNCHRONY, "ahead": VIRTUAL_SYNCHRONY, "no-state": STATE_AT_VIEW}
"""Faults in the steps of a flush, and of a state, with the service without which there is no such step."""


def possible(faults: Sequence[str], services: frozenset[str]) -> tuple[str, ...]:
    """Those of `faults` that a profile with these services can have."""
    able = [fault for fault in faults if OF_SERVICES.get(fault, MEMBERSHIP) in services]
    return tuple(able) if MEMBERSHIP in services else tuple(fault for fault in faults if fault in ALONE)


def checked_faults(text: str) -> tuple[str, ...]:
    """The faults of a comma-separated list.  `swarm` means all faults, of which each seed draws a part.

    Raises UsageError for an unknown name.
    """
    if text == "swarm":
        return FAULTS
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise UsageError(
            "--faults has no name of a fault; leave out --faults for all faults, or write names, separated by commas"
        )
    for name in names:
        if name not in FAULTS:
            raise UsageError(f"there is no fault {name!r}; there are: {', '.join(FAULTS)}")
    return names
