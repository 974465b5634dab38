"""The sentences of the report: the meaning of each promise for a newcomer, and a summary of all verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from pygroups.pipeline.report.figures.scale import counted

PROMISES = {
    "self-inclusion": "A member that installs a list of members is on that list.",
    "view-monotonic": "The numbers of the lists of members only rise.",
    "view-agreement": "All members get the same list of members, in the same order.",
    "initial-view": "No member sends or receives before it has a list of members.",
    "primary-chain": "After a split at most one part continues, and a majority agreed to each of its lists of members.",
    "run-identity": "A batch of messages has the same number, size and content at all members.",
    "transitional-set": "A member knows exactly which other members had the same list of members before.",
    "view-accuracy": "No member is excluded without a cause; at the end exactly the living members are in the group.",
    "integrity": "A message that arrives was sent by the named sender, with the same content.",
    "no-duplication": "No member gets the same message twice.",
    "self-delivery": "A sender gets its own messages too.",
    "multicast-reported": "A sender that leaves learns which of its messages have an unknown fate.",
    "same-view-delivery": "Members that stay together get a message under the same list of members.",
    "virtual-synchrony": "Members that stay together got exactly the same messages before the list of members changed.",
    "agreement": "At the end all remaining members have received the same messages.",
    "fifo": "Messages of one sender arrive in the order they were sent, without holes.",
    "causal": "An answer never arrives before the question.",
    "total-order": "All members see all messages in one and the same order.",
    "gap-free-prefix": "If two members received a message, no message before it is missing at only one of the two.",
    "total-order-global": "One order covers all messages, across crashes and splits.",
    "uniform-agreement": "All members that continue get each message that any member got, even a crashed member.",
    "stability-safety": "A message is deleted only after every member has it.",
    "buffers-drain": "When the group is quiet, all buffers are empty.",
    "unicast-fifo": "Messages from one member to one other arrive in the order they were sent.",
    "unicast-once": "Messages from one member to one other arrive at most once.",
    "unicast-reported": "A message to one other member arrives, or its sender gets a report that its fate is unknown.",
    "merge-agreement": "When parts of a split group reach each other again, all members agree on the parts.",
    "merge-announced": "After a split, each member learns exactly which messages the member missed.",
    "state-cut": "A newcomer gets the state of one exact moment and every message after it.",
    "confirmed": "No message that a member has acknowledged is lost in silence when it is given a state.",
    "gap-announced": "No member skips a message without an announcement.",
    "epsilon": "The share of messages that a member misses stays under the promised bound.",
    "liveness": "After the last fault the group forms one list of members and delivers all messages in time.",
}
WORST_FIRST = ("broken", "held", "not judged")
NAMED_AT_MOST = 3


def meaning(promise: str) -> str:
    """The meaning of a promise in one plain sentence; for a promise without such a sentence, the name of the
    promise."""
    return PROMISES.get(promise, "")


def headline(names: int, lives: int, messages: int, crashes: int, outcome: str) -> str:
    """The sentence at the top: the members, the messages, the crashes and the verdict."""
    members = counted(names, "member")
    if lives > names:
        members += f" in {lives:,} incarnations"
    parts = [members, counted(messages, "message")]
    if crashes:
        parts.append(counted(crashes, "crash", "crashes"))
    return f"{', '.join(parts)}: {outcome}."


def outcome(verdicts: Sequence[tuple[str, str]]) -> str:
    """The verdict in words. `verdicts` has one entry (promise, verdict) for each promise."""
    broken = [promise for promise, verdict in verdicts if verdict == "broken"]
    judged = sum(verdict != "not judged" for _, verdict in verdicts)
    if judged == 0:
        return "no promise could be judged"
    if broken:
        more = f" and {len(broken) - NAMED_AT_MOST} more" if len(broken) > NAMED_AT_MOST else ""
        were = "was" if len(broken) == 1 else "were"
        return f"{len(broken)} of {judged} promises that were judged {were} broken ({', '.join(broken[:3])}{more})"
    if judged == 1:
        return "the one promise that was judged held"
    return f"all {judged} promises that were judged held"


def state_of(verdicts: Sequence[tuple[str, str]]) -> str:
    """The worst verdict of all. `held` needs at least one promise that was judged."""
    found = {verdict for _, verdict in verdicts}
    return next((verdict for verdict in WORST_FIRST if verdict in found), "not judged")
