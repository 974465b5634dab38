"""The contents of a journal: the kinds of record, the fields of each kind in their order, and the columns of a reader.

The schema is the contract between members, simulator and pipeline; `docs/journal.md` describes it for people. This
module imports nothing, so that a writer of journals needs neither Arrow nor Spark.
"""

from typing import Final

MAGIC: Final = b"PYGJRNL"
VERSION: Final = 2  # the version that is written
VERSIONS: Final = (1, 2)  # the versions that are read; the header of version 1 has no services
PREAMBLE: Final = MAGIC + bytes([VERSION])  # the first 8 bytes of every segment
FRAME_HEAD_BYTES: Final = 8  # u32 length, u32 xxh32 of the body, little-endian
FRAME_BODY_MAX: Final = 1 << 30  # a longer length is damage, not a frame
SEGMENT_SUFFIX: Final = ".journal"
SEGMENT_DIGITS: Final = 6
LOCK_NAME: Final = "lock"


def is_segment(name: str) -> bool:
    """Whether a file with this name is a segment: six digits and the suffix."""
    number = name.removesuffix(SEGMENT_SUFFIX)
    return number != name and len(number) == SEGMENT_DIGITS and number.isascii() and number.isdigit()


# The header record of a segment: the only record of its first frame. `in_force` is a list of whole records that a
# member repeats where a majority decides each view, so that rotation never loses them; they have no row and no rule
# reads them. `services` is what the member's stack gives: what it promises follows from them, and not from a name.
HEADER: Final = ("group", "member", "incarnation", "profile", "version", "host", "boot_id", "in_force", "services")
PRIMARY: Final = "PRIMARY"  # the service of a stack in which a majority of each view decides the next one

_GROUP = ("FIFO_MULTICAST", "MARKS", "MEMBERSHIP", "STATE_AT_VIEW", "VIRTUAL_SYNCHRONY")
_SERVICES_OF_V1: Final[dict[str, tuple[str, ...]]] = {
    "fifo": (*_GROUP, "MERGING"),
    "total": (*_GROUP, "MERGING", "TOTAL"),
    "total1999": (*_GROUP, "MERGING", "TOTAL"),
    "uniform": (*_GROUP, PRIMARY, "TOTAL", "UNIFORM"),
    "uniform-fifo": (*_GROUP, PRIMARY, "UNIFORM"),
    "gossip": ("GOSSIP", "MEMBERSHIP"),
    "unicast": (),
}


def services_of_v1(profile: str) -> list[str]:
    """The services of a profile in journals of version 1, whose header names the profile alone; none of another."""
    return sorted(_SERVICES_OF_V1.get(profile, ()))


# The beginning of every record, before the fields of its kind. `view` is nil or [number, creator].
PREFIX: Final = ("kind", "index", "time_us", "mono_us", "view")

# Column types, in the words of Spark's DDL.
COLUMNS: Final[dict[str, str]] = {
    "group": "string",
    "member": "string",
    "incarnation": "string",
    "profile": "string",
    "host": "string",
    "history": "string",
    "index": "bigint",
    "time_us": "bigint",
    "mono_us": "bigint",
    "kind": "string",
    "view_number": "bigint",
    "view_creator": "string",
    "members": "array<string>",
    "transitional": "array<string>",
    "subgroups": "array<array<string>>",
    "primary": "boolean",
    "previous_number": "bigint",
    "previous_creator": "string",
    "ballot_number": "bigint",
    "ballot_leader": "string",
    "stage": "string",
    "next_number": "bigint",
    "next_creator": "string",
    "origin": "string",
    "origin_incarnation": "string",
    "first": "bigint",
    "count": "int",
    "bytes": "bigint",
    "checksum": "bigint",
    "stream": "string",
    "seq": "bigint",
    "position": "bigint",
    "order": "bigint",
    "peer": "string",
    "connection": "bigint",
    "low": "bigint",
    "high": "bigint",
    "digest": "map<string,bigint>",
    "gauges": "map<string,bigint>",
    "reason": "string",
    "detail": "string",
    "payload": "array<binary>",
}

_RUN = ("origin", "origin_incarnation", "first", "count", "bytes")
_UNICAST = (*_RUN, "checksum", "peer", "connection")
_CHANGE = (
    "members",
    "transitional",
    "subgroups",
    "ballot_number",
    "ballot_leader",
    "stage",
    "next_number",
    "next_creator",
    "digest",
    "detail",
)
_STATE = ("bytes", "checksum", "position", "peer", "digest", "detail")
_MARK = ("reason", "members", "detail")

# The fields of every kind, in the order in which a record holds them after the prefix.
FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "start": ("gauges", "detail"),
    "view": (
        "members",
        "transitional",
        "subgroups",
        "primary",
        "previous_number",
        "previous_creator",
        "history",
        "digest",
        "detail",
    ),
    "send": (*_RUN, "checksum"),
    "order": (*_RUN, "order"),
    "deliver": (*_RUN, "checksum", "stream", "seq", "position", "order", "payload"),
    "unicast_send": _UNICAST,
    "unicast_deliver": _UNICAST,
    "undelivered": (*_RUN, "peer", "connection"),
    "connection": ("peer", "connection", "low", "high", "detail"),
    "stable": ("digest",),
    "purge": ("digest",),
    "retransmit_request": ("peer", "stream", "seq", "low", "high"),
    "retransmit": (*_RUN, "peer", "stream", "seq", "low", "high"),
    "suspect": ("peer", "reason", "detail"),
    "unsuspect": ("peer", "detail"),
    "flush": _CHANGE,
    "merge": _CHANGE,
    "block": ("reason", "detail"),
    "unblock": ("detail",),
    "state_get": _STATE,
    "state_set": _STATE,
    "state_lost": ("reason", "digest", "detail"),
    "lack": ("origin", "origin_incarnation", "first", "count", "peer", "reason", "detail"),
    "gap": ("origin", "origin_incarnation", "first", "count", "reason", "members", "detail"),
    "drop": ("peer", "reason", "detail"),
    "refuse": ("peer", "reason", "detail"),
    "stats": ("gauges", "detail"),
    "leave": ("reason", "detail"),
    "stop": ("gauges", "reason", "detail"),
    "fault": _MARK,
    "heal": _MARK,
    "quiet": _MARK,
}

KINDS: Final = tuple(FIELDS)
MARKS: Final = ("fault", "heal", "quiet")  # written by simulator, tests and demo into every journal that runs
STAGES: Final = ("collect", "accepted", "installed", "given up")

# The report of a rule about one violation; `view` reads "4:A@3f2c", `member` and `other` are addresses.
VIOLATION_COLUMNS: Final[dict[str, str]] = {
    "promise": "string",
    "group": "string",
    "view": "string",
    "member": "string",
    "other": "string",
    "origin": "string",
    "first": "bigint",
    "position": "bigint",
    "detail": "string",
}
