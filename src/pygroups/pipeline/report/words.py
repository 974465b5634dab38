"""The report's sentences: what each promise means to somebody who has never seen a group, and what was found in all."""

from __future__ import annotations

from collections.abc import Sequence

from pygroups.pipeline.report.figures.scale import counted

PROMISES = {
    "self-inclusion": "Whoever is told who is in the group is on that list.",
    "view-monotonic": "The lists of who is in the group only ever go forward in number.",
    "view-agreement": "Everybody who is given a list of members is given the same one, in the same order.",
    "initial-view": "Nobody sends or receives before knowing who is in the group.",
    "primary-chain": "However the group splits, at most one part goes on, and each step was agreed by a majority.",
    "run-identity": "A batch of messages is the same batch everywhere: same number, same size, same content.",
    "transitional-set": "A member knows exactly who moved on with it from the same place.",
    "view-accuracy": "Nobody is thrown out without a cause, and in the end exactly those who live are in.",
    "integrity": "What arrives is what was sent, by the one who is named as its sender.",
    "no-duplication": "Nobody is given the same message twice.",
    "self-delivery": "A sender sees its own messages too.",
    "multicast-reported": "A sender that leaves is told which of its messages have an unknown fate.",
    "same-view-delivery": "A message is received under the same list of members by everybody who stays together.",
    "virtual-synchrony": "Members that go on together have received exactly the same messages before the change.",
    "agreement": "In the end all who are left have received the same messages.",
    "fifo": "Messages of one sender arrive in the order they were sent, without holes.",
    "causal": "An answer never arrives before the question.",
    "total-order": "All members see all messages in one and the same order.",
    "gap-free-prefix": "Nobody misses a message that somebody else received before one that both have.",
    "total-order-global": "There is one order over everything, for ever, across crashes and splits.",
    "uniform-agreement": "What anybody received, even somebody who died at once, everybody who goes on receives.",
    "stability-safety": "A message is only forgotten once every member has it.",
    "buffers-drain": "When the group is quiet, nothing is left waiting in any buffer.",
    "unicast-fifo": "Messages from one member to one other arrive in the order they were sent.",
    "unicast-once": "Messages from one member to one other arrive at most once.",
    "unicast-reported": "A message to one other member arrives, or its sender is told that this is not known.",
    "merge-agreement": "When parts of a split group meet again, they agree on how they come together.",
    "merge-announced": "After a split, what a member missed is announced to it, exactly.",
    "state-cut": "A newcomer is given the state of one exact moment and everything after it.",
    "gap-announced": "Nobody skips a message in silence.",
    "epsilon": "The share of messages that a member misses stays under the promised bound.",
    "liveness": "Once the trouble is over, the group finds together and delivers everything in time.",
}
WORST_FIRST = ("broken", "held", "not judged")
NAMED_AT_MOST = 3


def meaning(promise: str) -> str:
    """What a promise means, in one plain sentence; a promise without words here is shown by its name alone."""
    return PROMISES.get(promise, "")


def headline(names: int, lives: int, messages: int, crashes: int, outcome: str) -> str:
    """The sentence at the top: who took part, what went through, what went wrong, and what was found."""
    members = counted(names, "member")
    if lives > names:
        members += f" in {lives:,} lives"
    parts = [members, counted(messages, "message")]
    if crashes:
        parts.append(counted(crashes, "crash", "crashes"))
    return f"{', '.join(parts)}: {outcome}."


def outcome(verdicts: Sequence[tuple[str, str]]) -> str:
    """What was found, of (promise, verdict) with one entry for each promise."""
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
    """The one word for everything: the worst verdict, where `held` needs at least one promise that was judged."""
    found = {verdict for _, verdict in verdicts}
    return next((verdict for verdict in WORST_FIRST if verdict in found), "not judged")
