"""One rule per promise, one file per rule (`findings.py` says what a rule is)."""

from collections.abc import Collection
from typing import Final

from pygroups.pipeline.findings import ORDERED, UNIFORM, VIRTUAL_SYNCHRONY, Rule
from pygroups.pipeline.promises import (
    buffers_drain,
    liveness,
    self_inclusion,
    state_cut,
    transitional_set,
    unicast_fifo,
    unicast_once,
    unicast_reported,
    view_accuracy,
    view_agreement,
    view_monotonic,
)

RULES: Final[tuple[Rule, ...]] = (
    self_inclusion.RULE,
    view_monotonic.RULE,
    view_agreement.RULE,
    transitional_set.RULE,
    view_accuracy.RULE,
    buffers_drain.RULE,
    unicast_fifo.RULE,
    unicast_once.RULE,
    unicast_reported.RULE,
    state_cut.RULE,
    liveness.RULE,
)

WITHOUT_RULE: Final[dict[str, frozenset[str]]] = {
    "primary-chain": frozenset({"uniform"}),
    "causal": ORDERED,
    "total-order-global": frozenset({"uniform"}),
    "uniform-agreement": UNIFORM,
    "merge-agreement": VIRTUAL_SYNCHRONY - UNIFORM,
    "merge-announced": VIRTUAL_SYNCHRONY - UNIFORM,
    "gap-announced": frozenset({"gossip"}),
    "epsilon": frozenset({"gossip"}),
}
"""Promises that no rule judges yet, and the profiles that make them: an audit names them, so that nobody takes
"all held" for more than it says."""


def unjudged(profiles: Collection[str]) -> list[str]:
    """The promises of these profiles that no rule judges yet."""
    return [promise for promise, promised_by in WITHOUT_RULE.items() if promised_by.intersection(profiles)]
