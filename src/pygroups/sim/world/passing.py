"""Layers that note the views that reach them, for the check that each layer gets each view once and in order.

GMS makes the views.  Views reach the layers above GMS on their way up, and the layers below GMS on their way down.
Only events pass through a function more; runs do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pygroups.core.events import Event, NewView
from pygroups.core.layer import Env, Layer
from pygroups.core.view import ViewId


def noting(layers: Sequence[type[Layer]]) -> tuple[type[Layer], ...]:
    """These layers, top first, each with a list `seen` of the ids of the views that reached it.  Without a membership
    there are no views, and the layers stay as they are."""
    makers = [place for place, layer in enumerate(layers) if "MEMBERSHIP" in layer.gives]
    if not makers:
        return tuple(layers)
    made_at = makers[0]
    return tuple(
        layer if place == made_at else _noting(layer, up=place < made_at) for place, layer in enumerate(layers)
    )


def seen_by(layers: Sequence[Layer]) -> dict[str, list[ViewId]]:
    """For each layer that notes views, the views that reached the layer."""
    return {type(layer).__name__: layer.seen for layer in layers if hasattr(layer, "seen")}


def _noting(layer: type[Layer], *, up: bool) -> type[Layer]:
    def __init__(self: Any, env: Env) -> None:
        layer.__init__(self, env)
        self.seen = []

    def event_passes(self: Any, event: Event) -> None:
        if type(event) is NewView:
            self.seen.append(event.view.id)
        handle(self, event)

    handle = layer.up_event if up else layer.down_event
    fields = {"__slots__": ("seen",), "__init__": __init__, "__module__": layer.__module__}
    return type(layer.__name__, (layer,), fields | {handle.__name__: event_passes})
