"""The faults by name, each with a sentence.  `--faults` accepts these names, and a seed draws a part of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pygroups.core.errors import NotBuilt, UsageError

SENTENCES: Final[Mapping[str, str]] = {
    "crash": "a process ends without a word, at any moment or at a labeled point of a protocol",
    "restart": "a process ends and starts again under its name at once",
    "isolate": "one process, often the coordinator, is cut off from all others",
    "pause": "a process does not run for a time",
    "long-pause": "a process does not run for up to minutes",
    "halves": "the network parts into two sides",
    "ring": "each process reaches only two others",
    "oneway": "nothing reaches a process, or nothing gets out",
    "pair": "a single link is cut, both ways or one way",
    "tear": "two view changes in a row each lose sight of some members at a step",
    "ahead": "the others are in a new view, and send in it, before the one that coordinates it",
    "flap": "a link, or all links of a process, go away and come back several times",
    "clog": "a link, or a process, is held up; then everything arrives in a burst",
    "break": "a connection is lost with what is on its way",
    "leave": "an application leaves",
    "join": "some come late, or again",
    "together": "all processes start at the same instant",
    "join-storm": "several processes start at once while the group works",
    "leave-storm": "several applications leave at once",
    "handover": "the coordinator leaves or ends while somebody joins",
    "slow": "a process is late for everything",
    "full": "an application reads nothing for a while; windows are small",
    "forget": "an application closes a connection with a peer that goes on",
    "alone": "an application leaves while it is cut off",
    "no-keeper": "some applications keep no state",
    "twin": "a second process starts under a name that is taken",
    "stranger": "a process of another profile wants to join",
    "directory": "whoever looks for a group is answered late, with the dead, or in part",
    "clock": "wall clocks are set ahead and back",
    "drift": "the clocks of the members run at different speeds",
    "loss": "frames are lost, each by itself",
    "burst": "frames are lost, many in a row",
    "repeat": "frames come twice",
    "reorder": "frames overtake each other",
    "tail": "some frames take far longer",
    "late": "frames come again long after, in other views, over other connections, to other lives",
    "replay": "all that one sent another in the last seconds arrives again",
    "corrupt": "bits are flipped, ends are missing, two frames are glued together",
    # Faults that last after all others have healed, and wrong answers that are never corrected.
    "stay-oneway": "one direction of a link, or all that comes to a process or goes out of it, stays cut",
    "stay-pair": "two processes stay unable to reach each other, and others reach both",
    "stay-apart": "one process, or a side, stays cut off from all others",
    "far": "a host answers late for long: a round trip takes longer than a stage of a view change waits",
    "unreached": "a process that joins is heard and cannot be reached",
    "refused": "a connection to a living process is reset and the next one refused: a wrong proof of its end",
    "limits": "limits and time-outs of every layer are small",
    "no-state": "an application fails, or never answers, when it shall give its state",
}
FAULTS: Final = tuple(SENTENCES)

# Faults of protocols that are not built yet.
COMES_WITH: Final[Mapping[str, str]] = {
    "merge": "merging",
    "merge-leader": "merging",  # the leader of a merge crashes at each of its steps, also in several merges at once
}

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
        "flap",
        "clog",
        "slow",
        "alone",
        "twin",
    ),
    *("loss", "burst", "tail", "corrupt"),
    *("stay-oneway", "stay-pair", "stay-apart", "far", "unreached", "refused"),
)


def checked_faults(text: str) -> tuple[str, ...]:
    """The faults of a comma-separated list.  `swarm` means all faults, of which each seed draws a part.

    Raises UsageError for an unknown name, and NotBuilt for a fault of a protocol that is not built yet.
    """
    if text == "swarm":
        return FAULTS
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise UsageError("--faults names no fault; leave it out for all of them, or write one or more, with commas")
    for name in names:
        if name in COMES_WITH:
            raise NotBuilt(f"the fault {name!r} comes with {COMES_WITH[name]}, which is not built yet")
        if name not in FAULTS:
            raise UsageError(f"there is no fault {name!r}; there are: {', '.join(FAULTS)}")
    return names
