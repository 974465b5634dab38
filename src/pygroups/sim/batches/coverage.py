"""The coverage of a batch of schedules: its faults, the stages of view changes and states, and the counts that must not
be 0.

A count of 0 shows that the seeds did not test this case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from ..schedules import parting, tearing
from ..schedules.catalog import FAULTS

SEEDS_MIN: Final = 300  # number of schedules from which a zero among REQUIRED fails the command
EMPTY_MAX: Final = 0.02  # a larger share of empty schedules fails the command
EMPTY_MAX_OF_MAJORITY: Final = 0.1  # where a majority decides: a group that has lost it waits, and sends nothing


# -- faults


SHOWN_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "restart": ("restarts",),
    "isolate": ("isolation",),
    "long-pause": ("long pause",),
    "halves": ("cut both", "isolation"),
    "oneway": ("cut out", "cut in"),
    "pair": ("cut both", "cut out"),
    "tear": tuple(f"clog at {step}" for step in tearing.STEPS),
    "ahead": ("clog at Install",),
    "leave": ("leaves",),
    "merge": ("cut both", "isolation"),
    "merge-leader": tuple(f"{fault} at {step}" for step in parting.LEADS for fault in ("crash", "pause", "cut")),
    "flap": ("flapping",),
    "break": ("connection lost",),
    "join": ("starts",),
    "together": ("starts",),
    "join-storm": ("restarts",),
    "leave-storm": ("leaves",),
    "handover": ("coordinator leaves",),
    "slow": ("slow member",),
    "full": ("reads nothing",),
    "expel": ("reads nothing", "pause"),
    "clock": ("clock jumps",),
    "forget": ("peer forgotten",),
    "alone": ("leaves",),
    "no-keeper": ("starts",),
    "twin": ("two processes under one name",),
    "stranger": ("another profile",),
    "settings": ("other settings",),
    "directory": ("directory: late", "directory: former", "directory: some"),
    "unshown": ("directory: nobody",),
    "attack": ("attack", "frames of an attacker"),
    "drift": ("drifting clocks",),
    "loss": ("lost",),
    "burst": ("burst", "lost"),
    "repeat": ("repeated",),
    "reorder": ("reordered",),
    "tail": ("delayed",),
    "replay": ("replayed",),
    "corrupt": ("flipped", "truncated", "glued"),
    **dict.fromkeys(("stay-oneway", "stay-pair", "stay-apart", "unreached"), ("cut that stays",)),
    "limits": ("starts",),
    "no-state": ("no state given",),
    "disk-full": ("disk full",),
}
"""The counters that show each fault, one of which suffices; a fault that is not listed counts under its own name."""


def faults_missing(asked: tuple[str, ...], happened: Mapping[str, int]) -> list[str]:
    """The requested faults that never happened."""
    return [fault for fault in asked if not any(happened.get(name) for name in SHOWN_BY.get(fault, (fault,)))]


# -- stages


STAGES: Final[Mapping[str, Mapping[str, str]]] = {
    "Gms": {
        "join requested": "sent Join",
        "name taken": "name taken",
        "join refused": "sent Refuse",
        "leave requested": "sent LeaveReq",
        "Ready sent": "sent Ready",
        "Ready answered": "sent ReadyRsp",
        "joiner did not answer Ready": "joiner silent",
        "Collect sent": "sent Collect",
        "bound to a ballot": "bound",
        "bound to a higher ballot": "bound again",
        "leaver bound to a ballot": "leaver bound",
        "Collect answered": "sent CollectAck",
        "lower ballot rejected": "sent Low",
        "Propose sent": "sent Propose",
        "missing runs fetched": "fetches to the cut",
        "proposal accepted": "sent Accept",
        "attempt restarted": "flush restarted",
        "attempt given up": "flush given up",
        "Install sent": "sent Install",
        "Install acknowledged": "sent InstallAck",
        "view handed over by another member": "view handed on",
        "leader left with the view that it decided": "leader left with its view",
        "leave timed out": "leave timed out",
        "start positions sent to a joiner": "sent Digest",
        "Done sent": "sent Done",
        "Stuck sent": "sent Stuck",
        "Elsewhere sent": "sent Elsewhere",
        "exclusion announced": "sent Excluded",
    },
    "Hints": {
        "joiner asked for admission": "sent Join",
        "joiner refused": "sent Refuse",
        "view announced": "sent Announce",
        "whole view sent": "sent Whole",
        "later view asked for": "sent Hints.ViewReq",
        "member accused": "sent Hints.Accuse",
        "leader asked for a leave": "sent Hints.LeaveReq",
        "leave confirmed": "sent Bye",
    },
    "Pbcast": {
        "message sent or sent again": "sent Pbcast.Data",
        "gossip sent": "sent Gossip",
        "gossip received again": "gossips again",
        "lacking messages requested": "sent Lacks",
        "request answered": "runs sent again",
        "request refused": "sent Purged",
        "gap announced": "messages given up",
        "start of a joiner asked for": "sent StartReq",
        "start of a joiner answered": "sent Starts",
        "messages purged": "runs purged",
        "messages forgotten for the limit of bytes": "runs forgotten for the limit of bytes",
    },
    "Rate": {
        "messages held back for the rate": "runs held back for the rate",
    },
    "Merge2": {
        "other view asked for": "sent FindReq",
        "other view found": "sent FindRsp",
        "found process reported to the leader": "sent Sighted",
        "merge begun": "merges begun",
        "merge asked for": "sent MergeReq",
        "merge answered": "sent MergeRsp",
        "merge cancelled": "merges cancelled",
        "Collect of a merge sent": "sent MergeCollect",
        "Collect of a merge refused": "sent CollectRefused",
        "Propose of a merge sent": "sent MergePropose",
        "merge tried again": "merge tried again",
        "merge failed": "merge failed",
        "merged view sent": "sent MergeInstall",
        "merged view installed": "merged views",
    },
    "Fragmentation": {
        "payload sent in pieces": "payloads sent in pieces",
        "pieces sent again from the first one": "payloads sent again from their first piece",
    },
    "Flush": {
        "runs withheld until the view": "runs withheld",
        "multicasts queued for the next view": "runs for the next view",
    },
    "StateTransfer": {
        "joiner ready for its state": "sent StateBegin",
        "state chunk sent": "sent StateData",
        "state chunk acknowledged": "sent StateAck",
        "state complete": "sent StateDone",
        "state from a second provider": "state from another",
        "state lost with all its holders": "state lost",
        "state replaced in a merge": "state replaced",
    },
}
"""By layer, the stages of a view change in their order, each with its counter."""

NEVER_WITH: Final[Mapping[str, str]] = {"multicasts queued for the next view": "Sequencer"}
"""Stages that cannot happen in a profile with this layer: SEQUENCER sends nothing down while it is blocked."""


NEVER_WITHOUT: Final[Mapping[str, str]] = {
    "pieces sent again from the first one": "Gms",
    "Collect of a merge sent": "Flush",
    "Collect of a merge refused": "Flush",
    "Propose of a merge sent": "Flush",
    "merge tried again": "Flush",
    "merge failed": "Flush",
    "merged view sent": "Flush",
}
"""Stages that cannot happen in a profile without this layer: only a view change drops pieces, and views as hints are
united without a flush."""


def stages_hit(layers: tuple[str, ...], counts: Mapping[str, int]) -> dict[str, int]:
    """How often each stage of these layers was reached, in the order of a view change."""
    stages = [stage for layer, those in STAGES.items() if layer in layers for stage in those.items()]
    never = [stage for stage, layer in NEVER_WITH.items() if layer in layers]
    never += [stage for stage, layer in NEVER_WITHOUT.items() if layer not in layers]
    return {stage: counts.get(counter, 0) for stage, counter in stages if stage not in never}


# -- required counts


class Required(NamedTuple):
    """A count that must not be 0 in a large batch."""

    name: str
    count: Callable[[Mapping[str, int]], int]
    faults: tuple[str, ...] = ()  # required only if one of these was requested
    layer: str = ""  # required only if the profile has this layer
    beside: str = ""  # and this one


def retransmissions(counts: Mapping[str, int]) -> int:
    """The number of runs that all layers retransmitted."""
    return sum(number for name, number in counts.items() if name.endswith("sent again") and "bytes" not in name)


def _counter(name: str) -> Callable[[Mapping[str, int]], int]:
    return lambda counts: counts.get(name, 0)


def _failed_merges(counts: Mapping[str, int]) -> int:
    return counts.get("merges cancelled", 0) + counts.get("merge failed", 0)


def _of_leaders(counts: Mapping[str, int]) -> int:
    return sum(counts.get(name, 0) for name in SHOWN_BY["merge-leader"])


PARTING: Final = ("merge", "merge-leader", "isolate", "halves")  # faults after which sides merge
STOPPING: Final = (
    "crash",
    "restart",
    "isolate",
    "pause",
    "long-pause",
    "halves",
)  # faults that stop a member during a view change
LOSING: Final = (
    *("crash", "restart", "isolate", "halves", "ring", "oneway", "pair", "tear", "flap", "break"),
    *("loss", "burst", "corrupt"),
)

REQUIRED: Final = (
    Required("messages", _counter("messages")),
    Required("deliveries", _counter("deliveries")),
    Required("views", _counter("views"), layer="Gms"),
    Required("views as hints", _counter("views"), layer="Hints"),
    Required("announced gaps", _counter("messages given up"), LOSING, "Pbcast"),
    Required("purged runs", _counter("runs purged"), layer="Pbcast"),
    Required("exclusions by policy", _counter("exclusion asked for"), ("expel",), "FlowControl", "Stable"),
    Required("crashes of a coordinator", _counter("crash of a coordinator"), ("crash",), "Gms"),
    Required("isolations of a coordinator", _counter("isolation of a coordinator"), ("isolate",), "Gms"),
    Required("restarted flushes", _counter("flush restarted"), STOPPING, "Gms"),
    Required("merges", _counter("merges"), PARTING, "Merge2"),
    Required("states replaced in a merge", _counter("state replaced"), PARTING, "Merge2", "Gms"),
    Required("merges without a merged view", _failed_merges, ("merge-leader",), "Merge2", "Gms"),
    Required("faults of a leader of a merge", _of_leaders, ("merge-leader",), "Merge2", "Gms"),
    Required("retransmissions", retransmissions, LOSING),
    Required("drops", _counter("drops"), FAULTS),
)


def zeros(layers: tuple[str, ...], faults: tuple[str, ...], counts: Mapping[str, int]) -> list[str]:
    """The names of the required counts that are 0."""
    return [
        required.name
        for required in REQUIRED
        if not required.count(counts)
        and (not required.faults or any(fault in faults for fault in required.faults))
        and (not required.layer or required.layer in layers)
        and (not required.beside or required.beside in layers)
    ]
