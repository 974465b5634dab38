"""One rule per promise, one file per rule (`findings.py` defines a rule)."""

from collections.abc import Iterable
from typing import Final

from pygroups.pipeline.findings import ORDERED, PromiseRule
from pygroups.pipeline.promises import (
    agreement,
    buffers_drain,
    confirmed,
    epsilon,
    fifo,
    gap_announced,
    gap_free_prefix,
    initial_view,
    integrity,
    liveness,
    merge_agreement,
    merge_announced,
    multicast_reported,
    no_duplication,
    primary_chain,
    run_identity,
    same_view_delivery,
    self_delivery,
    self_inclusion,
    stability_safety,
    state_cut,
    total_order,
    total_order_global,
    transitional_set,
    unicast_fifo,
    unicast_once,
    unicast_reported,
    uniform_agreement,
    view_accuracy,
    view_agreement,
    view_monotonic,
    virtual_synchrony,
)

RULES: Final[tuple[PromiseRule, ...]] = (
    self_inclusion.RULE,
    view_monotonic.RULE,
    view_agreement.RULE,
    initial_view.RULE,
    primary_chain.RULE,
    run_identity.RULE,
    transitional_set.RULE,
    view_accuracy.RULE,
    integrity.RULE,
    no_duplication.RULE,
    self_delivery.RULE,
    multicast_reported.RULE,
    same_view_delivery.RULE,
    virtual_synchrony.RULE,
    agreement.RULE,
    fifo.RULE,
    gap_announced.RULE,
    epsilon.RULE,
    total_order.RULE,
    gap_free_prefix.RULE,
    total_order_global.RULE,
    uniform_agreement.RULE,
    stability_safety.RULE,
    buffers_drain.RULE,
    unicast_fifo.RULE,
    unicast_once.RULE,
    unicast_reported.RULE,
    merge_agreement.RULE,
    merge_announced.RULE,
    state_cut.RULE,
    confirmed.RULE,
    liveness.RULE,
)

WITHOUT_RULE: Final[dict[str, frozenset[str]]] = {
    "causal": ORDERED,
}
"""Promises that no rule judges yet, and what a stack gives that makes them: an audit names them, so that no reader
takes "all held" for more than it says."""


def unjudged(stacks: Iterable[frozenset[str]]) -> list[str]:
    """The promises of stacks with these services that no rule judges yet."""
    given = list(stacks)
    return [promise for promise, needed in WITHOUT_RULE.items() if any(needed <= services for services in given)]
