"""One rule per promise, one file per rule: tables in, findings out (`findings.py` says what those are)."""

from typing import Final

from pygroups.pipeline.findings import Rule
from pygroups.pipeline.promises import (
    agreement,
    fifo,
    gap_free_prefix,
    initial_view,
    integrity,
    no_duplication,
    run_identity,
    same_view_delivery,
    self_delivery,
    self_inclusion,
    total_order,
    view_agreement,
    view_monotonic,
    virtual_synchrony,
)

RULES: Final[tuple[Rule, ...]] = (
    self_inclusion.RULE,
    view_monotonic.RULE,
    view_agreement.RULE,
    initial_view.RULE,
    run_identity.RULE,
    integrity.RULE,
    no_duplication.RULE,
    self_delivery.RULE,
    same_view_delivery.RULE,
    virtual_synchrony.RULE,
    agreement.RULE,
    fifo.RULE,
    total_order.RULE,
    gap_free_prefix.RULE,
)
